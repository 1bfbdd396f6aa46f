"""A connection to a box that outlives its own loss: every command of a run is run exactly once.

Before a run has made anything on the box, commands only look, or can be done twice: after a loss they are repeated.
While it holds something (`holding`), each command is a *job* of the box, asked of a shell that stays there (resident,
job.sh): detached, with its output in files of the run. After a loss the same job is asked for again, of a new shell,
and is found running, done, or never begun. Meanwhile the box keeps a *lease* (lease.sh): when it hears nothing of us
for its `grace`, it ends what runs, unmounts and cleans up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mountlab.box.connection import BoxConnection, Completed, Stream, command_text, timeout_error
from mountlab.box.lease import Heartbeat, beat_s, lease_argv
from mountlab.box.resident import JobRequest, ResidentShell, Speaks
from mountlab.core.errors import BoxError, BoxLost, BoxRestarted, CommandError, HostKeyError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights
from mountlab.core.text import visible
from mountlab.core.units import whole_seconds

T = TypeVar("T")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Pause between two attempts to reach the box: doubled each time."""
MARGIN_S = 30.0
"""An answer may take longer than its job by this much."""
AT_ONCE_S, MOST_AT_ONCE = 1.0, 10
"""A connection that is lost this many times in a row, each time this soon, is given up."""
KILLED = 137
HEADER = b"mountlab-job "
WORDS = ("done", "restarted", "gone", "died", "unable")
"""Answers of job.sh to a command that it was just sent; to a late one it answers otherwise."""


class Line(BoxConnection, Speaks, Protocol):
    """A connection that can be reopened (ssh.SshBox)."""

    @property
    def ssh(self) -> tuple[str, ...]: ...
    def reopen(self) -> None: ...
    def attend(self, argv: Sequence[str], *, root: bool = False) -> Stream: ...


@dataclass(frozen=True)
class JobAnswer:
    """The first line that job.sh prints."""

    word: str
    numbers: tuple[int, ...]
    boot: str

    @classmethod
    def of(cls, printed: bytes) -> tuple[JobAnswer, bytes] | None:
        """Return the answer and the command's output behind it; None where the first line is no answer."""
        line, newline, output = printed.partition(b"\n")
        words = line.removeprefix(HEADER).decode("ascii", "replace").split()
        if not newline or not line.startswith(HEADER) or len(words) < 2:
            return None
        return cls(words[0], tuple(int(word) for word in words[1:-1]), words[-1]), output


def on_standard_error(text: str) -> None:
    """Report a lost connection on standard error, where no other listener is set."""
    sys.stderr.write(f"{visible(text)}\n")


class SteadyBox:
    """A box whose connection may be lost for up to its grace time (BoxConnection)."""

    def __init__(
        self, line: Line, *, sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say: Callable[[str], None] = on_standard_error
        self._line = line
        self._sleep, self._clock = sleep, clock
        self._is_stopped: Callable[[], bool] = lambda: False
        self._lease: Lease | None = None
        self._heart: Heartbeat | None = None
        self._shells: dict[bool, ResidentShell] = {}
        """Resident shells, by whether they run as root."""
        self._lost: BoxLost | None = None
        self._number = 0
        self._boot = ""

    @property
    def box(self) -> Box:
        return self._line.box

    @property
    def rights(self) -> Rights:
        return self._line.rights

    def close(self) -> None:
        self._line.close()

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        """Run a command exactly once (BoxConnection.run). Raises BoxRestarted if what the run made there is gone."""
        if self._lease is None:
            return self._retry_lost(lambda: self._line.run(argv, timeout_s=timeout_s, root=root))
        self._number += 1
        request = JobRequest(self._number, str(whole_seconds(timeout_s)), self._boot, tuple(argv))
        start_s = self._clock()
        stdout, stderr = self._retry_lost(lambda: self._ask_shell(request, timeout_s, root))
        completed = self._read_answer(request.argv, stdout, stderr, timeout_s, self._clock() - start_s)
        return completed or self._run_without_job(argv, timeout_s, root=root)

    def _ask_shell(self, request: JobRequest, timeout_s: float, root: bool) -> tuple[bytes, bytes]:
        """Return stdout and stderr of a resident shell's answer. A shell that is interrupted meanwhile is closed."""
        if root not in self._shells:
            self._shells[root] = ResidentShell(self._line, self._where(), root=root)
        try:
            return self._shells[root].ask(request, timeout_s=timeout_s + MARGIN_S)
        except BaseException:
            self._shells.pop(root).close()
            raise

    def attend(self, argv: Sequence[str], *, root: bool = False) -> Stream:
        """Start a command that lives as long as the connection does, this time. Raises BoxLost when it stays lost."""
        return self._retry_lost(lambda: self._line.attend(argv, root=root))

    @property
    def ssh(self) -> tuple[str, ...]:
        """Arguments by which OpenSSH's client reaches the same box (ssh.SshBox.ssh)."""
        return self._line.ssh

    def _run_without_job(self, argv: Sequence[str], timeout_s: float, *, root: bool) -> Completed:
        """Run a command without keeping its output, for a box without room for that: its effects must be undone."""
        try:
            return self._line.run(argv, timeout_s=timeout_s, root=root)
        except BoxLost as error:
            self._regain(error)
            raise CommandError(
                "the connection was lost in a command whose output the box has no room to keep: it is unknown whether "
                "the command was run",
                where=f"box {self.box.name}: {self._where()}",
                got=command_text(argv),
                next_step=f"see what fills it (df); then mountlab box clean {self.box.name}",
            ) from error

    @contextmanager
    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> Iterator[None]:
        """Run each command as a job. The box undoes everything when it hears nothing from this process (lease.sh)."""
        self._is_stopped, self._boot = stopped, ""
        uid = self.run(("id", "-u")).text.strip()
        self._lease, watch = lease, lease_argv(lease, self.box.grace_s, uid)
        as_root = self.rights != "none"
        heart = Heartbeat(lambda: self._line.attend(watch, root=as_root), beat_s(self.box))
        try:
            self._retry_lost(heart.begin)
            self._heart = heart
            yield
        finally:
            self._lease = self._heart = None
            self._close_shells()
            heart.stop()

    def _close_shells(self) -> None:
        while self._shells:
            self._shells.popitem()[1].close()

    # --- a job's answer -----------------------------------------------------------------------------------------------

    def _read_answer(
        self, argv: tuple[str, ...], stdout: bytes, stderr: bytes, timeout_s: float, elapsed_s: float
    ) -> Completed | None:
        """Return the completed command; None if it was not run, since the box had no room to run it as a job."""
        answer = JobAnswer.of(stdout)
        where = f"box {self.box.name}"
        if answer is None or answer[0].word not in WORDS:
            raise CommandError(
                "what runs a command on the box did not answer as it should",
                where=where,
                got=f"{stdout[:80]!r} for: {command_text(argv)}",
                evidence=stderr.decode("utf-8", "replace"),
            )
        head, output = answer
        if head.word in ("restarted", "gone"):
            raise _restart_error(head.word, where, self.box.grace_s)
        self._boot = head.boot
        if head.word == "died":
            return Completed(argv, KILLED, b"", b"killed from outside, with the shell that kept its output", elapsed_s)
        if head.word == "unable":
            return None
        status, centiseconds = head.numbers
        if status in (124, 137) and centiseconds >= 100 * timeout_s:
            raise timeout_error(argv, timeout_s, where, stderr)
        return Completed(argv, status, output, stderr, elapsed_s)

    def _where(self) -> str:
        return self._lease.output_dir if self._lease else ""

    # --- a connection that is lost ------------------------------------------------------------------------------------

    def _retry_lost(self, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt`, repeated after each loss of the connection. Raises BoxLost when it stays
        lost."""
        at_once = 0
        while True:
            if self._lost is not None:  # what is undone at the end does not wait once more each
                raise self._lost
            start_s = self._clock()
            try:
                return attempt()
            except BoxLost as error:
                at_once = at_once + 1 if self._clock() - start_s < AT_ONCE_S else 0
                if at_once >= MOST_AT_ONCE:
                    self._lost = _lost_again_error(error, self.box)
                    raise self._lost from error
                self._regain(error)

    def _regain(self, loss: BoxLost) -> None:
        start_s, wait_s = self._clock(), FIRST_WAIT_S
        self._close_shells()
        self.say(f"the connection to box {self.box.name} was lost; trying again for {self.box.grace_s:g} s")
        while True:
            try:
                self._line.reopen()
            except HostKeyError:
                raise
            except BoxError as error:
                too_late = self._clock() - start_s + wait_s > self.box.grace_s
                if not isinstance(error, BoxLost) or too_late or self._is_stopped():
                    self._lost = _never_back_error(error, loss, self.box)
                    raise self._lost from error
            else:
                break
            self._sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        self.say(f"the connection to box {self.box.name} is back after {self._clock() - start_s:.0f} s")
        if self._heart is not None:
            self._heart.beat_now()


def _restart_error(word: str, where: str, grace_s: float) -> BoxRestarted:
    if word == "restarted":
        return BoxRestarted(
            "the box was started again meanwhile",
            where=where,
            got="another boot id than before",
            next_step="see why (`last -x reboot`, the console, the kernel's log of the boot before)",
        )
    return BoxRestarted(
        "what the run had made on the box is gone",
        where=where,
        got="its directory for output is not there any more, or was closed",
        allowed=f"signs of life at least every {grace_s:g} s (`grace` of the box file): after that the box ends what "
        "runs, unmounts and cleans up by itself",
        next_step="check whether `mountlab box clean` was run there, and whether the connection was cut for so long",
    )


def _lost_again_error(error: BoxLost, box: Box) -> BoxLost:
    return BoxLost(
        f"the box can be reached, and was lost again at once, {MOST_AT_ONCE} times in a row",
        where=error.where,
        got=error.got,
        evidence=error.evidence,
        next_step=f"see whether a shell of the login there runs `setsid sh -s`, and what ends it; then "
        f"mountlab box check {box.name}",
    )


def _never_back_error(error: BoxError, loss: BoxLost, box: Box) -> BoxLost:
    return BoxLost(
        f"the box was lost, and did not come back: {error.what}",
        where=error.where,
        got=error.got,
        allowed=f"back within {box.grace_s:g} s (`grace` of the box file); after that the box ends what runs, unmounts "
        "and cleans up by itself",
        next_step=error.next_step,
        evidence=error.evidence or loss.got,
    )
