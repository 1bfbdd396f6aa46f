"""Latency over the rate at which requests arrive: how much a file system takes before an objective fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from mountlab.analysis.load_curve import LoadCurve, LoadTrial
from mountlab.core import numbers
from mountlab.core.findings import Estimate
from mountlab.core.groups import by_key
from mountlab.core.objectives import percentile_text
from mountlab.core.units import Scale, scale_for
from mountlab.plots.axes import dot, dots, in_alt, interval, log_limits, reach
from mountlab.plots.base import Plot, require
from mountlab.plots.panels import figure_of, name_axes, panel_figure, shown_of
from mountlab.plots.style import SMALL_PT, Mark, marks_of
from mountlab.plots.svg import INK

_BAR_STEP_PT, _ABOVE_BARS_PT, _NAME_PT = 6.0, 5.0, 11.0
"""From the bar of one capacity down to that of the next, in a strip along the axis; above the first; and for the name
of the strip, which a panel beside others has no room for."""
_TRIAL_SIZE, _CAPACITY_SIZE = 3.4, 4.6


def plot_capacity(curves: Sequence[LoadCurve], *, filesystems: Sequence[str]) -> Plot:
    """Return latency over the arrival rate, a panel for each workload and objective, a colour for each file system.

    A small mark is a trial, hollow where its schedule of arrivals was not kept. The line joins the percentiles of the
    objective by rate, the paler one the medians. The objective is a horizontal line. In a strip along the rates, below
    all latencies, lies the interval of each capacity, with its estimate. `filesystems`: all of the sweep, in its
    order. Raises InputError where no trial has the latency of an objective.
    """
    drawn = [curve for curve in curves if any(_latency(curve, trial) > 0 for trial in curve.trials)]
    require(drawn, "open-loop trial")
    marks = marks_of(filesystems, {curve.filesystem for curve in drawn})
    present = {name: mark for name, mark in marks.items() if any(curve.filesystem == name for curve in drawn)}
    titles = by_key((f"{curve.workload_label}: {curve.text}", curve) for curve in drawn)
    panel_titles, more = shown_of(list(titles))
    scale = scale_for("s", max(curve.limit for curve in drawn))
    with panel_figure(panel_titles) as panels:
        for title, axes in panels.items():
            if len(panel_titles) == 1:  # what the title of the figure says
                axes.set_title("", loc="left")
            _scale_axes(axes, drawn, scale)
            for curve in titles[title]:
                _draw(axes, curve, marks[curve.filesystem], scale)
        bars = "; bars: capacities" if len(panels) > 1 else ""
        name_axes(panels, x=f"requests that arrive per second{bars}{more}", y=f"latency from when due, {scale.unit}")
    known = {title: list(filter(_is_known, titles[title])) for title in panels}
    above_pt = _ABOVE_BARS_PT + (_NAME_PT if len(panels) == 1 else 0.0)
    first, most = next(iter(panels.values())), max(map(len, known.values()))
    bottom, point = _add_strip(first, above_pt + _BAR_STEP_PT * most if most else 0.0)
    for title, axes in panels.items():
        _objective(axes, titles[title], scale)
        _capacities(axes, known[title], marks, bottom, bottom / point**above_pt, point**_BAR_STEP_PT)
    _say(first, "pale lines: medians", first.get_ylim()[1], {"xytext": (0, -2), "va": "top"})
    if most and len(panels) == 1:
        _say(first, "capacity with its interval", bottom, {"xytext": (0, -2), "va": "top"})
    several = len({curve.workload_label for curve in drawn}) > 1
    lines = []
    for curve in drawn:  # 'ext4: read p99 0.81 ms at 500 requests/s to 210 ms at 4 000 requests/s, capacity ...'
        parts = []
        if curve.points:
            ends = (curve.points[0], curve.points[-1])
            shown = [f"{numbers.quantity(p.latency, 's')} at {numbers.number(p.rate, 0)} requests/s" for p in ends]
            parts.append(f"{curve.direction} {percentile_text(curve.percentile)} {' to '.join(dict.fromkeys(shown))}")
        if _bounded(curve.capacity):
            parts.append(f"capacity {_figures(curve.capacity)} requests/s")
        lines.append(f"{curve.filesystem}{f', {curve.workload_label}' if several else ''}: {', '.join(parts)}")
    alt = f"Latency over the arrival rate, the medians in pale lines. {in_alt(lines)}"
    return Plot(figure_of(panels), _finding(drawn), alt, present)


def _latency(curve: LoadCurve, trial: LoadTrial) -> float:
    return trial.latencies.get(curve.metric, math.nan)


def _scale_axes(axes: Axes, curves: Sequence[LoadCurve], scale: Scale) -> None:
    """The same in all panels, so that the trials of all of them are inside."""
    rates = [trial.asked for curve in curves for trial in curve.trials]
    values = [_latency(curve, trial) for curve in curves for trial in curve.trials]
    values += [point.middle for curve in curves for point in curve.points] + [curve.limit for curve in curves]
    positive = [value / scale.factor for value in values if value > 0]
    bounds = [bound for curve in curves for bound in (curve.capacity.low, curve.capacity.high) if bound > 0]
    log_limits(axes, *reach(rates, bounds, log=True), way="x")
    log_limits(axes, min(positive), max(positive))


def _draw(axes: Axes, curve: LoadCurve, mark: Mark, scale: Scale) -> None:
    """The trials, and the lines through them by rate."""
    for kept in (True, False):
        trials = [trial for trial in curve.trials if trial.on_schedule == kept and _latency(curve, trial) > 0]
        xs, ys = [trial.asked for trial in trials], [_latency(curve, trial) / scale.factor for trial in trials]
        look = {"markeredgewidth": 0} if kept else {"markerfacecolor": "none", "markeredgewidth": 0.8}
        dots(axes, xs, ys, mark, size=_TRIAL_SIZE, **look)
    rates = [point.rate for point in curve.points]
    percentiles = [point.latency / scale.factor for point in curve.points]
    medians = [point.middle / scale.factor for point in curve.points]
    axes.plot(rates, percentiles, color=mark.colour, linewidth=1.4)
    axes.plot(rates, medians, color=mark.colour, linewidth=1.0, alpha=0.45)


def _objective(axes: Axes, curves: Sequence[LoadCurve], scale: Scale) -> None:
    """The line of the objective with its name, on the side with more room."""
    limit = curves[0].limit / scale.factor
    axes.axhline(limit, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    bottom, top = axes.get_ylim()
    above = limit**2 < bottom * top  # the axis is logarithmic
    side: dict[str, Any] = {"xytext": (0, 3), "va": "bottom"} if above else {"xytext": (0, -3), "va": "top"}
    _say(axes, "objective", limit, side)


def _is_known(curve: LoadCurve) -> bool:
    """Return whether a capacity is bounded on one side at least."""
    return curve.capacity.low > 0 or math.isfinite(curve.capacity.high)


def _add_strip(axes: Axes, strip_pt: float) -> tuple[float, float]:
    """Make room for capacities below all latencies, once the height of the panels is settled. Return where it begins,
    and the factor of a point on the axis."""
    bottom, top = axes.get_ylim()
    height_pt = 72 * figure_of({"": axes}).get_figheight() * axes.get_position().height
    point = float((top / bottom) ** (1 / (height_pt - strip_pt)))
    axes.set_yticks([tick for tick in axes.get_yticks() if bottom <= tick <= top])
    axes.set_ylim(bottom / point**strip_pt, top)
    return bottom, point


def _capacities(
    axes: Axes, curves: Sequence[LoadCurve], marks: Mapping[str, Mark], bottom: float, y: float, step: float
) -> None:
    """The capacities from `y` down, a factor of `step` apart, below all latencies, which end at `bottom`."""
    axes.axhline(bottom, color=INK, linewidth=0.6, alpha=0.5)
    axes.spines["left"].set_bounds(bottom, axes.get_ylim()[1])
    for curve in curves:
        mark, capacity = marks[curve.filesystem], curve.capacity
        low = capacity.low if capacity.low > 0 else -math.inf
        interval(axes, y, low, capacity.high, colour=mark.colour, width=2.6)
        if _bounded(capacity):
            dot(axes, capacity.mean, y, mark, size=_CAPACITY_SIZE)
        y /= step


def _say(axes: Axes, text: str, y: float, side: Mapping[str, Any]) -> None:
    where: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate(text, (0.01, y), fontsize=SMALL_PT, color=INK, **side, **where)


def _bounded(capacity: Estimate) -> bool:
    return capacity.low > 0 and math.isfinite(capacity.high) and math.isfinite(capacity.mean)


# ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _finding(curves: Sequence[LoadCurve]) -> str:
    """'mail: read p99 ≤ 5 ms holds up to 3 140 [3 010, 3 280] requests/s on ext4 and 3 800 [3 650, 3 960] on xfs', of
    the workload in which they differ most."""

    def difference(members: Sequence[LoadCurve]) -> float:
        means = [curve.capacity.mean for curve in members if _bounded(curve.capacity)]
        return max(means) / min(means) if means else 0.0

    widest = max(by_key((curve.workload_label, curve) for curve in curves).values(), key=difference)
    capacities = {curve.filesystem: curve.capacity for curve in widest}
    objective = numbers.listed(list(dict.fromkeys(curve.text for curve in widest)))
    if not any(map(_bounded, capacities.values())):
        return f"{widest[0].workload_label}: latency over the arrival rate, with {objective}"
    names = by_key((_figures(capacity), name) for name, capacity in capacities.items() if _bounded(capacity))
    held = [f"{figures} on {numbers.listed(alike)}" for figures, alike in names.items()]
    held[0] = held[0].replace(" on ", " requests/s on ", 1)
    verb = "holds" if len({curve.metric for curve in widest}) == 1 else "hold"
    return f"{widest[0].workload_label}: {objective} {verb} up to {numbers.listed(held)}"


def _figures(capacity: Estimate) -> str:
    return str(numbers.count_figures(capacity.mean, capacity.low, capacity.high))
