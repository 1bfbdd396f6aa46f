"""fs_mark's output and its log file, one run or several in a file; also tables without the lines above them."""

from __future__ import annotations

import re
from itertools import pairwise

from mountlab.core.errors import ParseError
from mountlab.logs.base import Figure, Format, LogReading, Part, StatedValues, elided, lines_of, parts_at, unreadable
from mountlab.logs.logged import plain
from mountlab.logs.mailed import Letter, apart, same
from mountlab.programs import fs_mark

_NAMES = r"FSUse%\s+Count\s+Size\s+Files/sec\s+App Overhead"
_FLOWING = re.compile(
    r"(?<=\S)[ \t]+(?=#[ \t]*(?:\S{0,200}fs_mark[ \t]+-|Version \S+, \d+ thread|Sync method:|Directories:"
    rf"|File names:|Files info:|App overhead is time)|#?{_NAMES}(?:\s|$))"
    rf"|(?<=App Overhead)[ \t]+(?=\d[\d. \t]*$)"
)
"""Where another line of fs_mark's begins within one."""
_TABLE_AND_ROWS = re.compile(rf"{_NAMES}[ \t]+\d")
_JOINED = re.compile(rf"\S[ \t]+#[ \t]*Version \S+, \d|\S[ \t]+#?{_NAMES}|{_TABLE_AND_ROWS.pattern}")
_ONE_ROW = re.compile(r"\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+\.\d[ \t]+\d+")
_VERSION = re.compile(r"(?:^|\s)#\s+Version ([^,\s]+), \d")
_USAGE = re.compile(r"^Usage: \S*fs_mark")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+\d+\s+\d+\.\d")


def _split(text: str) -> list[Part]:
    """Return the runs: each begins with its header, or where that was left out with the headings of its table."""
    lines = lines_of(text)
    starts: list[int] = []
    headed = False
    for number, line in enumerate(lines):
        if fs_mark.HEADER.match(line) or (fs_mark.TABLE.match(line.rstrip()) and not headed):
            starts.append(number)
        headed = bool(fs_mark.HEADER.match(line)) or (headed and not fs_mark.TABLE.match(line.rstrip()))
    return parts_at(lines, starts or ([0] if any(map(_USAGE.match, lines)) else []))


def _split_joined(text: str) -> Letter:
    return apart(text, _lines_in) if _JOINED.search(text) else same(text)


def _lines_in(line: str) -> list[str]:
    lines = _FLOWING.split(line)
    if _TABLE_AND_ROWS.search(line) and " ".join(rows := _ONE_ROW.findall(lines[-1])).split() == lines[-1].split():
        lines[-1:] = rows
    return lines


def _read(part: Part, known: StatedValues) -> LogReading:
    report, notes, whole = _read_run(part.text)
    rows = [number for number, line in enumerate(part.text.split("\n"), start=1) if _ROW.match(line)]
    places = {report.label(row): line for row, line in zip(report.iterations, rows, strict=True)}
    # Without all its rows nothing is known of the whole run.
    figures = fs_mark.measurements(report) if whole else fs_mark.iteration_rates(report)
    return LogReading([Figure(measurement=row, line=places.get(row.label, rows[-1])) for row in figures], notes)


def _read_run(text: str) -> tuple[fs_mark.FsMarkReport, list[str], bool]:
    """Return a run, what is missing of it, and whether all its rows are there. Rows stand for themselves: those that
    are there are read, where their counts of files go up in steps of one size."""
    lines = text.split("\n")
    table = next((at for at, line in enumerate(lines) if fs_mark.TABLE.match(line)), None)
    above = next((number for number, line in enumerate(lines[:table], start=1) if _ROW.match(line)), None)
    if table is not None and above:
        raise unreadable(
            "the outputs of several fs_mark are mixed up", above, lines[above - 1], "the headings above it"
        )
    header = next((match for line in lines[:table] if (match := fs_mark.HEADER.match(line))), None)
    version = next((match for line in lines[:table] if (match := fs_mark.THREADS.match(line))), None)
    options = fs_mark.options_of(header[2]) if header else {}
    cut = any(map(elided, lines))
    if table is None or (header and not cut and not _is_stopped(options, fs_mark.read_rows(lines, table))):
        return fs_mark.read_report(text), [], True
    rows = fs_mark.read_rows(lines, table)
    stated = fs_mark.stated_number(options, "n", 1000) * int(version[2]) if header and version else 0
    files = _count_files(rows, table + 1, even=not cut, stated=stated)
    notes = [] if header else ["fs_mark's header is not in this text: its options and threads are unknown"]
    loops = options.get("L", "")
    missing = rows[-1].count // files - len(rows)
    if missing:
        notes.append(f"{missing} iterations are not in this text: figures of the whole run are unknown")
    elif loops.isdecimal() and int(loops) > len(rows):
        missing = int(loops) - len(rows)
        notes.append(f"the last {missing} of {loops} iterations (-L) are not in this text: figures of all are unknown")
    return fs_mark.FsMarkReport(options, int(version[2]) if version else 0, files, rows), notes, not missing


def _is_stopped(options: dict[str, str], rows: tuple[fs_mark.Iteration, ...]) -> bool:
    loops = options.get("L", "")
    return bool(rows) and loops.isdecimal() and len(rows) < int(loops) and "F" not in options


def _count_files(rows: tuple[fs_mark.Iteration, ...], line: int, *, even: bool, stated: int) -> int:
    """Return how many files an iteration makes: as `stated` by the header, else by the counts of the rows. These go up
    by as many each time (`even`), unless rows were left out."""
    if not rows:
        raise ParseError("fs_mark printed no figure", where=f"after line {line}", got="no row", allowed="one a loop")
    files = stated or min((later.count - row.count for row, later in pairwise(rows)), default=rows[0].count)
    steps = {later.count - row.count for row, later in pairwise(rows)}
    if files <= 0 or any(row.count % files for row in rows) or (even and not stated and len(steps) > 1):
        raise ParseError(
            "the counts of files in fs_mark's table do not agree",
            where=f"line {line}",
            got=", ".join(str(row.count) for row in rows[:6]),
            allowed="counts that go up by as many files in each row",
        )
    return files


def _name(part: Part) -> str:
    version = _VERSION.search(part.text)
    return f"fs_mark {version[1]}" if version else "fs_mark, version unknown"


def _plain(text: str) -> str:
    """As for any tool. A command behind root's prompt looks like the header that fs_mark prints below it; so does the
    next command below a table."""
    lines = plain(text).split("\n")
    places = [number for number, line in enumerate(lines) if fs_mark.HEADER.match(line)]
    for place, end in pairwise([*places, len(lines)]):
        if len(places) > 1 and not any(_VERSION.search(line) or fs_mark.TABLE.match(line) for line in lines[place:end]):
            lines[place] = ""
    return "\n".join(lines)


FORMAT = Format(split=_split, read=_read, name=_name, plain=_plain, apart=_split_joined)
