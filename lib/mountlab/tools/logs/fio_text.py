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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import NamedTuple

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Measurement
from mountlab.core.resolution import last_digit
from mountlab.core.units import KIB, NS_PER_S
from mountlab.stats.histograms import bin_of, enough
from mountlab.tools import fio_report
from mountlab.tools.logs.base import Figure, times_ten, unreadable
from mountlab.tools.logs.fio_terse import costs

_HEADER = re.compile(r"^\s*(?:\S.*: \(g=\d+\): rw=|hostname=.*, be=\d)")
_VERSION = re.compile(r"^\s*fio[- ]\d")
_STARTING = re.compile(r"^(?:<[^<>]+> )?Starting \d+ (?:process|thread)")
_ANSWER = re.compile(r"^hostname=.*, be=\d")
_JOB = re.compile(
    r"^\s*+(?P<name>.*): \(groupid=(?P<group>\d{1,9}), jobs=\d{1,9}\): err= ?(?P<error>-?\d{1,9})(?P<why>.*): pid=\d+"
)
_NUMBER = r"\d{1,20}(?:\.\d{1,6})?"
_COUNT = rf"{_NUMBER} ?[kKMGTPE]?"
"""A count as fio's num2str prints it; before 2.1 with a blank where there is no unit."""
_AMOUNT = rf"{_NUMBER} ?[kKMGTPE]?i?(?:B|bit)?"
"""Bytes, or bits (unit_base=1). fio forgets the unit where it adds up its clients: 'BW=3808Mi (3993M)'."""
_TIME = r"(?P<unit>nsec|usec|msec|sec)"
_OLD_SIDE = re.compile(
    rf"^ +(?P<side>read|write|trim|mixed) ?: io=(?P<moved>{_AMOUNT}), bw=(?P<rate>{_AMOUNT})/s, "
    rf"iops=(?P<iops>{_COUNT}), runt= *(?P<ms>\d{{1,12}})msec$"
)
_SIDE = re.compile(
    rf"^ +(?P<side>read|write|trim|mixed): IOPS=(?P<iops>{_COUNT}), BW=(?P<rate>{_AMOUNT})(?:/s)? "
    rf"\((?P<again>{_AMOUNT})(?:/s)?\)\((?P<moved>{_AMOUNT})/(?P<ms>\d{{1,12}})msec\)(?:; .*)?$"
)
_LOOSE = re.compile(r"^\s*(?:read|write) ?: (?:IOPS=|io=)\d")
"""Results, in the notes of people often all that is left of a run."""
_LOOKS_LIKE_A_SIDE = re.compile(r"^ +(read|write|trim|mixed) ?: ", re.IGNORECASE)
_LATENCY = re.compile(
    rf"^ +(?P<kind>slat|clat|lat|sync) \({_TIME}\): min= *{_COUNT}, max= *{_COUNT}, "
    rf"avg= *(?P<mean>{_NUMBER}), stdev= *(?:{_NUMBER}|-?nan)$"
)
_POINTS = re.compile(rf"^ +(?P<kind>clat|lat|slat|sync) percentiles \({_TIME}\):$")
_POINT = re.compile(r"(\d{1,3}\.\d+)th=\[ *(\d{1,12})\]")
_POINT_LINE = re.compile(r"^ +\|(?: *\d{1,3}\.\d+th=\[ *\d{1,12}\],?)+$")
_CPU = re.compile(
    r"^ +cpu +: usr=(?P<user>\d{1,6}\.\d+|-?nan)%, sys=(?P<system>\d{1,6}\.\d+|-?nan)%, ctx=(?P<switches>\d{1,15}), "
    r"majf=(?P<major>\d{1,15}), minf=(?P<minor>\d{1,15})$"
)
_ISSUED = re.compile(
    r"^ +issued(?: rwts?| r/w/d)? *: total=(?:r=)?(?P<read>\d{1,15})[,/](?:w=)?(?P<write>\d{1,15})[,/](?:d=)?\d{1,15}"
    r"(?:,(?P<sync>\d{1,15}))?,? short=[\d,/rwd=]*(?:,? drop\w*=[\d,/rwd=]*)?$"
)
_LOOKS_LIKE_FIGURES = re.compile(
    r"^ +(?:(?:slat|clat|lat|sync) *\(\w*\) *: *min\b|(?:slat|clat|lat|sync) percentiles\b|cpu +:|issued\b)"
)
"""How lines of figures begin. `lat (usec) : 2=0.01%` and the latencies of a priority are none: they are shares."""
_STATUS = re.compile(r"^\s*Run status group (\d+) \(all jobs\):$")
_OLD_TOTAL = re.compile(
    rf"^ *(?P<side>READ|WRITE|TRIM|MIXED): io=(?P<moved>{_AMOUNT}), aggrb=(?P<rate>{_AMOUNT})/s, "
    rf"minb={_AMOUNT}/s, maxb={_AMOUNT}/s, mint=\d+msec, maxt=(?P<ms>\d{{1,12}})msec$"
)
_TOTAL = re.compile(
    rf"^ *(?P<side>READ|WRITE|TRIM|MIXED): bw=(?P<rate>{_AMOUNT})/s \((?P<again>{_AMOUNT})/s\), \S+ \(\S+\), "
    rf"io=(?P<moved>{_AMOUNT}) \((?P<moved_again>{_AMOUNT})\), run= *\d+-(?P<ms>\d{{1,12}})msec$"
)
_LOOKS_LIKE_A_TOTAL = re.compile(r"^ *(READ|WRITE|TRIM|MIXED): ")
_CLIENT = re.compile(r"^<([^<>]+)> ")
_WHOLE_OUTPUT = "the whole output: '...: (groupid=0, jobs=1): err= 0: ...' above it, and below it 'Run status group'"
SEPARATE = "run fio without unified_rw_reporting, or with unified_rw_reporting=both (fio 3.27 and later)"
"""What to do about directions that fio added up."""
_POWERS = {"nsec": -9, "usec": -6, "msec": -3, "sec": 0}
_PREFIXES, _OLD_PREFIXES = " KMGTPE", " KMGPE"
"""Before 2.17 fio has no T: what it calls P is 1024 G."""
_TOLERANCE = 0.015
_KIND = {"slat": "submission_latency", "clat": "completion_latency", "lat": "latency", "sync": "latency"}
_POINT_KIND = {"slat": "submission_latency", "clat": "latency", "lat": "total_latency", "sync": "latency"}
_MEASURED = (*fio_report.SIDES, "sync")
_POINTS_KEPT = {float(key): name for name, key in fio_report.PERCENTILES.items()}


class _Printed(NamedTuple):
    """A figure of fio's text."""

    meant: tuple[float, ...]
    """What it may mean: as it is printed, and with the carry that fio before 3.26 loses."""
    half: float
    """Half of its last digit."""

    @property
    def step(self) -> float:
        """What one in its last digit is worth."""
        return 2 * self.half


@dataclass(frozen=True)
class _Side:
    moved: float
    seconds: float
    line: int
    iops: _Printed


@dataclass
class _Job:
    name: str
    group: int
    line: int
    figures: list[Figure] = field(default_factory=list)
    sides: dict[str, _Side] = field(default_factory=dict)
    ios: dict[str, int] = field(default_factory=dict)
    """Direction, and `sync`, to how many I/Os there were, where fio says it."""
    mixed: str = ""
    """The line in which fio adds its directions up (unified_rw_reporting)."""


_ORDER = (_HEADER, _VERSION, _JOB, _STATUS)
"""In which order the lines of one run come; headers, jobs and sums may be several."""


def starts(lines: Sequence[str]) -> list[int]:
    """Return the lines (from 0) with which runs begin: where the order of the lines of one run begins again, and below
    a run each line of results without its job, which is of another run."""
    found: list[int] = []
    reached = len(_ORDER)
    for number, line in enumerate(lines):
        kind = next((place for place, pattern in enumerate(_ORDER) if pattern.match(line.rstrip())), None)
        if kind is None:
            if reached == _ORDER.index(_STATUS) and _LOOSE.match(line):
                found.append(number)
            continue
        if kind < reached or kind == reached == _ORDER.index(_VERSION):
            found.append(number)
        reached = kind
    return found


def has_results(lines: Sequence[str]) -> bool:
    """Return whether some lines tell how a job went."""
    return any(map(_JOB.match, lines))


def has_header(lines: Sequence[str]) -> bool:
    """Return whether some lines hold what fio prints before it begins."""
    return any(_HEADER.match(line) or _VERSION.match(line) or _STARTING.match(line) for line in lines)


def clients_asked(lines: Sequence[str]) -> int:
    """Return how many clients answered, by what fio prints before it begins; 0 of a fio without clients."""
    return sum(bool(_ANSWER.match(line)) for line in lines)


def is_sum(lines: Sequence[str]) -> bool:
    """Return whether some lines are what fio adds up over its clients: its only job says so."""
    names = [match["name"] for match in map(_JOB.match, lines) if match]
    return names == [fio_report.ALL_CLIENTS]


def read(text: str) -> list[Figure]:
    """Return the figures of one run. Raises ToolError where fio says that it failed, ParseError where anything is
    missing, cut off, or disagrees with the sums at its end."""
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
    jobs = _whole(lines, 0, len(lines))
    if len(jobs) == 1:
        return jobs[0].figures
    together = _together(_totals(lines)) if len({job.group for job in jobs}) == 1 else ()
    return [*together, *_each(jobs, [{"jobname": job.name} for job in jobs])]


def _whole(lines: Sequence[str], first: int, last: int) -> list[_Job]:
    """Return the jobs of a run between two lines (from 0), held against its sums."""
    jobs = _jobs(lines, first, last)
    if not jobs:
        said = next(((n, line) for n, line in enumerate(lines, start=1) if line.startswith("fio: ")), None)
        if said:
            raise ToolError("fio failed", where=f"line {said[0]}", got=said[1].strip()[:160])
        loose = next((n for n, line in enumerate(lines, start=1) if _LOOSE.match(line)), None)
        if loose:
            raise unreadable("results of fio without the line of their job", loose, lines[loose - 1], _WHOLE_OUTPUT)
        raise ParseError("fio printed no figures", allowed="a line '...: (groupid=0, jobs=1): err= 0: ...'")
    _check_totals(jobs, _totals(lines, first, last), last)
    return jobs


def _each(jobs: Sequence[_Job], names: Sequence[Mapping[str, str]]) -> Iterator[Figure]:
    """Yield the figures of several jobs, each under its label."""
    for label, job in zip(fio_report.labels(names), jobs, strict=True):
        yield from (_labelled(each, label) for each in job.figures if each.measurement.metric != "bytes")


# --- clients ----------------------------------------------------------------------------------------------------------


def _read_clients(lines: Sequence[str], edges: Sequence[int]) -> list[Figure]:
    """fio's own sum over its clients, and each of them under its name. The sum alone must have its last lines."""
    *clients, (begin, end) = pairwise(edges)
    (whole,) = _jobs(lines, begin, end)
    if "read" not in whole.ios:
        raise unreadable("fio's output is not whole", end, lines[end - 1], "a line 'issued ...' of all clients")
    jobs = [job for first, last in clients for job in _whole(lines, first, last)]
    for name, side in whole.sides.items() if jobs else ():
        moved = math.fsum(job.sides[name].moved for job in jobs if name in job.sides)
        if abs(moved - side.moved) > _TOLERANCE * len(jobs) * moved:
            got, allowed = f"{name}: {side.moved:.4g} B", f"{moved:.4g} B, as its clients say"
            raise unreadable("fio's clients and their sum do not agree", side.line, got, allowed)
    names = [{"hostname": _client_above(lines, job.line), "jobname": job.name} for job in jobs]
    return [*whole.figures, *_each(jobs, names)]


def _client_above(lines: Sequence[str], line: int) -> str:
    """Return the client that fio names above its jobs."""
    return next((match[1] for above in reversed(lines[:line]) if (match := _CLIENT.match(above))), "")


def _labelled(figure: Figure, label: str) -> Figure:
    row = figure.measurement
    return Figure(measurement=replace(row, label=label), line=figure.line)


# --- jobs -------------------------------------------------------------------------------------------------------------


def _jobs(lines: Sequence[str], first: int, last: int) -> list[_Job]:
    jobs: list[_Job] = []
    side = points = ""
    power = 0
    for number, line in enumerate(lines[first:last], start=first + 1):
        if _STATUS.match(line):
            break
        if match := _JOB.match(line):
            if int(match["error"]):
                raise ToolError(
                    f"fio failed with error {match['error']}", where=f"line {number}", got=line.strip()[:160]
                )
            jobs.append(_Job(match["name"], int(match["group"]), number))
            side = points = ""
        elif jobs and _LOOKS_LIKE_A_SIDE.match(line):
            side, points = _add_side(jobs[-1], line, number), ""
        elif jobs and (match := _POINTS.match(line)):
            points, power = match["kind"], _POWERS[match["unit"]]
            side = "sync" if points == "sync" else side
        elif jobs and points and line.lstrip().startswith("|"):
            _add_points(jobs[-1], side, points, power, line, number)
        elif jobs:
            points = ""
            _add_other(jobs[-1], side, line, number)
    for job in jobs:
        _close(job)
    return jobs


def _add_side(job: _Job, line: str, number: int) -> str:
    """Return which direction the lines below are of. Trims, and all directions together, have no metrics."""
    new = _SIDE.match(line)
    match, old = new or _OLD_SIDE.match(line), not new
    if not match or match["side"] in job.sides:
        raise unreadable("a line of fio's cannot be read", number, line, "each direction once a job, with its rates")
    found, side = match.groupdict(), match["side"]
    if side not in fio_report.SIDES:
        job.mixed = line if side == "mixed" else job.mixed
        return side
    seconds = times_ten(match["ms"], -3)
    printed = [_bytes(found[key], old=old) for key in ("rate", "again") if found.get(key)]
    amounts = _bytes(match["moved"], old=old)
    agreeing = _agreeing([*printed, _per(amounts, seconds)])
    if not agreeing:
        raise unreadable("fio's bandwidth, bytes and time do not agree", number, line, f"{printed[0].meant[0]:g} B/s")
    rate, moved = agreeing[0], min(amounts.meant, key=lambda amount: abs(amount - agreeing[-1] * seconds))
    job.sides[side] = _Side(moved, seconds, number, _counts(match["iops"]))
    _add(job, f"{side}_bandwidth", rate, "B/s", number, step=(*printed, _per(amounts, seconds))[0].step)
    _add(job, "bytes", moved, "B", number, label=side, step=amounts.step)
    return side


def _per(amounts: _Printed, seconds: float) -> _Printed:
    """Return a rate as fio computes it: over the milliseconds that it prints."""
    time = seconds or math.inf
    return _Printed(tuple(amount / time for amount in amounts.meant), amounts.half / time)


def _agreeing(figures: Sequence[_Printed], slack: float = 1.0) -> tuple[float, ...]:
    """Return what figures of one amount mean; () where no meanings of theirs agree. Of several that agree in all the
    digits that fio prints, the one with the fewest lost carries; else the nearest."""

    def order(each: Sequence[tuple[int, float]]) -> tuple[bool, int, float]:
        values = [value for _, value in each]
        apart = max(value - one.half for value, one in zip(values, figures, strict=True)) > min(
            value + one.half for value, one in zip(values, figures, strict=True)
        )
        return apart, 0 if apart else sum(carry for carry, _ in each), max(values) - min(values)

    nearest = tuple(value for _, value in min(product(*(enumerate(each.meant) for each in figures)), key=order))
    return nearest if max(nearest) - min(nearest) <= _TOLERANCE * max(nearest) + slack else ()


def _counts(text: str) -> _Printed:
    """'13.4k' in full; of '13.0k' 13,000, and 14,000 of a fio that drops the carry."""
    match = re.fullmatch(rf"({_NUMBER}) ?([kKMGTPE]?)", text)
    assert match
    power = 3 * _PREFIXES.index(match[2].upper() or " ")
    return _Printed(tuple(times_ten(number, power) for number in _meant(match[1])), _half(match[1]) * 10.0**power)


def _bytes(text: str, *, old: bool) -> _Printed:
    """'76.6MiB' and '80.3MB' as they are meant; the 'KB' and 'MB' of version 2 as KiB and MiB; bits as bytes."""
    match = re.fullmatch(rf"({_NUMBER}) ?([kKMGTPE]?)(i?)(B|bit|)", text)
    assert match
    base = KIB if old or match[3] else 1000
    unit = float(base ** (_OLD_PREFIXES if old else _PREFIXES).find(match[2].upper() or " "))
    unit /= 8 if match[4] == "bit" else 1
    numbers = [match[1]] if old else _meant(match[1])
    return _Printed(tuple(float(number) * unit for number in numbers), _half(match[1]) * unit)


def _half(number: str) -> float:
    """Return half of the last digit that is printed."""
    return 0.5 * last_digit(number)


def _meant(number: str) -> list[str]:
    whole, point, decimals = number.partition(".")
    return [number, str(int(whole) + 1)] if point and not decimals.strip("0") else [number]


def _add(job: _Job, metric: str, value: float, unit: str, line: int, label: str = "", step: float = 0.0) -> None:
    """A figure below the last digit that is printed is missing, and not zero."""
    if value > 0 or unit == "1":
        row = Measurement(metric=metric, value=value, unit=unit, label=label, step=step)
        job.figures.append(Figure(measurement=row, line=line))


def _add_points(job: _Job, side: str, kind: str, power: int, line: str, number: int) -> None:
    if not side or (not _POINT_LINE.match(line) and line.strip() != "|"):
        raise unreadable("fio's percentiles cannot be read", number, line, "| 50.00th=[   71], ...")
    for percent, value in _POINT.findall(line) if side in _MEASURED else ():
        name = _POINTS_KEPT.get(float(percent))
        if name:
            metric = f"{side}_{_POINT_KIND[kind]}_{name}"
            _add(job, metric, times_ten(value, power), "s", number, step=_step(value, power))


def _step(value: str, power: int) -> float:
    """Return the step of a percentile: the bin of fio's around it, or the last digit that is printed."""
    bin_ns = bin_of(round(times_ten(value, power) * NS_PER_S))[1]
    return max(bin_ns / NS_PER_S, times_ten("1", power))


def _add_other(job: _Job, side: str, line: str, number: int) -> None:
    if match := _LATENCY.match(line):
        of = "sync" if match["kind"] == "sync" else side
        power = _POWERS[match["unit"]]
        if of in _MEASURED:
            metric, step = f"{of}_{_KIND[match['kind']]}_mean", last_digit(f"{match['mean']}e{power}")
            _add(job, metric, times_ten(match["mean"], power), "s", number, step=step)
    elif match := _ISSUED.match(line):
        job.ios = {name: int(count) for name, count in match.groupdict().items() if count}
        for name in (*job.sides, *(["sync"] if job.ios.get("sync") else [])):
            _add(job, f"{name}_ios", float(job.ios[name]), "1", number)
    elif match := _CPU.match(line):
        job.figures += [Figure(measurement=row, line=number) for row in costs(match)]
    elif _LOOKS_LIKE_FIGURES.match(line):
        raise unreadable("a line of fio's cannot be read", number, line, "what fio prints of latency, cpu or issued")


def _close(job: _Job) -> None:
    if not job.sides and job.mixed:
        raise ParseError(
            "fio added up its reads and its writes: which is whose cannot be read",
            where=f"line {job.line}",
            got=job.mixed.strip()[:160],
            allowed="a line 'read: ...' or 'write: ...'",
            next_step=SEPARATE,
        )
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
    job.figures = [each for each in job.figures if _rests_on_enough(job, each.measurement.metric)]
    for name, side in job.sides.items():
        _add_iops(job, name, side)
    longest = max(job.sides.values(), key=lambda side: side.seconds)
    _add(job, "elapsed", longest.seconds, "s", longest.line)


def _add_iops(job: _Job, name: str, side: _Side) -> None:
    """From the number of I/Os, which fio prints in full; without it, as printed, where that has but one meaning."""
    done = job.ios.get(name, 0) / side.seconds
    if done and not _agreeing([_Printed((done,), 0.5 / side.seconds), side.iops]):
        raise unreadable(
            "fio's IOPS, I/Os and time do not agree", side.line, f"{side.iops.meant[0]:g} IOPS", f"{done:g}"
        )
    value = done or (side.iops.meant[0] if len(side.iops.meant) == 1 else 0.0)
    _add(job, f"{name}_iops", value, "1/s", side.line, step=0.0 if done else side.iops.step)


def _rests_on_enough(job: _Job, metric: str) -> bool:
    """Return whether a percentile rests on enough I/Os; not where their number is unknown."""
    return metric not in PERCENT_OF or enough(job.ios.get(metric.split("_")[0], 0), PERCENT_OF[metric])


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


def _totals(lines: Sequence[str], first: int = 0, last: int | None = None) -> list[_Total]:
    """Return the sums of reads and of writes: trims have no metric, and all directions together no direction."""
    found: list[_Total] = []
    group = None
    for number, line in enumerate(lines[first:last], start=first + 1):
        if status := _STATUS.match(line):
            group = int(status[1])
        elif group is not None and _LOOKS_LIKE_A_TOTAL.match(line):
            old = "aggrb" in line
            match = (_OLD_TOTAL if old else _TOTAL).match(line)
            if not match:
                raise unreadable("a sum of fio's cannot be read", number, line, "READ: bw=... run=...-...msec")
            if match["side"].lower() in fio_report.SIDES:
                found.append(_total(match, group, number, old=old))
    return found


def _total(match: re.Match[str], group: int, number: int, *, old: bool) -> _Total:
    """Return one sum. Rate and bytes, in new versions in units of 1024 and of 1000, must mean one amount."""
    printed, seconds = match.groupdict(), times_ten(match["ms"], -3)
    rates = [_bytes(printed[key], old=old) for key in ("rate", "again") if key in printed]
    amounts = [_bytes(printed[key], old=old) for key in ("moved", "moved_again") if key in printed]
    slack = KIB + KIB / (seconds or math.inf) if old else 1.0  # old versions cut sums to whole KB
    agreeing = _agreeing([*rates, *(_per(amount, seconds) for amount in amounts)], slack)
    if not agreeing:
        raise unreadable("a sum of fio's does not agree with itself", number, match[0], f"{rates[0].meant[0]:g} B/s")
    moved = min(amounts[0].meant, key=lambda amount: abs(amount - agreeing[len(rates)] * seconds))
    steps = rates[0].step, amounts[0].step
    return _Total(group, match["side"].lower(), agreeing[0], steps[0], moved, steps[1], seconds, number)


def _check_totals(jobs: Sequence[_Job], totals: Sequence[_Total], last: int) -> None:
    """Each group has one sum for each direction, that of its jobs: else lines are missing, or of another run."""
    asked = {(job.group, side) for job in jobs for side in job.sides}
    given = [(total.group, total.side) for total in totals]
    if set(given) != asked or len(given) != len(asked):
        raise unreadable(
            "fio's output is not whole",
            last,
            f"{len(given)} sums",
            f"{len(asked)}: lines as 'WRITE: bw=...' below 'Run status group', as fio prints them at its end",
        )
    for total in totals:
        sides = [job.sides[total.side] for job in jobs if job.group == total.group and total.side in job.sides]
        moved = math.fsum(side.moved for side in sides)
        slack = _TOLERANCE * len(sides) * moved + KIB
        if abs(total.moved - moved) > slack or total.seconds < max(side.seconds for side in sides):
            got = f"{total.side}: {total.moved:.4g} B in {total.seconds:g} s"
            raise unreadable(
                "fio's jobs and their sum do not agree", total.line, got, f"{moved:.4g} B, as its jobs say"
            )


def _together(totals: Sequence[_Total]) -> Iterator[Figure]:
    """Yield all jobs of one group. I/O rates and latencies have no sum here."""
    for total in totals:
        rows = (
            Measurement(metric=f"{total.side}_bandwidth", value=total.rate, unit="B/s", step=total.rate_step),
            Measurement(metric="bytes", value=total.moved, unit="B", label=total.side, step=total.moved_step),
        )
        yield from (Figure(measurement=row, line=total.line) for row in rows if row.value)
    longest = max(totals, key=lambda total: total.seconds)
    yield Figure(measurement=Measurement(metric="elapsed", value=longest.seconds, unit="s"), line=longest.line)
