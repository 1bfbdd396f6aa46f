"""Where the processors were, and where threads slept, for flame graphs: stacks, and how much of each was met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

from mountlab.core.groups import by_key
from mountlab.core.units import NS_PER_S
from mountlab.tracing.operations import Operation
from mountlab.tracing.perf_data import Trace
from mountlab.tracing.spent import Times
from mountlab.tracing.symbols import Symbols
from mountlab.tracing.tasks import Tasks

_SAMPLES = ("cpu-clock",)
_IDLE = 0
_SCHEDULER = ("schedule", "io_schedule", "blk_io_schedule", "perf_trace_sched", "trace_event_raw", "rt_mutex_schedule")
"""How functions begin in which every sleep ends: they tell nothing. Underscores before them do not count."""
_MAIN = frozenset({"kthread", "ret_from_fork", "ret_from_fork_asm"})
"""Callers of the function that a thread of the kernel consists of. One that sleeps there waits for work."""
_IDLE_IN = frozenset({"kswapd_try_to_sleep", "do_task_dead"})
"""Functions in which others wait for work, or have ended."""


class StackRow(NamedTuple):
    """One stack of the samples."""

    stack: str
    """Outermost first, separated by ';': name of the thread, functions of the kernel; what runs outside of the kernel
    is one word."""
    samples: int


class SleepRow(NamedTuple):
    """One stack in which threads slept while operations were under way."""

    stack: str
    """As in StackRow, without the functions of the scheduler."""
    sleeps: int
    seconds: float


def stacks_of(
    trace: Trace, symbols: Symbols, processes: Collection[int], names: Mapping[int, str]
) -> Iterator[StackRow]:
    """Yield the stacks of the tool, and of the kernel's own threads, most frequent first."""
    rows = trace.rows(*_SAMPLES)
    if rows is None:
        return
    seen: Counter[str] = Counter()
    for pid, tid, stack in zip(rows["PID"].tolist(), rows["TID"].tolist(), rows["STACK"].tolist(), strict=True):
        name, kernel = names.get(tid, "?"), symbols.functions(trace.stacks[stack]) if stack >= 0 else []
        if pid != _IDLE and (pid in processes or is_kernels(name)):
            seen[";".join([plain_name(name), *reversed(kernel or ["outside of the kernel"])])] += 1
    for stack_text, samples in seen.most_common():
        yield StackRow(stack_text, samples)


def sleeps_of(
    trace: Trace, symbols: Symbols, operations: Sequence[Operation], tasks: Tasks, names: Mapping[int, str]
) -> Iterator[SleepRow]:
    """Yield where threads slept, the longest first: those of operations while one of their own was under way, the
    kernel's own while any was. A thread of the kernel that waits for work is left out."""
    by_thread = by_key((operation.tid, (operation.begin, operation.end)) for operation in operations)
    any_of_them = Times((operation.begin, operation.end) for operation in operations)
    kernels = {tid: any_of_them for tid, name in names.items() if tid not in by_thread and is_kernels(name)}
    sleeps, slept = Counter[str](), Counter[str]()
    for tid, under_way in ({tid: Times(spans) for tid, spans in by_thread.items()} | kernels).items():
        for span in tasks.thread(tid).spans:
            if span.state != "asleep" or not (ns := under_way.within(span.begin, span.end)):
                continue
            functions = symbols.functions(trace.stacks[span.stack]) if span.stack >= 0 else ()
            functions = tuple(dropwhile(lambda name: name.lstrip("_").startswith(_SCHEDULER), functions))
            if tid in kernels and _waits_for_work(functions):
                continue
            stack = ";".join([plain_name(names.get(tid, "?")), *reversed(functions or ("unknown",))])
            sleeps[stack] += 1
            slept[stack] += ns
    for stack, ns in slept.most_common():
        yield SleepRow(stack, sleeps[stack], ns / NS_PER_S)


def _waits_for_work(functions: Sequence[str]) -> bool:
    return not functions or functions[0] in _MAIN | _IDLE_IN or (len(functions) > 1 and functions[1] in _MAIN)


def is_kernels(name: str) -> bool:
    """Return whether a thread of this name is one of the kernel."""
    return name.startswith(_KERNELS)


_KERNELS = ("kworker", "jbd2/", "xfs", "btrfs", "f2fs_", "ksoftirqd", "kswapd", "loop", "io_wq", "iou-")


def plain_name(name: str) -> str:
    """Return the name of a thread without its number: all kworkers are one."""
    kind = name.partition("/")[0]
    return "".join(letter if letter.isalnum() or letter in "-_." else "?" for letter in kind)
