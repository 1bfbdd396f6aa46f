"""Sentences on searches for a capacity. Every figure in them comes from the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mountlab.analysis.load_curve import CellSearch, LoadCurve
from mountlab.core.errors import in_one_line
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep
from mountlab.core.numbers import MISSING, count_figures, counted, listed, number, percent, quantity
from mountlab.core.objectives import objective_text, percentile_text
from mountlab.wording import verdicts
from mountlab.wording.caveats import grouped

UNIT = "requests/s"
SEEN_LATE_S = 1e-3
"""Requests that were issued later than this did not keep their schedule; where none was, others were never issued."""
NO_SEARCH = "The run holds no search for a capacity: a workload asks for one by `capacity`."


def bounded(capacity: Estimate) -> bool:
    """Return whether the trials bound a capacity on both sides."""
    return capacity.low > 0 and math.isfinite(capacity.high)


def capacity_figures(search: CellSearch) -> tuple[str, str]:
    """Return the value and the interval for two columns; of an interval that is open at an end the bound, and of one
    that is open at both what the trials answered."""
    low, high = search.capacity.low, search.capacity.high
    if bounded(search.capacity):
        figures = count_figures(search.capacity.mean, low, high)
        return figures.value, figures.interval
    if low > 0 or math.isfinite(high):
        return (f"≥ {_rate(low)}" if low > 0 else f"< {_rate(high)}"), ""
    return MISSING, _tried_text(search)


def _rate(rate: float) -> str:
    """'1 230', '5': three significant digits of a rate, which is a whole number."""
    return number(float(f"{rate:.3g}"), 0)


def _tried_text(search: CellSearch) -> str:
    """'held at up to 400 requests/s and failed from 800 requests/s on': what trials answered that bound a capacity on
    neither side; '' where none answered."""
    rates = by_key((trial.meets_objective, trial.asked) for trial in search.counted if trial.on_schedule)
    highest, lowest = max(rates.get(True, ()), default=None), min(rates.get(False, ()), default=None)
    if highest is not None and lowest is not None and lowest <= highest:
        return f"held and failed by turns between {_rate(lowest)} and {_rate(highest)} {UNIT}"
    parts = [f"held at up to {_rate(highest)} {UNIT}"] if highest is not None else []
    return " and ".join([*parts, *([f"failed from {_rate(lowest)} {UNIT} on"] if lowest is not None else [])])


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────

BUSY = ("box-busy", "time-stolen", "other-io", "swapping", "throttled", "drive-hot")
"""Caveats on what else the box did, or on what slowed it."""


def by_workload(searches: Sequence[CellSearch]) -> dict[str, list[CellSearch]]:
    """Return the searches below the labels of their workloads."""
    return by_key((search.cell.workload.label, search) for search in searches)


def ratios_of(comparisons: Iterable[Comparison]) -> dict[str, Comparison]:
    """Return cell to its comparison with the baseline, with the interval that holds for all together."""
    return {verdicts.cell_id(c.candidate, c): c for c in comparisons if c.metric == "capacity"}


def answer_lines(
    sweep: Sweep, searches: Sequence[CellSearch], comparisons: Iterable[Comparison], caveats: Sequence[Caveat]
) -> list[tuple[str, str]]:
    """Return a sentence for each search, the baseline first, after the label of its workload where there are several.

    'At read p99 ≤ 5 ms, ext4 takes 3 140 [3 010, 3 280] requests/s.', 'xfs takes 3 800 [3 650, 3 960] requests/s, 1.21
    times as many [1.15, 1.27]: faster.'"""
    ratios, groups = ratios_of(comparisons), by_workload(searches)
    lines = []
    for label, members in groups.items():
        at = f"At {objective_text(members[0].search.objective)}, "
        for search in sorted(members, key=lambda member: member.cell.filesystem.name != sweep.baseline):
            text = f"{at}{_takes(search, caveats)}"
            ratio = ratios.get(search.cell.id)
            if ratio is not None and verdicts.has_interval(ratio):
                times, _, interval = verdicts.times_text(ratio).partition(" times")
                verdict = verdicts.verdict_or_why(ratio, sweep.design.smallest_effect)
                text += f", {times} times as many{interval}: {verdict}"
            text += "."
            if search.capacity.low <= 0 and math.isfinite(search.capacity.high):  # what the box did beside it
                busy = [caveat for caveat in _about(search, caveats) if caveat.code in BUSY]
                reasons = [grouped([caveat])[0].first_sentence for caveat in busy]
                text += "".join(f" {sentence[:1].upper()}{sentence[1:]}." for sentence in reasons)
            lines.append((label if len(groups) > 1 else "", text))
            at = ""
    return lines


def _takes(search: CellSearch, caveats: Sequence[Caveat]) -> str:
    """'ext4 takes 3 140 [3 010, 3 280] requests/s'; of an interval that is open at an end, what is known."""
    name, capacity = search.cell.filesystem.name, search.capacity
    if not bounded(capacity):
        return f"{name} {_takes_bound(search, caveats)}"
    figures = count_figures(capacity.mean, capacity.low, capacity.high)
    if any(caveat.code == "capacity-changed" for caveat in _about(search, caveats)):
        return f"{name} takes between {figures.low} and {figures.high} {UNIT}, which seems to have changed meanwhile"
    width = search.search.half_width
    wide = f" ({half_width_text(capacity)}, where ±\u00a0{percent(width)} was asked for)"
    imprecise = half_width(capacity) > width and search.stop is not None and search.stop.reason != "precise"
    return f"{name} takes {figures} {UNIT}{wide if imprecise else ''}"


def _takes_bound(search: CellSearch, caveats: Sequence[Caveat]) -> str:
    """'takes at least 12 000 requests/s', 'already fails at 25 requests/s on this busy box'."""
    low, high = search.capacity.low, search.capacity.high
    if low > 0:
        return f"takes at least {_rate(low)} {UNIT}"
    if math.isfinite(high):
        busy = any(caveat.code in BUSY for caveat in _about(search, caveats))
        return f"already fails at {_rate(high)} {UNIT}{' on this busy box' if busy else ''}"
    if not any(trial.on_schedule for trial in search.counted):
        return f"has no bound, since none of {counted(len(search.counted), 'trial')} tells whether the objective held"
    return f"has no bound from {counted(len(search.counted), 'trial')}: the objective {_tried_text(search)}"


def _about(search: CellSearch, caveats: Sequence[Caveat]) -> list[Caveat]:
    """Return the caveats that weaken the capacity of a cell: notes do not."""
    about = (caveat for caveat in caveats if caveat.scope == "cell" and caveat.subject == search.cell.id)
    return [caveat for caveat in about if caveat.severity != "note" and "capacity".startswith(caveat.metrics)]


def stop_sentence(search: CellSearch) -> str:
    """'24 trials, precise', '11 trials: the objective already fails at the floor of 25 requests/s'."""
    trials, stop = counted(len(search.counted), "trial"), search.stop
    if stop is None:
        return trials
    if stop.reason == "could not":
        return f"{trials}: {in_one_line(stop.why)}"
    ends = {"max reached": "the most that were allowed, not precise", "budget": "out of time"}
    return f"{trials}, {ends.get(stop.reason, stop.reason)}"


def open_sentence(search: CellSearch) -> str:
    """Say what the open end of an interval means; '' of one that has none."""
    name, low, high = search.cell.filesystem.name, search.capacity.low, search.capacity.high
    if bounded(search.capacity):
        return ""
    if low > 0:
        return f"{name}: no upper bound, since the objective did not fail often enough at the highest rates."
    if math.isfinite(high):
        return f"{name}: no lower bound, since the objective did not hold often enough at the lowest rates."
    trials = counted(sum(trial.on_schedule for trial in search.counted), "trial")
    return f"{name}: the {trials} that count bound it on neither side."


def lost_sentence(search: CellSearch) -> str:
    """Say which trials do not count, and why; '' where all do."""
    if not search.lost:
        return ""
    name, latest = search.cell.filesystem.name, max(trial.lateness for trial in search.lost)
    late = f" Requests were issued up to {quantity(latest, 's')} after they were due." if latest >= SEEN_LATE_S else ""
    lowest = f"{_rate(min(trial.asked for trial in search.lost))} {UNIT}"
    do, at = ("does", f"at {lowest}") if len(search.lost) == 1 else ("do", f"from {lowest} on")
    return (
        f"{len(search.lost)} of {counted(len(search.counted), 'trial')} of {name} {do} not count: {at} the schedule of "
        f"arrivals was not kept, and it is not known whether the objective held.{late}"
    )


def undrawn_sentence(search: CellSearch) -> str:
    """Say how many trials that count are not in the figure, and why; '' where all are."""
    metrics = {curve.metric: curve for curve in search.curves}
    on_schedule = [trial for trial in search.counted if trial.on_schedule]
    missing = [sum(metric not in trial.latencies for trial in on_schedule) for metric in metrics]
    if not any(missing):
        return ""
    name, what = search.cell.filesystem.name, listed([_percentile_of(curve) for curve in metrics.values()])
    return f"Not drawn: {counted(max(missing), 'trial')} of {name}, with too few requests for {what}."


def _percentile_of(curve: LoadCurve) -> str:
    """'read p99.9'."""
    return f"{curve.direction} {percentile_text(curve.percentile)}"


def knee_sentence(curves: Sequence[LoadCurve]) -> str:
    """'The flat part of read p99 ends between 2 100 and 2 400 requests/s on ext4 ...'; '' where no curve shows it."""
    knees = [(curve, curve.knee) for curve in curves if curve.knee]
    if not knees:
        return ""
    ends = [f"{number(knee[0], 0)} and {number(knee[1], 0)} {UNIT} on {curve.filesystem}" for curve, knee in knees]
    what = _percentile_of(curves[0])
    return f"The flat part of {what} ends between {listed(ends)}: from there on it is more than twice as long."


def half_width(capacity: Estimate) -> float:
    """Return how far the ends lie from the middle of the interval, relative; infinite where one is open."""
    return (capacity.high - capacity.low) / (capacity.high + capacity.low) if bounded(capacity) else math.inf


def half_width_text(capacity: Estimate) -> str:
    """'± 4.4 %'."""
    return f"±\u00a0{percent(half_width(capacity))}" if bounded(capacity) else MISSING
