"""Was it the device that delivered what was read? If not: the page cache, or files without data on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.checks.asked import holds_bytes, reads_directly
from mountlab.checks.base import Check, Doubt, Evidence, of_trials
from mountlab.checks.caches import journals_data
from mountlab.checks.layers import is_of_loops, level_name, level_sums
from mountlab.checks.places import (
    bytes_to_read,
    fetches_unseen,
    may_share_blocks,
    reads_no_files,
    reads_only_files,
    saw_files_read,
)
from mountlab.checks.traffic import (
    CACHED_ABOVE,
    CACHED_BELOW,
    TELLING_BYTES,
    Moved,
    below_trial,
    distinct_bytes,
    moved_by,
    no_traffic,
    range_of,
)
from mountlab.core.groups import by_key
from mountlab.core.model import Cell
from mountlab.core.numbers import counted, listed
from mountlab.core.units import format_bytes
from mountlab.filesystems import is_in_place
from mountlab.filesystems.counters import Around, Extents
from mountlab.filesystems.evidence import is_server
from mountlab.programs import TOOLS

UNSEEN_BELOW = 0.1
"""A device that delivered less than this share of what may have been read delivered next to nothing of it."""
OWN_SHARE = 0.25
"""Reads of less than this share of what a program may hold are those of its libraries and settings."""
_DENSEST = 1 / 32
"""Of compressed bytes that are read the device delivers this share at least: btrfs puts 128 KiB into 4 KiB at best."""
PAGE_BYTES = 4096
"""Where an older run did not ask the box."""
Cause = Literal["page cache", "server", "extents", "image", "unknown"]
_KINDS = {
    "hole": "holes (nothing was ever written there)",
    "unwritten": "unwritten extents (allocated, never written)",
    "inline": "inline data (kept beside the metadata)",
    "compressed": "compressed extents",
}
"""Field of Extents to its words."""


@dataclass(frozen=True)
class _Lacking:
    """A cell with trials whose device delivered less than was read."""

    cell: Cell
    reads: list[Moved]
    """Of all its trials."""
    by_cause: dict[Cause, list[Moved]]
    """Of those where it delivered too little."""
    by_calls: bool
    """Whether only the read calls of a program tell what it read."""

    def trials(self, evidence: Evidence, cause: Cause) -> str:
        return of_trials([moved.trial_id for moved in self.by_cause[cause]], evidence.counted[self.cell.id])

    @property
    def what(self) -> str:
        """How much the devices delivered."""
        if not self.by_calls:
            return f"the device delivered {range_of([moved.share for moved in self.reads])} of the bytes read"
        largest = max(self.reads, key=lambda moved: moved.tool_bytes)
        return (
            f"storage delivered {format_bytes(float(largest.device_bytes))} of {format_bytes(largest.tool_bytes)} or "
            "more that read calls returned (/proc/PID/io)"
        )


def _lacking(evidence: Evidence) -> list[_Lacking]:
    """Return the cells where a device delivered too little."""
    rows = []
    for cell in evidence.sweep.cells:
        stated = list(moved_by(evidence, cell, "read"))
        reads = stated or list(_of_program(evidence, cell))
        lacking = [moved for moved in reads if moved.share < CACHED_BELOW]
        by_cause = by_key((_cause(evidence, moved, by_calls=not stated), moved) for moved in lacking)
        if by_cause:
            rows.append(_Lacking(cell, reads, by_cause, not stated))
    return rows


def _cause(evidence: Evidence, reads: Moved, *, by_calls: bool) -> Cause:
    """Return why a device delivered too little: as the files tell, and only then the page cache. Of files of ZFS
    nothing tells it, and direct I/O goes through its cache, too."""
    trial_id = reads.trial_id
    if evidence.fstypes.get(reads.cell.filesystem.name) == "zfs":
        return "page cache"
    upper = level_sums(evidence.traffic[trial_id], evidence.levels_of(trial_id)[:1])
    asked = upper[0].read if upper else reads.device_bytes
    fetched = _around(evidence, trial_id).fetched
    if by_calls and fetched is not None:  # the device may have worked for other programs, too
        asked = fetched
    asked_upper = asked / reads.tool_bytes
    if asked_upper >= CACHED_BELOW:  # the device that the file system lies on was asked for all of it
        if any(map(is_server, evidence.levels_of(trial_id)[0])):
            return "server"
        return "page cache" if evidence.mounts[trial_id] in evidence.buffered_loops else "image"
    if extents := _around(evidence, trial_id).extents:
        saved = extents.without_data + extents.compressed_share * (1 - _DENSEST)
        if asked_upper >= CACHED_BELOW * (1 - saved):
            return "extents"
    return "unknown" if _past_the_cache(evidence, reads) else "page cache"


def _past_the_cache(evidence: Evidence, reads: Moved) -> bool:
    """Return whether all reads were direct, and nothing shows that they went through the page cache all the same."""
    if not reads_directly(reads.cell.workload) or journals_data(evidence, reads.cell.filesystem.name):
        return False
    resident = _around(evidence, reads.trial_id).resident_bytes
    return resident is None or resident < CACHED_ABOVE * distinct_bytes(evidence, reads.cell, reads.trial_id)


def _around(evidence: Evidence, trial_id: str) -> Around:
    return evidence.around.get(trial_id) or Around()


def cached_reads(evidence: Evidence) -> Iterator[Doubt]:
    """Reads that the page cache answered, by what the application read against what the devices delivered.

    In some trial the least busy of the devices below delivered less than 90 % of the bytes that the tool read, and
    nothing of `device-read-less` explains it. A note where `cache: warm` asked for it. A loop image has two devices:
    the loop device, and the one that holds the image; the devices of a RAID count in sum. Of a program without a figure
    of bytes, its read calls count (`/proc/PID/io`), less what its write calls took: those bytes may have come from a
    pipe. Where they were not written to files, and the device delivered less than 10 % of what was read, it is raised,
    too; not where the copy of a file may share its blocks (reflink). Where several looks at a watched program saw files
    and no pipe, all of its read calls count.
    """
    for lacking in evidence.once(_lacking):
        if "page cache" in lacking.by_cause:
            warm = lacking.cell.workload.options.get("cache") == "warm"
            yield Doubt.of_cell(
                lacking.cell,
                f"{_memory(evidence, lacking)} answered{_unless(evidence, lacking)}: {lacking.what}"
                + (
                    ", as the sweep asks with cache: warm. This is not the speed of the device."
                    if warm
                    else ". This is not the speed of the device: read more than the memory holds, or cold."
                ),
                severity="note" if warm else "warning",
                metrics="" if lacking.by_calls else "read_",
                asked=warm,
            )


def _memory(evidence: Evidence, lacking: _Lacking) -> str:
    """Return which memory answered: ZFS has a cache of its own."""
    if evidence.fstypes.get(lacking.cell.filesystem.name) != "zfs":
        return "the page cache"
    arcs = [_around(evidence, moved.trial_id).arc for moved in lacking.by_cause["page cache"]]
    hits = [arc.hits / (arc.hits + arc.misses) for arc in arcs if arc and arc.hits + arc.misses]
    return f"the ARC of ZFS{f' (it had {range_of(hits)} of the blocks that were looked up)' if hits else ''}"


def _unless(evidence: Evidence, lacking: _Lacking) -> str:
    """Return what else may have answered: ZFS that compresses, or a watched program whose files were not seen."""
    if evidence.fstypes.get(lacking.cell.filesystem.name) == "zfs":
        options = lacking.cell.filesystem.options
        return "" if "compression=off" in options else ", unless compression left less to read"
    looked = [evidence.open_files.get(moved.trial_id) for moved in lacking.by_cause["page cache"]]
    if not is_in_place(lacking.cell.filesystem) or any(files and saw_files_read(files) for files in looked):
        return ""
    return ", unless it read pipes, /dev/zero, /proc or holes (its files were not seen)"


def _of_program(evidence: Evidence, cell: Cell) -> Iterator[Moved]:
    """Yield what a program read from files in each trial, where no metric tells it, and what the device delivered.

    What its write calls took may have been read from a pipe, or from /dev/zero: it does not count. Of what was not
    written to files it counts all the same where the device delivered next to nothing. The calls of a tool that copies
    from memory say nothing.
    """
    if TOOLS[cell.workload.tool].source_bytes(cell.workload):
        return
    page = evidence.facts.memory.page_bytes or PAGE_BYTES
    for trial_id in evidence.counted.get(cell.id, ()):
        around, below = _around(evidence, trial_id), below_trial(evidence, trial_id)
        stated = (trial_id, "read") in evidence.moved or (trial_id, "write") in evidence.moved
        if stated or around.read_calls is None or around.write_calls is None or below is None:
            continue
        seen = evidence.open_files.get(trial_id)
        if seen and (reads_no_files(seen) or fetches_unseen(seen, str(cell.filesystem.path))):
            continue
        delivered = below.delivered(around.fetched)
        if around.charged is None:
            to_files = max((around.dirtied_pages or 0) * page, below.written)
        else:  # its own, without those of other programs
            to_files = around.charged
        if seen and may_share_blocks(seen):
            to_files = max(to_files, around.write_calls)
        surely, perhaps = around.read_calls - around.write_calls, around.read_calls - to_files
        if seen and seen.pipes:  # of a pipeline the calls of each part count
            perhaps = min(perhaps, bytes_to_read(seen))
        read = max(surely, perhaps) if delivered < UNSEEN_BELOW * perhaps else surely
        if seen and reads_only_files(seen, around.read_calls) and not may_share_blocks(seen):
            read = around.read_calls
        if read >= max(TELLING_BYTES, OWN_SHARE * holds_bytes(cell.workload)):
            yield Moved(trial_id, cell, "read", float(read), delivered)


def device_read_less(evidence: Evidence) -> Iterator[Doubt]:
    """Reads for which the device was asked for less than the tool read, and the page cache is not why.

    In some trial a device below delivered less than 90 % of the bytes that the tool read. The files show why (FIEMAP,
    by `filefrag`): holes, unwritten extents or inline data have no block on the device, compressed extents have fewer.
    Or the loop device delivered all, past the page cache below it, and the device that holds the image did not: parts
    of the image have no data. Or the reads were direct, left nothing in the page cache, and nothing shows why.
    """
    for lacking in evidence.once(_lacking):
        for cause in lacking.by_cause.keys() - {"page cache", "server"}:
            extents = [_around(evidence, moved.trial_id).extents for moved in lacking.by_cause[cause]]
            why = {
                "extents": _of_extents([extent for extent in extents if extent]),
                "image": _of_lower(evidence, lacking.by_cause[cause][0].trial_id),
                "unknown": _unknown(known=all(extents)),
            }[cause]
            yield Doubt.of_cell(
                lacking.cell,
                f"{lacking.trials(evidence, cause)} {lacking.what}, and the page cache is not why. {why}",
                metrics="" if lacking.by_calls else "read_",
            )


def _of_lower(evidence: Evidence, trial_id: str) -> str:
    """Return what may have answered below the device that was asked for all of what was read."""
    top = evidence.levels_of(trial_id)[0]
    if is_of_loops(top):
        who, why = "The loop device", "parts of its image have no data, and read as zeros"
    else:
        who = level_name(top, evidence.device_names)
        why = "below it parts have no data and read as zeros (an image, a thin volume), or a cache answered"
    return f"{who} was asked for all of it: {why}. Write the whole device before it is read."


def _of_extents(extents: Sequence[Extents]) -> str:
    """Return what the files consist of: of all trials together."""
    size = sum(extent.size for extent in extents) or 1
    shares = {name: sum(getattr(extent, name) for extent in extents) / size for name in _KINDS}
    parts = [f"{share:.0%} {_KINDS[name]}" for name, share in shares.items() if share >= 0.005]
    files = counted(max((extent.files for extent in extents), default=0), "file")
    what = ", with data that does not compress" if shares["compressed"] else ""
    return (
        f"FIEMAP of {files} shows {listed(parts)}. For these the device delivers less than is read: the figures are of "
        f"the file system. Write the whole of the files before they are read{what}."
    )


def _unknown(*, known: bool) -> str:
    look = (
        "the files have their data on the device"
        if known
        else "how they lie on the device could not be seen (filefrag of e2fsprogs, FIEMAP)"
    )
    return (
        f"The reads were direct, and {look}. A layer that answers without the device is possible: see what the file "
        "system does with such files, and how they were made."
    )


CHECKS = (
    Check(
        "cache-served",
        cached_reads,
        "Read more than the memory holds, or cold (`cache: cold`); or ask for a warm cache on purpose.",
        watched="Read more than the memory holds, or empty the caches before each run: --drop-caches.",
        severities=("warning", "note"),
        blind=no_traffic,
    ),
    Check(
        "device-read-less",
        device_read_less,
        "Write the whole of the files before they are read, with data that does not compress.",
        blind=no_traffic,
    ),
)
