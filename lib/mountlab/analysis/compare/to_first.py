"""Runs against the first of them, cell by cell: the ratio of every figure that both have, all corrected together.

The runs share no blocks, so nothing that changed between them cancels: intervals are Welch's, from the spread inside
each run, with what runs differ by themselves (compare.run_spread).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mountlab.analysis.answer_metrics import answer_labels
from mountlab.analysis.compare import figures
from mountlab.analysis.compare.comparisons import Sides, comparisons_of
from mountlab.analysis.compare.figures import FigureKey, RunFigures, SharedFigure
from mountlab.analysis.compare.run_spread import FigureSpread, RunsDiffer, side_of
from mountlab.analysis.measurements import counted
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.trust import withhold_verdict
from mountlab.core.errors import PlanError
from mountlab.core.findings import Comparison
from mountlab.core.model import Cell, RepeatedLooks
from mountlab.stats import WELCH_METHOD, adjust_comparisons, compare_rows_unpaired
from mountlab.stats.comparisons import Ratios
from mountlab.stats.estimates import Floats
from mountlab.stats.run_spread import RUNS_METHOD, RatiosOfRuns, break_even, compare_rows_of_runs
from mountlab.stats.sequential import level_after


@dataclass(frozen=True)
class CellRatio:
    """B / A of one metric of one cell, A being the first run, B one of the others. `comparison` names its sides '<file
    system> in A' and '... in B' (or in C, D and so on)."""

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


def ratios_to_first(
    runs: Sequence[ComparedRun], runs_differ: RunsDiffer
) -> tuple[list[SharedFigure], list[tuple[CellRatio | None, ...]]]:
    """Return every figure that the first run and another have, and beside each its ratio in every run: None for the
    first, and where there is none. Values of a run without a ratio are left out. Verdicts and intervals hold for all
    ratios, of all runs, together. `runs_differ`: what is known of how much runs differ by themselves.

    Raises PlanError where a run has no cell, or no figure, in common with the first.
    """
    of_runs = [RunFigures.of(run, whole=True) for run in runs]
    first = of_runs[0]
    questions = [(place, cell, key) for place in range(1, len(runs)) for cell, key in _in_common(runs, of_runs, place)]
    sides = (
        figures.table_of([of_runs[place].values[key] for place, _, key in questions]),
        figures.table_of([first.values[key] for _, _, key in questions]),
    )
    steps = (
        np.array([of_runs[place].steps[key] for place, _, key in questions]),
        np.array([first.steps[key] for _, _, key in questions]),
    )

    def spread_of(run: ComparedRun, cell: Cell, key: FigureKey) -> FigureSpread:
        return runs_differ.figure(run, cell, key[1], key[2], first.units[key])

    spreads = [(spread_of(runs[0], cell, key), spread_of(runs[place], cell, key)) for place, cell, key in questions]
    inside_and_between = compare_rows_of_runs(
        *sides, (side_of(of_b for _, of_b in spreads), side_of(of_a for of_a, _ in spreads)), steps=steps
    )
    level, repeated_looks = figures.level_of(runs), figures.repeated_looks_of(runs, figures.level_of(runs))
    smallest_effect = figures.smallest_effect_of(runs)
    joint = adjust_comparisons(
        inside_and_between, level=level, smallest_effect=smallest_effect, repeated_looks=repeated_looks
    )
    method = RUNS_METHOD if isinstance(inside_and_between, RatiosOfRuns) else WELCH_METHOD
    names = [_sides(cell, key, place) for place, cell, key in questions]
    comparisons = comparisons_of(names, inside_and_between, joint, level=level, method=method)
    unless = _break_even(compare_rows_unpaired(*sides, steps=steps), level, repeated_looks).tolist()
    errors = [[caveat for caveat in run.caveats if caveat.severity == "error"] for run in runs]
    rows: dict[FigureKey, tuple[Cell, list[CellRatio | None]]] = {}
    for (place, cell, key), comparison, spread, even in zip(questions, comparisons, spreads, unless, strict=True):
        comparison = withhold_verdict(comparison, (cell.id,), (*errors[0], *errors[place]))
        a, b = first.values[key], of_runs[place].values[key]
        ratio = CellRatio(cell, comparison, first.units[key], _mean(a), _mean(b), len(a), len(b), spread, even)
        rows.setdefault(key, (cell, [None] * len(runs)))[1][place] = ratio
    shared = [
        SharedFigure(
            cell,
            key[1],
            key[2],
            first.units[key],
            tuple(of.values[key] if ratio or of is first else () for of, ratio in zip(of_runs, ratios, strict=True)),
            tuple(of.steps.get(key, 0.0) for of in of_runs),
        )
        for key, (cell, ratios) in rows.items()
    ]
    return shared, [tuple(ratios) for _, ratios in rows.values()]


def _sides(cell: Cell, key: FigureKey, place: int) -> Sides:
    name = cell.filesystem.name
    baseline, candidate = f"{name} in {figures.name_of(0)}", f"{name} in {figures.name_of(place)}"
    return Sides.of(cell.workload, *key[1:], baseline=baseline, candidate=candidate)


def _break_even(inside: Ratios, level: float, repeated_looks: RepeatedLooks | None) -> Floats:
    """Return by how much runs may differ with each ratio still shown to differ from 1; the two sides share the
    error."""

    def tail(share: float) -> float:
        return (1 - level_after(repeated_looks, 1 - (1 - level) * share)) / 2

    return np.fmax(*(break_even(inside, sign * inside.log_mean, tail) for sign in (1, -1)))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _in_common(runs: Sequence[ComparedRun], of_runs: Sequence[RunFigures], place: int) -> list[tuple[Cell, FigureKey]]:
    """Return the figures that the answers of a run and of the first are about, in the same unit; of a metric that has
    labels, those of the first."""
    first, run = runs[0], runs[place]
    of_a, of_b = of_runs[0], of_runs[place]
    labels = answer_labels(first.sweep, counted(first.measurements))
    answered = [
        (cell, (cell.id, metric, label))
        for cell in figures.common_cells(first.sweep, run.sweep)
        for metric in first.answer_metrics.get(cell.workload.label, ())
        if cell.workload.metric(metric).better != "neither"
        and metric in run.answer_metrics.get(cell.workload.label, ())
        for label in labels.get((cell.workload.label, metric), ("",))
    ]
    both = [(cell, key) for cell, key in answered if key in of_a.values and key in of_b.values]
    same_unit = [(cell, key) for cell, key in both if of_a.units[key] == of_b.units[key]]
    if same_unit:
        return same_unit
    why = "their answers are about different metrics"
    if both:
        key = both[0][1]
        why = f"{key[1]} of {key[0]} in {of_a.units[key]} and in {of_b.units[key]}"
    elif answered:
        why = "the cells that both have gave no figure in one of them"
    raise PlanError(
        "the two runs have no figure in common",
        where="compare",
        got=why,
        allowed="a metric, in the same unit, that both runs have of the same cell",
        next_step="name it under `metrics` in both sweeps, and look at the failed trials of both runs",
    )
