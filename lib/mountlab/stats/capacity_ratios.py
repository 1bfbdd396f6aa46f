"""Ratios of capacities that were searched for: of two searches, and as rows of a set of comparisons.

Against a pair of capacities one bets (stats.capacity) with a share of the money on the trials of either search alone,
and with the rest on both, which wins the product of what one wins on each. The product alone would lose where one
search has lost its bets, as those near the capacity do, whatever the other one has won. The sum reaches 1/a with a
chance of a at most (Ville 1939), whichever rates were tried, and whenever the searches ended: no correction for looking
is needed. A ratio is contradicted as much as the least contradicted of the pairs that have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mountlab.stats.capacity import RateTrial, capacity, steps_of
from mountlab.stats.comparisons import Flags, Ratios
from mountlab.stats.estimates import Floats

ALONE = 0.4
"""The share of the money that is bet on the trials of either search alone."""
Searched = tuple[Sequence[RateTrial], Sequence[RateTrial]]
"""The trials of the candidate, and of the baseline."""


class CapacityRatio(NamedTuple):
    """How many times the capacity of another one has, with its interval, and the p value of equal capacities."""

    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class _Pairs:
    """Pairs of capacities."""

    low: Floats
    high: Floats
    """The ratios that each pair allows."""
    wealth: Floats
    """What is won against it, on logarithms."""

    @classmethod
    def of(cls, one: Sequence[RateTrial], other: Sequence[RateTrial]) -> _Pairs:
        ours, theirs = _sides(one), _sides(other)
        low = np.divide.outer(ours[0], theirs[1])
        with np.errstate(divide="ignore"):
            high = np.divide.outer(ours[1], theirs[0])
        alone = math.log(ALONE) + np.logaddexp.outer(ours[2], theirs[2])
        wealth = np.logaddexp(alone, math.log1p(-2 * ALONE) + np.add.outer(ours[2], theirs[2]))
        return cls(low, high, wealth - max(0.0, float(wealth.min())))

    def interval(self, error: float) -> tuple[float, float]:
        """Return the ratios that are not contradicted, wrong with a chance of `error` at most."""
        kept = self.wealth < -math.log(error)
        return float(self.low[kept].min()), float(self.high[kept].max())

    def log_bounds(self, error: float) -> tuple[float, float]:
        """Return the logs of the interval; NaN where it excludes nothing."""
        low, high = self.interval(error)
        if low == 0 and math.isinf(high):
            return math.nan, math.nan
        return math.log(low) if low > 0 else -math.inf, math.log(high)

    def p_at_most(self, ratio: float) -> float:
        """Return p for 'the ratio is at most this'."""
        return min(1.0, math.exp(-float(self.wealth[self.low <= ratio].min())))

    def p_at_least(self, ratio: float) -> float:
        """Return p for 'the ratio is at least this'."""
        return min(1.0, math.exp(-float(self.wealth[self.high >= ratio].min())))

    def p_equal(self) -> float:
        """Return p for 'the ratio is 1'. The interval has no gaps: 1 is in it if a pair at or below 1 is kept, and one
        at or above 1."""
        return min(self.p_at_most(1), self.p_at_least(1))


def ratio(one: Sequence[RateTrial], other: Sequence[RateTrial], level: float = 0.95) -> CapacityRatio:
    """Return how many times the capacity of `other` `one` has. The interval contains 1 exactly where p > 1 - level."""
    pairs = _Pairs.of(one, other)
    first, last = pairs.interval(1 - level)
    quotient = capacity(one, level).estimate / capacity(other, level).estimate
    return CapacityRatio(min(max(quotient, first), last), first, last, pairs.p_equal())


def level_at_end(level: float, compared: int) -> float:
    """Return the level at which searches end whose intervals have this one. It is stricter where so many ratios of
    capacities are compared, for all of them together: in a ratio ALONE of what one search has won counts."""
    return 1 - ALONE * (1 - level) / compared if compared else level


@dataclass(frozen=True)
class SearchedRatios(Ratios):
    """Ratios of capacities. There is no standard error: bounds and p values are those of the bets.

    They are two-sided: a wrong bound on either side is one event, so each tail here stands for half of it.
    """

    pairs: tuple[_Pairs, ...]

    @property
    def known(self) -> Flags:
        return np.asarray(self.n > 0)

    def p_above(self) -> Floats:
        return self._each([own.p_at_most(1) / 2 for own in self.pairs])

    def p_below(self) -> Floats:
        return self._each([own.p_at_least(1) / 2 for own in self.pairs])

    def p(self) -> Floats:
        return self._each([own.p_equal() for own in self.pairs])

    def p_equivalent(self, smallest_effect: float) -> Floats:
        """p of two one-sided tests: both 'at most 1 / (1 + e)' and 'at least 1 + e' are to be contradicted."""
        most = 1 + smallest_effect
        return self._each([max(own.p_at_most(1 / most), own.p_at_least(most)) for own in self.pairs])

    def log_low(self, tails: Floats) -> Floats:
        """NaN, as the upper bound, where the bets exclude no ratio at all: 0 to infinity is no interval."""
        return self._each([own.log_bounds(2 * tail)[0] for own, tail in zip(self.pairs, tails.tolist(), strict=True)])

    def log_high(self, tails: Floats) -> Floats:
        return self._each([own.log_bounds(2 * tail)[1] for own, tail in zip(self.pairs, tails.tolist(), strict=True)])

    def _each(self, values: Sequence[float]) -> Floats:
        return np.where(self.known, np.array(values, dtype=float), math.nan)


def searched_ratios(pairs: Sequence[Searched], level: float = 0.95) -> SearchedRatios:
    """Return the ratio of the capacities of each pair; NaN where the bets exclude no ratio at this level. `n` is the
    number of trials of the side that has fewer."""
    unknown = np.full(len(pairs), math.nan)
    joined = [_Pairs.of(ours, theirs) for ours, theirs in pairs]
    estimates = [_log_estimate(ours) - _log_estimate(theirs) for ours, theirs in pairs]
    bounded = [not math.isnan(own.log_bounds(1 - level)[0]) for own in joined]
    return SearchedRatios(
        log_mean=np.where(bounded, np.array(estimates, dtype=float), math.nan),
        log_se=unknown,
        df=unknown,
        n=np.array([min(map(len, pair)) for pair in pairs], dtype=np.int64),
        paired=np.zeros(len(pairs), dtype=bool),
        pairs=tuple(joined),
    )


def _log_estimate(trials: Sequence[RateTrial]) -> float:
    """Return the logarithm of a capacity; infinite where every trial held, minus infinity where every one failed."""
    found = capacity(trials)
    if not trials or not math.isnan(found.estimate):
        return math.log(found.estimate)
    return math.inf if trials[0].holds else -math.inf


def _sides(trials: Sequence[RateTrial]) -> tuple[Floats, Floats, Floats]:
    """Return the ends of each piece, and the log of what is won against it."""
    if not trials:
        return np.array([0.0]), np.array([math.inf]), np.array([0.0])
    steps = steps_of(trials)
    return steps.left, steps.right, steps.won
