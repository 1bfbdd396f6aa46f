"""Figures that runs share: by cell, metric and label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mountlab.analysis.answer_metrics import answer_labels
from mountlab.analysis.measurements import counted
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import same_cell
from mountlab.analysis.samples import figure_steps
from mountlab.analysis.time_limits import late_trials
from mountlab.core.errors import PlanError
from mountlab.core.frames import rows_of
from mountlab.core.model import Cell, RepeatedLooks, Sweep
from mountlab.core.numbers import first_few
from mountlab.stats import sequential

FigureKey = tuple[str, str, str]
"""Cell, metric and label."""
_MOST_NAMED, _LETTERS = 4, 26


def name_of(place: int) -> str:
    """Return how the runs are called, in the order in which they were named: 'A', 'B', ... 'Z', 'R27'."""
    return chr(ord("A") + place) if place < _LETTERS else f"R{place + 1}"


def first_repeated(names: Sequence[str]) -> str:
    """Return the first name that stands there twice; '' where each stands once."""
    return next((name for place, name in enumerate(names) if name in names[:place]), "")


def level_of(runs: Sequence[ComparedRun]) -> float:
    """Return the strictest."""
    return max(run.sweep.design.level for run in runs)


def smallest_effect_of(runs: Sequence[ComparedRun]) -> float:
    """Return the smallest of those that the sweeps name."""
    return min(run.sweep.design.smallest_effect for run in runs)


def repeated_looks_of(runs: Sequence[ComparedRun], level: float) -> RepeatedLooks | None:
    """Return what the intervals of runs are corrected for: that of the run whose correction costs most, which is enough
    for the others, too; None where no run was stopped by a rule or extended."""
    looks_of_runs = [run.sweep.repeated_looks for run in runs if run.sweep.repeated_looks]
    return max(looks_of_runs, key=lambda repeated_looks: sequential.level_after(repeated_looks, level), default=None)


# ── the cells that runs share ────────────────────────────────────────────────────────────────────────────────────────


def common_cells(a: Sweep, b: Sweep) -> list[Cell]:
    """Return the cells of A that B has too. Raises PlanError where there is none."""
    theirs = {same_cell(cell): cell.id for cell in b.cells}
    common = [cell for cell in a.cells if same_cell(cell) in theirs]
    if not common:
        raise PlanError(
            "the two runs have no cell in common",
            where="compare",
            got=f"B has {first_few(sorted(theirs.values()), _MOST_NAMED)}",
            allowed=f"cells of A: {first_few([cell.id for cell in a.cells], _MOST_NAMED)}",
            next_step="run the same sweep twice; names of file systems and workloads tell what is the same",
        )
    _check_definitions(a, b)
    return common


def _check_definitions(a: Sweep, b: Sweep) -> None:
    """Raise PlanError where two sweeps define a metric of one name differently."""
    for name in a.own_metrics.keys() & b.own_metrics.keys():
        ours, theirs = a.own_metrics[name], b.own_metrics[name]
        if ours != theirs:
            raise PlanError(
                "the two runs define a metric differently",
                where=f"metric {name}",
                got=f"B has unit {theirs.unit}, better {theirs.better}",
                allowed=f"as in A: unit {ours.unit}, better {ours.better}",
                next_step="give the metric another name in one of the sweeps, or measure again by one definition",
            )


# ── their figures ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RunFigures:
    """The counted values of one run, the unit of each, and the step to which it is rounded."""

    values: Mapping[FigureKey, list[float]]
    units: Mapping[FigureKey, str]
    steps: Mapping[FigureKey, float]

    @classmethod
    def of(cls, run: ComparedRun, *, whole: bool = False) -> RunFigures:
        """`whole`: without a value for cells with a trial that ran into its time limit: runs share no blocks in which
        such a trial has a rank, and the others alone are the quick ones."""
        values: dict[FigureKey, list[float]] = {}
        units: dict[FigureKey, str] = {}
        columns = ("cell", "metric", "label", "unit", "value")
        for cell, metric, label, unit, value in rows_of(counted(run.measurements), *columns):
            sample = values.setdefault((cell, metric, label), [])
            if not (whole and late_trials(run.censored, cell, metric)):
                sample.append(float(value))
            units[cell, metric, label] = unit
        return cls(values, units, figure_steps(run.sweep, run.measurements))


@dataclass(frozen=True)
class SharedFigure:
    """One figure of a cell, in every run that has it."""

    cell: Cell
    metric: str
    label: str
    unit: str
    values: tuple[Sequence[float], ...]
    """The counted ones of each run, in the order of the runs; () of a run without any, or with another unit."""
    steps: tuple[float, ...]
    """To which those of each run are rounded; 0 where none shows."""


def shared_figures(
    runs: Sequence[ComparedRun], *, metrics: Sequence[str] = (), whole: bool = False
) -> list[SharedFigure]:
    """Return every figure that the answer of a run is about, with the values of all runs; cells in the order in which
    the runs name them. `metrics` takes the place of those that the answers are about; `whole`: without the values of
    cells with a trial that ran into its time limit."""
    figures = [RunFigures.of(run, whole=whole) for run in runs]
    cells: dict[FigureKey, Cell] = {}
    for run, of_run in zip(runs, figures, strict=True):
        for cell, key in _answer_keys(run, of_run, metrics):
            cells.setdefault(key, cell)
    order = {name: place for place, name in enumerate(dict.fromkeys(c.id for run in runs for c in run.sweep.cells))}
    shared = []
    for key in sorted(cells, key=lambda key: order[key[0]]):
        unit = next(of_run.units[key] for of_run in figures if key in of_run.units)
        values = [tuple(of_run.values[key]) if of_run.units.get(key) == unit else () for of_run in figures]
        steps = [of_run.steps.get(key, 0.0) for of_run in figures]
        shared.append(SharedFigure(cells[key], key[1], key[2], unit, tuple(values), tuple(steps)))
    return shared


def _answer_keys(run: ComparedRun, figures: RunFigures, metrics: Sequence[str]) -> Iterator[tuple[Cell, FigureKey]]:
    labels = answer_labels(run.sweep, counted(run.measurements))
    for cell in run.sweep.cells:
        workload = cell.workload.label
        for metric in metrics or run.answer_metrics.get(workload, ()):
            keys = ((cell.id, metric, label) for label in labels.get((workload, metric), ("",)))
            yield from ((cell, key) for key in keys if key in figures.values)


def table_of(samples: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return samples as rows of one table, NaN where one is shorter than the longest."""
    table = np.full((len(samples), max(map(len, samples), default=0)), math.nan)
    for place, sample in enumerate(samples):
        table[place, : len(sample)] = sample
    return table
