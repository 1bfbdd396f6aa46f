"""fio's logs over time (`log_avg_msec`): bandwidth, I/O rate and latency of each job, averaged over windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from mountlab.core.errors import ParseError
from mountlab.core.units import KIB, NS_PER_S

PREFIX = "fio"
"""How the names of the logs begin that Mountlab asks for: fio_bw.1.log, fio_lat.2.log, ..."""
_NAME = re.compile(rf"{PREFIX}_(bw|iops|lat|clat|slat)\.(\d{{1,6}})\.log\Z")
_LINE = re.compile(r"(\d{1,15}), (\d{1,19}), ([012]), (\d{1,12})(?:, \w+)*\Z")
_DIRECTIONS = ("read", "write", "trim")
_METRICS = {
    "bw": ("bandwidth", "B/s", float(KIB)),
    "iops": ("iops", "1/s", 1.0),
    "lat": ("latency_mean", "s", 1 / NS_PER_S),
    "clat": ("completion_latency_mean", "s", 1 / NS_PER_S),
    "slat": ("submission_latency_mean", "s", 1 / NS_PER_S),
}
"""Kind of log to the metric that it follows, its unit, and the factor from what fio writes (KiB/s, ns)."""


@dataclass(frozen=True)
class Point:
    """The mean of one window that ended `seconds` after the job began. `block_bytes` is 0 where fio does not say."""

    seconds: float
    value: float
    block_bytes: int


@dataclass(frozen=True)
class Series:
    """What one job did over time in one direction."""

    metric: str
    unit: str
    job: int
    """Counted from 1, in the order of the jobs and their clones."""
    points: tuple[Point, ...]


def arguments(output: str) -> dict[str, str]:
    """The options that make fio write the logs, into our own directory."""
    return {f"write_{kind}_log": f"{output}/{PREFIX}" for kind in ("bw", "lat", "iops")}


def read_series(files: Mapping[str, str]) -> list[Series]:
    """Every series of the logs among the files that a trial brought back. Raises ParseError with file and line."""
    matches = sorted((int(match[2]), name, match[1]) for name in files if (match := _NAME.match(name)))
    return [series for job, name, kind in matches for series in _series(name, kind, job, files[name])]


def together(series: Sequence[Series], metric: str) -> list[tuple[float, float]]:
    """What all jobs of a trial did together: (seconds, sum of the jobs' values) at the end of each window.

    Jobs end their windows a little apart, so they are put into windows of the first one's length; a window that one
    of the jobs has nothing in is left out. [] where none has the metric.
    """
    own = [each for each in series if each.metric == metric and each.points]
    if not own:
        return []
    ends = [point.seconds for point in own[0].points]
    width = median(later - earlier for earlier, later in pairwise(ends)) if len(ends) > 1 else ends[0]
    windows: list[dict[int, list[float]]] = []
    for each in own:
        windows.append({})
        for point in each.points:
            windows[-1].setdefault(round(point.seconds / width) if width else 0, []).append(point.value)
    shared = sorted(set.intersection(*(set(each) for each in windows)))
    return [(place * width, sum(fmean(each[place]) for each in windows)) for place in shared]


def _series(name: str, kind: str, job: int, text: str) -> Iterator[Series]:
    metric, unit, factor = _METRICS[kind]
    found: dict[str, list[Point]] = {}
    for direction, point in _points(name, text, factor):
        found.setdefault(direction, []).append(point)
    for direction, points in found.items():
        yield Series(f"{direction}_{metric}", unit, job, tuple(points))


def _points(name: str, text: str, factor: float) -> Iterator[tuple[str, Point]]:
    if text and not text.endswith("\n"):
        raise ParseError("a log of fio's is cut off", where=f"{name}, line {text.count(chr(10)) + 1}", got=text[-60:])
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.match(line)
        if not match:
            raise ParseError(
                "not a line of fio's logs",
                where=f"{name}, line {number}",
                got=repr(line)[:60],
                allowed="milliseconds, value, direction, block size",
            )
        seconds, value, block = int(match[1]) / 1e3, int(match[2]) * factor, int(match[4])
        yield _DIRECTIONS[int(match[3])], Point(seconds, value, block)
