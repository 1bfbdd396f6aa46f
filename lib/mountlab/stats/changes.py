"""Where the level of a series of runs changed, and how sure that is.

The unit is the run: one figure (the logarithm of its mean) with an error of its own. Runs are weighted by
1 / (tau^2 + s_i^2), where s_i is the standard error inside a run and tau the spread between runs (DerSimonian and
Laird, Controlled Clinical Trials 7, 1986); s_i is held against the pooled one, as it comes of few trials (Smyth,
Statistical Applications in Genetics 3, 2004). The statistic is the largest difference of weighted means over all
splits of the whole series and of seeded parts of it (Kovács, Bühlmann, Li and Munk, Biometrika 110, 2023), so that a
regression which was mended again does not hide itself. Its p value is that of a permutation test, as in E-divisive
(Matteson and James, JASA 109, 2014): figures and weights are permuted together, so that it is exact where runs could
have come in any order; it is sequential (Besag and Clifford, Biometrika 78, 1991), so that quiet series cost little.
What lies on either side of a change is tested again. Correction: Holm over the series of a family; for the parts of a
series that changed, Bonferroni over the series and the parts of one depth. Where a change lies: the posterior of its
place under a flat prior (Smith, Biometrika 62, 1975).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from mountlab.stats.comparisons import compare_rows_unpaired, holm

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

SHORTEST = 3
"""Runs on either side of a change: one odd run, or two, are none."""
LEAST_PERMUTATIONS, MOST_PERMUTATIONS = 1_999, 99_999
_ENOUGH = 20
"""Permutations as extreme as the series, after which its p value is known well enough: it is not small."""
_FIRST, _CHUNK = 100, 2_000_000
"""Permutations that are tried first; numbers that are held at once."""
_MODERATION = 4.0
"""Degrees of freedom that the pooled variance has beside that of one run."""


@dataclass(frozen=True)
class Level:
    """One run of a series: the logarithm of its mean, its standard error, and the degrees of freedom of that. The error
    is NaN, and the degrees 0, where the run has one trial."""

    value: float
    error: float = math.nan
    degrees: int = 0


@dataclass(frozen=True)
class Change:
    """The level from run `at` on is another than before; runs are counted from 0."""

    at: int
    first: int
    last: int
    """Where `at` lies with the confidence asked for: from `first` to `last`, both included."""
    since: int
    until: int
    """The runs that stand on either side: [since, at) and [at, until)."""
    p: float
    """Of the part of the series in which it was found."""
    p_adjusted: float
    """Corrected over the family, and over the parts that were looked into."""
    ratio: float
    low: float
    high: float
    """The level after by the level before, with its interval by Welch over runs."""


def find_changes(series: Sequence[Sequence[Level]], seeds: Sequence[int], *, level: float = 0.95) -> list[list[Change]]:
    """The changes in each series of one family, oldest first. The chance that any series in which nothing changed has
    one is at most 1 - level over the whole family.

    `seeds`: one a series, for its permutations. Too short a series (`fewest_runs`) has none.
    """
    prepared = [_Prepared.of(each) for each in series]
    most = permutations_for(len(series), level)
    firsts = [
        _tested(each, 0, len(each.values), np.random.default_rng(seed), most)
        for each, seed in zip(prepared, seeds, strict=True)
    ]
    known = [each.p for each in firsts if each]
    adjusted = iter(holm(known) if known else [])
    found = []
    for each, seed, first in zip(prepared, seeds, firsts, strict=True):
        p = next(adjusted) if first else 1.0
        rng = np.random.default_rng([seed, 1])
        places = list(_split(each, first, p, len(series), level, rng, most)) if first and p <= 1 - level else []
        found.append(_told(each, sorted(places, key=lambda place: place.at), level))
    return found


def permutations_for(series: int, level: float) -> int:
    """How many permutations can show a p value that is small enough after correction over so many series."""
    return int(min(max(LEAST_PERMUTATIONS, math.ceil(5 * series / (1 - level)) - 1), MOST_PERMUTATIONS))


def fewest_runs(series: int, level: float = 0.95) -> int:
    """With fewer runs no change can be shown in a family of so many series, however large: too few orders of them are
    less like one."""
    runs = 2 * SHORTEST
    while 2 / math.comb(runs, runs // 2) > (1 - level) / max(series, 1):
        runs += 1
    return runs


# ── one series ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Prepared:
    values: Floats
    """About 0: less the weighted mean of all."""
    weights: Floats

    @classmethod
    def of(cls, levels: Sequence[Level]) -> _Prepared:
        values = np.array([each.value for each in levels], dtype=float)
        if not len(values):
            return cls(values, values)
        weights = weights_of(levels)
        return cls(values - np.average(values, weights=weights), weights)


def weights_of(levels: Sequence[Level]) -> Floats:
    """What each run counts for: 1 / (tau^2 + s_i^2), scaled to a mean of 1. Does not depend on the order of runs."""
    values = np.array([each.value for each in levels], dtype=float)
    inside = _variances(levels)
    if not (inside > 0).all():
        return np.ones(len(values))
    exact = 1 / inside
    mean = np.average(values, weights=exact)
    scale = exact.sum() - (exact**2).sum() / exact.sum()
    excess = float((exact * (values - mean) ** 2).sum()) - (len(values) - 1)
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    weights = 1 / (between + inside)
    return np.asarray(weights / weights.mean())


def _variances(levels: Sequence[Level]) -> Floats:
    """Of the mean of each run: its own sample variance held against the pooled one; NaN where no run has two trials."""
    degrees = np.array([each.degrees for each in levels], dtype=float)
    errors = np.array([each.error if each.degrees else 0.0 for each in levels], dtype=float)
    if not degrees.sum():
        return np.full(len(levels), math.nan)
    own = errors**2 * (degrees + 1)
    pooled = float((degrees * own).sum() / degrees.sum())
    return np.asarray((_MODERATION * pooled + degrees * own) / (_MODERATION + degrees) / (degrees + 1))


@dataclass(frozen=True)
class _Found:
    at: int
    p: float
    start: int
    end: int
    p_adjusted: float = math.nan


def _tested(series: _Prepared, start: int, end: int, rng: np.random.Generator, most: int) -> _Found | None:
    """The most striking split of a part of the series, and its p value; None where the part is too short."""
    if end - start < 2 * SHORTEST:
        return None
    values, weights = series.values[start:end], series.weights[start:end]
    splits = _splits(end - start)
    observed = _statistics(values[None], weights[None], splits)[0]
    best = int(observed.argmax())
    p = _p_value(values, weights, splits, float(observed[best]), rng, most)
    return _Found(start + int(splits[1][best]), p, start, end)


def _split(
    series: _Prepared, found: _Found, p_adjusted: float, family: int, level: float, rng: np.random.Generator, most: int,
    depth: int = 1,
) -> Iterator[_Found]:  # fmt: skip
    """A change that is shown, and those on either side of it."""
    yield _Found(found.at, found.p, found.start, found.end, p_adjusted)
    for start, end in ((found.start, found.at), (found.at, found.end)):
        inner = _tested(series, start, end, rng, most)
        if inner is None:
            continue
        p = max(p_adjusted, min(1.0, inner.p * family * 2**depth))
        if p <= 1 - level:
            yield from _split(series, inner, p, family, level, rng, most, depth + 1)


def _splits(runs: int) -> tuple[Places, Places, Places]:
    """Start, split and end of everything that is looked at: all splits of the whole, and of seeded parts of it."""
    parts = dict.fromkeys([(0, runs), *_seeded(runs)])
    triples = [
        (start, split, end) for start, end in parts for split in range(start + SHORTEST, end - SHORTEST + 1)
    ]  # fmt: skip
    starts, places, ends = np.array(triples, dtype=np.intp).T
    return starts, places, ends


def _seeded(runs: int) -> Iterator[tuple[int, int]]:
    """Parts of half the length, a quarter and so on, each overlapping the next by a half."""
    length = runs / 2
    while length >= 2 * SHORTEST:
        for start in np.arange(0, runs - length + 1e-9, length / 2):
            yield round(float(start)), min(runs, round(float(start) + length))
        length /= 2


def _statistics(values: Floats, weights: Floats, splits: tuple[Places, Places, Places]) -> Floats:
    """(orders, runs) to (orders, splits): the squared difference of weighted means, in units of its variance."""
    starts, places, ends = splits
    sums = _from_zero(weights * values)
    counts = _from_zero(weights)
    before, after = counts[:, places] - counts[:, starts], counts[:, ends] - counts[:, places]
    left = (sums[:, places] - sums[:, starts]) / before
    right = (sums[:, ends] - sums[:, places]) / after
    return np.asarray((left - right) ** 2 * before * after / (before + after))


def _from_zero(rows: Floats) -> Floats:
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)


def _p_value(
    values: Floats, weights: Floats, splits: tuple[Places, Places, Places], observed: float, rng: np.random.Generator,
    most: int,
) -> float:  # fmt: skip
    """The share of orders whose largest statistic is at least as large, the order seen among them; after the first few
    such orders it is known well enough."""
    limit, tried, hits = observed * (1 - 1e-9) - 1e-300, 0, 0
    size = _FIRST
    while tried < most:
        count = min(size, most - tried, max(1, _CHUNK // len(splits[0])))
        orders = rng.permuted(np.broadcast_to(np.arange(len(values)), (count, len(values))), axis=1)
        as_large = _statistics(values[orders], weights[orders], splits).max(axis=1) >= limit
        reached = np.cumsum(as_large) + hits
        if reached[-1] >= _ENOUGH:
            return float(_ENOUGH / (tried + 1 + int(np.argmax(reached >= _ENOUGH))))
        tried, hits, size = tried + count, int(reached[-1]), size * 2
    return (hits + 1) / (tried + 1)


# ── what is told of them ─────────────────────────────────────────────────────────────────────────────────────────────


def _told(series: _Prepared, places: Sequence[_Found], level: float) -> list[Change]:
    """The changes of one series, each between its neighbours."""
    told: list[Change] = []
    for number, place in enumerate(places):
        since = told[-1].at if told else 0
        until = places[number + 1].at if number + 1 < len(places) else len(series.values)
        at, first, last = _where(series.values[since:until], series.weights[since:until], level)
        at, first, last = since + at, since + first, since + last
        ratio, low, high = _ratio(series.values[since:at], series.values[at:until], level)
        told.append(Change(at, first, last, since, until, place.p, place.p_adjusted, ratio, low, high))
    return told


def _where(values: Floats, weights: Floats, level: float) -> tuple[int, int, int]:
    """The most likely place of one change, and the ends of the smallest set of places that holds it with this
    probability, for normal figures of unknown levels and variance and a place that could be any."""
    runs = len(values)
    places = np.arange(SHORTEST, runs - SHORTEST + 1)
    counts, sums = np.cumsum(weights)[places - 1], np.cumsum(weights * values)[places - 1]
    total, whole = weights.sum(), float((weights * values).sum())
    explained = sums**2 / counts + (whole - sums) ** 2 / (total - counts)
    rest = np.maximum((weights * values**2).sum() - explained, 1e-300)
    logs = -(runs - 2) / 2 * np.log(rest) - np.log(counts * (total - counts)) / 2
    shares = np.exp(logs - logsumexp(logs))
    order = np.argsort(-shares, kind="stable")
    held = order[: int(np.searchsorted(np.cumsum(shares[order]), level)) + 1]
    return int(places[order[0]]), int(places[held].min()), int(places[held].max())


def _ratio(before: Floats, after: Floats, level: float) -> tuple[float, float, float]:
    """The level after by the level before; each run is one value."""
    size = max(len(before), len(after))
    rows = [np.pad(np.exp(each), (0, size - len(each)), constant_values=math.nan)[None] for each in (after, before)]
    found = compare_rows_unpaired(*rows)
    low, high = found.bounds(level)
    return float(found.ratio[0]), float(low[0]), float(high[0])
