"""A comparison of runs as the parts of a page: of two, of many, or of one sweep on several boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mountlab import plots
from mountlab.analysis.compare.differences import known_areas
from mountlab.analysis.compare.over_boxes import RatioOverBoxes
from mountlab.analysis.compare.runs import CellOverRuns, RunComparison, box_of
from mountlab.analysis.compare.to_first import CellRatio
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.core.names import code_words, metric_heading, metric_noun
from mountlab.core.text import capital
from mountlab.core.units import scale_for
from mountlab.plots.over_runs import Relative, plot_answer_over_runs, plot_over_runs, room_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.sentences import comparison as text
from mountlab.wording import verdicts as words
from mountlab.wording.caveats import doubt_key, doubts_by_cell, grouped

Row = TypeVar("Row", CellOverRuns, CellRatio)
_IN_EACH_RUN = (
    "From the run's own comparisons, paired by block: what changed between runs cancels inside them. The verdicts of "
    "one run hold together."
)
_OVER_BOXES = (
    "On a box: from its run's own comparisons, paired by block. Over boxes: the geometric mean of the boxes' ratios, "
    "each box counting alike, with the t interval of these few values, corrected over all ratios. Further box: where "
    "a run like these on one more such box is expected to show the ratio. Box to box: the standard deviation of the "
    "ratio between boxes that the blocks on them do not explain, with its interval."
)
_RATIOS_OF_PAIR = (
    "The ratio of geometric means on logs: the runs share no blocks, so nothing is paired. The interval contains the "
    "spread of trials, and by how much runs differ by themselves. B differs from A unless runs differ by more than the "
    "break-even. Verdicts allow for the number of ratios, and so do the intervals beside them: one that leaves out 1 "
    "has a verdict."
)
_AGAINST_FIRST = (
    "Below a mean is the interval from the trials inside its run, and the verdict against A, corrected over all ratios "
    "of all runs, with what runs differ by themselves. "
)
_SPREADS = (
    "Between {runs} and inside a {run} are standard deviations of the logarithm (3 % is a factor of about 1.03), with "
    "their intervals; share is that of the variance that lies between {runs}. p: that all {runs} were alike, corrected "
    "over all figures."
)

_MOST_TITLES = 6
"""Runs that the heading names."""


def heading(comparison: RunComparison) -> Html:
    """Return the question, and which runs it is about."""
    runs = comparison.runs
    if comparison.is_pair:
        lines = [f"{name}: {text.about(run)}" for name, run in zip(comparison.names, runs, strict=True)]
    else:
        dates = sorted(map(text.day_of, runs))
        days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        lines = [f"{numbers.listed(list(comparison.names))} · {days}"]
        if comparison.factor == "run":
            boxes = set(map(box_of, runs))
            where = f"{len(boxes)} boxes" if len(boxes) > 1 else f"box {boxes.pop()}"
            kernels = {str(run.info.facts.kernel.release) for run in runs}
            titles = [f"{name}: {title}" for name, title in zip(comparison.names, text.run_titles(runs), strict=True)]
            lines = [
                f"{days} · {where} · {numbers.counted(len(kernels), 'kernel')}",
                numbers.first_few(titles, _MOST_TITLES),
            ]
    title = html.heading(text.title(comparison), level=1)
    return html.joined(title, *(html.paragraph(line, kind="meta") for line in lines))


def answer(comparison: RunComparison) -> Html:
    """Return the answer in sentences, its trust, and what to do next; of two runs also what differs, and the strongest
    ratios with both means."""
    first, *others = text.sentences(comparison)
    lines = [html.paragraph(first, kind="lead"), *map(html.paragraph, others)]
    lines += html.trust_paragraphs(comparison.trust.grade, text.trust_lines(comparison))
    if not comparison.is_pair:
        known = html.paragraph(comparison.runs_differ, kind="meta") if comparison.runs_differ else ""
        return html.joined(html.box("answer", *lines), known)
    areas = text.what_differs(comparison)
    differs = html.labelled(html.link("#What-differs", "What differs, A → B"), f"{areas}.") if areas else ""
    meta = html.paragraph(differs, kind="meta") if areas else ""
    return html.joined(html.box("answer", *lines), meta, _strongest(comparison))


def _strongest(pair: RunComparison) -> Html:
    """Return the strongest ratios with both means, in units that people read."""
    doubts = doubts_by_cell(pair.caveats, pair.runs[0].sweep.own_metrics)
    of_each = [doubts.get(doubt_key(ratio.cell.id, ratio.metric), ()) for ratio in pair.ratios]
    shared = [code for code in of_each[0] if len(of_each) > 1 and all(code in codes for codes in of_each)]
    shown, rows = text.strongest(pair), []
    for ratio in shown:
        both = (ratio.mean_a, ratio.mean_b)
        scale = scale_for(ratio.unit, max(map(abs, both)))
        means = [Html.escape(f"{scale.show(mean)}\u00a0{scale.unit}") for mean in both]  # units differ from row to row
        figures = words.compared_figures(ratio.comparison)
        name = f"{ratio.cell.filesystem.name}, {_group_name(ratio)}: {metric_noun(ratio.metric)}"
        verdict: Text = words.verdict_of(ratio.comparison, pair.smallest_effect)
        codes = [code for code in doubts.get(doubt_key(ratio.cell.id, ratio.metric), ()) if code not in shared]
        if codes:
            verdict = html.stacked(verdict, f"{'also ' if shared else ''}doubtful: {', '.join(map(code_words, codes))}")
        rows.append([name, *means, figures.value, figures.interval, verdict])
    head: Head = ["Figure", *numeric("A", "B", "B / A"), Column("Interval", "interval"), "Verdict"]
    which = "All" if len(shown) == len(pair.ratios) else f"The strongest {len(shown)} of"
    count = numbers.counted(len(pair.ratios), "ratio")
    sizes = sorted({n for ratio in shown for n in (ratio.n_a, ratio.n_b)})
    n = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
    caption = f"{which} {count}, n = {n}; {numbers.percent(pair.level)} intervals for all together"
    about = "A and B are arithmetic means; B / A is the ratio of geometric means, and so not their quotient."
    if shared:
        about += f" All {count} are doubtful: {', '.join(map(code_words, shared))}."
    return html.joined(html.paragraph(about, kind="meta"), html.table(head, [Rows(rows)], caption=caption))


def caveats(comparison: RunComparison) -> Html:
    """Return what gives reason to doubt it, worst first."""
    return html.joined(*map(html.caveat_box, grouped(comparison.caveats)))


@frames.attach(frames.runs)
def which(comparison: RunComparison) -> Html:
    """Return which run, or which box, is which."""
    of_boxes = comparison.factor == "box"
    rows: list[list[Text]] = []
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        facts = run.info.facts
        where = facts.processors.model or "not known" if of_boxes else box_of(run)
        kernel = facts.kernel.release or "not known"
        day = run.info.created_at[:16].replace("T", " ")
        status = "imported" if run.sweep.imported else run.info.status
        rows.append([name, run.info.run_id, where, kernel, day, status])
    missing = comparison.missing.items()
    rows += [[name, "", "", "", "", f"no figures: {' '.join(why.split())}"] for name, why in missing]
    what = ["Box", "Run", "Machine"] if of_boxes else ["Run", "Name", "Box"]
    count = numbers.counted(len(rows), comparison.factor)
    caption = f"The {count} of the sweep" if of_boxes else f"The {count}, in the order given"
    return html.table([*what, "Kernel", "Date", "Status"], [Rows(rows)], caption=caption)


@frames.attach(frames.differences)
def differences(comparison: RunComparison) -> Html:
    """Return what is known to differ between the runs, a column a run, and what is not known of all."""
    drawn = [row for row in comparison.differences if row.known]
    unknown = [f"{row.area}: {text.difference_name(row)}" for row in comparison.differences if not row.known]
    differences: Text = html.paragraph("Nothing that was kept differs.")
    if drawn:
        respects = numbers.counted(len(known_areas(drawn)), "respect")
        rows = ((row.area, [text.difference_name(row), *text.difference_values(row)]) for row in drawn)
        caption = f"{numbers.counted(len(drawn), 'difference')} in {respects}"
        differences = html.grouped_table(["What", *comparison.names], rows, caption=caption)
    heading = f"Not known of {text.all_of(comparison)}: {len(unknown)}"
    return html.joined(differences, html.details(heading, html.items(unknown)) if unknown else "")


@frames.attach(frames.not_compared)
def not_compared(comparison: RunComparison) -> Html:
    """Return the cells that some runs do not have."""
    lists = [
        html.details(f"Only in {name}: {len(cells)}", html.items(cells)) for name, cells in comparison.only_in.items()
    ]
    whose = text.all_of(comparison)
    return html.joined(*lists) if lists else html.paragraph(f"{capital(whose)} have the same cells.")


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def overview(comparison: RunComparison) -> Html:
    """Return the answer in pictures: of two runs their ratios; else the ratios of the sweep in every run, and over all
    boxes, and beside it every figure over its mean."""
    # The order of the first run, so that colours are those of its own report.
    filesystems = list(dict.fromkeys(fs.name for run in comparison.runs for fs in run.sweep.filesystems))
    if comparison.is_pair:
        ratios = [ratio.comparison for ratio in comparison.ratios if words.effect(ratio.comparison) >= 0]
        if not ratios:
            return html.paragraph("No ratio to plot.")
        short = [replace(ratio, candidate=ratio.candidate.removesuffix(" in B"), baseline="A") for ratio in ratios]
        doubts = doubts_by_cell(comparison.caveats, comparison.runs[0].sweep.own_metrics)
        smallest = comparison.smallest_effect
        plot = plots.plot_ratios(short, smallest_effect=smallest, filesystems=filesystems, doubts=doubts)
        return html.plot(replace(plot, title="B / A in every figure, with its interval; 1 is no difference"))
    names, over = comparison.names, ("all boxes",) if comparison.factor == "box" else ()
    titles = text.plot_titles(comparison)
    answers, drawn = _answers_to_draw(comparison), []
    if any(words.effect(ratio) >= 0 for on_each in answers.values() for ratio in on_each if ratio):
        columns, smallest = (*names, *over), comparison.smallest_effect
        plot = plot_answer_over_runs(
            answers, columns, title=titles[0], smallest_effect=smallest, filesystems=filesystems
        )
        room = room_for(len(columns))
        rest = f"{room} of {len(answers)} comparisons are drawn; the table below has all of them."
        drawn.append(html.joined(html.plot(plot), html.paragraph(rest, kind="meta") if len(answers) > room else ""))
    if points := list(_relative(comparison.cells)):
        plot = plot_over_runs(points, names, title=titles[1], filesystems=filesystems, noun=comparison.factor)
        drawn.append(html.plot(plot))
    return html.columns(*drawn) if drawn else html.paragraph("Nothing to plot.")


def _answers_to_draw(comparison: RunComparison) -> dict[str, Sequence[Comparison | None]]:
    """Return the comparisons by name, those that changed first: what fits is drawn."""
    if comparison.factor == "box":
        ratios = sorted(comparison.over_boxes, key=lambda ratio: (not ratio.turns, _most_apart(ratio)))
        return {text.answer_name(ratio.over): (*ratio.on_each, ratio.over) for ratio in ratios}
    ordered = sorted(comparison.answers, key=lambda answer: answer.agrees)
    return {text.answer_name(answer.present[0]): answer.on_each for answer in ordered}


def _relative(cells: Sequence[CellOverRuns]) -> Iterator[Relative]:
    """Yield every estimate over the mean of its cell's estimates; the figures that differ most first."""
    several = len({(cell.metric, cell.label) for cell in cells}) > 1
    for cell in sorted(cells, key=_most_apart):
        means = [estimate.mean for estimate in cell.estimates if estimate]
        mean = sum(means) / len(means)
        group = cell.cell.workload.label + (f": {metric_noun(cell.metric, cell.label)}" if several else "")
        for place, estimate in enumerate(cell.estimates):
            if estimate and mean > 0:
                parts = (estimate.mean / mean, estimate.low / mean, estimate.high / mean)
                yield Relative(group, cell.cell.filesystem.name, place, *parts)


def _most_apart(part: CellOverRuns | RatioOverBoxes) -> float:
    """Return the key that sorts those first that differ most from run to run."""
    return -part.spread.between if math.isfinite(part.spread.between) else 1.0


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@frames.attach(lambda comparison: comparison.verdicts)
def verdicts(comparison: RunComparison) -> Html:
    """Return the verdicts of every run, from its own comparisons; on boxes also those over all of them, and what to
    expect of a further one."""
    if not comparison.answers:
        share = "have" if comparison.factor == "box" else "share"
        return html.paragraph(f"The runs {share} no comparison.")
    rows: list[tuple[str, list[Text]]] = []
    if comparison.factor == "run":
        head: Head = ["Comparison", *numeric(*comparison.names), "Verdicts"]
        caption = "Ratio, interval and verdict in each run; those of a run hold together"
        for answer in comparison.answers:
            first, agreement = answer.present[0], "all alike" if answer.agrees else "✗ change"
            rows.append((text.row_name(first), [text.pair_name(first), *map(_ratio_cell, answer.on_each), agreement]))
        return html.joined(html.paragraph(_IN_EACH_RUN), html.grouped_table(head, rows, caption=caption))
    spread = numeric("Box to box, %", "Block to block, %", "p")
    head = ["Comparison", *numeric(*comparison.names, "Over boxes"), Column("Further box", "interval"), *spread]
    caption = (
        "Ratio, interval and verdict: on each box by its own blocks, those of a box together; over boxes, each "
        "counting alike, those of all ratios together. p: that the ratio is the same on all boxes"
    )
    for ratio in comparison.over_boxes:
        over = ratio.over
        cells = [
            text.pair_name(over),
            *map(_ratio_cell, (*ratio.on_each, over)),
            numbers.ratio_figures(over.ratio, ratio.further_low, ratio.further_high).interval,
            _share_cell(ratio.spread.between, ratio.spread.low, ratio.spread.high),
            _in_percent(ratio.spread.within),
            text.p_text(ratio.p_adjusted),
        ]
        rows.append((text.row_name(over), cells))
    return html.joined(html.paragraph(_OVER_BOXES), html.grouped_table(head, rows, caption=caption))


def _ratio_cell(comparison: Comparison | None) -> Text:
    """Return a ratio above its interval and its verdict."""
    if comparison is None:
        return numbers.MISSING
    figures = words.compared_figures(comparison)
    below = f"{figures.interval} {words.SIGNS[comparison.verdict]}" if words.has_interval(comparison) else "no interval"
    return html.stacked(figures.value, below)


@frames.attach(lambda comparison: comparison.figures)
def cell_by_cell(comparison: RunComparison) -> Html:
    """Return every figure in every run: of two runs with their ratio, of more with the spread between them."""
    if comparison.is_pair:
        doubts = doubts_by_cell(comparison.caveats, comparison.runs[0].sweep.own_metrics)
        ratios = _by_metric(comparison.ratios, lambda metric, rows: _pair_table(comparison, metric, rows, doubts))
        return html.joined(html.paragraph(f"{_RATIOS_OF_PAIR} {comparison.runs_differ}"), ratios)
    about = _SPREADS.format(run=comparison.factor, runs=text.PLURAL[comparison.factor])
    if comparison.factor == "run":
        about = f"{_AGAINST_FIRST}{about} {comparison.runs_differ}"
    tables = _by_metric(comparison.cells, lambda metric, cells: _spread_table(comparison, metric, cells))
    return html.joined(html.paragraph(about), tables)


def _by_metric(figures: Iterable[Row], draw: Callable[[str, list[Row]], Html]) -> Html:
    """Return one table a metric."""
    by_metric = by_key((figure.metric, figure) for figure in figures)
    return html.joined(*(draw(metric, rows) for metric, rows in by_metric.items()))


def _group_name(figure: CellOverRuns | CellRatio) -> str:
    """Return the workload of a figure, and its label where rows have one."""
    return figure.cell.workload.label + (f" ({figure.label})" if figure.label else "")


def _pair_table(
    pair: RunComparison, metric: str, ratios: Sequence[CellRatio], doubts: Mapping[str, Sequence[str]]
) -> Html:
    """Return both means, the ratio, its interval and verdict, and the doubts about it."""
    means = [abs(value) for ratio in ratios for value in (ratio.mean_a, ratio.mean_b) if math.isfinite(value)]
    scale = scale_for(ratios[0].unit, max(means, default=1))
    figures = numeric(f"A, {scale.unit}", f"B, {scale.unit}", "n of A", "n of B", "B / A")
    head: Head = ["File system", *figures, Column("Interval", "interval"), *numeric("Break-even"), "Verdict", "Caveats"]
    rows: list[tuple[str, list[Text]]] = []
    for ratio in ratios:
        texts = words.compared_figures(ratio.comparison)
        both = [numbers.mean_figures(*[mean] * 3, factor=scale.factor).value for mean in (ratio.mean_a, ratio.mean_b)]
        counts = (str(ratio.n_a), str(ratio.n_b))
        verdict = words.verdict_or_why(ratio.comparison, pair.smallest_effect)
        doubtful = ", ".join(map(code_words, doubts.get(doubt_key(ratio.cell.id, ratio.metric), ())))
        cells = [ratio.cell.filesystem.name, *both, *counts, texts.value, texts.interval]
        rows.append((_group_name(ratio), [*cells, text.break_even_text(ratio), verdict, doubtful]))
    caption = f"{metric_heading(metric)}, {scale.unit}; intervals hold for all ratios together"
    return html.grouped_table(head, rows, caption=caption)


def _spread_table(comparison: RunComparison, metric: str, cells: Sequence[CellOverRuns]) -> Html:
    """Return the mean in each run with its interval and its verdict against the first, and what lies between runs and
    inside them."""
    run, runs = comparison.factor, text.PLURAL[comparison.factor]
    largest = max(abs(estimate.mean) for cell in cells for estimate in cell.estimates if estimate)
    scale = scale_for(cells[0].unit, largest)
    means = (f"{name}, {scale.unit}" for name in comparison.names)
    spreads = (f"Between {runs}, %", f"Inside a {run}, %", "Share between, %", "p")
    rows: list[tuple[str, list[Text]]] = []
    for cell in cells:
        spread = cell.spread
        signs = [f" {words.SIGNS[ratio.comparison.verdict]}" if ratio else "" for ratio in cell.ratios]
        row: list[Text] = [cell.cell.filesystem.name]
        for estimate, sign in zip(cell.estimates, signs, strict=True):
            if estimate is None:
                row.append(numbers.MISSING)
            else:
                figures = numbers.mean_figures(estimate.mean, estimate.low, estimate.high, factor=scale.factor)
                row.append(html.stacked(figures.value, f"{figures.interval or 'no interval'}{sign}"))
        row += [
            _share_cell(spread.between, spread.low, spread.high),
            _share_cell(spread.within, spread.within_low, spread.within_high),
            _share_cell(spread.share, spread.share_low, spread.share_high),
            text.p_text(cell.p_adjusted),
        ]
        rows.append((_group_name(cell), row))
    what = "mean, interval inside the run, and verdict against A" if run == "run" else "mean and interval on each box"
    heading = f"{metric_heading(metric)}, {scale.unit}"
    caption = f"{heading}: {what}; then the standard deviations, and the share of the variance"
    return html.grouped_table(["File system", *numeric(*means, *spreads)], rows, caption=caption)


def _share_cell(share: float, low: float, high: float) -> Text:
    """Return a share in percent above its interval, where there is one."""
    if not math.isfinite(high):
        return _in_percent(share)
    return html.stacked(_in_percent(share), f"[{_in_percent(low)}, {_in_percent(high)}]")


def _in_percent(share: float) -> str:
    return numbers.number(share * 100, 1)
