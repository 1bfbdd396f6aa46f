"""What the tool moved against what the device delivered: did the page cache answer?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes

from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.plots.axes import Rows, beside, dots, in_alt, row_figure
from mountlab.plots.base import Plot, require
from mountlab.plots.style import Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.texts import short
from mountlab.plots.ticks import plain_ticks

_MOST_PERCENT = 250.0
"""Beyond this the axis ends, and an arrowhead says that it goes on: a device may move many times what was asked."""
_ANSWERED, _MORE = 0.9, 1.1
"""Shares of the tool's bytes: of a lower one a cache answered for the rest, of a higher one the device moved more."""
SIDES = {"read": ("read", "delivered"), "write": ("written", "taken")}


@dataclass(frozen=True)
class Delivered:
    """One trial in one direction."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    side: str
    """read or write"""
    tool_bytes: float
    """What the tool read or wrote."""
    device_bytes: float
    """What the device below read or wrote meanwhile."""

    @property
    def share(self) -> float:
        """What the device moved of each byte of the tool's."""
        return self.device_bytes / self.tool_bytes

    @property
    def group(self) -> str:
        """The workload and what was done: 'fio rw=read: read'."""
        return f"{self.workload_label}: {SIDES[self.side][0]}"


def plot_bytes(trials: Sequence[Delivered], *, filesystems: Sequence[str], workloads: Sequence[str] = ()) -> Plot:
    """Return the share of the tool's bytes that the device moved while the tool ran: a dot a trial, a row a cell.

    At 100 % the device did all of it; to the left a cache answered for the rest, to the right the file system moved
    more than was asked. At the right the bytes, as means over the trials. `filesystems` and `workloads` (labels): all
    of the sweep, in its order. Raises InputError where no trial moved anything.
    """
    drawn = [trial for trial in trials if trial.tool_bytes > 0]
    require(drawn, "trial with counters of its device")
    marks = marks_of(filesystems, {trial.filesystem for trial in drawn})
    order = {label: place for place, label in enumerate(workloads)}
    in_order = sorted(drawn, key=lambda t: (order.get(t.workload_label, len(order)), t.workload_label, t.side))
    groups = dict.fromkeys(trial.group for trial in in_order)
    present = {(trial.group, trial.filesystem) for trial in drawn}
    rows = Rows.of({group: [name for name in marks if (group, name) in present] for group in groups})
    highest = min(max(100 * trial.share for trial in drawn), _MOST_PERCENT)
    with row_figure(rows) as (figure, axes):
        axes.set_xlim(-3, max(105.0, 1.05 * highest))
        plain_ticks(axes.xaxis, 6)
        for top, bottom in rows.spans:
            axes.plot([100, 100], [top, bottom], color=INK, linewidth=1.0)
        for (group, name), y in rows.places.items():
            members = [trial for trial in drawn if (trial.group, trial.filesystem) == (group, name)]
            _draw(axes, y, members, marks[name])
        axes.set_xlabel("device bytes, % of the tool's; at the right: device of tool")
    answers = _answers(drawn)
    return Plot(figure, answers[0], f"Bytes of the device against bytes of the tool. {in_alt(answers)}")


def _draw(axes: Axes, y: float, trials: Sequence[Delivered], mark: Mark) -> None:
    """The trials of a cell, one below the other so that equal ones are all seen."""
    right = axes.get_xlim()[1]
    heights = [y + 0.5 * (place / max(len(trials) - 1, 1) - 0.5) for place in range(len(trials))]
    percents = [100 * trial.share for trial in trials]
    inside = [percent for percent in percents if percent <= right]
    ys = [height for percent, height in zip(percents, heights, strict=True) if percent <= right]
    dots(axes, inside, ys, mark, size=4, markeredgewidth=0)
    if len(inside) < len(trials):
        axes.plot([right], [y], ">", color=mark.colour, markersize=4.5, clip_on=False)
    beside(axes, 1, y, _bytes(trials))


def _bytes(trials: Sequence[Delivered]) -> str:
    """'3.1 MB of 512 MB'."""
    device, tool = fmean(trial.device_bytes for trial in trials), fmean(trial.tool_bytes for trial in trials)
    return f"{numbers.quantity(device, 'B')} of {numbers.quantity(tool, 'B')}"


def _answers(trials: Sequence[Delivered]) -> list[str]:
    """In how many rows (a cell and a direction) a cache answered, and each one's share, the smallest first."""
    cells = by_key(((trial.filesystem, trial.workload_label, trial.side), trial) for trial in trials)
    least = {key: min(trial.share for trial in members) for key, members in cells.items()}
    more = {key: share for key, members in cells.items() if (share := fmean(t.share for t in members)) > _MORE}
    cached, rows = sum(share < _ANSWERED for share in least.values()), numbers.counted(len(least), "row")
    first = "The device moved what was asked of it in every row: no cache answered"
    if cached:
        first = f"In {cached} of {rows} the device moved less than {numbers.percent(_ANSWERED)} of the tool's bytes"
        first += ": a cache answered or kept the rest"
    elif more:
        most = max(more, key=lambda key: more[key])
        sizes = _bytes(cells[most]).replace(" of ", " for ")
        first = f"The device moved more than the tool in {len(more)} of {rows}, most on {most[0]}: {sizes}"
    lines = [
        f"{short(name)}, {workload}, {side}: {numbers.percent(least[name, workload, side])} or more, {_bytes(members)}"
        for (name, workload, side), members in sorted(cells.items(), key=lambda item: least[item[0]])
    ]
    return [first, *lines]
