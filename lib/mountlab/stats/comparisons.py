"""Comparisons: ratios of two cells, each by itself. stats.adjusted has what they allow to say together.

Everything is computed on logarithms and for many comparisons at once: `rows` of shape (comparisons, blocks), NaN where
a block holds nothing. The functions for one comparison call those for many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.stats import serial
from mountlab.stats.estimates import Floats, checked, moments
from mountlab.stats.rounding import alike, common_variance

RATIO_METHOD = "ratio of geometric means, t interval on logs, paired by block"
WELCH_METHOD = "ratio of geometric means, Welch's t interval on logs, not paired: fewer than 4 blocks hold both sides"
FEWEST_PAIRS = 4
"""From so many pairs on a comparison is paired, however many values have no partner."""
Steps = tuple[Floats | float, Floats | float]
"""The step to which the values of the candidate and of the baseline are rounded, in their unit, one for all or one a
comparison; 0 where it is not known."""
_UNKNOWN: Steps = (0.0, 0.0)
LEAST_LEVEL = 1e-9
TAIL_FIT = 4.5
"""How soon more values make the degrees of freedom of Satterthwaite safe in a far tail: see welch_df."""
NEVER, _SECANTS = 1e-300, 7
_FEW = 30
"""Up to so many quantiles of t take no longer than to find which of them are equal."""
ABOVE_1 = float(np.nextafter(1, 2))
Flags = NDArray[np.bool_]
Pools = NDArray[np.int64] | None
TwoSides = tuple[Floats, Floats]
"""Values of candidates and of baselines, (comparisons, blocks) each."""
_Rounded = tuple[Floats, Floats | float]
"""Values, and the step to which they are rounded."""


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
    """The mean of the logarithms of the ratios."""
    log_se: float
    """Its standard error."""
    df: float
    """Its degrees of freedom."""
    method: str = RATIO_METHOD


@dataclass(frozen=True)
class Ratios:
    """Many ratios as columns, each of shape (comparisons,): mean, standard error and degrees of freedom of their
    logarithms. The last two are NaN where there is no interval: n < 2, or no spread and no step. `n` as in Ratio. Where
    a ratio is not paired, `df` are those of Satterthwaite, and tests and bounds use `df_at`."""

    log_mean: Floats
    log_se: Floats
    df: Floats
    n: NDArray[np.int64]
    paired: Flags

    @property
    def ratio(self) -> Floats:
        """The ratios themselves; NaN where no value stands against another."""
        return exponential(self.log_mean)

    def p_above(self) -> Floats:
        """Return one-sided p for 'the ratio is 1 or less'."""
        return self._beyond(self.log_mean)

    def p_below(self) -> Floats:
        """Return one-sided p for 'the ratio is 1 or more'."""
        return self._beyond(-self.log_mean)

    def p(self) -> Floats:
        """Return the two-sided p for 'the ratio is 1'."""
        return 2 * self._beyond(np.abs(self.log_mean))

    def p_equivalent(self, smallest_effect: float) -> Floats:
        """p of two one-sided tests for 'the ratio lies within 1/(1+e) and 1+e' (Schuirmann 1987)."""
        return self._beyond(math.log1p(smallest_effect) - np.abs(self.log_mean))

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the t interval of each ratio by itself, end points transformed back."""
        tails = np.full(len(self.n), (1 - level) / 2)
        return exponential(self.log_low(tails)), exponential(self.log_high(tails))

    @property
    def known(self) -> Flags:
        """Which of them have an interval."""
        return ~np.isnan(self.log_se)

    def planned(self) -> tuple[NDArray[np.int64], Floats]:
        """Return how many units each rests on, and how much one of these varies: what a plan for more is made of."""
        return self.n, self.log_se * np.sqrt(self.n)

    def log_low(self, tails: Floats) -> Floats:
        """Return the lower bound of each logarithm, that misses with a chance of its tail."""
        return self.log_mean - half_width(tails, self.log_se, self.df_at(tails))

    def log_high(self, tails: Floats) -> Floats:
        """Return the upper bound."""
        return self.log_mean + half_width(tails, self.log_se, self.df_at(tails))

    def df_at(self, tails: Floats) -> Floats:
        """Return the degrees of freedom for a one-sided test at each of `tails`: of a pair those of its t; else see
        welch_df."""
        return np.where(self.paired, self.df, welch_df(self.df, self.n, tails))

    def _beyond(self, distance: Floats) -> Floats:
        """P(T >= distance / se), by the degrees of freedom that belong to that very tail."""
        p, own = tail(distance, self.log_se, self.df), ~self.paired & (self.log_se > 0)
        if own.any():
            p[own] = _welch_tail(distance[own] / self.log_se[own], self.df[own], self.n[own])
        return p


def compare(pairs: Sequence[tuple[float, float]], *, level: float = 0.95, steps: Steps = _UNKNOWN) -> Ratio:
    """Ratio of (candidate, baseline) pairs, one pair a block: the t interval of the mean log ratio, its end points
    transformed back. Swapping the sides gives exactly the reciprocal interval.

    `steps`: to what each side is rounded, which the interval then contains (stats.rounding). Bounds and p are NaN for
    n < 2, and where the spread is unknown: all ratios are alike and no step is known. Raises ValueError for values that
    are not positive and finite.
    """
    flat = _positive([value for pair in pairs for value in pair], level)
    rows = flat.reshape(len(pairs), 2).T
    return _first(compare_rows(rows[:1], rows[1:], steps=steps), level)


def compare_unpaired(
    candidate: Sequence[float], baseline: Sequence[float], *, level: float = 0.95, steps: Steps = _UNKNOWN
) -> Ratio:
    """Ratio of two samples that share no blocks: the t interval of the difference of mean logs with Welch's standard
    error and degrees of freedom for its tail (see `welch_df`), its end points transformed back. Unequal spreads and
    unequal n are allowed for.

    Fewer than 2 values on a side, or no spread on both and no step: bounds and p are NaN. `steps` as in `compare`.
    Raises ValueError for values that are not positive and finite.
    """
    rows = [_positive(side, level)[None, :] for side in (candidate, baseline)]
    return _first(compare_rows_unpaired(rows[0], rows[1], steps=steps), level)


def compare_rows(candidate: Floats, baseline: Floats, *, steps: Steps = _UNKNOWN, pools: Pools = None) -> Ratios:
    """Many ratios at once, from values of shape (comparisons, blocks), NaN where a block holds none. Values that are
    not positive have no ratio and count as missing. `steps` as in `compare`.

    Paired by block where `is_paired` says so; else by Welch, which uses every value but lets the differences between
    blocks stand as noise. With `pools`, which say what comparisons are of the same blocks, paired ones allow for ratios
    that are like those of the neighbouring blocks (stats.serial).
    """
    return _compare_parts(((candidate, steps[0]),), ((baseline, steps[1]),), pools)


def compare_row_ratios(
    first: TwoSides, second: TwoSides, *, steps: tuple[Steps, Steps] = (_UNKNOWN, _UNKNOWN), pools: Pools = None
) -> Ratios:
    """Ratios of two ratios, each of a (candidate, baseline) inside blocks: by how much the first ratio is larger than
    the second. Values, `steps` and `pools` as in `compare_rows`; so is what makes them paired, with the blocks in which
    a ratio has both of its sides.
    """
    ours, theirs = (tuple(zip(sides, step, strict=True)) for sides, step in zip((first, second), steps, strict=True))
    return _compare_parts(ours, theirs, pools)


def _compare_parts(ours: Sequence[_Rounded], theirs: Sequence[_Rounded], pools: Pools) -> Ratios:
    """Compare sides of one part, or of two parts: then a side is the ratio of these."""
    logs = [_log_ratio([logarithms(values) for values, _ in parts]) for parts in (ours, theirs)]
    differences = logs[0] - logs[1]
    pairs, *counts = (np.count_nonzero(~np.isnan(each), axis=1) for each in (differences, *logs))
    paired = is_paired(pairs, counts[0], counts[1])
    alone = paired[:, None] & np.isnan(differences)  # such a value takes no part in a paired comparison
    left, right = (_side_of(parts, own, alone) for parts, own in zip((ours, theirs), logs, strict=True))
    found = np.full((3, len(paired)), math.nan)
    found[:, paired] = _paired(differences[paired], left.only(paired), right.only(paired))
    found[:, ~paired] = _welch(left.only(~paired), right.only(~paired))
    mean, se, df = found
    if pools is not None:
        correlation = np.where(paired, serial.pooled(_serial(differences, pairs), pairs, pools), 0.0)
        se, df = se * serial.error_factor(correlation, pairs), serial.effective(df, correlation)
    return Ratios(mean, se, df, np.where(paired, pairs, np.minimum(counts[0], counts[1])), paired)


def _log_ratio(logs: Sequence[Floats]) -> Floats:
    return logs[0] if len(logs) == 1 else logs[0] - logs[1]


def _side_of(parts: Sequence[_Rounded], logs: Floats, alone: Flags) -> Side:
    """Return a side without the values that are `alone`; each part is rounded by itself, and dithered by its own
    spread."""
    missing = alone | np.isnan(logs)
    sides = [Side.of(np.where(missing, math.nan, logarithms(values)), step) for values, step in parts]
    return sides[0] if len(sides) == 1 else sides[0].over(sides[1])


def _serial(rows: Floats, n: NDArray[np.int64]) -> Floats:
    """Return the correlation of neighbours among what each row holds, `n` values; 0 where it holds none."""
    known, found = ~np.isnan(rows), np.zeros(len(rows))
    for size in np.unique(n[n > 0]):
        own = n == size
        found[own] = serial.of_rows(rows[own][known[own]].reshape(-1, size))
    return found


def is_paired(pairs: NDArray[np.int64], ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> Flags:
    """Return whether comparisons are paired, by the number of their pairs and of the values of each side, arrays of one
    shape.

    They are from FEWEST_PAIRS on, and where every value of one side has a partner: what slows down a whole block then
    cancels. So it depends on what is missing, never on the values. A side with fewer than two values has no interval
    either way.
    """
    least = np.minimum(ours, theirs)
    return np.asarray((pairs >= FEWEST_PAIRS) | (pairs == least) | (least < 2))


def compare_rows_unpaired(
    candidate: Floats, baseline: Floats, *, steps: Steps = _UNKNOWN, covered: Steps = (0.0, 0.0)
) -> Ratios:
    """Many ratios of samples that share no blocks, by Welch, from values of shape (comparisons, n) with an n for each
    side, NaN where a sample is shorter. Values that are not positive have no ratio and count as missing. `steps` as in
    `compare`. `covered`: the share of the variance of a value of each side that something else accounts for, 1 / n
    being all of what its n values leave (stats.run_spread).

    A side with fewer than two values has a ratio and no interval; one with none has neither. `n` is that of the side
    with fewer values.
    """
    ours, theirs = (Side.of(logarithms(side), step) for side, step in zip((candidate, baseline), steps, strict=True))
    mean, se, df = _welch(ours, theirs, covered)
    return Ratios(mean, se, df, np.minimum(ours.n, theirs.n), np.zeros(len(mean), dtype=bool))


def p_equivalent(ratio: Ratio, smallest_effect: float) -> float:
    """p of two one-sided tests for 'the ratio lies within 1/(1+e) and 1+e' (Schuirmann 1987); NaN where there is no
    interval."""
    return float(as_rows(ratio).p_equivalent(smallest_effect)[0])


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _first(ratios: Ratios, level: float) -> Ratio:
    low, high = ratios.bounds(level)
    columns = (ratios.ratio, low, high, ratios.p(), ratios.log_mean, ratios.log_se, ratios.df)
    ratio, lower, upper, p, log_mean, log_se, df = (float(column[0]) for column in columns)
    method = RATIO_METHOD if ratios.paired[0] else WELCH_METHOD
    return Ratio(ratio, lower, upper, int(ratios.n[0]), level, p, log_mean, log_se, df, method)


def as_rows(ratio: Ratio) -> Ratios:
    """Return one ratio as a row, for what computes many at once."""
    mean, se, df = (np.array([each]) for each in (ratio.log_mean, ratio.log_se, ratio.df))
    return Ratios(mean, se, df, np.array([ratio.n]), np.array([ratio.method == RATIO_METHOD]))


def _positive(values: Sequence[float], level: float) -> Floats:
    sample = checked(values, level)
    if np.any(sample <= 0):
        raise ValueError("a ratio needs positive values")
    return sample


def logarithms(values: Floats) -> Floats:
    """Of values of any shape; NaN where a value is missing or not positive."""
    return np.log(values, out=np.full(values.shape, math.nan), where=values > 0)


def log_step(values: Floats, step: Floats | float) -> Floats:
    """Return the steps of the logarithms of values (rows, n) that are rounded to `step`: its shares of their geometric
    means. NaN for a row without a positive value."""
    return Side.of(logarithms(values), step).step


@dataclass(frozen=True)
class Side:
    """One side of many comparisons, on logarithms."""

    logs: Floats
    """(comparisons, blocks), NaN where a value is missing."""
    n: NDArray[np.int64]
    mean: Floats
    sd: Floats
    step: Floats
    """That of the logarithms: the step as a share of the geometric mean; of a ratio the root of the sum of squares."""
    common: Floats
    """The variance of what rounding adds to all values alike."""

    @classmethod
    def of(cls, logs: Floats, step: Floats | float) -> Side:
        n = np.count_nonzero(~np.isnan(logs), axis=1)
        mean, sd = moments_of_known(logs, n)
        log_step = step * exponential(-mean)
        return cls(logs, n, mean, sd, log_step, common_variance(log_step, sd))

    def only(self, rows: Flags) -> Side:
        return Side(*(getattr(self, field.name)[rows] for field in fields(self)))

    def over(self, other: Side) -> Side:
        """Return the ratio of two sides inside blocks."""
        ratio = Side.of(self.logs - other.logs, 0.0)
        step = np.sqrt(self.step**2 + other.step**2)
        return replace(ratio, step=step, common=self.common + other.common)


def _paired(differences: Floats, ours: Side, theirs: Side) -> Floats:
    """Return mean, standard error and degrees of freedom of each row of (comparisons, blocks), NaN left out, as three
    rows.

    Rounding is dithered by what differs between blocks, too, so how much of it is common to all trials follows from the
    spread of each side. The differences may be alike all the same; they then vary no less than rounding does.
    """
    n = np.count_nonzero(~np.isnan(differences), axis=1)
    mean, sd = moments_of_known(differences, n)
    least = (ours.step**2 + theirs.step**2) / 12
    variance = np.maximum(sd**2 / np.maximum(n, 1) + ours.common + theirs.common, least / np.maximum(n, 1))
    unknown = alike(sd, _size(ours, theirs)) & (least == 0)
    return _unless_unknown(mean, variance, np.where(n > 1, n - 1.0, math.nan), unknown)


def _welch(ours: Side, theirs: Side, covered: Steps = (0.0, 0.0)) -> Floats:
    """Return the same of the difference between the means of two sides: with Welch's standard error (1947) and the
    degrees of freedom of Satterthwaite (1946), which `welch_df` makes fit for far tails. What rounding adds has no
    sample behind it, and so no part in these."""
    sides = zip((ours, theirs), covered, strict=True)
    parts = [side.sd**2 * np.maximum(1 / np.maximum(side.n, 1) - share, 0) for side, share in sides]
    sampled = parts[0] + parts[1]
    shares = [np.divide(part, sampled, out=np.full(len(part), 0.5), where=sampled > 0) for part in parts]
    counts = [np.maximum(side.n - 1.0, 1) for side in (ours, theirs)]
    df = 1 / (shares[0] ** 2 / counts[0] + shares[1] ** 2 / counts[1])
    variance = sampled + ours.common + theirs.common
    size = _size(ours, theirs)
    unknown = np.isnan(variance) | (alike(ours.sd, size) & alike(theirs.sd, size) & (ours.step + theirs.step == 0))
    return _unless_unknown(ours.mean - theirs.mean, variance, df, unknown)


def _size(ours: Side, theirs: Side) -> Floats:
    """Return how large the logarithms are, at least 1: their last bits are no spread."""
    return np.maximum(np.maximum(np.abs(ours.mean), np.abs(theirs.mean)), 1.0)


def _unless_unknown(mean: Floats, variance: Floats, df: Floats, unknown: Flags) -> Floats:
    """Return mean, standard error and degrees of freedom; the last two NaN where nothing is known of the spread."""
    return np.array([mean, *(np.where(unknown, math.nan, each) for each in (np.sqrt(variance), df))])


def welch_df(df: Floats, n: NDArray[np.int64], tails: Floats) -> Floats:
    """Return the degrees of freedom for a test of Welch's t at one-sided `tails`: between those of the smaller side, n
    - 1, and those of Satterthwaite, `df`.

    n - 1 are never too many (Hsu 1938; Hayter 2013). Those of Satterthwaite are right near 5 %, and too many in the far
    tails in which a family is decided: where one side varies ten times as much as the other, 5 values a side reject
    2 times too often at 0.06 % and 8 times at 0.001 %. How far to go between the two depends on n and on the tail, and
    not on the data: 1 - exp(-4.5 (n - 3) / ln(tail)^2). That was fitted to the exact error of the test, an integral
    over the ratio of the two sample variances: for 2 to 50 values beside as many or up to six times as many, tails from
    5 % to 1e-8 and any ratio of variances, it stays below 1.05 of what is claimed.
    """
    least = np.maximum(n - 1.0, 1)
    way = -np.expm1(-TAIL_FIT * np.maximum(n - 3.0, 0) / np.log(np.minimum(tails, 0.5)) ** 2)
    return np.asarray(least + way * (df - least))


def _welch_tail(t: Floats, df: Floats, n: NDArray[np.int64]) -> Floats:
    """Return the p with P(T >= t) = p, where the degrees of freedom are those of `welch_df` at p. It lies between the p
    values of `df` and of n - 1. Secants on its logarithm find it, since the distance is nearly linear there.
    """
    size = np.abs(t)
    ends = [np.log(np.maximum(scipy.special.stdtr(each, -size), NEVER)) for each in (df, np.maximum(n - 1.0, 1))]
    last, log_p = ends
    off = _off(last, size, df, n)
    for _ in range(_SECANTS):
        now = _off(log_p, size, df, n)
        step = np.divide(now * (log_p - last), now - off, out=np.zeros_like(now), where=now != off)
        last, log_p, off = log_p, np.clip(log_p - step, *ends), now
    return np.asarray(np.where(t < 0, -np.expm1(log_p), np.exp(log_p)))


def _off(log_p: Floats, size: Floats, df: Floats, n: NDArray[np.int64]) -> Floats:
    """Return how far a p is from that of its own degrees of freedom, on logarithms."""
    own = scipy.special.stdtr(welch_df(df, n, np.exp(log_p)), -size)
    return np.asarray(log_p - np.log(np.maximum(own, NEVER)))


def moments_of_known(rows: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of what each row holds; NaN where it holds too little."""
    known, found = ~np.isnan(rows), np.full((2, len(rows)), math.nan)
    for size in np.unique(n[n > 0]):
        own = n == size
        values = rows[own][known[own]].reshape(-1, size)
        if size == 1:
            found[0, own] = values[:, 0]
        else:
            found[:, own] = moments(values)
    return found[0], found[1]


def exponential(x: Floats) -> Floats:
    """e**x; infinite where that is beyond floating point, as a bound from two very different pairs may be."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x))


def tail(distance: Floats | float, se: Floats, df: Floats) -> Floats:
    """P(T >= distance / se)."""
    return np.asarray(scipy.special.stdtr(df, -distance / se))


def half_width(tails: Floats, se: Floats, df: Floats) -> Floats:
    """Return how far an interval on logarithms reaches to a side whose tail has this share.

    Of many comparisons most have the same degrees of freedom and the same tail: each such pair is computed once, but
    where there are _FEW.
    """
    if df.size <= _FEW:
        return np.asarray(np.abs(scipy.special.stdtrit(df, tails)) * se)
    pairs, places = np.unique(df + 1j * tails, return_inverse=True)
    return np.asarray(np.abs(scipy.special.stdtrit(pairs.real, pairs.imag))[places] * se)
