"""pg_test_fsync in any language and of every version since 9.0, one run or several in a file."""

from __future__ import annotations

import re

from mountlab.core.errors import ParseError
from mountlab.logs.base import Figure, Format, LogReading, Part, StatedValues, lines_of, matches_in, parts_at, rejoined
from mountlab.logs.logged import plain
from mountlab.logs.mailed import Letter, apart, same
from mountlab.programs.pg_test_fsync import SyncReport, measurements, read_report

HEAD_LINES = 2
"""The seconds per test, and whether there is direct I/O. What stands above without a blank line is of a shell."""
_LAST = re.compile(r"^\s*write\s+\S+[.,]\d{3}\s|^\s*8k write, close, fsync\s+\S")
_FIRST = re.compile(r"^\s*open_datasync(?:\s{2,}\S|\s+(?:\d+[.,]\d{3}\s|n/a))")
_LOOPS = re.compile(r"^Loops = \d")
"""The first line of test_fsync, as it was called in 9.0."""


def _split(text: str) -> list[Part]:
    """Return the runs: each begins in the paragraph before every second row of open_datasync."""
    lines = lines_of(text)
    firsts, oldest = matches_in(lines, _FIRST, 0)[::2], matches_in(lines, _LOOPS, 0)
    return parts_at(lines, sorted({*(_find_beginning(lines, row) for row, _ in firsts), *(row for row, _ in oldest)}))


def _find_beginning(lines: list[str], row: int) -> int:
    blank = next((number for number in range(row, -1, -1) if not lines[number].strip()), 0)
    above = next((number for number in range(blank - 1, -1, -1) if not lines[number].strip()), -1)
    return max(above + 1, blank - HEAD_LINES, 0)


def _read(part: Part, known: StatedValues) -> LogReading:
    lines = part.text.split("\n")
    end = next((number for number, line in enumerate(lines, start=1) if _LAST.match(line)), len(lines))
    oldest = [number for number, _ in matches_in(lines, _LOOPS, 0)]
    begin = oldest[0] if oldest else _find_beginning(lines, matches_in(lines, _FIRST, 0)[0][0])
    # What stands above the first line and follows the last row (`time`, a prompt) is not pg_test_fsync's; a row without
    # its end of line was cut off.
    report = _read_part("\n".join(lines[begin:end]) + ("\n" if end < len(lines) else ""), begin)
    notes = [f"the rows of its last {report.missing} tests are not in this text"] if report.missing else []
    places = {row.label: begin + row.line for row in report.rows}
    return LogReading([Figure(measurement=row, line=places[row.label]) for row in measurements(report)], notes)


def _read_part(text: str, before: int) -> SyncReport:
    """Return the report of a text above which some lines stand; an error gives the line of the whole part."""
    try:
        return read_report(text, whole=False)
    except ParseError as error:
        line = re.fullmatch(r"line (\d+)", error.where)
        if line:
            error.where = f"line {int(line[1]) + before}"
        elif error.where:
            error.where = f"line {before + 1} ({error.where})"
        raise


_FLOWING = re.compile(
    r"(?<![\s,*])(?<!open_sync)[ \t]+(?=(?:Compare (?:file sync|open_sync)|Test if fsync|Non-[Ss]ync'ed"
    r"|\d{1,4} seconds? per test|O_DIRECT supported|\((?:in wal_sync_method|This is designed|If the times)"
    r"|\* This file system)|(?:open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)[ \t]+(?:\d|n/a)"
    r"|(?:\d{1,2} \* {1,3})?\d{1,2}kB open_sync|write(?:, \w+, \w+)?[ \t]+\d{1,15}[.,]\d{3}[ \t])"
    r"|(?<=usecs/op)[ \t]+|(?<=ops/sec)[ \t]+(?!\s|\d{1,15}[ \t]+usecs/op)|(?<=[ \t]n/a)[ \t]+(?=\S)"
)
"""Where another line of pg_test_fsync's begins within one."""
_SECTION = re.compile(r"Compare |Test if|Non-[Ss]ync'ed")
_BROKEN = re.compile(r"^[^\n]{0,100}\d[.,]\d{3}\s(?!.*usecs/op)")
_ROW = re.compile(r"^.{1,160}\d[.,]\d{3}\s+ops/sec\s+\d+\s+usecs/op$")


def _plain(text: str) -> str:
    return rejoined(plain(text), _BROKEN, (_ROW,))


def _split_joined(text: str) -> Letter:
    return apart(text, _lines_in) if any(map(_is_joined, text.split("\n"))) else same(text)


def _is_joined(line: str) -> bool:
    return line.count("ops/sec") > 1


def _lines_in(line: str) -> list[str]:
    """Return the lines in one, and an empty one above each section."""
    lines = _FLOWING.split(line) if _is_joined(line) else [line]
    return [part for at, row in enumerate(lines) for part in (["", row] if at and _SECTION.match(row) else [row])]


FORMAT = Format(split=_split, read=_read, name=lambda part: "pg_test_fsync", plain=_plain, apart=_split_joined)
