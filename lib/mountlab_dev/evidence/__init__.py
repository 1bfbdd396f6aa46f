"""Pages below docs/ that are built from data: what tests and simulations found. docs/data/ keeps the data in git.

A page has its words in a file beside this one, with a line `<!-- table: NAME -->` for each table: docs/data/NAME.csv.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from mountlab.core import disk

from mountlab_dev.reference.markdown import cell

DATA = disk.ROOT / "docs" / "data"
_WORDS = Path(__file__).parent
_PLACE = re.compile(r"^<!-- table: ([\w-]+) -->$", re.MULTILINE)
_FIGURE = re.compile(r"\d.*|not run|")


def pages() -> dict[str, str]:
    """Return the text of each built page by its path below docs/."""
    return {f"evidence/{path.name}": filled(path.read_text()) for path in sorted(_WORDS.glob("*.md"))}


def filled(words: str) -> str:
    """Return the words of a page with each table in its place."""
    return _PLACE.sub(lambda place: table_of(rows(place[1])), words)


def rows(name: str) -> list[list[str]]:
    """Return the lines of docs/data/NAME.csv; the first holds the headings."""
    with (DATA / f"{name}.csv").open(newline="") as file:
        return list(csv.reader(file))


def table_of(lines: list[list[str]]) -> str:
    """Return a Markdown table; columns of figures are aligned to the right."""
    head, *body = lines
    figures = [all(_FIGURE.fullmatch(text) for text in column) for column in zip(*body, strict=True)]
    rule = ["---:" if is_figure else "---" for is_figure in figures]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in [head, rule, *body])
