"""Simulated servers whose capacity is known: Poisson arrivals, first come, first served.

A trial serves `REQUESTS` after a warm-up, and holds the objective if at most 1 % of them take longer than the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mountlab.stats.simulated import Floats, Generator

REQUESTS, WARM_UP = 30_000, 2_000
"""Requests of a trial that count, and those before them: the server is empty when they begin."""
LATE = 0.01
"""The objective is a p99: so many requests may be late."""
_SLOW, _FAST, _HITS = 3.4, 0.4, 0.8
"""A cache: service times of misses and hits, and the share of hits; 1 in the mean."""
_PAUSE, _WORK = 6.0, 300.0
"""A server that pauses: how long, and how long it works before that in the mean."""
_SERVERS = 4
"""k of M/D/k."""
Latencies = Callable[[Floats, Generator], Floats]
"""From the times between arrivals to how long each request takes, in units of the mean service time."""


@dataclass(frozen=True)
class Server:
    """A server, its latency limit, and the highest rate of arrivals at which p99 stays below the limit."""

    name: str
    latencies: Latencies
    limit: float
    capacity: float

    def late(self, rate: float, rng: Generator, requests: int = REQUESTS) -> float:
        """Return the share of requests that take longer than the limit, in one trial."""
        gaps = rng.standard_exponential(WARM_UP + requests) / rate
        return float(np.mean(self.latencies(gaps, rng)[WARM_UP:] > self.limit))

    def holds(self, rate: float, rng: Generator) -> bool:
        """Return whether the objective holds in one trial."""
        return self.late(rate, rng) <= LATE


def _in_turn(gaps: Floats, service: Floats) -> Floats:
    """Return waiting and service of requests at one server (Lindley 1952)."""
    steps = np.concatenate([[0.0], np.cumsum(service[:-1] - gaps[1:])])
    return np.asarray(steps - np.minimum.accumulate(steps) + service)


def _exponential(gaps: Floats, rng: Generator) -> Floats:
    return _in_turn(gaps, rng.standard_exponential(len(gaps)))


def _constant(gaps: Floats, rng: Generator) -> Floats:
    """Several servers that take the same time for each request: each server has every k-th request."""
    arrivals = np.cumsum(gaps).reshape(-1, _SERVERS)
    free = arrivals - np.arange(len(arrivals))[:, None]
    return np.asarray((np.maximum.accumulate(free, axis=0) - free).ravel() + 1)


def _cached(gaps: Floats, rng: Generator) -> Floats:
    return _in_turn(gaps, np.where(rng.random(len(gaps)) < _HITS, _FAST, _SLOW))


def _pausing(gaps: Floats, rng: Generator) -> Floats:
    """A server that stops now and then: requests in turn on a clock that stands still in pauses."""
    arrivals = np.cumsum(gaps)
    begun = np.cumsum(rng.standard_exponential(int(arrivals[-1] / _WORK * 1.2) + 40)) * _WORK
    stops = begun + _PAUSE * np.arange(len(begun))
    clock = np.interp(arrivals, np.stack([stops, stops + _PAUSE], axis=1).ravel(), np.repeat(begun, 2), left=-1.0)
    clock = np.where(clock < 0, arrivals, clock)
    done = clock + _in_turn(np.diff(clock, prepend=0.0), np.ones(len(gaps)))
    return np.asarray(done + _PAUSE * np.searchsorted(begun, done) - arrivals)


_UTILISATION = 0.7
SERVERS = (
    # The latency of M/M/1 is exponential with the rate 1 - arrivals.
    Server("M/M/1", _exponential, math.log(1 / LATE) / (1 - _UTILISATION), _UTILISATION),
    Server("M/D/4", _constant, 3.0, 3.0502),
    Server("a cache", _cached, 14.0, 0.6221),
    Server("a server that pauses", _pausing, 8.0, 0.5873),
)
"""The last three capacities are those of long trials; a long test finds them again."""
