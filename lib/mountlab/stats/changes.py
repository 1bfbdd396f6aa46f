"""Where the level of a series of runs changed, with an error rate that holds although somebody looks after every run.

The unit is the run: one figure (the logarithm of its mean) with an error of its own. After every run, each of the last
4, 5, 6, 8, 10, ... runs (a third more each time) are tested against up to `MEMORY` runs before them, by Student's t for
a shift. Figures count in units of their spread, 1 / (tau^2 + s_i^2): s_i is the standard error inside a run, held
against the pooled one (Smyth, Statistical Applications in Genetics 3, 2004), tau the spread between runs.

- Every look: alpha spending (Lan and DeMets, Biometrika 70, 1983) with F(n) = exp(-50 / n) of the level spent up to run
  n, a union bound over looks and over the family. Windows and looks overlap: the sum of their levels may be 1.7 times
  the level, which the calibration tables hold to account.
- Odd runs: level and spread are Huber's (proposal 2, Annals of Mathematical Statistics 35, 1964), and one run counts
  for at most 3.5 spreads, so that two of them cannot make a change.
- Runs that are alike: the variance of a mean allows for the correlation of neighbouring runs (stats.serial).
- A change that was reported stays reported: nothing that comes later takes part in a look. The search goes on from its
  place; the spread is that of all runs about their own levels.
- Its place: the posterior under a flat prior (Smith, Biometrika 62, 1975). Its size: the estimate and the interval
  that are conditional on its having been reported (Zhong and Prentice, Biostatistics 9, 2008; Weinstein, Fithian and
  Benjamini, JASA 108, 2013), since small changes are reported where chance makes them look large. The place was chosen
  where the change looks largest, too: so the interval is the union of those at all places that its set holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mountlab.stats.serial import effective, inflation, shrunken

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Truths = NDArray[np.bool_]

SHORTEST = 4
"""Runs on either side of a change: an odd run, or two, are none."""
MEMORY = 256
"""Runs on either side of a place that a test looks at."""
_SPENT = 50.0
"""A run by which 1 / e of the level is spent."""
_OVERLAP = 1.7
"""By how much the levels of all tests may exceed the level in sum, since windows and looks overlap. By simulation:
figures that correlate by 0.3 alarm in about 5 % over 1,000 looks, independent ones in fewer (docs/calibration.md)."""
CLIP, _CLIP_SPREAD = 3.5, 2.0
"""Spreads that one run counts for at most: in a test, and in level and spread."""
_MODERATION = 4.0
"""Degrees of freedom that the pooled variance has beside that of one run."""
_PLACES = 9
"""Places of a set, its ends among them, whose intervals of the size are united."""
_LEAST = 1e-18
_POWER = 0.8


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
    reported: int
    """The run after which it was reported first: `reported` - `at` + 1 runs are its delay."""
    p: float
    """Corrected over the family and over all looks: the smallest since it was reported."""
    ratio: float
    low: float
    high: float
    """The level after by the level before, given that it was reported; the interval for all places that `at` may be."""


def find_changes(series: Sequence[Sequence[Level]], *, level: float = 0.95) -> list[list[Change]]:
    """Return the changes in each series of one family, oldest first. The chance that any series in which nothing
    changed ever has one, whatever the number of looks, is at most 1 - level over the whole family.

    Too short a series (`fewest_runs`) has none. Values must be finite.
    """
    share = (1 - level) / family_size(series)
    return [_changes(_Series.of(each), share, level) for each in series]


def family_size(series: Sequence[Sequence[Level]]) -> int:
    """Return the number of series that are long enough to be tested at all, 1 or more."""
    return max(1, sum(len(each) >= 2 * SHORTEST for each in series))


def fewest_runs(family: int, level: float = 0.95) -> int:
    """Return the number of runs with which a change can be shown in a family of so many series, if it is huge."""
    runs = 2 * SHORTEST
    while not _can_show(runs, (1 - level) / max(family, 1)):
        runs += 1
    return runs


def _can_show(runs: int, share: float) -> bool:
    after = _windows(runs - SHORTEST)
    before = runs - after
    correlation = np.full(len(after), shrunken(-1 / before, before))
    left = _left(correlation, before, after)
    spread = (before - 1) / left  # all runs after the change are at the limit, and do not vary
    most = CLIP * after / np.sqrt(inflation(correlation, after) * (after + after**2 / before) * spread)
    return bool((most >= _limits(np.full(len(after), runs), effective(runs - 2.0, correlation), share)).any())


def smallest_changes(levels: Sequence[Level], since: int, family: int, level: float = 0.95) -> list[tuple[int, float]]:
    """Return for each number of runs from now on the change (as the distance of a logarithm) that would be reported by
    then in four of five cases, where the newest level began with run `since`. Numbers of runs that show none are left
    out."""
    series = _Series.of(levels)
    if len(levels) - since < SHORTEST:
        return []
    fit = _fit(*_one(series, since, len(levels)))
    before, after = len(levels) - since, _windows(min(MEMORY, len(levels)))
    nominal = float(before) + after - 2
    limits = _limits(len(levels) + after, effective(nominal, fit.correlation), (1 - level) / family)
    unbiased = nominal / _left(fit.correlation, before, after)
    noise = np.sqrt(unbiased * inflation(fit.correlation, after) * (1 / after + 1 / before))
    sizes = (limits + scipy.special.ndtri(_POWER)) * noise
    known = limits * noise < CLIP
    return [(int(a), float(size)) for a, size in zip(after[known], sizes[known] * fit.spread, strict=True)]


# ── one series ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Series:
    values: Floats
    inside: Floats
    """The variance of each value that its trials explain; that of a run depends on no later run."""

    @classmethod
    def of(cls, levels: Sequence[Level]) -> _Series:
        return cls(np.array([each.value for each in levels], dtype=float), _variances(levels))


def _variances(levels: Sequence[Level]) -> Floats:
    """Return the variance of the mean of each run: its own sample variance held against the pooled one of all runs up
    to it; 0 where no run so far has two trials."""
    degrees = np.array([each.degrees for each in levels], dtype=float)
    own = np.array([each.error**2 * (each.degrees + 1) if each.degrees else 0.0 for each in levels], dtype=float)
    pooled = np.cumsum(degrees * own) / np.maximum(np.cumsum(degrees), 1)
    return np.asarray((_MODERATION * pooled + degrees * own) / (_MODERATION + degrees) / (degrees + 1))


@dataclass(frozen=True)
class _Alarm:
    at: int
    look: int
    """Runs that were there when it was reported."""
    level: _Tests


def _changes(series: _Series, share: float, level: float) -> list[Change]:
    alarms = list(_alarms(series, share))
    found: list[Change] = []
    for number, alarm in enumerate(alarms):
        since = found[-1].at if found else 0
        until = alarms[number + 1].at if number + 1 < len(alarms) else len(series.values)
        at, first, last = _where(series, since, until, alarm.at, level)
        places = {at, *np.linspace(first, last, _PLACES).round().astype(int).tolist()}
        sizes = {place: _size(series, (since, place, until), share, level) for place in places}
        low, high = min(low for _, low, _ in sizes.values()), max(high for _, _, high in sizes.values())
        p = min(alarm.level.smallest(alarm.look, until) * (1 - level) / share, 1 - level)
        found.append(Change(at, first, last, since, until, alarm.look - 1, p, sizes[at][0], low, high))
    return found


def _alarms(series: _Series, share: float) -> Iterator[_Alarm]:
    """Yield what is reported after each run, with the place that seemed likeliest then, where the search goes on."""
    start, look, rest = 0, 0, np.full(len(series.values), math.nan)
    while (tests := _tests(series, start, rest)) and (reported := tests.first(share, look)):
        at, look = reported
        at = _where(series, start, look, at, 0.5)[0]
        yield _Alarm(at, look, tests)
        rest[start:at] = series.values[start:at] - _fit(*_one(series, start, at)).level
        start = at


@dataclass(frozen=True)
class _Tests:
    places: Places
    looks: Places
    """(places, windows): runs that are there when the test is done."""
    p: Floats
    """(places, windows), corrected over looks and windows; infinite where there is no test."""

    def first(self, share: float, after: int) -> tuple[int, int] | None:
        """Return place and look of the first test that shows a change, after so many runs."""
        shown = (self.p <= share) & (self.looks > after)
        if not shown.any():
            return None
        look = int(self.looks[shown].min())
        best = np.where(self.looks == look, self.p, math.inf).min(axis=1).argmin()
        return int(self.places[best]), look

    def smallest(self, look: int, until: int) -> float:
        return float(self.p[(self.looks >= look) & (self.looks <= max(look, until))].min())


def _tests(series: _Series, start: int, rest: Floats) -> _Tests | None:
    """Return the test of each place after `start` and each window; None where there are too few runs. `rest`: (runs,)
    earlier runs about their own level."""
    runs = len(series.values)
    places = np.arange(start + SHORTEST, runs - SHORTEST + 1)
    if not len(places):
        return None
    width = min(MEMORY, runs)
    numbers = _before(np.arange(runs, dtype=float), places, width)
    earlier = np.where(numbers < start, _before(rest, places, width), math.nan)
    fit = _fit(
        np.where(numbers >= start, _before(series.values, places, width), math.nan),
        _before(series.inside, places, width),
        earlier,
    )
    after = _windows(width)
    looks = places[:, None] + after
    statistic, degrees = _statistics(fit, *(_after(each, places, width) for each in (series.values, series.inside)))
    p = 2 * scipy.special.stdtr(degrees, -np.abs(statistic)) / _spending(looks)
    return _Tests(places, looks, np.where(looks <= runs, p, math.inf))


def _statistics(fit: _Fit, values: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Return (places, windows) Student's t of the runs after each place against those before, and its degrees of
    freedom. `values`, `inside`: (places, runs)."""
    after = _windows(values.shape[1])
    scale = 1 / np.sqrt(fit.between[:, None] + inside)
    off = np.clip((values - fit.level[:, None]) * scale, -CLIP, CLIP)
    total, weight, squares = (np.cumsum(each, axis=1)[:, after - 1] for each in (scale * off, scale**2, off**2))
    own, correlation = fit.degrees[:, None], fit.correlation[:, None]
    pooled = (own + squares - total**2 / weight) / _left(correlation, own + 1, after)
    factor = inflation(correlation, after)
    statistic = total / np.sqrt(factor * (weight + weight**2 / fit.weight[:, None]) * pooled)
    return np.asarray(statistic), effective(own + after - 1, correlation)


def _before(row: Floats, places: Places, width: int) -> Floats:
    """Return (places, width): the runs before each place, the nearest last; NaN before the first run."""
    return np.asarray(sliding_window_view(np.concatenate([np.full(width, math.nan), row]), width)[places])


def _after(row: Floats, places: Places, width: int) -> Floats:
    """Return (places, width): the runs from each place on; NaN after the last run."""
    return np.asarray(sliding_window_view(np.concatenate([row, np.full(width, math.nan)]), width)[places])


def _windows(most: int) -> Places:
    """Return 4, 5, 6, 8, 10, ... up to a number of runs."""
    found = [SHORTEST]
    while found[-1] <= most:
        found.append(max(found[-1] + 1, found[-1] * 4 // 3))
    return np.array(found[:-1], dtype=np.intp)


def _spending(looks: Places) -> Floats:
    """Return the share of the level that one window of a look may spend: 1.7 (exp(-50 / n) - exp(-50 / (n - 1))),
    by the number of windows that n runs have."""
    runs = np.maximum(looks, 2)
    spent = _OVERLAP * (np.exp(-_SPENT / runs) - np.exp(-_SPENT / (runs - 1)))
    windows = np.searchsorted(_windows(MEMORY), runs - SHORTEST, side="right")
    return np.asarray(spent / np.maximum(windows, 1))


def _limits(looks: Places, degrees: NDArray[np.floating] | float, share: float) -> Floats:
    """Return Student's t from which on a test of a look shows a change."""
    return np.asarray(-scipy.special.stdtrit(degrees, share * _spending(looks) / 2))


# ── level and spread ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Fit:
    """Of each of several rows of runs: all are (rows,)."""

    level: Floats
    spread: Floats
    """Of a run whose trials are as the average."""
    between: Floats
    """The variance that trials do not explain."""
    weight: Floats
    """1 / the variance of the level, of independent runs."""
    degrees: Floats
    correlation: Floats


def _fit(values: Floats, inside: Floats, rest: Floats) -> _Fit:
    """Return Huber's level and spread of each row. (rows, runs); NaN where there is no run. `rest`: runs about another
    level, for the spread alone."""
    own, there = ~np.isnan(values), ~(np.isnan(values) & np.isnan(rest))
    count, inside = there.sum(axis=1), np.where(there, inside, 0.0)
    trials = inside.sum(axis=1) / count
    level = _medians(values)
    variance = _first_variance(_off(values, rest, level), there)
    for _ in range(5):
        scale = 1 / np.sqrt(_between(variance, trials)[:, None] + inside)
        clipped = np.clip(_off(values, rest, level) * scale, -_CLIP_SPREAD, _CLIP_SPREAD)
        unclipped = (scale**2 * (own & (np.abs(clipped) < _CLIP_SPREAD))).sum(axis=1)
        level = level + (scale * clipped * own).sum(axis=1) / np.maximum(unclipped, (scale**2 * own).sum(axis=1) / 2)
        variance = np.maximum(variance * (clipped**2).sum(axis=1) / (_CONSISTENT * (count - 1)), _LEAST)
    between = _between(variance, trials)
    scale = 1 / np.sqrt(between[:, None] + inside)
    clipped = np.clip(_off(values, rest, level) * scale, -_CLIP_SPREAD, _CLIP_SPREAD)
    serial = (clipped[:, 1:] * clipped[:, :-1]).sum(axis=1) / np.maximum((clipped**2).sum(axis=1), _LEAST)
    weight = (scale**2 * own).sum(axis=1)
    return _Fit(level, np.sqrt(between + trials), between, weight, count - 1.0, shrunken(serial, count))


def _off(values: Floats, rest: Floats, level: Floats) -> Floats:
    """Return each run less its level; 0 where there is none."""
    own = values - level[:, None]
    return np.asarray(np.nan_to_num(np.where(np.isnan(own), rest, own), nan=0.0))


def _medians(rows: Floats) -> Floats:
    """Return the median of each row without its NaN; numpy's own takes longer."""
    ordered, count = np.sort(rows, axis=1), (~np.isnan(rows)).sum(axis=1)
    each = np.arange(len(rows))
    return np.asarray((ordered[each, (count - 1) // 2] + ordered[each, count // 2]) / 2)


def _first_variance(off: Floats, there: Truths) -> Floats:
    """Return the squared MAD; the mean square where more than half of the runs are the same."""
    mad = 1.4826 * _medians(np.where(there, np.abs(off), math.nan))
    squares = (off**2).sum(axis=1) / there.sum(axis=1)
    return np.asarray(np.maximum(np.where(mad > 0, mad**2, squares), _LEAST))


def _between(variance: Floats, trials: Floats) -> Floats:
    return np.maximum(variance - trials, _LEAST)


def _consistent(clip: float) -> float:
    """Return the mean square of a standard normal variable that is clipped."""
    outside, height = scipy.special.ndtr(-clip), math.exp(-(clip**2) / 2) / math.sqrt(2 * math.pi)
    return float(1 - 2 * outside - 2 * clip * height + 2 * clip**2 * outside)


_CONSISTENT = _consistent(_CLIP_SPREAD)


def _left(correlation: Floats, before: Floats | Places | int, after: Places) -> Floats:
    """Return what sums of squares about two levels are divided by: runs less the squares that the levels take up."""
    return np.asarray(before + after - inflation(correlation, before) - inflation(correlation, after))


def _one(series: _Series, start: int, end: int) -> tuple[Floats, Floats, Floats]:
    """Return the newest runs of a part as the only row of a fit."""
    start = max(start, end - MEMORY)
    return series.values[None, start:end], series.inside[None, start:end], np.full((1, end - start), math.nan)


def _two(series: _Series, ends: tuple[int, int, int], level: float) -> tuple[Floats, Floats, Floats]:
    """Return the runs after a change as a row of a fit, with those before, about their level, for the spread."""
    since, at, until = ends
    start, end = max(since, at - MEMORY), min(until, at + MEMORY)
    runs, values = np.arange(start, end), series.values[None, start:end]
    rest = np.where(runs < at, values - level, math.nan)
    return np.where(runs >= at, values, math.nan), series.inside[None, start:end], rest


# ── place and size of one change ─────────────────────────────────────────────────────────────────────────────────────


def _where(series: _Series, since: int, until: int, about: int, level: float) -> tuple[int, int, int]:
    """Return the most likely place of one change, and the ends of the smallest set of places that holds it with this
    probability, for normal figures of unknown levels and variance, and a place that could be any. `about`: where it
    lies, roughly; odd runs are clipped."""
    fits = [_fit(*_one(series, *part)) for part in ((since, about), (about, until))]
    room = CLIP * max(float(fit.spread[0]) for fit in fits)
    low, high = (pick(float(fit.level[0]) for fit in fits) for pick in (min, max))
    values = np.clip(series.values[since:until], low - room, high + room)
    values = values - values.mean()
    weights = 1 / (max(float(fit.between[0]) for fit in fits) + series.inside[since:until])
    places, logs = _posterior(values, weights / weights.mean())
    logs = logs / float(inflation(fits[0].correlation, MEMORY)[0])
    shares = np.exp(logs - scipy.special.logsumexp(logs))
    order = np.argsort(-shares, kind="stable")
    held = order[: int(np.searchsorted(np.cumsum(shares[order]), level)) + 1]
    return since + int(places[order[0]]), since + int(places[held].min()), since + int(places[held].max())


def _posterior(values: Floats, weights: Floats) -> tuple[Places, Floats]:
    runs = len(values)
    places = np.arange(SHORTEST, runs - SHORTEST + 1)
    counts, sums = np.cumsum(weights)[places - 1], np.cumsum(weights * values)[places - 1]
    total, whole = weights.sum(), float((weights * values).sum())
    explained = sums**2 / counts + (whole - sums) ** 2 / (total - counts)
    rest = np.maximum((weights * values**2).sum() - explained, 1e-300)
    return places, -(runs - 2) / 2 * np.log(rest) - np.log(counts * (total - counts)) / 2


def _size(series: _Series, ends: tuple[int, int, int], share: float, level: float) -> tuple[float, float, float]:
    """Return the ratio of the level after to that before with its interval, given that the change was reported."""
    since, at, until = ends
    before = _fit(*_one(series, since, at))
    counts = min(at - since, MEMORY), min(until - at, MEMORY)
    both = _fit(*_two(series, ends, float(before.level[0])))
    factors = [float(inflation(both.correlation, count)[0]) for count in counts]
    weights = float(before.weight[0] * before.spread[0] ** 2 / both.spread[0] ** 2), float(both.weight[0])
    error = math.sqrt(sum(factor / weight for factor, weight in zip(factors, weights, strict=True)))
    difference = float(both.level[0] - before.level[0])
    error *= math.sqrt((sum(counts) - 2) / float(_left(both.correlation, counts[0], np.array([counts[1]]))[0]))
    degrees = float(effective(sum(counts) - 2.0, both.correlation)[0])
    reported = _Reported.of(at, *counts, share, degrees / (sum(counts) - 2))
    sizes = reported.sizes(abs(difference) / error, degrees, level)
    middle, near, far = (math.exp(math.copysign(error * size, difference)) for size in sizes)
    return middle, min(near, far), max(near, far)


@dataclass(frozen=True)
class _Reported:
    """How likely a change was reported, by the t that is found for it in the end: given that, the path to it is a
    Brownian bridge, whatever the size of the change."""

    after: Places
    limits: Floats
    """Of t, for each number of runs after the change."""
    before: int
    runs: int

    @classmethod
    def of(cls, at: int, before: int, runs: int, share: float, effective: float) -> _Reported:
        """`effective`: the share of the degrees of freedom that correlation leaves."""
        after = _windows(runs)
        return cls(after, _limits(at + after, effective * (before + after - 2.0), share), before, runs)

    def chance(self, found: Floats) -> Floats:
        """Return for each t that is found in the end how likely a limit was exceeded on the way."""
        ends = found * math.sqrt(self.runs + self.runs**2 / self.before)
        scale = np.sqrt(self.after + self.after**2 / self.before)
        spreads = np.exp(_draws(self.runs)[:, :1] / math.sqrt(2 * (self.before + self.runs - 2)))
        room, bridges, share = self.limits * scale * spreads, _bridges(self.runs), self.after / self.runs
        low, high = ((-room - bridges) / share).max(axis=1), ((room - bridges) / share).min(axis=1)
        return np.asarray(((ends[:, None] <= low) | (ends[:, None] >= high)).mean(axis=1))

    def sizes(self, t: float, degrees: float, level: float) -> tuple[float, float, float]:
        """Return in standard errors the size whose median is t, and the ends of its interval: at each end, so large a t
        (or so small a one) has probability (1 - level) / 2. The sign is known: no end lies beyond 0."""
        tail = (1 - level) / 2
        if t > self.limits.max() + 6:
            half = -float(scipy.special.stdtrit(degrees, tail))
            return t, t - half, t + half
        found = np.linspace(t - 12, t + 12, 241)
        chance = self.chance(found)
        tried = np.linspace(0, t + 8, 161)
        density = (1 + (found - tried[:, None]) ** 2 / degrees) ** (-(degrees + 1) / 2) * chance  # times a constant
        above = (density * np.where(found == found[120], 0.5, found > t)).sum(axis=1) / density.sum(axis=1)
        above = np.maximum.accumulate(above)
        middle, near, far = (float(np.interp(each, above, tried)) for each in (0.5, tail, 1 - tail))
        return middle, near, far


def _bridges(runs: int) -> Floats:
    """Return (bridges, windows): Brownian bridges from 0 to the last run, always the same."""
    after = _windows(runs)
    steps = np.diff(np.append(np.concatenate([[0], after]), runs))
    walk = np.cumsum(_draws(runs)[:, 1:] * np.sqrt(steps), axis=1)
    return np.asarray(walk[:, :-1] - walk[:, -1:] * after / runs)


def _draws(runs: int) -> Floats:
    """Return (bridges, 1 for the spread and one for each step): standard normal numbers, always the same."""
    return np.random.default_rng(runs).normal(0, 1, (200, len(_windows(runs)) + 2))
