"""fs_mark's output and its log file, one run or several in a file."""

from __future__ import annotations

import re

from mountlab.tools.fs_mark import measurements, read_report
from mountlab.tools.logs.base import Figure, Format, Part, StatedValues, lines_of, parts_at

_HEADER = re.compile(r"^#\s+\S*fs_mark\s")
_USAGE = re.compile(r"^Usage: \S*fs_mark")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+\d+\s+\d+\.\d")


def _split(text: str) -> list[Part]:
    lines = lines_of(text)
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    refused = next((number for number, line in enumerate(lines) if _USAGE.match(line)), None)
    headless = any("FSUse%" in line for line in lines)
    return parts_at(lines, starts or ([0] if refused is not None or headless else []))


def _read(part: Part, known: StatedValues) -> list[Figure]:
    report = read_report(part.text)
    rows = [n for n, line in enumerate(part.text.split("\n"), start=1) if _ROW.match(line)]
    return [Figure(measurement=row, line=rows[_iteration(row.label)]) for row in measurements(report)]


def _iteration(label: str) -> int:
    """Return which row of the table; the last for what is of all."""
    number = re.fullmatch(r"iteration (\d+)", label)
    return int(number[1]) - 1 if number else -1


def _name(part: Part) -> str:
    version = re.search(r"^#\s+Version ([^,\s]+)", part.text, re.MULTILINE)
    return f"fs_mark {version[1]}" if version else "fs_mark, version unknown"


FORMAT = Format(split=_split, read=_read, name=_name)
