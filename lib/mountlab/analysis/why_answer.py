"""What makes the differences that the answer of a run is about: of each the latency behind its metric, taken apart, and
what weakens that."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mountlab.analysis import answers, why, why_doubts
from mountlab.analysis.run_view import RunView
from mountlab.analysis.why import Cause, PartOfDifference
from mountlab.analysis.why_doubts import Cost, Cut, Off, Withheld
from mountlab.core.findings import Comparison
from mountlab.wording import verdicts

_LATENCY = re.compile(r"(\w+?)_(?:submission_|completion_|total_)?latency(?:_(\w+))?\Z")
_RATE = re.compile(r"(read|write|sync)_(?:iops|bandwidth|rate)\Z")
_OTHERS = ("bandwidth", "file_rate", "operation_rate", "elapsed")
"""Metrics that are named for no operation, and follow from the time of all."""
_TAIL = ("p95", "p99", "p99_9", "max")
MUCH = math.log(1 / 0.85)
"""A figure that tracing changes by more, either way, is not the one that was counted."""


@dataclass(frozen=True)
class Answer:
    """A difference that the answer is about, and what lies behind it."""

    comparison: Comparison
    cause: Cause | None
    """None: too few diagnostic trials hold both sides."""
    withheld: tuple[Withheld, ...] = ()
    """Where there is no cause, what of its cells is withheld."""
    slowed: tuple[Cost, ...] = ()
    """Its cells whose figure tracing changed a lot."""
    cut: tuple[Cut, ...] = ()
    """Its cells whose record ended before the tool did."""
    off: tuple[Off, ...] = ()
    """Its cells whose parts do not add up to what the tool says."""

    @property
    def against(self) -> bool:
        """Whether the traced trials show the difference the other way round."""
        cause, better = self.cause, self.comparison.verdict
        return cause is not None and cause.differs and (cause.ratio.ratio < 1) != (better == "faster")

    @property
    def is_far_off(self) -> bool:
        """Whether the parts of a side add up so far from the tool's mean that their shares are withheld."""
        return any(off.is_far for off in self.off)

    @property
    def established(self) -> PartOfDifference | None:
        """The largest part of the difference, where one is shown to be it; else None."""
        cause = self.cause
        undecided = self.comparison.verdict == "undecided"
        unclear = cause is None or undecided or self.against or self.is_far_off or cause.as_large
        return None if unclear or cause is None else cause.largest


def answering(run: RunView) -> list[Answer]:
    """Return the differences that the answer is about, decided ones first and the strongest first. Of a run without
    diagnostic trials there are none."""
    if not run.why:
        return []
    causes = why.causes(run.why, run.sweep, run.comparisons)
    costs = why_doubts.costs(run.why, run.measurements, run.answer_metrics, run.sweep)
    timed = [c for c in answers.answering(run) if c.verdict != "same" and _is_timed(c.metric)]
    explained: list[Answer] = []
    for comparison in verdicts.strongest_first(timed):
        answer = _answer(run, comparison, causes, costs)
        if answer.cause is None or answer.cause not in [earlier.cause for earlier in explained]:
            explained.append(answer)
    return explained


def _is_timed(metric: str) -> bool:
    """Return whether a metric is a time of operations, or follows from it."""
    return metric in _OTHERS or bool(_LATENCY.match(metric) or _RATE.match(metric))


def _answer(run: RunView, comparison: Comparison, causes: Sequence[Cause], costs: Sequence[Cost]) -> Answer:
    cells = [verdicts.cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline)]
    pair = comparison.baseline, comparison.candidate, verdicts.workload_of(comparison)
    of_pair = [cause for cause in causes if (cause.baseline, cause.candidate, cause.workload_label) == pair]
    cause = _behind(comparison.metric, of_pair, why.time_by_operation(run.why, cells))
    if cause is None:
        withheld = why_doubts.withheld(run.why)
        return Answer(comparison, None, tuple(trials for trials in withheld if trials.cell in cells))
    return Answer(
        comparison,
        cause,
        slowed=tuple(cost for cost in costs if cost.metric == comparison.metric and cost.cell in cells and _much(cost)),
        cut=tuple(cut for cut in why_doubts.cuts(run.why) if cut.cell in cells),
        off=tuple(off for off in why_doubts.off(run.why) if off.cell in cells and off.operation == cause.operation),
    )


def _much(cost: Cost) -> bool:
    ratio = cost.ratio
    return abs(math.log(ratio.ratio)) > MUCH and not ratio.low <= 1 <= ratio.high


def _behind(metric: str, of_pair: Sequence[Cause], times: Mapping[str, float]) -> Cause | None:
    """Return the cause of the latency that a metric is, or that decides it: a rate follows from the time of all
    operations, and is that of its own only where no other takes much longer. `times`: operation to its time in all."""
    match = _LATENCY.match(metric) or _RATE.match(metric)
    operation = match[1] if match and match[1] in times else ""
    longest = max((cause.operation for cause in of_pair), key=lambda name: times.get(name, 0.0), default="")
    if not _LATENCY.match(metric) and times.get(operation, 0.0) < times.get(longest, 0.0) / 2:
        operation = longest
    statistics = ("p99", "mean") if match and match[0].endswith(_TAIL) else ("mean",)
    of_it = {cause.statistic: cause for cause in of_pair if cause.operation == (operation or longest)}
    return next((of_it[statistic] for statistic in statistics if statistic in of_it), None)
