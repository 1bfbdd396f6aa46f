"""One sweep on several boxes, the box being a random factor: does its answer hold on each, and on boxes like them?

Ratios: that of each box is one value, since blocks on one box are no repetitions of the box (stats.over_boxes). Figures
and ratios: how much of what varies lies between boxes, and how much between the trials of one (stats.between).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap

import numpy as np
import pandas as pd

from mountlab.analysis.cells import by_block, counted, log_ratios
from mountlab.analysis.compare import figures, frames
from mountlab.analysis.compare.comparisons import AnswerOverRuns, Sides, comparisons_of, key_of
from mountlab.analysis.compare.differences import Difference, caveats_of, differences, unequal_work
from mountlab.analysis.run_view import Measured, RunView
from mountlab.analysis.same_cells import aligned
from mountlab.analysis.verdicts import cell_id, together
from mountlab.checks.base import of_run
from mountlab.core import numbers
from mountlab.core.errors import PlanError, in_one_line
from mountlab.core.findings import Caveat, Comparison
from mountlab.stats import OVER_BOXES_METHOD, family
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.stats.over_boxes import further_box, over_boxes

FEW_BOXES = 5
"""With fewer, an interval over boxes is 1.4 times as wide as the same spread would give with many, or worse."""
_FEWEST = 2


@dataclass(frozen=True)
class RatioOverBoxes(AnswerOverRuns):
    """One comparison of the sweep, on every box and over them."""

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
    def turns(self) -> bool:
        """Whether it is shown to be faster on one box and slower on another."""
        return {"faster", "slower"} <= self.verdicts.keys()

    @property
    def holds(self) -> bool:
        """Whether every box that has it gives the same verdict, and not 'undecided'."""
        return self.agrees and "undecided" not in self.verdicts


@dataclass(frozen=True, repr=False)
class Across:
    """The results of one sweep on several boxes: figures, comparisons and caveats."""

    runs: tuple[RunView, ...]
    """The run on each box, in the order of `boxes`."""
    boxes: tuple[str, ...]
    """The boxes that have figures."""
    ratios: tuple[RatioOverBoxes, ...]
    """Each ratio to the baseline over all boxes, with the spread between boxes."""
    cells: tuple[figures.CellOverRuns, ...]
    """Each cell and metric on all boxes."""
    differences: tuple[Difference, ...]
    """What differs between the boxes themselves."""
    caveats: tuple[Caveat, ...]
    """Reasons to doubt that concern several boxes."""
    level: float
    smallest_effect: float
    """The smallest effect that matters, as a share."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Boxes of the sweep without any figure, and why."""

    @property
    def trials(self) -> pd.DataFrame:
        """The trials of all boxes, as `Run.trials`, with the box in front of the index."""
        return pd.concat({name: run.trials for name, run in zip(self.boxes, self.runs, strict=True)}, names=["box"])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the boxes."""
        return self.boxes

    @property
    def only_in(self) -> Mapping[str, Sequence[str]]:
        """The boxes that have them to the cells that other boxes do not have."""
        return frames.cells_not_in_all(self.runs, self.boxes)

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row for each comparison of the sweep and box, with the interval that holds for all of that box; and for
        each comparison over all boxes."""
        return frames.verdict_frame(self.ratios, self.boxes, [together(each.over) for each in self.ratios])

    @property
    def figures(self) -> pd.DataFrame:
        """One row for each figure of a cell and box: the mean with its interval inside the box's run."""
        rows = [
            frames.figure_row(name, each.cell, each.metric, each.label, one)
            for each in self.cells
            for name, one in zip(self.boxes, each.estimates, strict=True)
            if one
        ]
        return pd.DataFrame(rows, columns=list(frames.FIGURE_COLUMNS))

    def __repr__(self) -> str:
        """Without the runs."""
        return f"<Across {', '.join(self.boxes)}>"


def box_of(run: Measured) -> str:
    """Return the name of the box of a run."""
    return str(run.info.get("box", {}).get("name", run.sweep.box))


def across_boxes(runs: Sequence[RunView], missing: Mapping[str, str] | None = None) -> Across:
    """Return runs of one sweep, one a box; `missing`: boxes that have none, and why.

    Raises PlanError for two runs of one box, for fewer than two boxes with a figure, and for runs without a cell in
    common.
    """
    measured, absent = _measured(aligned(runs), dict(missing or {}))
    boxes, level = tuple(map(box_of, measured)), figures.level_of(measured)
    smallest = figures.smallest_effect_of(measured)
    shared = figures.shared_figures(measured, whole=True)
    common = [figures.common_cells(measured[0].sweep, other.sweep) for other in measured[1:]]
    found = differences(measured[0], measured[1:], common)
    return Across(
        runs=tuple(measured),
        boxes=boxes,
        ratios=tuple(_ratios(measured, level, smallest)),
        cells=tuple(figures.over_runs(measured, shared, level)),
        differences=tuple(each for each in found if each.what != "box"),  # their names differ: that is the factor
        level=level,
        smallest_effect=smallest,
        caveats=(*_caveats(measured, boxes, shared, absent), *unequal_work(measured, boxes, found, common)),
        missing=absent,
    )


def _measured(runs: Sequence[RunView], absent: dict[str, str]) -> tuple[list[RunView], dict[str, str]]:
    """Return the runs that have a figure, and the boxes that have none."""
    names = list(map(box_of, runs))
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise PlanError(
            "a box has two runs here",
            where="across boxes",
            got=twice[0],
            allowed="one run a box",
            next_step="mountlab compare RUN RUN ... says how much runs of one box differ",
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


# ── ratios ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ratios(runs: Sequence[RunView], level: float, smallest_effect: float) -> Iterator[RatioOverBoxes]:
    by_box = [{key_of(each): together(each) for each in run.comparisons} for run in runs]
    answers = [tuple(own.get(key) for own in by_box) for key in dict.fromkeys(key for own in by_box for key in own)]
    if not answers:
        return
    found = over_boxes(np.array(list(map(_logs_of, answers))))
    sides = (Sides.like(next(each for each in on_each if each)) for on_each in answers)
    joint = family(found, level=level, smallest_effect=smallest_effect)
    over = comparisons_of(
        sides, found, joint, level=level, method=OVER_BOXES_METHOD, noise=lambda places: ["boxes"] * len(places)
    )
    further = further_box(found, level)
    blocks = [by_block(counted(run.measurements)) for run in runs]
    spreads = [spread(list(map(_in_blocks, on_each, blocks)), level=level) for on_each in answers]
    adjusted = alike_p(spreads, figures.rule_of(runs, level))
    columns = (answers, over, further.low.tolist(), further.high.tolist(), spreads, adjusted)
    yield from starmap(RatioOverBoxes, zip(*columns, strict=True))


def _logs_of(on_each: Sequence[Comparison | None]) -> list[float]:
    """Return the log ratio of each box, NaN where there is none. Where trials ran into the time limit it is the median
    of the blocks; where this has no value on one box there is none over boxes: the others are not a fair choice of
    boxes."""
    unknown = any(each is not None and each.censored and not math.isfinite(each.ratio) for each in on_each)
    ratios = [math.nan if unknown or each is None else each.ratio for each in on_each]
    return [math.log(ratio) if 0 < ratio < math.inf else math.nan for ratio in ratios]


def _in_blocks(
    comparison: Comparison | None, values: Mapping[tuple[str, str, str], Mapping[int, float]]
) -> list[float]:
    """Return the ratios of the blocks of a box; none of a box on which trials ran into the time limit."""
    if comparison is None or comparison.censored:
        return []
    cells = (cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline))
    ours, theirs = (values.get((cell, comparison.metric, comparison.label), {}) for cell in cells)
    return [math.exp(each) for each in log_ratios(ours, theirs).values()]


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats(
    runs: Sequence[RunView], boxes: Sequence[str], shared: Sequence[figures.SharedFigure], absent: Mapping[str, str]
) -> Iterator[Caveat]:
    for name, why in absent.items():
        what = f"{name} has no figures, and nothing here is about it: {in_one_line(why)}"
        yield of_run("box-missing", "warning", what)
    yield from _not_everywhere(boxes, shared)
    yield from _at_the_limit(boxes, runs)
    yield from _one_machine(runs, boxes)
    if len(boxes) < FEW_BOXES:
        yield of_run(
            "few-boxes",
            "note",
            f"{numbers.counted(len(boxes), 'box')} say little about other boxes: intervals over boxes and the "
            "spread between them are wide. Five or more tell.",
        )
    yield of_run(
        "one-run-a-box",
        "note",
        "each box was measured in one run, so that what differs from run to run on one box is part of what "
        "differs between boxes.",
    )
    for name, run in zip(boxes, runs, strict=True):
        yield from caveats_of(name, run, run.sweep.cells)


def _one_machine(runs: Sequence[RunView], boxes: Sequence[str]) -> Iterator[Caveat]:
    """Yield boxes that are one machine: its second box is no repetition of anything but the run."""
    same: dict[tuple[object, object], list[str]] = {}
    for name, run in zip(boxes, runs, strict=True):
        facts = run.info.get("facts", {})
        if facts.get("hostname"):
            same.setdefault((facts["hostname"], facts.get("cpu_model")), []).append(name)
    for (hostname, _), names in same.items():
        if len(names) > 1:
            yield of_run(
                "one-machine",
                "warning",
                f"{numbers.listed(names)} have the same host name ({hostname}) and processor. If they are one "
                "machine, they are one box: intervals over boxes are then too narrow, and about runs.",
            )


def _at_the_limit(boxes: Sequence[str], runs: Sequence[RunView]) -> Iterator[Caveat]:
    """Yield boxes on which ratios are medians, since trials ran into the time limit."""
    for name, run in zip(boxes, runs, strict=True):
        late = [each for each in run.comparisons if each.censored]
        without = sum(not math.isfinite(each.ratio) for each in late)
        if late:
            gone = f" {without} of them have no value, and these have no ratio over boxes." if without else ""
            yield of_run(
                "timed-out-ratios",
                "warning",
                f"on {name} trials ran into their time limit: {numbers.counted(len(late), 'ratio')} of that "
                f"box are medians over blocks and count so over boxes; their blocks are left out of the spread.{gone}",
            )


def _not_everywhere(boxes: Sequence[str], shared: Sequence[figures.SharedFigure]) -> Iterator[Caveat]:
    without: dict[str, list[str]] = {}
    for each in shared:
        for name, own in zip(boxes, each.values, strict=True):
            if not own:
                without.setdefault(name, []).append(each.cell.id)
    for name, cells in without.items():
        one = list(dict.fromkeys(cells))
        more = f" and {numbers.counted(len(one) - 1, 'more cell')}" if len(one) > 1 else ""
        yield of_run(
            "not-on-all-boxes",
            "warning",
            f"{name} has no figure of {one[0]}{more}: the results over boxes leave it out there.",
        )
