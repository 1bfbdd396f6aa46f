"""Go on with a finished run: more blocks, more file systems, more workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mountlab.core import disk
from mountlab.core.errors import StoreError
from mountlab.core.run_info import RunInfo
from mountlab.core.safe_yaml import check_texts
from mountlab.results import journal, paths
from mountlab.results.find import run_path
from mountlab.results.info import read_info, read_sweep
from mountlab.results.writer import RunWriter, extend_run, held_run
from mountlab.runner.workflow import Session, measure, planned_again
from mountlab.sweep.extension import extended
from mountlab.sweep.plan import Plan
from mountlab.sweep.sweep_file import Resolved, on_box, resolve


def extend(
    run: Path | str,
    sweep: Path | str | None = None,
    *,
    only_new: bool = False,
    measured: Callable[[], object] | None = None,
    **overrides: Any,
) -> Path:
    """Measure further blocks of a finished run, and return its directory.

    `sweep` names a sweep file with everything that the run has, and more; without it the run's own sweep is taken.
    Overrides are changes to it: repeats=20, **{"filesystems.small": {"type": "tmpfs", "size": "1GiB"}}. Only blocks,
    file systems and workloads can be added. New cells without more `repeats` get as many blocks as the run was
    begun with. Added blocks hold all cells, so that new ones are compared with old ones; with `only_new` they hold the
    new cells alone. Intervals and verdicts are corrected for the look at the results so far (stats.extended).

    An extension that is interrupted goes on with `resume`. Raises ParameterError for a change of what was measured,
    StoreError for a run that is not complete, and what `run` raises.
    """
    with _planned(run, sweep, only_new=only_new, overrides=overrides, take=True) as (path, session):
        extend_run(path, session.resolved, session.facts)
        return measure(session, RunWriter(path), measured)


@contextmanager
def extension_plan(
    run: Path | str, sweep: Path | str | None = None, *, only_new: bool = False, overrides: Mapping[str, Any]
) -> Iterator[Session]:
    """Plan an extension, as `extend` does, and change nothing. The plan has the added blocks alone."""
    with _planned(run, sweep, only_new=only_new, overrides=overrides, take=False) as (_, session):
        yield replace(session, plan=_added_part(session.plan))


@contextmanager
def _planned(
    run: Path | str, sweep: Path | str | None, *, only_new: bool, overrides: Mapping[str, Any], take: bool
) -> Iterator[tuple[Path, Session]]:
    path = run_path(run)
    where, trials = disk.path_text(path), journal.read_journal(path)
    with held_run(path):
        info, before = read_info(path), read_sweep(path)
        check_finished(info, where, "extended")
        requested = _requested_sweep(path, before, info.box_name, sweep, overrides)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        resolved = extended(before, requested, at=now, only_new=only_new, where=where)
        with planned_again(path, info, resolved, take=take) as session:
            check_same_order({trial.trial_id: (trial.block, trial.cell) for trial in trials}, session.plan, where)
            yield path, session


def _requested_sweep(
    path: Path, before: Resolved, box: str, sweep: Path | str | None, overrides: Mapping[str, Any]
) -> Resolved:
    """Return the sweep that the run is extended to: a file's, or its own with overrides."""
    check_texts(overrides, "override")
    if sweep is None:
        where, read = disk.path_text(path), paths.reader_in(Path.cwd())
        return resolve(before.parameters, where=where, overrides=overrides, read=read, kept=True)
    requested = paths.load_sweep(sweep, overrides)
    return on_box(requested, box) if requested.sweep.boxes else requested


def check_finished(
    info: RunInfo, where: str, action: str, *, imported: str = "an imported run", arguments: str = ""
) -> None:
    """Raise StoreError for a run that cannot be `action` ("extended"): it was imported, made by hand, or is not
    complete. `imported`: the error's words for an imported run; `arguments`: added to the command in the advice."""
    if info.imported is not None:
        raise StoreError(f"logs from elsewhere cannot be {action}", where=where, got=imported)
    if info.by_hand is not None:
        raise StoreError(
            f"a run by hand cannot be {action}",
            where=where,
            got="trials that were asked for one by one, without a plan",
            next_step=f"run its sweep: mountlab run {where}/sweep.yml{arguments}",
        )
    if info.status != "complete":
        raise StoreError(
            f"a run is {action} when it is complete",
            where=where,
            got=f"it is {info.status}",
            next_step=f"mountlab resume {where}",
        )


def check_same_order(recorded: Mapping[str, tuple[int, str]], plan: Plan, where: str) -> None:
    """Raise StoreError unless this version plans the trials of the journal with the same ids. `recorded`: id of a trial
    to its block and the id of its cell."""
    planned = {trial.trial_id: (trial.block, trial.cell.id) for trial in plan.trials}
    changed = next((name for name, place in recorded.items() if planned.get(name) != place), None)
    if changed:
        block, cell = recorded[changed]
        raise StoreError(
            "the trials of the run were drawn in another order, by another version of Mountlab",
            where=f"{where}/trials.jsonl: {changed}",
            got=f"{cell} in block {block}",
            allowed="{1} in block {0}".format(*planned[changed]) if changed in planned else "no such trial",
            next_step="begin a new run: mountlab run",
        )


def _added_part(plan: Plan) -> Plan:
    """Return the part of a plan that an extension adds."""
    last = plan.sweep.stages[-1]
    blocks = {*last.warmup, *last.counted}
    new = frozenset(last.added_cells)
    groups = tuple(
        group
        for group in plan.mount_groups
        if (group.trials[0].cell.id in new if group.diagnostic else group.block in blocks)
    )
    mounts = {trial.mount for group in groups for trial in group.trials}
    lasting = tuple(mount for mount in plan.lasting if mount.id in mounts)
    return replace(plan, mount_groups=groups, lasting=lasting)
