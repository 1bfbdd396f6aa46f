"""One sweep on several boxes, as text, as data and as the parts of a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mountlab.analysis import verdicts
from mountlab.analysis.compare.boxes import Across, RatioOverBoxes
from mountlab.analysis.compare.differences import option_texts
from mountlab.analysis.compare.figures import CellOverRuns
from mountlab.core import numbers
from mountlab.core.json import plain
from mountlab.core.names import metric_heading
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.views import side_by_side
from mountlab.report.views.side_by_side import V, about, answer_name, figure_name, in_percent, p_text, percent

_OVER_BOXES = (
    "On a box: from its run's own comparisons, paired by block. Over boxes: the geometric mean of the boxes' ratios, "
    "each box counting alike, with the t interval of these few values, corrected over all ratios. Further box: where "
    "a run like these on one more such box is expected to show the ratio. Box to box: the standard deviation of the "
    "ratio between boxes that the blocks on them do not explain, with its interval."
)
_CELL_BY_CELL = (
    "Between boxes and inside a box are standard deviations of the logarithm (3 % is a factor of about 1.03), with "
    "their intervals; share is that of the variance that lies between boxes. p: that all boxes were alike, corrected "
    "over all figures."
)
_MOST_NAMED = 3

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(across: Across) -> str:
    """Return the question of the page."""
    asked = " ".join(across.runs[0].sweep.question.split())
    return f"Does it hold over {numbers.counted(len(across.boxes), 'box')}? {asked}"


def sentences(across: Across) -> list[str]:
    """Return the answer: what holds over boxes and on each, what to expect of a further one, and where figures vary."""
    return [*_over_boxes(across), *_on_each(across), *_further(across), *_parts(across), *_without(across)]


def _over_boxes(across: Across) -> Iterator[str]:
    overall = [verdicts.together(each.over) for each in across.ratios]
    if not overall:
        yield "The runs have no comparison, so there is no answer to hold over boxes; their figures are below."
        return
    said = verdicts.answer(overall, smallest_effect=across.smallest_effect)
    first = said[0]
    if first.startswith(("Undecided", "Nothing")):
        first = first[0].lower() + first[1:]
    yield f"Over {numbers.counted(len(across.boxes), 'box')}, each counting alike: {first}"
    yield from said[1:]


def _on_each(across: Across) -> Iterator[str]:
    """'The same verdict on every box: 7 of 9 comparisons. Turned round: ...'."""
    if not across.ratios:
        return
    held = [each for each in across.ratios if each.holds]
    total = numbers.counted(len(across.ratios), "comparison")
    has = "has" if 1 in (len(held), len(across.ratios)) else "have"
    yield f"Box by box, {len(held)} of {total} {has} the same verdict, faster, slower or the same, on every box."
    turned = [each for each in across.ratios if each.turns]
    for each in turned[:_MOST_NAMED]:
        fell = side_by_side.by_verdict(each, across.boxes, across.smallest_effect, "on")
        yield f"It turns round: {answer_name(each.over)} is {fell}."
    if len(turned) > _MOST_NAMED:
        yield f"{len(turned) - _MOST_NAMED} more turn round; the table has all of them."


def _further(across: Across) -> Iterator[str]:
    """Yield what the strongest ratio may be on the next box."""
    known = {id(each.over): each for each in across.ratios if math.isfinite(each.further_high)}
    if not known:
        return
    first = known[id(verdicts.strongest_first([each.over for each in known.values()])[0])]
    figures = numbers.ratio_figures(first.over.ratio, first.further_low, first.further_high)
    what, level = answer_name(first.over), numbers.percent(across.level)
    yield f"On one more such box a run would show for {what} a ratio within {figures.interval}, at {level}."


def _parts(across: Across) -> Iterator[str]:
    """Yield where figures and ratios vary: between boxes, or inside them."""
    yield from _apart("figure", across.cells, across.level, figure_name)
    yield from _apart("ratio", across.ratios, across.level, lambda each: answer_name(each.over))


def _apart(noun: str, parts: Sequence[V], level: float, named: Callable[[V], str]) -> Iterator[str]:
    known, beyond = side_by_side.apart(parts, level)
    count = numbers.counted(known, noun)
    if known and not beyond:
        yield f"Nothing shows that boxes differ in a {noun} by more than their trials explain, in {count}."
    for most in beyond[:1]:
        yield (
            f"{side_by_side.how_many_differ(beyond, count)} from box to box by more than the trials explain, most "
            f"{named(most)}: by {percent(most.spread.between)} between boxes and {percent(most.spread.within)} from "
            f"trial to trial, {percent(most.spread.share)} of the variance between boxes."
        )


def _without(across: Across) -> Iterator[str]:
    if across.missing:
        whom = "it" if len(across.missing) == 1 else "them"
        yield f"Without {numbers.listed(list(across.missing))}: there are no figures of {whom} (see the caveats)."


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def across_text(across: Across) -> str:
    """For the terminal: the boxes, the answer, one row a ratio, one row a figure."""
    return lines_of(_lines(across))


def _lines(across: Across) -> Iterator[str]:
    width = max(map(len, (*across.boxes, *across.missing)))
    yield from (f"{name:{width}}  {about(run)}" for name, run in zip(across.boxes, across.runs, strict=True))
    yield from (f"{name:{width}}  no figures: {' '.join(why.split())}" for name, why in across.missing.items())
    yield ""
    yield from sentences(across)
    yield ""
    options = [*option_texts(across.differences, across.boxes), *side_by_side.unequal_lines(across.caveats)]
    if options:
        yield from (*options, "")
    head = ("ratio", *across.boxes, "over boxes", "", "further box")
    yield from side_by_side.columns(head, map(_ratio_row, across.ratios))
    yield ""
    head = ("figure", *across.boxes, "between", "inside", "share between")
    yield from side_by_side.columns(head, map(_figure_row, across.cells))


def _ratio_row(each: RatioOverBoxes) -> tuple[str, ...]:
    figures = verdicts.compared_figures
    on_each = [f"{figures(one).value} {one.verdict}" if one else numbers.MISSING for one in each.on_each]
    over = verdicts.together(each.over)
    further = numbers.ratio_figures(over.ratio, each.further_low, each.further_high).interval
    return (answer_name(each.over), *on_each, str(figures(over)), over.verdict, further)


def _figure_row(each: CellOverRuns) -> tuple[str, ...]:
    parts = (each.spread.between, each.spread.within, each.spread.share)
    return (figure_name(each), *side_by_side.mean_texts(each), *map(percent, parts))


def across_json(across: Across) -> dict[str, Any]:
    """Return everything, JSON-able: what is infinite or not known is null."""
    read: dict[str, Any] = plain(
        {
            "boxes": {name: run.info.get("run_id") for name, run in zip(across.boxes, across.runs, strict=True)},
            "missing": dict(across.missing),
            "level": across.level,
            "smallest_effect": across.smallest_effect,
            "sentences": sentences(across),
            "ratios": [
                {
                    "on_each": [one and asdict(one) for one in each.on_each],
                    "over": asdict(each.over),
                    "further": [each.further_low, each.further_high],
                    "spread": asdict(each.spread),
                    "p_adjusted": each.p_adjusted,
                }
                for each in across.ratios
            ],
            "figures": list(map(side_by_side.figure_json, across.cells)),
            "differences": [asdict(each) for each in across.differences],
            "caveats": [asdict(each) for each in across.caveats],
        }
    )
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def heading(across: Across) -> Html:
    """Return the title, and below it which boxes and when."""
    line = f"{numbers.listed(list(across.boxes))} · {side_by_side.days(across.runs)}"
    return html.joined(html.heading(title(across), level=1), html.paragraph(line, kind="meta"))


def answer(across: Across) -> Html:
    """Return the answer in sentences."""
    return side_by_side.answer(sentences(across), across.caveats)


def overview(across: Across) -> Html:
    """Return two pictures: each ratio on every box and over them, and every figure over its mean over boxes."""
    ordered = sorted(across.ratios, key=lambda each: (not each.turns, side_by_side.most_apart(each)))
    answers = {answer_name(each.over): (*each.on_each, verdicts.together(each.over)) for each in ordered}
    titles = next(_on_each(across), ""), "Each figure on every box, over its mean over boxes"
    return side_by_side.overview(across, across.boxes, answers, titles=titles, over=("all boxes",), noun="box")


def which(across: Across) -> Html:
    """Return which box is which, and which has no figures."""
    head = ["Box", "Run", "Machine", "Kernel", "Date", "Status"]
    rows = []
    for name, run in zip(across.boxes, across.runs, strict=True):
        machine = str(run.info.get("facts", {}).get("cpu_model") or "not known")
        rows.append(side_by_side.which_row(name, run, machine, str(run.info.get("status", "complete"))))
    rows += [[name, "", "", "", "", f"no figures: {' '.join(why.split())}"] for name, why in across.missing.items()]
    return html.table(head, [Rows(rows)], caption=f"The {numbers.counted(len(rows), 'box')} of the sweep")


def verdicts_of(across: Across) -> Html:
    """Return every ratio on each box, over them, and on a further one."""
    if not across.ratios:
        return html.paragraph("The runs have no comparison.")
    spread = numeric("Box to box, %", "Block to block, %", "p")
    head: Head = ["Comparison", *numeric(*across.boxes, "Over boxes"), Column("Further box", "interval"), *spread]
    rows = ((side_by_side.row_name(each.over), _ratio_cells(each)) for each in across.ratios)
    caption = (
        "Ratio, interval and verdict: on each box by its own blocks, those of a box together; over boxes, each "
        "counting alike, those of all ratios together. p: that the ratio is the same on all boxes"
    )
    return html.joined(html.paragraph(_OVER_BOXES), html.grouped_table(head, rows, caption=caption))


def _ratio_cells(each: RatioOverBoxes) -> list[Text]:
    over = verdicts.together(each.over)
    return [
        side_by_side.pair_name(over),
        *map(side_by_side.verdict_cell, (*each.on_each, over)),
        numbers.ratio_figures(over.ratio, each.further_low, each.further_high).interval,
        _with_interval(each.spread.between, each.spread.low, each.spread.high),
        in_percent(each.spread.within),
        p_text(each.p_adjusted),
    ]


def _with_interval(value: float, low: float, high: float) -> Text:
    if not math.isfinite(high):
        return in_percent(value)
    return html.stacked(in_percent(value), f"[{in_percent(low)}, {in_percent(high)}]")


def cell_by_cell(across: Across) -> Html:
    """Return one table a metric: the mean on each box, and the variance between boxes and inside them."""
    tables = side_by_side.by_metric(across.cells, lambda metric, own: _metric_table(across, metric, own))
    return html.joined(html.paragraph(_CELL_BY_CELL), tables)


def _metric_table(across: Across, metric: str, cells: Sequence[CellOverRuns]) -> Html:
    scale = scale_for(cells[0].unit, side_by_side.largest_mean(cells))
    means = (f"{name}, {scale.unit}" for name in across.boxes)
    head: Head = ["File system", *numeric(*means, "Between boxes, %", "Inside a box, %", "Share between, %", "p")]
    rows = ((side_by_side.group_name(each), _metric_row(each, scale.factor)) for each in cells)
    named = f"{metric_heading(metric)}, {scale.unit}"
    caption = f"{named}: mean and interval on each box; then the standard deviations, and the share of the variance"
    return html.grouped_table(head, rows, caption=caption)


def _metric_row(each: CellOverRuns, factor: float) -> list[Text]:
    found = each.spread
    return [
        each.cell.filesystem.name,
        *(side_by_side.mean_cell(one, factor) for one in each.estimates),
        _with_interval(found.between, found.low, found.high),
        _with_interval(found.within, found.within_low, found.within_high),
        _with_interval(found.share, found.share_low, found.share_high),
        p_text(each.p_adjusted),
    ]


def entry(across: Across) -> dict[str, Any]:
    """Return what the index of results shows of the page."""
    return {
        "kind": "comparison",
        "title": title(across),
        "page": "report.html",
        "verdict": sentences(across)[0],
        "created_at": max(str(run.info.get("created_at", "")) for run in across.runs),
        "caveats": Counter(each.severity for each in across.caveats),
        "runs": [str(run.info.get("run_id")) for run in across.runs],
    }
