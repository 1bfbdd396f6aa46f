"""The share of each client in a workload of several, relative to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.plots.axes import Rows, beside, dot, in_alt, ink_dots, interval, log_limits, reach, row_figure
from mountlab.plots.base import Plot, require
from mountlab.plots.style import marks_of
from mountlab.plots.svg import INK


@dataclass(frozen=True, kw_only=True)
class ClientPoint:
    """The throughput of one client relative to the median of the others: geometric mean, bounds, each trial."""

    filesystem: str
    group: str
    """The cell and the metric."""
    client: str
    """The box that drove it."""
    ratio: float
    """Its throughput by the median of the others."""
    low: float
    """The lower end of the interval of `ratio`."""
    high: float
    """The upper end of it."""
    trials: tuple[float, ...]
    """The same ratio in each trial."""
    straggles: bool
    """Whether it is below the limit."""


def plot_clients(points: Sequence[ClientPoint], *, limit: float, filesystems: Sequence[str]) -> Plot:
    """Return every client of every group on a log axis, with its interval and its trials, in the colour of its file
    system; below `limit` it straggles, and is drawn full. Draws the bounds that it is given. `filesystems`: all of the
    sweep, in its order. Raises InputError where there is no client."""
    require(points, "client")
    groups = by_key((point.group, point) for point in points)
    rows = Rows.of({group: [point.client for point in members] for group, members in groups.items()})
    marks = marks_of(filesystems, {point.filesystem for point in points})
    with row_figure(rows) as (figure, axes):
        spread = [ratio for point in points for ratio in point.trials]
        bounds = [bound for point in points for bound in (point.low, point.high)]
        log_limits(axes, *reach([*spread, 1.0, limit], bounds, log=True), way="x")
        left = axes.get_xlim()[0]
        for top, bottom in rows.spans:
            axes.fill_betweenx([top, bottom], left, limit, color=INK, alpha=0.12, linewidth=0)
            axes.plot([1, 1], [top, bottom], color=INK, linewidth=1.0)
        for point in points:
            y, mark = rows.places[point.group, point.client], marks[point.filesystem]
            ink_dots(axes, point.trials, y)
            interval(axes, y, point.low, point.high, colour=mark.colour)
            dot(axes, point.ratio, y, mark, hollow=not point.straggles)
            beside(axes, 1, y, str(numbers.ratio_figures(point.ratio, point.low, point.high)))
        full = "; full: straggles" if any(point.straggles for point in points) else ""
        axes.set_xlabel(f"throughput; the others' median = 1; dots: trials{full}")
    behind = [f"{point.client} ({group})" for group, members in groups.items() for point in members if point.straggles]
    who = f"{numbers.listed(behind)}:" if behind else "No client is"
    title = f"{who} surely below {numbers.percent(limit)} of what the others have"
    lines = [f"{p.client}, {p.group}: {numbers.ratio_figures(p.ratio, p.low, p.high)}" for p in points]
    return Plot(figure, title, f"Throughput of each client relative to the median of the others. {in_alt(lines)}")
