"""Throughput that steps down to a lower level: a volume whose burst credits are used up is measured in two states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, median
from typing import Literal

from mountlab.checks.asked import writes_of
from mountlab.checks.base import SIDES, Evidence, Sample, of_trials
from mountlab.checks.traffic import CACHED_BELOW, moved
from mountlab.core.model import Cell, Workload
from mountlab.core.numbers import quantity
from mountlab.core.units import format_bytes, format_seconds
from mountlab.filesystems.evidence import Device
from mountlab.fio.jobs import jobs_of
from mountlab.fio.options import waits
from mountlab.fio.series import Series, together

LOWER = 0.8
"""A level that is at most this share of the one before it is another one."""
LEAST_WINDOWS = 3
"""Windows of fio's log at each level."""
NEAR = 0.25
"""What belongs to a level lies within this share of the step from it."""
ODD = 0.2
"""Share of the windows of a level that may lie elsewhere, beside the one in which it falls."""
SAME_AMOUNT = 1.5
"""Amounts that differ by no more than this factor are about the same."""
ORDERS = 100
"""Where trials could be in so many orders or more, that all high ones come first is no accident."""


# --- one step down ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fall:
    """One step down: the number of values before it, and both levels."""

    at: int
    before: float
    after: float

    @property
    def room(self) -> float:
        """How far from a level a value may lie that belongs to it."""
        return NEAR * (self.before - self.after)

    def state(self, value: float) -> Literal["high", "low", ""]:
        """Return the level to which a value belongs; '' where it is neither."""
        if abs(value - self.before) <= self.room:
            return "high"
        return "low" if abs(value - self.after) <= self.room else ""

    def off(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return how far values lie from their levels in sum."""
        return sum(abs(value - self.before) for value in before) + sum(abs(value - self.after) for value in after)


def fall(values: Sequence[float], *, least: int, between: int = 0, odd: float = 0.0) -> Fall | None:
    """Return the step down that splits values into two levels, the higher one first; None where there is none.

    Each level has `least` values or more, and so many `between` them may be anything. All of a level lie near it, but
    for a share that is `odd`.
    """
    splits: list[tuple[float, int, Fall]] = []
    for at in range(least, len(values) - between - least + 1):
        before, after = values[:at], values[at + between :]
        step = Fall(at, median(before), median(after))
        early_strays = sum(step.state(value) != "high" for value in before)
        late_strays = sum(step.state(value) != "low" for value in after)
        lower = step.after <= LOWER * step.before
        if lower and early_strays <= odd * len(before) and late_strays <= odd * len(after):
            splits.append((step.off(before, after), -at, step))
    return min(splits, key=lambda split: split[:2])[2] if splits else None


# --- inside of trials -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fallen:
    """A trial whose bandwidth fell."""

    trial_id: str
    fall: Fall
    seconds: float
    """After which it fell."""
    amount: float
    """The bytes that were moved until then."""


def stepped_down(evidence: Evidence) -> Mapping[str, str]:
    """Return cell to what is seen of its step down, inside of trials or between them; without cells that have none."""
    cells = evidence.once(on_a_device)
    inside = {cell.id: words for cell in cells if (words := _inside(evidence, cell))}
    return {**_between(evidence, [cell for cell in cells if cell.id not in inside]), **inside}


def on_a_device(evidence: Evidence) -> list[Cell]:
    """Return the cells whose bytes the device moved, by its counters: the page cache has cliffs of its own."""
    least: dict[str, tuple[float, Cell]] = {}
    for trial in moved(evidence):
        share, _ = least.get(trial.cell.id, (math.inf, trial.cell))
        least[trial.cell.id] = min(share, trial.device_bytes / trial.tool_bytes), trial.cell
    return [cell for share, cell in least.values() if share >= CACHED_BELOW]


def _logs_the_device(workload: Workload) -> bool:
    """Return whether a log of fio's follows the device: writes into the page cache have a cliff, and jobs that do
    different things have steps."""
    if workload.tool != "fio" or "jobs" in workload.options:
        return False
    return not writes_of(workload) or all(waits(job.options) for job in jobs_of(workload.options))


def _inside(evidence: Evidence, cell: Cell) -> str:
    """Return what is seen of a step down inside of a cell's trials; '' where there is none."""
    if not _logs_the_device(cell.workload):
        return ""
    logs = {trial: _points(evidence.series.get(trial, ())) for trial in evidence.counted[cell.id]}
    levels = {trial: fmean(value for _, value in points) for trial, points in logs.items() if points}
    fallen = {trial: step for trial in levels if (step := _fallen(trial, logs[trial]))}
    if not fallen or not _of_two_levels(levels, fallen):
        return ""
    return _inside_words(evidence, list(levels), fallen)


def _points(series: Sequence[Series]) -> list[tuple[float, float]]:
    """Return the bandwidth of the direction that moved more."""
    sides = [together(series, f"{side}_bandwidth") for side in SIDES]
    return max(sides, key=lambda points: sum(value for _, value in points))


def _fallen(trial_id: str, points: Sequence[tuple[float, float]]) -> _Fallen | None:
    values = [value for _, value in points]
    step = fall(values, least=LEAST_WINDOWS, between=1, odd=ODD)
    if not step:
        return None
    seconds = points[step.at - 1][0]
    return _Fallen(trial_id, step, seconds, fmean(values[: step.at]) * seconds)


def _of_two_levels(levels: Mapping[str, float], fallen: Mapping[str, _Fallen]) -> bool:
    """Return whether each trial is at one of two levels or falls from one to the other. And none is at the higher one
    after the first fall, or most trials fall, after about the same amount."""
    falls = [trial.fall for trial in fallen.values()]
    common = Fall(0, median(step.before for step in falls), median(step.after for step in falls))
    alike = all((common.state(step.before), common.state(step.after)) == ("high", "low") for step in falls)
    states = ["falls" if trial in fallen else common.state(level) for trial, level in levels.items()]
    amounts = [trial.amount for trial in fallen.values()]
    recurs = 2 * len(fallen) > len(levels) and max(amounts) <= SAME_AMOUNT * min(amounts)
    return alike and "" not in states and (recurs or "high" not in states[states.index("falls") :])


def _inside_words(evidence: Evidence, trials: Sequence[str], fallen: Mapping[str, _Fallen]) -> str:
    first = next(iter(fallen.values()))
    step, since = first.fall, _moved_before(evidence, first.trial_id) + first.amount
    return (
        f"throughput fell at once from {quantity(step.before, 'B/s')} to {quantity(step.after, 'B/s')} "
        f"{format_seconds(first.seconds)} into {first.trial_id}, and stayed there: after "
        f"{_amount(evidence, first)} of this trial, {format_bytes(since)} of all trials on this device."
        f"{_later(trials, fallen)}"
    )


def _later(trials: Sequence[str], fallen: Mapping[str, _Fallen]) -> str:
    """Return what the other trials of the cell did."""
    after = trials[trials.index(next(iter(fallen))) + 1 :]
    if len(fallen) > 1:
        amounts = [trial.amount for trial in fallen.values()]
        range_of = f"{format_bytes(min(amounts))} to {format_bytes(max(amounts))}"
        return f" It fell {of_trials(list(fallen), trials)}, after {range_of} of each."
    return f" Later trials, from {after[0]} on, were at the lower level." if after else ""


def _amount(evidence: Evidence, fallen: _Fallen) -> str:
    """'1.2 GiB (310,000 I/Os)'; without the I/Os where the tool does not count them."""
    rows = evidence.measurements[evidence.measurements["trial_id"] == fallen.trial_id]
    counts = rows[(rows["label"] == "") & rows["metric"].isin([f"{side}_ios" for side in SIDES])]["value"]
    size = sum(evidence.moved.get((fallen.trial_id, side), 0.0) for side in SIDES)
    ios = round(float(counts.sum()) * fallen.amount / size) if size else 0
    return f"{format_bytes(fallen.amount)}{f' ({ios:,} I/Os)' if ios else ''}"


# --- between trials ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """A cell whose trials are first all at one level and then all at a lower one."""

    sample: Sample
    fall: Fall
    last_high: int
    first_low: int
    """Places in the order of the run."""

    @property
    def orders(self) -> int:
        """In how many orders high and low trials could be."""
        return math.comb(len(self.sample.values), self.fall.at)


def _between(evidence: Evidence, cells: Sequence[Cell]) -> dict[str, str]:
    """Return cell to what is seen of its step down between trials: of cells on one device that step down at one time,
    half of those on the device or more, with so many trials that chance hardly puts all high ones first."""
    ids = {cell.id for cell in cells}
    samples = list({sample.cell.id: sample for sample in reversed(evidence.samples) if _is_rate(sample, ids)}.values())
    words: dict[str, str] = {}
    by_device = sorted(samples, key=lambda sample: _devices(evidence, sample.trials[0]))
    for _, group in groupby(by_device, key=lambda sample: _devices(evidence, sample.trials[0])):
        samples_here = list(group)
        cuts = [cut for sample in samples_here if (cut := _cut(evidence, sample))]
        at_once = cuts and max(cut.last_high for cut in cuts) < min(cut.first_low for cut in cuts)
        if at_once and 2 * len(cuts) >= len(samples_here) and math.prod(cut.orders for cut in cuts) >= ORDERS:
            words |= {cut.sample.cell.id: _between_words(evidence, cut, len(cuts), len(samples_here)) for cut in cuts}
    return words


def _is_rate(sample: Sample, cells: set[str]) -> bool:
    return sample.cell.id in cells and sample.cell.workload.metric(sample.metric).unit in ("B/s", "1/s")


def _devices(evidence: Evidence, trial_id: str) -> tuple[Device, ...]:
    """Return the lowest devices below a trial."""
    return evidence.levels_of(trial_id)[-1]


def _cut(evidence: Evidence, sample: Sample) -> _Cut | None:
    step = fall(sample.values, least=1)
    if not step:
        return None
    places = {trial: place for place, trial in enumerate(evidence.trials["trial_id"])}
    return _Cut(sample, step, places[sample.trials[step.at - 1]], places[sample.trials[step.at]])


def _between_words(evidence: Evidence, cut: _Cut, cells: int, of: int) -> str:
    unit = cut.sample.cell.workload.metric(cut.sample.metric).unit
    first = cut.sample.trials[cut.fall.at]
    others = f" {cells} of {of} cells on this device did so at that time." if of > 1 else ""
    return (
        f"{cut.sample.name} fell at once from {quantity(cut.fall.before, unit)} to {quantity(cut.fall.after, unit)} "
        f"between two trials and stayed there, from {first} (block {cut.sample.blocks[cut.fall.at]}) on: after "
        f"{format_bytes(_moved_before(evidence, first))} of all trials on this device.{others}"
    )


def _moved_before(evidence: Evidence, trial_id: str) -> float:
    """Return the bytes that the tools of all earlier trials moved on the lowest devices of a trial."""
    devices, total = _devices(evidence, trial_id), 0.0
    for earlier in evidence.trials["trial_id"]:
        if earlier == trial_id:
            break
        if evidence.levels_of(earlier)[-1:] == (devices,):
            total += sum(evidence.moved.get((earlier, side), 0.0) for side in SIDES)
    return total
