"""One trial of each file system from its beginning to its end: the tool's figures, and what the box did meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from mountlab.core import numbers
from mountlab.core.units import Scale, scale_for
from mountlab.plots.axes import in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.panels import figure_of, panel_figure, spread, value_limits
from mountlab.plots.series import thinned
from mountlab.plots.style import TEXT_PT, colour_of, glyphs_on
from mountlab.plots.texts import short

Points = Sequence[tuple[float, float]]
_MOST_NAMED = 4
"""So many file systems are named in a title; it counts more of them."""
_MOST_POINTS = 60
"""Of one line: a panel is half as wide as a figure."""
_QUIET = 0.005
"""A share that is never above it, half a per cent, is as good as 0."""


@dataclass(frozen=True)
class Quantity:
    """What one panel shows. The unit '%' is for shares."""

    title: str
    unit: str


INSIDE: Mapping[str, Quantity] = {
    "read_bandwidth": Quantity("Read bandwidth", "B/s"),
    "write_bandwidth": Quantity("Write bandwidth", "B/s"),
    "read_iops": Quantity("Read IOPS", "1/s"),
    "write_iops": Quantity("Write IOPS", "1/s"),
    "read_latency_mean": Quantity("Mean read latency", "s"),
    "write_latency_mean": Quantity("Mean write latency", "s"),
    "device_read": Quantity("Device reads", "B/s"),
    "device_written": Quantity("Device writes", "B/s"),
    "device_depth": Quantity("Device queue", "requests"),
    "device_busy": Quantity("Device busy", "%"),
    "user": Quantity("Processors: user", "%"),
    "system": Quantity("Processors: system", "%"),
    "iowait": Quantity("Processors: iowait", "%"),
    "steal": Quantity("Processors: steal", "%"),
    "memory_pressure": Quantity("Memory pressure", "%"),
    "dirty": Quantity("Dirty pages", "B"),
}
"""Every quantity by its name in analysis.inside.points_of, in the order of the panels."""


@dataclass(frozen=True)
class InsideTrial:
    """One trial: name of a quantity to its points, in base units over seconds."""

    filesystem: str
    trial_id: str
    points: Mapping[str, Points] = field(repr=False)
    """Quantity to its points: seconds since the tool was started, and the value."""


def plot_inside(trials: Sequence[InsideTrial], workload: str, *, filesystems: Sequence[str] = ()) -> Plot:
    """Return trials of one workload over time: one panel a quantity, one line a trial. Quantities that stay at zero
    have none.

    `filesystems`: all of the sweep, in its order. Raises InputError where there is nothing to draw.
    """
    marks = colour_of(filesystems or sorted({trial.filesystem for trial in trials}))
    scales, titles = {}, {}
    for name in (name for name in INSIDE if not quiet(name, trials)):
        quantity = INSIDE[name]
        is_share = quantity.unit == "%"
        scales[name] = Scale(0.01, "%") if is_share else scale_for(quantity.unit, max(_values(name, trials)))
        # Two ticks do not show whether an axis is logarithmic.
        log = " (log)" if not is_share and spread(_values(name, trials, _MOST_POINTS)) else ""
        titles[name] = f"{quantity.title}, {scales[name].unit}{log}"
    require(list(scales), f"course of {workload}")
    with panel_figure(list(titles.values()), sharey=False) as panels:
        for name, title in titles.items():
            axes, scale = panels[title], scales[name]
            for trial in trials:
                points = thinned(trial.points.get(name, ()), _MOST_POINTS)
                xs, ys = [at for at, _ in points], [value / scale.factor for _, value in points]
                glyphs = glyphs_on(trial.filesystem, marks, len(xs))
                axes.plot(xs, ys, color=marks[trial.filesystem].colour, linewidth=1.0, **glyphs)
            values = [value / scale.factor for value in _values(name, trials, _MOST_POINTS)]
            value_limits(axes, [*values, 0.0] if INSIDE[name].unit == "%" else values, [])
            axes.set_xlim(0, 1.02 * max(points[-1][0] for trial in trials for points in trial.points.values()))
        figure_of(panels).supxlabel("seconds since the tool was started", fontsize=TEXT_PT)
    shown = {name: mark for name, mark in marks.items() if any(trial.filesystem == name for trial in trials)}
    means = []
    for name in titles:
        courses = ((trial.filesystem, trial.points.get(name)) for trial in trials)
        shown_means = (f"{fs} {_in_unit(name, _mean(points))}" for fs, points in courses if points)
        means.append(f"{INSIDE[name].title}: {', '.join(shown_means)}")
    finding = _finding(trials, workload, next(iter(titles)))
    return Plot(figure_of(panels), finding, f"{finding}. Means over the time of the trial: {in_alt(means)}", shown)


def quiet(name: str, trials: Sequence[InsideTrial]) -> bool:
    """Return whether a quantity was zero all the time, or was not recorded."""
    return max(_values(name, trials), default=0.0) <= (_QUIET if INSIDE[name].unit == "%" else 0.0)


def _values(name: str, trials: Sequence[InsideTrial], most: int = 0) -> list[float]:
    drawn = (trial.points.get(name, ()) for trial in trials)
    return [value for points in drawn for _, value in (thinned(points, most) if most else points)]


# --- what is seen -----------------------------------------------------------------------------------------------------


def _finding(trials: Sequence[InsideTrial], workload: str, first: str) -> str:
    """Return what the box was busiest with in each trial; without its counters, between what the first quantity was."""
    busiest: dict[str, list[tuple[str, float]]] = {}
    for trial in trials:
        shares = {}  # the mean share of time in which they had something to do
        if points := trial.points.get("device_busy"):
            shares["the device"] = min(_mean(points), 1.0)  # the kernel may count the last tick of a window twice
        if {"user", "system"} <= trial.points.keys():
            shares["the processors"] = _mean(trial.points["user"]) + _mean(trial.points["system"])
        if shares:
            name = max(shares, key=lambda one: shares[one])
            busiest.setdefault(name, []).append((trial.filesystem, shares[name]))
    if busiest:
        shown = (f"{name} on {_on_which(trials_shares)}" for name, trials_shares in busiest.items())
        return f"Busiest inside {short(workload)}: {numbers.listed(list(shown))}"
    values = _values(first, trials)
    low, high = (numbers.quantity(end, INSIDE[first].unit) for end in (min(values), max(values)))
    return f"Inside {short(workload)}: {INSIDE[first].title.lower()} from {low} to {high}"


def _on_which(shares: Sequence[tuple[str, float]]) -> str:
    """'tmpfs (50 %) and ramfs (52 %)'; of many how many they are, and from which to which share."""
    if len(shares) <= _MOST_NAMED:
        return numbers.listed([f"{name} ({numbers.percent(share)})" for name, share in shares])
    low, high = (numbers.percent(end(share for _, share in shares)) for end in (min, max))
    return f"{len(shares)} file systems ({low} to {high})"


def _in_unit(name: str, value: float) -> str:
    unit = INSIDE[name].unit
    return numbers.percent(value) if unit == "%" else numbers.quantity(value, unit)


def _mean(points: Points) -> float:
    """Over time: each point stands for the window before it."""
    if len(points) < 2:
        return fmean(value for _, value in points)
    first = points[1][0] - points[0][0]
    widths = [first, *(late[0] - early[0] for early, late in pairwise(points))]
    return math.fsum(width * value for width, (_, value) in zip(widths, points, strict=True)) / math.fsum(widths)
