"""fs_mark's output and its log file, one run or several in a file; also tables without the lines above them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mountlab.core.errors import ParseError
from mountlab.core.model import Measurement
from mountlab.logs.base import (
    Figure,
    Format,
    LogReading,
    Part,
    StatedValues,
    elided,
    lines_of,
    parts_at,
    unreadable,
)
from mountlab.logs.logged import plain
from mountlab.tools.fs_mark import (
    HEADER,
    RATE_STEP,
    TABLE,
    THREADS,
    FsMarkReport,
    Iteration,
    measurements,
    options_of,
    read_report,
    read_rows,
    stated_number,
)

_USAGE = re.compile(r"^Usage: \S*fs_mark")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+\d+\s+\d+\.\d")


def _split(text: str) -> list[Part]:
    """Return the runs: each begins with its header, or where that was left out with the headings of its table."""
    lines = lines_of(text)
    starts: list[int] = []
    headed = False
    for number, line in enumerate(lines):
        if HEADER.match(line) or (TABLE.match(line.rstrip()) and not headed):
            starts.append(number)
        headed = bool(HEADER.match(line)) or (headed and not TABLE.match(line.rstrip()))
    return parts_at(lines, starts or ([0] if any(map(_USAGE.match, lines)) else []))


def _read(part: Part, known: StatedValues) -> LogReading:
    report, notes, whole = _report(part.text)
    rows = [number for number, line in enumerate(part.text.split("\n"), start=1) if _ROW.match(line)]
    places = {f"iteration {row.count // report.each}": line for row, line in zip(report.iterations, rows, strict=True)}
    found = measurements(report) if whole else list(_alone(report))
    return LogReading([Figure(measurement=row, line=places.get(row.label, rows[-1])) for row in found], notes)


def _alone(report: FsMarkReport) -> Iterator[Measurement]:
    """Yield the rate of each iteration: of the whole run nothing is known."""
    for row in report.iterations:
        label = f"iteration {row.count // report.each}"
        yield Measurement(metric="file_rate", label=label, value=row.files_per_s, unit="1/s", step=RATE_STEP)


def _report(text: str) -> tuple[FsMarkReport, list[str], bool]:
    """Return a run, what is missing of it, and whether all its rows are there. Rows stand for themselves: those that
    are there are read, where their counts of files go up in steps of one size."""
    lines = text.split("\n")
    table = next((at for at, line in enumerate(lines) if TABLE.match(line)), None)
    above = next((number for number, line in enumerate(lines[:table], start=1) if _ROW.match(line)), None)
    if table is not None and above:
        raise unreadable(
            "the outputs of several fs_mark are mixed up", above, lines[above - 1], "the headings above it"
        )
    header = next((match for line in lines[:table] if (match := HEADER.match(line))), None)
    version = next((match for line in lines[:table] if (match := THREADS.match(line))), None)
    options = options_of(header[2]) if header else {}
    cut = any(map(elided, lines))
    if table is None or (header and not cut and not _stopped(options, read_rows(lines, table))):
        return read_report(text), [], True
    rows = read_rows(lines, table)
    stated = stated_number(options, "n", 1000) * int(version[2]) if header and version else 0
    each = _each(rows, table + 1, even=not cut, stated=stated)
    notes = [] if header else ["fs_mark's header is not in this text: its options and threads are unknown"]
    asked = options.get("L", "")
    missing = rows[-1].count // each - len(rows)
    if missing:
        notes.append(f"{missing} iterations are not in this text: figures of the whole run are unknown")
    elif asked.isdecimal() and int(asked) > len(rows):
        missing = int(asked) - len(rows)
        notes.append(f"the last {missing} of {asked} iterations (-L) are not in this text: figures of all are unknown")
    return FsMarkReport(options, int(version[2]) if version else 0, each, rows), notes, not missing


def _stopped(options: dict[str, str], rows: tuple[Iteration, ...]) -> bool:
    asked = options.get("L", "")
    return bool(rows) and asked.isdecimal() and len(rows) < int(asked) and "F" not in options


def _each(rows: tuple[Iteration, ...], line: int, *, even: bool, stated: int) -> int:
    """Return how many files an iteration makes: as `stated` by the header, else by the counts of the rows. These go up
    by as many each time (`even`), unless rows were left out."""
    if not rows:
        raise ParseError("fs_mark printed no figure", where=f"after line {line}", got="no row", allowed="one a loop")
    each = stated or min((later.count - row.count for row, later in pairwise(rows)), default=rows[0].count)
    steps = {later.count - row.count for row, later in pairwise(rows)}
    if each <= 0 or any(row.count % each for row in rows) or (even and not stated and len(steps) > 1):
        raise ParseError(
            "the counts of files in fs_mark's table do not agree",
            where=f"line {line}",
            got=", ".join(str(row.count) for row in rows[:6]),
            allowed="counts that go up by as many files in each row",
        )
    return each


def _name(part: Part) -> str:
    version = re.search(r"^\s*#\s+Version ([^,\s]+)", part.text, re.MULTILINE)
    return f"fs_mark {version[1]}" if version else "fs_mark, version unknown"


FORMAT = Format(split=_split, read=_read, name=_name, plain=plain)
