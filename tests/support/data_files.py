"""Tables in docs/data/, which tests write and mountlab_dev.evidence makes pages of."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence

from mountlab_dev.evidence import DATA


def write(name: str, lines: Iterable[Sequence[str]]) -> str:
    """Write docs/data/NAME.csv: the headings, and below them the rows. Return its path."""
    path = DATA / f"{name}.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    return str(path)
