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
from mountlab.core.groups import by_key
from mountlab.plots.axes import dots
from mountlab.plots.base import Plot, require
from mountlab.plots.data import TrialPoint, ordered, trials_of
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.panels import LINED, OWN, have_one_scale
from mountlab.plots.style import MANY_DOTS, STYLE, WIDTH_IN, Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.ticks import plain_ticks, set_ticks

_PANEL_IN = 0.75
_WARM, _TRACED = "W", "D"


def plot_run_order(
    measurements: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str],
    workloads: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Plot:
    """Return every trial of one metric in the order in which it ran, over the mean of its cell's counted trials.

    Steps, drift and warm-up show alike for fast and slow cells. Trials of the warm-up, and diagnostic ones, are hollow;
    bands are blocks.
    `measurements`: a Run's frame in the order of the run, or with a column `seq` that gives it. `filesystems` and
    `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has the metric.
    `groups`: the workloads to draw, as `groups_of` names them; () draws all.
    """
    trials = _relative(trials_of(measurements, metric, groups))
    require(trials, f"counted trial with {metric}")
    marks = marks_of(filesystems, {trial.filesystem for trial in trials})
    groups = ordered({trial.group for trial in trials}, workloads)
    inside = {group: [trial for trial in trials if trial.group == group] for group in groups}
    shared = have_one_scale([[trial.value for trial in members] for members in inside.values()])
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, _PANEL_IN * len(groups)))
        panels = figure.subplots(len(groups), 1, sharex=True, sharey=shared, squeeze=False)[:, 0]
        for axes, (group, members) in zip(panels, inside.items(), strict=True):
            _draw_bands(axes, trials)
            _draw_order(axes, members, marks, raster=len(trials) > MANY_DOTS)
            title_panel(axes, group, note="" if shared else OWN)
        middles, texts = [], []
        for block in _blocks(trials):
            middles.append((min(trial.place for trial in block) + max(trial.place for trial in block)) / 2)
            texts.append(_letter(block[0]) if all(trial.warmup for trial in block) else str(block[0].block))
        set_ticks(panels[-1].xaxis, middles, texts)
        panels[-1].tick_params(axis="x", which="both", length=0)
        letters = {_letter(trial) for trial in trials if trial.warmup}
        named = {_WARM: "warm-up", _TRACED: "diagnostic"}
        hollow = "".join(f"; {letter}, hollow: {what}" for letter, what in named.items() if letter in letters)
        panels[-1].set_xlabel(f"block; trials in the order of the run{hollow}")
        lay_out(figure, _PANEL_IN)
    worst = max((trial for trial in trials if not trial.warmup), key=lambda trial: abs(trial.value - 1))
    by = f"{'+' if worst.value >= 1 else numbers.MINUS}{numbers.percent(abs(worst.value - 1))}"
    finding = f"furthest from the mean of its cell is {by} ({worst.filesystem}, {worst.group}, block {worst.block})"
    alt = f"Each trial's {names.metric_noun(metric)} over the mean of its cell, by run order: {finding}."
    present = {trial.filesystem for trial in trials}
    legend = {name: mark for name, mark in marks.items() if name in present}
    return Plot(figure, f"{names.metric_heading(metric)} in run order: {finding}", alt, legend)


def _letter(trial: TrialPoint) -> str:
    """Return what stands below a block that is not counted."""
    return _TRACED if trial.diagnostic else _WARM


def _relative(trials: Sequence[TrialPoint]) -> list[TrialPoint]:
    """Return the trials with `value` over the mean of their cell's counted trials; without those of cells that have
    none."""
    values = by_key(((trial.filesystem, trial.group), trial.value) for trial in trials if not trial.warmup)
    means = {key: fmean(counted) for key, counted in values.items()}
    keyed = [(trial, means.get((trial.filesystem, trial.group), 0.0)) for trial in trials]
    return [replace(trial, value=trial.value / mean) for trial, mean in keyed if mean]


def _draw_bands(axes: Axes, trials: Sequence[TrialPoint]) -> None:
    """Every other block shaded, and the line of the means."""
    for block in _blocks(trials)[::2]:
        places = [trial.place for trial in block]
        axes.axvspan(min(places) - 0.5, max(places) + 0.5, color=INK, alpha=0.07, linewidth=0)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.margins(y=0.12)


def _blocks(trials: Sequence[TrialPoint]) -> list[list[TrialPoint]]:
    """Return the trials of each block; diagnostic ones, which have numbers of their own, last."""
    keys = sorted({_block_key(trial) for trial in trials})
    return [[trial for trial in trials if _block_key(trial) == key] for key in keys]


def _block_key(trial: TrialPoint) -> tuple[bool, str, int]:
    kind = trial.trial_id[:1] if trial.diagnostic else ""  # two series of diagnostic blocks
    return trial.diagnostic, kind, trial.block


def _draw_order(axes: Axes, trials: Sequence[TrialPoint], marks: Mapping[str, Mark], *, raster: bool) -> None:
    for name in dict.fromkeys(trial.filesystem for trial in trials):
        points, mark = [trial for trial in trials if trial.filesystem == name], marks[name]
        axes.plot([t.place for t in points], [t.value for t in points], color=mark.colour, linewidth=0.8, alpha=0.6)
        for hollow in (False, True):
            some = [trial for trial in points if trial.warmup == hollow]
            xs, ys = [t.place for t in some], [t.value for t in some]
            face = "none" if hollow else mark.colour
            texts = [] if raster else [trial.label(1, "× mean") for trial in some]
            dots(axes, xs, ys, mark, size=3.8, texts=texts, markerfacecolor=face, rasterized=raster)
    axes.set_ylabel("× mean")
    plain_ticks(axes.yaxis, 3)
