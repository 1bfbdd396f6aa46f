"""The table of planted causes in docs/why.md: how often each was named largest."""

from __future__ import annotations

import platform
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from causes import Cause, largest

PAGE = Path(__file__).parents[2] / "docs" / "why.md"
PLACE = re.compile(r"(<!-- causes -->\n)(.*?)(<!-- end of causes -->)", re.DOTALL)
HEADER = (
    "| planted | operation | part | largest | its share | others largest | without it | its share | on | kernel |",
    "|---|---|---|---:|---:|---|---:|---:|---|---|",
)


@dataclass(frozen=True)
class Found:
    """The parts in each trial with a cause, and in each without it."""

    cause: Cause
    planted: list[dict[str, float]]
    without: list[dict[str, float]]

    def line(self) -> str:
        """Return the row of the table."""
        counted = Counter(largest(each) or "withheld" for each in self.planted)
        counted.pop(self.cause.largest, None)
        other = ", ".join(f"`{part}` {number}" for part, number in sorted(counted.items())) or "none"
        where = f"`{self.cause.largest}`" + (" (through)" if self.cause.by == "through" else "")
        cells = (
            f"`{self.cause.name}`: {self.cause.does}", self.cause.operation, where, *self._told(self.planted), other,
            *self._told(self.without), datetime.now(UTC).date().isoformat(), platform.release(),
        )  # fmt: skip
        return f"| {' | '.join(cells)} |"

    def _told(self, trials: list[dict[str, float]]) -> tuple[str, str]:
        """In how many trials the planted part is the largest, and the median of its share."""
        right = sum(largest(each) == self.cause.largest for each in trials)
        shares = [each.get(self.cause.largest, 0.0) for each in trials if each]
        return f"{right} of {len(trials)}", f"{median(shares):.0%}" if shares else "withheld"


def put(text: str, found: Found) -> str:
    """Return the page with a row in the place of that on the same cause, or below the others."""
    place = PLACE.search(text)
    if place is None:
        raise ValueError("no line '<!-- causes -->' with '<!-- end of causes -->' below it")
    rows = [*(each for each in place[2].splitlines() if each.startswith("| `")), found.line()]
    by_cause = {each.split("`")[1]: each for each in rows}
    body = "\n".join([*HEADER, *by_cause.values()])
    return f"{text[: place.end(1)]}\n{body}\n\n{text[place.start(3) :]}"
