"""What the device of a file system is promised to do."""

from __future__ import annotations

from dataclasses import dataclass

from mountlab.core.metrics import METRICS

PROMISABLE = tuple(
    metric
    for metric in METRICS
    if metric.startswith(("read_", "write_"))
    and (metric.endswith(("_iops", "_bandwidth")) or ("_latency_" in metric and "_submission_" not in metric))
)
"""Metrics of reads or writes that a device may be promised to keep: rates, and latencies."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One figure of a device: at least so much of a rate, at most so much of a latency."""

    metric: str
    value: float
    """In the base unit of the metric."""
    by: tuple[str, ...] = ()
    """Names of the workloads that are meant to ask it; (): all that measure the metric."""
    burst: float | None = None
    """What the device does for a while, of a rate."""

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return METRICS[self.metric] != "s"

    @property
    def side(self) -> str:
        """read or write."""
        return self.metric.partition("_")[0]
