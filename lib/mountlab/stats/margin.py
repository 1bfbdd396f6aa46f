"""Many figures against a margin: which are shown to be worse than it allows, which are shown not to be, which neither.

Everything is on logarithms and in 'times as bad': 1.04 is 4 % worse, whichever way is better. There are two families of
one-sided tests, 'not worse than the margin' and 'not within it', each with all of 1 - level: of all figures together,
the chance that any is called worse that is not is at most 1 - level, and so is the chance that any is called fine that
is not. Both are tested step by step, and the bounds belong to the tests, as stats.comparisons does for a ratio of 1
(its module says how, and by whom); here the ratio that is tested is the one at the margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mountlab.model import Until
from mountlab.stats import power
from mountlab.stats.comparisons import Flags, Ratios, Steps, compare_rows_unpaired, family, log_step, share_of_error
from mountlab.stats.estimates import Floats
from mountlab.stats.rounding import alike, common_variance

_LEAST = 0.01
"""No two-sided level is below this, however much error one allows oneself."""


@dataclass(frozen=True)
class AgainstMargin:
    """Figures against a margin, as columns of shape (figures,). NaN where there is no interval."""

    worse: Floats
    """How many times as bad the change is as the baseline."""
    low: Floats
    high: Floats
    """Bounds of it, each of which holds for all figures together."""
    n: NDArray[np.int64]
    """Values of the smaller side."""
    needed: Floats
    """Values of each side with which no change at all would be shown to be fine, and one of twice the margin to be
    worse; more than there are. NaN where it is told or no spread is known, infinite where no number would do."""
    seen: Floats
    """The same if the change is what was seen."""
    margin: float

    @property
    def fails(self) -> Flags:
        """Shown to be worse than the margin allows."""
        return np.asarray(self.low > 1 + self.margin)

    @property
    def passes(self) -> Flags:
        """Shown not to be."""
        return np.asarray(self.high <= 1 + self.margin)


def against_margin(
    change: Floats, baseline: Floats, *, more_is_better: Flags, margin: float, level: float = 0.95,
    until: Until | None = None, steps: Steps = (0.0, 0.0),
) -> AgainstMargin:  # fmt: skip
    """Values of shape (figures, n), with an n for each side, NaN where there is none; what is not positive counts as
    missing. `until`: a rule by which the values were stopped. `steps`: to what each side is rounded, as in `compare`.

    By Welch's t (compare_rows_unpaired). Where one side has a single column and the other has more, the spread of that
    other is taken for both: a new value beside earlier ones (the interval of a prediction).
    """
    ratios, sides = _ratios(change, baseline, steps), [_log_sd(each) for each in (change, baseline)]
    spread = np.sqrt(sum(np.where(np.isnan(sd), other, sd) ** 2 for sd, other in (sides, reversed(sides))))
    worse = np.where(more_is_better, -ratios.log_mean, ratios.log_mean)
    shifted = replace(ratios, log_mean=worse - math.log1p(margin))
    together = family(shifted, level=max(2 * level - 1, _LEAST), smallest_effect=margin, until=until)
    low, high = ((1 + margin) * each for each in (together.low_all, together.high_all))
    unknown = np.full(len(worse), math.nan)
    found = AgainstMargin(np.exp(worse), low, high, ratios.n, unknown, unknown, margin)
    open_ = ~np.isnan(ratios.log_se) & ~found.fails & ~found.passes
    error = (1 - level) * share_of_error(max(int(open_.sum()), 1), max(int((~np.isnan(ratios.log_se)).sum()), 1))
    # Their logarithms are as far from the margin: what shows the one shows the other.
    of_nothing = np.full(len(worse), math.log1p(margin))
    needed, seen = (_needed(away, spread, ratios.n, float(error)) for away in (of_nothing, shifted.log_mean))
    if not margin:
        needed = seen
    needed = np.where(needed > ratios.n + 1, needed, seen)  # were there enough: it lies near the margin
    return replace(found, needed=np.where(open_, needed, math.nan), seen=np.where(open_, seen, math.nan))


def _ratios(change: Floats, baseline: Floats, steps: Steps) -> Ratios:
    """Change to baseline."""
    found = compare_rows_unpaired(change, baseline, steps=steps)
    if 1 not in (change.shape[1], baseline.shape[1]) or change.shape[1] == baseline.shape[1]:
        return found
    several = baseline if change.shape[1] == 1 else change
    n, sd = np.count_nonzero(several > 0, axis=1), _log_sd(several)
    shares = [log_step(values, step) for values, step in zip((change, baseline), steps, strict=True)]
    rounding = sum(common_variance(share, sd) for share in shares)
    known = ~np.isnan(found.log_mean) & (n > 1) & ~(alike(sd, np.ones(len(sd))) & (rounding == 0))
    se = np.where(known, np.sqrt(sd**2 * (1 + 1 / np.maximum(n, 1)) + rounding), math.nan)
    return replace(found, log_se=se, df=np.where(known, n - 1.0, math.nan))


def _log_sd(values: Floats) -> Floats:
    """The standard deviation of the logarithms of each row; NaN for fewer than two values."""
    logs = np.log(values, out=np.full(values.shape, math.nan), where=values > 0)
    n = np.count_nonzero(~np.isnan(logs), axis=1)
    mean = np.nansum(logs, axis=1) / np.maximum(n, 1)
    squares = np.nansum((logs - mean[:, None]) ** 2, axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(n - 1, 1), out=np.full(len(n), math.nan), where=n > 1))


def _needed(away: Floats, spread: Floats, n: NDArray[np.int64], error: float) -> Floats:
    """Values of each side that show, with a chance of power.POWER, on which side of the margin it lies, where it is so
    far `away` from it; at least one more than there are."""
    with np.errstate(over="ignore"):
        found = power.needed_blocks(np.exp(np.abs(away)), spread, level=max(1 - 2 * error, _LEAST))
    return np.asarray(np.maximum(found, n + 1.0))
