"""How many blocks it takes: to show a ratio, to show that there is none, to narrow an interval.

All of it is for the t test on logs that `comparisons` makes, and exact for normal logs. The spread that goes in is the
standard deviation of the log ratios of a block (paired), or of what else the test is about.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mountlab.stats.estimates import chi2_quantile
from mountlab.stats.sequential import LARGEST_MAX

Floats = NDArray[np.float64]
POWER = 0.80
CAUTION = 0.80
"""How sure one may be that the true spread is not above the one that a cautious plan reckons with."""
MOST_BLOCKS = 2000
"""More are not counted."""
MOST_RUN = LARGEST_MAX
"""The most blocks that are named as what would decide, unless a run has half as many or more already: a stopping rule
ends there, and to halve the noise is worth as much as four times the blocks."""
QUIET_BLOCKS = 20
"""What a quieter run is reckoned with: from here on quantiles of t are near those of the normal distribution, so that
more blocks narrow an interval by the square root of their number only."""
_STEEP = 30
"""Above this critical value (few blocks, and a strict level, as in a sweep of many comparisons) the noncentral t is
integrated over the normal part by Gauss and Hermite: the series that scipy sums need not converge there."""
_HALVINGS = 60
"""Of a bracket: more than the digits of a number."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
_NORMAL_NODES, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def needed_blocks(
    ratio: ArrayLike, log_sd: ArrayLike, *, power: float = POWER, level: float = 0.95, most: ArrayLike = MOST_BLOCKS
) -> Floats:
    """Return the fewest blocks with which a true `ratio` is shown with this power, for each pair of ratio and spread.

    Shapes broadcast; whole numbers, 2 or more. Infinite where more than `most` would be needed (a ratio of 1 is never
    shown to differ from 1). NaN where the spread or the ratio is not known.
    """
    _check_share(power, "power")
    _check_share(level, "level")
    effect = _effect(ratio, log_sd)
    found, known = np.full(effect.shape, math.nan), ~np.isnan(effect)
    limit = np.broadcast_to(np.asarray(most, dtype=float), effect.shape)[known]
    fewest = _fewest(effect[known], power, level, limit)
    found[known] = np.where(fewest > limit, math.inf, fewest)
    return found


def _fewest(effect: Floats, power: float, level: float, most: Floats) -> Floats:
    """Return the fewest blocks that show each effect; `most` + 1 where more are needed. By bisection, which begins
    where the normal distribution has the answer, and beside that: for most effects no further step is needed.

    A test that knew the spread would need fewer blocks than one that estimates it. Where even that needs more than
    `most`, nothing is searched.
    """
    z = -scipy.special.ndtri((1 - level) / 2)
    reach = z + scipy.special.ndtri(power)
    with np.errstate(divide="ignore", over="ignore"):
        with_known_spread = (reach / effect) ** 2
    guess = np.ceil(with_known_spread + z**2 / 2)
    beyond = (reach > 0) & (np.floor(with_known_spread) > most)
    low, high = np.where(beyond, most + 1, 2.0), most + 1
    probes = iter((guess, guess - 1, guess + 1))
    while (left := np.flatnonzero(low < high)).size:
        middle = np.clip(next(probes, np.floor((low + high) / 2)), low, high - 1)[left]
        enough = _power(effect[left], middle, level) >= power
        low[left], high[left] = np.where(enough, low[left], middle + 1), np.where(enough, middle, high[left])
    return low


def blocks_when_quieter(n: ArrayLike) -> NDArray[np.int64]:
    """Return the blocks that a quieter run is reckoned with where a run of n cannot decide: as many, or
    QUIET_BLOCKS."""
    return np.clip(np.asarray(n, dtype=np.int64), QUIET_BLOCKS, MOST_BLOCKS)


def most_named(n: ArrayLike) -> NDArray[np.int64]:
    """Return the most blocks that are named as what would decide after a run of n."""
    return np.asarray(np.maximum(MOST_RUN, 2 * np.asarray(n)))


def too_many(needed: ArrayLike, n: ArrayLike) -> NDArray[np.bool_]:
    """Return whether so many blocks are too many after a run of n; also where more than MOST_BLOCKS are needed."""
    return np.asarray(np.asarray(needed) > most_named(n), dtype=np.bool_)


def smallest_ratio(n: ArrayLike, log_sd: ArrayLike, *, power: float = POWER, level: float = 0.95) -> Floats:
    """Return the smallest ratio above 1 that n blocks show with this power; its reciprocal is as easy to show.

    Shapes broadcast. NaN for n < 2, which no test is made of, and for an unknown spread; n counts at most MOST_BLOCKS.
    """
    blocks, spread = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(log_sd, dtype=float))
    counted = np.clip(np.nan_to_num(blocks, nan=2.0), 2, MOST_BLOCKS).astype(np.int64)
    with np.errstate(over="ignore"):  # a ratio beyond floating point is infinite: two blocks of a wide spread
        ratio = np.exp(smallest_effects(counted, power=power, level=level) * spread)
    return np.where(blocks >= 2, ratio, math.nan)


def smallest_effects(n: NDArray[np.int64], *, power: float = POWER, level: float = 0.95) -> Floats:
    """Return the smallest effect |log ratio| / log_sd that n blocks show with this power, for each n of 2 or more."""
    _check_share(power, "power")
    _check_share(level, "level")
    different, places = np.unique(n, return_inverse=True)
    return np.array([_smallest_effect(int(each), power, level) for each in different])[places].reshape(n.shape)


def blocks_to_show_same(
    log_sd: float, smallest_effect: float, *, ratio: float = 1.0, power: float = POWER, level: float = 0.95
) -> float:
    """Return the fewest blocks with which two one-sided tests show that a true `ratio` lies within 1 +-
    `smallest_effect`.

    Infinite where more than MOST_BLOCKS would be needed, as for a ratio that lies at the limit or beyond; NaN for an
    unknown spread. Each one-sided test is made at 1 - level, as `comparisons.p_equivalent` is read.
    """
    _check_share(power, "power")
    if math.isnan(log_sd) or math.isnan(ratio):
        return math.nan
    low, high = 2, MOST_BLOCKS
    if power_to_show_same(high, log_sd, smallest_effect, ratio=ratio, level=level) < power:
        return math.inf
    while low < high:
        middle = (low + high) // 2
        enough = power_to_show_same(middle, log_sd, smallest_effect, ratio=ratio, level=level) >= power
        low, high = (low, middle) if enough else (middle + 1, high)
    return float(low)


def power_to_show_same(
    n: int, log_sd: float, smallest_effect: float, *, ratio: float = 1.0, level: float = 0.95
) -> float:
    """Return the chance that two one-sided tests on n log ratios show a true `ratio` to lie within 1 +-
    `smallest_effect`.

    NaN for n < 2. Source: the definition, integrated over the distribution of the estimated spread (Phillips 1990).
    """
    _check_share(level, "level")
    if n < 2:
        return math.nan
    return power_of_equivalence(log_sd / math.sqrt(n), n - 1, math.log1p(smallest_effect), math.log(ratio), 1 - level)


def power_of_equivalence(se: float, degrees: int, bound: float, true: float, alpha: float) -> float:
    """Return the chance that both one-sided t tests at `alpha` show that an effect `true` lies between -bound and
    bound, where it is estimated with the true standard error `se` on so many degrees of freedom. All on the scale of
    logs."""
    if se == 0:
        return float(abs(true) < bound)
    critical = float(-scipy.special.stdtrit(degrees, alpha))
    # Both tests reject only where the estimated standard error, s * se, stays below bound / critical.
    widest = float(scipy.special.chdtr(degrees, degrees * (bound / (critical * se)) ** 2))
    shares = widest * (_NODES + 1) / 2
    s = np.sqrt(chi2_quantile(shares, degrees) / degrees)
    room = bound / se - critical * s
    inside = scipy.special.ndtr(room - true / se) - scipy.special.ndtr(-room - true / se)
    return float(widest / 2 * (_WEIGHTS @ np.maximum(inside, 0.0)))


def width_of_mean(n: ArrayLike, *, level: float = 0.95) -> Floats:
    """Return half the width of the t interval of a mean of n values, in standard deviations of theirs; NaN for n <
    2."""
    _check_share(level, "level")
    blocks = np.asarray(n, dtype=float)
    counts = np.where(blocks >= 2, blocks, math.nan)
    return np.asarray(-scipy.special.stdtrit(counts - 1, (1 - level) / 2) / np.sqrt(counts), dtype=float)


def blocks_for_half_width(cv: ArrayLike, half_width: float, *, level: float = 0.95) -> Floats:
    """Return the fewest trials whose interval lies in `mean * (1 +- half_width)` when they spread by `cv` again.

    Infinite where more than MOST_BLOCKS would be needed, NaN where the spread is not known. Raises ValueError for a
    half width that is not positive. The spread of the next run varies, too: about half of such runs need a few more.
    """
    _check_share(level, "level")
    if not half_width > 0:
        raise ValueError(f"a half width is positive, got {half_width}")
    widths = width_of_mean(np.arange(2, MOST_BLOCKS + 1), level=level)
    spread = np.asarray(cv, dtype=float)
    with np.errstate(divide="ignore"):
        return _first_below(widths, math.log1p(half_width) / spread)


def upper_spread(sd: ArrayLike, n: ArrayLike, *, confidence: float = CAUTION) -> Floats:
    """Return the spread below which the true one lies with this confidence, where `n` values spread by `sd`: what a
    plan from a small pilot should reckon with (Browne 1995). Shapes broadcast; NaN for n < 2. By the chi-square
    distribution."""
    _check_share(confidence, "confidence")
    degrees = np.asarray(n, dtype=float) - 1
    known = degrees >= 1
    factor = np.sqrt(
        degrees / chi2_quantile(1 - confidence, np.where(known, degrees, 1.0)),
        where=known,
        out=np.full(degrees.shape, math.nan),
    )
    return np.asarray(np.asarray(sd, dtype=float) * factor, dtype=float)


@lru_cache(maxsize=4096)
def _smallest_effect(n: int, power: float, level: float) -> float:
    critical = float(-scipy.special.stdtrit(n - 1, (1 - level) / 2))
    # At the upper end the test stands 8 critical values and 8 standard errors off: beyond any power that is asked for.
    low, high, blocks = 0.0, (8 * critical + 8) / math.sqrt(n), np.array([float(n)])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(np.array([middle]), blocks, level)[0] >= power else (middle, high)
    return high


def _power(effect: Floats, n: Floats, level: float) -> Floats:
    """Return the chance that the two-sided t test on n log ratios shows an `effect` |log ratio| / log_sd, in its own
    direction.

    By the noncentral t distribution with n - 1 degrees of freedom and noncentrality effect * sqrt(n). A significant
    result in the wrong direction is no success: it is left out (it adds less than 1e-4 where the power is above 50 %).
    Source: Cohen (1988), chapter 2; Owen (1965).
    """
    critical = -scipy.special.stdtrit(n - 1, (1 - level) / 2)
    with np.errstate(invalid="ignore"):
        noncentral = effect * np.sqrt(n)
    steep = critical > _STEEP
    shift, edge = np.where(steep, 0.0, np.minimum(noncentral, 1e6)), np.where(steep, 1.0, critical)
    usual = 1 - scipy.special.nctdtr(n - 1, shift, edge)
    # Far beyond the critical value scipy's series gives no number, and nothing is missing from 1.
    found = np.asarray(np.where(np.isnan(usual) & ~np.isnan(noncentral), 1.0, usual), dtype=float)
    degrees = (np.broadcast_to(n, found.shape)[steep] - 1)[..., None]
    spread = np.maximum(noncentral[steep][..., None] + _NORMAL_NODES, 0) / critical[steep][..., None]
    found[steep] = scipy.special.chdtr(degrees, degrees * spread**2) @ (_NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum())
    return found


def _effect(ratio: ArrayLike, log_sd: ArrayLike) -> Floats:
    """|log ratio| / log_sd: 0 for a ratio of 1, infinite for a spread of 0, NaN for both."""
    ratios = np.asarray(ratio, dtype=float)
    if np.any(ratios <= 0):
        raise ValueError("a ratio is positive")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(np.log(ratios)) / np.asarray(log_sd, dtype=float), dtype=float)


def _first_below(falling: Floats, wanted: Floats) -> Floats:
    """2 + the first place where the falling values are not above `wanted`; infinite where none is, NaN for NaN."""
    place = np.searchsorted(-falling, -wanted, side="left")
    found = np.where(place < len(falling), place + 2.0, math.inf)
    return np.where(np.isnan(wanted), math.nan, found)


def _check_share(value: float, what: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"a {what} lies between 0 and 1, got {value}")
