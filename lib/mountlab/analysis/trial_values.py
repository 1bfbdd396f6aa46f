"""The figures of each trial that the answer is about, beside those of its cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.analysis.run_view import RunView


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
    answers = {cell: run.answer_metrics.get(own.workload.label, ()) for cell, own in run.sweep.combinations.items()}
    wanted = {(cell, metric) for cell, metrics in answers.items() for metric in metrics}
    rows = zip(*(run.estimates[name] for name in (*_KEY, "mean")), strict=True)
    means = {(cell, metric, label): float(mean) for cell, metric, label, mean in rows}
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    columns = (run.measurements[name] for name in ("trial_id", *_KEY, "value"))
    for trial_id, cell, metric, label, value in zip(*columns, strict=True):
        if (cell, metric) in wanted:
            mean = means.get((cell, metric, label), math.nan)
            found.setdefault((trial_id, metric), {})[label] = (float(value), _ratio(float(value), mean))
    return {key: _value(rows) for key, rows in found.items()}


def _value(rows: Mapping[str, tuple[float, float]]) -> TrialValue:
    """Return the row of the whole where there is one; else what all rows say together."""
    if "" in rows or len(rows) == 1:
        return TrialValue(*rows.get("", next(iter(rows.values()))))
    multiples = [multiple for _, multiple in rows.values()]
    known = all(each > 0 for each in multiples)
    return TrialValue(math.nan, math.exp(sum(map(math.log, multiples)) / len(rows)) if known else math.nan, len(rows))


def _ratio(value: float, mean: float) -> float:
    return value / mean if mean else math.nan
