"""A table a metric, and what explains how much of its differences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.analysis import capacity
from mountlab.analysis.answers import answering
from mountlab.analysis.run_view import RunView
from mountlab.analysis.time_limits import late_trials
from mountlab.core import names, numbers
from mountlab.core.findings import Comparison
from mountlab.core.frames import pd
from mountlab.core.groups import by_key
from mountlab.core.metrics import COMPARED_PERCENTILES, PERCENT_OF
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import Mean, answer_metrics, means_of, ratios_by_cell, swatches
from mountlab.stats import STATISTICS
from mountlab.stats import explained as variance_explained
from mountlab.wording import caveats, phrases, verdicts

NO_UNIT = "1"


@frames.attach(frames.figures)
def tables(run: RunView) -> Html:
    """Return one table for each metric; those that the answer is about first, the others behind a summary."""
    main = answer_metrics(run)
    others = [metric for metric in dict.fromkeys(run.estimates["metric"]) if metric not in main]
    measured = set(run.estimates["metric"]) - {capacity.METRIC}  # no mean: it has a table of its own
    beside = _BesideMeans.of(run)
    metric_tables = [_metric_table(run, metric, beside) for metric in main if metric in measured]
    rest = html.joined(*(_metric_table(run, metric, beside) for metric in others))
    hidden = html.details(numbers.counted(len(others), "more metric"), rest) if others else ""
    if not metric_tables and not others:
        return html.nothing("" if run.sweep.searches else "No counted trial has a figure.")
    return html.joined(*metric_tables, hidden)


@dataclass(frozen=True)
class _BesideMeans:
    """What rows of the tables of a run say beside their means."""

    doubts: Mapping[str, Sequence[str]]
    names: Mapping[str, Html]
    """File system to its name behind its mark."""
    ratios: Mapping[tuple[str, str, str], Comparison]
    """Metric, label and cell to its comparison with the baseline."""

    @staticmethod
    def of(run: RunView) -> _BesideMeans:
        ratios = ratios_by_cell(run.comparisons)
        return _BesideMeans(caveats.doubts_by_cell(run.caveats, run.sweep.own_metrics), swatches(run), ratios)


def _metric_table(run: RunView, metric: str, beside: _BesideMeans) -> Html:
    means = means_of(run, metric)
    scale = scale_for(means[0].unit, max((abs(m.mean) for m in means if math.isfinite(m.mean)), default=1))
    noun = STATISTICS[run.sweep.design.estimate].noun
    figures = [_in_unit(name, scale.unit) for name in (noun, "Low", "High")]
    compared = any((metric, mean.label, mean.cell) in beside.ratios for mean in means)
    ratio: Head = (*numeric(f"Ratio to {run.sweep.baseline}"), Column("Interval", "interval"), "Verdict")
    head: Head = ["File system", *numeric(*figures, "n", "CV, %"), *(ratio if compared else ()), "Caveats"]
    rows: list[tuple[str, list[Text]]] = []
    for mean in means:
        texts = numbers.mean_figures(mean.mean, mean.low, mean.high, factor=scale.factor)
        doubts = ", ".join(map(names.code_words, beside.doubts.get(caveats.doubt_key(mean.cell, metric), ())))
        n, cv = phrases.trial_count(mean.n, mean.censored), numbers.number(mean.cv * 100, 1)
        comparison = beside.ratios.get((metric, mean.label, mean.cell))
        ratio_cells = _ratio_cells(run, mean, comparison) if compared else ()
        name = beside.names.get(mean.filesystem, mean.filesystem)
        rows.append((mean.row, [name, texts.value, texts.low, texts.high, n, cv, *ratio_cells, doubts]))
    return html.grouped_table(head, rows, caption=_in_unit(names.metric_heading(metric), scale.unit))


def _in_unit(name: str, unit: str) -> str:
    """'Mean, GB/s'; a count and a share have no unit."""
    return name if unit == NO_UNIT else f"{name}, {unit}"


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
    answers = (comparison for comparison in answering(run) if comparison.metric in COMPARED_PERCENTILES)
    ratios = [*run.latency_comparisons, *answers]
    if not ratios:
        return None
    percents = sorted({PERCENT_OF[comparison.metric] for comparison in ratios})
    labels, order = [workload.label for workload in run.sweep.workloads], [fs.name for fs in run.sweep.filesystems]

    def place(comparison: Comparison) -> tuple[int, ...]:
        """By workload, latency and file system, in the order of the sweep; what it does not have last."""
        sides = (labels, verdicts.workload_of(comparison)), (order, comparison.candidate)
        workload, filesystem = (all_.index(name) if name in all_ else len(all_) for all_, name in sides)
        return workload, COMPARED_PERCENTILES.index(_median_of(comparison.metric)), filesystem

    rows: dict[tuple[str, str], dict[float, str]] = {}
    for comparison in sorted(ratios, key=place):
        # 'fio rw=read: read completion latency', whichever of its percentiles the comparison is of.
        noun = names.metric_noun(_median_of(comparison.metric), comparison.label).removeprefix("median ")
        sign = verdicts.SIGNS[comparison.verdict] if verdicts.has_interval(comparison) else "no interval"
        by_percent = rows.setdefault((f"{verdicts.workload_of(comparison)}: {noun}", comparison.candidate), {})
        by_percent[PERCENT_OF[comparison.metric]] = f"{verdicts.compared_figures(comparison)} {sign}"
    marks = swatches(run)
    body = (
        (latency, [marks.get(name, name), *(by_percent.get(percent, numbers.MISSING) for percent in percents)])
        for (latency, name), by_percent in rows.items()
    )
    head: Head = ["File system", *(Column(f"p{percent:g}", "interval") for percent in percents)]
    table = html.grouped_table(head, body, caption=f"Latency percentiles as multiples of those of {run.sweep.baseline}")
    summary = verdicts.summary(ratios, run.sweep.design.smallest_effect)
    apart = len(run.latency_comparisons)  # a family of their own
    scope = f"these {apart} ratios together, apart from those of the answer"
    if apart < len(ratios):
        scope = f"{apart} of these ratios together; the others are of the answer, and hold together with all of it"
    missing = any(len(by_percent) < len(percents) for by_percent in rows.values())
    few = f" {numbers.MISSING}: a trial of either side has too few I/Os for the percentile." if missing else ""
    note = f"Below 1 is faster. Verdicts and intervals hold for {scope}.{few}"
    return html.joined(html.paragraph(f"Latency percentiles. {summary}"), table, html.paragraph(note, kind="meta"))


def _median_of(metric: str) -> str:
    """Return the median of the latency that a percentile metric belongs to."""
    return re.sub(r"_p[0-9_]+$", "_p50", metric)


def _effects(run: RunView) -> pd.DataFrame:
    """Return the effects of all analyses."""
    effects = []
    for workload, metric, label in _analysed(run):
        key = {"workload": workload, "metric": metric, "label": label}
        effects.append(variance_explained(run.measurements, **key, level=run.sweep.design.level).assign(**key))
    return pd.concat(effects, ignore_index=True) if effects else pd.DataFrame()


@frames.attach(_effects)
def explained(run: RunView) -> Html:
    """Return which option explains how much of what was measured: a sentence and a table for each workload and
    metric."""
    present = [analysis for key in _analysed(run) if (analysis := _explained(run, *key))]
    why = "Nothing was swept in more than one trial, so there is no variance to share out."
    return html.joined(*present) if present else html.nothing(why)


def _analysed(run: RunView) -> Iterator[tuple[str, str, str]]:
    """Yield name of workload, metric and label of each analysis. The options of a workload are its factors."""
    measured = run.measurements[["workload", "metric", "label"]].drop_duplicates()
    labels = by_key((tuple(key), label) for *key, label in measured.itertuples(index=False, name=None))
    parts = dict.fromkeys((w.name, m) for w in run.sweep.workloads for m in run.answer_metrics.get(w.label, ()))
    return ((*part, label) for part in parts for label in labels.get(part, ()))


def _explained(run: RunView, workload: str, metric: str, label: str) -> Html | None:
    level = run.sweep.design.level
    what = f"{names.metric_noun(metric, label)} under {workload}"
    cells = [cell.id for cell in run.sweep.cells if cell.workload.name == workload]
    late = sum(late_trials(run.censored, cell, metric) for cell in cells)
    if late:
        return html.paragraph(f"No analysis of variance of {what}: {phrases.without_value(late)}.")
    effects = variance_explained(run.measurements, workload=workload, metric=metric, label=label, level=level)
    if effects.empty:
        return None
    rows = [{str(key): value for key, value in row.items()} for row in effects.to_dict("records")]
    body: list[list[Text]] = []
    for row in rows:
        share, _, bounds = phrases.share_text(row).partition(" [")
        errors = f"{row['df']}, {row['error_df']:.4g}" if row["error_df"] else str(row["df"])
        tested = ("", "") if math.isnan(row["f"]) else (numbers.number(row["f"], 1), numbers.p_text(row["p"]))
        body.append([phrases.effect_name(row["effect"]), share, bounds and f"[{bounds}", errors, *tested])
    interval = Column(f"{numbers.percent(level)} interval", "interval")
    head: Head = ["Effect", *numeric("Share"), interval, *numeric("df", "F", "p")]
    table = html.table(head, [Rows(body)], caption=f"Analysis of variance: {what}")
    sentence = phrases.explained_sentence(rows, what)
    return html.joined(html.paragraph(sentence), html.details(f"Analysis of variance: {what}", table))
