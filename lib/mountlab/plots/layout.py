"""Where the panels of a figure stand: each as high as was asked for, and around them the room that their texts take.

Matplotlib's constrained layout takes a quarter longer (2.13 s for the 21 figures of the tour, 1.71 s here), lets the
height of panels follow from that of the figure, and breaks no title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.axis import Axis, YAxis
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from mountlab.core.groups import by_key
from mountlab.plots.style import SMALL_PT, TEXT_PT, WIDTH_IN
from mountlab.plots.texts import LINE, distinct, one_line, width_pt, wrapped
from mountlab.plots.ticks import OVERHANG_PT

_PT = 72.0
EDGE_IN = 0.04
_GAP_IN = 0.09
"""Between the texts of two panels."""
_SLACK = 1.03
"""Browsers set type a little wider than it is measured here."""
_LEAST_SIDE_IN = EDGE_IN + OVERHANG_PT / _PT
_FEWEST_IN = 0.7
"""A panel is at least so wide, whatever stands beside it."""
_TITLE_LINES, _LABEL_LINES = 3, 3
_BESIDE_NOTE_PT = 8.0


def title_panel(axes: Axes, title: str, *, note: str = "") -> None:
    """A title above the panel, and a remark at its right end; the layout breaks the title where it is too long."""
    if title:
        axes.set_title(
            "\n".join(map(one_line, title.split("\n"))), loc="left", fontsize=SMALL_PT, weight="bold", pad=3, y=1.0
        )
    if note:
        axes.set_title(note, loc="right", fontsize=SMALL_PT, pad=3, y=1.0, alpha=0.8)


@dataclass(frozen=True)
class _Grid:
    """The panels of a figure by row and column; each column and each row has one at least."""

    figure: Figure
    cells: dict[tuple[int, int], Axes]

    @staticmethod
    def of(figure: Figure) -> _Grid:
        cells = {}
        for axes in figure.axes:
            place = axes.get_subplotspec()
            if place is not None:
                cells[place.rowspan.start, place.colspan.start] = axes
        return _Grid(figure, cells)

    @property
    def rows(self) -> int:
        return 1 + max(row for row, _ in self.cells)

    @property
    def columns(self) -> int:
        return 1 + max(column for _, column in self.cells)

    def place(self, lefts: Sequence[float], tops: Sequence[float], width: float, height: float) -> None:
        """Panels of this width and height at so many inches from the left and from the top."""
        wide, high = map(float, self.figure.get_size_inches())
        for (row, column), axes in self.cells.items():
            bottom = high - tops[row] - height
            axes.set_position((lefts[column] / wide, bottom / high, width / wide, height / high))


@dataclass(frozen=True)
class _Overhang:
    """How far the texts of a panel reach beyond it, in inches."""

    left: float = 0.0
    right: float = 0.0
    bottom: float = 0.0
    top: float = 0.0

    @staticmethod
    def of(axes: Axes) -> _Overhang:
        """Measure the texts, and the marks that are not clipped. `Axes.get_tightbbox` finds the same, but it places the
        ticks a dozen times for it."""
        figure = axes.get_figure(root=True)
        if figure is None:
            return _Overhang()
        panel, renderer, texts = axes.bbox, _renderer(figure.dpi), list(axes.texts)
        titles = [child for child in axes.get_children() if isinstance(child, Text) and child not in texts]
        marks = [line for line in axes.lines if not line.get_clip_on()]
        boxes = [
            *(artist.get_tightbbox(renderer) for artist in (*texts, *marks) if artist.get_in_layout()),
            *_boxes_of(axes.xaxis, renderer, figure.dpi / _PT),
            *_boxes_of(axes.yaxis, renderer, figure.dpi / _PT),
        ]
        whole = Bbox.union([panel, *(box for box in boxes if box is not None and (box.width or box.height))])
        top = max([whole.y1, *(title.get_window_extent(renderer).y1 for title in titles if title.get_text())])
        beyond = (panel.x0 - whole.x0, whole.x1 - panel.x1, panel.y0 - whole.y0, top - panel.y1)
        return _Overhang(*(_SLACK * max(0.0, float(part)) / figure.dpi for part in beyond))


@lru_cache
def _renderer(dpi: float) -> RendererAgg:
    """Return what measures texts, the same for all figures: it remembers how wide they are."""
    return RendererAgg(1, 1, dpi)  # type: ignore[no-untyped-call]


def _boxes_of(axis: Axis, renderer: RendererAgg, point: float) -> list[Bbox]:
    """Return where the texts of an axis at the left or at the bottom lie; its marks and its name reach as far along it
    as the panel, whatever they say. `point`: in pixels."""
    panel, upright = axis.axes.bbox, isinstance(axis, YAxis)
    axis.get_majorticklabels()  # puts the ticks where they will be drawn
    low, high = sorted(map(float, axis.get_view_interval()))
    slack = 1e-9 * (high - low)
    ticks = [tick for tick in axis.get_major_ticks() if low - slack <= float(tick.get_loc()) <= high + slack]
    labels = [tick.label1.get_window_extent(renderer) for tick in ticks if tick.label1.get_visible()]
    marked = max((float(tick.tick1line.get_markersize()) for tick in ticks if tick.tick1line.get_visible()), default=0)
    end = min(
        [(panel.x0 if upright else panel.y0) - point * marked, *(box.x0 if upright else box.y0 for box in labels)]
    )
    if axis.label.get_text():
        name = axis.label.get_window_extent(renderer)
        end -= point * axis.labelpad + (name.width if upright else name.height)
    return [*labels, Bbox([[end, panel.y0], panel.max] if upright else [[panel.x0, end], panel.max])]


def lay_out(figure: Figure, panel_in: float) -> None:
    """Place panels `panel_in` inches high: as wide as the texts at their sides leave room for, and the figure as high
    as all of it needs. Breaks titles and names of axes that are longer than their room."""
    grid = _Grid.of(figure)
    height = panel_in * grid.rows + 0.4 * (grid.rows + 1)
    figure.set_size_inches(WIDTH_IN, height)
    upright = _wrap_upright(grid, height - 2 * EDGE_IN, panel_in)
    titles = {key: axes.get_title(loc="left") for key, axes in grid.cells.items()}
    for axes in grid.cells.values():
        axes.set_title("", loc="left")  # as long as it is not broken it would take room at the side
    lefts, width = _across(grid, upright, panel_in)
    _wrap_flat(figure, grid, titles, width)
    tops, height = _down(grid, panel_in)
    figure.set_size_inches(WIDTH_IN, height)
    grid.place(lefts, tops, width, panel_in)
    _name(figure, grid, lefts, tops, width, panel_in)


def _across(grid: _Grid, upright_in: float, panel_in: float) -> tuple[list[float], float]:
    """Return where the columns begin, and how wide they are; `upright_in`: what the name of the y axes takes."""
    tops = [0.3 + row * (panel_in + 0.4) for row in range(grid.rows)]
    guess = max(_FEWEST_IN, (WIDTH_IN - 1.0) / grid.columns - 0.3)
    grid.place([0.75 + column * (guess + 0.3) for column in range(grid.columns)], tops, guess, panel_in)
    of_columns = by_key((column, _Overhang.of(axes)) for (_, column), axes in grid.cells.items())
    columns = [of_columns[column] for column in range(grid.columns)]
    sides = [(max(panel.left for panel in column), max(panel.right for panel in column)) for column in columns]
    first = max(upright_in + sides[0][0] + EDGE_IN, _LEAST_SIDE_IN)
    last = max(sides[-1][1] + EDGE_IN, _LEAST_SIDE_IN)
    between = [
        max(before[1] + after[0] + _GAP_IN, 2 * OVERHANG_PT / _PT + _GAP_IN) for before, after in pairwise(sides)
    ]
    width = max(_FEWEST_IN, (WIDTH_IN - first - last - sum(between)) / grid.columns)
    lefts = [first + column * width + sum(between[:column]) for column in range(grid.columns)]
    grid.place(lefts, tops, width, panel_in)
    return lefts, width


def _down(grid: _Grid, panel_in: float) -> tuple[list[float], float]:
    """Return where the rows begin, from the top, and how high the figure is."""
    of_rows = by_key((row, _Overhang.of(axes)) for (row, _), axes in grid.cells.items())
    tops, at = [], EDGE_IN
    for row in range(grid.rows):
        at += max(panel.top for panel in of_rows[row])
        tops.append(at)
        at += panel_in + max(panel.bottom for panel in of_rows[row]) + _GAP_IN
    shared = grid.figure.get_supxlabel()
    name = _lines_in(shared) if shared else 0.0
    return tops, at - _GAP_IN + name + EDGE_IN


def _lines_in(text: str) -> float:
    """Return how high a text of several lines is, with a little room above."""
    return (LINE * TEXT_PT * (1 + text.count("\n")) + 2.0) / _PT if text else 0.0


def _wrap_upright(grid: _Grid, room_in: float, panel_in: float) -> float:
    """Break the names of y axes; return what that of all panels takes of the width."""
    for axes in grid.cells.values():
        if axes.get_ylabel():
            axes.set_ylabel(wrapped(axes.get_ylabel(), panel_in * _PT, lines=_LABEL_LINES))
    name = grid.figure.get_supylabel()
    if not name:
        return 0.0
    broken = wrapped(name, room_in * _PT, lines=_LABEL_LINES)
    grid.figure.supylabel(broken, fontsize=TEXT_PT)
    return _lines_in(broken)


def _wrap_flat(figure: Figure, grid: _Grid, titles: Mapping[tuple[int, int], str], width_in: float) -> None:
    """Break titles to the width of their panels, and names of x axes to that of the figure."""
    whole = (WIDTH_IN - 2 * EDGE_IN) * _PT
    notes = {axes.get_title(loc="right") for axes in grid.cells.values()}
    beside = max((width_pt(note, SMALL_PT) + _BESIDE_NOTE_PT for note in notes if note), default=0.0)

    def broken(title: str) -> str:
        return wrapped(title, width_in * _PT - beside, lines=_TITLE_LINES, size=SMALL_PT, weight="bold")

    texts = distinct(list(titles.values()), lambda title: "…" not in broken(title))
    for axes, title in zip(grid.cells.values(), texts, strict=True):
        title_panel(axes, broken(title))
        if axes.get_xlabel():
            axes.set_xlabel(wrapped(axes.get_xlabel(), whole, lines=_LABEL_LINES))
    if figure.get_supxlabel():
        figure.supxlabel(wrapped(figure.get_supxlabel(), whole, lines=_LABEL_LINES), fontsize=TEXT_PT)


def _name(
    figure: Figure, grid: _Grid, lefts: Sequence[float], tops: Sequence[float], width: float, panel_in: float
) -> None:
    """Names of axes in the middle of their panels, and inside of the figure."""
    wide, high = map(float, figure.get_size_inches())
    middle_x, middle_y = (lefts[0] + lefts[-1] + width) / 2, high - (tops[0] + tops[-1] + panel_in) / 2
    if name := figure.get_supylabel():
        y = _inside(middle_y, _half_in(name), high) / high
        figure.supylabel(name, x=EDGE_IN / wide, y=y, ha="left", va="center", ma="center", fontsize=TEXT_PT)
    if name := figure.get_supxlabel():
        x = _inside(middle_x, _half_in(name), wide) / wide
        figure.supxlabel(name, x=x, y=EDGE_IN / high, ha="center", va="bottom", ma="center", fontsize=TEXT_PT)
    for (_, column), axes in grid.cells.items():
        if name := axes.get_xlabel():
            at = _inside(lefts[column] + width / 2, _half_in(name), wide)
            axes.xaxis.label.set_x((at - lefts[column]) / width)


def _half_in(text: str) -> float:
    return max(width_pt(line) for line in text.split("\n")) / _PT / 2


def _inside(middle: float, half: float, whole: float) -> float:
    """Return the middle of a text moved so that its ends stay inside."""
    return min(max(middle, half + EDGE_IN), max(whole - half - EDGE_IN, half + EDGE_IN))
