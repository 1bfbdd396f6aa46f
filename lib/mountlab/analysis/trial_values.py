"""The figures of each trial that the answer is about, beside those of its cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.analysis.run_view import RunView
from mountlab.core.frames import rows_of


@dataclass(frozen=True)
class TrialValue:
    """One metric of one trial."""

    value: float
    """In base units; NaN where the metric has several rows a trial, and none of all of them."""
    multiple: float
    """Of the mean (or what the design sums up by) over the counted trials of its cell; of several rows the geometric
    mean of theirs. NaN where the cell has no such figure."""
    rows: int = 1


Values = dict[tuple[str, str], TrialValue]
_KEY = ("cell", "metric", "label")


def trial_values(run: RunView) -> Values:
    """(Trial id, metric) to the figure of that trial, for the metrics that the answer is about."""
    of_answer = {
        (cell_id, metric)
        for cell_id, cell in run.sweep.combinations.items()
        for metric in run.answer_metrics.get(cell.workload.label, ())
    }
    means = {(cell, metric, label): float(mean) for cell, metric, label, mean in rows_of(run.estimates, *_KEY, "mean")}
    by_trial: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for trial_id, cell, metric, label, value in rows_of(run.measurements, "trial_id", *_KEY, "value"):
        if (cell, metric) in of_answer:
            mean = means.get((cell, metric, label), math.nan)
            multiple = float(value) / mean if mean else math.nan
            by_trial.setdefault((trial_id, metric), {})[label] = (float(value), multiple)
    return {key: _value(rows) for key, rows in by_trial.items()}


def _value(rows: Mapping[str, tuple[float, float]]) -> TrialValue:
    """Return the row of the whole where there is one; else what all rows say together."""
    if "" in rows or len(rows) == 1:
        return TrialValue(*rows.get("", next(iter(rows.values()))))
    multiples = [multiple for _, multiple in rows.values()]
    if not all(multiple > 0 for multiple in multiples):
        return TrialValue(math.nan, math.nan, len(rows))
    return TrialValue(math.nan, math.exp(sum(map(math.log, multiples)) / len(rows)), len(rows))
