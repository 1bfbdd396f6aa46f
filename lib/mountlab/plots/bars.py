"""The bar chart, for those who expect one: from zero, with its interval, and with every trial over it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from mountlab.core import names
from mountlab.core.groups import by_key
from mountlab.plots.axes import Rows, beside, filled, ink_dots, interval, row_figure
from mountlab.plots.base import Plot
from mountlab.plots.data import means_of, names_by_group
from mountlab.plots.svg import INK, say
from mountlab.plots.ticks import plain_ticks
from mountlab.plots.trials import counted_trials, span_title, trials_alt

_MOST_TICKS = 6


def plot_bars(
    measurements: pd.DataFrame,
    estimates: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str],
    workloads: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Plot:
    """Return the mean of each cell as a bar that starts at 0, its interval as a whisker, its counted trials as dots
    over it.

    `measurements` and `estimates`: frames of a Run; `filesystems` and `workloads` (labels): all of the sweep, in its
    order. A bar hides the distribution of its trials: `plot_trials` shows it. Raises InputError where no counted trial
    has the metric.
    `groups`: the workloads to draw, as `groups_of` names them; () draws all.
    """
    trials, marks, scale = counted_trials(measurements, metric, filesystems, groups)
    rows = Rows.of(names_by_group(trials, list(marks), workloads))
    means = [
        mean
        for mean in means_of(estimates, measurements, metric, scale)
        if (mean.group, mean.filesystem) in rows.places and math.isfinite(mean.mean)
    ]
    with row_figure(rows) as (figure, axes):
        values = by_key(((trial.group, trial.filesystem), trial.value / scale.factor) for trial in trials)
        lowest = min(0.0, *(min(members) for members in values.values()))
        highest = max([*map(max, values.values()), *(mean.mean for mean in means)])
        # The axis ends at the longest whisker, but where that is vast at half as far again as the data.
        whisker = max([highest, *(mean.high for mean in means if math.isfinite(mean.high))])
        axes.set_xlim(lowest, 1.03 * min(whisker, 1.5 * highest) if highest > 0 else 1.0)
        plain_ticks(axes.xaxis, _MOST_TICKS, decimals=9)
        for mean in means:
            y, colour = rows.places[mean.group, mean.filesystem], marks[mean.filesystem].colour
            (bar,) = axes.barh([y], [mean.mean], height=0.72, zorder=2, **filled(colour, 0.55))
            say(bar, [mean.label(scale.unit)])
            interval(axes, y, mean.low, mean.high, colour=INK, width=1.2)
            beside(axes, 1, y, mean.figures.value)
        for key, y in rows.places.items():
            ink_dots(axes, values[key], y, zorder=4)
        axes.set_xlabel(f"{names.metric_noun(metric)}, {scale.unit}; dots: trials")
    return Plot(figure, span_title(means, metric, scale), trials_alt(means, metric, scale))
