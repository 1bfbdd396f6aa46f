"""Tables in docs/data/, which tests write and mountlab_dev.evidence makes pages of."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mountlab_dev.evidence import DATA, captioned, rows

SHARE = re.compile(r"\d+\.\d")


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


def kept_shares(name: str) -> dict[tuple[str, str], float]:
    """(row, column) to the share in the table of this name in docs/data/calibration.json, as a fraction."""
    header, *rows = captioned("calibration", name).lines
    return {
        (row, column): float(figure.strip("*")) / 100
        for row, *figures in rows
        for column, figure in zip(header[1:], figures, strict=True)
        if SHARE.fullmatch(figure.strip("*"))
    }
