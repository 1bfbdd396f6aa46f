"""Sentences on why one file system is slower than another. Every figure in them comes from the diagnostic trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mountlab.analysis.run_view import RunView
from mountlab.analysis.why import Cause, FewOperations, PartOfDifference, WorkFigure, behind, work
from mountlab.analysis.why_answer import Answer, answering
from mountlab.analysis.why_details import ran_instead
from mountlab.analysis.why_doubts import Cost, Cut, Off, PartlySeen, Withheld
from mountlab.core.groups import by_key
from mountlab.core.layers import LAYERS, QUANTITIES, layer_noun
from mountlab.core.names import cell_id, code_words, latency_noun, metric_noun
from mountlab.core.numbers import MISSING, counted, listed, number, percent, quantity, ratio_figures
from mountlab.core.units import significant
from mountlab.stats import DifferenceShare
from mountlab.stats.histograms import ios_needed
from mountlab.wording import verdicts

_MOST_MORE, _MOST_ANSWERS = 2, 3
"""Parts that are named after the largest; differences that the answer explains."""
_BELOW = ("writeback", "journal", "queue", "device", "flush")
"""Layers in which an operation waits for the device."""
_TENTHS = (0.95, 9.95)
"""Counts between these are shown to a tenth."""
_LEAST_SHARE = 0.05
"""A smaller part of a difference is in the table alone; of a wait it is not named."""
_LEAST_WAIT, _HALF, _MOST_RAN = 0.2, 0.5, 3
"""Share of a difference from which on the wait for a processor is explained; of such a wait from which on an idle
processor explains it; programs that are named."""
_WORK, _MOST_WORK = ("device_ios_per_op", "flushes_per_sync", "commits_per_sync"), 2
"""Ratios of work that are looked at, and how many of them are named."""
_WORK_APART, _LEAST_WORK, _HARDLY_ANY = 1.1, 0.01, 0.001
"""The factor, and the amount per operation, by which ratios of work differ that may explain something; a count per
operation that tells no more than that it is smaller."""


Instead = Callable[[str, str], Mapping[str, float]]
"""Cell and operation to what ran while that waited for a processor, each with its seconds for each operation."""


def cause_subject(cause: Cause, *, name_workload: bool = True) -> str:
    """'xfs and ext4, mean sync latency under fsync'."""
    under = f" under {cause.workload_label}" if name_workload else ""
    return f"{cause.candidate} and {cause.baseline}, {_latency(cause)}{under}"


def cause_sentence(cause: Cause, figures: Sequence[WorkFigure], instead: Instead) -> str:
    """'2.1 flushes per sync on ext4, 1.0 on xfs. The largest part of the difference is flushes (for the journal):
    80 % [71, 88]. xfs takes 0.58 [0.54, 0.62] of ext4's time: 0.88 ms against 1.53 ms; n = 5 diagnostic blocks.';
    where nothing is shown, why."""
    sentence, largest = _stop(work_words(cause, figures)), cause.largest
    if largest is None:
        return f"{sentence}{_nothing_shown(cause)}"
    shares = f"{_more(cause, largest)}{_summed(cause, largest)}{_consequence(cause, instead)}"
    sides = f"{quantity(cause.ours.mean, 's')} against {quantity(cause.theirs.mean, 's')}"
    difference = f"{_ratio(cause)}: {sides}; n = {counted(cause.ratio.n, 'diagnostic block')}."
    return f"{sentence}{_largest(cause, largest)} {difference}{shares}"


def _stop(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}. " if clause else ""


def _latency(cause: Cause) -> str:
    return latency_noun(cause.operation, cause.statistic)


def _largest(cause: Cause, part: PartOfDifference, what: str = "the difference") -> str:
    """'The largest part of the difference is flushes: 80 % [71, 88].'; 'Beside waiting for a processor, 42 % [36, 50],
    the largest part of ...'; 'The largest parts of the difference are flushes, 45 % [40, 50], and the device, 41 %
    [38, 44]: which of them is larger is not shown.'"""
    wait = cause.wait_before
    may_be_none = "" if not wait or wait.share.shown else ", which may be 0"
    beside = f"Beside {layer_noun(*wait.part)}, {share_words(wait.share)}{may_be_none}, the" if wait else "The"
    if cause.as_large:
        several = _parts((part, *cause.as_large))
        return f"{beside} largest parts of {what} are {several}: which of them is larger is not shown."
    return f"{beside} largest part of {what} is {layer_noun(*part.part)}: {share_words(part.share)}."


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def share_words(share: DifferenceShare) -> str:
    """'80 % [71, 88]' in whole per cent, of what points the other way without its sign. A share above 1 is in words:
    other parts then point the other way. 'n/a' of no share; without an interval where that says nothing."""
    if share.share < 0:
        share = replace(share, share=-share.share, low=-share.high, high=-share.low)
    if not math.isfinite(share.share):
        return MISSING
    value = "more than all of it" if share.share > 1 else _percent(share.share)
    if not 0 < share.low <= 1:
        return value
    if share.high > 1:
        return f"{value}, at least {_percent(share.low)}"
    return f"{value} [{number(100 * share.low, 0)}, {number(100 * share.high, 0)}]"


def share_cells(share: DifferenceShare) -> tuple[str, str]:
    """Return a share and its interval as two cells: '80 %', '[71, 88]'; of a part that points the other way '4 %
    against'. An end above the whole is 'all'; two of them say nothing."""
    if not math.isfinite(share.share):
        return MISSING, ""
    against = " against" if share.share < 0 else ""
    size = "more than all" if abs(share.share) > 1 else _percent(abs(share.share))
    if min(abs(share.low), abs(share.high)) > 1:
        return f"{size}{against}", ""
    ends = []
    for end in (share.low, share.high):
        text = "all" if abs(end) > 1 else number(100 * abs(end), 0)
        ends.append(f"{text} against" if end < 0 and text != "0" else text)
    return f"{size}{against}", f"[{', '.join(ends)}]"


def _percent(share: float) -> str:
    return f"{number(100 * share, 0)}\u00a0%"


def _nothing_shown(cause: Cause) -> str:
    n = f"n = {counted(cause.ratio.n, 'diagnostic block')}"
    if cause.differs:
        noun = layer_noun(*cause.parts[0].part)
        return f"{_ratio(cause)}, but no part of that stands out of the noise: {noun}, the largest, may be 0; {n}."
    if math.isnan(cause.ratio.low):
        return f"Nothing is shown of the difference in time: its spread is unknown; {n}."
    return f"Nothing is shown of the difference in time: {_ratio(cause)}, which may be 1; {n}."


def _ratio(cause: Cause) -> str:
    """'xfs takes 0.58 [0.54, 0.62] of ext4's time', 'btrfs takes 2.1 [1.9, 2.3] times ext4's time'."""
    figures = ratio_figures(cause.ratio.ratio, cause.ratio.low, cause.ratio.high)
    return f"{cause.candidate} takes {figures} {'of' if cause.ratio.ratio < 1 else 'times'} {cause.baseline}'s time"


def _more(cause: Cause, largest: PartOfDifference) -> str:
    """Return what else makes the difference, and what points the other way."""
    described = [row.part for row in (largest, cause.wait_before, *cause.as_large) if row]
    rest = [row for row in cause.parts if not any(part.holds(row.part) for part in described)]
    others = [row for row in rest if row.share.shown and abs(row.share.share) >= _LEAST_SHARE]
    along = [row for row in others if row.share.share > 0][:_MOST_MORE]
    against = [row for row in reversed(others) if row.share.share < 0][:_MOST_MORE]
    text = f" Next: {_parts(along)}." if along else ""
    return f"{text} Against it: {_parts(against)}." if against else text


def _summed(cause: Cause, first: PartOfDifference) -> str:
    """Return the layer that has more than the largest part, where one does in all that it served."""
    layer, layers = cause.by_layer[0], {first.part.layer, *(("run_queue",) if cause.wait_before else ())}
    if not layer.share.shown or layer.part.layer in layers or layer.share.share <= first.share.share:
        return ""
    return f" All in all {layer_noun(*layer.part)} has more: {share_words(layer.share)}."


def _parts(parts: Sequence[PartOfDifference]) -> str:
    return listed([f"{layer_noun(*part.part)}, {share_words(part.share)}" for part in parts])


# ── what follows from something else ─────────────────────────────────────────────────────────────────────────────────


def _consequence(cause: Cause, instead: Instead) -> str:
    """Return what made operations wait for a processor, where that is a good part of a difference; else ''."""
    waits = cause.waits
    if not waits or not waits.share.shown or waits.share.share < _LEAST_WAIT:
        return ""
    slower = cause.candidate if waits.seconds > 0 else cause.baseline
    ran = instead(cell_id(slower, cause.workload_label), cause.operation)
    return f" Waiting for a processor is a consequence, not a cause: {_ran_meanwhile(slower, ran)}."


def _ran_meanwhile(filesystem: str, ran: Mapping[str, float]) -> str:
    """'on xfs the processor meanwhile ran stress-ng (62 % of the wait) and kworker (20 %)'."""
    whole = sum(ran.values())
    if not whole:
        return "what ran meanwhile is not known"
    sized = []
    for name, seconds in ran.items():
        share = seconds / whole
        size = percent(round(share, 2))
        if name in _IDLE and share >= _HALF:
            return f"on {filesystem} the processor was idle for {size} of the wait: {_IDLE[name]}"
        if name not in _IDLE and share >= _LEAST_SHARE:
            sized.append(f"{'what is not known' if name == _UNKNOWN else name} ({size})")
    many = listed(sized[:_MOST_RAN]) if sized else "many programs, none for long"
    return f"on {filesystem} the processor meanwhile ran {many}"


_IDLE: Mapping[str, str] = {
    "held back": "a CPU quota, or a virtual machine that is throttled",
    "idle": "it wakes up late, as in a virtual machine, or got the thread from another processor late",
}
"""What had the processor where no thread did, and what that means."""
_UNKNOWN = "?"
"""What had it where that is not known."""


def program_noun(program: str) -> str:
    """'none: a CPU quota, ...'; the name of a program."""
    nouns = {"idle": "none: it woke up or got the thread late", "held back": f"none: {_IDLE['held back']}"}
    return {**nouns, _UNKNOWN: "unknown"}.get(program, program)


# ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def work_words(cause: Cause, figures: Sequence[WorkFigure], *, differing: bool = False) -> str:
    """'2.1 flushes per sync on ext4, 1.0 on xfs (0.48 times [0.46, 0.50]); 3.1 device I/Os per sync on ext4, 2.0 on
    xfs': the work that differs, that behind the largest part first; else 'the same work on both: 2.0 device I/Os per
    sync', or '' with `differing`. '' also where none is known, and of an operation that waits for nothing below it."""
    main = LAYERS[cause.largest.part.layer].quantity if cause.largest and cause.largest.part.layer else ""
    names = dict.fromkeys((main, *_own_work(cause, figures)))
    amounts = [(name, sides) for name in names if name and (sides := behind(cause, figures, name))]
    unlike = []
    for name, (theirs, ours) in amounts:  # by so much that it may explain something
        may_be_same = ours.ratio is not None and ours.ratio.low <= 1 <= ours.ratio.high
        difference = abs(theirs.figure.mean - ours.figure.mean)
        if not may_be_same and _times(theirs, ours) > _WORK_APART and difference >= _LEAST_WORK:
            unlike.append((name, (theirs, ours)))
    unlike.sort(key=lambda item: (item[0] != main, -_times(*item[1])))
    if unlike or differing:
        return "; ".join(_sides(cause, name, *sides) for name, sides in unlike[:_MOST_WORK])
    alike = [f"{_amount(sides[0])} {_counted(name, sides[0])}" for name, sides in amounts[:1]]
    return f"the same work on both: {alike[0]}" if alike else ""


def _own_work(cause: Cause, figures: Sequence[WorkFigure]) -> Sequence[str]:
    """Return the ratios of work that was done for this operation, and not for others: all where what lies below the
    file system makes a good part of its latency. Read-ahead reads before an operation waits: device I/Os are those of
    the reads where nothing is written."""
    below = sum(abs(part.seconds) for part in cause.parts if part.part.layer in _BELOW)
    if below >= _LEAST_SHARE * abs(cause.ours.mean - cause.theirs.mean):
        return _WORK
    device_ios = (behind(cause, figures, _WORK[0]) or ()) if cause.operation == "read" else ()
    return _WORK[:1] if any(figure.per == "read" for figure in device_ios) else ()


def _times(theirs: WorkFigure, ours: WorkFigure) -> float:
    """Return how many times one is the other, the larger by the smaller."""
    low, high = sorted((theirs.figure.mean, ours.figure.mean))
    return high / low if low else math.inf


def _sides(cause: Cause, name: str, theirs: WorkFigure, ours: WorkFigure) -> str:
    ratio, second = ours.ratio, _amount(ours)
    times = f" ({ratio_figures(ratio.ratio, ratio.low, ratio.high)} times)" if ratio else ""
    first = f"{_amount(theirs)} {_counted(name, theirs)} on {cause.baseline}"
    return f"{first}, {'none' if second == _NONE else second} on {cause.candidate}{times}"


def _counted(name: str, figure: WorkFigure) -> str:
    return QUANTITIES[name].counted.format(operation=figure.per)


_NONE = "no"


def _amount(figure: WorkFigure) -> str:
    mean = figure.figure.mean
    if 0 < mean < _HARDLY_ANY and figure.unit == "1":
        return f"fewer than {_HARDLY_ANY}"
    return work_value(mean, figure.unit) if mean else _NONE


def work_value(value: float, unit: str) -> str:
    """'2.1', '4.1 kB': a count has two significant digits, what has a unit gets it."""
    if unit in ("s", "B"):
        return quantity(value, unit)
    return number(value, 1) if _TENTHS[0] <= value < _TENTHS[1] else significant(value, 2)


# ── the answer of a run ──────────────────────────────────────────────────────────────────────────────────────────────


def answer_lines(run: RunView) -> list[tuple[str, str]]:
    """Return a subject and a sentence for each difference that the answer is about, the strongest first, and how many
    more the section has."""
    if not run.why:
        return []
    figures, instead = work(run.why, run.sweep), partial(ran_instead, run.why)
    alone, smallest = len(run.sweep.workloads) == 1, run.sweep.design.smallest_effect
    explained = [(answer, text) for answer in answering(run) if (text := answer_sentence(answer, figures, instead))]
    first = explained[:_MOST_ANSWERS]
    lines = [(answer_subject(answer, smallest, name_workload=not alone), text) for answer, text in first]
    more = len(explained) - len(lines)
    return [*lines, ("", f"The section Why has {counted(more, 'more difference')}.")] if more else lines


def answer_subject(answer: Answer, smallest_effect: float, *, name_workload: bool = True) -> str:
    """'Why xfs is faster than ext4 (sync rate)'; where that is undecided 'Work of xfs and ext4'."""
    comparison = answer.comparison
    under = f" under {verdicts.workload_of(comparison)}" if name_workload else ""
    if comparison.verdict == "undecided":
        return f"Work of {comparison.candidate} and {comparison.baseline}{under}"
    verdict = verdicts.verdict_of(comparison, smallest_effect)
    noun = metric_noun(comparison.metric)
    return f"Why {comparison.candidate} is {verdict} than {comparison.baseline}{under} ({noun})"


def answer_sentence(answer: Answer, figures: Sequence[WorkFigure], instead: Instead) -> str:
    """'3.1 device I/Os per sync on ext4, 2.0 on xfs. The largest part of the difference in mean sync latency is flushes
    (for the journal): 80 % [71, 88]; n = 5 diagnostic blocks.', then the doubts. Of a difference that is undecided the
    work alone, '' where that is alike."""
    cause = answer.cause
    if answer.comparison.verdict == "undecided":
        unlike = work_words(cause, figures, differing=True) if cause else ""
        return f"{_stop(unlike)}Which of them is faster is undecided." if unlike else ""
    if cause is None:
        reasons = [withheld_sentence(trials) for trials in answer.withheld]
        return " ".join(["Not shown: too few diagnostic trials hold both sides.", *reasons])
    what = f"the difference in {_latency(cause)}"
    if answer.against:
        part = f"The diagnostic trials show {what} the other way round: {_ratio(cause)}."
    elif cause.largest is None:
        part = _nothing_shown(cause)
    else:
        n = counted(cause.ratio.n, "diagnostic block")
        largest = f"{_largest(cause, cause.largest, what).removesuffix('.')}; n = {n}."
        part = f"{largest}{_summed(cause, cause.largest)}{_consequence(cause, instead)}"
    return f"{_stop(work_words(cause, figures))}{part}{_doubts(answer)}"


def _doubts(answer: Answer) -> str:
    """Return what weakens the explanation; '' where nothing does."""
    doubts = []
    for cost in answer.slowed:
        figures = ratio_figures(cost.ratio.ratio, cost.ratio.low, cost.ratio.high)
        doubts.append(f"tracing changed the {metric_noun(cost.metric)} of {cost.cell} to {figures} of what was counted")
    if answer.cut:
        doubts.append(f"the record of {listed([cut.cell for cut in answer.cut])} ended early")
    if answer.off:
        sizes = listed([f"{percent(off.by)} on {off.cell}{_slowed(off)}" for off in answer.off])
        doubts.append(f"the parts are off the tool's own mean by {sizes}")
    if answer.busy:
        doubts.append(f"other programs were at work on the box ({listed(list(map(code_words, answer.busy)))})")
    return f" Doubtful: {'; '.join(doubts)}." if doubts else ""


# ── beside them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def withheld_sentence(withheld: Withheld) -> str:
    """'xfs/fsync: 1 of 5 diagnostic trials is withheld (sync): the kernel had no room for 3 of 90 events.'"""
    operations = f" ({withheld.operations})" if withheld.operations else ""
    verb = "is" if withheld.trials == 1 else "are"
    trials = f"{withheld.trials} of {counted(withheld.of, 'diagnostic trial')}"
    return f"{withheld.cell}: {trials} {verb} withheld{operations}: {withheld.reason}."


def cut_sentence(cut: Cut) -> str:
    """'ext4/reads: the record of events reached its limit of size in 2 of 5 diagnostic trials, after 1.20 s or later:
    the split is of that time.'"""
    trials = f"{cut.trials} of {counted(cut.of, 'diagnostic trial')}"
    return f"{cut.cell}: {cut.reason} in {trials}, after {cut.earliest_s:.2f} s or later: the split is of that time."


def partly_seen_sentence(cells: Sequence[PartlySeen]) -> str:
    """'System calls were recorded in windows where they are many: for 3 % of the time on tmpfs/reads.'"""
    shares = listed([f"{percent(cell.share)} of the time in {cell.cell}" for cell in cells])
    return f"System calls were recorded in windows where they are many: for {shares}."


def few_sentence(few: FewOperations) -> str:
    """'xfs/fsync: no 99th percentile of sync: a diagnostic trial holds 412 operations, and 1,000 are needed.'"""
    count = counted(few.fewest, "operation")
    minimum = f"{ios_needed(99):,} are needed"
    return f"{few.cell}: no 99th percentile of {few.operation}: a diagnostic trial holds {count}, and {minimum}."


def off_sentence(off: Off) -> str:
    """'xfs/fsync: the traced mean of sync is 1.00 ms, the tool's own 1.20 ms: 17 % apart.'; with the reason where
    as many operations are under way at a time."""
    sides = f"{quantity(off.traced, 's')}, the tool's own {quantity(off.tool, 's')}"
    return f"{off.cell}: the traced mean of {off.operation} is {sides}: {percent(off.by)} apart{_slowed(off)}."


def _slowed(off: Off) -> str:
    return ", since operations are slower while they are traced" if off.is_slowed else ""


def cost_sentences(costs: Sequence[Cost]) -> Iterator[str]:
    """Yield what tracing changed of each metric: the cell that it changed most, and how many cells there are."""
    for metric, members in by_key((cost.metric, cost) for cost in costs).items():
        most = max(members, key=lambda cost: abs(math.log(cost.ratio.ratio)))
        figures = ratio_figures(most.ratio.ratio, most.ratio.low, most.ratio.high)
        where = f"in {most.cell}" + (f", the most of {counted(len(members), 'cell')}" if len(members) > 1 else "")
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
