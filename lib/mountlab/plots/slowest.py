"""The slowest operations of a cell, each as a timeline of the layers that it went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.groups import by_key
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
        parts = by_key(((layer, through), seconds) for layer, through, seconds in self.parts)
        return {part: sum(times) for part, times in parts.items()}


def plot_slowest(operations: Sequence[SlowOperation], operation: str, cell: str) -> Plot:
    """Return one row an operation, the slowest first: what it went through from its begin to its end, on one scale.

    Raises InputError where there is none.
    """
    drawn = [slow for slow in operations if slow.seconds > 0]
    require(drawn, f"slow {operation} operation")
    scale = scale_for("s", drawn[0].seconds)
    with mpl.rc_context(PATTERNED):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        axes = figure.subplots()
        axes.set_ylim(len(drawn) - 0.45, -0.55)
        axes.set_yticks(range(len(drawn)), labels=[slow.name for slow in drawn], fontsize=TEXT_PT)
        axes.set_xlim(0, max(slow.seconds for slow in drawn) / scale.factor * 1.02)
        plain_ticks(axes.xaxis, 6, decimals=9)
        axes.set_xlabel(f"time since the {operation} began, {scale.unit}")
        narrow = _NARROW * axes.get_xlim()[1] * scale.factor
        for y, slow in enumerate(drawn):
            left = 0.0
            for layer, through, seconds in slow.parts:
                bare = {"linewidth": 0, "hatch": ""} if seconds < narrow else {}
                look = {**look_of(layer, through), **bare}
                axes.barh([y], [seconds / scale.factor], left=[left], height=0.7, zorder=2, **look)
                left += seconds / scale.factor
            beside(axes, 1, y, numbers.quantity(slow.seconds, "s"))
        lay_out(figure, 1.2 * ROW_IN * len(drawn))
    lines = [f"{slow.name}: {_most(slow.sums, slow.seconds)}" for slow in drawn]
    title = f"The slowest {operation} of {cell} took {_most(drawn[0].sums, drawn[0].seconds)}"
    alt = f"Timelines of the slowest {operation} operations. {in_alt(lines)}"
    return Plot(figure, title, alt, key_of([[slow.sums for slow in drawn]]))


def _most(sums: Mapping[tuple[str, str], float], seconds: float) -> str:
    """'12 ms: 80 % flushes (for the journal)'."""
    layer, through = max(sums, key=lambda part: sums[part])
    share = numbers.percent(round(sums[layer, through] / seconds, 2))
    return f"{numbers.quantity(seconds, 's')}: {share} {layer_noun(layer, through)}"
