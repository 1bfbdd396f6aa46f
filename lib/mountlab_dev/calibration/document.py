"""Tables of simulated shares, and their places in a Markdown document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mountlab.core.errors import InputError


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
        lines = [_line(self.header), "|---" + "|---:" * (len(self.header) - 1) + "|"]
        lines += [
            _line([name, *("–" if share is None else str(share) for share in shares)]) for name, shares in self.rows
        ]
        return "\n".join([self.caption(), "", *lines])

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


_SHARE = re.compile(r"\d+\.\d")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- calibrate: {re.escape(name)} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def put(text: str, tables: Iterable[Table], *, where: str) -> str:
    """Return the document with each table in its place, between `<!-- calibrate: NAME -->` and `<!-- end -->`.

    Raises InputError where a place is missing.
    """
    for table in tables:
        place = _place(table.name)
        found = place.search(text)
        if found is None or place.search(text, found.end()):
            raise InputError(
                f"no single place for the table {table.name!r}",
                where=where,
                got=f"{len(place.findall(text))} places",
                allowed=f"one line '<!-- calibrate: {table.name} -->', and '<!-- end -->' below it",
                next_step="take the file from git again",
            )
        text = f"{text[: found.end(1)]}{table.markdown()}\n{text[found.start(3) :]}"
    return text


def read(text: str, name: str) -> dict[tuple[str, str], float]:
    """(row, column) to the share that stands in the table of this name in a document, as a fraction. {} without it."""
    found = _place(name).search(text)
    lines = [line for line in found[2].splitlines() if line.startswith("|")] if found else []
    cells = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]
    return {
        (row[0], column): float(figure) / 100
        for row in cells[2:]
        for column, figure in zip(cells[0][1:], row[1:], strict=True)
        if _SHARE.fullmatch(figure)
    }
