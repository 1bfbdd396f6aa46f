"""fio's human output of versions 2 and 3.

Version 2 writes KB and MB and means KiB and MiB; later ones spell out which they mean and print both. Figures have
three to five digits here: fio rounds them for people.

fio prints its shortest and longest latencies with a unit of thousands (`max=4251.4K`), and so every other count. What
begins as a line of figures does must be readable as one: it is never passed over.

fio 2.20 to 3.25 rounds up the decimals, and not the digits before them: 13.96k is printed as `13.0k`. So a figure whose
decimals are 0 may be one higher, and the figures beside it tell. I/Os per second are computed from their number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Measurement
from mountlab.core.resolution import last_digit
from mountlab.core.units import KIB
from mountlab.fio import report as fio_report
from mountlab.logs import fio_lines
from mountlab.logs.base import Figure, LogReading, rejoined, times_ten, unreadable
from mountlab.logs.fio_numbers import (
    POINTS_KEPT,
    TOLERANCE,
    Printed,
    agreeing_values,
    block_sizes,
    bytes_of,
    count_of,
    per_millisecond,
    per_second,
    plain_numbers,
    step_of_a_point,
)
from mountlab.logs.fio_terse import costs
from mountlab.stats.histograms import enough

_POWERS = {"nsec": -9, "usec": -6, "msec": -3, "sec": 0}
_KIND = {"slat": "submission_latency", "clat": "completion_latency", "lat": "latency", "sync": "latency"}
_POINT_KIND = {"slat": "submission_latency", "clat": "latency", "lat": "total_latency", "sync": "latency"}
_DIRECTIONS = (*fio_report.SIDES, fio_report.MIXED)
_MEASURED = (*_DIRECTIONS, "sync")


@dataclass(frozen=True)
class _Side:
    moved: float
    seconds: float
    line: int
    iops: Printed
    rate: float
    rate_step: float


@dataclass
class _Job:
    name: str
    group: int
    line: int
    clones: int = 1
    """How many jobs it is the sum of (group_reporting)."""
    figures: list[Figure] = field(default_factory=list)
    sides: dict[str, _Side] = field(default_factory=dict)
    ios: dict[str, int] = field(default_factory=dict)
    """Direction, and `sync`, to how many I/Os there were, where fio says it."""
    blocks: Mapping[str, float] = field(default_factory=dict)
    """Direction to the bytes of each I/O, where the header says that all have the same."""
    notes: list[str] = field(default_factory=list)


_ORDER = (fio_lines.HEADER, fio_lines.VERSION, fio_lines.JOB, fio_lines.STATUS)
"""In which order the lines of one run come; headers, jobs and sums may be several."""


_BEGINS = re.compile(
    rf"{fio_lines.LOOKS_LIKE_A_SIDE.pattern}|{fio_lines.LOOKS_LIKE_FIGURES.pattern}|{fio_lines.LOOKS_LIKE_A_TOTAL.pattern}"
    r"|^\s*+(?:\S.*: \(groupid=\d|\|?\s*\d{1,3}\.\d+th=)"
)
_WHOLE = (
    fio_lines.POINT_LINE,
    fio_lines.LATENCY,
    fio_lines.SIDE,
    fio_lines.OLD_SIDE,
    fio_lines.POINTS,
    fio_lines.CPU,
    fio_lines.ISSUED,
    fio_lines.TOTAL,
    fio_lines.OLD_TOTAL,
    fio_lines.JOB,
)


def unwrapped(text: str) -> str:
    """Return a text whose lines of figures are whole again where a mailer broke them."""
    return rejoined(text, _BEGINS, _WHOLE)


def starts(lines: Sequence[str]) -> list[int]:
    """Return the lines (from 0) with which runs begin: where the order of the lines of one run begins again; and where
    the line of the job was left out, the results of each run. Of sums without jobs, where they begin again."""
    begins: list[int] = []
    reached, loose = len(_ORDER), False
    sums = fio_lines.sums_again(lines)
    for number, line in enumerate(lines):
        if number in sums:
            begins.append(number)
            reached, loose = _ORDER.index(fio_lines.STATUS), False
            continue
        kind = next((place for place, pattern in enumerate(_ORDER) if pattern.match(line.rstrip())), None)
        if kind is None:
            if fio_lines.LOOSE.match(line) and (
                reached >= _ORDER.index(fio_lines.STATUS) or (loose and not _is_other_direction(lines, number))
            ):
                begins.append(number)
                reached, loose = _ORDER.index(fio_lines.JOB), True
            elif reached == len(_ORDER) and fio_lines.LOOSE_TOTAL.match(line):
                begins.append(number)
                reached = _ORDER.index(fio_lines.STATUS)
            continue
        if kind < reached or kind == reached == _ORDER.index(fio_lines.VERSION) or (loose and kind == reached):
            begins.append(number)
        reached, loose = kind, False
    return begins


def _is_other_direction(lines: Sequence[str], number: int) -> bool:
    """Return whether a line of writes, or of both, follows one of reads, with only figures of that between them."""
    above = next((line for line in reversed(lines[:number]) if not fio_lines.DETAIL.match(line)), "")
    first, second = fio_lines.LOOSE.match(above), fio_lines.LOOSE.match(lines[number])
    return bool(first and second and _DIRECTIONS.index(first["side"]) < _DIRECTIONS.index(second["side"]))


def has_results(lines: Sequence[str]) -> bool:
    """Return whether some lines tell how a job went."""
    return any(
        fio_lines.JOB.match(line) or fio_lines.LOOSE.match(line) or fio_lines.LOOSE_TOTAL.match(line) for line in lines
    )


def has_header(lines: Sequence[str]) -> bool:
    """Return whether some lines hold what fio prints before it begins."""
    return any(
        fio_lines.HEADER.match(line) or fio_lines.VERSION.match(line) or fio_lines.STARTING.match(line)
        for line in lines
    )


def clients_asked(lines: Sequence[str]) -> int:
    """Return how many clients answered, by what fio prints before it begins; 0 of a fio without clients."""
    return sum(bool(fio_lines.ANSWER.match(line)) for line in lines)


def is_sum(lines: Sequence[str]) -> bool:
    """Return whether some lines are what fio adds up over its clients: its only job says so."""
    names = [match["name"] for match in map(fio_lines.JOB.match, lines) if match]
    return names == [fio_report.ALL_CLIENTS]


def read(text: str) -> LogReading:
    """Return the figures of one run. Raises ToolError where fio says that it failed, ParseError where anything is
    changed, mixed up, or disagrees with the sums at its end. A note says what is missing."""
    lines = [line.rstrip() for line in text.split("\n")]
    edges = [0, *starts(lines)[1:], len(lines)]
    if is_sum(lines[edges[-2] :]):
        return _read_clients(lines, edges)
    if (clients := clients_asked(lines)) > 1:
        raise unreadable(
            "fio's output is not whole",
            len(lines),
            f"reports of {clients} clients without their sum",
            "the lines below 'All clients: '",
        )
    jobs, notes = _read_run(lines, 0, len(lines))
    if not jobs:
        return _read_sums(_read_totals(lines), notes)
    started = [int(match["number"]) for match in map(fio_lines.STARTING.match, lines) if match]
    if len(jobs) == 1 and (not started or sum(started) == jobs[0].clones):
        return LogReading(jobs[0].figures, notes)
    totals = _read_totals(lines)
    if len({job.group for job in jobs}) == 1 and totals:
        together = list(_sum_group(totals))
    else:
        given = {(total.group, total.side) for total in totals}
        together = list(
            _sum_amounts(totals) if given >= {(job.group, side) for job in jobs for side in job.sides} else ()
        )
    labels = fio_report.labels([{"jobname": job.name} for job in jobs])
    return _make_reading(together, zip(labels, (job.figures for job in jobs), strict=True), notes)


def _read_run(lines: list[str], first: int, last: int) -> tuple[list[_Job], list[str]]:
    """Return the jobs of a run between two lines (from 0), held against its sums, and what is missing; without jobs
    there are the sums at least."""
    given = any(map(fio_lines.LOOKS_LIKE_A_TOTAL.match, lines[first:last]))
    cut = _find_last_line(lines, first, last)
    lines = lines if given else [*lines[: cut - 1], _drop_torn_end(lines[cut - 1]), *lines[cut:]]
    jobs, totals = _read_jobs(lines, first, last), _read_totals(lines, first, last)
    if not jobs:
        _check_any(lines, totals)
        return [], ["the jobs are not in this text: figures are those of 'Run status group'"]
    notes = [note for job in jobs for note in (*job.notes, *_list_gaps(job))]
    jobs = [job for job in jobs if job.sides]
    if not given:
        for job in jobs:
            job.figures = _drop_uncertain(job, cut)
        notes.append("the sums at its end ('Run status group') are not in this text: nothing shows that it is whole")
    else:
        notes += _check_totals(jobs, totals, last, at_end=bool(fio_lines.LOOKS_LIKE_A_TOTAL.match(lines[cut - 1])))
    return jobs, notes


def _check_any(lines: Sequence[str], totals: Sequence[_Total]) -> None:
    complaint = next(((n, line) for n, line in enumerate(lines, start=1) if line.startswith("fio: ")), None)
    if complaint:
        raise ToolError("fio failed", where=f"line {complaint[0]}", got=complaint[1].strip()[:160])
    if not totals:
        raise ParseError("fio printed no figures", allowed="a line '...: (groupid=0, jobs=1): err= 0: ...'")
    if len({(total.group, total.side) for total in totals}) != len(totals):
        raise unreadable("sums of several runs of fio, without their jobs", totals[0].line, lines[totals[0].line - 1])


def _find_last_line(lines: Sequence[str], first: int, last: int) -> int:
    """Return the number of the last line that is not empty, from 1."""
    return next((number for number in range(last, first, -1) if lines[number - 1].strip()), first + 1)


def _drop_torn_end(line: str) -> str:
    """Return the last line of a text that may be cut off: what of it is whole."""
    if fio_lines.LOOKS_LIKE_POINTS.match(line):
        return line[: line.rfind("]") + 1]
    readable = (
        fio_lines.JOB,
        fio_lines.SIDE,
        fio_lines.OLD_SIDE,
        fio_lines.LATENCY,
        fio_lines.POINTS,
        fio_lines.ISSUED,
        fio_lines.CPU,
    )
    begun = fio_lines.LOOKS_LIKE_FIGURES.match(line) or fio_lines.LOOKS_LIKE_A_SIDE.match(line)
    return line if not begun or any(pattern.match(line) for pattern in readable) else ""


def _drop_uncertain(job: _Job, cut: int) -> list[Figure]:
    """Return the figures of a job but for the last of the last line of a text, whose digits may be cut off."""
    return [row for row in job.figures if (row.line, row.measurement.metric) != (cut, "minor_faults")]


def _list_gaps(job: _Job) -> Iterator[str]:
    """Yield what fio prints of every job, and this text has not."""
    if job.ios:
        return
    metrics = {figure.measurement.metric for figure in job.figures}
    silent = [name for name in job.sides if not any(metric.startswith(f"{name}_") and "latency" in metric
                                                    for metric in metrics)]  # fmt: skip
    missing = ["the number of I/Os ('issued ...')", *(f"latencies of {_plural(name)}" for name in silent)]
    yield f"{f'job {job.name}: ' if job.name else ''}not in this text: {', '.join(missing)}"


def _plural(direction: str) -> str:
    return "all I/Os" if direction == fio_report.MIXED else f"{direction}s"


def _read_sums(totals: Sequence[_Total], notes: Sequence[str]) -> LogReading:
    """Return the figures of the groups of a run; of several, each under its label."""
    groups = dict.fromkeys(total.group for total in totals)
    if len(groups) == 1:
        return LogReading([*_sum_group(totals)], notes)
    parts = [(f"group {group}", _sum_group([total for total in totals if total.group == group])) for group in groups]
    return _make_reading(list(_sum_amounts(totals)), parts, notes)


def _make_reading(
    whole: Sequence[Figure], parts: Iterable[tuple[str, Iterable[Figure]]], notes: Sequence[str]
) -> LogReading:
    """Return the figures of the whole run, and those of its parts (label and figures): jobs, or groups."""
    labelled = [
        replace(figure, measurement=replace(figure.measurement, label=label))
        for label, figures in parts
        for figure in figures
        if figure.measurement.metric != "bytes"
    ]
    left_out = fio_report.amounts_left_out([figure.measurement for figure in whole])
    return LogReading([*whole, *labelled], [*notes, *left_out])


# --- clients ----------------------------------------------------------------------------------------------------------


def _read_clients(lines: list[str], edges: Sequence[int]) -> LogReading:
    """fio's own sum over its clients, and each of them under its name. The sum alone must have its last lines."""
    *clients, (begin, end) = pairwise(edges)
    cut = _find_last_line(lines, begin, end)
    lines = [*lines[: cut - 1], _drop_torn_end(lines[cut - 1]), *lines[cut:]]
    (whole,) = _read_jobs(lines, begin, end)
    whole.figures = _drop_uncertain(whole, cut)
    jobs = [job for first, last in clients for job in _read_run(lines, first, last)[0]]
    for name, side in whole.sides.items() if jobs else ():
        moved = math.fsum(job.sides[name].moved for job in jobs if name in job.sides)
        if abs(moved - side.moved) > TOLERANCE * len(jobs) * moved:
            got, allowed = f"{name}: {side.moved:.4g} B", f"{moved:.4g} B, as its clients say"
            raise unreadable("fio's clients and their sum do not agree", side.line, got, allowed)
    labels = fio_report.labels([{"hostname": _find_client(lines, job.line), "jobname": job.name} for job in jobs])
    parts = zip(labels, (job.figures for job in jobs), strict=True)
    return _make_reading(whole.figures, parts, [*whole.notes, *_list_gaps(whole)])


def _find_client(lines: Sequence[str], line: int) -> str:
    """Return the client that fio names above its jobs."""
    return next((match[1] for above in reversed(lines[:line]) if (match := fio_lines.CLIENT.match(above))), "")


# --- jobs -------------------------------------------------------------------------------------------------------------


def _read_jobs(lines: Sequence[str], first: int, last: int) -> list[_Job]:
    jobs: list[_Job] = []
    side = points = ""
    power, blocks = 0, block_sizes(lines[first:last])
    for number, line in enumerate(lines[first:last], start=first + 1):
        if fio_lines.STATUS.match(line):
            break
        if match := fio_lines.JOB.match(line):
            if int(match["error"]):
                raise ToolError(
                    f"fio failed with error {match['error']}", where=f"line {number}", got=line.strip()[:160]
                )
            name, group = match["name"], int(match["group"])
            jobs.append(_Job(name, group, number, int(match["clones"]), blocks=blocks.get((name, group), {})))
            side = points = ""
        elif fio_lines.LOOKS_LIKE_A_SIDE.match(line):
            jobs = jobs or [_Job("", 0, number)]
            side, points = _add_side(jobs[-1], line, number), ""
        elif jobs and (match := fio_lines.POINTS.match(line)):
            points, power = match["kind"], _POWERS[match["unit"]]
            side = "sync" if points == "sync" else side
        elif jobs and points and fio_lines.LOOKS_LIKE_POINTS.match(line):
            _add_points(jobs[-1], side, points, power, line, number)
        elif jobs and line:
            points = ""
            _add_other(jobs[-1], side, line, number)
    for job in jobs:
        _finish_job(job, alone=not any(other.sides for other in jobs))
    return jobs


def _add_side(job: _Job, line: str, number: int) -> str:
    """Return which direction the lines below are of. Trims have no metrics."""
    new = fio_lines.SIDE.match(line)
    match, old = new or fio_lines.OLD_SIDE.match(plain_numbers(line)), not new
    if not match or match["side"] in job.sides:
        raise unreadable("a line of fio's cannot be read", number, line, "each direction once a job, with its rates")
    printed_by_name, side = match.groupdict(), match["side"]
    if side not in _DIRECTIONS:
        return side
    seconds = times_ten(match["ms"], -3)
    printed = [bytes_of(printed_by_name[key], old=old) for key in ("rate", "again") if printed_by_name.get(key)]
    amounts = bytes_of(match["moved"], old=old)
    if side == fio_report.MIXED and not amounts.meant[0]:  # as fio 3.33 prints it with unified_rw_reporting=both
        return side
    agreeing = agreeing_values([*printed, per_second(amounts, seconds)]) or per_millisecond(
        printed[0], amounts, seconds, old=old
    )
    if not agreeing:
        raise unreadable("fio's bandwidth, bytes and time do not agree", number, line, f"{printed[0].meant[0]:g} B/s")
    rate, moved = agreeing[0], min(amounts.meant, key=lambda amount: abs(amount - agreeing[-1] * seconds))
    step = (*printed, per_second(amounts, seconds))[0].step
    job.sides[side] = _Side(moved, seconds, number, count_of(match["iops"]), rate, step)
    _add(job, f"{side}_bandwidth", rate, "B/s", number, step=step)
    _add(job, "bytes", moved, "B", number, label=side, step=amounts.step)
    return side


def _add(job: _Job, metric: str, value: float, unit: str, line: int, label: str = "", step: float = 0.0) -> None:
    """A figure below the last digit that is printed is missing, and not zero."""
    if value > 0 or unit == "1":
        row = Measurement(metric=metric, value=value, unit=unit, label=label, step=step)
        job.figures.append(Figure(measurement=row, line=line))


def _add_points(job: _Job, side: str, kind: str, power: int, line: str, number: int) -> None:
    if not side or (not fio_lines.POINT_LINE.match(line) and line.strip() != "|"):
        raise unreadable("fio's percentiles cannot be read", number, line, "| 50.00th=[   71], ...")
    for percent, value in fio_lines.POINT.findall(line) if side in _MEASURED else ():
        name = POINTS_KEPT.get(float(percent))
        if name:
            metric = f"{side}_{_POINT_KIND[kind]}_{name}"
            _add(job, metric, times_ten(value, power), "s", number, step=step_of_a_point(value, power))


def _add_other(job: _Job, side: str, line: str, number: int) -> None:
    if match := fio_lines.LATENCY.match(line):
        of = "sync" if match["kind"] == "sync" else side
        power = _POWERS[match["unit"]]
        if of in _MEASURED and "nan" not in match["mean"]:
            metric, step = f"{of}_{_KIND[match['kind']]}_mean", last_digit(f"{match['mean']}e{power}")
            _add(job, metric, times_ten(match["mean"], power), "s", number, step=step)
    elif match := fio_lines.ISSUED.match(line):
        job.ios = {name: int(count) for name, count in match.groupdict().items() if count}
        job.ios[fio_report.MIXED] = sum(job.ios[name] for name in fio_report.SIDES)
        for name in (*job.sides, *(["sync"] if job.ios.get("sync") else [])):
            _add(job, f"{name}_ios", float(job.ios[name]), "1", number)
    elif match := fio_lines.CPU.match(line):
        job.figures += [Figure(measurement=row, line=number) for row in costs(match)]
    elif fio_lines.LOOKS_LIKE_FIGURES.match(line):
        raise unreadable("a line of fio's cannot be read", number, line, "what fio prints of latency, cpu or issued")


def _finish_job(job: _Job, *, alone: bool) -> None:
    """Check a job, and add what follows from its figures. `alone`: no job of the run has any."""
    if not job.sides and not alone:
        job.notes.append(f"job {job.name}: no reads and no writes below it")
        return
    if not job.sides:
        raise ToolError(
            "no reads and no writes below a job of fio",
            where=f"line {job.line}",
            got=f"job {job.name}",
            allowed="lines '  read: IOPS=...' or '  write: IOPS=...', with the blanks before them",
        )
    names = [(figure.measurement.metric, figure.measurement.label) for figure in job.figures]
    if len(set(names)) != len(names):
        raise unreadable(
            "the outputs of several fio are mixed up", job.line, f"job {job.name}", "each figure once a job"
        )
    job.figures = [figure for figure in job.figures if _rests_on_enough(job, figure.measurement.metric)]
    for name, side in job.sides.items():
        _add_iops(job, name, side)
    longest = max(job.sides.values(), key=lambda side: side.seconds)
    _add(job, "elapsed", longest.seconds, "s", longest.line)


def _add_iops(job: _Job, name: str, side: _Side) -> None:
    """From the number of I/Os, which fio prints in full; without it, as printed, where that has but one meaning. Where
    the bytes contradict that number, from them: with a ramp_time, fio does not count I/Os that it issued before."""
    done = job.ios.get(name, 0) / side.seconds
    if done and not agreeing_values([Printed((done,), 0.5 / side.seconds), side.iops]):
        raise unreadable(
            "fio's IOPS, I/Os and time do not agree", side.line, f"{side.iops.meant[0]:g} IOPS", f"{done:g}"
        )
    value, step = (done, 0.0) if done else (side.iops.meant[0] if len(side.iops.meant) == 1 else 0.0, side.iops.step)
    sizes = {*job.blocks.values()} if name == fio_report.MIXED else {job.blocks.get(name, math.inf)}
    block = sizes.pop() if len(sizes) == 1 else math.inf
    by_bytes, off = side.rate / block, (1 + side.rate_step / block) if value else math.inf
    if by_bytes and abs(value - by_bytes) > TOLERANCE * by_bytes + off:
        job.figures = [figure for figure in job.figures if figure.measurement.metric != f"{name}_ios"]
        job.notes.append(
            f"job {job.name}: {_plural(name)} of {block:g} B at {side.rate:.4g} B/s are {by_bytes:.4g} a second, and "
            f"not {value:.4g} as fio prints: it does not count I/Os that it issued before it began to measure "
            "(ramp_time)"
        )
        value, step = by_bytes, side.rate_step / block
    _add(job, f"{name}_iops", value, "1/s", side.line, step=step)


def _rests_on_enough(job: _Job, metric: str) -> bool:
    """Return whether a percentile rests on enough I/Os; by their rate, where their number is missing; not where both
    are unknown."""
    name = metric.split("_")[0]
    side = job.sides.get(name)
    ios = job.ios.get(name, 0) or (min(side.iops.meant) * side.seconds if side and not job.ios else 0)
    percent = PERCENT_OF.get(fio_report.UNDIRECTED.get(metric, metric))
    return percent is None or enough(ios, percent)


# --- the sums at the end ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Total:
    group: int
    side: str
    rate: float
    rate_step: float
    moved: float
    moved_step: float
    seconds: float
    line: int


def _read_totals(lines: Sequence[str], first: int = 0, last: int | None = None) -> list[_Total]:
    """Return the sums of reads, of writes and of both: trims have no metric. Pages that explain them repeat them."""
    totals: list[_Total] = []
    group = None if any(map(fio_lines.STATUS.match, lines[first:last])) else 0
    end = len(lines) if last is None else last
    for number, line in enumerate(lines[first:last], start=first + 1):
        if status := fio_lines.STATUS.match(line):
            group = int(status[1])
        elif group is not None and fio_lines.LOOKS_LIKE_A_TOTAL.match(line):
            old = "aggrb" in line
            match = fio_lines.OLD_TOTAL.match(plain_numbers(line)) if old else fio_lines.TOTAL.match(line)
            if not match and number == _find_last_line(lines, first, end):
                break  # the text is cut off here
            if not match:
                raise unreadable("a sum of fio's cannot be read", number, line, "READ: bw=... run=...-...msec")
            total = _read_total(match, group, number, old=old)
            if total.side in _DIRECTIONS and not any(replace(total, line=other.line) == other for other in totals):
                totals.append(total)
    return totals


def _read_total(match: re.Match[str], group: int, number: int, *, old: bool) -> _Total:
    """Return one sum. Rate and bytes, in new versions in units of 1024 and of 1000, must mean one amount."""
    printed, seconds = match.groupdict(), times_ten(match["ms"], -3)
    rates = [bytes_of(printed[key], old=old) for key in ("rate", "again") if key in printed]
    amounts = [bytes_of(printed[key], old=old) for key in ("moved", "moved_again") if key in printed]
    slack = KIB + KIB / (seconds or math.inf) if old else 1.0  # old versions cut sums to whole KB
    agreeing = agreeing_values([*rates, *(per_second(amount, seconds) for amount in amounts)], slack)
    agreeing = agreeing or per_millisecond(rates[0], amounts[0], seconds, old=old)
    if not agreeing:
        raise unreadable("a sum of fio's does not agree with itself", number, match[0], f"{rates[0].meant[0]:g} B/s")
    moved = min(amounts[0].meant, key=lambda amount: abs(amount - agreeing[len(rates)] * seconds))
    steps = rates[0].step, amounts[0].step
    return _Total(group, match["side"].lower(), agreeing[0], steps[0], moved, steps[1], seconds, number)


def _check_totals(jobs: Sequence[_Job], totals: Sequence[_Total], last: int, *, at_end: bool) -> list[str]:
    """Each group has one sum for each direction, that of its jobs: else lines are missing, or of another run. Return a
    note where the text ends (`at_end`) before the last of them."""
    expected = {(job.group, side) for job in jobs for side in job.sides}
    totals = [total for total in totals if total.side != fio_report.MIXED or (total.group, total.side) in expected]
    given = [(total.group, total.side) for total in totals]
    short = at_end and set(given) < expected and len(given) == len(set(given))
    if not short and (set(given) != expected or len(given) != len(expected)):
        raise unreadable(
            "fio's output is not whole",
            last,
            f"{len(given)} sums",
            f"{len(expected)}: lines as 'WRITE: bw=...' below 'Run status group', as fio prints them at its end",
        )
    for total in totals:
        sides = [job.sides[total.side] for job in jobs if job.group == total.group and total.side in job.sides]
        moved = math.fsum(side.moved for side in sides)
        slack = TOLERANCE * len(sides) * moved + KIB
        if abs(total.moved - moved) > slack or total.seconds < max(side.seconds for side in sides):
            got = f"{total.side}: {total.moved:.4g} B in {total.seconds:g} s"
            raise unreadable(
                "fio's jobs and their sum do not agree", total.line, got, f"{moved:.4g} B, as its jobs say"
            )
    return [f"the text ends before the last of fio's sums: {len(given)} of {len(expected)}"] if short else []


def _sum_amounts(totals: Sequence[_Total]) -> Iterator[Figure]:
    """Yield what the jobs of all groups moved in each direction."""
    for side in dict.fromkeys(total.side for total in totals):
        of_side = [total for total in totals if total.side == side]
        moved, step = math.fsum(total.moved for total in of_side), math.fsum(total.moved_step for total in of_side)
        row = Measurement(metric="bytes", value=moved, unit="B", label=side, step=step)
        yield from [Figure(measurement=row, line=of_side[-1].line)] * bool(moved)


def _sum_group(totals: Sequence[_Total]) -> Iterator[Figure]:
    """Yield all jobs of one group. I/O rates and latencies have no sum here."""
    for total in totals:
        rows = (
            Measurement(metric=f"{total.side}_bandwidth", value=total.rate, unit="B/s", step=total.rate_step),
            Measurement(metric="bytes", value=total.moved, unit="B", label=total.side, step=total.moved_step),
        )
        yield from (Figure(measurement=row, line=total.line) for row in rows if row.value)
    longest = max(totals, key=lambda total: total.seconds)
    yield Figure(measurement=Measurement(metric="elapsed", value=longest.seconds, unit="s"), line=longest.line)
