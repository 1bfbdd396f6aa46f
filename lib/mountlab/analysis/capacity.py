"""Searches for a capacity: what the trials answered, which rate comes next, and when a cell has had enough trials.

Pure, and a function of the journal alone, so that a run that was interrupted goes on as it would have done. Every block
holds one trial of each cell that still searches; its rate follows from the trials of the blocks before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.frames import pd
from mountlab.core.model import Cell, CellStop, Search, StopReason, Sweep
from mountlab.stats.capacity import Capacity, RateTrial, next_rate
from mountlab.stats.capacity_order import is_precise, searched_capacity
from mountlab.stats.capacity_ratios import level_at_end
from mountlab.tools import TOOLS

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
    def found(self) -> Capacity:
        """The capacity as far as it is known."""
        return searched_capacity(self.trials, self.level)

    @property
    def ceiling(self) -> float:
        """The largest rate that is worth a trial: one whose schedule was kept always is."""
        kept = max((trial.rate for trial in self.trials), default=0.0)
        return min([self.largest, *(max(rate / BACK, kept) for rate in self.unsure if rate > kept)])

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
            level=self.looked,
            fallback=self.level,
            step=1.0,
            left=goal.max_trials - len(self.trials) - len(self.unsure),
        )

    @property
    def looked(self) -> float:
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
        narrow = searched_capacity(self.trials, self.looked).half_width <= self.search.half_width
        return "precise" if narrow else "max reached", ""

    @property
    def ended(self) -> tuple[StopReason, str] | None:
        """Why it needs no more trials, and the words for why none would help; None while it goes on."""
        if is_precise(self.trials, self.search.half_width, self.looked):
            return "precise", ""
        found = searched_capacity(self.trials, self.looked)
        if 0 < found.high <= self.least:
            return "could not", f"the objective already fails at the floor of {self.least:,.0f} requests/s"
        if math.isinf(found.high) and found.low >= self.ceiling / BACK:
            bound = "that a trial can have" if self.ceiling == self.largest else "that was kept on schedule"
            return "could not", f"the objective still holds at {found.low:,.0f} requests/s, the highest rate {bound}"
        if len(self.unsure) >= MOST_UNSURE and len(self.unsure) > len(self.trials):
            return "could not", "the schedule of arrivals was not kept"
        return None


def searches(sweep: Sweep, measurements: pd.DataFrame, *, before: float = math.inf) -> dict[str, Searching]:
    """Return the search of each cell, from the counted trials of the blocks before `before`. `measurements` has the
    columns of measurements.measurement_frame."""
    rows = measurements[~measurements["warmup"].astype(bool) & (measurements["block"] < before)]
    asked, used = (_by_cell(rows, metric) for metric in ("asked_rate", "objective_used"))
    return {cell.id: _searching(sweep, cell, asked.get(cell.id, {}), used.get(cell.id, {})) for cell in sweep.cells}


def _by_cell(rows: pd.DataFrame, metric: str) -> dict[str, dict[int, float]]:
    """Return cell to block to value, blocks in order."""
    own = rows[rows["metric"] == metric].sort_values("block")
    found: dict[str, dict[int, float]] = {}
    for cell, block, value in zip(own["cell"], own["block"].tolist(), own["value"].tolist(), strict=True):
        found.setdefault(cell, {})[block] = value
    return found


def _searching(sweep: Sweep, cell: Cell, asked: Mapping[int, float], used: Mapping[int, float]) -> Searching:
    assert cell.workload.search is not None
    return Searching(
        search=cell.workload.search,
        trials=tuple(RateTrial(rate, used[block] <= 1) for block, rate in asked.items() if block in used),
        unsure=tuple(rate for block, rate in asked.items() if block not in used),
        least=TOOLS[cell.workload.tool].least_rate(cell.workload),
        largest=TOOLS[cell.workload.tool].largest_rate(cell.workload),
        level=sweep.design.level,
        compared=sweep.compared_searches,
    )


def stop(cell: str, own: Searching, blocks: int, reason: StopReason, why: str = "") -> CellStop:
    """Return why a cell has no more trials after so many blocks."""
    n, width = own.found.n, own.found.half_width
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
            "n": found.n,
            "censored": 0,
            "mean": found.estimate if math.isfinite(found.half_width) else math.nan,
            "low": found.low,
            "high": found.high,
            "sd": math.nan,
            "cv": math.nan,
            "level": sweep.design.level,
            "method": METHOD,
            "cell": cell,
        }
        for cell, own in searches(sweep, measurements).items()
        for found in [own.found]
        if found.n
    ]
