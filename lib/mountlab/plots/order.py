"""Every trial of a metric in the order in which it ran, by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import names, numbers
from mountlab.plots.axes import dots, plain_ticks, short
from mountlab.plots.base import Plot, require
from mountlab.plots.data import TrialPoint, ordered, trials_of
from mountlab.plots.panels import place_panels
from mountlab.plots.style import AXIS_IN, MANY_DOTS, STYLE, WIDTH_IN, Mark, colour_of
from mountlab.plots.svg import INK

_MOST_NUMBERS = 12
_ROOM_FOR_NUMBERS = 0.25
"""Of the height of a panel, above its trials."""


def plot_run_order(
    measurements: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str] = (),
    workloads: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Plot:
    """Every trial of one metric in the order in which it ran, over the mean of its cell's counted trials.

    Steps, drift and warm-up show alike for fast and slow cells. Warm-up trials are hollow; bands are blocks.
    `measurements`: a Run's frame in the order of the run, or with a column `seq` that gives it. `filesystems` and
    `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has the metric.
    `groups`: the workloads to draw, as `groups_of` names them; () draws all.
    """
    trials = _relative(trials_of(measurements, metric, groups))
    require([trial for trial in trials if not trial.warmup], f"counted trial with {metric}")
    marks = colour_of(filesystems or sorted({trial.filesystem for trial in trials}))
    groups = ordered({trial.group for trial in trials}, workloads)
    with mpl.rc_context({**STYLE, "axes.spines.left": True}):
        figure = Figure(figsize=(WIDTH_IN, 1.0 * len(groups) + AXIS_IN))
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        place_panels(figure, len(groups), 1, left_in=0.62, bottom_in=0.5, gap_in=0.28)
        for axes, group in zip(panels, groups, strict=True):
            _draw_bands(axes, trials)
            own = [trial for trial in trials if trial.group == group]
            _draw_order(axes, own, group, marks, raster=len(trials) > MANY_DOTS)
        _name_blocks(panels[0], trials)
        bottom, top = panels[0].get_ylim()
        panels[0].set_ylim(bottom, top + _ROOM_FOR_NUMBERS * (top - bottom))
        hollow = "; hollow: warm-up" if any(trial.warmup for trial in trials) else ""
        panels[-1].set_xlabel(f"trial in run order; bands: blocks{hollow}")
    finding = _departure(trials)
    alt = f"Each trial's {names.metric_noun(metric)} over the mean of its cell, by run order: {finding}."
    present = {trial.filesystem for trial in trials}
    legend = {name: mark for name, mark in marks.items() if name in present}
    return Plot(figure, f"{names.metric_heading(metric)} in run order: {finding}", alt, legend)


def _relative(trials: Sequence[TrialPoint]) -> list[TrialPoint]:
    """The trials with `value` over the mean of their cell's counted trials; without those of cells that have none."""
    values: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        if not trial.warmup:
            values.setdefault((trial.filesystem, trial.group), []).append(trial.value)
    means = {key: fmean(counted) for key, counted in values.items()}
    keyed = [(trial, means.get((trial.filesystem, trial.group), 0.0)) for trial in trials]
    return [replace(trial, value=trial.value / mean) for trial, mean in keyed if mean]


def _draw_bands(axes: Axes, trials: Sequence[TrialPoint]) -> None:
    """Every other block shaded, and the line of the means."""
    for block in sorted({trial.block for trial in trials})[::2]:
        places = [trial.place for trial in trials if trial.block == block]
        axes.axvspan(min(places) - 0.5, max(places) + 0.5, color=INK, alpha=0.07, linewidth=0)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.margins(y=0.12)


def _name_blocks(axes: Axes, trials: Sequence[TrialPoint]) -> None:
    """The number of each block above it (of many every second, third, ...); W for one of warm-up."""
    blocks = sorted({trial.block for trial in trials})
    for block in blocks[:: -(-len(blocks) // _MOST_NUMBERS)]:
        own = [trial for trial in trials if trial.block == block]
        middle = (min(trial.place for trial in own) + max(trial.place for trial in own)) / 2
        name = "W" if all(trial.warmup for trial in own) else str(block)
        axes.annotate(
            name,
            (middle, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, -9),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            alpha=0.75,
        )


def _draw_order(
    axes: Axes, trials: Sequence[TrialPoint], group: str, marks: Mapping[str, Mark], *, raster: bool
) -> None:
    for name in dict.fromkeys(trial.filesystem for trial in trials):
        own, mark = [trial for trial in trials if trial.filesystem == name], marks[name]
        axes.plot([t.place for t in own], [t.value for t in own], color=mark.colour, linewidth=0.8, alpha=0.6)
        for hollow in (False, True):
            some = [trial for trial in own if trial.warmup == hollow]
            xs, ys = [t.place for t in some], [t.value for t in some]
            face = "none" if hollow else mark.colour
            dots(axes, xs, ys, mark, size=3.8, markerfacecolor=face, rasterized=raster)
    axes.set_title(short(group, 46), loc="left", fontsize="medium", weight="bold", pad=3, y=1.0)
    axes.set_ylabel("× mean")
    plain_ticks(axes.yaxis, 3)


def _departure(trials: Sequence[TrialPoint]) -> str:
    """The counted trial that is furthest from the mean of its cell."""
    worst = max((t for t in trials if not t.warmup), key=lambda t: abs(t.value - 1))
    by = f"{'+' if worst.value >= 1 else numbers.MINUS}{numbers.percent(abs(worst.value - 1))}"
    return f"furthest from the mean of its cell is {by} ({worst.filesystem}, {worst.group}, block {worst.block})"
