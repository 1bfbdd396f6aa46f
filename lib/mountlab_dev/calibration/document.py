"""Tables of simulated shares: printed, and kept in docs/data/calibration.json."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mountlab_dev import evidence

DATA = "calibration"
"""Name of the file in docs/data/."""


@dataclass(frozen=True)
class Share:
    """How many of the simulated cases it was."""

    hits: int
    of: int
    meant: bool = False
    """Whether it is meant to be large; shown in bold."""

    @property
    def rate(self) -> float:
        return self.hits / self.of

    def __str__(self) -> str:
        """'94.9': in percent, with one decimal."""
        return f"**{100 * self.rate:.1f}**" if self.meant else f"{100 * self.rate:.1f}"


@dataclass(frozen=True)
class Trials:
    """A number of trials, beside shares."""

    count: float

    def __str__(self) -> str:
        return f"{self.count:.0f} trials"


@dataclass(frozen=True)
class Runs:
    """A mean number of runs, beside shares."""

    count: float

    def __str__(self) -> str:
        return f"{self.count:.1f} runs"


@dataclass(frozen=True)
class HalfWidth:
    """Half the width of an interval, as a part of its middle, beside shares."""

    part: float

    def __str__(self) -> str:
        return f"± {100 * self.part:.1f} %" if math.isfinite(self.part) else "–"


@dataclass(frozen=True)
class Table:
    """One table of shares in percent: a name for its place, a heading for each column, a text that says what it is."""

    name: str
    says: str
    cases: int
    """How many were simulated for each figure."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Share | Trials | Runs | HalfWidth | None, ...]], ...]
    """Name of the row and its figures; None where there is nothing to count."""

    def markdown(self) -> str:
        """Return the text, and the table."""
        return f"{self.caption()}\n\n{evidence.table_of(self.lines())}"

    def lines(self) -> list[list[str]]:
        """Return the headings, and each row as it is printed."""
        shown = ((name, *("–" if share is None else str(share) for share in shares)) for name, shares in self.rows)
        return [list(line) for line in (self.header, *shown)]

    def caption(self) -> str:
        """Return the text above the table."""
        return f"{self.says} In percent; {self.cases:,} simulated for each figure."

    def shares(self) -> dict[tuple[str, str], Share]:
        """(row, column) to share, without those that there is nothing to count for."""
        return {
            (name, column): share
            for name, shares in self.rows
            for column, share in zip(self.header[1:], shares, strict=True)
            if isinstance(share, Share)
        }


def as_data(tables: Iterable[Table]) -> str:
    """Return the text of docs/data/calibration.json with these tables."""
    return evidence.as_json({table.name: (table.caption(), table.lines()) for table in tables})
