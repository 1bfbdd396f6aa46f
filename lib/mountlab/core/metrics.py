"""The metrics that tools report: their units, and which direction is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]
LATENCY_PARTS = ("mean", "p50", "p95", "p99", "p99_9")
METRICS: dict[str, str] = {
    **dict.fromkeys(("read_bandwidth", "write_bandwidth", "bandwidth"), "B/s"),
    **dict.fromkeys(("read_iops", "write_iops"), "1/s"),
    **dict.fromkeys(("read_ios", "write_ios", "sync_ios"), "1"),
    **{f"{side}_latency_{part}": "s" for side in ("read", "write") for part in LATENCY_PARTS},
    **{
        f"{side}_{kind}_latency_{part}": "s"
        for side in ("read", "write")
        for kind, parts in (("submission", LATENCY_PARTS), ("completion", ("mean",)), ("total", LATENCY_PARTS[1:]))
        for part in parts
    },
    **{f"sync_latency_{part}": "s" for part in LATENCY_PARTS},
    **dict.fromkeys(
        ("user_cpu", "system_cpu", "context_switches", "major_faults", "minor_faults", "disk_utilization"), "1"
    ),
    **dict.fromkeys(("file_rate", "operation_rate", "sync_rate"), "1/s"),
    **dict.fromkeys(("operation_latency", "operation_latency_min", "operation_latency_max"), "s"),
    **{f"operation_latency_{part}": "s" for part in LATENCY_PARTS[1:]},
    **dict.fromkeys(("operations", "blocks"), "1"),
    "app_overhead": "s",
    "space_used": "1",
    "elapsed": "s",
    "bytes": "B",
    "layers_time": "s",
    "mkfs_time": "s",
    "mount_time": "s",
    **dict.fromkeys(("capacity", "asked_rate", "arrival_rate", "completion_rate"), "1/s"),
    "largest_lateness": "s",
    "objective_used": "1",
}
"""Every metric and its base unit."""
PERCENT_OF: dict[str, float] = {
    f"{metric}_{part}": percent
    for part, percent in zip(LATENCY_PARTS[1:], (50.0, 95.0, 99.0, 99.9), strict=True)
    for metric in (name.removesuffix("_p50") for name in METRICS if name.endswith("_p50"))
}
"""Every metric that is a percentile over the I/Os of a trial."""

COMPARED_PERCENTILES = tuple(
    metric for metric, percent in PERCENT_OF.items() if percent in (50.0, 99.0, 99.9) and "_submission_" not in metric
)
"""Percentiles that every run compares, whatever its answer is about: the middle and the tail, of completion, of the
whole where fio was asked for it, and of flushes. Submission is part of the whole."""


@dataclass(frozen=True)
class Metric:
    """What a metric is counted in, and which way of it is better."""

    unit: str
    """The base unit; of a metric that a sweep defines, any unit of its own."""
    better: Better
    """`neither`: it is measured and shown, and never compared."""

    @property
    def worst(self) -> float:
        """What a trial that did not end in its time counts as: worse than all that ended. NaN for what such a trial
        says nothing about: amounts, and what was spent of processors."""
        if self.better == "neither" or self.unit not in ("s", "B/s", "1/s"):
            return math.nan
        return math.inf if self.better == "lower" else 0.0


def higher_is_better(metric: str, better: Better | Literal[""] = "") -> bool:
    """Return whether more is better: of rates and bandwidths it is, of what was spent on them (times, shares of a
    processor, counts) it is not. `better`: of a metric that a sweep defines, its direction."""
    return better == "higher" if better else METRICS[metric] in ("B/s", "1/s")


def known_metric(name: str) -> Metric:
    """Return unit and direction of one of METRICS."""
    return Metric(METRICS[name], "higher" if higher_is_better(name) else "lower")
