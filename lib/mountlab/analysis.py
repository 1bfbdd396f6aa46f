"""From measurements to estimates and comparisons: which values form a sample, and which pairs a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from mountlab.model import Comparison, Measurement, Sweep, Trial, Workload, higher_is_better
from mountlab.stats import RATIO_METHOD, Ratio, compare, estimate, holm, p_equivalent, verdict
from mountlab.tools import TOOLS

MEASUREMENT_COLUMNS = (
    "trial_id",
    "block",
    "warmup",
    "cell",
    "filesystem",
    "workload",
    "tool",
    "factors",
    "metric",
    "label",
    "unit",
    "value",
)
_ESTIMATE_TAIL = ("metric", "label", "unit", "n", "mean", "low", "high", "sd", "cv", "level", "method", "cell")


def measurement_frame(rows: Iterable[tuple[Trial, Measurement]]) -> pd.DataFrame:
    """One row a measurement, columns as MEASUREMENT_COLUMNS; factors is a mapping of option to value."""
    pairs = list(rows)  # column by column: a mapping for each of a hundred thousand rows would take seconds
    trials, measurements = [trial for trial, _ in pairs], [measurement for _, measurement in pairs]
    columns: dict[str, list[Any]] = {
        name: [getattr(trial, name) for trial in trials] for name in MEASUREMENT_COLUMNS[:8]
    }
    columns["factors"] = [dict(trial.factors) for trial in trials]
    columns |= {name: [getattr(each, name) for each in measurements] for name in MEASUREMENT_COLUMNS[8:]}
    return pd.DataFrame(columns, columns=list(MEASUREMENT_COLUMNS))


def factor_names(sweep: Sweep) -> list[str]:
    """Every swept option, in the order of the sweep file."""
    return list(dict.fromkeys(name for workload in sweep.workloads for name in workload.factors))


def answer_metrics(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Workload label to the metrics that the answer is about: those of the sweep that it has, or its tool's own."""
    by_cell = measurements.groupby("cell")["metric"].unique().to_dict() if len(measurements) else {}
    present: dict[str, set[str]] = {workload.label: set() for workload in sweep.workloads}
    for cell in sweep.cells:
        present[cell.workload.label] |= set(by_cell.get(cell.id, ()))
    wanted = {w.label: tuple(metric for metric in sweep.metrics if metric in present[w.label]) for w in sweep.workloads}
    # Of a workload that others ran the options may not be known, by which a tool chooses.
    own = {w.label: () if sweep.imported else TOOLS[w.tool].main_metrics(w) for w in sweep.workloads}
    return {w.label: wanted[w.label] or own[w.label] for w in sweep.workloads}


def counted(measurements: pd.DataFrame) -> pd.DataFrame:
    """Without the warm-up trials."""
    return measurements[~measurements["warmup"].astype(bool)]


def estimate_frame(sweep: Sweep, measurements: pd.DataFrame, *, run_id: str, box: str) -> pd.DataFrame:
    """One row a cell, metric and label, with the columns of estimates.csv; cells in the order of the sweep."""
    factors = factor_names(sweep)
    columns = ["run_id", "box", "filesystem", "tool", "workload", *factors, *_ESTIMATE_TAIL]
    groups = dict(iter(counted(measurements).groupby("cell", sort=False)))
    rows = []
    for cell in sweep.cells:
        own = groups.get(cell.id, measurements.iloc[:0])
        start = {
            "run_id": run_id, "box": box, "filesystem": cell.filesystem.name, "tool": cell.workload.tool,
            "workload": cell.workload.name, **{name: cell.workload.factors.get(name, "") for name in factors},
        }  # fmt: skip
        for (metric, label, unit), group in own.groupby(["metric", "label", "unit"], sort=False):
            result = asdict(estimate(group["value"].tolist(), level=sweep.design.level))
            rows.append({**start, "metric": metric, "label": label, **result, "unit": unit, "cell": cell.id})
    return pd.DataFrame(rows, columns=columns)


def comparisons(sweep: Sweep, measurements: pd.DataFrame) -> list[Comparison]:
    """Every file system against the baseline, for every workload and every metric that the answer is about.

    p values are adjusted by Holm over all comparisons of the sweep, those of equivalence over the same family.
    """
    if sweep.baseline is None:
        return []
    values = _by_block(counted(measurements))
    labels = answer_labels(measurements)
    found = [
        (
            workload,
            fs.name,
            metric,
            label,
            compare(_pairs(values, sweep.baseline, fs.name, workload, (metric, label)), level=sweep.design.level),
        )
        for workload in sweep.workloads
        for metric in answer_metrics(sweep, measurements)[workload.label]
        for label in labels.get((workload.label, metric), ("",))
        for fs in sweep.filesystems
        if fs.name != sweep.baseline
    ]
    different = holm([ratio.p for *_, ratio in found])
    equivalent = holm([p_equivalent(ratio, sweep.design.smallest_effect) for *_, ratio in found])
    return [
        _comparison(sweep.baseline, *row, p_adjusted=p, p_equivalent_adjusted=q)
        for row, p, q in zip(found, different, equivalent, strict=True)
    ]


def answer_labels(measurements: pd.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """(workload label, metric) to the rows of the metric that an answer is about: the whole where there is one, else
    every part (the methods of pg_test_fsync), in the order in which they came."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    rows = measurements[["filesystem", "cell", "metric", "label"]].drop_duplicates()
    for filesystem, cell, metric, label in rows.itertuples(index=False):
        found.setdefault((cell.removeprefix(f"{filesystem}/"), metric), {})[label] = None
    return {key: ("",) if "" in labels else tuple(labels) for key, labels in found.items()}


def _by_block(measurements: pd.DataFrame) -> dict[tuple[str, str, str], dict[int, float]]:
    """(cell, metric, label) to block to value."""
    table: dict[tuple[str, str, str], dict[int, float]] = {}
    columns = (measurements[name] for name in ("cell", "metric", "label", "block", "value"))
    for cell, metric, label, block, value in zip(*columns, strict=True):
        table.setdefault((cell, metric, label), {})[int(block)] = float(value)
    return table


def _pairs(
    values: Mapping[tuple[str, str, str], Mapping[int, float]],
    baseline: str,
    candidate: str,
    workload: Workload,
    row: tuple[str, str],
) -> list[tuple[float, float]]:
    ours = values.get((f"{candidate}/{workload.label}", *row), {})
    theirs = values.get((f"{baseline}/{workload.label}", *row), {})
    pairs = [(ours[block], theirs[block]) for block in sorted(ours.keys() & theirs.keys())]
    return [pair for pair in pairs if min(pair) > 0]  # a count of zero has no ratio


def _comparison(
    baseline: str,
    workload: Workload,
    candidate: str,
    metric: str,
    label: str,
    ratio: Ratio,
    *,
    p_adjusted: float,
    p_equivalent_adjusted: float,
) -> Comparison:
    return Comparison(
        baseline=baseline, candidate=candidate, workload=workload.name, tool=workload.tool, factors=workload.factors,
        metric=metric, label=label, ratio=ratio.ratio, low=ratio.low, high=ratio.high, n=ratio.n, level=ratio.level,
        p=ratio.p, p_adjusted=p_adjusted, method=RATIO_METHOD,
        verdict=verdict(
            ratio, p_adjusted=_or_one(p_adjusted), p_equivalent_adjusted=_or_one(p_equivalent_adjusted),
            more_is_better=higher_is_better(metric),
        ),
    )  # fmt: skip


def _or_one(p: float) -> float:
    """An unknown p value decides nothing."""
    return 1.0 if math.isnan(p) else p
