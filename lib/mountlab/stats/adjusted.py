"""p values and intervals adjusted for all comparisons of a set together, and the verdicts that hold for all of them.

One family, one error. A sweep asks many questions at once, so the chance that *any* of its verdicts 'faster' and
'slower' is false, or that any of its intervals for all together misses, is held to 1 - level. Two families of one-sided
tests ("not faster", "not slower") get half of it each, and each is tested step by step as Holm (1979) did: the smallest
p against a/m, and, where that is enough, the next against a/(m - 1), and so on. The intervals that belong to such a
procedure (Strassburger & Bretz 2008; Guilbaud 2008) show for a decided comparison only 'above 1'. So a share KEPT
of the error is spent as Bonferroni did, on the sizes: with s comparisons not yet decided of m, the next is tested
against

    a ((1 - KEPT) / s + KEPT / m)

which lies between Bonferroni's a/m and Holm's a/s, and is the same as both at the first step. By the partitioning
principle (Stefansson, Kim & Hsu 1988; Finner & Strassburger 2002) the following bounds then hold all together, however
the comparisons depend on one another: for what is decided, the side towards 1 is at a KEPT/m, and cut at 1; every other
side is at the threshold at which testing stopped; and where all are decided, each is at a/m. Such a share for
informative bounds is the idea of Schmidt & Brannath (2014). An interval for all together lies on one side of 1 exactly
where the verdict is 'faster' or 'slower' (or would be, were the two not shown to be the same within the margin).

mountlab.core.findings.Comparison, which holds the result, says where it is kept and shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mountlab.core.findings import Interval, Verdict
from mountlab.core.model import RepeatedLooks, Until
from mountlab.stats import power, sequential
from mountlab.stats.comparisons import ABOVE_1, LEAST_LEVEL, Flags, Ratios, exponential
from mountlab.stats.estimates import Floats

KEPT = 0.2
"""Of the error: the share that pays for the sizes in intervals for all together (see the module)."""


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """p values adjusted for the whole family by Holm (1979), in the order given. NaN stays NaN and is not counted."""
    return [float(p) for p in step_down(np.asarray(p_values, dtype=float), kept=0.0)]


def step_down(p_values: Floats, *, kept: float = KEPT) -> Floats:
    """p values adjusted for the whole family, step by step: by Holm with `kept` 0, by Bonferroni with 1, and in between
    as the module says. NaN stays NaN and is not counted."""
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    undecided = len(order) - np.arange(len(order))
    adjusted = np.full(len(p_values), math.nan)
    adjusted[order] = np.minimum(
        1, np.maximum.accumulate(p_values[order] / share_of_error(undecided, len(order), kept))
    )
    return adjusted


@dataclass(frozen=True)
class Intervals:
    """An interval for each comparison, as columns of shape (comparisons,). NaN where there is none."""

    low: Floats
    high: Floats
    level: Floats

    def __iter__(self) -> Iterator[Interval]:
        """Yield them one by one."""
        return map(Interval, self.low.tolist(), self.high.tolist(), self.level.tolist())


@dataclass(frozen=True)
class ComparisonSet:
    """All comparisons of a sweep together, as columns of shape (comparisons,)."""

    p: Floats
    p_adjusted: Floats
    own: Intervals
    """Of each by itself."""
    joint: Intervals
    """They hold all together."""
    p_equivalent_adjusted: Floats
    equivalence: Intervals
    """Where equivalence is shown, those of its two one-sided tests; NaN elsewhere."""
    is_open: Flags
    """Which have an interval and are not decided."""
    would: WouldDecide
    """What would decide these: `needed` and `reduce`, computed when they are asked for."""

    @cached_property
    def needed(self) -> Floats:
        """Blocks that would decide, at a power of 80 %; NaN where it is decided or has no interval, infinite where they
        are too many (power.too_many)."""
        return np.where(self.is_open, self.would.needed(), math.nan)

    @cached_property
    def reduce(self) -> Floats:
        """The factor by which the noise must fall so that power.blocks_when_quieter(n) blocks decide; NaN as
        `needed`."""
        return np.where(self.is_open, self.would.reduce(), math.nan)


def adjust_comparisons(
    ratios: Ratios, *, level: float, smallest_effect: float, repeated_looks: RepeatedLooks | None = None
) -> ComparisonSet:
    """Adjust p values and intervals of comparisons for one another. With `repeated_looks`
    they also hold after a look after each block, or after each part of an extended run."""
    adjusted_above, adjusted_below = adjusted_sides(ratios, repeated_looks)
    decided = [2 * each < 1 - level for each in (adjusted_above, adjusted_below)]
    levels = np.full(len(ratios.n), level)
    p_same = step_down(_real_p(ratios.p_equivalent(smallest_effect), repeated_looks), kept=0.0)
    is_open = ratios.known & ~decided[0] & ~decided[1] & ~(p_same < 1 - level)
    return ComparisonSet(
        p=ratios.p() if repeated_looks is None else sequential.true_p(ratios.p(), repeated_looks),
        p_adjusted=np.minimum(1, 2 * np.minimum(adjusted_above, adjusted_below)),
        own=Intervals(*ratios.bounds(sequential.level_after(repeated_looks, level)), levels),
        joint=Intervals(*joint_bounds(ratios, decided, level, repeated_looks), levels),
        p_equivalent_adjusted=p_same,
        equivalence=_equivalence(ratios, p_same, level, repeated_looks),
        is_open=is_open,
        would=WouldDecide.of(ratios, int(is_open.sum()), level, smallest_effect),
    )


def look_level(until: Until, comparisons: int) -> float:
    """Return the level at which a stopping rule looks at its intervals.

    `of: cells` looks at each by itself. `of: comparisons` looks at the widest interval for all together that one of
    `comparisons` can have, whatever the verdicts of the others will be: at KEPT of Bonferroni's share. So what is
    narrow enough when a workload stops is so in the report, and whether it stops depends on spreads alone, not on
    ratios. Two comparisons or more; a single one has its own interval.
    """
    joint = until.of == "comparisons" and comparisons > 1
    share = KEPT / comparisons if joint else 1.0
    return sequential.nominal_level(until, 1 - (1 - until.confidence) * share)


def _equivalence(ratios: Ratios, p_same: Floats, level: float, repeated_looks: RepeatedLooks | None) -> Intervals:
    """Return the intervals that two one-sided tests use; NaN where equivalence is not shown.

    A one-sided test at a is rejected where the interval at 1 - 2 a ends before the margin (Westlake 1981; Schuirmann
    1987). Of m comparisons with s shown to be the same, Holm tested the last of these at a / (m - s + 1) and the
    others at less: at this threshold all of their intervals lie inside the margin.
    """
    same = p_same < 1 - level
    share = 1 / (int((~np.isnan(p_same)).sum() - same.sum()) + 1)
    claimed = max(1 - 2 * (1 - level) * share, LEAST_LEVEL)
    low, high = (
        np.where(same, each, math.nan) for each in ratios.bounds(sequential.level_after(repeated_looks, claimed))
    )
    return Intervals(low, high, np.where(same, claimed, math.nan))


def adjusted_sides(ratios: Ratios, repeated_looks: RepeatedLooks | None) -> tuple[Floats, Floats]:
    """Return the one-sided p values for 'the ratio is 1 or less' and for '1 or more', adjusted over all ratios."""
    return step_down(_real_p(ratios.p_above(), repeated_looks)), step_down(_real_p(ratios.p_below(), repeated_looks))


def joint_bounds(
    ratios: Ratios, decided: Sequence[Flags], level: float, repeated_looks: RepeatedLooks | None
) -> tuple[Floats, Floats]:
    """Lower and upper bounds that hold together, given which ratios are shown to be above 1, and which below."""
    low = _joint_bound(ratios.log_low, ratios.known, decided[0], level, repeated_looks)
    with np.errstate(divide="ignore", over="ignore"):
        return low, 1 / _joint_bound(
            lambda tails: -ratios.log_high(tails), ratios.known, decided[1], level, repeated_looks
        )


def _joint_bound(
    bound_at: Callable[[Floats], Floats],
    known: Flags,
    decided: Flags,
    level: float,
    repeated_looks: RepeatedLooks | None,
) -> Floats:
    """Return the lower bounds that hold together, given which ratios have an interval and which of these are decided to
    be above 1. `bound_at`: their logarithms, from the chance that each may miss with."""
    count, undecided = int(known.sum()), int((known & ~decided).sum())
    if not count:
        return np.full(len(known), math.nan)
    share = KEPT if undecided else 1.0
    rates = share / count, float(share_of_error(max(undecided, 1), count, KEPT))
    levels = [sequential.level_after(repeated_looks, 1 - (1 - level) * rate) for rate in rates]
    tails = np.where(decided, *((1 - each) / 2 for each in levels))
    bound = exponential(bound_at(tails))
    return np.where(decided, np.maximum(bound, ABOVE_1), np.minimum(bound, 1.0))


def share_of_error(undecided: int | NDArray[np.int64], count: int, kept: float = KEPT) -> float | Floats:
    """Return the share of the error for the next of `undecided` comparisons, out of `count`."""
    return (1 - kept) / undecided + kept / max(count, 1)


def verdict(
    ratio: float, *, p_adjusted: float, p_equivalent_adjusted: float, level: float, more_is_better: bool
) -> Verdict:
    """Return what the comparison allows to say: 'same' where equivalence is shown, 'faster' or 'slower' where a
    difference is shown, 'undecided' else, and where a p value is not known (NaN). Both must be adjusted over the same
    family."""
    if p_equivalent_adjusted < 1 - level:
        return "same"
    if p_adjusted < 1 - level:
        return "faster" if (ratio > 1) == more_is_better else "slower"
    return "undecided"


@dataclass(frozen=True)
class WouldDecide:
    """What would decide comparisons, if ratio and spread are what was measured: that it differs, or that it is the same
    within the margin, whichever takes less. By stats.power, at the level at which `undecided` of them are still to be
    tested, with a chance of 80 %. That two are the same takes both one-sided tests; each is given half of what may go
    wrong, which is a little more than it takes. A ratio that happens to lie near the margin takes very many blocks
    either way, and rightly so."""

    n: NDArray[np.int64]
    spread: Floats
    """Of the log ratios of blocks."""
    effect: Floats
    margin: Floats
    """How far the ratio lies inside of the margin; 0 where it does not."""
    level: float
    level_same: float

    @classmethod
    def of(cls, ratios: Ratios, undecided: int, level: float, smallest_effect: float) -> WouldDecide:
        effect, count = np.abs(ratios.log_mean), max(int(ratios.known.sum()), 1)
        error = (1 - level) * float(share_of_error(max(undecided, 1), count, KEPT))
        margin = np.maximum(math.log1p(smallest_effect) - effect, 0)
        level_same = max(1 - 2 * (1 - level) / max(undecided, 1), 0.01)
        return cls(*ratios.planned(), effect, margin, 1 - error, level_same)

    def needed(self) -> Floats:
        """Return the blocks that it would take, at least one more than there are; infinite where they are too many
        (power.too_many)."""
        most = np.minimum(power.most_named(self.n), power.MOST_BLOCKS)
        with np.errstate(over="ignore"):
            differs = power.needed_blocks(np.exp(self.effect), self.spread, level=self.level, most=most)
            same = power.needed_blocks(np.exp(self.margin), self.spread, power=_EACH, level=self.level_same, most=most)
        return np.asarray(np.maximum(np.fmin(differs, same), self.n + 1.0))

    def reduce(self) -> Floats:
        """Return the factor by which the spread must fall so that power.blocks_when_quieter(n) blocks do."""
        n = power.blocks_when_quieter(self.n)
        differs = power.smallest_effects(n, level=self.level)
        same = power.smallest_effects(n, power=_EACH, level=self.level_same)
        largest = np.maximum(self.effect / differs, self.margin / same)
        unknown = np.full(len(self.spread), math.nan)
        return np.asarray(np.divide(self.spread, largest, out=unknown, where=largest > 0))


_EACH = (1 + power.POWER) / 2
"""The power that each of two one-sided tests is given."""


def _real_p(p: Floats, repeated_looks: RepeatedLooks | None) -> Floats:
    return p if repeated_looks is None else sequential.true_p_one_sided(p, repeated_looks)
