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
from mountlab.analysis.compare.two import Difference, RunComparison
from mountlab.analysis.run_view import ComparedRun
from mountlab.checks.caveats import caveat_line as caveat_line_
from mountlab.checks.caveats import doubt_key, doubts_by_cell, grouped
from mountlab.core import numbers
from mountlab.core.fact_words import fact_text
from mountlab.core.findings import Comparison
from mountlab.core.json import plain
from mountlab.core.names import metric_heading, metric_noun, spoken_code
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows, Text

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
    for name, cells in (("only in A", compared.only_a), ("only in B", compared.only_b)):
        yield from (f"{name if not i else '':12} {cell}" for i, cell in enumerate(cells))
    yield ""
    yield from _table(compared)
    yield ""
    for group in grouped(compared.caveats):
        yield f"{group.severity}: {group.heading}: {group.caveats[0].message}"


def about(run: ComparedRun) -> str:
    """A run in one line: its name, its box, kernel and date."""
    facts, box = run.info.get("facts", {}), run.info.get("box", {})
    kernel = f", Linux {facts['kernel']}" if facts.get("kernel") else ""
    day = str(run.info.get("created_at", "")).partition("T")[0]
    return f"{run.info.get('run_id', '')} (box {box.get('name', run.sweep.box)}{kernel}{f', {day}' if day else ''})"


def _difference_lines(compared: RunComparison) -> Iterator[str]:
    if not compared.differences:
        yield "in nothing that was kept"
    for each in compared.differences:
        if each.known:
            yield f"{each.area}: {_name(each)}: {_shown(each, each.a)} in A, {_shown(each, each.b)} in B"
    unknown = [_name(each) for each in compared.differences if not each.known]
    if unknown:
        yield f"not known of both: {', '.join(unknown)}"


def _name(difference: Difference) -> str:
    return named_difference(difference.what)


def _shown(difference: Difference, value: Any) -> str:
    return shown_fact(difference.what, value, known=difference.known)


def named_difference(what: str) -> str:
    """A key of facts or parameters as people read it."""
    return what.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def shown_fact(what: str, value: Any, *, known: bool) -> str:
    """What a run tells of it; 'not known' where runs cannot all tell and this one does not."""
    return fact_text(what, value) if known or value is not None else "not known"


def _table(compared: RunComparison) -> Iterator[str]:
    head = ("cell", "metric", "A", "B", "B / A", f"{compared.level:.0%} interval", "n", "verdict")
    rows = [head, *(_row(each, compared.smallest_effect) for each in compared.ratios)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _row(each: CellRatio, smallest_effect: float) -> tuple[str, ...]:
    ours = verdicts.together(each.comparison)
    figures = verdicts.compared_figures(ours)
    return (
        each.cell.id,
        metric_noun(ours.metric, ours.label),
        numbers.quantity(each.mean_a, each.unit),
        numbers.quantity(each.mean_b, each.unit),
        figures.value,
        figures.interval,
        f"{each.n_a}, {each.n_b}",
        _verdict(ours, smallest_effect),
    )


def _verdict(comparison: Comparison, smallest_effect: float) -> str:
    if not verdicts.has_interval(comparison):
        return f"none: {verdicts.why_no_interval(comparison)}"
    return verdicts.verdict_of(comparison, smallest_effect) + verdicts.needed(comparison)


def comparison_json(compared: RunComparison) -> dict[str, Any]:
    """Everything in the comparison, JSON-able: what is infinite or not known is null."""
    found = {
        "a": compared.a.info.get("run_id"),
        "b": compared.b.info.get("run_id"),
        "level": compared.level,
        "smallest_effect": compared.smallest_effect,
        "differences": [asdict(each) for each in compared.differences],
        "ratios": [
            {
                "cell": each.cell.id,
                "unit": each.unit,
                "mean_a": each.mean_a,
                "mean_b": each.mean_b,
                "n_a": each.n_a,
                "n_b": each.n_b,
                **asdict(each.comparison),
            }
            for each in compared.ratios
        ],
        "only_a": compared.only_a,
        "only_b": compared.only_b,
        "caveats": [asdict(each) for each in compared.caveats],
    }
    read: dict[str, Any] = plain(found)
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def title(compared: RunComparison) -> str:
    """The question of the page."""
    return f"What differs between {compared.a.info.get('run_id', 'A')} and {compared.b.info.get('run_id', 'B')}?"


def runs(compared: RunComparison) -> Html:
    """The title, and which run is which."""
    named = [f"{name}: {about(run)}" for name, run in (("A", compared.a), ("B", compared.b))]
    return html.joined(html.heading(title(compared), level=1), *(html.paragraph(line, kind="meta") for line in named))


def answer(compared: RunComparison) -> Html:
    """The answer in sentences: how often which verdict fell, then the strongest effects; what differs and the caveats,
    each in a line."""
    groups = grouped(compared.caveats)
    caveat_line = html.told(html.link("#Caveats", "Caveats"), caveat_line_(groups))
    return html.joined(
        html.box("answer", *(html.paragraph(sentence) for sentence in sentences(compared))),
        html.paragraph(html.told(html.link("#What-differs", "What differs"), _difference_line(compared)), kind="meta"),
        html.paragraph(caveat_line, kind=f"alert {groups[0].severity}"),
    )


def _difference_line(compared: RunComparison) -> str:
    """'system (kernel); device (scheduler, model).'"""
    by_area: dict[str, list[str]] = {}
    for each in compared.differences:
        if each.known:
            by_area.setdefault(each.area, []).append(_name(each))
    told = [f"{area} ({', '.join(names)})" for area, names in by_area.items()]
    return f"{'; '.join(told)}." if told else "nothing that was kept."


def sentences(compared: RunComparison) -> list[str]:
    """How often which verdict fell; then the strongest effects that are shown, with what weakens them. Where none is,
    the two that may be strongest."""
    doubts = _doubts(compared)
    found = [verdicts.together(each.comparison) for each in compared.ratios]
    ordered = verdicts.strongest_first(found)
    decided = [each for each in ordered if each.verdict != "undecided"]
    told = [
        verdicts.comparison_sentence(
            each,
            smallest_effect=compared.smallest_effect,
            doubts=doubts.get(doubt_key(verdicts.cell_id(each.candidate, each), each.metric), ()),
        )
        for each in (decided or ordered[:_OPEN])[:_SENTENCES]
    ]
    return [f"{summary(compared)}.", *told]


def summary(compared: RunComparison) -> str:
    """'Compared with A, B is faster in 6 and undecided in 3 of 9 ratios'."""
    ratios = [each.comparison for each in compared.ratios]
    fell = Counter(each.verdict if verdicts.has_interval(verdicts.together(each)) else None for each in ratios)
    named = {
        "faster": "faster",
        "slower": "slower",
        "same": f"the same within {numbers.percent(compared.smallest_effect)}",
        "undecided": "undecided",
        None: "without an interval",
    }
    parts = [f"{text} in {fell[verdict]}" for verdict, text in named.items() if fell[verdict]]  # type: ignore[index]
    return f"Compared with A, B is {numbers.listed(parts)} of {numbers.counted(len(ratios), 'ratio')}"


def _doubts(compared: RunComparison) -> dict[str, list[str]]:
    """The doubts about a cell, by the ids that the two sides of a comparison have."""
    by_cell = doubts_by_cell(compared.caveats, compared.a.sweep.own_metrics)
    found: dict[str, list[str]] = {}
    for each in compared.ratios:
        side, metric = each.comparison, each.comparison.metric
        doubts = by_cell.get(doubt_key(each.cell.id, metric), by_cell.get(each.cell.id, []))
        for name in (side.baseline, side.candidate):
            found[doubt_key(verdicts.cell_id(name, side), metric)] = list(doubts)
    return found


def differences(compared: RunComparison) -> Html:
    """What is known to differ, by area; and what nobody can say."""
    known = [each for each in compared.differences if each.known]
    unknown = [f"{each.area}: {_name(each)}" for each in compared.differences if not each.known]
    shown: Text = html.paragraph("Nothing that was kept differs.")
    if known:
        groups: dict[str, list[list[Text]]] = {}
        for each in known:
            groups.setdefault(each.area, []).append([_name(each), _shown(each, each.a), _shown(each, each.b)])
        head = [Column("What"), Column("A"), Column("B")]
        caption = f"{numbers.counted(len(known), 'difference')} in {numbers.counted(len(groups), 'respect')}"
        shown = html.table(head, [Rows(rows, area) for area, rows in groups.items()], caption=caption)
    heard = html.details(f"Not known of both runs: {len(unknown)}", html.items(unknown)) if unknown else ""
    return html.joined(shown, heard)


def overview(compared: RunComparison) -> Html:
    """The ratios as a picture."""
    found = [verdicts.together(each.comparison) for each in compared.ratios if verdicts.effect(each.comparison) >= 0]
    if not found:
        return html.paragraph("No ratio to plot.")
    names = [fs.name for fs in compared.a.sweep.filesystems]
    short = [replace(each, candidate=each.candidate.removesuffix(" in B"), baseline="A") for each in found]
    plot = plots.plot_ratios(short, smallest_effect=compared.smallest_effect, filesystems=names)
    return html.plot(replace(plot, title=summary(compared)))


def tables(compared: RunComparison) -> Html:
    """One table a metric: both means, the ratio, its interval and verdict, and the doubts about it."""
    by_metric: dict[str, list[CellRatio]] = {}
    for each in compared.ratios:
        by_metric.setdefault(each.comparison.metric, []).append(each)
    doubts = doubts_by_cell(compared.caveats, compared.a.sweep.own_metrics)
    return html.joined(*(_metric_table(compared, metric, some, doubts) for metric, some in by_metric.items()))


def _metric_table(
    compared: RunComparison, metric: str, ratios: Sequence[CellRatio], doubts: Mapping[str, Sequence[str]]
) -> Html:
    means = [abs(value) for each in ratios for value in (each.mean_a, each.mean_b) if math.isfinite(value)]
    scale = scale_for(ratios[0].unit, max(means, default=1))
    head = [
        Column("File system"),
        Column(f"A, {scale.unit}", "number"),
        Column(f"B, {scale.unit}", "number"),
        Column("n of A", "number"),
        Column("n of B", "number"),
        Column("B / A", "number"),
        Column("Interval", "interval"),
        Column("Verdict"),
        Column("Caveats"),
    ]
    groups: dict[str, list[list[Text]]] = {}
    for each in ratios:
        label = each.comparison.label
        heading = f"{each.cell.workload.label} ({label})" if label else each.cell.workload.label
        doubt = doubts.get(doubt_key(each.cell.id, metric), ())
        groups.setdefault(heading, []).append(_cells(each, scale.factor, compared.smallest_effect, doubt))
    caption = f"{metric_heading(metric)}, {scale.unit}; intervals hold for all ratios together"
    return html.table(head, [Rows(rows, heading) for heading, rows in groups.items()], caption=caption)


def _cells(each: CellRatio, factor: float, smallest_effect: float, doubts: Sequence[str]) -> list[Text]:
    ours = verdicts.together(each.comparison)
    means = [numbers.mean_figures(mean, mean, mean, factor=factor).value for mean in (each.mean_a, each.mean_b)]
    figures = verdicts.compared_figures(ours)
    return [
        each.cell.filesystem.name,
        *means,
        str(each.n_a),
        str(each.n_b),
        figures.value,
        figures.interval,
        _verdict(ours, smallest_effect),
        ", ".join(map(spoken_code, doubts)),
    ]


def caveats(compared: RunComparison) -> Html:
    """Caveats, worst first."""
    return html.joined(*(html.caveat_box(group) for group in grouped(compared.caveats)))


def only_one(compared: RunComparison) -> Html:
    """Cells of one run only, which are not compared."""
    named = {"Only in A": compared.only_a, "Only in B": compared.only_b}
    lists = [html.details(f"{name}: {len(cells)}", html.items(cells)) for name, cells in named.items() if cells]
    return html.joined(*lists) if lists else html.paragraph("Both runs have the same cells.")
