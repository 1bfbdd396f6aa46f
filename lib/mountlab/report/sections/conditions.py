"""What states and neighbours do: what each file system keeps, and whether its ratio to the baseline changes."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.analysis.answers import answering
from mountlab.analysis.conditions import Effects, effects_of
from mountlab.analysis.frames import condition_frame
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import trust_of
from mountlab.core import numbers
from mountlab.core.findings import Comparison, ConditionChange, Kept
from mountlab.core.frames import pd
from mountlab.core.groups import by_key
from mountlab.core.names import metric_heading
from mountlab.plots import Plot, plot_conditions
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Text
from mountlab.report.sections import frames
from mountlab.report.sections.shared import names_of, swatches
from mountlab.wording import conditions as words
from mountlab.wording import verdicts
from mountlab.wording.caveats import doubts_by_cell

_MOST_SENTENCES = 6


def _frame(run: RunView) -> pd.DataFrame:
    effects = effects_of(run)
    return condition_frame(run, [*effects.kept, *effects.changes])


@frames.attach(_frame)
def conditions(run: RunView) -> Html:
    """Return what each file system keeps of its figures in another state or beside a neighbour, and whether that
    changes its ratio to the baseline."""
    effects = effects_of(run)
    if not effects.kept:
        return html.nothing("This sweep has no states and no neighbours.")
    sentences = list(_sentences(run, effects))
    return html.joined(
        html.items(sentences[:_MOST_SENTENCES]) if sentences else "",
        html.paragraph(words.tally(effects.changes)) if len(effects.changes) > 1 else "",
        html.columns(*map(html.plot, condition_plots(run))) if effects.changes else "",
        _table(run, effects),
        html.paragraph(words.scope(len(effects.kept), len(effects.changes), run.sweep.design.level), kind="meta"),
    )


def condition_plots(run: RunView) -> Iterator[Plot]:
    """Yield the ratios to the baseline at each level, a figure for each condition."""
    for condition, changes in by_key((change.condition, change) for change in effects_of(run).changes).items():
        ratios = [comparison for comparison in answering(run) if verdicts.effect(comparison) >= 0]
        levels = list(dict.fromkeys([changes[0].reference, *(change.level for change in changes)]))
        if ratios:
            finding = words.finding(changes, sure=trust_of(run).grade != "low")
            order = names_of(run)
            yield plot_conditions(ratios, condition, levels=levels, finding=finding, filesystems=order)


def _sentences(run: RunView, effects: Effects) -> Iterator[str]:
    """Yield one for each change that is shown, flips first, then those by the size of the change; without a baseline
    one for each figure."""
    if not effects.changes:
        yield from map(words.kept_sentence, effects.kept)
    order = ("flips", "changes", "does not change")
    shown = [change for change in effects.changes if change.verdict in order]
    ranked = sorted(shown, key=lambda change: (order.index(change.verdict), -verdicts.effect(change.change)))
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    for change in ranked:
        weak = words.doubts_about(change, doubts)
        yield words.change_sentences(change, run.sweep.design.smallest_effect, weak)


def _table(run: RunView, effects: Effects) -> Html:
    """Return a row for each file system below each workload, figure and condition."""
    changes = {_row_of(change, change.change): change for change in effects.changes}
    marks, baseline = swatches(run), run.sweep.baseline
    rows: list[tuple[str, list[Text]]] = []
    for kept in effects.kept:
        name, change = kept.ratio.candidate, changes.get(_row_of(kept, kept.ratio))
        missing = ["", "", "", "baseline" if name == baseline else "not compared"]
        cells = _change_cells(run, change) if change else missing
        rows.append((_heading(kept), [marks.get(name, name), _figures(kept.ratio), *(cells if changes else [])]))
    ratios = [Column(f"Ratio to {baseline} before", "interval"), Column("after", "interval")]
    of_changes: Head = [*ratios, Column("Change", "interval"), "Verdict"]
    head: Head = ["File system", Column("Kept", "interval"), *(of_changes if changes else [])]
    caption = f"What each file system keeps{f', and how its ratio to {baseline} changes' if changes else ''}"
    return html.grouped_table(head, rows, caption=caption)


def _row_of(row: Kept | ConditionChange, ratio: Comparison) -> tuple[str, ...]:
    return (row.condition, ratio.candidate, verdicts.workload_of(ratio), ratio.metric, ratio.label)


def _heading(kept: Kept) -> str:
    """'Operation rate under app: from state fresh to state aged'."""
    heading = metric_heading(kept.ratio.metric, kept.ratio.label)
    before, after = (text.removeprefix("in ") for text in (words.reference(kept), words.where(kept)))
    return f"{heading} under {words.workload_of(kept)}: from {before} to {after}"


def _change_cells(run: RunView, change: ConditionChange) -> list[Text]:
    doubtful = words.doubts_about(change, doubts_by_cell(run.caveats, run.sweep.own_metrics))
    figures = f"{_figures(change.change)}{f' {verdicts.DOUBTFUL}' if doubtful else ''}"
    verdict = words.verdict_text(change, run.sweep.design.smallest_effect)
    return [_figures(change.before), _figures(change.after), figures, verdict]


def _figures(ratio: Comparison) -> str:
    return str(verdicts.compared_figures(ratio)) if verdicts.has_interval(ratio) else numbers.MISSING
