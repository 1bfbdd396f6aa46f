"""Estimates and comparisons of many cells at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from mountlab.analysis import cells as analysis
from mountlab.core.metrics import METRICS
from mountlab.core.model import Design, Filesystem, Sweep, Workload
from scipy import stats

from mountlab_dev.bench.table import Row, timed

CELLS, BLOCKS = 10_000, 10
_METRICS = (
    "read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "read_latency_mean", "read_latency_p99",
    "write_latency_mean", "write_latency_p99",
)  # fmt: skip
_LOOP_SHARE = 20


def many_cells(count: int) -> tuple[Sweep, pd.DataFrame]:
    """Return a sweep of so many cells (a multiple of 8), and made-up figures of 10 trials and 8 metrics of each."""
    filesystems = tuple(Filesystem(name=f"fs{number}", type="tmpfs") for number in range(8))
    workloads = tuple(
        Workload(name="fio", tool="fio", options={"rw": "read"}, factors={"bs": f"{number}KiB"})
        for number in range(count // len(filesystems))
    )
    sweep = Sweep(
        name="many",
        question="How long does it take?",
        box="local",
        filesystems=filesystems,
        workloads=workloads,
        design=Design(repeats=BLOCKS),
        metrics=_METRICS,
        baseline="fs0",
    )
    cells, shape = sweep.cells, (len(sweep.cells), BLOCKS, len(_METRICS))
    cell, block, metric = (place.ravel() for place in np.indices(shape))
    columns = {
        "cell": np.array([each.id for each in cells], dtype=object)[cell],
        "block": block + 1,
        "warmup": False,
        "filesystem": np.array([each.filesystem.name for each in cells], dtype=object)[cell],
        "metric": np.array(_METRICS, dtype=object)[metric],
        "label": "",
        "unit": np.array([METRICS[name] for name in _METRICS], dtype=object)[metric],
        "value": np.random.default_rng(1).lognormal(10, 0.05, len(cell)),
    }
    return sweep, pd.DataFrame(columns)


def rows(repeats: int) -> Iterator[Row]:
    """Estimates and comparisons of 10,000 cells at once; and cell by cell with scipy, as one would in a notebook."""
    sweep, frame = many_cells(CELLS)

    def ours() -> None:
        analysis.estimate_frame(sweep, frame, run_id="", box="")
        analysis.comparisons(sweep, frame)

    few = frame[: len(frame) // _LOOP_SHARE]
    alone = [share * _LOOP_SHARE for share in timed(lambda: _cell_by_cell(few), 1)]
    name = f"estimates and comparisons of {CELLS} cells x {BLOCKS} trials x {len(_METRICS)} metrics"
    yield Row(name, timed(ours, repeats), under=3.0)
    yield Row(f"the same cell by cell with scipy (from a {_LOOP_SHARE}th of them)", alone)


def _cell_by_cell(frame: pd.DataFrame) -> None:
    baseline: dict[Hashable, Any] = {}
    for (_, metric), own in frame.groupby(["cell", "metric"], sort=False):
        values = own["value"].to_numpy()
        stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        logs = np.log(values)
        stats.ttest_rel(logs, baseline.setdefault(metric, logs[::-1])).confidence_interval(0.95)
