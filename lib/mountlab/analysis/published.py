"""What others published, held against what a run measured: agrees, the same direction only, contradicts, undecided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Protocol

import numpy as np

from mountlab.analysis.compare.comparisons import Sides, comparisons_of
from mountlab.analysis.measurements import FigureKey, by_block, counted, log_ratios
from mountlab.analysis.run_view import Measured
from mountlab.analysis.samples import figure_steps
from mountlab.analysis.time_limits import OF_A_MOUNT, worse_side
from mountlab.core.findings import Agreement, Claim, Comparison, PublishedFigure
from mountlab.core.metrics import higher_is_better, known_metric
from mountlab.core.model import Cell
from mountlab.stats import RATIO_METHOD, adjust_comparisons, compare_rows
from mountlab.stats.censored import ranked_ratios
from mountlab.wording import verdicts

NO_RATIO = "in no block are all figures above 0, and 0 has no ratio"


class Compared(Measured, Protocol):
    """What is needed of a run."""

    @property
    def comparisons(self) -> Sequence[Comparison]: ...
    @property
    def published(self) -> Sequence[PublishedFigure]: ...


@dataclass(frozen=True)
class Beside:
    """One published row, ours of the same things, and how the two stand to each other."""

    theirs: PublishedFigure
    ours: Comparison | None
    agreement: Agreement
    why: str = ""
    """Why it is not compared, where it was measured."""


def beside(run: Compared) -> list[Beside]:
    """Return every published row of a run's sweep with ours, which has the interval that holds together with all
    others."""
    rows = []
    for theirs in run.published:
        of_levels = bool(theirs.baseline_factors)
        ours = _of_levels(theirs, run) if of_levels else verdicts.ours_beside(theirs, run.comparisons)
        outcome = agreement(theirs, ours, smallest_effect=run.sweep.design.smallest_effect)
        why = NO_RATIO if outcome == "not measured" and _holds_no_ratio(theirs, run) else ""
        rows.append(Beside(theirs, ours, outcome, why))
    return rows


def _holds_no_ratio(theirs: PublishedFigure, run: Compared) -> bool:
    """Return whether both sides were measured in common blocks, and a figure that is not positive leaves no ratio in
    any."""
    values = by_block(counted(run.measurements))
    sides = [[values.get((cell.id, theirs.metric, theirs.label), {}) for cell in pair] for pair in _pairs(theirs, run)]
    common = [(ours[block], other[block]) for ours, other in sides for block in ours.keys() & other.keys()]
    return any(min(pair) <= 0 for pair in common)


def agreement(theirs: PublishedFigure, ours: Comparison | None, *, smallest_effect: float) -> Agreement:
    """Return whether ours points where theirs does.

    A claim that both are the same, within a bound of its own, is held against our interval; every other against our
    verdict. Without an interval nothing is decided.
    """
    if ours is None or not (math.isfinite(ours.ratio) or ours.censored):
        return "not measured"
    if not verdicts.has_interval(ours) or ours.verdict == "not usable":
        return "undecided"
    if theirs.within is not None:
        return _within(ours, theirs.within)
    if ours.verdict == "undecided":
        return "undecided"
    if ours.verdict != direction(theirs, smallest_effect=smallest_effect):
        return "contradicts"
    return _by_size(theirs, ours)


def _by_size(theirs: PublishedFigure, ours: Comparison) -> Agreement:
    """Of two that point the same way: whether a published ratio lies in our interval, and which is larger if not."""
    interval = ours.verdict_interval
    if theirs.claim is not None or ours.verdict == "same" or interval.low <= theirs.ratio <= interval.high:
        return "agrees"
    smaller = (theirs.ratio > interval.high) == (theirs.ratio > 1)
    return "same direction, smaller" if smaller else "same direction, larger"


def _within(ours: Comparison, bound: float) -> Agreement:
    low, high = 1 / (1 + bound), 1 + bound
    interval = ours.verdict_interval
    if low <= interval.low and interval.high <= high:
        return "agrees"
    return "contradicts" if interval.high < low or high < interval.low else "undecided"


def direction(theirs: PublishedFigure, *, smallest_effect: float) -> Claim:
    """Return where a published row points: its claim, or the side of 1 on which its ratio lies."""
    if theirs.claim is not None:
        return theirs.claim
    if 1 / (1 + smallest_effect) <= theirs.ratio <= 1 + smallest_effect:
        return "same"
    return "faster" if (theirs.ratio > 1) == higher_is_better(theirs.metric) else "slower"


def _of_levels(theirs: PublishedFigure, run: Compared) -> Comparison | None:
    """Return one level of a factor against another, on the same file systems or on two: in each block the mean log
    ratio over everything else that was swept, then a t interval over blocks. Its level is its own, not of a family; it
    allows for the looks of a stopping rule. A block with a figure that is not positive has no ratio and counts as
    missing. Where a trial ran into the time limit, it is the median over blocks with the sign test (stats.censored)."""
    pairs = _pairs(theirs, run)
    if not pairs:
        return None
    values = by_block(counted(run.measurements))
    whole, late = _mean_ratios(theirs, pairs, values), _late_blocks(theirs, pairs, run)
    blocks = sorted({*whole, *late[0], *late[1]})
    if not blocks:
        return None
    design, workload = run.sweep.design, pairs[0][0].workload
    sides = np.array([[whole.get(block, math.nan) for block in blocks]]), np.ones((1, len(blocks)))
    ratios = compare_rows(*sides, steps=(np.array([_step(theirs, pairs, run, values)]), 0.0))
    censored = len(late[0] | late[1])
    if censored:
        flags = tuple(np.array([[block in side for block in blocks]]) for side in late)
        ratios = ranked_ratios(ratios, sides, (flags[0], flags[1]), worse_side([known_metric(theirs.metric)]))
    alone = adjust_comparisons(
        ratios, level=design.level, smallest_effect=design.smallest_effect, repeated_looks=run.sweep.repeated_looks
    )
    adjusted = replace(alone, p_adjusted=alone.p, joint=alone.own, is_open=np.zeros(1, dtype=bool))
    about = Sides(
        theirs.baseline, theirs.candidate, workload.name, workload.tool, theirs.factors, theirs.metric, theirs.label
    )
    (comparison,) = comparisons_of([about], ratios, adjusted, level=design.level, late=[censored], method=RATIO_METHOD)
    return comparison


def _mean_ratios(
    theirs: PublishedFigure,
    pairs: Sequence[tuple[Cell, Cell]],
    values: Mapping[FigureKey, Mapping[int, float]],
) -> dict[int, float]:
    """Return the geometric mean of the ratios of all pairs, in each block in which every pair has one."""
    logs: dict[int, list[float]] = {}
    for pair in pairs:
        mine, base = (values.get((cell.id, theirs.metric, theirs.label), {}) for cell in pair)
        for block, log in log_ratios(mine, base).items():
            logs.setdefault(block, []).append(log)
    return {block: math.exp(fmean(ratios)) for block, ratios in sorted(logs.items()) if len(ratios) == len(pairs)}


def _late_blocks(
    theirs: PublishedFigure, pairs: Sequence[tuple[Cell, Cell]], run: Compared
) -> tuple[set[int], set[int]]:
    """Return the blocks in which a candidate, and in which a baseline, ran into the time limit."""
    if theirs.metric in OF_A_MOUNT:
        return set(), set()
    sides = ([run.censored.get(pair[place].id, frozenset()) for pair in pairs] for place in (0, 1))
    ours, other = (set[int]().union(*side) for side in sides)
    return ours, other


def _step(
    theirs: PublishedFigure,
    pairs: Sequence[tuple[Cell, Cell]],
    run: Compared,
    values: Mapping[FigureKey, Mapping[int, float]],
) -> float:
    """Return the step of the mean ratio over pairs of cells, as a share of it: each cell is rounded by itself."""
    steps = figure_steps(run.sweep, run.measurements)
    keys = [(cell.id, theirs.metric, theirs.label) for pair in pairs for cell in pair]
    means = {key: fmean(values[key].values()) for key in keys if key in values}
    return math.hypot(*(steps[key] / means[key] for key in keys if means.get(key))) / len(pairs)


def _pairs(theirs: PublishedFigure, run: Compared) -> list[tuple[Cell, Cell]]:
    """Return the cells of the candidate and of the baseline that differ in nothing but what the row names."""
    baseline_factors = {**theirs.factors, **theirs.baseline_factors}

    def cells_of(filesystem: str, factors: Mapping[str, str]) -> dict[frozenset[tuple[str, str]], Cell]:
        """Return the cells with these levels, by the levels of their other factors."""
        return {
            frozenset(item for item in cell.workload.factors.items() if item[0] not in baseline_factors): cell
            for cell in run.sweep.cells
            if (cell.filesystem.name, cell.workload.name) == (filesystem, theirs.workload)
            and factors.items() <= cell.workload.factors.items()
        }

    candidates, baselines = cells_of(theirs.candidate, theirs.factors), cells_of(theirs.baseline, baseline_factors)
    return [(candidates[key], baselines[key]) for key in candidates if key in baselines]
