"""Runs whose sweeps name the same options in another order: `rw, bs` and `bs, rw` make the same cells.

A cell is known by its file system, its workload and the levels of its factors; its id writes these in the order of the
sweep. Here a run gets the ids of another, so that both are found under one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import pandas as pd

from mountlab.analysis.run_view import Measured
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Sweep, Workload
from mountlab.core.names import cell_id
from mountlab.core.run_info import RunInfo
from mountlab.core.shown import Several

R = TypeVar("R", bound=Measured)
Same = tuple[str, frozenset[tuple[str, str]]]
"""The name of a workload and the levels of its factors, in no order."""


def same_workload(name: str, factors: Mapping[str, str]) -> Same:
    """Return what is equal for workloads that differ in the order of their factors at most."""
    return name, frozenset(factors.items())


def same_cell(cell: Cell) -> tuple[str, Same]:
    """Return what is equal for a cell of two runs, whatever the order of its factors."""
    return cell.filesystem.name, same_workload(cell.workload.name, cell.workload.factors)


def aligned(runs: Sequence[R]) -> list[R]:
    """Return the runs with the cells of each named as in the first run that has them."""
    first = _first_of_each(workload for run in runs for workload in run.sweep.workloads)
    return [_renamed(run, first) for run in runs]


def aligned_to(sweep: Sweep, run: R) -> R:
    """Return a run with its cells named as in a sweep that has them."""
    return _renamed(run, _first_of_each((*sweep.workloads, *run.sweep.workloads)))


def _first_of_each(workloads: Iterable[Workload]) -> dict[Same, Workload]:
    """Return the first of all workloads that are the same."""
    groups = by_key((same_workload(workload.name, workload.factors), workload) for workload in workloads)
    return {same: group[0] for same, group in groups.items()}


def _renamed(run: R, first: Mapping[Same, Workload]) -> R:
    """Return a run with the order of factors that the `first` workload of each has."""
    targets = {
        workload.label: first[same_workload(workload.name, workload.factors)] for workload in run.sweep.workloads
    }
    labels = {label: target.label for label, target in targets.items() if target.label != label}
    if not labels:
        return run
    filesystems = [fs.name for fs in run.sweep.filesystems]
    cells = {cell_id(name, old): cell_id(name, new) for name in filesystems for old, new in labels.items()}
    orders = {same_workload(target.name, target.factors): tuple(target.factors) for target in targets.values()}
    return _Renaming(labels, cells, orders).rename(run)


@dataclass(frozen=True)
class _Renaming:
    """Other names for the cells of a run, and the orders of factors that these have."""

    labels: Mapping[str, str]
    cells: Mapping[str, str]
    orders: Mapping[Same, Sequence[str]]

    def rename(self, run: R) -> R:
        """Return a run with every part under these names."""
        whole: Any = run  # a dataclass: store.Run, which has all of these parts
        answers = getattr(run, "answer_metrics", {})
        parts = {
            **{name: self._frame(getattr(run, name)) for name in _FRAMES if hasattr(run, name)},
            **{name: Several(self._item(item, name) for item in getattr(run, name, ())) for name in _LISTS},
            "sweep": self._sweep(run.sweep),
            "info": self._info(run.info),
            "censored": {self.cells.get(cell, cell): blocks for cell, blocks in run.censored.items()},
            "answer_metrics": {self.labels.get(label, label): metrics for label, metrics in answers.items()},
        }
        attributes = {field.name for field in fields(whole)}
        renamed: R = replace(whole, **{name: part for name, part in parts.items() if name in attributes})
        return renamed

    def _info(self, info: RunInfo) -> RunInfo:
        """Return what imported logs state, too, under the labels that the workloads have now."""
        stated = info.facts.surveyed.stated or {}
        by_label = {self.labels.get(label, label): options for label, options in stated.items()}
        surveyed = info.facts.surveyed.model_copy(update={"stated": by_label})
        return replace(info, facts=replace(info.facts, surveyed=surveyed)) if stated else info

    def _sweep(self, sweep: Sweep) -> Sweep:
        before = sweep.extended
        return replace(
            sweep,
            workloads=tuple(map(self._workload, sweep.workloads)),
            excluded=tuple(self.cells.get(cell, cell) for cell in sweep.excluded),
            extended=replace(before, before=self._sweep(before.before)) if before else None,
        )

    def _workload(self, workload: Workload) -> Workload:
        return replace(workload, factors=self._factors(workload.name, workload.factors))

    def _factors(self, workload: str, factors: Mapping[str, str]) -> dict[str, str]:
        order = self.orders.get(same_workload(workload, factors), tuple(factors))
        return {key: factors[key] for key in order}

    def _frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(cell=frame["cell"].map(lambda cell: self.cells.get(cell, cell)))

    def _item(self, item: Any, name: str) -> Any:
        if name == "caveats":
            return replace(item, subject=self.cells.get(item.subject, item.subject))
        if name == "comparisons":
            return replace(item, factors=self._factors(item.workload, item.factors))
        if name == "stops":
            return replace(item, cell=self.cells.get(item.cell, item.cell))
        return replace(item, cell=replace(item.cell, workload=self._workload(item.cell.workload)))


_FRAMES = ("measurements", "trials", "estimates")
_LISTS = ("comparisons", "caveats", "stops", "moved")
