"""Why one file system is slower than another: the split of latencies, shares of differences, ratios of work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from mountlab import plots
from mountlab.analysis import why as causes_of
from mountlab.analysis import why_doubts
from mountlab.analysis.run_view import RunView
from mountlab.analysis.why import Cause, PartOfDifference, WorkFigure
from mountlab.analysis.why_answer import answering
from mountlab.analysis.why_details import ran_instead
from mountlab.core import numbers
from mountlab.core.frames import rows_of
from mountlab.core.groups import by_key
from mountlab.core.layers import QUANTITIES, SHARES
from mountlab.core.names import cell_id, latency_noun
from mountlab.core.text import capital
from mountlab.core.units import scale_for
from mountlab.plots import LayerBar, Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text
from mountlab.report.sections import frames
from mountlab.report.sections.shared import names_of, swatches
from mountlab.sentences import why as why_sentences
from mountlab.sentences import why_doubts as doubt_sentences
from mountlab.sentences.why_beside import beside_sentences

_MOST_SENTENCES, _MOST_PLOTS = 6, 2
"""That stand open; the others are folded."""
_LEAST_S = 0.5e-9
_LEAST_WAIT, _MOST_PROGRAMS = 0.05, 4
"""Share of a latency from which on the table says what ran meanwhile; programs that a file system adds to it."""


def behind_answer(run: RunView) -> list[Html]:
    """Return what explains the differences of the answer for the first screen: the answer first, then the next step, a
    table of latency and work on each file system, and what is doubtful."""
    known = why_sentences.explanation(run)
    if known is None:
        return []
    tables = [_clue_table(run, clue) for clue in known.clues]
    lead = html.paragraph(html.labelled(*known.why), kind="lead")
    steps, rest = ([html.paragraph(html.labelled(*line)) for line in lines] for lines in (known.steps, known.doubts))
    return [lead, *steps, *tables, *rest, *(html.paragraph(text) for _, text in known.more)]


def _clue_table(run: RunView, clue: why_sentences.Clue) -> Html:
    """A row a figure, a column a file system; what is alike below it."""
    marks, present = swatches(run), [name for name in names_of(run) if any(name in row for row in clue.rows.values())]
    head: Head = ["Clue", *html.numeric(*(marks[name] for name in present))]
    rows = [[capital(noun), *(row.get(name, "") for name in present)] for noun, row in clue.rows.items()]
    table = html.table(head, [html.Rows(rows)], caption=f"What lies behind it{clue.under}; {clue.n}")
    return html.joined(table, html.paragraph(" ".join(clue.notes), kind="meta") if clue.notes else "")


@frames.attach(frames.explained)
def why(run: RunView) -> Html:
    """Return what explains the differences, in sentences; the parts of each latency as stacked bars; the ratios of
    work; and what all of this cannot know."""
    if not run.why:
        return html.nothing("The run has no diagnostic trials: `mountlab explain RUN` adds them.")
    figures = causes_of.work(run.why, run.sweep)
    causes = causes_of.causes(run.why, run.sweep, run.comparisons)
    drawn = [html.plot(plot) for plot in layer_plots(run)]
    bars = html.columns(*drawn[:_MOST_PLOTS]) if drawn else ""
    more = drawn[_MOST_PLOTS:]
    summary = f"{numbers.counted(len(more), 'more operation')} in parts"
    folded = html.details(summary, html.columns(*more)) if more else ""
    waits = [
        table
        for workload in run.sweep.workloads
        for operation in causes_of.operations(run.why)
        if (table := _instead_table(run, workload.label, operation))
    ]
    instead = html.details("What ran while operations waited for a processor", html.joined(*waits)) if waits else ""
    return html.joined(
        _sentences(run, causes, figures),
        html.joined(*(html.paragraph(html.labelled(*pair)) for pair in beside_sentences(run.sweep, figures))),
        html.joined(bars, folded, _traced_and_counted(run)),
        _shares([cause for cause in causes if not _far_off(run, cause)]),
        _work(run, figures),
        instead,
        _beside(run),
    )


def _sentences(run: RunView, causes: Sequence[Cause], figures: Sequence[WorkFigure]) -> Text:
    """Return a sentence for each difference, those of the answer first; the first few stand open."""
    answers = answering(run)
    answered = [answer.cause for answer in answers if answer.cause]
    opposite = [answer.cause for answer in answers if answer.against]
    ordered = [*answered, *(cause for cause in causes if cause not in answered)]
    alone, instead = len({cause.workload_label for cause in ordered}) == 1, partial(ran_instead, run.why)
    counts = {cause.ratio.n for cause in ordered}
    sentences = []
    for cause in ordered:
        subject = why_sentences.cause_subject(cause, name_workload=not alone)
        off = _far_off(run, cause)
        text = why_sentences.cause_sentence(cause, figures, instead, name_n=len(counts) > 1, off=off)
        before = "The counted trials show the opposite. " if cause in opposite else ""
        sentences.append(html.labelled(subject, f"{before}{text}"))
    if not sentences:
        reason = "no two file systems are compared" if not run.comparisons else "too few diagnostic trials are shown"
        return html.paragraph(f"No difference is explained: {reason}. The split of each latency is below.")
    more = sentences[_MOST_SENTENCES:]
    folded = html.details(numbers.counted(len(more), "more difference"), html.items(more)) if more else ""
    n = f"n = {numbers.counted(min(counts), 'diagnostic block')} each." if len(counts) == 1 else ""
    return html.joined(html.items(sentences[:_MOST_SENTENCES]), folded, html.paragraph(n, kind="meta") if n else "")


def _far_off(run: RunView, cause: Cause) -> list[why_doubts.Off]:
    """Return the sides of a difference whose parts are too far from the tool's mean for shares."""
    cells = [cell_id(name, cause.workload_label) for name in (cause.candidate, cause.baseline)]
    sides = [off for off in why_doubts.off(run.why) if off.cell in cells and off.operation == cause.operation]
    return [off for off in sides if off.is_far]


# ── bars ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def layer_plots(run: RunView) -> Iterator[Plot]:
    """Yield where the time of each main operation goes, one figure a workload and operation."""
    groups = by_key(((split.workload_label, split.operation), split) for split in causes_of.splits(run.why, run.sweep))
    for (workload, operation), members in groups.items():
        if operation in _main_operations(run, workload) and any(split.parts for split in members):
            counts = Counter(split.statistic for split in members)
            bars = []
            for split in [split for split in members if counts[split.statistic] > 1] or members:
                means: dict[tuple[str, str], float] = {part: seconds.mean for part, seconds in split.parts.items()}
                bars.append(LayerBar(split.filesystem, split.statistic, split.whole, means))
            yield plots.plot_layers(bars, operation, workload)


def _main_operations(run: RunView, workload: str) -> set[str]:
    return causes_of.main_operations(run.why, {cell.id for cell in run.sweep.cells if cell.workload.label == workload})


def _traced_and_counted(run: RunView) -> Text:
    """Return the mean latencies of this part beside those of the counted trials, which the tables of results have."""
    rows = run.estimates[run.estimates["label"].fillna("") == ""]
    counted = {(cell, metric): mean for cell, metric, mean in rows_of(rows, "cell", "metric", "mean")}
    texts: dict[str, list[str]] = {}
    for split in causes_of.splits(run.why, run.sweep):
        mean = counted.get((cell_id(split.filesystem, split.workload_label), f"{split.operation}_latency_mean"))
        if split.statistic == "mean" and mean:
            traced, untraced = (numbers.quantity(seconds, "s") for seconds in (split.whole.mean, mean))
            noun = f"{latency_noun(split.operation, 'mean')} under {split.workload_label}"
            texts.setdefault(noun, []).append(f"{split.filesystem} {traced} ({untraced})")
    lines = [f"{noun}: {', '.join(sides)}" for noun, sides in texts.items()]
    about = "Latencies here are those of the traced trials; in brackets those of the counted ones, as in the results. "
    return html.paragraph(f"{about}{capital('; '.join(lines))}.", kind="meta") if lines else ""


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shares(causes: Sequence[Cause]) -> Text:
    """All parts of each difference, behind a summary."""
    rows: list[tuple[str, list[Text]]] = []
    for cause in (cause for cause in causes if cause.differs):
        latency = f"{latency_noun(cause.operation, cause.statistic)} under {cause.workload_label}"
        for part in _all_parts(cause):
            together = ", together" if part.part.layer and not part.part.through else ""
            name = f"{why_sentences.part_noun(cause, part.part)}{together}"
            seconds = numbers.quantity(part.seconds, "s")
            if 0 < abs(part.seconds) < _LEAST_S:
                seconds = "<1\u00a0ns"
            row: list[Text] = [name, seconds, *why_sentences.share_cells(part.share)]
            rows.append((f"{cause.candidate} less {cause.baseline}, {latency}", row))
    if not rows:
        return ""
    head: Head = ["Part", *html.numeric("Difference", "Share"), Column("Interval", "interval")]
    table = html.grouped_table(head, rows, caption="Parts of each difference that is shown, candidate less baseline")
    note = (
        "The intervals of one difference hold all together. Differences are means. Parts that point against a "
        "difference make others more than all of it."
    )
    return html.details("Every part of the differences", html.joined(table, html.paragraph(note, kind="meta")))


def _all_parts(cause: Cause) -> Iterator[PartOfDifference]:
    """Yield the parts, and the sums of those layers that are in several of them, and of what was done on behalf of
    others."""
    yield from cause.parts
    layers = [part.part.layer for part in cause.parts]
    yield from (layer for layer in cause.by_layer if layers.count(layer.part.layer) > 1)
    if len(cause.by_through) > 1:
        yield from cause.by_through


def _work(run: RunView, figures: Sequence[WorkFigure]) -> Text:
    """A table for each workload: a row a ratio of work of the whole trial or of a main operation, a column a file
    system, its ratio to the baseline below it."""
    tables = []
    for workload in dict.fromkeys(figure.workload_label for figure in figures):
        main = {"", *_main_operations(run, workload)}
        members = [figure for figure in figures if figure.workload_label == workload and figure.operation in main]
        names = [name for name in names_of(run) if any(figure.filesystem == name for figure in members)]
        rows = {(figure.operation, figure.quantity, figure.label): figure for figure in members}
        by_name = {(figure.operation, figure.quantity, figure.label, figure.filesystem): figure for figure in members}
        marks = swatches(run)
        head: Head = ["Work", *(Column(marks[name], "interval") for name in names)]
        body = [
            [_row_name(figure), *(_work_cell(by_name.get((*key, name))) for name in names)]
            for key, figure in rows.items()
        ]
        below = f"; below, as a multiple of {run.sweep.baseline}" if run.sweep.baseline else ""
        tables.append(html.table(head, [html.Rows(body)], caption=f"Work under {workload}{below}"))
    return html.joined(*tables) if tables else ""


def _row_name(figure: WorkFigure) -> str:
    quantity = figure.quantity
    noun = QUANTITIES[quantity].noun if quantity in QUANTITIES else quantity.replace("_", " ")
    spoken = noun.replace("per operation", f"per {figure.per}")
    return f"{spoken}: {figure.label}" if figure.label else spoken


def _work_cell(figure: WorkFigure | None) -> Text:
    if figure is None:
        return numbers.MISSING
    value, factor, unit = figure.figure, 1.0, ""
    if figure.quantity in SHARES:
        factor, unit = 0.01, "\u00a0%"
    elif figure.unit in ("s", "B"):
        scale = scale_for(figure.unit, value.mean)
        factor, unit = scale.factor, f"\u00a0{scale.unit}"
    figures = numbers.mean_figures(value.mean, value.low, value.high, factor=factor)
    text = f"{figures.value}{unit} {figures.interval}".strip()
    if figure.ratio is None or math.isnan(figure.ratio.low):
        return text
    ratio = numbers.ratio_figures(figure.ratio.ratio, figure.ratio.low, figure.ratio.high)
    return html.stacked(text, f"{numbers.TIMES}{ratio}")


# ── what ran instead ─────────────────────────────────────────────────────────────────────────────────────────────────


def _instead_table(run: RunView, workload: str, operation: str) -> Text:
    waits = {name: ran_instead(run.why, cell_id(name, workload), operation) for name in names_of(run)}
    whole = {
        split.filesystem: split.whole.mean
        for split in causes_of.splits(run.why, run.sweep)
        if (split.workload_label, split.operation, split.statistic) == (workload, operation, "mean")
    }
    long = {name: whole[name] * _LEAST_WAIT for name in waits if name in whole}
    waited = {name: sum(waits[name].values()) for name, least in long.items() if sum(waits[name].values()) >= least}
    programs = dict.fromkeys(program for name in waited for program in list(waits[name])[:_MOST_PROGRAMS])
    marks = swatches(run)
    head: Head = ["Had the processor", *(Column(marks[name], "interval") for name in waited)]
    rows: list[list[Text]] = [[f"waited, each {operation}", *(numbers.quantity(wait, "s") for wait in waited.values())]]
    for program in programs:
        shares = [round(waits[name].get(program, 0.0) / whole_wait, 2) for name, whole_wait in waited.items()]
        rows.append([why_sentences.program_noun(program), *map(numbers.percent, shares)])
    caption = f"What had the processor while a {operation} waited for it under {workload}"
    return html.table(head, [html.Rows(rows)], caption=caption) if programs else ""


# ── beside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _beside(run: RunView) -> Html:
    """What weakens the split, what it costs, and what it cannot know."""
    costs = why_doubts.costs(run.why, run.measurements, run.answer_metrics, run.sweep)
    doubts = [*map(doubt_sentences.withheld_sentence, why_doubts.withheld(run.why))]
    doubts += [*map(doubt_sentences.cut_sentence, why_doubts.cuts(run.why))]
    for few in causes_of.few_operations(run.why):  # without a 99th percentile, where a cell spends its time in them
        if few.operation in causes_of.main_operations(run.why, {few.cell}):
            doubts.append(doubt_sentences.few_sentence(few))
    doubts += [*map(doubt_sentences.off_sentence, why_doubts.off(run.why))]
    lost = doubt_sentences.lost_sentence(*why_doubts.lost(run.why))
    partly_seen = why_doubts.partly_seen(run.why)
    windows = [doubt_sentences.partly_seen_sentence(partly_seen)] if partly_seen else []
    notes = [*doubt_sentences.cost_sentences(costs), *windows, lost, doubt_sentences.UNKNOWABLE]
    return html.joined(html.items(doubts) if doubts else "", html.paragraph(" ".join(notes), kind="meta"))
