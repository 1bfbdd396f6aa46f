"""Sentences on searches for a capacity. Every figure in them comes from the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mountlab.analysis import verdicts
from mountlab.analysis.load_curve import CellSearch, LoadCurve
from mountlab.core.findings import Comparison, Estimate
from mountlab.core.numbers import MISSING, count_figures, counted, listed, number, percent, quantity
from mountlab.core.objectives import objective_text, percentile_text
from mountlab.report import sentences

UNIT = "requests/s"
NO_SEARCH = "The run holds no search for a capacity: a workload asks for one by `capacity`."


def capacity_text(capacity: Estimate) -> str:
    """'3 140 [3 010, 3 280] requests/s'; of an interval that is open at one end 'more than 12 000 requests/s'."""
    low, high = capacity.low, capacity.high
    if low > 0 and math.isfinite(high):
        return f"{count_figures(capacity.mean, low, high)} {UNIT}"
    if low > 0:
        return f"more than {number(low, _decimals(low))} {UNIT}"
    if math.isfinite(high):
        return f"less than {number(high, _decimals(high))} {UNIT}"
    return f"an unknown number of {UNIT}"


def capacity_figures(capacity: Estimate) -> tuple[str, str]:
    """Return the value and the interval for two columns; what is known of an interval that is open at an end."""
    low, high = capacity.low, capacity.high
    if low > 0 and math.isfinite(high):
        figures = count_figures(capacity.mean, low, high)
        return figures.value, figures.interval
    return MISSING, capacity_text(capacity) if low > 0 or math.isfinite(high) else "unknown"


def _decimals(rate: float) -> int:
    return 0 if rate >= 100 else 1


def answer_sentence(own: Sequence[CellSearch], ratios: Mapping[str, Comparison], baseline: str, smallest: float) -> str:
    """'ext4 takes 3 140 [3 010, 3 280] requests/s at read p99 ≤ 5 ms; xfs 3 800 [3 650, 3 960] requests/s, 1.21 times
    as many [1.15, 1.27]: faster.': the searches of one workload, the baseline first. `ratios`: cell to its comparison
    with the baseline."""
    ordered = sorted(own, key=lambda each: each.cell.filesystem.name != baseline)
    said = [_of_one(each, ratios.get(each.cell.id), smallest) for each in ordered]
    name, _, rest = said[0].partition(" ")
    first = f"{name} takes {rest} at {objective_text(own[0].search.objective)}"
    return f"{'; '.join([first, *said[1:]])}."


def _of_one(each: CellSearch, ratio: Comparison | None, smallest: float) -> str:
    text = f"{each.cell.filesystem.name} {capacity_text(each.capacity)}"
    if ratio is None:
        return text
    times, _, interval = verdicts.times_text(ratio).partition(" times")
    known = ratio.low > 0 or math.isfinite(ratio.high)
    many = f", {times} times as many{interval}" if known else ""
    return f"{text}{many}: {verdicts.verdict_or_why(ratio, smallest)}"


def stop_sentence(each: CellSearch) -> str:
    """'24 trials, precise after 24 blocks'."""
    trials = counted(len(each.counted), "trial")
    return f"{trials}, {sentences.stop_text(each.stop)}" if each.stop else trials


def open_sentence(each: CellSearch) -> str:
    """Say what the open end of an interval means; '' of one that has none."""
    name, low, high = each.cell.filesystem.name, each.capacity.low, each.capacity.high
    if low > 0 and math.isfinite(high):
        return ""
    if low > 0:
        return f"{name}: no upper bound, since the objective did not fail often enough at the highest rates."
    if math.isfinite(high):
        return f"{name}: no lower bound, since the objective did not hold often enough at the lowest rates."
    known = counted(sum(trial.kept for trial in each.counted), "trial")
    return f"{name}: the {known} that count bound it on neither side."


def lost_sentence(each: CellSearch) -> str:
    """Say which trials do not count, and why; '' where all do."""
    if not each.lost:
        return ""
    latest = max(trial.lateness for trial in each.lost)
    lowest = min(trial.asked for trial in each.lost)
    one = len(each.lost) == 1
    return (
        f"{len(each.lost)} of {counted(len(each.counted), 'trial')} of {each.cell.filesystem.name} "
        f"{'does' if one else 'do'} not count: the schedule of arrivals was not kept. Requests were issued up to "
        f"{quantity(latest, 's')} after they were due, {'at' if one else 'from'} {number(lowest, 0)} {UNIT}"
        f"{'' if one else ' on'}, and so many that it is not known whether the objective held."
    )


def undrawn_sentence(each: CellSearch) -> str:
    """Say how many trials that count are not in the figure, and why; '' where all are."""
    metrics = {curve.metric: curve for curve in each.curves}
    missing = [sum(trial.kept and metric not in trial.latencies for trial in each.counted) for metric in metrics]
    if not any(missing):
        return ""
    name, what = each.cell.filesystem.name, listed([_percentile_of(curve) for curve in metrics.values()])
    return f"Not drawn: {counted(max(missing), 'trial')} of {name}, with too few requests for {what}."


def _percentile_of(curve: LoadCurve) -> str:
    """'read p99.9'."""
    return f"{curve.direction} {percentile_text(curve.percentile)}"


def knee_sentence(curves: Sequence[LoadCurve]) -> str:
    """'The flat part of read p99 ends between 2 100 and 2 400 requests/s on ext4 ...'; '' where no curve shows it."""
    shown = [(curve, curve.knee) for curve in curves if curve.knee]
    if not shown:
        return ""
    ends = [f"{number(knee[0], 0)} and {number(knee[1], 0)} {UNIT} on {curve.filesystem}" for curve, knee in shown]
    what = _percentile_of(curves[0])
    return f"The flat part of {what} ends between {listed(ends)}: from there on it is more than twice as long."


def half_width_text(capacity: Estimate) -> str:
    """'± 4.4 %': how far the ends lie from the middle of the interval."""
    low, high = capacity.low, capacity.high
    if not (low > 0 and math.isfinite(high)):
        return MISSING
    return f"±\u00a0{percent((high - low) / (high + low))}"
