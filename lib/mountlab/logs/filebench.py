"""filebench 1.4 and 1.5, one run or several in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.resolution import last_digit
from mountlab.core.units import MIB
from mountlab.logs.base import (
    Figure,
    Format,
    LogReading,
    Part,
    StatedValues,
    lines_of,
    parts_at,
    rejoined,
    times_ten,
    unreadable,
)
from mountlab.logs.logged import plain
from mountlab.programs.filebench import LINE, SLACK, SUMMARY, FilebenchReport, Operations, figures, read_report

_VERSION = re.compile(r"^\s*(?:\d+: +)?(?:\d+\.\d+: )?(?:FileBench|Filebench) Version (\S+)", re.IGNORECASE)
_SUMMARY_1_4 = re.compile(
    r"^\s*(?:\d+: +)?\d+\.\d+: IO Summary: +(?P<count>\d{1,18}) (?:ops,|iops) +(?P<rate>\d{1,18}\.\d+) i?ops/s, "
    r"\(\d{1,18}/\d{1,18} r/w\),? +(?P<bandwidth>\d{1,18}\.\d+)mb/s, +\d{1,18}us cpu/op, +"
    r"(?P<latency>\d{1,18}\.\d+)ms latency\s*$"
)
_LINE_1_4 = re.compile(
    r"^\s*(?P<name>[\w.:/-]+) +(?:(?P<count>\d{1,18})ops +)?(?P<rate>\d{1,18})ops/s +(?P<bandwidth>\d{1,18}\.\d+)mb/s +"
    r"(?P<latency>\d{1,18}\.\d+)ms/op +\d{1,18}us/op-cpu(?: +\[(?P<least>\d{1,18})ms - (?P<most>\d{1,18})ms\])?"
    r"(?:\s+\[[\d ]*\])?\s*$"
)
_STAMPED = re.compile(
    r"^\s*(?:\d+: +)?(?P<at>\d{1,12}\.\d{3}): IO Summary: +(?P<count>\d{1,18}) ops,? +(?P<rate>\d{1,18}\.\d{3}) ops/s"
)
"""Every summary, of 1.4 and 1.5: when it was printed, in seconds since filebench began."""
_TOOK = re.compile(r"Run took \d")
_BEGUN = re.compile(r"Creating|Starting|Allocated|Populated|Shutting down|Version ")
"""What filebench prints before or after it measures, and never between two summaries of one run."""
_SAME_START_S = 0.1
_LATE = 0.25
"""A slow box prints a summary up to some seconds after it was made: it seems to count from a later moment. Where
figures were cleared in between, that moment is later by the whole time between two summaries."""
_SHORTEST_PERIOD_S = 0.9
"""filebench sleeps whole seconds between two summaries."""
_OF_MICROSECONDS = re.compile(r"ops/s .*\d ?us/op(?!-cpu)")
"""What a changed filebench prints, in the place of ms/op."""
_OF_A_SUMMARY = ("IO Summary", "Per-Operation Breakdown", "ops/s")
_TENTH = 0.11 * MIB
"""How far two bandwidths, each in whole tenths of MiB/s, may be apart though they are the same."""
_NO_LATENCY = re.compile(r"IO Summary.*\D0\.0+ ?ms")
_WRONG_MEAN = "filebench before May 2017 (1.5-alpha3) prints a wrong mean latency of all operations: it is left out"
_NO_ROWS = "the breakdown by operation is not in this text"
_TROUBLE = re.compile(r"No space left|Run stopped early|NO VALID RESULTS|syntax error|Failed to |could not obtain")


def _split(text: str) -> list[Part]:
    """Return the runs: each begins with its version line, or, where these were cut off, ends with its summary."""
    lines = lines_of(text)
    starts = [number for number, line in enumerate(lines) if _VERSION.match(line)]
    if not starts:
        ends = _find_ends_of_runs(lines)
        starts = [0, *ends[:-1]] if ends or "Per-Operation Breakdown" in text else []
    return parts_at(lines, starts)


def _find_summaries(lines: Sequence[str]) -> list[int]:
    """Return the lines, from 0, of all summaries."""
    return [number for number, line in enumerate(lines) if "IO Summary" in line]


def _find_ends_of_runs(lines: Sequence[str]) -> list[int]:
    """Return the line after the last summary of each run, where no line says that another run begins."""
    summaries = _find_summaries(lines)
    return [
        number + 1
        for number, after in zip(summaries, [*summaries[1:], None], strict=False)  # without a summary there is no run
        if after is None or any(map(_BEGUN.search, lines[number:after])) or not _is_one_run(lines[number], lines[after])
    ]


def _read(part: Part, known: StatedValues) -> LogReading:
    ends = _find_cleared_periods(part.text)
    text = part.text if ends else _drop_interim(part.text)
    for number, line in enumerate(text.split("\n"), start=1):
        if _OF_MICROSECONDS.search(line):
            allowed = "latencies in ms, as filebench 1.4 and 1.5 print them"
            raise unreadable("this filebench was changed: it counts latencies in us", number, line, allowed)
    if ends:
        texts = [_keep_period(part.text, ends, number) for number in range(len(ends))]
        note = (
            f"filebench printed {len(ends)} summaries of one period each, as with a negative period of psrun: figures "
            "are of all periods together"
        )
        report = _add_reports([_read_one(period)[0] for period in texts], ends, part.text)
        return LogReading(_make_figures(report, texts[-1], 0.0), [note])
    report, slack = _read_one(text)
    rows = _make_figures(report, text, slack)
    notes = []
    if not _TOOK.search(text):
        notes.append("'Run took N seconds' is not in this text: the summary may be of a part of a run")
    if not report.summary.latency_s and not _NO_LATENCY.search(text):
        notes.append(_WRONG_MEAN)
    return LogReading(rows, notes if "Per-Operation Breakdown" in text else [*notes, _NO_ROWS])


def _read_one(text: str) -> tuple[FilebenchReport, float]:
    """Return the report of a text with one summary, and how far rounding may put off its operations."""
    if re.search(r"^.*IO Summary: +\d+ (?:ops,|iops) .*$", text, re.MULTILINE):
        report = _read_1_4(text)
        return report, len(report.operations) * report.elapsed_s
    return read_report(text, whole=False), 0.0


def _make_figures(report: FilebenchReport, text: str, slack: float) -> list[Figure]:
    lines = text.split("\n")
    summary = next(number for number, line in enumerate(lines, start=1) if "IO Summary" in line)
    _check_whole(report, summary, lines[summary - 1], SLACK + slack)
    places = {line.split()[0]: number for number, line in enumerate(lines, start=1) if "ops/s" in line and line.split()}
    return [
        Figure(measurement=row, line=places.get(row.label, summary) if row.label else summary)
        for row in figures(report)
    ]


def _check_whole(report: FilebenchReport, line: int, text: str, slack: float) -> None:
    """Raise ParseError where operations of the summary, a line of the log, are in no row, or a row has more than it.
    (The summary may well leave out operations that have a row.)"""
    counted = sum(row.count for row in report.operations)
    if report.operations and counted < report.summary.count - slack:
        raise unreadable(
            "lines of filebench's report are missing", line, text, f"{counted} operations, as the lines above it say"
        )
    for row in report.operations:
        if row.bandwidth > report.summary.bandwidth * 1.002 + _TENTH:
            allowed = f"at least {row.bandwidth / MIB:.1f}mb/s, as {row.name} says"
            raise unreadable("filebench's lines and its summary do not agree", line, text, allowed)


# --- several summaries ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Period:
    """What a summary covers, in seconds since filebench began."""

    start: float
    end: float
    unsure: float
    """How far the start may be off, since the rate is rounded."""

    def goes_on(self, before: _Period, late: float) -> bool:
        """Return whether this summary counts from where the one before it counts, to a later moment. `late`: how late
        a summary may be printed, as a share of the time between the two."""
        between = self.end - before.end
        same = abs(self.start - before.start) <= _SAME_START_S + late * between + self.unsure + before.unsure
        return same and between >= _SHORTEST_PERIOD_S


def _read_period(line: str) -> _Period | None:
    match = _STAMPED.match(line)
    rate = float(match["rate"]) if match else 0.0
    if not match or not rate:
        return None
    took = int(match["count"]) / rate
    return _Period(float(match["at"]) - took, float(match["at"]), took * 5e-4 / rate)


def _continues(before: str, after: str, late: float) -> bool:
    """Return whether the second of two summaries covers what the first does, and more."""
    first, second = _read_period(before), _read_period(after)
    return first is not None and second is not None and second.goes_on(first, late)


def _is_one_run(before: str, after: str) -> bool:
    """Return whether the second of two summaries goes on with the first, or begins where that one ended."""
    first, second = _read_period(before), _read_period(after)
    abuts = first and second and abs(second.start - first.end) <= _SAME_START_S + second.unsure
    return bool(abuts) or _continues(before, after, _LATE)


def _drop_interim(text: str) -> str:
    """Return a report with its last summary only, the lines of the others being empty.

    `stats snap` and `psrun` print a summary from time to time. Each covers the time since the last `stats clear`, so
    that the last one covers all, unless the figures were cleared in between. Raises ParseError where they were, and
    where the run did not reach its end.
    """
    lines = text.split("\n")
    ends = _find_summaries(lines)
    if len(ends) < 2 or _TROUBLE.search(text):
        return text
    late = _LATE if any(map(_VERSION.match, lines)) else 0.0  # else they may be of several runs
    for before, after in pairwise(ends):
        if not _continues(lines[before], lines[after], late):
            raise _cleared_error(lines, ends, after)
    if not any(_TOOK.search(line) for line in lines[ends[-2] : ends[-1]]):
        what = "filebench was ended after an interim summary, before its last one"
        raise unreadable(what, ends[-1] + 1, lines[ends[-1]], "'Run took N seconds...' above the last summary")
    interim = ["" if any(word in line for word in _OF_A_SUMMARY) else line for line in lines[: ends[-2] + 1]]
    return "\n".join([*interim, *lines[ends[-2] + 1 :]])


def _cleared_error(lines: Sequence[str], ends: Sequence[int], at: int) -> ParseError:
    """Return the error for summaries whose last one does not cover the whole run."""
    periods = [_read_period(lines[number]) for number in ends]
    covered = ", ".join(f"{period.start:.1f} s to {period.end:.1f} s" for period in periods[:4] if period)
    error = unreadable(
        f"filebench printed {len(ends)} summaries, and the last one does not cover all of its run",
        at + 1,
        lines[at],
        f"one summary, or several that all count from the same moment (these count {covered})",
    )
    error.next_step = (
        "`stats clear` and `psrun` with a negative period set the figures back: each summary is then of its own period "
        "only. Measure again with `run`, or with a positive period; of several runs, put each in a file of its own"
    )
    return error


def _find_cleared_periods(text: str) -> list[int]:
    """Return the lines (from 0) of the summaries of a run that each cover one period, from the end of the one before
    it: psrun with a negative period prints such. All periods but the last are as long as each other; the last is at
    most that long, unlike a run after a warm-up. [] for any other text."""
    lines = text.split("\n")
    ends = _find_summaries(lines)
    if len(ends) < 2 or _TROUBLE.search(text) or not any(map(_TOOK.search, lines[ends[-2] : ends[-1]])):
        return []
    periods = [period for number in ends if (period := _read_period(lines[number]))]
    abut = len(periods) == len(ends) and all(
        abs(after.start - before.end) <= _SAME_START_S + after.unsure for before, after in pairwise(periods)
    )
    lengths = [period.end - period.start for period in periods]
    first = lengths[0] if lengths else 0.0
    even = all(abs(length - first) <= _LATE * first for length in lengths[:-1]) and lengths[-1] <= (1 + _LATE) * first
    return ends if abut and even else []


def _keep_period(text: str, ends: Sequence[int], number: int) -> str:
    """Return a text with one of its summaries, the lines of the others being empty, and the line of the run time."""
    first = ends[number - 1] + 1 if number else 0
    kept = range(first, ends[number] + 1)
    return "\n".join(
        line if at in kept or (_TOOK.search(line) and at > ends[-2]) else "" for at, line in enumerate(text.split("\n"))
    )


def _add_reports(reports: Sequence[FilebenchReport], ends: Sequence[int], text: str) -> FilebenchReport:
    """Return the periods of one run as one. Raises ParseError where they have other operations."""
    names = [row.name for row in reports[-1].operations]
    for report, end in zip(reports, ends, strict=True):
        if [row.name for row in report.operations] != names:
            got = text.split("\n")[end]
            raise unreadable("the periods of filebench's run have other operations", end + 1, got, ", ".join(names))
    elapsed_s = sum(report.elapsed_s for report in reports)
    step_s = sum(report.step_s for report in reports)
    times = [report.elapsed_s for report in reports]
    rows = [_add_rows([report.operations[at] for report in reports], times) for at in range(len(names))]
    whole = _add_rows([report.summary for report in reports], times)
    return FilebenchReport(
        took_s=reports[-1].took_s, elapsed_s=elapsed_s, step_s=step_s, operations=tuple(rows), summary=whole
    )


def _add_rows(rows: Sequence[Operations], times: Sequence[float]) -> Operations:
    """Return one operation over several periods: sums of counts and bytes, latencies by their counts."""
    busy = [row for row in rows if row.count]
    count, elapsed_s = sum(row.count for row in rows), sum(times)
    timed = sum(row.count * row.latency_s for row in busy) if all(row.latency_s for row in busy) else 0.0
    return replace(
        rows[-1],
        count=count,
        rate=count / elapsed_s,
        rate_step=sum(row.rate_step * time for row, time in zip(rows, times, strict=True)) / elapsed_s,
        bandwidth=sum(row.bandwidth * time for row, time in zip(rows, times, strict=True)) / elapsed_s,
        latency_s=timed / count if count else 0.0,
        latency_step_s=max(row.latency_step_s for row in rows),
        least_s=min((row.least_s for row in busy), default=0.0),
        most_s=max((row.most_s for row in busy), default=0.0),
        range_step_s=max(row.range_step_s for row in rows),
    )


# --- version 1.4 ------------------------------------------------------------------------------------------------------


def _read_1_4(text: str) -> FilebenchReport:
    """Version 1.4 prints the same figures in other words, latencies to a tenth of a millisecond only."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if _TROUBLE.search(line):
            raise ToolError("filebench failed", where=f"line {number}", got=line.strip()[:160])
    ends = _find_summaries(lines)
    starts = [number for number, line in enumerate(lines) if "Per-Operation Breakdown" in line]
    summary = _SUMMARY_1_4.match(lines[ends[0]])
    starts = starts or [ends[0]]
    if len(ends) != 1 or len(starts) != 1 or not summary or starts[0] > ends[0]:
        raise unreadable(
            "filebench's report is not that of one whole run",
            ends[0] + 1,
            lines[ends[0]],
            "one breakdown of operations, and below it 'IO Summary: N ops, RATE ops/s, (R/W r/w), MBmb/s, ...'",
        )
    whole = _read_operations(summary, "", 0.0)
    if not whole.count or not whole.rate:
        raise ToolError("filebench did nothing", where=f"line {ends[0] + 1}", got=summary[0])
    elapsed_s = whole.count / whole.rate
    step_s = elapsed_s * whole.rate_step / whole.rate
    between = [number for number in range(starts[0] + 1, ends[0]) if lines[number].strip()]
    rows = tuple(_read_row(lines[number], number + 1, elapsed_s) for number in between)
    if len({row.name for row in rows}) != len(rows) or (starts[0] < ends[0] and not rows):
        raise ParseError("filebench's report is not whole", where=f"line {ends[0] + 1}", got=f"{len(rows)} operations")
    return FilebenchReport(took_s=round(elapsed_s), elapsed_s=elapsed_s, step_s=step_s, operations=rows, summary=whole)


def _read_row(line: str, number: int, elapsed_s: float) -> Operations:
    match = _LINE_1_4.match(line.rstrip())
    if not match:
        allowed = "NAME RATEops/s MBmb/s MSms/op ..."
        raise unreadable("a line of filebench's report cannot be read", number, line, allowed)
    row = _read_operations(match, match["name"], elapsed_s)
    if abs(row.count / elapsed_s - row.rate) > 1 + 2e-3 * row.rate:
        raise unreadable("filebench's count and rate do not agree", number, line, f"{row.count / elapsed_s:.0f} ops/s")
    return row


def _read_operations(match: re.Match[str], name: str, elapsed_s: float) -> Operations:
    printed = match.groupdict()
    rate = float(printed["rate"])
    return Operations(
        name=name,
        count=int(printed["count"]) if printed.get("count") else round(rate * elapsed_s),
        rate=rate,
        rate_step=last_digit(printed["rate"]),
        bandwidth=float(printed["bandwidth"]) * MIB,
        latency_s=times_ten(printed["latency"], -3),
        latency_step_s=last_digit(f"{printed['latency']}e-3"),
        least_s=times_ten(printed.get("least") or "0", -3),
        most_s=times_ten(printed.get("most") or "0", -3),
        range_step_s=last_digit(f"{printed.get('least') or 0}e-3"),
    )


def _name(part: Part) -> str:
    version = next((match[1] for line in part.text.split("\n") if (match := _VERSION.match(line))), "")
    return f"filebench {version}" if version else "filebench, version unknown"


_BEGINS = re.compile(r"^\s*(?:[\w.:/-]+\s+\d+ops\b|(?:\d+: +)?\d+\.\d+: IO Summary)")
_WHOLE = tuple(
    re.compile(f"{last}(?:{form.pattern})$")
    for form, last in ((LINE, r"(?=.*\]$)"), (SUMMARY, ""), (_LINE_1_4, r"(?=.*\]$)"), (_SUMMARY_1_4, ""))
)
"""Rows end with a range in most versions; without it they may be whole as they are, or not."""


def _plain(text: str) -> str:
    return rejoined(plain(text), _BEGINS, _WHOLE)


FORMAT = Format(split=_split, read=_read, name=_name, plain=_plain)
