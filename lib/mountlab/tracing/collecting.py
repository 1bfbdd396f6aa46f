"""When a tool collects operations that end by themselves, where no event shows it.

A tool that keeps its queue full collects one operation, the oldest that is done, before it submits the next: fio does
so by default. With io_uring it reads them out of memory that it shares with the kernel; with libaio by a system call,
which is not recorded all the time. What it collects in batches is dated too late by what it needs to submit a batch.
A tool that is slower than its device never has all operations there: it is dated too early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate


def collected(
    submitted: Sequence[tuple[int, int]], done: Sequence[int], before: int, end_of: Callable[[int], int], depth: int = 0
) -> list[int | None]:
    """Return when each operation is collected; None where that is after the last event.

    `submitted`: when each was submitted, and when the call that did it ended; `done`: when each ended in the kernel, in
    order; `before`: how many of these were submitted before the first event; `end_of`: the end of the call in which the
    thread waits at a moment, else the moment; `depth`: of the queue; where it is 0 the largest number under way:
    a tool that waits for its device has all of them there. Times in ns.
    """
    events = sorted([(at, 1, end) for at, end in submitted] + [(at, -1, number) for number, at in enumerate(done)])
    depth = max(depth, *accumulate((change for _, change, _ in events), initial=before))
    waiting = deque[int | None]([None] * (depth - before) if before else [])
    ends: list[int | None] = [None] * len(done)
    under_way, asks, last = before, False, 0
    for at, change, value in events:
        under_way += change
        if change < 0:
            end = end_of(at)
            if asks or (not waiting and end > max(at, last)):
                ends[value], asks, last = end, False, end
            else:
                waiting.append(value)
        elif under_way + len(waiting) < depth:
            continue
        elif not waiting:
            asks = True
        elif (oldest := waiting.popleft()) is not None:
            ends[oldest] = max(value, done[oldest])
    return ends
