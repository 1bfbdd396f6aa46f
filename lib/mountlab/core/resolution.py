"""To what a program rounds a figure before anybody reads it: its clock, the digits that it prints.

`Measurement.step` holds it for each figure. The reader of an output takes it from the text (`last_digit`), or from what
rounds a figure by its own value (a bin of fio's). `Tool.steps` adds what the text does not show, such as the clock.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Step:
    """How one metric of a tool is rounded. Where several things round it, the coarsest counts."""

    absolute: float = 0.0
    """In base units."""
    clock_s: float = 0.0
    """Of a rate: that of the time by which the tool divides."""
    inverse: float = 0.0
    """That of the inverse of the figure, which is what the tool prints."""

    def at(self, value: float, elapsed_s: float) -> float:
        """Return the step, in base units, of a figure of a trial that took `elapsed_s` (NaN: unknown)."""
        clock = self.clock_s / elapsed_s * abs(value) if elapsed_s > 0 else 0.0
        return max(self.absolute, clock, self.inverse * value**2)


def last_digit(number: str) -> float:
    """Return what one in the last digit of a printed number is worth, commas being decimal signs: '1.23' 0.01, '250' 1,
    '7.5e-05' 1e-06."""
    digits, _, power = number.lower().replace(",", ".").partition("e")
    return float(f"1e{int(power or 0) - len(digits.partition('.')[2])}")
