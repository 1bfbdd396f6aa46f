"""Requests that arrive in a Poisson process, taken by threads with one request each: how late were they?

A thread knows the latency of a request from when it was issued. A request that was due while its thread was busy was
issued late, and the time until then belongs to its latency. When it was due was not recorded. A Poisson process
says what to expect: between two that were due in one thread lies an exponential time. Where requests arrive faster than
they are served, some that were due are never issued: the trial ends before. They count with how long they had waited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mountlab.stats.estimates import Floats

CLOCK_MS = 2.0
"""Ends of requests are known in whole milliseconds: a thread that was idle for less may have been busy."""
SURPRISE = 12.0
"""A gap between arrivals that is longer than the longest expected by so many mean gaps: e^-12 of all trials have it."""
SEED = 20_070_301
"""Of what is drawn."""
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
    lateness: Floats
    """The time from when a request was due until it was issued, as a Poisson process lets expect it."""
    thread_rate: float
    """Requests per second that are due in one thread."""
    longest_gap: float
    """Between two requests of all threads."""
    completed: float
    """Requests per second that were completed in the counted time."""
    waiting: Floats = field(default_factory=lambda: np.zeros(0))
    """For how long requests had waited that were due, and not issued when their thread ended: the least that their
    latency can be, in seconds."""

    @property
    def due(self) -> int:
        """How many requests were due, issued or not."""
        return len(self.latency) + len(self.waiting)

    @property
    def stall(self) -> float:
        """For how long no request was issued beyond what chance explains."""
        return max(0.0, self.longest_gap - (math.log(max(len(self.latency), 2)) + SURPRISE) / self.asked)

    def late(self, limit: float) -> tuple[float, float, float]:
        """Return how many requests were later than `limit`: at least, as expected, and at most."""
        certain, waited = self.latency > limit, np.count_nonzero(self.waiting > limit)
        before = np.clip(self.latency + self.busy - limit, 0, self.busy)  # due so soon in the busy time: it is late
        scale = -np.expm1(-self.busy * self.thread_rate)
        chance = np.divide(-np.expm1(-before * self.thread_rate), scale, out=np.zeros_like(scale), where=scale > 0)
        stalled = self.asked * self.stall if self.stall > limit else 0.0
        most = np.count_nonzero(self.latency + self.busy > limit) + stalled + len(self.waiting)
        return (
            float(certain.sum() + waited),
            float(np.where(certain, 1.0, chance).sum() + waited) + stalled,
            float(most),
        )

    @property
    def short(self) -> bool:
        """Return whether fewer requests are known than were due, beyond five standard deviations of their number."""
        due = self.asked * self.seconds
        return self.due < 0.995 * due - 5 * math.sqrt(due)

    def percentile(self, percent: float) -> float:
        """Return a percentile of latency from when requests were due, in seconds; the least that it can be where it is
        that of a request that was never issued."""
        latency = np.concatenate([self.latency + self.lateness, self.waiting])
        return float(np.quantile(latency, percent / 100, method="higher"))

    def holds(self, percent: float, limit: float) -> bool | None:
        """Return whether a percentile is within its limit; None where the schedule was not kept so closely that this is
        known: too many requests may have been due while their thread was busy, or too few were issued."""
        count = len(self.latency)
        allowed = (1 - percent / 100) * self.due
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
        busy, lateness = _lateness(latency, idle < CLOCK_MS, rate / threads)
        due = start - 1e3 * lateness
        counted = (due >= begin) & (due < until)
        issued = np.sort(start[(start >= begin) & (start < until)])
        gap = float(np.diff(issued, prepend=begin, append=until).max()) / 1e3
        done = np.count_nonzero((end >= begin) & (end < until))
        last = np.append(first[1:], True) & (end >= until)
        waiting = _waiting(due[last], end[last], until, rate / threads)
        known = latency[counted], busy[counted], lateness[counted]
        return cls(rate, seconds, *known, rate / threads, gap, done / seconds, waiting)


def _waiting(due: Floats, end: Floats, until: float, rate: float) -> Floats:
    """Return for how long requests had waited that were due in a thread between its last one and `until`, when that one
    ended: at their mean distance from each other. Milliseconds, as `Arrivals.of`; the result is in seconds."""
    missing = np.maximum(0, np.round(rate * (until - due) / 1e3)).astype(np.int64)
    place = np.arange(missing.sum()) - np.repeat(np.cumsum(missing) - missing, missing) + 0.5
    return np.asarray(np.repeat(end - due, missing) / 1e3 - place / rate)


def _lateness(latency: Floats, follows: NDArray[np.bool_], rate: float) -> tuple[Floats, Floats]:
    """Return for how long the thread of each request may have been busy when it was due, and how late it was issued.

    Where it follows the request before it at once, it was due since that one was due: after an exponential time that
    ends while the thread is busy. That is drawn, with the same seed for each trial: threads to which many requests came
    by chance have the longest latencies, and a mean has none of these.
    """
    busy, lateness = np.zeros(len(latency)), np.zeros(len(latency))
    drawn = np.random.default_rng(SEED).random(len(latency))
    for place in np.flatnonzero(follows):
        busy[place] = latency[place - 1] + lateness[place - 1]
        gap = -math.log1p(drawn[place] * math.expm1(-busy[place] * rate)) / rate
        lateness[place] = max(0.0, busy[place] - gap)
    return busy, lateness
