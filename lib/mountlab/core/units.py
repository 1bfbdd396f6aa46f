"""The only home of 1024, 1000 and 1e9: text to base units (B, s, B/s, 1/s) and back.

Sizes need their unit spelled out, because `4k` means 4096 to fio and 4000 to many readers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from mountlab.core.errors import ParameterError

KIB, MIB, GIB = 1024, 1024**2, 1024**3
NS_PER_S = 1_000_000_000
SECTOR_BYTES = 512
"""/proc/diskstats counts sectors of 512 bytes, whatever the device's own sector size is (kernel: iostats.rst)."""

SIZE_UNITS = {
    "B": 1,
    "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024**4,
    "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4,
}  # fmt: skip
TIME_UNITS = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1),
    "min": Decimal(60), "m": Decimal(60), "h": Decimal(3600),
}  # fmt: skip
SizeText = Annotated[str, "a size with its unit, such as `64KiB`"]
TimeText = Annotated[str, "a time with its unit, such as `60s`"]
PercentText = Annotated[str, "a share, such as `3%`"]
"""Types of keys in parameter files, with their description for the reference in docs/."""
_KERNEL_SIZE = re.compile(r"(0x[0-9a-f]+|\d+)([kmgtp]?)(?:(?<=[kmgtp])iB)?\Z", re.IGNORECASE)
_KERNEL_UNITS = {unit: 1024**power for power, unit in enumerate(("", "k", "m", "g", "t", "p"))}
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*\Z")
_FROM_ONE = re.compile(r"\s*(0|[1-9]\d*(\.\d+)?)\s*\Z")
_BELOW_ONE = re.compile(r"\s*0?\.\d+\s*\Z")
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*\Z")


def _parse(text: object, units: dict[str, Decimal], example: str, where: str) -> Decimal:
    match = _QUANTITY.match(text) if isinstance(text, str) else None
    if not match or match[2] not in units:
        raise ParameterError(
            "a number below zero" if _is_negative(text) else "a number with its unit is needed",
            where=where,
            got=f"{text!r} ({type(text).__name__})",
            allowed=f"text such as {example}; units {', '.join(units)}",
            next_step=_how_to_write(text),
        )
    return Decimal(match[1]) * units[match[2]]


_NOT_NEGATIVE = "write it without the minus sign"


def _is_negative(text: object) -> bool:
    return isinstance(text, str) and bool(re.match(r"\s*[-\u2212]\s*[\d.]", text))


def _how_to_write(text: object) -> str:
    if _is_negative(text):
        return _NOT_NEGATIVE
    if isinstance(text, str) and re.fullmatch(r"\s*\d+[kKmMgGtT]\s*", text):
        return "4k is 4KiB (4096 B) to some readers and 4kB (4000 B) to others: write which"
    return "write the number and its unit, in quotes if YAML reads it as something else"


def kernel_bytes(text: str) -> int | None:
    """Return the number that the kernel and mkfs read in '64m', '65536K' or '0x100', in 1024s; None where it is not
    one."""
    match = _KERNEL_SIZE.match(text.strip())
    if not match:
        return None
    base = 16 if match[1].lower().startswith("0x") else 10
    return int(match[1], base) * int(_KERNEL_UNITS[match[2].lower()])


def parse_bytes(text: object, *, where: str = "") -> int:
    """Return bytes in a text like '64KiB', '1.5GiB' or '10MB'.

    Raises ParameterError for a bare number, an unknown unit, or a fraction of a byte.
    """
    value = _parse(text, {name: Decimal(factor) for name, factor in SIZE_UNITS.items()}, "'64KiB'", where)
    if value >= 2**63:
        raise ParameterError(
            "a size beyond every file system", where=where, got=repr(text)[:60], allowed="less than 8 EiB"
        )
    if value != int(value):
        raise ParameterError("a size must be a whole number of bytes", where=where, got=f"{text!r} = {value} B")
    return int(value)


def parse_seconds(text: object, *, where: str = "") -> float:
    """Return seconds in a text like '60s', '500ms', '2min' or '1h'. Raises ParameterError as parse_bytes does."""
    return float(_parse(text, TIME_UNITS, "'60s'", where))


def parse_percent(text: object, *, where: str = "", bare: bool = False) -> float:
    """Return the share in '3%', '2.5 %', '0.03' or 0.03: 0.03, 0.025, 0.03, 0.03. `bare`: of a command line, where a
    number from 1 on is a percentage without its sign: '10' is 0.1, '1' is 0.01. Raises ParameterError as parse_bytes
    does."""
    share = as_share(f"{text}%" if bare and _FROM_ONE.match(str(text)) else text)
    share = float(share) if isinstance(share, str) and _BELOW_ONE.match(share) else share
    if not isinstance(share, float) or not 0 <= share < math.inf:
        negative = _is_negative(str(text))
        meant = "a percentage from 1 on, and a share below 1" if bare else "a share below 1"
        raise ParameterError(
            "a share below zero" if negative else "a percentage is needed",
            where=where,
            got=f"{text!r} ({type(text).__name__})",
            allowed="10%, 10 or 0.1, which are the same" if bare else "a share such as '3%' or 0.03",
            next_step=_NOT_NEGATIVE if negative else f"write the number and the sign %: a number without it is {meant}",
        )
    return share


def as_share(value: object) -> object:
    """Return the share in a text like '3%', as a number; every other value as it is."""
    match = _PERCENT.match(value) if isinstance(value, str) else None
    return float(Decimal(match[1]) / 100) if match else value


LEVELS = (0.5, 0.999999)
"""The lowest and the highest level of an interval. Above it what is left over, corrected for thousands of comparisons,
is too small for the numbers of a computer."""


def check_level(level: object, *, where: str, least: float = LEVELS[0]) -> float:
    """Return the level of an interval as a share. Raises ParameterError for a text, for no number, and for one out of
    range. `least`: the lowest that is allowed."""
    number = isinstance(level, (int, float)) and not isinstance(level, bool)
    if not number or not least <= float(level) <= LEVELS[1]:  # type: ignore[arg-type]
        raise ParameterError(
            "not a level for an interval",
            where=where,
            got=f"{level!r} ({type(level).__name__})",
            allowed=f"a share from {least:g} to {LEVELS[1]:f}: 0.95 is 95 %",
        )
    return float(level)  # type: ignore[arg-type]


def base_unit(unit: str) -> tuple[str, float] | None:
    """Return the base unit of a unit, and what one of it is in that: ('B/s', 1048576.0) for 'MiB/s'; None for an
    unknown one.

    'KB' and 'K' are unknown: they are 1000 bytes to some programs and 1024 to others.
    """
    amount, _, per = unit.partition("/")
    time = TIME_UNITS.get(per)
    if unit in SIZE_UNITS:
        return "B", float(SIZE_UNITS[amount])
    if amount in SIZE_UNITS and time:
        return "B/s", float(SIZE_UNITS[amount] / time)
    if amount == "1" and time:
        return "1/s", float(1 / time)
    if unit in TIME_UNITS:
        return "s", float(TIME_UNITS[unit])
    return {"1": ("1", 1.0), "%": ("1", 0.01)}.get(unit)


def format_bytes(value: float) -> str:
    """Return bytes with the largest binary unit that keeps the number exact, so that parse_bytes(format_bytes(n)) == n.

    Floats (means) are rounded to three significant digits instead.
    """
    units = [("TiB", 1024**4), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)]
    if isinstance(value, int):
        for unit, factor in units:
            if value and value % factor == 0:
                return f"{value // factor}{unit}"
        return f"{value}B"
    for unit, factor in units:
        if abs(value) >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value)} B"


def format_seconds(value: float) -> str:
    """Return seconds with a readable unit: '35.7 s', '12.0 ms', '2 min 5 s'."""
    if not math.isfinite(value):
        return str(value)
    if value >= 120:
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    for unit, factor in [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)]:
        if abs(value) >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value / 1e-9)} ns"


def significant(value: float, digits: int = 3) -> str:
    """Return a number to `digits` significant digits, never in exponent form, thousands separated by a thin space."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "n/a")
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, decimals) if decimals else round(value)
    return f"{rounded:,.{decimals}f}".replace(",", "\u2009").replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """How one column of figures of a unit is shown: value / factor, with the heading `unit`."""

    factor: float
    unit: str

    def show(self, value: float, digits: int = 3) -> str:
        return significant(value / self.factor, digits)


_SCALES = {
    "B/s": [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")],
    "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")],
    "s": [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    "1/s": [(1e6, "M/s"), (1e3, "k/s"), (1, "1/s")],
}


def scale_for(unit: str, largest: float) -> Scale:
    """Return the display scale for a column of `unit` whose largest magnitude is `largest`; unknown units are shown as
    is."""
    scales = _SCALES.get(unit, [(1.0, unit)])
    smallest = scales[-1] if 0 < abs(largest) < 1 else (1.0, unit)
    return Scale(*next((scale for scale in scales if abs(largest) >= scale[0]), smallest))


def whole_seconds(seconds: float) -> int:
    """Return a limit for timeout(1): rounded up, and never 0, which would be no limit."""
    return max(1, math.ceil(seconds))
