"""What was measured, as rows of one table: medians and spreads over repeats within one session."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mountlab.core.units import format_bytes, format_seconds

Unit = Literal["s", "times", "B", "ratio", "count"]
_SHOWN: dict[Unit, Callable[[float], str]] = {
    "s": format_seconds,
    "times": lambda value: f"{value:.2g} times",
    "B": format_bytes,
    "ratio": lambda value: f"{value:.3f}",
    "count": lambda value: f"{value:.4g}",
}
_WIDTH = 84


@dataclass(frozen=True)
class Row:
    """One measured quantity, by repeat; or why it was not measured."""

    name: str
    values: list[float]
    unit: Unit = "s"
    under: float | None = None
    """The goal for the median."""
    interval: tuple[float, float] | None = None
    """Of the mean, at 95 %, where that is the question."""
    inside: tuple[float, float] | None = None
    """The goal for the interval."""
    why_not: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.values) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    @property
    def met(self) -> bool | None:
        """Whether it holds its goal; None without one, and for what was not measured."""
        if self.why_not or (self.under is None and self.inside is None):
            return None
        if self.inside is not None and self.interval is not None:
            return self.inside[0] <= self.interval[0] and self.interval[1] <= self.inside[1]
        return self.under is not None and self.median < self.under

    def show(self, value: float) -> str:
        """Return a value in the unit of the row, for people."""
        return _SHOWN[self.unit](value)

    def as_json(self) -> dict[str, Any]:
        """As results/bench.json holds it."""
        goal = {"under": self.under, "inside": self.inside, "met": self.met}
        if self.why_not:
            return {"name": self.name, "unit": self.unit, **goal, "n": 0, "not_measured": self.why_not}
        low, high = self.quartiles
        figures = {"min": min(self.values), "low": low, "median": self.median, "high": high, "max": max(self.values)}
        return {
            "name": self.name,
            "unit": self.unit,
            **goal,
            "n": len(self.values),
            **figures,
            "interval": self.interval,
        }


def heading() -> Iterator[str]:
    """Yield what stands above the rows."""
    yield f"{'what':{_WIDTH}} {'median':>10} {'quartile':>10} {'quartile':>10} {'n':>5}  goal"


def line(row: Row) -> str:
    """Return a row as a line of text; what is not measured says why."""
    if row.why_not:
        return f"{row.name:{_WIDTH}} not measured: {row.why_not}"
    figures = " ".join(f"{row.show(each):>10}" for each in (row.median, *row.quartiles))
    return f"{row.name:{_WIDTH}} {figures} {len(row.values):5}  {_goal(row)}".rstrip()


def _goal(row: Row) -> str:
    parts = []
    if row.interval is not None:
        parts.append(f"95 % interval {row.show(row.interval[0])} to {row.show(row.interval[1])}")
    if row.under is not None:
        parts.append(f"under {row.show(row.under)}")
    if row.inside is not None:
        parts.append(f"inside {row.inside[0]} to {row.inside[1]}")
    if row.met is not None:
        parts.append("met" if row.met else "MISSED")
    return ", ".join(parts)


def timed(action: Callable[[], object], repeats: int) -> list[float]:
    """Return seconds that it took, each time."""
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        took.append(time.perf_counter() - start)
    return took


def worked(words: Sequence[str], repeats: int) -> list[float]:
    """Return seconds of processor time that a command of Mountlab took each time, with all that it started."""
    took = []
    for _ in range(repeats):
        before = os.times()
        subprocess.run([sys.executable, "-m", "mountlab", *words], capture_output=True, check=True)
        after = os.times()
        took.append(sum(after[2:4]) - sum(before[2:4]))
    return took
