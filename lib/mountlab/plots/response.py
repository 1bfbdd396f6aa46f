"""The response of a metric to a swept option: one line a file system, every trial a dot behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.core.names import metric_heading, metric_noun
from mountlab.core.units import Scale, scale_for
from mountlab.plots.axes import in_alt, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.levels import Levels, levels_of
from mountlab.plots.panels import (
    figure_of,
    label_ends,
    name_axes,
    panel_figure,
    shown_of,
    times,
    value_limits,
)
from mountlab.plots.style import Mark, marks_of
from mountlab.plots.texts import short
from mountlab.plots.ticks import set_ticks

_SIDE_BY_SIDE = 0.3
"""Lines stand apart by this share of the distance of two levels, all together."""
_DOTS_ASIDE = 0.06
"""Dots stand so far to the left of the whisker, which would hide them."""


def plot_response(
    measurements: pd.DataFrame,
    estimates: pd.DataFrame,
    metric: str,
    factor: str,
    *,
    workload: str,
    label: str = "",
    filesystems: Sequence[str],
) -> Plot:
    """Return the mean and interval of a metric at each level of `factor`, and every counted trial as a small dot
    behind.

    Sizes stand on a log2 axis, numbers on a plain one unless they range wide, words one after the other. The other
    swept options of the workload (a name of the sweep) make panels. `measurements` and `estimates`: frames of a Run;
    `filesystems`: all of the sweep, in its order. Raises InputError where nothing of that was measured.
    """
    options = {row["cell"]: row["factors"] for row in measurements.drop_duplicates("cell").to_dict("records")}
    known = estimates[np.isfinite(estimates["mean"])]
    means = _cells(known, options, metric, factor, workload, label)
    require(means, f"estimate of {metric} by {factor} under {workload}")
    trials = _cells(measurements[~measurements["warmup"].astype(bool)], options, metric, factor, workload, label)
    marks = marks_of(filesystems, {str(row["filesystem"]) for row in means})
    levels = levels_of(str(row["level_of_factor"]) for row in means)
    scale = scale_for(str(means[0]["unit"]), max(abs(float(row["mean"])) for row in means))
    shown, more = shown_of(list(dict.fromkeys(str(row["panel"]) for row in means)))
    with panel_figure(shown) as panels:
        _scale_axes(panels, means, trials, levels, scale)
        for title, axes in panels.items():
            inside = [[row for row in rows if row["panel"] == title] for rows in (trials, means)]
            _draw(axes, inside[0], inside[1], levels, marks, scale)
        name_axes(panels, x=f"{factor}{more}", y=f"{metric_noun(metric, label)}, {scale.unit}")
        present = {name: mark for name, mark in marks.items() if any(row["filesystem"] == name for row in means)}
        if len(panels) == 1:
            label_ends(panels[shown[0]], _ends(means, levels, scale), present)
    alone = len(panels) == 1
    changes = _changes(means, levels)
    what = f"{metric_heading(metric, label)} over {factor} under {workload}"
    return Plot(figure_of(panels), f"{what}: {changes[0]}", f"{what}. {in_alt(changes)}", {} if alone else present)


def _cells(
    frame: pd.DataFrame,
    options: Mapping[str, Mapping[str, str]],
    metric: str,
    factor: str,
    workload: str,
    label: str,
) -> list[dict[str, Any]]:
    """Return the rows of one metric of one workload, each with its level of the factor and the panel of its other
    options.

    `options`: cell to the swept options of its workload.
    """
    same = (frame["metric"] == metric) & (frame["workload"] == workload) & (frame["label"] == label)
    rows = [{str(key): value for key, value in row.items()} for row in frame[same].to_dict("records")]
    found = [(row, factors) for row in rows if factor in (factors := options.get(row["cell"], {}))]
    names = [key for key in (found[0][1] if found else ()) if key != factor]
    levels = {key: levels_of(factors.get(key, "") for _, factors in found) for key in names}
    others = {key: own for key, own in levels.items() if len(own.names) > 1}
    # Panels in the order of their levels, which that of the rows need not be.
    found.sort(key=lambda pair: [own.place(pair[1].get(key, "")) for key, own in others.items()])
    return [
        {
            **row,
            "level_of_factor": factors[factor],
            "panel": " ".join(f"{key}={factors[key]}" for key in others if key in factors),
        }
        for row, factors in found
    ]


def _draw(
    axes: Axes,
    trials: Sequence[Mapping[str, Any]],
    means: Sequence[Mapping[str, Any]],
    levels: Levels,
    marks: Mapping[str, Mark],
    scale: Scale,
) -> None:
    present = [name for name in marks if any(row["filesystem"] == name for row in means)]
    for place, name in enumerate(present):
        shift = levels.step * _SIDE_BY_SIDE * (place - (len(present) - 1) / 2) / max(len(present), 2)
        own = [row for row in trials if row["filesystem"] == name]
        axes.plot(
            [
                levels.place(str(row["level_of_factor"])) + shift - levels.step * _DOTS_ASIDE
                for row in own
                if row["level_of_factor"] in levels.names
            ],
            [float(row["value"]) / scale.factor for row in own if row["level_of_factor"] in levels.names],
            "o",
            color=marks[name].colour,
            markersize=2.4,
            markeredgewidth=0,
            alpha=0.45,
            linestyle="none",
        )
        _draw_line(axes, [row for row in means if row["filesystem"] == name], levels, shift, marks[name], scale)


def _draw_line(
    axes: Axes, rows: Sequence[Mapping[str, Any]], levels: Levels, shift: float, mark: Mark, scale: Scale
) -> None:
    """The means of a file system joined by a line, with their intervals as whiskers; infinite ones have none."""
    ordered = sorted(rows, key=lambda row: levels.place(str(row["level_of_factor"])))
    xs = [levels.place(str(row["level_of_factor"])) + shift for row in ordered]
    means, lows, highs = ([float(row[key]) / scale.factor for row in ordered] for key in ("mean", "low", "high"))
    joined = "-" if levels.kind != "word" else "none"
    axes.plot(xs, means, mark.marker, color=mark.colour, markersize=4.8, linewidth=1.3, linestyle=joined)
    for x, low, high in zip(xs, lows, highs, strict=True):
        upright(axes, x, low, high, colour=mark.colour)


def _scale_axes(
    panels: Mapping[str, Axes],
    means: Sequence[Mapping[str, Any]],
    trials: Sequence[Mapping[str, Any]],
    levels: Levels,
    scale: Scale,
) -> None:
    values = [float(row["mean"]) / scale.factor for row in means] + [
        float(row["value"]) / scale.factor for row in trials
    ]
    bounds = [float(row[key]) / scale.factor for row in means for key in ("low", "high")]
    texts = [short(name, 12) for name in levels.names]
    for axes in panels.values():
        value_limits(axes, [value for value in values if math.isfinite(value)], bounds)
        set_ticks(axes.xaxis, levels.places, texts)
        axes.set_xlim(levels.places[0] - 0.4 * levels.step, levels.places[-1] + 0.4 * levels.step)


def _ends(means: Sequence[Mapping[str, Any]], levels: Levels, scale: Scale) -> dict[str, float]:
    """Return the mean of each file system at the last level that it has."""
    ordered = sorted(means, key=lambda row: levels.place(str(row["level_of_factor"])))
    return {str(row["filesystem"]): float(row["mean"]) / scale.factor for row in ordered}


def _changes(means: Sequence[Mapping[str, Any]], levels: Levels) -> list[str]:
    """From the first to the last level of each line (of words: from its smallest to its largest), strongest first."""
    lines = by_key(
        ((str(row["filesystem"]), str(row["panel"])), row)
        for row in sorted(means, key=lambda row: levels.place(str(row["level_of_factor"])))
    )
    changes = []
    for (name, panel), rows in lines.items():
        by_size = sorted(rows, key=lambda row: float(row["mean"])) if levels.kind == "word" else rows
        changes.append(_change(f"{name}, {panel}" if panel else name, by_size[0], by_size[-1]))
    return [text for _, text in sorted(changes, key=lambda each: -each[0])]


def _change(who: str, first: Mapping[str, Any], last: Mapping[str, Any]) -> tuple[float, str]:
    """Return how strong a change is, and the change in words."""
    values = [float(row["mean"]) for row in (first, last)]
    scale = scale_for(str(first["unit"]), max(values))
    shown = [numbers.mean_figures(value, math.nan, math.nan, factor=scale.factor).value for value in values]
    ends = [f"{text} {scale.unit} at {row['level_of_factor']}" for text, row in zip(shown, (first, last), strict=True)]
    if first is last or not all(math.isfinite(value) and value > 0 for value in values):
        return 0.0, f"{who}: {ends[0] if first is last else ' to '.join(ends)}"
    ratio = values[1] / values[0]
    return abs(math.log(ratio)), f"{who} from {ends[0]} to {ends[1]}, {times(ratio)} as much"
