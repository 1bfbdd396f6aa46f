"""fio's JSON report: decoded, checked, and turned into measurements, one job or several together."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeGuard

from mountlab.core.errors import ParseError
from mountlab.core.groups import by_key
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement
from mountlab.core.resolution import Step
from mountlab.core.units import NS_PER_S
from mountlab.stats import histograms
from mountlab.tools.base import decode_json

FILE = "fio.json"
ALL_CLIENTS = "All clients"
"""What fio calls its sum over the clients of a report."""
PERCENTILES = {"p50": "50.000000", "p95": "95.000000", "p99": "99.000000", "p99_9": "99.900000"}
MOST = 1e18
"""Above any honest figure of a report: an exabyte, or thirty years in nanoseconds."""
SIDES = ("read", "write")
MIXED = "mixed"
"""What fio calls all I/Os together (unified_rw_reporting)."""
UNDIRECTED = {
    "mixed_bandwidth": "bandwidth", "mixed_iops": "operation_rate", "mixed_ios": "operations",
    "mixed_latency_mean": "operation_latency",
    **{f"mixed_latency_{name}": f"operation_latency_{name}" for name in PERCENTILES},
}  # fmt: skip
"""Figures of all I/Os together, to their names in METRICS."""
SECTOR_BYTES = 512
LATENCIES = ("slat_ns", "clat_ns", "lat_ns")
JobEntry = Mapping[str, Any]
"""One element of a report's `jobs`: a job, or a group of its clones."""
Begin = tuple[int, float]
"""When a job began to count: its phase, and seconds after the begin of that phase."""
AT_ONCE: Begin = (0, 0.0)
_NO_NUMBER = re.compile(r":\s*-?(?:nan|inf)\b", re.IGNORECASE)


def decode(text: str) -> Any:
    """Return the JSON of a report. Notes and errors of fio's may stand before it, and a summary after it.

    Raises ParseError where there is none, and where it is not whole. Where fio printed nan or inf, which is no JSON,
    there is nothing.
    """
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        raise ParseError("fio wrote no report", where=FILE, got=repr(text[:60]) if text else "nothing")
    with suppress(ValueError):  # the fast decoder refuses text after the JSON, nan, and lines of errors
        return decode_json(text[start.start() :])
    try:
        return json.JSONDecoder().raw_decode(text, start.start())[0]
    except RecursionError as error:
        raise ParseError("fio's report is not whole", where=FILE, got="endless brackets") from error
    except json.JSONDecodeError as error:
        plain = _NO_NUMBER.sub(": null", text)
        if plain != text:
            return decode(plain)
        raise ParseError("fio's report is not whole", where=f"{FILE}, line {error.lineno}", got=error.msg) from error


def entries(report: Any) -> list[JobEntry]:
    """Return the jobs of a report, of all clients where it is of several, each with what every figure is read from.
    Raises ParseError where that is not there."""
    jobs = _list_clients(report) or (report.get("jobs") if isinstance(report, dict) else None)
    if not isinstance(jobs, list) or not jobs:
        raise ParseError("a report tells of one job or more", where=FILE, got="no jobs", allowed="a list `jobs`")
    for number, job in enumerate(jobs):
        place = f"jobs[{number}]"
        mapping({place: job}, place, "jobs")
        for key in (*SIDES, "job options"):
            mapping(job, key, place)
        number_of(job, "error", place)
    return jobs


def _list_clients(report: Any) -> list[Any]:
    """Return the entries of a report on clients, without their sum. One with global options only has none."""
    stats = report.get("client_stats") if isinstance(report, dict) else None
    entries = [job for job in stats if not _is_sum(job)] if isinstance(stats, list) else []
    return [{"job options": {}, **job} if isinstance(job, dict) else job for job in entries]


def all_clients(report: Any) -> JobEntry | None:
    """Return fio's own entry for all clients together; None where it has none, as for a single client."""
    stats = report.get("client_stats") if isinstance(report, dict) else None
    return next((job for job in stats if _is_sum(job)), None) if isinstance(stats, list) else None


def _is_sum(job: Any) -> bool:
    return isinstance(job, dict) and job.get("jobname") == ALL_CLIENTS and "job options" not in job


def client_of(entry: JobEntry) -> str:
    """Return the client that an entry tells of: the last part of its address, which is a path where that is a socket;
    '' of a report that is of no clients."""
    return str(entry.get("hostname", "")).rpartition("/")[2][:60]


def mapping(parent: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    """Return an object of the report. Raises ParseError where it is none."""
    value = parent.get(key)
    if not isinstance(value, dict):
        raise _lack_error(key, place, value, "an object")
    return value


def number_of(parent: Mapping[str, Any], key: str, place: str) -> float:
    """Return a count or figure of the report: finite, and not below zero. Integers stay integers."""
    value = parent.get(key)
    if not is_number(value) or not 0 <= value <= MOST:
        raise _lack_error(key, place, value, "a number from 0 to 1e18")
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of JSON is a number; true and false are none."""
    return type(value) is float or type(value) is int


def _lack_error(key: str, place: str, value: object, allowed: str) -> ParseError:
    """Return an error for a value that is missing, or of another kind."""
    where = f"{FILE}: {place}.{key}"
    if value is None:
        return ParseError(
            f"this is not a whole report of fio: it has no {key}",
            where=where,
            got="nothing",
            allowed=allowed,
            next_step="fio writes it always: take the report as fio wrote it (--output-format=json or json+)",
        )
    got = f"{str(value)[:60]} ({type(value).__name__})"
    return ParseError("fio's report is not json+ of version 3", where=where, got=got, allowed=allowed)


def sides_of(entry: JobEntry) -> list[str]:
    """Return the directions of a job, and `mixed` where fio added them up."""
    return [side for side in (*SIDES, MIXED) if side in entry]


def moved(entry: JobEntry) -> float:
    """Return bytes read and written."""
    amounts = {side: number_of(entry[side], "io_bytes", side) for side in sides_of(entry)}
    return sum(amounts[side] for side in SIDES) or amounts.get(MIXED, 0)


def runtime_s(entry: JobEntry) -> float:
    """Return the longest of the directions' times."""
    return max(_runtime_ms(entry[side], side) for side in sides_of(entry)) / 1e3


def _runtime_ms(data: Mapping[str, Any], side: str) -> float:
    return number_of(data, "runtime", side) if number_of(data, "io_bytes", side) else 0.0


def measurements(
    jobs: Sequence[JobEntry], *, phases: Sequence[Begin] | None = None, disks: object = None
) -> list[Measurement]:
    """Return every figure of a report: of all jobs together, and of several also each under its label.

    `phases` says for each job when it ran beside the others; without it jobs of one group ran at the same time, and of
    several groups no common rate is known: then there are only their amounts, and the labelled rows.
    """
    if len(jobs) == 1:
        return [*_rows(jobs[0]), *_disk_rows(disks)]
    groups = {str(job.get("groupid")) for job in jobs}
    begins = [AT_ONCE] * len(jobs) if phases is None and len(groups) == 1 else phases
    whole = together(jobs, begins) if begins is not None else list(_sum_amounts(jobs))
    by_job = [row for label, job in zip(labels(jobs), jobs, strict=True) for row in labelled(_rows(job), label)]
    return [*whole, *by_job, *_disk_rows(disks)]


def _sum_amounts(jobs: Sequence[JobEntry]) -> Iterator[Measurement]:
    """Yield what all jobs moved in each direction."""
    for side in (*SIDES, MIXED):
        moved = sum(number_of(job[side], "io_bytes", side) for job in jobs if side in job)
        if moved:
            yield Measurement(metric="bytes", label=side, value=float(moved), unit="B")


def together(jobs: Sequence[JobEntry], phases: Sequence[Begin]) -> list[Measurement]:
    """Return every figure of all these jobs as one, without a label; `phases` as above."""
    if len(jobs) == 1:
        return _rows(jobs[0])
    return _rows(_merge(jobs, phases), over_phases(phases, map(runtime_s, jobs)))


def undirected(rows: Sequence[Measurement]) -> list[Measurement | None]:
    """Return figures by their names in METRICS: one of all I/Os together has no direction. None in the place of one
    that has no metric, and of bytes that are beside it by direction."""
    split = any(row.metric == "bytes" and row.label in SIDES for row in rows)
    renamed: list[Measurement | None] = []
    for row in rows:
        if row.metric == "bytes" and row.label == MIXED:
            renamed.append(None if split else replace(row, label=""))
        elif row.metric.startswith(f"{MIXED}_"):
            renamed.append(replace(row, metric=UNDIRECTED[row.metric]) if row.metric in UNDIRECTED else None)
        else:
            renamed.append(row)
    return renamed


def labelled(rows: Sequence[Measurement], label: str) -> list[Measurement]:
    """Return the same figures under a label; without the amounts, whose label tells the side."""
    return [replace(row, label=label) for row in rows if row.metric != "bytes"]


def amounts_left_out(rows: Sequence[Measurement]) -> Iterator[str]:
    """Yield a note on the amounts that `labelled` leaves out, where not all figures of the jobs together are there."""
    if not any(row.metric == "elapsed" and not row.label for row in rows):
        given = any(row.metric == "bytes" for row in rows)
        yield f"amounts of single jobs are left out{': `bytes` is the sum of all' if given else ''}"


def labels(jobs: Sequence[JobEntry]) -> list[str]:
    """Return the names of the jobs, with the client where it is of several; clones are numbered as their files."""
    names = [f"{client_of(job)} {job.get('jobname', '')}".strip()[:60] or "job" for job in jobs]
    seen: dict[str, int] = {}
    labels_of_jobs = []
    for name in names:
        labels_of_jobs.append(f"{name}.{seen.get(name, 0)}" if names.count(name) > 1 else name)
        seen[name] = seen.get(name, 0) + 1
    return labels_of_jobs


def over_phases(phases: Sequence[Begin], times: Iterable[float]) -> float:
    """Return for how long one or more jobs ran, of jobs that ran so long: in each phase, one after the other."""
    spans = sorted((phase, start, start + time) for (phase, start), time in zip(phases, times, strict=True))
    merged: list[tuple[int, float, float]] = []
    for phase, start, end in spans:
        if merged and merged[-1][0] == phase and start <= merged[-1][2]:
            _, start, before = merged.pop()
            end = max(end, before)
        merged.append((phase, start, end))
    return sum(end - start for _, start, end in merged)


def completed(data: Mapping[str, Any], side: str) -> float:
    """Return how many I/Os of one direction were done.

    fio counts an I/O in `total_ios`, and so in `iops`, when it issues it (td_io_queue), but its bytes and latency when
    it completes. At the end of a ramp_time it sets all of these to 0. So I/Os in flight at that moment are in the bytes
    and the latencies, and not in `total_ios`. Where only the number of latencies divides the bytes into whole blocks,
    it is the number of I/Os. (fio 3.1 has it in the bins of the histogram alone.)
    """
    issued = number_of(data, "total_ios", side) if "total_ios" in data else 0
    moved = number_of(data, "io_bytes", side)
    if not issued or _in_blocks(moved, issued):
        return issued
    sections = {key: mapping(data, key, side) for key in ("clat_ns", "lat_ns") if key in data}
    stated = [number_of(section, "N", side) for section in sections.values() if "N" in section]
    bins = [histograms.read_bins(section, where=f"{FILE}: {side}.{key}") for key, section in sections.items()]
    counted = [*stated, *(histogram.total for histogram in bins if histogram)]
    return next((number for number in counted if number and _in_blocks(moved, number)), issued)


def _in_blocks(moved: float, ios: float) -> bool:
    return moved % ios == 0 and moved // ios % SECTOR_BYTES == 0


def _rows(job: JobEntry, elapsed_s: float | None = None) -> list[Measurement]:
    sides = [side for side in sides_of(job) if number_of(job[side], "io_bytes", side)]
    rows = [row for side in sides for row in _side(side, job[side])]
    if sides:
        rows.append(Measurement(metric="elapsed", value=elapsed_s or runtime_s(job), unit="s"))
    return [*rows, *_sync(job), *_machine(job)]


def _side(side: str, data: Mapping[str, Any]) -> list[Measurement]:
    if not number_of(data, "runtime", side):
        raise ParseError("fio ran for less than its clock can tell (1 ms)", where=f"{FILE}: {side}.runtime", got="0")
    rates = [
        Measurement(metric=f"{side}_bandwidth", value=float(number_of(data, "bw_bytes", side)), unit="B/s"),
        Measurement(metric=f"{side}_iops", value=_compute_iops(data, side), unit="1/s"),
    ]
    for rate in rates:
        if not rate.value:
            raise ParseError("fio moved bytes at no rate", where=f"{FILE}: {side}", got=f"{rate.metric} 0")
    amount = Measurement(metric="bytes", label=side, value=float(number_of(data, "io_bytes", side)), unit="B")
    return [*rates, amount, *_latencies(side, data)]


def _compute_iops(data: Mapping[str, Any], side: str) -> float:
    """Return I/Os a second, as fio prints them where it counted all."""
    done, printed = completed(data, side), float(number_of(data, "iops", side))
    return printed if done == data.get("total_ios", done) else done * 1e3 / number_of(data, "runtime", side)


def _latencies(side: str, data: Mapping[str, Any]) -> Iterator[Measurement]:
    """Yield the number of I/Os, the mean of the whole latency and the percentiles of its completion; and, where fio
    counted them, the parts."""
    whole, completion = mapping(data, "lat_ns", side), mapping(data, "clat_ns", side)
    yield from _ios(side, completion if completion.get("N") else whole, side)
    yield from _mean(f"{side}_latency", whole, f"{side}.lat_ns")
    yield from _percentiles(f"{side}_latency", completion, f"{side}.clat_ns")
    yield from _percentiles(f"{side}_total_latency", whole, f"{side}.lat_ns")
    yield from _mean(f"{side}_completion_latency", completion, f"{side}.clat_ns")
    if "slat_ns" in data:
        submission = mapping(data, "slat_ns", side)
        yield from _mean(f"{side}_submission_latency", submission, f"{side}.slat_ns")
        yield from _percentiles(f"{side}_submission_latency", submission, f"{side}.slat_ns")


def _ios(side: str, section: Mapping[str, Any], place: str) -> Iterator[Measurement]:
    """Yield how many I/Os the latencies are of."""
    if number := number_of(section, "N", place):
        yield Measurement(metric=f"{side}_ios", value=float(number), unit="1")


def _mean(metric: str, section: Mapping[str, Any], place: str) -> Iterator[Measurement]:
    """Yield latencies; without those of 0, where fio's clock was too coarse to see any time pass."""
    if number_of(section, "N", place) and (mean := number_of(section, "mean", place)):
        yield Measurement(metric=f"{metric}_mean", value=mean / NS_PER_S, unit="s")


def _percentiles(metric: str, section: Mapping[str, Any], place: str) -> Iterator[Measurement]:
    """Interpolated in the bins where there are any; else as fio gives them, which is the middle of a bin. Those that
    are switched off are missing, and those that too few I/Os give."""
    merged = section.get("merged") or histograms.read_bins(section, where=f"{FILE}: {place}")
    printed = mapping(section, "percentile", place) if "percentile" in section else {}
    ios = number_of(section, "N", place)
    for name, key in PERCENTILES.items():
        if not histograms.enough(ios, float(key)) or not (merged or key in printed):
            continue
        if merged:
            value, step = histograms.percentile_with_step(merged, float(key))
        else:
            value = number_of(printed, key, f"{place}.percentile")
            step = histograms.bin_of(round(value))[1]
        if value:
            yield Measurement(metric=f"{metric}_{name}", value=value / NS_PER_S, unit="s", step=step / NS_PER_S)


def _sync(job: JobEntry) -> Iterator[Measurement]:
    """Yield what each fsync or fdatasync took, where the job did any."""
    section = _sync_section(job)
    if section.get("N"):
        yield from _ios("sync", section, "sync.lat_ns")
        yield from _mean("sync_latency", section, "sync.lat_ns")
        yield from _percentiles("sync_latency", section, "sync.lat_ns")


_MACHINE = {
    "user_cpu": ("usr_cpu", 100.0), "system_cpu": ("sys_cpu", 100.0), "context_switches": ("ctx", 1.0),
    "major_faults": ("majf", 1.0), "minor_faults": ("minf", 1.0),
}  # fmt: skip
"""Metric to fio's key, and what it is divided by. Shares are of one processor, averaged over the clones of a job."""
METRICS_REPORTED = (
    *(metric for metric in METRICS if metric.startswith(("read_", "write_", "sync_latency", "sync_ios"))),
    *_MACHINE,
    "disk_utilization",
    "elapsed",
    "bytes",
    *UNDIRECTED.values(),
    *("capacity", "asked_rate", "arrival_rate", "completion_rate", "largest_lateness", "objective_used"),
)
"""Every metric that a report of fio's may give, or a search with it."""


def steps(clock_s: float) -> dict[str, Step]:
    """Return what rounds each metric of a report, whose run times are in steps of `clock_s`. Counts are whole; means of
    latencies have six digits behind the nanosecond, and shares as many behind the per cent; percentiles know the bins
    that they come from by themselves (Measurement.step)."""
    directed = {name: metric for metric, name in UNDIRECTED.items()}
    return {metric: _step(directed.get(metric, metric), clock_s) for metric in METRICS_REPORTED}


def _step(metric: str, clock_s: float) -> Step:
    if metric.endswith(tuple(f"latency_{name}" for name in PERCENTILES)):
        return Step(absolute=1 / NS_PER_S)
    if metric.endswith(("_bandwidth", "_iops")):
        return Step(clock_s=clock_s, absolute=1.0 if metric.endswith("_bandwidth") else 1e-6)
    if metric.endswith("_mean"):
        return Step(absolute=1e-6 / NS_PER_S)
    if metric in ("user_cpu", "system_cpu", "disk_utilization"):
        return Step(absolute=1e-8)
    if metric in _OF_A_SEARCH:
        return _OF_A_SEARCH[metric]
    return Step(absolute=clock_s if metric == "elapsed" else 1.0)


_OF_A_SEARCH = {
    # Requests are counted over a time that is known to the nanosecond; the log has whole milliseconds.
    **dict.fromkeys(("capacity", "asked_rate", "arrival_rate", "completion_rate"), Step(absolute=1e-6)),
    "largest_lateness": Step(absolute=1e-3),
    "objective_used": Step(absolute=1e-9),
}


def _machine(job: JobEntry) -> Iterator[Measurement]:
    """Yield what the job cost. No processor time is one too short for the kernel's ticks: it is missing."""
    unseen = {"usr_cpu", "sys_cpu"} if not job.get("usr_cpu") and not job.get("sys_cpu") else set()
    for metric, (key, divisor) in _MACHINE.items():
        if job.get(key) is not None and key not in unseen:
            yield Measurement(metric=metric, value=number_of(job, key, "jobs") / divisor, unit="1")


def _disk_rows(disks: object) -> Iterator[Measurement]:
    """Yield how much of the time each disk was busy, by fio's own count; without a label where there is but one. Runs
    that were over before fio first looked at the disks have none."""
    stated = [disk for disk in disks if isinstance(disk, dict) and "util" in disk] if isinstance(disks, list) else []
    rows = [disk for disk in stated if disk.get("read_ios") or disk.get("write_ios")]
    names = [str(disk.get("name", "")) for disk in rows]
    for name, disk in zip(names, rows, strict=True):
        value = number_of(disk, "util", "disk_util") / 100
        if names.count(name) == 1:
            yield Measurement(metric="disk_utilization", label=name if len(rows) > 1 else "", value=value, unit="1")


# --- several jobs as one ----------------------------------------------------------------------------------------------


def _merge(jobs: Sequence[JobEntry], phases: Sequence[Begin]) -> JobEntry:
    """Return one entry for all jobs: sums over the time in which one or more of them ran; merged percentiles."""
    busy = [number_of(job, "job_runtime", "jobs") if "job_runtime" in job else 0.0 for job in jobs]
    return {
        **{
            side: _merge_sides([job[side] for job in jobs], phases, side)
            for side in (*SIDES, MIXED)
            if all(side in job for job in jobs)
        },
        "sync": {"lat_ns": _merge_latencies([_sync_section(job) for job in jobs], "sync.lat_ns")},
        **{key: _weighted(jobs, key, busy) for key in ("usr_cpu", "sys_cpu")},
        **{key: _sum(jobs, key) for key in ("ctx", "majf", "minf")},
    }


def _sync_section(job: JobEntry) -> Mapping[str, Any]:
    section = mapping(job, "sync", "jobs").get("lat_ns") if "sync" in job else None
    return section if isinstance(section, dict) else {}


def _merge_sides(sides: Sequence[Mapping[str, Any]], phases: Sequence[Begin], side: str) -> dict[str, Any]:
    total = {
        "io_bytes": sum(number_of(data, "io_bytes", side) for data in sides),
        "total_ios": sum(completed(data, side) for data in sides),
    }
    runtime_s = over_phases(phases, (_runtime_ms(data, side) / 1e3 for data in sides))
    rate = 1 / runtime_s if runtime_s else 0.0
    latencies = {key: _merge_latencies([_section(data, key, side) for data in sides], key) for key in LATENCIES}
    rates = {"bw_bytes": total["io_bytes"] * rate, "iops": total["total_ios"] * rate}
    return {**total, **latencies, "runtime": runtime_s * 1e3, **rates}


def _section(data: Mapping[str, Any], key: str, side: str) -> Mapping[str, Any]:
    return mapping(data, key, side) if key in data else {}


def _merge_latencies(sections: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Return the mean over all I/Os, and the merged bins; without bins where a job has none."""
    counted = [section for section in sections if section.get("N")]
    numbers = [number_of(section, "N", place) for section in counted]
    means = [number_of(section, "mean", place) for section in counted]
    total = sum(numbers)
    mean = sum(n * mean for n, mean in zip(numbers, means, strict=True)) / total if total else 0.0
    bins = [histograms.read_bins(section, where=f"{FILE}: {place}") for section in counted]
    whole = {"N": total, "mean": mean}
    if not counted or None in bins:
        return whole
    return {**whole, "merged": histograms.merge(histogram for histogram in bins if histogram)}


def _weighted(jobs: Sequence[JobEntry], key: str, weights: Sequence[float]) -> float | None:
    """Return the mean over the time of every job; None where one does not say."""
    if not sum(weights) or any(job.get(key) is None for job in jobs):
        return None
    values = [number_of(job, key, "jobs") for job in jobs]
    return math.fsum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights)


def _sum(jobs: Sequence[JobEntry], key: str) -> float | None:
    return None if any(job.get(key) is None for job in jobs) else sum(number_of(job, key, "jobs") for job in jobs)


def histograms_of(report: Any) -> dict[tuple[str, str], histograms.Histogram]:
    """Return every histogram of a json+ report, by job and place: ('log', 'write.clat_ns')."""
    jobs = entries(report)
    by_place = {}
    for label, job in zip(labels(jobs), jobs, strict=True):
        for side in (*SIDES, "sync"):
            data = mapping(job, side, label) if side in job else {}
            for key in LATENCIES:
                bins = histograms.read_bins(_section(data, key, side), where=f"{FILE}: {label}.{side}.{key}")
                if bins:
                    by_place[label, f"{side}.{key}"] = bins
    return by_place


def latencies_of(report: Any) -> dict[str, histograms.Histogram]:
    """Return place in a json+ report ('write.clat_ns') to the histogram of all its jobs together."""
    by_place = by_key((place, bins) for (_, place), bins in histograms_of(report).items())
    return {place: histograms.merge(jobs) for place, jobs in by_place.items()}
