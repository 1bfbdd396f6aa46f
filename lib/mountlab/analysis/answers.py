"""The answer of a run by the parts of its question: a line for each, what points another way, and what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.analysis.run_view import AnsweredRun
from mountlab.checks.asked import part_of
from mountlab.core.findings import Claim, Comparison
from mountlab.core.groups import by_key
from mountlab.core.metrics import METRICS
from mountlab.core.names import code_words, metric_noun
from mountlab.core.numbers import counted, listed, percent, ratio_figures
from mountlab.wording import verdicts
from mountlab.wording.caveats import doubts_by_cell

_MOST_PARTS, _MOST_CANDIDATES, _MOST_EXCEPTIONS = 5, 3, 3
"""Lines of the answer, file systems in one, and exceptions below them; of more it gives the number."""
ClaimState = Literal["confirmed", "contradicted", "open", "not measured"]
"""How the result stands to what was expected."""


@dataclass(frozen=True)
class AnswerLine:
    """One line of an answer, below its part of the question; '' where it is about all of them."""

    part: str
    text: str

    def __str__(self) -> str:
        return f"{self.part[:1].upper()}{self.part[1:]}: {self.text}" if self.part else self.text


@dataclass(frozen=True)
class Expected:
    """What was expected of a part of the question, and how the result stands to it."""

    part: str
    claim: Claim
    candidate: str
    """The file system that the claim is about; '' for all that are compared."""
    state: ClaimState
    text: str


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


def lines(run: AnsweredRun) -> list[AnswerLine]:
    """Return the answer: a line for each part of the question, what in a part points another way, and how far it holds.
    Where nothing is decided, that comes first."""
    answer = answering(run)
    if not answer:
        return [AnswerLine("", verdicts.nothing_compared(run.sweep.baseline, len(run.sweep.filesystems)))]
    smallest, parts = run.sweep.design.smallest_effect, parts_of(run, answer)
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    texts = [verdicts.summary(answer, smallest)] if all(c.verdict == "undecided" for c in answer) else []
    rows = [AnswerLine("", text) for text in texts]
    rows += [AnswerLine(part, _part_text(group, smallest, doubts)) for part, group in list(parts.items())[:_MOST_PARTS]]
    if more := list(parts)[_MOST_PARTS:]:
        text = f"{counted(len(more), 'more part')} of the question ({listed(more)}): in the results."
        rows.append(AnswerLine("", text))
    against = [comparison for group in parts.values() for comparison in _minority(group)]
    for comparison in verdicts.strongest_first(against)[:_MOST_EXCEPTIONS]:
        sentence = verdicts.comparison_sentence(comparison, smallest_effect=smallest, name_n=False)
        rows.append(AnswerLine("", f"But {sentence}"))
    ranges = any(len(group) > len({comparison.candidate for comparison in group}) for group in parts.values())
    return [*rows, *_how_far(run, answer, ranges=ranges)]


def _how_far(run: AnsweredRun, answer: Sequence[Comparison], *, ranges: bool) -> list[AnswerLine]:
    """Return the n that all have in common, at which level the intervals hold, and that ranges are no intervals."""
    count = sum(map(verdicts.has_blocks, run.comparisons))
    if count < 2:
        return []
    counts = {verdicts.counted_pairs(c) for c in answer if verdicts.has_blocks(c) and not c.censored}
    alike = f"{counts.pop()} each. " if len(counts) == 1 else ""
    joint = f"Verdicts and intervals hold at {percent(run.sweep.design.level)} for all {count} comparisons together."
    spans = " A range covers the ratios only: the plot shows their intervals." if ranges else ""
    return [AnswerLine("", f"{alike}{joint}{spans}")]


def _part_text(comparisons: Sequence[Comparison], smallest: float, doubts: Mapping[str, Sequence[str]]) -> str:
    """Return what each file system does in one part of the question, the strongest effect first; those with the same
    tally of verdicts together."""
    by_candidate = by_key((comparison.candidate, comparison) for comparison in verdicts.strongest_first(comparisons))
    names = list(by_candidate)
    groups = {name: by_candidate[name] for name in names[:_MOST_CANDIDATES]}
    if rest := names[_MOST_CANDIDATES:]:
        groups[f"the other {len(rest)}"] = [comparison for name in rest for comparison in by_candidate[name]]
    as_shares = all(map(verdicts.is_share, groups[names[0]]))
    by_tally: dict[str, list[str]] = {}
    for name, group in groups.items():
        several = len(group) > 1
        tally = verdicts.tally_of(group, smallest) if several else verdicts.verdict_or_why(group[0], smallest)
        by_tally.setdefault(tally, []).append(f"{name} {_times(group, as_shares=as_shares)}")
    unit = f" {_unit(comparisons[0], as_shares=as_shares)}"  # what the ratios are of stands in the first clause only
    clauses = []
    for tally, ranges in by_tally.items():
        clauses.append(f"{listed(ranges)}{unit}: {'each ' * (len(ranges) > 1)}{tally}")
        unit = ""
    return f"{'; '.join(clauses)}.{_doubtful(comparisons, doubts)}"


def _times(comparisons: Sequence[Comparison], *, as_shares: bool) -> str:
    """'1.9 to 3.5 times', from the least to the greatest ratio; of one comparison with its interval. With `as_shares`
    'at 0.3 to 0.5', where the strongest effect of the part is a loss of speed."""
    if len(comparisons) == 1:
        return f"at {verdicts.share_text(comparisons[0])}" if as_shares else verdicts.times_text(comparisons[0])
    ratios = sorted(comparison.ratio for comparison in comparisons if math.isfinite(comparison.ratio))
    ends = dict.fromkeys(ratio_figures(ratio, math.nan, math.nan).value for ratio in (*ratios[:1], *ratios[-1:]))
    text = " to ".join(ends)
    return (f"at {text}" if as_shares else f"{text} times") if ends else "without a ratio"


def _unit(comparison: Comparison, *, as_shares: bool) -> str:
    """'as fast as ext4', 'of ext4's speed', 'the 99th-percentile read latency of ext4'."""
    if as_shares:
        return f"of {comparison.baseline}'s speed"
    if METRICS.get(comparison.metric) in ("B/s", "1/s") and comparison.metric != "capacity":
        return f"as fast as {comparison.baseline}"
    return f"the {metric_noun(comparison.metric)} of {comparison.baseline}"


def _doubtful(comparisons: Sequence[Comparison], doubts: Mapping[str, Sequence[str]]) -> str:
    """' 3 of 6 comparisons are doubtful: implausible.', by the caveats of the cells; '' where there is none."""
    weak = _weak(comparisons, doubts)
    if not weak:
        return ""
    names = listed(sorted({code_words(code) for codes in weak for code in codes}))
    if len(weak) == len(comparisons):
        return f" Doubtful: {names}."
    return f" {len(weak)} of {len(comparisons)} comparisons {'is' if len(weak) == 1 else 'are'} doubtful: {names}."


def _weak(comparisons: Sequence[Comparison], doubts: Mapping[str, Sequence[str]]) -> list[Sequence[str]]:
    """Return the codes of the doubts about each comparison that has any."""
    return [codes for comparison in comparisons if (codes := verdicts.doubts_about(comparison, doubts))]


def _minority(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the decided comparisons that point the other way than most of their part."""
    faster = [comparison for comparison in comparisons if comparison.verdict == "faster"]
    slower = [comparison for comparison in comparisons if comparison.verdict == "slower"]
    return [] if len(faster) == len(slower) else min(faster, slower, key=len)


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
            state, text = _claim_state(claim, group, len(_weak(group, doubts)))
            results.append(Expected(part, claim, candidate, state, text))
    return results


def _claim_state(claim: Claim, comparisons: Sequence[Comparison], weak: int) -> tuple[ClaimState, str]:
    """Return the state of a claim, and why: one contradiction contradicts it, and only all comparisons together confirm
    it. `weak`: how many of them are doubtful."""
    against = [comparison for comparison in comparisons if comparison.verdict not in (claim, "undecided")]
    unclear = [comparison for comparison in comparisons if comparison.verdict == "undecided"]
    total = len(comparisons)
    if not any(map(verdicts.has_interval, comparisons)):
        return "not measured", "no comparison of it has an interval"
    if against:
        strongest = [_short(comparison) for comparison in verdicts.strongest_first(against)[:2]]
        return "contradicted", f"{_share_of(len(against), total)}: {listed(strongest)}"
    if unclear:
        return "open", f"undecided {_share_of(len(unclear), total)}"
    which = "" if total == 1 else f"{'all' if weak == total else weak} of them "
    return "confirmed", _share_of(total, total) + (f", {which}doubtful" if weak else "")


def _share_of(count: int, total: int) -> str:
    return f"in {verdicts.all_of(total)}" if count == total else f"in {count} of {total} comparisons"


def _short(comparison: Comparison) -> str:
    """'tmpfs is slower under dd-read cache=warm, at 0.32 [0.21, 0.74] of ext4's speed'."""
    share = f"at {verdicts.share_text(comparison)} of {comparison.baseline}'s speed"
    ratio = share if verdicts.is_share(comparison) else verdicts.times_text(comparison)
    return f"{comparison.candidate} is {comparison.verdict} under {verdicts.workload_of(comparison)}, {ratio}"
