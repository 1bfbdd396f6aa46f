"""Axes that people can read, rows with names, and the marks that all plots draw alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from mountlab.plots.layout import EDGE_IN, lay_out
from mountlab.plots.style import ROW_IN, STYLE, TEXT_PT, WIDTH_IN, Mark
from mountlab.plots.svg import INK, say
from mountlab.plots.texts import distinct, short, width_pt, wrapped
from mountlab.plots.ticks import log_number_ticks

_MOST_IN_ALT = 12
_SECOND_LINE = 0.75
"""Of a heading: so many rows high."""


def log_limits(axes: Axes, low: float, high: float, *, way: str = "y") -> None:
    """A log axis over the data with some room, and ticks that people can read."""
    room = max((high / low) ** 0.04, 1.005)
    if way == "x":
        axes.set(xscale="log", xlim=(low / room, high * room))
    else:
        axes.set(yscale="log", ylim=(low / room, high * room))
    log_number_ticks(axes.xaxis if way == "x" else axes.yaxis)


def reach(points: Sequence[float], bounds: Iterable[float], *, log: bool) -> tuple[float, float]:
    """Return where an axis begins and ends: at the bounds of the intervals, but where these are vast nearer to the
    points.

    On a log axis four times beyond the points, on a linear one as far again as they are spread. Intervals that go on
    are drawn with an arrowhead.
    """
    low, high = min(points), max(points)
    room = high - low or abs(high) * 0.1 or 1.0
    furthest = (low / 4, high * 4) if log else (low - room, high + room)
    finite = [bound for bound in bounds if math.isfinite(bound)]
    return max(min([low, *finite]), furthest[0]), min(max([high, *finite]), furthest[1])


@dataclass(frozen=True)
class Rows:
    """Vertical places for rows under headings, from the top down: {(group, name): y} and {heading: y}."""

    places: Mapping[tuple[str, str], float]
    headings: Sequence[tuple[float, str]]
    """Where the middle of each heading is, and its text, on two lines where one has no room for it."""
    spans: Sequence[tuple[float, float]]
    """From above the first to below the last row of each group."""
    count: float

    @staticmethod
    def of(groups: Mapping[str, Sequence[str]]) -> Rows:
        places, headings, spans, y = {}, [], [], 0.0
        texts = distinct(list(groups), lambda text: "…" not in _heading_text(text))
        for (group, names), text in zip(groups.items(), map(_heading_text, texts), strict=True):
            more = _SECOND_LINE * text.count("\n")
            headings.append((y + more / 2, text))
            y += more
            top = y + 0.45
            for name in names:
                y += 1
                places[group, name] = y
            spans.append((top, y + 0.5))
            y += 1.3
        return Rows(places, headings, spans, y)


def _heading_text(text: str) -> str:
    return wrapped(text, 72 * (WIDTH_IN - 2 * EDGE_IN), lines=2, weight="bold")


@contextmanager
def row_figure(rows: Rows) -> Iterator[tuple[Figure, Axes]]:
    """A figure in our style whose axes have a named place for each row, the headings above them, and faint lines at
    the ticks."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, rows.count * ROW_IN))
        axes = figure.subplots()
        axes.set_ylim(rows.count - 0.6, -0.7)
        names = [short(name, 20) for _, name in rows.places]
        axes.set_yticks(list(rows.places.values()), labels=names, fontsize=TEXT_PT, ha="left")
        axes.tick_params(axis="y", pad=7.0 + max(map(width_pt, names)))
        # From the left edge of the figure on: names of workloads are long.
        where = blended_transform_factory(figure.transFigure, axes.transData)
        look: dict[str, Any] = {"weight": "bold", "va": "center", "linespacing": 1.1, "in_layout": False}
        for y, text in rows.headings:
            axes.text(EDGE_IN / WIDTH_IN, y, text, transform=where, **look)
        yield figure, axes
        lay_out(figure, (rows.count + 0.1) * ROW_IN)
        left, right = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if left <= tick <= right]
        for top, bottom in rows.spans:  # below the rows only: headings stay clear of the lines
            axes.vlines(ticks, top, bottom, color=INK, alpha=0.16, linewidth=0.6, zorder=0)


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


def in_alt(lines: Sequence[str]) -> str:
    """Return the lines as one sentence, the first of many."""
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
    """Return whether an interval says nothing. One end may be open, where trials ran into their time limit."""
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


def dot(axes: Axes, x: float, y: float, mark: Mark, *, hollow: bool = False, size: float = 5.5, text: str = "") -> None:
    """One marker of a file system, full or hollow."""
    face = "none" if hollow else mark.colour
    dots(axes, [x], [y], mark, size=size, texts=[text] if text else (), markerfacecolor=face)


def dots(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    mark: Mark,
    *,
    size: float,
    texts: Sequence[str] = (),
    **look: Any,
) -> None:
    """Markers of a file system, not joined. `texts`: what each says when it is pointed at; `look`: more of Matplotlib's
    settings of a line."""
    (line,) = axes.plot(xs, ys, mark.marker, color=mark.colour, markersize=size, linestyle="none", **look)
    say(line, texts)


def filled(colour: str, shade: float) -> dict[str, Any]:
    """Return the look of a bar: an outline that is seen on any page, filled with so much of its colour."""
    return {"facecolor": to_rgba(colour, shade), "edgecolor": colour, "linewidth": 0.8}


def ink_dots(axes: Axes, values: Sequence[float], y: float, **look: Any) -> None:
    """Small dots in a row, one a trial, in the colour of text."""
    dots(axes, values, [y] * len(values), Mark(INK, "o", "●"), size=2.6, alpha=0.6, **look)
