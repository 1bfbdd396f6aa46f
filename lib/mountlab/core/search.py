"""A search for a capacity: what is searched for, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is to hold of the latency of requests that arrive on time, whether or not earlier ones are done."""

    limits: Mapping[str, float]
    """Percentile (p50, p95, p99, p99_9) to the most that it may be, in seconds."""
    of: tuple[str, ...]
    """The directions that it is about: read, write."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for the highest arrival rate at which an objective holds (stats/capacity.py), a trial at a time."""

    objective: Objective
    half_width: float = 0.05
    """Relative half-width of the interval in which the search ends: (high - low) / (high + low)."""
    max_trials: int = 60
    start: float = 1000.0
    """The arrival rate of the first trial, in requests per second."""
    floor: float = 0.0
    """The lowest rate that is of interest. A tool's own floor may be higher."""
