"""What metrics and workloads are called in sentences and headings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.metrics import METRICS


@dataclass(frozen=True)
class MetricWords:
    """How one metric is spoken of. `ratio` has the places {candidate}, {times} and {baseline}."""

    noun: str
    ratio: str


def _rate(noun: str, verb: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} {verb} {{times}} as fast as {{baseline}}")


def _many(noun: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} has {{times}} the {noun} of {{baseline}}")


_PARTS = {
    "mean": "mean {} latency", "p50": "median {} latency", "p95": "95th-percentile {} latency",
    "p99": "99th-percentile {} latency", "p99_9": "99.9th-percentile {} latency",
}  # fmt: skip

METRIC_WORDS: dict[str, MetricWords] = {
    "read_bandwidth": _rate("read bandwidth", "reads"),
    "write_bandwidth": _rate("write bandwidth", "writes"),
    "bandwidth": _rate("bandwidth", "moves data"),
    "read_iops": _many("read IOPS"),
    "write_iops": _many("write IOPS"),
    "capacity": MetricWords("capacity", "{candidate} can take {times} as many requests as {baseline}"),
    "asked_rate": _many("asked rate"),
    "arrival_rate": _many("arrival rate"),
    "completion_rate": _many("completion rate"),
    "largest_lateness": _many("largest lateness"),
    "objective_used": _many("used part of the objective"),
    "read_ios": _many("number of reads"),
    "write_ios": _many("number of writes"),
    "sync_ios": _many("number of syncs"),
    **{
        # Of these two fio's percentiles are of completion, its mean of submission too (METHODS.md, Metrics).
        f"{side}_latency_{part}": _many(text.format(side if part == "mean" else f"{side} completion"))
        for side in ("read", "write")
        for part, text in _PARTS.items()
    },
    **{
        f"{side}_{kind}_latency_{part}": _many(text.format(f"{side} {kind}"))
        for side in ("read", "write")
        for kind in ("submission", "completion", "total")
        for part, text in _PARTS.items()
        if f"{side}_{kind}_latency_{part}" in METRICS
    },
    **{f"sync_latency_{part}": _many(text.format("sync")) for part, text in _PARTS.items()},
    "user_cpu": _many("user processor time"),
    "system_cpu": _many("system processor time"),
    "context_switches": _many("context switches"),
    "major_faults": _many("major page faults"),
    "minor_faults": _many("minor page faults"),
    "disk_utilization": _many("disk utilization"),
    "file_rate": _rate("file rate", "handles files"),
    "operation_rate": _rate("operation rate", "does operations"),
    "sync_rate": _rate("sync rate", "syncs"),
    "operation_latency": _many("operation latency"),
    **{f"operation_latency_{part}": _many(text.format("operation")) for part, text in _PARTS.items() if part != "mean"},
    "operation_latency_min": _many("least operation latency"),
    "operation_latency_max": _many("greatest operation latency"),
    "app_overhead": _many("time spent by the tool itself"),
    "space_used": _many("used share of the space"),
    "operations": _many("operations"),
    "elapsed": _many("elapsed time"),
    "bytes": _many("bytes moved"),
    "mkfs_time": _many("mkfs time"),
    "mount_time": _many("mount time"),
}
"""One entry for every metric of `metrics.METRICS`."""


def metric_words(metric: str) -> MetricWords:
    """Return the words of a metric; of one that a sweep defines, its name without underscores."""
    return METRIC_WORDS.get(metric) or _many(metric.replace("_", " "))


def metric_noun(metric: str, label: str = "") -> str:
    """'write bandwidth', or 'sync rate (fdatasync)' where a label tells rows of one metric apart."""
    noun = metric_words(metric).noun
    return f"{noun} ({label})" if label else noun


def metric_heading(metric: str, label: str = "") -> str:
    """Return the noun of a metric as a heading: 'Write bandwidth'."""
    noun = metric_noun(metric, label)
    return noun[0].upper() + noun[1:]


DIAGNOSTIC = "x"
"""How the ids of diagnostic trials, and of their mounts, begin."""


def is_diagnostic(trial_id: str) -> bool:
    """Return whether a trial was run for its cause: then it is never counted."""
    return trial_id.startswith(DIAGNOSTIC)


def cell_id(filesystem: str, workload: str) -> str:
    """Return the id of a cell, 'ext4/dd-write', from the name of its file system and the label of its workload;
    `Sweep.combinations` has the cell of an id."""
    return f"{filesystem}/{workload}"


def latency_noun(operation: str, statistic: str) -> str:
    """'mean sync latency', '99th-percentile open latency'."""
    return _PARTS[statistic].format(operation)


def workload_label(workload: str, factors: Mapping[str, str]) -> str:
    """'fio rw=read bs=4KiB' from a name and its factors; a workload that already says them is left as it is."""
    missing = [f"{key}={value}" for key, value in factors.items() if f"{key}={value}" not in workload.split()]
    return " ".join([workload, *missing])


def spoken_code(code: str) -> str:
    """Return the code of a caveat as words."""
    return code.replace("_", " ").replace("-", " ")
