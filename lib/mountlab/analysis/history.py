"""How the figure of a cell went over the years: its runs in order, where its level changed, and what else did there.

A history is one cell of one sweep on one box, as long as the same was asked of it: its figure in each run. The unit is
the run. The histories of the answer of one sweep on one box are one family: their changes are corrected together,
whichever of them a reader looks at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal

import numpy as np

from mountlab.analysis.compare.figures import table_of
from mountlab.analysis.compare.run_spread import level_of_mean
from mountlab.core.fact_words import fact_name
from mountlab.core.findings import Estimate, Verdict
from mountlab.core.groups import by_key
from mountlab.core.metrics import Better, higher_is_better
from mountlab.stats import adjust_comparisons, compare_rows_unpaired, estimate, estimate_of_moments
from mountlab.stats.changes import Change, Level, family_size, fewest_runs, find_changes, smallest_changes

LEVEL = 0.95
By = Literal["kernel", "os", "year", "month"]
_COMMIT = re.compile(r"-g([0-9a-f]{7,40})\b")
"""How a kernel's release names the commit it was built of (scripts/setlocalversion)."""


@dataclass(frozen=True, kw_only=True)
class HistoryPoint:
    """The figure of one run."""

    run: str
    """Its directory, below that of all runs."""
    at: datetime
    """When the run began, in UTC."""
    n: int
    """Trials, those at their time limit included."""
    mean: float
    """Where trials ran into their time limit the median of all, with these as the worst; NaN where it lies among them,
    or where a limit does not bound the metric. Such a run has no spread: all below is NaN."""
    sd: float
    log_mean: float
    log_sd: float
    """Of the logarithms of the values; NaN where one of them is not positive."""
    censored: int = 0
    """Trials that ran into their time limit."""
    filesystem: str
    filesystems: tuple[str, ...]
    """All of the run's sweep, in its order."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the run kept of its box and of Mountlab, by the names that people read: 'kernel', 'fio', ..."""

    @property
    def level(self) -> Level:
        """The logarithm of the figure and its error, by the delta method where a trial is 0; NaN where the figure is
        not positive. That of a median is unknown."""
        if math.isfinite(self.log_mean):
            value, sd = self.log_mean, self.log_sd
        else:
            usable = self.mean > 0 and math.isfinite(self.mean)
            value, sd = (math.log(self.mean), self.sd / self.mean) if usable else (math.nan, math.nan)
        return level_of_mean(value, sd, self.n)

    @property
    def estimate(self) -> Estimate:
        """Mean and interval, from the trials of the run."""
        return estimate_of_moments(self.mean, self.sd, self.n, level=LEVEL)


@dataclass(frozen=True, kw_only=True)
class Key:
    """What makes a history."""

    sweep: str
    box: str
    cell: str
    metric: str
    label: str = ""
    unit: str = ""
    asked: str = ""
    """A hash of what was asked of the cell."""
    answer: bool = True
    """Whether the sweep's answer is about this metric."""
    better: Better | Literal[""] = ""
    """Of a metric that the sweep defines; '' for one of METRICS."""

    @property
    def more_is_better(self) -> bool:
        return higher_is_better(self.metric, self.better)


@dataclass(frozen=True)
class OtherChange:
    """Something other than the figure that was not the same in two neighbouring runs."""

    what: str
    before: str
    after: str
    at: int
    """The first run that has it so."""
    only_there: bool
    """Whether no run before the change has what the runs after it have."""

    @property
    def commits(self) -> str:
        """'a1b2c3d..d4e5f6a', where both sides name the commit that they were built of."""
        if self.what == "Mountlab's commit":
            return f"{self.before.partition('+')[0][:12]}..{self.after.partition('+')[0][:12]}"
        before, after = _COMMIT.search(self.before), _COMMIT.search(self.after)
        return f"{before[1]}..{after[1]}" if before and after else ""


@dataclass(frozen=True)
class History:
    """One figure of one cell over its runs, oldest first."""

    key: Key
    points: tuple[HistoryPoint, ...]
    """The runs that count: those whose figure has a logarithm."""
    changes: tuple[Change, ...] = ()
    family: int = 1
    """How many histories its changes are corrected for."""
    left_out: tuple[HistoryPoint, ...] = ()
    """Runs whose figure is 0 or no number, so that no ratio to it exists; or lies among trials at their time limit."""

    @property
    def by_mean(self) -> tuple[HistoryPoint, ...]:
        """The runs with a trial of 0: they count by the logarithm of their mean."""
        return tuple(point for point in self.points if not point.censored and not math.isfinite(point.log_mean))

    @property
    def by_median(self) -> tuple[HistoryPoint, ...]:
        """The runs with trials at their time limit: they count by their median, with the weight of one trial."""
        return tuple(point for point in self.points if point.censored)

    @cached_property
    def visible(self) -> list[tuple[int, float]]:
        """For each number of runs from now on the change, as a share of the level, that would be reported by then in
        four of five cases: the smaller of a rise and a fall."""
        since = self.changes[-1].at if self.changes else 0
        sizes = smallest_changes([point.level for point in self.points], since, self.family, LEVEL)
        return [(runs, -math.expm1(-size)) for runs, size in sizes]

    def turns(self, change: Change) -> list[OtherChange]:
        """Return what else changed where this change may lie, the likeliest first."""
        different = {id(point.facts): point.facts for point in self.points}  # runs share what is the same
        names = dict.fromkeys(name for facts in different.values() for name in facts)
        turns = [turn for name in names if (turn := self._turn(name, change)) is not None]
        return sorted(turns, key=lambda turn: (not turn.only_there, abs(turn.at - change.at)))

    def _turn(self, name: str, change: Change) -> OtherChange | None:
        near = range(max(change.first, 1), change.last + 1)
        pairs = ((place, [point.facts.get(name) for point in self.points[place - 1 : place + 1]]) for place in near)
        places = [place for place, (before, after) in pairs if None not in (before, after) and before != after]
        if not places:
            return None
        at = min(places, key=lambda place: abs(place - change.at))
        values = [point.facts.get(name) for point in self.points]
        before, after = set(values[change.since : at]), set(values[at : change.until])
        return OtherChange(name, str(values[at - 1]), str(values[at]), at, only_there=not before & after)

    def verdict(self, change: Change) -> Verdict:
        """Return whether it became faster or slower."""
        return "faster" if (change.ratio > 1) == self.key.more_is_better else "slower"

    @property
    def too_short(self) -> bool:
        """Whether no change could be shown, however large."""
        return len(self.points) < fewest_runs(self.family, LEVEL)


@dataclass(frozen=True)
class Group:
    """The runs of a history that have something in common."""

    name: str
    points: tuple[HistoryPoint, ...]
    estimate: Estimate
    """Of the means of the runs: n counts runs."""
    ratio: float
    low: float
    high: float
    """To the first group, with an interval that holds together with those of all others; NaN for the first."""


def histories(rows: Iterable[tuple[Key, HistoryPoint]]) -> list[History]:
    """Return the figures of runs as histories, each with its changes."""
    points = by_key(rows)
    for group in points.values():
        group.sort(key=lambda point: (point.at, point.run))
    families = by_key(((key.sweep, key.box, "" if key.answer else key.metric), key) for key in points)
    by_name = {history.key: history for keys in families.values() for history in _of_family(keys, points)}
    return [by_name[key] for key in points]


def _of_family(keys: Sequence[Key], points: Mapping[Key, Sequence[HistoryPoint]]) -> Iterator[History]:
    counted = [tuple(point for point in points[key] if math.isfinite(point.level.value)) for key in keys]
    levels = [[point.level for point in group] for group in counted]
    for key, group, changes in zip(keys, counted, find_changes(levels, level=LEVEL), strict=True):
        left_out = tuple(point for point in points[key] if not math.isfinite(point.level.value))
        yield History(key, group, tuple(changes), family_size(levels), left_out)


def grouped(history: History, by: By) -> list[Group]:
    """Return the runs of a history by kernel, operating system, year or month, in the order in which these first came.
    Each run is one value."""
    groups = by_key((_group_name(point, by), point) for point in history.points)
    means = [[point.mean for point in group] for group in groups.values()]
    bounds = [(math.nan, math.nan, math.nan)][: len(means)] + _to_first(means)
    return [
        Group(name, tuple(group), estimate([point.mean for point in group], level=LEVEL, unit=history.key.unit), *bound)
        for (name, group), bound in zip(groups.items(), bounds, strict=True)
    ]


def _to_first(means: Sequence[Sequence[float]]) -> list[tuple[float, float, float]]:
    """Return the ratio of each group but the first to the first, with intervals that hold together."""
    if len(means) < 2:
        return []
    table = table_of(means)
    ratios = compare_rows_unpaired(table[1:], np.broadcast_to(table[0], table[1:].shape))
    adjusted = adjust_comparisons(ratios, level=LEVEL, smallest_effect=0.02)
    return list(zip(ratios.ratio.tolist(), adjusted.joint.low.tolist(), adjusted.joint.high.tolist(), strict=True))


def _group_name(point: HistoryPoint, by: By) -> str:
    if by in ("year", "month"):
        return f"{point.at:%Y}" if by == "year" else f"{point.at:%Y-%m}"
    return point.facts.get(fact_name(by), "not known")
