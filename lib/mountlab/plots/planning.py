"""How many blocks show what: the smallest difference that they show, and simulated runs with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
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
_LINES = tuple(Mark(INK, mark.marker, mark.glyph) for mark in MARKS)
"""Of workloads: in the colour of text, since a colour stands for a file system."""


def plot_smallest_difference(
    curves: Mapping[str, Mapping[int, float]], *, planned: Mapping[str, float], power: float
) -> Plot:
    """Return the smallest ratio that so many blocks show with a chance of `power`, one line a name; a dot at the blocks
    that are planned. Both axes are logarithmic. Raises InputError where no curve has a ratio that can be drawn.

    `curves`: name to number of blocks to ratio (> 1; what is not finite, or above 10, is left out).
    """
    drawn = {
        name: {n: 100 * (ratio - 1) for n, ratio in curve.items() if 1 < ratio <= _WIDEST_RATIO}
        for name, curve in curves.items()
    }
    drawn = {name: percents for name, percents in drawn.items() if percents}
    require(list(drawn), "smallest difference")
    marks = dict(zip(drawn, cycle(_LINES), strict=False))
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, ALONE_IN))
        axes = figure.subplots()
        lines = []
        for name, percents in drawn.items():
            at, mark, ys = planned.get(name, math.nan), marks[name], list(percents.values())
            axes.plot(list(percents), ys, mark.marker, color=mark.colour, markersize=3, linestyle="-", linewidth=1.0)
            if at in percents:
                dot(axes, at, percents[int(at)], mark)
            n = int(at) if at in percents else max(percents)  # what the line does not hold it cannot show
            lines.append(f"{name}: {n} blocks show {numbers.percent(curves[name][n] - 1)} or more")
        blocks = [n for percents in drawn.values() for n in percents]
        shares = [share for percents in drawn.values() for share in percents.values()]
        log_limits(axes, min(blocks), max(blocks) * 1.01, way="x")
        log_limits(axes, min(shares), max(shares) * 1.01)
        axes.grid(visible=True, color=INK, alpha=0.16, linewidth=0.6)
        axes.set(xlabel="blocks; dot: as planned", ylabel="smallest difference shown, %")
        lay_out(figure, ALONE_IN)
    alt = f"Smallest difference shown with a chance of {numbers.percent(power)}, by number of blocks. {in_alt(lines)}"
    return Plot(figure, f"{in_alt(lines[:1]).rstrip('.')}, with a chance of {numbers.percent(power)}", alt, marks)


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
            mark, ends = _MISSED if miss else _HELD, (low / truth, high / truth)
            xs = [value / truth for value in trials]
            axes.plot(xs, [y] * len(xs), "o", color=mark.colour, alpha=0.6, markersize=2.5, linestyle="none")
            interval(axes, y, *ends, colour=mark.colour, width=1.6)
            if miss:
                dot(axes, min(ends, key=lambda end: abs(end - 1)), y, mark, size=4.5)
        plain_ticks(axes.xaxis, 6)
        lay_out(figure, (len(runs) + 1) * ROW_IN / 2)
    alt = f"{len(runs)} simulated {of}s with their intervals; {sum(missed)} of them miss the truth. {finding}"
    return Plot(figure, finding, alt)
