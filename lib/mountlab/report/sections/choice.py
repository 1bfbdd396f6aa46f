"""Which plots a report shows: decided by the shape of the sweep and by what was measured, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mountlab.core.model import Sweep
from mountlab.plots import kind_of

PlotKind = Literal["response", "clustered", "heat", "ratio heat", "percentiles", "latencies", "series", "bytes"]
_KINDS = {"size": 0, "number": 1, "word": 2}
_MOST_BARS = 24
"""Of a panel: more would be narrower than the dots of their trials."""
_MOST_LABELS = 4
"""Rows of one metric (the methods of pg_test_fsync) that get a plot of their own."""


@dataclass(frozen=True)
class Picture:
    """One plot to draw."""

    kind: PlotKind
    metric: str = ""
    workload: str = ""
    """A name of the sweep: all its combinations of options."""
    label: str = ""
    factors: tuple[str, ...] = ()
    """The option on the x axis; of a map the one on the y axis, of clusters the one whose levels are bars."""
    place: str = ""
    """Of latencies: where they stand in fio's report."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a sweep asked and what was measured, as far as a choice of plots needs it."""

    levels: Mapping[tuple[str, str, str], Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """(workload name, metric, label) to swept option to the levels that have a figure; metrics of the answer only."""
    compared: bool = False
    """Whether there are ratios to a baseline."""
    places: Sequence[str] = ()
    """Where latency histograms were kept."""
    logged: Sequence[str] = ()
    """Metrics that were logged over time."""
    counters: bool = False
    """Whether the bytes of a device were counted."""


def shape_of(
    sweep: Sweep,
    answer_metrics: Mapping[str, Sequence[str]],
    measured: Iterable[tuple[str, str, str]],
    *,
    compared: bool = False,
    places: Sequence[str] = (),
    logged: Sequence[str] = (),
    counters: bool = False,
) -> Shape:
    """Return the shape of a sweep. `measured`: (cell, metric, label) of everything that has a figure."""
    cells = {cell.id: cell.workload for cell in sweep.cells}
    levels: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for cell, metric, label in measured:
        workload = cells.get(cell)
        if workload and metric in answer_metrics.get(workload.label, ()):
            of_metric = levels.setdefault((workload.name, metric, label), {})
            for name, level in workload.factors.items():
                of_option = of_metric.setdefault(name, [])
                of_option.extend([level] if level not in of_option else [])
    return Shape(levels=levels, compared=compared, places=tuple(places), logged=tuple(logged), counters=counters)


def chosen(shape: Shape) -> list[Picture]:
    """Return the plots beside those that every report has (ratios, every trial, run order, distribution, bars).

    A swept number or size: the response over it. Two swept options: a map of them too, of the ratios where there is a
    baseline. Two numbers with few levels: clusters of bars, in place of a map of means, since they show intervals and
    trials; more levels are read better from a line and a map. Histograms: percentiles and distribution of latencies.
    Logs over time: the course of each trial. Counters of a device: its bytes against the tool's.
    """
    return [
        *(picture for key in _plotted(shape) for picture in _over_factors(shape, *key)),
        *(Picture("percentiles", place=place) for place in shape.places),
        *(Picture("latencies", place=place) for place in shape.places),
        *(Picture("series", metric=metric) for metric in shape.logged),
        *([Picture("bytes")] if shape.counters else []),
    ]


def _plotted(shape: Shape) -> list[tuple[str, str, str]]:
    """Return the rows that get plots: the whole of a metric where there is one, else the first of its parts."""
    rows = []
    for workload, metric in dict.fromkeys((workload, metric) for workload, metric, _ in shape.levels):
        labels = [label for *key, label in shape.levels if key == [workload, metric]]
        rows += [(workload, metric, label) for label in ([""] if "" in labels else labels[:_MOST_LABELS])]
    return rows


def _over_factors(shape: Shape, workload: str, metric: str, label: str) -> list[Picture]:
    swept = {name: levels for name, levels in shape.levels[workload, metric, label].items() if len(levels) > 1}
    # Sizes first, then numbers, then words; of two alike the one with more levels, then the one that comes first.
    ordered = sorted(swept, key=lambda name: (_KINDS[kind_of(swept[name])], -len(swept[name])))
    numeric = [name for name in ordered if kind_of(swept[name]) != "word"]
    common = {"metric": metric, "workload": workload, "label": label}
    response = [Picture("response", factors=(numeric[0],), **common)] if numeric else []
    # The one of fewer levels is the bars; of two alike the first, which is the size.
    bars = min(numeric[:2], key=lambda name: len(swept[name]), default="")
    along = next((name for name in numeric[:2] if name != bars), "")
    grid = along and len(swept[along]) * len(swept[bars]) <= _MOST_BARS
    clustered = [Picture("clustered", factors=(along, bars), **common)] if grid else []
    kind: PlotKind = "ratio heat" if shape.compared else "heat"
    mapped = len(ordered) > 1 and (shape.compared or not grid)
    heat = [Picture(kind, factors=(ordered[0], ordered[1]), **common)] if mapped else []
    return [*response, *clustered, *heat]
