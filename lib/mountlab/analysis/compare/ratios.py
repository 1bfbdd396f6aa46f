"""Runs against a first one, cell by cell: the ratio of every figure that both have, all corrected together.

The runs share no blocks, so nothing that changed between them cancels: intervals are Welch's, from the spread inside
each run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mountlab.analysis.cells import answer_labels, counted, figure_steps, late_trials
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import same_cell
from mountlab.core.errors import PlanError
from mountlab.core.findings import Comparison
from mountlab.core.model import Cell, Sweep, Until
from mountlab.stats import WELCH_METHOD, compare_rows_unpaired, family, sequential, verdict

Row = tuple[str, str, str]
"""Cell, metric and label."""
_MOST_NAMED, _LETTERS = 4, 26


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


@dataclass(frozen=True)
class Figures:
    """The counted values of one run, the unit of each, and the step to which it is rounded."""

    values: Mapping[Row, list[float]]
    units: Mapping[Row, str]
    steps: Mapping[Row, float]

    @classmethod
    def of(cls, run: ComparedRun) -> Figures:
        values: dict[Row, list[float]] = {}
        units: dict[Row, str] = {}
        frame = counted(run.measurements)
        columns = (frame[name] for name in ("cell", "metric", "label", "unit", "value"))
        for cell, metric, label, unit, value in zip(*columns, strict=True):
            values.setdefault((cell, metric, label), []).append(float(value))
            units[cell, metric, label] = unit
        return cls(values, units, figure_steps(run.sweep, run.measurements))

    @classmethod
    def whole(cls, run: ComparedRun) -> Figures:
        """The same, without a value for cells of which a trial ran into its time limit: runs share no blocks in which
        such a trial has a rank, and the others alone are the quick ones."""
        found = cls.of(run)
        late = (bool(late_trials(run.censored, cell, metric)) for cell, metric, _ in found.values)
        return replace(
            found, values={row: [] if out else own for (row, own), out in zip(found.values.items(), late, strict=True)}
        )


@dataclass(frozen=True)
class _Asked:
    """One figure that a run and the first one have."""

    other: int
    cell: Cell
    row: Row


def name_of(place: int) -> str:
    """How the runs are called, in the order in which they were named: 'A', 'B', ... 'Z', 'R27'."""
    return chr(ord("A") + place) if place < _LETTERS else f"R{place + 1}"


def level_of(runs: Sequence[ComparedRun]) -> float:
    """The strictest."""
    return max(run.sweep.design.level for run in runs)


def smallest_effect_of(runs: Sequence[ComparedRun]) -> float:
    """The smallest of those that the sweeps name."""
    return min(run.sweep.design.smallest_effect for run in runs)


def ratios_to_first(first: ComparedRun, others: Sequence[ComparedRun]) -> list[tuple[CellRatio, ...]]:
    """For each other run its ratios to the first. Verdicts and intervals hold for all of them, of all runs, together.

    Raises PlanError where a run has no cell, or no figure, in common with the first.
    """
    figures = [Figures.whole(run) for run in (first, *others)]
    asked = [each for place, run in enumerate(others, 1) for each in _in_common(first, run, figures, place)]
    ours = [figures[each.other].values[each.row] for each in asked]
    theirs = [figures[0].values[each.row] for each in asked]
    steps = (
        np.array([figures[each.other].steps[each.row] for each in asked]),
        np.array([figures[0].steps[each.row] for each in asked]),
    )
    found = compare_rows_unpaired(table_of(ours), table_of(theirs), steps=steps)
    runs = (first, *others)
    level = level_of(runs)
    together = family(found, level=level, smallest_effect=smallest_effect_of(runs), until=rule_of(runs, level))
    columns = (
        found.ratio, found.n, together.p, together.p_adjusted, together.low, together.high, together.low_all,
        together.high_all, together.low_same, together.high_same, together.level_same,
        together.p_equivalent_adjusted, together.needed,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    made = [(each.other, _cell_ratio(each, row, level, figures)) for each, row in zip(asked, rows, strict=True)]
    return [tuple(ratio for place, ratio in made if place == other) for other in range(1, len(runs))]


def _cell_ratio(asked: _Asked, row: tuple[Any, ...], level: float, figures: Sequence[Figures]) -> CellRatio:
    theirs, ours = (figures[place].values[asked.row] for place in (0, asked.other))
    return CellRatio(
        asked.cell,
        _comparison(asked, row, level),
        figures[0].units[asked.row],
        _mean(theirs),
        _mean(ours),
        len(theirs),
        len(ours),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _in_common(first: ComparedRun, run: ComparedRun, figures: Sequence[Figures], place: int) -> list[_Asked]:
    """The figures that a run shares with the first, in the same unit."""
    of_a, of_b = figures[0], figures[place]
    wanted = list(_rows(first, run, common_cells(first.sweep, run.sweep)))
    both = [(cell, row) for cell, row in wanted if row in of_a.values and row in of_b.values]
    asked = [_Asked(place, cell, row) for cell, row in both if of_a.units[row] == of_b.units[row]]
    if not asked:
        raise PlanError(
            "the two runs have no figure in common",
            where="compare",
            got=_why_none(wanted, both, of_a, of_b),
            allowed="a metric, in the same unit, that both runs have of the same cell",
            next_step="name it under `metrics` in both sweeps, and look at the failed trials of both runs",
        )
    return asked


def common_cells(a: Sweep, b: Sweep) -> list[Cell]:
    """The cells of A that B has too. Raises PlanError where there is none."""
    theirs = {same_cell(cell): cell.id for cell in b.cells}
    common = [cell for cell in a.cells if same_cell(cell) in theirs]
    if not common:
        raise PlanError(
            "the two runs have no cell in common",
            where="compare",
            got=f"B has {_some(sorted(theirs.values()))}",
            allowed=f"cells of A: {_some([cell.id for cell in a.cells])}",
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


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _rows(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[tuple[Cell, Row]]:
    """The rows that the answers of both runs are about; of a metric that has labels, those of A."""
    labels = answer_labels(counted(a.measurements))
    for cell in common:
        workload = cell.workload.label
        for metric in a.answer_metrics.get(workload, ()):
            compared = cell.workload.metric(metric).better != "neither"
            if compared and metric in b.answer_metrics.get(workload, ()):
                yield from ((cell, (cell.id, metric, each)) for each in labels.get((workload, metric), ("",)))


def _why_none(wanted: Sequence[object], both: Sequence[tuple[Cell, Row]], a: Figures, b: Figures) -> str:
    if not wanted:
        return "their answers are about different metrics"
    if not both:
        return "the cells that both have gave no figure in one of them"
    row = both[0][1]
    return f"{row[1]} of {row[0]} in {a.units[row]} and in {b.units[row]}"


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
    """Every figure that the answer of a run is about, with the values of all runs; cells in the order in which the runs
    name them. `metrics` takes the place of those that the answers are about; `whole`: without the values of cells of
    which a trial ran into its time limit."""
    figures = [Figures.whole(run) if whole else Figures.of(run) for run in runs]
    cells: dict[Row, Cell] = {}
    for run, own in zip(runs, figures, strict=True):
        for cell, row in _own_rows(run, own, metrics):
            cells.setdefault(row, cell)
    order = {name: place for place, name in enumerate(dict.fromkeys(c.id for run in runs for c in run.sweep.cells))}
    return [_shared(cells[row], row, figures) for row in sorted(cells, key=lambda row: order[row[0]])]


def _own_rows(run: ComparedRun, figures: Figures, metrics: Sequence[str]) -> Iterator[tuple[Cell, Row]]:
    labels = answer_labels(counted(run.measurements))
    for cell in run.sweep.cells:
        workload = cell.workload.label
        for metric in metrics or run.answer_metrics.get(workload, ()):
            rows = ((cell.id, metric, each) for each in labels.get((workload, metric), ("",)))
            yield from ((cell, row) for row in rows if row in figures.values)


def _shared(cell: Cell, row: Row, figures: Sequence[Figures]) -> SharedFigure:
    unit = next(each.units[row] for each in figures if row in each.units)
    values = (tuple(each.values[row]) if each.units.get(row) == unit else () for each in figures)
    steps = tuple(each.steps.get(row, 0.0) for each in figures)
    return SharedFigure(cell, row[1], row[2], unit, tuple(values), steps)


def table_of(samples: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Samples as rows of one table, NaN where one is shorter than the longest."""
    table = np.full((len(samples), max(map(len, samples), default=0)), math.nan)
    for place, sample in enumerate(samples):
        table[place, : len(sample)] = sample
    return table


def rule_of(runs: Sequence[ComparedRun], level: float) -> Until | None:
    """The rule by which runs were stopped, or none. Of several stopping rules the one that costs most to correct for;
    it is enough for the others, too."""
    rules = [run.sweep.design.until for run in runs if run.sweep.design.until]
    return max(rules, key=lambda rule: sequential.nominal_level(rule, level), default=None)


def _comparison(asked: _Asked, figures: tuple[Any, ...], level: float) -> Comparison:
    ratio, n, p, p_adjusted, low, high, low_all, high_all, low_same, high_same, level_same, p_same, needed = figures
    _, metric, label = asked.row
    workload, name = asked.cell.workload, asked.cell.filesystem.name
    baseline, candidate = f"{name} in {name_of(0)}", f"{name} in {name_of(asked.other)}"
    said = verdict(
        ratio,
        p_adjusted=p_adjusted,
        p_equivalent_adjusted=p_same,
        level=level,
        more_is_better=workload.metric(metric).better == "higher",
    )
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        workload=workload.name,
        tool=workload.tool,
        factors=workload.factors,
        metric=metric,
        label=label,
        ratio=ratio,
        low=low,
        high=high,
        n=n,
        level=level,
        p=p,
        p_adjusted=p_adjusted,
        verdict=said,
        method=WELCH_METHOD,
        low_all=low_all,
        high_all=high_all,
        low_same=low_same,
        high_same=high_same,
        level_same=level_same,
        needed=None if math.isnan(needed) else int(needed),
        better=workload.own_metrics[metric].better if metric in workload.own_metrics else "",
    )
