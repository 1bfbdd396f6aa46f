"""Latency objectives in words, as plans, reports and figures name them."""

from __future__ import annotations

from mountlab.core.numbers import listed
from mountlab.core.search import Objective
from mountlab.core.units import scale_for


def objective_text(objective: Objective) -> str:
    """Return an objective in words: 'read p99 ≤ 5 ms', 'read and write p50 ≤ 1 ms and p99 ≤ 5 ms'."""
    first, *others = (limit_text("", name, limit) for name, limit in objective.limits.items())
    return listed([f"{listed(objective.of)} {first}", *others])


def limit_text(direction: str, percentile: str, limit: float) -> str:
    """Return one limit of an objective in words: 'read p99 ≤ 5 ms'."""
    scale = scale_for("s", limit * (1 + 1e-9))
    return f"{direction} {percentile_text(percentile)} ≤ {limit / scale.factor:.6g}\u00a0{scale.unit}".strip()


def percentile_text(percentile: str) -> str:
    """Return a percentile as people write it: 'p99.9' for p99_9."""
    return percentile.replace("_", ".")
