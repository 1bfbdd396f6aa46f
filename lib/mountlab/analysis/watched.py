"""What a watched program did, seen from outside: one row a trial, and what of it could not be seen.

Amounts are those of its system calls (/proc/PID/io, its children included once they have ended) and of the device below
its directory. None is not known, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mountlab.analysis.run_view import RunView
from mountlab.checks import Below
from mountlab.checks.places import fetches_unseen, loops_unseen, writes_elsewhere
from mountlab.checks.reads import PAGE_BYTES
from mountlab.checks.traffic import CACHED_BELOW, TELLING_BYTES
from mountlab.core.model import Cell, Sweep
from mountlab.filesystems import is_in_place
from mountlab.filesystems.cache_counters import NfsBytes
from mountlab.filesystems.counters import Around
from mountlab.filesystems.open_files import OpenFiles


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One counted trial of a watched program."""

    trial_id: str
    block: int
    around: Around
    below: Below | None
    """What the devices below its directory did, for all programs."""
    files: OpenFiles | None
    fetches_unseen: str = ""
    """Why it is not known what storage delivered to it."""
    loops_unseen: str = ""
    """Why it may have delivered less than it is said to have."""
    wrote_elsewhere: str = ""
    """The mount, with its type, of files that it wrote beyond the device below its directory."""
    page_bytes: int = PAGE_BYTES
    elapsed_s: float | None = None
    """What a clock beside the program says; None where the workload has no such metric."""

    @property
    def seconds(self) -> float | None:
        """How long it took: without the shells around it, where a clock beside it says so."""
        return self.around.seconds if self.elapsed_s is None else self.elapsed_s

    @property
    def waiting(self) -> int | None:
        """By how much the bytes grew that wait in memory to be written, of all programs."""
        pages = self.around.waiting_pages
        return None if pages is None else pages * self.page_bytes

    @property
    def fetched(self) -> int | None:
        """Bytes that storage delivered to its processes alone, without what memory below a loop device answered."""
        return None if self.loops_unseen or self.around.fetched is None else self.delivered

    @property
    def delivered(self) -> int | None:
        """The same with what memory may have answered below loop devices elsewhere; what the device below its directory
        delivered to all programs, where the kernel does not tell its own."""
        if self.fetches_unseen:
            return None
        return self.below.delivered(self.around.fetched) if self.below else self.around.fetched

    @property
    def beyond_calls(self) -> int | None:
        """Bytes that storage delivered to it where these are clearly more than its calls read; None elsewhere."""
        read, fetched = self.around.read_calls, self.fetched
        return None if read is None or fetched is None or fetched * CACHED_BELOW <= read else fetched

    @property
    def device_read(self) -> int | None:
        """Bytes that the device below its directory delivered, to all programs."""
        return self.below.read if self.below else None

    @property
    def device_written(self) -> int | None:
        """Bytes that the device below its directory took, of all programs."""
        return self.below.written if self.below else None

    @property
    def flushes(self) -> int | None:
        """Of the device below its directory, whichever program asked for them."""
        return self.below.flushes if self.below else None

    @property
    def delivered_share(self) -> float | None:
        """What storage delivered of the bytes read; None where too little was read to say so, or it is not known:
        storage may have delivered for mmap, and memory to the calls. At most so much where `loops_unseen`."""
        read, delivered = self.around.read_calls, self.delivered
        if delivered is None or read is None or read < TELLING_BYTES:
            return None
        share = delivered / read
        return None if self.beyond_calls is not None or (self.loops_unseen and share >= CACHED_BELOW) else share

    @property
    def to_storage(self) -> int | None:
        """Bytes that it wrote to files and did not remove again: what storage has to take."""
        return self.around.charged

    @property
    def amplification(self) -> float | None:
        """Bytes that the device took by the time it ended for each byte that storage has to take of it; None where
        another device had to take some."""
        taken, given = self.device_written, self.to_storage
        return (
            None if self.wrote_elsewhere or taken is None or given is None or given < TELLING_BYTES else taken / given
        )

    @property
    def flush_rate(self) -> float | None:
        """Flushes of the device a second."""
        return self.flushes / self.around.seconds if self.flushes is not None and self.around.seconds else None

    @property
    def flushes_per_write(self) -> float | None:
        """Flushes of the device for each of its write calls."""
        return self.flushes / self.around.write_count if self.flushes is not None and self.around.write_count else None

    @property
    def call_count(self) -> int | None:
        """How many read and write calls it made."""
        counts = (self.around.read_count, self.around.write_count)
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def file_count(self) -> int | None:
        """How many files it was seen to have open; None where it ended before it could be looked at."""
        return sum(one.files for one in self.files.directories) if self.files and self.files.looks else None

    @property
    def nfs(self) -> Sequence[tuple[str, NfsBytes]]:
        """Mount points of NFS on which something was read or written."""
        return [(point, moved) for point, moved in self.around.nfs.items() if moved.read + moved.written]


def is_watched(sweep: Sweep) -> bool:
    """Return whether all workloads of a sweep are programs that are watched where they are."""
    return bool(sweep.cells) and all(is_in_place(cell.filesystem) for cell in sweep.cells)


def observations(run: RunView, cell: Cell) -> list[Observation]:
    """Return what the counted trials of a cell did, in the order of the run."""
    of_cell = run.trials[(run.trials["cell"] == cell.id) & (run.trials["status"] == "ok")]
    rows = of_cell[~of_cell["warmup"].astype(bool)].sort_values("seq")
    timed = run.measurements[(run.measurements["metric"] == "elapsed") & (run.measurements["label"] == "")]
    elapsed = dict(zip(timed["trial_id"], timed["value"], strict=True))
    names, path = zip(rows["trial_id"], rows["block"], strict=True), str(cell.filesystem.path)
    return [
        Observation(
            trial_id=str(name),
            block=int(block),
            around=record.around,
            below=record.device,
            files=record.open_files,
            fetches_unseen=fetches_unseen(record.open_files, path) if record.open_files else "",
            loops_unseen=loops_unseen(record.open_files, path, record.around, record.device),
            wrote_elsewhere=_wrote_elsewhere(cell, record.open_files),
            elapsed_s=float(elapsed[name]) if name in elapsed else None,
            page_bytes=run.info.facts.memory.page_bytes or PAGE_BYTES,
        )
        for name, block in names
        if (record := run.records.get(str(name))) and record.around
    ]


def _wrote_elsewhere(cell: Cell, files: OpenFiles | None) -> str:
    mount = writes_elsewhere(files, str(cell.filesystem.path)) if files else None
    return mount.label if mount else ""


def unseen(run: RunView, rows: Sequence[Observation]) -> list[str]:
    """Return what could not be seen of a watched program, each with the reason."""
    missing = []
    if any(row.below is None for row in rows):
        missing.append(
            "what the device moved: the kernel tells no block device below the directory, or counts nothing on it"
        )
    places = dict.fromkeys(row.wrote_elsewhere for row in rows if row.wrote_elsewhere)
    missing += [
        f"what the device of {place} took, and how often it was flushed: watch it with --in there" for place in places
    ]
    uncounted = dict.fromkeys(row.below.flushes_unseen for row in rows if row.below and row.below.flushes_unseen)
    missing += [f"flushes: {why}" for why in uncounted]
    reasons = dict.fromkeys(why for row in rows if (why := row.fetches_unseen or row.loops_unseen))
    missing += [f"what storage delivered to it: {why}" for why in reasons]
    if any(row.around.read_calls is None for row in rows):
        missing.append("what its calls moved: the kernel keeps no /proc/PID/io")
    if any(not row.around.own_pressure for row in rows):
        missing.append(
            "how long it waited itself for processors, I/O and memory: it had no cgroup of version 2, or the kernel "
            "counts no pressure (PSI) there"
        )
    if any(row.files is None or not row.files.looks for row in rows):
        missing.append(
            "which files it had open, in some run: it ended before its processes could be looked at, or the box has no "
            "shell that can wait for a part of a second (bash, BusyBox)"
        )
    if run.info.facts.rights.level == "none":
        missing.append("what the kernel logged meanwhile: that takes root")
    return [*missing, *_ALWAYS]


_ALWAYS = (
    "files that it opened and closed between two looks, and files that it only mapped (mmap)",
    "reads and writes by AIO, io_uring, mmap and splice: the kernel counts the bytes of read and write calls only",
    "children that it did not wait for, and processes that left it (daemons): what their calls moved",
    "single operations: for these let it be traced (`mountlab watch --trace`)",
)
