"""Ratios to the baseline, and published ratios beside ours: each with the interval that it is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes

from mountlab.core import names, numbers
from mountlab.core.findings import Comparison, PublishedFigure
from mountlab.core.groups import by_key
from mountlab.plots.axes import Rows, beside, dot, in_alt, interval, log_limits, reach, row_figure
from mountlab.plots.base import Plot, require
from mountlab.plots.style import UNUSABLE, Mark, marks_of
from mountlab.plots.svg import INK
from mountlab.plots.texts import short
from mountlab.wording import verdicts

_LEAST_ZONE = 0.01
"""A zone that is a smaller share of the axis would look like the line of the baseline."""
_PUBLISHED = Mark(INK, "D", "◇")
_MOST_LOOSE = 12
"""So many published ratios have two rows each, and a heading."""


def plot_ratios(
    comparisons: Sequence[Comparison],
    *,
    smallest_effect: float = 0.02,
    filesystems: Sequence[str],
    doubts: Mapping[str, Sequence[str]] | None = None,
) -> Plot:
    """Return ratios to the baseline, on a log axis, the strongest effect on top; undecided is hollow, and grey what is
    not to be used. The intervals are those that hold for all comparisons together.

    `filesystems`: all of the sweep, in its order, so that colours are those of the other plots. `doubts`: what weakens
    each cell (caveats.doubts_by_cell). Raises InputError where no comparison has a ratio.
    """
    drawn = [comparison for comparison in comparisons if verdicts.effect(comparison) >= 0]
    require(drawn, "ratio")
    strongest_first = sorted(drawn, key=lambda comparison: -verdicts.effect(comparison))
    groups = by_key((_ratio_group(comparison, drawn), comparison) for comparison in strongest_first)
    rows = Rows.of({group: [c.candidate for c in members] for group, members in groups.items()})
    marks = marks_of(filesystems, {c.candidate for c in drawn})
    with row_figure(rows) as (figure, axes):
        ratio_axis(axes, rows, [c.ratio for c in drawn], drawn, drawn[0].baseline, smallest_effect)
        for group, members in groups.items():
            for comparison in members:
                y, doubtful = (
                    rows.places[group, comparison.candidate],
                    bool(verdicts.doubts_about(comparison, doubts or {})),
                )
                draw_ratio(axes, y, comparison, marks[comparison.candidate], doubtful=doubtful)
    lines = [
        f"{c.candidate}, {group}: {verdicts.compared_figures(c)} {verdicts.verdict_of(c, smallest_effect)}"
        for group, members in groups.items()
        for c in members
    ]
    tests = [c.equivalence.level for c in drawn if c.verdict_interval is c.equivalence]
    level = numbers.percent(drawn[0].joint.level) + " intervals"
    level += f", at least {numbers.percent(min(tests))} where the verdict is the same" if tests else ""
    alt = f"Ratios to {drawn[0].baseline} with {level}. {in_alt(lines)}"
    return Plot(figure, verdicts.finding(drawn, smallest_effect, doubts), alt)


def _ratio_group(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """Return the workload, and the metric where the workload alone would not tell two rows of a candidate apart."""
    label = names.workload_label(comparison.workload, comparison.factors)
    same_workload = {
        (c.metric, c.label) for c in among if (c.workload, c.factors) == (comparison.workload, comparison.factors)
    }
    noun = names.metric_noun(comparison.metric, comparison.label)
    less = "" if comparison.more_is_better else " (less is better)"
    return f"{label}: {noun}{less}" if len(same_workload) > 1 or less else label


def draw_ratio(
    axes: Axes, y: float, comparison: Comparison, mark: Mark, *, doubtful: bool = False, shift: float = 8
) -> None:
    """Interval, dot and figures of one comparison, these `shift` points right of the axis. The dot is hollow where it
    is undecided, and grey where it is not to be used."""
    shown, unusable = comparison.verdict_interval, comparison.verdict == "not usable"
    own = replace(mark, colour=UNUSABLE) if unusable else mark
    interval(axes, y, shown.low, shown.high, colour=own.colour)
    figures = f"{verdicts.compared_figures(comparison)}{f' {verdicts.DOUBTFUL}' if doubtful else ''}"
    text = f"{comparison.candidate}: {figures}{', do not use' if unusable else ''}"
    dot(axes, comparison.ratio, y, own, hollow=unusable or comparison.verdict == "undecided", text=text)
    beside(axes, 1, y, "do not use" if unusable else figures, shift=shift)


def ratio_axis(
    axes: Axes, rows: Rows, ratios: Sequence[float], comparisons: Sequence[Comparison], baseline: str, zone: float
) -> None:
    """A log axis with the baseline as a line, and the zone of effects that do not matter shaded where it can be
    seen."""
    intervals = [comparison.verdict_interval for comparison in comparisons]
    bounds = [bound for shown in intervals for bound in (shown.low, shown.high)]
    log_limits(axes, *reach([*ratios, 1 - zone, 1 + zone], bounds, log=True), way="x")
    left, right = axes.get_xlim()
    visible = zone > 0 and math.log((1 + zone) / (1 - zone)) >= _LEAST_ZONE * math.log(right / left)
    for top, bottom in rows.spans:
        if visible:
            axes.fill_betweenx([top, bottom], 1 - zone, 1 + zone, color=INK, alpha=0.15, linewidth=0)
        axes.plot([1, 1], [top, bottom], color=INK, linewidth=1.0)
    shaded = f"; shaded: ±{numbers.percent(zone)}, the same" if visible else ""
    present = {comparison.verdict for comparison in comparisons}
    hollow = "; hollow: undecided" if "undecided" in present else ""
    name = short(baseline, 20)
    rates = comparisons and all(verdicts.is_speed(comparison) for comparison in comparisons)
    what = f"times as fast as {name}" if rates else f"ratio to {name} = 1"
    axes.set_xlabel(f"{what}{shaded}{hollow}")


# ── published figures ─────────────────────────────────────────────────────────────────────────────────────────────────


def plot_published(pairs: Sequence[tuple[PublishedFigure, Comparison | None]], *, filesystems: Sequence[str]) -> Plot:
    """Published ratios (hollow diamonds, without an interval) above ours (with one), on a log axis. Of many both are in
    one row, below a heading for each `what`, and those that were not measured are left out.

    `pairs` as `verdicts.ours_beside` finds them; ours is None where this run has no such comparison. `filesystems`:
    all of the sweep, in its order. Raises InputError where no ratio was published.
    """
    drawn = [(theirs, ours) for theirs, ours in pairs if 0 < theirs.ratio < math.inf]
    require(drawn, "published ratio")
    measured = [(theirs, ours) for theirs, ours in drawn if ours]
    dense = len(drawn) > _MOST_LOOSE and len({(theirs.what, theirs.candidate) for theirs, _ in drawn}) == len(drawn)
    shown = measured if dense and measured else drawn
    rows = Rows.of(_dense_rows(shown) if dense else _loose_rows(shown))
    marks = marks_of(filesystems, {ours.candidate for _, ours in shown if ours})
    usable = [ours for _, ours in shown if ours and verdicts.effect(ours) >= 0]
    with row_figure(rows) as (figure, axes):
        ratios = [*(theirs.ratio for theirs, _ in shown), *(ours.ratio for ours in usable)]
        ratio_axis(axes, rows, ratios, usable, shown[0][0].baseline, 0.0)
        for theirs, ours in shown:
            group, above, below = _published_places(theirs, dense=dense)
            y, figures = rows.places[group, above], numbers.ratio_figures(theirs.ratio, math.nan, math.nan).value
            beside(axes, 1, y, f"◇ {figures}" if dense else figures)
            if ours:
                draw_ratio(axes, rows.places[group, below], ours, marks[ours.candidate], shift=52 if dense else 8)
            dot(axes, theirs.ratio, y, _PUBLISHED, hollow=True)
        if dense:
            axes.set_xlabel(f"{axes.get_xlabel()}; ◇ published")
    lines = [
        f"{theirs.candidate}, {theirs.what}: published {numbers.ratio_figures(theirs.ratio, math.nan, math.nan)}, ours "
        + (str(verdicts.compared_figures(ours)) if ours else "not measured")
        for theirs, ours in shown
    ]
    alt = f"Published ratios to {shown[0][0].baseline} beside ours. {in_alt(lines)}"
    return Plot(figure, verdicts.published_sentence(drawn), alt)


def _loose_rows(pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> dict[str, list[str]]:
    return {
        f"{theirs.candidate}: {theirs.what}": ["published", "ours"] if ours else ["published"] for theirs, ours in pairs
    }


def _dense_rows(pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> dict[str, list[str]]:
    return by_key((theirs.what, theirs.candidate) for theirs, _ in pairs)


def _published_places(theirs: PublishedFigure, *, dense: bool) -> tuple[str, str, str]:
    """Return the heading, and the names of the rows of the published ratio and of ours."""
    if dense:
        return theirs.what, theirs.candidate, theirs.candidate
    return f"{theirs.candidate}: {theirs.what}", "published", "ours"
