"""Latencies: percentiles with the intervals that they are given, and the distribution over all I/Os of a cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.core.units import Scale, scale_for
from mountlab.plots.axes import in_alt, log_limits
from mountlab.plots.base import Plot, require
from mountlab.plots.data import ordered
from mountlab.plots.panels import figure_of, label_ends, name_axes, panel_figure, shown_of, times
from mountlab.plots.style import Mark, glyphs_on, marks_of
from mountlab.plots.ticks import plain_ticks, set_ticks
from mountlab.stats.histograms import Histogram, distribution

_NAMED = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_TELLING = 99.0
_MOST_POINTS = 160
"""A step smaller than a pixel is not seen, and makes the page large."""
PLACES = {
    "read.clat_ns": "read completion latency", "write.clat_ns": "write completion latency",
    "sync.lat_ns": "sync latency",
    "read.lat_ns": "total read latency", "write.lat_ns": "total write latency",
    "read.slat_ns": "read submission latency", "write.slat_ns": "write submission latency",
}  # fmt: skip
"""A place in fio's report, and what its latencies are called."""


def nines(percent: float) -> float:
    """Return where a percentile stands: 90 at 1, 99 at 2, 99.9 at 3."""
    return -math.log10(1 - percent / 100)


def plot_percentiles(
    percentiles: pd.DataFrame, place: str, *, filesystems: Sequence[str], workloads: Sequence[str] = ()
) -> Plot:
    """Return latency percentiles of each cell, on an axis of nines; the band is the interval over trials that the frame
    holds.

    `percentiles`: that of a Run; `place`: one of fio's report ('read.clat_ns'). `filesystems` and `workloads` (labels):
    all of the sweep, in its order. Raises InputError where nothing is known of the place.
    """
    at_place = percentiles[percentiles["place"] == place].to_dict("records")
    rows = [{str(key): value for key, value in row.items()} for row in at_place]
    require(rows, f"latency percentile of {place}")
    marks = marks_of(filesystems, {str(row["filesystem"]) for row in rows})
    scale = scale_for("s", max(float(row["mean"]) for row in rows))
    shown, more = shown_of(ordered({str(row["workload"]) for row in rows}, workloads))
    noun = PLACES.get(place, place)
    with panel_figure(shown) as panels:
        lines = {name: _lines([row for row in rows if row["workload"] == name]) for name in shown}
        for title, axes in panels.items():
            for name, line in lines[title].items():
                _draw_percentiles(axes, line, marks[name], scale)
        _percentile_axes(panels, rows, scale)
        name_axes(panels, x=f"percentile (band: interval over trials){more}", y=f"latency, {scale.unit}")
        if len(shown) == 1:
            ends = {name: float(line[-1]["mean"]) / scale.factor for name, line in lines[shown[0]].items()}
            label_ends(panels[shown[0]], ends, marks)
    legend = {name: mark for name, mark in marks.items() if any(row["filesystem"] == name for row in rows)}
    title = f"{noun[0].upper()}{noun[1:]}: {_widest(rows)}"
    alt = f"Percentiles of {noun} by cell. {in_alt(_slowest(rows))}"
    return Plot(figure_of(panels), title, alt, legend if len(shown) > 1 else {})


def _lines(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """File system to its percentiles, rising."""
    return by_key((str(row["filesystem"]), row) for row in sorted(rows, key=lambda row: float(row["percent"])))


def _draw_percentiles(axes: Axes, rows: Sequence[Mapping[str, Any]], mark: Mark, scale: Scale) -> None:
    xs = [nines(float(row["percent"])) for row in rows]
    mean, low, high = (np.array([float(row[key]) / scale.factor for row in rows]) for key in ("mean", "low", "high"))
    axes.plot(xs, mean, color=mark.colour, linewidth=1.4, marker=mark.marker, markersize=3)
    bounded = np.isfinite(low) & np.isfinite(high)
    # A bound of zero lies below every log axis; what is cut there is cut at the least that can be drawn.
    low = np.maximum(low, mean / 1e3)
    axes.fill_between(xs, low, high, where=bounded.tolist(), color=mark.colour, alpha=0.22, linewidth=0)


def _percentile_axes(panels: Mapping[str, Axes], rows: Sequence[Mapping[str, Any]], scale: Scale) -> None:
    means = [float(row["mean"]) / scale.factor for row in rows if float(row["mean"]) > 0]
    highest = max(float(row["percent"]) for row in rows)
    named = [percent for percent in _NAMED if percent <= highest]
    for axes in panels.values():
        log_limits(axes, min(means), max(means) * 1.1)
        set_ticks(axes.xaxis, [nines(percent) for percent in named], [f"{percent:g}" for percent in named])
        axes.set_xlim(-0.05, nines(highest) * 1.04)


def _slowest(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each workload: the latency at the 99th percentile (or the highest that all have), slowest first; the
    workload in which the file systems differ most comes first."""
    lines = []
    for workload, percent, at, ratio in _ranked(rows):
        ends = []
        for row in at:
            mean, low, high = (float(row[key]) for key in ("mean", "low", "high"))
            scale = scale_for("s", mean)
            figures = numbers.mean_figures(mean, low, high, factor=scale.factor)
            ends.append(f"{row['filesystem']} {figures} {scale.unit}")
        apart = f" ({times(ratio)} the shortest)" if len(at) > 1 else ""
        lines.append((ratio, f"{percent:g} % stay below {', '.join(ends)}{apart}, {workload}"))
    return [text for _, text in sorted(lines, key=lambda item: -item[0])]


def _widest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the slowest and the fastest file system where they differ most, without intervals."""
    gaps = []
    for workload, percent, at, ratio in _ranked(rows):
        slowest, fastest = (numbers.quantity(float(row["mean"]), "s") for row in (at[0], at[-1]))
        text = f"{percent:g} % stay below {slowest} on {at[0]['filesystem']}"
        if len(at) > 1:
            about = float(f"{ratio:.2g}")
            times = numbers.number(about, 1 if about < 10 else 0)
            text += f", about {times} times the {fastest} on {at[-1]['filesystem']}"
        gaps.append((ratio, f"{text} ({workload})"))
    return max(gaps)[1]


def _ranked(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float, list[Mapping[str, Any]], float]]:
    """Yield each workload, a percentile that all its file systems have, their rows of it, slowest first, and by how
    much the slowest exceeds the fastest."""
    for workload in dict.fromkeys(str(row["workload"]) for row in rows):
        here = [row for row in rows if row["workload"] == workload]
        shared = set.intersection(*({float(row["percent"]) for row in line} for line in _lines(here).values()))
        # The 99th, or the highest below it that every file system has.
        percent = max((part for part in shared if part <= _TELLING), default=float(here[0]["percent"]))
        at = sorted((row for row in here if row["percent"] == percent), key=lambda row: -float(row["mean"]))
        least = float(at[-1]["mean"])
        yield workload, percent, at, float(at[0]["mean"]) / least if least > 0 else 1.0


# ── the distribution over all I/Os ───────────────────────────────────────────────────────────────────────────────────


def plot_latencies(latencies: Mapping[tuple[str, str], Histogram], noun: str, *, filesystems: Sequence[str]) -> Plot:
    """Return the share of all I/Os of a cell that took less than so long: one panel a workload, one line a file system.

    `latencies`: (workload, file system) to the histogram of all I/Os (`Run.latencies`); `noun`: what they are. It shows
    the shape; what is certain of it is in the percentiles. Raises InputError where there is none.
    """
    drawn = {key: histogram for key, histogram in latencies.items() if histogram.total}
    require(list(drawn), f"histogram of {noun}")
    marks = marks_of(filesystems, {name for _, name in drawn})
    shown, more = shown_of(list(dict.fromkeys(workload for workload, _ in drawn)))
    points = {key: _thinned(distribution(histogram)) for key, histogram in drawn.items()}
    scale = scale_for("s", max(seconds for curve in points.values() for seconds, _ in curve))
    with panel_figure(shown) as panels:
        for (workload, name), curve in points.items():
            if workload in panels:
                xs, ys = [seconds / scale.factor for seconds, _ in curve], [100 * share for _, share in curve]
                look = {"linewidth": 1.4, "drawstyle": "steps-post", **glyphs_on(name, marks, len(xs))}
                panels[workload].plot(xs, ys, color=marks[name].colour, **look)
        for axes in panels.values():
            every = [seconds / scale.factor for curve in points.values() for seconds, _ in curve]
            log_limits(axes, min(every), max(every), way="x")
            axes.set_ylim(0, 102)
            plain_ticks(axes.yaxis)
        name_axes(panels, x=f"latency, {scale.unit}{more}", y="I/Os that took less, %")
    lines: list[str] = []
    ends: list[float] = []
    for (workload, name), histogram in drawn.items():
        quarters = _quarters(histogram)
        ends += quarters
        between = " and ".join(numbers.quantity(quarter, "s") for quarter in quarters)
        lines.append(f"{name}, {workload}: half of {numbers.number(histogram.total, 0)} I/Os between {between}")
    present = {name for _, name in drawn}
    legend = {name: mark for name, mark in marks.items() if name in present}
    total = numbers.number(sum(histogram.total for histogram in drawn.values()), 0)
    span = f"{numbers.quantity(min(ends), 's')} to {numbers.quantity(max(ends), 's')}"
    title = f"{noun[0].upper()}{noun[1:]} of {total} I/Os: the middle halves of all cells lie within {span}"
    return Plot(figure_of(panels), title, f"The distribution of {noun} over all I/Os. {in_alt(lines)}", legend)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the first, the last, and those in between that rise by a step that can be seen; from (its place, 0)."""
    kept = [(points[0][0], 0.0)]
    for place, point in enumerate(points):
        if place == len(points) - 1 or point[1] - kept[-1][1] >= 1 / _MOST_POINTS:
            kept.append(point)
    return kept


def _quarters(histogram: Histogram) -> tuple[float, float]:
    """Between which latencies the middle half of the I/Os lies."""
    points = distribution(histogram)
    return tuple(next(seconds for seconds, share in points if share >= part) for part in (0.25, 0.75))  # type: ignore[return-value]
