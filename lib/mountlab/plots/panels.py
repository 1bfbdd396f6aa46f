"""Small multiples: panels with the same axes, one line a file system in each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter

from mountlab.core import numbers
from mountlab.plots.axes import beside, log_reach, number_ticks, plain_ticks, reach, short, tick_text
from mountlab.plots.style import AXIS_IN, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK

MOST_PANELS = 12
"""More would be a tall picture that nobody compares: the first are drawn, and the axis says so. Tables hold all."""
_ALONE_IN, _BESIDE_IN = 2.6, 1.5
_LABEL_PT = 12.0
_LOG_FROM = 8.0
"""Values that are spread over more than this factor get a log axis."""
_LETTER_IN, _BETWEEN_IN = 0.075, 0.1
"""Of the text of a tick: as wide as a digit, and the room to the next one."""
_SMALL: dict[Any, Any] = dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), "small")


def shown_of(names: Sequence[str]) -> tuple[list[str], str]:
    """The names that get a panel, and what the axis says of the others: '; the first 12 of 20'."""
    more = f"; the first {MOST_PANELS} of {len(names)}" if len(names) > MOST_PANELS else ""
    return list(names[:MOST_PANELS]), more


@contextmanager
def panel_figure(titles: Sequence[str], *, sharex: bool = True, sharey: bool = True) -> Iterator[dict[str, Axes]]:
    """Panels in our style by their title, two in a row; their figure is that of any of them."""
    columns = min(2, len(titles))
    rows = math.ceil(len(titles) / columns)
    height = (_ALONE_IN if columns == 1 else _BESIDE_IN * rows) + AXIS_IN
    with mpl.rc_context({**STYLE, "axes.spines.left": True, "ytick.major.size": 3.5, "ytick.major.pad": 3.5, **_SMALL}):
        figure = Figure(figsize=(WIDTH_IN, height))
        grid = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flatten()
        place_panels(figure, rows, columns)
        for unused in grid[len(titles) :]:
            unused.remove()
        panels = dict(zip(titles, grid, strict=False))
        for place, (title, axes) in enumerate(panels.items()):
            if title:
                axes.set_title(short(title, 60 // columns), loc="left", fontsize="small", weight="bold", pad=3, y=1.0)
            if sharex and place + columns >= len(titles):
                axes.tick_params(labelbottom=True)
            axes.grid(visible=True, color=INK, alpha=0.12, linewidth=0.6)
            axes.set_axisbelow(True)
        yield panels


def place_panels(
    figure: Figure, rows: int, columns: int, *, left_in: float = 0.75, bottom_in: float = 0.52, gap_in: float = 0.38
) -> None:
    """Fixed places, by inches, where Matplotlib would measure every text of every panel twice: half of the time."""
    width, height = figure.get_size_inches()
    right_in, top_in, between_in = 0.18, 0.2, 0.18
    panel_width = (width - left_in - right_in - between_in * (columns - 1)) / columns
    panel_height = (height - top_in - bottom_in - gap_in * (rows - 1)) / rows
    figure.subplots_adjust(
        left=left_in / width,
        right=1 - right_in / width,
        bottom=bottom_in / height,
        top=1 - top_in / height,
        wspace=between_in / panel_width,
        hspace=gap_in / panel_height,
    )


def figure_of(panels: Mapping[str, Axes]) -> Figure:
    """The figure that the panels are in."""
    figure = next(iter(panels.values())).get_figure(root=True)
    if figure is None:
        raise ValueError("panels are in a figure")
    return figure


def name_axes(panels: Mapping[str, Axes], *, x: str, y: str) -> None:
    """One name for the x axes of all panels, and one for their y axes."""
    scales = [(axes.get_xscale(), axes.get_yscale()) for axes in panels.values()]
    figure_of(panels).supxlabel(x + _scale_note([of_x for of_x, _ in scales]), fontsize="medium")
    figure_of(panels).supylabel(y + _scale_note([of_y for _, of_y in scales]), fontsize="medium")


def _scale_note(scales: Sequence[str]) -> str:
    """Two ticks do not show that an axis is logarithmic."""
    if "log" not in scales:
        return ""
    return " (log scale)" if set(scales) == {"log"} else " (some on a log scale)"


def spread(values: Sequence[float]) -> bool:
    """Whether values want a log axis."""
    return min(values) > 0 and max(values) / min(values) > _LOG_FROM


def value_limits(
    axes: Axes, values: Sequence[float], bounds: Sequence[float], *, way: str = "y", zero: bool = True
) -> None:
    """A log axis where the values are spread, else one from 0 (or from below it, where a value is); without `zero` one
    over the values alone."""
    axis, limit = (axes.xaxis, axes.set_xlim) if way == "x" else (axes.yaxis, axes.set_ylim)
    if spread(values):
        low, high = reach(values, [bound for bound in bounds if bound > 0], log=True)
        log_limits(axes, low, high, way=way)
    else:
        low, high = reach(values, bounds, log=False)
        low = min(0.0, low) if zero else low
        room = 0.05 * (high - low) or abs(high) or 1.0
        limit(low if zero else low - room, high + room)
        plain_ticks(axis, decimals=9)


def log_limits(axes: Axes, low: float, high: float, *, way: str = "y", fewest: int = 4) -> None:
    """A log axis over the data with some room, and at most some six ticks that people can read."""
    low, high, ticks = log_reach(low, high)
    ticks = ticks[:: max(1, len(ticks) // fewest)] if len(ticks) > 2 * fewest else ticks
    if way == "x":
        ticks = _apart(axes, ticks, high / low)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    number_ticks(axes.xaxis if way == "x" else axes.yaxis, ticks)


def _apart(axes: Axes, ticks: Sequence[float], reach_over: float) -> list[float]:
    """The ticks of a log axis whose texts do not run into the one before; `reach_over`: its end over its beginning."""
    width_in = axes.get_position().width * figure_of({"": axes}).get_figwidth()
    kept: list[float] = []
    for tick in ticks:
        need_in = _LETTER_IN * (len(tick_text(tick)) + (len(tick_text(kept[-1])) if kept else 0)) / 2 + _BETWEEN_IN
        if not kept or width_in * math.log(tick / kept[-1]) / math.log(reach_over) >= need_in:
            kept.append(tick)
    return kept


def set_ticks(axis: Axis, places: Sequence[float], texts: Sequence[str]) -> None:
    """Ticks at these places, with these texts, and no others."""
    number_ticks(axis, places)
    axis.set_major_formatter(FixedFormatter(list(texts)))


def thin_texts(texts: Sequence[str], most: int) -> list[str]:
    """At most so many of the texts, evenly; the others are empty."""
    every = math.ceil(len(texts) / most) if texts else 1
    return [text if place % every == 0 else "" for place, text in enumerate(texts)]


def label_ends(axes: Axes, ends: Mapping[str, float], marks: Mapping[str, Mark]) -> None:
    """The names of lines at their right ends, moved apart where they would lie on each other; the mark before each."""
    figure_of({"": axes}).subplots_adjust(right=1 - (0.3 + 0.085 * min(16, max(map(len, ends)))) / WIDTH_IN)
    places = {name: _fraction(axes, y) for name, y in ends.items() if math.isfinite(y)}
    height = figure_of({"": axes}).get_figheight()
    for name, place in apart(places, _LABEL_PT / (72 * (height - AXIS_IN))).items():
        for text, colour, shift in ((marks[name].glyph, marks[name].colour, 4), (short(name, 16), INK, 14)):
            beside(axes, 1, place, text, shift=shift, where="axes fraction", color=colour)


def _fraction(axes: Axes, y: float) -> float:
    inside = axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[0], y)))
    return min(max(float(inside[1]), 0.0), 1.0)


def apart(places: Mapping[str, float], least: float) -> dict[str, float]:
    """The places, in their order, at least so far from each other; as a whole they stay where they were."""
    ordered = sorted(places, key=lambda name: places[name])
    moved: dict[str, float] = {}
    below = -math.inf
    for name in ordered:
        below = moved[name] = max(places[name], below + least)
    shift = sum(moved[name] - places[name] for name in ordered) / max(len(ordered), 1)
    return {name: place - shift for name, place in moved.items()}


def times(ratio: float) -> str:
    """'3.1 times', of a ratio without an interval."""
    return f"{numbers.ratio_figures(ratio, math.nan, math.nan).value} times"
