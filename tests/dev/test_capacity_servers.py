"""The simulated servers of the calibration: against theory, against one request after the other, and in long trials."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from mountlab_dev.calibration import servers
from mountlab_dev.calibration.servers import LATE, SERVERS, WARM_UP, Server

each_server = pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)


def latencies_one_by_one(arrivals: np.ndarray, service: np.ndarray, count: int) -> np.ndarray:
    """Each request goes to the server of `count` that is free first."""
    free = [0.0] * count
    done = []
    for arrival, takes in zip(arrivals.tolist(), service.tolist(), strict=True):
        done.append(max(arrival, heapq.heappop(free)) + takes)
        heapq.heappush(free, done[-1])
    return np.array(done) - arrivals


@pytest.mark.parametrize(("server", "count"), [(SERVERS[0], 1), (SERVERS[1], 4), (SERVERS[2], 1)])
def test_a_server_serves_as_one_does_request_by_request(server: Server, count: int) -> None:
    gaps = np.random.default_rng(1).standard_exponential(400) / server.capacity
    found = server.latencies(gaps, np.random.default_rng(2))
    rng = np.random.default_rng(2)
    drawn = {
        "M/M/1": lambda: rng.standard_exponential(400),
        "M/D/4": lambda: np.ones(400),
        "a cache": lambda: np.where(rng.random(400) < 0.8, 0.4, 3.4),
    }
    assert found == pytest.approx(latencies_one_by_one(np.cumsum(gaps), drawn[server.name](), count))


def test_a_server_that_pauses_stands_still_in_pauses() -> None:
    """One request after the other, with pauses that begin after so much work or waiting for work."""
    gaps = np.random.default_rng(1).standard_exponential(4000) / 0.6
    found = SERVERS[3].latencies(gaps, np.random.default_rng(2))
    arrivals = np.cumsum(gaps)
    begun = np.cumsum(np.random.default_rng(2).standard_exponential(int(arrivals[-1] / 300 * 1.2) + 40)) * 300.0
    stops = begun + 6.0 * np.arange(len(begun))
    free, expected = 0.0, []
    for arrival in arrivals.tolist():
        now, left = max(arrival, free), 1.0
        for stop in stops.tolist():
            if stop + 6.0 <= now:
                continue
            work = max(0.0, stop - now)
            if work >= left:
                break
            left, now = left - work, stop + 6.0
        free = now + left
        expected.append(free - arrival)
    assert found == pytest.approx(np.array(expected))
    assert np.max(found) > 6


def test_the_latency_of_m_m_1_is_exponential() -> None:
    rate = 0.5
    gaps = np.random.default_rng(3).standard_exponential(400_000) / rate
    found = SERVERS[0].latencies(gaps, np.random.default_rng(4))[WARM_UP:]
    for latency in (1.0, 3.0, 6.0):
        assert np.mean(found > latency) == pytest.approx(math.exp(-(1 - rate) * latency), rel=0.05)
    assert math.exp(-(1 - SERVERS[0].capacity) * SERVERS[0].limit) == pytest.approx(LATE)


@pytest.mark.slow
@each_server
def test_the_median_trial_is_the_true_one(server: Server) -> None:
    """At the capacity a trial holds about as often as not, 5 % beside it seldom or nearly always: trials are long
    enough. With a tenth of the requests the median p99 would be too low, and trials at the capacity would hold."""
    rng = np.random.default_rng(5)
    below, at, above = (np.mean([server.holds(server.capacity * x, rng) for _ in range(60)]) for x in (0.95, 1, 1.05))
    assert below > 0.7
    assert 0.3 < at < 0.8
    assert above < 0.3
    assert servers.REQUESTS * LATE >= 300


@pytest.mark.long
@each_server
def test_the_capacity_of_a_server_is_that_of_long_trials(server: Server) -> None:
    """Ten trials of 2 million requests a rate: 1 % below the capacity fewer requests are late than may be, 1 % above it
    more, by four standard errors. A fifth of a half width of 5 %."""
    for times, side in ((0.99, -1), (1.01, 1)):
        rngs = map(np.random.default_rng, range(10))
        late = [server.late(times * server.capacity, rng, 2_000_000 - WARM_UP) for rng in rngs]
        error = float(np.std(late, ddof=1)) / math.sqrt(len(late))
        assert side * (np.mean(late) - LATE) > 4 * error, (times, np.mean(late), error)
