"""Many figures against a margin: which are shown to be worse than it allows, which are shown not to be, which neither.

Everything is on logarithms and in 'times as bad': 1.04 is 4 % worse, whichever way is better. There are two families of
one-sided tests, 'not worse than the margin' and 'not within it', each with all of 1 - level: of all figures together,
the chance that any is called worse that is not is at most 1 - level, and so is the chance that any is called fine that
is not. Both are tested step by step, and the bounds belong to the tests, as stats.adjusted does for a ratio of 1
(its module says how, and by whom); here the ratio that is tested is the one at the margin.

These errors hold over all looks at one question (stats.looks): each look has a share of 1 - level.

Of one run beside one, the bounds contain by how much runs differ by themselves (stats.run_spread), and each decision
has a break-even: the spread of runs from which on it would not be made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.core.model import RepeatedLooks
from mountlab.stats import comparisons, power, sequential
from mountlab.stats import looks as looking
from mountlab.stats.adjusted import adjusted_sides, joint_bounds, share_of_error
from mountlab.stats.comparisons import Flags, Ratios, Steps
from mountlab.stats.estimates import Floats
from mountlab.stats.looks import Looks, Unit
from mountlab.stats.rounding import alike, common_variance
from mountlab.stats.run_spread import RunSpread, RunSpreads, break_even, compare_rows_of_runs

_LEAST = 1e-6
"""No two-sided level is below this, however much error one allows oneself."""
_STEEP, _FAR, _MANY = 30, 1e4, 1e6
"""A critical value above which (two or three values of a side) the power counts as 0, since the series of the
noncentral t need not converge there; a distance that is infinite for it; and degrees of freedom that are."""


@dataclass(frozen=True)
class Needs:
    """What would decide figures, as columns of shape (figures,)."""

    needed: Floats
    """Values of each side with which no change at all would be shown to be fine, and one of twice the margin to be
    worse; more than there are. NaN where it is decided or no spread is known, infinite where no number would do."""
    seen: Floats
    """The same if the change is what was seen."""
    in_runs: Flags
    """Whether runs of each side are counted, since what runs differ by is more than further blocks make up for."""


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
    counted: tuple[int, int]
    """How many values of the change and of the baseline this look counts, of the figure that has most."""
    left_out: bool
    """Whether it leaves out values of either side: those after the last look."""
    forecast: Callable[[], Needs] = field(repr=False)
    """`needs`, computed when it is asked for."""
    even: Callable[[], Floats] = field(repr=False)
    """`unless`, likewise."""

    @cached_property
    def needs(self) -> Needs:
        """What would decide the figures that are open."""
        return self.forecast()

    @property
    def needed(self) -> Floats:
        """That of `needs`."""
        return self.needs.needed

    @property
    def seen(self) -> Floats:
        """That of `needs`."""
        return self.needs.seen

    @cached_property
    def unless(self) -> Floats:
        """The break-even of one run beside one: the figure fails (passes, where it is better than the margin) unless
        runs differ by more. The sd of the logarithm of a run's level. NaN where it would be open anyway."""
        return self.even()

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
    repeated_looks: RepeatedLooks | None
    unit: Unit
    looks: Looks

    def wrong(self, change: int, baseline: int) -> float:
        """Return the chance of an error that a look at so many values of each side may have, over all figures."""
        return (1 - self.level) * looking.share(change, baseline, self.unit, self.looks)

    def tail(self, wrong: float) -> float:
        """Return the tail of a test that errs with this chance after the rule."""
        return (1 - sequential.level_after(self.repeated_looks, 1 - 2 * wrong)) / 2

    def counted(self, change: int, baseline: int) -> tuple[int, int]:
        """Return how many values of each side this look counts: under a rule all."""
        return (change, baseline) if self.repeated_looks else looking.counted(change, baseline, self.unit, self.looks)


def against_margin(
    change: Floats,
    baseline: Floats,
    *,
    more_is_better: Flags,
    margin: float,
    level: float = 0.95,
    repeated_looks: RepeatedLooks | None = None,
    steps: Steps = (0.0, 0.0),
    unit: Unit = "block",
    looks: Looks = "any",
    spreads: RunSpreads | None = None,
) -> AgainstMargin:
    """Return values of shape (figures, n) in the order in which they were measured, with an n for each side, NaN at the
    end where there are fewer; what is not positive counts as missing. `steps`: to what each side is
    rounded, as in `compare`. `repeated_looks`: for the rule by which the values were stopped.

    Of blocks by Welch's t (compare_rows_unpaired), from as many of either side, up to the last look; `spreads`: by how
    much runs like that of the change, and like that of the baseline, differ by themselves (None: not at all). Of runs
    by Student's t with the spread of both sides together, so that a side may be a single run: runs are taken to differ
    as much on either side. A rule has looks of its own, so with a correction all values count.
    """
    asked = _MarginTest(margin, level, repeated_looks, unit, looks)
    n = _smaller(change, baseline)
    lengths = change.shape[1], baseline.shape[1]
    wrong, counted = asked.wrong(*lengths), asked.counted(*lengths)
    change, baseline = change[:, : counted[0]], baseline[:, : counted[1]]
    most = tuple(int(np.count_nonzero(side > 0, axis=1).max(initial=0)) for side in (change, baseline))
    inside, noise = (_of_runs if unit == "run" else _of_blocks)(change, baseline, steps)
    ratios = inside
    if spreads is not None:
        ratios = compare_rows_of_runs(change, baseline, spreads, steps=steps)
        noise = replace(noise, between=spreads)
    worse = np.where(more_is_better, -ratios.log_mean, ratios.log_mean)
    shifted = replace(ratios, log_mean=worse - math.log1p(margin))
    of_this_look = max(1 - 2 * wrong, _LEAST)
    decided = [2 * p < 1 - of_this_look for p in adjusted_sides(shifted, repeated_looks)]
    low, high = ((1 + margin) * bound for bound in joint_bounds(shifted, decided, of_this_look, repeated_looks))

    def forecast() -> Needs:
        open_ = shifted.known & ~found.fails & ~found.passes
        of_all = float(share_of_error(max(int(open_.sum()), 1), max(int(shifted.known.sum()), 1)))
        away = np.where(open_, shifted.log_mean, math.nan)
        return _what_would(away, noise, asked, of_all, int(n.max(initial=0)))

    def even() -> Floats:
        plain = replace(inside, log_mean=shifted.log_mean)
        sides = (break_even(plain, sign * plain.log_mean, lambda share: asked.tail(wrong * share)) for sign in (1, -1))
        return np.fmax(*sides)

    found = AgainstMargin(np.exp(worse), low, high, n, margin, (most[0], most[1]), counted != lengths, forecast, even)
    return found


def _smaller(change: Floats, baseline: Floats) -> NDArray[np.int64]:
    """Return how many values the smaller side of each figure has."""
    sizes = [np.count_nonzero(side > 0, axis=1) for side in (change, baseline)]
    return np.asarray(np.minimum(*sizes), dtype=np.int64)


# ── standard errors ──────────────────────────────────────────────────────────────────────────────────────────────────


def _of_blocks(change: Floats, baseline: Floats, steps: Steps) -> tuple[Ratios, _Noise]:
    """Change to baseline by Welch, and the spread of one value of each side together."""
    spread = np.sqrt(sum(_log_variance(each)[1] for each in (change, baseline)))
    return comparisons.compare_rows_unpaired(change, baseline, steps=steps), _Noise.inside_runs(spread)


def _of_runs(change: Floats, baseline: Floats, steps: Steps) -> tuple[Ratios, _Noise]:
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
    return ratios, _Noise.inside_runs(sd * math.sqrt(2))


def _log_variance(values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return how many values each row has, and the variance of their logarithms; NaN for fewer than two."""
    logs = comparisons.logarithms(values)
    n = np.count_nonzero(~np.isnan(logs), axis=1)
    return n, comparisons.moments_of_known(logs, n)[1] ** 2


# ── what it would take ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Noise:
    """What varies, for a plan, as columns of shape (figures,)."""

    spread: Floats
    """Of one value of each side together."""
    between: RunSpreads
    """By how much the two runs differ by themselves."""

    @classmethod
    def inside_runs(cls, spread: Floats) -> _Noise:
        none = RunSpread.assumed(0.0, len(spread))
        return cls(spread, (none, none))

    @property
    def run_variance(self) -> Floats:
        return self.between[0].variance + self.between[1].variance

    def inside(self, n: NDArray[np.int64] | int) -> Floats:
        """Return the variance of the difference of means of n values that runs do not account for."""
        covered = (self.between[0].covered + self.between[1].covered) / 2
        return np.asarray(self.spread**2 * np.maximum(1 / np.asarray(n) - covered, 0))

    def of_runs(self, n: int) -> _Noise:
        """Return that of runs of n values as the unit."""
        return _Noise.inside_runs(np.sqrt(self.inside(max(n, 1)) + self.run_variance))


def _what_would(away: Floats, noise: _Noise, asked: _MarginTest, of_all: float, n: int) -> Needs:
    """Return values of each side that decide with a chance of POWER: where nothing has changed (or the change is twice
    the margin, which is as far from it: what shows the one shows the other); and where the change is what was seen,
    `away` from the margin. If n were enough for the first already, the change lies near the margin: then both are the
    second. Where blocks of one run a side would be too many, and runs differ by themselves, it is runs.
    """
    needed, seen = _plan(away, noise, asked, of_all, n)
    differ = noise.run_variance > 0
    in_runs = np.asarray(differ & power.too_many(needed, n) & ~np.isnan(needed))
    if in_runs.any():
        runs = _plan(away, noise.of_runs(n), replace(asked, unit="run", repeated_looks=None), of_all, 1)
        needed, seen = (np.where(in_runs, *pair) for pair in zip(runs, (needed, seen), strict=True))
    return Needs(needed, seen, in_runs)


def _plan(away: Floats, noise: _Noise, asked: _MarginTest, of_all: float, n: int) -> tuple[Floats, Floats]:
    """Return `needed` and `seen` of Needs, in the unit of what is asked."""
    seen = _needed(away, noise, asked, of_all, n)
    nothing = np.where(np.isnan(away), math.nan, math.log1p(asked.margin))
    if n > 1 and asked.margin:
        errors = np.full(len(away), asked.wrong(n, n) * of_all)
        had = _power(nothing, noise, np.full(len(away), n), errors, asked.unit) >= power.POWER
        return np.where(had, seen, _needed(nothing, noise, asked, of_all, n)), seen
    return (seen if not asked.margin else _needed(nothing, noise, asked, of_all, n)), seen


def _needed(away: Floats, noise: _Noise, asked: _MarginTest, of_all: float, n: int) -> Floats:
    """Return the values of each side at the first look after n that has the power; infinite where none has."""
    sizes = looking.later(n, asked.unit, asked.looks)
    errors = np.array([asked.wrong(size, size) * of_all for size in sizes])
    low, high = np.zeros(len(away), dtype=np.int64), np.full(len(away), len(sizes))
    for _ in range(len(sizes).bit_length()):  # more values never show less, so by halving
        going, middle = low < high, np.minimum((low + high) // 2, len(sizes) - 1)
        enough = _power(away, noise, np.asarray(sizes)[middle], errors[middle], asked.unit) >= power.POWER
        low, high = np.where(going & ~enough, middle + 1, low), np.where(going & enough, middle, high)
    found = np.array([*sizes, math.inf], dtype=float)[low]
    return np.where(np.isnan(away + noise.spread), math.nan, found)


def _power(away: Floats, noise: _Noise, n: NDArray[np.int64], errors: Floats, unit: Unit) -> Floats:
    """Return the chance that n values of each side show at this error on which side of the margin a change lies that is
    so far `away` from it: by the noncentral t, for sides that spread alike. All of shape (figures,). With a part that
    runs differ by, the degrees of freedom are Satterthwaite's of the sum, and the critical value is that of its
    bound."""
    pooled = np.asarray(2.0 * (n - 1), dtype=float)
    df = comparisons.welch_df(pooled, n, errors) if unit == "block" else pooled
    parts = [(noise.inside(n), df), *((side.variance, side.degrees) for side in noise.between)]
    variance = np.asarray(sum(part for part, _ in parts))
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.sqrt(sum(scipy.special.stdtrit(degrees, errors) ** 2 * part for part, degrees in parts))
        freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
        distance = np.minimum(np.abs(away) / np.sqrt(variance), _FAR)
        critical = np.where(variance > 0, reach / np.sqrt(variance), -scipy.special.stdtrit(df, errors))
    freedom = np.where(np.isfinite(freedom), freedom, _MANY)
    known = ~np.isnan(distance) & (critical < _STEEP)
    shown = 1 - scipy.special.nctdtr(freedom, np.where(known, distance, 0.0), np.where(known, critical, 1.0))
    far = np.where(np.isnan(shown), 1.0, shown)  # beyond the reach of scipy's series nothing is missing from 1
    return np.asarray(np.where(known, far, 0.0), dtype=float)
