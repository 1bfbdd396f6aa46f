"""The first screen: the question, the answer, one picture, and what to doubt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mountlab import plots
from mountlab.analysis import answers, load_curve
from mountlab.analysis.conditions import effect_sentence
from mountlab.analysis.progress import nothing_compared_yet, so_far
from mountlab.analysis.promises import answer_sentence
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import trust_of
from mountlab.analysis.watched import is_watched
from mountlab.core import numbers
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.core.names import cell_id, code_words, metric_heading, metric_noun
from mountlab.core.text import capital
from mountlab.core.units import Scale, scale_for
from mountlab.outcome.consequences import SET_ASIDE
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.capacity import capacity_lines, capacity_plots
from mountlab.report.sections.promises import promised_answer
from mountlab.report.sections.shared import (
    Mean,
    answer_metrics,
    means_of,
    names_of,
    ratios_by_cell,
    rows_of,
    swatches,
    within,
)
from mountlab.report.sections.watched import amounts
from mountlab.report.sections.why import behind_answer
from mountlab.sentences.damage import damage_lines
from mountlab.sentences.trust import trust_lines
from mountlab.sentences.watched import watched_text
from mountlab.stats import STATISTICS
from mountlab.wording import extension_words, verdicts
from mountlab.wording import phrases as words
from mountlab.wording.caveats import CaveatGroup, doubts_by_cell, grouped, no_caveats

_LEAST_IN_UNIT = 0.1
"""A figure that is smaller in the common unit has a unit of its own."""
MOST_COLUMNS, MOST_RATIOS, MOST_OPEN = 3, 24, 3
"""File systems side by side in the table, and ratios in the picture, that a first screen has room for; caveats that
stand open."""


def question(run: RunView) -> Html:
    """Return the question, and below it where, when and how often it was asked."""
    facts = run.info.facts
    disk = [text for text in (facts.storage.mount_root_source, facts.storage.mount_root_fstype) if text]
    on = "image files on" if any((fs.over or fs).image_bytes for fs in run.sweep.filesystems) else "disk"
    moment, progress = run.info.created_at, so_far(run)
    day = datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M %Z").strip() if moment else ""
    parts = [
        f"box {run.info.box_name or run.sweep.box}",
        f"kernel {facts.kernel.release}" if facts.kernel.release else "",
        f"{on} {disk[0]}{f' ({disk[1]})' if len(disk) > 1 else ''}" if disk else "",
        f"imported {day}, measured elsewhere" if run.sweep.imported else day,
        _blocks(run) if run.info.status == "complete" else "",
        _duration(run),
    ]
    title = html.heading(" ".join(run.sweep.question.split()), level=1)
    line = html.paragraph(" · ".join(part for part in parts if part), kind="meta")
    return html.joined(title, line, html.paragraph(progress, kind="alert warning") if progress else "")


def _duration(run: RunView) -> str:
    seconds = run.info.seconds
    if seconds is None or run.sweep.imported:
        return ""
    return f"took {numbers.rough_duration(seconds)}" if seconds >= 1 else "took less than a second"


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
    """Return the answer with its trust and what to do next, how far its intervals hold, and how it stands to what was
    promised and expected."""
    return html.joined(_answer(run), _beside_answer(run))


def _beside_answer(run: RunView) -> Html:
    return html.joined(_scope(run), promised_answer(run), _expected(run))


def _answer(run: RunView) -> Html:
    """Return the answer in a sentence, or a line for each capacity that was searched for; what makes the differences,
    where diagnostic trials say so; how far it can be trusted, and what to do next."""
    if why := nothing_compared_yet(run):
        return html.box("answer", html.paragraph(f"No answer yet: {why}.", kind="lead"))
    searched = capacity_lines(run, load_curve.searches(run), kind="lead") if run.sweep.searches else []
    causes = behind_answer(run)
    trust = trust_of(run)
    lead, *others = watched_text(run) or [*damage_lines(run), answer_sentence(run, trust)]
    sentences = searched or [html.paragraph(lead, kind="lead"), *map(html.paragraph, others)]
    if changed := effect_sentence(run, trust):
        sentences.append(html.paragraph(changed))
    sentences += causes[:1]
    trusted = html.trust_paragraphs(trust.grade, trust_lines(run, trust))
    return html.box("answer", *sentences, *trusted, *causes[1:])


def _scope(run: RunView) -> Html | str:
    """Return the n that all ratios have in common, and at which level they hold."""
    corrected = extension_words.looks_text(run.sweep)
    holds = [answers.how_far(run)] if any(map(verdicts.has_interval, answers.answering(run))) else []
    holds += [corrected] if corrected and not answers.expectations(run) else []
    return html.paragraph(" ".join(holds), kind="meta") if any(holds) else ""


def _expected(run: RunView) -> Html | str:
    """Return what was expected beforehand; of what names a part of the question, whether it is so."""
    rows = []
    claims = [] if nothing_compared_yet(run) else answers.expectations(run)
    for claim in claims:  # 'faster on tmpfs', or 'faster' of all that are compared
        on = f" on {claim.candidate}" if claim.candidate else ""
        what = f"{capital(claim.part)} {'the same' if claim.claim == 'same' else claim.claim}{on}"
        mark = f"({_CLAIM_MARKS[claim.state]})" if claim.doubtful else _CLAIM_MARKS[claim.state]
        rows.append(html.labelled(f"{mark} {what}", claim.text))
    says = f"Expected beforehand: {run.sweep.expectation}" if run.sweep.expectation else "Expected beforehand:"
    if rows and (corrected := extension_words.looks_text(run.sweep)):
        says = f"{says} ({corrected})"
    if not rows:
        return html.paragraph(says, kind="meta") if run.sweep.expectation else ""
    return html.box("expected", html.paragraph(says, kind="meta"), html.items(rows))


_CLAIM_MARKS = {"confirmed": "✓", "contradicted": "✗", "open": "?", "not measured": "–"}


@frames.attach(frames.ratios)
def headline(run: RunView) -> Html:
    """Return the answer above the means, beside the ratios as a picture (latency over load where a capacity was
    searched for) above what was expected."""
    searched = next(capacity_plots(run), None) if run.sweep.searches else None
    picture: Text = html.plot(searched) if searched else ""
    picture = picture or (amounts(run) if is_watched(run.sweep) else _ratios(run))
    has_means = not run.sweep.searches and (len(run.estimates) or not nothing_compared_yet(run))
    table = means(run) if has_means else ""
    return html.columns(html.joined(_answer(run), table), html.joined(picture, _beside_answer(run)))


def overview(run: RunView) -> Html:
    """Return the ratios as a picture, and the means behind them as a table."""
    return html.columns(_ratios(run), means(run))


@frames.attach(frames.means)
def means(run: RunView) -> Html:
    """Return the mean of each file system under each workload, and what could not be measured."""
    if run.sweep.searches:  # a capacity is no mean, and stands in the answer
        return html.nothing("")
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
    table, notes = _overview_table(run), [html.paragraph(text, kind="meta") for text in without]
    return html.joined(table, *notes) if table or notes else html.nothing("No counted trial has a figure.")


def _ratios(run: RunView) -> Text:
    """Return the ratios as a picture; where they are many those of the workloads with the strongest effects, then the
    others behind a summary."""
    with_ratio = [comparison for comparison in answers.answering(run) if verdicts.effect(comparison) >= 0]
    comparisons = sorted(with_ratio, key=lambda comparison: -verdicts.effect(comparison))
    if not comparisons:
        return "" if nothing_compared_yet(run) else html.paragraph("No ratio to plot.", kind="meta")
    rows, doubts = Counter(map(verdicts.workload_of, comparisons)), doubts_by_cell(run.caveats, run.sweep.own_metrics)
    parts = within(rows, MOST_RATIOS)
    drawn = []
    for part in parts:
        members = [comparison for comparison in comparisons if verdicts.workload_of(comparison) in part]
        smallest = run.sweep.design.smallest_effect
        plot = plots.plot_ratios(members, smallest_effect=smallest, filesystems=names_of(run), doubts=doubts)
        drawn.append(html.plot(plot))
    first, *others = drawn
    if not others:
        return first
    open_count, hidden = (numbers.counted(count, "workload") for count in (len(parts[0]), len(rows) - len(parts[0])))
    strongest = html.paragraph(f"The {open_count} with the strongest effects, of {len(rows)}.", kind="meta")
    return html.joined(first, strongest, html.details(f"The other {hidden}", html.joined(*others)))


def _overview_table(run: RunView) -> Html:
    """Return the means and their ratios to the baseline: a column for each of a few file systems, and a row for each of
    many, which columns would not fit."""
    names = [name for name in names_of(run) if name in set(run.estimates["filesystem"])]
    if not names:
        return html.joined()
    figures, noun = _RatiosByCell.of(run), STATISTICS[run.sweep.design.estimate].noun
    caption = f"{noun}{' of each cell' if run.sweep.cells[1:] else ''}{figures.legend}"
    if len(names) > MOST_COLUMNS:
        below = [rows for metric in answer_metrics(run) for rows in _by_workload(run, metric, names, figures)]
        return _long_table(below, noun, caption)
    keys = swatches(run)
    headings = (html.stacked(keys[name], "baseline" if name == run.sweep.baseline else "") for name in names)
    head: Head = ["Workload", *numeric(*headings)]
    groups = [group for metric in answer_metrics(run) if (group := _overview_group(run, metric, names, figures)).rows]
    return html.table(head, groups, caption=caption)


@dataclass(frozen=True)
class _RatiosByCell:
    """The ratios of a run by metric, label and cell, and what weakens each figure."""

    run: RunView
    ratios: Mapping[tuple[str, str, str], Comparison]
    doubts: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, run: RunView) -> _RatiosByCell:
        ratios = ratios_by_cell(answers.answering(run))
        return cls(run, ratios, doubts_by_cell(run.caveats, run.sweep.own_metrics))

    @property
    def legend(self) -> str:
        """What the signs beside the ratios mean, of those that occur."""
        if not any(map(verdicts.has_interval, self.ratios.values())):
            return ""
        present = {comparison.verdict for comparison in self.ratios.values() if verdicts.has_interval(comparison)}
        signs = [sign for verdict, sign in verdicts.SIGNS.items() if verdict in present]
        doubtful = any(verdicts.doubts_about(comparison, self.doubts) for comparison in self.ratios.values())
        keys = ", ".join([*signs, *([f"{verdicts.DOUBTFUL} doubtful"] if doubtful else [])])
        level = numbers.percent(self.run.sweep.design.level)
        return f", and its ratio to {self.run.sweep.baseline} with its {level} interval{f': {keys}' if keys else ''}"

    def below(self, mean: Mean, metric: str) -> str:
        """Return the ratio of a cell to the baseline with its interval and verdict; of a cell without a ratio what its
        figure lacks."""
        comparison = self.ratios.get((metric, mean.label, mean.cell))
        late = f"n = {words.trial_count(mean.n, mean.censored)}" if mean.censored else ""
        if comparison is None or not verdicts.has_interval(comparison):
            figures = numbers.mean_figures(mean.mean, mean.low, mean.high)
            return late or ("" if figures.interval else "no interval")
        return " ".join(filter(None, [verdicts.signed_ratio(comparison, self.doubts), late]))


def _long_table(groups: Sequence[Rows], noun: str, caption: str) -> Html:
    """Return the file systems below each workload; the groups that the first screen has no room for behind a
    summary."""
    head: Head = ["File system", *numeric(noun), Column("Ratio", "interval")]
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


def _by_workload(run: RunView, metric: str, names: Sequence[str], figures: _RatiosByCell) -> Iterator[Rows]:
    """Yield the file systems below each workload, with their mean and ratio. What it cannot do is no row."""
    means = [m for m in means_of(run, metric) if metric in run.answer_metrics.get(m.workload_label, ())]
    keys, no_row = swatches(run), {*_impossible(run), *_labels_missing(run, metric)}
    for row, members in rows_of(means).items():
        by_name, scales = {m.filesystem: m for m in members}, _scales(members)
        rows: list[list[Text]] = []
        for name in names:
            mean, cell = by_name.get(name), cell_id(name, members[0].workload_label)
            if mean is None and cell in no_row:
                continue
            label = html.stacked(keys[name], "baseline") if name == run.sweep.baseline else keys[name]
            value = _mean_text(mean, scales[name]) if mean else _absent(run, cell, no_row)
            rows.append([label, value, figures.below(mean, metric) if mean else ""])
        yield Rows(rows, f"{row}: {metric_noun(metric)}")


def _mean_text(mean: Mean, scale: Scale) -> Html:
    """'67.2 MB/s', '2 880/s': not set below each other by their decimal points, as their units differ."""
    if mean.unit == "1/s":
        return Html.escape(f"{numbers.count_figures(mean.mean, mean.low, mean.high).value}/s")
    return Html.escape(f"{scale.show(mean.mean)} {scale.unit}".strip() if math.isfinite(mean.mean) else numbers.MISSING)


def _scales(means: Sequence[Mean]) -> dict[str, Scale]:
    """Return file system to the unit of its mean: one for all, or where they differ too much each its own."""
    sizes = {mean.filesystem: abs(mean.mean) for mean in means if math.isfinite(mean.mean)}
    common = scale_for(means[0].unit, max(sizes.values(), default=1))
    alike = min(sizes.values(), default=1) >= _LEAST_IN_UNIT * common.factor
    return {mean.filesystem: common if alike else scale_for(mean.unit, sizes.get(mean.filesystem, 1)) for mean in means}


def _overview_group(run: RunView, metric: str, names: Sequence[str], figures: _RatiosByCell) -> Rows:
    """Return one row a workload, with the mean of each file system, and below it its ratio."""
    means = [m for m in means_of(run, metric) if metric in run.answer_metrics.get(m.workload_label, ())]
    impossible, rows = _impossible(run), []
    for label, members in rows_of(means).items():
        by_name, scales = {m.filesystem: m for m in members}, _scales(members)
        row: list[Text] = [label]
        for name in names:
            if mean := by_name.get(name):
                row.append(html.stacked(_mean_text(mean, scales[name]), figures.below(mean, metric)))
            else:
                row.append(_absent(run, cell_id(name, members[0].workload_label), impossible))
        rows.append(row)
    return Rows(rows, metric_heading(metric))


def _absent(run: RunView, cell: str, impossible: Collection[str]) -> str:
    """Return what stands in the place of a figure: whether it is missing, cannot be measured, or is not asked for."""
    if cell in impossible:
        return words.NOT_MEASURED
    return numbers.MISSING if run.sweep.has_cell(cell) else words.NOT_IN_SWEEP


def caveats(run: RunView) -> Html:
    """Return caveats, worst first: a few open, and all that are not to be used; the others behind a summary, and what
    the sweep asked for behind another. Or that there is none. What was checked, and what could not be."""
    names = html.paragraph(f"{capital(numbers.listed(list(map(code_words, run.checks_passed))))}.")
    passed = html.details(no_caveats(run.checks_passed), names)
    if not run.caveats:
        return html.joined(html.box("caveat none", passed), not_checked(run))
    groups = grouped(run.caveats, only_cell=len(run.sweep.cells) == 1)
    requested = [group for group in groups if group.severity == "note" and group.asked]
    others = [group for group in groups if group not in requested]
    place = max(MOST_OPEN, sum(group.severity == "error" for group in others))
    more, count = others[place:], f"{numbers.counted(len(requested), 'note')} on what the sweep asks for"
    return html.joined(
        _boxes_and_notes(others[:place]),
        html.details(f"{numbers.counted(len(more), 'more caveat')}", _boxes_and_notes(more)) if more else "",
        html.details(count, html.caveat_notes(requested)) if requested else "",
        html.details(f"{numbers.counted(len(run.checks_passed), 'check')} passed", names),
        not_checked(run),
    )


def _boxes_and_notes(groups: Sequence[CaveatGroup]) -> Html:
    """Return what weakens figures in boxes, and notes as a list."""
    boxes = [html.caveat_box(group) for group in groups if group.severity != "note"]
    notes = [group for group in groups if group.severity == "note"]
    return html.joined(*boxes, html.caveat_notes(notes) if notes else "")


def not_checked(run: RunView) -> Html:
    """Return the checks that could not look at this run, and why."""
    if not run.not_checked:
        return html.paragraph("Every check could be made.", kind="meta")
    reasons = [html.labelled(capital(code_words(code)), why) for code, why in run.not_checked.items()]
    return html.details(f"{numbers.counted(len(reasons), 'check')} could not be made", html.items(reasons))
