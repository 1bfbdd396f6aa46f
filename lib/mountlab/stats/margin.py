"""Many figures against a margin: which are shown to be worse than it allows, which are shown not to be, which neither.

Everything is on logarithms and in 'times as bad': 1.04 is 4 % worse, whichever way is better. There are two families of
one-sided tests, 'not worse than the margin' and 'not within it', each with all of 1 - level: of all figures together,
the chance that any is called worse that is not is at most 1 - level, and so is the chance that any is called fine that
is not. Both are tested step by step, and the bounds belong to the tests, as stats.adjusted does for a ratio of 1
(its module says how, and by whom); here the ratio that is tested is the one at the margin.

These errors hold over all looks at one question (stats.looks): each look has a share of 1 - level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.core.model import Correction
from mountlab.stats import comparisons
from mountlab.stats import looks as looking
from mountlab.stats.adjusted import adjusted_sides, joint_bounds, share_of_error
from mountlab.stats.comparisons import Flags, Ratios, Steps
from mountlab.stats.estimates import Floats
from mountlab.stats.looks import Looks, Unit
from mountlab.stats.power import POWER
from mountlab.stats.rounding import alike, common_variance

_LEAST = 1e-6
"""No two-sided level is below this, however much error one allows oneself."""
_STEEP, _FAR = 30, 1e4
"""A critical value above which (two or three values of a side) the power counts as 0, since the series of the
noncentral t need not converge there; and a distance that is infinite for it."""


@dataclass(frozen=True)
class AgainstMargin:
    """Figures against a margin, as columns of shape (figures,). NaN where there is no interval."""

    worse: Floats
    """How many times as bad the change is as the baseline."""
    low: Floats
    high: Floats
    """Bounds of it, each of which holds for all figures together, over all looks."""
    n: NDArray[np.int64]
    """Values of the smaller side."""
    margin: float
    counted: int
    """How many values of the smaller side this look counts, of the figure that has most."""
    left_out: bool
    """Whether it leaves out values of either side: those after the last look."""
    forecast: Callable[[], tuple[Floats, Floats]]
    """`needed` and `seen`, computed when they are asked for."""

    @property
    def needed(self) -> Floats:
        """Values of each side with which no change at all would be shown to be fine, and one of twice the margin to be
        worse; more than there are. NaN where it is decided or no spread is known, infinite where no number would do."""
        return self._forecast[0]

    @property
    def seen(self) -> Floats:
        """The same if the change is what was seen."""
        return self._forecast[1]

    @cached_property
    def _forecast(self) -> tuple[Floats, Floats]:
        return self.forecast()

    @property
    def fails(self) -> Flags:
        """Shown to be worse than the margin allows."""
        return np.asarray(self.low > 1 + self.margin)

    @property
    def passes(self) -> Flags:
        """Shown not to be."""
        return np.asarray(self.high <= 1 + self.margin)


@dataclass(frozen=True)
class _MarginTest:
    """What is asked of all figures together, and how."""

    margin: float
    level: float
    until: Correction | None
    unit: Unit
    looks: Looks

    def wrong(self, change: int, baseline: int) -> float:
        """Return the chance of an error that a look at so many values of each side may have, over all figures."""
        n = change + baseline if self.unit == "run" else min(change, baseline)
        return (1 - self.level) * looking.share(n, self.unit, self.looks)

    def counted(self, change: Floats, baseline: Floats) -> list[Floats]:
        """Return the values of each side that this look counts: under a rule all, else of blocks as many of either
        side."""
        if self.until or self.unit == "run" or self.looks == "once":
            return [change, baseline]
        last = looking.counted(min(change.shape[1], baseline.shape[1]), self.unit)
        return [change[:, :last], baseline[:, :last]]


def against_margin(
    change: Floats,
    baseline: Floats,
    *,
    more_is_better: Flags,
    margin: float,
    level: float = 0.95,
    until: Correction | None = None,
    steps: Steps = (0.0, 0.0),
    unit: Unit = "block",
    looks: Looks = "any",
) -> AgainstMargin:
    """Return values of shape (figures, n) in the order in which they were measured, with an n for each side, NaN at the
    end where there are fewer; what is not positive counts as missing. `until`: a rule by which the values were stopped.
    `steps`: to what each side is rounded, as in `compare`.

    Of blocks by Welch's t (compare_rows_unpaired), from as many of either side, up to the last look. Of runs by
    Student's t with the spread of both sides together, so that a side may be a single run: runs are taken to differ as
    much on either side. A rule has looks of its own, so with `until` all values count.
    """
    asked = _MarginTest(margin, level, until, unit, looks)
    n = _smaller(change, baseline)
    most = int(n.max(initial=0))
    wrong = asked.wrong(change.shape[1], baseline.shape[1])
    longest = max(change.shape[1], baseline.shape[1])
    change, baseline = asked.counted(change, baseline)
    counted, left_out = _smaller(change, baseline), longest > max(change.shape[1], baseline.shape[1])
    ratios, spread = (_of_runs if unit == "run" else _of_blocks)(change, baseline, steps)
    worse = np.where(more_is_better, -ratios.log_mean, ratios.log_mean)
    shifted = replace(ratios, log_mean=worse - math.log1p(margin))
    of_this_look = max(1 - 2 * wrong, _LEAST)
    decided = [2 * each < 1 - of_this_look for each in adjusted_sides(shifted, until)]
    low, high = ((1 + margin) * each for each in joint_bounds(shifted, decided, of_this_look, until))

    def forecast() -> tuple[Floats, Floats]:
        open_ = known & ~found.fails & ~found.passes
        of_all = float(share_of_error(max(int(open_.sum()), 1), max(int(known.sum()), 1)))
        return _what_would(np.where(open_, shifted.log_mean, math.nan), spread, asked, of_all, most)

    known = ~np.isnan(ratios.log_se)
    found = AgainstMargin(np.exp(worse), low, high, n, margin, int(counted.max(initial=0)), left_out, forecast)
    return found


def _smaller(change: Floats, baseline: Floats) -> NDArray[np.int64]:
    """Return how many values the smaller side of each figure has."""
    sizes = [np.count_nonzero(side > 0, axis=1) for side in (change, baseline)]
    return np.asarray(np.minimum(*sizes), dtype=np.int64)


# ── standard errors ──────────────────────────────────────────────────────────────────────────────────────────────────


def _of_blocks(change: Floats, baseline: Floats, steps: Steps) -> tuple[Ratios, Floats]:
    """Change to baseline by Welch, and the spread of one value of each side together."""
    spread = np.sqrt(sum(_log_variance(each)[1] for each in (change, baseline)))
    return comparisons.compare_rows_unpaired(change, baseline, steps=steps), spread


def _of_runs(change: Floats, baseline: Floats, steps: Steps) -> tuple[Ratios, Floats]:
    """Return the same by Student's t with a pooled variance: s sqrt(1/m + 1/k) on m + k - 2 degrees of freedom, for m
    and k runs; one run beside k has the interval of a prediction. NaN where a side has no run, where both have one, and
    where all runs are alike and no step is known."""
    ours, theirs = (
        comparisons.Side.of(comparisons.logarithms(values), step)
        for values, step in zip((change, baseline), steps, strict=True)
    )
    m, k = ours.n, theirs.n
    degrees = m + k - 2.0
    known = (m > 0) & (k > 0) & (degrees > 0)
    squares = np.nan_to_num(ours.sd**2) * (m - 1) + np.nan_to_num(theirs.sd**2) * (k - 1)
    sd = np.sqrt(np.divide(squares, degrees, out=np.full(len(m), math.nan), where=known))
    rounding = common_variance(ours.step, sd) + common_variance(theirs.step, sd)
    known &= ~(alike(sd, np.ones(len(sd))) & (rounding == 0))
    se = np.where(known, np.sqrt(sd**2 * (1 / np.maximum(m, 1) + 1 / np.maximum(k, 1)) + rounding), math.nan)
    exact = np.ones(len(se), dtype=bool)  # these degrees of freedom hold in every tail, as those of pairs do
    ratios = Ratios(ours.mean - theirs.mean, se, np.where(known, degrees, math.nan), np.minimum(m, k), exact)
    return ratios, sd * math.sqrt(2)


def _log_variance(values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return how many values each row has, and the variance of their logarithms; NaN for fewer than two."""
    logs = comparisons.logarithms(values)
    n = np.count_nonzero(~np.isnan(logs), axis=1)
    return n, comparisons.moments_of_known(logs, n)[1] ** 2


# ── what it would take ───────────────────────────────────────────────────────────────────────────────────────────────


def _what_would(away: Floats, spread: Floats, asked: _MarginTest, of_all: float, n: int) -> tuple[Floats, Floats]:
    """Return values of each side that decide with a chance of POWER: where nothing has changed (or the change is twice
    the margin, which is as far from it: what shows the one shows the other); and where the change is what was seen,
    `away` from the margin. If n were enough for the first already, the change lies near the margin: then both are the
    second.
    """
    seen = _needed(away, spread, asked, of_all, n)
    nothing = np.where(np.isnan(away), math.nan, math.log1p(asked.margin))
    if n > 1 and asked.margin:
        had = _power(nothing, spread, np.full(len(away), n), np.full(len(away), asked.wrong(n, n) * of_all)) >= POWER
        return np.where(had, seen, _needed(nothing, spread, asked, of_all, n)), seen
    return (seen if not asked.margin else _needed(nothing, spread, asked, of_all, n)), seen


def _needed(away: Floats, spread: Floats, asked: _MarginTest, of_all: float, n: int) -> Floats:
    """Return the values of each side at the first look after n that has the power; infinite where none has."""
    sizes = looking.later(n, asked.unit, asked.looks)
    errors = np.array([asked.wrong(size, size) * of_all for size in sizes])
    low, high = np.zeros(len(away), dtype=np.int64), np.full(len(away), len(sizes))
    for _ in range(len(sizes).bit_length()):  # more values never show less, so by halving
        going, middle = low < high, np.minimum((low + high) // 2, len(sizes) - 1)
        enough = _power(away, spread, np.asarray(sizes)[middle], errors[middle]) >= POWER
        low, high = np.where(going & ~enough, middle + 1, low), np.where(going & enough, middle, high)
    found = np.array([*sizes, math.inf], dtype=float)[low]
    return np.where(np.isnan(away + spread), math.nan, found)


def _power(away: Floats, spread: Floats, n: NDArray[np.int64], errors: Floats) -> Floats:
    """Return the chance that n values of each side show at this error on which side of the margin a change lies that is
    so far `away` from it: by the noncentral t, for sides that spread alike. All of shape (figures,)."""
    df = comparisons.welch_df(np.asarray(2.0 * (n - 1), dtype=float), n, errors)
    critical = -scipy.special.stdtrit(df, errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.minimum(np.abs(away) * np.sqrt(n) / spread, _FAR)
    known = ~np.isnan(distance) & (critical < _STEEP)
    power = 1 - scipy.special.nctdtr(df, np.where(known, distance, 0.0), np.where(known, critical, 1.0))
    return np.asarray(np.where(known, power, 0.0), dtype=float)
