"""Estimates and trials as figures. Draws the intervals that it is given and computes none of its own.

Every plot is a frozen `Plot`: a Matplotlib figure, a title that states the finding, and a text for those who do not
see it. As HTML it is inline SVG whose text and axes take the colour of the page, so that it works on light and dark.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from statistics import fmean
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from mountlab import html, words
from mountlab.errors import InputError
from mountlab.model import Comparison, PublishedFigure, higher_is_better
from mountlab.units import Scale, scale_for

_WIDTH_IN, _ROW_IN, _AXIS_IN = 4.9, 0.215, 0.55
"""All figures are equally wide (353 points): legible on a phone, and two fit side by side on a desk."""
_LONGEST_LABEL, _MOST_IN_ALT = 34, 12

_SMALLEST_PRINT = 0.7
"""In a narrow figure letters shrink to this share at most: 6.7 points."""

_INK = "#010203"
"""Stands for the text colour of the page; no data series has it."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "mountlab", "text.parse_math": False, "font.size": 9.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.edgecolor": _INK, "axes.labelcolor": _INK, "text.color": _INK, "xtick.color": _INK, "ytick.color": _INK,
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


_MARKS = (
    Mark("#0072B2", "o", "●"), Mark("#D55E00", "s", "■"), Mark("#009E73", "^", "▲"), Mark("#CC79A7", "D", "◆"),
    Mark("#E69F00", "v", "▼"), Mark("#56B4E9", "P", "✚"), Mark("#8C8C8C", "X", "✖"),
)  # fmt: skip
"""Okabe and Ito's palette without black and yellow (which vanish on one of the two backgrounds), and a grey."""


def colour_of(filesystems: Sequence[str]) -> dict[str, Mark]:
    """One colour and one marker for each file system, by its place in the sweep; the eighth has the first again."""
    return {name: _MARKS[place % len(_MARKS)] for place, name in enumerate(dict.fromkeys(filesystems))}


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
        with mpl.rc_context(_STYLE):
            self.figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        # Drawn again, constrained layout would move things a little; the second drawing is to be the same as the first.
        self.figure.set_layout_engine("none")
        return _for_page(buffer.getvalue(), alt=self.alt)

    def save_bytes(self, form: str, *, width_in: float) -> bytes:
        """The figure at the size of a paper, `form` svg, png or pdf: black on white, letters of the size of print."""
        width, height = self.figure.get_size_inches()
        sink = io.BytesIO()
        undated = {"svg": ("Date", "Creator", "Format", "Type"), "png": ("Software",)}.get(
            form, ("CreationDate", "Creator", "Producer")
        )
        with mpl.rc_context(_STYLE):
            shrunk = max(_SMALLEST_PRINT, min(1.0, width_in / width))
            self._scale_text(shrunk)
            self.figure.set_layout_engine("constrained")
            self.figure.set_size_inches(width_in, height * max(shrunk, width_in / width))
            self.figure.savefig(sink, format=form, dpi=300, facecolor="white", metadata=dict.fromkeys(undated))
            self.figure.set_size_inches(width, height)
            self._scale_text(1 / shrunk)
        return sink.getvalue()

    def _scale_text(self, factor: float) -> None:
        for text in self.figure.findobj(Text):
            text.set_fontsize(float(text.get_fontsize()) * factor)

    def _repr_html_(self) -> str:
        keys = [html.swatch(name, mark.colour, mark.glyph) for name, mark in self.legend.items()]
        return html.figure(self.title, html.Html(self.svg()), keys=keys).text


# ── SVG for a page ───────────────────────────────────────────────────────────────────────────────────────────────────


def _for_page(document: str, *, alt: str) -> str:
    """The <svg> element of a document, with page colours, page fonts, unique ids, and its alternative text."""
    body = _WITHOUT.sub("", document[document.index("<svg") :]).strip()
    prefix = f"p{hashlib.sha256((alt + body).encode()).hexdigest()[:8]}-"
    body = _TAG.sub(lambda tag: _mend_tag(tag[0], prefix), body)
    head = f'<svg role="img" aria-label="{escape(alt)}" style="{_SVG_STYLE}"'
    return _CONTROL.sub("\ufffd", head + body.removeprefix("<svg"))


_WITHOUT = re.compile(r"<!--.*?-->\s*|<style.*?</style>\s*", re.DOTALL)
"""Inside a page the style element of one figure would apply to all of the page; what it says is in _SVG_STYLE."""
_SVG_STYLE = "max-width: min(100%, 33rem); height: auto; stroke-linejoin: round; stroke-linecap: butt"
_TAG = re.compile(r"<[^!>]+>")
"""A tag, and never text: Matplotlib escapes the < and > of texts and attributes."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def _mend_tag(tag: str, prefix: str) -> str:
    tag = re.sub(r'\bid="', f'id="{prefix}', tag)
    tag = tag.replace("url(#", f"url(#{prefix}").replace('xlink:href="#', f'href="#{prefix}')
    tag = tag.replace(_INK, "currentColor")
    return re.sub(r"font-family: [^;\"]+", "font-family: inherit", tag)


# ── axes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a log axis from `low` to `high` (> 0): 1-2-5 steps, decades if wide, even steps if narrow."""
    if high / low < 3:
        return [float(tick) for tick in MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high) if tick > 0]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps: tuple[int, ...] = (1, 2, 5) if high / low < 200 else (1,)
    every = max(1, len(decades) // 6)
    return [step * 10.0**decade for decade in list(decades)[::every] for step in steps]


def tick_text(value: float) -> str:
    """A tick as people write it: '0.5', '1', '2 000'; never 10^x."""
    fraction = f"{value:.9f}".rstrip("0").partition(".")[2]
    return words.number(value, len(fraction))


def _log_axis(axes: Axes, low: float, high: float) -> None:
    """A log x axis over the data with some room, and ticks that people can read."""
    room = max((high / low) ** 0.04, 1.005)
    low, high = low / room, high * room
    ticks = [tick for tick in log_ticks(low, high) if low <= tick <= high]
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([tick_text(tick) for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())


def _reach(points: Sequence[float], bounds: Iterable[float], *, log: bool) -> tuple[float, float]:
    """Where an axis begins and ends: at the bounds of the intervals, but where these are vast nearer to the points.

    On a log axis four times beyond the points, on a linear one as far again as they are spread. Intervals that go on
    are drawn with an arrowhead.
    """
    low, high = min(points), max(points)
    room = high - low or abs(high) * 0.1 or 1.0
    furthest = (low / 4, high * 4) if log else (low - room, high + room)
    known = [bound for bound in bounds if math.isfinite(bound)]
    return max(min([low, *known]), furthest[0]), min(max([high, *known]), furthest[1])


@dataclass(frozen=True)
class _Rows:
    """Vertical places for rows under headings, from the top down: {(group, name): y} and {group: y}."""

    places: Mapping[tuple[str, str], float]
    headings: Mapping[str, float]
    spans: Sequence[tuple[float, float]]
    """From above the first to below the last row of each group."""
    count: float

    @staticmethod
    def of(groups: Mapping[str, Sequence[str]]) -> _Rows:
        places, headings, spans, y = {}, {}, [], 0.0
        for group, names in groups.items():
            headings[group] = y
            for name in names:
                y += 1
                places[group, name] = y
            spans.append((headings[group] + 0.45, y + 0.5))
            y += 1.3
        return _Rows(places, headings, spans, y)


@contextmanager
def _row_figure(rows: _Rows) -> Iterator[tuple[Figure, Axes]]:
    """A figure in our style whose axes have a named place for each row, and the headings above them."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH_IN, rows.count * _ROW_IN + _AXIS_IN), layout="constrained")
        axes = figure.subplots()
        axes.set_ylim(rows.count - 0.6, -0.7)
        axes.set_yticks(list(rows.places.values()), labels=[_short(name, 20) for _, name in rows.places])
        for group, y in rows.headings.items():
            _beside(axes, 0, y, _short(group, 52), weight="bold", shift=0)
        yield figure, axes


def _beside(axes: Axes, x: float, y: float, text: str, *, weight: str = "normal", shift: float = 8) -> None:
    """Text at a fraction of the width (0 left, 1 right) and at a row."""
    axes.annotate(
        text, (x, y), xycoords=axes.get_yaxis_transform(), xytext=(shift, 0), textcoords="offset points",
        va="center_baseline", ha="left", weight=weight, annotation_clip=False,
    )  # fmt: skip


def _short(text: str, longest: int = _LONGEST_LABEL) -> str:
    """A label on one line and of a length that leaves room for the data; tables carry the whole name."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _in_alt(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _MOST_IN_ALT} more, in the tables" if len(lines) > _MOST_IN_ALT else ""
    return "; ".join(lines[:_MOST_IN_ALT]) + more + "."


# ── ratios to the baseline ───────────────────────────────────────────────────────────────────────────────────────────


def plot_ratios(
    comparisons: Sequence[Comparison], *, smallest_effect: float = 0.02, filesystems: Sequence[str] = ()
) -> Plot:
    """Ratios to the baseline, on a log axis, the strongest effect on top; undecided is hollow. The intervals are those
    that hold for all comparisons together.

    `filesystems`: all of the sweep, in its order, so that colours are those of the other plots. Raises InputError where
    no comparison has a ratio.
    """
    known = [words.together(each) for each in comparisons if words.effect(each) >= 0]
    _some(known, "ratio")
    groups: dict[str, list[Comparison]] = {}
    for each in sorted(known, key=lambda c: -words.effect(c)):
        groups.setdefault(_ratio_group(each, known), []).append(each)
    rows = _Rows.of({group: [c.candidate for c in members] for group, members in groups.items()})
    marks = colour_of(filesystems or sorted({c.candidate for c in known}))
    with _row_figure(rows) as (figure, axes):
        _ratio_axis(axes, rows, [c.ratio for c in known], known, known[0].baseline, smallest_effect)
        for group, members in groups.items():
            for each in members:
                _draw_ratio(axes, rows.places[group, each.candidate], each, marks[each.candidate])
    lines = [f"{c.candidate}, {group}: {_spoken(c, smallest_effect)}" for group, cs in groups.items() for c in cs]
    alt = f"Ratios to {known[0].baseline} with {words.percent(known[0].level)} intervals. {_in_alt(lines)}"
    return Plot(figure, words.finding(known, smallest_effect), alt)


def _some(found: Sequence[object], what: str) -> None:
    if not found:
        raise InputError(f"there is no {what} to plot", next_step="plot only what the run has measured")


def _ratio_group(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """The workload, and the metric where the workload alone would not tell two rows of a candidate apart."""
    label = words.workload_label(comparison.workload, comparison.factors)
    same_workload = {
        (c.metric, c.label) for c in among if (c.workload, c.factors) == (comparison.workload, comparison.factors)
    }
    noun = words.metric_noun(comparison.metric, comparison.label)
    less = "" if higher_is_better(comparison.metric) else " (less is better)"
    return f"{label}: {noun}{less}" if len(same_workload) > 1 or less else label


def _spoken(comparison: Comparison, smallest_effect: float) -> str:
    figures = words.ratio_figures(comparison.ratio, comparison.low, comparison.high)
    return f"{figures} {words.verdict_text(comparison.verdict, smallest_effect)}"


def _interval(axes: Axes, y: float, low: float, high: float, *, colour: str, width: float = 2.2) -> None:
    """A line from low to high; cut at the ends of the axis, with an arrowhead where it goes on. NaN draws nothing."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return
    left, right = axes.get_xlim()
    axes.plot([max(low, left), min(high, right)], [y, y], color=colour, linewidth=width, solid_capstyle="butt")
    for beyond, x, head in ((low < left, left, "<"), (high > right, right, ">")):
        if beyond:
            axes.plot([x], [y], head, color=colour, markersize=4.5, clip_on=False)


def _dot(axes: Axes, x: float, y: float, mark: Mark, *, hollow: bool = False, size: float = 5.5) -> None:
    face = "none" if hollow else mark.colour
    axes.plot([x], [y], mark.marker, color=mark.colour, markerfacecolor=face, markersize=size, linestyle="none")


def _draw_ratio(axes: Axes, y: float, comparison: Comparison, mark: Mark) -> None:
    """Interval, dot (hollow where undecided) and figures of one comparison."""
    _interval(axes, y, comparison.low, comparison.high, colour=mark.colour)
    _dot(axes, comparison.ratio, y, mark, hollow=comparison.verdict == "undecided")
    _beside(axes, 1, y, str(words.ratio_figures(comparison.ratio, comparison.low, comparison.high)))


def _ratio_axis(
    axes: Axes, rows: _Rows, ratios: Sequence[float], comparisons: Sequence[Comparison], baseline: str, zone: float
) -> None:
    """A log axis with the baseline as a line, and the zone of effects that do not matter shaded."""
    bounds = [bound for each in comparisons for bound in (each.low, each.high)]
    _log_axis(axes, *_reach([*ratios, 1 - zone, 1 + zone], bounds, log=True))
    _lines(axes, rows)
    for top, bottom in rows.spans:
        axes.fill_betweenx([top, bottom], 1 - zone, 1 + zone, color=_INK, alpha=0.15, linewidth=0)
        axes.plot([1, 1], [top, bottom], color=_INK, linewidth=1.0)
    shaded = f"; shaded: ±{words.percent(zone)}" if zone else ""
    hollow = "; hollow: undecided" if any(each.verdict == "undecided" for each in comparisons) else ""
    axes.set_xlabel(f"ratio to {_short(baseline, 20)} = 1{shaded}{hollow}")


def _lines(axes: Axes, rows: _Rows) -> None:
    """Faint lines at the ticks, below the rows only: headings stay clear of them."""
    left, right = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if left <= tick <= right]
    for top, bottom in rows.spans:
        axes.vlines(ticks, top, bottom, color=_INK, alpha=0.16, linewidth=0.6, zorder=0)


# ── trials and means ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Trial:
    """One value of one trial; `group` is its workload, and its label where rows have one."""

    filesystem: str
    group: str
    block: int
    warmup: bool
    value: float
    place: float
    """Where it came in the run: 1, 2, ... over all trials of the frame."""


@dataclass(frozen=True)
class _Mean:
    filesystem: str
    group: str
    n: int
    figures: words.Figures
    """As they are shown."""
    mean: float
    low: float
    high: float


def _trials_of(measurements: pd.DataFrame, metric: str) -> list[_Trial]:
    """The trials of one metric in run order. Raises InputError where there is none."""
    order = measurements["seq"] if "seq" in measurements else measurements["trial_id"].map(_first_seen(measurements))
    placed = measurements.assign(place=order.rank(method="dense"))
    rows = placed[placed["metric"] == metric].sort_values("place", kind="stable").to_dict("records")
    _some(rows, f"trial with {metric}")
    return [
        _Trial(
            row["filesystem"], _group(row), int(row["block"]), bool(row["warmup"]), float(row["value"]), row["place"]
        )
        for row in rows
    ]


def _first_seen(measurements: pd.DataFrame) -> dict[str, int]:
    return {trial: place for place, trial in enumerate(dict.fromkeys(measurements["trial_id"]))}


def _means_of(estimates: pd.DataFrame, metric: str, scale: Scale) -> list[_Mean]:
    means = []
    for row in estimates[estimates["metric"] == metric].to_dict("records"):
        mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
        figures = words.mean_figures(mean, low, high, factor=scale.factor)
        shown = (bound / scale.factor for bound in (mean, low, high))
        means.append(_Mean(row["filesystem"], _group(row), int(row["n"]), figures, *shown))
    return means


def _group(row: Mapping[Any, Any]) -> str:
    label = row["label"]
    workload = str(row["cell"]).removeprefix(f"{row['filesystem']}/")
    return f"{workload} ({label})" if isinstance(label, str) and label else workload


def _scale_of(measurements: pd.DataFrame, metric: str) -> Scale:
    part = measurements[measurements["metric"] == metric]
    return scale_for(str(part["unit"].iloc[0]), float(part["value"].max()))


# ── every trial ──────────────────────────────────────────────────────────────────────────────────────────────────────


def plot_trials(
    measurements: pd.DataFrame,
    estimates: pd.DataFrame,
    metric: str,
    *,
    filesystems: Sequence[str] = (),
    workloads: Sequence[str] = (),
) -> Plot:
    """Every counted trial of one metric as a dot, with the mean and interval of its cell from `estimates`.

    `measurements` and `estimates`: frames of a Run. Dots of a row stand apart in the order of their blocks.
    `filesystems` and `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has
    the metric.
    """
    trials = [trial for trial in _trials_of(measurements, metric) if not trial.warmup]
    _some(trials, f"counted trial with {metric}")
    marks = colour_of(filesystems or sorted({trial.filesystem for trial in trials}))
    scale = _scale_of(measurements, metric)
    means = _means_of(estimates, metric, scale)
    rows = _Rows.of(_names_by_group(trials, list(marks), workloads))
    with _row_figure(rows) as (figure, axes):
        _draw_trials(axes, trials, rows, marks, scale)
        _value_axis(axes, [trial.value / scale.factor for trial in trials], means)
        _lines(axes, rows)
        axes.set(xlabel=f"{words.metric_noun(metric)}, {scale.unit}", ylabel="")
        for mean in means:
            _draw_mean(axes, rows.places[mean.group, mean.filesystem], mean)
    return Plot(figure, _span_title(means, metric, scale), _trials_alt(means, metric, scale))


def _names_by_group(
    trials: Sequence[_Trial], filesystems: Sequence[str], workloads: Sequence[str]
) -> dict[str, list[str]]:
    """Groups in the order of the workloads, and in each the file systems that occur, in their order."""
    present = {(trial.group, trial.filesystem) for trial in trials}
    groups = _ordered({trial.group for trial in trials}, workloads)
    return {group: [name for name in filesystems if (group, name) in present] for group in groups}


def _ordered(groups: Iterable[str], workloads: Sequence[str]) -> list[str]:
    """Groups as the workloads are ordered; those of one workload, and unknown ones, by name."""
    places = {f"{workload} (": place for place, workload in enumerate(workloads)}
    known = {group: [place for start, place in places.items() if f"{group} (".startswith(start)] for group in groups}
    return sorted(known, key=lambda group: (min(known[group], default=len(places)), group))


def _draw_trials(axes: Axes, trials: Sequence[_Trial], rows: _Rows, marks: Mapping[str, Mark], scale: Scale) -> None:
    first, last = min(trial.block for trial in trials), max(trial.block for trial in trials)
    frame = pd.DataFrame(
        {
            "value": [trial.value / scale.factor for trial in trials],
            # Moved by block, not at random: equal values stay visible, and the picture stays the same.
            "y": [
                rows.places[trial.group, trial.filesystem] + 0.5 * ((trial.block - first) / max(last - first, 1) - 0.5)
                for trial in trials
            ],
            "filesystem": [trial.filesystem for trial in trials],
        }
    )
    sns.scatterplot(
        frame, x="value", y="y", hue="filesystem", style="filesystem", ax=axes, legend=False, s=20, linewidth=0,
        alpha=0.75, palette={name: mark.colour for name, mark in marks.items()},
        markers={name: mark.marker for name, mark in marks.items()},
    )  # fmt: skip


def _draw_mean(axes: Axes, y: float, mean: _Mean) -> None:
    _interval(axes, y, mean.low, mean.high, colour=_INK, width=1.2)
    axes.plot([mean.mean], [y], "|", color=_INK, markersize=9, markeredgewidth=1.6)
    _beside(axes, 1, y, mean.figures.value)


def _value_axis(axes: Axes, values: Sequence[float], means: Sequence[_Mean]) -> None:
    """Log where the values are spread over more than a factor of three, else linear over the data."""
    bounds = [bound for mean in means for bound in (mean.low, mean.high)]
    low, high = min(values), max(values)
    if low > 0 and high / low > 3:
        _log_axis(axes, *_reach(values, bounds, log=True))
    else:
        left, right = _reach(values, bounds, log=False)
        axes.set_xlim(left - 0.04 * (right - left), right + 0.04 * (right - left))


def _span_title(means: Sequence[_Mean], metric: str, scale: Scale) -> str:
    heading = words.metric_heading(metric)
    if not means:
        return f"{heading}: every trial"
    ends = (min(means, key=lambda m: m.mean), max(means, key=lambda m: m.mean))
    low, high = (f"{end.figures.value} {scale.unit} ({end.filesystem}, {end.group})" for end in ends)
    return f"{heading}: {low} to {high}" if len(means) > 1 else f"{heading}: {low}"


def _trials_alt(means: Sequence[_Mean], metric: str, scale: Scale) -> str:
    lines = [f"{mean.filesystem}, {mean.group}: {mean.figures}, n = {mean.n}" for mean in means]
    what = f"Every trial of {words.metric_noun(metric)} in {scale.unit}, with mean and interval of each cell."
    return f"{what} {_in_alt(lines)}" if lines else what


# ── run order ────────────────────────────────────────────────────────────────────────────────────────────────────────


def plot_run_order(
    measurements: pd.DataFrame, metric: str, *, filesystems: Sequence[str] = (), workloads: Sequence[str] = ()
) -> Plot:
    """Every trial of one metric in the order in which it ran, over the mean of its cell's counted trials.

    Steps, drift and warm-up show alike for fast and slow cells. Warm-up trials are hollow; bands are blocks.
    `measurements`: a Run's frame in the order of the run, or with a column `seq` that gives it. `filesystems` and
    `workloads` (labels): all of the sweep, in its order. Raises InputError where no counted trial has the metric.
    """
    trials = _relative(_trials_of(measurements, metric))
    _some([trial for trial in trials if not trial.warmup], f"counted trial with {metric}")
    marks = colour_of(filesystems or sorted({trial.filesystem for trial in trials}))
    groups = _ordered({trial.group for trial in trials}, workloads)
    with mpl.rc_context({**_STYLE, "axes.spines.left": True}):
        figure = Figure(figsize=(_WIDTH_IN, 1.0 * len(groups) + _AXIS_IN), layout="constrained")
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for axes, group in zip(panels, groups, strict=True):
            _draw_bands(axes, trials)
            _draw_order(axes, [trial for trial in trials if trial.group == group], group, marks)
        panels[-1].set_xlabel("trial in run order; bands: blocks; hollow: warm-up")
    finding = _departure(trials)
    alt = f"Each trial's {words.metric_noun(metric)} over the mean of its cell, by run order: {finding}."
    present = {trial.filesystem for trial in trials}
    legend = {name: mark for name, mark in marks.items() if name in present}
    return Plot(figure, f"{words.metric_heading(metric)} in run order: {finding}", alt, legend)


def _relative(trials: Sequence[_Trial]) -> list[_Trial]:
    """The trials with `value` over the mean of their cell's counted trials; without those of cells that have none."""
    values: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        if not trial.warmup:
            values.setdefault((trial.filesystem, trial.group), []).append(trial.value)
    means = {key: fmean(counted) for key, counted in values.items()}
    keyed = [(trial, means.get((trial.filesystem, trial.group), 0.0)) for trial in trials]
    return [replace(trial, value=trial.value / mean) for trial, mean in keyed if mean]


def _draw_bands(axes: Axes, trials: Sequence[_Trial]) -> None:
    """Every other block shaded, and the line of the means."""
    for block in sorted({trial.block for trial in trials})[::2]:
        places = [trial.place for trial in trials if trial.block == block]
        axes.axvspan(min(places) - 0.5, max(places) + 0.5, color=_INK, alpha=0.07, linewidth=0)
    axes.axhline(1, color=_INK, linewidth=0.8)


def _draw_order(axes: Axes, trials: Sequence[_Trial], group: str, marks: Mapping[str, Mark]) -> None:
    for name in dict.fromkeys(trial.filesystem for trial in trials):
        own, mark = [trial for trial in trials if trial.filesystem == name], marks[name]
        axes.plot([t.place for t in own], [t.value for t in own], color=mark.colour, linewidth=0.8, alpha=0.6)
        for trial in own:
            _dot(axes, trial.place, trial.value, mark, hollow=trial.warmup, size=3.8)
    axes.set_title(_short(group, 46), loc="left", fontsize="medium", weight="bold", pad=3)
    axes.set_ylabel("× mean")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: tick_text(round(tick, 6))))


def _departure(trials: Sequence[_Trial]) -> str:
    """The counted trial that is furthest from the mean of its cell."""
    worst = max((t for t in trials if not t.warmup), key=lambda t: abs(t.value - 1))
    by = f"{'+' if worst.value >= 1 else words.MINUS}{words.percent(abs(worst.value - 1))}"
    return f"furthest from the mean of its cell is {by} ({worst.filesystem}, {worst.group}, block {worst.block})"


# ── published figures ────────────────────────────────────────────────────────────────────────────────────────────────


_PUBLISHED = Mark(_INK, "D", "◇")


def plot_published(
    pairs: Sequence[tuple[PublishedFigure, Comparison | None]], *, filesystems: Sequence[str] = ()
) -> Plot:
    """Published ratios (hollow diamonds, without an interval) above ours (with one), on a log axis.

    `pairs` as `words.ours_beside` finds them; ours is None where this run has no such comparison.
    """
    known = [(theirs, ours) for theirs, ours in pairs if 0 < theirs.ratio < math.inf]
    _some(known, "published ratio")
    headings = {f"{theirs.candidate}: {theirs.what}": (theirs, ours) for theirs, ours in known}
    rows = _Rows.of({group: ["published", "ours"] if ours else ["published"] for group, (_, ours) in headings.items()})
    marks = colour_of(filesystems or sorted({theirs.candidate for theirs, _ in known}))
    measured = [ours for _, ours in known if ours and words.effect(ours) >= 0]
    with _row_figure(rows) as (figure, axes):
        ratios = [*(theirs.ratio for theirs, _ in known), *(ours.ratio for ours in measured)]
        _ratio_axis(axes, rows, ratios, measured, known[0][0].baseline, 0.0)
        for group, (theirs, ours) in headings.items():
            y = rows.places[group, "published"]
            _dot(axes, theirs.ratio, y, _PUBLISHED, hollow=True)
            _beside(axes, 1, y, words.ratio_figures(theirs.ratio, math.nan, math.nan).value)
            if ours:
                _draw_ratio(axes, rows.places[group, "ours"], ours, marks.get(theirs.candidate, _MARKS[-1]))
    return Plot(figure, words.published_sentence(known), _published_alt(known))


def _published_alt(pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> str:
    lines = [
        f"{theirs.candidate}, {theirs.what}: published {words.ratio_figures(theirs.ratio, math.nan, math.nan)}, ours "
        + (str(words.ratio_figures(ours.ratio, ours.low, ours.high)) if ours else "not measured")
        for theirs, ours in pairs
    ]
    return f"Published ratios to {pairs[0][0].baseline} beside ours. {_in_alt(lines)}"


# ── how many blocks show what ────────────────────────────────────────────────────────────────────────────────────────


def plot_smallest_difference(
    curves: Mapping[str, Mapping[int, float]], *, planned: Mapping[str, float], power: float
) -> Plot:
    """The smallest ratio that so many blocks show with a chance of `power`, one line a name; a dot at the blocks that
    are planned. Both axes are logarithmic. Raises InputError where no curve has a ratio that can be drawn.

    `curves`: name to number of blocks to ratio (> 1; what is not finite, or above 10, is left out).
    """
    drawn = {
        name: {n: ratio for n, ratio in curve.items() if 1 < ratio <= _WIDEST_RATIO} for name, curve in curves.items()
    }
    known = {name: curve for name, curve in drawn.items() if curve}
    _some(list(known), "smallest difference")
    marks = colour_of(list(known))
    with mpl.rc_context({**_STYLE, "axes.spines.left": True, "ytick.major.size": 3.5}):
        figure = Figure(figsize=(_WIDTH_IN, 3.0), layout="constrained")
        axes = figure.subplots()
        for name, curve in known.items():
            _draw_curve(axes, curve, planned.get(name, math.nan), marks[name])
        _difference_axes(axes, known)
    lines = [f"{name}: {_at_plan(curve, planned.get(name, math.nan))}" for name, curve in known.items()]
    alt = f"Smallest difference shown with a chance of {words.percent(power)}, by number of blocks. {_in_alt(lines)}"
    return Plot(figure, f"{_in_alt(lines[:1]).rstrip('.')}, with a chance of {words.percent(power)}", alt, marks)


_WIDEST_RATIO = 10.0


def _draw_curve(axes: Axes, curve: Mapping[int, float], planned: float, mark: Mark) -> None:
    axes.plot(list(curve), [100 * (ratio - 1) for ratio in curve.values()], color=mark.colour, linewidth=1.4)
    if planned in curve:
        _dot(axes, planned, 100 * (curve[int(planned)] - 1), mark)


def _difference_axes(axes: Axes, curves: Mapping[str, Mapping[int, float]]) -> None:
    blocks = [n for curve in curves.values() for n in curve]
    shares = [100 * (ratio - 1) for curve in curves.values() for ratio in curve.values()]
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, values in ((axes.xaxis, blocks), (axes.yaxis, shares)):
        ticks = log_ticks(min(values), max(values))
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FixedFormatter([tick_text(tick) for tick in ticks]))
        axis.set_minor_locator(NullLocator())
        axis.grid(visible=True, color=_INK, alpha=0.16, linewidth=0.6)
    axes.set_xlabel("blocks; dot: as planned")
    axes.set_ylabel("smallest difference shown, %")


def _at_plan(curve: Mapping[int, float], planned: float) -> str:
    """What the planned blocks show; where the line does not hold them, what the most of its blocks show."""
    n = int(planned) if planned in curve else max(curve)
    return f"{n} blocks show {words.percent(curve[n] - 1)} or more"


# ── simulated runs ───────────────────────────────────────────────────────────────────────────────────────────────────


_HELD, _MISSED = _MARKS[0], Mark(_MARKS[1].colour, "X", "✖")


def plot_simulated(
    runs: Sequence[tuple[Sequence[float], float, float]], *, truth: float, finding: str, of: str = "run"
) -> Plot:
    """Simulated runs, one a row: their trials as dots, and the interval that each would have given, over the truth.

    `runs`: trials, low and high of each. Intervals that miss the truth have another colour and a cross at their end.
    `finding` is the title. Raises InputError where there is no run.
    """
    _some(runs, f"simulated {of}")
    missed = [not low <= truth <= high for _, low, high in runs]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH_IN, len(runs) * _ROW_IN / 2 + _AXIS_IN), layout="constrained")
        axes = figure.subplots()
        shown = [value / truth for trials, _, _ in runs for value in trials]
        axes.set_xlim(*_reach(shown, [end / truth for _, low, high in runs for end in (low, high)], log=False))
        axes.set(ylim=(len(runs), -1), yticks=[], xlabel="mean over the truth = 1; dots: trials; ✖: misses the truth")
        axes.axvline(1, color=_INK, linewidth=1.0)
        for y, ((trials, low, high), miss) in enumerate(zip(runs, missed, strict=True)):
            _draw_simulated(axes, y, [value / truth for value in trials], low / truth, high / truth, miss=miss)
    alt = f"{len(runs)} simulated {of}s with their intervals; {sum(missed)} of them miss the truth. {finding}"
    return Plot(figure, finding, alt)


def _draw_simulated(axes: Axes, y: float, trials: Sequence[float], low: float, high: float, *, miss: bool) -> None:
    mark = _MISSED if miss else _HELD
    axes.plot(trials, [y] * len(trials), "o", color=mark.colour, alpha=0.45, markersize=2.5, linestyle="none")
    _interval(axes, y, low, high, colour=mark.colour, width=1.6)
    if miss:
        _dot(axes, min((low, high), key=lambda end: abs(end - 1)), y, mark, size=4.5)
