"""The operations of a tool: system calls, and requests by libaio and io_uring, each from its begin to its end.

What a trace cannot know: the tool reads its clock before a system call begins and after it has ended, so its latency is
longer by that and by entry and exit of the kernel (some tenths of a microsecond to some microseconds: much of an
operation below about 10 us). With io_uring a tool reads
what is done out of memory that it shares with the kernel, which no event shows (tracing.collecting).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mountlab.tracing.collecting import collected
from mountlab.tracing.events import COLLECTING, SYSCALLS
from mountlab.tracing.perf_data import Columns, Trace, groups
from mountlab.tracing.requests import Request, Requests

_OPCODES = {
    **dict.fromkeys((1, 4, 22), "read"),  # READV, READ_FIXED, READ
    **dict.fromkeys((2, 5, 23), "write"),
    3: "sync",  # FSYNC
}
"""Number of an io_uring operation (include/uapi/linux/io_uring.h) to what it is; others are left out."""

_MADE = 0o100 | 0o40000
"""Flags of an open file, on x86: O_CREAT and O_DIRECT."""
_CLOSED_BY_EXEC, _WRITES = 0o2000000, 0o3
"""O_CLOEXEC, with which programs load their libraries; O_WRONLY and O_RDWR."""


class Operation(NamedTuple):
    """One operation. Times in ns."""

    name: str
    tid: int
    begin: int
    end: int
    submitted: int
    """Until when its thread was at work on it: `end`, where the thread waits for it."""
    done: int
    """When the kernel had done it: `end`, where the thread waits for it; else the tool collects it later."""
    bytes: int
    """That were read or written; 0 of others."""


@dataclass(frozen=True)
class OpenFiles:
    """The files that processes of the tool were seen to have open: (process, number)."""

    tested: frozenset[tuple[int, int]] = frozenset()
    """In the directory of the trial, or the device itself."""
    strange: frozenset[tuple[int, int]] = frozenset()
    """Pipes, devices, files of /proc."""


def operations_of(
    trace: Trace, requests: Requests, threads: Collection[int], files: OpenFiles, depth: int = 0
) -> list[Operation]:
    """Return the operations that began and ended inside of the trace, by their end.

    `threads`: those of the tool; () means all. `files`: those that it was seen to have open. `depth`: operations that
    each thread keeps under way; 0 where that is not known.
    """
    wanted = frozenset(threads)
    operations = [
        *_syscall_operations(trace, wanted, files),
        *_uring_operations(trace, wanted, depth),
        *_aio_operations(trace, requests, wanted, depth),
    ]
    return sorted(_drop_paused(trace.pauses, operations), key=lambda operation: operation.end)


def _drop_paused(pauses: Sequence[tuple[int, int]], operations: list[Operation]) -> list[Operation]:
    """Leave out what overlaps a time in which no system call was recorded: its begin and its end may be of two."""
    if not pauses:
        return operations
    lows, highs = (np.array(ends, np.int64) for ends in zip(*pauses, strict=True))
    begins, ends = (
        np.array([getattr(operation, name) for operation in operations], np.int64) for name in ("begin", "end")
    )
    following = np.minimum(np.searchsorted(highs, begins, side="right"), len(highs) - 1)
    overlaps = (lows[following] < ends) & (highs[following] > begins)
    return [operation for operation, lost in zip(operations, overlaps.tolist(), strict=True) if not lost]


def without_setup(operations: Sequence[Operation], parents: Mapping[int, int]) -> list[Operation]:
    """Leave out what a thread does before those that it starts begin, where these spend more time in operations: a tool
    that lays out its files, and then starts its jobs. `parents`: thread to the one that started it."""
    spent, first = Counter[int](), dict[int, int]()
    for operation in operations:
        tid, seen = operation.tid, set[int]()
        while (tid := parents.get(tid, 0)) and tid not in seen:
            seen.add(tid)
            spent[tid] += operation.end - operation.begin
            first[tid] = min(first.get(tid, operation.begin), operation.begin)
        spent[operation.tid] -= operation.end - operation.begin
    return [operation for operation in operations if spent[operation.tid] <= 0 or operation.end > first[operation.tid]]


def _match_pairs(trace: Trace, call: str, wanted: frozenset[int]) -> tuple[Columns, Columns]:
    """Return the begins and the ends of a system call that belong together."""
    begins, ends = trace.rows(f"syscalls:sys_enter_{call}"), trace.rows(f"syscalls:sys_exit_{call}")
    if begins is None or ends is None or not len(begins) or not len(ends):
        empty = np.zeros(0, [("TIME", "<u8"), ("TID", "<i4"), ("PID", "<i4"), ("ret", "<i8")])
        return empty, empty
    if wanted:
        begins, ends = (rows[np.isin(rows["PID"], list(wanted))] for rows in (begins, ends))
    sides = np.concatenate([np.zeros(len(begins), np.int8), np.ones(len(ends), np.int8)])
    row = np.concatenate([np.arange(len(begins)), np.arange(len(ends))])
    tid, time = np.concatenate([begins["TID"], ends["TID"]]), np.concatenate([begins["TIME"], ends["TIME"]])
    order = np.lexsort((sides, time, tid))
    sides, row, tid = sides[order], row[order], tid[order]
    first = np.flatnonzero((sides[:-1] == 0) & (sides[1:] == 1) & (tid[:-1] == tid[1:]))
    return begins[row[first]], ends[row[first + 1]]


def _syscall_operations(trace: Trace, wanted: frozenset[int], files: OpenFiles) -> Iterator[Operation]:
    opened = _Opened(trace, wanted, files)
    for name, calls in SYSCALLS.items():
        for call in calls:
            begins, ends = _match_pairs(trace, call, wanted)
            if not len(begins):
                continue
            moves = name in ("read", "write")
            sizes = np.maximum(ends["ret"], 0) if moves else np.zeros(len(ends), np.int64)
            good = ends["ret"].astype(np.int64) >= 0
            numbers = begins["fd"] if "fd" in (begins.dtype.names or ()) else ends["ret"] if name == "open" else None
            if numbers is not None and numbers.dtype.kind in "iu":
                uses = zip(
                    begins["PID"].tolist(), numbers.astype(np.int64).tolist(), ends["TIME"].tolist(), strict=True
                )
                good &= np.array([opened.under_test(*use, synced=name == "sync") for use in uses])
            rows = (begins["TID"], begins["TIME"], ends["TIME"], sizes)
            for tid, begin, end, size in zip(*(column[good].tolist() for column in rows), strict=True):
                yield Operation(name, tid, begin, end, end, end, int(size))


def _uring_operations(trace: Trace, wanted: frozenset[int], depth: int) -> Iterator[Operation]:
    """An operation by io_uring is known by the address of its request, which is used again when it has ended. Its
    thread is at work on it until it submits the next one, or leaves the call."""
    submits, completes = trace.rows("io_uring:io_uring_submit_req"), trace.rows("io_uring:io_uring_complete")
    if submits is None or completes is None:
        return
    calls = _Calls(trace, "io_uring_enter", wanted)
    behind = trace.span_ns[1] + 1
    completion = _match_completions(submits, completes, behind)
    before = _find_earlier(submits, completes, completion)
    for tid, rows in groups(submits, "TID").items():
        if wanted and int(submits["PID"][rows[0]]) not in wanted:
            continue
        ended = [(int(completes["TIME"][completion[row]]), row) for row in rows.tolist() if row in completion]
        dones = sorted([*ended, *before.get(tid, []), *_find_lost_ends(submits, rows, completion)])
        begins = submits["TIME"][rows].tolist()
        following = dict(zip(rows.tolist(), [*begins[1:], behind], strict=True))
        submitted = [(at, calls.end_of(tid, at)) for at in begins]
        ends = collected(
            submitted, [at for at, _ in dones], len(before.get(tid, [])), partial(calls.end_of, tid), depth
        )
        for (done, row), end in zip(dones, ends, strict=True):
            name = _OPCODES.get(int(submits["opcode"][row]), "") if row >= 0 else ""
            result = int(completes["res"][completion[row]]) if name else -1
            if end is not None and result >= 0:
                begin = int(submits["TIME"][row])
                at_work = min(done, calls.end_of(tid, begin), following[row])
                yield Operation(name, tid, begin, end, at_work, done, result)


def _match_completions(submits: Columns, completes: Columns, last: int) -> dict[int, int]:
    """Return the row of a submission to that of its completion: the next one of the same address, before this is used
    again. `last`: behind the trace."""
    completion: dict[int, int] = {}
    ends = groups(completes, "req")
    for key, rows in groups(submits, "req").items():
        candidates = ends.get(key, np.zeros(0, np.int64))
        begins = submits["TIME"][rows]
        at = np.searchsorted(completes["TIME"][candidates], begins)
        for row, position, limit in zip(rows.tolist(), at.tolist(), [*begins[1:].tolist(), last], strict=True):
            if position < len(candidates) and int(completes["TIME"][candidates[position]]) < limit:
                completion[row] = int(candidates[position])
    return completion


def _find_lost_ends(submits: Columns, rows: Columns, completion: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield when operations without a completion had ended at the latest, as their addresses are used again; and -1."""
    used_again = dict[int, int]()
    for row in reversed(rows.tolist()):
        address = int(submits["req"][row])
        if row not in completion and address in used_again:
            yield used_again[address], -1
        used_again[address] = int(submits["TIME"][row])


def _find_earlier(
    submits: Columns, completes: Columns, completion: Mapping[int, int]
) -> dict[int, list[tuple[int, int]]]:
    """Return each thread to what it submitted before the trace began: when it was done, and -1 for the row."""
    earlier: dict[int, list[tuple[int, int]]] = {}
    threads = dict(zip(submits["ctx"].tolist(), submits["TID"].tolist(), strict=True))
    for at in set(range(len(completes))) - set(completion.values()):
        tid = threads.get(int(completes["ctx"][at]))
        if tid is not None:
            earlier.setdefault(tid, []).append((int(completes["TIME"][at]), -1))
    return earlier


def _aio_operations(trace: Trace, requests: Requests, wanted: frozenset[int], depth: int) -> Iterator[Operation]:
    """An operation by libaio has no event of its own: one is taken for each request that a thread queued while it
    submitted. The tool collects them in the order in which they were done, as many at a time as the call says."""
    begins, ends = _match_pairs(trace, "io_submit", wanted)
    waiting: dict[int, list[tuple[Request, Operation]]] = {}
    for begin_row, end_row in zip(begins, ends, strict=True):
        tid, begin, submitted = int(begin_row["TID"]), int(begin_row["TIME"]), int(end_row["TIME"])
        queued = requests.queued_by(tid, begin, submitted)
        for request in queued if int(end_row["ret"]) == len(queued) else queued[-1:]:
            name = "read" if "R" in request.flags else "write" if "W" in request.flags else "sync"
            operation = Operation(name, tid, begin, request.done, submitted, request.done, request.bytes)
            waiting.setdefault(tid, []).append((request, operation))
    if trace.pauses:
        yield from _collect_one_by_one(trace, requests, wanted, waiting, depth)
        return
    for tid, done in waiting.items():
        ready, first = [operation for _, operation in sorted(done, key=lambda pair: pair[0].done)], 0
        for at, count in _list_collections(trace, wanted, tid):
            took = [operation for operation in ready[first : first + count] if operation.done <= at]
            first += len(took)
            yield from (operation._replace(end=at) for operation in took)


def _collect_one_by_one(
    trace: Trace,
    requests: Requests,
    wanted: frozenset[int],
    waiting: Mapping[int, Sequence[tuple[Request, Operation]]],
    depth: int,
) -> Iterator[Operation]:
    """Requests are recorded all the time, also while system calls are not: their number says what was collected."""
    submits = _Calls(trace, "io_submit", wanted)
    waits = [_Calls(trace, call, wanted) for call in COLLECTING if call != "io_uring_enter"]

    for tid, operations in waiting.items():
        queued = sorted(requests.queued_by(tid, *trace.span_ns), key=lambda request: request.done)
        submitted = sorted((request.queued, submits.end_of(tid, request.queued)) for request in queued)
        end_of = partial(_find_wait_end, waits, [*(at for at, _ in submitted), trace.span_ns[1] + 1], tid)
        ends = collected(submitted, [request.done for request in queued], 0, end_of, depth)
        by_request = dict(zip(queued, ends, strict=True))
        for request, operation in operations:
            end = by_request[request]
            if end is not None:
                yield operation._replace(end=end)


def _find_wait_end(waits: Sequence[_Calls], submitted: Sequence[int], tid: int, at: int) -> int:
    """Return when the call ends by which a thread collects what is done at a moment: the one that it is in, or the next
    before it submits again, as where it lost its processor after it had submitted. The moment, where there is none.
    `submitted`: when it did so; the last is behind the trace."""
    before = submitted[bisect_right(submitted, at)]
    ends = (call.next_end(tid, at, before) for call in waits)
    return min((end for end in ends if end > at), default=at)


def _list_collections(trace: Trace, wanted: frozenset[int], tid: int) -> list[tuple[int, int]]:
    """Return when a thread collected what was done, and how many operations."""
    ends = [_match_pairs(trace, call, wanted)[1] for call in COLLECTING if call != "io_uring_enter"]
    return sorted(
        (int(row["TIME"]), int(row["ret"])) for rows in ends for row in rows[rows["TID"] == tid] if row["ret"] > 0
    )


class _Opened:
    """Which files are under test. Where a tool was seen with such a file open, others count only if it made them, or
    went past the page cache: else all that a program reads when it starts would be an operation. Programs open their
    libraries under one number after another, and then the file under test: it stays open for longest. Where a tool was
    not seen in time, files that are opened as libraries are left out."""

    def __init__(self, trace: Trace, wanted: frozenset[int], files: OpenFiles) -> None:
        self._files, self._end = files, trace.span_ns[1]
        self._opens: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for call in ("openat", "open"):
            begins, ends = _match_pairs(trace, call, wanted)
            if not len(begins):
                continue
            columns = begins["PID"], ends["ret"], ends["TIME"], begins["flags"]
            for pid, number, at, flags in zip(*(column.tolist() for column in columns), strict=True):
                times, kinds = self._opens.setdefault((pid, number), ([], []))
                times.append(at)
                kinds.append(flags)

    def under_test(self, pid: int, number: int, at: int, *, synced: bool) -> bool:
        """Return whether an operation that ends at this moment is one on a file under test. `synced`: it is a sync, of
        a directory perhaps, which is opened like a library. Libraries are not synced."""
        if (pid, number) in self._files.strange:
            return False
        if synced:
            return True
        times, kinds = self._opens.get((pid, number), ([], []))
        position = bisect_right(times, at) - 1
        flags = kinds[position] if position >= 0 else 0
        if (pid, number) in self._files.tested:
            like_a_library = flags & _CLOSED_BY_EXEC and not flags & (_MADE | _WRITES)
            lengths = [later - at for at, later in pairwise([*times, self._end])]
            return not like_a_library or position == lengths.index(max(lengths))
        if self._files.tested:
            return bool(flags & _MADE)
        return not flags & _CLOSED_BY_EXEC or bool(flags & (_MADE | _WRITES))


class _Calls:
    """The times that threads spend in a system call."""

    def __init__(self, trace: Trace, call: str, wanted: frozenset[int]) -> None:
        begins, ends = _match_pairs(trace, call, wanted)
        self._of = {tid: (begins["TIME"][rows], ends["TIME"][rows]) for tid, rows in groups(begins, "TID").items()}

    def end_of(self, tid: int, at: int) -> int:
        """Return the end of the call that a thread is in at a moment; the moment, where it is in none."""
        return self.next_end(tid, at, at)

    def next_end(self, tid: int, at: int, before: int) -> int:
        """Return the end of the call that a thread is in at a moment, else of the next that it begins before another;
        the moment, where there is none."""
        if tid not in self._of:
            return at
        begins, ends = self._of[tid]
        position = int(np.searchsorted(ends, at))
        return int(ends[position]) if position < len(ends) and begins[position] <= before else at
