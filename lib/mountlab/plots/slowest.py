"""The slowest operations of a cell, each as a timeline of the layers that it went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.layers import layer_noun
from mountlab.core.units import scale_for
from mountlab.plots.axes import beside, in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.layers import PATTERNED, key_of, look_of
from mountlab.plots.layout import lay_out
from mountlab.plots.style import ROW_IN, TEXT_PT, WIDTH_IN
from mountlab.plots.ticks import plain_ticks

_NARROW = 0.01
"""Of the axis: a part that is narrower has no edge and no pattern, which would hide its colour."""


@dataclass(frozen=True)
class SlowOperation:
    """One operation."""

    name: str
    """Of the row: its rank and its trial."""
    parts: Sequence[tuple[str, str, float]]
    """(layer, through, seconds), one after the other."""

    @property
    def seconds(self) -> float:
        """From its begin to its end."""
        return sum(seconds for _, _, seconds in self.parts)

    @property
    def sums(self) -> dict[tuple[str, str], float]:
        """Each part to how long it took in all."""
        found: dict[tuple[str, str], float] = {}
        for layer, through, seconds in self.parts:
            found[layer, through] = found.get((layer, through), 0.0) + seconds
        return found


def plot_slowest(operations: Sequence[SlowOperation], operation: str, cell: str) -> Plot:
    """Return one row an operation, the slowest first: what it went through from its begin to its end, on one scale.

    Raises InputError where there is none.
    """
    known = [each for each in operations if each.seconds > 0]
    require(known, f"slow {operation} operation")
    scale = scale_for("s", known[0].seconds)
    with mpl.rc_context(PATTERNED):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        axes = figure.subplots()
        axes.set_ylim(len(known) - 0.45, -0.55)
        axes.set_yticks(range(len(known)), labels=[each.name for each in known], fontsize=TEXT_PT)
        axes.set_xlim(0, max(each.seconds for each in known) / scale.factor * 1.02)
        plain_ticks(axes.xaxis, 6, decimals=9)
        axes.set_xlabel(f"time since the {operation} began, {scale.unit}")
        for y, each in enumerate(known):
            _row(axes, y, each, scale.factor)
        lay_out(figure, 1.2 * ROW_IN * len(known))
    lines = [f"{each.name}: {_most(each.sums, each.seconds)}" for each in known]
    title = f"The slowest {operation} of {cell} took {_most(known[0].sums, known[0].seconds)}"
    return Plot(
        figure,
        title,
        f"Timelines of the slowest {operation} operations. {in_alt(lines)}",
        key_of([[each.sums for each in known]]),
    )


def _row(axes: Axes, y: int, operation: SlowOperation, factor: float) -> None:
    left, narrow = 0.0, _NARROW * axes.get_xlim()[1] * factor
    for layer, through, seconds in operation.parts:
        bare = {"linewidth": 0, "hatch": ""} if seconds < narrow else {}
        axes.barh([y], [seconds / factor], left=[left], height=0.7, zorder=2, **{**look_of(layer, through), **bare})
        left += seconds / factor
    beside(axes, 1, y, numbers.quantity(operation.seconds, "s"))


def _most(sums: Mapping[tuple[str, str], float], seconds: float) -> str:
    """'12 ms: 80 % flushes (for the journal)'."""
    layer, through = max(sums, key=lambda part: sums[part])
    share = numbers.percent(round(sums[layer, through] / seconds, 2))
    return f"{numbers.quantity(seconds, 's')}: {share} {layer_noun(layer, through)}"
