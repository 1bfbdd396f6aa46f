"""What work was done for the operations of a tool: requests, bytes, flushes, commits, switches, processor time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mountlab.core.layers import FEW
from mountlab.core.units import NS_PER_S
from mountlab.tracing.operations import Operation
from mountlab.tracing.perf_data import Columns, Trace
from mountlab.tracing.requests import Request, Requests
from mountlab.tracing.tasks import Tasks

Stretches = Sequence[tuple[int, int]]


class WorkRow(NamedTuple):
    """One ratio of work, over the time from the begin of the first operation to the end of the last: where system calls
    were recorded in windows, of those in each."""

    operation: str
    """That it is a ratio to; '' of all that read or write, and of all operations where hardly any does."""
    quantity: str
    label: str
    """Who, of a share; else ''."""
    value: float
    unit: str


def work_of(
    trace: Trace,
    operations: list[Operation],
    requests: Requests,
    tasks: Tasks,
    processes: Collection[int],
    names: Mapping[int, str],
    devices: Collection[int],
) -> Iterator[WorkRow]:
    """Yield the ratios of work of a trial; those without a denominator are left out."""
    seen = _spans(operations, trace.pauses)
    finished = _inside(np.array([each.done for each in requests.all], np.int64), seen)
    done = [each for each, counts in zip(requests.all, finished.tolist(), strict=True) if counts]
    moving = [each for each in operations if each.name in ("read", "write")]
    if len(moving) < FEW * len(operations):
        moving = operations
    threads = {each.tid for each in operations}
    syncs = [each for each in operations if each.name == "sync"]
    merged = int(_inside(requests.merged, seen).sum())
    if requests.is_device_known:
        yield from _of_device(done, moving, operations, merged)
        yield from _of_syncs(trace, done, len(syncs), seen, devices)
    yield from _of_threads(tasks, threads, len(moving), seen)
    who = Counter(_who(each, processes, names, threads) for each in done)
    for label in ("tool", "journal", "writeback", "other"):
        if done:
            yield WorkRow("", "share_of_ios", label, who[label] / len(done), "1")


def _spans(operations: Sequence[Operation], pauses: Stretches) -> Stretches:
    """Return from when to when operations were seen, between one pause and the next. What a window begins or ends with
    belongs to operations that reach beyond it, which are not counted."""
    found, ends = dict[int, tuple[int, int]](), [end for _, end in pauses]
    for each in operations:
        window = bisect_right(ends, each.begin)
        begin, end = found.get(window, (each.begin, each.end))
        found[window] = min(begin, each.begin), max(end, each.end)
    return sorted(found.values())


def _inside(times: Columns, seen: Stretches) -> Columns:
    """Return which of these times lie in one of the stretches."""
    edges = np.array([edge for low, high in seen for edge in (low, high + 1)], np.int64)
    return np.asarray(np.searchsorted(edges, times, side="right") % 2 == 1)


def _of_device(done: list[Request], moving: list[Operation], all_: list[Operation], merged: int) -> Iterator[WorkRow]:
    moved = [each for each in done if each.bytes]
    yield WorkRow("", "device_ios_per_op", "", len(moved) / len(moving), "1")
    yield WorkRow("", "device_bytes_per_op", "", sum(each.bytes for each in moved) / len(moving), "B")
    asked = sum(each.bytes for each in all_ if each.name == "write")
    if asked:
        written = sum(each.bytes for each in moved if "W" in each.flags)
        yield WorkRow("", "write_amplification", "", written / asked, "1")
    if moved:
        yield WorkRow("", "merges_per_io", "", merged / len(moved), "1")


def _of_syncs(
    trace: Trace, done: list[Request], syncs: int, seen: Stretches, devices: Collection[int]
) -> Iterator[WorkRow]:
    if not syncs:
        return
    yield WorkRow("sync", "device_ios_per_op", "", sum(each.bytes > 0 for each in done) / syncs, "1")
    yield WorkRow("sync", "flushes_per_sync", "", sum(each.is_flush and not each.bytes for each in done) / syncs, "1")
    yield WorkRow("sync", "fua_per_sync", "", sum(each.is_fua for each in done) / syncs, "1")
    rows = trace.rows("jbd2:jbd2_end_commit")
    if rows is not None:
        own = rows[np.isin(rows["dev"], list(devices)) & _inside(rows["TIME"].astype(np.int64), seen)]
        if len(own):
            yield WorkRow("sync", "commits_per_sync", "", len(own) / syncs, "1")


def _of_threads(tasks: Tasks, threads: Collection[int], count: int, seen: Stretches) -> Iterator[WorkRow]:
    switches = sum(tasks.left(tid, *stretch) for tid in threads for stretch in seen)
    running = sum(_running(tasks, tid, *stretch) for tid in threads for stretch in seen)
    yield WorkRow("", "context_switches_per_op", "", switches / count, "1")
    yield WorkRow("", "processor_s_per_op", "", running / count / NS_PER_S, "s")


def _running(tasks: Tasks, tid: int, begin: int, end: int) -> int:
    """Return for how long a thread of operations was on a processor: all the time where it never came or left."""
    spans = list(tasks.thread(tid).between(begin, end))
    return sum(span.end - span.begin for span in spans if span.state == "running") if spans else end - begin


def _who(request: Request, processes: Collection[int], names: Mapping[int, str], threads: Collection[int]) -> str:
    """Return for whom a request was queued. A write by a thread of the kernel that is metadata with a flush or FUA is
    the log's; other writes by such threads are writeback."""
    name = names.get(request.tid, "")
    if request.tid in processes or request.tid in threads:
        return "tool"
    if name.startswith(("jbd2/", "btrfs-transacti")) or (name.startswith("kworker") and "F" in request.flags):
        return "journal"
    return "writeback" if name.startswith("kworker") and "W" in request.flags else "other"
