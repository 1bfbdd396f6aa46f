"""docs/what-it-costs.csv: what the cheap subjects of `make bench` cost at some commits.

One row a subject and recording, the newest last. Rows are only added, so a change of the file reads as its history, two
branches that both record merge without a conflict (.gitattributes), and forges and spreadsheets show it as a table. A
figure is a ratio to something measured beside it that does not depend on Mountlab, so those of two machines can be
compared roughly.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from mountlab.core import disk
from mountlab.core.errors import ParameterError

FILE = Path("docs", "what-it-costs.csv")


@dataclass(frozen=True)
class Recording:
    """One subject at one commit: the median of a ratio, its quartiles, and of how many turns."""

    commit: str
    date: str
    """Of the recording."""
    subject: str
    in_times_of: str
    ratio: float
    low: float
    high: float
    n: int


_COLUMNS = [field.name for field in fields(Recording)]


def read(text: str) -> list[Recording]:
    """Return all rows. Raises ParameterError with the number of a line that is damaged."""
    lines = csv.reader(io.StringIO(text))
    if text and (columns := next(lines)) != _COLUMNS:
        raise _wrong(1, ",".join(columns), ",".join(_COLUMNS))
    return [_read_row(number, row) for number, row in enumerate(lines, 2)]


def _read_row(number: int, row: list[str]) -> Recording:
    try:
        commit, date, subject, in_times_of, ratio, low, high, n = row
        found = Recording(commit, date, subject, in_times_of, float(ratio), float(low), float(high), int(n))
    except ValueError:
        raise _wrong(number, ",".join(row), f"{len(_COLUMNS)} columns, the last four of them numbers") from None
    if not (0 < found.low <= found.ratio <= found.high < math.inf):
        raise _wrong(number, ",".join(row), "a ratio above 0 between its quartiles")
    return found


def _wrong(line: int, got: str, allowed: str) -> ParameterError:
    next_step = "take the file as git has it; `make bench` adds rows"
    return ParameterError(
        "a line of the record is damaged", where=f"{FILE}, line {line}", got=got, allowed=allowed, next_step=next_step
    )


def append(path: Path, added: Iterable[Recording]) -> None:
    """Add rows to the file, which is made where there is none."""
    before = path.read_text() if path.exists() else ",".join(_COLUMNS) + "\n"
    text = io.StringIO()
    shown = (
        {**asdict(row), **{name: f"{getattr(row, name):.4g}" for name in ("ratio", "low", "high")}} for row in added
    )
    csv.DictWriter(text, _COLUMNS, lineterminator="\n").writerows(shown)
    disk.replace_file(path, (before + text.getvalue()).encode())


def last_commit(recordings: Sequence[Recording], other_than: str) -> str:
    """Return the newest commit that was recorded, besides this one. Raises ParameterError where there is none."""
    found = [row.commit for row in recordings if not other_than.startswith(row.commit)]
    if not found:
        raise ParameterError(
            "there is no earlier commit to compare with",
            where=str(FILE),
            got="no recording of another commit",
            next_step="record this one, `make bench ARGS='--only ratios'`, or name a commit with --against",
        )
    return found[-1]


def least(recordings: Sequence[Recording], subject: str, in_times_of: str) -> Recording | None:
    """Return the lowest ratio that a subject ever had; None where it was not recorded."""
    own = [row for row in recordings if (row.subject, row.in_times_of) == (subject, in_times_of)]
    return min(own, key=lambda row: row.ratio, default=None)
