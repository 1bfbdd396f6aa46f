"""Many runs of one sweep: how its ratios, and its figures, went from run to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.plots.axes import Rows, dots, in_alt, row_figure, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.panels import LINED
from mountlab.plots.ratios import draw_ratio, ratio_axis
from mountlab.plots.style import STYLE, WIDTH_IN, Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.texts import short
from mountlab.plots.ticks import plain_ticks, set_ticks
from mountlab.wording import verdicts

_MOST_PANELS, _MOST_ROWS = 6, 28
_PANEL_IN, _APART = 0.85, 0.12
_REACH = 0.25


@dataclass(frozen=True)
class Relative:
    """One figure of one cell in one run, over its mean over the runs: 1.02 is 2 % above."""

    group: str
    filesystem: str
    run: int
    """Its place among the runs, from 0."""
    value: float
    low: float
    high: float


def plot_answer_over_runs(
    answers: Mapping[str, Sequence[Comparison | None]],
    runs: Sequence[str],
    *,
    title: str,
    smallest_effect: float = 0.02,
    filesystems: Sequence[str],
) -> Plot:
    """Return the ratio of each comparison in every run, one row a run below the name of the comparison; undecided is
    hollow.

    `answers`: name of a comparison to the verdict of each run, None where it has none. The first that fit are
    drawn. `filesystems`: all of the sweep, in its order. Raises InputError where there is no ratio.
    """
    ratios = {
        name: {run: c for run, c in zip(runs, on_each, strict=True) if c and verdicts.effect(c) >= 0}
        for name, on_each in answers.items()
    }
    ratios = dict([(name, by_run) for name, by_run in ratios.items() if by_run][: room_for(len(runs))])
    flat = [ratio for by_run in ratios.values() for ratio in by_run.values()]
    require(flat, "ratio")
    rows = Rows.of({name: list(by_run) for name, by_run in ratios.items()})
    marks = marks_of(filesystems, {ratio.candidate for ratio in flat})
    with row_figure(rows) as (figure, axes):
        ratio_axis(axes, rows, [ratio.ratio for ratio in flat], flat, flat[0].baseline, smallest_effect)
        for name, by_run in ratios.items():
            for run, ratio in by_run.items():
                draw_ratio(axes, rows.places[name, run], ratio, marks[ratio.candidate])
    lines = [
        f"{name}: " + ", ".join(f"{run} {verdicts.compared_figures(c)}" for run, c in by_run.items())
        for name, by_run in ratios.items()
    ]
    left = len(answers) - len(ratios)
    return Plot(figure, title, f"Ratios in each run. {in_alt(lines)}" + (f" {left} more in the table." if left else ""))


def room_for(runs: int) -> int:
    """Return how many comparisons of so many runs one picture has room for."""
    return max(1, _MOST_ROWS // runs)


def plot_over_runs(
    points: Sequence[Relative], runs: Sequence[str], *, title: str, filesystems: Sequence[str], noun: str = "run"
) -> Plot:
    """Return each figure in every run, over its mean over all runs, with the interval from the trials inside the run.

    One panel a group (workload and metric). Where intervals of one line are far apart, runs differ by more than their
    trials explain. `filesystems`: all of the sweep, in its order; `noun`: what the runs stand for. Raises InputError
    where there is nothing to draw.
    """
    require(points, "figure of more than one run")
    groups = list(dict.fromkeys(point.group for point in points))
    shown = groups[:_MOST_PANELS]
    marks = marks_of(filesystems, {point.filesystem for point in points})
    present = [name for name in marks if any(point.filesystem == name for point in points)]
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, _PANEL_IN * len(shown)))
        panels = figure.subplots(len(shown), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for group in shown:
            _limit(panels[0], [point for point in points if point.group == group])  # all share one axis
        for axes, group in zip(panels, shown, strict=True):
            members = [point for point in points if point.group == group]
            _draw_panel(axes, members, group, {name: marks[name] for name in present})
        panels[-1].set_xlim(-0.5, len(runs) - 0.5)
        set_ticks(panels[-1].xaxis, range(len(runs)), [short(run, 20) for run in runs])
        panels[-1].set_xlabel(f"{noun}, in the order given")
        lay_out(figure, _PANEL_IN)
    more = f" {len(groups) - len(shown)} more in the tables." if len(groups) > len(shown) else ""
    lines = []
    for (name, group), values in by_key(((point.filesystem, point.group), point.value) for point in points).items():
        low, high = numbers.number(min(values), 2), numbers.number(max(values), 2)
        lines.append(f"{name}, {group}: {low} to {high} times its mean")
    alt = f"Each figure in each run, over its mean over all runs. {in_alt(lines)}{more}"
    return Plot(figure, title, alt, {name: marks[name] for name in present})


def _draw_panel(axes: Axes, points: Sequence[Relative], group: str, marks: Mapping[str, Mark]) -> None:
    """The lines of one group, a little apart from each other so that intervals do not cover each other."""
    axes.axhline(1, color=INK, linewidth=0.8)
    for place, (name, mark) in enumerate(marks.items()):
        line = sorted((point for point in points if point.filesystem == name), key=lambda point: point.run)
        shift = _APART * (place - (len(marks) - 1) / 2)
        x = [point.run + shift for point in line]
        axes.plot(x, [point.value for point in line], color=mark.colour, linewidth=0.8, alpha=0.6)
        for at, point in zip(x, line, strict=True):
            upright(axes, at, point.low, point.high, colour=mark.colour)
        dots(axes, x, [point.value for point in line], mark, size=4.5)
    title_panel(axes, group)
    axes.set_ylabel("× mean")
    plain_ticks(axes.yaxis)


def _limit(axes: Axes, points: Sequence[Relative]) -> None:
    """Wide enough for every point, and for intervals that are not vast."""
    values = [point.value for point in points]
    bounds = [
        b
        for point in points
        for b in (point.low, point.high)
        if abs(b - point.value) <= max(_REACH, abs(point.value - 1))
    ]
    low, high = min([*values, *bounds, 0.99]), max([*values, *bounds, 1.01])
    old = axes.get_ylim() if axes.get_autoscaley_on() is False else (low, high)
    room = 0.06 * (high - low)
    axes.set_ylim(min(low - room, old[0]), max(high + room, old[1]))
