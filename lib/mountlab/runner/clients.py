"""The clients of a run: further boxes that drive workloads together, by fio's own client/server mode.

The box of the sweep makes the file system, and asks; every client is held like it, with a lock and a lease, sees the
same file system, which is proved before anything is measured, and for the time of a trial runs fio as a server. That
protocol has no password: a process that reaches a server has a shell. So it listens at a unix socket in a directory of
its user's own, which is carried to the box that asks over SSH. No port is opened anywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from mountlab.box.connection import BoxConnection, Completed, Stream
from mountlab.box.embedded.carry import End, carried
from mountlab.box.leftovers import kill_run
from mountlab.core.errors import (
    BoxLost,
    BoxRestarted,
    ClientLost,
    CommandError,
    ToolError,
    TransientError,
    TrialError,
    in_one_line,
)
from mountlab.core.model import Step
from mountlab.core.shell import script_argv
from mountlab.core.trial_files import TrialFiles
from mountlab.outcome.archive import Files, unpack
from mountlab.outcome.judging import Outcome
from mountlab.runner.away import PATIENCE_S, NeighboursAway
from mountlab.runner.steps import StepRunner
from mountlab.sweep.clients import PlannedClient
from mountlab.sweep.plan import Plan, PlannedMount, PlannedTrial

MAKE_SOCKET_DIRECTORY = """
install -d -m 700 -o "$1" "$2"
"""
AWAIT_SOCKETS = """
for socket; do
    tries=200
    until [ -S "$socket" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "no socket $socket" >&2; exit 1; }
        sleep 0.05
    done
done
"""
SAME_FILESYSTEM = """
case $1 in
ask) printf '%s' "$3" > "$2/.mountlab-same" ;;
see) [ "$(cat "$2/.mountlab-same")" = "$3" ] && printf '%s' "$3" > "$2/.mountlab-seen-$4" ;;
hear) shift; root=$1 word=$2; shift 2
    for name; do
        [ "$(cat "$root/.mountlab-seen-$name")" = "$word" ] || { echo "$name wrote elsewhere" >&2; exit 1; }
    done
    rm -f "$root/.mountlab-same" "$root"/.mountlab-seen-* ;;
esac
"""
EXPECTED = {"cold": (b"drop_caches", b"fadvise"), "warm": (b"filled",)}
"""Requested state of the page cache to the words by which a client confirms it (serve.sh)."""


class Connection(BoxConnection, Protocol):
    """What a client needs of its connection, and the box that asks of its own (steady.SteadyBox)."""

    @property
    def ssh(self) -> tuple[str, ...]: ...
    def attend(self, argv: Sequence[str], *, root: bool = False) -> Stream: ...


class Clients:
    """The clients of a run; most runs have none."""

    def __init__(self, plan: Plan, box: BoxConnection, connections: Mapping[str, Connection]) -> None:
        self._plan = plan
        self._box_steps = StepRunner(box, plan.run_id, plan.privileged)
        self._connections = connections
        self._clients = {client.name: _Client(client, connections[client.name]) for client in plan.clients}

    @contextmanager
    def held(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Open the directories of the run on each client, and hold a lease on it."""
        with ExitStack() as undo:
            for client in self._clients.values():
                undo.enter_context(client.held(stopped))
            yield

    @contextmanager
    def mounted(self, mount: PlannedMount) -> Iterator[None]:
        """Mount a file system of the box on its clients. Raises CommandError if a client sees another file system."""
        with ExitStack() as undo:
            for place in mount.clients:
                undo.enter_context(self._clients[place.client].steps_applied(place.steps))
            if mount.clients:
                self._check_same_filesystem(mount)
            yield

    def _check_same_filesystem(self, mount: PlannedMount) -> None:
        """Check that each client reads what the box writes, and the box what each client writes."""
        word = secrets.token_hex(16)
        argv = ("sh", "-c", SAME_FILESYSTEM, "same-file-system")
        self._run_on_box((*argv, "ask", mount.root, word), f"{mount.filesystem.name}: the box cannot write to it")
        for place in mount.clients:
            completed = self._clients[place.client].run((*argv, "see", place.root, word, place.client))
            if not completed.ok:
                raise CommandError(
                    f"client {place.client} does not see the same file system as the box",
                    where=f"filesystems.{mount.filesystem.name}, client {place.client}: {place.root}",
                    got="the word that the box wrote there is not in it, or the client cannot write beside it",
                    allowed="one file system, mounted on every client",
                    evidence=completed.error_text,
                )
        names = (place.client for place in mount.clients)
        self._run_on_box(
            (*argv, "hear", mount.root, word, *names), "a client wrote to another file system than the box sees"
        )

    def _run_on_box(self, argv: tuple[str, ...], problem: str) -> None:
        completed = self._box_steps.execute(argv, PATIENCE_S)
        if not completed.ok:
            raise CommandError(problem, where=f"box {self._plan.box.name}", evidence=completed.error_text)

    # --- a trial ------------------------------------------------------------------------------------------------------

    def neighbours(self, planned: PlannedTrial) -> NeighboursAway:
        """Return the neighbours of a trial that run on clients."""
        hosts = [(away, self._clients[away.client]) for away in planned.away]
        return NeighboursAway(hosts, self._box_steps.execute)

    def attempt(self, planned: PlannedTrial, attempt_on_box: Callable[[], Outcome]) -> Outcome:
        """Attempt a trial while the servers of its clients run. Raises ClientLost if a client is lost and does not come
        back."""
        clients = [self._clients[endpoint.client] for endpoint in planned.endpoints]
        if not clients:
            return attempt_on_box()
        with ExitStack() as stop:
            for client in clients:
                client.serve(stop, limit_s=planned.timeout_s + PATIENCE_S)
            for client in clients:
                client.wait()
            self._carry(planned, clients, stop)
            outcome = attempt_on_box()
            reports = {client.name: client.stop() for client in clients}
        return with_reports(outcome, reports, planned.command.cache or "as_is")

    def _carry(self, planned: PlannedTrial, clients: Sequence[_Client], stop: ExitStack) -> None:
        sockets = {endpoint.client: endpoint.socket for endpoint in planned.endpoints}
        directory = next(iter(sockets.values())).rpartition("/")[0]
        stop.callback(self._box_steps.execute, ("rm", "-rf", directory), PATIENCE_S)
        self._run_on_box(
            ("sh", "-c", MAKE_SOCKET_DIRECTORY, "sockets", self._plan.user, directory), "no directory for sockets"
        )
        ends = [End(name=client.name, ssh=client.connection.ssh, socket=client.socket) for client in clients]
        box_ssh = self._connections[self._plan.box.name].ssh
        check = stop.enter_context(carried(ends, self._plan.box.name, box_ssh, sockets))
        completed = self._box_steps.execute(("sh", "-c", AWAIT_SOCKETS, "sockets", *sockets.values()), PATIENCE_S)
        if not completed.ok:
            check()
            raise CommandError("the sockets of the clients did not come up on the box", evidence=completed.error_text)


def with_reports(outcome: Outcome, reports: Mapping[str, Files], cache: str) -> Outcome:
    """Add the clients' files to an outcome, and the error that follows from them. Pure."""
    files = {f"client-{name}-{file}": data for name, report in reports.items() for file, data in report.items()}
    return replace(outcome, files={**outcome.files, **files}, error=_error_with_clients(outcome.error, reports, cache))


def _error_with_clients(error: TrialError | None, reports: Mapping[str, Files], cache: str) -> TrialError | None:
    lost = [name for name, report in reports.items() if report.get("server", b"").strip() != b"running"]
    if error is not None and lost:
        cause = "the connection was cut, or fio's server there ended"
        return TransientError(
            f"client {', '.join(lost)} was lost while the trial ran: {cause}", got=in_one_line(str(error))
        )
    expected = EXPECTED.get(cache, ())
    unready = [
        name
        for name, report in reports.items()
        if expected and report.get(TrialFiles.CACHE, b"").strip() not in expected
    ]
    if error is None and unready:
        return ToolError(
            f"the page cache of {', '.join(unready)} was not made {cache}",
            got="no word of it from the client",
            allowed="caches dropped, or filled, on every client before the measured part",
        )
    return error


class _Client:
    """One client, connected."""

    def __init__(self, planned: PlannedClient, connection: Connection) -> None:
        self.name, self.connection = planned.name, connection
        self.socket = f"{planned.server}/s"
        self._planned = planned
        self._step_runner = StepRunner(connection, planned.lease.run_id, planned.privileged)
        self._server: Stream | None = None

    @contextmanager
    def held(self, stopped: Callable[[], bool]) -> Iterator[None]:
        if self._planned.opening is None:
            yield
            return
        with self.steps_applied((self._planned.opening,)), ExitStack() as lease:
            with self._naming_client():
                lease.enter_context(self.connection.holding(self._planned.lease, stopped))
            yield

    @contextmanager
    def steps_applied(self, steps: Sequence[Step]) -> Iterator[None]:
        """Apply steps, and undo them at the end. On a client that is lost, its lease undoes them."""
        undo = ExitStack()
        values: dict[str, str] = {}
        try:
            with self._naming_client():
                for step in steps:
                    self._step_runner.do(step, undo, values)
            yield
        finally:
            with suppress(BoxLost, BoxRestarted):
                undo.close()

    def run(self, argv: tuple[str, ...], timeout_s: float = PATIENCE_S) -> Completed:
        with self._naming_client():
            return self._step_runner.execute(argv, timeout_s)

    def attend(self, argv: tuple[str, ...]) -> Stream:
        """Start a command that lives as long as the connection."""
        with self._naming_client():
            return self.connection.attend(argv, root=self._planned.privileged)

    def kill_all(self) -> None:
        """End all processes of the run on the client. Raises LeftoverError."""
        with self._naming_client():
            kill_run(self.connection, self._planned.lease.run_id)

    # --- fio's server -------------------------------------------------------------------------------------------------

    def serve(self, stop: ExitStack, *, limit_s: float) -> None:
        """Start the server; `stop` ends it."""
        argv = ("env", f"MOUNTLAB_RUN={self._planned.lease.run_id}", *self._script("serve", f"{limit_s:.0f}"))
        stop.callback(self.stop)
        self._server = self.attend((*argv, self._planned.user))

    def wait(self) -> None:
        completed = self.run(self._script("wait"))
        if not completed.ok:
            raise CommandError(
                f"fio's server on client {self.name} did not start",
                where=f"box {self.name}",
                evidence=completed.text + completed.error_text,
            )

    def stop(self) -> Files:
        """End the server and all that it has started, and return the files that it left. A second call returns none."""
        if self._server is None:
            return {}
        server, self._server = self._server, None
        cut_off = server.ended
        try:
            completed = self.run(self._script("stop"))
        finally:
            server.close()
        if not completed.ok:
            raise CommandError(f"fio's server on client {self.name} cannot be ended", evidence=completed.error_text)
        files = unpack(completed.stdout)
        return {**files, "server": b"cut off"} if cut_off else files

    def _script(self, mode: str, *more: str) -> tuple[str, ...]:
        return script_argv("serve.sh", mode, self._planned.server, *more)

    @contextmanager
    def _naming_client(self) -> Iterator[None]:
        """Name the client in the error of a lost connection."""
        try:
            yield
        except BoxLost as error:
            raise _lost(self.name, error) from error


def _lost(name: str, error: BoxLost) -> ClientLost:
    return ClientLost(
        f"client {name} was lost: {error.what}",
        where=error.where,
        got=error.got,
        allowed=error.allowed,
        next_step=error.next_step,
        evidence=error.evidence,
    )
