"""Every trial of a metric as a dot, with the mean and the interval of its cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from mountlab.core import names
from mountlab.core.units import Scale
from mountlab.plots.axes import Rows, beside, dots, in_alt, interval, log_limits, reach, row_figure
from mountlab.plots.base import Plot, require
from mountlab.plots.data import MeanPoint, TrialPoint, means_of, names_by_group, scale_of, trials_of
from mountlab.plots.style import MANY_DOTS, Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.ticks import plain_ticks

_MOST_TICKS = 6


def plot_trials(
    measurements: pd.DataFrame,
    estimates: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str],
    workloads: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Plot:
    """Return every counted trial of one metric as a dot, with the mean and interval of its cell from `estimates`.

    `measurements` and `estimates`: frames of a Run. Dots of a row stand apart in the order of their blocks.
    `filesystems` and `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has
    the metric.
    `groups`: the workloads to draw, as `groups_of` names them; () draws all.
    """
    trials, marks, scale = counted_trials(measurements, metric, filesystems, groups)
    rows = Rows.of(names_by_group(trials, list(marks), workloads))
    means = means_of(estimates, measurements, metric, scale)
    means = [mean for mean in means if (mean.group, mean.filesystem) in rows.places]
    with row_figure(rows) as (figure, axes):
        _draw_trials(axes, trials, rows, marks, scale)
        value_axis(axes, [trial.value / scale.factor for trial in trials], means)
        log = " (log scale)" if axes.get_xscale() == "log" else ""
        axes.set(xlabel=f"{names.metric_noun(metric)}, {scale.unit}{log}", ylabel="")
        for mean in means:
            y = rows.places[mean.group, mean.filesystem]
            interval(axes, y, mean.low, mean.high, colour=INK, width=1.2)
            axes.plot([mean.mean], [y], "|", color=INK, markersize=9, markeredgewidth=1.6)
            beside(axes, 1, y, mean.figures.value)
    return Plot(figure, span_title(means, metric, scale), trials_alt(means, metric, scale))


def counted_trials(
    measurements: pd.DataFrame, metric: str, filesystems: Sequence[str], groups: Sequence[str]
) -> tuple[list[TrialPoint], dict[str, Mark], Scale]:
    """Return the trials that count, the mark of each file system, and the unit; the arguments are those of the plots.
    Raises InputError where no counted trial has the metric."""
    trials = [trial for trial in trials_of(measurements, metric, groups) if not trial.warmup]
    require(trials, f"counted trial with {metric}")
    marks = marks_of(filesystems, {trial.filesystem for trial in trials})
    return trials, marks, scale_of(measurements, metric)


def _draw_trials(axes: Axes, trials: Sequence[TrialPoint], rows: Rows, marks: Mapping[str, Mark], scale: Scale) -> None:
    """Moved up or down by block, not at random: equal values stay visible, and the picture stays the same."""
    first, last = min(trial.block for trial in trials), max(trial.block for trial in trials)
    for name in dict.fromkeys(trial.filesystem for trial in trials):
        points = [trial for trial in trials if trial.filesystem == name]
        xs = [trial.value / scale.factor for trial in points]
        shifts = [0.5 * ((trial.block - first) / max(last - first, 1) - 0.5) for trial in points]
        ys = [rows.places[trial.group, name] + shift for trial, shift in zip(points, shifts, strict=True)]
        raster = len(trials) > MANY_DOTS
        texts = [] if raster else [trial.label(scale.factor, scale.unit) for trial in points]
        dots(axes, xs, ys, marks[name], size=4.5, texts=texts, markeredgewidth=0, rasterized=raster)


def value_axis(axes: Axes, values: Sequence[float], means: Sequence[MeanPoint]) -> None:
    """Log where the values are spread over more than a factor of three, else linear over the data."""
    bounds = [bound for mean in means for bound in (mean.low, mean.high)]
    low, high = min(values), max(values)
    if low > 0 and high / low > 3:
        log_limits(axes, *reach(values, bounds, log=True), way="x")
    else:
        left, right = reach(values, bounds, log=False)
        room = 0.04 * (right - left) or 0.04 * abs(right) or 1.0
        axes.set_xlim(left - room, right + room)
        plain_ticks(axes.xaxis, _MOST_TICKS, decimals=9)


def span_title(means: Sequence[MeanPoint], metric: str, scale: Scale) -> str:
    """From the smallest mean to the largest, as a title."""
    heading = names.metric_heading(metric)
    means = [mean for mean in means if math.isfinite(mean.mean)]
    if not means:
        return f"{heading}: every trial"
    ends = (min(means, key=lambda m: m.mean), max(means, key=lambda m: m.mean))
    low, high = (f"{end.figures.value} {scale.unit} ({end.filesystem}, {end.group})" for end in ends)
    return f"{heading}: {low} to {high}" if len(means) > 1 else f"{heading}: {low}"


def trials_alt(means: Sequence[MeanPoint], metric: str, scale: Scale) -> str:
    """Return the mean and interval of every cell, for those who do not see the plot."""
    lines = [f"{mean.filesystem}, {mean.group}: {mean.figures}, n = {mean.n}" for mean in means]
    what = f"Every trial of {names.metric_noun(metric)} in {scale.unit}, with mean and interval of each cell."
    return f"{what} {in_alt(lines)}" if lines else what
