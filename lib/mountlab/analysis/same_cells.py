"""Runs whose sweeps name the same options in another order: `rw, bs` and `bs, rw` make the same cells.

A cell is known by its file system, its workload and the levels of its factors; its id writes these in the order of the
sweep. Here a run gets the ids of another, so that both are found under one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import pandas as pd

from mountlab.analysis.run_view import Measured
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
    known = _orders(workload for run in runs for workload in run.sweep.workloads)
    return [_aligned(run, known) for run in runs]


def aligned_to(sweep: Sweep, run: R) -> R:
    """Return a run with its cells named as in a sweep that has them."""
    return _aligned(run, _orders((*sweep.workloads, *run.sweep.workloads)))


def _orders(workloads: Iterable[Workload]) -> dict[Same, Workload]:
    """Return the first of all workloads that are the same."""
    found: dict[Same, Workload] = {}
    for each in workloads:
        found.setdefault(same_workload(each.name, each.factors), each)
    return found


def _aligned(run: R, known: Mapping[Same, Workload]) -> R:
    first = {each.label: known[same_workload(each.name, each.factors)] for each in run.sweep.workloads}
    labels = {label: each.label for label, each in first.items() if each.label != label}
    if not labels:
        return run
    names = {
        cell_id(fs.name, old): cell_id(fs.name, new) for fs in run.sweep.filesystems for old, new in labels.items()
    }
    orders = {same_workload(each.name, each.factors): tuple(each.factors) for each in first.values()}
    renamed = _Renamed(labels, names, orders)
    whole: Any = run  # a dataclass: store.Run, which has all of these parts
    own = {field.name for field in fields(whole)}
    made: R = replace(whole, **{key: value for key, value in renamed.parts(whole).items() if key in own})
    return made


class _Renamed:
    """The parts of a run under other names of its cells."""

    def __init__(
        self, labels: Mapping[str, str], cells: Mapping[str, str], orders: Mapping[Same, Sequence[str]]
    ) -> None:
        self._labels, self._cells, self._orders = labels, cells, orders

    def parts(self, run: Any) -> dict[str, Any]:
        """Return every part that names a cell, by its attribute of a run."""
        frames = {name: self._frame(getattr(run, name)) for name in _FRAMES if hasattr(run, name)}
        lists = {name: Several(self._item(each, name) for each in getattr(run, name, ())) for name in _LISTS}
        answers = getattr(run, "answer_metrics", {})
        return {
            **frames,
            **lists,
            "sweep": self._sweep(run.sweep),
            "info": self._info(run.info),
            "censored": {self._cells.get(cell, cell): blocks for cell, blocks in run.censored.items()},
            "answer_metrics": {self._labels.get(label, label): own for label, own in answers.items()},
        }

    def _info(self, info: RunInfo) -> RunInfo:
        """Return what imported logs state, too, under the labels that the workloads have now."""
        stated = {self._labels.get(label, label): own for label, own in (info.facts.surveyed.stated or {}).items()}
        surveyed = info.facts.surveyed.model_copy(update={"stated": stated})
        return replace(info, facts=replace(info.facts, surveyed=surveyed)) if stated else info

    def _sweep(self, sweep: Sweep) -> Sweep:
        workloads = tuple(replace(each, factors=self._factors(each.name, each.factors)) for each in sweep.workloads)
        excluded = tuple(self._cells.get(cell, cell) for cell in sweep.excluded)
        before = sweep.extended
        extended = replace(before, before=self._sweep(before.before)) if before else None
        return replace(sweep, workloads=workloads, excluded=excluded, extended=extended)

    def _factors(self, workload: str, factors: Mapping[str, str]) -> dict[str, str]:
        order = self._orders.get(same_workload(workload, factors), tuple(factors))
        return {key: factors[key] for key in order}

    def _frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(cell=frame["cell"].map(lambda cell: self._cells.get(cell, cell)))

    def _item(self, each: Any, name: str) -> Any:
        if name == "caveats":
            return replace(each, subject=self._cells.get(each.subject, each.subject))
        if name == "comparisons":
            return replace(each, factors=self._factors(each.workload, each.factors))
        if name == "stops":
            return replace(each, cell=self._cells.get(each.cell, each.cell))
        workload = each.cell.workload
        ordered = replace(workload, factors=self._factors(workload.name, workload.factors))
        return replace(each, cell=replace(each.cell, workload=ordered))


_FRAMES = ("measurements", "trials", "estimates")
_LISTS = ("comparisons", "caveats", "stops", "moved")
