"""One sweep on several boxes, the box being a random factor: does its answer hold on each, and on boxes like them?

Ratios: that of each box is one value, since blocks on one box are no repetitions of the box (stats.over_boxes). Figures
and ratios: how much of what varies lies between boxes, and how much between the trials of one (stats.between).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mountlab.analysis.cells import by_block, counted, log_ratios
from mountlab.analysis.compare.many import DifferenceOverRuns, differences_over, estimates_of, key_of
from mountlab.analysis.compare.ratios import (
    SharedFigure,
    common_cells,
    level_of,
    rule_of,
    shared_figures,
    smallest_effect_of,
)
from mountlab.analysis.compare.two import caveats_of
from mountlab.analysis.run_view import RunView
from mountlab.analysis.same_cells import aligned
from mountlab.analysis.verdicts import cell_id
from mountlab.analysis.verdicts import together as together_
from mountlab.core import numbers
from mountlab.core.errors import PlanError, in_one_line
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.model import Cell
from mountlab.stats import OVER_BOXES_METHOD, family, verdict
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.stats.over_boxes import further_box, over_boxes

FEW_BOXES = 5
"""With fewer, an interval over boxes is 1.4 times as wide as the same spread would give with many, or worse."""
_FEWEST = 2


@dataclass(frozen=True)
class CellOverBoxes:
    """One figure of one cell on every box."""

    cell: Cell
    metric: str
    label: str
    unit: str
    estimates: tuple[Estimate | None, ...]
    """None where a box does not have it."""
    spread: Spread
    """Between boxes and inside them."""
    p_adjusted: float
    """Of the boxes being alike, over all figures together (Holm); NaN where it is not known."""


@dataclass(frozen=True)
class RatioOverBoxes:
    """One comparison of the sweep, on every box and over them."""

    on_each: tuple[Comparison | None, ...]
    """Of each box's own run, with the interval that holds together with the others of that run; None without one."""
    over: Comparison
    """Over boxes: `n` and `needed` count boxes; the verdict and `low_all`, `high_all` hold for all such ratios
    together."""
    further_low: float
    further_high: float
    """Where it is expected on a further box; NaN for fewer than two boxes."""
    spread: Spread
    """Of the log ratios of blocks: between boxes and inside them."""
    p_adjusted: float
    """Of the ratio being the same on all boxes, over all ratios together (Holm)."""

    @property
    def verdicts(self) -> dict[str, list[int]]:
        """Verdict to the places of the boxes on which it fell."""
        found: dict[str, list[int]] = {}
        for place, each in enumerate(self.on_each):
            if each is not None:
                found.setdefault(each.verdict, []).append(place)
        return found

    @property
    def turns(self) -> bool:
        """Whether it is shown to be faster on one box and slower on another."""
        return {"faster", "slower"} <= self.verdicts.keys()

    @property
    def holds(self) -> bool:
        """Whether every box that has it gives the same verdict, and not 'undecided'."""
        return len(self.verdicts) == 1 and "undecided" not in self.verdicts


@dataclass(frozen=True, repr=False)
class Across:
    """Everything that the runs of one sweep say of their boxes."""

    runs: tuple[RunView, ...]
    boxes: tuple[str, ...]
    ratios: tuple[RatioOverBoxes, ...]
    cells: tuple[CellOverBoxes, ...]
    differences: tuple[DifferenceOverRuns, ...]
    caveats: tuple[Caveat, ...]
    level: float
    smallest_effect: float
    missing: Mapping[str, str] = field(default_factory=dict)
    """Boxes of the sweep without any figure, and why."""

    @property
    def trials(self) -> pd.DataFrame:
        """The trials of all boxes, as `Run.trials`, with the box in front of the index."""
        return pd.concat({name: run.trials for name, run in zip(self.boxes, self.runs, strict=True)}, names=["box"])

    def __repr__(self) -> str:
        """Without the runs."""
        return f"<Across {', '.join(self.boxes)}>"


def box_of(run: RunView) -> str:
    """The name of the box of a run."""
    return str(run.info.get("box", {}).get("name", run.sweep.box))


def across_boxes(runs: Sequence[RunView], missing: Mapping[str, str] | None = None) -> Across:
    """Runs of one sweep, one a box; `missing`: boxes that have none, and why.

    Raises PlanError for two runs of one box, for fewer than two boxes with a figure, and for runs without a cell in
    common.
    """
    measured, absent = _measured(aligned(runs), dict(missing or {}))
    boxes, level = tuple(map(box_of, measured)), level_of(measured)
    smallest = smallest_effect_of(measured)
    figures = shared_figures(measured, whole=True)
    common = [common_cells(measured[0].sweep, other.sweep) for other in measured[1:]]
    found = differences_over(measured[0], measured[1:], common)
    differences = tuple(each for each in found if each.what != "box")  # their names differ: that is the factor
    return Across(
        runs=tuple(measured),
        boxes=boxes,
        ratios=tuple(_ratios(measured, level, smallest)),
        cells=tuple(_cells(measured, figures, level)),
        differences=differences,
        level=level,
        smallest_effect=smallest,
        caveats=tuple(_caveats(measured, boxes, figures, absent)),
        missing=absent,
    )


def _measured(runs: Sequence[RunView], absent: dict[str, str]) -> tuple[list[RunView], dict[str, str]]:
    """The runs that have a figure, and the boxes that have none."""
    names = list(map(box_of, runs))
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise PlanError(
            "a box has two runs here",
            where="across boxes",
            got=twice[0],
            allowed="one run a box",
            next_step="python -m mountlab compare RUN RUN ... says how much runs of one box differ",
        )
    measured = [run for run in runs if len(counted(run.measurements))]
    absent |= {box_of(run): "its run has no figure" for run in runs if not any(run is each for each in measured)}
    if len(measured) < _FEWEST:
        why = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
        raise PlanError(
            "one box says nothing of others",
            where="across boxes",
            got=f"figures of {numbers.listed(list(map(box_of, measured))) or 'none'}{f' ({why})' if why else ''}",
            allowed="two boxes or more",
            next_step="the report of each run says what holds on its own box",
        )
    return measured, absent


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cells(runs: Sequence[RunView], figures: Sequence[SharedFigure], level: float) -> Iterator[CellOverBoxes]:
    spreads = [spread(each.values, level=level, steps=each.steps) for each in figures]
    adjusted = alike_p(spreads, rule_of(runs, level))
    for each, found, p in zip(figures, spreads, adjusted, strict=True):
        estimates = estimates_of(runs, each.values, each.steps, level=level, unit=each.unit)
        yield CellOverBoxes(each.cell, each.metric, each.label, each.unit, estimates, found, p)


def differs(part: CellOverBoxes | RatioOverBoxes, level: float) -> bool:
    """Whether the boxes differ by more than the trials inside them explain."""
    return part.p_adjusted < 1 - level


# ── ratios ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ratios(runs: Sequence[RunView], level: float, smallest_effect: float) -> Iterator[RatioOverBoxes]:
    by_box = [{key_of(each): together_(each) for each in run.comparisons} for run in runs]
    keys = list(dict.fromkeys(key for own in by_box for key in own))
    if not keys:
        return
    table = np.array([_logs_of([own.get(key) for own in by_box]) for key in keys])
    found = over_boxes(table)
    together = family(found, level=level, smallest_effect=smallest_effect)
    further = further_box(found, level)
    columns = (
        found.ratio, found.n, together.p, together.p_adjusted, together.low, together.high, together.low_all,
        together.high_all, together.low_same, together.high_same, together.level_same,
        together.p_equivalent_adjusted, together.needed,
    )  # fmt: skip
    blocks = [by_block(counted(run.measurements)) for run in runs]
    spreads = [spread(_in_blocks(key, by_box, blocks), level=level) for key in keys]
    adjusted = alike_p(spreads, rule_of(runs, level))
    for place, (key, row) in enumerate(zip(keys, zip(*(each.tolist() for each in columns), strict=True), strict=True)):
        on_each = tuple(own.get(key) for own in by_box)
        yield RatioOverBoxes(
            on_each,
            _over(next(each for each in on_each if each), row, level),
            float(further.low[place]),
            float(further.high[place]),
            spreads[place],
            adjusted[place],
        )


def _logs_of(on_each: Sequence[Comparison | None]) -> list[float]:
    """The log ratio of each box, NaN where there is none. Where trials ran into the time limit it is the median of the
    blocks; where this has no value on one box there is none over boxes: the others are not a fair choice of boxes."""
    unknown = any(each is not None and each.censored and not math.isfinite(each.ratio) for each in on_each)
    return [math.nan if unknown else _log_of(each) for each in on_each]


def _log_of(comparison: Comparison | None) -> float:
    known = comparison is not None and 0 < comparison.ratio < math.inf
    return math.log(comparison.ratio) if known and comparison else math.nan


def _over(like: Comparison, row: tuple[Any, ...], level: float) -> Comparison:
    ratio, n, p, p_adjusted, low, high, low_all, high_all, low_same, high_same, level_same, p_same, needed = row
    said = verdict(
        ratio,
        p_adjusted=p_adjusted,
        p_equivalent_adjusted=p_same,
        level=level,
        more_is_better=like.more_is_better,
    )
    return Comparison(
        baseline=like.baseline,
        candidate=like.candidate,
        workload=like.workload,
        tool=like.tool,
        factors=like.factors,
        metric=like.metric,
        label=like.label,
        ratio=ratio,
        low=low,
        high=high,
        n=n,
        level=level,
        p=p,
        p_adjusted=p_adjusted,
        verdict=said,
        method=OVER_BOXES_METHOD,
        low_all=low_all,
        high_all=high_all,
        low_same=low_same,
        high_same=high_same,
        level_same=level_same,
        needed=None if math.isnan(needed) else int(needed),
        better=like.better,
    )


def _in_blocks(
    key: tuple[str, ...],
    by_box: Sequence[Mapping[tuple[str, ...], Comparison]],
    blocks: Sequence[Mapping[tuple[str, str, str], Mapping[int, float]]],
) -> list[list[float]]:
    """The ratios of the blocks of each box; none of a box on which trials ran into the time limit."""
    found = []
    for own, values in zip(by_box, blocks, strict=True):
        comparison = own.get(key)
        logs: list[float] = []
        if comparison and not comparison.censored:
            cells = (cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline))
            ours, theirs = (values.get((cell, comparison.metric, comparison.label), {}) for cell in cells)
            logs = log_ratios(ours, theirs)
        found.append([math.exp(each) for each in logs])
    return found


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats(
    runs: Sequence[RunView], boxes: Sequence[str], figures: Sequence[SharedFigure], absent: Mapping[str, str]
) -> Iterator[Caveat]:
    for name, why in absent.items():
        yield Caveat(
            code="box-missing",
            severity="warning",
            scope="run",
            message=f"{name} has no figures, and nothing here is about it: {in_one_line(why)}",
        )
    yield from _not_everywhere(boxes, figures)
    yield from _at_the_limit(boxes, runs)
    yield from _one_machine(runs, boxes)
    if len(boxes) < FEW_BOXES:
        yield Caveat(
            code="few-boxes",
            severity="note",
            scope="run",
            message=f"{numbers.counted(len(boxes), 'box')} say little about other boxes: intervals over boxes and the "
            "spread between them are wide. Five or more tell.",
        )
    yield Caveat(
        code="one-run-a-box",
        severity="note",
        scope="run",
        message="each box was measured in one run, so that what differs from run to run on one box is part of what "
        "differs between boxes.",
    )
    for name, run in zip(boxes, runs, strict=True):
        yield from caveats_of(name, run, run.sweep.cells)


def _one_machine(runs: Sequence[RunView], boxes: Sequence[str]) -> Iterator[Caveat]:
    """Boxes that are one machine: its second box is no repetition of anything but the run."""
    same: dict[tuple[object, object], list[str]] = {}
    for name, run in zip(boxes, runs, strict=True):
        facts = run.info.get("facts", {})
        if facts.get("hostname"):
            same.setdefault((facts["hostname"], facts.get("cpu_model")), []).append(name)
    for (hostname, _), names in same.items():
        if len(names) > 1:
            yield Caveat(
                code="one-machine",
                severity="warning",
                scope="run",
                message=f"{numbers.listed(names)} have the same host name ({hostname}) and processor. If they are one "
                "machine, they are one box: intervals over boxes are then too narrow, and about runs.",
            )


def _at_the_limit(boxes: Sequence[str], runs: Sequence[RunView]) -> Iterator[Caveat]:
    """Boxes on which ratios are medians, since trials ran into the time limit."""
    for name, run in zip(boxes, runs, strict=True):
        late = [each for each in run.comparisons if each.censored]
        without = sum(not math.isfinite(each.ratio) for each in late)
        if late:
            gone = f" {without} of them have no value, and these have no ratio over boxes." if without else ""
            yield Caveat(
                code="timed-out-ratios",
                severity="warning",
                scope="run",
                message=f"on {name} trials ran into their time limit: {numbers.counted(len(late), 'ratio')} of that "
                f"box are medians over blocks and count so over boxes; their blocks are left out of the spread.{gone}",
            )


def _not_everywhere(boxes: Sequence[str], figures: Sequence[SharedFigure]) -> Iterator[Caveat]:
    without: dict[str, list[str]] = {}
    for each in figures:
        for name, own in zip(boxes, each.values, strict=True):
            if not own:
                without.setdefault(name, []).append(each.cell.id)
    for name, cells in without.items():
        one = list(dict.fromkeys(cells))
        more = f" and {numbers.counted(len(one) - 1, 'more cell')}" if len(one) > 1 else ""
        yield Caveat(
            code="not-on-all-boxes",
            severity="warning",
            scope="run",
            message=f"{name} has no figure of {one[0]}{more}: what is said of these over boxes is said without it.",
        )
