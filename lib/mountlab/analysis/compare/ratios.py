"""Runs against a first one, cell by cell: the ratio of every figure that both have, all corrected together.

The runs share no blocks, so nothing that changed between them cancels: intervals are Welch's, from the spread inside
each run, with what runs differ by themselves (compare.run_spread).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mountlab.analysis.cells import answer_labels, counted
from mountlab.analysis.compare import figures
from mountlab.analysis.compare.comparisons import Sides, comparisons_of
from mountlab.analysis.compare.figures import FigureKey, RunFigures
from mountlab.analysis.compare.run_spread import FigureSpread, RunsDiffer, side_of
from mountlab.analysis.run_view import ComparedRun
from mountlab.core.errors import PlanError
from mountlab.core.findings import Comparison
from mountlab.core.model import Cell, Correction
from mountlab.stats import WELCH_METHOD, compare_rows_unpaired, family
from mountlab.stats.comparisons import Ratios
from mountlab.stats.estimates import Floats
from mountlab.stats.run_spread import RUNS_METHOD, RatiosOfRuns, break_even, compare_rows_of_runs
from mountlab.stats.sequential import level_after


@dataclass(frozen=True)
class CellRatio:
    """B / A of one metric of one cell, A being the first run. `comparison` names its sides '<file system> in A' and
    '... in B' (or in C, D and so on)."""

    cell: Cell
    comparison: Comparison
    unit: str
    mean_a: float
    mean_b: float
    n_a: int
    n_b: int
    spread: tuple[FigureSpread, FigureSpread]
    """By how much runs like A, and like B, differ by themselves: part of the interval."""
    unless: float
    """The break-even: B differs from A unless runs differ by more. NaN where that is not shown even if they do not."""

    @property
    def metric(self) -> str:
        return self.comparison.metric

    @property
    def label(self) -> str:
        return self.comparison.label


@dataclass(frozen=True)
class _Asked:
    """One figure that a run and the first one have."""

    other: int
    cell: Cell
    key: FigureKey

    @property
    def sides(self) -> Sides:
        name = self.cell.filesystem.name
        baseline, candidate = f"{name} in {figures.name_of(0)}", f"{name} in {figures.name_of(self.other)}"
        return Sides.of(self.cell.workload, *self.key[1:], baseline=baseline, candidate=candidate)


def ratios_to_first(
    first: ComparedRun, others: Sequence[ComparedRun], runs_differ: RunsDiffer
) -> list[tuple[CellRatio, ...]]:
    """For each other run its ratios to the first. Verdicts and intervals hold for all of them, of all runs, together.
    `runs_differ`: what is known of how much runs differ by themselves.

    Raises PlanError where a run has no cell, or no figure, in common with the first.
    """
    runs = (first, *others)
    of_runs = [RunFigures.of(run, whole=True) for run in runs]
    asked = [each for place, run in enumerate(others, 1) for each in _in_common(first, run, of_runs, place)]
    ours = [of_runs[each.other].values[each.key] for each in asked]
    theirs = [of_runs[0].values[each.key] for each in asked]
    steps = (
        np.array([of_runs[each.other].steps[each.key] for each in asked]),
        np.array([of_runs[0].steps[each.key] for each in asked]),
    )
    level, smallest = figures.level_of(runs), figures.smallest_effect_of(runs)
    spreads = [tuple(_spread(each, of_runs, runs[place], runs_differ) for place in (0, each.other)) for each in asked]
    between = side_of(own[1] for own in spreads), side_of(own[0] for own in spreads)
    sides = figures.table_of(ours), figures.table_of(theirs)
    found = compare_rows_of_runs(*sides, between, steps=steps)
    until = figures.rule_of(runs, level)
    together = family(found, level=level, smallest_effect=smallest, until=until)
    method = RUNS_METHOD if isinstance(found, RatiosOfRuns) else WELCH_METHOD
    compared = comparisons_of((each.sides for each in asked), found, together, level=level, method=method)
    even = _break_even(compare_rows_unpaired(*sides, steps=steps), level, until)
    made = [
        (each.other, _cell_ratio(each, own, of_runs, (spread[0], spread[1]), unless))
        for each, own, spread, unless in zip(asked, compared, spreads, even.tolist(), strict=True)
    ]
    return [tuple(ratio for place, ratio in made if place == other) for other in range(1, len(runs))]


def _spread(asked: _Asked, of_runs: Sequence[RunFigures], run: ComparedRun, runs_differ: RunsDiffer) -> FigureSpread:
    _, metric, label = asked.key
    return runs_differ.figure(run, asked.cell, metric, label, of_runs[0].units[asked.key])


def _break_even(inside: Ratios, level: float, until: Correction | None) -> Floats:
    """Return by how much runs may differ with each ratio still shown to differ from 1; the two sides share the
    error."""

    def tail(share: float) -> float:
        return (1 - level_after(until, 1 - (1 - level) * share)) / 2

    return np.fmax(*(break_even(inside, sign * inside.log_mean, tail) for sign in (1, -1)))


def _cell_ratio(
    asked: _Asked,
    comparison: Comparison,
    of_runs: Sequence[RunFigures],
    spread: tuple[FigureSpread, FigureSpread],
    unless: float,
) -> CellRatio:
    a, b = (of_runs[place].values[asked.key] for place in (0, asked.other))
    means, sizes = (_mean(a), _mean(b)), (len(a), len(b))
    return CellRatio(asked.cell, comparison, of_runs[0].units[asked.key], *means, *sizes, spread, unless)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _in_common(first: ComparedRun, run: ComparedRun, of_runs: Sequence[RunFigures], place: int) -> list[_Asked]:
    """Return the figures that a run shares with the first, in the same unit."""
    of_a, of_b = of_runs[0], of_runs[place]
    wanted = list(_keys(first, run, figures.common_cells(first.sweep, run.sweep)))
    both = [(cell, key) for cell, key in wanted if key in of_a.values and key in of_b.values]
    asked = [_Asked(place, cell, key) for cell, key in both if of_a.units[key] == of_b.units[key]]
    if not asked:
        raise PlanError(
            "the two runs have no figure in common",
            where="compare",
            got=_why_none(wanted, both, of_a, of_b),
            allowed="a metric, in the same unit, that both runs have of the same cell",
            next_step="name it under `metrics` in both sweeps, and look at the failed trials of both runs",
        )
    return asked


def _keys(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[tuple[Cell, FigureKey]]:
    """Yield the figures that the answers of both runs are about; of a metric that has labels, those of A."""
    labels = answer_labels(a.sweep, counted(a.measurements))
    for cell in common:
        workload = cell.workload.label
        for metric in a.answer_metrics.get(workload, ()):
            compared = cell.workload.metric(metric).better != "neither"
            if compared and metric in b.answer_metrics.get(workload, ()):
                yield from ((cell, (cell.id, metric, each)) for each in labels.get((workload, metric), ("",)))


def _why_none(wanted: Sequence[object], both: Sequence[tuple[Cell, FigureKey]], a: RunFigures, b: RunFigures) -> str:
    if not wanted:
        return "their answers are about different metrics"
    if not both:
        return "the cells that both have gave no figure in one of them"
    key = both[0][1]
    return f"{key[1]} of {key[0]} in {a.units[key]} and in {b.units[key]}"
