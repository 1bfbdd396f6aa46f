"""What each thread does over time: runs, waits for a processor, or sleeps, and who wakes it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mountlab.tracing.perf_data import Columns, Trace, groups

State = Literal["running", "runnable", "asleep", "unknown"]
_ASLEEP = 0xFF
"""The bits of prev_state that a thread has which waits for something; without them it was only taken off."""


class Waking(NamedTuple):
    """Who wakes a thread."""

    at: int
    waker: int
    """Thread that ran there; an interrupt runs in whichever it meets."""
    cpu: int


class Span(NamedTuple):
    """A thread in one state. Times in ns."""

    begin: int
    end: int
    state: State
    stack: int = -1
    """Where it went to sleep, as a number in the trace's stacks."""
    waking: Waking | None = None
    """What ended its sleep."""


@dataclass(frozen=True)
class Thread:
    """The states of one thread, one after the other without a gap."""

    spans: tuple[Span, ...]
    begins: tuple[int, ...]

    def between(self, begin: int, end: int) -> Iterator[Span]:
        """Yield what it did in this time, cut to it."""
        for at in range(max(0, bisect_right(self.begins, begin) - 1), bisect_left(self.begins, end)):
            span = self.spans[at]
            if span.end > begin:
                yield span._replace(begin=max(begin, span.begin), end=min(end, span.end))


class Tasks:
    """All threads of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._switches, self._wakings = trace.rows("sched:sched_switch"), trace.rows("sched:sched_waking")
        self._out, self._in = groups(self._switches, "prev_pid"), groups(self._switches, "next_pid")
        self._woken = groups(self._wakings, "pid")
        self._known: dict[int, Thread] = {}
        self._leaves = self._times(self._out)
        self._on_cpu = self._times(groups(self._switches, "CPU"))

    def _times(self, rows_of: Mapping[int, Columns]) -> dict[int, list[int]]:
        assert self._switches is not None or not rows_of
        return {key: self._switches["TIME"][rows].tolist() for key, rows in rows_of.items()}  # type: ignore[index]

    def left(self, tid: int, begin: int, end: int) -> int:
        """Return how often a thread left a processor in this time."""
        leaves = self._leaves.get(tid, [])
        return bisect_right(leaves, end) - bisect_left(leaves, begin)

    def thread(self, tid: int) -> Thread:
        """Return the states of a thread; of one that is in no event an empty one."""
        if tid not in self._known:
            spans = tuple(self._spans(tid))
            self._known[tid] = Thread(spans, tuple(span.begin for span in spans))
        return self._known[tid]

    def switched(self, cpu: int, begin: int, end: int) -> bool:
        """Return whether a processor has taken another thread between two moments."""
        times = self._on_cpu.get(cpu, [])
        return bisect_right(times, end) > bisect_right(times, begin)

    def _spans(self, tid: int) -> Iterator[Span]:
        first, last = self._trace.span_ns
        state, since, stack = "unknown", first, -1
        waking: Waking | None = None
        for at, kind, row in self._events(tid):
            if kind == "waking":
                if state == "asleep":
                    waking = Waking(at, int(self._woke(row, "TID")), int(self._woke(row, "CPU")))
                    yield Span(since, at, "asleep", stack, waking)
                    state, since = "runnable", at
                continue
            if at > since:
                yield Span(since, at, _before(state, kind), stack if state == "asleep" else -1)
            since, stack = at, -1
            state = "running"
            if kind == "out":
                assert self._switches is not None
                taken_off = not int(self._switches["prev_state"][row]) & _ASLEEP
                state, stack = ("runnable", -1) if taken_off else ("asleep", int(self._switches["STACK"][row]))
        if last > since and state != "unknown":
            yield Span(since, last, state, stack)  # type: ignore[arg-type]

    def _woke(self, row: int, name: str) -> int:
        assert self._wakings is not None
        return int(self._wakings[name][row])

    def _events(self, tid: int) -> list[tuple[int, str, int]]:
        """Return when a thread left a processor, was woken, or came to one, in order."""
        found: list[tuple[int, str, int]] = []
        for kind, rows, table in (
            ("out", self._out, self._switches),
            ("waking", self._woken, self._wakings),
            ("in", self._in, self._switches),
        ):
            if table is not None and tid in rows:
                found += [(int(table["TIME"][row]), kind, int(row)) for row in rows[tid]]
        return sorted(found, key=lambda each: each[0])


def _before(state: str, kind: str) -> State:
    """Return what a thread was before it came ("in") or left ("out"), also where that was not seen to begin."""
    if kind == "out":
        return "running"
    return "asleep" if state == "asleep" else "runnable" if state == "runnable" else "unknown"
