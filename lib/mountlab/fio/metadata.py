"""fio's engines that create, look up or delete files, and move no data: what they need, and what their report means.

fio counts each file as one I/O of `bs` bytes, which it does not move. As its HOWTO says, two figures of its report mean
something: I/Os a second, and the completion latency. It looks up every file before it begins (setup_files), so that
what it measures is never cold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement, Scalar
from mountlab.core.resolution import Step

SINCE: Mapping[str, str] = {"filecreate": "3.2", "filestat": "3.18", "filedelete": "3.27"}
"""Engine to the version of fio that brought it."""
LAID_OUT = ("filestat", "filedelete")
"""Those that work on files that are there already."""
NEEDED = {"nrfiles": "the number of files of each job, such as 10000"}
SEQUENTIAL: Mapping[str, Scalar] = {"openfiles": 1, "file_service_type": "sequential"}
"""One file after the other: else fio keeps all of them open, or looks for the next one among all."""
_IDLE = (
    "rw", "size", "io_size", "filesize", "direct", "iodepth", "fsync", "fdatasync", "end_fsync", "sync", "bssplit",
    "bsrange", "rwmixread", "number_ios", "log_avg_msec",
)  # fmt: skip
"""Options without effect on them, or that Mountlab sets."""
_PARTS = ("p50", "p95", "p99", "p99_9")
_RENAMED: Mapping[str, str] = {
    "iops": "file_rate", "ios": "operations", "completion_latency_mean": "operation_latency",
    **{f"latency_{part}": f"operation_latency_{part}" for part in _PARTS},
}  # fmt: skip
"""Figures of a direction, without it, to what they are of files."""
_DIRECTED = ("read_", "write_")


def is_metadata(options: Mapping[str, Scalar]) -> bool:
    """Return whether a job moves no data."""
    return options.get("ioengine") in SINCE


def completed(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options of a job with what such an engine needs; those of other jobs as they are. The direction only
    says where fio reports, and whether it lays out files before."""
    if not is_metadata(options):
        return dict(options)
    files = int(options.get("nrfiles", 1)) if str(options.get("nrfiles", 1)).isdecimal() else 1
    rw = "read" if options["ioengine"] in LAID_OUT else "write"
    rest = {name: value for name, value in options.items() if name != "filesize"}
    return {**SEQUENTIAL, **rest, "rw": rw, "size": files * int(options["bs"])}


def check(options: Mapping[str, Scalar], jobs: Sequence[Mapping[str, Scalar]], *, where: str) -> None:
    """Raise ParameterError for what such an engine cannot do. `options`: of the workload; `jobs`: of its jobs."""
    engines = [str(job["ioengine"]) for job in jobs if is_metadata(job)]
    if not engines:
        return
    engine = engines[0]
    if len(engines) < len(jobs):
        raise ParameterError(
            "jobs that move data beside jobs that move none have no figures together",
            where=f"{where}.jobs",
            got=", ".join(dict.fromkeys(str(job["ioengine"]) for job in jobs)),
            allowed=f"{', '.join(SINCE)} alone, or none of them",
        )
    for name in _IDLE if "jobs" not in options else ("log_avg_msec",):
        if options.get(name):
            raise ParameterError(
                f"{name} has no effect with ioengine {engine}, which moves no data",
                where=f"{where}.{name}",
                got=str(options[name]),
                allowed="nrfiles (how many files), bs (bytes of each file that is laid out), numjobs, ...",
                next_step=f"remove {name}",
            )
    cold = next((name for name in engines if name in LAID_OUT), "")
    if cold and options.get("cache") == "cold":
        raise ParameterError(
            f"fio looks up every file before {cold} begins, so that the caches are never cold",
            where=f"{where}.cache",
            got="'cold'",
            allowed="warm, as_is",
            next_step="for cold look-ups and removals use tool: large-directory or tool: tree",
        )
    for job in jobs:
        again = "time_based" if job.get("time_based") else "loops" if str(job.get("loops", 1)) != "1" else ""
        if again and job["ioengine"] != "filestat":
            raise ParameterError(
                f"{job['ioengine']} does its work once",
                where=f"{where}.{again}",
                got=str(job[again]),
                allowed=f"no {again}: more files (nrfiles) take longer",
            )


def figures(rows: Iterable[Measurement]) -> Iterator[Measurement]:
    """Yield the figures of a report as those of files; without bytes that were not moved."""
    for row in rows:
        side = next((side for side in _DIRECTED if row.metric.startswith(side)), "")
        name = _RENAMED.get(row.metric.removeprefix(side)) if side else row.metric
        if name and row.metric != "bytes":
            yield replace(row, metric=name)


def steps(step_of: Mapping[str, Step]) -> dict[str, Step]:
    """Return what rounds each figure of files, by what rounds those of a direction."""
    return {name: step_of[f"write_{metric}"] for metric, name in _RENAMED.items()}


METRICS_REPORTED = tuple(name for name in _RENAMED.values() if name in METRICS)
