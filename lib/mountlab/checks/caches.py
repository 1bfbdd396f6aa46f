"""Was it the device that answered? The page cache above it, a cache inside it, and writes that never reached it."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.asked import asks_direct, cache_state, holds_bytes, reads_of, writes_of
from mountlab.checks.base import (
    SIDES,
    Check,
    Direction,
    Doubt,
    Evidence,
    from_counters,
    in_memory,
    of_trials,
    standing,
)
from mountlab.checks.traffic import (
    CACHED_ABOVE,
    CACHED_BELOW,
    TELLING_BYTES,
    bytes_of,
    distinct_bytes,
    moved_by,
    no_traffic,
    range_of,
)
from mountlab.core.box_facts import BoxFacts
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Sweep
from mountlab.core.numbers import quantity
from mountlab.core.units import format_bytes
from mountlab.programs.fs_mark import FLUSH_THE_MACHINE

FLUSH = (
    "End with a flush (dd: conv=fdatasync, fio: end_fsync, fs_mark: sync, filebench: a workload that flushes, such as "
    "varmail or writefsync)."
)
FASTEST_PLATTERS = 600e6
"""No disk that rotates reads or writes faster, in B/s: the fastest of two actuators reach some 550 MB/s."""
IMPLAUSIBLE = 1.05
"""Beyond a limit by more than what clocks and counters may be off."""


# --- the page cache ---------------------------------------------------------------------------------------------------


def unflushed_writes(evidence: Evidence) -> Iterator[Doubt]:
    """Writes that had not reached the device when the tool stopped its clock.

    In some trial the devices had taken less than 90 % of the bytes written when the tool stopped its clock. The plan
    foresees it where nothing flushes.
    """
    for cell, shares in _shares(evidence, "write"):
        if min(shares) < CACHED_BELOW:
            yield Doubt.of_cell(
                cell,
                f"the device had taken {range_of(shares)} of the bytes written when the tool finished: the rest was "
                f"still in the page cache or was overwritten there. {FLUSH}",
                metrics=_of_side(evidence, cell, "write_"),
            )


def will_not_flush(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Writes that nothing flushes before the clock of the tool stops."""
    for cell in sweep.cells:
        flushed = all(stream.flushed for stream in writes_of(cell.workload))
        if not flushed and not in_memory(cell.filesystem):
            yield Doubt.of_cell(
                cell,
                "nothing flushes what it writes before its clock stops: it will measure the page cache, as far as "
                f"that takes the writes. {FLUSH}",
                metrics="" if cell.workload.tool == "fs_mark" else "write_",
            )


def _shares(evidence: Evidence, side: Direction) -> Iterator[tuple[Cell, list[float]]]:
    """For each cell on a device, what the least busy level of devices moved per byte of the application."""
    for cell in evidence.sweep.cells:
        shares = [moved.share for moved in moved_by(evidence, cell, side)]
        if shares:
            yield cell, shares


def _of_side(evidence: Evidence, cell: Cell, side: str) -> str:
    """Return the beginning of the metrics of one side; '' (all of them) for a tool that does not tell sides apart."""
    metrics = evidence.measurements.loc[evidence.measurements["cell"] == cell.id, "metric"]
    return side if any(metric.startswith(side) for metric in metrics) else ""


def will_fit_in_memory(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Buffered reads, again and again or of what was just written, of less than the memory holds."""
    memory = float(facts.memory_limit or facts.memory.total_bytes or 0)
    for cell in sweep.cells if memory and not sweep.imported else ():
        size, why = holds_bytes(cell.workload), _why_cached(cell, sweep)
        if why and size < memory and not in_memory(cell.filesystem):
            warm = cache_state(cell.workload, sweep.design) == "warm"
            yield Doubt.of_cell(
                cell,
                f"this reads {format_bytes(float(size))} buffered on a box with {format_bytes(memory)} of memory, "
                f"and {why}: it measures the page cache. "
                + (
                    "The sweep asks for this."
                    if warm
                    else "Read more than the memory holds, read past the cache "
                    "(direct), or say cache: warm where that is what you want to know."
                ),
                severity="note" if warm else "warning",
                metrics="read_" if cell.workload.tool in ("dd", "fio") else "",
                asked=warm,
            )


def _why_cached(cell: Cell, sweep: Sweep) -> str:
    """Return why the page cache may answer; '' where it cannot, or where it is unknown what the tool reads."""
    reads = [stream for stream in reads_of(cell.workload) if not stream.direct]
    state = cache_state(cell.workload, sweep.design)
    if reads and state == "warm":
        return "the file is read before"
    if reads and state == "as_is":
        return "what was written just before is left in the cache (cache: as_is)"
    return "reads the same bytes again and again" if any(stream.again for stream in reads) else ""


def fits_in_memory(evidence: Evidence) -> Iterator[Doubt]:
    """Buffered reads of less than the memory holds, but for those that the counters show to have come from a device.

    The reads are buffered, and the data is smaller than the box's memory. The file is still in the page cache
    (`as_is`), or read before (`warm`, a note), or read again and again: by filebench, or by fio with `norandommap`,
    `random_distribution` or `invalidate: 0`. Otherwise fio drops its file before each pass. After the run only where
    the counters do not show that a device delivered.
    """
    from_device = {cell.id for cell, shares in _shares(evidence, "read") if min(shares) >= CACHED_BELOW}
    for doubt in will_fit_in_memory(evidence.sweep, evidence.facts):
        if doubt.subject in evidence.counted and doubt.subject not in from_device:
            yield doubt


def direct_not_honoured(evidence: Evidence) -> Iterator[Doubt]:
    """Direct I/O that went through the page cache all the same, by the mount option in effect, or by how much of its
    files is there afterwards.

    ext4 with `data=journal` takes all direct I/O through the page cache. Or a quarter or more of the moved bytes was in
    the page cache afterwards (`fincore`). A note on a file system in memory. The page cache is not looked at below
    8 MiB, and not where it was not emptied first.
    """
    yield from direct_in_memory(evidence.sweep, evidence.facts)
    for cell in evidence.sweep.cells:
        if not asks_direct(cell.workload) or in_memory(cell.filesystem) or cell.id not in evidence.counted:
            continue
        journal, shares = journals_data(evidence, cell.filesystem.name), _resident_shares(evidence, cell)
        resident = bool(shares) and max(shares) >= CACHED_ABOVE
        seen = f"{range_of(shares)} of what was read and written was in the page cache afterwards" if resident else ""
        if journal:
            yield Doubt.of_cell(cell, _JOURNALLED + (f" Here {seen}." if seen else ""))
        elif resident:
            yield Doubt.of_cell(
                cell,
                f"direct I/O was asked for, and yet {seen}: the file system took it through the cache (as ext4 does "
                "for inline or encrypted files). Figures are of the cache too; choose another mode, or compare "
                "buffered.",
            )


_JOURNALLED = (
    "direct I/O was asked for, and data=journal is in effect: with it ext4 takes direct I/O through the page cache. "
    "Figures are of the cache too; choose another journal mode, or compare buffered."
)


def journals_data(evidence: Evidence, filesystem: str) -> bool:
    """Return whether data=journal is in effect, by the kernel's report."""
    return evidence.in_effect.get(filesystem, {}).get("data") == "journal"


def _resident_shares(evidence: Evidence, cell: Cell) -> list[float]:
    """Return how much of the files of each trial that began with an empty page cache was there afterwards."""
    if cache_state(cell.workload, evidence.sweep.design) != "cold":
        return []
    shares = []
    for trial_id in evidence.counted[cell.id]:
        resident = evidence.around[trial_id].resident_bytes if trial_id in evidence.around else None
        size = distinct_bytes(evidence, cell, trial_id)
        if resident is not None and size >= TELLING_BYTES:
            shares.append(resident / size)
    return shares


def direct_in_memory(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Direct I/O on a file system that has no device to go to."""
    for cell in sweep.cells:
        if not sweep.imported and in_memory(cell.filesystem) and asks_direct(cell.workload):
            yield Doubt.of_cell(
                cell,
                f"direct I/O was asked for, and {cell.filesystem.type} lives in memory: it takes the request and has "
                "no device to go to. Held against a device, the two do not do the same.",
                severity="note",
            )


def direct_will_be_cached(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Direct I/O on a file system in memory, or on ext4 that is asked for data=journal."""
    yield from direct_in_memory(sweep, facts)
    for cell in sweep.cells:
        fs = cell.filesystem
        if fs.type in ("ext3", "ext4") and "data=journal" in fs.options and asks_direct(cell.workload):
            yield Doubt.of_cell(cell, _JOURNALLED.replace("is in effect", "too"))


def unseen_devices(evidence: Evidence) -> Iterator[Doubt]:
    """File systems where it is unknown whether the page cache answered.

    The kernel does not tell the device below the file system (fuse, and nfs that clients drive), or the device counts
    no bytes (`queue/iostats` is 0, as on pmem). Then `cache-served` and `not-flushed` could not be checked. With DAX
    there is no page cache, and nothing to check.
    """
    for name, why in evidence.unseen.items():
        yield Doubt.of_filesystem(
            name,
            f"{why}, so whether reads came from the page cache and writes reached a device could not be "
            "checked. Measure on a device whose bytes the kernel counts.",
        )


def tier_stays_warm(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Cold trials on a volume of LVM with a fast device as its cache.

    The caches in memory are dropped before each trial. What dm-cache or dm-writecache keeps on its fast device stays.
    """
    for cell in sweep.cells:
        kinds = {str(layer.options.get("kind")) for layer in cell.filesystem.stack}
        if kinds & {"cache", "writecache"} and cache_state(cell.workload, sweep.design) == "cold":
            yield Doubt.of_cell(
                cell,
                "it is cold in memory alone: what earlier trials have put on the fast device of LVM's cache is still "
                "there, and Mountlab does not drop it. Later trials may be faster; compare them in their order.",
                severity="note",
            )


def whole_machine_flushes(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """fs_mark with a method that calls sync(), which writes out every file system of the machine.

    fs_mark's `sync` is a method that calls `sync()`.
    """
    for cell in sweep.cells:
        method = cell.workload.options.get("sync")
        if cell.workload.tool == "fs_mark" and method in FLUSH_THE_MACHINE:
            yield Doubt.of_cell(
                cell,
                f"sync: {method} calls sync(), which flushes every file system of the machine: what others left to "
                "write is in its time. Use fsync, post or post_reverse, or a box on which nothing else writes.",
            )


def will_not_be_cold(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Without root the caches of the box cannot be dropped."""
    if facts.rights.level == "none" and sweep.design.drop_caches:
        yield Doubt.of_run(f"without root {_EVICTED}")


def not_cold(evidence: Evidence) -> Iterator[Doubt]:
    """The caches of the box, or of a client, could not be dropped.

    The run had no root, and the design drops caches. Or the kernel refused to drop them, on the box or on a client that
    drove a workload; each is named. Only the pages of the measured files were evicted.
    """
    yield from will_not_be_cold(evidence.sweep, evidence.facts)
    rootless = evidence.facts.rights.level == "none"
    for cell, trials in evidence.trials_with_counters():
        trial_ids = {"the box": [name for name, around in trials if around.cache == FADVISE and not rootless]}
        for client in cell.workload.clients:
            trial_ids[f"client {client}"] = [name for name, around in trials if around.clients.get(client) == FADVISE]
        for name, evicted in trial_ids.items():
            if evicted:
                where = of_trials(evicted, trials)
                yield Doubt.of_cell(cell, f"{where} the kernel of {name} did not let its caches be dropped: {_EVICTED}")


FADVISE = "fadvise"
"""How a page cache was emptied without drop_caches."""
_EVICTED = (
    "only the pages of the measured files could be evicted (posix_fadvise), not directories, inodes or the cache below "
    "a loop device."
)


# --- the device's own cache -------------------------------------------------------------------------------------------


def implausible(evidence: Evidence) -> Iterator[Doubt]:
    """Devices that moved bytes faster than they, or the link to them, can: another cache answered.

    The lowest device was faster than 1.05 times a limit: the slowest link to it (SATA, USB, PCI Express, by `/sys`), or
    600 MB/s where it reports that it rotates. Links count on bare metal only. On a virtual machine it is a note that
    the disk is no rotating one, whatever it reports.
    """
    for cell, trials in evidence.trials_with_counters():
        too_fast = by_key(
            ((side, what), (trial_id, speed, limit))
            for trial_id, _ in trials
            for side, speed, limit, what in _speeds(evidence, trial_id)
            if speed > IMPLAUSIBLE * limit
        )
        for (side, what), rows in too_fast.items():
            _, speed, limit = max(rows, key=lambda row: row[1])
            affected = list(dict.fromkeys(row[0] for row in rows))
            moved = f"{of_trials(affected, trials)} the device moved up to {quantity(speed, 'B/s')}"
            more = f"more than {quantity(limit, 'B/s')}, {what}"
            virtual = evidence.facts.machine.virtual
            why = _OF_HOST if virtual else _CACHED
            yield Doubt.of_cell(
                cell,
                f"{moved}, {more}. {why} Move far more data than such a cache holds.",
                severity="note" if virtual else None,
                metrics=f"{side}_",
            )


_OF_HOST = "On a virtual machine the host sets that claim, and may answer from its cache."
_CACHED = (
    "A cache answered (in the device, in its controller or in the host of a virtual machine), or the claim is wrong."
)


def _speeds(evidence: Evidence, trial_id: str) -> Iterator[tuple[Direction, float, float, str]]:
    """Yield how fast each of the lowest devices was in a trial, and its limits: side, B/s, limit in B/s, and what sets
    it."""
    seconds, traffic = evidence.elapsed.get(trial_id), evidence.traffic.get(trial_id, {})
    if not seconds:
        return
    sides = [side for side in SIDES if evidence.moved.get((trial_id, side))] or SIDES
    for device in (device for level in evidence.levels_of(trial_id)[-1:] for device in level if device in traffic):
        for limit, what in _limits(evidence.device_names.get(device, ""), evidence.facts):
            yield from ((side, bytes_of(traffic[device], side) / seconds, limit, what) for side in sides)


def _limits(name: str, facts: BoxFacts) -> Iterator[tuple[float, str]]:
    disk = facts.storage.disk_of(name)
    if disk and disk.rotational and disk.type == "disk":
        yield FASTEST_PLATTERS, "the ceiling of a rotating disk, which it claims to be"
    link = (facts.storage.links or {}).get(disk.name) if disk else None
    if link and facts.machine.bare:  # the links of a virtual machine are made up
        yield link.bytes_per_s, f"the limit of its link ({link.what})"


def _no_limit_known(evidence: Evidence) -> str | None:
    lowest = {device for levels in evidence.levels.values() for level in levels[-1:] for device in level}
    limited = any(True for device in lowest for _ in _limits(evidence.device_names.get(device, ""), evidence.facts))
    return None if limited else "no limit is known of a device below (RAID and most virtual disks tell none)"


def _residency_unknown(evidence: Evidence) -> str | None:
    """Blind only where direct I/O was asked for, of cold files on a device, and the cache was not looked at."""
    matters = any(asks_direct(cell.workload) and not in_memory(cell.filesystem) for cell in evidence.sweep.cells)
    why = (
        "it was not recorded how much of the files was in the page cache (this needs fincore, of util-linux or "
        "util-linux-extra)"
    )
    return from_counters("resident_bytes", why)(evidence) if matters else None


CHECKS = (
    Check(
        "not-flushed",
        unflushed_writes,
        "End with a flush: dd `conv: fdatasync`, fio `end_fsync: true`, fs_mark `sync: fsync`, a "
        "filebench workload that flushes.",
        blind=no_traffic,
        foresee=will_not_flush,
    ),
    Check(
        "fits-in-memory",
        fits_in_memory,
        "Read more than the memory holds, read past the cache (`direct: true`), or say `cache: warm`.",
        severities=("warning", "note"),
        foresee=will_fit_in_memory,
        blind=lambda e: None if e.facts.memory.total_bytes else "the box does not tell its memory",
    ),
    Check(
        "direct-not-honoured",
        direct_not_honoured,
        "Choose another journal mode, or compare buffered with buffered.",
        severities=("warning", "note"),
        foresee=direct_will_be_cached,
        blind=_residency_unknown,
    ),
    Check(
        "implausible",
        implausible,
        "Move far more than the cache of the device, its controller or its host can hold.",
        severities=("warning", "note"),
        blind=_no_limit_known,
    ),
    standing(
        "syncs-everything",
        whole_machine_flushes,
        "Take `sync: fsync`, `post` or `post_reverse`, or a box on which nothing else writes.",
    ),
    standing(
        "tier-not-cold",
        tier_stays_warm,
        "Compare the trials in their order, or make the data larger than the fast device.",
        severities=("note",),
    ),
    Check("cache-not-checked", unseen_devices, "Measure on a device whose bytes the kernel counts."),
    Check(
        "caches-not-dropped",
        not_cold,
        "Run with root or password-less sudo on the box, and on each client.",
        severities=("note",),
        foresee=will_not_be_cold,
    ),
)
