"""The figures of fio's human output: what each may mean, and whether those of one line agree."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from mountlab.core.resolution import last_digit
from mountlab.core.units import KIB, NS_PER_S
from mountlab.fio import report as fio_report
from mountlab.logs.base import times_ten
from mountlab.logs.fio_lines import AMOUNT, NUMBER
from mountlab.stats.histograms import bin_of

_PREFIXES, _OLD_PREFIXES = " KMGTPE", " KMGPE"
"""Before 2.17 fio has no T: what it calls P is 1024 G."""


TOLERANCE = 0.015
POINTS_KEPT = {float(key): name for name, key in fio_report.PERCENTILES.items()}
"""Percentage to its name in METRICS."""


class Printed(NamedTuple):
    """A figure of fio's text."""

    meant: tuple[float, ...]
    """What it may mean: as it is printed, and with the carry that fio before 3.26 loses."""
    half: float
    """Half of its last digit."""

    @property
    def step(self) -> float:
        """What one in its last digit is worth."""
        return 2 * self.half


_BLOCKS = re.compile(r"^\s*(?P<name>\S.*): \(g=(?P<group>\d{1,9})\): rw=[^,]*, bs=(?P<sizes>.*?), ioengine=")


_BLOCK = re.compile(rf"(?:\((?P<side>[RWT])\) )?(?P<least>{AMOUNT})-(?P<most>{AMOUNT})(?=[,/]|$)")


def block_sizes(lines: Sequence[str]) -> Mapping[tuple[str, int], Mapping[str, float]]:
    """Return for each job in the header, by name and group, how many bytes an I/O of each direction has, where all have
    the same."""
    sizes_of: dict[tuple[str, int], list[Mapping[str, float]]] = defaultdict(list)
    for match in filter(None, map(_BLOCKS.match, lines)):
        sizes = list(_BLOCK.finditer(match["sizes"]))
        same = [bytes_of(size["least"], old=not size["side"]).meant[0] if size["least"] == size["most"] else 0
                for size in sizes]  # fmt: skip
        sizes_of[match["name"], int(match["group"])].append(
            {side: size for side, size in zip(fio_report.SIDES, same, strict=False) if size}
        )
    return {job: stated[0] for job, stated in sizes_of.items() if all(size == stated[0] for size in stated)}


def per_second(amounts: Printed, seconds: float) -> Printed:
    """Return a rate as fio computes it: over the milliseconds that it prints."""
    time = seconds or math.inf
    return Printed(tuple(amount / time for amount in amounts.meant), amounts.half / time)


def per_millisecond(rate: Printed, amount: Printed, seconds: float, *, old: bool) -> tuple[float, ...]:
    """Return what a rate and an amount of fio 1 mean; () where they do not agree. It prints whole bytes a millisecond,
    cut off, as KiB/s: bytes and time tell the rate."""
    per_ms = amount.meant[0] / (seconds * 1e3) if seconds else math.inf
    agree = old and abs(rate.meant[0] / KIB - per_ms) <= 1
    return (amount.meant[0] / seconds,) * 2 if agree else ()


def agreeing_values(figures: Sequence[Printed], slack: float = 1.0) -> tuple[float, ...]:
    """Return what figures of one amount mean; () where no meanings of theirs agree. Of several that agree in all the
    digits that fio prints, the one with the fewest lost carries; else the nearest."""

    def order(meanings: Sequence[tuple[int, float]]) -> tuple[bool, int, float]:
        values = [value for _, value in meanings]
        apart = max(value - one.half for value, one in zip(values, figures, strict=True)) > min(
            value + one.half for value, one in zip(values, figures, strict=True)
        )
        return apart, 0 if apart else sum(carry for carry, _ in meanings), max(values) - min(values)

    nearest = tuple(value for _, value in min(product(*(enumerate(meanings.meant) for meanings in figures)), key=order))
    return nearest if max(nearest) - min(nearest) <= TOLERANCE * max(nearest) + slack else ()


def plain_numbers(line: str) -> str:
    """Return a line of fio 1 without the blanks and commas in its numbers: 'io=  1,024MB' is 'io=1024MB'."""
    return re.sub(r"(?<==) +|(?<=\d),(?=\d{3}(?!\d))", "", line)


def count_of(text: str) -> Printed:
    """'13.4k' in full; of '13.0k' 13,000, and 14,000 of a fio that drops the carry."""
    match = re.fullmatch(rf"({NUMBER}) ?([kKMGTPE]?)", text)
    assert match
    power = 3 * _PREFIXES.index(match[2].upper() or " ")
    return Printed(tuple(times_ten(number, power) for number in _meant(match[1])), _half(match[1]) * 10.0**power)


def bytes_of(text: str, *, old: bool) -> Printed:
    """'76.6MiB' and '80.3MB' as they are meant; the 'KB' and 'MB' of version 2 as KiB and MiB; bits as bytes."""
    match = re.fullmatch(rf"({NUMBER}) ?([kKMGTPE]?)(i?)(B|bit|)", text)
    assert match
    base = KIB if old or match[3] else 1000
    unit = float(base ** (_OLD_PREFIXES if old else _PREFIXES).find(match[2].upper() or " "))
    unit /= 8 if match[4] == "bit" else 1
    numbers = [match[1]] if old else _meant(match[1])
    return Printed(tuple(float(number) * unit for number in numbers), _half(match[1]) * unit)


def _half(number: str) -> float:
    """Return half of the last digit that is printed."""
    return 0.5 * last_digit(number)


def _meant(number: str) -> list[str]:
    whole, point, decimals = number.partition(".")
    return [number, str(int(whole) + 1)] if point and not decimals.strip("0") else [number]


def step_of_a_point(value: str, power: int) -> float:
    """Return the step of a percentile: the bin of fio's around it, or the last digit that is printed."""
    bin_ns = bin_of(round(times_ten(value, power) * NS_PER_S))[1]
    return max(bin_ns / NS_PER_S, times_ten("1", power))
