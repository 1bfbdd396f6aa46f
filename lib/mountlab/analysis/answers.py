"""The answer of a run in a sentence, by the parts of its question, and what was expected of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.analysis.run_view import AnsweredRun
from mountlab.checks.asked import part_of
from mountlab.core.findings import Claim, Comparison
from mountlab.core.groups import by_key
from mountlab.core.numbers import TIMES, counted, listed, percent
from mountlab.wording import verdicts
from mountlab.wording.caveats import doubts_by_cell

_MOST_PARTS, _MOST_CLAUSES, _MOST_NAMES, _MOST_FIGURES = 5, 3, 3, 2
"""Workloads that are parts themselves; clauses of the answer, names in one, and ratios behind a
name: of more it gives the number, or none."""
ClaimState = Literal["confirmed", "contradicted", "open", "not measured"]
"""How the result stands to what was expected."""


@dataclass(frozen=True)
class Expected:
    """What was expected of a part of the question, and how the result stands to it."""

    part: str
    claim: Claim
    candidate: str
    """The file system that the claim is about; '' for all that are compared."""
    state: ClaimState
    text: str
    doubtful: bool
    """Whether a caveat weakens any comparison of it."""


def answering(run: AnsweredRun) -> list[Comparison]:
    """Return the comparisons of the metrics that the answer is about, with the intervals that hold for all together."""
    return [c for c in run.comparisons if c.metric in run.answer_metrics.get(verdicts.workload_of(c), ())]


def parts_of(run: AnsweredRun, comparisons: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    """Return the comparisons by the part of the question that they answer, parts in the order of the sweep. Where all
    of several workloads answer one part, each workload is a part."""
    rows, name_of = list(comparisons), _part_namer(run)
    parts = by_key((name_of(comparison), comparison) for comparison in rows)
    by_workload = by_key((comparison.workload, comparison) for comparison in rows)
    return by_workload if len(parts) == 1 < len(by_workload) <= _MOST_PARTS else parts


def _part_namer(run: AnsweredRun) -> Callable[[Comparison], str]:
    """Return a function from a comparison of the run to the part of the question that it answers."""
    workloads = {workload.label: workload for workload in run.sweep.workloads}

    def name_part(comparison: Comparison) -> str:
        workload = workloads[verdicts.workload_of(comparison)]
        return part_of(workload, comparison.metric, run.sweep.design, known=not run.sweep.imported)

    return name_part


def sentence(run: AnsweredRun, *, sure: bool = True) -> str:
    """Return the answer to the whole question: where each file system is faster or slower, by how much, or the same, or
    where none of these is shown. What a caveat weakens only looks so, and without `sure` all does.

    'tmpfs is faster than ext4 for flushed writes (×1.49) and cold reads (×5.0 and ×61), slower for warm reads (×0.39);
    xfs is undecided throughout.'
    """
    answer = answering(run)
    if not answer:
        return verdicts.nothing_compared(run.sweep.baseline, len(run.sweep.filesystems))
    if not any(map(verdicts.has_blocks, answer)):
        return f"Nothing is compared: no block has a figure of {answer[0].baseline} and of another file system."
    if all(comparison.verdict == "undecided" for comparison in answer):
        return f"No difference from {answer[0].baseline} is shown, in {verdicts.all_of(len(answer))}."
    smallest, parts = run.sweep.design.smallest_effect, parts_of(run, answer)
    candidates = list(dict.fromkeys(comparison.candidate for comparison in verdicts.strongest_first(answer)))
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    by_tally: dict[tuple[_Tally, bool], list[str]] = {}
    for candidate in candidates:
        own = {part: [c for c in group if c.candidate == candidate] for part, group in parts.items()}
        tally = _tally(own, smallest, figures=len(candidates) <= _MOST_CLAUSES)
        decided = [c for c in answer if c.candidate == candidate and c.verdict in ("faster", "slower")]
        doubtful = bool(decided) and (not sure or bool(_weak(decided, doubts)))
        by_tally.setdefault((tally, doubtful), []).append(candidate)
    baseline = f" than {answer[0].baseline}"
    clauses = []
    for (tally, doubtful), names in list(by_tally.items())[:_MOST_CLAUSES]:
        verb = ("looks", "look") if doubtful else ("is", "are")
        who = listed(names) if len(names) <= _MOST_NAMES else f"{len(names)} file systems"
        clauses.append(f"{who} {verb[len(names) > 1]} {_tally_text(tally, baseline)}")
        baseline = ""
    more = [name for names in list(by_tally.values())[_MOST_CLAUSES:] for name in names]
    return "; ".join([*clauses, *([f"{counted(len(more), 'more file system')} in the table"] if more else [])]) + "."


_DIRECTIONS = ("faster", "slower", "better", "worse")
_Tally = tuple[tuple[str, tuple[str, ...]], ...]
"""Verdict words to what they hold for."""


def _tally(parts: Mapping[str, Sequence[Comparison]], smallest: float, *, figures: bool) -> _Tally:
    """Return the tally of one candidate: parts of the question, and of a part whose comparisons differ its workloads,
    or where these are many their number. `figures`: whether ratios stand behind them."""
    rows: list[tuple[str, str]] = []
    for part, group in parts.items():
        fell = by_key((_verdict_words(comparison, smallest), comparison) for comparison in group)
        for verdict, members in fell.items():
            if len(fell) == 1:
                rows.append((verdict, f"{_spoken(part)}{_times(members) if figures else ''}"))
            elif len(group) <= _MOST_NAMES:
                rows += [(verdict, f"{verdicts.workload_of(c)}{_times([c]) if figures else ''}") for c in members]
            else:
                rows.append((verdict, f"{_spoken(part)} {_share_of(len(members), len(group))}"))
    order = [*map(str, verdicts.SIGNS)]
    by_verdict = sorted(by_key(rows).items(), key=lambda item: order.index(item[0]) if item[0] in order else 0)
    return tuple((verdict, tuple(names)) for verdict, names in by_verdict)


def _times(comparisons: Sequence[Comparison]) -> str:
    """' (×5.0 and ×61)' of a few decided comparisons; '' of others."""
    decided = [c for c in comparisons if c.verdict in _DIRECTIONS and math.isfinite(c.ratio)]
    if len(decided) != len(comparisons) or len(decided) > _MOST_FIGURES:
        return ""
    return f" ({listed([f'{TIMES}{verdicts.compared_figures(c).value}' for c in decided])})"


def _verdict_words(comparison: Comparison, smallest: float) -> str:
    has_figures = verdicts.has_blocks(comparison)
    return verdicts.verdict_of(comparison, smallest) if has_figures else "not measured on both sides"


def _spoken(part: str) -> str:
    """'cold reads'; of 'cold reads: median latency' 'median latency of cold reads'."""
    kind, _, noun = part.partition(": ")
    return f"{noun} of {kind}" if noun else part


def _tally_text(tally: _Tally, baseline: str) -> str:
    """'faster than ext4 for flushed writes, undecided for the rest'."""
    texts = []
    for place, (verdict, names) in enumerate(tally):
        rest = verdict == "undecided" and 0 < place == len(tally) - 1 and len(names) > 1
        whole = len(tally) == 1 and len(names) > 1 and (len(names) > _MOST_NAMES or verdict not in _DIRECTIONS)
        where = "throughout" if whole else f"for {'the rest' if rest else _where(names)}"
        texts.append(f"{_compared_with(verdict, baseline)} {where}")
        baseline = ""
    return ", ".join(texts)


def _compared_with(verdict: str, baseline: str) -> str:
    if verdict in _DIRECTIONS:
        return f"{verdict}{baseline}"
    if verdict.startswith("the same"):
        return f"{verdict}{baseline.replace('than', 'as')}"
    return "not to be used" if verdict == "not usable" else verdict


def _where(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return listed([*names[:_MOST_NAMES], f"{more} more"] if more > 0 else list(names))


def how_far(run: AnsweredRun) -> str:
    """Return the n that all ratios of the answer have in common, and at which level they hold; '' of a single one."""
    count = sum(map(verdicts.has_blocks, run.comparisons))
    if count < 2:
        return ""
    counts = {verdicts.counted_pairs(c) for c in answering(run) if verdicts.has_blocks(c) and not c.censored}
    alike = f"{counts.pop()} each. " if len(counts) == 1 else ""
    level = percent(run.sweep.design.level)
    how = "A ratio is the geometric mean of those within blocks, not the quotient of the means."
    return f"{alike}Verdicts and intervals hold at {level} for all {count} ratios together. {how}"


def _weak(comparisons: Sequence[Comparison], doubts: Mapping[str, Sequence[str]]) -> list[Sequence[str]]:
    """Return the codes of the doubts about each comparison that has any."""
    return [codes for comparison in comparisons if (codes := verdicts.doubts_about(comparison, doubts))]


# ── what was expected ────────────────────────────────────────────────────────────────────────────────────────────────


def expectations(run: AnsweredRun) -> list[Expected]:
    """Return each expectation of the sweep that names a part of the question, held against the comparisons of that
    part."""
    name_of = _part_namer(run)
    rows = [(comparison, (comparison.workload, name_of(comparison))) for comparison in answering(run)]
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    results = []
    for part, claims in run.sweep.expected.items():
        for candidate, claim in claims.items():
            group = [c for c, parts in rows if part in parts and candidate in ("", c.candidate)]
            weak = len(_weak(group, doubts))
            state, text = _claim_state(claim, group, weak)
            text += ", doubtful" if weak and state in ("open", "contradicted") else ""
            results.append(Expected(part, claim, candidate, state, text, weak > 0))
    return results


def _claim_state(claim: Claim, comparisons: Sequence[Comparison], weak: int) -> tuple[ClaimState, str]:
    """Return the state of a claim, and why: one contradiction contradicts it, and only all comparisons together confirm
    it. `weak`: how many of them are doubtful."""
    against = [c for c in comparisons if c.verdict not in (claim, "undecided", "not usable")]
    fell = [comparison.verdict for comparison in comparisons]
    total = len(comparisons)
    if not any(map(verdicts.has_interval, comparisons)):
        return "not measured", "no comparison of it has an interval"
    if against:
        strongest = [_short(comparison) for comparison in verdicts.strongest_first(against)[:2]]
        return "contradicted", f"contradicted {_share_of(len(against), total)}: {listed(strongest)}"
    if fell.count(claim) == total:
        which = "" if total == 1 else f"{'all' if weak == total else weak} of them "
        return "confirmed", f"held {_share_of(total, total)}" + (f", {which}doubtful" if weak else "")
    words = {claim: "held", "undecided": "undecided", "not usable": "not to be used"}
    texts = [f"{text} in {fell.count(verdict)}" for verdict, text in words.items() if verdict in fell]
    single = len(texts) == 1
    return (
        "open",
        f"{words[fell[0]]} {_share_of(total, total)}" if single else f"{listed(texts)} of {total} comparisons",
    )


def _share_of(count: int, total: int) -> str:
    return f"in {verdicts.all_of(total)}" if count == total else f"in {count} of {total} comparisons"


def _short(comparison: Comparison) -> str:
    """'tmpfs is slower under dd-read cache=warm, at 0.32 [0.21, 0.74] of ext4's speed'."""
    share = f"at {verdicts.share_text(comparison)} of {comparison.baseline}'s speed"
    ratio = share if verdicts.is_share(comparison) else verdicts.times_text(comparison)
    return f"{comparison.candidate} is {comparison.verdict} under {verdicts.workload_of(comparison)}, {ratio}"
