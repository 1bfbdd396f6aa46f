"""fio's terse output (--output-format=terse, --minimal), where it is one line of version 3, 4 or 5.

A line has no time and no process. So several lines of one name may be clones, snapshots or repeats, and are refused;
jobs of several names are read, each under its own.
Percentiles are left out: the line does not say whether they are of the whole latency or of its completion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.model import Measurement
from mountlab.core.resolution import last_digit
from mountlab.core.units import KIB
from mountlab.logs.base import Figure, Part, times_ten, unreadable

FORM = "terse"
_LINE = re.compile(r"^\s*(?:[345];fio-[^;\s]+;|2;[^;]*;\d{1,9};\d{1,9};\d{1,18};)")
_DIRECTION = re.compile(
    r"(?P<kib>\d{1,18});(?P<rate>\d{1,18});(?P<iops>\d{1,18});(?P<ms>\d{1,12})"
    r"(?:;\d+;\d+;(?P<slat>\d+\.\d+);\d+\.\d+)(?:;\d+;\d+;(?P<clat>\d+\.\d+);\d+\.\d+)"
    r"(?:;\d{1,3}(?:\.\d+)?%=\d+){20}(?:;\d+;\d+;(?P<lat>\d+\.\d+);\d+\.\d+);\d+;\d+;\d+\.\d+%;\d+\.\d+;\d+\.\d+"
)
_SAMPLES = re.compile(r";\d+;\d+;\d+;\d+\.\d+;\d+\.\d+;\d+")
"""What version 5 says more of each direction."""
_MACHINE = re.compile(
    r"(?P<user>\d{1,6}\.\d+)%;(?P<system>\d{1,6}\.\d+)%;(?P<switches>\d{1,15});(?P<major>\d{1,15});(?P<minor>\d{1,15})"
    r"(?:;\d+\.\d%){7}(?:;\d+\.\d\d%){22}(?:;|$)"
)
_KINDS = {"slat": "submission_latency", "clat": "completion_latency", "lat": "latency"}
_TOLERANCE = 0.03
"""fio 2.0 prints its rate in units of 1000 bytes, later versions in 1024."""
ADVICE = "run fio with --output-format=json (or normal): it prints times, percentiles and flushes, too"


def lines_in(text: str) -> list[int]:
    """Return the lines (from 0) of terse output in a text."""
    return [number for number, line in enumerate(text.split("\n")) if _LINE.match(line)]


def read(part: Part) -> list[Figure]:
    """Return the figures of each job. Raises ParseError for several lines of one name, and for version 2."""
    lines = part.text.split("\n")
    numbers = lines_in(part.text)
    names = [lines[number].split(";", 3)[2] for number in numbers]
    if len(set(names)) < len(names):
        raise ParseError(
            "several lines of terse output: jobs of one run, or several runs",
            where=f"line {numbers[1] + 1}",
            got=f"{len(numbers)} lines, which have no time",
            allowed="one line for each name",
            next_step=f"if they are runs, put each into a file of its own; else {ADVICE}",
        )
    figures: list[Figure] = []
    for number, name in zip(numbers, names, strict=True):
        line = lines[number].strip()
        _check_version(line, number + 1)
        rows = _rows(line, number + 1)
        labelled = rows if len(names) == 1 else (replace(row, label=name) for row in rows if row.metric != "bytes")
        figures += [Figure(measurement=row, line=number + 1) for row in labelled]
    return figures


def _check_version(line: str, number: int) -> None:
    if line[0] == "2":
        raise ParseError(
            "version 2 of fio's terse output has no version of fio in it, and its fields changed",
            where=f"line {number}",
            got=line[:60],
            allowed="version 3, 4 or 5 (--terse-version)",
            next_step=ADVICE,
        )


def _rows(line: str, number: int) -> Iterator[Measurement]:
    version, _, _, _, error, rest = [*line.split(";", 5), *[""] * 6][:6]
    if rest and error != "0":
        raise ToolError(f"fio failed with error {error}", where=f"line {number}", got=line[:60])
    sides, machine = _directions(rest, version, number)
    busy = {name: found for name, found in zip(("read", "write"), sides, strict=False) if int(found["kib"])}
    if not busy:
        raise ToolError("fio read and wrote no bytes", where=f"line {number}", got=line[:60])
    for name, found in busy.items():
        yield from _side(name, found, number)
    longest = max(int(found["ms"]) for found in busy.values())
    yield Measurement(metric="elapsed", value=times_ten(str(longest), -3), unit="s")
    yield from costs(machine)


def _directions(rest: str, version: str, number: int) -> tuple[Sequence[re.Match[str]], re.Match[str]]:
    """Reads, writes and, but for version 3, trims; and what stands behind them."""
    found: list[re.Match[str]] = []
    at = 0
    while match := _DIRECTION.match(rest, at):
        more = _SAMPLES.match(rest, match.end()) if version == "5" else None
        at = (more or match).end() + 1
        found.append(match)
    machine = _MACHINE.match(rest, at)
    if machine is None or len(found) != (2 if version == "3" else 3):
        got = f"{len(found)} directions: {rest[:60]}"
        raise ParseError(
            "fio's terse output cannot be read: it is cut off, its job has a ';' in its name, or "
            "unified_rw_reporting added up its directions",
            where=f"line {number}",
            got=got,
            allowed=f"{2 if version == '3' else 3} directions, processor, depths and latencies",
            next_step=ADVICE,
        )
    return found, machine


def _side(name: str, found: re.Match[str], number: int) -> Iterator[Measurement]:
    moved, seconds = int(found["kib"]) * KIB, times_ten(found["ms"], -3)
    rate = moved / seconds if seconds else 0.0
    if not rate or abs(int(found["rate"]) * KIB - rate) > _TOLERANCE * rate + 2 * KIB:
        raise unreadable("fio's bandwidth, bytes and time do not agree", number, found[0], f"{rate:g} B/s")
    yield Measurement(metric=f"{name}_bandwidth", value=rate, unit="B/s", step=KIB / seconds)
    if int(found["iops"]):
        yield Measurement(metric=f"{name}_iops", value=float(found["iops"]), unit="1/s", step=1.0)
    yield Measurement(metric="bytes", label=name, value=float(moved), unit="B", step=KIB)
    for key, kind in _KINDS.items():
        if mean := times_ten(found[key], -6):
            step = last_digit(f"{found[key]}e-6")
            yield Measurement(metric=f"{name}_{kind}_mean", value=mean, unit="s", step=step)


def costs(machine: re.Match[str]) -> Iterator[Measurement]:
    """Yield what the job cost. Where fio divided by no time, or saw none, the shares are missing."""
    shares = {"user_cpu": machine["user"], "system_cpu": machine["system"]}
    known = {metric: times_ten(share, -2) for metric, share in shares.items() if "nan" not in share}
    for metric, share in known.items() if any(known.values()) else ():
        yield Measurement(metric=metric, value=share, unit="1", step=last_digit(shares[metric]) / 100)
    for metric, key in (("context_switches", "switches"), ("major_faults", "major"), ("minor_faults", "minor")):
        if machine[key] is not None:  # fio 1 counted no faults
            yield Measurement(metric=metric, value=float(machine[key]), unit="1")
