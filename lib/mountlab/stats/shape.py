"""What the trials of one cell show of their shape and order: outliers, drift, steps, serial correlation, two modes.

An interval rests on independent trials from one roughly normal distribution. These look for what contradicts that. All
but `outliers` and `steady` are tests that assume no distribution, and give a p value: small where the trials would be
unusual if nothing were wrong. docs/calibration.md shows how often each is raised, when it should be and
when not.

`outlier_mask` and what is named `..._p` take many samples at once, one a row, oldest trial first; the others take one.
None needs the values to be positive. Values that are not finite raise ValueError.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import diptest
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mountlab.core.frames import pd

Floats = NDArray[np.float64]

SUSPICIOUS_P = {"outliers": 0.01, "drift": 0.01, "step": 0.01, "autocorrelated": 0.01, "two_modes": 0.05}
"""A p value below this raises a caveat: a note, or a warning where it still is below after adjustment over the cells
of the sweep. The dip test is measured against the flattest of distributions: on bell-shaped ones its 5 % are 1 %."""
FEWEST = {"outliers": 5, "drift": 6, "step": 10, "autocorrelated": 8, "two_modes": 10}
"""Trials below which a test says nothing: fewer could hardly show it, whatever it is. (The clearest of steps in nine
trials still has p = 0.03.)"""
FEWEST_BLOCKS = 4
"""From so many blocks on all cells together can show a drift, by their order and by that of the trials inside."""
OUTLYING_Z = 3.5
MAX_EXCURSION, MAX_SLOPE = 0.20, 0.10

_MAD_OF_NORMAL = 0.6745
"""The median absolute deviation of a normal distribution, in standard deviations."""
_OUTLIER_LIMITS = (
    18.713, 10.16, 10.703, 8.019, 8.198, 6.889, 7.083, 6.283, 6.45, 5.924, 6.008, 5.625, 5.713, 5.392, 5.458, 5.247,
)  # fmt: skip
"""Of 5, 6 ... 20 values, as `_simulated_outlier_limit` gives them: a tenth of a second each."""
_ALL_ORDERS_TO, _DRAWN_VALUES, _SEED = 8, 1_000_000, 19_790_628
_DRAWN_ORDERS = 1_999
_EXACT_KENDALL_TO, _EXACT_TIED_TO = 60, 20


# ── outliers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def outliers(values: Sequence[float]) -> list[int]:
    """Indices of the values that lie far from the others, by their median absolute deviation (MAD).

    The modified z, 0.6745 (x - median) / MAD, is beyond 3.5, and beyond what 99 % of normal samples of this size stay
    within (19 at n = 5, 7 at n = 10, 4.8 at n = 30): by 3.5 alone, 21 % of normal samples of 5 would have an outlier.
    Where more than half of the values are equal (MAD 0), that is rounding, and half of the smallest step between two
    values stands for the MAD: it cannot be more. A sample with two values only shows no step but the one in question,
    and none of it is outlying (`scaleless`). None for n < 5. (Iglewicz and Hoaglin take the mean absolute deviation
    then: of nine equal values and one a step away, it finds the one as far off as anything can be.)
    Source: Iglewicz and Hoaglin (1993), How to detect and handle outliers; the limits for few trials are simulated.
    """
    return [int(i) for i in np.flatnonzero(outlier_mask([values])[0])]


def outlier_mask(samples: ArrayLike) -> NDArray[np.bool_]:
    """`outliers` of many samples: (m, n) values to (m, n) booleans."""
    rows = _rows(samples)
    if rows.shape[1] < FEWEST["outliers"]:
        return np.zeros(rows.shape, dtype=bool)
    return _modified_z(rows) > _outlier_limit(rows.shape[1])


def scaleless(values: Sequence[float]) -> bool:
    """Return whether a sample has no scale by which a value could be called far: two values only, one of them more
    often than not."""
    counts = np.unique(np.asarray(values, dtype=float), return_counts=True)[1]
    return len(counts) == 2 and 2 * int(counts.max()) > len(values)


def _modified_z(rows: Floats) -> Floats:
    """|modified z| of each value; 0 in rows that have no scale."""
    distance = np.abs(rows - np.median(rows, axis=1, keepdims=True))
    mad = np.median(distance, axis=1, keepdims=True)
    flat = np.flatnonzero(mad[:, 0] == 0)
    mad[flat, 0] = [_half_a_step(row) for row in rows[flat]]
    return np.where(mad > 0, _MAD_OF_NORMAL * distance / np.where(mad > 0, mad, 1.0), 0.0)


def _half_a_step(row: Floats) -> float:
    """Return half of the smallest step between the values; 0 where there is one step or none."""
    steps = np.diff(np.unique(row))
    return float(steps.min()) / 2 if len(steps) > 1 else 0.0


def _outlier_limit(n: int) -> float:
    place = n - FEWEST["outliers"]
    return _OUTLIER_LIMITS[place] if place < len(_OUTLIER_LIMITS) else _simulated_outlier_limit(n)


@lru_cache(maxsize=64)
def _simulated_outlier_limit(n: int) -> float:
    normal = np.random.default_rng(_SEED).normal(size=(_draws(n), n))
    largest = _modified_z(normal).max(axis=1)
    return max(OUTLYING_Z, float(np.quantile(largest, 1 - SUSPICIOUS_P["outliers"])))


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drift(values: Sequence[float]) -> float:
    """Return the two-sided p against 'the order of the trials does not matter', for values that rise or fall over the
    blocks.

    The test of Mann (1945) and Kendall: the number of pairs in rising order. Exact for n <= 60, and with
    ties, over all orders of them, for n <= 20; beyond that by the normal distribution, with its variance for ties
    (Kendall, Rank Correlation Methods, 1975, chapter 4). NaN for n < 6.
    """
    return float(drift_p([values])[0])


def drift_p(samples: ArrayLike) -> Floats:
    """`drift` of many samples: (m, n) values to (m,) p values."""
    rows = _rows(samples)
    n = rows.shape[1]
    if n < FEWEST["drift"]:
        return np.full(len(rows), np.nan)
    rising = np.zeros(len(rows))
    for first in range(n - 1):
        rising += np.sign(rows[:, first + 1 :] - rows[:, first : first + 1]).sum(axis=1)
    more, tied = np.abs(rising).astype(int), np.any(np.diff(np.sort(rows, axis=1), axis=1) == 0, axis=1)
    alike = {each: _kendall_tail((1,) * n, each) for each in np.unique(more[~tied]).tolist()}
    tails = [
        _kendall_tail(_ties(row), k) if has else alike[k] for row, k, has in zip(rows, more.tolist(), tied, strict=True)
    ]
    return np.asarray(np.minimum(1.0, 2 * np.array(tails)))


def _ties(row: Floats) -> tuple[int, ...]:
    """Return how often each value occurs."""
    return tuple(sorted(np.unique(row, return_counts=True)[1].tolist()))


def _kendall_tail(ties: tuple[int, ...], more: int) -> float:
    """Return the chance that rising pairs are at least so many more than falling ones, where values have these ties."""
    n, untied = sum(ties), sum(ties) ** 2 - sum(count**2 for count in ties)
    if n <= (_EXACT_TIED_TO if ties[-1] > 1 else _EXACT_KENDALL_TO):
        return float(_falling_pairs(ties)[(untied // 2 - more) // 2])
    variance = n * (n - 1) * (2 * n + 5) - sum(count * (count - 1) * (2 * count + 5) for count in ties)
    return float(scipy.special.ndtr((1 - more) / math.sqrt(variance / 18))) if variance else 1.0


@lru_cache(maxsize=1024)
def _falling_pairs(ties: tuple[int, ...]) -> Floats:
    """P(at most k pairs are in falling order) for k = 0, 1 ..., over all orders of values with these ties.

    The counts are the coefficients of a q-multinomial (MacMahon 1913): of the product of (1 - q^i) for i = 1 ... n
    over the same product for each tie. Whole numbers, so that none of it is rounded.
    """
    size = (sum(ties) ** 2 - sum(count**2 for count in ties)) // 2 + 1
    orders, placed = [1] + [0] * (size - 1), 0
    for count in ties:
        for own in range(1, count + 1):  # times (1 - q^(placed + own)) / (1 - q^own)
            for power in range(size - 1, placed + own - 1, -1):
                orders[power] -= orders[power - placed - own]
            for power in range(own, size):
                orders[power] += orders[power - own]
        placed += count
    whole = sum(orders)
    return np.array([each / whole for each in accumulate(orders)])


@dataclass(frozen=True)
class BlockOrder:
    """The trials of one block, in the order in which they ran."""

    values: Floats
    """Less the level of the block."""
    turns: NDArray[np.int64]
    """What came together in an order drawn for each block: the file system of each trial."""


def drift_of_few(levels: Sequence[float], blocks: Sequence[BlockOrder]) -> float:
    """Return the two-sided p against 'time changes nothing', by the order of a few blocks and that inside of them.

    Every order of n blocks is as likely, so that levels all rise, or all fall, with a chance of 2 / n!: of four blocks
    8 %, of five 1.7 %. The order inside of a block was drawn, too: first that of its turns, then that of the trials of
    each. p is this chance times the share of such draws in which later trials are higher (or lower) by as much; 1 for
    other levels. It holds whatever a block does to all of its trials. NaN below `FEWEST_BLOCKS` blocks.
    """
    steps = np.diff(levels)
    if len(levels) < FEWEST_BLOCKS:
        return math.nan
    if not (np.all(steps > 0) or np.all(steps < 0)):
        return 1.0
    rng, sign = np.random.default_rng(_SEED), math.copysign(1.0, steps[0])
    drawn = sum((_drawn_slopes(block, rng) for block in blocks), start=np.zeros(_DRAWN_ORDERS))
    seen = sum(float(np.arange(len(block.values)) @ block.values) for block in blocks)
    as_large = np.count_nonzero(sign * drawn >= sign * seen - 1e-9)
    return min(1.0, 2 / math.factorial(len(levels)) * (as_large + 1) / (_DRAWN_ORDERS + 1))


def _drawn_slopes(block: BlockOrder, rng: np.random.Generator) -> Floats:
    """Return the sum of place times value of a block in each of many orders that its design could have drawn."""
    turns, trials = (rng.random((_DRAWN_ORDERS, size)) for size in (int(block.turns.max()) + 1, len(block.turns)))
    turn_ranks = turns.argsort(axis=1).argsort(axis=1)
    places = (turn_ranks[:, block.turns] + trials).argsort(axis=1).argsort(axis=1)
    return np.asarray(places @ block.values)


def step(values: Sequence[float]) -> tuple[int, float]:
    """Return the most likely change point, as the index of the first value after it, and p against 'there is none'.

    Pettitt (1979): the split whose two sides differ most in rank. p is two-sided, over orders of the trials that are
    drawn with a fixed seed (100,000 at n = 10, at least 1,000), not by his formula for long series; ties make it
    careful. n < 10: index 0 and p NaN. A constant sample: index 0 and p 1.
    """
    index, p = steps(_rows([values]))
    return int(index[0]), float(p[0])


def step_p(samples: ArrayLike) -> Floats:
    """Return the p value of `step` of many samples: (m, n) values to (m,) p values."""
    return steps(_rows(samples))[1]


def steps(rows: Floats) -> tuple[NDArray[np.int64], Floats]:
    """`step` of many samples: (m, n) values to (m,) indices and p values."""
    if rows.shape[1] < FEWEST["step"]:
        return np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.nan)
    ranks = _ranks(rows)
    difference = np.abs(_rank_sums(ranks))
    index = np.where(difference.max(axis=1) > 0, difference.argmax(axis=1) + 1, 0)
    return index, _p_of_order(_largest_rank_sum, ranks)


def autocorrelated(values: Sequence[float]) -> float:
    """p against 'the trials are independent', for neighbours that are more alike than others; NaN for n < 8.

    Bartels (1982): von Neumann's ratio of squared steps between neighbours to the variance, on ranks. One-sided, since
    only likeness makes an interval too narrow. p is over orders as in `step`, over all of them at n = 8.
    Drift and steps make neighbours alike as well.
    """
    return float(autocorrelated_p([values])[0])


def autocorrelated_p(samples: ArrayLike) -> Floats:
    """`autocorrelated` of many samples: (m, n) values to (m,) p values."""
    rows = _rows(samples)
    if rows.shape[1] < FEWEST["autocorrelated"]:
        return np.full(len(rows), np.nan)
    return _p_of_order(_likeness_of_neighbours, _ranks(rows))


Statistic = Callable[[Floats], Floats]


def _p_of_order(statistic: Statistic, ranks: Floats) -> Floats:
    """Return the share of orders in which the statistic is at least what it is in these rows of ranks. Of few values
    all orders count, of them with their ties; of many some, as if there were no ties."""
    n, seen = ranks.shape[1], statistic(ranks) - 1e-9
    if n <= _ALL_ORDERS_TO:
        nulls = [_null(statistic, tuple(row)) for row in np.sort(ranks, axis=1).tolist()]
        return np.array([1 - np.searchsorted(null, each) / len(null) for null, each in zip(nulls, seen, strict=True)])
    null = _null(statistic, tuple(range(1, n + 1)))
    as_large = len(null) - np.searchsorted(null, seen, side="left")
    return np.asarray((as_large + 1) / (len(null) + 1))  # the order seen is one more of those drawn: p is never 0


@lru_cache(maxsize=256)
def _null(statistic: Statistic, ranks: tuple[float, ...]) -> Floats:
    """Return the statistic of these ranks in all orders, or in as many as hold a million values; sorted."""
    if len(ranks) <= _ALL_ORDERS_TO:
        return np.sort(statistic(np.array(list(itertools.permutations(ranks)))))
    drawn = np.tile(np.array(ranks, dtype=float), (_draws(len(ranks)), 1))
    return np.sort(statistic(np.random.default_rng(_SEED).permuted(drawn, axis=1)))


def _draws(n: int) -> int:
    """Return how many samples of n are drawn for what has no formula."""
    return max(1_000, _DRAWN_VALUES // n)


def _ranks(rows: Floats) -> Floats:
    return np.asarray(pd.DataFrame(rows).rank(axis=1))


def _rank_sums(ranks: Floats) -> Floats:
    """For each split but the last: how much higher the ranks before it are than an equal share would be."""
    return np.cumsum(2 * ranks - (ranks.shape[1] + 1), axis=1)[:, :-1]


def _largest_rank_sum(ranks: Floats) -> Floats:
    return np.asarray(np.abs(_rank_sums(ranks)).max(axis=1))


def _likeness_of_neighbours(ranks: Floats) -> Floats:
    """Minus von Neumann's ratio, -(sum of squared steps) / (sum of squared deviations); equal ranks have the least."""
    steps = np.square(np.diff(ranks, axis=1)).sum(axis=1)
    spread = np.square(ranks - ranks.mean(axis=1, keepdims=True)).sum(axis=1)
    return np.where(spread > 0, -steps / np.where(spread > 0, spread, 1.0), -np.inf)


# ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def two_modes(values: Sequence[float]) -> float:
    """p against 'the distribution has one mode', by the dip test; NaN for n < 10, 1 for a constant sample.

    The dip is the largest distance between the sample's distribution function and the nearest one with a single mode;
    its p value is interpolated in the table that comes with the package diptest.
    Source: Hartigan and Hartigan (1985).
    """
    return float(two_modes_p([values])[0])


def two_modes_p(samples: ArrayLike) -> Floats:
    """`two_modes` of many samples: (m, n) values to (m,) p values."""
    rows = _rows(samples)
    if rows.shape[1] < FEWEST["two_modes"]:
        return np.full(len(rows), np.nan)
    return np.array([_dip_p(row) for row in _without_ties(rows)])


def has_two_modes(samples: ArrayLike, limit: float) -> NDArray[np.bool_]:
    """Return whether `two_modes_p` is below a limit, for many samples: (m, n) values to (m,).

    p falls as the dip grows, so the dip of every sample is needed, and p only of the few between which the limit is
    searched. To look p up in the table takes ten times as long as the dip.
    """
    rows = _rows(samples)
    found = np.zeros(len(rows), dtype=bool)
    if rows.shape[1] >= FEWEST["two_modes"]:
        rows = _without_ties(rows)
        falling = np.argsort([-diptest.dipstat(row, sort_x=False) for row in rows])
        below = bisect_left(falling, True, key=lambda place: not _dip_p(rows[place]) < limit)
        found[falling[:below]] = True
    return found


def _dip_p(ordered: Floats) -> float:
    return float(diptest.diptest(ordered, sort_x=False)[1]) if ordered[0] != ordered[-1] else 1.0


def _without_ties(rows: Floats) -> Floats:
    """Return samples in rising order. Equal values (fio's percentiles are the middles of bins) are spread over half a
    step either way, since the test takes ties for modes; samples of one value only are left as they are."""
    ordered = np.sort(rows, axis=1)
    for place in np.flatnonzero(np.any(np.diff(ordered, axis=1) == 0, axis=1) & (ordered[:, 0] != ordered[:, -1])):
        row = rows[place]
        spread = np.random.default_rng(_SEED).uniform(-0.5, 0.5, len(row)) * np.diff(np.unique(row)).min()
        ordered[place] = np.sort(row + spread)
    return np.asarray(ordered)


# ── steady state ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Steady:
    """Whether the last rounds of a device were steady, and by how much. Shares are of the average of these rounds."""

    ok: bool
    excursion: float
    """(largest - smallest) / average; at most 0.20 where steady. NaN where there are too few rounds."""
    slope: float
    """How far the straight line through the rounds goes from the first to the last of them; at most 0.10."""
    rounds: int
    """How many there are in all."""


def steady(rounds: Sequence[float], *, window: int = 5) -> Steady:
    """Return the storage industry's rule on the averages of successive rounds, over the last `window` of them.

    Fewer rounds than that, or an average of 0, are not steady, with NaN for both shares. ValueError for a window < 2.
    Source: SNIA, Solid State Storage Performance Test Specification, definition of steady state.
    """
    if window < 2:
        raise ValueError(f"a window holds at least 2 rounds, got {window}")
    last = _rows([rounds])[0][-window:]
    average = float(np.mean(last)) if len(last) else 0.0
    if len(last) < window or average == 0:
        return Steady(ok=False, excursion=math.nan, slope=math.nan, rounds=len(rounds))
    excursion = float(np.ptp(last) / abs(average))
    slope = float(abs(np.polyfit(np.arange(window), last, 1)[0]) * (window - 1) / abs(average))
    ok = excursion <= MAX_EXCURSION and slope <= MAX_SLOPE
    return Steady(ok=ok, excursion=excursion, slope=slope, rounds=len(rounds))


def _rows(samples: ArrayLike) -> Floats:
    rows = np.asarray(samples, dtype=float)
    if rows.ndim != 2:
        raise ValueError(f"samples are rows of values, all of the same length, got an array of {rows.ndim} dimensions")
    if not np.all(np.isfinite(rows)):
        raise ValueError("values must be finite: a missing figure is left out, not NaN")
    return rows


P_VALUES: dict[str, Callable[[ArrayLike], Floats]] = {
    "drift": drift_p,
    "step": step_p,
    "autocorrelated": autocorrelated_p,
    "two_modes": two_modes_p,
}
"""The tests with a p value, by the key of `SUSPICIOUS_P`."""


def any_suspicious(samples: ArrayLike) -> NDArray[np.bool_]:
    """Return whether a sample, one a row, raises any caveat of shape or order; too small a one raises none."""
    below = [p(samples) < SUSPICIOUS_P[key] for key, p in P_VALUES.items()]
    return np.asarray(np.any([outlier_mask(samples).any(axis=1), *below], axis=0))
