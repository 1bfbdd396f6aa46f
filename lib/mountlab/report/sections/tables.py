"""A table a metric, and what explains how much of its differences."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis.answers import answering
from mountlab.analysis.cells import late_trials
from mountlab.analysis.run_view import RunView
from mountlab.core import names, numbers
from mountlab.core.findings import Comparison
from mountlab.core.metrics import COMPARED_PERCENTILES, PERCENT_OF
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections.shared import Mean, answer_metrics, means_of, swatches
from mountlab.stats import STATISTICS
from mountlab.stats import explained as variance_explained
from mountlab.wording import caveats, phrases, verdicts

NO_UNIT = "1"


def tables(run: RunView) -> Html:
    """Return one table for each metric; those that the answer is about first, the others behind a summary."""
    main = answer_metrics(run)
    others = [metric for metric in dict.fromkeys(run.estimates["metric"]) if metric not in main]
    measured = set(run.estimates["metric"])
    said = _Said.of(run)
    shown = [_metric_table(run, metric, said) for metric in main if metric in measured]
    rest = html.joined(*(_metric_table(run, metric, said) for metric in others))
    hidden = html.details(numbers.counted(len(others), "more metric"), rest) if others else ""
    return html.joined(*shown, hidden) if shown or others else html.paragraph("No trial succeeded.")


@dataclass(frozen=True)
class _Said:
    """What rows of the tables of a run say beside their means."""

    doubts: Mapping[str, Sequence[str]]
    names: Mapping[str, Html]
    """File system to its name behind its mark."""
    ratios: Mapping[tuple[str, str, str], Comparison]
    """Metric, label and cell to its comparison with the baseline."""

    @staticmethod
    def of(run: RunView) -> _Said:
        ratios: dict[tuple[str, str, str], Comparison] = {}
        for each in run.comparisons:
            ratios.setdefault((each.metric, each.label, verdicts.cell_id(each.candidate, each)), each)
        return _Said(caveats.doubts_by_cell(run.caveats, run.sweep.own_metrics), swatches(run), ratios)


def _metric_table(run: RunView, metric: str, said: _Said) -> Html:
    means = means_of(run, metric)
    scale = scale_for(means[0].unit, max((abs(m.mean) for m in means if math.isfinite(m.mean)), default=1))
    noun = STATISTICS[run.sweep.design.estimate].noun
    figures = [_in_unit(each, scale.unit) for each in (noun, "Low", "High")]
    ratio = f"Ratio to {run.sweep.baseline}" if run.sweep.baseline else "Ratio"
    interval = Column("Interval", "interval")
    head: Head = ["File system", *numeric(*figures, "n", "CV, %", ratio), interval, "Verdict", "Caveats"]
    rows = ((mean.row, _metric_row(run, metric, mean, scale.factor, said)) for mean in means)
    return html.grouped_table(head, rows, caption=_in_unit(names.metric_heading(metric), scale.unit))


def _in_unit(name: str, unit: str) -> str:
    """'Mean, GB/s'; a count and a share have no unit."""
    return name if unit == NO_UNIT else f"{name}, {unit}"


def _metric_row(run: RunView, metric: str, mean: Mean, factor: float, said: _Said) -> list[Text]:
    figures = numbers.mean_figures(mean.mean, mean.low, mean.high, factor=factor)
    doubts = said.doubts.get(caveats.doubt_key(mean.cell, metric), ())
    n, cv = phrases.trial_count(mean.n, mean.censored), numbers.number(mean.cv * 100, 1)
    ratio = _ratio_cells(run, mean, said.ratios.get((metric, mean.label, mean.cell)))
    name = said.names.get(mean.filesystem, mean.filesystem)
    return [name, figures.value, figures.low, figures.high, n, cv, *ratio, ", ".join(map(names.spoken_code, doubts))]


def _ratio_cells(run: RunView, mean: Mean, ratio: Comparison | None) -> tuple[str, str, str]:
    """Ratio, interval and verdict of a cell against the baseline."""
    if mean.filesystem == run.sweep.baseline:
        return ("1", "", "baseline")
    if ratio is None:
        return (numbers.MISSING, "", "not compared")
    figures = verdicts.compared_figures(ratio)
    verdict = verdicts.verdict_of(ratio, run.sweep.design.smallest_effect) + verdicts.needed(ratio)
    return (figures.value, figures.interval, verdict if verdicts.has_interval(ratio) else "no interval")


def latency_ratios(run: RunView) -> Html | None:
    """Return latency percentiles against the baseline: a sentence and a table with a row for each file system and
    latency, a column for each percentile; None where there is none."""
    answers = (each for each in answering(run) if each.metric in COMPARED_PERCENTILES)
    shown = [*run.latency_comparisons, *answers]
    if not shown:
        return None
    percents = sorted({PERCENT_OF[each.metric] for each in shown})
    rows: dict[tuple[str, str], dict[float, Comparison]] = {}
    for each in sorted(shown, key=lambda each: _place(run, each)):
        rows.setdefault((_latency_of(each), each.candidate), {})[PERCENT_OF[each.metric]] = each
    marks = swatches(run)
    body = (
        (latency, [marks.get(name, name), *(_percentile_cell(run, own.get(percent)) for percent in percents)])
        for (latency, name), own in rows.items()
    )
    head: Head = ["File system", *(Column(f"p{percent:g}", "interval") for percent in percents)]
    table = html.grouped_table(head, body, caption=f"Latency percentiles as multiples of those of {run.sweep.baseline}")
    said = verdicts.summary(shown, run.sweep.design.smallest_effect)
    note = html.paragraph(_about_latencies(len(run.latency_comparisons), len(shown)), kind="meta")
    return html.joined(html.paragraph(f"Latency percentiles. {said}"), table, note)


def _about_latencies(apart: int, shown: int) -> str:
    """Return how to read the table of latency percentiles, which are a family of their own."""
    which = f"these {apart} ratios together, apart from those of the answer"
    if apart < shown:
        which = f"{apart} of these ratios together; the others are of the answer, and hold together with all of it"
    few = f"{numbers.MISSING}: a trial of either side has too few I/Os for the percentile"
    return f"Below 1 is faster. Verdicts and intervals hold for {which}. {few}."


def _latency_of(comparison: Comparison) -> str:
    """'fio rw=read: read completion latency', whichever of its percentiles the comparison is of."""
    noun = names.metric_noun(_median_of(comparison.metric), comparison.label).removeprefix("median ")
    return f"{verdicts.workload_of(comparison)}: {noun}"


def _median_of(metric: str) -> str:
    """Return the median of the latency that a percentile metric belongs to."""
    return re.sub(r"_p[0-9_]+$", "_p50", metric)


def _place(run: RunView, comparison: Comparison) -> tuple[int, ...]:
    """Return where a comparison stands: by workload, latency and file system, in the order of the sweep."""
    labels, order = [workload.label for workload in run.sweep.workloads], [fs.name for fs in run.sweep.filesystems]
    places = (labels, verdicts.workload_of(comparison)), (order, comparison.candidate)
    by_workload, by_name = (known.index(name) if name in known else len(known) for known, name in places)
    return by_workload, COMPARED_PERCENTILES.index(_median_of(comparison.metric)), by_name


def _percentile_cell(run: RunView, comparison: Comparison | None) -> str:
    """'0.81 [0.75, 0.88] ▲ faster'."""
    if comparison is None:
        return numbers.MISSING
    figures = verdicts.compared_figures(comparison)
    sign = verdicts.SIGNS[comparison.verdict] if verdicts.has_interval(comparison) else "no interval"
    return f"{figures} {sign}"


def explained(run: RunView) -> Html:
    """Return which option explains how much of what was measured: a sentence and a table for each workload and
    metric."""
    every = [_explained(run, *each) for each in _analysed(run)]
    shown = [each for each in every if each]
    why = "Nothing was swept in more than one trial, so there is no variance to share out."
    return html.joined(*shown) if shown else html.nothing(why)


def _analysed(run: RunView) -> list[tuple[str, str, str]]:
    """(workload, metric, label) of everything that the answer is about; the options of a workload are its factors."""
    rows = run.measurements[["workload", "metric", "label"]].drop_duplicates()
    there = list(rows.itertuples(index=False, name=None))
    answers = dict.fromkeys((w.name, m) for w in run.sweep.workloads for m in run.answer_metrics.get(w.label, ()))
    return [each for answer in answers for each in there if each[:2] == answer]


def _explained(run: RunView, workload: str, metric: str, label: str) -> Html | None:
    level = run.sweep.design.level
    what = f"{names.metric_noun(metric, label)} under {workload}"
    cells = [cell.id for cell in run.sweep.cells if cell.workload.name == workload]
    late = sum(late_trials(run.censored, cell, metric) for cell in cells)
    if late:
        return html.paragraph(f"No analysis of variance of {what}: {phrases.without_value(late)}.")
    found = variance_explained(run.measurements, workload=workload, metric=metric, label=label, level=level)
    if found.empty:
        return None
    rows = [{str(key): value for key, value in row.items()} for row in found.to_dict("records")]
    interval = Column(f"{numbers.percent(level)} interval", "interval")
    head: Head = ["Effect", *numeric("Share"), interval, *numeric("df", "F", "p")]
    table = html.table(head, [Rows([_effect_row(row) for row in rows])], caption=f"Analysis of variance: {what}")
    sentence = phrases.explained_sentence(rows, what)
    return html.joined(html.paragraph(sentence), html.details(f"Analysis of variance: {what}", table))


def _effect_row(row: Mapping[str, Any]) -> list[Text]:
    share, _, interval = phrases.share_text(row).partition(" [")
    errors = f"{row['df']}, {row['error_df']:.4g}" if row["error_df"] else str(row["df"])
    tested = ("", "") if math.isnan(row["f"]) else (numbers.number(row["f"], 1), numbers.p_text(row["p"]))
    return [phrases.effect_name(row["effect"]), share, interval and f"[{interval}", errors, *tested]
