"""How all plots look, and what stands for a file system in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.plots.svg import INK

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


MANY_DOTS = 1500
"""More dots than this are one picture of 200 dots to the inch inside the SVG: as elements they would make the page slow
to open, and nobody could tell them apart."""


@dataclass(frozen=True)
class Mark:
    """Colour and marker of one file system: Matplotlib's name of the marker, and the character that looks like it."""

    colour: str
    marker: str
    glyph: str


MARKS = (
    Mark("#0072B2", "o", "●"),
    Mark("#D55E00", "s", "■"),
    Mark("#009E73", "^", "▲"),
    Mark("#CC79A7", "D", "◆"),
    Mark("#E69F00", "v", "▼"),
    Mark("#56B4E9", "P", "✚"),
    Mark("#8C8C8C", "X", "✖"),
)
"""Okabe and Ito's palette without black and yellow (which vanish on one of the two backgrounds), and a grey."""


def colour_of(filesystems: Sequence[str]) -> dict[str, Mark]:
    """One colour and one marker for each file system, by its place in the sweep; the eighth has the first again."""
    return {name: MARKS[place % len(MARKS)] for place, name in enumerate(dict.fromkeys(filesystems))}
