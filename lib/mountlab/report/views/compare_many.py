"""Many runs of one sweep, as text, as data and as the parts of a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mountlab.analysis.compare.boxes import box_of
from mountlab.analysis.compare.differences import Difference
from mountlab.analysis.compare.many import CellAgainstFirst, ManyRuns
from mountlab.analysis.verdicts import SIGNS, tally
from mountlab.core import numbers
from mountlab.core.json import plain
from mountlab.core.names import metric_heading, metric_noun
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text, numeric
from mountlab.report.views import side_by_side
from mountlab.report.views.side_by_side import about, answer_name, difference_name, in_percent, p_text, percent

_CELL_BY_CELL = (
    "Means with the interval from the trials inside a run, and below it the verdict against A, corrected over all "
    "ratios of all runs, with what runs differ by themselves. Run to run is the standard deviation between runs that "
    "the trials inside them do not explain, with its interval; trial to trial that inside the runs. p: that all runs "
    "were alike, corrected over all figures."
)
_MOST_NAMED = 3

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(many: ManyRuns) -> str:
    """Return the question of the page."""
    asked = [" ".join(run.sweep.question.split()) for run in many.runs]
    one = asked[0] if len(set(asked)) == 1 else f"{many.runs[0].sweep.name} and others"
    return f"How did the answer change over {numbers.counted(len(many.runs), 'run')}? {one}"


def sentences(many: ManyRuns) -> list[str]:
    """Return the answer: did the verdicts hold, how much runs differ by themselves, and which run differs from the
    first."""
    return [*_verdicts_held(many), _between(many), f"{_against_first(many)} {many.runs_differ}"]


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
    for each in changed[:_MOST_NAMED]:
        fell = side_by_side.by_verdict(each, many.names, many.smallest_effect, "in")
        yield f"{answer_name(each.known[0])}: {fell}."
    if len(changed) > _MOST_NAMED:
        yield f"{len(changed) - _MOST_NAMED} more changed; the table has all of them."


def _all_of(total: str, count: int) -> str:
    return f"its {total.removeprefix('1 ')} has" if count == 1 else f"all {total} have"


def _between(many: ManyRuns) -> str:
    """Return how many figures differ from run to run by more than their trials explain, and the one that does most."""
    known, beyond = side_by_side.apart(many.cells, many.level)
    count = numbers.counted(known, "figure")
    if not known:
        return "The part of a difference that is the runs' own is unknown: no run has two trials of a figure."
    if not beyond:
        return f"Nothing shows that runs differ by more than their trials explain, in {count}."
    most, differ = beyond[0], side_by_side.how_many_differ(beyond, count)
    run, trial = percent(most.spread.between), percent(most.spread.within)
    where = f"{side_by_side.figure_name(most)} by {run}, from trial to trial by {trial}"
    return f"From run to run {differ} by more than their trials explain, most {where}."


def _against_first(many: ManyRuns) -> str:
    """'Against A, all 18 ratios corrected together: B is faster in 2; C is undecided in 9.'"""
    alike: dict[str, list[str]] = {}
    for place, name in enumerate(many.names[1:], start=1):
        fell = Counter(ratio.comparison.verdict for cell in many.cells if (ratio := cell.ratios[place]) is not None)
        alike.setdefault(tally(fell, many.smallest_effect), []).append(name)
    parts = [f"{numbers.listed(own)} {'are each' if len(own) > 1 else 'is'} {said}" for said, own in alike.items()]
    count = sum(ratio is not None for cell in many.cells for ratio in cell.ratios)
    return f"Against A, {numbers.counted(count, 'ratio')} corrected together: {'; '.join(parts)}."


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
        what = f"{each.area}: {difference_name(each)}"
        yield f"{'differs' if not i else '':12} {what}: {_values_in_line(many, each)}"
    yield ""
    if unequal := side_by_side.unequal_lines(many.caveats):
        yield from (*unequal, "")
    head = ("cell", "metric", *many.names, "between", "within", "p")
    yield from side_by_side.columns(head, map(_row, many.cells))


def _values_in_line(many: ManyRuns, difference: Difference) -> str:
    by_value: dict[str, list[str]] = {}
    for name, text in zip(many.names, side_by_side.difference_values(difference), strict=True):
        by_value.setdefault(text, []).append(name)
    return ", ".join(f"{text} in {numbers.listed(where)}" for text, where in by_value.items())


def _row(each: CellAgainstFirst) -> tuple[str, ...]:
    spread = (percent(each.spread.between), percent(each.spread.within))
    noun = metric_noun(each.metric, each.label)
    return (each.cell.id, noun, *side_by_side.mean_texts(each), *spread, p_text(each.p_adjusted))


def many_json(many: ManyRuns) -> dict[str, Any]:
    """Return everything in the comparison, JSON-able: what is infinite or not known is null."""
    read: dict[str, Any] = plain(
        {
            "runs": {name: run.info.get("run_id") for name, run in zip(many.names, many.runs, strict=True)},
            "level": many.level,
            "smallest_effect": many.smallest_effect,
            "runs_differ": many.runs_differ,
            "sentences": sentences(many),
            "answers": [[each and asdict(each) for each in answer.on_each] for answer in many.answers],
            "cells": [
                {**side_by_side.figure_json(each), "to_first": [one and asdict(one.comparison) for one in each.ratios]}
                for each in many.cells
            ],
            "differences": [asdict(each) for each in many.differences],
            "caveats": [asdict(each) for each in many.caveats],
        }
    )
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def heading(many: ManyRuns) -> Html:
    """Return the title."""
    boxes = set(map(box_of, many.runs))
    kernels = {str(run.info.get("facts", {}).get("kernel")) for run in many.runs}
    line = [
        side_by_side.days(many.runs),
        f"{len(boxes)} boxes" if len(boxes) > 1 else f"box {boxes.pop()}",
        numbers.counted(len(kernels), "kernel"),
    ]
    return html.joined(html.heading(title(many), level=1), html.paragraph(" · ".join(line), kind="meta"))


def answer(many: ManyRuns) -> Html:
    """Return the answer in sentences."""
    return side_by_side.answer(sentences(many), many.caveats)


def overview(many: ManyRuns) -> Html:
    """Return two pictures: the ratios of the answer in every run, and every figure over its mean."""
    ordered = sorted(many.answers, key=lambda each: each.agrees)
    answers = {answer_name(each.known[0]): each.on_each for each in ordered}
    return side_by_side.overview(many, many.names, answers, titles=(sentences(many)[0], _between(many)))


def cell_by_cell(many: ManyRuns) -> Html:
    """Return one table a metric: the mean in each run with its interval and its verdict against the first, and the
    spreads."""
    tables = side_by_side.by_metric(many.cells, lambda metric, own: _metric_table(many, metric, own))
    return html.joined(html.paragraph(f"{_CELL_BY_CELL} {many.runs_differ}"), tables)


def _metric_table(many: ManyRuns, metric: str, cells: Sequence[CellAgainstFirst]) -> Html:
    scale = scale_for(cells[0].unit, side_by_side.largest_mean(cells))
    means = numeric(*(f"{name}, {scale.unit}" for name in many.names), "Run to run, %")
    head: Head = ["File system", *means, Column("Interval, %", "interval"), *numeric("Trial to trial, %", "p")]
    rows = ((side_by_side.group_name(each), _metric_row(each, scale.factor)) for each in cells)
    caption = (
        f"{metric_heading(metric)}, {scale.unit}: mean, interval inside the run, and verdict against A; "
        "then the standard deviations"
    )
    return html.grouped_table(head, rows, caption=caption)


def _metric_row(each: CellAgainstFirst, factor: float) -> list[Text]:
    spread = each.spread
    to_first = (f" {SIGNS[ratio.comparison.verdict]}" if ratio else "" for ratio in each.ratios)
    return [
        each.cell.filesystem.name,
        *(side_by_side.mean_cell(one, factor, said) for one, said in zip(each.estimates, to_first, strict=True)),
        in_percent(spread.between),
        f"[{in_percent(spread.low)}, {in_percent(spread.high)}]" if math.isfinite(spread.high) else "",
        in_percent(spread.within),
        p_text(each.p_adjusted),
    ]
