"""What a running sweep looks like in a notebook: its pieces as HTML, from values. Pure; runner.live puts them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.core import numbers
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat
from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Trial
from mountlab.core.names import cell_id, metric_heading
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows, Text
from mountlab.runner import progress
from mountlab.wording import phrases
from mountlab.wording.caveats import caveat_line, grouped

MOST_FAILURES = 4
"""The last failed trials that are listed one by one."""
WILL_PASS = ("too-few", "figures-missing", "not-precise")
"""Codes of caveats that every run has before it is complete."""
RUNNING = "▸"
"""Mark before the figures of the cell that runs now."""

_RULES = (
    "table{border-collapse:collapse;font-size:var(--jp-code-font-size);font-variant-numeric:tabular-nums}",
    "caption{display:none}",
    ".scroll :is(th,td){padding:.125rem .75rem;text-align:right;white-space:nowrap;vertical-align:baseline}",
    ".scroll thead th:first-child{text-align:left}",
    ":is(.widget-html-content,td){line-height:1.35}",
    ".jupyter-widgets{margin-top:0;margin-bottom:0}",
    ".scroll tbody th{text-align:left;font-weight:normal}",
    ".scroll tr.group th{text-align:left;font-weight:600;padding-top:.5rem}",
    "tbody tr{background:none}",
    "small{color:var(--jp-ui-font-color2)}",
    "p{margin:.125rem 0}",
    ".meta{color:var(--jp-ui-font-color2)}",
    ".notice{padding-left:.5rem;border-left:3px solid var(--jp-warn-color1)}",
    ".notice.error{border-color:var(--jp-error-color1)}",
)
STYLE = Html(f"<style>{''.join(f'.jp-OutputArea .mountlab-live {rule}' for rule in _RULES)}</style>")
"""Looks of the pieces, in JupyterLab's own colours."""


@dataclass(frozen=True)
class LiveFigures:
    """The figures of a run so far."""

    measurements: pd.DataFrame
    """With the columns of measurements.measurement_frame."""
    estimates: pd.DataFrame
    """With the columns of estimates.estimate_frame."""
    caveats: Sequence[Caveat] = field(default_factory=tuple)


def estimates_table(
    sweep: Sweep, figures: LiveFigures, *, now: str = "", stopped_cells: Mapping[str, CellStop] | None = None
) -> Html:
    """Return mean, interval and n of each cell so far: one row a workload, one column a file system.

    `now`: id of the cell that runs; `stopped_cells`: those that the stop rule has ended, and why.
    """
    table = _LiveTable(sweep, figures.estimates, now, stopped_cells or {})
    answers = answer_metrics(sweep, figures.measurements)
    metrics = dict.fromkeys(metric for names in answers.values() for metric in names)
    groups = [table.group(metric, [label for label, names in answers.items() if metric in names]) for metric in metrics]
    return html.table(
        [Column("Workload"), *(Column(fs.name) for fs in sweep.filesystems)], groups, caption="Estimates so far"
    )


@dataclass(frozen=True)
class _LiveTable:
    sweep: Sweep
    estimates: pd.DataFrame
    now: str
    stopped_cells: Mapping[str, CellStop]

    def group(self, metric: str, workloads: Sequence[str]) -> Rows:
        """Return the rows of one metric, in one unit."""
        rows_of_metric = self.estimates[self.estimates["metric"] == metric]
        largest = float(rows_of_metric["mean"].abs().max()) if len(rows_of_metric) else 1.0
        scale = scale_for(self.sweep.metric(metric).unit, largest)
        by_cell = {(row["cell"], row["label"]): row for row in rows_of_metric.to_dict("records")}
        rows = []
        for workload in workloads:
            labels = dict.fromkeys(
                label for fs in self.sweep.filesystems for cell, label in by_cell if cell == cell_id(fs.name, workload)
            )
            for label in labels or ("",):
                cells = [cell_id(fs.name, workload) for fs in self.sweep.filesystems]
                name = f"{workload} ({label})" if label else workload
                rows.append([name, *(self._figures(cell, by_cell.get((cell, label)), scale.factor) for cell in cells)])
        return Rows(rows, f"{metric_heading(metric)}, {scale.unit}")

    def _figures(self, cell: str, row: Mapping[Any, Any] | None, factor: float) -> Text:
        """Return a mean above its interval and n."""
        if not self.sweep.has_cell(cell):
            return phrases.NOT_IN_SWEEP
        state = f" · {phrases.stop_text(self.stopped_cells[cell])}" if cell in self.stopped_cells else ""
        running = f"{RUNNING} " if cell == self.now else ""
        if row is None:
            return html.stacked(f"{running}–", f"n = 0{state}")
        mean, low, high = (float(row[key]) for key in ("mean", "low", "high"))
        n = phrases.trial_count(int(row["n"]), int(row["censored"]))
        figures = numbers.mean_figures(mean, low, high, factor=factor)
        return html.stacked(running + figures.value, f"{figures.interval} n = {n}{state}".strip())


def news(failed: Sequence[Trial], caveats: Sequence[Caveat], notices: Sequence[str] = ()) -> Html:
    """Return the notices about the box, the failed trials, and the reasons to doubt the figures so far; notes are left
    for the report."""
    lines = [html.paragraph(text, kind="notice") for text in notices]
    lines += [html.paragraph(progress.failure_text(trial), kind="notice error") for trial in failed[-MOST_FAILURES:]]
    if len(failed) > MOST_FAILURES:
        total = f"{numbers.listed(progress.failure_counts(failed))}; the last {MOST_FAILURES} trials of these:"
        lines.insert(0, html.paragraph(total, kind="notice error"))
    groups = grouped(caveat for caveat in caveats if caveat.severity != "note" and caveat.code not in WILL_PASS)
    if groups:
        lines.append(html.paragraph(f"So far: {caveat_line(groups)}", kind=f"notice {groups[0].severity}"))
    return html.joined(*lines)


def times(elapsed_s: float, remaining_s: float) -> str:
    """Format both times: '2 min 5 s elapsed, about 7 min left', in whole minutes from 5 min on."""
    seconds = max(0.0, remaining_s)
    return f"{_clock(elapsed_s)} elapsed, about {_clock(round(seconds / 60) * 60 if seconds >= 300 else seconds)} left"


def _clock(seconds: float) -> str:
    """Format a time in whole seconds: '7 s', '2 min 5 s', '3 h 10 min'."""
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else numbers.duration_text(whole)


def summary_text(done: int, total: int, elapsed_s: float, failed: Sequence[Trial]) -> str:
    """Return a summary: '24 of 24 trials, this session took 2 min 5 s, 1 failed.'"""
    failures = "".join(f", {text}" for text in progress.failure_counts(failed))
    return f"{done} of {numbers.counted(total, 'trial')}, this session took {_clock(elapsed_s)}{failures}."


def resume_line(run: str) -> str:
    """Return what is typed into a cell to go on with a run that was stopped; `run` is its directory, as it is shown."""
    return f'run_path = mountlab.resume("{run}")'


def report_line(run: str) -> str:
    """Return what is typed into a cell to write the report of a run; `run` is its directory, as it is shown."""
    return f'mountlab.report_link("{run}")'


def stop_advice(run: str) -> Html:
    """Return how to go on after a stop. `run`: its directory as it is typed; '' for trials by hand."""
    if not run:
        return html.paragraph("Stopped: all measurements are kept, and the box stays open.")
    text = html.paragraph("Stopped: everything on the box is undone, and all measurements are kept. To go on:")
    return html.joined(text, html.code_block(resume_line(run)))
