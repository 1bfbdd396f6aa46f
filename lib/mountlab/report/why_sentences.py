"""Sentences on why one file system is slower than another. Every figure in them comes from the diagnostic trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from mountlab.analysis.why import Cause, Cost, FewOperations, Off, PartOfDifference, Withheld, WorkFigure, behind
from mountlab.core.layers import LAYERS, QUANTITIES, layer_noun
from mountlab.core.names import latency_noun, metric_noun
from mountlab.core.numbers import MISSING, counted, listed, number, percent, quantity, ratio_figures
from mountlab.core.units import significant
from mountlab.stats import DifferenceShare
from mountlab.stats.histograms import ios_needed

_MOST_MORE = 2
"""Parts that are named after the largest."""
_TENTHS = (0.95, 9.95)
"""Counts between these are shown to a tenth."""
_LEAST_SHARE = 0.05
"""A smaller part of a difference is in the table alone."""


def cause_sentence(cause: Cause, figures: Iterable[WorkFigure], *, name_workload: bool = True) -> str:
    """'80 % [71, 88] of the difference in mean sync latency between xfs and ext4 is flushes (for the journal): 2.1
    flushes per sync on ext4, 1.0 on xfs. xfs takes 0.58 [0.54, 0.62] of ext4's time: 0.88 ms against 1.53 ms; n = 5
    diagnostic blocks.'; where nothing is shown, why."""
    under = f" under {cause.workload}" if name_workload else ""
    what = f"the difference in {_latency(cause)} between {cause.candidate} and {cause.baseline}{under}"
    first = cause.largest
    if first is None:
        return _nothing_shown(cause, what)
    said = f"{share_words(first.share)} of {what} is {layer_noun(*first.part)}"
    return f"{said}{_work_behind(cause, first, figures)}. {_difference(cause)}{_more(cause)}{_summed(cause, first)}"


def _latency(cause: Cause) -> str:
    return latency_noun(cause.operation, cause.statistic)


def share_words(share: DifferenceShare) -> str:
    """'80 % [71, 88]', in whole per cent; 'n/a' of no share, without an interval where it has none."""
    if not math.isfinite(share.share):
        return MISSING
    ends = f" [{number(100 * share.low, 0)}, {number(100 * share.high, 0)}]" if share.known else ""
    return f"{number(100 * share.share, 0)}\u00a0%{ends}"


def _nothing_shown(cause: Cause, what: str) -> str:
    n = counted(cause.ratio.n, "diagnostic block")
    if cause.differs:
        largest = f"; the largest, {layer_noun(*cause.parts[0].part)}, has {share_words(cause.parts[0].share)}"
        return f"Nothing is shown about what makes {what}: no part stands out of the noise{largest}; n = {n}."
    if math.isnan(cause.ratio.low):
        return f"Nothing is shown about {what}: its spread is unknown; n = {n}."
    return f"Nothing is shown about {what}: {_ratio(cause)}, which may be 1; n = {n}."


def _difference(cause: Cause) -> str:
    """'xfs takes 0.58 [0.54, 0.62] of ext4's time: 0.88 ms against 1.53 ms; n = 5 diagnostic blocks.'"""
    sides = f"{quantity(cause.ours.mean, 's')} against {quantity(cause.theirs.mean, 's')}"
    return f"{_ratio(cause)}: {sides}; n = {counted(cause.ratio.n, 'diagnostic block')}."


def _ratio(cause: Cause) -> str:
    """'xfs takes 0.58 [0.54, 0.62] of ext4's time', 'btrfs takes 2.1 [1.9, 2.3] times ext4's time'."""
    figures = ratio_figures(cause.ratio.ratio, cause.ratio.low, cause.ratio.high)
    return f"{cause.candidate} takes {figures} {'of' if cause.ratio.ratio < 1 else 'times'} {cause.baseline}'s time"


def _more(cause: Cause) -> str:
    """Return what else makes the difference, and what points the other way."""
    others = [each for each in cause.parts[1:] if each.share.shown and abs(each.share.share) >= _LEAST_SHARE]
    along = [each for each in others if each.share.share > 0][:_MOST_MORE]
    against = [each for each in reversed(others) if each.share.share < 0][:_MOST_MORE]
    said = f" Next: {_parts(along)}." if along else ""
    return f"{said} Against it: {_parts(against)}." if against else said


def _summed(cause: Cause, first: PartOfDifference) -> str:
    """Return the layer that has more than the largest part, where one does in all that it served."""
    layer = cause.by_layer[0]
    if not layer.share.shown or layer.part.layer == first.part.layer or layer.share.share <= first.share.share:
        return ""
    return f" All in all {layer_noun(*layer.part)} has more: {share_words(layer.share)}."


def _parts(parts: Sequence[PartOfDifference]) -> str:
    return listed([f"{layer_noun(*each.part)}, {share_words(each.share)}" for each in parts])


def _work_behind(cause: Cause, first: PartOfDifference, figures: Iterable[WorkFigure]) -> str:
    """Return the work that makes most of a layer on both sides: ': 2.1 flushes per sync on ext4, 1.0 on xfs'; '' where
    it is not known, and where it is the same."""
    name = LAYERS[first.part.layer].quantity
    sides = behind(cause, figures, name) if name else None
    if sides is None:
        return ""
    theirs, ours = (_amount(each) for each in sides)
    if theirs == ours:
        return ""
    spoken = sides[0].operation or "read or write"
    noun = QUANTITIES[name].counted.format(operation=spoken)
    return f": {theirs} {noun} on {cause.baseline}, {ours} on {cause.candidate}"


def _amount(figure: WorkFigure) -> str:
    return work_value(figure.figure.mean, figure.unit)


def work_value(value: float, unit: str) -> str:
    """'2.1', '4.1 kB': a count has two significant digits, what has a unit gets it."""
    if unit in ("s", "B"):
        return quantity(value, unit)
    return number(value, 1) if _TENTHS[0] <= value < _TENTHS[1] else significant(value, 2)


def withheld_sentence(withheld: Withheld) -> str:
    """'xfs/fsync: 1 of 5 diagnostic trials is withheld (sync): the kernel had no room for 3 of 90 events.'"""
    which = f" ({withheld.operations})" if withheld.operations else ""
    verb = "is" if withheld.trials == 1 else "are"
    trials = f"{withheld.trials} of {counted(withheld.of, 'diagnostic trial')}"
    return f"{withheld.cell}: {trials} {verb} withheld{which}: {withheld.reason}."


def few_sentence(few: FewOperations) -> str:
    """'xfs/fsync: no 99th percentile of sync: a diagnostic trial holds 412 operations, and 1,000 are needed.'"""
    held = counted(few.fewest, "operation")
    needed = f"{ios_needed(99):,} are needed"
    return f"{few.cell}: no 99th percentile of {few.operation}: a diagnostic trial holds {held}, and {needed}."


def off_sentence(off: Off) -> str:
    """'xfs/fsync: the traced mean of sync is 1.00 ms, the tool's own 1.20 ms: 17 % apart.'"""
    sides = f"{quantity(off.traced, 's')}, the tool's own {quantity(off.tool, 's')}"
    return f"{off.cell}: the traced mean of {off.operation} is {sides}: {percent(off.by)} apart."


def cost_sentences(costs: Sequence[Cost]) -> Iterator[str]:
    """Yield what tracing changed of each metric: the cell that it changed most, and how many cells there are."""
    for metric in dict.fromkeys(each.metric for each in costs):
        own = [each for each in costs if each.metric == metric]
        most = max(own, key=lambda each: abs(math.log(each.ratio.ratio)))
        figures = ratio_figures(most.ratio.ratio, most.ratio.low, most.ratio.high)
        where = f"in {most.cell}" + (f", the most of {counted(len(own), 'cell')}" if len(own) > 1 else "")
        noun = metric_noun(metric)
        yield f"Cost of tracing: {noun} of diagnostic trials, as a multiple of that of counted ones: {figures} {where}."


def lost_sentence(lost: int, events: int) -> str:
    """'Of 400 000 events in the traces 7 were lost.'"""
    return f"Lost events: {number(lost, 0)} of {number(lost + events, 0)}."


UNKNOWABLE = (
    "What the split cannot know: a journal commit serves every operation that waits for it, and all of its time counts "
    "for each of them; readahead and writeback are done for no operation in particular, and count only while one waits "
    "for them; what the device does inside stays unknown. A trace holds what an operation does inside of the kernel: "
    "the way there, the tool's own clock and the cost of tracing lie outside, and are much of a few microseconds."
)
