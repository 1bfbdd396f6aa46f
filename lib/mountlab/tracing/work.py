"""What work was done for the operations of a tool: requests, bytes, flushes, commits, switches, processor time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mountlab.core.layers import COMMIT_SHARE, FEW, OTHERS_SHARE
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
    seen = _find_windows(operations, trace.pauses)
    finished = _are_inside(np.array([request.done for request in requests.all], np.int64), seen)
    done = [request for request, counts in zip(requests.all, finished.tolist(), strict=True) if counts]
    moving = [operation for operation in operations if operation.name in ("read", "write")]
    if len(moving) < FEW * len(operations):
        moving = operations
    threads = {operation.tid for operation in operations}
    syncs = [operation for operation in operations if operation.name == "sync"]
    merged = int(_are_inside(requests.merged, seen).sum())
    if requests.is_device_known:
        yield from _device_ratios(done, moving, operations, merged)
        yield from _sync_ratios(trace, done, len(syncs), seen, devices)
    yield from _thread_ratios(tasks, threads, len(moving), seen)
    who = Counter(_classify(request, processes, names, threads) for request in done)
    for label in ("tool", "journal", "writeback", "other"):
        if done:
            yield WorkRow("", "share_of_ios", label, who[label] / len(done), "1")


def data_of_others(requests: Requests, threads: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each write of data of others, from its issue to its completion, in ns.

    It is a write with data that the kernel does not mark as metadata (M: blocks of a journal or log, inodes, maps), and
    whose last bio none of the tool's `threads` queued. So it comes from another program; or from writeback, or from a
    commit that writes the data of files first (data=ordered), which may be the tool's own data, too.
    """
    for request in requests.all:
        if request.bytes and "W" in request.flags and "M" not in request.flags and request.tid not in threads:
            yield request.issued, request.done


def journal_shares(waited: float, beside_others: float, whole: float, requests: Requests) -> Iterator[WorkRow]:
    """Yield COMMIT_SHARE and OTHERS_SHARE of the syncs of a trial.

    `whole`: the time from begin to end, summed over the syncs; `waited`: its part in which the sync waited for a commit
    of the journal or log, for its own or others' changes, or for room in it (pieces through the journal or a
    checkpoint); `beside_others`: the part of `waited` in which the device worked on at least one write of
    `data_of_others`. All three are in one unit. Two syncs that wait for one commit count twice, as in latencies. The
    second share is left out where the device is unknown.
    """
    yield WorkRow("sync", COMMIT_SHARE, "", waited / whole, "1")
    if requests.is_device_known:
        yield WorkRow("sync", OTHERS_SHARE, "", beside_others / whole, "1")


def _find_windows(operations: Sequence[Operation], pauses: Stretches) -> Stretches:
    """Return from when to when operations were seen, between one pause and the next. What a window begins or ends with
    belongs to operations that reach beyond it, which are not counted."""
    spans, ends = dict[int, tuple[int, int]](), [end for _, end in pauses]
    for operation in operations:
        window = bisect_right(ends, operation.begin)
        begin, end = spans.get(window, (operation.begin, operation.end))
        spans[window] = min(begin, operation.begin), max(end, operation.end)
    return sorted(spans.values())


def _are_inside(times: Columns, seen: Stretches) -> Columns:
    """Return which of these times lie in one of the stretches."""
    edges = np.array([edge for low, high in seen for edge in (low, high + 1)], np.int64)
    return np.asarray(np.searchsorted(edges, times, side="right") % 2 == 1)


def _device_ratios(
    done: list[Request], moving: list[Operation], all_: list[Operation], merged: int
) -> Iterator[WorkRow]:
    moved = [request for request in done if request.bytes]
    yield WorkRow("", "device_ios_per_op", "", len(moved) / len(moving), "1")
    yield WorkRow("", "device_bytes_per_op", "", sum(request.bytes for request in moved) / len(moving), "B")
    requested = sum(operation.bytes for operation in all_ if operation.name == "write")
    if requested:
        written = sum(request.bytes for request in moved if "W" in request.flags)
        yield WorkRow("", "write_amplification", "", written / requested, "1")
    if moved:
        yield WorkRow("", "merges_per_io", "", merged / len(moved), "1")


def _sync_ratios(
    trace: Trace, done: list[Request], syncs: int, seen: Stretches, devices: Collection[int]
) -> Iterator[WorkRow]:
    if not syncs:
        return
    yield WorkRow("sync", "device_ios_per_op", "", sum(request.bytes > 0 for request in done) / syncs, "1")
    yield WorkRow(
        "sync", "flushes_per_sync", "", sum(request.is_flush and not request.bytes for request in done) / syncs, "1"
    )
    yield WorkRow("sync", "fua_per_sync", "", sum(request.is_fua for request in done) / syncs, "1")
    rows = trace.rows("jbd2:jbd2_end_commit")
    if rows is not None:
        commits = rows[np.isin(rows["dev"], list(devices)) & _are_inside(rows["TIME"].astype(np.int64), seen)]
        if len(commits):
            yield WorkRow("sync", "commits_per_sync", "", len(commits) / syncs, "1")


def _thread_ratios(tasks: Tasks, threads: Collection[int], count: int, seen: Stretches) -> Iterator[WorkRow]:
    switches = sum(tasks.left(tid, *stretch) for tid in threads for stretch in seen)
    running = sum(_running_ns(tasks, tid, *stretch) for tid in threads for stretch in seen)
    yield WorkRow("", "context_switches_per_op", "", switches / count, "1")
    yield WorkRow("", "processor_s_per_op", "", running / count / NS_PER_S, "s")


def _running_ns(tasks: Tasks, tid: int, begin: int, end: int) -> int:
    """Return for how long a thread of operations was on a processor: all the time where it never came or left."""
    spans = list(tasks.thread(tid).between(begin, end))
    return sum(span.end - span.begin for span in spans if span.state == "running") if spans else end - begin


_LOGS = ("jbd2/", "btrfs-transacti", "f2fs_ckpt")
"""How threads of the kernel begin that write a log, a transaction or a checkpoint."""


def _classify(request: Request, processes: Collection[int], names: Mapping[int, str], threads: Collection[int]) -> str:
    """Return for whom a request was queued. A write by a thread of the kernel that is metadata with a flush or FUA is
    the log's; other writes by such threads are writeback."""
    name = names.get(request.tid, "")
    if request.tid in processes or request.tid in threads:
        return "tool"
    if name.startswith(_LOGS) or (name.startswith("kworker") and "F" in request.flags):
        return "journal"
    return "writeback" if name.startswith("kworker") and "W" in request.flags else "other"
