"""How many blocks show what: the smallest difference that they show, and simulated runs with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.plots.axes import dot, in_alt, interval, log_limits, reach
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out
from mountlab.plots.panels import ALONE_IN, LINED
from mountlab.plots.style import MARKS, ROW_IN, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.ticks import plain_ticks

_WIDEST_RATIO = 10.0
_HELD, _MISSED = MARKS[0], Mark(MARKS[1].colour, "X", "✖")
_LINES = tuple(Mark(INK, each.marker, each.glyph) for each in MARKS)
"""Of workloads: in the colour of text, since a colour stands for a file system."""


def plot_smallest_difference(
    curves: Mapping[str, Mapping[int, float]], *, planned: Mapping[str, float], power: float
) -> Plot:
    """Return the smallest ratio that so many blocks show with a chance of `power`, one line a name; a dot at the blocks
    that are planned. Both axes are logarithmic. Raises InputError where no curve has a ratio that can be drawn.

    `curves`: name to number of blocks to ratio (> 1; what is not finite, or above 10, is left out).
    """
    drawn = {
        name: {n: ratio for n, ratio in curve.items() if 1 < ratio <= _WIDEST_RATIO} for name, curve in curves.items()
    }
    known = {name: curve for name, curve in drawn.items() if curve}
    require(list(known), "smallest difference")
    marks = dict(zip(known, cycle(_LINES), strict=False))
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, ALONE_IN))
        axes = figure.subplots()
        for name, curve in known.items():
            at, mark = planned.get(name, math.nan), marks[name]
            percents = [100 * (ratio - 1) for ratio in curve.values()]
            axes.plot(list(curve), percents, mark.marker, color=mark.colour, markersize=3, linestyle="-", linewidth=1.0)
            if at in curve:
                dot(axes, at, 100 * (curve[int(at)] - 1), mark)
        _difference_axes(axes, known)
        lay_out(figure, ALONE_IN)
    lines = [f"{name}: {_at_plan(curve, planned.get(name, math.nan))}" for name, curve in known.items()]
    alt = f"Smallest difference shown with a chance of {numbers.percent(power)}, by number of blocks. {in_alt(lines)}"
    return Plot(figure, f"{in_alt(lines[:1]).rstrip('.')}, with a chance of {numbers.percent(power)}", alt, marks)


def _difference_axes(axes: Axes, curves: Mapping[str, Mapping[int, float]]) -> None:
    blocks = [n for curve in curves.values() for n in curve]
    shares = [100 * (ratio - 1) for curve in curves.values() for ratio in curve.values()]
    log_limits(axes, min(blocks), max(blocks) * 1.01, way="x")
    log_limits(axes, min(shares), max(shares) * 1.01)
    axes.grid(visible=True, color=INK, alpha=0.16, linewidth=0.6)
    axes.set_xlabel("blocks; dot: as planned")
    axes.set_ylabel("smallest difference shown, %")


def _at_plan(curve: Mapping[int, float], planned: float) -> str:
    """Return what the planned blocks show; where the line does not hold them, what the most of its blocks show."""
    n = int(planned) if planned in curve else max(curve)
    return f"{n} blocks show {numbers.percent(curve[n] - 1)} or more"


# ── simulated runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def plot_simulated(
    runs: Sequence[tuple[Sequence[float], float, float]], *, truth: float, finding: str, of: str = "run"
) -> Plot:
    """Simulated runs, one a row: their trials as dots, and the interval that each would have given, over the truth.

    `runs`: trials, low and high of each. Intervals that miss the truth have another colour and a cross at their end.
    `finding` is the title. Raises InputError where there is no run.
    """
    require(runs, f"simulated {of}")
    missed = [not low <= truth <= high for _, low, high in runs]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, len(runs) * ROW_IN / 2))
        axes = figure.subplots()
        shown = [value / truth for trials, _, _ in runs for value in trials]
        axes.set_xlim(*reach(shown, [end / truth for _, low, high in runs for end in (low, high)], log=False))
        axes.set(ylim=(len(runs), -1), yticks=[], xlabel="mean over the truth = 1; dots: trials; ✖: misses the truth")
        axes.axvline(1, color=INK, linewidth=1.0)
        for y, ((trials, low, high), miss) in enumerate(zip(runs, missed, strict=True)):
            _draw_simulated(axes, y, [value / truth for value in trials], low / truth, high / truth, miss=miss)
        plain_ticks(axes.xaxis, 6)
        lay_out(figure, (len(runs) + 1) * ROW_IN / 2)
    alt = f"{len(runs)} simulated {of}s with their intervals; {sum(missed)} of them miss the truth. {finding}"
    return Plot(figure, finding, alt)


def _draw_simulated(axes: Axes, y: float, trials: Sequence[float], low: float, high: float, *, miss: bool) -> None:
    mark = _MISSED if miss else _HELD
    axes.plot(trials, [y] * len(trials), "o", color=mark.colour, alpha=0.45, markersize=2.5, linestyle="none")
    interval(axes, y, low, high, colour=mark.colour, width=1.6)
    if miss:
        dot(axes, min((low, high), key=lambda end: abs(end - 1)), y, mark, size=4.5)
