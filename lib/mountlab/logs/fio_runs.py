"""Which of fio's reports in one file are of the same run: snapshots and clients are no trials of their own.

With --status-interval fio prints its report again and again while it runs. Each counts from the beginning of the run,
so the last is the run, and the earlier ones are parts of it. A later report is of the same run where all its counts are
at least as high, and where its I/O began before the earlier report was printed: a repeat begins after that. In text the
process is the same, too, and no header stands between. Where a report has no time, more bytes after a longer run may
be either: such a file is refused.

With --client fio prints a report for each client, and below them their sum.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from mountlab.core.errors import ParseError
from mountlab.fio import report as fio_report
from mountlab.logs import fio_text
from mountlab.logs.base import Part, matches_in

UNCLEAR = "unclear"
"""The form of a part that may be one run with snapshots, or several runs."""
_LONGER_MS = 500
"""Repeats without a fixed end take less than this longer than the one before; fio's snapshots are a second apart."""
_TEXT_JOB = re.compile(
    r"^(?P<name>.*): \(groupid=(?P<group>\d{1,9}), jobs=\d{1,9}\): err= ?-?\d{1,9}.*: pid=(?P<pid>\d{1,9})"
    r"(?:: \w{3} (?P<month>\w{3}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{4}))?"
)
_TEXT_TIME = re.compile(r"(?:/|runt= *)(\d{1,12})msec")
_TEXT_COUNT = re.compile(r"issued\b[^=]*: total=(?:r=)?(\d{1,15})[,/](?:w=)?(\d{1,15})[,/](?:d=)?(\d{1,15})")
_MONTHS = {name: number for number, name in enumerate(calendar.month_abbr)}


@dataclass(frozen=True)
class _Report:
    """What tells whether a report is a later one of the same run."""

    jobs: Mapping[Any, tuple[float, ...]]
    """What names a job, and its counts: none of them ever falls."""
    done: float
    """Bytes, or I/Os."""
    longest_ms: float
    """Of the run times of its jobs."""
    printed_s: float | None
    """When, in seconds since 1970."""
    step_s: float
    """To what `printed_s` is rounded down."""
    at_least_s: float
    """How long fio ran before it printed this."""


def joined(parts: list[Part]) -> list[Part]:
    """Return the parts, those of one run as one."""
    return _join_snapshots(_join_clients(parts))


def the_report(part: Part) -> Part:
    """Return the part without the snapshots before its report. Raises ParseError where it may be several runs."""
    if part.form == UNCLEAR:
        raise ParseError(
            "these may be snapshots of one run (--status-interval), or several runs",
            got=f"{part.reports} reports of the same jobs, each longer than the one before, without times",
            allowed="one report, or reports with `timestamp`",
            next_step="put each run into a file of its own; of snapshots keep the last",
        )
    lines = part.text.split("\n")
    return replace(part, text="\n".join(lines[part.skipped :]), line=part.line + part.skipped)


# --- clients ----------------------------------------------------------------------------------------------------------


def _join_clients(parts: list[Part]) -> list[Part]:
    """Reports of clients go with the sum below them, and with the lines of their fio above."""
    runs: list[Part] = []
    awaits_clients = False
    for part in parts:
        lines = part.text.split("\n")
        begin, header = len(runs), fio_text.has_header(lines)
        is_sum = part.form == "text" and fio_text.is_sum(lines)
        if is_sum and not header:
            begin = _find_first_client(runs)
        elif awaits_clients and part.form == "text" and not header:
            begin -= 1
        awaits_clients = not is_sum and (fio_text.clients_asked(lines) > 1 if header else awaits_clients)
        runs[begin:] = [_join([*runs[begin:], part])]
    return runs


def _find_first_client(parts: Sequence[Part]) -> int:
    """Return where those begin whose sum comes next: at the last header, behind the last sum, or at the top."""
    for place in range(len(parts) - 1, -1, -1):
        lines = parts[place].text.split("\n")
        if parts[place].form != "text" or fio_text.is_sum(lines[fio_text.starts(lines)[-1] :]):
            return place + 1
        if fio_text.has_header(lines):
            return place
    return 0


# --- snapshots --------------------------------------------------------------------------------------------------------


def _join_snapshots(parts: list[Part]) -> list[Part]:
    if len(parts) < 2:
        return parts
    runs, clear = [[parts[0]]], [True]
    reports = [_read_text(part.text) if part.form == "text" else _read_json(part.text) for part in parts]
    for earlier, later in pairwise(zip(parts, reports, strict=True)):
        again = _is_same_run(*earlier, *later, headed=_has_header(runs[-1][0]))
        if again is False:
            runs.append([])
            clear.append(True)
        runs[-1].append(later[0])
        clear[-1] = clear[-1] and again is not None
    return [_make_run(run, certain) for run, certain in zip(runs, clear, strict=True)]


def _make_run(parts: Sequence[Part], clear: bool) -> Part:
    if len(parts) == 1:
        return parts[0]
    skipped = sum(part.text.count("\n") for part in parts[:-1])
    form = parts[-1].form if clear else UNCLEAR
    if parts[-1].inside:
        return replace(parts[-1], form=form, reports=len(parts))
    return replace(_join(parts), form=form, skipped=skipped, reports=len(parts))


def _has_header(part: Part) -> bool:
    return fio_text.has_header(part.text.split("\n"))


def _is_same_run(
    earlier: Part, before: _Report | None, later: Part, after: _Report | None, *, headed: bool
) -> bool | None:
    """Return whether the later report is of the same run, which may have a header; None where that is unknown."""
    if before is None or after is None or earlier.form != later.form or not _has_grown(before, after):
        return False
    text = later.form == "text"
    if not text and before == after:  # a copy
        return False
    if text and (headed or _has_header(later)):  # every fio prints one, before its first report
        return not _has_header(later)
    longer_ms = after.longest_ms - before.longest_ms
    longer = longer_ms >= _LONGER_MS and after.done > before.done
    if before.printed_s is None or after.printed_s is None:
        return (True if text else None) if longer else False
    latest_start = after.printed_s + after.step_s - after.at_least_s
    if latest_start <= before.printed_s:
        return True
    # In whole seconds, the times of runs of a second or two do not tell; that the run time grows as they do, does.
    return longer and abs(after.printed_s - before.printed_s - longer_ms / 1e3) < after.step_s


def _has_grown(before: _Report, after: _Report) -> bool:
    """Return whether the later report has every job of the earlier one, with counts that are at least as high."""
    return bool(before.jobs) and all(
        name in after.jobs
        and len(after.jobs[name]) == len(counts)
        and all(old <= new for old, new in zip(counts, after.jobs[name], strict=True))
        for name, counts in before.jobs.items()
    )


def _join(parts: Sequence[Part]) -> Part:
    return replace(parts[0], text="".join(part.text for part in parts), form=parts[-1].form)


# --- what a report states about itself --------------------------------------------------------------------------------


def _read_text(text: str) -> _Report | None:
    """By job and process: its I/Os, and its run times."""
    lines = text.split("\n")
    heads = matches_in(lines, _TEXT_JOB, 0)
    if not heads:
        return None
    jobs: dict[Any, tuple[float, ...]] = {}
    times: list[float] = []
    for (begin, head), end in zip(heads, [*(number for number, _ in heads[1:]), len(lines)], strict=True):
        job = "\n".join(lines[begin:end]).partition("\nRun status group")[0]
        counts = [int(count) for issued in _TEXT_COUNT.findall(job) for count in issued]
        job_times = [int(ms) for ms in _TEXT_TIME.findall(job)]
        jobs[head["name"], head["group"], head["pid"]] = (*counts, max(job_times, default=0))
        times += job_times
    longest = max(times, default=0)
    # By ctime, in one zone for all reports of a run.
    printed = max((moment for _, head in heads if (moment := _read_moment(head)) is not None), default=None)
    done = sum(sum(counts[:-1]) for counts in jobs.values())
    return _Report(jobs, done, longest, printed, 1.0, longest / 1e3)


def _read_moment(head: re.Match[str]) -> float | None:
    if not head["year"] or head["month"] not in _MONTHS:
        return None
    day = f"{head['year']}-{_MONTHS[head['month']]:02d}-{int(head['day']):02d}"
    with suppress(ValueError):  # no day of the calendar
        return datetime.fromisoformat(f"{day}T{head['clock']}Z").timestamp()
    return None


def _read_json(text: str) -> _Report | None:
    try:
        report = fio_report.decode(text)
    except ParseError:
        return None
    listed = report.get("jobs") if isinstance(report, dict) else None
    if not isinstance(listed, list) or not all(isinstance(job, dict) for job in listed):
        return None
    shared = json.dumps([report.get("fio version"), report.get("global options")], sort_keys=True)
    named = [[job.get(key) for key in ("jobname", "groupid", "job options")] for job in listed]
    jobs = {
        (shared, number, json.dumps(name, sort_keys=True)): _counts(job)
        for number, (name, job) in enumerate(zip(named, listed, strict=True))
    }
    sides = [job[side] for job in listed for side in fio_report.sides_of(job) if isinstance(job[side], dict)]
    longest = max((_number(side.get("runtime")) for side in sides), default=0.0)
    elapsed = max((_number(job.get("elapsed")) for job in listed), default=0.0)
    done = sum(_number(side.get("io_bytes")) for side in sides)  # `mixed` counts them again, in all reports of a run
    milliseconds, seconds = _number(report.get("timestamp_ms")), _number(report.get("timestamp"))
    printed = milliseconds / 1e3 or seconds or None
    # fio rounds `elapsed` up to whole seconds.
    return _Report(jobs, done, longest, printed, 0.0 if milliseconds else 1.0, max(longest / 1e3, elapsed - 1))


def _counts(job: Mapping[str, Any]) -> tuple[float, ...]:
    """Return what only ever grows while a job runs."""
    sides = [job[side] if isinstance(job.get(side), dict) else {} for side in (*fio_report.SIDES, "mixed")]
    counted = [_number(side.get(key)) for side in sides for key in ("io_bytes", "total_ios", "runtime")]
    return (*counted, _number(job.get("elapsed")), _number(job.get("ctx")))


def _number(value: object) -> float:
    return float(value) if fio_report.is_number(value) else 0.0
