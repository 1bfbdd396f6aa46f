"""The first screen: the question, the answer, one picture, and what to doubt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from mountlab import plots
from mountlab.analysis import answers, load_curve, ranks
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.core.names import cell_id, code_words, metric_heading, metric_noun
from mountlab.core.units import Scale, scale_for
from mountlab.outcome.consequences import SET_ASIDE
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections.capacity import capacity_lines, capacity_plots
from mountlab.report.sections.shared import Mean, answer_metrics, means_of, names_of, rows_of, swatches, within
from mountlab.report.sentences.why import answer_lines
from mountlab.stats import STATISTICS
from mountlab.wording import extension_words, verdicts
from mountlab.wording import phrases as words
from mountlab.wording.caveats import grouped, no_caveats

Best = Collection[tuple[ranks.Key, str]]
"""Workload, metric and label, and the file system that gets the star there."""
MOST_COLUMNS, MOST_RATIOS = 4, 24
"""File systems side by side in the table, and ratios in the picture, that a first screen has room for."""


def question(run: RunView) -> Html:
    """Return the question, and below it where, when and how often it was asked."""
    facts = run.info.facts
    disk = [text for text in (facts.storage.mount_root_source, facts.storage.mount_root_fstype) if text]
    on = "image files on" if any((fs.over or fs).image_bytes for fs in run.sweep.filesystems) else "disk"
    moment, status = run.info.created_at, run.info.status
    day = datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M %Z").strip() if moment else ""
    parts = [
        f"box {run.info.box_name or run.sweep.box}",
        f"kernel {facts.kernel.release}" if facts.kernel.release else "",
        f"{on} {disk[0]}{f' ({disk[1]})' if len(disk) > 1 else ''}" if disk else "",
        f"imported {day}, measured elsewhere" if run.sweep.imported else day,
        _blocks(run),
        _duration(run),
    ]
    title = html.heading(" ".join(run.sweep.question.split()), level=1)
    line = html.paragraph(" · ".join(part for part in parts if part), kind="meta")
    so_far = f"This run is {status}: what follows is from the trials so far."
    return html.joined(title, line, html.paragraph(so_far, kind="alert warning") if status != "complete" else "")


def _duration(run: RunView) -> str:
    start, end = run.info.created_at, run.info.finished_at
    if not start or not end or run.sweep.imported:
        return ""
    later = sorted((*run.info.extensions, *run.info.explanations), key=lambda addition: addition.at)
    starts = [start, *(addition.at for addition in later)]
    ends = [*(addition.finished_at for addition in later), end]
    moments = [[datetime.fromisoformat(moment) for moment in side] for side in (starts, ends)]
    seconds = sum((last - first).total_seconds() for first, last in zip(*moments, strict=True))
    if seconds < 0:  # the clock was set back meanwhile
        return ""
    return f"took {numbers.duration_text(round(seconds))}" if seconds >= 1 else "took less than a second"


def _blocks(run: RunView) -> str:
    counted = run.trials[run.trials["status"].isin(("ok", "timeout")) & ~run.trials["warmup"].astype(bool)]
    blocks, planned = counted["block"].nunique(), run.sweep.design.repeats
    if run.stops:
        fewest = min(stop.blocks for stop in run.stops)
        return f"n = {numbers.counted(blocks, 'block')}" if fewest >= blocks else f"n = {fewest} to {blocks} blocks"
    fewest = min(len(run.sweep.blocks_of(cell.id)) for cell in run.sweep.cells)
    if fewest < blocks == planned:
        return f"n = {fewest} to {blocks} blocks"
    return f"n = {numbers.counted(blocks, 'block')}" if blocks >= planned else f"n = {blocks} of {planned} blocks"


def answer(run: RunView) -> Html:
    """Return the answer, a line for each part of the question, and for each capacity that was searched for; what makes
    the differences, where diagnostic trials say so; how it stands to what was expected; the caveats in a line."""
    parts = answers.lines(run)
    searched = capacity_lines(run, load_curve.searches(run)) if run.sweep.searches else []
    if searched:  # they hold the ratios already; how far these hold is added
        parts = [line for line in parts if not line.part and any(map(verdicts.has_interval, answers.answering(run)))]
    lines = [html.paragraph(html.labelled(_capital(line.part), line.text)) for line in parts]
    corrected = extension_words.looks_text(run.sweep)
    looks = html.paragraph(corrected, kind="meta") if corrected and not answers.expectations(run) else ""
    behind = [html.paragraph(html.labelled(subject, text)) for subject, text in answer_lines(run)]
    doubts = html.paragraph(f"{no_caveats(run.checks_passed)}.", kind="meta")
    if run.caveats:
        doubts = html.caveats_alert(grouped(run.caveats))
    return html.joined(html.box("answer", *searched, *lines, *behind), looks, _expected(run), doubts)


def _expected(run: RunView) -> Html | str:
    """Return what was expected beforehand; of what names a part of the question, whether it is so."""
    rows = []
    for claim in answers.expectations(run):  # 'faster on tmpfs', or 'faster' of all that are compared
        on = f" on {claim.candidate}" if claim.candidate else ""
        what = f"{_capital(claim.part)} {'the same' if claim.claim == 'same' else claim.claim}{on}"
        rows.append(html.labelled(f"{_CLAIM_MARKS[claim.state]} {what}", f"{claim.state}, {claim.text}"))
    says = f"Expected beforehand: {run.sweep.expectation}" if run.sweep.expectation else "Expected beforehand:"
    if rows and (corrected := extension_words.looks_text(run.sweep)):
        says = f"{says} ({corrected})"
    if not rows:
        return html.paragraph(says, kind="meta") if run.sweep.expectation else ""
    return html.box("expected", html.paragraph(says, kind="meta"), html.items(rows))


_CLAIM_MARKS = {"confirmed": "✓", "contradicted": "✗", "open": "?", "not measured": "–"}


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def headline(run: RunView) -> Html:
    """Return the answer beside the ratios as a picture, or beside latency over load where a capacity was searched for:
    what a first screen has room for."""
    searched = next(capacity_plots(run), None) if run.sweep.searches else None
    return html.columns(answer(run), html.plot(searched) if searched else _ratios(run))


def overview(run: RunView) -> Html:
    """Return the ratios as a picture, and the means behind them as a table."""
    return html.columns(_ratios(run), means(run))


def means(run: RunView) -> Html:
    """Return the mean of each file system under each workload, and what could not be measured."""
    without: list[str] = []
    impossible = ((run.sweep.combinations[cell], reason) for cell, reason in _impossible(run).items())
    groups = by_key(((cell.filesystem.name, reason), cell.workload.label) for cell, reason in impossible)
    for (name, reason), workloads in groups.items():
        without.append(f"Not measured: {name} under {numbers.listed(workloads)}. {reason}.")
    for metric in answer_metrics(run):
        for name, labels in _labels_missing(run, metric).items():
            cell = run.sweep.combinations[name]
            what = f"{metric_noun(metric)} of {cell.filesystem.name} under {cell.workload.label}"
            without.append(f"No {what}: the tool gave none for {numbers.listed(labels)}.")
    return html.joined(_overview_table(run), *(html.paragraph(text, kind="meta") for text in without))


def _ratios(run: RunView) -> Text:
    """Return the ratios as a picture; where they are many those of the workloads with the strongest effects, then the
    others behind a summary."""
    with_ratio = [comparison for comparison in answers.answering(run) if verdicts.effect(comparison) >= 0]
    comparisons = sorted(with_ratio, key=lambda comparison: -verdicts.effect(comparison))
    if not comparisons:
        return html.paragraph("No ratio to plot.")
    rows = Counter(map(verdicts.workload_of, comparisons))
    parts = within(rows, MOST_RATIOS)
    drawn = []
    for part in parts:
        members = [comparison for comparison in comparisons if verdicts.workload_of(comparison) in part]
        smallest = run.sweep.design.smallest_effect
        plot = plots.plot_ratios(members, smallest_effect=smallest, filesystems=names_of(run))
        drawn.append(html.plot(plot))
    first, *others = drawn
    if not others:
        return first
    open_count, hidden = (numbers.counted(count, "workload") for count in (len(parts[0]), len(rows) - len(parts[0])))
    strongest = html.paragraph(f"The {open_count} with the strongest effects, of {len(rows)}.", kind="meta")
    return html.joined(first, strongest, html.details(f"The other {hidden}", html.joined(*others)))


def _overview_table(run: RunView) -> Html:
    """Return the means: a column for each of a few file systems, and a row for each of many, which columns would not
    fit."""
    names = [name for name in names_of(run) if name in set(run.estimates["filesystem"])]
    if not names:
        return html.paragraph("No trial succeeded.")
    level, noun = numbers.percent(run.sweep.design.level), STATISTICS[run.sweep.design.estimate].noun
    wide, best = len(names) <= MOST_COLUMNS, ranks.best(run)
    of = "row" if wide else "workload"
    caption = f"{noun} and {level} interval. ★ best of its {of}, or not distinguishable from the best, by all pairs"
    if not wide:
        below = [rows for metric in answer_metrics(run) for rows in _by_workload(run, metric, names, best)]
        return _long_table(below, noun, caption)
    keys = swatches(run)
    headings = (html.stacked(keys[name], "baseline" if name == run.sweep.baseline else "") for name in names)
    head: Head = ["Workload", *numeric(*headings)]
    groups = [group for metric in answer_metrics(run) if (group := _overview_group(run, metric, names, best)).rows]
    return html.table(head, groups, caption=caption)


def _long_table(groups: Sequence[Rows], noun: str, caption: str) -> Html:
    """Return the file systems below each workload; the groups that the first screen has no room for behind a
    summary."""
    head: Head = ["File system", *numeric(noun), Column("Interval", "interval")]
    first, *others = within({str(at): len(group.rows) for at, group in enumerate(groups)}, MOST_RATIOS)
    table = html.table(head, groups[: len(first)], caption=caption)
    if not others:
        return table
    rest = html.table(head, groups[len(first) :], caption=caption)
    return html.joined(table, html.details(f"The other {len(groups) - len(first)} of {len(groups)} groups", rest))


def _impossible(run: RunView) -> dict[str, str]:
    """Return cell to the reason for which none of its trials was run: its file system, or the box, cannot."""
    skips = run.trials[run.trials["status"] == "skipped"]
    reasons = {str(cell): str(reason) for cell, reason in zip(skips["cell"], skips["reason"], strict=True)}
    tried = set(run.trials.loc[run.trials["status"] != "skipped", "cell"])
    return {cell: reason for cell, reason in reasons.items() if cell not in tried and not reason.startswith(SET_ASIDE)}


def _labels_missing(run: RunView, metric: str) -> dict[str, list[str]]:
    """Return cell to the labels that other file systems have a figure for under the same workload, and it has only
    others."""
    means = means_of(run, metric)
    of_workload = by_key((mean.workload_label, mean.label) for mean in means)
    of_cell = by_key((mean.cell, mean.label) for mean in means)
    workloads = {mean.cell: mean.workload_label for mean in means}
    absent = {
        cell: [label for label in dict.fromkeys(of_workload[workloads[cell]]) if label not in labels]
        for cell, labels in of_cell.items()
    }
    return {cell: missing for cell, missing in absent.items() if missing}


def _by_workload(run: RunView, metric: str, names: Sequence[str], best: Best) -> Iterator[Rows]:
    """Yield the file systems below each workload, with their mean and its interval. What it cannot do is no row."""
    means = [m for m in means_of(run, metric) if metric in run.answer_metrics.get(m.workload_label, ())]
    scale, keys = _scale(means), swatches(run)
    no_row = {*_impossible(run), *_labels_missing(run, metric)}
    for row, members in rows_of(means).items():
        by_name = {m.filesystem: m for m in members}
        rows: list[list[Text]] = []
        for name in names:
            mean, cell = by_name.get(name), cell_id(name, members[0].workload_label)
            if mean is None and cell in no_row:
                continue
            label = html.stacked(keys[name], "baseline") if name == run.sweep.baseline else keys[name]
            if mean is None:
                rows.append([label, _absent(run, cell, no_row), ""])
            else:
                figures = numbers.mean_figures(mean.mean, mean.low, mean.high, factor=scale.factor)
                interval, star = _interval(mean, figures), ((mean.workload_label, metric, mean.label), name) in best
                rows.append([label, figures.value, html.starred(interval) if star else interval])
        yield Rows(rows, f"{row}: {metric_noun(metric)}, {scale.unit}")


def _interval(mean: Mean, figures: numbers.Figures) -> Text:
    """Return the interval; of a cell with trials that ran into their time limit, also how many, and what the figure
    is."""
    interval = figures.interval or "no interval"
    return html.stacked(interval, f"n = {words.trial_count(mean.n, mean.censored)}") if mean.censored else interval


def _scale(means: Sequence[Mean]) -> Scale:
    sizes = [abs(m.mean) for m in means if math.isfinite(m.mean)]
    return scale_for(means[0].unit, max(sizes, default=1)) if means else scale_for("", 1)


def _overview_group(run: RunView, metric: str, names: Sequence[str], best: Best) -> Rows:
    """Return one row a workload, with the mean of each file system."""
    means = [m for m in means_of(run, metric) if metric in run.answer_metrics.get(m.workload_label, ())]
    scale, impossible, rows = _scale(means), _impossible(run), []
    for label, members in rows_of(means).items():
        by_name = {m.filesystem: m for m in members}
        row: list[Text] = [label]
        for name in names:
            if mean := by_name.get(name):
                figures = numbers.mean_figures(mean.mean, mean.low, mean.high, factor=scale.factor)
                star = ((mean.workload_label, metric, mean.label), name) in best
                row.append(html.stacked(figures.value, _interval(mean, figures), star=star))
            else:
                row.append(_absent(run, cell_id(name, members[0].workload_label), impossible))
        rows.append(row)
    return Rows(rows, f"{metric_heading(metric)}, {scale.unit}")


def _absent(run: RunView, cell: str, impossible: Collection[str]) -> str:
    """Return what stands in the place of a figure: whether it is missing, cannot be measured, or is not asked for."""
    if cell in impossible:
        return words.NOT_MEASURED
    return numbers.MISSING if run.sweep.has_cell(cell) else words.NOT_IN_SWEEP


def caveats(run: RunView) -> Html:
    """Return caveats, worst first: what weakens figures in boxes, notes as a list, behind a summary those on what the
    sweep asked for; or that there is none. What was checked, and what could not be."""
    passed = html.details(no_caveats(run.checks_passed), html.items(run.checks_passed))
    if not run.caveats:
        return html.joined(html.box("caveat none", passed), not_checked(run))
    groups = grouped(run.caveats)
    boxes = [html.caveat_box(group) for group in groups if group.severity != "note"]
    requested = [group for group in groups if group.severity == "note" and group.asked]
    notes = [group for group in groups if group.severity == "note" and not group.asked]
    count = f"{numbers.counted(len(requested), 'note')} on what the sweep asks for"
    others = f"{numbers.counted(len(run.checks_passed), 'check')} passed"
    return html.joined(
        *boxes,
        html.caveat_notes(notes) if notes else "",
        html.details(count, html.caveat_notes(requested)) if requested else "",
        html.details(others, html.items(run.checks_passed)),
        not_checked(run),
    )


def not_checked(run: RunView) -> Html:
    """Return the checks that could not look at this run, and why."""
    if not run.not_checked:
        return html.paragraph("Every check could be made.", kind="meta")
    reasons = [f"{code_words(code)}: {why}" for code, why in run.not_checked.items()]
    return html.details(f"{numbers.counted(len(reasons), 'check')} could not be made", html.items(reasons))
