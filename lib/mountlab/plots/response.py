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
from mountlab.plots.axes import dots, in_alt, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.levels import Levels, levels_of
from mountlab.plots.panels import figure_of, label_ends, name_axes, panel_figure, shown_of, times, value_limits
from mountlab.plots.style import Mark, marks_of
from mountlab.plots.svg import say
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
    finite = estimates[np.isfinite(estimates["mean"])]
    means = rows_over(finite, options, metric, factor, workload, label)
    require(means, f"estimate of {metric} by {factor} under {workload}")
    trials = rows_over(measurements[~measurements["warmup"].astype(bool)], options, metric, factor, workload, label)
    marks = marks_of(filesystems, {str(row["filesystem"]) for row in means})
    levels = levels_of(str(row["level_of_factor"]) for row in means)
    scale = scale_for(str(means[0]["unit"]), max(abs(float(row["mean"])) for row in means))
    shown, more = shown_of(list(dict.fromkeys(str(row["panel"]) for row in means)))
    with panel_figure(shown) as panels:
        values = [float(row["mean"]) / scale.factor for row in means]
        values += [float(row["value"]) / scale.factor for row in trials]
        bounds = [float(row[key]) / scale.factor for row in means for key in ("low", "high")]
        for title, axes in panels.items():
            value_limits(axes, [value for value in values if math.isfinite(value)], bounds)
            set_ticks(axes.xaxis, levels.places, [short(name, 12) for name in levels.names])
            axes.set_xlim(levels.places[0] - 0.4 * levels.step, levels.places[-1] + 0.4 * levels.step)
            inside = [[row for row in rows if row["panel"] == title] for rows in (trials, means)]
            _draw(axes, inside[0], inside[1], levels, marks, scale)
        name_axes(panels, x=f"{factor}{more}", y=f"{metric_noun(metric, label)}, {scale.unit}")
        present = {name: mark for name, mark in marks.items() if any(row["filesystem"] == name for row in means)}
        if len(panels) == 1:
            # At the last level that each has.
            ordered = sorted(means, key=lambda row: levels.place(str(row["level_of_factor"])))
            ends = {str(row["filesystem"]): float(row["mean"]) / scale.factor for row in ordered}
            label_ends(panels[shown[0]], ends, present)
    alone = len(panels) == 1
    changes = changes_of(means, levels)
    what = f"{metric_heading(metric, label)} over {factor} under {workload}"
    return Plot(figure_of(panels), f"{what}: {changes[0]}", f"{what}. {in_alt(changes)}", {} if alone else present)


def rows_over(
    frame: pd.DataFrame, options: Mapping[str, Mapping[str, str]], metric: str, factor: str, workload: str, label: str
) -> list[dict[str, Any]]:
    """Return the rows of one metric of one workload, each with its level of the factor, and with its other swept
    options, which name its panel.

    `options`: cell to the swept options of its workload.
    """
    same = (frame["metric"] == metric) & (frame["workload"] == workload) & (frame["label"] == label)
    rows = [{str(key): value for key, value in row.items()} for row in frame[same].to_dict("records")]
    varied = [(row, factors) for row in rows if factor in (factors := options.get(row["cell"], {}))]
    names = [key for key in (varied[0][1] if varied else ()) if key != factor]
    levels = {key: levels_of(factors.get(key, "") for _, factors in varied) for key in names}
    others = {key: members for key, members in levels.items() if len(members.names) > 1}
    # Panels in the order of their levels, which that of the rows need not be.
    varied.sort(key=lambda pair: [members.place(pair[1].get(key, "")) for key, members in others.items()])
    return [
        {**row, "level_of_factor": factors[factor], "others": of_row, "panel": panel_of(of_row)}
        for row, factors in varied
        for of_row in [{key: factors[key] for key in others if key in factors}]
    ]


def panel_of(options: Mapping[str, str]) -> str:
    """Return what a panel of these options is called."""
    return " ".join(f"{key}={level}" for key, level in options.items())


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
        shown = [row for row in trials if row["filesystem"] == name and row["level_of_factor"] in levels.names]
        xs = [levels.place(row["level_of_factor"]) + shift - levels.step * _DOTS_ASIDE for row in shown]
        ys = [float(row["value"]) / scale.factor for row in shown]
        mark = marks[name]
        dots(axes, xs, ys, Mark(mark.colour, "o", "●"), size=2.4, markeredgewidth=0)
        # The means joined by a line, with their intervals as whiskers; infinite ones have none.
        line = [row for row in means if row["filesystem"] == name]
        line.sort(key=lambda row: levels.place(str(row["level_of_factor"])))
        xs = [levels.place(str(row["level_of_factor"])) + shift for row in line]
        ys, lows, highs = ([float(row[key]) / scale.factor for row in line] for key in ("mean", "low", "high"))
        joined = "-" if levels.kind != "word" else "none"
        (drawn,) = axes.plot(xs, ys, mark.marker, color=mark.colour, markersize=4.8, linewidth=1.3, linestyle=joined)
        say(drawn, [label_of(row, scale) for row in line])
        for x, low, high in zip(xs, lows, highs, strict=True):
            upright(axes, x, low, high, colour=mark.colour)


def label_of(row: Mapping[str, Any], scale: Scale) -> str:
    """Return what the mark of an estimate says: its cell, its mean and interval."""
    figures = numbers.mean_figures(*(float(row[key]) for key in ("mean", "low", "high")), factor=scale.factor)
    return f"{row['cell']}: {figures} {scale.unit}, n = {row['n']}"


def changes_of(means: Sequence[Mapping[str, Any]], levels: Levels) -> list[str]:
    """From the first to the last level of each line (of words: from its smallest to its largest), strongest first."""
    lines = by_key(
        ((str(row["filesystem"]), str(row["panel"])), row)
        for row in sorted(means, key=lambda row: levels.place(str(row["level_of_factor"])))
    )
    changes = []
    for (name, panel), rows in lines.items():
        by_size = sorted(rows, key=lambda row: float(row["mean"])) if levels.kind == "word" else rows
        who, first, last = f"{name}, {panel}" if panel else name, by_size[0], by_size[-1]
        values = [float(row["mean"]) for row in (first, last)]
        scale = scale_for(str(first["unit"]), max(values))
        ends = []
        for row, value in zip((first, last), values, strict=True):
            text = numbers.mean_figures(value, math.nan, math.nan, factor=scale.factor).value
            ends.append(f"{text} {scale.unit} at {row['level_of_factor']}")
        if first is last or not all(math.isfinite(value) and value > 0 for value in values):
            changes.append((0.0, f"{who}: {ends[0] if first is last else ' to '.join(ends)}"))
        else:
            ratio = values[1] / values[0]
            text = f"{who} from {ends[0]} to {ends[1]}, {times(ratio)} as much"
            changes.append((abs(math.log(ratio)), text))
    return [text for _, text in sorted(changes, key=lambda item: -item[0])]
