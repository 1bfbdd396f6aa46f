"""The main path: a sweep file in, a run directory with its report out. Start reading here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mountlab.analysis.watched import is_watched
from mountlab.box import leftovers, lock, roots
from mountlab.box.embedded import open_box
from mountlab.box.facts import gather
from mountlab.box.scratch_links import check_links
from mountlab.box.steady import Line, SteadyBox
from mountlab.box.survey import peers, survey
from mountlab.core import disk
from mountlab.core.box_facts import BoxFacts, Surveyed
from mountlab.core.errors import BoxLost, Interrupted, LeftoverError, PlanError, StoreError
from mountlab.core.model import Box
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.guard import bound_to
from mountlab.results import journal, paths
from mountlab.results.find import run_path
from mountlab.results.info import read_info, read_sweep, say_plugins
from mountlab.results.run_file import read_record
from mountlab.results.writer import RunWriter, held_run, keep_sweep, new_run_id
from mountlab.runner.clients import Clients
from mountlab.runner.finish import finishing
from mountlab.runner.live import progress_display
from mountlab.runner.live_view import report_line, resume_line
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.feasible import all_programs, check_feasible
from mountlab.sweep.limits import check_limits
from mountlab.sweep.plan import Plan
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, on_box


@dataclass(frozen=True)
class Session:
    """A sweep, planned for a box that is connected."""

    plan: Plan
    resolved: Resolved
    connection: SteadyBox
    facts: BoxFacts
    connections: Mapping[str, SteadyBox]
    """Name of the box and of every client to its connection."""


def run(
    resolved: Resolved,
    *,
    box: str | None = None,
    results: Path = paths.RESULTS,
    measured: Callable[[], object] | None = None,
) -> Path:
    """Measure a sweep on its box, or on the one named here, and return the new run directory. `measured` is called when
    the last trial has ended, before figures are derived: what is wanted next can be started then without disturbing.

    Raises MountlabError, or Interrupted (a KeyboardInterrupt) when interrupted; what was measured until then is in the
    directory. Stopped by the button of the live view, it returns the directory as it is, so that a notebook can go on.
    """
    with planned(resolved, box=box, results=results, take=True) as session:
        writer = RunWriter.create(session.plan, session.resolved, session.facts, results=results)
        with held_run(writer.path):
            return measure(session, writer, measured)


def resume(path: Path | str, *, measured: Callable[[], object] | None = None) -> Path:
    """Go on with a run that was stopped: same order, same seed, only the trials that are not in its journal.

    `path` is a path or a name, as for `load_run`. `measured`: as for `run`.
    """
    path = run_path(path)
    where, info, resolved = disk.path_text(path), read_info(path), read_sweep(path)
    journal.read_journal(path)  # one that was altered is refused before the box is touched
    if resolved.sweep.by_hand:
        problem, command = "a run by hand has nothing that waits to be run", f"mountlab run {where}/sweep.yml"
        raise StoreError(problem, where=where, next_step=f"open the box again, or: {command}")
    if info.status == "complete":
        raise StoreError("the run is complete", where=where, next_step=f"mountlab report {where}")
    with held_run(path), planned_again(path, info, resolved, take=True) as session:
        keep_sweep(path, resolved)
        return measure(session, RunWriter(path), measured)


@contextmanager
def planned(
    resolved: Resolved,
    *,
    box: str | None = None,
    run_id: str | None = None,
    seed: int | None = None,
    results: Path = paths.RESULTS,
    take: bool = False,
) -> Iterator[Session]:
    """Connect to the box and plan the sweep for it. Changes nothing on the box, but with `take` removes what a crash
    has left there: a scratch device that a dead run keeps mounted could not be looked at."""
    if resolved.sweep.boxes:
        resolved = _on_named_box(resolved, box)
    sweep = resolved.sweep
    the_box = paths.load_box(box or sweep.box)
    if is_watched(sweep):
        the_box = replace(the_box, become="login")
    paths.load_published(sweep.published)  # a name that is wrong is said before anything is measured
    machines = [the_box, *(paths.load_box(name) for name in sweep.clients if name != the_box.name)]
    with ExitStack() as stack:
        lines = {box.name: stack.enter_context(open_box(box, forwards=bool(sweep.clients))) for box in machines}
        yield planned_on(lines, resolved, the_box, run_id=run_id, seed=seed, results=results, take=take)


@contextmanager
def planned_again(path: Path, info: RunInfo, resolved: Resolved, *, take: bool) -> Iterator[Session]:
    """Plan more trials of a run, on its box. Raises PlanError where the box or a plug-in is not as it was."""
    with planned(resolved, box=info.box_name, run_id=info.run_id, seed=info.seed, take=take) as session:
        check_same_box(info.facts, session.facts, disk.path_text(path))
        check_same_plugins(path, info)
        yield session


def planned_on(
    lines: Mapping[str, Line],
    resolved: Resolved,
    the_box: Box,
    *,
    run_id: str | None = None,
    seed: int | None = None,
    results: Path = paths.RESULTS,
    take: bool = False,
) -> Session:
    """Plan a sweep on open connections. `lines`: name of the box, and of each client, to its connection."""
    sweep = resolved.sweep
    connections = {name: SteadyBox(line) for name, line in lines.items()}
    connection = connections[the_box.name]
    gathered = {name: gather(connected, all_programs(sweep)) for name, connected in connections.items()}
    facts = gathered[the_box.name]
    if sweep.clients:
        clients = {name: connections[name] for name in sweep.clients}
        facts = replace(facts, clients={name: gathered[name] for name in clients})
        facts = facts.with_survey(Surveyed(peers=peers(sweep, clients)))
    check_feasible(sweep, the_box, facts)
    for name, connected in connections.items():
        if take:
            take_over(connected, gathered[name])
        else:
            roots.check(connected, *gathered[name].storage.roots)
    check_links(sweep, connection, facts)
    surveyed = survey(sweep, connection, facts)
    check_limits(sweep, connection, surveyed)
    name = run_id or new_run_id(sweep, the_box, results)
    plan = make_plan(
        sweep,
        the_box,
        surveyed,
        run_id=name,
        owner=str(lock.this_process(name)),
        seed=next(chosen for chosen in (seed, sweep.design.seed, secrets.randbelow(2**31)) if chosen is not None),
    )
    return Session(plan, resolved, connection, surveyed, connections)


def _on_named_box(resolved: Resolved, box: str | None) -> Resolved:
    """Return a sweep of several boxes as one of the box that is named. Raises PlanError without a name."""
    if box is None:
        raise PlanError(
            "one run is made on one box, and the sweep names several",
            where=f"sweep {resolved.sweep.name}: boxes",
            got=", ".join(resolved.sweep.boxes),
            allowed="one of them as `box`",
            next_step="mountlab.run(sweep), or mountlab run, makes a run on each",
        )
    return on_box(resolved, box)


def check_same_box(before: BoxFacts, now: BoxFacts, run: str) -> None:
    """Raise PlanError where the machine, kernel, tools or scratch devices have changed: blocks of one run are compared
    with each other."""
    for name, facts in before.clients.items():
        check_same_box(facts, now.clients[name], f"{run}, client {name}")
    pairs = {key: (before.value(key), now.value(key)) for key in ("hostname", "kernel", "machine", "rights")}
    programs = before.programs.installed
    pairs |= {name: (program.version, now.programs.version(name)) for name, program in programs.items()}
    pairs |= _changed_devices(before.surveyed.device_ids, now.surveyed.device_ids)
    changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    if changed:
        raise PlanError(
            "the box is not as it was when the run began",
            where=f"{run}/run.json: facts",
            got="; ".join(f"{key}: {value}" for key, (_, value) in changed.items()),
            allowed="; ".join(f"{key}: {value}" for key, (value, _) in changed.items()),
            next_step="begin a new run: trials of two boxes, kernels or tools are not one sample",
        )


def check_same_plugins(path: Path, info: RunInfo) -> None:
    """Raise PlanError where another version of a plug-in would measure further blocks; warn of other differences."""
    say_plugins(path)
    for plugin in info.plugins:
        if plugin.difference and {"tools", "filesystems"} & plugin.parts.keys():
            raise PlanError(
                "a plug-in is not as it was when the run began",
                where=f"{disk.path_text(path)}/run.json: plugins",
                got=f"{plugin.distribution} {plugin.installed}",
                allowed=f"{plugin.distribution} {plugin.version}",
                next_step="install that version, or begin a new run: trials of two versions are not one sample",
            )


def _changed_devices(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Map each scratch device that is another one now to its identities, before and now."""
    pairs = {name: (identity, now[name]) for name, identity in before.items() if name in now}
    names = {name: {bound_to(identity) for identity in pair} for name, pair in pairs.items()}
    return {f"device {name}": pairs[name] for name, pair in names.items() if len(pair) > 1 and "" not in pair}


def take_over(connection: SteadyBox, facts: BoxFacts) -> None:
    """Remove what a crash left on the box. Raise BoxInUse where another run is on it, UnsafeError where its directories
    hold what Mountlab did not make: then nothing is touched."""
    lock.check_free(connection, *facts.storage.roots)
    roots.check(connection, *facts.storage.roots)
    stuck = [leftover for leftover in leftovers.remove_leftovers(connection) if not leftover.removed]
    if stuck:
        raise LeftoverError(
            "what an earlier run left on the box cannot be removed",
            where=f"box {connection.box.name}",
            got="; ".join(f"{leftover.kind} {leftover.name} {leftover.note}".strip() for leftover in stuck),
            next_step="see what holds it (fuser, lsof); then run again",
        )


def measure(session: Session, writer: RunWriter, measured: Callable[[], object] | None = None) -> Path:
    """Measure the trials of a planned run that are not in its journal, and finish it. Raises as `run` does."""
    try:
        return _measure_and_finish(session, writer, measured)
    except Interrupted:
        raise
    except KeyboardInterrupt:  # while it ended: its figures are not derived, or its status is not written
        run = disk.path_text(writer.path)
        if read_record(writer.path)["status"] == "complete":
            raise Interrupted(f"write its report with: mountlab report {run}", in_python=report_line(run)) from None
        raise Interrupted(f"go on with: mountlab resume {run}", in_python=resume_line(run)) from None


def _measure_and_finish(session: Session, writer: RunWriter, measured: Callable[[], object] | None) -> Path:
    recorded_ids = {trial.trial_id for trial in session.plan.trials if writer.has(trial.trial_id)}
    progress = progress_display(session.plan, writer, recorded_ids)
    with finishing(writer, session.plan.sweep) as final:
        try:
            with progress:
                for connection in session.connections.values():
                    connection.say = progress.notice
                clients = Clients(session.plan, session.connection, session.connections)
                run_sweep(session.plan, session.connection, writer, progress, clients)
            final.status = "complete"
            if measured:
                measured()
        except KeyboardInterrupt:
            if not progress.stopped:
                run = disk.path_text(writer.path)
                raise Interrupted(f"go on with: mountlab resume {run}", in_python=resume_line(run)) from None
        except BoxLost as error:
            error.next_step = f"when the box is back: mountlab resume {disk.path_text(writer.path)}"
            raise
    return writer.path
