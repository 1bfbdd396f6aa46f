"""Latency histograms of fio's json+ reports: read them, add them up exactly, compute percentiles.

fio sorts every latency into a bin of a fixed scale, so histograms of different jobs and trials can be added up without
loss, which percentiles cannot. A bin is named by the nanoseconds in its middle. Below 128 ns each nanosecond has a bin
of its own; above, every power of two is cut into 64 bins, so that a bin is at most 1/64 of its value wide.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, compress
from statistics import NormalDist
from typing import Any, ClassVar

from mountlab.core.errors import ParseError
from mountlab.core.units import NS_PER_S

BITS = 6
"""Each power of two has 2**BITS bins (fio's FIO_IO_U_PLAT_BITS)."""
_PER_POWER = 2**BITS
_EXACT = 2 * _PER_POWER
_MOST_NS = 2**63
_IN_FLIGHT = 0.01
"""The share of I/Os that may be in the bins only. A text that lost lines has fewer in its bins, not more."""
FEWEST_BEYOND = 10
"""A percentile of a trial needs so many I/Os above it, and below it. docs/calibration.md shows why."""
COARSE = 0.2
"""A bin that holds more than this share of all I/Os: interpolation inside of it rests on too little."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Histogram:
    """How many I/Os fell into each bin, by the nanoseconds in the bin's middle, in rising order."""

    counts: Mapping[int, int]
    least: float = -math.inf
    """The shortest latency in ns, where it is known: it bounds the first bin."""
    most: float = math.inf
    """The longest latency in ns, where it is known: it bounds the last bin."""
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"ser_json_inf_nan": "constants"}
    """Bounds that are not known are infinite, which a record of a trial has to hold."""

    @property
    def total(self) -> int:
        return self.ranks[-1]

    @cached_property
    def filled(self) -> list[int]:
        """The bins that hold I/Os."""
        return list(compress(self.counts, self.counts.values()))

    @cached_property
    def ranks(self) -> list[int]:
        """How many I/Os lie before each of these bins, and at last how many there are."""
        return list(accumulate(filter(None, self.counts.values()), initial=0))


def bin_of(ns: int) -> tuple[int, int]:
    """Return the bin of a latency: its first nanosecond, and its width."""
    if ns < _EXACT:
        return ns, 1
    width = 1 << (ns.bit_length() - 1 - BITS)
    return ns // width * width, width


def middle(ns: int) -> int:
    """Return the name of the bin of a latency, as fio writes it."""
    first, width = bin_of(ns)
    return first + width // 2


def count(latencies_ns: Iterable[int]) -> Histogram:
    """Return the histogram that fio would keep of these latencies."""
    latencies = list(latencies_ns)
    counts = _in_order(Counter(map(middle, latencies)))
    return Histogram(counts, min(latencies), max(latencies)) if latencies else Histogram({})


def read_bins(section: Mapping[str, Any], *, where: str) -> Histogram | None:
    """Return the histogram of a `clat_ns`, `lat_ns` or `slat_ns` section; None where it has none.

    Raises ParseError where a bin is none of fio's, or where the bins do not hold as many I/Os as the section counted,
    or a few more: fio 3.1 leaves I/Os that were in flight at the end of a ramp_time out of the number, and has them in
    the bins.
    """
    bins = section.get("bins")
    if not isinstance(bins, dict) or not bins:
        return None
    counts = _as_fio_writes(bins) or _in_order({_bin(key, where): _count(ios, where) for key, ios in bins.items()})
    total = sum(counts.values())
    stated = section.get("N", total)
    if len(counts) != len(bins) or not stated <= total <= (1 + _IN_FLIGHT) * stated:
        raise ParseError(
            "the bins of the histogram are not whole",
            where=f"{where}.bins",
            got=f"{total} I/Os in {len(bins)} bins",
            allowed=f"{section.get('N')} I/Os, each bin once",
        )
    return Histogram(counts, *_bounds(counts, section.get("min"), section.get("max")))


def _as_fio_writes(bins: Mapping[Any, Any]) -> dict[int, int] | None:
    """Return the counts of bins in rising order; None where one has another name, order or count than fio gives.

    A report has hundreds of bins: to check each by itself took most of the time of reading a log.
    """
    counts = bins.values()
    try:
        ns = list(map(_names().__getitem__, bins))
    except KeyError:
        return None
    if ns != sorted(ns) or set(map(type, counts)) != {int} or min(counts) < 0 or sum(counts) >= _MOST_NS:
        return None
    return dict(zip(ns, counts, strict=True))


@cache
def _names() -> dict[str, int]:
    """All bins of the scale: the text that names each, and its nanoseconds."""
    names, ns = dict[str, int](), 0
    while ns < _MOST_NS:
        names[str(middle(ns))] = middle(ns)
        ns += bin_of(ns)[1]
    return names


def _bounds(counts: dict[int, int], least: object, most: object) -> tuple[float, float]:
    """Return the shortest and the longest latency, where they are those of the first and the last bin that holds
    I/Os; else nothing is known."""
    if isinstance(least, int) and isinstance(most, int) and 0 <= least <= most:
        first = next(compress(counts, counts.values()), None)
        last = next(compress(reversed(counts), reversed(counts.values())), None)
        if (first, last) == (middle(least), middle(most)):
            return least, most
    return -math.inf, math.inf


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Return all of them together, as if one job had done every I/O."""
    parts = [each for each in histograms if each.counts]
    together: Counter[int] = Counter()
    for part in parts:
        together.update(part.counts)
    least = min((each.least for each in parts), default=-math.inf)
    return Histogram(_in_order(together), least, max((each.most for each in parts), default=math.inf))


def enough(ios: float, percent: float) -> bool:
    """Return whether so many I/Os give a percentile: at least FEWEST_BEYOND of them lie above it, and below it."""
    return ios * min(percent, 100 - percent) / 100 >= FEWEST_BEYOND - 1e-9


def ios_needed(percent: float) -> int:
    """Return the fewest I/Os that give a percentile between 0 and 100."""
    return math.ceil(100 * FEWEST_BEYOND / min(percent, 100 - percent) - 1e-6)


def percentile_ns(histogram: Histogram, percent: float) -> float:
    """Return the latency below which `percent` of the I/Os lie, as `percentile_with_step`."""
    return percentile_with_step(histogram, percent)[0]


def percentile_with_step(histogram: Histogram, percent: float) -> tuple[float, float]:
    """Return the latency below which `percent` of the I/Os lie, interpolated inside its bin, and its step, both in ns;
    a bin of 1 ns is exact. The step is to what the latency is uncertain by itself: 0, or the width of the bin where
    that holds more than COARSE of all I/Os. The shape inside of such a bin is not known, and all trials of a cell may
    be wrong by the same amount.

    Between the edges of its bin, the latency is a monotone cubic in the normal score of the rank (slopes: Fritsch &
    Butland, SIAM J. Sci. Stat. Comput. 5 (1984) 300). This is exact where latencies are normal, and close in a tail,
    where a bin holds more I/Os near its lower edge than near its upper one. The neighbouring bins give the slopes.
    Raises ValueError for an empty histogram, and for a percentage beyond 0 to 100.
    """
    filled, ranks = histogram.filled, histogram.ranks
    total = ranks[-1]
    if not filled or not 0 <= percent <= 100:
        raise ValueError(f"no {percent}th percentile of {total} I/Os")
    rank = percent * total / 100
    at = min(max(bisect_left(ranks, rank * (1 - 1e-12)) - 1, 0), len(filled) - 1)
    low, high = _edges(histogram, filled[at])
    step = high - low if ranks[at + 1] - ranks[at] > COARSE * total else 0.0
    if high - low <= 1:
        return (low + high) / 2, step
    begin, end = _score(ranks[at], total), _score(ranks[at + 1], total)
    wide = end - begin
    left = right = slope = (high - low) / wide if wide else 0.0
    if at > 0 and (before := _edges(histogram, filled[at - 1]))[1] >= low:
        left = _slope(begin - _score(ranks[at - 1], total), before[1] - before[0], wide, high - low)
    if at + 1 < len(filled) and (after := _edges(histogram, filled[at + 1]))[0] <= high:
        right = _slope(wide, high - low, _score(ranks[at + 2], total) - end, after[1] - after[0])
    x = (_score(rank, total) - begin) / wide if wide else 0.5
    bend = wide * ((left - slope) * (1 - x) + (slope - right) * x)
    return low + x * (high - low) + x * (1 - x) * bend, step


def _edges(histogram: Histogram, ns: int) -> tuple[float, float]:
    """Return the edges of a bin in ns. Latencies are whole nanoseconds, so they lie half-way between two of them."""
    first, width = bin_of(ns)
    return max(first - 0.5, histogram.least), min(first + width - 0.5, histogram.most)


def _score(rank: float, total: int) -> float:
    """Return the normal score of a rank. The first and the last I/O are half of one from the end."""
    return _NORMAL.inv_cdf(min(max(rank, 0.5), total - 0.5) / total)


def _slope(wide: float, rise: float, next_wide: float, next_rise: float) -> float:
    """At the edge between two bins, so wide in normal scores and so many ns apart from edge to edge: the weighted
    harmonic mean of their slopes, which keeps the curve monotone."""
    if not (wide and rise and next_wide and next_rise):
        return 0.0
    first, second = 2 * next_wide + wide, next_wide + 2 * wide
    return (first + second) / (first / (rise / wide) + second / (next_rise / next_wide))


def distribution(histogram: Histogram) -> tuple[tuple[float, float], ...]:
    """Return the empirical distribution: (seconds, share of the I/Os that took less), at the upper edge of each bin.

    At these points it is exact; between them the histogram does not say.
    """
    total, seen = histogram.total, 0
    points = []
    for ns, number in histogram.counts.items():
        seen += number
        first, width = bin_of(ns)
        points.append(((first + width) / NS_PER_S, seen / total))
    return tuple(points)


def _in_order(counts: Mapping[int, int]) -> dict[int, int]:
    return dict(sorted(counts.items()))


def _bin(key: object, where: str) -> int:
    ns = int(key) if isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) < 20 else -1
    if not 0 <= ns < _MOST_NS or middle(ns) != ns:
        raise ParseError("not a bin of fio's histograms", where=f"{where}.bins", got=repr(key)[:60])
    return ns


def _count(number: object, where: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST_NS:
        raise ParseError("a bin counts I/Os", where=f"{where}.bins", got=repr(number)[:60], allowed="a whole number")
    return number
