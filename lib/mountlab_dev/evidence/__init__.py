"""Pages below docs/ that are built from data: what tests and simulations found. docs/data/ keeps the data in git.

The words of a page lie in words/, under its path below docs/. A line `<!-- table: NAME -->` stands for the table in
docs/data/NAME.csv, `FILE/NAME` for one in docs/data/FILE.json.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mountlab.core.places import SHIPPED

DATA = SHIPPED / "docs" / "data"
_WORDS = Path(__file__).parent / "words"
_PLACE = re.compile(r"^<!-- table: ([\w-]+)(?:/([\w-]+))? -->$", re.MULTILINE)
_FIGURE = re.compile(r"(\*\*|± )?\d.*|–|not run|")


def pages() -> dict[str, str]:
    """Return the text of each built page by its path below docs/."""
    return {str(path.relative_to(_WORDS)): _filled(path.read_text()) for path in sorted(_WORDS.rglob("*.md"))}


def _filled(words: str) -> str:
    """Return the words of a page with each table in its place."""
    return _PLACE.sub(lambda place: str(captioned(place[1], place[2])) if place[2] else table_of(rows(place[1])), words)


def rows(name: str) -> list[list[str]]:
    """Return the lines of docs/data/NAME.csv; the first holds the headings."""
    with (DATA / f"{name}.csv").open(newline="") as file:
        return list(csv.reader(file))


class Captioned(NamedTuple):
    """A table with the text above it."""

    caption: str
    lines: list[list[str]]
    """The first holds the headings."""

    def __str__(self) -> str:
        return f"{self.caption}\n\n{table_of(self.lines)}".lstrip()


def captioned(file: str, table: str) -> Captioned:
    """Return a table of docs/data/FILE.json."""
    kept = json.loads((DATA / f"{file}.json").read_text())[table]
    return Captioned(kept["caption"], kept["rows"])


def as_json(tables: Mapping[str, tuple[str, Sequence[Sequence[str]]]]) -> str:
    """Return the text of a JSON file of tables, one line a row: name to caption and lines, headings first."""
    parts = [
        f'{json.dumps(name)}: {{"caption": {_json(caption)}, "rows": [\n' + ",\n".join(map(_json, lines)) + "\n]}"
        for name, (caption, lines) in tables.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def table_of(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns of figures behind the first are aligned to the right."""
    columns = list(zip(*lines[1:], strict=True))[1:]
    figures = [all(_FIGURE.fullmatch(text) for text in column) for column in columns]
    rule = "|---|" + "".join("---:|" if is_figure else "---|" for is_figure in figures)
    shown = ["| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines]
    return "\n".join([shown[0], rule, *shown[1:]])
