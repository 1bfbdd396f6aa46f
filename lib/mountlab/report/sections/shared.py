"""What several parts of a report want to know of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product

from mountlab import plots
from mountlab.analysis.run_view import RunView
from mountlab.core import names
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.wording import verdicts


def moment(moment: str) -> str:
    """Return a moment to the second, as people read it."""
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def names_of(run: RunView) -> list[str]:
    """File systems in the order of the sweep: the order of colours everywhere."""
    return [filesystem.name for filesystem in run.sweep.filesystems]


def swatches(run: RunView) -> dict[str, Html]:
    """Return the name of each file system behind its mark."""
    marks = plots.colour_of(names_of(run))
    return {name: html.swatch(name, mark.colour, mark.glyph) for name, mark in marks.items()}


def orders(run: RunView) -> dict[str, list[str]]:
    """Return the order of the sweep, which is that of colours and of rows."""
    return {"filesystems": names_of(run), "workloads": [workload.label for workload in run.sweep.workloads]}


def answer_metrics(run: RunView) -> list[str]:
    """Return the metrics that the answer is about, in the order of the sweep."""
    return list(dict.fromkeys(metric for metrics in run.answer_metrics.values() for metric in metrics))


def ratios_by_cell(comparisons: Sequence[Comparison]) -> dict[tuple[str, str, str], Comparison]:
    """Return metric, label and cell of each candidate to its comparison, the first one where there are several."""
    return {(c.metric, c.label, verdicts.cell_id(c.candidate, c)): c for c in reversed(comparisons)}


@dataclass(frozen=True)
class Mean:
    """One row of the estimates."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    cell: str
    label: str
    unit: str
    n: int
    mean: float
    low: float
    high: float
    cv: float
    censored: int = 0
    """How many of the n ran into their time limit: then it is a median, or none."""

    @property
    def row(self) -> str:
        """The workload, and the label where rows have one."""
        return f"{self.workload_label} ({self.label})" if self.label else self.workload_label


def means_of(run: RunView, metric: str) -> list[Mean]:
    """Return the estimates of one metric: workloads in the order of the sweep, file systems in theirs."""
    means = []
    for row in run.estimates[run.estimates["metric"] == metric].to_dict("records"):
        label = row["label"] if isinstance(row["label"], str) else ""
        mean, low, high, cv = (float(row[key]) for key in ("mean", "low", "high", "cv"))
        n, late = int(row["n"]), int(row.get("censored", 0))
        workload = run.sweep.combinations[row["cell"]].workload.label
        means.append(Mean(row["filesystem"], workload, row["cell"], label, row["unit"], n, mean, low, high, cv, late))
    order = {
        names.cell_id(fs.name, w.label): place
        for place, (w, fs) in enumerate(product(run.sweep.workloads, run.sweep.filesystems))
    }
    return sorted(means, key=lambda mean: order.get(mean.cell, len(order)))


def rows_of(means: Sequence[Mean]) -> dict[str, list[Mean]]:
    """Return the means below the workload (and label) that they share, workloads in the order of their first mean."""
    return by_key((mean.row, mean) for mean in means)


def within(rows: Mapping[str, int], most: int) -> list[list[str]]:
    """Return groups with so many rows each, in their order, in parts of at most so many rows; a larger one is a part
    alone."""
    parts: list[list[str]] = []
    room = 0
    for group, count in rows.items():
        if count > room or not parts:
            parts.append([])
            room = most
        parts[-1].append(group)
        room -= count
    return parts
