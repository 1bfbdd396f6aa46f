"""Two swept options at once: a map whose cells carry their numbers, and colours that survive colour blindness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.findings import Comparison, Verdict
from mountlab.core.names import metric_heading
from mountlab.core.units import scale_for
from mountlab.plots.axes import in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.levels import Levels, levels_of
from mountlab.plots.panels import MOST_PANELS
from mountlab.plots.style import SMALL_PT, STYLE, TEXT_PT, WIDTH_IN
from mountlab.plots.svg import INK
from mountlab.plots.texts import short, width_pt
from mountlab.plots.ticks import set_ticks
from mountlab.wording import verdicts

_CELL_IN = 0.36
_DARK, _LIGHT = "#101010", "#fefefe"
"""Numbers on a coloured cell: the cell has the same colour on a light and on a dark page."""
_LEAST_SPAN = 1.2
_LEAST_PT = 8.0
_MARKED: tuple[Verdict, ...] = ("undecided", "not usable")
"""Verdicts whose sign stands behind the ratio."""


@dataclass(frozen=True)
class _Square:
    """One cell: its panel, its place, its value and how it is written."""

    panel: str
    x: str
    y: str
    value: float
    text: str


def plot_heat(
    estimates: pd.DataFrame,
    metric: str,
    factors: tuple[str, str],
    *,
    workload: str,
    label: str = "",
    filesystems: Sequence[str],
) -> Plot:
    """Return the means of a metric over two swept options (the first to the right), one panel a file system (and, with
    more options, a combination of the others).

    `estimates`: a Run's frame; `filesystems`: all of the sweep, in its order. Cells without a figure are hatched, and
    said. Raises InputError where no cell has a figure.
    """
    same = (estimates["metric"] == metric) & (estimates["workload"] == workload) & (estimates["label"] == label)
    rows = [row for row in estimates[same].to_dict("records") if math.isfinite(float(row["mean"]))]
    require(rows, f"estimate of {metric} under {workload}")
    scale = scale_for(str(rows[0]["unit"]), max(abs(float(row["mean"])) for row in rows))
    columns = list(estimates.columns)
    swept = columns[columns.index("workload") + 1 : columns.index("metric")] if "workload" in columns else []
    others = [name for name in swept if name not in factors and len({row[name] for row in rows}) > 1]
    squares = []
    for row in (row for name in filesystems for row in rows if row["filesystem"] == name):
        panel = " ".join([str(row["filesystem"]), *(f"{key}={row[key]}" for key in others)])
        mean = float(row["mean"])
        text = numbers.mean_figures(mean, math.nan, math.nan, factor=scale.factor).value
        squares.append(_Square(panel, str(row[factors[0]]), str(row[factors[1]]), mean, text))
    values = [square.value for square in squares]
    norm = LogNorm(min(values), max(values) * 1.0001) if min(values) > 0 else Normalize(min(values), max(values))
    what = f"{metric_heading(metric, label)} under {workload}, {scale.unit}"
    return _heat(squares, factors, mpl.colormaps["cividis"], norm, what)


def plot_ratio_heat(
    comparisons: Sequence[Comparison], metric: str, factors: tuple[str, str], *, workload: str, label: str = ""
) -> Plot:
    """Return the ratios to the baseline over two swept options (the first to the right), one panel a file system.

    Orange is more than the baseline and purple less; a question mark stands where the verdict is undecided. Raises
    InputError where there is no ratio.
    """
    same = [c for c in comparisons if (c.metric, c.workload, c.label) == (metric, workload, label)]
    drawn = [c for c in same if verdicts.effect(c) >= 0 and set(factors) <= c.factors.keys()]
    require(drawn, f"ratio of {metric} under {workload}")
    squares = []
    for comparison in drawn:
        others = (f"{key}={level}" for key, level in comparison.factors.items() if key not in factors)
        x, y = (comparison.factors[factor] for factor in factors)
        text = numbers.ratio_figures(comparison.ratio, math.nan, math.nan).value
        text += verdicts.SIGNS[comparison.verdict][0] if comparison.verdict in _MARKED else ""
        squares.append(_Square(" ".join([comparison.candidate, *others]), x, y, comparison.ratio, text))
    widest = max(_LEAST_SPAN, *(max(comparison.ratio, 1 / comparison.ratio) for comparison in drawn))
    what = f"{metric_heading(metric, label)} under {workload}, ratio to {drawn[0].baseline}"
    key = f"; orange: more than {short(drawn[0].baseline, 12)}, purple: less"
    present = [verdict for verdict in _MARKED if any(comparison.verdict == verdict for comparison in drawn)]
    undecided = "".join(f"; {verdicts.SIGNS[verdict].replace(' ', ': ', 1)}" for verdict in present)
    return _heat(squares, factors, mpl.colormaps["PuOr_r"], LogNorm(1 / widest, widest), what, key + undecided)


def _heat(
    squares: Sequence[_Square], factors: tuple[str, str], colours: Colormap, norm: Normalize, what: str, note: str = ""
) -> Plot:
    every = list(dict.fromkeys(square.panel for square in squares))
    across, up = levels_of(square.x for square in squares), levels_of(square.y for square in squares)
    shown = every[:MOST_PANELS]
    columns = min(len(shown), max(1, 9 // len(across.names)))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, WIDTH_IN))
        grid = figure.subplots(math.ceil(len(shown) / columns), columns, squeeze=False, sharex=True, sharey=True)
        for axes in grid.flatten()[len(shown) :]:
            axes.remove()
        for axes, panel in zip(grid.flatten(), shown, strict=False):
            _draw(axes, [square for square in squares if square.panel == panel], across, up, colours, norm)
            title_panel(axes, panel)
        more = f"; the first {len(shown)} of {len(every)}" if len(every) > len(shown) else ""
        figure.supxlabel(f"{factors[0]}{note}{more}", fontsize=TEXT_PT)
        figure.supylabel(factors[1], fontsize=TEXT_PT)
        lay_out(figure, _CELL_IN * len(up.names))
        _shrink_numbers(figure, len(across.names))
    least, most = min(squares, key=lambda square: square.value), max(squares, key=lambda square: square.value)
    ends = " to ".join(f"{square.text.rstrip('?')} ({_where(square, factors)})" for square in (least, most))
    missing = len(every) * len(across.names) * len(up.names) - len(squares)
    lines = [f"{_where(square, factors)}: {square.text}" for square in sorted(squares, key=lambda s: -s.value)]
    absent = f" {numbers.counted(missing, 'cell')} without a figure, hatched." if missing else ""
    return Plot(figure, f"{what}: {ends}", f"{what}, by {factors[0]} and {factors[1]}. {in_alt(lines)}{absent}")


def _where(square: _Square, factors: tuple[str, str]) -> str:
    return f"{square.panel}, {factors[0]}={square.x} {factors[1]}={square.y}"


def _draw(
    axes: Axes, squares: Sequence[_Square], across: Levels, up: Levels, colours: Colormap, norm: Normalize
) -> None:
    """Squares in rows and columns, each with its number; hatched where nothing is known."""
    at = {(square.x, square.y): square for square in squares}
    for column, x in enumerate(across.names):
        for row, y in enumerate(up.names):
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": INK, "hatch": "////", "alpha": 0.35}
            if square := at.get((x, y)):
                face = colours(norm(square.value))
                look = {"facecolor": face, "edgecolor": face, "alpha": 1.0}
                brightness = 0.2126 * face[0] + 0.7152 * face[1] + 0.0722 * face[2]
                ink = _LIGHT if brightness < 0.45 else _DARK
                axes.text(column, row, square.text, color=ink, ha="center", va="center_baseline", fontsize=SMALL_PT)
            axes.add_patch(mpl.patches.Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, linewidth=0.4, **look))
    axes.set(xlim=(-0.55, len(across.names) - 0.45), ylim=(-0.55, len(up.names) - 0.45))
    set_ticks(axes.xaxis, range(len(across.names)), [short(name, 10) for name in across.names])
    set_ticks(axes.yaxis, range(len(up.names)), [short(name, 14) for name in up.names])
    axes.tick_params(which="both", length=0)
    axes.spines["bottom"].set_visible(False)


def _shrink_numbers(figure: Figure, columns: int) -> None:
    """Smaller numbers where cells are narrow, and none where they could not be read: the tables have them."""
    room = 72 * figure.axes[0].get_position().width * WIDTH_IN / (columns + 0.1)
    texts = [text for axes in figure.axes for text in axes.texts]
    widest = max((width_pt(text.get_text(), SMALL_PT) for text in texts), default=0.0)
    size = min(SMALL_PT, SMALL_PT * 0.94 * room / widest) if widest else SMALL_PT
    for text in texts:
        text.set_fontsize(size)
        text.set_visible(size >= _LEAST_PT)
