"""filebench 1.4 and 1.5, one run or several in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mountlab.errors import ParseError, ToolError
from mountlab.logs.base import Figure, Format, Known, Part, lines_of, parts_at, times_ten, unreadable
from mountlab.model import Measurement
from mountlab.tools.filebench import SLACK, Operations, Report, read_report
from mountlab.units import MIB

_VERSION = re.compile(r"^(?:\d+: \d+\.\d+: )?(?:FileBench|Filebench) Version (\S+)", re.IGNORECASE)
_SUMMARY_1_4 = re.compile(
    r"^(?:\d+: )?\d+\.\d+: IO Summary: +(?P<count>\d{1,18}) ops, +(?P<rate>\d{1,18}\.\d+) ops/s, "
    r"\((?P<reads>\d{1,18})/(?P<writes>\d{1,18}) r/w\), +(?P<bandwidth>\d{1,18}\.\d+)mb/s, +\d{1,18}us cpu/op, +"
    r"(?P<latency>\d{1,18}\.\d+)ms latency$"
)
_LINE_1_4 = re.compile(
    r"^(?P<name>[\w.:/-]+) +(?:(?P<count>\d{1,18})ops +)?(?P<rate>\d{1,18})ops/s +(?P<bandwidth>\d{1,18}\.\d+)mb/s +"
    r"(?P<latency>\d{1,18}\.\d+)ms/op +\d{1,18}us/op-cpu(?: +\[(?P<least>\d{1,18})ms - (?P<most>\d{1,18})ms\])?$"
)
_TENTH = 0.11 * MIB
"""How far two bandwidths, each in whole tenths of MiB/s, may be apart though they are the same."""
_TROUBLE = re.compile(r"No space left|Run stopped early|NO VALID RESULTS|syntax error|Failed to |could not obtain")


def _split(text: str) -> list[Part]:
    """Each version line begins a run; where someone has cut it off, each summary ends one."""
    lines = lines_of(text)
    starts = [number for number, line in enumerate(lines) if _VERSION.match(line)]
    if not starts:
        ends = [number + 1 for number, line in enumerate(lines) if "IO Summary" in line]
        starts = [0, *ends[:-1]] if ends or "Per-Operation Breakdown" in text else []
    return parts_at(lines, starts)


def _read(part: Part, known: Known) -> list[Figure]:
    old = re.search(r"^.*IO Summary: +\d+ ops, .*$", part.text, re.MULTILINE)
    report = _read_1_4(part.text) if old else read_report(part.text)
    lines = part.text.split("\n")
    summary = next(number for number, line in enumerate(lines, start=1) if "IO Summary" in line)
    _check_whole(report, summary, lines[summary - 1], SLACK + (len(report.operations) * report.elapsed_s if old else 0))
    places = {line.split()[0]: number for number, line in enumerate(lines, start=1) if "ops/s" in line and line.split()}
    return [
        Figure(measurement=row, line=places.get(row.label, summary) if row.label else summary)
        for row in _figures(report)
    ]


def _check_whole(report: Report, line: int, text: str, slack: float) -> None:
    """Raise ParseError where operations of the summary, a line of the log, are in no row, or a row has more than it.
    (The summary may well leave out operations that have a row.)"""
    counted = sum(row.count for row in report.operations)
    if counted < report.summary.count - slack:
        raise unreadable(
            "lines of filebench's report are missing", line, text, f"{counted} operations, as the lines above it say"
        )
    for row in report.operations:
        if row.bandwidth > report.summary.bandwidth * 1.002 + _TENTH:
            allowed = f"at least {row.bandwidth / MIB:.1f}mb/s, as {row.name} says"
            raise unreadable("filebench's lines and its summary do not agree", line, text, allowed)


def _figures(report: Report) -> Iterator[Measurement]:
    """Rates of the whole run and of each operation; what is below the last printed digit is missing, and not zero."""
    yield Measurement(metric="elapsed", value=report.elapsed_s, unit="s")
    for row in (report.summary, *report.operations):
        figures = {
            "operation_rate": (row.rate, "1/s"), "bandwidth": (row.bandwidth, "B/s"),
            "operation_latency": (row.latency_s, "s"), "operation_latency_min": (row.least_s, "s"),
            "operation_latency_max": (row.most_s, "s"),
        }  # fmt: skip
        yield Measurement(metric="operations", label=row.name, value=float(row.count), unit="1")
        for metric, (value, unit) in figures.items():
            if value:
                yield Measurement(metric=metric, label=row.name, value=value, unit=unit)


# --- version 1.4 ------------------------------------------------------------------------------------------------------


def _read_1_4(text: str) -> Report:
    """Version 1.4 prints the same figures in other words, latencies to a tenth of a millisecond only."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if _TROUBLE.search(line):
            raise ToolError("filebench failed", where=f"line {number}", got=line.strip()[:160])
    ends = [number for number, line in enumerate(lines) if "IO Summary" in line]
    starts = [number for number, line in enumerate(lines) if "Per-Operation Breakdown" in line]
    summary = _SUMMARY_1_4.match(lines[ends[0]])
    if len(ends) != 1 or len(starts) != 1 or not summary or starts[0] > ends[0]:
        raise unreadable("filebench's report is not that of one whole run", ends[0] + 1, lines[ends[0]], "one summary")
    whole = _operations(summary, "", 0.0)
    if not whole.count or not whole.rate:
        raise ToolError("filebench did nothing", where=f"line {ends[0] + 1}", got=summary[0])
    elapsed_s = whole.count / whole.rate
    rows = tuple(_row(lines[number], number + 1, elapsed_s) for number in range(starts[0] + 1, ends[0]))
    if len({row.name for row in rows}) != len(rows) or not rows:
        raise ParseError("filebench's report is not whole", where=f"line {ends[0] + 1}", got=f"{len(rows)} operations")
    version = next((match[1] for line in lines if (match := _VERSION.match(line))), "")
    return Report(
        version=version, took_s=round(elapsed_s), elapsed_s=elapsed_s, operations=rows, summary=whole,
        reads=float(summary["reads"]), writes=float(summary["writes"]),
    )  # fmt: skip


def _row(line: str, number: int, elapsed_s: float) -> Operations:
    match = _LINE_1_4.match(line.rstrip())
    if not match:
        raise unreadable(
            "a line of filebench's report cannot be read", number, line, "NAME RATEops/s MBmb/s MSms/op ..."
        )
    row = _operations(match, match["name"], elapsed_s)
    if abs(row.count / elapsed_s - row.rate) > 1 + 2e-3 * row.rate:
        raise unreadable("filebench's count and rate do not agree", number, line, f"{row.count / elapsed_s:.0f} ops/s")
    return row


def _operations(match: re.Match[str], name: str, elapsed_s: float) -> Operations:
    found = match.groupdict()
    rate = float(found["rate"])
    return Operations(
        name=name, count=int(found["count"]) if found.get("count") else round(rate * elapsed_s), rate=rate,
        bandwidth=float(found["bandwidth"]) * MIB, latency_s=times_ten(found["latency"], -3),
        least_s=times_ten(found.get("least") or "0", -3), most_s=times_ten(found.get("most") or "0", -3),
    )  # fmt: skip


def _name(part: Part) -> str:
    version = next((match[1] for line in part.text.split("\n") if (match := _VERSION.match(line))), "")
    return f"filebench {version}" if version else "filebench, version not told"


FORMAT = Format(split=_split, read=_read, name=_name)
