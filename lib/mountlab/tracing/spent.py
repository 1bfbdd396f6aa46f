"""Times that are spent in something: how much of them lies in others, and who had a processor meanwhile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise

from mountlab.tracing.perf_data import Trace, groups

IDLE, HELD, UNKNOWN = "idle", "held back", "?"
"""In the place of the name of a thread: the processor ran none, and woke up late or got the thread from another one; it
ran none for LONG_NS and more although it had the thread; which it ran is not known."""
LONG_NS = 1_000_000
"""An idle processor that has a thread takes it up in less, a virtual one too: for longer a quota holds it back."""


class Times:
    """Intervals of time in ns, as their union."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._begins, self._ends = [0], [0]
        for begin, end in sorted(intervals):
            if begin > self._ends[-1]:
                self._begins.append(begin)
                self._ends.append(end)
            else:
                self._ends[-1] = max(self._ends[-1], end)
        lengths = (end - begin for begin, end in zip(self._begins, self._ends, strict=True))
        self._before = [0, *accumulate(lengths)]

    def within(self, begin: int, end: int) -> int:
        """Return how much of them lies between two moments."""
        return self._until(end) - self._until(begin)

    def _until(self, at: int) -> int:
        number = bisect_right(self._begins, at) - 1
        return self._before[number] + min(at, self._ends[number]) - self._begins[number]


class Processors:
    """Which thread each processor ran."""

    def __init__(self, trace: Trace, names: Mapping[int, str]) -> None:
        rows, self._names = trace.rows("sched:sched_switch"), names
        self._on: dict[int, tuple[list[int], list[int]]] = {}
        for cpu, places in groups(rows, "CPU").items():
            assert rows is not None
            switches = rows[places]
            before = int(switches["prev_pid"][0])
            self._on[cpu] = switches["TIME"].tolist(), [before, *switches["next_pid"].tolist()]
        self._left = {
            tid: (rows["TIME"][places].tolist(), rows["CPU"][places].tolist())  # type: ignore[index]
            for tid, places in groups(rows, "prev_pid").items()
        }
        self._came = {at: cpu for cpu, (times, _) in self._on.items() for at in times}
        items = trace.rows("workqueue:workqueue_execute_start")
        if items is not None:
            self._came |= dict(zip(items["TIME"].tolist(), items["CPU"].tolist(), strict=True))

    def ran(self, waits: Iterable[tuple[int, int]]) -> Counter[str]:
        """Return the name of each thread to the ns that it ran instead: on the processor that a waiting thread, or an
        item of a work queue, came to when its wait ended."""
        ran: Counter[str] = Counter()
        for (begin, end), count in Counter(waits).items():  # operations of a batch wait together
            for name, ns in self._split_wait(begin, end):
                ran[name] += ns * count
        return ran

    def _split_wait(self, begin: int, end: int) -> Iterator[tuple[str, int]]:
        cpu = self._came.get(end)
        if cpu is None:
            yield UNKNOWN, end - begin
            return
        times, threads = self._on[cpu]
        first, last = bisect_right(times, begin), bisect_left(times, end)
        left_at, left_cpus = self._left.get(threads[last + 1], ([], [])) if last < len(times) else ([], [])
        number = bisect_right(left_at, begin)
        stays = number > 0 and left_cpus[number - 1] == cpu  # the processor that the thread left last
        moments = [begin, *times[first:last], end]
        for (low, high), tid in zip(pairwise(moments), threads[first:], strict=False):
            idle = HELD if stays and high - low >= LONG_NS else IDLE
            yield (self._names.get(tid, UNKNOWN) if tid else idle), high - low
