"""How far an answer can be trusted, and what to do next, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mountlab.analysis import load_curve
from mountlab.analysis.answers import answering
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import Reason, Trust, trust_of
from mountlab.checks import CHECKS, OF_SEVERAL_RUNS
from mountlab.core.findings import Comparison
from mountlab.core.names import code_words
from mountlab.core.numbers import counted, duration_text, listed, number
from mountlab.core.text import capital
from mountlab.report.sentences.capacity import is_measured

_MOST_REASONS = 3
"""Reasons that the line names; of more it gives the number."""


def trust_lines(run: RunView) -> list[tuple[str, str]]:
    """Return how far the answer of a run can be trusted, and what to do next, each below its name; nothing of a run
    whose searches have measured no capacity."""
    if run.sweep.searches and not any(map(is_measured, load_curve.searches(run))):
        return []
    trust = trust_of(run)
    stopped = run.info.status == "interrupted"
    steps = "Resume the run." if stopped else next_steps(trust, answering(run), run.info.seconds)
    lines = [(f"Trust: {trust.grade}", trust_sentence(trust, run.checks_passed))]
    return [*lines, ("Next", steps)] if steps else lines


def trust_sentence(trust: Trust, checks_passed: Sequence[str]) -> str:
    """'Box busy in all 15 cells, and drift in 2 of 15 cells.'; of an answer without a doubt the number of checks that
    passed. Cells are those that the answer rests on."""
    parts = [_reason_text(reason, trust.cells) for reason in trust.reasons[:_MOST_REASONS]]
    if more := trust.reasons[_MOST_REASONS:]:
        parts.append(counted(len(more), "more doubt"))
    if trust.unfinished:
        parts.append("the run is not complete")
    if not parts:
        passed = f", and {counted(len(checks_passed), 'check')} passed" if checks_passed else ""
        parts = [f"no caveat weakens the answer{passed}"]
    text = listed(parts)
    return f"{capital(text)}."


def _reason_text(reason: Reason, cells: int) -> str:
    name = f"do not use, {code_words(reason.code)}" if reason.error else code_words(reason.code)
    if not reason.cells:
        return f"{name} in the whole run"
    whole = {1: "the only cell", 2: "both cells"}.get(cells, f"all {cells} cells")
    return f"{name} in {whole if reason.cells == cells else f'{reason.cells} of {cells} cells'}"


def next_steps(trust: Trust, comparisons: Iterable[Comparison], seconds: float | None) -> str:
    """Return what to do next: about the gravest doubt, with how long a run takes; and how many blocks would decide
    what is undecided. '' where there is nothing to do."""
    return " ".join(_next_steps(trust, comparisons, seconds))


def _next_steps(trust: Trust, comparisons: Iterable[Comparison], seconds: float | None) -> Iterator[str]:
    if advice := next((text for reason in trust.reasons if (text := _advice(reason.code))), ""):
        takes = f" The run takes {duration_text(round(seconds))}." if seconds and seconds >= 1 else ""
        yield f"{advice}{takes}"
    undecided = [comparison for comparison in comparisons if comparison.verdict == "undecided"]
    needed = [comparison.needed for comparison in undecided if comparison.needed]
    if needed:
        open_ones = f"{len(needed)} of {counted(len(undecided), 'undecided comparison')}"
        yield f"Up to {number(max(needed), 0)} blocks would decide {open_ones}."


def _advice(code: str) -> str:
    """Return what a reader can do about a caveat; '' for one of a plug-in that is not installed here."""
    kind = CHECKS.own.get(code) or OF_SEVERAL_RUNS.get(code)
    return kind.advice if kind else ""
