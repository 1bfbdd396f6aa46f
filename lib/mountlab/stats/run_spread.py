"""The ratio of two runs, where a run has a level of its own: what differs between trials, and what between runs.

Trials know the spread inside their run. How much the level of a run differs by itself, trials of one run cannot know:
earlier runs tell it, or it is assumed. The variance of the difference D of two log means is then a sum of parts v_i,
each estimated with its own degrees of freedom f_i, and each bound reaches as far as

    h(tail)^2 = sum of t(f_i; tail)^2 v_i

(Banerjee, Sankhya 22, 1960). For any number of trials and runs and any ratio of the parts, D lies farther than h off
with a chance of at most twice the tail: D^2 over its variance V is chi-square with one degree of freedom, whose
distribution function F is concave, so F(sum w_i t_i^2 v_i / V_i), with w_i = V_i / V, is at least sum w_i F(t_i^2 v_i /
V_i), and each of these is 1 - 2 tail on average. The same holds where one part is Welch's (comparisons.welch_df) with
its own error. With one part alone it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.stats import comparisons
from mountlab.stats.adjusted import KEPT, share_of_error
from mountlab.stats.comparisons import Ratios, Steps, half_width
from mountlab.stats.estimates import Floats

RUNS_METHOD = "ratio of geometric means of two runs, Welch's t for trials and t for what runs differ by, on logs"
ASSUMED = 0.05
"""What runs are taken to differ by where nothing is known: the standard deviation of the level of a run, as a share."""
_HALVINGS = 50


@dataclass(frozen=True)
class RunSpread:
    """How much the level of a run differs by itself, for one side of many comparisons, as columns (comparisons,)."""

    variance: Floats
    """Of its logarithm."""
    degrees: Floats
    """Those of the variance; infinite where it is assumed."""
    covered: Floats
    """The share of the variance of a trial that `variance` contains: of runs with n trials 1 / n, where it is that of
    their means; 0 where it is assumed."""

    @classmethod
    def assumed(cls, sd: float, comparisons: int) -> RunSpread:
        column = np.ones(comparisons)
        return cls(sd**2 * column, math.inf * column, 0 * column)


RunSpreads = tuple[RunSpread, RunSpread]
"""Of the candidate and of the baseline."""


@dataclass(frozen=True)
class RatiosOfRuns(Ratios):
    """Ratios of two runs. `log_se` and `df` are those inside the runs, beyond what `spreads` cover."""

    spreads: RunSpreads

    @property
    def run_variance(self) -> Floats:
        """What runs differ by, in the variance of each ratio."""
        return np.asarray(sum(side.variance for side in self.spreads))

    def planned(self) -> tuple[NDArray[np.int64], Floats]:
        """One run a side, and how much the ratio of two runs varies: more trials of the same runs are no more runs."""
        return np.ones(len(self.n), dtype=np.int64), np.sqrt(self.log_se**2 + self.run_variance)

    def log_low(self, tails: Floats) -> Floats:
        return self.log_mean - self._reach(tails)

    def log_high(self, tails: Floats) -> Floats:
        return self.log_mean + self._reach(tails)

    def _reach(self, tails: Floats) -> Floats:
        squares = half_width(tails, self.log_se, self.df_at(tails)) ** 2
        for side in self.spreads:
            squares = squares + half_width(tails, np.sqrt(side.variance), side.degrees) ** 2
        return np.sqrt(squares)

    def _beyond(self, distance: Floats) -> Floats:
        """Return the tail whose bound lies just as far off, by halving its logarithm: the bound falls with the tail."""
        size = np.abs(distance)
        low, high = np.full(len(size), math.log(comparisons.NEVER)), np.full(len(size), math.log(0.5))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            farther = self._reach(np.exp(middle)) > size
            low, high = np.where(farther, middle, low), np.where(farther, high, middle)
        p = np.exp((low + high) / 2)
        return np.where(self.known, np.where(distance < 0, 1 - p, p), math.nan)


def compare_rows_of_runs(candidate: Floats, baseline: Floats, spreads: RunSpreads, *, steps: Steps) -> Ratios:
    """Return the ratios of two runs, as `compare_rows_unpaired` does, with what runs differ by themselves. Where that
    is nothing, they are the same."""
    covered = (spreads[0].covered, spreads[1].covered)
    inside = comparisons.compare_rows_unpaired(candidate, baseline, steps=steps, covered=covered)
    found = RatiosOfRuns(**vars(inside), spreads=spreads)
    return found if found.run_variance.any() else inside


def break_even(inside: Ratios, distance: Floats, tail_at: Callable[[float], float]) -> Floats:
    """Return by how much runs may differ (the sd of the logarithm of a level) with each ratio still decided to lie on
    its side: `distance` is how far, on logarithms. NaN where it is not decided even if runs do not differ at all.

    `inside`: ratios with the spread inside the runs only. `tail_at`: the tail of a test from its share of the error.
    Testing goes step by step, the r-th smallest p at a tail a_r; with an sd of s a ratio has a p below a_r as long as
    2 (z s)^2 < distance^2 - h^2, its bound and z being those of a_r. So there is one largest s for each ratio and
    step. Step r is reached while r ratios have that much at it, and at each step before it. All of it is exact.
    """
    known = np.flatnonzero(inside.known & (distance > 0))
    count = int(inside.known.sum())
    found = np.full(len(distance), math.nan)
    if not len(known):
        return found
    largest = np.full((len(known), count), -1.0)
    for step in range(len(known)):  # no more are ever decided on this side
        tail = tail_at(float(share_of_error(count - step, count, KEPT)))
        reach = inside.log_mean - inside.log_low(np.full(len(distance), tail))
        room = (distance**2 - reach**2)[known]
        z = abs(float(scipy.special.ndtri(tail)))
        largest[:, step] = np.where(room > 0, np.sqrt(np.maximum(room, 0) / 2) / z, -1.0)
    ordered = -np.sort(-largest[:, : len(known)], axis=0)
    reached = np.minimum.accumulate(np.diagonal(ordered))
    best = np.minimum(reached, largest[:, : len(known)]).max(axis=1)
    found[known] = np.where(best >= 0, best, math.nan)
    return found


def columns(sides: Sequence[tuple[float, float, float]]) -> RunSpread:
    """Return a side from the variance, degrees of freedom and covered share of each comparison."""
    variance, degrees, covered = np.array(sides, dtype=float).reshape(-1, 3).T
    return RunSpread(variance, degrees, covered)
