"""Runs of few blocks in which all cells change together, and searches whose capacity changes: how often that is seen,
and how often where nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mountlab.core.numbers import counted
from mountlab.stats import shape
from mountlab.stats.capacity import Capacity, RateTrial, capacity, next_rate
from mountlab.stats.capacity_order import change, is_precise, searched_capacity
from mountlab.stats.simulated import LEVEL, NOISE, Floats, Generator, generator

from mountlab_dev.calibration.capacities import HALF_WIDTH, MOST, RANGE, searches
from mountlab_dev.calibration.document import Share, Table, Trials
from mountlab_dev.calibration.servers import SERVERS, Server
from mountlab_dev.calibration.tables import Effort

# ── few blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

SYSTEMS = 2
"""File systems; each has as many cells."""
SHAPES = ((4, 4), (4, 20), (5, 4), (5, 20))
"""Blocks and cells."""
LIMIT = shape.SUSPICIOUS_P["drift"]
FALLS = (0.0, 0.05, 0.2, 0.85)
"""By how much all cells fall from the first to the last trial; the last is from 2 to 0.3."""


def drifts_of_few_blocks(effort: Effort) -> Table:
    """Return how often a drift over all cells is reported of four and five blocks."""
    says = (
        f"**Drift of all cells in few blocks**: how often the caveat is raised, p < {LIMIT:g}. Trials have a cv "
        f"of {100 * NOISE:g} %, in {SYSTEMS} file systems. *Blocks differ*: each block is faster or slower by as much, "
        "in all of its trials. Falls are straight in logarithms, from trial to trial; they should be seen, in bold."
    )
    header = ("run", *(f"{counted(blocks, 'block')}, {counted(cells, 'cell')}" for blocks, cells in SHAPES))
    cases = [(fall, spread) for fall in FALLS for spread in (0.0, NOISE)]
    rows = tuple((_named(*case), tuple(_raised(*case, *each, effort.gates) for each in SHAPES)) for case in cases)
    return Table("few-blocks", says, effort.gates, header, rows)


def _named(fall: float, spread: float) -> str:
    return ("nothing changes" if not fall else f"all fall by {fall:.0%}") + (", blocks differ" if spread else "")


def _raised(fall: float, spread: float, blocks: int, cells: int, runs: int) -> Share:
    rng = generator("few blocks", fall, spread, blocks, cells)
    hits = sum(p_of_run(rng, fall, spread, blocks, cells) < LIMIT for _ in range(runs))
    return Share(hits, runs, bool(fall))


def p_of_run(rng: Generator, fall: float, spread: float, blocks: int, cells: int) -> float:
    """Return p of a simulated run: file systems in a new order in each block, and the cells of each in a new one."""
    systems = np.arange(cells) * SYSTEMS // cells
    order = np.argsort(rng.random((blocks, SYSTEMS))[:, systems] * 2 + rng.random((blocks, cells)) * 1e-3, axis=1)
    times = np.arange(blocks * cells).reshape(blocks, cells) / (blocks * cells - 1)
    noise = NOISE * rng.normal(size=(blocks, cells)) + spread * rng.normal(size=(blocks, 1))
    logs: Floats = np.empty((blocks, cells))
    np.put_along_axis(logs, order, np.log1p(-fall) * times, axis=1)
    logs += noise
    logs -= logs.mean(axis=0)
    levels, inside = logs.mean(axis=1), logs - logs.mean(axis=1, keepdims=True)
    ran = [shape.BlockOrder(row[own], systems[own]) for row, own in zip(inside, order, strict=True)]
    return shape.drift_of_few(np.exp(levels).tolist(), ran)


# ── the answers of a search ──────────────────────────────────────────────────────────────────────────────────────────

FALL = 0.2
COURSES: dict[str, Callable[[int], float]] = {
    "falls by 20 % over 30 trials": lambda trial: 1 - FALL * min(trial / 30, 1),
    "falls by 20 % over 60 trials": lambda trial: 1 - FALL * trial / MOST,
    "falls by 20 % after 15 trials": lambda trial: 1.0 if trial < 15 else 1 - FALL,
}
"""The capacity at a trial, in units of that at the first one."""
OFF = 0.02
"""An interval is off where a capacity lay further beyond it, as a share of its end."""


def capacities_that_change(effort: Effort) -> Table:
    """Return how often searches whose capacity falls are doubted, and how often those that do not are."""
    says = (
        "**A capacity that changes during its search**. *Caveat*: how often it is raised, in bold where it should "
        "be. *Held*: intervals that contain the capacity throughout, from the first trial to the last: of bets alone, "
        "and as reports print them. *Silent*: intervals that do not, without a caveat. *Off*: of these, the ones that "
        f"a capacity lay more than {100 * OFF:g} % beyond. Searches for one capacity are those of the table above."
    )
    header = ("server and capacity", "caveat", "held by bets", "held", "silent", "off", "trials")
    rows = [
        (f"{server.name}: one capacity",
         _doubted([(trials, [1.0]) for trials in searches(server, effort.sweeps)], changes=False))
        for server in SERVERS
    ]  # fmt: skip
    rows += [
        (f"{server.name}: {name}",
         _doubted([_changing(server, case, name) for case in range(effort.series)], changes=True))
        for server in SERVERS[::3]
        for name in COURSES
    ]  # fmt: skip
    return Table("capacity-order", says, effort.series, header, tuple(rows))


Answered = tuple[tuple[RateTrial, ...], list[float]]
"""Trials, and the capacity at each."""


def _changing(server: Server, case: int, name: str) -> Answered:
    rng, trials, capacities = generator("capacity order", server.name, name, case), list[RateTrial](), list[float]()
    start = float(RANGE ** (rng.random() - 0.5))
    while len(trials) < MOST and not is_precise(trials, HALF_WIDTH, LEVEL):
        rate = next_rate(trials, half_width=HALF_WIDTH, start=start, level=LEVEL, left=MOST - len(trials))
        capacities.append(COURSES[name](len(trials)))
        trials.append(RateTrial(rate, server.holds(rate / capacities[-1] * server.capacity, rng)))
    return tuple(trials), capacities


def _doubted(found: Sequence[Answered], *, changes: bool) -> tuple[Share | Trials, ...]:
    noticed = np.array([change(trials, LEVEL).noticed for trials, _ in found])
    by_bets, printed = (
        np.array([_beyond(interval(trials, LEVEL), capacities) for trials, capacities in found])
        for interval in (capacity, searched_capacity)
    )
    others = (by_bets <= 0, printed <= 0, ~noticed & (printed > 0), ~noticed & (printed > OFF))
    shares = ((noticed, changes), *((each, False) for each in others))
    mean = float(np.mean([len(trials) for trials, _ in found]))
    return *(Share(int(each.sum()), len(found), bold) for each, bold in shares), Trials(round(mean))


def _beyond(found: Capacity, capacities: Sequence[float]) -> float:
    """Return how far the furthest capacity lies beyond an interval, as a share of its end; at most 0 within it."""
    return max(found.low / min(capacities) - 1, max(capacities) / found.high - 1)
