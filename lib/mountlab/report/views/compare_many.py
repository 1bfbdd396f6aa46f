"""Many runs of one sweep, as text, as data and as the parts of a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mountlab.analysis.compare.many import AnswerOverRuns, CellOverRuns, DifferenceOverRuns, ManyRuns, differs
from mountlab.analysis.verdicts import compared_figures, effect, has_interval, verdict_text
from mountlab.checks.caveats import caveat_line, grouped
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.json import plain
from mountlab.core.names import metric_heading, metric_noun, workload_label
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.plots.over_runs import Relative, plot_answer_over_runs, plot_over_runs, room_for
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows, Text
from mountlab.report.views.compare import about, named_difference, shown_fact

_SIGNS = {"faster": "▲ faster", "slower": "▼ slower", "same": "= same", "undecided": "? undecided"}
"""A verdict with a sign for those who skim."""
_MOST_TOLD = 3

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(many: ManyRuns) -> str:
    """The question of the page."""
    asked = [" ".join(run.sweep.question.split()) for run in many.runs]
    one = asked[0] if len(set(asked)) == 1 else f"{many.runs[0].sweep.name} and others"
    return f"How did the answer change over {numbers.counted(len(many.runs), 'run')}? {one}"


def sentences(many: ManyRuns) -> list[str]:
    """The answer: did the verdicts hold, how much runs differ by themselves, and which run differs from the first."""
    return [*_verdicts_held(many), _between(many), _against_first(many)]


def _verdicts_held(many: ManyRuns) -> Iterator[str]:
    if not many.answers:
        yield "The runs share no comparison, so there are no verdicts to hold against each other."
        return
    changed = [each for each in many.answers if not each.agrees]
    held = len(many.answers) - len(changed)
    total = numbers.counted(len(many.answers), "comparison")
    if not changed:
        yield f"The answer held: {_all_of(total, len(many.answers))} the same verdict in every run."
        return
    yield f"The answer did not hold throughout: {held} of {total} have the same verdict in every run."
    yield from (f"{_name(each)}: {_by_verdict(many, each)}." for each in changed[:_MOST_TOLD])
    if len(changed) > _MOST_TOLD:
        yield f"{len(changed) - _MOST_TOLD} more changed; the table has all of them."


def _all_of(total: str, count: int) -> str:
    return f"its {total.removeprefix('1 ')} has" if count == 1 else f"all {total} have"


def _name(answer: AnswerOverRuns) -> str:
    """'tmpfs to ext4, dd-write: write bandwidth'."""
    one = answer.known[0]
    workload = workload_label(one.workload, one.factors)
    return f"{one.candidate} to {one.baseline}, {workload}: {metric_noun(one.metric, one.label)}"


def _by_verdict(many: ManyRuns, answer: AnswerOverRuns) -> str:
    """'faster in A and B, undecided in C'."""
    fell: dict[str, list[str]] = {}
    for name, each in zip(many.names, answer.comparisons, strict=True):
        if each is not None:
            fell.setdefault(each.verdict, []).append(name)
    return ", ".join(
        f"{verdict_text(verdict, many.smallest_effect)} in {numbers.listed(where)}"  # type: ignore[arg-type]
        for verdict, where in fell.items()
    )


def _between(many: ManyRuns) -> str:
    """How many figures differ from run to run by more than their trials explain, and the one that does most."""
    known = [each for each in many.cells if not math.isnan(each.p_adjusted)]
    if not known:
        return "How much of a difference is the runs' own cannot be told: no run has two trials of a figure."
    beyond = [each for each in known if differs(each, many.level)]
    count = numbers.counted(len(known), "figure")
    if not beyond:
        return f"Nothing shows that runs differ by more than their trials explain, in {count}."
    most = max(beyond, key=lambda each: each.spread.between)
    run, trial = _percent(most.spread.between), _percent(most.spread.within)
    told = f"{most.cell.id} ({metric_noun(most.metric, most.label)}) by {run}, from trial to trial by {trial}"
    differ = f"{len(beyond)} of {count} {'differs' if len(beyond) == 1 else 'differ'}"
    return f"From run to run {differ} by more than their trials explain, most {told}."


def _percent(share: float) -> str:
    return numbers.percent(share) if math.isfinite(share) else numbers.MISSING


def _against_first(many: ManyRuns) -> str:
    """'Against A, all 18 ratios corrected together: B is faster in 2; C is undecided in 9.'"""
    alike: dict[str, list[str]] = {}
    for place, name in enumerate(many.names[1:], start=1):
        ratios = [ratio.comparison for cell in many.cells if (ratio := cell.ratios[place]) is not None]
        fell = Counter(each.verdict for each in ratios)
        tally = [f"{_verdict_word(many, verdict)} in {fell[verdict]}" for verdict in _SIGNS if fell[verdict]]  # type: ignore[index]
        alike.setdefault(numbers.listed(tally), []).append(name)
    parts = [f"{numbers.listed(own)} {'are each' if len(own) > 1 else 'is'} {tally}" for tally, own in alike.items()]
    count = sum(ratio is not None for cell in many.cells for ratio in cell.ratios)
    return f"Against A, {numbers.counted(count, 'ratio')} corrected together: {'; '.join(parts)}."


def _verdict_word(many: ManyRuns, verdict: str) -> str:
    return verdict_text(verdict, many.smallest_effect)  # type: ignore[arg-type]


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def many_text(many: ManyRuns) -> str:
    """For the terminal: the runs, the answer, one row a figure."""
    return lines_of(_lines(many))


def _lines(many: ManyRuns) -> Iterator[str]:
    yield from (f"{name:12} {about(run)}" for name, run in zip(many.names, many.runs, strict=True))
    yield ""
    yield from sentences(many)
    yield ""
    for i, each in enumerate(many.differences):
        what = f"{each.area}: {named_difference(each.what)}"
        yield f"{'differs' if not i else '':12} {what}: {_values_in_line(many, each)}"
    head = ("cell", "metric", *many.names, "between", "within", "p")
    rows = [head, *(_row(each) for each in many.cells)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    yield ""
    yield from ("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _values_in_line(many: ManyRuns, difference: DifferenceOverRuns) -> str:
    by_value: dict[str, list[str]] = {}
    for name, value in zip(many.names, difference.values, strict=True):
        by_value.setdefault(shown_fact(difference.what, value, known=difference.known), []).append(name)
    return ", ".join(f"{text} in {numbers.listed(where)}" for text, where in by_value.items())


def _row(each: CellOverRuns) -> tuple[str, ...]:
    means = [numbers.quantity(one.mean, each.unit) if one else numbers.MISSING for one in each.estimates]
    spread = (_percent(each.spread.between), _percent(each.spread.within))
    p = numbers.MISSING if math.isnan(each.p_adjusted) else numbers.p_text(each.p_adjusted)
    return (each.cell.id, metric_noun(each.metric, each.label), *means, *spread, p)


def many_json(many: ManyRuns) -> dict[str, Any]:
    """Everything in the comparison, JSON-able: what is infinite or not known is null."""
    read: dict[str, Any] = plain(
        {
            "runs": {name: run.info.get("run_id") for name, run in zip(many.names, many.runs, strict=True)},
            "level": many.level,
            "smallest_effect": many.smallest_effect,
            "sentences": sentences(many),
            "answers": [[each and asdict(each) for each in answer.comparisons] for answer in many.answers],
            "cells": [
                {
                    "cell": each.cell.id,
                    "metric": each.metric,
                    "label": each.label,
                    "unit": each.unit,
                    "estimates": [one and asdict(one) for one in each.estimates],
                    "spread": asdict(each.spread),
                    "p_adjusted": each.p_adjusted,
                    "to_first": [one and asdict(one.comparison) for one in each.ratios],
                }
                for each in many.cells
            ],
            "differences": [asdict(each) for each in many.differences],
            "caveats": [asdict(each) for each in many.caveats],
        }
    )
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def runs(many: ManyRuns) -> Html:
    """The title."""
    days = [str(run.info.get("created_at", "")).partition("T")[0] for run in many.runs]
    boxes = {str(run.info.get("box", {}).get("name", run.sweep.box)) for run in many.runs}
    kernels = {str(run.info.get("facts", {}).get("kernel")) for run in many.runs}
    first, last = min(days), max(days)
    told = [
        first if first == last else f"{first} to {last}",
        f"{len(boxes)} boxes" if len(boxes) > 1 else f"box {boxes.pop()}",
        numbers.counted(len(kernels), "kernel"),
    ]
    return html.joined(html.heading(title(many), level=1), html.paragraph(" · ".join(told), kind="meta"))


def answer(many: ManyRuns) -> Html:
    """The answer in sentences."""
    groups = grouped(many.caveats)
    link = html.told(html.link("#Caveats", "Caveats"), caveat_line(groups))
    told = html.box("answer", *(html.paragraph(each) for each in sentences(many)))
    return html.joined(told, html.paragraph(link, kind=f"alert {groups[0].severity}"))


def overview(many: ManyRuns) -> Html:
    """Two pictures: the ratios of the answer in every run, and every figure over its mean."""
    names = [fs.name for fs in many.runs[0].sweep.filesystems]
    drawn: list[Text] = []
    answers = {_name(each): each.comparisons for each in sorted(many.answers, key=lambda each: each.agrees)}
    if any(effect(each) >= 0 for own in answers.values() for each in own if each):
        plot = plot_answer_over_runs(
            answers, many.names, title=sentences(many)[0], smallest_effect=many.smallest_effect, filesystems=names
        )
        drawn.append(html.joined(html.plot(plot), _not_drawn(len(answers), room_for(len(many.runs)))))
    points = list(_relative(many))
    if points:
        plot = plot_over_runs(points, many.names, title=_between(many), filesystems=names)
        drawn.append(html.plot(plot))
    return html.columns(*drawn) if drawn else html.paragraph("Nothing to plot.")


def _not_drawn(count: int, room: int) -> Text:
    said = f"{room} of {count} comparisons are drawn; the table below has all of them."
    return html.paragraph(said, kind="meta") if count > room else ""


def _relative(many: ManyRuns) -> Iterator[Relative]:
    """Every estimate over the mean of its cell's estimates; the figures that differ most first."""
    several = len({(each.metric, each.label) for each in many.cells}) > 1
    for each in sorted(many.cells, key=lambda each: -(each.spread.between if each.spread.runs > 1 else -1.0)):
        known = [one.mean for one in each.estimates if one]
        mean = sum(known) / len(known)
        group = each.cell.workload.label + (f": {metric_noun(each.metric, each.label)}" if several else "")
        for place, one in enumerate(each.estimates):
            if one and mean > 0:
                yield Relative(
                    group, each.cell.filesystem.name, place, one.mean / mean, one.low / mean, one.high / mean
                )


def which(many: ManyRuns) -> Html:
    """Which run is which."""
    head = [Column("Run"), Column("Name"), Column("Box"), Column("Kernel"), Column("Date"), Column("Status")]
    rows = [
        [
            name,
            str(run.info.get("run_id", "")),
            str(run.info.get("box", {}).get("name", run.sweep.box)),
            str(run.info.get("facts", {}).get("kernel") or "not known"),
            str(run.info.get("created_at", ""))[:16].replace("T", " "),
            "imported" if run.sweep.imported else str(run.info.get("status", "complete")),
        ]
        for name, run in zip(many.names, many.runs, strict=True)
    ]
    return html.table(head, [Rows(rows)], caption=f"The {numbers.counted(len(rows), 'run')}, in the order given")


def verdicts(many: ManyRuns) -> Html:
    """The verdicts of every run, from its own comparisons, which are paired by block."""
    if not many.answers:
        return html.paragraph("The runs share no comparison.")
    head = [Column("Comparison"), *(Column(name, "number") for name in many.names), Column("Verdicts")]
    groups: dict[str, list[list[Text]]] = {}
    for each in many.answers:
        pair, _, row = _name(each).partition(", ")
        cells = [_verdict_cell(one) for one in each.comparisons]
        groups.setdefault(row, []).append([pair, *cells, "all alike" if each.agrees else "✗ change"])
    rows = [Rows(own, row) for row, own in groups.items()]
    return html.table(head, rows, caption="Ratio, interval and verdict in each run; those of a run hold together")


def _verdict_cell(comparison: Comparison | None) -> Text:
    if comparison is None:
        return numbers.MISSING
    figures = compared_figures(comparison)
    if not has_interval(comparison):
        return html.stacked(figures.value, "no interval")
    return html.stacked(figures.value, f"{figures.interval} {_SIGNS[comparison.verdict]}")


def differences(many: ManyRuns) -> Html:
    """What is known to differ, a column a run; and what nobody can say."""
    known = [each for each in many.differences if each.known]
    unknown = [f"{each.area}: {named_difference(each.what)}" for each in many.differences if not each.known]
    shown: Text = html.paragraph("Nothing that was kept differs.")
    if known:
        groups: dict[str, list[list[Text]]] = {}
        for each in known:
            values = [shown_fact(each.what, value, known=True) for value in each.values]
            groups.setdefault(each.area, []).append([named_difference(each.what), *values])
        caption = f"{numbers.counted(len(known), 'difference')} in {numbers.counted(len(groups), 'respect')}"
        head = [Column("What"), *map(Column, many.names)]
        shown = html.table(head, [Rows(rows, area) for area, rows in groups.items()], caption=caption)
    heard = html.details(f"Not known of all runs: {len(unknown)}", html.items(unknown)) if unknown else ""
    return html.joined(shown, heard)


def tables(many: ManyRuns) -> Html:
    """One table a metric: the mean in each run with its interval and its verdict against the first, and the spreads."""
    by_metric: dict[str, list[CellOverRuns]] = {}
    for each in many.cells:
        by_metric.setdefault(each.metric, []).append(each)
    return html.joined(*(_metric_table(many, metric, own) for metric, own in by_metric.items()))


def _metric_table(many: ManyRuns, metric: str, cells: Sequence[CellOverRuns]) -> Html:
    scale = scale_for(cells[0].unit, max(abs(one.mean) for each in cells for one in each.estimates if one))
    head = [
        Column("File system"),
        *(Column(f"{name}, {scale.unit}", "number") for name in many.names),
        Column("Run to run, %", "number"),
        Column("Interval, %", "interval"),
        Column("Trial to trial, %", "number"),
        Column("p", "number"),
    ]
    groups: dict[str, list[list[Text]]] = {}
    for each in cells:
        heading = each.cell.workload.label + (f" ({each.label})" if each.label else "")
        groups.setdefault(heading, []).append(_metric_row(many, each, scale.factor))
    caption = (
        f"{metric_heading(metric)}, {scale.unit}: mean, interval inside the run, and verdict against A; "
        "then the standard deviations"
    )
    return html.table(head, [Rows(rows, heading) for heading, rows in groups.items()], caption=caption)


def _metric_row(many: ManyRuns, each: CellOverRuns, factor: float) -> list[Text]:
    spread, p = each.spread, each.p_adjusted
    means = [_mean_cell(each, place, factor) for place in range(len(many.runs))]
    return [
        each.cell.filesystem.name,
        *means,
        _in_percent(spread.between),
        f"[{_in_percent(spread.low)}, {_in_percent(spread.high)}]" if math.isfinite(spread.high) else "",
        _in_percent(spread.within),
        numbers.MISSING if math.isnan(p) else numbers.p_text(p),
    ]


def _in_percent(share: float) -> str:
    return numbers.number(share * 100, 1)


def _mean_cell(each: CellOverRuns, place: int, factor: float) -> Text:
    one, ratio = each.estimates[place], each.ratios[place]
    if one is None:
        return numbers.MISSING
    figures = numbers.mean_figures(one.mean, one.low, one.high, factor=factor)
    verdict = f" {_SIGNS[ratio.comparison.verdict]}" if ratio else ""
    return html.stacked(figures.value, f"{figures.interval or 'no interval'}{verdict}")


def caveats(many: ManyRuns) -> Html:
    """Caveats, worst first."""
    return html.joined(*(html.caveat_box(group) for group in grouped(many.caveats)))
