"""What the diagnostic trials of a run explain, as tidy frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from mountlab.core.frames import pd
from mountlab.core.layers import FEW

_TRIAL = ("trial_id", "block", "cell", "filesystem", "workload")
COLUMNS: dict[str, tuple[str, ...]] = {
    "why_layers": (*_TRIAL, "operation", "statistic", "layer", "through", "seconds"),
    "why_work": (*_TRIAL, "operation", "quantity", "label", "value", "unit"),
    "why_traces": (
        *_TRIAL, "operation", "operations", "events", "lost_events", "window_s", "traced_mean", "tool_mean", "withheld",
        "seen", "cut", "traced_in_flight", "tool_in_flight",
    ),
    "why_slowest": (*_TRIAL, "operation", "rank", "began_s", "begin_s", "seconds", "layer", "through"),
    "why_stacks": (*_TRIAL, "stack", "samples"),
    "why_sleeps": (*_TRIAL, "stack", "sleeps", "seconds"),
}  # fmt: skip
"""Frame to its columns: a row for each part of an operation's latency, for each ratio of work, for each operation that
a trace holds, for each piece of the slowest operations, for each stack that was met on a processor, and for each in
which threads slept."""
_WHOLE = ("block", "operations", "events", "lost_events", "rank", "samples", "sleeps")
_FRACTIONS = ("seconds", "value", "window_s", "traced_mean", "tool_mean", "seen", "began_s", "begin_s",
              "traced_in_flight", "tool_in_flight")  # fmt: skip


def frame_of(name: str, rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Return rows as one of these frames, with the types of its columns even where there are none."""
    return _typed(name, rows) if rows else _empty(name).copy()


@cache
def _empty(name: str) -> pd.DataFrame:
    return _typed(name, ())


def _typed(name: str, rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=list(COLUMNS[name]))
    types = {column: "int64" if column in _WHOLE else "float64" if column in _FRACTIONS else "str" for column in frame}
    return frame.astype(types)


@dataclass(frozen=True)
class Why:
    """The frames of a run: no rows where it has no diagnostic trials."""

    layers: pd.DataFrame = field(default_factory=lambda: frame_of("why_layers", []))
    """The parts of the latency of each operation, in seconds: the sum over layer and through is its latency."""
    work: pd.DataFrame = field(default_factory=lambda: frame_of("why_work", []))
    """What each operation cost in device I/Os, flushes, commits, switches and processor time."""
    traces: pd.DataFrame = field(default_factory=lambda: frame_of("why_traces", []))
    """What each trace holds and has lost, and whether its split is withheld."""

    slowest: pd.DataFrame = field(default_factory=lambda: frame_of("why_slowest", []))
    """The slowest operations of each trial, piece by piece."""
    stacks: pd.DataFrame = field(default_factory=lambda: frame_of("why_stacks", []))
    """Where the processors were, as stacks, and how often each was met."""
    sleeps: pd.DataFrame = field(default_factory=lambda: frame_of("why_sleeps", []))
    """Where threads slept while operations were under way, as stacks: how often, and for how long."""

    def __bool__(self) -> bool:
        """Whether any trial was traced."""
        return len(self.traces) > 0

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The name of each frame to it."""
        return {name: getattr(self, name.removeprefix("why_")) for name in COLUMNS}


def moving(traces: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of reads and writes; all rows, where hardly any operation is one of these (FEW)."""
    rows = traces[traces["operation"].isin(("read", "write"))]
    return traces if rows["operations"].sum() < FEW * traces["operations"].sum() else rows
