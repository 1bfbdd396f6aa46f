"""The parts of a report, each made from a Run in one call. Pure: no clock, no files, no box.

A notebook shows them one by one, `report.py` makes a page of the notebook.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any

import pandas as pd
import yaml

from mountlab import html, plots, words
from mountlab.claims import Beside, agreement_sentence, beside, claim_text
from mountlab.html import Column, Html, Rows, Text
from mountlab.model import Comparison, PublishedFigure
from mountlab.run_view import RunView
from mountlab.stats import STATISTICS
from mountlab.stats import explained as variance_explained
from mountlab.units import format_bytes, format_seconds, scale_for

# ── the first screen ─────────────────────────────────────────────────────────────────────────────────────────────────


def question(run: RunView) -> Html:
    """The question, and below it where, when and how often it was asked."""
    facts, box = run.info.get("facts", {}), run.info.get("box", {})
    disk = [str(facts[key]) for key in ("mount_root_source", "mount_root_fstype") if facts.get(key)]
    parts = [
        f"box {box.get('name', run.sweep.box)}",
        f"kernel {facts['kernel']}" if facts.get("kernel") else "",
        f"disk {disk[0]}{f' ({disk[1]})' if len(disk) > 1 else ''}" if disk else "",
        _measured(run),
        _blocks(run),
        _duration(run),
    ]
    line = html.paragraph(" · ".join(part for part in parts if part), kind="meta")
    return html.joined(html.heading(" ".join(run.sweep.question.split()), level=1), line, _unfinished(run))


def _measured(run: RunView) -> str:
    """When; of logs from elsewhere that is not known."""
    day = _day(run.info.get("created_at", ""))
    return f"imported {day}, measured elsewhere" if run.sweep.imported else day


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M %Z").strip() if moment else ""


def _moment(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def _duration(run: RunView) -> str:
    start, end = (run.info.get(key) for key in ("created_at", "finished_at"))
    if not start or not end or run.sweep.imported:
        return ""
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return f"took {words.duration_text(round(seconds))}" if seconds >= 1 else "took less than a second"


def _blocks(run: RunView) -> str:
    counted = run.trials[(run.trials["status"] == "ok") & ~run.trials["warmup"].astype(bool)]
    done, planned = counted["block"].nunique(), run.sweep.design.repeats
    if run.stops:
        fewest = min(stop.blocks for stop in run.stops)
        return f"n = {words.counted(done, 'block')}" if fewest >= done else f"n = {fewest} to {done} blocks"
    return f"n = {words.counted(done, 'block')}" if done >= planned else f"n = {done} of {planned} blocks"


def _unfinished(run: RunView) -> Text:
    status = run.info.get("status", "complete")
    if status == "complete":
        return ""
    return html.paragraph(f"This run is {status}: what follows is from the trials so far.", kind="alert warning")


def answer(run: RunView) -> Html:
    """The answer in sentences, strongest effect first, and what was expected."""
    sentences = [words.nothing_compared(run.sweep.baseline, len(run.sweep.filesystems))]
    if run.comparisons:
        sentences = words.answer(
            _answering(run),
            smallest_effect=run.sweep.design.smallest_effect,
            doubts=words.doubts_by_cell(run.caveats),
        )
    if len(run.comparisons) > 1:
        sentences.append(_together(run))
    expected = html.paragraph(f"Expected beforehand: {run.sweep.expectation}", kind="meta")
    told = html.box("answer", *(html.paragraph(sentence) for sentence in sentences))
    return html.joined(told, expected if run.sweep.expectation else "", _caveat_line(run))


def _together(run: RunView) -> str:
    level, count = words.percent(run.sweep.design.level), len(run.comparisons)
    return f"Verdicts and intervals hold at {level} for all {count} comparisons together."


def _caveat_line(run: RunView) -> Html:
    """The caveats in one line, for those who read no further; told in full under their own heading."""
    groups = words.grouped(run.caveats)
    if not groups:
        return html.paragraph(f"{words.no_caveats(run.checks_passed)}.", kind="meta")
    link = html.link("#Caveats", "Caveats")
    return html.paragraph(html.told(link, words.caveat_line(groups)), kind=f"alert {groups[0].severity}")


def _answering(run: RunView) -> list[Comparison]:
    """The comparisons of the metrics that the answer is about."""
    return [c for c in _compared(run) if c.metric in run.answer_metrics.get(_workload(c), ())]


def _compared(run: RunView) -> list[Comparison]:
    """All comparisons, with the intervals that hold for all of them together."""
    return [words.together(comparison) for comparison in run.comparisons]


def _workload(comparison: Comparison) -> str:
    return words.workload_label(comparison.workload, comparison.factors)


def overview(run: RunView) -> Html:
    """The ratios as a picture, and the means behind them as a table."""
    comparisons = [c for c in _answering(run) if words.effect(c) >= 0]
    design = run.sweep.design
    picture: Text = html.paragraph("No ratio to plot.")
    if comparisons:
        plot = plots.plot_ratios(comparisons, smallest_effect=design.smallest_effect, filesystems=_names(run))
        picture = Html(plot._repr_html_())
    return html.columns(picture, _overview_table(run))


def _names(run: RunView) -> list[str]:
    """File systems in the order of the sweep: the order of colours everywhere."""
    return [filesystem.name for filesystem in run.sweep.filesystems]


def _swatches(run: RunView) -> dict[str, Html]:
    marks = plots.colour_of(_names(run))
    return {name: html.swatch(name, mark.colour, mark.glyph) for name, mark in marks.items()}


def _overview_table(run: RunView) -> Html:
    names, swatches = [name for name in _names(run) if name in set(run.estimates["filesystem"])], _swatches(run)
    if not names:
        return html.paragraph("No trial succeeded.")
    under = {name: "baseline" if name == run.sweep.baseline else "" for name in names}
    head = [Column("Workload"), *(Column(html.stacked(swatches[name], under[name]), "number") for name in names)]
    groups = [group for metric in _answer_metrics(run) if (group := _overview_group(run, metric, names)).rows]
    level, noun = words.percent(run.sweep.design.level), STATISTICS[run.sweep.design.estimate].noun
    return html.table(
        head, groups, caption=f"{noun} and {level} interval. ★ best of its row, and those whose interval meets its own"
    )


def _answer_metrics(run: RunView) -> list[str]:
    return list(dict.fromkeys(metric for metrics in run.answer_metrics.values() for metric in metrics))


def _overview_group(run: RunView, metric: str, names: Sequence[str]) -> Rows:
    """One row a workload, with the mean of each file system."""
    means = [m for m in _means(run, metric) if metric in run.answer_metrics.get(m.workload, ())]
    scale = scale_for(means[0].unit, max(abs(m.mean) for m in means)) if means else scale_for("", 1)
    rows = []
    for row, own in _rows(means).items():
        by_name, best = {m.filesystem: m for m in own}, words.best([(m.mean, m.low, m.high) for m in own], metric)
        planned = {name: run.sweep.has_cell(f"{name}/{own[0].workload}") for name in names}
        rows.append([row, *(_stacked(by_name.get(name), scale.factor, best, planned[name]) for name in names)])
    return Rows(rows, f"{words.metric_heading(metric)}, {scale.unit}")


def _stacked(mean: _Mean | None, factor: float, best: Sequence[float], planned: bool) -> Text:
    """A mean above its interval, as one cell; `best` holds the means that get the star. What was planned and gave no
    figure is told from what the sweep leaves out."""
    if mean is None:
        return words.MISSING if planned else words.NOT_IN_SWEEP
    figures = words.mean_figures(mean.mean, mean.low, mean.high, factor=factor)
    return html.stacked(figures.value, figures.interval or "no interval", star=mean.mean in best)


def caveats(run: RunView) -> Html:
    """Caveats, worst first; or that there is none. What was checked, and what could not be."""
    passed = html.details(words.no_caveats(run.checks_passed), html.items(run.checks_passed))
    if not run.caveats:
        return html.joined(html.box("caveat none", passed), not_checked(run))
    boxes = [html.caveat_box(group) for group in words.grouped(run.caveats)]
    others = f"{words.counted(len(run.checks_passed), 'check')} passed"
    return html.joined(*boxes, html.details(others, html.items(run.checks_passed)), not_checked(run))


# ── tables and plots ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Mean:
    """One row of the estimates."""

    filesystem: str
    cell: str
    label: str
    unit: str
    n: int
    mean: float
    low: float
    high: float
    cv: float

    @property
    def workload(self) -> str:
        return self.cell.removeprefix(f"{self.filesystem}/")

    @property
    def row(self) -> str:
        """The workload, and the label where rows have one."""
        return f"{self.workload} ({self.label})" if self.label else self.workload


def _means(run: RunView, metric: str) -> list[_Mean]:
    """The estimates of one metric: workloads in the order of the sweep, file systems in theirs."""
    found = []
    for row in run.estimates[run.estimates["metric"] == metric].to_dict("records"):
        label = row["label"] if isinstance(row["label"], str) else ""
        values = (float(row[key]) for key in ("mean", "low", "high", "cv"))
        found.append(_Mean(row["filesystem"], row["cell"], label, row["unit"], int(row["n"]), *values))
    order = {
        f"{fs.name}/{w.label}": place
        for place, (w, fs) in enumerate(product(run.sweep.workloads, run.sweep.filesystems))
    }
    return sorted(found, key=lambda mean: order.get(mean.cell, len(order)))


def _rows(means: Sequence[_Mean]) -> dict[str, list[_Mean]]:
    """The means below the workload (and label) that they share, workloads in the order of their first mean."""
    rows: dict[str, list[_Mean]] = {}
    for mean in means:
        rows.setdefault(mean.row, []).append(mean)
    return rows


def tables(run: RunView) -> Html:
    """One table for each metric; those that the answer is about first, the others behind a summary."""
    main = _answer_metrics(run)
    others = [metric for metric in dict.fromkeys(run.estimates["metric"]) if metric not in main]
    measured = set(run.estimates["metric"])
    doubts = words.doubts_by_cell(run.caveats)
    shown = [_metric_table(run, metric, doubts) for metric in main if metric in measured]
    rest = html.joined(*(_metric_table(run, metric, doubts) for metric in others))
    hidden = html.details(f"{words.counted(len(others), 'more metric')}", rest) if others else ""
    return html.joined(*shown, hidden) if shown or others else html.paragraph("No trial succeeded.")


def _metric_table(run: RunView, metric: str, doubts: Mapping[str, Sequence[str]]) -> Html:
    means = _means(run, metric)
    scale = scale_for(means[0].unit, max(abs(m.mean) for m in means))
    noun = STATISTICS[run.sweep.design.estimate].noun
    head = [
        Column("File system"), Column(f"{noun}, {scale.unit}", "number"), Column(f"Low, {scale.unit}", "number"),
        Column(f"High, {scale.unit}", "number"), Column("n", "number"), Column("CV, %", "number"),
        Column(f"Ratio to {run.sweep.baseline}" if run.sweep.baseline else "Ratio", "number"),
        Column("Interval", "interval"),
        Column("Verdict"), Column("Caveats"),
    ]  # fmt: skip
    groups = [
        Rows(
            [_metric_row(run, metric, m, scale.factor, doubts.get(words.doubt_key(m.cell, metric), ())) for m in own],
            row,
        )
        for row, own in _rows(means).items()
    ]
    return html.table(head, groups, caption=f"{words.metric_heading(metric)}, {scale.unit}")


def _metric_row(run: RunView, metric: str, mean: _Mean, factor: float, doubts: Sequence[str]) -> list[Text]:
    figures = words.mean_figures(mean.mean, mean.low, mean.high, factor=factor)
    name = _swatches(run).get(mean.filesystem, mean.filesystem)
    return [
        name, figures.value, figures.low, figures.high, str(mean.n), words.number(mean.cv * 100, 1),
        *_ratio_cells(run, metric, mean), ", ".join(map(words.spoken_code, doubts)),
    ]  # fmt: skip


def _ratio_cells(run: RunView, metric: str, mean: _Mean) -> tuple[str, str, str]:
    """Ratio, interval and verdict of a cell against the baseline."""
    if mean.filesystem == run.sweep.baseline:
        return ("1", "", "baseline")
    for c in _compared(run):
        same = (c.metric, c.label, words.cell_id(c.candidate, c)) == (metric, mean.label, mean.cell)
        if same:
            figures = words.ratio_figures(c.ratio, c.low, c.high)
            verdict = words.verdict_text(c.verdict, run.sweep.design.smallest_effect) + words.needed(c)
            return (figures.value, figures.interval, verdict if words.has_interval(c) else "no interval")
    return (words.MISSING, "", "not compared")


def every_trial(run: RunView) -> Html:
    """Every counted trial of the answer's metrics, with mean and interval of each cell."""
    return _plots(run, lambda metric: plots.plot_trials(run.measurements, run.estimates, metric, **_orders(run)))


def run_order(run: RunView) -> Html:
    """Every trial of the answer's metrics in the order in which it ran."""
    measured = run.measurements.merge(run.trials[["trial_id", "seq"]], on="trial_id", how="left")
    return _plots(run, lambda metric: plots.plot_run_order(measured, metric, **_orders(run)))


def _orders(run: RunView) -> dict[str, list[str]]:
    """The order of the sweep, which is that of colours and of rows."""
    return {"filesystems": _names(run), "workloads": [workload.label for workload in run.sweep.workloads]}


def _plots(run: RunView, draw: Any) -> Html:
    counted = run.measurements[~run.measurements["warmup"].astype(bool)]
    present = set(counted["metric"])
    drawn = [Html(draw(metric)._repr_html_()) for metric in _answer_metrics(run) if metric in present]
    return html.columns(*drawn) if drawn else html.paragraph("No trial succeeded.")


# ── beside others' figures ───────────────────────────────────────────────────────────────────────────────────────────


def published(run: RunView) -> Html:
    """Published ratios beside ours, as a picture and as a table with the sources."""
    found = beside(run)
    if not found:
        return html.paragraph("This sweep names no published figures.")
    pairs = [(each.theirs, each.ours) for each in found if math.isfinite(each.theirs.ratio)]
    note = html.paragraph(
        "Absolute figures are of other machines, years and sizes: compare ratios and their order, not speeds."
    )
    plot = Html(plots.plot_published(pairs, filesystems=_names(run))._repr_html_()) if pairs else ""
    sentence = html.paragraph(agreement_sentence(found))
    return html.joined(sentence, note, plot, _published_table(found), _sources(run.published))


def _published_table(found: Sequence[Beside]) -> Html:
    head = [
        Column("What"), Column("Candidate"), Column("Baseline"), Column("Published"),
        Column("Ours", "number"), Column("Our interval", "interval"), Column("Ours"), Column("Study"),
    ]  # fmt: skip
    return html.table(head, [Rows([_published_row(each) for each in found])], caption="Published, and our ratio")


def _published_row(each: Beside) -> list[Text]:
    theirs, ours = each.theirs, each.ours
    figures = words.ratio_figures(ours.ratio, ours.low, ours.high) if ours else None
    return [
        theirs.what,
        _published_side(theirs.candidate, theirs.candidate_value, theirs.unit),
        _published_side(theirs.baseline, theirs.baseline_value, theirs.unit),
        claim_text(theirs),
        figures.value if figures else words.MISSING,
        figures.interval if figures else "",
        each.agreement,
        theirs.study,
    ]


def _published_side(name: str, value: float, unit: str) -> str:
    return f"{name} {words.quantity(value, unit)}" if math.isfinite(value) else name


def _sources(figures: Sequence[PublishedFigure]) -> Html:
    sources = {figure.study: figure.source for figure in figures}
    return html.items(f"{study}: {source}" for study, source in sources.items())


# ── what was measured, and on what ───────────────────────────────────────────────────────────────────────────────────


def options(run: RunView) -> Html:
    """One row for each option that was asked for, and for each that the kernel added, with the kernel's words."""
    if not run.options:
        return html.paragraph("No option was asked for.")
    head = [
        Column("File system"), Column("Kind"), Column("Asked"), Column("State"), Column("The kernel says", "code")
    ]  # fmt: skip
    rows = [
        [o.filesystem, o.kind, html.code(o.option) if o.option else "added by the kernel", words.OPTION_STATES[o.state],
         o.kernel_says]
        for o in run.options
    ]  # fmt: skip
    return html.table(head, [Rows(rows)], caption="Options asked for, and what the kernel made of them")


def left_out(run: RunView) -> Html:
    """The file systems of the sweep that were not measured, and why."""
    if not run.sweep.left_out:
        return html.paragraph("Nothing was left out: every file system of the sweep was measured.")
    return html.definitions(dict(run.sweep.left_out))


def trials(run: RunView) -> Html:
    """How many trials there were of each status; those that failed, with the reason; and the list of all."""
    counts = run.trials["status"].value_counts()
    tally = ", ".join(
        f"{counts[status]} {status}"
        for status in ("ok", "excluded", "invalid", "failed", "skipped")
        if status in counts
    )
    line = html.paragraph(f"{words.counted(len(run.trials), 'trial')}: {tally}." if tally else "No trial was run.")
    bad = run.trials[run.trials["status"] != "ok"]
    shown = _trial_table(run, bad, "Trials that gave no measurement") if len(bad) else ""
    everything = _trial_table(run, run.trials, "All trials, in the order in which they ran")
    return html.joined(line, shown, html.details(f"All {words.counted(len(run.trials), 'trial')}", everything))


def _trial_table(run: RunView, frame: pd.DataFrame, caption: str) -> Html:
    head = [
        Column("Trial"), Column("Block", "number"), Column("File system"), Column("Workload"), Column("Status"),
        Column("Reason"), Column("Started"), Column("Took, s", "number"),
    ]  # fmt: skip
    rows = [_trial_row(row) for row in frame.sort_values("seq").to_dict("records")]
    return html.table(head, [Rows(rows)], caption=caption)


def _trial_row(row: Mapping[Any, Any]) -> list[Text]:
    workload = str(row["cell"]).removeprefix(f"{row['filesystem']}/")
    status = f"{row['status']}, warm-up" if row["warmup"] else str(row["status"])
    reason = row["reason"] if isinstance(row["reason"], str) else ""
    return [
        str(row["trial_id"]), str(row["block"]), str(row["filesystem"]), workload, status, reason,
        _moment(row["started_at"]), words.number(float(row["elapsed_s"]), 2),
    ]  # fmt: skip


_FACT_NAMES = {
    "hostname": "Host name", "cpu_model": "CPU", "cpus": "CPUs", "os": "Operating system", "uid": "User id",
    "cpu_governor": "CPU governor", "mount_root": "Mount root", "output_root": "Output root", "boot_id": "Boot id",
}  # fmt: skip
_FACT_TABLES = ("programs", "block_devices")


def box(run: RunView) -> Html:
    """What the box is, as it was found when the run began."""
    facts = run.info.get("facts", {})
    plain = {_fact_name(key): fact_text(key, value) for key, value in facts.items() if key not in _FACT_TABLES}
    programs = facts.get("programs") or {}
    rows = [[name, str(found.get("version", "")), str(found.get("path", ""))] for name, found in programs.items()]
    head = [Column("Program"), Column("Version"), Column("Path", "code")]
    listed = html.table(head, [Rows(rows)], caption="Programs on the box") if rows else ""
    return html.joined(html.definitions(plain), _devices(facts.get("block_devices") or []), listed)


def _fact_name(key: str) -> str:
    name = key.removesuffix("_bytes").replace("_", " ")
    return _FACT_NAMES.get(key, name[:1].upper() + name[1:])


def fact_text(key: str, value: object) -> str:
    """A fact as people read it: bytes with a unit, lists with commas, what is not known as 'not known'."""
    if value is None or value == "":
        return "not known"
    if value in ({}, [], ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_bytes") and isinstance(value, int | float):
        return format_bytes(float(value))
    if key.endswith("_s") and isinstance(value, int | float):
        return format_seconds(float(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {fact_text(str(name), part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(fact_text(key, part) for part in value)
    return str(value)


def _devices(devices: Sequence[Mapping[str, Any]]) -> Text:
    """The block devices, with the columns in which something is known of one of them."""
    keys = dict.fromkeys(key for device in devices for key in device if device[key] not in (None, "", []))
    if not keys:
        return ""
    head = [Column(_fact_name(key)) for key in keys]
    rows = [[fact_text(key, device.get(key)) for key in keys] for device in devices]
    return html.table(head, [Rows(rows)], caption="Block devices of the box")


def versions(run: RunView) -> Html:
    """Versions on the control machine, and what makes the run the one it is."""
    info = run.info
    about = {
        "Run": info.get("run_id", ""),
        "Mountlab": info.get("mountlab_version", ""),
        "Commit": info.get("git_commit") or "none",
        "Seed": "none" if info.get("seed") is None else info["seed"],
        **info.get("versions", {}),
    }
    return html.definitions({name: str(text) for name, text in about.items()})


def parameters(run: RunView) -> Html:
    """The sweep as it was resolved, in YAML."""
    text = yaml.safe_dump(run.info.get("parameters", {}), sort_keys=False, allow_unicode=True, width=100)
    return html.details("The whole sweep, resolved", html.code_block(text))


def reproduce(run: RunView) -> Html:
    """The one line that runs it all again."""
    return html.code_block(str(run.info.get("command", "")))


def stopping(run: RunView) -> Html:
    """Until when blocks went on, and for each cell why it has no more; with `repeats` that there was no such rule."""
    until = run.sweep.design.until
    if until is None:
        return html.paragraph(f"The number of blocks was fixed beforehand: {run.sweep.design.repeats}.")
    rule = html.paragraph(f"Blocks went on {words.rule_text(until)}. All cells of a workload leave together.")
    head = [
        Column("File system"), Column("Blocks", "number"), Column("n", "number"), Column("Reached", "number"),
        Column("Of"), Column("Why no more"),
    ]  # fmt: skip
    swatches = _swatches(run)
    groups: dict[str, list[list[Text]]] = {}
    for stop in run.stops:
        filesystem, _, workload = stop.cell.partition("/")
        reached = f"±\u00a0{words.percent(stop.half_width)}" if math.isfinite(stop.half_width) else words.MISSING
        row = [
            swatches.get(filesystem, filesystem), str(stop.blocks), str(stop.n), reached, stop.metric,
            words.stop_text(stop),
        ]  # fmt: skip
        groups.setdefault(workload, []).append(row)
    rows = [Rows(own, workload) for workload, own in groups.items()]
    return html.joined(rule, html.table(head, rows, caption="Why each cell has no more trials; its widest interval"))


def not_checked(run: RunView) -> Html:
    """The checks that could not look at this run, and why."""
    if not run.not_checked:
        return html.paragraph("Every check could be made.", kind="meta")
    told = [f"{words.spoken_code(code)}: {why}" for code, why in run.not_checked.items()]
    return html.details(f"{words.counted(len(told), 'check')} could not be made", html.items(told))


def explained(run: RunView) -> Html:
    """Which option explains how much of what was measured: a sentence and a table for each workload and metric."""
    told = [_explained(run, *each) for each in _analysed(run)]
    shown = [each for each in told if each]
    return html.joined(*shown) if shown else html.paragraph(
        "Nothing was swept in more than one trial, so there is no variance to share out."
    )  # fmt: skip


def _analysed(run: RunView) -> list[tuple[str, str, str]]:
    """(workload, metric, label) of everything that the answer is about; the options of a workload are its factors."""
    rows = run.measurements[["workload", "metric", "label"]].drop_duplicates()
    there = list(rows.itertuples(index=False, name=None))
    answers = dict.fromkeys((w.name, m) for w in run.sweep.workloads for m in run.answer_metrics.get(w.label, ()))
    return [each for answer in answers for each in there if each[:2] == answer]


def _explained(run: RunView, workload: str, metric: str, label: str) -> Html | None:
    level = run.sweep.design.level
    found = variance_explained(run.measurements, workload=workload, metric=metric, label=label, level=level)
    if found.empty:
        return None
    rows = [{str(key): value for key, value in row.items()} for row in found.to_dict("records")]
    what = f"{words.metric_noun(metric, label)} under {workload}"
    head = [
        Column("Effect"), Column("Share", "number"), Column(f"{words.percent(level)} interval", "interval"),
        Column("df", "number"), Column("F", "number"), Column("p", "number"),
    ]  # fmt: skip
    table = html.table(head, [Rows([_effect_row(row) for row in rows])], caption=f"Analysis of variance: {what}")
    sentence = words.explained_sentence(rows, what)
    return html.joined(html.paragraph(sentence), html.details(f"Analysis of variance: {what}", table))


def _effect_row(row: Mapping[str, Any]) -> list[Text]:
    share, _, interval = words.share_text(row).partition(" [")
    errors = f"{row['df']}, {row['error_df']}" if row["error_df"] else str(row["df"])
    tested = ("", "") if math.isnan(row["f"]) else (words.number(row["f"], 1), words.p_text(row["p"]))
    return [words.effect_name(row["effect"]), share, interval and f"[{interval}", errors, *tested]
