"""Sentences on what weakens an explanation, and on what no explanation can know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mountlab.analysis.why import FewOperations
from mountlab.analysis.why_doubts import Cost, Cut, Off, PartlySeen, Withheld
from mountlab.core.groups import by_key
from mountlab.core.names import metric_noun
from mountlab.core.numbers import counted, listed, number, percent, quantity, ratio_figures
from mountlab.stats.histograms import ios_needed


def off_text(sides: Sequence[Off]) -> str:
    """'the parts of xfs/fsync add up to 0.80 times the tool's own mean'."""
    own = "the tool's own mean"
    return "; ".join(f"the parts of {off.cell} add up to {_times_the_tool(off)} {own}{_slowed(off)}" for off in sides)


def _times_the_tool(off: Off) -> str:
    """'0.80 times'."""
    return f"{ratio_figures(off.traced / off.tool, math.nan, math.nan).value} times"


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
    """'xfs/fsync: a sync takes 1.00 ms by the trace and 1.20 ms by the tool, 0.83 times.'; with the reason where as
    many operations are under way at a time."""
    sides = f"{quantity(off.traced, 's')} by the trace and {quantity(off.tool, 's')} by the tool"
    return f"{off.cell}: one {off.operation} takes {sides}, {_times_the_tool(off)} as long{_slowed(off)}."


def _slowed(off: Off) -> str:
    return ", since operations are slower while they are traced" if off.is_slowed else ""


def cost_sentences(costs: Sequence[Cost]) -> Iterator[str]:
    """Yield what tracing changed of each metric: the cell that it changed most, and how many cells there are."""
    for metric, members in by_key((cost.metric, cost) for cost in costs).items():
        most = max(members, key=lambda cost: abs(math.log(cost.ratio.ratio)))
        figures = ratio_figures(most.ratio.ratio, most.ratio.low, most.ratio.high)
        among = f", the largest change of {counted(len(members), 'cell')}" if len(members) > 1 else ""
        yield f"Cost of tracing: {most.cell} has {figures} times its counted {metric_noun(metric)}{among}."


def lost_sentence(lost: int, events: int) -> str:
    """'7 of 400 000 events were lost.', 'None of 400 000 events was lost.'"""
    whole = f"{number(lost + events, 0)} events"
    return (
        f"{number(lost, 0)} of {whole} {'was' if lost == 1 else 'were'} lost." if lost else f"None of {whole} was lost."
    )


UNKNOWABLE = (
    "What the split cannot know: a journal commit serves every operation that waits for it, and all of its time counts "
    "for each of them. Readahead and writeback are done for no operation in particular, and count only while one waits "
    "for them. What the device does inside stays unknown. A trace holds what an operation does inside of the kernel. "
    "The way there, the tool's own clock and the cost of tracing lie outside, and are much of a few microseconds."
)
