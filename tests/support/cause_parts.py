"""What counts as right for each cause that is planted on one of two file systems that are equal otherwise.

Written from what the kernel does, before any judged run of the cause. A part is `layer/through` with `*` for any
(mountlab.core.layers); the largest part of a difference that matches none of these is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Verdict = Literal["right", "among several", "consequence", "wrong", "not shown"]
""""among several": the answer names several parts that may be the largest, and not all of them are right."""


@dataclass(frozen=True)
class Expected:
    """What the answer about one cause is compared with."""

    operation: str
    right: tuple[str, ...]
    reason: str
    """Why the kernel makes the operation wait there."""
    consequence: tuple[str, ...] = ()
    """What follows from the cause directly: counted apart."""
    ratio: str = ""
    """The ratio of work that names the cause by itself."""

    def verdict(self, named: Sequence[tuple[str, str]]) -> Verdict:
        """Judge what an answer names as the largest: one part, several, or none."""
        verdicts = [self.verdict_of(*part) for part in named] or ["not shown"]
        return "among several" if "right" in verdicts and {*verdicts} != {"right"} else verdicts[0]

    def verdict_of(self, layer: str, through: str) -> Verdict:
        """Judge one part. '' stands for all: a sum counts where all of its parts do."""
        part = f"{layer or '*'}/{through or '*'}"
        if any(fnmatchcase(part, pattern) for pattern in self.right):
            return "right"
        return "consequence" if any(fnmatchcase(part, pattern) for pattern in self.consequence) else "wrong"


FOR_THE_JOURNAL = ("*/journal", "journal/*")
READ_AGAIN = ("device/*", "queue/*", "processor/*")
"""The reader reads again what it freed. Its time on the processor was forgotten until a run was called wrong for it."""

EXPECTED = {
    "write limit": Expected(
        "sync", ("queue/*",),
        "blk-throttle holds a bio back before it is queued, whoever wrote it: fsync waits for its data and its commit",
        consequence=("journal/*", "writeback/*"),
    ),
    "few requests": Expected(
        "read", ("queue/*",), "the submitter sleeps until one of four tags is free (blk_mq_get_tag)",
    ),
    "tiny journal": Expected(
        "open", ("*/checkpoint", *FOR_THE_JOURNAL),
        "a handle starts only where the journal has room: it waits for a commit, and for buffers to be written back",
        consequence=("lock/*",),
    ),
    "memory limit, buffered reads": Expected(
        "read", ("reclaim/*",),
        "each new page of the cache is charged to a memory cgroup that is full: the reader frees others first",
        consequence=READ_AGAIN, ratio="device_ios_per_op",
    ),
    "memory limit, mapped reads": Expected(
        "read", ("reclaim/*",), "as above, in a page fault", consequence=READ_AGAIN, ratio="device_ios_per_op",
    ),
    "fragmented file": Expected(
        "read", ("device/*", "queue/*"),
        "read-ahead needs one request for each piece of 4 KiB in place of one for 32 of them",
        consequence=("processor/*", "run_queue/*"), ratio="device_ios_per_op",
    ),
    "mapped without read-ahead": Expected(
        "read", ("device/*", "queue/*"), "each page fault reads its own page; with read-ahead most find theirs",
        consequence=("processor/*", "run_queue/*"), ratio="device_ios_per_op",
    ),
    "data journalled": Expected(
        "sync", FOR_THE_JOURNAL,
        "with data=journal each fdatasync commits a transaction that holds the data; without, it writes them in place",
        consequence=("*/checkpoint",), ratio="commits_per_sync",
    ),
    "compression": Expected(
        "sync", ("processor/*",), "fsync waits until workers of btrfs have compressed the data on a processor",
        consequence=("run_queue/*", "writeback/*"), ratio="processor_s_per_op",
    ),
    "dirsync": Expected(
        "open", FOR_THE_JOURNAL, "a new file's handle is synchronous: creating it waits for a commit",
    ),
    "no directory index": Expected(
        "open", ("processor/*",), "a name is looked for in all blocks of the directory, which are in memory",
        consequence=("run_queue/*",), ratio="processor_s_per_op",
    ),
    "freeze pulses": Expected(
        "write", ("freeze/*",), "a frozen file system lets no writer in (sb_start_write)",
        consequence=("journal/*", "writeback/*"),
    ),
    "processor quota": Expected(
        "read", ("run_queue/*",),
        "a thread whose cgroup has used its quota is ready to run and gets no processor until the next period",
        consequence=("tool/*",),  # from Linux 6.18 on it is taken off the processor on its way back to user mode only
    ),
    "limit of dirty pages": Expected(
        "write", ("writeback/*", "*/writeback"),
        "balance_dirty_pages makes the writer sleep where the device has more dirty pages than its strict limit",
    ),
    "delayed reads": Expected(
        "read", ("device/*",), "the request is dispatched at once, and the device takes its time", ("queue/*",),
    ),
    "delayed writes": Expected(
        "write", ("device/*",), "the request is dispatched at once, and the device takes its time", ("queue/*",),
    ),
    "delayed flushes": Expected(
        "sync", ("flush/*",), "the device takes its time to empty its cache",
        # A commit lasts as long as its flushes; the kernel holds back one flush while another is under way.
        consequence=("journal/*", "queue/*"),
    ),
    "neighbour's syncs": Expected(
        "sync", (*FOR_THE_JOURNAL, "queue/*"),
        "the journal has one running transaction: a sync waits for the commit before, and writes what others joined",
        consequence=("device/*", "flush/*", "lock/*"), ratio="share_of_ios",
    ),
    "checkpoint stalls": Expected(
        "open", ("*/checkpoint",),
        "a full journal is emptied by writing its buffers to their places, on a device that takes few writes",
        consequence=(*FOR_THE_JOURNAL, "lock/*"),
    ),
    "throttled reads": Expected("read", ("queue/*",), "blk-throttle holds each read back before it is queued"),
    "processor hog": Expected(
        "write", ("run_queue/*",), "others of a better priority want each processor: a copy to the cache waits for it",
    ),
    "frequent commits": Expected(
        "sync", FOR_THE_JOURNAL, "the file's size changed: fdatasync has to commit its inode",
        consequence=("lock/*",), ratio="commits_per_sync",
    ),
    "lock contention": Expected(
        "write", ("lock/*",), "sixteen that append to one file hold its inode's lock in turn",
        consequence=("processor/*", "run_queue/*"),  # who waits for a reader-writer semaphore may spin
    ),
}  # fmt: skip
"""Cause to what is right of it."""
