"""Requests that arrive in a Poisson process, taken by threads with one request each: how late were they?

A thread knows the latency of a request from when it was issued. A request that was due while its thread was busy was
issued late, and the time until then belongs to its latency. When it was due was not recorded. A Poisson process
says what to expect: between two that were due in one thread lies an exponential time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mountlab.stats.estimates import Floats

CLOCK_MS = 2.0
"""Ends of requests are known in whole milliseconds: a thread that was idle for less may have been busy."""
SURPRISE = 12.0
"""A gap between arrivals that is longer than the longest expected by so many mean gaps: e^-12 of all trials have it."""
MOST_UNSURE = 0.1
"""The share of requests that may have been due while their thread was busy."""


@dataclass(frozen=True)
class Arrivals:
    """The requests of one direction that were due in the counted time."""

    asked: float
    """Requests per second."""
    seconds: float
    latency: Floats
    """Of each request from when it was issued, in seconds."""
    busy: Floats
    """For how long its thread may have been busy since the request was due; 0 where it was not."""
    thread_rate: float
    """Requests per second that are due in one thread."""
    longest_gap: float
    """Between two requests of all threads."""
    completed: float
    """Requests per second that were completed in the counted time."""

    @cached_property
    def lateness(self) -> Floats:
        """The time from when a request was due until it was issued, as a Poisson process lets expect it."""
        waited = np.maximum(self.busy * self.thread_rate, 1e-9)
        gap = self.busy * (1 / waited - 1 / np.expm1(np.minimum(waited, 500)))
        return np.where(self.busy > 0, self.busy - gap, 0.0)

    @property
    def stall(self) -> float:
        """For how long no request was issued beyond what chance explains."""
        return max(0.0, self.longest_gap - (math.log(max(len(self.latency), 2)) + SURPRISE) / self.asked)

    def late(self, limit: float) -> tuple[float, float, float]:
        """Return how many requests were later than `limit`: at least, as expected, and at most."""
        certain = self.latency > limit
        before = np.clip(self.latency + self.busy - limit, 0, self.busy)  # due so soon in the busy time: it is late
        scale = -np.expm1(-self.busy * self.thread_rate)
        chance = np.divide(-np.expm1(-before * self.thread_rate), scale, out=np.zeros_like(scale), where=scale > 0)
        stalled = self.asked * self.stall if self.stall > limit else 0.0
        most = np.count_nonzero(self.latency + self.busy > limit) + stalled
        return float(certain.sum()), float(np.where(certain, 1.0, chance).sum()) + stalled, float(most)

    @property
    def short(self) -> bool:
        """Return whether fewer requests were issued than were due, beyond five standard deviations of their number."""
        due = self.asked * self.seconds
        return len(self.latency) < 0.995 * due - 5 * math.sqrt(due)

    def percentile(self, percent: float) -> float:
        """Return a percentile of latency from when requests were due, in seconds."""
        return float(np.quantile(self.latency + self.lateness, percent / 100, method="higher"))

    def holds(self, percent: float, limit: float) -> bool | None:
        """Return whether a percentile is within its limit; None where the schedule was not kept so closely that this is
        known: too many requests may have been due while their thread was busy, or too few were issued."""
        count = len(self.latency)
        allowed = (1 - percent / 100) * count
        least, expected, most = self.late(limit)
        certain = least > allowed or most <= allowed
        unsure = np.count_nonzero(self.busy) > MOST_UNSURE * count
        if not count or (not certain and unsure) or (self.short and least <= allowed):
            return None
        return expected <= allowed

    @classmethod
    def of(cls, end: Floats, latency_ns: Floats, rate: float, threads: int, begin: float, seconds: float) -> Arrivals:
        """Return the requests that were due in so many seconds from `begin`. `end` and `begin` are milliseconds: when
        each was done. Threads stand one after another, each in the order of its own time."""
        latency = latency_ns / 1e9
        start, until = end - 1e3 * latency, begin + 1e3 * seconds
        first = np.diff(end, prepend=math.inf) < 0
        idle = np.where(first, math.inf, start - np.concatenate([[math.inf], end[:-1]]))
        busy = _busy(latency, idle < CLOCK_MS, rate / threads)
        due = start - 1e3 * busy / 2
        counted = (due >= begin) & (due < until)
        issued = np.sort(start[(start >= begin) & (start < until)])
        gap = float(np.diff(issued, prepend=begin, append=until).max()) / 1e3
        done = np.count_nonzero((end >= begin) & (end < until))
        return cls(rate, seconds, latency[counted], busy[counted], rate / threads, gap, done / seconds)


def _busy(latency: Floats, follows: NDArray[np.bool_], rate: float) -> Floats:
    """Return for how long the thread of each request may have been busy when it was due: since the request before it
    was due, where it follows that at once."""
    busy = np.zeros(len(latency))
    for place in np.flatnonzero(follows):
        before = busy[place - 1]
        gap = 1 / rate - before / math.expm1(min(before * rate, 500)) if before > 0 else 0.0
        busy[place] = latency[place - 1] + max(0.0, before - gap)
    return busy
