"""The ratios of one sweep over several boxes, the box being a random factor: what holds on boxes like them.

Each box counts by one value, since blocks on one box are no repetitions of the box (stats.over_boxes). How much of what
varies lies between boxes, and how much between the blocks of one, is in stats.between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

import numpy as np

from mountlab.analysis.compare.comparisons import AnswerOverRuns, Sides, comparisons_of, key_of
from mountlab.analysis.compare.figures import repeated_looks_of
from mountlab.analysis.measurements import by_block, counted, log_ratios
from mountlab.analysis.run_view import AnsweredRun
from mountlab.core.findings import Comparison
from mountlab.stats import OVER_BOXES_METHOD, adjust_comparisons
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.stats.over_boxes import further_box, over_boxes
from mountlab.wording.verdicts import cell_id


@dataclass(frozen=True)
class RatioOverBoxes(AnswerOverRuns):
    """One comparison of the sweep, on every box and over them."""

    over: Comparison
    """Over boxes: `n` and `needed` count boxes; the verdict and the joint interval hold for all such ratios
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


def ratios_over_boxes(runs: Sequence[AnsweredRun], level: float, smallest_effect: float) -> Iterator[RatioOverBoxes]:
    """Yield every comparison that a box has, in the order of the boxes, corrected over all of them."""
    by_box = [{key_of(one): one for one in run.comparisons} for run in runs]
    keys = dict.fromkeys(key for comparisons in by_box for key in comparisons)
    answers = [tuple(comparisons.get(key) for comparisons in by_box) for key in keys]
    if not answers:
        return
    ratios = over_boxes(np.array(list(map(_logs_of, answers))))
    sides = (Sides.like(next(one for one in on_each if one)) for on_each in answers)
    joint = adjust_comparisons(ratios, level=level, smallest_effect=smallest_effect)
    over = comparisons_of(
        sides, ratios, joint, level=level, method=OVER_BOXES_METHOD, noise=lambda places: ["boxes"] * len(places)
    )
    further = further_box(ratios, level)
    blocks = [by_block(counted(run.measurements)) for run in runs]
    spreads = [spread(list(map(_in_blocks, on_each, blocks)), level=level) for on_each in answers]
    adjusted = alike_p(spreads, repeated_looks_of(runs, level))
    columns = (answers, over, further.low.tolist(), further.high.tolist(), spreads, adjusted)
    yield from starmap(RatioOverBoxes, zip(*columns, strict=True))


def _logs_of(on_each: Sequence[Comparison | None]) -> list[float]:
    """Return the log ratio of each box, NaN where there is none. Where trials ran into the time limit it is the median
    of the blocks; where this has no value on one box there is none over boxes: the others are not a fair choice of
    boxes."""
    unknown = any(one is not None and one.censored and not math.isfinite(one.ratio) for one in on_each)
    ratios = [math.nan if unknown or one is None else one.ratio for one in on_each]
    return [math.log(ratio) if 0 < ratio < math.inf else math.nan for ratio in ratios]


def _in_blocks(
    comparison: Comparison | None, values: Mapping[tuple[str, str, str], Mapping[int, float]]
) -> list[float]:
    """Return the ratios of the blocks of a box; none of a box on which trials ran into the time limit."""
    if comparison is None or comparison.censored:
        return []
    cells = (cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline))
    ours, theirs = (values.get((cell, comparison.metric, comparison.label), {}) for cell in cells)
    return [math.exp(ratio) for ratio in log_ratios(ours, theirs).values()]
