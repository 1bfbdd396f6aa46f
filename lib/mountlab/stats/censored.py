"""Trials that ran into their time limit: what is known of them is that they are worse than every trial that ended.

Such a trial has a rank and no value: it counts as slower than all that ended (worst-rank scores; Lachin 1999). What
ranks allow to say is a median, with the interval of order statistics for any shape of distribution, and for two cells
the median of the ratios inside blocks, with the sign test. A mean of the trials that ended would leave out the slow
ones. Kaplan-Meier gives the same median where all limits are alike; a Tobit model would need the shape of a tail that
was never observed.

Sources: J. M. Lachin, Controlled Clinical Trials 20 (1999) 408; W. J. Dixon & A. M. Mood, J. Am. Stat. Assoc. 41 (1946)
557 (the sign test); W. R. Thompson, Ann. Math. Statist. 7 (1936) 122 (the interval of a median).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.stats.comparisons import Flags, Ratios, logarithms
from mountlab.stats.estimates import NO_INTERVAL, Floats, order_statistic

SIGN_METHOD = "median of the ratios of the blocks, order statistics, trials at their time limit counted as the worst"


@dataclass(frozen=True)
class CensoredEstimate:
    """The median of all trials of a cell where some have no value. NaN where half of them or more have none."""

    figure: float
    low: float
    high: float
    method: str


def estimate_censored(values: Floats, censored: int, *, level: float, worst: float) -> CensoredEstimate:
    """Return the median of `values` and of `censored` trials that are all as bad as `worst` (infinite for a time, 0 for
    a rate, NaN where nothing is known of them: then there is nothing), with the interval of order statistics.

    An end that lies among the censored trials is `worst`; the near end is then the worst of the trials that ended,
    since all censored ones lie beyond it. Where half or more are censored there is no figure, and the near end still
    holds. Too few trials for an interval at this level: it goes from 0 without an end, and `method` says so. Where no
    trial ended (no `values`) all are NaN.
    """
    ordered = np.sort(np.array([*values, *[worst] * censored]))
    n, rank = len(ordered), order_statistic(len(ordered), level)
    limited, known = f"{censored} of {n} trials ran into the time limit", 2 * censored < n
    if math.isnan(worst):
        return CensoredEstimate(math.nan, math.nan, math.nan, f"no figure; {limited}, which bounds no such metric")
    if not len(values):
        return CensoredEstimate(math.nan, math.nan, math.nan, f"no figure; {limited}")
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (0.0, math.inf)
    low, high = (min(low, max(values)), high) if worst > 0 else (low, max(high, min(values)))
    method = f"{'median' if known else 'no figure'}; {limited}{'' if rank else NO_INTERVAL}"
    return CensoredEstimate(float(np.median(ordered)) if known else math.nan, float(low), float(high), method)


@dataclass(frozen=True)
class RankedRatios(Ratios):
    """Ratios where a side ran into its time limit: these are medians, judged by the sign test.

    `logs`: the log ratio of each block, of shape (comparisons, blocks): infinite where one side ran into the limit, NaN
    where nothing is known, as where both did.
    """

    logs: Floats
    ranked: Flags
    """Which of them are medians."""

    @property
    def known(self) -> Flags:
        return np.asarray(np.where(self.ranked, self.n > 1, super().known))

    def p_above(self) -> Floats:
        return self._by_sign(super().p_above(), self.logs > 0)

    def p_below(self) -> Floats:
        return self._by_sign(super().p_below(), self.logs < 0)

    def p(self) -> Floats:
        return np.where(self.ranked, np.minimum(1, 2 * np.minimum(self.p_above(), self.p_below())), super().p())

    def p_equivalent(self, smallest_effect: float) -> Floats:
        """NaN for medians: that two cells are the same is never concluded from trials that did not end."""
        return np.where(self.ranked, math.nan, super().p_equivalent(smallest_effect))

    def log_low(self, tails: Floats) -> Floats:
        return np.where(self.ranked, self._order_statistics(tails, sign=1), super().log_low(tails))

    def log_high(self, tails: Floats) -> Floats:
        return np.where(self.ranked, -self._order_statistics(tails, sign=-1), super().log_high(tails))

    def _by_sign(self, by_t: Floats, favourable: Flags) -> Floats:
        """P(as many or more blocks on this side) where each side is as likely. A ratio of exactly 1 is on neither."""
        own = scipy.special.bdtrc(np.count_nonzero(favourable, axis=1) - 1.0, self.n, 0.5)
        return np.where(self.ranked, np.where(self.known, own, math.nan), by_t)

    def _order_statistics(self, tails: Floats, *, sign: int) -> Floats:
        """Return the lower bound of the median of `sign` times the logs, for each ranked row: the largest order
        statistic that lies above the median with a chance of the row's tail at most; minus infinity where there is
        none."""
        found = np.full(len(self.n), math.nan)
        for row in np.flatnonzero(self.ranked & self.known):
            ordered = np.sort(sign * self.logs[row][~np.isnan(self.logs[row])])
            rank = _lower_rank(len(ordered), float(tails[row]))
            found[row] = ordered[rank - 1] if rank else -math.inf
        return found


@lru_cache(maxsize=4096)
def _lower_rank(n: int, tail: float) -> int:
    """Return the largest k for which the k-th smallest of n values lies above their median with a chance of `tail` at
    most."""
    return int(np.count_nonzero(scipy.special.bdtr(np.arange(float(n)), n, 0.5) <= tail))


def ranked_ratios(ratios: Ratios, sides: tuple[Floats, Floats], late: tuple[Flags, Flags], bad: Floats) -> RankedRatios:
    """Return `ratios` with new values for those that have a censored trial on a side.

    `sides`: values of the candidates and of the baselines, of shape (comparisons, blocks), NaN where there is none;
    `late`: the blocks in which a side ran into its limit; `bad`: of each comparison 1 where a larger value is worse, -1
    where a smaller one is, and NaN where a limit says nothing about the metric: such a ratio has no figure.
    """
    worst = (bad * math.inf)[:, None]
    ours, theirs = (np.where(own, worst, logarithms(values)) for values, own in zip(sides, late, strict=True))
    with np.errstate(invalid="ignore"):  # of two censored sides nothing is known
        logs = ours - theirs
    ranked: Flags = np.any(late[0] | late[1], axis=1)
    logs[ranked & np.isnan(bad)] = math.nan
    n = np.where(ranked, np.count_nonzero(~np.isnan(logs), axis=1), ratios.n).astype(np.int64)
    medians = np.array([_median(row) if mine else math.nan for row, mine in zip(logs, ranked, strict=True)])
    gone = np.where(ranked, math.nan, 1.0)
    whole = replace(
        ratios,
        log_mean=np.where(ranked, medians, ratios.log_mean),
        log_se=ratios.log_se * gone,
        df=ratios.df * gone,
        n=n,
        paired=ratios.paired | ranked,
    )
    return RankedRatios(**vars(whole), logs=logs, ranked=ranked)


def _median(logs: NDArray[np.float64]) -> float:
    """NaN where there is none, as between an infinite value on either side."""
    known = np.sort(logs[~np.isnan(logs)])
    if not len(known):
        return math.nan
    low, high = float(known[(len(known) - 1) // 2]), float(known[len(known) // 2])
    return (low + high) / 2
