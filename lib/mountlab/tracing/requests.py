"""What a block device was asked to do: when each request was queued, sent to the device, and done."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mountlab.core.groups import by_key
from mountlab.tracing.perf_data import Columns, Trace


class Request(NamedTuple):
    """One request. Times in ns."""

    queued: int
    issued: int
    """Sent to the device. Of a device without a queue of the kernel's the same as `queued`."""
    done: int
    tid: int
    """The thread that queued it."""
    bytes: int
    flags: str
    """As the kernel has it. R, W, D: what it does; F before that: a flush first, F behind it: FUA; M: metadata."""
    cpu: int
    """On which its end was reported, in `teller`."""
    teller: int

    @property
    def is_flush(self) -> bool:
        return self.flags.startswith("F")

    @property
    def is_fua(self) -> bool:
        return "F" in self.flags[1:] and not self.is_flush


_PATIENCE_NS = 1_000_000_000
"""A request that was issued this long before the trace ends would have ended in it."""
_NEAREST = 64
"""So many first sectors of bios before a request are looked at for the bio that it is a piece of."""


class _Queue:
    """Requests in order of `queued`."""

    def __init__(self, requests: list[Request]) -> None:
        self.all = requests
        self.queued = np.array([request.queued for request in requests], np.int64)
        self.dones = np.array([request.done for request in requests], np.int64)
        self.reach = np.maximum.accumulate(self.dones)
        """When each, and all before it, were done."""


@dataclass(frozen=True)
class Requests:
    """The requests of one device, by when they were done."""

    all: tuple[Request, ...]
    merged: Columns
    """When a bio went into a request that was there, in order."""
    endless: int = 0
    """Requests that were sent to the device, and whose end the trace does not have."""
    is_device_known: bool = True
    """Else there are none here, whatever the device did."""
    dones: list[int] = field(init=False)
    _whole: _Queue = field(init=False)
    _by_thread: dict[int, _Queue] = field(init=False)

    def __post_init__(self) -> None:
        in_order = sorted(self.all, key=lambda request: request.queued)
        by_thread = by_key((request.tid, request) for request in in_order)
        object.__setattr__(self, "_whole", _Queue(in_order))
        object.__setattr__(self, "dones", [request.done for request in self.all])
        object.__setattr__(self, "_by_thread", {tid: _Queue(requests) for tid, requests in by_thread.items()})

    def queued_by(self, tid: int, begin: int, end: int) -> list[Request]:
        """Return what a thread queued in this time."""
        queue = self._by_thread.get(tid)
        if queue is None:
            return []
        low, high = np.searchsorted(queue.queued, [begin, end + 1])
        return queue.all[low:high]

    def ended_by(self, begin: int, at: int, cpu: int, teller: int) -> Request | None:
        """Return the last request whose end was reported on this processor by this thread between two moments."""
        high = bisect_right(self.dones, at)
        for position in range(high - 1, max(-1, high - 64), -1):
            request = self.all[position]
            if request.done < begin:
                return None
            if request.cpu == cpu and request.teller == teller:
                return request
        return None

    def around(self, begin: int, end: int, threads: Collection[int] | None = None) -> Iterator[Request]:
        """Yield the requests that were queued or at the device in this time. `threads`: by these; None: by all."""
        by_thread = (self._by_thread.get(tid) for tid in threads or ())
        for queue in filter(None, [self._whole] if threads is None else by_thread):
            low, high = int(np.searchsorted(queue.reach, begin, side="right")), int(np.searchsorted(queue.queued, end))
            yield from (queue.all[low + at] for at in np.flatnonzero(queue.dones[low:high] > begin).tolist())


def device_number(major: int, minor: int) -> int:
    """Return the number by which events name a device."""
    return major << 20 | minor


def requests_of(trace: Trace, under_test: Collection[int] | None) -> Requests:
    """Return the requests to these devices; None: it is not known which they are. Of a device without requests of the
    kernel's (md, dm, brd, pmem) the bios."""
    devices = under_test or ()
    requests, endless = _requests(trace, devices)
    in_order = sorted(requests or _bio_requests(trace, devices), key=lambda request: request.done)
    merges = [_select_devices(trace, f"block:block_bio_{side}merge", devices)["TIME"] for side in ("back", "front")]
    merged = np.sort(np.concatenate(merges)).astype(np.int64)
    return Requests(tuple(in_order), merged, endless, under_test is not None)


def _select_devices(trace: Trace, event: str, devices: Collection[int]) -> Columns:
    rows = trace.rows(event)
    return rows[np.isin(rows["dev"], list(devices))] if rows is not None else np.zeros(0, [("TIME", "<u8")])


class _BlockEvent(NamedTuple):
    """An event of a request or of a bio."""

    at: int
    kind: int
    dev: int
    sector: int
    sectors: int
    flags: str
    cpu: int
    tid: int

    @property
    def key(self) -> tuple[int, int, bool]:
        """By which it is followed: at one time there is one request of a first sector, and one flush."""
        return self.dev, self.sector if self.sectors else -1, self.flags.startswith("F")


def _list_events(trace: Trace, devices: Collection[int], *events: str) -> list[_BlockEvent]:
    """Return the events in order; where two come at one time, in the order of their names."""
    steps: list[_BlockEvent] = []
    for kind, event in enumerate(events):
        rows = _select_devices(trace, event, devices)
        names = rows.dtype.names or ()
        rwbs = rows["rwbs"].tolist() if "rwbs" in names else [b""] * len(rows)
        flags = (text.split(b"\0")[0].decode("ascii", errors="replace") for text in rwbs)
        if len(rows):
            columns = (rows[name].tolist() for name in ("TIME", "dev", "sector", "nr_sector", "CPU", "TID"))
            steps += (
                _BlockEvent(at, kind, dev, sector, count, flag, cpu & 0xFFFFFFFF, tid)
                for at, dev, sector, count, cpu, tid, flag in zip(*columns, flags, strict=True)
            )
    return sorted(steps, key=lambda step: (step.at, step.kind))


def _requests(trace: Trace, devices: Collection[int]) -> tuple[list[Request], int]:
    """Follow each request from its issue to its end, by its first sector. Return those, and how many have no end: one
    like them was issued again, or the trace went on for long after."""
    bios = _Bios(_list_events(trace, devices, "block:block_bio_queue"))
    steps = _list_events(trace, devices, "block:block_rq_issue", "block:block_rq_requeue", "block:block_rq_complete")
    waiting: dict[tuple[int, int, bool], _BlockEvent] = {}
    requests, endless = list[Request](), 0
    for step in steps:
        began = waiting.pop(step.key, None)
        if step.kind == 0:
            endless += began is not None
            waiting[step.key] = step
        elif began and step.kind != 1:
            queued, tid = bios.of(began)
            size = began.sectors * 512
            requests.append(Request(queued, began.at, step.at, tid, size, step.flags, step.cpu, step.tid))
    return requests, endless + sum(trace.span_ns[1] - step.at > _PATIENCE_NS for step in waiting.values())


class _Bios:
    """Who queued what, to be found by its sectors."""

    def __init__(self, steps: list[_BlockEvent]) -> None:
        self._flushes = [step for step in steps if "F" in step.flags]
        self._at = by_key((step.sector, step) for step in steps)
        self._sectors = sorted(self._at)

    def of(self, request: _BlockEvent) -> tuple[int, int]:
        """Return when the last bio of a request was queued, and by which thread; of one without, when it was issued.

        What is larger than the device takes is split: later pieces belong to the bio that holds their sectors. A flush
        without data belongs to the last bio that asked for a flush or FUA: a device without FUA is flushed after it.
        """
        first, end = request.sector, request.sector + request.sectors
        inside = self._sectors[bisect_left(self._sectors, first) : bisect_left(self._sectors, end)]
        places = [self._at[sector] for sector in inside] if request.sectors else [self._flushes]
        latest = [
            steps[at - 1] for steps in places if (at := bisect_right(steps, request.at, key=lambda step: step.at))
        ]
        last = max(latest, key=lambda step: step.at) if latest else self._find_whole(request)
        return last.at, last.tid

    def _find_whole(self, piece: _BlockEvent) -> _BlockEvent:
        """Return the bio whose later piece a request is; the request itself where there is none."""
        before = bisect_left(self._sectors, piece.sector)
        for sector in reversed(self._sectors[max(0, before - _NEAREST) : before]):
            steps = self._at[sector]
            at = bisect_right(steps, piece.at, key=lambda step: step.at)
            if at and sector + steps[at - 1].sectors > piece.sector:
                return steps[at - 1]
        return piece


def _bio_requests(trace: Trace, devices: Collection[int]) -> Iterator[Request]:
    waiting: dict[tuple[int, int], _BlockEvent] = {}
    for step in _list_events(trace, devices, "block:block_bio_queue", "block:block_bio_complete"):
        if step.kind == 0:
            waiting[step.dev, step.sector] = step
        elif began := waiting.pop((step.dev, step.sector), None):
            size = began.sectors * 512
            yield Request(began.at, began.at, step.at, began.tid, size, began.flags, step.cpu, step.tid)
