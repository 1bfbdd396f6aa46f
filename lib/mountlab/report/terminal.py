"""The answer of a run for a terminal: a small table and the caveats, counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mountlab.analysis import load_curve
from mountlab.analysis.load_curve import CellSearch
from mountlab.analysis.run_view import RunView
from mountlab.checks import stated_facts
from mountlab.core.findings import Caveat, Comparison
from mountlab.core.model import Sweep
from mountlab.core.names import workload_label
from mountlab.core.numbers import counted
from mountlab.core.text import aligned, lines_of
from mountlab.report.sentences import capacity as capacity_sentences
from mountlab.report.sentences.why import answer_lines
from mountlab.wording import extension_words, verdicts
from mountlab.wording.caveats import grouped

_MOST = 6
"""Cells whose unequal work is shown in a line each."""


def run_answer(run: RunView) -> str:
    """Return the answer of a run; of a run that searched for capacities, these stand before the comparisons."""
    found = load_curve.searches(run) if run.sweep.searches else []
    known = run.info.facts.surveyed.stated or {}
    differing = stated_facts.differing(known)
    behind = [f"{subject}: {text}" if subject else text for subject, text in answer_lines(run)]
    return answer_text(run.sweep, run.comparisons, run.caveats, searches=found, behind=behind, differing=differing)


def answer_text(
    sweep: Sweep,
    comparisons: Sequence[Comparison],
    caveats: Sequence[Caveat],
    *,
    searches: Sequence[CellSearch] = (),
    behind: Sequence[str] = (),
    differing: Sequence[str] = (),
) -> str:
    """Question; a sentence and a row a search, or a row a comparison (ratio to the baseline, 95 % interval, verdict);
    what lies behind them; the options in which imported logs differ; then the caveats, worst first."""
    question = " ".join(sweep.question.split())
    if searches:
        lines = capacity_sentences.answer_lines(sweep, searches, comparisons, caveats)
        said = [f"{label}: {text}" if label else text for label, text in lines]
        table = [*said, "", *_capacities(sweep, searches), *_how_far(sweep, comparisons)]
    else:
        table = [*_table(sweep, comparisons)]
    options = ["Options in which the logs differ, or that only some state:", *differing, ""] if differing else []
    causes = [*behind, ""] if behind else []
    return lines_of([question, "", *table, "", *causes, *options, *_caveats(caveats)])


def _capacities(sweep: Sweep, searches: Sequence[CellSearch]) -> Iterator[str]:
    level = f"{sweep.design.level:.0%} interval"
    head = ("workload", "file system", f"capacity, {capacity_sentences.UNIT}", level, "search")
    rows = (
        (each.cell.workload.label, each.cell.filesystem.name, *capacity_sentences.capacity_figures(each),
         capacity_sentences.stop_sentence(each))
        for each in searches
    )  # fmt: skip
    yield from aligned([head, *rows])


def _table(sweep: Sweep, comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        yield verdicts.nothing_compared(sweep.baseline, len(sweep.filesystems)).replace("below", "in the report")
        return
    metrics: dict[str, set[str]] = {}
    for each in comparisons:
        metrics.setdefault(workload_label(each.workload, each.factors), set()).add(each.metric)
    head = ("workload", "metric", "compared", "ratio", f"{sweep.design.level:.0%} interval", "n", "verdict")
    rows: list[tuple[str, ...]] = [head, *(_row(each, sweep.design.smallest_effect) for each in comparisons)]
    if all(len(names) == 1 for names in metrics.values()):  # then the workload says which it is
        rows = [(row[0], *row[2:]) for row in rows]
    yield from aligned(rows)
    yield from _how_far(sweep, comparisons)


def _how_far(sweep: Sweep, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield what the intervals and verdicts hold for, and what they allow for."""
    if (count := sum(map(verdicts.has_blocks, comparisons))) > 1:
        yield f"(Intervals and verdicts hold for all {count} comparisons together.)"
    if corrected := extension_words.looks_text(sweep):
        yield f"({corrected})"


def _row(each: Comparison, smallest_effect: float) -> tuple[str, ...]:
    figures = verdicts.compared_figures(each)
    what = workload_label(each.workload, each.factors) + (f" ({each.label})" if each.label else "")
    shown = (figures.value, figures.interval, verdicts.pair_count(each), _verdict(each, smallest_effect))
    return (what, each.metric, f"{each.candidate} / {each.baseline}", *shown)


def _verdict(each: Comparison, smallest_effect: float) -> str:
    if verdicts.has_interval(each):
        return verdicts.verdict_of(each, smallest_effect)
    missing = "time limit in all blocks" if each.censored else "no block has both"
    return f"none: {verdicts.why_no_interval(each)}" if each.n else f"none: {missing}"


def _caveats(caveats: Sequence[Caveat]) -> Iterator[str]:
    """Errors and warnings, a single one and the first error with what was seen; the notes in one line. The report has
    the rest."""
    if not caveats:
        yield "No caveats."
    groups = grouped(caveats)
    for group in groups:
        if group.severity != "note":
            first = f"{group.caveats[0].subject}: " if len(group.caveats) > 1 else ""
            explained = not first or group.severity == "error"
            yield f"{group.severity}: {group.heading}{f': {first}{group.first_sentence}' if explained else ''}"
            if first and group.code == "unequal-work":  # it says what each ratio above is of
                yield from (f"  {each.subject}: {grouped([each])[0].first_sentence}" for each in group.caveats[:_MOST])
                left = len(group.caveats) - _MOST
                yield from [f"  and {counted(left, 'more cell')}, in the report"] if left > 0 else []
    if notes := [group.heading for group in groups if group.severity == "note"]:
        yield f"{counted(len(notes), 'note')}: {', '.join(notes)}"
