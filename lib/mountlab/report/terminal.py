"""The answer of a run for a terminal: a small table and the caveats, counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mountlab.analysis import load_curve
from mountlab.analysis.conditions import effect_sentence
from mountlab.analysis.load_curve import CellSearch
from mountlab.analysis.promises import answer_sentence, promise_lines
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import trust_of
from mountlab.checks import stated_facts
from mountlab.core.findings import Caveat, Comparison
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep
from mountlab.core.names import metric_noun
from mountlab.core.numbers import counted, quantity
from mountlab.core.text import aligned, lines_of
from mountlab.sentences import capacity as capacity_sentences
from mountlab.sentences.damage import damage_lines
from mountlab.sentences.trust import trust_lines
from mountlab.sentences.watched import watched_text
from mountlab.sentences.why import answer_lines
from mountlab.wording import extension_words, verdicts
from mountlab.wording.caveats import grouped

_MOST = 6
"""Cells whose unequal work is shown in a line each."""


def run_answer(run: RunView) -> str:
    """Return the answer of a run; of a run that searched for capacities, these stand before the comparisons."""
    searches = load_curve.searches(run) if run.sweep.searches else []
    options = run.info.facts.surveyed.stated or {}
    differing = stated_facts.differing(options)
    behind = [f"{subject}: {text}" if subject else text for subject, text in answer_lines(run)]
    behind += map(str, promise_lines(run))
    trust = trust_of(run)
    if seen := watched_text(run):
        means = zip(*(run.estimates[name] for name in ("metric", "label", "mean", "unit", "n")), strict=True)
        rows = [
            (metric_noun(metric, label), quantity(mean, unit), f"n = {n}")
            for metric, label, mean, unit, n in means
            if math.isfinite(mean)
        ]
        lines = [f"{name}. {text}" for name, text in trust_lines(run, trust)]
        caveats = _caveats(run.caveats, only_cell=len(run.sweep.cells) == 1)
        question = " ".join(run.sweep.question.split())
        figures = [*aligned(rows), ""] if rows else []
        return lines_of([question, "", *seen, *lines, "", *figures, *caveats])
    answer = [] if searches else [*damage_lines(run), answer_sentence(run, trust)]
    answer += filter(None, [effect_sentence(run, trust)])
    first = [*answer, *(f"{name}. {text}" for name, text in trust_lines(run, trust))]
    return answer_text(
        run.sweep, run.comparisons, run.caveats, first=first, searches=searches, behind=behind, differing=differing
    )


def answer_text(
    sweep: Sweep,
    comparisons: Sequence[Comparison],
    caveats: Sequence[Caveat],
    *,
    first: Sequence[str] = (),
    searches: Sequence[CellSearch] = (),
    behind: Sequence[str] = (),
    differing: Sequence[str] = (),
) -> str:
    """Question; a sentence a search; the answer and its trust (`first`); a row a search, or a row a comparison (ratio
    to the baseline, 95 % interval, verdict); what lies behind them; the options in which imported logs differ; then the
    caveats, worst first."""
    head = [" ".join(sweep.question.split()), ""]
    if searches:
        lines = capacity_sentences.answer_lines(sweep, searches, comparisons, caveats)
        head += [f"{label}: {text}" if label else text for label, text in lines]
        level = f"{sweep.design.level:.0%} interval"
        rows = [("workload", "file system", f"capacity, {capacity_sentences.UNIT}", level, "search")]
        for search in searches:
            figures, end = capacity_sentences.capacity_figures(search), capacity_sentences.stop_sentence(search)
            rows.append((search.cell.workload.label, search.cell.filesystem.name, *figures, end))
        table = [*aligned(rows), *_how_far(sweep, comparisons)]
    else:
        table = [*_table(sweep, comparisons)]
    options = ["Options in which the logs differ, or that only some state:", *differing, ""] if differing else []
    causes = [*behind, ""] if behind else []
    above = [*head, *first, ""] if searches or first else head
    return lines_of([*above, *table, "", *causes, *options, *_caveats(caveats)])


def _table(sweep: Sweep, comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        yield verdicts.nothing_compared(sweep.baseline, len(sweep.filesystems)).replace("below", "in the report")
        return
    metrics = by_key((verdicts.workload_of(comparison), comparison.metric) for comparison in comparisons)
    head = ("workload", "metric", "compared", "ratio", f"{sweep.design.level:.0%} interval", "n", "verdict")
    rows: list[tuple[str, ...]] = [head]
    for comparison in comparisons:
        figures, n = verdicts.compared_figures(comparison), verdicts.pair_count(comparison)
        what = verdicts.workload_of(comparison) + (f" ({comparison.label})" if comparison.label else "")
        missing = "time limit in all blocks" if comparison.censored else "no block has both"
        verdict = f"none: {verdicts.why_no_interval(comparison) if comparison.n else missing}"
        if verdicts.has_interval(comparison):
            verdict = verdicts.verdict_of(comparison, sweep.design.smallest_effect)
        pair = f"{comparison.candidate} / {comparison.baseline}"
        rows.append((what, comparison.metric, pair, figures.value, figures.interval, n, verdict))
    if all(len(set(names)) == 1 for names in metrics.values()):  # then the workload says which it is
        rows = [(row[0], *row[2:]) for row in rows]
    yield from aligned(rows)
    yield from _how_far(sweep, comparisons)


def _how_far(sweep: Sweep, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield what the intervals and verdicts hold for, and what they allow for."""
    if (count := sum(map(verdicts.has_blocks, comparisons))) > 1:
        yield f"(Intervals and verdicts hold for all {count} comparisons together.)"
    if corrected := extension_words.looks_text(sweep):
        yield f"({corrected})"


def _caveats(caveats: Sequence[Caveat], *, only_cell: bool = False) -> Iterator[str]:
    """Errors and warnings, a single one and the first error with what was seen; the notes in one line. The report has
    the rest."""
    if not caveats:
        yield "No caveats."
    groups = grouped(caveats, only_cell=only_cell)
    for group in groups:
        if group.severity != "note":
            first = f"{group.caveats[0].subject}: " if len(group.caveats) > 1 else ""
            explained = not first or group.severity == "error"
            yield f"{group.severity}: {group.heading}{f': {first}{group.first_sentence}' if explained else ''}"
            if first and group.code == "unequal-work":  # it says what each ratio above is of
                yield from (
                    f"  {caveat.subject}: {grouped([caveat])[0].first_sentence}" for caveat in group.caveats[:_MOST]
                )
                more = len(group.caveats) - _MOST
                yield from [f"  and {counted(more, 'more cell')}, in the report"] if more > 0 else []
    if notes := [group.heading for group in groups if group.severity == "note"]:
        yield f"{counted(len(notes), 'note')}: {', '.join(notes)}"
