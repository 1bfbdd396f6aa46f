"""Axes that people can read, rows with names, and the marks that all plots draw alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from mountlab.core import numbers
from mountlab.plots.style import AXIS_IN, ROW_IN, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import CONTROL, INK

LONGEST_LABEL, _MOST_IN_ALT = 34, 12


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a log axis from `low` to `high` (> 0): 1-2-5 steps, decades if wide, even steps if narrow."""
    if high / low < 3:
        return [float(tick) for tick in MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high) if tick > 0]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps: tuple[int, ...] = (1, 2, 5) if high / low < 200 else (1,)
    every = max(1, len(decades) // 6)
    return [step * 10.0**decade for decade in list(decades)[::every] for step in steps]


def tick_text(value: float) -> str:
    """A tick as people write it: '0.5', '1', '2 000'; never 10^x."""
    fraction = f"{value:.9f}".rstrip("0").partition(".")[2]
    return numbers.number(value, len(fraction))


def number_ticks(axis: Axis, ticks: Sequence[float]) -> None:
    """Ticks at these numbers, written as people do, and no others."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([tick_text(tick) for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def plain_ticks(axis: Axis, most: int = 4, decimals: int = 6) -> None:
    """So many even steps at most, with numbers as people write them."""
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda tick, _: tick_text(round(tick, decimals))))


def log_reach(low: float, high: float) -> tuple[float, float, list[float]]:
    """Where a log axis over the data begins and ends, with some room, and the ticks on it."""
    room = max((high / low) ** 0.04, 1.005)
    low, high = low / room, high * room
    return low, high, [tick for tick in log_ticks(low, high) if low <= tick <= high]


def log_x_axis(axes: Axes, low: float, high: float) -> None:
    """A log x axis over the data with some room, and ticks that people can read."""
    low, high, ticks = log_reach(low, high)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    number_ticks(axes.xaxis, ticks)


def reach(points: Sequence[float], bounds: Iterable[float], *, log: bool) -> tuple[float, float]:
    """Where an axis begins and ends: at the bounds of the intervals, but where these are vast nearer to the points.

    On a log axis four times beyond the points, on a linear one as far again as they are spread. Intervals that go on
    are drawn with an arrowhead.
    """
    low, high = min(points), max(points)
    room = high - low or abs(high) * 0.1 or 1.0
    furthest = (low / 4, high * 4) if log else (low - room, high + room)
    known = [bound for bound in bounds if math.isfinite(bound)]
    return max(min([low, *known]), furthest[0]), min(max([high, *known]), furthest[1])


@dataclass(frozen=True)
class Rows:
    """Vertical places for rows under headings, from the top down: {(group, name): y} and {group: y}."""

    places: Mapping[tuple[str, str], float]
    headings: Mapping[str, float]
    spans: Sequence[tuple[float, float]]
    """From above the first to below the last row of each group."""
    count: float

    @staticmethod
    def of(groups: Mapping[str, Sequence[str]]) -> Rows:
        places, headings, spans, y = {}, {}, [], 0.0
        for group, names in groups.items():
            headings[group] = y
            for name in names:
                y += 1
                places[group, name] = y
            spans.append((headings[group] + 0.45, y + 0.5))
            y += 1.3
        return Rows(places, headings, spans, y)


@contextmanager
def row_figure(rows: Rows) -> Iterator[tuple[Figure, Axes]]:
    """A figure in our style whose axes have a named place for each row, and the headings above them."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, rows.count * ROW_IN + AXIS_IN), layout="constrained")
        axes = figure.subplots()
        axes.set_ylim(rows.count - 0.6, -0.7)
        axes.set_yticks(list(rows.places.values()), labels=[short(name, 20) for _, name in rows.places])
        for group, y in rows.headings.items():
            beside(axes, 0, y, short(group, 52), weight="bold", shift=0)
        yield figure, axes


def beside(axes: Axes, x: float, y: float, text: str, *, shift: float = 8, where: Any = None, **look: Any) -> None:
    """Text at a fraction of the width (0 left, 1 right) and at a row, or in the coordinates that `where` names. `look`:
    more of Matplotlib's settings of a text."""
    axes.annotate(
        text,
        (x, y),
        xycoords=where or axes.get_yaxis_transform(),
        xytext=(shift, 0),
        textcoords="offset points",
        va="center_baseline",
        ha="left",
        annotation_clip=False,
        **look,
    )


def short(text: str, longest: int = LONGEST_LABEL) -> str:
    """A label on one line and of a length that leaves room for the data; tables carry the whole name."""
    line = CONTROL.sub("\ufffd", " ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def in_alt(lines: Sequence[str]) -> str:
    """The lines as one sentence, the first of many."""
    more = f"; and {len(lines) - _MOST_IN_ALT} more, in the tables" if len(lines) > _MOST_IN_ALT else ""
    return "; ".join(lines[:_MOST_IN_ALT]) + more + "."


def interval(axes: Axes, y: float, low: float, high: float, *, colour: str, width: float = 2.2) -> None:
    """A line from low to high; cut at the ends of the axis, with an arrowhead where it goes on. What is unknown
    (NaN, or infinite on both sides) draws nothing."""
    if _unknown(low, high):
        return
    left, right = axes.get_xlim()
    axes.plot([max(low, left), min(high, right)], [y, y], color=colour, linewidth=width, solid_capstyle="butt")
    for beyond, x, head in ((low < left, left, "<"), (high > right, right, ">")):
        if beyond:
            axes.plot([x], [y], head, color=colour, markersize=4.5, clip_on=False)


def _unknown(low: float, high: float) -> bool:
    """Whether an interval says nothing. One end may be open, where trials ran into their time limit."""
    return math.isnan(low) or math.isnan(high) or (low == -math.inf and high == math.inf)


def upright(axes: Axes, x: float, low: float, high: float, *, colour: str, width: float = 1.6) -> None:
    """As `interval`, from bottom to top. The axes have their limits by then."""
    if _unknown(low, high):
        return
    bottom, top = axes.get_ylim()
    axes.vlines([x], [max(low, bottom)], [min(high, top)], color=colour, linewidth=width)
    for beyond, y, head in ((low < bottom, bottom, "v"), (high > top, top, "^")):
        if beyond:
            axes.plot([x], [y], head, color=colour, markersize=4.5, clip_on=False)


def dot(axes: Axes, x: float, y: float, mark: Mark, *, hollow: bool = False, size: float = 5.5) -> None:
    """One marker of a file system, full or hollow."""
    dots(axes, [x], [y], mark, size=size, markerfacecolor="none" if hollow else mark.colour)


def dots(axes: Axes, xs: Sequence[float], ys: Sequence[float], mark: Mark, *, size: float, **look: Any) -> None:
    """Markers of a file system, not joined. `look`: more of Matplotlib's settings of a line."""
    axes.plot(xs, ys, mark.marker, color=mark.colour, markersize=size, linestyle="none", **look)


def ink_dots(axes: Axes, values: Sequence[float], y: float, *, alpha: float = 0.45, **look: Any) -> None:
    """Small dots in a row, one a trial, in the colour of text."""
    dots(axes, values, [y] * len(values), Mark(INK, "o", "●"), size=2.6, alpha=alpha, **look)


def grid_lines(axes: Axes, rows: Rows) -> None:
    """Faint lines at the ticks, below the rows only: headings stay clear of them."""
    left, right = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if left <= tick <= right]
    for top, bottom in rows.spans:
        axes.vlines(ticks, top, bottom, color=INK, alpha=0.16, linewidth=0.6, zorder=0)
