"""What work was done for the operations of a tool: requests, bytes, flushes, commits, switches, processor time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mountlab.core.units import NS_PER_S
from mountlab.tracing.operations import Operation
from mountlab.tracing.perf_data import Trace
from mountlab.tracing.requests import Request, Requests
from mountlab.tracing.tasks import Tasks


class WorkRow(NamedTuple):
    """One ratio of work, over the time from the begin of the first operation to the end of the last."""

    operation: str
    """That it is a ratio to; '' of all that read or write."""
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
    begin, end = min(each.begin for each in operations), max(each.end for each in operations)
    done = [each for each in requests.all if begin <= each.done <= end]
    moving = [each for each in operations if each.name in ("read", "write")] or operations
    threads = {each.tid for each in operations}
    syncs = [each for each in operations if each.name == "sync"]
    merged = int(np.diff(np.searchsorted(requests.merged, [begin, end + 1]))[0])
    yield from _of_device(done, moving, operations, merged)
    yield from _of_syncs(trace, done, len(syncs), begin, end, devices)
    yield from _of_threads(tasks, threads, len(moving), begin, end)
    who = Counter(_who(each, processes, names, threads) for each in done)
    for label in ("tool", "journal", "writeback", "other"):
        if done:
            yield WorkRow("", "share_of_ios", label, who[label] / len(done), "1")


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
    trace: Trace, done: list[Request], syncs: int, begin: int, end: int, devices: Collection[int]
) -> Iterator[WorkRow]:
    if not syncs:
        return
    yield WorkRow("sync", "device_ios_per_op", "", sum(each.bytes > 0 for each in done) / syncs, "1")
    yield WorkRow("sync", "flushes_per_sync", "", sum(each.is_flush and not each.bytes for each in done) / syncs, "1")
    yield WorkRow("sync", "fua_per_sync", "", sum(each.is_fua for each in done) / syncs, "1")
    rows = trace.rows("jbd2:jbd2_end_commit")
    if rows is not None:
        own = rows[np.isin(rows["dev"], list(devices)) & (rows["TIME"] >= begin) & (rows["TIME"] <= end)]
        if len(own):
            yield WorkRow("sync", "commits_per_sync", "", len(own) / syncs, "1")


def _of_threads(tasks: Tasks, threads: Collection[int], count: int, begin: int, end: int) -> Iterator[WorkRow]:
    switches = sum(tasks.left(tid, begin, end) for tid in threads)
    running = sum(_running(tasks, tid, begin, end) for tid in threads)
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
