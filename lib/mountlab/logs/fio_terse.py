"""fio's terse output (--output-format=terse, --minimal) of versions 2 to 5, a line for each job.

A line has no time and no process. So several lines of one name may be clones, repeats or snapshots: where they cannot
be snapshots each is read under a number, else they are refused. The sum of fio over its clients needs no label.
The line does not say whether percentiles are of the whole latency or of its completion, as they are by default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.model import Measurement
from mountlab.core.resolution import last_digit
from mountlab.core.units import KIB
from mountlab.fio import report as fio_report
from mountlab.logs.base import Figure, LogReading, Part, matches_in, times_ten, unreadable
from mountlab.logs.fio_numbers import POINTS_KEPT, TOLERANCE, step_of_a_point
from mountlab.stats.histograms import enough

FORM = "terse"
_LINE = re.compile(
    r"(?:^\s*|^.*?(?=[345];fio-\d)(?<![\w.;]))"
    r"(?P<line>(?:[345];(?:fio-)?\d[^;\s]*;|[345];fio-[^;\s]+;|2;[^;]*;\d{1,9};\d{1,9};\d{1,18};).*)"
)
"""With what a service writes before it."""
_POINT = re.compile(r";(\d{1,3}(?:\.\d+)?)%=(\d{1,18})")
_SHARE = r"(?:\d+\.\d+|-?nan|inf)"
_DIRECTION = re.compile(
    r"(?P<kib>\d{1,18});(?P<rate>\d{1,18});(?:(?P<iops>\d{1,18});)?(?P<ms>\d{1,12})"
    r"(?:;\d+;\d+;(?P<slat>\d+\.\d+);\d+\.\d+)(?:;\d+;\d+;(?P<clat>\d+\.\d+);\d+\.\d+)"
    r"(?P<points>(?:;\d{1,3}(?:\.\d+)?%=\d+){20})?(?:;\d+;\d+;(?P<lat>\d+\.\d+);\d+\.\d+)"
    rf";\d+;\d+;{_SHARE}%;{_SHARE};{_SHARE}"
)
"""fio 1 prints neither IOPS nor percentiles."""
_SAMPLES = re.compile(rf";\d+;\d+;\d+;{_SHARE};{_SHARE};\d+")
"""What version 5 says more of each direction."""
_MACHINE = re.compile(
    r"(?P<user>\d{1,6}\.\d+|-?nan)%;(?P<system>\d{1,6}\.\d+|-?nan)%;(?P<switches>\d{1,15})"
    r"(?:;(?P<major>\d{1,15});(?P<minor>\d{1,15}))?(?:;\d+\.\d%){7}(?:;\d+\.\d\d%){22}(?:[;'\"\\]|$)"
)
_SIDES = {
    "2": [("mixed",), ("read", "write"), ("read", "write", "trim"), ("read", "write", "trim", "mixed")],
    "3": [("mixed",), ("read", "write"), ("read", "write", "mixed")],
    "4": [("mixed",), ("read", "write", "trim"), ("read", "write", "trim", "mixed")],
    "5": [("mixed",), ("read", "write", "trim"), ("read", "write", "trim", "mixed")],
}
"""Version to the directions that it may have: `mixed` with unified_rw_reporting; trims in version 2 since fio 2.1."""
_KINDS = {"slat": "submission_latency", "clat": "completion_latency", "lat": "latency"}
_TOLERANCE = 0.03
"""fio 2.0 prints its rate in units of 1000 bytes, later versions in 1024."""
_LONGER_S = 0.5
"""fio's snapshots are a second apart."""
ADVICE = "run fio with --output-format=json (or normal): it prints times, percentiles and flushes, too"


def lines_in(text: str) -> list[int]:
    """Return the lines (from 0) of terse output in a text."""
    return [number for number, _ in matches_in(text.split("\n"), _LINE, 0)]


def read(part: Part) -> LogReading:
    """Return the figures of each job. Raises ParseError for lines that may be snapshots of one run."""
    matches = dict(matches_in(part.text.split("\n"), _LINE, 0))
    numbers, lines = list(matches), [match["line"].strip() for match in matches.values()]
    names = [_split_head(line)[0] for line in lines]
    jobs = [list(_read_job(line, number + 1)) for number, line in zip(numbers, lines, strict=True)]
    for name in set(names):
        places = [place for place, other in enumerate(names) if other == name]
        _check_snapshots([(numbers[place], jobs[place]) for place in places])
    whole = names.index(fio_report.ALL_CLIENTS) if names.count(fio_report.ALL_CLIENTS) == 1 else None
    if whole is not None and len(names) > 1:
        _check_clients(jobs[:whole] + jobs[whole + 1 :], jobs[whole], numbers[whole] + 1)
    figures: list[Figure] = []
    labels = fio_report.labels([{"jobname": name} for name in names])
    for place, (number, label, rows) in enumerate(zip(numbers, labels, jobs, strict=True)):
        labelled = rows if len(names) == 1 or place == whole else fio_report.labelled(rows, label)
        figures += [Figure(measurement=row, line=number + 1) for row in labelled]
    return LogReading(figures, list(_list_notes(names, figures)))


def _list_notes(names: Sequence[str], figures: Sequence[Figure]) -> Iterator[str]:
    rows = [figure.measurement for figure in figures]
    if len(set(names)) < len(names):
        yield f"{len(names)} lines, some of one name: jobs of one run, or runs"
    yield from fio_report.amounts_left_out(rows)
    points = tuple(f"_latency_{name}" for name in fio_report.PERCENTILES)
    if any(row.metric.endswith(points) for row in rows):
        yield (
            "percentiles are read as those of completion, fio's default: the line does not say whether they are of the "
            "whole latency (lat_percentiles)"
        )


def _check_clients(clients: Sequence[Sequence[Measurement]], whole: Sequence[Measurement], line: int) -> None:
    """Raise ParseError where the sum of fio over its clients is not that of their lines."""
    amounts = [part for rows in clients for part in rows if part.metric == "bytes"]
    for row in whole:
        if row.metric == "bytes":
            moved = math.fsum(part.value for part in amounts if part.label == row.label)
            if abs(moved - row.value) > TOLERANCE * moved:
                got, allowed = f"{row.label}: {row.value:.4g} B", f"{moved:.4g} B, as its clients say"
                raise unreadable("fio's clients and their sum do not agree", line, got, allowed)


def _split_head(line: str) -> tuple[str, str, str]:
    """Return the name of a job, its error, and the figures behind."""
    fields = line.split(";", 4 if line[0] == "2" else 5)
    name, _, error, rest = [*fields[-4:], *[""] * 4][:4]
    return name, error, rest


def _check_snapshots(jobs: Sequence[tuple[int, Sequence[Measurement]]]) -> None:
    """Raise ParseError where a later line of one name may continue an earlier one (--status-interval): it took longer
    and moved more."""
    for (earlier, before), (later, after) in pairwise(jobs):
        old, new = ({(row.metric, row.label): row.value for row in rows} for rows in (before, after))
        amounts = [key for key in old if key[0] == "bytes"]
        longer = new["elapsed", ""] - old["elapsed", ""] >= _LONGER_S
        if longer and all(new.get(key, 0.0) > old[key] for key in amounts):
            raise ParseError(
                "several lines of terse output of one name, each longer than the one before: jobs, or snapshots of one "
                "run (--status-interval)",
                where=f"line {later + 1}",
                got=f"{new['elapsed', '']:g} s, after {old['elapsed', '']:g} s in line {earlier + 1}",
                allowed="one line for each name",
                next_step=f"if they are runs, put each into a file of its own; else {ADVICE}",
            )


def _read_job(line: str, number: int) -> Iterator[Measurement]:
    _, error, rest = _split_head(line)
    if rest and error != "0":
        raise ToolError(f"fio failed with error {error}", where=f"line {number}", got=line[:60])
    sides, machine = _read_directions(rest, line[0], number)
    busy = {name: direction for name, direction in sides.items() if name != "trim" and int(direction["kib"])}
    if not busy:
        raise ToolError("fio read and wrote no bytes", where=f"line {number}", got=line[:60])
    for name, direction in busy.items():
        yield from _read_side(name, direction, number)
    longest = max(int(direction["ms"]) for direction in busy.values())
    yield Measurement(metric="elapsed", value=times_ten(str(longest), -3), unit="s")
    yield from costs(machine)


def _read_directions(rest: str, version: str, number: int) -> tuple[Mapping[str, re.Match[str]], re.Match[str]]:
    """Return the directions by name, and what stands behind them."""
    matches: list[re.Match[str]] = []
    at = 0
    while match := _DIRECTION.match(rest, at):
        more = _SAMPLES.match(rest, match.end()) if version == "5" else None
        at = (more or match).end() + 1
        matches.append(match)
    machine = _MACHINE.match(rest, at)
    names = next((sides for sides in _SIDES[version] if len(sides) == len(matches)), ())
    if machine is None or not names:
        got = f"{len(matches)} directions: {rest[:60]}"
        raise ParseError(
            "fio's terse output cannot be read: it is cut off, or its job has a ';' in its name",
            where=f"line {number}",
            got=got,
            allowed=f"{', '.join(str(len(sides)) for sides in _SIDES[version])} directions, processor, depths and "
            "latencies",
            next_step=ADVICE,
        )
    return dict(zip(names, matches, strict=True)), machine


def _read_side(name: str, printed: re.Match[str], number: int) -> Iterator[Measurement]:
    moved, seconds = int(printed["kib"]) * KIB, times_ten(printed["ms"], -3)
    rate = moved / seconds if seconds else 0.0
    if not rate or abs(int(printed["rate"]) * KIB - rate) > _TOLERANCE * rate + 2 * KIB:
        raise unreadable("fio's bandwidth, bytes and time do not agree", number, printed[0], f"{rate:g} B/s")
    yield Measurement(metric=f"{name}_bandwidth", value=rate, unit="B/s", step=KIB / seconds)
    if int(printed["iops"] or 0):
        yield Measurement(metric=f"{name}_iops", value=float(printed["iops"]), unit="1/s", step=1.0)
    yield Measurement(metric="bytes", label=name, value=float(moved), unit="B", step=KIB)
    for key, kind in _KINDS.items():
        if mean := times_ten(printed[key], -6):
            step = last_digit(f"{printed[key]}e-6")
            yield Measurement(metric=f"{name}_{kind}_mean", value=mean, unit="s", step=step)
    # fio cuts the decimals of IOPS off.
    yield from _read_points(name, printed["points"] or "", math.ceil(int(printed["iops"] or 0) * seconds))


def _read_points(name: str, points: str, ios: int) -> Iterator[Measurement]:
    """Yield percentiles, in whole microseconds, that rest on enough I/Os; one that fio did not compute is 0."""
    for percent, value in _POINT.findall(points):
        kept = POINTS_KEPT.get(float(percent))
        if kept and int(value) and enough(ios, float(percent)):
            step = step_of_a_point(value, -6)
            yield Measurement(metric=f"{name}_latency_{kept}", value=times_ten(value, -6), unit="s", step=step)


def costs(machine: re.Match[str]) -> Iterator[Measurement]:
    """Yield what the job cost. Where fio divided by no time, or saw none, the shares are missing."""
    shares = {"user_cpu": machine["user"], "system_cpu": machine["system"]}
    printed = {metric: times_ten(share, -2) for metric, share in shares.items() if "nan" not in share}
    for metric, share in printed.items() if any(printed.values()) else ():
        yield Measurement(metric=metric, value=share, unit="1", step=last_digit(shares[metric]) / 100)
    for metric, key in (("context_switches", "switches"), ("major_faults", "major"), ("minor_faults", "minor")):
        if machine[key] is not None:  # fio 1 counted no faults
            yield Measurement(metric=metric, value=float(machine[key]), unit="1")
