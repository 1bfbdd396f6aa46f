"""Two swept options as clusters of bars: one along the axis, the levels of the other beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mountlab.core.groups import by_key
from mountlab.core.names import metric_heading, metric_noun
from mountlab.core.units import Scale, scale_for
from mountlab.plots.axes import dots, filled, in_alt, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import title_panel
from mountlab.plots.levels import levels_of
from mountlab.plots.panels import OWN, figure_of, name_axes, panel_figure, shown_of
from mountlab.plots.response import changes_of, label_of, panel_of, rows_over
from mountlab.plots.style import Mark, marks_of
from mountlab.plots.svg import INK, say
from mountlab.plots.texts import short
from mountlab.plots.ticks import plain_ticks, set_ticks

_CLUSTER, _ASIDE = 0.84, 0.2
"""Width of a cluster, of the distance of two; and how far from the middle of a bar its interval and its trials are, of
the width of the bar."""
_SHARED_FROM = 0.25
"""Panels share a scale where the highest bar of each takes up so much of it."""


@dataclass(frozen=True)
class _Bar:
    """One cell, in the unit that is shown; `x` is 0, 1, ... in the middle of a cluster, `shade` from 0 to 1."""

    filesystem: str
    panel: str
    x: float
    width: float
    shade: float
    mean: float
    low: float
    high: float
    trials: Sequence[float]
    text: str
    """What it says when it is pointed at."""


def plot_clustered(
    measurements: pd.DataFrame,
    estimates: pd.DataFrame,
    metric: str,
    factors: tuple[str, str],
    *,
    workload: str,
    label: str = "",
    filesystems: Sequence[str],
) -> Plot:
    """Return the means of a metric as bars from 0, with their intervals and every counted trial as a dot. The first of
    two swept options lies along the axis, with a bar for each level of the second.

    Each file system has a panel (and, with more options, each combination of the others: one panel a direction).
    `measurements` and `estimates`: frames of a Run; `filesystems`: all of the sweep, in its order. Raises InputError
    where nothing of that was measured.
    """
    options = {row["cell"]: row["factors"] for row in measurements.drop_duplicates("cell").to_dict("records")}
    what = (options, metric, factors[0], workload, label)
    means = rows_over(estimates[np.isfinite(estimates["mean"])], *what)
    require(means, f"estimate of {metric} by {factors[0]} under {workload}")
    trials = rows_over(measurements[~measurements["warmup"].astype(bool)], *what)
    marks = marks_of(filesystems, {str(row["filesystem"]) for row in means})
    across, within = (levels_of(options[row["cell"]].get(factor, "") for row in means) for factor in factors)
    scale = scale_for(str(means[0]["unit"]), max(abs(float(row["mean"])) for row in means))
    by_cell = {row["cell"]: (row["level_of_factor"], options[row["cell"]].get(factors[1], "")) for row in means}
    places = {cell: (across.names.index(x), within.names.index(bar)) for cell, (x, bar) in by_cell.items()}
    bars = _bars(means, trials, places, len(within.names), factors[1], scale)
    of_panel = by_key((bar.panel, bar) for name in marks for bar in bars if bar.filesystem == name)
    shown, more = shown_of(list(of_panel))
    shared = _have_one_scale([of_panel[title] for title in shown])
    with panel_figure(shown, sharey=shared) as panels:
        for title, axes in panels.items():
            title_panel(axes, title, note="" if shared else OWN)
            # Directions of one file system stay comparable where file systems are not.
            alike = [bar for bar in bars if shared or bar.filesystem == of_panel[title][0].filesystem]
            axes.set_ylim(*_span([bar for bar in alike if bar.panel in panels]))
            set_ticks(axes.xaxis, range(len(across.names)), [short(name, 10) for name in across.names])
            axes.set_xlim(-0.55, len(across.names) - 0.45)
            _draw(axes, of_panel[title], marks[of_panel[title][0].filesystem].colour)
        key = f"bars, left to right: {factors[1]} {', '.join(within.names)}; dots: trials"
        name_axes(panels, x=f"{factors[0]}; {key}{more}", y=f"{metric_noun(metric, label)}, {scale.unit}")
    changes = changes_of(means, across)
    title = f"{metric_heading(metric, label)} over {factors[0]} and {factors[1]} under {workload}"
    return Plot(figure_of(panels), f"{title}: {changes[0]}", f"{title}. {in_alt(changes)}")


def _bars(
    means: Sequence[Mapping[str, Any]],
    trials: Sequence[Mapping[str, Any]],
    places: Mapping[str, tuple[int, int]],
    count: int,
    factor: str,
    scale: Scale,
) -> list[_Bar]:
    """Return a bar for each mean. `places`: cell to the place of its cluster and its place in it, of `count`; `factor`:
    the option whose levels are bars, and which names no panel."""
    values = by_key((row["cell"], float(row["value"]) / scale.factor) for row in trials)
    width = _CLUSTER / count
    bars = []
    for row in means:
        cluster, nth = places[row["cell"]]
        others = panel_of({key: level for key, level in row["others"].items() if key != factor})
        panel, name = " ".join(filter(None, (row["filesystem"], others))), str(row["filesystem"])
        x, shade = cluster + width * (nth - (count - 1) / 2), nth / max(count - 1, 1)
        mean, low, high = (float(row[key]) / scale.factor for key in ("mean", "low", "high"))
        dots_of = values.get(row["cell"], ())
        bars.append(_Bar(name, panel, x, width, shade, mean, low, high, dots_of, label_of(row, scale)))
    return bars


def _have_one_scale(panels: Sequence[Sequence[_Bar]]) -> bool:
    tops = [_span(bars)[1] for bars in panels]
    return min(tops) >= _SHARED_FROM * max(tops)


def _span(bars: Sequence[_Bar]) -> tuple[float, float]:
    """Return where a scale begins and ends: at 0, or below it where a trial is, and at the longest whisker; where that
    is vast at half as far again as the data."""
    values = [value for bar in bars for value in (0.0, bar.mean, *bar.trials)]
    whisker = max([max(values), *(bar.high for bar in bars if math.isfinite(bar.high))])
    return min(values), 1.04 * min(whisker, 1.5 * max(values)) or 1.0


def _draw(axes: Axes, bars: Sequence[_Bar], colour: str) -> None:
    axes.grid(visible=False, axis="x")
    plain_ticks(axes.yaxis, decimals=9)
    axes.tick_params(axis="x", which="both", length=0)
    for bar in bars:
        look = filled(colour, 0.15 + 0.55 * bar.shade)
        (patch,) = axes.bar([bar.x], [bar.mean], width=0.9 * bar.width, zorder=2, **look)
        say(patch, [bar.text])
        upright(axes, bar.x + _ASIDE * bar.width, bar.low, bar.high, colour=INK, width=1.0)
    xs = [bar.x - _ASIDE * bar.width for bar in bars for _ in bar.trials]
    trials = [value for bar in bars for value in bar.trials]
    dots(axes, xs, trials, Mark(INK, "o", "●"), size=2.0, alpha=0.6, zorder=4)
