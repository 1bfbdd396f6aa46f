"""Latency histograms of fio's json+ reports: read, added up exactly, and asked for percentiles.

fio sorts every latency into a bin of a fixed scale, so histograms of different jobs and trials can be added up without
loss, which percentiles cannot. A bin is named by the nanoseconds in its middle. Below 128 ns each nanosecond has a bin
of its own; above, every power of two is cut into 64 bins, so that a bin is at most 1/64 of its value wide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mountlab.errors import ParseError
from mountlab.units import NS_PER_S

BITS = 6
"""Each power of two has 2**BITS bins (fio's FIO_IO_U_PLAT_BITS)."""
_PER_POWER = 2**BITS
_EXACT = 2 * _PER_POWER
_MOST_NS = 2**63


@dataclass(frozen=True)
class Histogram:
    """How many I/Os fell into each bin, by the nanoseconds in the bin's middle, in rising order."""

    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def bin_of(ns: int) -> tuple[int, int]:
    """The bin of a latency: its first nanosecond, and its width."""
    if ns < _EXACT:
        return ns, 1
    width = 1 << (ns.bit_length() - 1 - BITS)
    return ns // width * width, width


def middle(ns: int) -> int:
    """The name of the bin of a latency, as fio writes it."""
    first, width = bin_of(ns)
    return first + width // 2


def count(latencies_ns: Iterable[int]) -> Histogram:
    """The histogram that fio would keep of these latencies."""
    return _sorted(Counter(middle(ns) for ns in latencies_ns))


def read_bins(section: Mapping[str, Any], *, where: str) -> Histogram | None:
    """The histogram of a `clat_ns`, `lat_ns` or `slat_ns` section; None where it has none.

    Raises ParseError where a bin is none of fio's, or where the bins do not hold as many I/Os as the section counted.
    """
    bins = section.get("bins")
    if not isinstance(bins, dict) or not bins:
        return None
    counts = {_bin(key, where): _count(number, where) for key, number in bins.items()}
    found = _sorted(counts)
    if len(counts) != len(bins) or found.total != section.get("N", found.total):
        raise ParseError(
            "the bins of the histogram are not whole", where=f"{where}.bins",
            got=f"{found.total} I/Os in {len(bins)} bins", allowed=f"{section.get('N')} I/Os, each bin once",
        )  # fmt: skip
    return found


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All of them together, as if one job had done every I/O."""
    together: Counter[int] = Counter()
    for histogram in histograms:
        together.update(histogram.counts)
    return _sorted(together)


def percentile_ns(histogram: Histogram, percent: float) -> int:
    """The middle of the first bin up to which at least `percent` of all I/Os lie: what fio itself reports.

    Raises ValueError for an empty histogram, and for a percentage beyond 0 to 100.
    """
    total = histogram.total
    if not total or not 0 <= percent <= 100:
        raise ValueError(f"no {percent}th percentile of {total} I/Os")
    needed = math.ceil(Fraction(percent) * total / 100)
    seen = 0
    for ns, number in histogram.counts.items():
        seen += number
        if seen >= needed:
            return ns
    raise AssertionError("the counts of a histogram sum to its total")


def percentile(histogram: Histogram, percent: float) -> float:
    """`percentile_ns` in seconds."""
    return percentile_ns(histogram, percent) / NS_PER_S


def distribution(histogram: Histogram) -> tuple[tuple[float, float], ...]:
    """The empirical distribution: (seconds, share of the I/Os that took less), at the upper edge of each bin.

    At these points it is exact; between them the histogram does not say.
    """
    total, seen = histogram.total, 0
    points = []
    for ns, number in histogram.counts.items():
        seen += number
        first, width = bin_of(ns)
        points.append(((first + width) / NS_PER_S, seen / total))
    return tuple(points)


def _sorted(counts: Mapping[int, int]) -> Histogram:
    return Histogram({ns: counts[ns] for ns in sorted(counts)})


def _bin(key: object, where: str) -> int:
    ns = int(key) if isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) < 20 else -1
    if not 0 <= ns < _MOST_NS or middle(ns) != ns:
        raise ParseError("not a bin of fio's histograms", where=f"{where}.bins", got=repr(key)[:60])
    return ns


def _count(number: object, where: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST_NS:
        raise ParseError("a bin counts I/Os", where=f"{where}.bins", got=repr(number)[:60], allowed="a whole number")
    return number
