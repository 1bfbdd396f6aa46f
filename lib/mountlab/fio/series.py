"""fio's logs over time (`log_avg_msec`): bandwidth, I/O rate and latency of each job, averaged over windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from mountlab.core.errors import ParseError
from mountlab.core.groups import by_key
from mountlab.core.units import KIB, NS_PER_S

PREFIX = "fio"
"""How the names of the logs begin that Mountlab asks for: fio_bw.1.log, fio_lat.2.log, ..."""
_NAME = re.compile(rf"{PREFIX}_(bw|iops|lat|clat|slat)\.(\d{{1,6}})\.log\Z")
_LINE = re.compile(r"(\d{1,15}), (\d{1,19}), ([012]), \d{1,12}(?:, \w+)*\Z")
_DIRECTIONS = ("read", "write", "trim")
_METRICS = {
    "bw": ("bandwidth", "B/s", float(KIB)),
    "iops": ("iops", "1/s", 1.0),
    "lat": ("latency_mean", "s", 1 / NS_PER_S),
    "clat": ("completion_latency_mean", "s", 1 / NS_PER_S),
    "slat": ("submission_latency_mean", "s", 1 / NS_PER_S),
}
"""Kind of log to the metric that it follows, its unit, and the factor from what fio writes (KiB/s, ns)."""


LONG_BYTES = 64 * 1024
"""An I/O of so many bytes takes 5 us and more, also from memory. All logs together take 30 to 50 ns of each, that of
the bandwidth alone next to nothing."""
_WINDOWS, _SHORTEST_MS, _LONGEST_MS, _FIXED_MS = 20, 50, 1000, 100
MOST_JOBS = 16
"""Each job writes five logs. Of more jobs none are kept unless they are asked for."""
_MOST_WINDOWS = 20_000
"""Of all jobs together: 3 MB of logs, of the LARGEST_ARCHIVE that a trial may bring back."""
_SLOWER, _ABREAST = 200, 4
"""Where no time ends a job, it may take much longer than was guessed: so many windows in the time of the guess, for so
many jobs."""


def window_ms(jobs: int, *, runtime_s: float | None, expected_s: float) -> int:
    """Return the windows of logs by default: ten or more in a trial of half a second, 1 s in one of 20 s; 0
    for no logs. `runtime_s`: after which all of the jobs end; None where one ends when it has moved its bytes."""
    if not 0 < jobs <= MOST_JOBS:
        return 0
    if runtime_s is None:
        return -(-jobs // _ABREAST) * max(_FIXED_MS, round(expected_s * 1000 / _SLOWER))
    fitting = min(max(runtime_s * 1000 / _WINDOWS, _SHORTEST_MS), _LONGEST_MS)
    return round(max(fitting, runtime_s * 1000 * jobs / _MOST_WINDOWS))


@dataclass(frozen=True)
class SeriesPoint:
    """The mean of one window that ended `seconds` after the job began."""

    seconds: float
    value: float


@dataclass(frozen=True)
class Series:
    """What one job did over time in one direction."""

    metric: str
    unit: str
    job: int
    """Counted from 1, in the order of the jobs and their clones."""
    points: tuple[SeriesPoint, ...]
    """The windows that it logged, in order."""


def arguments(output: str, *, every: bool) -> dict[str, str]:
    """Return the options that make fio write the logs, into our own directory: every one, or that of the bandwidth."""
    kinds = ("bw", "lat", "iops") if every else ("bw",)
    return {f"write_{kind}_log": f"{output}/{PREFIX}" for kind in kinds}


def read_series(files: Mapping[str, str]) -> list[Series]:
    """Return every series of the logs among the files of a trial. Raises ParseError with file and line."""
    matches = sorted((int(match[2]), name, match[1]) for name in files if (match := _NAME.match(name)))
    return [series for job, name, kind in matches for series in _list_series(name, kind, job, files[name])]


def together(series: Sequence[Series], metric: str) -> list[tuple[float, float]]:
    """Return what all jobs of a trial did together: (seconds, sum of the jobs' values) at the end of each window.

    Jobs end their windows a little apart, so they are put into windows of the first one's length; a window that one
    of the jobs has nothing in is left out. [] where none has the metric.
    """
    chosen = _select(series, metric)
    width = _find_width(chosen)
    windows = [_average_windows(window_means, width) for window_means in chosen]
    shared = sorted(set.intersection(*map(set, windows))) if windows else []
    return [(place * width, sum(window_means[place] for window_means in windows)) for place in shared]


def mean_over_jobs(series: Sequence[Series], metric: str, by: str) -> list[tuple[float, float]]:
    """Return the mean of a metric over all jobs at the end of each window, each weighted with its value of the metric
    `by`: the latency of all I/Os, by how many each job did. Of one job its own values."""
    chosen = _select(series, metric)
    if len(chosen) < 2:
        return [(point.seconds, point.value) for one in chosen for point in one.points]
    width = _find_width(chosen)
    weights = {one.job: _average_windows(one, width) for one in _select(series, by)}
    sums: dict[int, list[float]] = {}
    for one in chosen:
        for place, value in _average_windows(one, width).items():
            weight = weights.get(one.job, {}).get(place, 0.0)
            total = sums.setdefault(place, [0.0, 0.0])
            total[0], total[1] = total[0] + weight * value, total[1] + weight
    return [(place * width, value / weight) for place, (value, weight) in sorted(sums.items()) if weight]


def _select(series: Sequence[Series], metric: str) -> list[Series]:
    return [one for one in series if one.metric == metric and one.points]


def _find_width(series: Sequence[Series]) -> float:
    """Return the length of the windows of the first job."""
    ends = [point.seconds for point in series[0].points] if series else []
    return median(later - earlier for earlier, later in pairwise(ends)) if len(ends) > 1 else sum(ends)


def _average_windows(series: Series, width: float) -> dict[int, float]:
    """Return the number of each window of this length to the mean of what ended in it."""
    values_of = by_key((round(point.seconds / width) if width else 0, point.value) for point in series.points)
    return {place: fmean(values) for place, values in values_of.items()}


def _list_series(name: str, kind: str, job: int, text: str) -> Iterator[Series]:
    metric, unit, factor = _METRICS[kind]
    for direction, points in by_key(_read_points(name, text, factor)).items():
        yield Series(f"{direction}_{metric}", unit, job, tuple(points))


def _read_points(name: str, text: str, factor: float) -> Iterator[tuple[str, SeriesPoint]]:
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
        yield _DIRECTIONS[int(match[3])], SeriesPoint(int(match[1]) / 1e3, int(match[2]) * factor)
