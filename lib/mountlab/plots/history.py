"""The figure of a cell in each run, over the years, and where its level changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.units import scale_for
from mountlab.plots.axes import dots, in_alt, upright
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.panels import LINED, OWN
from mountlab.plots.style import MANY_DOTS, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.ticks import plain_ticks

_MOST_PANELS, _PANEL_IN, _MOST_INTERVALS = 6, 1.15, 150
_TURN = "#D55E00"


@dataclass(frozen=True)
class Spot:
    """One run: when it was, and its figure with the interval from its trials; NaN where there is none."""

    at: datetime
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Stretch:
    """Runs between two changes: from the place of the first to before that of the last, and their level."""

    start: int
    end: int
    level: float


@dataclass(frozen=True)
class Line:
    """One history: its runs, the stretches between its changes, and for each change its place and the first and the
    last run that it may be."""

    name: str
    mark: Mark
    """Of its file system."""
    unit: str
    spots: Sequence[Spot]
    stretches: Sequence[Stretch]
    turns: Sequence[tuple[int, int, int]]


def plot_history(lines: Sequence[Line], *, title: str, metric: str = "") -> Plot:
    """Return each figure over the date of its run, with the interval from the trials inside the run, and its level
    between changes; a change is an upright line, where it may be as well is shaded. One panel a line.

    Raises InputError where there is no run to draw.
    """
    drawn = [line for line in lines if line.spots]
    require(drawn, "run")
    shown = drawn[:_MOST_PANELS]
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, _PANEL_IN * len(shown)))
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axes, line in zip(panels, shown, strict=True):
            _draw(axes, line, metric)
            title_panel(axes, line.name, note=OWN if len(shown) > 1 else "")
        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        panels[-1].xaxis_date()
        panels[-1].xaxis.set_major_locator(locator)
        panels[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        lay_out(figure, _PANEL_IN)
    left = f" {len(drawn) - len(shown)} more in the table." if len(drawn) > len(shown) else ""
    lines_of_alt = []
    for line in drawn:  # 'ext4/fio: 99.6 MB/s, from 2021-02-03 on 90.1 MB/s'
        first, *levels = (numbers.quantity(stretch.level, line.unit) for stretch in line.stretches)
        days = (f"{line.spots[at].at:%Y-%m-%d}" for at, _, _ in line.turns)
        later = (f", from {day} on {level}" for day, level in zip(days, levels, strict=True))
        lines_of_alt.append(f"{line.name}: {first}{''.join(later)}")
    return Plot(figure, title, f"Each run's figure over its date. {in_alt(lines_of_alt)}{left}")


def _draw(axes: Axes, line: Line, metric: str) -> None:
    scale = scale_for(line.unit, max(abs(spot.value) for spot in line.spots))
    x = [float(date2num(spot.at)) for spot in line.spots]  # type: ignore[no-untyped-call]
    values = [spot.value / scale.factor for spot in line.spots]
    low, high = min(values), max(values)
    room = max(high - low, 0.02 * abs(high)) or 1.0
    bounds = [bound / scale.factor for spot in line.spots for bound in (spot.low, spot.high)]
    near = [bound for bound in bounds if low - room <= bound <= high + room]  # the others are vast
    axes.set_ylim(min([low, *near]) - 0.06 * room, max([high, *near]) + 0.06 * room)
    for at, first, last in line.turns:
        axes.axvspan(_between(x, first), _between(x, last), color=_TURN, alpha=0.18, linewidth=0)
        axes.axvline(_between(x, at), color=_TURN, linewidth=1.2)
    if len(x) <= _MOST_INTERVALS:
        for place, spot in zip(x, line.spots, strict=True):
            upright(axes, place, spot.low / scale.factor, spot.high / scale.factor, colour=line.mark.colour, width=1.0)
    dots(axes, x, values, line.mark, size=3, rasterized=len(x) > MANY_DOTS)
    for stretch in line.stretches:
        first_x = _between(x, stretch.start) if stretch.start else x[0]
        last_x = _between(x, stretch.end) if stretch.end < len(x) else x[-1]
        axes.plot([first_x, last_x], [stretch.level / scale.factor] * 2, color=INK, linewidth=1.2)
    axes.set_ylabel(scale.unit if not metric else f"{metric}, {scale.unit}")
    plain_ticks(axes.yaxis)


def _between(x: Sequence[float], place: int) -> float:
    """Return the place half way between a run and the one before."""
    return (x[place - 1] + x[place]) / 2
