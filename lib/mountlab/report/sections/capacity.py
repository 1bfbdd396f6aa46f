"""How much can it take: the capacity of each file system at a latency objective, and latency over load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mountlab import plots
from mountlab.analysis import load_curve
from mountlab.analysis.load_curve import CellSearch, LoadTrial
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.units import significant
from mountlab.plots import Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text
from mountlab.report.sections.shared import names_of, swatches
from mountlab.report.sentences import capacity as words
from mountlab.wording import verdicts

MOST_ROWS = 1000
"""Of the table of trials: the frame has all."""
_MS = 1e-3


def capacity(run: RunView) -> Html:
    """Return how many requests per second each file system takes at the objective, in sentences and as a table; latency
    over load; and every trial of the searches."""
    found = load_curve.searches(run)
    if not found:
        return html.nothing(words.NO_SEARCH)
    drawn = [html.plot(each) for each in capacity_plots(run)]
    return html.joined(
        _answer(run, found),
        html.columns(*drawn) if drawn else "",
        _undrawn(found),
        _knees(found),
        _searches(run, found),
        _lost(found),
        _every_trial(run, found),
    )


def capacity_lines(run: RunView, found: Sequence[CellSearch]) -> list[Html]:
    """Return a line for each search: its capacity, how many times that of the baseline, and what makes it doubtful."""
    lines = words.answer_lines(run.sweep, found, run.comparisons, run.caveats)
    return [html.paragraph(html.labelled(label, text)) for label, text in lines]


def _answer(run: RunView, found: Sequence[CellSearch]) -> Html:
    """The lines, and what open intervals mean."""
    unbounded = [text for text in map(words.open_sentence, found) if text]
    return html.joined(*capacity_lines(run, found), html.items(unbounded) if unbounded else "")


def capacity_plots(run: RunView) -> Iterator[Plot]:
    """Yield latency over the arrival rate, one figure a workload."""
    for own in words.by_workload(load_curve.searches(run)).values():
        curves = [curve for each in own for curve in each.curves]
        if any(curve.points for curve in curves):
            yield plots.plot_capacity(curves, filesystems=names_of(run))


def _undrawn(found: Sequence[CellSearch]) -> Text:
    said = [text for text in map(words.undrawn_sentence, found) if text]
    return html.paragraph(f"{' '.join(said)} Longer trials have more.", kind="meta") if said else ""


def _knees(found: Sequence[CellSearch]) -> Text:
    groups = by_key(((curve.workload_label, curve.metric), curve) for search in found for curve in search.curves)
    alone = len(words.by_workload(found)) == 1
    said = {key: words.knee_sentence(own) for key, own in groups.items()}
    lines = [html.labelled("" if alone else label, text) for (label, _), text in said.items() if text]
    return html.items(lines) if lines else ""


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _searches(run: RunView, found: Sequence[CellSearch]) -> Html:
    """A row a search: what it found, from how many trials, and why it ended."""
    marks, ratios, smallest = swatches(run), words.ratios_of(run.comparisons), run.sweep.design.smallest_effect
    head: Head = [
        "File system", *html.numeric(f"Capacity, {words.UNIT}"), Column("Interval", "interval"),
        *html.numeric("Half width", f"Ratio to {run.sweep.baseline or 'baseline'}"), Column("Interval", "interval"),
        "Verdict", "Search",
    ]  # fmt: skip
    rows = (
        (
            each.cell.workload.label,
            [
                marks[each.cell.filesystem.name],
                *_capacity_cells(each),
                *_ratio_cells(run, each, ratios.get(each.cell.id), smallest),
                words.stop_sentence(each),
            ],
        )
        for each in found
    )
    level = numbers.percent(run.sweep.design.level)
    return html.grouped_table(head, rows, caption=f"Capacity at the objective, with its {level} interval")


def _capacity_cells(each: CellSearch) -> list[Text]:
    return [*words.capacity_figures(each), words.half_width_text(each.capacity)]


def _ratio_cells(run: RunView, each: CellSearch, ratio: Comparison | None, smallest: float) -> list[Text]:
    if each.cell.filesystem.name == run.sweep.baseline:
        return ["1", "", "baseline"]
    if ratio is None:
        return [numbers.MISSING, "", "not compared"]
    figures = verdicts.compared_figures(ratio)
    return [figures.value, figures.interval, verdicts.verdict_or_why(ratio, smallest)]


def _lost(found: Sequence[CellSearch]) -> Text:
    said = [text for text in map(words.lost_sentence, found) if text]
    return html.items(said) if said else ""


def _every_trial(run: RunView, found: Sequence[CellSearch]) -> Html:
    """Every trial of the searches, behind a summary: the rates, the percentiles, and whether the objective held."""
    rows = [(each, trial) for each in found for trial in each.trials]
    metrics = list(dict.fromkeys(curve.metric for each in found for curve in each.curves))
    latencies = [f"{_percentile_name(metric)}, ms" for metric in metrics]
    head: Head = [
        "Trial", *html.numeric("Block", "Asked, 1/s", "Arrived, 1/s", "Completed, 1/s", *latencies,
                               "Largest lateness, ms"), "Objective",
    ]  # fmt: skip
    body = ((_heading(each), _trial_row(trial, metrics)) for each, trial in rows[:MOST_ROWS])
    more = f"The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    note = f"Latency counts from when a request was due. {more}".strip()
    table = html.grouped_table(head, body, caption="Every trial of the searches, in the order in which they ran")
    return html.details(numbers.counted(len(rows), "trial"), html.joined(html.paragraph(note, kind="meta"), table))


def _heading(each: CellSearch) -> str:
    return f"{each.cell.filesystem.name} under {each.cell.workload.label}"


def _percentile_name(metric: str) -> str:
    """'read p99.9'."""
    return f"{metric.partition('_')[0]} p{PERCENT_OF[metric]:g}"


def _trial_row(trial: LoadTrial, metrics: Sequence[str]) -> list[Text]:
    rates = [numbers.number(each, 0) for each in (trial.asked, trial.arrived, trial.completed)]
    times = [trial.latencies.get(metric, math.nan) for metric in metrics]
    shown = [significant(each / _MS) for each in (*times, trial.lateness)]
    return [trial.trial_id, str(trial.block), *rates, *shown, _objective(trial)]


def _objective(trial: LoadTrial) -> str:
    said = ("held" if trial.held else "failed") if trial.kept else "not known: schedule not kept"
    return f"{said} (warm-up)" if trial.warmup else said
