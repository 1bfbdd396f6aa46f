"""The empirical distribution of the trials of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes

from mountlab.core import names, numbers
from mountlab.core.groups import by_key
from mountlab.core.units import Scale
from mountlab.plots.axes import dots, in_alt
from mountlab.plots.base import Plot
from mountlab.plots.data import TrialPoint, ordered
from mountlab.plots.panels import (
    figure_of,
    have_one_scale,
    name_axes,
    own_x_scale,
    panel_figure,
    shown_of,
    value_limits,
)
from mountlab.plots.style import Mark
from mountlab.plots.ticks import plain_ticks
from mountlab.plots.trials import counted_trials


def plot_distribution(
    measurements: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str],
    workloads: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Plot:
    """Return the share of a cell's counted trials that gave at most so much: a step a trial, one panel a workload.

    Two modes, outliers and overlap show here, which a mean hides. `measurements`: a Run's frame; `filesystems` and
    `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has the metric.
    `groups`: the workloads to draw, as `groups_of` names them; () draws all.
    """
    trials, marks, scale = counted_trials(measurements, metric, filesystems, groups)
    shown, more = shown_of(ordered({trial.group for trial in trials}, workloads))
    values = {title: [trial.value / scale.factor for trial in trials if trial.group == title] for title in shown}
    shared = have_one_scale(list(values.values()))
    with panel_figure(shown, sharex=shared) as panels:
        for title, axes in panels.items():
            _draw(axes, [trial for trial in trials if trial.group == title], marks, scale)
            within = [value for sample in values.values() for value in sample] if shared else values[title]
            value_limits(axes, within, [], way="x", zero=False)
            axes.set_ylim(0, 105)
            plain_ticks(axes.yaxis)
            if not shared:
                own_x_scale(axes)
        name_axes(panels, x=f"{names.metric_noun(metric)}, {scale.unit}{more}", y="trials up to there, %")
    legend = {name: mark for name, mark in marks.items() if any(trial.filesystem == name for trial in trials)}
    overlaps = _overlaps(trials, scale)
    title = f"{names.metric_heading(metric)} of {numbers.counted(len(trials), 'trial')}: {overlaps[0]}"
    return Plot(figure_of(panels), title, f"The distribution of the trials of each cell. {in_alt(overlaps)}", legend)


def _draw(axes: Axes, trials: Sequence[TrialPoint], marks: Mapping[str, Mark], scale: Scale) -> None:
    """A step a trial, and a dot on it."""
    for name in dict.fromkeys(trial.filesystem for trial in trials):
        values = sorted(trial.value / scale.factor for trial in trials if trial.filesystem == name)
        shares = [100 * place / len(values) for place in range(len(values) + 1)]
        axes.step([values[0], *values], shares, where="post", color=marks[name].colour, linewidth=1.2)
        dots(axes, values, shares[1:], marks[name], size=3.4)


def _overlaps(trials: Sequence[TrialPoint], scale: Scale) -> list[str]:
    """In how many workloads the trials of two file systems lie among each other; and the range of each cell."""
    lines, several, overlapping = [], 0, 0
    for group, members in by_key((trial.group, trial) for trial in trials).items():
        values = by_key((trial.filesystem, trial.value) for trial in members)
        ranges = {name: (min(trials_of_cell), max(trials_of_cell)) for name, trials_of_cell in values.items()}
        for name, ends in ranges.items():
            low, high = (numbers.number(end / scale.factor, 3) for end in ends)
            lines.append(f"{name}, {group}: {low} to {high} {scale.unit}")
        several += len(ranges) > 1
        overlapping += any(later[0] <= earlier[1] for earlier, later in pairwise(sorted(ranges.values())))
    if not several:
        return lines
    if not overlapping:
        where = " in any workload" if several > 1 else ""
        return [f"no trial of one file system lies in the range of another{where}", *lines]
    where = f" in {overlapping} of {several} workloads" if several > 1 else ""
    return [f"the trials of some file systems overlap{where}", *lines]
