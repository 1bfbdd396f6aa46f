"""Explain a finished run: diagnostic blocks on the same box, traced and never counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mountlab.core import disk
from mountlab.core.errors import ParameterError, StoreError
from mountlab.results import journal
from mountlab.results.find import run_path
from mountlab.results.info import read_info, read_sweep, with_diagnostic
from mountlab.results.writer import RunWriter, explain_run, held_run
from mountlab.runner.extend import check_finished, check_same_order
from mountlab.runner.workflow import Session, measure, planned_again
from mountlab.sweep.design_entry import diagnostic_blocks
from mountlab.sweep.sweep_file import Resolved

_KEY = "explain"


def explain(
    run: Path | str,
    *,
    blocks: bool | int = True,
    profile: bool = False,
    measured: Callable[[], object] | None = None,
) -> Path:
    """Run each cell of a finished run again while the kernel is traced, and return its directory.

    `blocks`: as `design: {explain: ...}` of a sweep file; True means 5. These trials are kept and marked as
    diagnostic, and change no figure. A run that has some already gets what it lacks: with `blocks=8` three more than
    the first 5. `profile`: record the system calls of each cell instead, once, as `design: {profile: true}`; then
    `blocks` says nothing. `measured`: as for `run`. What is interrupted goes on with `resume`.

    Raises ParameterError for a number that is not allowed, and StoreError for a run that is not complete, was imported
    or made by hand. Raises PlanError for a box that cannot be traced or is another one, and what `run` raises.
    """
    with _planned(run, None if profile else blocks, take=True) as (path, session):
        explain_run(path, session.resolved, session.facts)
        return measure(session, RunWriter(path), measured)


def requested_blocks(overrides: Mapping[str, Any]) -> bool | int:
    """Return how many blocks `-p explain=8` asks for. Raises ParameterError for any other change."""
    others = {key: value for key, value in overrides.items() if key not in (_KEY, f"design.{_KEY}")}
    blocks = next((value for key, value in overrides.items() if key not in others), True)
    if others or not isinstance(blocks, int):
        raise ParameterError(
            "explaining a run changes nothing of what was measured",
            where="-p",
            got=", ".join(f"{key}={value}" for key, value in (others or overrides).items()),
            allowed=f"-p {_KEY}=8: how many diagnostic blocks",
        )
    return blocks


@contextmanager
def explain_plan(run: Path | str, *, blocks: bool | int = True, profile: bool = False) -> Iterator[Session]:
    """Plan what `explain` does, and change nothing. The plan has the diagnostic blocks alone."""
    with _planned(run, None if profile else blocks, take=False) as (_, session):
        groups = tuple(group for group in session.plan.mount_groups if group.diagnostic)
        if profile:
            groups = tuple(group for group in groups if group.trials[0].profiled)
        yield replace(session, plan=replace(session.plan, mount_groups=groups))


@contextmanager
def _planned(run: Path | str, blocks: bool | int | None, *, take: bool) -> Iterator[tuple[Path, Session]]:
    """`blocks`: None for the profile."""
    path = run_path(run)
    where, trials = disk.path_text(path), journal.read_journal(path)
    with held_run(path):
        info, before = read_info(path), read_sweep(path)
        check_finished(
            info, where, "explained", imported="an imported run, whose box is not known", arguments=" -p explain=true"
        )
        if blocks is None:
            resolved = _with_profile(before, where)
        else:
            resolved = _with_blocks(before, diagnostic_blocks(blocks, f"{where}: explain"), where)
        with planned_again(path, info, resolved, take=take) as session:
            check_same_order({trial.trial_id: (trial.block, trial.cell) for trial in trials}, session.plan, where)
            yield path, session


def _with_profile(before: Resolved, where: str) -> Resolved:
    """Return the sweep with a profile of each cell. Raises StoreError if it has one, or searches."""
    _check_no_search(before, where)
    if before.sweep.design.profile:
        raise StoreError(
            "the run has a profile of each cell already", where=where, next_step=f"mountlab report {where}"
        )
    return with_diagnostic(before, before.sweep.design.explain, profile=True)


def _check_no_search(before: Resolved, where: str) -> None:
    if before.sweep.searches:
        raise StoreError(
            "the trials of a search differ in their rate, so there is no cell to trace",
            where=where,
            got="capacity",
            next_step="explain a sweep with the same workload at a rate of its own: rate_iops",
        )


def _with_blocks(before: Resolved, blocks: int, where: str) -> Resolved:
    """Return the sweep with this number of diagnostic blocks. Raises StoreError if it has as many, or searches."""
    _check_no_search(before, where)
    present = before.sweep.design.explain
    if blocks <= present:
        raise StoreError(
            "the run has these diagnostic blocks already" if blocks else "no diagnostic block is asked for",
            where=where,
            got=f"explain={blocks}, and the run has {present}",
            allowed=f"more than {present}",
            next_step=f"mountlab report {where}",
        )
    if present and len(before.sweep.stages) > 1 and any(stage.added_cells for stage in before.sweep.stages[1:]):
        raise StoreError(
            "a run to which cells were added gets its diagnostic blocks at once",
            where=where,
            got=f"explain={blocks}, and the run has {present}",
            next_step="begin a new run: mountlab run",
        )
    return with_diagnostic(before, blocks)
