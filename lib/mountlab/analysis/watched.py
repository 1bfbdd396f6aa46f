"""What a watched program did, seen from outside: one row a trial, and what of it could not be seen.

Amounts are those of its system calls (/proc/PID/io, its children included once they have ended) and of the device below
its directory. None is not known, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mountlab.analysis.run_view import RunView, TrialRecord
from mountlab.checks.traffic import TELLING_BYTES
from mountlab.core.model import Cell, Sweep
from mountlab.filesystems import is_in_place
from mountlab.filesystems.cache_counters import ArcReads, NfsBytes
from mountlab.filesystems.counters import Around, Extents
from mountlab.filesystems.open_files import OpenFiles


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One counted trial of a watched program."""

    trial_id: str
    block: int
    seconds: float | None
    read_calls: int | None
    """Bytes that its read calls returned, from whatever."""
    fetched: int | None
    """Bytes that storage delivered to its processes alone."""
    device_read: int | None
    """Bytes that the device below its directory delivered, to all programs."""
    write_calls: int | None
    device_written: int | None
    write_count: int | None
    """How many write calls it made."""
    flushes: int | None
    """Of the device below its directory, whichever program asked for them."""
    around: Around
    files: OpenFiles | None

    @property
    def delivered_share(self) -> float | None:
        """What storage delivered of the bytes read; None where too little was read to say so."""
        delivered = [amount for amount in (self.fetched, self.device_read) if amount is not None]
        if not delivered or self.read_calls is None or self.read_calls < TELLING_BYTES:
            return None
        return min(delivered) / self.read_calls

    @property
    def to_storage(self) -> int | None:
        """Bytes that it wrote to files and did not remove again: what storage has to take."""
        return self.around.charged

    @property
    def amplification(self) -> float | None:
        """Bytes that the device took by the time it ended for each byte that storage has to take of it."""
        if self.device_written is None or self.to_storage is None or self.to_storage < TELLING_BYTES:
            return None
        return self.device_written / self.to_storage

    @property
    def flush_rate(self) -> float | None:
        """Flushes of the device a second."""
        return self.flushes / self.seconds if self.flushes is not None and self.seconds else None

    @property
    def call_count(self) -> int | None:
        """How many read and write calls it made."""
        counts = (self.around.read_count, self.write_count)
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def file_count(self) -> int | None:
        """How many files it was seen to have open."""
        return sum(one.files for one in self.files.directories) if self.files else None

    @property
    def extents(self) -> Extents | None:
        return self.around.extents

    @property
    def nfs(self) -> Sequence[tuple[str, NfsBytes]]:
        """Mount points of NFS on which something was read or written."""
        return [(point, moved) for point, moved in self.around.nfs.items() if moved.read + moved.written]

    @property
    def arc(self) -> ArcReads | None:
        return self.around.arc


def is_watched(sweep: Sweep) -> bool:
    """Return whether all workloads of a sweep are programs that are watched where they are."""
    return bool(sweep.cells) and all(is_in_place(cell.filesystem) for cell in sweep.cells)


def observations(run: RunView, cell: Cell) -> list[Observation]:
    """Return what the counted trials of a cell did, in the order of the run."""
    of_cell = run.trials[(run.trials["cell"] == cell.id) & (run.trials["status"] == "ok")]
    rows = of_cell[~of_cell["warmup"].astype(bool)].sort_values("seq")
    names = zip(rows["trial_id"], rows["block"], strict=True)
    return [
        _observation(str(name), int(block), record, record.around)
        for name, block in names
        if (record := run.records.get(str(name))) and record.around
    ]


def _observation(trial_id: str, block: int, record: TrialRecord, around: Around) -> Observation:
    device = record.device
    return Observation(
        trial_id=trial_id,
        block=block,
        seconds=around.seconds,
        read_calls=around.read_calls,
        fetched=around.fetched,
        device_read=device.read if device else None,
        write_calls=around.write_calls,
        device_written=device.written if device else None,
        write_count=around.write_count,
        flushes=device.flushes if device else None,
        around=around,
        files=record.open_files,
    )


def unseen(run: RunView, rows: Sequence[Observation]) -> list[str]:
    """Return what could not be seen of a watched program, each with the reason."""
    missing = []
    if any(row.device_read is None for row in rows):
        missing.append(
            "what the device moved: the kernel tells no block device below the directory, or counts nothing on it"
        )
    if any(row.read_calls is None for row in rows):
        missing.append("what its calls moved: the kernel keeps no /proc/PID/io")
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
    "reads and writes by AIO, io_uring and mmap: the kernel counts the bytes of read and write calls only",
    "processes that left it (daemons): what these did after it had ended",
    "single operations: for these let it be traced (`mountlab watch --trace`)",
)
