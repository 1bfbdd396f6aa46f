"""Latency over load, of the trials of a search for a capacity: each trial, percentiles by rate, and the knee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import median

from mountlab.analysis.run_view import RunView
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Estimate
from mountlab.core.frames import pd
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Cell
from mountlab.core.objectives import limit_text
from mountlab.core.search import Search

STEPS_A_DECADE = 20
"""Trials whose rates lie in the same of so many equal steps of a factor of ten (12 % each) form one point of a line."""
_MIDDLE = "p50"
_LOWEST = 3
"""Trials of the lowest rates, whose median latency is that of the flat part."""
_LEAVES = 2.0
"""Times the latency of the flat part: where it is exceeded the flat part ends."""
_FLAT_OVER = 2.0
"""The flat part reaches over this factor of rates at least; of a shorter one it is not known whether it is flat."""


@dataclass(frozen=True)
class LoadTrial:
    """One open-loop trial at one rate."""

    trial_id: str
    block: int
    warmup: bool
    asked: float
    """Requests per second, as the next two."""
    arrived: float
    completed: float
    lateness: float
    """The largest, from when a request was due until it was issued, in seconds."""
    used: float
    """The largest ratio of a percentile to its limit; NaN where the schedule of arrivals was not kept so closely that
    it is known."""
    latencies: Mapping[str, float]
    """Metric to seconds, from when a request was due."""

    @property
    def on_schedule(self) -> bool:
        """Whether the schedule of arrivals was kept so closely that it is known whether the objective held."""
        return not math.isnan(self.used)

    @property
    def meets_objective(self) -> bool:
        """Whether the objective held."""
        return self.used <= 1


@dataclass(frozen=True)
class RatePoint:
    """Trials at about the same rate."""

    rate: float
    """Their median, as the next two."""
    latency: float
    middle: float
    """The median over the requests of a trial; NaN where that is the percentile itself."""
    n: int


@dataclass(frozen=True)
class LoadCurve:
    """One percentile of one direction over the rates of a search."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    direction: str
    percentile: str
    """As metrics name it: p99_9."""
    limit: float
    """The most that it may be, in seconds."""
    trials: tuple[LoadTrial, ...]
    """That count, in the order in which they ran."""
    capacity: Estimate
    """NaN where none is known."""

    @property
    def text(self) -> str:
        """'read p99 ≤ 5 ms'."""
        return limit_text(self.direction, self.percentile, self.limit)

    @property
    def metric(self) -> str:
        """Of the percentile."""
        return f"{self.direction}_latency_{self.percentile}"

    @cached_property
    def points(self) -> tuple[RatePoint, ...]:
        """The percentile by rate, rising, over the trials whose schedule was kept."""
        usable = [trial for trial in self.trials if trial.on_schedule and trial.latencies.get(self.metric, 0) > 0]
        usable.sort(key=_rate)
        middle_of = "" if self.percentile == _MIDDLE else f"{self.direction}_latency_{_MIDDLE}"
        points = []
        for _, group in groupby(usable, key=lambda trial: round(STEPS_A_DECADE * math.log10(trial.asked))):
            trials = list(group)
            middles = [trial.latencies[middle_of] for trial in trials if middle_of in trial.latencies]
            middle = median(middles) if middles else math.nan
            latency = median(trial.latencies[self.metric] for trial in trials)
            points.append(RatePoint(median(map(_rate, trials)), latency, middle, len(trials)))
        return tuple(points)

    @cached_property
    def knee(self) -> tuple[float, float] | None:
        """The rates between which latency leaves its flat part: the highest up to which the median percentile stays
        within a factor of 2 of that of the three trials at the lowest rates, and the next one. None where the trials do
        not show it: where no rate exceeds the factor, where a higher one falls below it again, or where the flat part
        does not reach over a factor of 2 in rate."""
        trials = [trial for trial in self.trials if trial.on_schedule and self.metric in trial.latencies]
        if len(trials) < _LOWEST:
            return None
        lowest = sorted(trials, key=_rate)[:_LOWEST]
        flat = _LEAVES * median(trial.latencies[self.metric] for trial in lowest)
        below = [point.latency <= flat for point in self.points]
        count = sum(below)
        if not 0 < count < len(below) or not all(below[:count]):
            return None
        last, first = self.points[count - 1].rate, self.points[count].rate
        return (last, first) if last >= _FLAT_OVER * self.points[0].rate else None


def _rate(trial: LoadTrial) -> float:
    return trial.asked


@dataclass(frozen=True)
class CellSearch:
    """The search of one cell."""

    cell: Cell
    search: Search
    trials: tuple[LoadTrial, ...]
    """All of them, those of the warm-up too, in the order in which they ran."""
    capacity: Estimate
    """NaN where none is known."""
    stop: CellStop | None

    @property
    def counted(self) -> tuple[LoadTrial, ...]:
        """Those after the warm-up."""
        return tuple(trial for trial in self.trials if not trial.warmup)

    @property
    def lost(self) -> tuple[LoadTrial, ...]:
        """Those after the warm-up that do not count, since their schedule was not kept."""
        return tuple(trial for trial in self.counted if not trial.on_schedule)

    @property
    def curves(self) -> Iterator[LoadCurve]:
        """One for each direction and percentile of the objective."""
        about = self.cell.filesystem.name, self.cell.workload.label
        for direction in self.search.objective.of:
            for percentile, limit in self.search.objective.limits.items():
                yield LoadCurve(*about, direction, percentile, limit, self.counted, self.capacity)


def searches(run: RunView) -> list[CellSearch]:
    """Return the searches of a run: workloads in the order of the sweep, file systems in theirs."""
    order = [workload.label for workload in run.sweep.workloads]
    cells = sorted(run.sweep.cells, key=lambda cell: order.index(cell.workload.label))
    trials, capacities = _trials(run.measurements), _capacities(run.estimates)
    stops = {stop.cell: stop for stop in run.stops}
    return [
        CellSearch(
            cell,
            cell.workload.search,
            tuple(trials.get(cell.id, ())),
            capacities.get(cell.id, _UNKNOWN),
            stops.get(cell.id),
        )
        for cell in cells
        if cell.workload.search
    ]


def _trials(measurements: pd.DataFrame) -> dict[str, list[LoadTrial]]:
    """Return cell to its trials that have figures, in the order of the rows."""
    by_cell: dict[str, list[LoadTrial]] = {}
    for (trial_id, cell), rows in measurements.groupby(["trial_id", "cell"], sort=False):
        values = dict(zip(rows["metric"], rows["value"].astype(float), strict=True))
        if "asked_rate" in values:
            trial = LoadTrial(
                trial_id=str(trial_id),
                block=int(rows["block"].iloc[0]),
                warmup=bool(rows["warmup"].iloc[0]),
                asked=values["asked_rate"],
                arrived=values.get("arrival_rate", math.nan),
                completed=values.get("completion_rate", math.nan),
                lateness=values.get("largest_lateness", math.nan),
                used=values.get("objective_used", math.nan),
                latencies={name: value for name, value in values.items() if name in PERCENT_OF},
            )
            by_cell.setdefault(str(cell), []).append(trial)
    return by_cell


_UNKNOWN = Estimate(
    mean=math.nan, low=0.0, high=math.inf, sd=math.nan, cv=math.nan, n=0, level=math.nan, method="", unit="1/s"
)


def _capacities(estimates: pd.DataFrame) -> dict[str, Estimate]:
    rows = estimates[estimates["metric"] == "capacity"].to_dict("records")
    names = ("mean", "low", "high", "sd", "cv", "level")
    return {
        str(row["cell"]): Estimate(
            **{name: float(row[name]) for name in names}, n=int(row["n"]), method=str(row["method"]), unit="1/s"
        )
        for row in rows
    }


# ── frames for notebooks ─────────────────────────────────────────────────────────────────────────────────────────────

TRIAL_COLUMNS = (
    "filesystem", "workload", "trial_id", "block", "warmup", "asked", "arrived", "completed", "lateness", "used",
)  # fmt: skip
POINT_COLUMNS = ("filesystem", "workload", "direction", "percentile", "limit", "rate", "latency", "middle", "n")


def trial_frame(searches: Sequence[CellSearch]) -> pd.DataFrame:
    """Return one row a trial of each search, in base units: TRIAL_COLUMNS, and a column for each percentile; `workload`
    holds the label."""
    rows = []
    for search in searches:
        about = {"filesystem": search.cell.filesystem.name, "workload": search.cell.workload.label}
        rows += [{**about, **vars(trial), **trial.latencies} for trial in search.trials]
    frame = pd.DataFrame(rows, columns=None if rows else list(TRIAL_COLUMNS))
    return frame.drop(columns="latencies", errors="ignore")


def point_frame(searches: Sequence[CellSearch]) -> pd.DataFrame:
    """Return one row for each point of each curve, columns as POINT_COLUMNS: a percentile at about one rate, in
    seconds. `workload` holds the label."""
    curves = [curve for search in searches for curve in search.curves]
    rows = [{**vars(c), "workload": c.workload_label, **vars(point)} for c in curves for point in c.points]
    return pd.DataFrame(rows, columns=list(POINT_COLUMNS))
