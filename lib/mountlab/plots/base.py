"""What every plot is: a figure with a title that states the finding and a text for those who do not see it; our style,
and one colour and one marker for each file system."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mountlab import html
from mountlab.errors import InputError
from mountlab.plots.svg import INK, for_page

WIDTH_IN, ROW_IN, AXIS_IN = 4.9, 0.215, 0.55
"""All figures are equally wide (353 points): legible on a phone, and two fit side by side on a desk."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "mountlab", "text.parse_math": False, "font.size": 9.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
        "ytick.major.pad": 7.0,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.size": 0.0,
    "figure.constrained_layout.h_pad": 0.03, "figure.constrained_layout.w_pad": 0.03,
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Colour and marker of one file system: Matplotlib's name of the marker, and the character that looks like it."""

    colour: str
    marker: str
    glyph: str


MARKS = (
    Mark("#0072B2", "o", "●"), Mark("#D55E00", "s", "■"), Mark("#009E73", "^", "▲"), Mark("#CC79A7", "D", "◆"),
    Mark("#E69F00", "v", "▼"), Mark("#56B4E9", "P", "✚"), Mark("#8C8C8C", "X", "✖"),
)  # fmt: skip
"""Okabe and Ito's palette without black and yellow (which vanish on one of the two backgrounds), and a grey."""


def colour_of(filesystems: Sequence[str]) -> dict[str, Mark]:
    """One colour and one marker for each file system, by its place in the sweep; the eighth has the first again."""
    return {name: MARKS[place % len(MARKS)] for place, name in enumerate(dict.fromkeys(filesystems))}


@dataclass(frozen=True)
class Plot:
    """A figure with its title and alternative text; shows itself as HTML in notebooks and reports."""

    figure: Figure = field(repr=False)
    title: str
    alt: str
    legend: Mapping[str, Mark] = field(default_factory=dict, repr=False)
    """Names to explain below the title; empty where everything is labelled directly."""

    def svg(self) -> str:
        """One <svg> element: the same text for the same data, with ids that no other plot has."""
        buffer = io.StringIO()
        with mpl.rc_context(STYLE):
            self.figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        # Drawn again, constrained layout would move things a little; the second drawing is to be the same as the first.
        self.figure.set_layout_engine("none")
        return for_page(buffer.getvalue(), alt=self.alt)

    def _repr_html_(self) -> str:
        keys = [html.swatch(name, mark.colour, mark.glyph) for name, mark in self.legend.items()]
        return html.figure(self.title, html.Html(self.svg()), keys=keys).text


def require(found: Sequence[object], what: str) -> None:
    """Raises InputError where nothing was found to plot."""
    if not found:
        raise InputError(f"there is no {what} to plot", next_step="plot only what the run has measured")
