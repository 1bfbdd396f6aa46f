"""What states and neighbours change, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from mountlab.core.conditions import condition_words
from mountlab.core.findings import ChangeVerdict, Comparison, ConditionChange, Kept
from mountlab.core.groups import by_key
from mountlab.core.names import metric_noun, workload_label
from mountlab.core.numbers import TIMES, Figures, counted, listed, percent, ratio_figures
from mountlab.core.text import capital
from mountlab.wording import verdicts
from mountlab.wording.caveats import doubt_text

SIGNS: Mapping[ChangeVerdict, str] = {
    "flips": "⇅ flips", "changes": "≠ changes", "does not change": "= does not change", "undecided": "? undecided",
    "not usable": verdicts.SIGNS["not usable"],
}  # fmt: skip
"""A verdict with a sign for those who skim."""
_MOST_WORKLOADS = 3
"""Workloads that a sentence names; of more it gives the number."""
Under = ConditionChange | Kept


def workload_of(change: Under) -> str:
    """Return the label of a workload without the condition."""
    ratio = change.ratio if isinstance(change, Kept) else change.change
    return workload_label(ratio.workload, {k: v for k, v in ratio.factors.items() if k != change.condition})


def where(change: Under) -> str:
    """'in state aged'."""
    return condition_words(change.condition, change.level)


def reference(change: Under) -> str:
    """'in state fresh', 'alone'."""
    return condition_words(change.condition, change.reference)


def doubts_about(change: ConditionChange, doubts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the codes of the caveats that weaken one of its four cells."""
    return sorted({code for ratio in (change.before, change.after) for code in verdicts.doubts_about(ratio, doubts)})


def change_sentences(change: ConditionChange, smallest_effect: float, doubts: Sequence[str] = ()) -> str:
    """Return whether a condition changes a ratio: how it was, how it is, and what each of the two loses; and the codes
    of the caveats that weaken it."""
    return _change_sentences(change, smallest_effect) + (f" Doubtful: {doubt_text(doubts)}." if doubts else "")


def _change_sentences(change: ConditionChange, smallest_effect: float) -> str:
    ours = change.change
    noun, pair = metric_noun(ours.metric, ours.label), f"{ours.candidate} to {ours.baseline}"
    under = f"{where(change)} under {workload_of(change)}"
    if change.verdict == "flips":
        before, after = (verdicts.compared_figures(ratio) for ratio in (change.before, change.after))
        return (
            f"The ranking flips {under}: the {noun} of {ours.candidate} is {before} times that of {ours.baseline} "
            f"{reference(change)}, and {after} times {where(change)}. There {_losses(change)}."
        )
    if change.verdict == "changes":
        return f"{capital(under)}, {_losses(change)}."
    figures = verdicts.compared_figures(ours)
    if change.verdict == "does not change":
        same = f"within {percent(smallest_effect)} of that {reference(change)}"
        return f"{capital(under)}, the ratio of {pair} in {noun} stays {same}: change {figures}."
    if change.verdict == "not usable":
        return f"{capital(under)}, the ratio of {pair} in {noun} is not to be used."
    if not verdicts.has_interval(ours):
        return f"Whether the ratio of {pair} in {noun} changes {under} is open: {why_open(change)}."
    return f"Undecided: whether the ratio of {pair} in {noun} changes {under}; {figures}{verdicts.needed(ours)}."


def _losses(change: ConditionChange) -> str:
    """'btrfs loses more than ext4: its write IOPS falls to 0.50 [0.49, 0.52] of that in state fresh, that of ext4 to
    0.59 [0.57, 0.62], a factor of 1.18 [1.13, 1.23] between them'."""
    ours, kept, theirs = change.change, change.kept, change.baseline_kept
    ends = f"{_moves(kept)} that {reference(change)}", _moves(theirs).removesuffix(" of")
    verb = ends[0].partition(" ")[0]
    own, other = ends[0], ends[1].removeprefix(f"{verb} ")
    figures = f"its {metric_noun(ours.metric, ours.label)} {own}, that of {ours.baseline} {other}"
    if not verdicts.has_interval(ours):
        return f"{_who_loses(change)}: {figures}; the factor between them is open, as {why_open(change)}"
    return f"{_who_loses(change)}: {figures}, a factor of {_factor(ours)} between them"


def _moves(kept: Comparison) -> str:
    """'falls to 0.50 [0.49, 0.52] of', 'rises to 2.3 [2.2, 2.4] times'; 'is 1.01 [0.98, 1.04] times' where that is not
    shown."""
    figures = verdicts.compared_figures(kept)
    if kept.verdict not in ("faster", "slower"):
        return f"is {figures} times"
    return f"falls to {figures} of" if kept.ratio < 1 else f"rises to {figures} times"


def _factor(change: Comparison) -> Figures:
    """Return by how much one loses or gains more than the other: the larger of the ratio of ratios and its inverse."""
    interval, ratio = change.verdict_interval, change.ratio
    if ratio >= 1:
        return ratio_figures(ratio, interval.low, interval.high)
    return ratio_figures(1 / ratio, 1 / interval.high, 1 / interval.low if interval.low > 0 else math.inf)


def _who_loses(change: ConditionChange) -> str:
    """'btrfs loses more than ext4', where both are shown to lose; 'the ratio of btrfs to ext4 changes' where
    neither is shown to change."""
    candidate, baseline = change.change.candidate, change.change.baseline
    own, theirs = _gain(change.kept), _gain(change.baseline_kept)
    if not own and not theirs:
        return f"the ratio of {candidate} to {baseline} changes"
    if not own or not theirs:
        shown, other, gain = (candidate, baseline, own) if own else (baseline, candidate, theirs)
        return f"{shown} {'loses' if gain < 0 else 'gains'}, which is not shown of {other}"
    if own < 0 < theirs:
        return f"{candidate} loses, and {baseline} does not"
    if theirs < 0 < own:
        return f"{baseline} loses, and {candidate} does not"
    verb = "loses" if own < 0 else "gains"
    return f"{candidate} {verb} {'more' if (own < theirs) == (own < 0) else 'less'} than {baseline}"


def _gain(kept: Comparison) -> float:
    """Return the logarithm of what is kept, above 0 where it is better; 0 where no change is shown."""
    is_shown = kept.verdict in ("faster", "slower") and not math.isnan(kept.ratio)
    return math.log(kept.ratio) * (1 if kept.more_is_better else -1) if is_shown else 0.0


def why_open(change: ConditionChange) -> str:
    """Return why there is no ratio of ratios."""
    if change.change.censored:
        return "trials ran into their time limit"
    if change.change.metric == "capacity":
        return "searches have no blocks"
    if not verdicts.has_blocks(change.change):
        return "no block holds all four figures"
    return verdicts.why_no_interval(change.change)


def kept_sentence(kept: Kept) -> str:
    """'In state aged under app, the write IOPS of ext4 falls to 0.59 [0.57, 0.62] of that in state fresh.'"""
    noun = metric_noun(kept.ratio.metric, kept.ratio.label)
    what = f"{capital(where(kept))} under {workload_of(kept)}, the {noun} of {kept.ratio.candidate}"
    if not verdicts.has_interval(kept.ratio):
        return f"{what} has no ratio to that {reference(kept)}: {verdicts.why_no_interval(kept.ratio)}."
    return f"{what} {_moves(kept.ratio)} that {reference(kept)}."


def first_sentence(changes: Sequence[ConditionChange], *, sure: bool = True) -> str:
    """Return what conditions do to the answer, for a first screen: where rankings flip; else the strongest change, and
    how many more there are; else that none is shown. '' of no changes. Without `sure` all of it only looks so."""
    if not changes:
        return ""
    flipping = [change for change in changes if change.verdict == "flips"]
    if flipping:
        groups = by_key(((where(change), change.change.candidate, _direction(change)), change) for change in flipping)
        flips = "; ".join(_flip(group, sure) for group in groups.values())
        return f"The ranking {'flips' if sure else 'seems to flip'}: {flips}."
    changing = [change for change in changes if change.verdict == "changes"]
    if not changing:
        return f"No ratio is shown to change {' or '.join(dict.fromkeys(map(where, changes)))}."
    strongest = max(changing, key=lambda change: verdicts.effect(change.change))
    more = len(changing) - 1
    also = f" {capital(counted(more, 'more ratio'))} change{'s' if more == 1 else ''}." if more else ""
    seems = "" if sure else "it looks as if "
    return f"{capital(where(strongest))} under {workload_of(strongest)}, {seems}{_losses(strongest)}.{also}"


def finding(changes: Sequence[ConditionChange], *, sure: bool = True) -> str:
    """Return what the changes come to in a few words: the title of a plot. Without `sure` it only looks so."""
    flipping = [change for change in changes if change.verdict == "flips"]
    if flipping:
        strongest = max(flipping, key=lambda change: verdicts.effect(change.change))
        pair = f"{strongest.change.candidate} and {strongest.change.baseline}"
        more = f"; {len(flipping) - 1} more flip{'s' if len(flipping) == 2 else ''}" if len(flipping) > 1 else ""
        flips = "flips" if sure else "seems to flip"
        return f"{capital(where(strongest))} the ranking of {pair} {flips} under {workload_of(strongest)}{more}"
    changing = sum(change.verdict == "changes" for change in changes)
    if not changing:
        return "No ratio is shown to change"
    return f"{changing} of {counted(len(changes), 'ratio')} {'changes' if changing == 1 else 'change'}, none flips"


def _direction(change: ConditionChange) -> str:
    return f"{change.before.verdict} {change.after.verdict} {change.reference}"


def _flip(changes: Sequence[ConditionChange], sure: bool) -> str:
    """'btrfs is faster than ext4 in state fresh (×1.10) and slower in state aged (×0.91) under app'."""
    first, ratios = changes[0], (changes[0].before, changes[0].after)
    figures = [f" ({TIMES}{verdicts.compared_figures(ratio).value})" if len(changes) == 1 else "" for ratio in ratios]
    before, after = (verdicts.verdict_of(ratio, 0) for ratio in ratios)
    workloads = list(dict.fromkeys(map(workload_of, changes)))
    more = len(workloads) - _MOST_WORKLOADS
    named = [*workloads[:_MOST_WORKLOADS], *([f"{more} more"] if more > 0 else [])]
    return (
        f"{first.change.candidate} {'is' if sure else 'looks'} {before} than {first.change.baseline} "
        f"{reference(first)}{figures[0]} and {after} {where(first)}{figures[1]} under {listed(named)}"
    )


def tally(changes: Sequence[ConditionChange]) -> str:
    """'Of 6 ratios 1 flips, 2 change and 3 are undecided.'"""
    counts = Counter(change.verdict for change in changes)
    verbs: Mapping[ChangeVerdict, tuple[str, str]] = {
        "flips": ("flips", "flip"), "changes": ("changes", "change"),
        "does not change": ("does not change", "do not change"), "undecided": ("is undecided", "are undecided"),
        "not usable": ("is not to be used", "are not to be used"),
    }  # fmt: skip
    parts = [f"{counts[verdict]} {verb[counts[verdict] > 1]}" for verdict, verb in verbs.items() if counts[verdict]]
    return f"Of {counted(len(changes), 'ratio')} {listed(parts)}."


def scope(kept: int, changes: int, level: float) -> str:
    """Return at which level so many figures that are kept hold together, and so many changes."""
    text = f"What is kept holds at {percent(level)}{_together(kept, 'figure')}"
    if not changes:
        return f"{text}."
    return (
        f"{text}, and apart from that each change with its verdict{_together(changes, 'change')}. A ranking flips "
        f"where the verdicts of the answer are opposite. {verdicts.DOUBTFUL} doubtful."
    )


def _together(n: int, noun: str) -> str:
    return f" for all {counted(n, noun)} together" if n > 1 else ""


def verdict_text(change: ConditionChange, smallest_effect: float) -> str:
    """Return the verdict with its sign, and what would decide it."""
    if change.verdict == "does not change":
        return f"{SIGNS[change.verdict]}, within {percent(smallest_effect)}"
    if change.verdict == "undecided" and not verdicts.has_interval(change.change):
        return f"? open: {why_open(change)}"
    return SIGNS[change.verdict] + (verdicts.needed(change.change) if change.verdict == "undecided" else "")
