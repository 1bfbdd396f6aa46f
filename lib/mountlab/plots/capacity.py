"""Latency over the rate at which requests arrive: how much a file system takes before an objective fails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

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

_BAR_STEP_PT = 7.0
"""From the bar of one file system down to that of the next: the first lies on the line of the objective."""
_TRIAL_SIZE, _CAPACITY_SIZE = 3.4, 4.6


def plot_capacity(curves: Sequence[LoadCurve], *, filesystems: Sequence[str]) -> Plot:
    """Return latency over the arrival rate, a panel for each workload and objective, a colour for each file system.

    A small mark is a trial, hollow where its schedule of arrivals was not kept. The line joins the percentiles of the
    objective by rate, the paler one the medians. The objective is a horizontal line; on it, or below it where several
    file systems stand, lies the interval of each capacity, with its estimate. `filesystems`: all of the sweep, in its
    order. Raises InputError where no trial has the latency of an objective.
    """
    known = [curve for curve in curves if any(_latency(curve, each) > 0 for each in curve.trials)]
    require(known, "open-loop trial")
    marks = marks_of(filesystems, {curve.filesystem for curve in known})
    present = {name: mark for name, mark in marks.items() if any(curve.filesystem == name for curve in known)}
    titles = _titles(known)
    shown, more = shown_of(list(titles))
    scale = scale_for("s", max(curve.limit for curve in known))
    with panel_figure(shown) as panels:
        for title, axes in panels.items():
            _scale_axes(axes, known, scale)
            for curve in titles[title]:
                _draw(axes, curve, marks[curve.filesystem], scale)
        name_axes(panels, x=f"requests that arrive per second{more}", y=f"latency from when due, {scale.unit}")
    for title, axes in panels.items():  # their height is settled by now
        _objective(axes, titles[title], marks, scale)
    lines = [_said(curve, workload=len({each.workload_label for each in known}) > 1) for curve in known]
    return Plot(figure_of(panels), _finding(known), f"Latency over the arrival rate. {in_alt(lines)}", present)


def _titles(curves: Sequence[LoadCurve]) -> dict[str, list[LoadCurve]]:
    """Return the panels: 'mail: read p99 ≤ 5 ms' to the curves in it."""
    return by_key((f"{curve.workload_label}: {curve.text}", curve) for curve in curves)


def _latency(curve: LoadCurve, trial: LoadTrial) -> float:
    return trial.latencies.get(curve.metric, math.nan)


def _scale_axes(axes: Axes, curves: Sequence[LoadCurve], scale: Scale) -> None:
    """The same in all panels, so that the trials of all of them are inside."""
    rates = [each.asked for curve in curves for each in curve.trials]
    values = [_latency(curve, each) for curve in curves for each in curve.trials]
    values += [point.middle for curve in curves for point in curve.points] + [curve.limit for curve in curves]
    known = [value / scale.factor for value in values if value > 0]
    bounds = [bound for curve in curves for bound in (curve.capacity.low, curve.capacity.high) if bound > 0]
    log_limits(axes, *reach(rates, bounds, log=True), way="x")
    log_limits(axes, min(known), max(known))


def _draw(axes: Axes, curve: LoadCurve, mark: Mark, scale: Scale) -> None:
    """The trials, and the lines through them by rate."""
    for kept in (True, False):
        own = [each for each in curve.trials if each.kept == kept and _latency(curve, each) > 0]
        xs, ys = [each.asked for each in own], [_latency(curve, each) / scale.factor for each in own]
        look = {"markeredgewidth": 0, "alpha": 0.6} if kept else {"markerfacecolor": "none", "markeredgewidth": 0.8}
        dots(axes, xs, ys, mark, size=_TRIAL_SIZE, **look)
    rates = [point.rate for point in curve.points]
    axes.plot(rates, [point.latency / scale.factor for point in curve.points], color=mark.colour, linewidth=1.4)
    axes.plot(
        rates, [point.middle / scale.factor for point in curve.points], color=mark.colour, linewidth=1.0, alpha=0.45
    )


def _objective(axes: Axes, curves: Sequence[LoadCurve], marks: Mapping[str, Mark], scale: Scale) -> None:
    """The line of the objective with its text, and the capacities on it, one below the other."""
    limit = curves[0].limit / scale.factor
    axes.axhline(limit, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    axes.annotate(
        curves[0].text,
        (0.01, limit),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=SMALL_PT,
    )
    for place, curve in enumerate(curves):
        y, mark, capacity = _lower(axes, limit, place), marks[curve.filesystem], curve.capacity
        low = capacity.low if capacity.low > 0 else -math.inf  # open at both ends it says nothing
        interval(axes, y, low, capacity.high, colour=mark.colour, width=2.6)
        if _bounded(capacity):
            dot(axes, capacity.mean, y, mark, size=_CAPACITY_SIZE)


def _lower(axes: Axes, y: float, place: int) -> float:
    """Return what stands so many steps below a value, on a logarithmic axis."""
    figure = axes.get_figure(root=True)
    high = float(figure.get_size_inches()[1]) if figure is not None else 1.0
    bottom, top = axes.get_ylim()
    step = _BAR_STEP_PT / (72 * high * axes.get_position().height)
    return float(y * (bottom / top) ** (place * step))


def _bounded(capacity: Estimate) -> bool:
    return capacity.low > 0 and math.isfinite(capacity.high) and math.isfinite(capacity.mean)


# ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _finding(curves: Sequence[LoadCurve]) -> str:
    """'mail: read p99 ≤ 5 ms holds up to 3 140 [3 010, 3 280] requests/s on ext4 and 3 800 [3 650, 3 960] on xfs', of
    the workload in which they differ most."""
    groups = by_key((curve.workload_label, curve) for curve in curves)
    own = max(groups.values(), key=_difference)
    capacities = {curve.filesystem: curve.capacity for curve in own}
    objective = numbers.listed(list(dict.fromkeys(curve.text for curve in own)))
    if not any(map(_bounded, capacities.values())):
        return f"{own[0].workload_label}: latency over the arrival rate, with {objective}"
    held = [f"{_figures(each)} on {name}" for name, each in capacities.items() if _bounded(each)]
    held[0] = held[0].replace(" on ", " requests/s on ", 1)
    verb = "holds" if len({curve.metric for curve in own}) == 1 else "hold"
    return f"{own[0].workload_label}: {objective} {verb} up to {numbers.listed(held)}"


def _difference(curves: Sequence[LoadCurve]) -> float:
    known = [curve.capacity.mean for curve in curves if _bounded(curve.capacity)]
    return max(known) / min(known) if known else 0.0


def _figures(capacity: Estimate) -> str:
    return str(numbers.count_figures(capacity.mean, capacity.low, capacity.high))


def _said(curve: LoadCurve, *, workload: bool) -> str:
    """'ext4: read p99 from 0.81 ms at 500 requests/s to 210 ms at 4 000, capacity 3 140 [3 010, 3 280] requests/s'."""
    return f"{curve.filesystem}{f', {curve.workload_label}' if workload else ''}: {', '.join(_parts(curve))}"


def _parts(curve: LoadCurve) -> Iterator[str]:
    if curve.points:
        first, last = curve.points[0], curve.points[-1]
        ends = [f"{numbers.quantity(p.latency, 's')} at {numbers.number(p.rate, 0)} requests/s" for p in (first, last)]
        yield f"{curve.direction} {percentile_text(curve.percentile)} {' to '.join(dict.fromkeys(ends))}"
    if _bounded(curve.capacity):
        yield f"capacity {_figures(curve.capacity)} requests/s"
