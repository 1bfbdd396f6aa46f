"""Small multiples: panels with the same axes, one line a file system in each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.plots.axes import beside, log_limits, reach
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.style import SMALL_PT, STYLE, TEXT_PT, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.texts import short
from mountlab.plots.ticks import plain_ticks

MOST_PANELS = 12
"""More would be too tall to compare: the first are drawn, and the axis says so. Tables hold all."""
ALONE_IN, _BESIDE_IN = 2.4, 1.25
"""Height of a panel alone, and of one beside others."""
_LABEL_PT = 12.0
_LOG_FROM = 8.0
"""Values that are spread over more than this factor get a log axis."""
OWN = "own scale"
"""What a panel says whose scale is not that of the others."""
_LEAST_PART = 0.25
"""Of a scale that panels share: one whose values take up less has a scale of its own, and says so."""
LINED: dict[Any, Any] = {"axes.spines.left": True, "ytick.major.size": 3.5, "ytick.major.pad": 3.5}
"""Of panels whose y axis has numbers."""


def shown_of(names: Sequence[str]) -> tuple[list[str], str]:
    """Return the names that get a panel, and the axis label for the others: '; the first 12 of 20'."""
    more = f"; the first {MOST_PANELS} of {len(names)}" if len(names) > MOST_PANELS else ""
    return list(names[:MOST_PANELS]), more


@contextmanager
def panel_figure(titles: Sequence[str], *, sharex: bool = True, sharey: bool = True) -> Iterator[dict[str, Axes]]:
    """Panels in our style by their title, two in a row; their figure is that of any of them."""
    columns = min(2, len(titles))
    rows = math.ceil(len(titles) / columns)
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, _BESIDE_IN * rows))
        grid = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flatten()
        for unused in grid[len(titles) :]:
            unused.remove()
        panels = dict(zip(titles, grid, strict=False))
        for place, (title, axes) in enumerate(panels.items()):
            title_panel(axes, title)
            if sharex and place + columns >= len(titles):
                axes.tick_params(labelbottom=True)
            axes.grid(visible=True, color=INK, alpha=0.12, linewidth=0.6)
            axes.set_axisbelow(True)
        yield panels
        lay_out(figure, ALONE_IN if columns == 1 else _BESIDE_IN)


def figure_of(panels: Mapping[str, Axes]) -> Figure:
    """Return the figure that the panels are in."""
    figure = next(iter(panels.values())).get_figure(root=True)
    if figure is None:
        raise ValueError("panels are in a figure")
    return figure


def name_axes(panels: Mapping[str, Axes], *, x: str, y: str) -> None:
    """One name for the x axes of all panels, and one for their y axes."""
    # Two ticks do not show whether an axis is logarithmic.
    log_x = " (log scale)" if all(axes.get_xscale() == "log" for axes in panels.values()) else ""
    log_y = " (log scale)" if all(axes.get_yscale() == "log" for axes in panels.values()) else ""
    figure_of(panels).supxlabel(f"{x}{log_x}", fontsize=TEXT_PT)
    figure_of(panels).supylabel(f"{y}{log_y}", fontsize=TEXT_PT)


def have_one_scale(values: Sequence[Sequence[float]]) -> bool:
    """Return whether panels with these values can share a scale: each would still take up a good part of it."""
    flat = [value for part in values for value in part]
    change = math.log if spread(flat) else float
    spans = [change(max(part)) - change(min(part)) for part in values]
    return min(spans) >= _LEAST_PART * (change(max(flat)) - change(min(flat)))


def own_x_scale(axes: Axes) -> None:
    """Say below a panel that its x axis is not that of the others."""
    axes.set_xlabel("own log scale" if axes.get_xscale() == "log" else OWN, fontsize=SMALL_PT, labelpad=1.0, alpha=0.8)


def spread(values: Sequence[float]) -> bool:
    """Return whether values want a log axis."""
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


def label_ends(axes: Axes, ends: Mapping[str, float], marks: Mapping[str, Mark]) -> None:
    """The names of lines at their right ends, moved apart where they would lie on each other; the mark before each."""
    places = {}
    for name, y in ends.items():
        if math.isfinite(y):
            _, at = axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[0], y)))
            places[name] = min(max(float(at), 0.0), 1.0)
    for name, place in apart(places, _LABEL_PT / (72 * ALONE_IN)).items():
        for text, colour, shift in ((marks[name].glyph, marks[name].colour, 4), (short(name, 16), INK, 14)):
            beside(axes, 1, place, text, shift=shift, where="axes fraction", color=colour)


def apart(places: Mapping[str, float], least: float) -> dict[str, float]:
    """Return the places, in their order, at least so far from each other; as a whole they stay where they were, but for
    none below 0."""
    ordered = sorted(places, key=lambda name: places[name])
    moved: dict[str, float] = {}
    below = -math.inf
    for name in ordered:
        below = moved[name] = max(places[name], below + least)
    shift = sum(moved[name] - places[name] for name in ordered) / max(len(ordered), 1)
    lowest = min(moved.values(), default=0.0) - shift
    return {name: place - shift - min(lowest, 0.0) for name, place in moved.items()}


def times(ratio: float) -> str:
    """'3.1 times', of a ratio without an interval."""
    return f"{numbers.ratio_figures(ratio, math.nan, math.nan).value} times"
