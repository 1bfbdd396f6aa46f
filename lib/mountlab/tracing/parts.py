"""The split of an operation: each moment between its begin and its end belongs to one part.

What a thread waits for is found in this order. The stack with which it went to sleep says a frozen file system, freed
memory, throttled writing, the block queue; or a lock, a journal's commit, the device. For these, who woke it says on
what it depended: an interrupt that reported the end of a request, on this request; a worker of a pool, on the work item
that it ran, and before that on the thread that queued the item; another thread, on what that one did meanwhile.
While a request decides, the moment belongs to the flush, the device or the queue, as the request was then.
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
_DEEPEST = 64
"""Threads and work items that wait for others: from here on it is not followed."""
_UNKNOWN = Wait("unattributed")
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
        self._locks: dict[tuple[int, int, Through], list[Piece]] = {}

    def parts(self, operation: Operation) -> list[Piece]:
        """Return the parts of an operation in order; together they are as long as it."""
        return _join(self._split(operation))

    def on_processor(self, operations: Collection[Operation]) -> list[bool]:
        """Return which operations are on a processor from begin to end: their thread leaves none, and nothing else is
        to be asked."""
        return [
            operation.submitted == operation.end
            and not self._tasks.left(operation.tid, operation.begin, operation.end)
            and not any(self._tasks.reclaims(operation.tid, operation.begin, operation.end))
            for operation in operations
        ]

    def _split(self, operation: Operation) -> Iterator[Piece]:
        if operation.submitted == operation.end:
            yield from self._split_thread(operation.tid, operation.begin, operation.end)
            return
        begin, end, tid, ready = operation.begin, operation.end, operation.tid, operation.done
        queued_by = self._requests.queued_by(tid, begin, operation.submitted)
        batch = [request for request in queued_by if request.done <= ready]
        requests = [request for request in batch if request.done == ready] or batch  # several of one call
        queued = min((request.queued for request in requests), default=min(operation.submitted, ready))
        yield from self._split_thread(tid, begin, queued)
        served = max((request.done for request in requests), default=ready)
        yield from _split_requests(requests, queued, served, "own", "unattributed")
        yield from self._split_uncollected(tid, served, end)

    def _split_uncollected(self, tid: int, begin: int, end: int) -> Iterator[Piece]:
        """What kept a thread from collecting what was done: itself, or what it waited for in a later operation."""
        for span in self._tasks.thread(tid).between(begin, end):
            if span.state == "asleep" and self._wait(span.stack).kind != "unattributed":
                yield Piece(begin, span.begin, "tool")
                yield from self._split_sleep(tid, span, "own", _DEEPEST)
                begin = span.end
            elif span.state == "runnable":
                yield Piece(begin, span.begin, "tool")
                yield Piece(span.begin, span.end, "run_queue")
                begin = span.end
        yield Piece(begin, end, "tool")

    def _split_thread(self, tid: int, begin: int, end: int) -> Iterator[Piece]:
        """What the thread of an operation did itself."""
        at = begin
        for span in self._tasks.thread(tid).between(begin, end):
            if span.state == "running":
                yield from self._split_running(tid, span.begin, span.end)
            elif span.state == "runnable":
                yield Piece(span.begin, span.end, "run_queue")
            elif span.state == "asleep":
                yield from self._split_sleep(tid, span, "own", _DEEPEST)
            else:
                yield Piece(span.begin, span.end, "unattributed")
            at = span.end
        if at == begin:  # a thread that never left its processor is in no event
            yield from self._split_running(tid, at, end)
        else:
            yield Piece(at, end, "unattributed")

    def _split_running(self, tid: int, begin: int, end: int) -> Iterator[Piece]:
        for low, high in self._tasks.reclaims(tid, begin, end):
            yield Piece(begin, low, "processor")
            yield Piece(low, high, "reclaim")
            begin = high
        yield Piece(begin, end, "processor")

    def _split_sleep(
        self, tid: int, span: Span, through: Through, depth: int, behind: Wait = _UNKNOWN
    ) -> Iterator[Piece]:
        """What a thread waited for. `behind`: what for the thread waits that waits for this one."""
        wait = self._wait(span.stack)
        wait = behind if wait == _UNKNOWN else wait
        through = _through_for(wait, through)
        if wait.kind in ("freeze", "reclaim", "writeback", "queue"):
            yield Piece(span.begin, span.end, wait.kind, through)
        elif span.waking and wait.kind == "lock":
            for part in self._split_lock_wait(tid, self._tasks.thread(tid).at(span.begin), through, depth, wait):
                if part.begin < span.end and span.begin < part.end:
                    begin, end = max(part.begin, span.begin), min(part.end, span.end)
                    yield Piece(begin, end, part.layer, part.through)
        elif span.waking:
            for part in self._follow_waker(span.waking, tid, span.begin, through, depth, wait):
                yield part if part.end <= span.end else part._replace(end=span.end)
        else:
            yield from self._split_rest(tid, span.begin, span.end, through, wait)

    def _split_lock_wait(self, tid: int, span: Span, through: Through, depth: int, wait: Wait) -> list[Piece]:
        """What a thread waited for that waited for a lock. Its holder may have waited for the same one before, and so
        on: each such wait is followed once, however many wait behind it."""
        key = tid, span.begin, through
        if key not in self._locks:
            assert span.waking
            self._locks[key] = [Piece(span.begin, span.waking.at, "lock", through)]  # if threads wait for each other
            self._locks[key] = _join(self._follow_waker(span.waking, tid, span.begin, through, depth, wait))
        return self._locks[key]

    def _follow_waker(
        self, waking: Waking, tid: int, begin: int, through: Through, depth: int, wait: Wait
    ) -> Iterator[Piece]:
        """What a thread waited for until it was woken, or until an item was queued whose end it waited for."""
        waker, end = waking.waker, waking.at
        if request := self._find_reported(waking):
            around = self._requests.around(begin, end, {tid, request.tid})
            served = [candidate for candidate in around if candidate == request or candidate.queued <= request.done]
            otherwise = self._layer_held_back(through, wait)
            item = self._tasks.item(request.tid, request.queued) if depth and request.tid != tid else None
            if item and begin < request.queued:  # a worker made it: compressed or collected its pages, or let it pass
                began = max(begin, item.begin)
                queued = max(begin, item.queued.at) if item.queued and item.queued.at < began else began
                yield from _split_requests(served, begin, queued, through, otherwise)
                yield Piece(queued, began, _layer_of("run_queue", through, wait), through)
                yield from self._follow_thread(request.tid, began, request.queued, through, wait, depth - 1)
                begin = request.queued
            yield from _split_requests(served, begin, end, through, otherwise)
        elif not depth or waker in (0, tid):
            yield from self._split_rest(tid, begin, end, through, wait)
        elif item := self._tasks.item(waker, end):
            queued = item.begin
            if item.queued and begin < item.begin:
                queued = max(begin, item.queued.at)
                yield from self._follow_waker(item.queued, tid, begin, through, depth - 1, wait)
            else:
                yield from self._split_rest(tid, begin, item.begin, through, wait)
            yield Piece(queued, item.begin, _layer_of("run_queue", through, wait), through)
            yield from self._follow_thread(waker, max(begin, item.begin), end, through, wait, depth - 1)
        elif self._tasks.is_pooled(waker):
            yield from self._split_by_requests(tid, begin, end, through, wait, waker)
        else:
            yield from self._follow_thread(waker, begin, end, through, wait, depth - 1)

    def _follow_thread(
        self, tid: int, begin: int, end: int, through: Through, wait: Wait, depth: int
    ) -> Iterator[Piece]:
        """What the thread did for which another one waited."""
        at = begin
        for span in self._tasks.thread(tid).between(begin, end):
            yield from self._split_rest(tid, at, span.begin, through, wait)
            if span.state == "asleep" and depth:
                yield from self._split_sleep(tid, span, through, depth, wait)
            elif span.state in ("running", "runnable"):
                layer: Layer = "processor" if span.state == "running" else "run_queue"
                yield Piece(span.begin, span.end, _layer_of(layer, through, wait), through)
            else:
                yield from self._split_rest(tid, span.begin, span.end, through, wait)
            at = span.end
        yield from self._split_rest(tid, at, end, through, wait)

    def _split_rest(self, tid: int, begin: int, end: int, through: Through, wait: Wait) -> Iterator[Piece]:
        """A time that no event explains."""
        if begin >= end:
            return
        if wait.kind in ("device", "journal") or wait.for_checkpoint:
            yield from self._split_by_requests(tid, begin, end, through, wait)
        else:
            yield Piece(begin, end, _layer_of_rest(through, wait), through)

    def _split_by_requests(
        self, tid: int, begin: int, end: int, through: Through, wait: Wait, worker: int = 0
    ) -> Iterator[Piece]:
        """A time that the requests of a thread explain. Who waits for the device without one does so for a request of
        another thread, or for one that is held back before the queue (throttled). `worker`: the thread of a pool that
        ended the wait: what it did since the requests were done, and since it last slept, was for that."""
        served = list(self._requests.around(begin, end, {tid}))
        if not served and (wait.kind == "device" or wait.for_checkpoint):
            served = list(self._requests.around(begin, end))
        done = max(begin, min(end, max((request.done for request in served), default=end)))
        yield from _split_requests(served, begin, done, through, self._layer_held_back(through, wait))
        slept = (span.end for span in self._tasks.thread(worker).between(done, end) if span.state == "asleep")
        since = max(slept, default=done) if worker else end
        yield Piece(done, since, _layer_of_rest(through, wait), through)
        if since < end:
            yield from self._follow_thread(worker, since, end, through, wait, 0)

    def _layer_held_back(self, through: Through, wait: Wait) -> Layer:
        """Return the part for a time in which the device is waited for, and has no request for that."""
        return "queue" if wait.kind == "device" and self._requests.is_device_known else _layer_of_rest(through, wait)

    def _find_reported(self, waking: Waking) -> Request | None:
        """Return the request whose end woke a thread."""
        request = self._requests.ended_by(waking.at - _REPORTED_NS, waking.at, waking.cpu, waking.waker)
        return request if request and not self._tasks.switched(waking.cpu, request.done, waking.at) else None

    def _wait(self, stack: int) -> Wait:
        if stack < 0:
            return _UNKNOWN
        if stack not in self._waits:
            self._waits[stack] = wait_of(self._symbols.functions(self._trace.stacks[stack]))
        return self._waits[stack]


def _through_for(wait: Wait, waiter: Through) -> Through:
    """Return on whose behalf a thread waits, for which a waiter waits."""
    if wait.for_checkpoint:
        return "checkpoint"
    if wait.kind == "writeback":
        return "writeback"
    return "journal" if wait.kind == "journal" and waiter == "own" else waiter


def _layer_of_rest(through: Through, wait: Wait) -> Layer:
    """Return the part for a time in which no request was under way."""
    if wait.kind == "lock":
        return "lock"
    return "unattributed" if through == "own" else "journal"


def _layer_of(state: Layer, through: Through, wait: Wait) -> Layer:
    """Return the part for a time in which a thread was at work for which another one waits: the holder of its lock, a
    worker of the file system, its journal."""
    if wait.kind == "lock":
        return "lock"
    return _layer_of_rest(through, wait) if state == "processor" and through != "own" else state


def _split_requests(
    requests: list[Request], begin: int, end: int, through: Through, otherwise: Layer
) -> Iterator[Piece]:
    """A flush decides before another request at the device, and this before one in the queue."""
    steps: list[tuple[int, Layer, int]] = [(max(begin, end), "queue", 0)]
    for request in requests:
        at_device: Layer = "flush" if request.is_flush else "device"
        steps += [(request.queued, "queue", 1), (request.issued, "queue", -1)]
        steps += [(request.issued, at_device, 1), (request.done, at_device, -1)]
    under_way: dict[Layer, int] = {"flush": 0, "device": 0, "queue": 0}
    low = begin
    for at, layer, change in sorted(steps):
        high = min(max(at, begin), end)
        yield Piece(low, high, next((busy for busy, count in under_way.items() if count), otherwise), through)
        under_way[layer] += change
        low = high


def _join(parts: Iterator[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for part in parts:
        if part.end <= part.begin:
            continue
        if joined and joined[-1][1:] == (part.begin, part.layer, part.through):
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined
