"""The rates that a job of fio is asked to keep, and the rate that fio's own arithmetic makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.model import Scalar
from mountlab.fio.options import blocks, fio_bytes

_SIDES = ("read", "write")
_MICRO = 1_000_000


@dataclass(frozen=True)
class Rate:
    """What each process of a job is asked for in one direction: `rate_iops`, or `rate` in bytes per second."""

    in_bytes: bool
    value: float
    smallest_block: int
    one_size: bool
    """Whether all blocks have one size."""
    poisson: bool
    """Whether I/Os are at random times (rate_process=poisson), so that their number is random too."""

    def made(self, mean_block: float) -> float:
        """Return the rate that fio 3.33 makes of it where nothing delays an I/O, in the unit of what is asked.

        fio counts `rate_iops` as bytes of the smallest block. It draws a Poisson process by I/Os of the smallest block,
        whose mean gap is a whole number of microseconds, and rounds each gap down: by half a microsecond on average.
        """
        share = self.smallest_block / mean_block
        if not self.poisson:
            return self.value if self.in_bytes else self.value * share
        per_s = self.value / self.smallest_block if self.in_bytes else self.value
        whole_us = int(_MICRO / max(1, int(per_s)))
        made = _MICRO / (whole_us - 0.5) if whole_us else math.inf
        return made * mean_block if self.in_bytes else made


def rates(options: Mapping[str, Scalar]) -> dict[str, Rate]:
    """Return direction (read, write) to the rate that each process of a job is asked for; without those that have no
    limit."""
    in_bytes = bool(options.get("rate"))
    smallest, largest = blocks(options)
    poisson = str(options.get("rate_process", "")).lower() == "poisson"
    values = _of_sides(str(options.get("rate" if in_bytes else "rate_iops", "")))
    return {
        side: Rate(in_bytes, value, smallest, smallest == largest, poisson)
        for side, value in zip(_SIDES, values, strict=True)
        if value
    }


def _of_sides(text: str) -> tuple[float, float]:
    """Return the numbers for reads and for writes: '100' holds for both, '100,50' for one each; 0 is no limit."""
    parts = [part.strip() for part in text.split(",")]
    read, write = parts[0], parts[1] if len(parts) > 1 else parts[0]
    return float(fio_bytes(read) or 0), float(fio_bytes(write) or 0)
