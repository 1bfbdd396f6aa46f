"""The table of the faults: one row a fault, and what it has cost. That of `make soak` is kept in docs/data/soak.csv."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import data_files
import pytest
from faults.counting import Count

DATA = "soak"
"""Name of the table in docs/data/."""
HEADER = ("fault", "tries", "lost", "duplicated", "left behind", "took")
FIELD = "fault"
"""Under this name a row travels with the report on its test: from xdist's workers too."""
Report = Callable[[str, int, Count, float], None]
"""Tells the table of a fault, how often it was tried, what it has cost, and how long that took in seconds."""


@dataclass(frozen=True)
class Row:
    """One fault."""

    part: str
    """The file of the test without `test_`: what `make soak PART=` names."""
    fault: str
    tries: int
    numbers: tuple[int, int, int]
    """Lost, duplicated, left behind."""
    took_s: float

    def cells(self) -> tuple[str, ...]:
        counted = (f"{number:,}" for number in (self.tries, *self.numbers))
        return (f"`{self.part}`: {self.fault}", *counted, duration(self.took_s))

    def packed(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def unpacked(cls, text: str) -> Row:
        read = json.loads(text)
        return cls(**{**read, "numbers": tuple(read["numbers"])})


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


# --- in a terminal ----------------------------------------------------------------------------------------------------


def shown(rows: Iterable[Row]) -> list[str]:
    """The table for a terminal."""
    cells = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADER))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(n) for cell, n in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]


class Rows:
    """Gathers the rows of a session of pytest, and shows them at its end; those of the long form are kept."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self.rows: list[Row] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.rows += [Row.unpacked(str(value)) for key, value in report.user_properties if key == FIELD]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.rows:
            return
        terminalreporter.section("faults")
        for each in shown(self.rows):
            terminalreporter.write_line(each)
        if self.kept:
            data_files.update(DATA, [row.cells() for row in self.rows])
            terminalreporter.write_line(f"written to {data_files.path_of(DATA)}")
