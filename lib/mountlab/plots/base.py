"""What every plot is: a figure with a title that states the finding and a text for those who do not see it; our style,
and one colour and one marker for each file system."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib as mpl
from matplotlib.figure import Figure

from mountlab.analysis.run_view import RunView
from mountlab.core.errors import InputError
from mountlab.core.shown import Shown
from mountlab.plots.paper import FORMS, on_paper
from mountlab.plots.style import STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import for_page

_NARROWEST_IN, _WIDEST_IN = 1.5, 24.0


@dataclass(frozen=True)
class Plot(Shown):
    """A figure with its title and alternative text; shows itself as HTML in notebooks and reports."""

    figure: Figure = field(repr=False)
    """Matplotlib's figure."""
    title: str
    """A sentence that states the finding."""
    alt: str
    """What the plot shows, for those who do not see it."""
    legend: Mapping[str, Mark] = field(default_factory=dict, repr=False)
    """Names to explain below the title; empty where everything is labelled directly."""

    def svg(self) -> str:
        """Return one <svg> element: the same text for the same data, with ids that no other plot has."""
        buffer = io.StringIO()
        with mpl.rc_context(STYLE):
            self.figure.savefig(
                buffer, format="svg", dpi=200, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
            )
        # Drawn again, constrained layout would move things a little; the second drawing is to be the same as the first.
        self.figure.set_layout_engine("none")
        return for_page(buffer.getvalue(), alt=self.alt)

    def save_bytes(self, form: str, *, width_in: float = WIDTH_IN) -> bytes:
        """Return the figure for a paper: on white, in black, at this width in inches, text as paths (SVG) or with its
        fonts (PDF); the same bytes for the same data. The title is left to the caption; keys are drawn above.

        Text stays as large as on the page where there is room; a narrower picture is scaled down as a whole. Raises
        InputError for another form, and for a width that no page has.
        """
        if form not in FORMS:
            raise InputError("a figure is saved as one of these", got=repr(form), allowed=", ".join(FORMS))
        if not _NARROWEST_IN <= width_in <= _WIDEST_IN:
            raise InputError(
                "a figure fits on a page", got=f"width_in={width_in}", allowed=f"{_NARROWEST_IN} to {_WIDEST_IN} inches"
            )
        return on_paper(self.figure, form, width_in=width_in, legend=self.legend)


@dataclass(frozen=True)
class ReportPlot:
    """Plots that every report shows where the run has something to draw."""

    name: str
    """Of the files of `export --figures`."""
    draw: Callable[[RunView], Iterable[Plot]]
    """Return the plots of a run, none where it has nothing to draw."""
    heading: str = ""
    """Above the plots of a plug-in."""


def require(rows: Sequence[object], what: str) -> None:
    """Raises InputError where nothing was found to plot."""
    if not rows:
        raise InputError(f"there is no {what} to plot", next_step="plot only what the run has measured")
