"""Tables in docs/data/, which tests write and mountlab_dev.evidence makes pages of."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from mountlab_dev.evidence import DATA, rows


def path_of(name: str) -> Path:
    return DATA / f"{name}.csv"


def write(name: str, lines: Iterable[Sequence[str]]) -> None:
    """Write docs/data/NAME.csv: the headings, and below them the rows."""
    with path_of(name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def replaced(lines: Sequence[Sequence[str]], new: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return a table with new rows: each in the place of the row with the same first cell, or below. Others stay."""
    by_name = {line[0]: list(line) for line in lines} | {line[0]: list(line) for line in new}
    return list(by_name.values())


def update(name: str, new: Iterable[Sequence[str]]) -> None:
    """Write new rows into docs/data/NAME.csv."""
    write(name, replaced(rows(name), new))
