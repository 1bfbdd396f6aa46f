"""Where the processors were, for flame graphs: stacks, and how often each was met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mountlab.tracing.perf_data import Trace
from mountlab.tracing.symbols import Symbols

_SAMPLES = ("cpu-clock",)
_IDLE = 0


class StackRow(NamedTuple):
    """One stack of the samples."""

    stack: str
    """Outermost first, separated by ';': name of the thread, functions of the kernel; what runs outside of the kernel
    is one word."""
    samples: int


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
        own = pid in processes
        if pid != _IDLE and (own or _is_kernels(name)):
            seen[";".join([_plain(name), *reversed(kernel or ["outside of the kernel"])])] += 1
    for stack_text, samples in seen.most_common():
        yield StackRow(stack_text, samples)


def _is_kernels(name: str) -> bool:
    return name.startswith(("kworker", "jbd2/", "xfs", "btrfs", "ksoftirqd", "kswapd", "loop", "io_wq", "iou-"))


def _plain(name: str) -> str:
    """Return the name of a thread without its number: all kworkers are one."""
    kind = name.partition("/")[0]
    return "".join(letter if letter.isalnum() or letter in "-_." else "?" for letter in kind)
