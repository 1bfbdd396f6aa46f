"""The table of the faults: one row a fault, what it has cost, and its place in docs/safety.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from faults.counting import Count

PAGE = Path(__file__).parents[2] / "docs" / "safety.md"
HEADER = ("fault", "tries", "lost", "duplicated", "left behind", "took")
PLACE = re.compile(r"(<!-- soak -->\n)(.*?)(<!-- end -->)", re.DOTALL)
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


# --- in a page --------------------------------------------------------------------------------------------------------


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def lines_of(text: str) -> list[str]:
    """The rows of the table that stands in a page."""
    found = PLACE.search(text)
    return [each for each in found[2].splitlines() if each.startswith("| `")] if found else []


def put(text: str, rows: Iterable[Row]) -> str:
    """The page with `rows` in its table: each in the place of the row on the same fault, or below. Others stay."""
    found = PLACE.search(text)
    if found is None:
        raise ValueError("no line '<!-- soak -->' with '<!-- end -->' below it")
    lines = {each.split(" | ")[0]: each for each in lines_of(text)}
    lines |= {new.split(" | ")[0]: new for new in (line(row.cells()) for row in rows)}
    head = [line(HEADER), "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    body = "\n".join([*head, *lines.values()])
    return f"{text[: found.end(1)]}\n{body}\n\n{text[found.start(3) :]}"


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
    """Gathers the rows of a session of pytest, and shows them at its end; those of the long form go into the page."""

    def __init__(self, page: Path | None) -> None:
        self.page = page
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
        if self.page is not None:
            self.page.write_text(put(self.page.read_text(), self.rows))
            terminalreporter.write_line(f"written to {self.page}")
