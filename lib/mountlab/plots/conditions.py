"""Ratios to the baseline in each state, or beside each neighbour: lines that cross 1 are rankings that flip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes

from mountlab.core import names
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.plots.axes import dot, in_alt, log_limits, reach, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.panels import figure_of, label_ends, name_axes, panel_figure, shown_of
from mountlab.plots.style import UNUSABLE, Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.texts import short
from mountlab.plots.ticks import log_number_ticks, set_ticks
from mountlab.wording import verdicts

_SIDE_BY_SIDE = 0.24
"""Lines stand apart by this share of the distance of two levels, all together."""


def plot_conditions(
    comparisons: Sequence[Comparison],
    condition: str,
    *,
    levels: Sequence[str],
    finding: str,
    filesystems: Sequence[str],
) -> Plot:
    """Return the ratios to the baseline at each level of a condition, on a log axis, a line for each file system and a
    panel for each workload and figure. Undecided is hollow, and grey what is not to be used.

    `levels`: in their order, the reference first. `finding`: the title. `filesystems`: all of the sweep, in its order.
    Raises InputError where no comparison has a ratio.
    """
    drawn = [c for c in comparisons if c.factors.get(condition) in levels and verdicts.effect(c) >= 0]
    require(drawn, f"ratio by {condition}")
    present = {comparison.candidate for comparison in drawn}
    marks = {name: mark for name, mark in marks_of(filesystems, present).items() if name in present}
    by_panel = by_key((_panel(comparison, condition, drawn), comparison) for comparison in drawn)
    shown, more = shown_of(list(by_panel))
    with panel_figure(shown) as panels:
        intervals = [comparison.verdict_interval for comparison in drawn]
        bounds = [bound for interval in intervals for bound in (interval.low, interval.high) if bound > 0]
        low, high = reach([1.0, *(comparison.ratio for comparison in drawn)], bounds, log=True)
        for title, axes in panels.items():
            log_limits(axes, low, high, way="y")
            log_number_ticks(axes.yaxis)
            set_ticks(axes.xaxis, list(range(len(levels))), [short(level, 14) for level in levels])
            axes.set_xlim(-0.4, len(levels) - 0.6)
            axes.axhline(1, color=INK, linewidth=1.0)
            _draw(axes, by_panel[title], condition, levels, marks)
        hollow = "; hollow: undecided" if any(c.verdict == "undecided" for c in drawn) else ""
        name_axes(panels, x=f"{condition}{hollow}{more}", y=f"ratio to {short(drawn[0].baseline, 20)}")
        if alone := len(panels) == 1:
            ordered = sorted(drawn, key=lambda comparison: levels.index(comparison.factors[condition]))
            label_ends(panels[shown[0]], {c.candidate: c.ratio for c in ordered}, marks)
    lines = [
        f"{c.candidate}, {verdicts.workload_of(c)}: {verdicts.compared_figures(c)} {c.verdict}"
        for members in by_panel.values()
        for c in members
    ]
    alt = f"Ratios to {drawn[0].baseline} by {condition}. {in_alt(lines)}"
    return Plot(figure_of(panels), finding, alt, {} if alone else marks)


def _panel(comparison: Comparison, condition: str, among: Sequence[Comparison]) -> str:
    """Return the workload without the condition, and the figure where there are several."""
    others = {name: level for name, level in comparison.factors.items() if name != condition}
    label = names.workload_label(comparison.workload, others)
    figures = {(one.metric, one.label) for one in among}
    return f"{label}: {names.metric_noun(comparison.metric, comparison.label)}" if len(figures) > 1 else label


def _draw(
    axes: Axes, members: Sequence[Comparison], condition: str, levels: Sequence[str], marks: Mapping[str, Mark]
) -> None:
    present = [name for name in marks if any(comparison.candidate == name for comparison in members)]
    for place, name in enumerate(present):
        shift = _SIDE_BY_SIDE * (place - (len(present) - 1) / 2) / max(len(present), 2)
        line = sorted(
            (comparison for comparison in members if comparison.candidate == name),
            key=lambda comparison: levels.index(comparison.factors[condition]),
        )
        xs = [levels.index(comparison.factors[condition]) + shift for comparison in line]
        axes.plot(xs, [comparison.ratio for comparison in line], color=marks[name].colour, linewidth=1.0, alpha=0.6)
        for x, comparison in zip(xs, line, strict=True):
            unusable, shown = comparison.verdict == "not usable", comparison.verdict_interval
            mark = replace(marks[name], colour=UNUSABLE) if unusable else marks[name]
            upright(axes, x, shown.low, shown.high, colour=mark.colour)
            text = f"{name}, {verdicts.workload_of(comparison)}: {verdicts.compared_figures(comparison)}"
            hollow = unusable or comparison.verdict == "undecided"
            dot(axes, x, comparison.ratio, mark, hollow=hollow, text=text)
