"""Every trial: its figures beside those of its cell, what the box did meanwhile, and the files that it left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mountlab.analysis.run_view import RunView, TrialRecord
from mountlab.analysis.trial_values import Values, trial_values
from mountlab.core import names, numbers
from mountlab.core.frames import pd
from mountlab.core.units import scale_for
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import answer_metrics, moment
from mountlab.wording import exclusion_words

MOST_ROWS = 1000
"""Of the table: a row takes about 700 bytes, and what a browser lays out at once has an end. The CSV has all."""
_LINKED = ("argv", "stdout", "stderr", "fio.json", "log.txt", "kernel", "unprepared", "refused")
"""Of the files of a trial those that are linked by name, where they hold something; the others lie beside them."""
_STATUSES = ("ok", "timeout", "excluded", "invalid", "failed", "skipped")


def trial_frame(run: RunView) -> pd.DataFrame:
    """Return one row a trial, as in trials.jsonl; and the columns of `trials` with every digit, in base units."""
    values, records = trial_values(run), run.records
    ids = run.trials["trial_id"].tolist()
    in_order = [records.get(trial_id, TrialRecord()) for trial_id in ids]
    more: dict[str, list[float | None]] = {}
    for metric in _metrics(run, values):
        figures = [values.get((trial_id, metric)) for trial_id in ids]
        more[metric] = [figure.value if figure else None for figure in figures]
        more[f"{metric}_of_mean"] = [figure.multiple if figure else None for figure in figures]
    more["device_bytes_read"] = [record.device.read if record.device else None for record in in_order]
    more["device_bytes_written"] = [record.device.written if record.device else None for record in in_order]
    more["processor_share"] = [record.busy for record in in_order]
    return run.trials.assign(**{name: pd.Series(column, index=run.trials.index) for name, column in more.items()})


@frames.attach(trial_frame)
def trials(run: RunView) -> Html:
    """Return how many trials there were of each status; those that failed, with the reason; and the list of all."""
    counts = run.trials["status"].value_counts()
    tally = ", ".join(f"{counts[status]} {status}" for status in _STATUSES if status in counts)
    count = numbers.counted(len(run.trials), "trial")
    line = html.paragraph(f"{count}: {tally}." if tally else "No trial was run.")
    if run.trials.empty:
        return line
    bad = run.trials[run.trials["status"] != "ok"]
    rows = []
    for row in bad.sort_values("seq").head(MOST_ROWS).to_dict("records"):
        what = [_trial_name(run, row), str(row["block"]), str(row["filesystem"]), _workload(run, row)]
        rows.append([*what, _status(row), _reason(row), moment(row["started_at"])])
    head: Head = ["Trial", *numeric("Block"), "File system", "Workload", "Status", "Reason", Column("Started", "line")]
    reasons = html.table(head, [Rows(rows)], caption="Trials that gave no measurement") if rows else ""
    table = html.joined(html.joined(_limited(len(bad)), reasons) if rows else "", _with_and_without(run))
    return html.joined(line, table, html.details(f"All {count}", _everything(run)))


def _with_and_without(run: RunView) -> Html | str:
    """Return what the excluded trials change: a table of figures, and one of ratios."""
    exclusions = run.exclusions
    if not exclusions.figures:
        return ""
    interval = [Column("Without", "interval"), Column("With them", "interval")]
    head: Head = ["Cell", "Metric", *interval]
    figures = [
        [both.cell, names.metric_noun(both.metric, both.label)]
        + [exclusion_words.estimate_text(side, both.counted) for side in (both.without, both.counted)]
        for both in exclusions.figures
    ]
    means = html.table(head, [Rows(figures)], caption="Means without the excluded trials, and with them")
    of_ratios: Head = ["Ratio", interval[0], "Verdict", interval[1], "Verdict"]
    ratios = [
        [exclusion_words.sides_text(both.counted)]
        + [text for side in (both.without, both.counted) for text in (exclusion_words.ratio_text(side), side.verdict)]
        for both in exclusions.ratios
    ]
    caption = "Ratios without the excluded trials, and with them"
    return html.joined(means, html.table(of_ratios, [Rows(ratios)], caption=caption) if ratios else "")


def _everything(run: RunView) -> Html:
    values = trial_values(run)
    columns = _columns(run, values)
    chosen = run.trials.sort_values("seq").head(MOST_ROWS).to_dict("records")
    cells = {column: [column.text(row) for row in chosen] for column in columns}
    filled = {column: texts for column, texts in cells.items() if any(texts)}
    head = [Column(column.heading, column.kind) for column in filled]
    rows = list(zip(*filled.values(), strict=True))
    table = html.table(head, [Rows(rows)], caption="All trials, in the order in which they ran")
    about = ["The mean is that of the counted trials of the cell."]
    if any(record.device for record in run.records.values()):
        about.append(
            "Device bytes are those of the block device below the file system, of the least busy one where several lie "
            "on top of each other. Devices side by side, as of a RAID, are summed."
        )
    if any(record.busy is not None for record in run.records.values()):
        about.append("Processors is the share of all processors' time in which they ran anything while the tool ran.")
    if any(record.files for record in run.records.values()):
        about.append("Names of trials and files lead to raw/ beside the page.")
    for metric, count in {metric: value.rows for (_, metric), value in values.items() if value.rows > 1}.items():
        noun = names.metric_noun(metric)
        about.append(f"Of {noun} a trial has {count} rows: the multiple is the geometric mean of theirs.")
    note = html.joined(html.paragraph(" ".join(about), kind="meta"), _limited(len(run.trials)))
    return html.joined(note, html.narrowed(table, label="Filter the trials"))


def _limited(count: int) -> Text:
    if count <= MOST_ROWS:
        return ""
    return html.paragraph(f"The first {MOST_ROWS} of {count} trials; trials.csv (Downloads) has all of them.")


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


Kind = Literal["", "number", "line", "links"]


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of the table of all trials; one that is empty for every trial is left out."""

    heading: str
    text: Callable[[Mapping[Any, Any]], Text]
    kind: Kind = ""


def _columns(run: RunView, values: Values) -> list[_Column]:
    return [
        _Column("Trial", lambda row: _trial_name(run, row), "line"),
        _Column("Block", lambda row: str(row["block"]), "number"),
        _Column("File system", lambda row: str(row["filesystem"]), "line"),
        _Column("Workload", lambda row: _workload(run, row), "line"),
        *(column for metric in _metrics(run, values) for column in _of_metric(run, values, metric)),
        *_of_box(run),
        _Column("Took, s", lambda row: numbers.number(float(row["elapsed_s"]), 2), "number"),
        _Column("Started", lambda row: moment(row["started_at"]), "line"),
        _Column("Status", _status, "line"),
        _Column("Reason", _reason),
        _Column("Raw output", lambda row: _links(run, row), "links"),
    ]


def _metrics(run: RunView, values: Values) -> list[str]:
    """Return the metrics that the answer is about, of those that some trial has."""
    there = {metric for _, metric in values}
    return [metric for metric in answer_metrics(run) if metric in there]


def _of_metric(run: RunView, values: Values, metric: str) -> list[_Column]:
    figures = {trial_id: figure for (trial_id, of_metric), figure in values.items() if of_metric == metric}
    finite = [abs(figure.value) for figure in figures.values() if math.isfinite(figure.value)]
    scale = scale_for(run.sweep.metric(metric).unit, max(finite, default=1.0))
    noun = names.metric_heading(metric) + ("" if scale.unit == "1" else f", {scale.unit}")

    def value(row: Mapping[Any, Any]) -> str:
        figure = figures.get(row["trial_id"])
        return scale.show(figure.value) if figure and math.isfinite(figure.value) else ""

    def multiple(row: Mapping[Any, Any]) -> str:
        figure = figures.get(row["trial_id"])
        return numbers.number(figure.multiple, 2) if figure and math.isfinite(figure.multiple) else ""

    return [_Column(noun, value, "number"), _Column(f"{numbers.TIMES} mean", multiple, "number")]


def _of_box(run: RunView) -> list[_Column]:
    moved = [record.device for record in run.records.values() if record.device]
    scale = scale_for("B", max((max(bytes_.read, bytes_.written) for bytes_ in moved), default=0))

    def share(row: Mapping[Any, Any]) -> str:
        busy = _record(run, row).busy
        return "" if busy is None else numbers.number(100 * busy, 0)

    def read(row: Mapping[Any, Any]) -> str:
        device = _record(run, row).device
        return scale.show(device.read) if device else ""

    def written(row: Mapping[Any, Any]) -> str:
        device = _record(run, row).device
        return scale.show(device.written) if device else ""

    return [
        _Column(f"Device read, {scale.unit}", read, "number"),
        _Column(f"Device written, {scale.unit}", written, "number"),
        _Column("Processors, %", share, "number"),
    ]


def _record(run: RunView, row: Mapping[Any, Any]) -> TrialRecord:
    return run.records.get(row["trial_id"], TrialRecord())


def _trial_name(run: RunView, row: Mapping[Any, Any]) -> Text:
    """Its id, which leads to all of its files."""
    name = str(row["trial_id"])
    return html.beside(f"raw/{name}/", name) if _record(run, row).files else name


def _links(run: RunView, row: Mapping[Any, Any]) -> Text:
    there = [name for name in _LINKED if name in _record(run, row).files]
    return html.joined(*(html.beside(f"raw/{row['trial_id']}/{name}", name) for name in there)) if there else ""


def _workload(run: RunView, row: Mapping[Any, Any]) -> str:
    return run.sweep.combinations[str(row["cell"])].workload.label


def _status(row: Mapping[Any, Any]) -> str:
    kind = "diagnostic" if row.get("diagnostic") else "warm-up" if row["warmup"] else ""
    return f"{row['status']}, {kind}" if kind else str(row["status"])


def _reason(row: Mapping[Any, Any]) -> str:
    return row["reason"] if isinstance(row["reason"], str) else ""
