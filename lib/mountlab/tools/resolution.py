"""To what a program rounds a figure before anybody reads it: its clock, the digits that it prints.

What rounds a figure by its own value, as a bin of fio's does a percentile, is `Measurement.step`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mountlab.core.units import GIB, KIB, MIB

Floats = NDArray[np.float64]
_DIGITS = range(2, 6)
"""Significant digits that a program may print, and that the figures show: more of them matter little."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """How one metric of a tool is rounded. Where several things round it, the coarsest counts."""

    absolute: float = 0.0
    """In base units."""
    clock_s: float = 0.0
    """Of a rate: that of the time by which the tool divides."""
    digits: int = 0
    """Significant digits; 0: no limit."""
    inverse: float = 0.0
    """That of the inverse of the figure, which is what the tool prints."""

    def at(self, figures: Floats, elapsed_s: Floats) -> Floats:
        """Return the steps, in base units, of figures of trials that took `elapsed_s` (NaN: unknown), both of one
        shape."""
        size = np.abs(figures)
        clock = np.nan_to_num(self.clock_s / elapsed_s) * size
        digits = 10.0 ** (_power(size, 10) + 1 - self.digits) if self.digits else 0.0
        parts = (self.absolute, clock, digits, self.inverse * size**2)
        return np.asarray(np.maximum.reduce(np.broadcast_arrays(*parts)))


def _power(values: Floats, base: int) -> Floats:
    """Return the largest whole power of `base` that is not above each value; 0 for 0."""
    logs = np.log(values, out=np.zeros(values.shape), where=values > 0) / np.log(base)
    return np.asarray(np.floor(logs + 1e-12))


def printed_step(values: Floats, unit: str) -> float:
    """Return the step of the last digit that all these figures of one metric show, in its base unit; 0 where they show
    more than five significant digits, in units of 1024 too where they are of bytes.

    The figures are those of all trials and cells, so that a last digit that is always 0 is unlikely. Counts are whole.
    """
    size = np.abs(values[values != 0])
    if unit in ("1", "B") and np.all(size == np.rint(size)):
        return 1.0
    factors = (1.0, KIB, MIB, GIB) if unit in ("B", "B/s") else (1.0,)
    return max((_decimal_step(size / factor) * factor for factor in factors), default=0.0) if len(size) else 0.0


def _decimal_step(size: Floats) -> float:
    """Return the coarsest power of ten that divides all of them, down to five digits of the largest; 0 for none."""
    largest = float(_power(np.array([size.max()]), 10)[0])
    steps = (10.0 ** (largest + 1 - digits) for digits in _DIGITS)
    return next((step for step in steps if np.all(np.abs(size / step - np.rint(size / step)) < 1e-6)), 0.0)
