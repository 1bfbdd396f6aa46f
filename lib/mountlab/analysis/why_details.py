"""Of the diagnostic trials of a cell: its slowest operations one by one, where its processors were and its threads
slept, and what ran while operations waited for a processor."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from typing import NamedTuple

from mountlab.analysis.why import shown
from mountlab.analysis.why_frames import Why, moving
from mountlab.core.frames import pd, rows_of
from mountlab.core.layers import RAN_INSTEAD
from mountlab.tracing.events import SAMPLES_PER_S

SLOWEST = 10
FEWEST_SAMPLES = 100
"""With fewer, of samples or of sleeps, a flame graph shows chance."""


class SlowPiece(NamedTuple):
    """A piece of an operation, on its way from begin to end."""

    layer: str
    through: str
    seconds: float


class Slow(NamedTuple):
    """One of the slowest operations of a cell."""

    trial_id: str
    began_s: float
    """Since the first event of its trace."""
    pieces: tuple[SlowPiece, ...]

    @property
    def seconds(self) -> float:
        """From its begin to its end."""
        return sum(piece.seconds for piece in self.pieces)


def slowest(why: Why, cell: str, operation: str) -> list[Slow]:
    """Return the slowest operations of all diagnostic trials of a cell, the slowest first."""
    rows = why.slowest[(why.slowest["cell"] == cell) & (why.slowest["operation"] == operation)]
    operations = []
    for (trial, _), group in rows.groupby(["trial_id", "rank"], sort=False):
        ordered = group.sort_values("begin_s", kind="stable")
        pieces = starmap(SlowPiece, rows_of(ordered, "layer", "through", "seconds"))
        operations.append(Slow(str(trial), float(group["began_s"].iloc[0]), tuple(pieces)))
    return sorted(operations, key=lambda operation: -operation.seconds)[:SLOWEST]


def processor_stacks(why: Why, cell: str) -> Mapping[str, float]:
    """Return each stack of the diagnostic trials of a cell to its processor time in seconds for each operation that
    reads or writes (where hardly any does: for each operation); {} where too few samples were taken. Samples are of
    all the time, also of that in which no system calls were recorded."""
    if not len(why.stacks):
        return {}
    rows, traces = why.stacks[why.stacks["cell"] == cell], moving(why.traces[why.traces["cell"] == cell])
    seconds, count = rows["samples"] / SAMPLES_PER_S, int(rows["samples"].sum())
    return _per_operation(rows["stack"], seconds, count, float((traces["operations"] / traces["seen"]).sum()))


def sleep_stacks(why: Why, cell: str) -> Mapping[str, float]:
    """Return each stack of the diagnostic trials of a cell to the seconds that threads slept in it for each such
    operation; {} where too few sleeps were seen."""
    if not len(why.sleeps):
        return {}
    rows = why.sleeps[why.sleeps["cell"] == cell]
    operations = float(moving(why.traces[why.traces["cell"] == cell])["operations"].sum())
    return _per_operation(rows["stack"], rows["seconds"], int(rows["sleeps"].sum()), operations)


def _per_operation(stacks: pd.Series, seconds: pd.Series, count: int, operations: float) -> Mapping[str, float]:
    if not operations or count < FEWEST_SAMPLES:
        return {}
    return {str(stack): float(total) / operations for stack, total in seconds.groupby(stacks, sort=False).sum().items()}


def ran_instead(why: Why, cell: str, operation: str) -> Mapping[str, float]:
    """Return what had the processor while an operation of a cell waited for one, to the seconds for each operation, the
    longest first: means over diagnostic trials."""
    work, traces = (
        rows[(rows["cell"] == cell) & (rows["operation"] == operation)]
        for rows in (shown(why, why.work), shown(why, why.traces))
    )
    instead, trials = work[work["quantity"] == RAN_INSTEAD], traces["trial_id"].nunique()
    seconds = instead.groupby("label")["value"].sum().sort_values(ascending=False, kind="stable")
    return {str(name): float(total) / trials for name, total in seconds.items()}
