"""What each thread does over time: runs, waits for a processor, or sleeps, and who wakes it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mountlab.tracing.perf_data import Columns, Trace, groups

State = Literal["running", "runnable", "asleep", "unknown"]
_POOLED = re.compile(rb"kworker/|ksoftirqd/|iou-wrk-|loop[0-9]")
"""Names of threads that serve any thread with work: work queues, softirqs, io_uring, loop devices of older kernels."""
_ASLEEP = 0xFF
"""The bits of prev_state that a thread has which waits for something; without them it was only taken off."""


class Waking(NamedTuple):
    """Who wakes a thread, or queues a work item."""

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


class WorkItem(NamedTuple):
    """A work item that a worker of a pool runs."""

    begin: int
    queued: Waking | None
    """Who queued it, and when; None where that was not seen."""


@dataclass(frozen=True)
class Thread:
    """The states of one thread, one after the other without a gap."""

    spans: tuple[Span, ...]
    begins: tuple[int, ...]

    def between(self, begin: int, end: int) -> Iterator[Span]:
        """Yield what it did in this time, cut to it."""
        for at in range(max(0, bisect_right(self.begins, begin) - 1), bisect_left(self.begins, end)):
            span = self.spans[at]
            if begin <= span.begin and span.end <= end:
                yield span
            elif span.end > begin:
                yield span._replace(begin=max(begin, span.begin), end=min(end, span.end))

    def at(self, moment: int) -> Span:
        """Return the whole span that a moment lies in."""
        return self.spans[bisect_right(self.begins, moment) - 1]


class Tasks:
    """All threads of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._switches, self._wakings = trace.rows("sched:sched_switch"), trace.rows("sched:sched_waking")
        self._out, self._in = groups(self._switches, "prev_pid"), groups(self._switches, "next_pid")
        self._woken = groups(self._wakings, "pid")
        self._threads: dict[int, Thread] = {}
        self._leaves = self._times(self._out)
        self._on_cpu = self._times(groups(self._switches, "CPU"))
        begins = trace.rows("workqueue:workqueue_execute_start")
        self._items, self._runs = _Latest(begins, "TID"), _Latest(begins, "work")
        self._queued = _Latest(trace.rows("workqueue:workqueue_queue_work"), "work")
        self._reclaims = dict(_reclaims(trace))

    def _times(self, rows_of: Mapping[int, Columns]) -> dict[int, list[int]]:
        assert self._switches is not None or not rows_of
        return {key: self._switches["TIME"][rows].tolist() for key, rows in rows_of.items()}  # type: ignore[index]

    def left(self, tid: int, begin: int, end: int) -> int:
        """Return how often a thread left a processor in this time."""
        leaves = self._leaves.get(tid, [])
        return bisect_right(leaves, end) - bisect_left(leaves, begin)

    def thread(self, tid: int) -> Thread:
        """Return the states of a thread; of one that is in no event an empty one."""
        if tid not in self._threads:
            spans = tuple(self._list_spans(tid))
            self._threads[tid] = Thread(spans, tuple(span.begin for span in spans))
        return self._threads[tid]

    def switched(self, cpu: int, begin: int, end: int) -> bool:
        """Return whether a processor has taken another thread between two moments."""
        times = self._on_cpu.get(cpu, [])
        return bisect_right(times, end) > bisect_right(times, begin)

    def is_pooled(self, tid: int) -> bool:
        """Return whether a thread serves many: what it did before belongs to others."""
        if self._items.has(tid):
            return True
        if self._switches is None or tid not in self._out:
            return False
        return bool(_POOLED.match(bytes(self._switches["prev_comm"][self._out[tid][0]])))

    def item(self, tid: int, at: int) -> WorkItem | None:
        """Return the work item that a thread runs at a moment; None where none was seen to begin."""
        began = self._items.row(tid, at)
        if began is None:
            return None
        begin = int(began["TIME"])
        work = int(began["work"])
        queued, before = self._queued.row(work, begin), self._runs.row(work, begin - 1)
        if queued is not None and before is not None and queued["TIME"] < before["TIME"]:
            queued = None  # for its last run: that it was queued again was not seen, as on a processor that was idle
        return WorkItem(
            begin, None if queued is None else Waking(*(int(queued[name]) for name in ("TIME", "TID", "CPU")))
        )

    def reclaims(self, tid: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield when a thread freed memory in this time."""
        for low, high in self._reclaims.get(tid, ()):
            if low < end and begin < high:
                yield max(begin, low), min(end, high)

    def _list_spans(self, tid: int) -> Iterator[Span]:
        first, last = self._trace.span_ns
        state: State = "unknown"
        since, stack = first, -1
        for at, kind, row in self._list_events(tid):
            if kind == "waking":
                if state == "asleep":
                    assert self._wakings is not None
                    waker, cpu = (int(self._wakings[name][row]) for name in ("TID", "CPU"))
                    yield Span(since, at, "asleep", stack, Waking(at, waker, cpu))
                    state, since = "runnable", at
                continue
            if at > since:
                before: State = "running" if kind == "out" else "unknown" if state == "running" else state
                yield Span(since, at, before, stack if state == "asleep" else -1)
            since, stack = at, -1
            state = "running"
            if kind == "out":
                assert self._switches is not None
                taken_off = not int(self._switches["prev_state"][row]) & _ASLEEP
                state, stack = ("runnable", -1) if taken_off else ("asleep", int(self._switches["STACK"][row]))
        if last > since and state != "unknown":
            yield Span(since, last, state, stack)

    def _list_events(self, tid: int) -> list[tuple[int, str, int]]:
        """Return when a thread left a processor, was woken, or came to one, in order."""
        events: list[tuple[int, str, int]] = []
        for kind, rows, table in (
            ("out", self._out, self._switches),
            ("waking", self._woken, self._wakings),
            ("in", self._in, self._switches),
        ):
            if table is not None and tid in rows:
                events += [(int(table["TIME"][row]), kind, int(row)) for row in rows[tid]]
        return sorted(events, key=lambda event: event[0])


class _Latest:
    """The rows of an event by a column, to find the last before a moment."""

    def __init__(self, rows: Columns | None, column: str) -> None:
        self._rows, self._of = rows, groups(rows, column)
        self._times: dict[int, list[int]] = {}

    def has(self, key: int) -> bool:
        return key in self._of

    def row(self, key: int, at: int) -> Columns | None:
        """Return the last row of this key that is not later; None where there is none."""
        if self._rows is None or key not in self._of:
            return None
        if key not in self._times:
            self._times[key] = self._rows["TIME"][self._of[key]].tolist()
        position = bisect_right(self._times[key], at)
        return self._rows[self._of[key][position - 1]] if position else None


def _reclaims(trace: Trace) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each thread that freed memory, and when it did. Of what began before the trace, or did not end in it, the
    part inside."""
    steps: dict[int, list[tuple[int, int]]] = {}
    for side, change in (("begin", 1), ("end", -1)):
        for kind in ("direct", "memcg"):
            rows = trace.rows(f"vmscan:mm_vmscan_{kind}_reclaim_{side}")
            if rows is not None:
                for tid, at in zip(rows["TID"].tolist(), rows["TIME"].tolist(), strict=True):
                    steps.setdefault(tid, []).append((at, change))
    first, last = trace.span_ns
    for tid, changes in steps.items():
        changes.sort()
        begins = [*([] if changes[0][1] == 1 else [first]), *(at for at, change in changes if change == 1)]
        ends = [*(at for at, change in changes if change == -1), *([] if changes[-1][1] == -1 else [last])]
        yield tid, list(zip(begins, ends, strict=False))
