"""How much can it take: the capacity of each file system at a latency objective, and latency over load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from mountlab import plots
from mountlab.analysis import load_curve
from mountlab.analysis.load_curve import CellSearch
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.units import significant
from mountlab.plots import Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text
from mountlab.report.sections import frames
from mountlab.report.sections.shared import names_of, swatches
from mountlab.sentences import capacity as words
from mountlab.wording import verdicts

MOST_ROWS = 1000
"""Of the table of trials: the frame has all."""
_MS = 1e-3


@frames.attach(frames.capacities)
def capacity(run: RunView) -> Html:
    """Return how many requests per second each file system takes at the objective, in sentences and as a table; latency
    over load; and every trial of the searches."""
    searches = load_curve.searches(run)
    if not searches:
        return html.nothing(words.NO_SEARCH)
    drawn = [html.plot(plot) for plot in capacity_plots(run)]
    undrawn = " ".join(filter(None, map(words.undrawn_sentence, searches)))
    curves = by_key(((curve.workload_label, curve.metric), curve) for search in searches for curve in search.curves)
    alone = len(words.by_workload(searches)) == 1
    knees = [("" if alone else label, words.knee_sentence(members)) for (label, _), members in curves.items()]
    return html.joined(
        html.joined(*capacity_lines(run, searches), _items(filter(None, map(words.open_sentence, searches)))),
        html.columns(*drawn) if drawn else "",
        html.paragraph(f"{undrawn} Longer trials have more.", kind="meta") if undrawn else "",
        _items(html.labelled(label, text) for label, text in knees if text),
        _search_table(run, searches),
        _items(filter(None, map(words.lost_sentence, searches))),
        _every_trial(searches),
    )


def _items(texts: Iterable[Text]) -> Text:
    """Return a list, a paragraph of a single text, or nothing where it would be empty."""
    rows = list(texts)
    return html.items(rows) if len(rows) > 1 else html.joined(*map(html.paragraph, rows))


def capacity_lines(run: RunView, searches: Sequence[CellSearch], *, kind: str = "") -> list[Html]:
    """Return a line for each workload: capacities, and how many times that of the baseline they are; and lines for what
    was not measured. `kind`: the style of the first."""
    lines = words.answer_lines(run.sweep, searches, run.comparisons, run.caveats)
    return [html.paragraph(html.labelled(*line), kind="" if at else kind) for at, line in enumerate(lines)]


def capacity_plots(run: RunView) -> Iterator[Plot]:
    """Yield latency over the arrival rate, one figure a workload."""
    for searches in words.by_workload(load_curve.searches(run)).values():
        curves = [curve for search in searches for curve in search.curves]
        if any(curve.points for curve in curves):
            yield plots.plot_capacity(curves, filesystems=names_of(run))


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _search_table(run: RunView, searches: Sequence[CellSearch]) -> Html:
    """A row a search: what it found, from how many trials, and why it ended; against the baseline where it is
    compared."""
    marks, ratios = swatches(run), words.ratios_of(run.comparisons)
    head: list[str | Column] = [
        "File system", *html.numeric(f"Capacity, {words.UNIT}"), Column("Interval", "interval"),
        *html.numeric("Half width"),
    ]  # fmt: skip
    if ratios:
        head += [*html.numeric(f"Ratio to {run.sweep.baseline}"), Column("Interval", "interval"), "Verdict"]
    rows: list[tuple[str, list[Text]]] = []
    for search in searches:
        name = search.cell.filesystem.name
        row: list[Text] = [marks[name], *words.capacity_figures(search), words.half_width_text(search.capacity)]
        if ratios:
            row += _against_baseline(run, name, ratios.get(search.cell.id))
        rows.append((search.cell.workload.label, [*row, words.stop_sentence(search)]))
    level = numbers.percent(run.sweep.design.level)
    caption = f"Capacity at the objective, with its {level} interval"
    return html.grouped_table([*head, "Search"], rows, caption=caption)


def _against_baseline(run: RunView, filesystem: str, ratio: Comparison | None) -> list[Text]:
    """Ratio, interval and verdict; of a ratio that has only a bound that."""
    if filesystem == run.sweep.baseline:
        return ["1", "", "baseline"]
    if ratio is None:
        return [numbers.MISSING, "", "not compared"]
    figures, verdict = (
        verdicts.compared_figures(ratio),
        verdicts.verdict_or_why(ratio, run.sweep.design.smallest_effect),
    )
    if math.isnan(ratio.ratio) and verdicts.has_interval(ratio):
        return [verdicts.times_text(ratio).removesuffix(" times"), "", verdict]
    return [figures.value, figures.interval, verdict]


def _every_trial(searches: Sequence[CellSearch]) -> Html:
    """Every trial of the searches, behind a summary: the rates, the percentiles, and whether the objective held."""
    rows: list[tuple[str, list[Text]]] = []
    metrics = list(dict.fromkeys(curve.metric for search in searches for curve in search.curves))
    trials = [(search.cell, trial) for search in searches for trial in search.trials]
    for cell, trial in trials:
        rates = [numbers.number(rate, 0) for rate in (trial.asked, trial.arrived, trial.completed)]
        times = (*(trial.latencies.get(metric, math.nan) for metric in metrics), trial.lateness)
        objective = "held" if trial.meets_objective else "failed"
        if not trial.on_schedule:
            objective = "not known: schedule not kept"
        warmup = " (warm-up)" if trial.warmup else ""
        figures = [*rates, *(significant(time / _MS) for time in times), f"{objective}{warmup}"]
        rows.append(
            (f"{cell.filesystem.name} under {cell.workload.label}", [trial.trial_id, str(trial.block), *figures])
        )
    latencies = [f"{metric.partition('_')[0]} p{PERCENT_OF[metric]:g}, ms" for metric in metrics]
    head: Head = [
        "Trial", *html.numeric("Block", "Asked, 1/s", "Arrived, 1/s", "Completed, 1/s", *latencies,
                               "Largest lateness, ms"), "Objective",
    ]  # fmt: skip

    more = f"The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    note = f"Latency counts from when a request was due. {more}".strip()
    table = html.grouped_table(
        head, rows[:MOST_ROWS], caption="Every trial of the searches, in the order in which they ran"
    )
    return html.details(numbers.counted(len(rows), "trial"), html.joined(html.paragraph(note, kind="meta"), table))
