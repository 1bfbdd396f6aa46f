"""What comparisons say, in words: faster, slower, the same, undecided; and the answer of a whole run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mountlab.core.findings import Agreement, Comparison, PublishedFigure, Verdict
from mountlab.core.groups import by_key
from mountlab.core.names import cell_id as cell_id_
from mountlab.core.names import metric_noun, metric_words, workload_label
from mountlab.core.numbers import Figures, counted, level_text, listed, number, percent, ratio_figures
from mountlab.stats import OVER_BOXES_METHOD, WELCH_METHOD
from mountlab.stats.power import blocks_when_quieter
from mountlab.stats.run_spread import RUNS_METHOD
from mountlab.wording.caveats import doubt_key, doubt_text

SIGNS: Mapping[Verdict, str] = {
    "faster": "↑ faster", "slower": "↓ slower", "same": "= same", "undecided": "? undecided",
    "not usable": "✕ do not use",
}  # fmt: skip
"""A verdict with a sign for those who skim, none of them a mark of a file system, in the order in which verdicts are
counted."""
DOUBTFUL = "†"
"""Stands behind the figures of a comparison that a caveat weakens."""
AGREEMENT_SIGNS: Mapping[Agreement, str] = {
    "agrees": "✓ agrees", "same direction, smaller": "≈ same direction, smaller",
    "same direction, larger": "≈ same direction, larger", "contradicts": "✗ contradicts", "undecided": "? undecided",
    "not measured": "not measured",
}  # fmt: skip
"""How ours stands to what was published, with a sign."""


def cell_id(filesystem: str, comparison: Comparison) -> str:
    """Return the id of the cell of one side of a comparison, as `model.Cell.id` makes it."""
    return cell_id_(filesystem, workload_label(comparison.workload, comparison.factors))


def effect(comparison: Comparison) -> float:
    """Return the size of an effect, whichever way it goes: |log ratio|. An unknown ratio sorts last, as -1."""
    return abs(math.log(comparison.ratio)) if 0 < comparison.ratio < math.inf else -1.0


def compared_figures(comparison: Comparison) -> Figures:
    """Ratio and interval as text; of a verdict `same` with the level of the interval, which is not that of the page."""
    shown = comparison.verdict_interval
    figures = ratio_figures(comparison.ratio, shown.low, shown.high)
    return replace(figures, level=level_text(shown.level)) if shown is comparison.equivalence else figures


def has_interval(comparison: Comparison) -> bool:
    """Return whether both bounds are known: `why_no_interval` says when they are not. They may be infinite."""
    return comparison.verdict_interval.is_known


def why_no_interval(comparison: Comparison) -> str:
    """Return why a comparison without an interval has none."""
    if comparison.metric == "capacity":
        return "the trials bound the ratio on neither side"
    return "n is below 2" if comparison.n < 2 else "all trials are alike, and the step of the figure is unknown"


def pair_count(comparison: Comparison) -> str:
    """'10', or '10, 2 at the limit (median)': n of a comparison, with the blocks in which a side ran into its limit."""
    late = comparison.censored
    return f"{comparison.n}, {late} at the limit ({_kind(comparison)})" if late else str(comparison.n)


def _kind(comparison: Comparison) -> str:
    """Return what the ratio of a comparison with trials at the time limit is."""
    return "median" if math.isfinite(comparison.ratio) else "only a bound" if comparison.n else "no ratio"


def counted_pairs(comparison: Comparison) -> str:
    """'n = 5 blocks'; of a comparison that is not paired, the trials of the side with fewer. Where trials ran into
    their time limit, in how many blocks, and what the ratio then is."""
    if comparison.censored:
        limit = f"with trials at the time limit in {counted(comparison.censored, 'block')}"
        return f"n = {counted(comparison.n, 'block')} that tell, {limit}, so that the ratio is a median"
    if comparison.method in (WELCH_METHOD, RUNS_METHOD):
        return f"n = {comparison.n} on the side with fewer trials"
    return f"n = {counted(comparison.n, _unit_of(comparison))}"


def _unit_of(comparison: Comparison) -> str:
    """Return what n counts."""
    return "box" if comparison.method == OVER_BOXES_METHOD else "block"


def strongest_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Decided comparisons by the size of their effect, then those shown to be the same, the undecided, and those that
    are not to be used."""
    rank = {"faster": 0, "slower": 0, "same": 1, "undecided": 2, "not usable": 3}
    return sorted(comparisons, key=lambda c: (rank[c.verdict], -effect(c)))


def verdict_text(verdict: Verdict, smallest_effect: float) -> str:
    """'faster', 'slower', 'the same within 2 %', 'undecided'."""
    return f"the same within {percent(smallest_effect)}" if verdict == "same" else verdict


def verdict_of(comparison: Comparison, smallest_effect: float) -> str:
    """Return the same of one comparison; 'better' and 'worse' where the sweep defines the metric, which may be no
    speed."""
    own = _OF_OWN_METRICS.get(comparison.verdict) if comparison.better else None
    return own or verdict_text(comparison.verdict, smallest_effect)


def verdict_or_why(comparison: Comparison, smallest_effect: float) -> str:
    """Return the verdict and what would decide it; or why there is none."""
    if not has_interval(comparison):
        return f"none: {why_no_interval(comparison)}"
    return verdict_of(comparison, smallest_effect) + needed(comparison)


_OF_OWN_METRICS: Mapping[Verdict, str] = {"faster": "better", "slower": "worse"}


def comparison_sentence(
    comparison: Comparison,
    *,
    smallest_effect: float,
    doubts: Sequence[str] = (),
) -> str:
    """Return one comparison as a sentence: ratio, interval, verdict, n, and the codes of the caveats that weaken it.

    'tmpfs writes 6.9 times [6.5, 7.3] as fast as ext4 under dd op=write: faster; n = 5 blocks.'
    """
    under = f" under {workload_label(comparison.workload, comparison.factors)}"
    doubt = f" Doubtful: {doubt_text(doubts)}." if doubts else ""
    if not has_interval(comparison):
        return _without_interval(comparison, under) + doubt
    claim = _CLAIMS[comparison.verdict](comparison, under, smallest_effect)
    return f"{claim}; {counted_pairs(comparison)}{needed(comparison)}.{doubt}"


def most_needed(comparisons: Iterable[Comparison]) -> str:
    """Return what it would take to decide all that is undecided: what the one needs that takes most; '' where nothing
    is, or it is unknown."""
    undecided = [comparison for comparison in comparisons if comparison.verdict == "undecided"]
    takes_most = max(undecided, key=lambda c: (math.isfinite(c.reduce), c.reduce, c.needed or 0), default=None)
    return needed(takes_most) if takes_most else ""


def needed(comparison: Comparison) -> str:
    """Return what it would take to decide, where that can be said: blocks, runs of each side or boxes, or less noise
    where these are too many."""
    of_runs = comparison.method == RUNS_METHOD
    plural = "runs of each side" if of_runs else counted(2, _unit_of(comparison)).removeprefix("2 ")
    if comparison.needed:
        return f"; up to {number(comparison.needed, 0)} {plural} needed"
    if not math.isfinite(comparison.reduce):
        return ""
    factor = number(comparison.reduce, 1 if comparison.reduce < 10 else 0)
    blocks = f"{blocks_when_quieter(1 if of_runs else comparison.n)} {plural}"
    source = f" ({_noise_text(comparison)})" if comparison.noise else ""
    return f"; {blocks} suffice only with {factor} times less noise{source}"


def _noise_text(comparison: Comparison) -> str:
    """'most of it is in tmpfs, from trial to trial'."""
    side = {"candidate": comparison.candidate, "baseline": comparison.baseline}.get(comparison.noise)
    return f"most of it is in {side}, from trial to trial" if side else _NOISE[comparison.noise]


_NOISE: Mapping[str, str] = {
    "both": "noise from trial to trial, on both sides alike",
    "one block": "most of it is one block that lies far off",
    "few blocks": "most of it is a few blocks that lie far off",
    "step": "most of it is a step of the ratio between two blocks",
    "drift": "most of it is a drift of the ratio over the blocks",
    "two modes": "the ratio has two modes",
    "rounding": "most of it is rounding by the tool",
    "boxes": "the boxes differ",
    "unknown": "too few blocks to find its source",
}


def times_text(comparison: Comparison) -> str:
    """'6.9 times [6.5, 7.3]'; where only a bound is known 'at least 3.2 times'."""
    low, high = comparison.verdict_interval.low, comparison.verdict_interval.high
    if ((low > 0) != (high < math.inf)) and (math.isnan(comparison.ratio) or not comparison.censored):
        side, end = ("least", low) if low > 0 else ("most", high)
        return f"at {side} {ratio_figures(end, end, end).value} times"
    figures = compared_figures(comparison)
    return f"{figures.value} times {figures.interval}".strip()


def share_text(comparison: Comparison) -> str:
    """'0.34 [0.30, 0.38]': a ratio below 1, as a share of the baseline's speed."""
    figures = compared_figures(comparison)
    return f"{figures.value} {figures.interval}".strip()


def is_speed(comparison: Comparison) -> bool:
    """Return whether its ratio is of a speed, so that a larger one is 'times as fast'."""
    return "as fast as" in metric_words(comparison.metric).ratio


def is_share(comparison: Comparison) -> bool:
    """Return whether a sentence gives the ratio as a share of a speed: '0.34 of ext4's speed', not '0.34 times'."""
    return is_speed(comparison) and comparison.ratio < 1


def _ratio_clause(comparison: Comparison, under: str) -> str:
    label = f" ({comparison.label})" if comparison.label else ""
    value = share_text(comparison) if is_share(comparison) else times_text(comparison)
    return f"{_ratio_words(comparison, value)}{label}{under}"


def _ratio_words(comparison: Comparison, value: str) -> str:
    """'tmpfs writes 6.9 times as fast as ext4', 'tmpfs reads at 0.34 of ext4's speed'."""
    template = metric_words(comparison.metric).ratio
    if is_share(comparison):
        template = template.replace("{times} as fast as {baseline}", "at {times} of {baseline}'s speed")
    return template.format(candidate=comparison.candidate, baseline=comparison.baseline, times=value)


def _decided(comparison: Comparison, under: str, smallest_effect: float) -> str:
    verdict = verdict_of(comparison, smallest_effect)
    hint = "" if comparison.more_is_better else ", as less is better"
    if math.isnan(comparison.ratio) and comparison.censored:
        return f"{_bound_clause(comparison, under)}: {verdict}{hint}"
    return f"{_ratio_clause(comparison, under)}: {verdict}{hint}"


def _bound_clause(comparison: Comparison, under: str) -> str:
    """Of a ratio whose median lies among trials that did not end: on which side, and the bound where there is one."""
    noun = metric_noun(comparison.metric, comparison.label)
    slow = comparison.candidate if comparison.verdict == "slower" else comparison.baseline
    above = comparison.verdict_interval.low > 1
    end = comparison.verdict_interval.low if above else comparison.verdict_interval.high
    bound = f"at {'least' if above else 'most'} {ratio_figures(end, end, end).value}"
    limit = f" is {bound}" if 0 < end < math.inf else " has no bound"
    what = f"the ratio of {comparison.candidate} to {comparison.baseline} in {noun}"
    return f"Most trials of {slow}{under} ran into their time limit, so that {what}{limit}"


def _same(comparison: Comparison, under: str, smallest_effect: float) -> str:
    noun = metric_noun(comparison.metric, comparison.label)
    figures = compared_figures(comparison)
    pair = f"{comparison.candidate} and {comparison.baseline}"
    return f"{pair} have the same {noun} within {percent(smallest_effect)}{under}: ratio {figures}"


def _undecided(comparison: Comparison, under: str, smallest_effect: float) -> str:
    noun = metric_noun(comparison.metric, comparison.label)
    figures = compared_figures(comparison)
    return (
        f"Undecided: whether the {noun} of {comparison.candidate} differs from that of {comparison.baseline}{under}"
        f"; ratio {figures}"
    )


def _not_usable(comparison: Comparison, under: str, smallest_effect: float) -> str:
    return f"{_ratio_clause(comparison, under)}, but not to be used"


_CLAIMS = {
    "faster": _decided, "slower": _decided, "same": _same, "undecided": _undecided, "not usable": _not_usable,
}  # fmt: skip


def _without_interval(comparison: Comparison, under: str) -> str:
    if not math.isfinite(comparison.ratio):
        noun = metric_noun(comparison.metric, comparison.label)
        pair = f"{comparison.candidate} and {comparison.baseline}"
        if comparison.metric == "capacity":
            return f"How the {noun} of {pair} compare{under} is open: {why_no_interval(comparison)}."
        missing = f"No {_unit_of(comparison)} holds the {noun} of both {pair}{under}, so they cannot be compared"
        late = counted(comparison.censored, "block") if comparison.censored else ""
        return f"{missing}: trials ran into the time limit in {late}." if late else f"{missing}."
    blocks = counted(comparison.n, _unit_of(comparison))
    why = f"; {why_no_interval(comparison)}" if comparison.n > 1 else ""
    return f"{_ratio_clause(comparison, under)}; n = {blocks}{why}, so there is no interval and no verdict."


def nothing_compared(baseline: str | None, filesystems: int) -> str:
    """Return why there is no comparison at all."""
    if filesystems < 2:
        return "There is one file system only, so nothing is compared; its means are below."
    if baseline is None:
        return "No baseline is named, so nothing is compared; the means are below."
    return "Nothing can be compared: no trial succeeded."


def doubts_about(comparison: Comparison, doubts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the codes of the caveats that weaken one of its two cells."""
    cells = (cell_id(comparison.candidate, comparison), cell_id(comparison.baseline, comparison))
    return sorted(
        {code for cell in cells for code in doubts.get(doubt_key(cell, comparison.metric), doubts.get(cell, ()))}
    )


def signed_ratio(comparison: Comparison, doubts: Mapping[str, Sequence[str]]) -> str:
    """'↑ 1.55 [1.43, 1.65]': the sign of the verdict, ratio and interval, and a mark where a caveat weakens it."""
    sign = SIGNS[comparison.verdict].partition(" ")[0]
    mark = f" {DOUBTFUL}" if doubts_about(comparison, doubts) else ""
    return f"{sign} {compared_figures(comparison)}{mark}"


def finding(
    comparisons: Sequence[Comparison], smallest_effect: float, doubts: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return the largest effect that no caveat weakens in one line, or that there is none: the title of a plot of
    ratios."""
    decided = [comparison for comparison in comparisons if comparison.verdict in ("faster", "slower")]
    sound = [comparison for comparison in decided if not doubts_about(comparison, doubts or {})]
    if sound:
        first = strongest_first(sound)[0]
        shown = share_text(first) if is_share(first) else times_text(first)
        which = "largest effect" if len(sound) == len(decided) else "largest effect that is not doubtful"
        under = workload_label(first.workload, first.factors)
        return f"The {which}: {_ratio_words(first, shown)} under {under}"
    if decided:
        shows = (
            f"{len(decided)} of {counted(len(comparisons), 'comparison')} {'shows' if len(decided) == 1 else 'show'}"
        )
        return f"{shows} a difference, {'but it is doubtful' if len(decided) == 1 else 'all of them doubtful'}"
    if all(comparison.verdict == "same" for comparison in comparisons):
        return f"All are the same as {comparisons[0].baseline} within {percent(smallest_effect)}"
    return f"Nothing is shown to be faster or slower than {comparisons[0].baseline}"


def has_blocks(comparison: Comparison) -> bool:
    """Return whether any block has both sides, or one of them ran into the time limit."""
    return comparison.n > 0 or comparison.censored > 0


def summary(comparisons: Sequence[Comparison], smallest_effect: float) -> str:
    """Return how often each verdict fell: 'Against ext4, in all: tmpfs is faster in 6 and undecided in 1 of 7
    comparisons'."""
    baselines = listed(sorted({c.baseline for c in comparisons}))
    if all(comparison.verdict == "undecided" for comparison in comparisons):
        most = max(comparisons, key=lambda comparison: comparison.n)
        blocks = f"n = {counted(most.n, _unit_of(most))}"
        count = sum(map(has_blocks, comparisons)) or len(comparisons)
        return f"Nothing is shown to be faster or slower than {baselines}, in {count} comparisons; {blocks}."
    by_candidate = by_key((comparison.candidate, comparison) for comparison in strongest_first(comparisons))
    alike = by_key((tally_of(group, smallest_effect), name) for name, group in by_candidate.items())
    tallies = [f"{listed(names)} {'are each' if len(names) > 1 else 'is'} {tally}" for tally, names in alike.items()]
    return f"Against {baselines}, in all: {'; '.join(tallies)}."


def tally(fell: Mapping[Verdict, int], smallest_effect: float, *, none: int = 0) -> str:
    """'faster in 6, undecided in 3 and without an interval in 1', the last for `none` without a verdict."""
    parts = [f"{verdict_text(verdict, smallest_effect)} in {fell[verdict]}" for verdict in SIGNS if fell.get(verdict)]
    return listed([*parts, *([f"without an interval in {none}"] if none else [])])


def tally_of(group: Sequence[Comparison], smallest_effect: float) -> str:
    """'faster in 6 and undecided in 1 (dd-read cache=warm) of 7 comparisons': exceptions are named if they are few.
    Without a figure of both sides there is no comparison."""
    group = [c for c in group if has_blocks(c)] or group
    fell = {verdict: [workload_of(c) for c in group if c.verdict == verdict] for verdict in SIGNS}
    present = [verdict for verdict in SIGNS if fell[verdict]]
    if len(present) == 1:
        return f"{verdict_text(present[0], smallest_effect)} in {all_of(len(group))}"
    parts = [
        f"{verdict_text(verdict, smallest_effect)} in {len(where)}"
        + (f" ({listed(sorted(where))})" if len(where) <= min(2, (len(group) - 1) // 2) else "")
        for verdict, where in fell.items()
        if where
    ]
    return f"{listed(parts)} of {len(group)} comparisons"


def workload_of(comparison: Comparison) -> str:
    """Return the label of the workload of a comparison."""
    return workload_label(comparison.workload, comparison.factors)


def all_of(n: int) -> str:
    """Return 'both comparisons' of 2."""
    return {1: "its only comparison", 2: "both comparisons"}.get(n, f"all {n} comparisons")


def ours_beside(published: PublishedFigure, comparisons: Iterable[Comparison]) -> Comparison | None:
    """Our comparison of the same two file systems under the same workload and metric, or None if we have none."""
    same = ("candidate", "baseline", "workload", "metric", "label")
    for ours in comparisons:
        same_factors = all(ours.factors.get(key) == value for key, value in published.factors.items())
        if same_factors and all(getattr(ours, name) == getattr(published, name) for name in same):
            return ours
    return None


def published_sentence(pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> str:
    """Return how many published ratios point the same way as ours."""
    measured = [(theirs, ours) for theirs, ours in pairs if ours is not None and math.isfinite(ours.ratio)]
    if not measured:
        return "None of the published ratios was measured in this run."
    decided = [(theirs, ours) for theirs, ours in measured if ours.verdict in ("faster", "slower")]
    agree = sum((theirs.ratio > 1) == (ours.ratio > 1) for theirs, ours in decided)
    against = len(decided) - agree
    same = sum(ours.verdict == "same" for _, ours in measured)
    single = sum(not has_interval(ours) for _, ours in measured)
    undecided = len(measured) - len(decided) - same - single
    parts = [
        f"{agree} {'points' if agree == 1 else 'point'} the same way as ours" if agree else "",
        f"{against} {'points' if against == 1 else 'point'} the other way" if against else "",
        f"for {same} ours is the same" if same else "",
        f"for {undecided} ours is undecided" if undecided else "",
        f"for {single} ours has no interval, and so no verdict" if single else "",
    ]
    return f"Of {counted(len(measured), 'published ratio')}, {listed([part for part in parts if part])}."


def claim_text(theirs: PublishedFigure) -> str:
    """'11 times', or 'slower', or 'the same within 10 %'."""
    if theirs.claim is None:
        return f"{ratio_figures(theirs.ratio, math.nan, math.nan).value} times"
    return f"the same within {percent(theirs.within)}" if theirs.within is not None else theirs.claim


def agreement_text(agreement: Agreement, why: str, *, signs: bool = False) -> str:
    """Return how ours stands to what was published, or why it is not compared; with a sign for those who skim."""
    if why:
        return f"not compared: {why}"
    return AGREEMENT_SIGNS[agreement].replace(" ", "\u00a0") if signs else agreement


_SPOKEN: Mapping[Agreement, str] = {
    "agrees": "agrees with",
    "same direction, smaller": "has a smaller effect in the same direction than",
    "same direction, larger": "has a larger effect in the same direction than",
    "contradicts": "contradicts",
    "undecided": "is undecided for",
}


def agreement_sentence(agreements: Sequence[Agreement]) -> str:
    """'Of 9 published results that were measured, ours agrees with 6, contradicts 1 and is undecided for 2; 3 were not
    measured.', 'Ours is undecided for the one published result that was measured.'"""
    counts = {spoken: agreements.count(agreement) for agreement, spoken in _SPOKEN.items()}
    measured, missing = sum(counts.values()), len(agreements) - sum(counts.values())
    parts = [f"{spoken} {count}" for spoken, count in counts.items() if count]
    absent = f"{missing} {'was' if missing == 1 else 'were'} not measured"
    end = f"; {absent}." if missing else "."
    if not measured:
        return (
            "The one published result was not measured."
            if missing == 1
            else f"None of {missing} published results was measured."
        )
    if measured == 1:
        spoken = next(spoken for spoken, count in counts.items() if count)
        return f"Ours {spoken} the one published result that was measured{end}"
    return f"Of {counted(measured, 'published result')} that were measured, ours {listed(parts)}{end}"
