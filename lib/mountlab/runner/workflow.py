"""The main path: a sweep file in, a run directory with its report out. Start reading here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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
from mountlab.runner.live import watched
from mountlab.runner.live_view import report_line, resume_line
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.feasible import all_programs, check_feasible
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
    """Of the box and of every client, by name."""


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
    info, resolved = read_info(path), read_sweep(path)
    journal.read_journal(path)  # one that was altered is refused before the box is touched
    if resolved.sweep.by_hand:
        said, again = "a run by hand has nothing that waits to be run", f"mountlab run {disk.path_text(path)}/sweep.yml"
        raise StoreError(said, where=disk.path_text(path), next_step=f"open the box again, or: {again}")
    if info.status == "complete":
        raise StoreError(
            "the run is complete", where=disk.path_text(path), next_step=f"make report RUN={disk.path_text(path)}"
        )
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
        resolved = _on_one(resolved, box)
    sweep = resolved.sweep
    the_box = paths.load_box(box or sweep.box)
    paths.load_published(sweep.published)  # a name that is wrong is said before anything is measured
    others = [paths.load_box(name) for name in sweep.clients if name != the_box.name]
    with ExitStack() as opened:
        lines = {
            each.name: opened.enter_context(open_box(each, forwards=bool(sweep.clients))) for each in (the_box, *others)
        }
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
    """Plan a sweep on open connections: of the box that is measured on and of its clients, by name."""
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


def _on_one(resolved: Resolved, box: str | None) -> Resolved:
    """Return a sweep of several boxes on the one that is named. Raises PlanError where none is."""
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
    pairs |= {name: (was.version, now.programs.version(name)) for name, was in before.programs.installed.items()}
    pairs |= _devices(before.surveyed.device_ids, now.surveyed.device_ids)
    changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    if changed:
        raise PlanError(
            "the box is not as it was when the run began",
            where=f"{run}/run.json: facts",
            got="; ".join(f"{key}: {is_now}" for key, (_, is_now) in changed.items()),
            allowed="; ".join(f"{key}: {was}" for key, (was, _) in changed.items()),
            next_step="begin a new run: trials of two boxes, kernels or tools are not one sample",
        )


def check_same_plugins(path: Path, info: RunInfo) -> None:
    """Blocks of one run are measured by one version of each tool and file system; say what else differs."""
    say_plugins(path)
    for used in info.plugins:
        if used.difference and {"tools", "filesystems"} & used.parts.keys():
            raise PlanError(
                "a plug-in is not as it was when the run began",
                where=f"{disk.path_text(path)}/run.json: plugins",
                got=f"{used.distribution} {used.installed}",
                allowed=f"{used.distribution} {used.version}",
                next_step="install that version, or begin a new run: trials of two versions are not one sample",
            )


def _devices(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Each scratch device that both know to its identities, where it is another device."""
    known = {name: (was, now[name]) for name, was in before.items() if name in now}
    bound = {name: [bound_to(each) for each in pair] for name, pair in known.items()}
    return {f"device {name}": known[name] for name, (was, is_now) in bound.items() if was and is_now and was != is_now}


def take_over(connection: SteadyBox, facts: BoxFacts) -> None:
    """Remove what a crash left on the box. Raise BoxInUse where another run is on it, UnsafeError where its directories
    hold what Mountlab did not make: then nothing is touched."""
    lock.check_free(connection, *facts.storage.roots)
    roots.check(connection, *facts.storage.roots)
    stuck = [each for each in leftovers.remove_leftovers(connection) if not each.removed]
    if stuck:
        raise LeftoverError(
            "what an earlier run left on the box cannot be removed",
            where=f"box {connection.box.name}",
            got="; ".join(f"{each.kind} {each.name} {each.note}".strip() for each in stuck),
            next_step="see what holds it (fuser, lsof); then run again",
        )


def measure(session: Session, writer: RunWriter, measured: Callable[[], object] | None = None) -> Path:
    """Measure what is still wanted of a planned run. Raises as `run` does."""
    try:
        return _measured(session, writer, measured)
    except Interrupted:
        raise
    except KeyboardInterrupt:  # while it ended: its figures are not derived, or its status is not written
        run = disk.path_text(writer.path)
        if read_record(writer.path)["status"] == "complete":
            raise Interrupted(f"write its report with: make report RUN={run}", in_python=report_line(run)) from None
        raise Interrupted(f"go on with: make resume RUN={run}", in_python=resume_line(run)) from None


def _measured(session: Session, writer: RunWriter, measured: Callable[[], object] | None) -> Path:
    recorded_ids = {trial.trial_id for trial in session.plan.trials if writer.has(trial.trial_id)}
    progress = watched(session.plan, writer, recorded_ids)
    with finishing(writer, session.plan.sweep) as final:
        try:
            with progress:
                for each in session.connections.values():
                    each.say = progress.notice
                clients = Clients(session.plan, session.connection, session.connections)
                run_sweep(session.plan, session.connection, writer, progress, clients)
            final.status = "complete"
            if measured:
                measured()
        except KeyboardInterrupt:
            if not progress.stopped:
                run = disk.path_text(writer.path)
                raise Interrupted(f"go on with: make resume RUN={run}", in_python=resume_line(run)) from None
        except BoxLost as error:
            error.next_step = f"when the box is back: make resume RUN={disk.path_text(writer.path)}"
            raise
    return writer.path
