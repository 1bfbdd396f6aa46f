"""What makes the differences that the answer of a run is about: of each the latency behind its metric, taken apart, and
what weakens that."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mountlab.analysis import answers, why, why_doubts
from mountlab.analysis.run_view import RunView
from mountlab.analysis.why import Cause
from mountlab.analysis.why_doubts import Cost, Cut, Off, Withheld
from mountlab.core.findings import Comparison
from mountlab.wording import verdicts
from mountlab.wording.caveats import doubts_by_cell

_LATENCY = re.compile(r"(\w+?)_(?:submission_|completion_|total_)?latency(?:_(\w+))?\Z")
_RATE = re.compile(r"(read|write|sync)_(?:iops|bandwidth|rate)\Z")
_OTHERS = ("bandwidth", "file_rate", "operation_rate", "elapsed")
"""Metrics that are named for no operation, and follow from the time of all."""
_TAIL = ("p95", "p99", "p99_9", "max")
MUCH = math.log(1 / 0.85)
"""A figure that tracing changes by more, either way, is not the one that was counted."""
_BUSY = ("box-busy", "other-io", "time-stolen")
"""Caveats that something else was at work on the box."""


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
    busy: tuple[str, ...] = ()
    """Codes of the caveats that something else was at work."""

    @property
    def against(self) -> bool:
        """Whether the traced trials show the difference the other way round."""
        cause, better = self.cause, self.comparison.verdict
        return cause is not None and cause.differs and (cause.ratio.ratio < 1) != (better == "faster")


def answering(run: RunView) -> list[Answer]:
    """Return the differences that the answer is about, decided ones first and the strongest first. Of a run without
    diagnostic trials there are none."""
    if not run.why:
        return []
    causes = why.causes(run.why, run.sweep, run.comparisons)
    costs = why_doubts.costs(run.why, run.measurements, run.answer_metrics, run.sweep)
    doubts = doubts_by_cell(run.caveats, run.sweep.own_metrics)
    compared = (each for each in answers.answering(run) if each.verdict != "same" and _is_timed(each.metric))
    found = [
        _answer(run, each, causes, costs, verdicts.doubts_about(each, doubts))
        for each in verdicts.strongest_first(compared)
    ]
    return [
        each
        for number, each in enumerate(found)
        if each.cause is None or each.cause not in [earlier.cause for earlier in found[:number]]
    ]


def _is_timed(metric: str) -> bool:
    """Return whether a metric is a time of operations, or follows from it."""
    return metric in _OTHERS or bool(_LATENCY.match(metric) or _RATE.match(metric))


def _pair(comparison: Comparison) -> tuple[str, str, str]:
    return comparison.baseline, comparison.candidate, verdicts.workload_of(comparison)


def _answer(
    run: RunView, comparison: Comparison, causes: Sequence[Cause], costs: Sequence[Cost], doubts: Sequence[str]
) -> Answer:
    cells = [verdicts.cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline)]
    own = [each for each in causes if (each.baseline, each.candidate, each.workload_label) == _pair(comparison)]
    cause = _behind(comparison.metric, own, why.time_taken(run.why, cells))
    if cause is None:
        return Answer(comparison, None, tuple(each for each in why_doubts.withheld(run.why) if each.cell in cells))
    return Answer(
        comparison,
        cause,
        slowed=tuple(each for each in costs if each.metric == comparison.metric and each.cell in cells and _much(each)),
        cut=tuple(each for each in why_doubts.cuts(run.why) if each.cell in cells),
        off=tuple(each for each in why_doubts.off(run.why) if each.cell in cells and each.operation == cause.operation),
        busy=tuple(each for each in _BUSY if each in doubts),
    )


def _much(cost: Cost) -> bool:
    ratio = cost.ratio
    return abs(math.log(ratio.ratio)) > MUCH and not ratio.low <= 1 <= ratio.high


def _behind(metric: str, own: Sequence[Cause], taken: Mapping[str, float]) -> Cause | None:
    """Return the cause of the latency that a metric is, or that decides it: a rate follows from the time of all
    operations, and is that of its own only where no other takes much longer. `taken`: operation to its time in all."""
    named = _LATENCY.match(metric) or _RATE.match(metric)
    operation = named[1] if named and named[1] in taken else ""
    longest = max((each.operation for each in own), key=lambda name: taken.get(name, 0.0), default="")
    if not _LATENCY.match(metric) and taken.get(operation, 0.0) < taken.get(longest, 0.0) / 2:
        operation = longest
    statistics = ("p99", "mean") if named and named[0].endswith(_TAIL) else ("mean",)
    of_it = {each.statistic: each for each in own if each.operation == (operation or longest)}
    return next((of_it[each] for each in statistics if each in of_it), None)
