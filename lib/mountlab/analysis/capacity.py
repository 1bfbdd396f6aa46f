"""Searches for a capacity: what the trials answered, which rate comes next, and when a cell has had enough trials.

Pure, and a function of the journal alone, so that a run that was interrupted goes on as it would have done. Every block
holds one trial of each cell that still searches; its rate follows from the trials of the blocks before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.analysis.measurements import by_block, counted
from mountlab.core.cell_stop import CellStop, StopReason
from mountlab.core.frames import pd
from mountlab.core.model import Cell, Sweep
from mountlab.core.search import Search
from mountlab.programs import TOOLS
from mountlab.stats.capacity import Capacity, RateTrial, next_rate
from mountlab.stats.capacity_order import is_precise, searched_capacity
from mountlab.stats.capacity_ratios import level_at_end

METRIC = "capacity"
METHOD = "sequential search, bets on trials that hold the objective or fail it"
RATIO_METHOD = "ratio of capacities, bets on the trials of both searches"
BACK = 1.25
"""By how much a search goes back from a rate whose schedule was not kept."""
MOST_UNSURE = 5
"""Trials without a kept schedule after which a search ends that they keep from ending."""


@dataclass(frozen=True)
class Searching:
    """One cell's search, before a block."""

    search: Search
    trials: tuple[RateTrial, ...]
    """Those that answered, in the order of blocks."""
    unsure: tuple[float, ...]
    """The rates at which the schedule of arrivals was not kept."""
    least: float
    """The floor of its rates: at a lower one a trial would last too long until it knows whether the objective holds."""
    largest: float
    """The largest rate that its tool can generate for as long as it asks."""
    level: float
    """Of the interval that is printed."""
    compared: int
    """How many capacities the sweep compares with that of its baseline."""

    @property
    def capacity(self) -> Capacity:
        """The capacity as far as it is known."""
        return searched_capacity(self.trials, self.level)

    @property
    def ceiling(self) -> float:
        """The largest rate that is worth a trial: one whose schedule was kept always is."""
        on_schedule = max((trial.rate for trial in self.trials), default=0.0)
        return min([self.largest, *(max(rate / BACK, on_schedule) for rate in self.unsure if rate > on_schedule)])

    @property
    def next_rate(self) -> float:
        """The rate of its next trial: a whole number of requests per second."""
        goal = self.search
        return next_rate(
            self.trials,
            half_width=goal.half_width,
            start=goal.start,
            floor=self.least,
            ceiling=self.ceiling,
            level=self.level_at_end,
            fallback=self.level,
            step=1.0,
            left=goal.max_trials - len(self.trials) - len(self.unsure),
        )

    @property
    def level_at_end(self) -> float:
        """The level at which it ends."""
        return level_at_end(self.level, self.compared)

    def ended_after(self, blocks: int, failed: str | None) -> tuple[StopReason, str] | None:
        """Why it needs no more trials after so many blocks, and the words for why none would help; None while it goes
        on. `failed`: the reason for which its cell was set aside."""
        if end := self.ended:
            return end
        if failed is not None:
            return "could not", failed
        if blocks < self.search.max_trials:
            return None
        narrow = searched_capacity(self.trials, self.level_at_end).half_width <= self.search.half_width
        return "precise" if narrow else "max reached", ""

    @property
    def ended(self) -> tuple[StopReason, str] | None:
        """Why it needs no more trials, and the words for why none would help; None while it goes on."""
        if is_precise(self.trials, self.search.half_width, self.level_at_end):
            return "precise", ""
        capacity = searched_capacity(self.trials, self.level_at_end)
        if 0 < capacity.high <= self.least:
            return "could not", f"the objective already fails at the floor of {self.least:,.0f} requests/s"
        if math.isinf(capacity.high) and capacity.low >= self.ceiling / BACK:
            bound = "that a trial can have" if self.ceiling == self.largest else "that was kept on schedule"
            return "could not", f"the objective still holds at {capacity.low:,.0f} requests/s, the highest rate {bound}"
        if len(self.unsure) >= MOST_UNSURE and len(self.unsure) > len(self.trials):
            return "could not", "the schedule of arrivals was not kept"
        return None


def searches(sweep: Sweep, measurements: pd.DataFrame, *, before: float = math.inf) -> dict[str, Searching]:
    """Return the search of each cell, from the counted trials of the blocks before `before`. `measurements` has the
    columns of measurements.measurement_frame."""
    rows = counted(measurements)
    rows = rows[rows["metric"].isin(("asked_rate", "objective_used")) & (rows["block"] < before)]
    values = by_block(rows.sort_values("block"))

    def values_of(cell: Cell, metric: str) -> Mapping[int, float]:
        return values.get((cell.id, metric, ""), {})

    return {
        cell.id: _searching(sweep, cell, values_of(cell, "asked_rate"), values_of(cell, "objective_used"))
        for cell in sweep.cells
    }


def _searching(sweep: Sweep, cell: Cell, rates: Mapping[int, float], uses: Mapping[int, float]) -> Searching:
    assert cell.workload.search is not None
    return Searching(
        search=cell.workload.search,
        trials=tuple(RateTrial(rate, uses[block] <= 1) for block, rate in rates.items() if block in uses),
        unsure=tuple(rate for block, rate in rates.items() if block not in uses),
        least=TOOLS[cell.workload.tool].least_rate(cell.workload),
        largest=TOOLS[cell.workload.tool].largest_rate(cell.workload),
        level=sweep.design.level,
        compared=sweep.compared_searches,
    )


def stop(cell: str, searching: Searching, blocks: int, reason: StopReason, why: str = "") -> CellStop:
    """Return why a cell has no more trials after so many blocks."""
    n, width = searching.capacity.n, searching.capacity.half_width
    width = width if math.isfinite(width) else math.nan
    return CellStop(cell=cell, reason=reason, blocks=blocks, n=n, half_width=width, metric=METRIC, why=why)


def estimate_rows(sweep: Sweep, measurements: pd.DataFrame) -> list[dict[str, object]]:
    """Return the capacity of each cell whose trials answered anything, with the columns of estimates.csv that do not
    say whose it is. Without a bound on both sides it has no value."""
    return [
        {
            "metric": METRIC,
            "label": "",
            "unit": "1/s",
            "n": capacity.n,
            "censored": 0,
            "mean": capacity.estimate if math.isfinite(capacity.half_width) else math.nan,
            "low": capacity.low,
            "high": capacity.high,
            "sd": math.nan,
            "cv": math.nan,
            "level": sweep.design.level,
            "method": METHOD,
            "cell": cell,
        }
        for cell, searching in searches(sweep, measurements).items()
        for capacity in [searching.capacity]
        if capacity.n
    ]
