"""What metrics and workloads are called in sentences and headings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.metrics import METRICS


@dataclass(frozen=True)
class MetricWords:
    """The words for one metric. `ratio` has the places {candidate}, {times} and {baseline}."""

    noun: str
    ratio: str


def _rate(noun: str, verb: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} {verb} {{times}} as fast as {{baseline}}")


def _size(noun: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} has {{times}} the {noun} of {{baseline}}")


_PARTS = {
    "mean": "mean {} latency", "p50": "median {} latency", "p95": "95th-percentile {} latency",
    "p99": "99th-percentile {} latency", "p99_9": "99.9th-percentile {} latency",
}  # fmt: skip

METRIC_WORDS: dict[str, MetricWords] = {
    "read_bandwidth": _rate("read bandwidth", "reads"),
    "write_bandwidth": _rate("write bandwidth", "writes"),
    "bandwidth": _rate("bandwidth", "moves data"),
    "read_iops": _size("read IOPS"),
    "write_iops": _size("write IOPS"),
    "capacity": MetricWords("capacity", "{candidate} can take {times} as many requests as {baseline}"),
    "asked_rate": _size("asked rate"),
    "arrival_rate": _size("arrival rate"),
    "completion_rate": _size("completion rate"),
    "largest_lateness": _size("largest lateness"),
    "objective_used": _size("used part of the objective"),
    "read_ios": _size("number of reads"),
    "write_ios": _size("number of writes"),
    "sync_ios": _size("number of syncs"),
    **{
        # Of these two fio's percentiles are of completion, its mean of submission too (METHODS.md, Metrics).
        f"{side}_latency_{part}": _size(text.format(side if part == "mean" else f"{side} completion"))
        for side in ("read", "write")
        for part, text in _PARTS.items()
    },
    **{
        f"{side}_{kind}_latency_{part}": _size(text.format(f"{side} {kind}"))
        for side in ("read", "write")
        for kind in ("submission", "completion", "total")
        for part, text in _PARTS.items()
        if f"{side}_{kind}_latency_{part}" in METRICS
    },
    **{f"sync_latency_{part}": _size(text.format("sync")) for part, text in _PARTS.items()},
    "user_cpu": _size("user processor time"),
    "system_cpu": _size("system processor time"),
    "context_switches": _size("context switches"),
    "major_faults": _size("major page faults"),
    "minor_faults": _size("minor page faults"),
    "disk_utilization": _size("disk utilization"),
    "file_rate": _rate("file rate", "handles files"),
    "operation_rate": _rate("operation rate", "does operations"),
    "sync_rate": _rate("sync rate", "syncs"),
    "operation_latency": _size("operation latency"),
    **{f"operation_latency_{part}": _size(text.format("operation")) for part, text in _PARTS.items() if part != "mean"},
    "operation_latency_min": _size("least operation latency"),
    "operation_latency_max": _size("greatest operation latency"),
    "app_overhead": _size("time spent by the tool itself"),
    "space_used": _size("used share of the space"),
    "operations": _size("operations"),
    "blocks": _size("blocks"),
    "elapsed": _size("elapsed time"),
    "bytes": _size("bytes moved"),
    "layers_time": _size("time to make layers"),
    "mkfs_time": _size("mkfs time"),
    "mount_time": _size("mount time"),
}
"""One entry for every metric of `metrics.METRICS`."""


def metric_words(metric: str) -> MetricWords:
    """Return the words of a metric; of one that a sweep defines, its name without underscores."""
    return METRIC_WORDS.get(metric) or _size(metric.replace("_", " "))


def metric_noun(metric: str, label: str = "") -> str:
    """Return the noun of a metric: 'write bandwidth', or with a label 'sync rate (fdatasync)'."""
    noun = metric_words(metric).noun
    return f"{noun} ({label})" if label else noun


def metric_heading(metric: str, label: str = "") -> str:
    """Return the noun of a metric as a heading: 'Write bandwidth'."""
    noun = metric_noun(metric, label)
    return noun[0].upper() + noun[1:]


DIAGNOSTIC = "x"
"""First letter of the ids of diagnostic trials that are traced for their cause, and of their mounts."""
PROFILED = "p"
"""First letter of the ids of those whose system calls are recorded, and of their mounts."""


def is_diagnostic(trial_id: str) -> bool:
    """Return whether a trial was run for its cause or its profile: then it is never counted."""
    return trial_id.startswith((DIAGNOSTIC, PROFILED))


def cell_id(filesystem: str, workload: str) -> str:
    """Return the id of a cell, 'ext4/dd-write', from the name of its file system and the label of its workload;
    `Sweep.combinations` has the cell of an id."""
    return f"{filesystem}/{workload}"


def latency_noun(operation: str, statistic: str) -> str:
    """Return 'mean sync latency', '99th-percentile open latency' and the like."""
    return _PARTS[statistic].format(operation)


def workload_label(workload: str, factors: Mapping[str, str]) -> str:
    """Return 'fio rw=read bs=4KiB' from a name and its factors; factors in the name are not repeated."""
    missing = [f"{key}={value}" for key, value in factors.items() if f"{key}={value}" not in workload.split()]
    return " ".join([workload, *missing])


_SPOKEN_CODES = {
    "discards": "discards (TRIM) during trials",
    "few-late-requests": "percentiles of too few requests",
    "imported": "logs measured elsewhere",
    "memory-given-back": "memory returned to the host",
    "not-steady": "trials not steady",
    "other-io": "other programs on the disk",
    "too-few": "too few trials",
    "too-short": "trials too short",
}
"""Codes that say little, or the wrong thing, without their message."""


def code_words(code: str) -> str:
    """Return the code of a caveat as words."""
    return _SPOKEN_CODES.get(code, code.replace("_", " ").replace("-", " "))
