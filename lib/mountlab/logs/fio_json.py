"""fio's JSON and json+ of versions 2 and 3, brought to the shape of today's and read as `tools.fio_report` reads that.

fio 2 counts latencies in microseconds, bandwidth in KiB/s and, before 2.18 or so, moved bytes in KiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.model import Measurement
from mountlab.core.units import KIB
from mountlab.fio import metadata as fio_metadata
from mountlab.fio import report as fio_report
from mountlab.fio.options import fio_bytes, fio_seconds
from mountlab.logs.base import Figure, LogReading

US_IN_NS = 1000.0
_FRACTION = re.compile(r":\s*\d+\.(\d+)\b")
_PLACES = 6
"""Behind the point of each fraction; two of them before 2.20 or so."""
_ROUNDING = 0.02
_ONCE_A_JOB = ("jobname", "usr_cpu", "ctx", "majf")
_WRITTEN_ONCE_A_JOB = re.compile(f'"({"|".join(_ONCE_A_JOB)})"'.encode())
_SHARE = 0.99
_UNKNOWN_AMOUNT = (
    "bsrange", "bssplit", "exitall", "exitall_on_error", "experimental_verify", "filename", "filesize", "fill_device",
    "latency_target", "loops", "number_ios", "offset", "offset_increment", "opendir", "read_iolog", "steadystate",
    "verify", "verify_only", "zonemode", "zonesize",
)  # fmt: skip
"""Options by which the amount of work is not what `size` says: then it cannot be checked."""


def read(text: str, before: int) -> LogReading:
    """Return every figure of one report. `before` lines stand above it. Raises ParseError or ToolError."""
    lines = _Lines(text, before)
    report = decode(text, before)
    try:
        rows = measurements(report)
    except (ToolError, ParseError) as error:
        if isinstance(error, ToolError) or error.where.startswith("job "):
            error.where = f"line {lines.of_error(error.where)}, {error.where}"
        raise
    places = len(fraction[1]) if (fraction := _FRACTION.search(text)) else _PLACES
    figures = [Figure(measurement=_round(row, places), line=lines.of(row)) for row in rows]
    jobs = fio_report.entries(_convert(report))
    if all(fio_metadata.is_metadata(_requested(report, job)) for job in jobs):
        figures = [
            Figure(measurement=row, line=figure.line)
            for figure in figures
            for row in fio_metadata.figures([figure.measurement])
        ]
    return LogReading(figures, [*fio_report.amounts_left_out(rows), *_note_uncounted(jobs)])


def _requested(report: Any, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a job, those that it shares with the others among them."""
    shared = report.get("global options")
    return {**(shared if isinstance(shared, dict) else {}), **job["job options"]}


def _note_uncounted(jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note where IOPS are not those that fio prints."""
    for label, job in zip(fio_report.labels(jobs), jobs, strict=True):
        for side in fio_report.sides_of(job):
            data, done = job[side], fio_report.completed(job[side], side)
            if done != data.get("total_ios", done):
                yield (
                    f"job {label}: fio computes IOPS of {data.get('iops', 0):.6g} from the {data['total_ios']} {side}s "
                    f"that it issued since it began to measure (ramp_time). {done} were completed, as latencies and "
                    "bytes say: IOPS here are of these"
                )


def _round(row: Measurement, places: int) -> Measurement:
    """Return a figure with its step, where fio printed so few places: those of microseconds, of I/Os a second (before
    2.2 whole ones), and of per cent. `Fio.steps` knows those of today."""
    steps = {"1/s": 1.0 if row.value.is_integer() else 10.0**-places, "1": 10.0 ** -(places + 2)}
    of_shares = row.metric in ("user_cpu", "system_cpu", "disk_utilization")
    step = 10.0 ** -(places + 6) if row.metric.endswith("_mean") else steps.get(row.unit, 0.0)
    return replace(row, step=max(row.step, step)) if places < _PLACES and (row.unit != "1" or of_shares) else row


def brace(text: str) -> int | None:
    """Return where the report begins in a text with words around it, indented or not; None without one."""
    start = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    return start.end() - 1 if start else None


def decode(text: str, before: int = 0) -> Any:
    """Return the report. Raises ParseError with the line where it is not whole."""
    try:
        report = fio_report.decode(text)
    except ParseError as error:
        line = re.search(r"line (\d+)", error.where)
        error.where = f"line {int(line[1]) + before}" if line else f"line {before + 1}"
        error.allowed = "JSON as fio prints it, from its first brace to its last: not cut off, and without comments"
        raise
    check_torn(report, text.encode(errors="replace"))
    return report


def check_torn(report: Any, data: bytes) -> None:
    """Raise ParseError where lines between jobs are lost, so that one job has the keys of two: JSON keeps the last.
    `data`: the report as it is written."""
    jobs = report.get("jobs", report.get("client_stats")) if isinstance(report, dict) else None
    number = len(jobs) if isinstance(jobs, list) else 0
    written = _WRITTEN_ONCE_A_JOB.findall(data)
    for key in _ONCE_A_JOB:
        times = written.count(key.encode())
        if times not in (0, number):
            raise ParseError(
                "lines of fio's report are missing", got=f"{times} x {key}", allowed=f"{number}, one a job"
            )


def measurements(report: Any) -> list[Measurement]:
    """Return the figures of a decoded report. Raises ToolError where fio failed, or stopped before it had done what it
    says it was asked; ParseError where a figure is not there or makes no sense."""
    today = _convert(report)
    jobs = fio_report.entries(today)
    _check_clients(today, jobs)
    for job in jobs:
        if job["error"]:
            raise ToolError(f"fio failed with error {job['error']}", where=f"job {job.get('jobname', '')}")
    for job in jobs:
        requested = _requested(report, job)
        _check_amount(job, requested)
        for side in fio_report.sides_of(job):
            _check_rates(job, side)
            if not any(
                "verify" in name for name in requested
            ):  # then fio reads back what it wrote, and counts it its way
                _check_counts(job, side)
    rows = fio_report.measurements(jobs, disks=report.get("disk_util"))
    if not any(row.metric.endswith("_bandwidth") for row in rows):
        raise ToolError("fio moved no bytes", where="io_bytes", got="0")
    return rows


def unchecked(report: Any) -> list[Measurement]:
    """Return the figures of a decoded report, whether or not it is that of a whole run. Raises ParseError as above."""
    return fio_report.measurements(fio_report.entries(_convert(report)), disks=report.get("disk_util"))


# --- versions ---------------------------------------------------------------------------------------------------------


_LISTS = ("jobs", "client_stats")
"""Where a report keeps its entries: of fio alone, and of fio that asked clients."""


def _convert(report: Any) -> Any:
    """Return a report whose entries count bytes and nanoseconds, and say how many I/Os a latency is of."""
    for key in _LISTS if isinstance(report, dict) else ():
        jobs = report.get(key)
        if isinstance(jobs, list) and not all(map(_is_version_3, jobs)):
            report = {**report, key: [_convert_job(job) if isinstance(job, dict) else job for job in jobs]}
    if not isinstance(report, dict):
        return report
    whole = fio_report.all_clients(report)
    jobs = [whole] if whole and report["client_stats"] == [whole] else report.get("jobs")
    if not isinstance(jobs, list):
        return report
    return {**report, "jobs": [{"job options": {}, **job} if isinstance(job, dict) else job for job in jobs]}


def _is_version_3(job: Any) -> bool:
    read = job.get("read") if isinstance(job, dict) else None  # of `mixed` alone there is none
    if not isinstance(read, dict) or "bw_bytes" not in read:
        return False
    latency = read.get("lat_ns")
    return isinstance(latency, dict) and "N" in latency


def _convert_job(job: Mapping[str, Any]) -> dict[str, Any]:
    sides = {key: _convert_side(job[key]) for key in fio_report.sides_of(job) if isinstance(job[key], dict)}
    if fio_report.MIXED in sides:  # without unified_rw_reporting=both fio says nothing of each direction
        sides = {**{key: {"io_bytes": 0} for key in fio_report.SIDES}, **sides}
    sync = job.get("sync")
    if isinstance(sync, dict) and isinstance(sync.get("lat_ns"), dict):
        # Before 3.18 fio counts flushes beside their latency, and not in it.
        sides["sync"] = {**sync, "lat_ns": {"N": sync.get("total_ios", 0), **sync["lat_ns"]}}
    return {**job, **sides}


def _convert_side(side: Mapping[str, Any]) -> dict[str, Any]:
    """Return one direction in bytes and nanoseconds. What cannot be read is refused where it is used."""
    runtime = side.get("runtime")
    moved = _io_bytes(side)
    rate = moved * 1e3 / runtime if fio_report.is_number(moved) and fio_report.is_number(runtime) and runtime else 0
    iops = side.get("iops")
    done = side.get("total_ios", round(iops * runtime / 1e3) if rate and fio_report.is_number(iops) else 0)  # type: ignore[operator]
    latencies = {
        f"{key}_ns": _convert_latency(side[key], done)
        for key in ("slat", "clat", "lat")
        if isinstance(side.get(key), dict)
    }
    today = {key: {"N": done, **side[key]} for key in fio_report.LATENCIES if isinstance(side.get(key), dict)}
    return {**side, "io_bytes": moved, "bw_bytes": side.get("bw_bytes", rate), **latencies, **today}


def _io_bytes(side: Mapping[str, Any]) -> Any:
    """Return bytes that were moved. Old versions say KiB under the same name: their bandwidth tells which."""
    moved, rate, runtime = (side.get(key) for key in ("io_bytes", "bw", "runtime"))
    if "io_kbytes" in side or "bw_bytes" in side or not moved:
        return moved
    if not all(map(fio_report.is_number, (moved, rate, runtime))):
        raise ParseError("the unit of io_bytes, bytes or KiB, is unknown", where="bw", got=repr(rate)[:60])
    expected = rate * runtime / 1e3  # type: ignore[operator]
    slack = _ROUNDING * expected + runtime / 1e3 + 1  # type: ignore[operator]
    if abs(moved - expected) <= slack:
        return moved * KIB
    if abs(moved / KIB - expected) <= slack:
        return moved
    raise ParseError(
        "fio's amount and bandwidth do not agree", where="io_bytes", got=f"{moved}, bw {rate} in {runtime} ms"
    )


def _convert_latency(section: Mapping[str, Any], done: Any) -> dict[str, Any]:
    """Return a section in microseconds as one in nanoseconds. Where nothing was counted all of it is 0."""

    def scaled(value: Any) -> Any:
        return value * US_IN_NS if fio_report.is_number(value) else value

    points = section.get("percentile")
    scaled_section = {key: scaled(value) for key, value in section.items() if key not in ("percentile", "bins")}
    if isinstance(points, dict):
        scaled_section["percentile"] = {key: scaled(value) for key, value in points.items()}
    return {**scaled_section, "N": done if section.get("mean") else 0}


def _check_clients(report: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> None:
    """Raise where fio's sum over its clients is not the sum of its reports on each, but for what old versions round."""
    whole = fio_report.all_clients(report)
    if whole is None:
        return
    for side in fio_report.SIDES:
        moved = sum(fio_report.number_of(job[side], "io_bytes", side) for job in jobs)
        stated = fio_report.number_of(fio_report.mapping(whole, side, fio_report.ALL_CLIENTS), "io_bytes", side)
        _check_near(whole, f"{side}.io_bytes", stated, moved)


# --- was it whole -----------------------------------------------------------------------------------------------------


def _check_amount(job: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """A fio that was stopped leaves a whole report with error 0: what it did must be what it says was asked."""
    given = {name: str(value) for name, value in options.items()}
    runtime_s = fio_report.runtime_s(job)
    limit_s = fio_seconds(given.get("runtime", given.get("timeout", "")))
    if limit_s and runtime_s >= _SHARE * limit_s:
        return
    if "time_based" in given and given["time_based"] != "0":
        if limit_s:
            raise _stopped_error(f"{runtime_s:g} s", f"{limit_s:g} s", job)
        return
    size = fio_bytes(given.get("io_size", given.get("io_limit", given.get("size", ""))), given.get("kb_base", ""))
    if size is None or any(name in given for name in _UNKNOWN_AMOUNT):
        return
    together = given.get("group_reporting", "0") != "0"
    clones = int(given["numjobs"]) if together and given.get("numjobs", "").isdecimal() else 1
    # fio gives each file the same whole number of blocks, so the last may be short.
    files = int(given.get("nrfiles", "1")) if given.get("nrfiles", "1").isdecimal() else 1
    slack = clones * files * (fio_bytes(given.get("bs", "4k").split(",")[0]) or 0)
    if fio_report.moved(job) < _SHARE * clones * size - slack:
        raise _stopped_error(f"{fio_report.moved(job):g} B", f"{clones * size} B", job)


def _stopped_error(got: str, allowed: str, job: Mapping[str, Any]) -> ToolError:
    return ToolError("fio stopped early", where=f"job {job.get('jobname', '')}", got=got, allowed=allowed)


def _check_rates(job: Mapping[str, Any], side: str) -> None:
    """fio computes its rates from amounts and time that stand beside them."""
    data = job[side]
    runtime = fio_report.number_of(data, "runtime", side) if fio_report.number_of(data, "io_bytes", side) else 0
    if not runtime:
        return
    for rate, amount in (("bw_bytes", "io_bytes"), ("iops", "total_ios")):
        if amount in data and rate in data:
            expected = fio_report.number_of(data, amount, side) * 1e3 / runtime
            _check_near(job, f"{side}.{rate}", fio_report.number_of(data, rate, side), expected)


def _check_counts(job: Mapping[str, Any], side: str) -> None:
    """Each I/O has its place in each histogram."""
    data = job[side]
    if fio_report.completed(data, side) != data.get("total_ios"):
        return
    for key in ("clat_ns", "lat_ns"):
        section = data.get(key)
        if isinstance(section, dict) and section.get("bins") and "total_ios" in data:
            done = fio_report.number_of(data, "total_ios", side)
            _check_near(job, f"{side}.{key}.N", fio_report.number_of(section, "N", side), done)


def _check_near(job: Mapping[str, Any], place: str, got: float, expected: float) -> None:
    if abs(got - expected) > (1 - _SHARE) * expected + 1:
        raise ParseError(
            f"fio's figures do not agree: {place}",
            where=f"job {job.get('jobname', '')}",
            got=f"{got:g}",
            allowed=f"{expected:.6g}, as the figures beside it say",
        )


# --- where it stands --------------------------------------------------------------------------------------------------

_SECTIONS = {
    "total_latency": "lat", "submission_latency": "slat", "completion_latency": "clat", "latency_mean": "lat",
    "latency_p": "clat", "ios": "clat",
}  # fmt: skip
_KEYS = {
    "bandwidth": "bw_bytes", "iops": "iops", "ios": "N", "bytes": "io_bytes", "user_cpu": "usr_cpu",
    "system_cpu": "sys_cpu", "context_switches": "ctx", "major_faults": "majf", "minor_faults": "minf",
    "disk_utilization": "util",
}  # fmt: skip


class _Lines:
    """Finds the line of a figure in a report as fio lays it out."""

    def __init__(self, text: str, before: int) -> None:
        self._text, self._before = text, before
        self._jobs = {label: match.start() for label, match in self._labelled()}

    def _labelled(self) -> Iterator[tuple[str, re.Match[str]]]:
        entries = list(re.finditer(r'"jobname"\s*:\s*"([^"\n]*)"', self._text))
        names = [{"jobname": match[1], "hostname": self._client(match)} for match in entries]
        sums = [name["jobname"] == fio_report.ALL_CLIENTS and bool(name["hostname"]) for name in names]
        jobs = [(name, match) for name, match, is_sum in zip(names, entries, sums, strict=True) if not is_sum]
        yield from zip(fio_report.labels([name for name, _ in jobs]), (match for _, match in jobs), strict=True)

    def _client(self, job: re.Match[str]) -> str:
        """Of an entry of a client: fio names it at its end, before the next entry."""
        name = re.compile(r'"(?:hostname"\s*:\s*"([^"\n]*)|jobname)"').search(self._text, job.end())
        return (name[1] or "") if name else ""

    def of(self, row: Measurement) -> int:
        """Return the line, from 1; of a sum over several jobs that where the jobs begin."""
        if len(self._jobs) > 1 and row.label not in self._jobs and row.metric != "disk_utilization":
            return self._line(min(self._after(f'"{key}"', 0) or len(self._text) for key in _LISTS))
        at = self._jobs.get(row.label, 0)
        first = row.label if row.metric == "bytes" else row.metric.split("_")[0]
        side = first if first in (*fio_report.SIDES, fio_report.MIXED, "sync") else ""
        at = self._after(f'"{side}"', at) if side else at
        name = row.metric.removeprefix(f"{side}_")
        section = next((key for start, key in _SECTIONS.items() if name.startswith(start)), "")
        section = "lat" if side == "sync" else section
        at = self._after(f'"{section}', at) if section else at
        if name == "elapsed":  # that of the direction that took longer, and not the option of the same name
            runtime = re.compile(rf'"runtime"\s*:\s*{round(row.value * 1e3)}\b').search(self._text, at)
            return self._line(runtime.start() if runtime else at)
        part = name.rpartition("latency_")[2]
        key = _KEYS.get(name) or fio_report.PERCENTILES.get(part, part)
        return self._line(self._after(f'"{key}"', at))

    def of_error(self, place: str) -> int:
        """Return the line of the job that an error is about, with its `error`."""
        at = self._jobs.get(place.removeprefix("job "), 0)
        return self._line(self._after('"error"', at))

    def _after(self, word: str, at: int) -> int:
        place = self._text.find(word, at)
        return place if place >= 0 else at

    def _line(self, at: int) -> int:
        return self._before + self._text.count("\n", 0, at) + 1
