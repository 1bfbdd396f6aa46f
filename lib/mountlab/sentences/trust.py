"""How far an answer can be trusted, and what to do next, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mountlab.analysis import load_curve
from mountlab.analysis.answers import answering
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import Reason, Trust
from mountlab.analysis.watched import is_watched
from mountlab.checks import CHECKS, OF_SEVERAL_RUNS
from mountlab.checks.load import runtime_needed_s
from mountlab.core.findings import Comparison
from mountlab.core.model import Sweep
from mountlab.core.names import code_words
from mountlab.core.numbers import counted, listed, number, rough_duration
from mountlab.core.text import capital
from mountlab.sentences.capacity import is_measured

_MOST_REASONS = 3
"""Reasons that the line names; of more it gives the number."""


def trust_lines(run: RunView, trust: Trust) -> list[tuple[str, str]]:
    """Return how far the answer of a run can be trusted, and what to do next, each below its name; nothing of a run
    whose searches have measured no capacity."""
    if run.sweep.searches and not any(map(is_measured, load_curve.searches(run))):
        return []
    undecided = [] if run.sweep.imported else answering(run)  # nothing can be added to logs
    steps = next_steps(trust, undecided, run.info.seconds, {**watch_advice(run.sweep), **_figures(run)})
    if run.info.status == "interrupted":
        steps = "Resume the run."
    warning = " Do not cite its figures." if trust.grade == "low" else ""
    lines = [(f"Trust: {trust.grade}", f"{trust_sentence(trust, run.checks_passed)}{warning}")]
    return [*lines, ("Next", steps)] if steps else lines


def trust_sentence(trust: Trust, checks_passed: Sequence[str]) -> str:
    """'Box busy in all 15 cells and drift in 2 of 15 cells.'; of an answer without a doubt the number of checks that
    passed."""
    passed = f", and {counted(len(checks_passed), 'check')} passed" if checks_passed else ""
    return f"{capital(reasons_text(trust) or f'no caveat weakens the answer{passed}')}."


def reasons_text(trust: Trust) -> str:
    """'box busy in all 15 cells and drift in 2 of 15 cells', of those that the answer rests on; '' without a doubt."""
    parts = [_reason_text(reason, trust.cells) for reason in trust.reasons[:_MOST_REASONS]]
    if more := trust.reasons[_MOST_REASONS:]:
        parts.append(counted(len(more), "more doubt"))
    if trust.unfinished:
        parts.append("the run is not complete")
    return listed(parts)


def _reason_text(reason: Reason, cells: int) -> str:
    name = f"{code_words(reason.code)} (do not use)" if reason.error else code_words(reason.code)
    if not reason.cells or cells == 1:
        return name
    whole = "both cells" if cells == 2 else f"all {cells} cells"
    return f"{name} in {whole if reason.cells == cells else f'{reason.cells} of {cells} cells'}"


def next_steps(
    trust: Trust, comparisons: Iterable[Comparison], seconds: float | None, advice: Mapping[str, str] | None = None
) -> str:
    """Return what to do next: about the gravest doubt, with how long a run takes; and how many blocks would decide
    what is undecided. '' where there is nothing to do. `advice`: code to what to do in this run, for some."""
    return " ".join(_next_steps(trust, comparisons, seconds, advice or {}))


def watch_advice(sweep: Sweep) -> dict[str, str]:
    """Return the advice that differs for a user of `mountlab watch`, who wrote no sweep; nothing of other runs."""
    return {code: check.watched for code, check in CHECKS.own.items() if check.watched} if is_watched(sweep) else {}


def _figures(run: RunView) -> dict[str, str]:
    """Return the advice that has figures of the run."""
    known = [search for search in load_curve.searches(run) if not math.isnan(search.capacity.mean)]
    if not known:
        return {}
    runtime = max(runtime_needed_s(search.search.objective, search.capacity.mean) for search in known)
    return {"few-late-requests": f"Make the trials longer: a `runtime` of at least {number(runtime, 0)} s."}


def _next_steps(
    trust: Trust, comparisons: Iterable[Comparison], seconds: float | None, figures: Mapping[str, str]
) -> Iterator[str]:
    texts = (figures.get(reason.code) or _advice(reason.code) for reason in trust.reasons)
    if advice := next(filter(None, texts), ""):
        takes = f" This run took {rough_duration(seconds)}." if seconds and seconds >= 1 else ""
        yield f"{advice}{takes}"
    undecided = [comparison for comparison in comparisons if comparison.verdict == "undecided"]
    needed = [comparison.needed for comparison in undecided if comparison.needed]
    if needed:
        of_all = "" if len(needed) == len(undecided) else f" of {len(undecided)}"
        open_ones = f"{len(needed)}{of_all} undecided comparisons" if undecided[1:] else "the undecided comparison"
        yield f"Up to {number(max(needed), 0)} blocks in all would decide {open_ones}."


def _advice(code: str) -> str:
    """Return what a reader can do about a caveat; '' for one of a plug-in that is not installed here."""
    kind = CHECKS.own.get(code) or OF_SEVERAL_RUNS.get(code)
    return kind.advice if kind else ""
