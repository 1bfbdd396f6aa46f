"""How all plots look, and what stands for a file system in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.core.errors import InputError
from mountlab.plots.svg import INK, PAGE_INK

WIDTH_IN, ROW_IN = 4.9, 0.215
"""All figures are equally wide (353 points): legible on a phone, and two fit side by side on a desk."""
TEXT_PT, SMALL_PT = 9.5, 9.0
"""The sizes of type. A page of 390 pixels shows a figure at three quarters: the small one is nine pixels high there."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "mountlab", "text.parse_math": False,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": TEXT_PT,
    "axes.labelsize": TEXT_PT, "figure.labelsize": TEXT_PT, "xtick.labelsize": SMALL_PT, "ytick.labelsize": SMALL_PT,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "ytick.major.pad": 7.0,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.size": 0.0,
}  # fmt: skip
"""The look of a page for Matplotlib: `sns.set_theme(rc=STYLE)` gives it to figures of your own."""


MANY_DOTS = 1500
"""More dots than this are one picture of 200 dots to the inch inside the SVG: as elements they would make the page slow
to open, and a reader could not distinguish them."""


@dataclass(frozen=True)
class Mark:
    """Colour and marker of one file system: Matplotlib's name of the marker, and the character that looks like it."""

    colour: str
    """As Matplotlib takes it."""
    marker: str
    """Matplotlib's name of the marker."""
    glyph: str
    """The character that looks like it."""

    @property
    def on_page(self) -> str:
        """The colour as a page has it."""
        return PAGE_INK if self.colour == INK else self.colour


MARKS = (
    Mark("#0072B2", "o", "●"),
    Mark("#D55E00", "s", "■"),
    Mark("#009E73", "^", "▲"),
    Mark("#CC79A7", "D", "◆"),
    Mark("#B57800", "v", "▼"),
    Mark("#2E8FCF", "P", "✚"),
    Mark("#8C8C8C", "X", "✖"),
)
"""Okabe and Ito's palette without black and yellow, its orange and sky blue darker, and a grey. On a light page and on
a dark one each has a contrast of 3 to 1 at least (WCAG 2, 1.4.11), if it is opaque."""

UNUSABLE = "#8C8C8C"
"""The colour of what is not to be used."""


def colour_of(filesystems: Sequence[str]) -> dict[str, Mark]:
    """Return one colour and one marker for each file system, by its place among all of the sweep. The eighth has the
    colour of the first again, with another marker: 49 have marks of their own."""
    marks = {}
    for place, name in enumerate(dict.fromkeys(filesystems)):
        by_colour, by_shape = MARKS[place % len(MARKS)], MARKS[(place + place // len(MARKS)) % len(MARKS)]
        marks[name] = Mark(by_colour.colour, by_shape.marker, by_shape.glyph)
    return marks


def marks_of(filesystems: Sequence[str], drawn: Iterable[str]) -> dict[str, Mark]:
    """Return the marks of all file systems of a sweep, for a plot that draws some of them: marks by what happens to be
    drawn would change from plot to plot. Raises InputError where one is drawn that is not of the sweep."""
    marks = colour_of(filesystems)
    unknown = sorted(set(drawn) - marks.keys())
    if unknown:
        raise InputError(
            "a file system has its colour by its place in the sweep",
            where="filesystems",
            got=f"{', '.join(filesystems) or 'none'}, without {', '.join(unknown)}",
            allowed="all file systems of the sweep, in its order",
        )
    return marks


def glyphs_on(name: str, marks: Mapping[str, Mark], points: int) -> dict[str, Any]:
    """Return what makes a line of so many points carry its marker, each file system at other points; nothing where each
    has a colour of its own."""
    if len({mark.colour for mark in marks.values()}) == len(marks):
        return {}
    place = list(marks).index(name)
    every = max(1, points // 3)
    return {"marker": marks[name].marker, "markersize": 3.5, "markevery": (place % every, every)}
