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
Held = Literal["confirmed", "contradicted", "open", "not measured"]
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
    held: Held
    text: str


def answering(run: AnsweredRun) -> list[Comparison]:
    """Return the comparisons of the metrics that the answer is about, with the intervals that hold for all together."""
    return [c for c in run.comparisons if c.metric in run.answer_metrics.get(verdicts.workload_of(c), ())]


def parts_of(run: AnsweredRun, comparisons: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    """Return the comparisons by the part of the question that they answer, parts in the order of the sweep. Where all
    of several workloads answer one part, each workload is a part."""
    parts: dict[str, list[Comparison]] = {}
    by_workload: dict[str, list[Comparison]] = {}
    name_of = _namer(run)
    for each in comparisons:
        parts.setdefault(name_of(each), []).append(each)
        by_workload.setdefault(each.workload, []).append(each)
    return by_workload if len(parts) == 1 < len(by_workload) <= _MOST_PARTS else parts


def _namer(run: AnsweredRun) -> Callable[[Comparison], str]:
    """Return what tells the part of the question that a comparison of the run answers."""
    workloads, known = {workload.label: workload for workload in run.sweep.workloads}, not run.sweep.imported

    def part(each: Comparison) -> str:
        return part_of(workloads[verdicts.workload_of(each)], each.metric, run.sweep.design, known=known)

    return part


def lines(run: AnsweredRun) -> list[AnswerLine]:
    """Return the answer: a line for each part of the question, what in a part points another way, and how far it holds.
    Where nothing is decided, that comes first."""
    found = answering(run)
    if not found:
        return [AnswerLine("", verdicts.nothing_compared(run.sweep.baseline, len(run.sweep.filesystems)))]
    smallest, parts = run.sweep.design.smallest_effect, parts_of(run, found)
    undecided = all(each.verdict == "undecided" for each in found)
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    return [
        *([AnswerLine("", verdicts.summary(found, smallest))] if undecided else []),
        *(AnswerLine(part, _part_text(own, smallest, doubts)) for part, own in list(parts.items())[:_MOST_PARTS]),
        *([AnswerLine("", f"{_more(list(parts)[_MOST_PARTS:])}.")] if len(parts) > _MOST_PARTS else []),
        *(AnswerLine("", text) for text in _exceptions(parts.values(), smallest)),
        *_how_far(run, found, ranges=any(len(own) > len({each.candidate for each in own}) for own in parts.values())),
    ]


def _more(parts: Sequence[str]) -> str:
    return f"{counted(len(parts), 'more part')} of the question ({listed(parts)}): in the results"


def _how_far(run: AnsweredRun, answer: Sequence[Comparison], *, ranges: bool) -> list[AnswerLine]:
    """Return the n that all have in common, at which level the intervals hold, and that ranges are no intervals."""
    count = sum(map(verdicts.has_blocks, run.comparisons))
    if count < 2:
        return []
    counts = {verdicts.counted_pairs(each) for each in answer if verdicts.has_blocks(each) and not each.censored}
    alike = f"{counts.pop()} each. " if len(counts) == 1 else ""
    held = f"Verdicts and intervals hold at {percent(run.sweep.design.level)} for all {count} comparisons together."
    spans = " A range covers the ratios only: the plot shows their intervals." if ranges else ""
    return [AnswerLine("", f"{alike}{held}{spans}")]


def _part_text(own: Sequence[Comparison], smallest: float, doubts: Mapping[str, Sequence[str]]) -> str:
    """Return what each file system does in one part of the question, the strongest effect first; those to which the
    same befell together."""
    by_candidate = by_key((each.candidate, each) for each in verdicts.strongest_first(own))
    names = list(by_candidate)
    groups = {name: by_candidate[name] for name in names[:_MOST_CANDIDATES]}
    if rest := names[_MOST_CANDIDATES:]:
        groups[f"the other {len(rest)}"] = [each for name in rest for each in by_candidate[name]]
    as_shares = all(map(verdicts.is_share, groups[names[0]]))
    fell = by_key(
        (_fell(group, smallest), f"{name} {_times(group, as_shares=as_shares)}") for name, group in groups.items()
    )
    tallies = [(listed(ranges), f": {'each ' * (len(ranges) > 1)}{tally}") for tally, ranges in fell.items()]
    unit = [f" {_as(own, as_shares=as_shares)}", *[""] * (len(tallies) - 1)]  # what the ratios are of is said once
    clauses = (f"{ranges}{of}{tally}" for (ranges, tally), of in zip(tallies, unit, strict=True))
    return f"{'; '.join(clauses)}.{_doubtful(own, doubts)}"


def _fell(own: Sequence[Comparison], smallest: float) -> str:
    """'faster in all 3 comparisons'; of one comparison its verdict, or why it has none."""
    if len(own) > 1:
        return verdicts.tally_of(own, smallest)
    return verdicts.verdict_or_why(own[0], smallest)


def _times(own: Sequence[Comparison], *, as_shares: bool) -> str:
    """'1.9 to 3.5 times', from the least to the greatest ratio; of one comparison with its interval. With `as_shares`
    'at 0.3 to 0.5', where the strongest effect of the part is a loss of speed."""
    if len(own) == 1:
        return f"at {verdicts.share_text(own[0])}" if as_shares else verdicts.times_text(own[0])
    ratios = sorted(each.ratio for each in own if math.isfinite(each.ratio))
    ends = dict.fromkeys(ratio_figures(each, math.nan, math.nan).value for each in (*ratios[:1], *ratios[-1:]))
    ratio = " to ".join(ends)
    return (f"at {ratio}" if as_shares else f"{ratio} times") if ends else "without a ratio"


def _as(own: Sequence[Comparison], *, as_shares: bool) -> str:
    """'as fast as ext4', 'of ext4's speed', 'the 99th-percentile read latency of ext4'."""
    first = own[0]
    if as_shares:
        return f"of {first.baseline}'s speed"
    if METRICS.get(first.metric) in ("B/s", "1/s") and first.metric != "capacity":
        return f"as fast as {first.baseline}"
    return f"the {metric_noun(first.metric)} of {first.baseline}"


def _doubtful(own: Sequence[Comparison], doubts: Mapping[str, Sequence[str]]) -> str:
    """' 3 of 6 comparisons are doubtful: implausible.', by the caveats of the cells; '' where there is none."""
    weak = _weak(own, doubts)
    if not weak:
        return ""
    names = listed(sorted({code_words(code) for each in weak for code in each}))
    if len(weak) == len(own):
        return f" Doubtful: {names}."
    return f" {len(weak)} of {len(own)} comparisons {'is' if len(weak) == 1 else 'are'} doubtful: {names}."


def _weak(own: Sequence[Comparison], doubts: Mapping[str, Sequence[str]]) -> list[Sequence[str]]:
    """Return the doubts about each comparison that has any."""
    return [found for each in own if (found := verdicts.doubts_about(each, doubts))]


def _exceptions(parts: Iterable[Sequence[Comparison]], smallest: float) -> list[str]:
    """Decided comparisons that point the other way than most of their part, the strongest first."""
    against = [each for own in parts for each in _against(own)]
    named = verdicts.strongest_first(against)[:_MOST_EXCEPTIONS]
    return [f"But {verdicts.comparison_sentence(each, smallest_effect=smallest, name_n=False)}" for each in named]


def _against(own: Sequence[Comparison]) -> list[Comparison]:
    faster = [each for each in own if each.verdict == "faster"]
    slower = [each for each in own if each.verdict == "slower"]
    return [] if len(faster) == len(slower) else min(faster, slower, key=len)


# ── what was expected ────────────────────────────────────────────────────────────────────────────────────────────────


def expected(run: AnsweredRun) -> list[Expected]:
    """Return each expectation of the sweep that names a part of the question, held against the comparisons of that
    part."""
    found, name_of = answering(run), _namer(run)
    parts = {id(each): (each.workload, name_of(each)) for each in found}
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)

    def held(part: str, claim: Claim, candidate: str) -> Expected:
        own = [each for each in found if part in parts[id(each)] and candidate in ("", each.candidate)]
        return _held(part, claim, candidate, own, len(_weak(own, doubts)))

    return [
        held(part, claim, candidate)
        for part, claims in run.sweep.expected.items()
        for candidate, claim in claims.items()
    ]


def _held(part: str, claim: Claim, candidate: str, own: Sequence[Comparison], weak: int) -> Expected:
    """Return the state of a claim: one contradiction contradicts it, and only all comparisons together confirm it."""
    against = [each for each in own if each.verdict not in (claim, "undecided")]
    unclear = [each for each in own if each.verdict == "undecided"]
    if not any(map(verdicts.has_interval, own)):
        return Expected(part, claim, candidate, "not measured", "no comparison of it has an interval")
    if against:
        text = f"{_count(against, own)}: {listed([_short(each) for each in verdicts.strongest_first(against)[:2]])}"
        return Expected(part, claim, candidate, "contradicted", text)
    if unclear:
        return Expected(part, claim, candidate, "open", f"undecided {_count(unclear, own)}")
    return Expected(part, claim, candidate, "confirmed", _count(own, own) + _how_doubtful(weak, len(own)))


def _how_doubtful(weak: int, of: int) -> str:
    """', 2 of them doubtful', of so many comparisons."""
    if not weak:
        return ""
    return ", doubtful" if of == 1 else f", {'all' if weak == of else weak} of them doubtful"


def _count(some: Sequence[Comparison], own: Sequence[Comparison]) -> str:
    if len(some) == len(own):
        return f"in {verdicts.all_of(len(own))}"
    return f"in {len(some)} of {len(own)} comparisons"


def _short(each: Comparison) -> str:
    """'tmpfs is slower under dd-read cache=warm, at 0.32 [0.21, 0.74] of ext4's speed'."""
    share = f"at {verdicts.share_text(each)} of {each.baseline}'s speed"
    ratio = share if verdicts.is_share(each) else verdicts.times_text(each)
    return f"{each.candidate} is {each.verdict} under {verdicts.workload_of(each)}, {ratio}"
