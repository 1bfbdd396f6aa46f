"""Two runs beside each other, as text, as data and as the parts of a page.

The intervals are those that hold for all ratios together: an interval leaves out 1 exactly where a verdict says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mountlab import plots
from mountlab.analysis import verdicts
from mountlab.analysis.compare.ratios import CellRatio
from mountlab.analysis.compare.run_spread import below
from mountlab.analysis.compare.two import RunComparison
from mountlab.checks.caveats import doubt_key, doubts_by_cell, grouped
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.json import plain
from mountlab.core.names import metric_heading, metric_noun, spoken_code
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text, numeric
from mountlab.report.views import side_by_side
from mountlab.report.views.side_by_side import about, difference_name, difference_values

_CELL_BY_CELL = (
    "The ratio of geometric means on logs: the runs share no blocks, so nothing is paired. The interval contains the "
    "spread of trials, and by how much runs differ by themselves. B differs from A unless runs differ by more than the "
    "break-even. Verdicts allow for the number of ratios, and so do the intervals beside them: one that leaves out 1 "
    "has a verdict."
)
_SENTENCES, _OPEN = 4, 2
"""Ratios that get a sentence of their own: of those that are decided, and of others where none is."""

# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def comparison_text(compared: RunComparison) -> str:
    """For the terminal: the two runs, what differs, one row a ratio, the caveats."""
    return lines_of(_lines(compared))


def _lines(compared: RunComparison) -> Iterator[str]:
    for name, run in (("A", compared.a), ("B", compared.b)):
        yield f"{name}            {about(run)}"
    yield ""
    for i, line in enumerate(_difference_lines(compared)):
        yield f"{'differs' if not i else '':12} {line}"
    for name, cells in compared.only_in.items():
        yield from (f"{f'only in {name}' if not i else '':12} {cell}" for i, cell in enumerate(cells))
    yield ""
    head = ("cell", "metric", "A", "B", "B / A", f"{compared.level:.0%} interval", "n", "break-even", "verdict")
    yield from side_by_side.columns(head, (_row(each, compared.smallest_effect) for each in compared.ratios))
    yield ""
    yield compared.runs_differ
    yield "Break-even: B differs from A unless runs differ by more."
    yield ""
    for group in grouped(compared.caveats):
        yield f"{group.severity}: {group.heading}: {group.caveats[0].message}"


def _difference_lines(compared: RunComparison) -> Iterator[str]:
    if not compared.differences:
        yield "in nothing that was kept"
    for each in compared.differences:
        if each.known:
            a, b = difference_values(each)
            yield f"{each.area}: {difference_name(each)}: {a} in A, {b} in B"
    unknown = [difference_name(each) for each in compared.differences if not each.known]
    if unknown:
        yield f"not known of both: {', '.join(unknown)}"


def _row(each: CellRatio, smallest_effect: float) -> tuple[str, ...]:
    ours = verdicts.together(each.comparison)
    figures = verdicts.compared_figures(ours)
    what = (each.cell.id, metric_noun(ours.metric, ours.label))
    means = (numbers.quantity(each.mean_a, each.unit), numbers.quantity(each.mean_b, each.unit))
    verdict = verdicts.verdict_or_why(ours, smallest_effect)
    return (*what, *means, figures.value, figures.interval, f"{each.n_a}, {each.n_b}", _even(each), verdict)


def _even(each: CellRatio) -> str:
    """Return the break-even; '' where there is none."""
    return "" if math.isnan(each.unless) else below(each.unless)


def comparison_json(compared: RunComparison) -> dict[str, Any]:
    """Return everything in the comparison, JSON-able: what is infinite or not known is null."""
    found = {
        "a": compared.a.info.get("run_id"),
        "b": compared.b.info.get("run_id"),
        "level": compared.level,
        "smallest_effect": compared.smallest_effect,
        "runs_differ": compared.runs_differ,
        "differences": [
            {
                "area": each.area,
                "what": each.what,
                "part": each.part,
                "a": each.values[0],
                "b": each.values[1],
                "known": each.known,
            }
            for each in compared.differences
        ],
        "ratios": [
            {
                "cell": each.cell.id,
                "unit": each.unit,
                "mean_a": each.mean_a,
                "mean_b": each.mean_b,
                "n_a": each.n_a,
                "n_b": each.n_b,
                "break_even": each.unless,
                "run_spread": dict(zip("ab", map(asdict, each.spread), strict=True)),
                **asdict(each.comparison),
            }
            for each in compared.ratios
        ],
        "only_a": compared.only_in.get("A", ()),
        "only_b": compared.only_in.get("B", ()),
        "caveats": [asdict(each) for each in compared.caveats],
    }
    read: dict[str, Any] = plain(found)
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def title(compared: RunComparison) -> str:
    """Return the question of the page."""
    return f"What differs between {compared.a.info.get('run_id', 'A')} and {compared.b.info.get('run_id', 'B')}?"


def heading(compared: RunComparison) -> Html:
    """Return the title, and which run is which."""
    named = [f"{name}: {about(run)}" for name, run in (("A", compared.a), ("B", compared.b))]
    return html.joined(html.heading(title(compared), level=1), *(html.paragraph(line, kind="meta") for line in named))


def answer(compared: RunComparison) -> Html:
    """Return the answer in sentences: how often which verdict fell, then the strongest effects; what differs and the
    caveats, each in a line."""
    differs = html.labelled(html.link("#What-differs", "What differs"), _difference_line(compared))
    about = (html.paragraph(line, kind="meta") for line in (differs, compared.runs_differ))
    return side_by_side.answer(sentences(compared), compared.caveats, *about)


def _difference_line(compared: RunComparison) -> str:
    """'system (kernel); device (scheduler, model).'"""
    by_area: dict[str, dict[str, None]] = {}
    for each in compared.differences:
        if each.known:
            by_area.setdefault(each.area, {})[difference_name(replace(each, part=""))] = None
    named = [f"{area} ({', '.join(names)})" for area, names in by_area.items()]
    return f"{'; '.join(named)}." if named else "nothing that was kept."


def sentences(compared: RunComparison) -> list[str]:
    """Return how often which verdict fell; then the strongest effects that are shown, with what weakens them. Where
    none is, the two that may be strongest."""
    doubts = _doubts(compared)
    ordered = verdicts.strongest_first(_together(compared))
    decided = [each for each in ordered if each.verdict != "undecided"]
    strongest = [
        verdicts.comparison_sentence(
            each,
            smallest_effect=compared.smallest_effect,
            doubts=doubts.get(doubt_key(verdicts.cell_id(each.candidate, each), each.metric), ()),
        )
        for each in (decided or ordered[:_OPEN])[:_SENTENCES]
    ]
    return [f"{summary(compared)}.", *strongest]


def summary(compared: RunComparison) -> str:
    """'Compared with A, B is faster in 6 and undecided in 3 of 9 ratios'."""
    known = [each.verdict for each in _together(compared) if verdicts.has_interval(each)]
    count = len(compared.ratios)
    said = verdicts.tally(Counter(known), compared.smallest_effect, none=count - len(known))
    return f"Compared with A, B is {said} of {numbers.counted(count, 'ratio')}"


def _together(compared: RunComparison) -> list[Comparison]:
    return [verdicts.together(each.comparison) for each in compared.ratios]


def _doubts(compared: RunComparison) -> dict[str, list[str]]:
    """Return the doubts about a cell, by the ids that the two sides of a comparison have."""
    by_cell = doubts_by_cell(compared.caveats, compared.a.sweep.own_metrics)
    found: dict[str, list[str]] = {}
    for each in compared.ratios:
        side, metric = each.comparison, each.metric
        doubts = by_cell.get(doubt_key(each.cell.id, metric), by_cell.get(each.cell.id, []))
        for name in (side.baseline, side.candidate):
            found[doubt_key(verdicts.cell_id(name, side), metric)] = list(doubts)
    return found


def overview(compared: RunComparison) -> Html:
    """Return the ratios as a picture."""
    found = [each for each in _together(compared) if verdicts.effect(each) >= 0]
    if not found:
        return html.paragraph("No ratio to plot.")
    names = side_by_side.filesystems_of((compared.a, compared.b))
    short = [replace(each, candidate=each.candidate.removesuffix(" in B"), baseline="A") for each in found]
    plot = plots.plot_ratios(short, smallest_effect=compared.smallest_effect, filesystems=names)
    return html.plot(replace(plot, title=summary(compared)))


def cell_by_cell(compared: RunComparison) -> Html:
    """Return one table a metric: both means, the ratio, its interval and verdict, and the doubts about it."""
    doubts = doubts_by_cell(compared.caveats, compared.a.sweep.own_metrics)
    tables = side_by_side.by_metric(
        compared.ratios, lambda metric, own: _metric_table(compared.smallest_effect, metric, own, doubts)
    )
    return html.joined(html.paragraph(f"{_CELL_BY_CELL} {compared.runs_differ}"), tables)


def _metric_table(
    smallest_effect: float, metric: str, ratios: Sequence[CellRatio], doubts: Mapping[str, Sequence[str]]
) -> Html:
    means = [abs(value) for each in ratios for value in (each.mean_a, each.mean_b) if math.isfinite(value)]
    scale = scale_for(ratios[0].unit, max(means, default=1))
    figures = numeric(f"A, {scale.unit}", f"B, {scale.unit}", "n of A", "n of B", "B / A")
    head: Head = ["File system", *figures, Column("Interval", "interval"), *numeric("Break-even"), "Verdict", "Caveats"]
    rows = ((side_by_side.group_name(each), _cells(each, scale.factor, smallest_effect, doubts)) for each in ratios)
    caption = f"{metric_heading(metric)}, {scale.unit}; intervals hold for all ratios together"
    return html.grouped_table(head, rows, caption=caption)


def _cells(each: CellRatio, factor: float, smallest_effect: float, doubts: Mapping[str, Sequence[str]]) -> list[Text]:
    ours = verdicts.together(each.comparison)
    means = [numbers.mean_figures(mean, mean, mean, factor=factor).value for mean in (each.mean_a, each.mean_b)]
    figures = verdicts.compared_figures(ours)
    shown = [*means, str(each.n_a), str(each.n_b), figures.value, figures.interval, _even(each)]
    doubtful = ", ".join(map(spoken_code, doubts.get(doubt_key(each.cell.id, each.metric), ())))
    return [each.cell.filesystem.name, *shown, verdicts.verdict_or_why(ours, smallest_effect), doubtful]
