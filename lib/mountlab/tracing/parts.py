"""The split of an operation: each moment between its begin and its end belongs to one part.

What a thread waits for is found in this order. The stack with which it went to sleep says a lock, throttled writing, a
journal's commit, or the device. Who woke it says on what it depended: where an interrupt did that reported the end of a
request, on this request; where another thread did, on whatever that thread did meanwhile, and so on. While a request
decides, the moment belongs to the flush, the device or the queue, as the request was then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from mountlab.tracing.operations import Operation
from mountlab.tracing.perf_data import Trace
from mountlab.tracing.requests import Request, Requests
from mountlab.tracing.symbols import Symbols, Wait, wait_of
from mountlab.tracing.tasks import Span, Tasks, Waking

Layer = Literal[
    "processor", "run_queue", "lock", "freeze", "reclaim", "writeback", "journal", "queue", "flush", "device", "tool",
    "unattributed",
]  # fmt: skip
LAYERS: tuple[Layer, ...] = Layer.__args__  # type: ignore[attr-defined]
Through = Literal["own", "journal", "checkpoint", "writeback"]
"""On whose behalf: the operation's own work, a commit of the journal or log that it waited for, a checkpoint that frees
room in it, throttled writing."""
THROUGH: tuple[Through, ...] = Through.__args__  # type: ignore[attr-defined]
_DEEPEST = 8
"""Threads that wait for threads: from here on it is not followed."""
_REPORTED_NS = 2_000_000
"""The end of a request wakes a thread within this time, in the same thread or interrupt."""


class Piece(NamedTuple):
    """A piece of an operation. Times in ns."""

    begin: int
    end: int
    layer: Layer
    through: Through = "own"


class Splitter:
    """Splits the operations of one trace."""

    def __init__(self, trace: Trace, tasks: Tasks, requests: Requests, symbols: Symbols) -> None:
        self._trace, self._tasks, self._requests, self._symbols = trace, tasks, requests, symbols
        self._waits: dict[int, Wait] = {}

    def parts(self, operation: Operation) -> list[Piece]:
        """Return the parts of an operation in order; together they are as long as it."""
        return _joined(self._parts(operation))

    def on_processor(self, operations: Collection[Operation]) -> list[bool]:
        """Return which operations are on a processor from begin to end: their thread leaves none, and nothing else is
        to be asked."""
        return [
            each.submitted == each.end and not self._tasks.left(each.tid, each.begin, each.end) for each in operations
        ]

    def _parts(self, operation: Operation) -> Iterator[Piece]:
        if operation.submitted == operation.end:
            yield from self._of_thread(operation.tid, operation.begin, operation.end)
            return
        begin, end, tid, ready = operation.begin, operation.end, operation.tid, operation.done
        own = [each for each in self._requests.queued_by(tid, begin, operation.submitted) if each.done <= ready]
        queued = min((each.queued for each in own), default=min(operation.submitted, ready))
        yield from self._of_thread(tid, begin, queued)
        yield from _of_requests(own, queued, ready, "own", "unattributed")
        for part in self._of_thread(tid, ready, end):
            yield part._replace(layer="run_queue" if part.layer == "run_queue" else "tool", through="own")

    def _of_thread(self, tid: int, begin: int, end: int) -> Iterator[Piece]:
        """What the thread of an operation did itself."""
        at = begin
        for span in self._tasks.thread(tid).between(begin, end):
            if span.state == "running":
                yield Piece(span.begin, span.end, "processor")
            elif span.state == "runnable":
                yield Piece(span.begin, span.end, "run_queue")
            elif span.state == "asleep":
                yield from self._asleep(tid, span, "own", _DEEPEST)
            else:
                yield Piece(span.begin, span.end, "unattributed")
            at = span.end
        if at < end:  # a thread that never left its processor is in no event
            yield Piece(at, end, "processor" if at == begin else "unattributed")

    def _asleep(
        self, tid: int, span: Span, through: Through, depth: int, behind: Wait = "unattributed"
    ) -> Iterator[Piece]:
        """What a thread waited for. `behind`: what for the thread waits that waits for this one."""
        own = self._wait(span.stack)
        wait = behind if own == "unattributed" else own
        if wait in ("lock", "writeback"):
            yield Piece(span.begin, span.end, wait, "writeback" if wait == "writeback" else through)
            return
        through = "journal" if wait == "journal" else through
        request = self._reported(span.waking) if span.waking else None
        if request:
            around = self._requests.around(span.begin, span.end, {tid, request.tid})
            served = [each for each in around if each == request or each.queued <= request.done]
            otherwise: Layer = "queue" if wait == "device" else _rest(through)
            yield from _of_requests(served, span.begin, span.end, through, otherwise)
        elif span.waking and depth and span.waking.waker not in (0, tid):
            yield from self._behind(span.waking.waker, span, through, wait, depth - 1)
        else:
            yield from self._otherwise(span.begin, span.end, through, wait)

    def _behind(self, tid: int, span: Span, through: Through, wait: Wait, depth: int) -> Iterator[Piece]:
        """What the thread did for which another one waited."""
        at = span.begin
        for each in self._tasks.thread(tid).between(span.begin, span.end):
            yield from self._otherwise(at, each.begin, through, wait)
            if each.state == "runnable":
                yield Piece(each.begin, each.end, "run_queue", through)
            elif each.state == "asleep" and depth:
                yield from self._asleep(tid, each, through, depth, wait)
            elif each.state == "running":  # a worker of the file system, or its journal
                yield Piece(each.begin, each.end, "processor" if through == "own" else _rest(through), through)
            else:
                yield from self._otherwise(each.begin, each.end, through, wait)
            at = each.end
        yield from self._otherwise(at, span.end, through, wait)

    def _otherwise(self, begin: int, end: int, through: Through, wait: Wait) -> Iterator[Piece]:
        """A time that nothing else is known about. Who waits for the device does so for a request of another thread, or
        for one that is held back before the queue (throttled)."""
        if begin < end and wait == "device":
            yield from _of_requests(list(self._requests.around(begin, end)), begin, end, through, "queue")
        elif begin < end:
            yield Piece(begin, end, _rest(through), through)

    def _reported(self, waking: Waking) -> Request | None:
        """Return the request whose end woke a thread."""
        found = self._requests.ended_by(waking.at - _REPORTED_NS, waking.at, waking.cpu, waking.waker)
        return found if found and not self._tasks.switched(waking.cpu, found.done, waking.at) else None

    def _wait(self, stack: int) -> Wait:
        if stack < 0:
            return "unattributed"
        if stack not in self._waits:
            self._waits[stack] = wait_of(self._symbols.functions(self._trace.stacks[stack]))
        return self._waits[stack]


def _rest(through: Through) -> Layer:
    """Return the part for a time in which no request was under way."""
    return "journal" if through == "journal" else "unattributed"


def _of_requests(own: list[Request], begin: int, end: int, through: Through, otherwise: Layer) -> Iterator[Piece]:
    """A flush decides before another request at the device, and this before one in the queue."""
    steps: list[tuple[int, Layer, int]] = [(max(begin, end), "queue", 0)]
    for each in own:
        at_device: Layer = "flush" if each.is_flush else "device"
        steps += [(each.queued, "queue", 1), (each.issued, "queue", -1)]
        steps += [(each.issued, at_device, 1), (each.done, at_device, -1)]
    under_way: dict[Layer, int] = {"flush": 0, "device": 0, "queue": 0}
    low = begin
    for at, layer, change in sorted(steps):
        high = min(max(at, begin), end)
        yield Piece(low, high, next((each for each, count in under_way.items() if count), otherwise), through)
        under_way[layer] += change
        low = high


def _joined(parts: Iterator[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for part in parts:
        if part.end <= part.begin:
            continue
        if found and found[-1][1:] == (part.begin, part.layer, part.through):
            found[-1] = found[-1]._replace(end=part.end)
        else:
            found.append(part)
    return found
