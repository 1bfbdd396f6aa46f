"""Comparisons: ratios of two cells, what they allow to say, and what it would take to say more.

Everything is computed on logarithms and for many comparisons at once: `rows` of shape (comparisons, blocks), NaN where
a block holds nothing. The functions for one comparison call those for many.

One family, one error. A sweep asks many questions at once, so the chance that *any* of its verdicts 'faster' and
'slower' is false, or that any of its intervals for all together misses, is held to 1 - level. Two families of one-sided
tests ("not faster", "not slower") get half of it each, and each is tested step by step as Holm (1979) did: the smallest
p against a/m, and, where that is enough, the next against a/(m - 1), and so on. The intervals that belong to such a
procedure (Strassburger & Bretz 2008; Guilbaud 2008) say of a decided comparison no more than 'above 1'. So a share KEPT
of the error is spent as Bonferroni did, on the sizes: with s comparisons not yet decided of m, the next is tested
against

    a ((1 - KEPT) / s + KEPT / m)

which lies between Bonferroni's a/m and Holm's a/s, and is the same as both at the first step. By the partitioning
principle (Stefansson, Kim & Hsu 1988; Finner & Strassburger 2002) the following bounds then hold all together, however
the comparisons depend on one another: for what is decided, the side towards 1 is at a KEPT/m, and cut at 1; every other
side is at the threshold at which testing stopped; and where all are decided, each is at a/m. Such a share for
informative bounds is the idea of Schmidt & Brannath (2014). An interval for all together lies on one side of 1 exactly
where the verdict is 'faster' or 'slower' (or would be, were the two not shown to be the same within the margin).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mountlab.model import Until, Verdict
from mountlab.stats import power, sequential
from mountlab.stats.estimates import Floats, checked, moments

RATIO_METHOD = "ratio of geometric means, t interval on logs, paired by block"
WELCH_METHOD = "ratio of geometric means, Welch's t interval on logs, not paired: too many blocks hold only one side"
PAIRED_SHARE = 0.75
"""Of the values of two cells: how many must stand in a pair for the comparison to be paired."""
KEPT = 0.2
"""Of the error: the share that pays for the sizes in intervals for all together (see the module)."""
_ABOVE_1 = float(np.nextafter(1, 2))
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Ratio:
    """The ratio candidate / baseline.

    `p` is two-sided, for 'the ratio is 1'; NaN for n < 2. n counts pairs, or the values of the smaller side.
    """

    ratio: float
    low: float
    high: float
    n: int
    level: float
    p: float
    log_mean: float
    log_se: float
    df: float
    method: str = RATIO_METHOD


@dataclass(frozen=True)
class Ratios:
    """Many ratios as columns, each of shape (comparisons,): mean, standard error and degrees of freedom of their
    logarithms. The last two are NaN where there is no interval. `n` as in Ratio."""

    log_mean: Floats
    log_se: Floats
    df: Floats
    n: NDArray[np.int64]
    paired: Flags

    @property
    def ratio(self) -> Floats:
        """The ratios themselves; NaN where no value stands against another."""
        return _exp(self.log_mean)

    def p_above(self) -> Floats:
        """One-sided p for 'the ratio is 1 or less'."""
        return _tail(self.log_mean, self.log_se, self.df)

    def p_below(self) -> Floats:
        """One-sided p for 'the ratio is 1 or more'."""
        return _tail(-self.log_mean, self.log_se, self.df)

    def p(self) -> Floats:
        """Two-sided p for 'the ratio is 1'."""
        p = 2 * _tail(np.abs(self.log_mean), self.log_se, self.df)
        return np.where((self.log_se == 0) & (self.log_mean == 0), 1.0, p)

    def p_equivalent(self, smallest_effect: float) -> Floats:
        """p of two one-sided tests for 'the ratio lies within 1/(1+e) and 1+e' (Schuirmann 1987)."""
        return _tail(math.log1p(smallest_effect) - np.abs(self.log_mean), self.log_se, self.df)

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """The t interval of each ratio by itself, end points transformed back."""
        tails = np.full(len(self.n), (1 - level) / 2)
        return _exp(self.log_low(tails)), _exp(self.log_high(tails))

    @property
    def known(self) -> Flags:
        """Which of them have an interval."""
        return ~np.isnan(self.log_se)

    def log_low(self, tails: Floats) -> Floats:
        """The lower bound of each logarithm, that misses with a chance of its tail."""
        return self.log_mean - _half_width(tails, self.log_se, self.df)

    def log_high(self, tails: Floats) -> Floats:
        """The upper bound."""
        return self.log_mean + _half_width(tails, self.log_se, self.df)


def compare(pairs: Sequence[tuple[float, float]], *, level: float = 0.95) -> Ratio:
    """Ratio of (candidate, baseline) pairs, one pair a block: the t interval of the mean log ratio, its end points
    transformed back. Swapping the sides gives exactly the reciprocal interval.

    n < 2: bounds and p are NaN. Raises ValueError for values that are not positive and finite.
    """
    flat = _positive([value for pair in pairs for value in pair], level)
    rows = flat.reshape(len(pairs), 2).T
    return _first(compare_rows(rows[:1], rows[1:]), level)


def compare_unpaired(candidate: Sequence[float], baseline: Sequence[float], *, level: float = 0.95) -> Ratio:
    """Ratio of two samples that share no blocks: the t interval of the difference of mean logs with Welch's standard
    error and the degrees of freedom of the smaller side (see `_welch`), its end points transformed back. Unequal
    spreads and unequal n are allowed for.

    Fewer than 2 values on a side: bounds and p are NaN. Raises ValueError for values that are not positive and finite.
    """
    sides = [np.log(_positive(side, level))[None, :] for side in (candidate, baseline)]
    mean, se, df = _welch(*sides)
    n = np.array([min(len(candidate), len(baseline))])
    return _first(Ratios(mean, se, df, n, np.array([False])), level)


def compare_rows(candidate: Floats, baseline: Floats) -> Ratios:
    """Many ratios at once, from values of shape (comparisons, blocks), NaN where a block holds none. Values that are
    not positive have no ratio and count as missing.

    Paired by block where at least PAIRED_SHARE of all values stand in pairs, and where a side has fewer than two
    values; else by Welch, which uses every value but lets the differences between blocks stand as noise. Which one it
    is depends on what is missing, never on the values.
    """
    ours, theirs = _logs(candidate), _logs(baseline)
    differences = ours - theirs
    counts = [np.count_nonzero(~np.isnan(side), axis=1) for side in (differences, ours, theirs)]
    pairs, least = counts[0], np.minimum(counts[1], counts[2])
    paired = ((pairs > 1) & (2 * pairs >= PAIRED_SHARE * (counts[1] + counts[2]))) | (least < 2)
    found = np.full((3, len(ours)), math.nan)
    found[:, paired] = _paired(differences[paired])
    found[:, ~paired] = _welch(ours[~paired], theirs[~paired])
    mean, se, df = found
    return Ratios(mean, se, df, np.where(paired, pairs, least), paired)


def compare_rows_unpaired(candidate: Floats, baseline: Floats) -> Ratios:
    """Many ratios of samples that share no blocks, by Welch, from values of shape (comparisons, n) with an n for each
    side, NaN where a sample is shorter. Values that are not positive have no ratio and count as missing.

    A side with fewer than two values has a ratio and no interval; one with none has neither. `n` is that of the side
    with fewer values.
    """
    ours, theirs = _logs(candidate), _logs(baseline)
    mean, se, df = _welch(ours, theirs)
    least = np.minimum(*(np.count_nonzero(~np.isnan(side), axis=1) for side in (ours, theirs)))
    return Ratios(mean, se, df, least, np.zeros(len(least), dtype=bool))


def p_equivalent(ratio: Ratio, smallest_effect: float) -> float:
    """p of two one-sided tests for 'the ratio lies within 1/(1+e) and 1+e' (Schuirmann 1987); NaN where there is no
    interval."""
    return float(_as_rows(ratio).p_equivalent(smallest_effect)[0])


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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
class Family:
    """All comparisons of a sweep together, as columns of shape (comparisons,)."""

    p: Floats
    p_adjusted: Floats
    low: Floats
    high: Floats
    """Interval of each by itself."""
    low_all: Floats
    high_all: Floats
    """Intervals that hold all together."""
    p_equivalent_adjusted: Floats
    needed: Floats
    """Blocks that would decide, at a power of 80 %; NaN where it is decided, has no interval, or none would do."""


def family(ratios: Ratios, *, level: float, smallest_effect: float, until: Until | None = None) -> Family:
    """Everything that the comparisons of one sweep say together. With `until`, p values and levels are those that hold
    after having looked again and again."""
    above, below = (_real_p(each, until) for each in (ratios.p_above(), ratios.p_below()))
    adjusted_above, adjusted_below = step_down(above), step_down(below)
    decided = [2 * each < 1 - level for each in (adjusted_above, adjusted_below)]
    low_all = _joint_bound(ratios.log_low, ratios.known, decided[0], level, until)
    with np.errstate(divide="ignore"):
        high_all = 1 / _joint_bound(lambda tails: -ratios.log_high(tails), ratios.known, decided[1], level, until)
    low, high = ratios.bounds(_real_level(level, until))
    p_same = np.array(holm(_real_p(ratios.p_equivalent(smallest_effect), until)))
    open_ = ratios.known & ~decided[0] & ~decided[1] & ~(p_same < 1 - level)
    return Family(
        p=_two_sided(ratios.p(), until), p_adjusted=np.minimum(1, 2 * np.minimum(adjusted_above, adjusted_below)),
        low=low, high=high, low_all=low_all, high_all=high_all, p_equivalent_adjusted=p_same,
        needed=np.where(open_, needed_blocks(ratios, int(open_.sum()), level, smallest_effect), math.nan),
    )  # fmt: skip


def _joint_bound(
    bound_at: Callable[[Floats], Floats], known: Flags, decided: Flags, level: float, until: Until | None
) -> Floats:
    """The lower bounds that hold together, given which ratios have an interval and which of these are decided to be
    above 1. `bound_at`: their logarithms, from the chance that each may miss with."""
    count, undecided = int(known.sum()), int((known & ~decided).sum())
    if not count:
        return np.full(len(known), math.nan)
    share = KEPT if undecided else 1.0
    rates = np.where(decided, share / count, share_of_error(max(undecided, 1), count, KEPT))
    levels = {rate: _real_level(1 - (1 - level) * rate, until) for rate in np.unique(rates)}
    tails = np.array([(1 - levels[rate]) / 2 for rate in rates])
    bound = _exp(bound_at(tails))
    return np.where(decided, np.maximum(bound, _ABOVE_1), np.minimum(bound, 1.0))


def share_of_error(undecided: int | NDArray[np.int64], count: int, kept: float = KEPT) -> float | Floats:
    """The share of the error for the next of `undecided` comparisons, out of `count`."""
    return (1 - kept) / undecided + kept / max(count, 1)


def verdict(
    ratio: float, *, p_adjusted: float, p_equivalent_adjusted: float, level: float, more_is_better: bool
) -> Verdict:
    """What the comparison allows to say: 'same' where equivalence is shown, 'faster' or 'slower' where a difference
    is shown, 'undecided' else, and where a p value is not known (NaN). Both must be adjusted over the same family."""
    if p_equivalent_adjusted < 1 - level:
        return "same"
    if p_adjusted < 1 - level:
        return "faster" if (ratio > 1) == more_is_better else "slower"
    return "undecided"


# ── what it would take ───────────────────────────────────────────────────────────────────────────────────────────────


def needed_blocks(ratios: Ratios, undecided: int, level: float, smallest_effect: float) -> Floats:
    """How many blocks would decide each comparison with a chance of 80 %, if ratio and spread are what was measured:
    that it differs, or that it is the same within the margin, whichever takes fewer. Shape (comparisons,); at least
    one more than there are; NaN where power.MOST_BLOCKS would not do.

    By stats.power, at the level at which `undecided` comparisons of the sweep are still to be tested.
    That two are the same takes both one-sided tests; each is given half of what may go wrong, which is a little more
    than it takes. A ratio that happens to lie near the margin takes very many blocks either way, and rightly so.
    """
    spread, effect = ratios.log_se * np.sqrt(ratios.n), np.abs(ratios.log_mean)
    count = max(int(ratios.known.sum()), 1)
    error = (1 - level) * float(share_of_error(max(undecided, 1), count, KEPT))
    margin = np.maximum(math.log1p(smallest_effect) - effect, 0)
    with np.errstate(over="ignore"):
        differs = power.needed_blocks(np.exp(effect), spread, level=1 - error)
        same_level = max(1 - 2 * (1 - level) / max(undecided, 1), 0.01)
        same = power.needed_blocks(np.exp(margin), spread, power=(1 + power.POWER) / 2, level=same_level)
    found = np.fmin(differs, same)
    return np.where(np.isinf(found), math.nan, np.maximum(found, ratios.n + 1.0))


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _first(ratios: Ratios, level: float) -> Ratio:
    low, high = ratios.bounds(level)
    columns = (ratios.ratio, low, high, ratios.p(), ratios.log_mean, ratios.log_se, ratios.df)
    ratio, lower, upper, p, log_mean, log_se, df = (float(column[0]) for column in columns)
    method = RATIO_METHOD if ratios.paired[0] else WELCH_METHOD
    return Ratio(ratio, lower, upper, int(ratios.n[0]), level, p, log_mean, log_se, df, method)


def _as_rows(ratio: Ratio) -> Ratios:
    mean, se, df = (np.array([each]) for each in (ratio.log_mean, ratio.log_se, ratio.df))
    return Ratios(mean, se, df, np.array([ratio.n]), np.array([ratio.method == RATIO_METHOD]))


def _positive(values: Sequence[float], level: float) -> Floats:
    sample = checked(values, level)
    if np.any(sample <= 0):
        raise ValueError("a ratio needs positive values")
    return sample


def _logs(values: Floats) -> Floats:
    return np.log(values, out=np.full(values.shape, math.nan), where=values > 0)


def _paired(differences: Floats) -> Floats:
    """Mean, standard error and degrees of freedom of each row of (comparisons, blocks), NaN left out, as three rows."""
    n = np.count_nonzero(~np.isnan(differences), axis=1)
    mean, sd = _moments_of_known(differences, n)
    return np.array([mean, sd / np.sqrt(np.maximum(n, 1)), np.where(n > 1, n - 1.0, math.nan)])


def _welch(ours: Floats, theirs: Floats) -> Floats:
    """The same of the difference between the means of two tables.

    Degrees of freedom: one less than the smaller side has values. Those of Satterthwaite (1946), which are usual, are
    right near 5 %, and much too many in the far tails in which a family of comparisons is decided: of 40 A/A
    comparisons of 2 values with 10, one in two would hold a false verdict. With these the error is never above what is
    claimed (Hsu 1938; Hayter 2013).
    """
    counts = [np.count_nonzero(~np.isnan(side), axis=1) for side in (ours, theirs)]
    (mean, sd), (other_mean, other_sd) = (_moments_of_known(s, n) for s, n in zip((ours, theirs), counts, strict=True))
    variance = sum(s**2 / np.maximum(n, 1) for s, n in zip((sd, other_sd), counts, strict=True))
    df = np.where(np.isnan(variance), math.nan, np.maximum(np.minimum(*counts) - 1.0, 1))
    return np.array([mean - other_mean, np.sqrt(variance), df])


def _moments_of_known(rows: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of what each row holds; NaN where it holds too little."""
    known, found = ~np.isnan(rows), np.full((2, len(rows)), math.nan)
    for size in np.unique(n[n > 0]):
        own = n == size
        values = rows[own][known[own]].reshape(-1, size)
        if size == 1:
            found[0, own] = values[:, 0]
        else:
            found[:, own] = moments(values)
    return found[0], found[1]


def _exp(x: Floats) -> Floats:
    """e**x; infinite where that is beyond floating point, as a bound from two very different pairs may be."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x))


def _tail(distance: Floats | float, se: Floats, df: Floats) -> Floats:
    """P(T >= distance / se). Without any spread the answer is certain; a distance of 0 then shows nothing."""
    distance = np.asarray(distance)
    statistic = np.divide(distance, se, out=np.copysign(np.full(se.shape, math.inf), distance), where=se != 0)
    p = np.asarray(special.stdtr(df, -statistic))
    return np.where((se == 0) & (distance == 0), 1.0, p)


def _half_width(tails: Floats, se: Floats, df: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(se == 0, 0.0, np.abs(special.stdtrit(df, tails)) * se)


def _real_level(level: float, until: Until | None) -> float:
    return level if until is None else sequential.nominal_level(until, level)


def _real_p(p: Floats, until: Until | None) -> Floats:
    return p if until is None else sequential.true_p_one_sided(p, until)


def _two_sided(p: Floats, until: Until | None) -> Floats:
    return p if until is None else sequential.true_p(p, until)
