"""Which metrics of each workload, and which rows of a metric, the answer of a run is about."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.analysis import capacity
from mountlab.analysis.measurements import FIGURE
from mountlab.core.frames import pd, rows_of
from mountlab.core.model import Sweep
from mountlab.programs import TOOLS

Metrics = Mapping[str, tuple[str, ...]]
"""Workload label to metrics."""


def answer_metrics(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return workload label to the metrics that the answer is about: those of the sweep that it has, or its tool's
    own."""
    if sweep.searches:
        return dict.fromkeys((workload.label for workload in sweep.workloads), (capacity.METRIC,))
    measured = measured_metrics(sweep, measurements)
    answers = {}
    for workload in sweep.workloads:
        metrics = tuple(metric for metric in sweep.metrics if metric in measured[workload.label])
        # Of a workload that others ran the options may not be known, by which a tool chooses.
        by_tool = () if sweep.imported else TOOLS[workload.tool].main_metrics(workload)
        answers[workload.label] = metrics or by_tool
    return answers


def measured_metrics(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, set[str]]:
    """Return workload label to the metrics that any of its cells has."""
    measured: dict[str, set[str]] = {workload.label: set() for workload in sweep.workloads}
    for cell_id, metric in rows_of(measurements[["cell", "metric"]].drop_duplicates(), "cell", "metric"):
        if cell := sweep.combinations.get(cell_id):
            measured[cell.workload.label].add(metric)
    return measured


def answer_labels(sweep: Sweep, measurements: pd.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """(workload label, metric) to the rows of the metric that an answer is about: the whole where there is one, else
    every part (the methods of pg_test_fsync), in the order in which they came."""
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for cell_id, metric, label in rows_of(measurements[list(FIGURE)].drop_duplicates(), *FIGURE):
        if cell := sweep.combinations.get(cell_id):
            labels.setdefault((cell.workload.label, metric), {})[label] = None
    return {key: ("",) if "" in parts else tuple(parts) for key, parts in labels.items()}
