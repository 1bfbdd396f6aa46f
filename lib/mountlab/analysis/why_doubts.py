"""What weakens the explanation of a difference: what is withheld or was cut, parts that do not add up, and the cost of
tracing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mountlab.analysis.why_frames import Why
from mountlab.core.frames import pd, rows_of
from mountlab.core.model import Sweep
from mountlab.stats import Ratio, compare_unpaired

SUM_WITHIN = 0.05
"""So near to the tool's own mean latency the parts of an operation are to add up."""
FAR_OFF = 1.5
"""Times that mean, or less than one by it, from which on the shares of parts say nothing."""


@dataclass(frozen=True)
class Withheld:
    """Diagnostic trials of a cell whose split is not shown, and why."""

    cell: str
    operations: str
    """'' for all of them."""
    reason: str
    trials: int
    of: int


@dataclass(frozen=True)
class Cut:
    """Diagnostic trials of a cell whose record ended before the tool did."""

    cell: str
    reason: str
    trials: int
    of: int
    earliest_s: float
    """How long the shortest of these records is."""


@dataclass(frozen=True)
class PartlySeen:
    """A cell whose system calls are so many that they were recorded in windows."""

    cell: str
    share: float
    """Of the time of its diagnostic trials."""


@dataclass(frozen=True)
class Off:
    """An operation of a cell whose parts do not add up to what the tool says."""

    cell: str
    operation: str
    traced: float
    tool: float
    traced_in_flight: float
    """Operations under way at a time, by the trace; `tool_in_flight`: by the tool. NaN: not known."""
    tool_in_flight: float

    @property
    def by(self) -> float:
        """How far they are off, as a share of the tool's mean."""
        return abs(self.traced / self.tool - 1)

    @property
    def is_far(self) -> bool:
        """Whether they are so far off that shares of them are withheld."""
        return not 1 / FAR_OFF <= self.traced / self.tool <= FAR_OFF

    @property
    def is_slowed(self) -> bool:
        """Whether as many operations are under way: they are slower while they are traced, and nothing is amiss."""
        if not self.tool_in_flight or self.traced < self.tool:
            return False
        return abs(self.traced_in_flight / self.tool_in_flight - 1) <= SUM_WITHIN


@dataclass(frozen=True)
class Cost:
    """A figure of the diagnostic trials of a cell as a ratio to that of its counted ones: what tracing costs."""

    cell: str
    metric: str
    ratio: Ratio


def withheld(why: Why) -> list[Withheld]:
    """Return the diagnostic trials whose split is not shown, and why; one entry for a cell and a reason, or for some of
    its operations."""
    hidden, every = dict[tuple[str, str], dict[str, set[str]]](), dict[str, dict[str, set[str]]]()
    for cell, operation, trial, reason in rows_of(why.traces, "cell", "operation", "trial_id", "withheld"):
        every.setdefault(cell, {}).setdefault(trial, set()).add(operation)
        if reason:
            hidden.setdefault((cell, reason), {}).setdefault(trial, set()).add(operation)
    rows = []
    for (cell, reason), trials in hidden.items():
        whole = all(operations == every[cell][trial] for trial, operations in trials.items())
        names = "" if whole else ", ".join(sorted(set[str]().union(*trials.values())))
        rows.append(Withheld(cell, names, reason, len(trials), len(every[cell])))
    return rows


def cuts(why: Why) -> list[Cut]:
    """Return the cells with records that ended before the tool did, and how many."""
    traces = why.traces.drop_duplicates("trial_id")
    ended_early = []
    for (cell, reason), rows in traces[traces["cut"] != ""].groupby(["cell", "cut"], sort=False):
        of = int((traces["cell"] == cell).sum())
        ended_early.append(Cut(str(cell), str(reason), len(rows), of, float(rows["window_s"].min())))
    return ended_early


def partly_seen(why: Why) -> list[PartlySeen]:
    """Return the cells whose system calls were recorded in windows, and in which share of the time."""
    shares = why.traces.drop_duplicates("trial_id").groupby("cell", sort=False)["seen"].mean()
    return [PartlySeen(str(cell), float(share)) for cell, share in shares.items() if share < 1]


def off(why: Why) -> list[Off]:
    """Return the operations whose parts do not add up to the tool's own mean latency, over the diagnostic trials of a
    cell, within SUM_WITHIN; those that the tool does not time are not among them."""
    means: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    columns = ("cell", "operation", "withheld", "traced_mean", "tool_mean", "traced_in_flight", "tool_in_flight")
    for cell, operation, reason, traced, tool, *in_flight in rows_of(why.traces, *columns):
        if not reason and math.isfinite(traced) and tool > 0:
            means.setdefault((cell, operation), []).append((traced, tool, *in_flight))
    rows = [
        Off(*key, *(math.fsum(c) / len(trials) for c in zip(*trials, strict=True))) for key, trials in means.items()
    ]
    return [row for row in rows if row.by > SUM_WITHIN]


def lost(why: Why) -> tuple[int, int]:
    """Return how many events were lost in all traces together, and how many these hold."""
    trials = why.traces.drop_duplicates("trial_id")
    return int(trials["lost_events"].sum()), int(trials["events"].sum())


def costs(why: Why, measurements: pd.DataFrame, metrics: Mapping[str, Sequence[str]], sweep: Sweep) -> list[Cost]:
    """Return what tracing changed of the figures that the answer is about: the diagnostic trials of each cell against
    its counted ones, as a ratio that is not paired. The intervals of one metric hold together for all cells, so that
    the one that tracing changed most can be named. `metrics`: of each workload, by its label."""
    traced = set(why.traces["trial_id"])
    sides: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for cell in sweep.cells:
        of_cell = measurements[(measurements["cell"] == cell.id) & (measurements["label"] == "")]
        for metric in metrics.get(cell.workload.label, ()):
            rows = of_cell[of_cell["metric"] == metric]
            diagnostic = rows[rows["trial_id"].isin(traced)]["value"]
            counted = rows[~rows["warmup"].astype(bool)]["value"]
            if len(diagnostic) and len(counted) and min(diagnostic.min(), counted.min()) > 0:
                sides.setdefault(metric, {})[cell.id] = diagnostic.tolist(), counted.tolist()
    return [
        Cost(cell, metric, compare_unpaired(*pair, level=1 - (1 - sweep.design.level) / len(by_cell)))
        for metric, by_cell in sides.items()
        for cell, pair in by_cell.items()
    ]
