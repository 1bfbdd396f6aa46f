"""A run whose cells are searches for a capacity: queues of known speed, asked at rates about what they take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from mountlab.analysis.example import ExampleRun
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Comparison
from mountlab.core.model import Design, Filesystem, Sweep, Workload
from mountlab.core.search import Objective, Search
from synthetic_run import comparison

LIMIT_S, RUNTIME_S = 0.005, 10.0
SERVED = {"ext4": 4000.0, "xfs": 4900.0, "tmpfs": 50_000.0, "ramfs": 55_000.0}
"""Requests per second that each file system serves: of a queue of Poisson arrivals with exponential service (M/M/1)
the latency is distributed exponentially, with a mean of 1 / (served - arriving)."""
MAIL = Workload(
    name="mail",
    tool="fio",
    options={
        "rw": "randread",
        "bs": 4096,
        "size": 2**26,
        "ioengine": "psync",
        "runtime": RUNTIME_S,
        "numjobs": 1,
        "iodepth": 1,
    },
    search=Search(objective=Objective(limits={"p99": LIMIT_S}, of=("read",)), start=500.0),
)
Figures = dict[str, list[float]]


def percentile_s(served: float, rate: float, percent: float) -> float:
    """Latency of a queue that is not overloaded; of one that is, what has piled up at the end of a trial."""
    if rate < served:
        return -math.log(1 - percent / 100) / (served - rate)
    return RUNTIME_S * percent / 100 * (rate - served) / served + LIMIT_S * 2


def capacity(served: float, limit: float = LIMIT_S) -> float:
    """The rate at which 99 % of the requests of such a queue just meet the limit."""
    return served - math.log(100) / limit


def figures_of(served: float, rates: Sequence[float], *, spread: float, lost: Sequence[int], seed: int) -> Figures:
    """The figures of a trial at each rate. `lost`: places of trials whose schedule was not kept."""
    noise = np.exp(np.random.default_rng(seed).normal(0, spread, len(rates)))
    p99, p50 = ([percentile_s(served, r, p) * n for r, n in zip(rates, noise, strict=True)] for p in (99, 50))
    return {
        "asked_rate": list(rates),
        "arrival_rate": [0.999 * rate for rate in rates],
        "completion_rate": [min(rate, served) for rate in rates],
        "largest_lateness": [0.8 if place in lost else 0.0004 for place in range(len(rates))],
        "objective_used": [math.nan if place in lost else each / LIMIT_S for place, each in enumerate(p99)],
        "read_latency_p50": p50,
        "read_latency_p99": p99,
    }


def rates_about(middle: float, trials: int, start: float = 500.0) -> list[float]:
    """From `start` up by factors of two until beyond the middle, then about it, closer and closer."""
    climb = [start * 2**i for i in range(math.ceil(math.log2(middle / start)) + 1)]
    near = [middle * (1 + 0.4 * (-1) ** i / math.sqrt(i + 1)) for i in range(trials)]
    return [float(round(rate)) for rate in (*climb, *near)][:trials]


@dataclass(frozen=True)
class SearchedRun(ExampleRun):
    """With estimates and comparisons that are given."""

    capacities: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Cell to estimate, low and high."""
    ratios: Sequence[Comparison] = ()

    @property
    def estimates(self) -> pd.DataFrame:
        rows = [
            {
                "run_id": "example", "box": "example", "filesystem": cell.filesystem.name, "tool": "fio",
                "workload": cell.workload.name, "metric": "capacity", "label": "", "unit": "1/s",
                "n": len(self.of_cells[cell.id]["asked_rate"]), "censored": 0, "mean": mean, "low": low, "high": high,
                "sd": math.nan, "cv": math.nan, "level": 0.95, "method": "search", "cell": cell.id,
            }
            for cell in self.sweep.cells
            if cell.id in self.capacities
            for mean, low, high in [self.capacities[cell.id]]
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=None if rows else super().estimates.columns)

    @property
    def answer_metrics(self) -> Mapping[str, tuple[str, ...]]:
        return {workload.label: ("capacity",) for workload in self.sweep.workloads}

    @property
    def comparisons(self) -> Sequence[Comparison]:
        return self.ratios


def search_sweep(*names: str, workloads: Sequence[Workload] = (MAIL,)) -> Sweep:
    """The first file system is the baseline."""
    return Sweep(
        name="how-much",
        question="How many requests can arrive before one in a hundred takes longer than 5 ms?",
        box="local",
        filesystems=tuple(Filesystem(name=name, type="tmpfs", size_bytes=2**28) for name in names),
        workloads=tuple(workloads),
        design=Design(repeats=60, seed=7),
        baseline=names[0],
    )


def _ratio(ours: tuple[float, float, float], theirs: tuple[float, float, float]) -> dict[str, float]:
    """Of two intervals the quotient, and of its ends; NaN where these leave nothing out."""
    low, high = ours[1] / theirs[2], ours[2] / theirs[1] if theirs[1] else math.inf
    if low == 0 and high == math.inf:
        return dict.fromkeys(("ratio", "low", "high"), math.nan)
    return {"ratio": ours[0] / theirs[0], "low": low, "high": high}


def searched_run(
    *names: str,
    trials: int = 24,
    spread: float = 0.1,
    lost: Sequence[int] = (),
    capacities: Mapping[str, tuple[float, float, float]] | None = None,
    workloads: Sequence[Workload] = (MAIL,),
) -> SearchedRun:
    """A run of some of SERVED. `lost`: places of trials whose schedule was not kept, in each cell; `capacities`: file
    system to what is known of it; else what is true, 5 % either way."""
    sweep = search_sweep(*names, workloads=workloads)
    known = {name: (m := capacity(SERVED[name]), 0.95 * m, 1.05 * m) for name in names} | dict(capacities or {})
    of_cells = {}
    for seed, cell in enumerate(sweep.cells):
        served = SERVED[cell.filesystem.name]
        of_cells[cell.id] = figures_of(
            served, rates_about(capacity(served), trials), spread=spread, lost=lost, seed=seed
        )
    pairs = [
        comparison(
            baseline=names[0], candidate=name, workload=workload.name, tool="fio", metric="capacity", n=trials,
            method="search", **_ratio(known[name], known[names[0]]),
        )
        for workload in workloads
        for name in names[1:]
    ]  # fmt: skip
    stops = [
        CellStop(
            cell=cell.id, reason="precise", blocks=trials, n=trials - len(lost), half_width=0.05, metric="capacity"
        )
        for cell in sweep.cells
    ]
    estimates = {cell.id: known[cell.filesystem.name] for cell in sweep.cells}
    return SearchedRun(sweep, {}, of_cells=of_cells, stops=stops, capacities=estimates, ratios=pairs)
