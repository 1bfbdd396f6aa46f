"""Where the time of an operation goes: one stacked bar a file system, a panel for each statistic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.findings import Estimate
from mountlab.core.groups import by_key
from mountlab.core.layers import LAYERS, THROUGH, layer_noun
from mountlab.core.names import latency_noun
from mountlab.core.units import scale_for
from mountlab.plots.axes import beside, in_alt, interval
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.panels import own_x_scale
from mountlab.plots.style import ROW_IN, SMALL_PT, STYLE, TEXT_PT, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.texts import short, width_pt
from mountlab.plots.ticks import plain_ticks

LAYER_COLOURS: dict[str, str] = {
    "tool": "#882255", "processor": "#88CCEE", "run_queue": "#332288", "lock": "#AA4499", "freeze": "#994455",
    "reclaim": "#EE99AA", "writeback": "#117733",
    "journal": "#DDCC77", "queue": "#999933", "device": "#44AA99", "flush": "#CC6677", "unattributed": "#BBBBBB",
}  # fmt: skip
"""One colour for each layer, in every picture: Paul Tol's muted palette, made for colour-blind readers, with two of his
medium-contrast one. None of them is
the colour of a file system."""
PATTERNS: dict[str, Mark] = {
    "journal": Mark(INK, "$/$", "▨"), "checkpoint": Mark(INK, "$x$", "▩"), "writeback": Mark(INK, "$:$", "▦")
}  # fmt: skip
"""How a part is filled that an operation waited for on behalf of something else."""
_HATCHES = {"own": "", "journal": "/////", "checkpoint": "xxxxx", "writeback": "...."}
PATTERNED: dict[Any, Any] = {**STYLE, "hatch.linewidth": 0.7, "hatch.color": INK}
_ROW = 1.9
"""The height of a row, in those of a row of text: a pattern needs room to be seen."""
_NAMED, _WHISKER = -0.09, 0.22
"""Where the name of a part and the interval stand, in heights of a row below its middle: neither covers the other."""
_LEAST_IN_KEY = 0.005
"""Of the longest bar: a part that is smaller in every bar cannot be seen, and has no key."""


@dataclass(frozen=True)
class LayerBar:
    """One bar: the latency of an operation on a file system, and its parts from left to right."""

    filesystem: str
    statistic: str
    whole: Estimate
    """The latency itself."""
    parts: Mapping[tuple[str, str], float]
    """(layer, through) to seconds."""


def plot_layers(bars: Sequence[LayerBar], operation: str, workload: str) -> Plot:
    """Return the latencies of an operation under a workload as stacked bars, one panel a statistic, each with its own
    scale from 0; a whisker is the interval of the whole. What an operation waited for on behalf of a journal, its
    checkpoint or writeback is patterned.

    `bars`: means over diagnostic trials, file systems in the order in which they are to stand. Raises InputError where
    there is none.
    """
    drawn = [bar for bar in bars if sum(bar.parts.values()) > 0]
    require(drawn, f"split of {operation} latency")
    statistics = list(dict.fromkeys(bar.statistic for bar in drawn))
    names = list(dict.fromkeys(bar.filesystem for bar in drawn))
    with mpl.rc_context(PATTERNED):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        panels = figure.subplots(len(statistics), 1, squeeze=False).flatten()
        for axes, statistic in zip(panels, statistics, strict=True):
            _panel(axes, [bar for bar in drawn if bar.statistic == statistic], names, operation)
            if len(panels) > 1:
                own_x_scale(axes)
        lay_out(figure, _ROW * ROW_IN * len(names))
        for axes, statistic in zip(panels, statistics, strict=True):
            _label_parts(axes, [bar for bar in drawn if bar.statistic == statistic], names)
    first = [bar for bar in drawn if bar.statistic == statistics[0]]
    lines = []
    for bar in drawn:  # 'ext4, mean sync latency: 1.49 ms: 60 % flushes (for the journal), 17 % the device'
        largest = sorted(bar.parts.items(), key=lambda item: -item[1])[:3]
        shares = (f"{numbers.percent(round(size / _length(bar), 2))} {layer_noun(*part)}" for part, size in largest)
        noun = latency_noun(operation, bar.statistic)
        lines.append(f"{bar.filesystem}, {noun}: {numbers.quantity(bar.whole.mean, 's')}: {', '.join(shares)}")
    key = key_of(by_key((bar.statistic, bar.parts) for bar in drawn).values())
    title = _finding(first, operation, workload)
    return Plot(figure, title, f"Parts of {operation} latency. {in_alt(lines)}", key)


def _panel(axes: Axes, bars: Sequence[LayerBar], names: Sequence[str], operation: str) -> None:
    scale = scale_for("s", max(map(_length, bars)))
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_yticks(range(len(names)), labels=[short(name, 20) for name in names], fontsize=TEXT_PT)
    highest = max(max(_length(bar), bar.whole.high if math.isfinite(bar.whole.high) else 0.0) for bar in bars)
    axes.set_xlim(0, min(highest, 1.5 * max(map(_length, bars))) / scale.factor * 1.02)
    plain_ticks(axes.xaxis, 6, decimals=9)
    title_panel(axes, f"{latency_noun(operation, bars[0].statistic)}, {scale.unit}")
    for bar in bars:
        y, left = names.index(bar.filesystem), 0.0
        for (layer, through), seconds in bar.parts.items():
            look = look_of(layer, through)
            axes.barh([y], [seconds / scale.factor], left=[left], height=0.66, zorder=2, **look)
            left += seconds / scale.factor
        interval(axes, y + _WHISKER, bar.whole.low / scale.factor, bar.whole.high / scale.factor, colour=INK, width=1.4)
        beside(axes, 1, y, numbers.quantity(bar.whole.mean, "s"))


def _length(bar: LayerBar) -> float:
    return sum(bar.parts.values())


def _label_parts(axes: Axes, bars: Sequence[LayerBar], names: Sequence[str]) -> None:
    """The name of a layer in each part that has room for it: the layout has settled how wide the panel is."""
    scale = scale_for("s", max(map(_length, bars)))
    wide = 72 * WIDTH_IN * axes.get_position().width / axes.get_xlim()[1]
    for bar in bars:
        left = 0.0
        for (layer, through), seconds in bar.parts.items():
            size, text = seconds / scale.factor, LAYERS[layer].key
            if width_pt(text, SMALL_PT) + 6 < size * wide:
                colour = LAYER_COLOURS[layer]
                brightness = sum(w * part for w, part in zip((0.299, 0.587, 0.114), to_rgb(colour), strict=True))
                # On the part's own colour where lines would cross it.
                box = {"boxstyle": "square,pad=0.12", "facecolor": colour, "edgecolor": "none"}
                look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": SMALL_PT, "zorder": 4}
                look |= {"color": "#FFFFFF" if brightness < 0.5 else "#000000"}
                look |= {"bbox": box if _HATCHES[through] else None}
                axes.text(left + size / 2, names.index(bar.filesystem) + _NAMED, text, **look)
            left += size


def look_of(layer: str, through: str) -> dict[str, Any]:
    """Return how a part is filled."""
    return {"color": LAYER_COLOURS[layer], "edgecolor": INK, "linewidth": 0.5, "hatch": _HATCHES[through]}


def key_of(panels: Iterable[Sequence[Mapping[tuple[str, str], float]]]) -> dict[str, Mark]:
    """Return the key to the parts that can be seen. `panels`: of each the rows, (layer, through) to seconds."""
    seen = {
        part
        for rows in panels
        for row in rows
        for part, seconds in row.items()
        if seconds >= _LEAST_IN_KEY * max(sum(parts.values()) for parts in rows)
    }
    layers, patterns = {layer for layer, _ in seen}, {through for _, through in seen}
    return {
        **{LAYERS[layer].key: Mark(colour, "s", "■") for layer, colour in LAYER_COLOURS.items() if layer in layers},
        **{THROUGH[through]: mark for through, mark in PATTERNS.items() if through in patterns},
    }


def _finding(bars: Sequence[LayerBar], operation: str, workload: str) -> str:
    """'Largest part of the mean sync latency: flush on ext4 and xfs, processor on tmpfs (fsync)'."""
    largest: dict[str, list[str]] = {}
    for bar in bars:
        by_layer: dict[str, float] = {}
        for (layer, _), seconds in bar.parts.items():
            by_layer[layer] = by_layer.get(layer, 0.0) + seconds
        largest.setdefault(max(by_layer, key=lambda layer: by_layer[layer]), []).append(short(bar.filesystem, 20))
    shares = ", ".join(f"{LAYERS[layer].key} on {numbers.listed(names)}" for layer, names in largest.items())
    return f"Largest part of the {latency_noun(operation, bars[0].statistic)} under {workload}: {shares}"
