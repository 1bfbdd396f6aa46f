"""Estimates and comparisons of many cells at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.sweep_comparisons import comparisons
from scipy import stats

from mountlab_dev.bench.cheap import BLOCKS, METRICS, many_cells
from mountlab_dev.bench.table import Row, timed

CELLS = 10_000
_LOOP_SHARE = 20


def rows(repeats: int) -> Iterator[Row]:
    """Estimates and comparisons of 10,000 cells at once; and cell by cell with scipy, as one would in a notebook."""
    sweep, frame = many_cells(CELLS)

    def ours() -> None:
        estimate_frame(sweep, frame, run_id="", box="")
        comparisons(sweep, frame)

    few = frame[: len(frame) // _LOOP_SHARE]
    alone = [share * _LOOP_SHARE for share in timed(lambda: _cell_by_cell(few), 1)]
    name = f"estimates and comparisons of {CELLS} cells x {BLOCKS} trials x {len(METRICS)} metrics"
    yield Row(name, timed(ours, repeats), under=3.0)
    yield Row(f"the same cell by cell with scipy (from a {_LOOP_SHARE}th of them)", alone)


def _cell_by_cell(frame: pd.DataFrame) -> None:
    baseline: dict[Hashable, Any] = {}
    for (_, metric), own in frame.groupby(["cell", "metric"], sort=False):
        values = own["value"].to_numpy()
        stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        logs = np.log(values)
        stats.ttest_rel(logs, baseline.setdefault(metric, logs[::-1])).confidence_interval(0.95)
