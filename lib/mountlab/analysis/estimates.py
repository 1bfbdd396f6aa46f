"""The estimates of a run: one row for each figure of each cell, and its latency percentiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from mountlab.analysis import capacity
from mountlab.analysis.answer_metrics import answer_labels, answer_metrics
from mountlab.analysis.measurements import FIGURE, counted, factor_names
from mountlab.analysis.samples import Samples, pools_of
from mountlab.analysis.time_limits import NONE_CENSORED, OF_A_MOUNT, Censored, censored_estimate, late_trials
from mountlab.core.frames import pd, rows_of
from mountlab.core.metrics import Metric, known_metric
from mountlab.core.model import Sweep
from mountlab.core.units import NS_PER_S
from mountlab.stats import estimate_samples
from mountlab.stats.estimates import Estimates
from mountlab.stats.histograms import Histogram, enough, percentile_with_step
from mountlab.stats.sequential import level_after

_FIGURE_COLUMNS = (
    "metric", "label", "unit", "n", "censored", "mean", "low", "high", "sd", "cv", "level", "method", "cell",
)  # fmt: skip
"""Of the estimates, after those of the cell."""
_A_TIME = known_metric("elapsed")
PERCENTS = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 99.9999)
"""The percentiles of a latency curve."""
_PERCENTILE = ("cell", "filesystem", "workload", "place", "percent")
PERCENTILE_COLUMNS = (*_PERCENTILE, "n", "censored", "mean", "low", "high", "level", "method")


def estimate_frame(
    sweep: Sweep, measurements: pd.DataFrame, *, run_id: str, box: str, censored: Censored = NONE_CENSORED
) -> pd.DataFrame:
    """Return one row a cell, metric and label, with the columns of estimates.csv; cells in the order of the sweep. A
    cell with trials that ran into the time limit has a median over all of them in the place of its figure
    (stats.censored); one without any other trial has rows without a figure.

    Of a search there is the capacity: its trials differ in their rate, and have no other figure together.

    The statistic is that of `design.estimate`. After a stopping rule the intervals are computed at the level that then
    covers what the design's level says. All samples are computed at once.
    """
    alike = measurements[measurements["metric"].isin(OF_A_MOUNT)] if sweep.searches else measurements
    samples = Samples.of(sweep, alike, (*FIGURE, "unit"))
    cells = _cell_columns(sweep, run_id=run_id, box=box)
    labels = (sweep.cells[place].workload.label for place in samples.cells)
    pools = pools_of(sweep, zip(labels, *(samples.names[name] for name in FIGURE[1:]), strict=True))
    level = level_after(sweep.repeated_looks, sweep.design.level)
    estimates = estimate_samples(
        samples.values,
        samples.sizes,
        level=level,
        statistic=sweep.design.estimate,
        pools=pools,
        steps=samples.steps,
        signed=samples.signed,
    )
    figures = _with_estimates(samples.names, estimates, sweep.design.level)
    if censored:
        late = [late_trials(censored, cell, metric) for cell, metric in rows_of(figures, "cell", "metric")]
        values = np.split(samples.values, np.cumsum(samples.sizes)[:-1])
        _put_medians(figures, list(map(sweep.metric, figures["metric"])), values, late, level)
    about = cells.iloc[samples.cells].reset_index(drop=True)
    rows = pd.concat([about, figures], axis=1)[[*cells.columns, *_FIGURE_COLUMNS]]
    if sweep.searches:
        return _with_rows(sweep, rows, cells, capacity.estimate_rows(sweep, measurements))
    return _with_rows(sweep, rows, cells, _unended_rows(sweep, measurements, rows, censored)) if censored else rows


def percentile_frame(
    sweep: Sweep, histograms: Mapping[str, Mapping[str, Sequence[Histogram]]], censored: Censored = NONE_CENSORED
) -> pd.DataFrame:
    """Return the latency percentiles of each cell, in seconds: estimated from those of its trials, as every figure is.
    Where trials ran into the time limit they are medians, as the figures of `estimate_frame`.

    `histograms`: cell to place in fio's report ('read.clat_ns') to the histogram of each counted trial. Columns as
    PERCENTILE_COLUMNS, cells in the order of the sweep; `workload` is its label. A percentile that one of the trials
    has too few I/Os for (stats.histograms.enough) is left out: the others would be a choice among trials.
    """
    keys, samples, steps = [], [], []
    for cell in sweep.cells:
        for place, trials in histograms.get(cell.id, {}).items():
            fewest = min(trial.total for trial in trials)
            for percent in PERCENTS:
                if enough(fewest, percent):
                    keys.append((cell.id, cell.filesystem.name, cell.workload.label, place, percent))
                    values_ns, steps_ns = zip(*(percentile_with_step(trial, percent) for trial in trials), strict=True)
                    samples.append(np.array(values_ns, dtype=float) / NS_PER_S)
                    steps.append(fmean(steps_ns) / NS_PER_S)
    level = level_after(sweep.repeated_looks, sweep.design.level)
    estimates = estimate_samples(
        np.concatenate([np.empty(0), *samples]),
        np.array([len(sample) for sample in samples], dtype=np.int64),
        level=level,
        statistic=sweep.design.estimate,
        pools=pools_of(sweep, (key[2:] for key in keys)),
        steps=np.array(steps, dtype=float),
    )
    frame = _with_estimates(pd.DataFrame(keys, columns=list(_PERCENTILE)), estimates, sweep.design.level)
    late = [late_trials(censored, cell, "elapsed") for cell in frame["cell"]]
    _put_medians(frame, [_A_TIME] * len(frame), samples, late, level)
    return frame.loc[frame["mean"].notna(), list(PERCENTILE_COLUMNS)].reset_index(drop=True)


def _cell_columns(sweep: Sweep, *, run_id: str, box: str) -> pd.DataFrame:
    """Return what the rows of each cell begin with, one row a cell; '' for a factor that its workload does not have."""
    factors = factor_names(sweep)
    rows = [
        (
            run_id,
            box,
            cell.filesystem.name,
            cell.workload.tool,
            cell.workload.name,
            *(cell.workload.factors.get(name, "") for name in factors),
        )
        for cell in sweep.cells
    ]
    return pd.DataFrame(rows, columns=["run_id", "box", "filesystem", "tool", "workload", *factors])


def _with_estimates(frame: pd.DataFrame, estimates: Estimates, level: float) -> pd.DataFrame:
    """Return a frame of samples with the columns of their estimates."""
    return frame.assign(
        n=estimates.n,
        censored=0,
        mean=estimates.figure,
        low=estimates.low,
        high=estimates.high,
        sd=estimates.sd,
        cv=estimates.cv,
        level=level,
        method=estimates.method,
    )


def _put_medians(
    frame: pd.DataFrame,
    metrics: Sequence[Metric],
    samples: Sequence[NDArray[np.float64]],
    late: Sequence[int],
    level: float,
) -> None:
    """Put a median over all trials in the place of each figure with `late` trials, which ran into the time limit."""
    places = np.flatnonzero(late).tolist()
    if places:
        medians = pd.DataFrame([_median(metrics[place], samples[place], late[place], level) for place in places])
        columns = [name for name in medians if name in frame]
        frame.loc[places, columns] = medians[columns].set_axis(places)


def _median(metric: Metric, values: NDArray[np.float64], late: int, level: float) -> dict[str, object]:
    """Return the columns of an estimate over values and `late` trials that ran into the time limit."""
    estimate = censored_estimate(metric, values, late, level)
    return {
        "n": len(values) + late,
        "censored": late,
        "mean": estimate.figure,
        "low": estimate.low,
        "high": estimate.high,
        "sd": math.nan,
        "cv": math.nan,
        "method": estimate.method,
    }


def _unended_rows(
    sweep: Sweep, measurements: pd.DataFrame, estimates: pd.DataFrame, censored: Censored
) -> list[dict[str, object]]:
    """Return a row for each figure of the answer of the cells whose counted trials all ran into the time limit."""
    metrics, labels = answer_metrics(sweep, measurements), answer_labels(sweep, counted(measurements))
    ended, level = set(estimates["cell"].tolist()), sweep.design.level
    rows = []
    for cell in sweep.cells:
        if cell.id in ended:
            continue
        for name in metrics[cell.workload.label]:
            metric, late = sweep.metric(name), late_trials(censored, cell.id, name)
            if not late:
                continue
            median = {"unit": metric.unit, "level": level, **_median(metric, np.empty(0), late, level)}
            rows += [
                {"cell": cell.id, "metric": name, "label": label, **median}
                for label in labels.get((cell.workload.label, name), ("",))
            ]
    return rows


def _with_rows(
    sweep: Sweep, estimates: pd.DataFrame, cells: pd.DataFrame, rows: Sequence[Mapping[str, object]]
) -> pd.DataFrame:
    """Return the estimates with more rows, which lack the columns of their cell; cells in the order of the sweep."""
    places = {cell.id: place for place, cell in enumerate(sweep.cells)}
    more = pd.DataFrame(rows, columns=list(_FIGURE_COLUMNS))
    about = cells.iloc[[places[cell] for cell in more["cell"]]].reset_index(drop=True)
    parts = [part for part in (estimates, pd.concat([about, more], axis=1)) if len(part)]
    whole = pd.concat(parts, ignore_index=True) if parts else estimates
    return whole.sort_values("cell", key=lambda ids: ids.map(places), kind="stable", ignore_index=True)
