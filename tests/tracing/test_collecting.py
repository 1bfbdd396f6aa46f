"""When a tool collects what is done: held against a simulated tool that keeps its queue full."""

from __future__ import annotations

import numpy as np
import pytest
from mountlab.tracing.collecting import collected
from rows import every_row

SUBMIT, LOOK = 3, 2
"""How long a submission and a look at what is done take."""


def simulate(depth: int, service: list[int], servers: int) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """A tool with a queue of this depth over a device that serves so many at a time, in order. Gives submissions with
    the ends of their calls; ends in the kernel; and when the tool collected each, both in order of the ends."""
    free, now, under_way = [0] * servers, 0, 0
    submitted: list[tuple[int, int]] = []
    ended: list[int] = []
    collects: dict[int, int] = {}
    for takes in service:
        submitted.append((now, now + SUBMIT))
        server = int(np.argmin(free))
        free[server] = max(free[server], now) + takes
        ended.append(free[server])
        now, under_way = now + SUBMIT, under_way + 1
        if under_way == depth:
            at, oldest = min((at, number) for number, at in enumerate(ended) if number not in collects)
            collects[oldest] = max(now, at)
            now = max(now, at) + LOOK
            under_way -= 1
    in_order = sorted(range(len(ended)), key=lambda number: (ended[number], number))
    return submitted, [ended[each] for each in in_order], [collects.get(each, -1) for each in in_order]


@every_row(
    ("depth", "servers", "mean"), [(1, 1, 50), (4, 1, 50), (16, 4, 200), (64, 8, 100), (64, 64, 20), (16, 16, 4)]
)
def test_a_tool_with_a_full_queue_collects_the_oldest_before_it_submits(depth: int, servers: int, mean: int) -> None:
    rng = np.random.default_rng(depth * 100 + servers)
    service = np.maximum(1, rng.exponential(mean, 600)).astype(int).tolist()
    submitted, done, truth = simulate(depth, service, servers)
    found = collected(submitted, done, 0, lambda at: at, depth)
    errors = [end - real for end, real in zip(found, truth, strict=True) if end is not None and real >= 0]
    assert len(errors) > 500
    assert abs(float(np.mean(errors))) <= SUBMIT + LOOK
    plain = [at - real for at, real in zip(done, truth, strict=True) if real >= 0]
    assert abs(float(np.mean(errors))) <= abs(float(np.mean(plain))) + 1e-9, "no better than the ends in the kernel"


def test_one_that_starts_in_the_middle_finds_its_place() -> None:
    rng = np.random.default_rng(5)
    service = np.maximum(1, rng.exponential(100, 600)).astype(int).tolist()
    submitted, done, truth = simulate(16, service, 4)
    begin = submitted[200][0]
    later = [each for each in submitted if each[0] >= begin]
    first = sum(at < begin for at in done)
    found = collected(later, done[first:], len(done) - first - len(later), lambda at: at)
    errors = [end - real for end, real in zip(found, truth[first:], strict=True) if end is not None and real >= 0]
    assert len(errors) > 300
    assert abs(float(np.mean(errors))) == pytest.approx(0, abs=SUBMIT + LOOK)
