"""No text of any plot is cut, lies on another one, or runs into the panel beside its own: measured, for many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import matplotlib as mpl
import pytest
from every_plot import DRAWN, figures_of_no_run, shapes
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from mountlab.plots import Plot
from mountlab.plots.panels import OWN
from mountlab.plots.ticks import OVERHANG_PT

pytestmark = [pytest.mark.slow]
_HINTED_PX = 2.0
"""Agg sets type on whole pixels: a text is wider or narrower than it is measured by about so much."""
SHAPES = ("demo", "swept", "long", "one", "levels", "many", "no run")


@cache
def drawn(shape: str) -> DRAWN:
    return figures_of_no_run() if shape == "no run" else shapes()[shape]()


@cache
def plots_of(shape: str) -> dict[str, Plot]:
    found = {name: draw() for name, draw in drawn(shape).items()}
    for plot in found.values():
        FigureCanvasAgg(plot.figure)
        plot.figure.draw_without_rendering()  # all that is measured is set, and nothing is painted
    return found


@cache
def shown(shape: str) -> dict[str, list[tuple[Text, Bbox]]]:
    """Every text that is seen in each plot, once, and where it lies, in pixels."""
    return {name: list(_shown(plot)) for name, plot in plots_of(shape).items()}


def _shown(plot: Plot) -> Iterator[tuple[Text, Bbox]]:
    for text in {id(text): text for text in _texts(plot)}.values():
        if text.get_visible() and text.get_text().strip():
            yield text, text.get_window_extent()


def _texts(plot: Plot) -> Iterator[Text]:
    yield from plot.figure.texts
    for axes in plot.figure.axes:
        yield from axes.texts
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label, axes.xaxis.offsetText, axes.yaxis.offsetText)
        yield from (each for each in axes.get_children() if isinstance(each, Text) and each not in axes.texts)
        yield from (label for axis in (axes.xaxis, axes.yaxis) for label in tick_labels(axis))


def tick_labels(axis: Axis) -> list[Text]:
    """Those of the ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    seen = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1 for tick in seen if tick.label1.get_visible()]


def _marks(shape: str) -> list[pytest.MarkDecorator]:
    """One worker draws a shape, for all that is measured in it. The others have more of everything, or one
    of each."""
    return [
        pytest.mark.xdist_group(f"texts of {shape}"),
        *([pytest.mark.long] if shape not in ("demo", "no run") else []),
    ]


each_shape = pytest.mark.parametrize("shape", [pytest.param(shape, marks=_marks(shape)) for shape in SHAPES])


@each_shape
def test_every_text_lies_inside_of_its_figure(shape: str) -> None:
    cut = []
    for name, plot in plots_of(shape).items():
        whole = plot.figure.bbox
        for text, box in shown(shape)[name]:
            if box.x0 < -_HINTED_PX or box.y0 < -_HINTED_PX or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1:
                cut.append((name, text.get_text(), box, whole))
    assert cut == []


@each_shape
def test_no_text_lies_on_another(shape: str) -> None:
    met = []
    for name, texts in shown(shape).items():
        # Boxes hold the room of letters that go below the line, which most have not.
        boxes = [(text.get_text(), box.padded(-_HINTED_PX)) for text, box in texts]
        met += [(name, a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    assert met == []


@each_shape
def test_no_two_panels_and_no_two_headings_are_called_alike(shape: str) -> None:
    alike = {}
    for name, plot in plots_of(shape).items():
        titles = [axes.get_title(loc="left") for axes in plot.figure.axes]
        headings = [text.get_text() for axes in plot.figure.axes for text in axes.texts if text.get_weight() == "bold"]
        for found in (titles, headings):
            if len(set(found)) < len(found) and any(found):
                alike[name] = found
    assert alike == {}


@each_shape
def test_every_tick_has_its_text_and_none_runs_past_its_axis(shape: str) -> None:
    wrong = []
    for name, plot in plots_of(shape).items():
        room = OVERHANG_PT * plot.figure.dpi / 72 + _HINTED_PX
        if name == "history":
            continue  # its dates have the edge of the figure for themselves
        for axes in plot.figure.axes:
            for label in tick_labels(axes.xaxis):
                box = label.get_window_extent()
                if not label.get_text() or box.x0 < axes.bbox.x0 - room or box.x1 > axes.bbox.x1 + room:
                    wrong.append((name, label.get_text()))
    assert wrong == []


@each_shape
def test_every_axis_with_ticks_has_two_numbers_or_all_its_levels(shape: str) -> None:
    """A single number says nothing of a scale."""
    poor = []
    for name, plot in plots_of(shape).items():
        for axes in plot.figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                told = [label for label in tick_labels(axis) if label.get_text()]
                levels = {*axis.get_majorticklocs(), *axis.get_minorticklocs()}
                if len(told) == 1 and len(levels) > 1:
                    poor.append((name, told[0].get_text()))
    assert poor == []


@each_shape
def test_panels_share_their_scale_or_say_that_they_do_not(shape: str) -> None:
    silent = []
    for name, plot in plots_of(shape).items():
        for way in ("x", "y"):
            scales = {(getattr(a, f"get_{way}lim")(), getattr(a, f"get_{way}scale")()) for a in plot.figure.axes}
            if len(scales) > 1:
                silent += [(name, way) for axes in plot.figure.axes if not _says_own_scale(axes)]
    assert silent == []


def _says_own_scale(axes: Axes) -> bool:
    return any(OWN.split()[0] in text.split() for text in (axes.get_xlabel(), axes.get_title(loc="right")))


def test_a_theme_that_somebody_has_set_changes_no_plot() -> None:
    draw = drawn("demo")["run order"]
    with mpl.rc_context({"font.size": 20, "axes.labelsize": 20, "font.family": "serif", "xtick.labelsize": 20}):
        themed = draw().svg()
    assert themed == draw().svg()
