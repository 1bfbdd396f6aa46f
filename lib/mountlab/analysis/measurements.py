"""Measurements of a run as a frame, and the rows of it that count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mountlab.core.frames import pd, rows_of
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Measurement, Sweep, Trial

_OF_A_TRIAL = ("trial_id", "block", "warmup", "cell", "filesystem", "workload", "tool")
_OF_A_MEASUREMENT = ("metric", "label", "unit", "value", "step")
MEASUREMENT_COLUMNS = (*_OF_A_TRIAL, "factors", *_OF_A_MEASUREMENT)
_DTYPES = {"block": "int64", "warmup": "bool", "factors": "object", "value": "float64", "step": "float64"}
"""Of these columns; the others are text. A frame without rows tells no types by itself."""
FIGURE = ("cell", "metric", "label")
"""What tells the figures of a run apart."""
FigureKey = tuple[str, str, str]
"""Cell, metric and label."""


def measurement_frame(rows: Iterable[tuple[Trial, Measurement]]) -> pd.DataFrame:
    """Return one row a measurement, columns as MEASUREMENT_COLUMNS; factors is a mapping of option to value."""
    pairs = list(rows)  # column by column: a mapping for each of a hundred thousand rows would take seconds
    columns: dict[str, list[Any]] = {name: [getattr(trial, name) for trial, _ in pairs] for name in _OF_A_TRIAL}
    columns["factors"] = [dict(trial.factors) for trial, _ in pairs]
    columns |= {name: [getattr(measurement, name) for _, measurement in pairs] for name in _OF_A_MEASUREMENT}
    frame = pd.DataFrame(columns)
    return frame if pairs else frame.astype({name: _DTYPES.get(name, "str") for name in MEASUREMENT_COLUMNS})


def without_partial(measurements: pd.DataFrame) -> pd.DataFrame:
    """Leave out each percentile that a counted trial of its cell lacks: the others would be a choice among trials.

    A trial lacks a percentile that too few of its I/Os lie above (stats.histograms.enough). Columns as
    MEASUREMENT_COLUMNS.
    """
    rows = measurements[measurements["metric"].isin(PERCENT_OF)]
    if rows.empty:
        return measurements
    trials = counted(measurements)[["cell", "trial_id"]].drop_duplicates().groupby("cell").size()
    is_counted = (~rows["warmup"].astype(bool)).astype(int)
    with_it = is_counted.groupby([rows[key] for key in FIGURE]).transform("sum")
    return measurements.drop(index=rows.index[with_it < rows["cell"].map(trials).fillna(0)])


def counted(measurements: pd.DataFrame) -> pd.DataFrame:
    """Without the warm-up trials."""
    return measurements[~measurements["warmup"].astype(bool)]


def by_block(measurements: pd.DataFrame) -> dict[FigureKey, dict[int, float]]:
    """(cell, metric, label) to block to value, blocks in the order of the rows."""
    values: dict[FigureKey, dict[int, float]] = {}
    for cell, metric, label, block, value in rows_of(measurements, *FIGURE, "block", "value"):
        values.setdefault((cell, metric, label), {})[int(block)] = float(value)
    return values


def log_ratios(candidate: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Block to the logarithm of candidate / baseline, in each block that holds both, in the order of blocks; what is
    not positive has no ratio."""
    return {
        block: math.log(candidate[block]) - math.log(baseline[block])
        for block in sorted(candidate.keys() & baseline.keys())
        if min(candidate[block], baseline[block]) > 0
    }


def factor_names(sweep: Sweep) -> list[str]:
    """Return every swept option, in the order of the sweep file."""
    return list(dict.fromkeys(name for workload in sweep.workloads for name in workload.factors))
