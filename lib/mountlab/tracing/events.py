"""The kernel events that a diagnostic trial records: one entry each, and perf's words for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

SYSCALLS = {
    "read": ("read", "pread64", "readv", "preadv", "preadv2"),
    "write": ("write", "pwrite64", "writev", "pwritev", "pwritev2"),
    "sync": ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"),
    "open": ("openat", "openat2", "open", "creat"),
    "unlink": ("unlinkat", "unlink"),
    "rename": ("renameat2", "renameat", "rename"),
    "mkdir": ("mkdirat", "mkdir"),
}
"""Operation of a tool to the system calls that make one."""
SUBMITTING, COLLECTING = ("io_submit", "io_uring_enter"), ("io_getevents", "io_pgetevents", "io_uring_enter")
"""System calls that begin operations which end later, and those in which a tool collects what has ended."""


@dataclass(frozen=True)
class Event:
    """One tracepoint of the kernel."""

    name: str
    """As perf has it: group:event."""
    needed: bool = False
    """Whether nothing can be explained without it."""
    stack: bool = False
    """Whether it is recorded with the stack of the kernel."""
    numbers: tuple[str, ...] = ()
    """Its fields that are read."""
    texts: tuple[str, ...] = ()


_SECTORS = ("dev", "sector", "nr_sector")
CALLS = tuple(dict.fromkeys([call for group in SYSCALLS.values() for call in group] + [*SUBMITTING, *COLLECTING]))
"""Every system call that is recorded, by its name."""
CALL_EVENTS = (
    *(Event(f"syscalls:sys_enter_{call}", numbers=("flags",) if call in ("openat", "open") else ()) for call in CALLS),
    *(Event(f"syscalls:sys_exit_{call}", numbers=("ret",)) for call in CALLS),
)
"""As records of Mountlab before 2026-12 have them, and as tracing.calls makes them of RAW_CALLS."""
RAW_CALLS = (
    Event("raw_syscalls:sys_enter", numbers=("id",), texts=("args",)),
    Event("raw_syscalls:sys_exit", numbers=("id", "ret")),
)
"""What the tool alone is recorded with, in a file of its own: two events for all calls, so that a switch between
threads costs little."""
EVENTS = (
    Event(
        "sched:sched_switch",
        needed=True,
        stack=True,
        numbers=("prev_pid", "prev_state", "next_pid"),
        texts=("prev_comm",),
    ),
    Event("sched:sched_waking", needed=True, numbers=("pid",)),  # sched_wakeup may come from another processor
    Event("block:block_bio_queue", needed=True, numbers=_SECTORS, texts=("rwbs",)),
    Event("block:block_bio_complete", numbers=_SECTORS),
    Event("block:block_bio_backmerge", numbers=_SECTORS),
    Event("block:block_bio_frontmerge", numbers=_SECTORS),
    Event("block:block_rq_issue", needed=True, numbers=_SECTORS, texts=("rwbs",)),
    Event("block:block_rq_complete", needed=True, numbers=_SECTORS, texts=("rwbs",)),
    Event("block:block_rq_requeue", numbers=_SECTORS, texts=("rwbs",)),
    Event("io_uring:io_uring_submit_req", numbers=("ctx", "req", "opcode")),
    Event("io_uring:io_uring_complete", numbers=("ctx", "req", "res")),
    Event("jbd2:jbd2_end_commit", numbers=("dev",)),
    # workqueue_execute_end is not recorded: until the next item begins, a worker only looks for it, or sleeps
    Event("workqueue:workqueue_queue_work", numbers=("work",)),
    Event("workqueue:workqueue_execute_start", numbers=("work",)),
    *(Event(f"vmscan:mm_vmscan_{kind}_reclaim_{side}") for kind in ("direct", "memcg") for side in ("begin", "end")),
)
"""Whatever a kernel lacks of these is left out; a report says what is unknown without it."""
SAMPLES_PER_S = 199
"""Of what each processor does, for flame graphs. Odd, so that it keeps no step with a timer."""


def missing(available: Collection[str]) -> tuple[str, ...]:
    """Return the needed events that a kernel lacks."""
    return tuple(event.name for event in EVENTS if event.needed and event.name not in available)


def perf_words(available: Collection[str]) -> tuple[str, ...]:
    """Return what is recorded on a box with these events, as perf has them."""
    recorded = (event for event in EVENTS if event.name in available)
    words = (f"{event.name}{'/call-graph=fp/' if event.stack else ''}" for event in recorded)
    return (*words, f"cpu-clock/freq={SAMPLES_PER_S},call-graph=fp/")
