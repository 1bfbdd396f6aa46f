"""What the tool of each trial moved, beside what the devices below its file system moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.checks.asked import holds_bytes
from mountlab.checks.base import SIDES, Direction, Evidence
from mountlab.checks.flushed import flushed_devices
from mountlab.checks.layers import level_name, level_sums
from mountlab.core.model import Cell
from mountlab.core.units import MIB
from mountlab.filesystems.evidence import Device, DeviceBytes, DeviceLevels, every_device

CACHED_BELOW = 0.9
"""A device that delivered less than this share of what the application read did not answer alone."""
CACHED_ABOVE = 0.25
"""Direct I/O went through the page cache where this share of it is there afterwards: otherwise nothing is."""
TELLING_BYTES = 8 * MIB
"""Less than this may be there for other reasons (the ends of files that are no whole blocks)."""


@dataclass(frozen=True)
class Moved:
    """What the tool of one trial moved in one direction, and what the device below delivered or took of it."""

    trial_id: str
    cell: Cell
    side: Direction
    """read or write."""
    tool_bytes: float
    """What the tool says that it moved."""
    device_bytes: int
    """Of the least busy level of those on top of each other: the sum over its devices."""

    @property
    def share(self) -> float:
        """What the device moved per byte of the tool."""
        return self.device_bytes / self.tool_bytes


@dataclass(frozen=True)
class Below:
    """What the devices below the file system of a trial did while the tool ran, for all programs."""

    read: int
    """Bytes of the least busy level of those on top of each other, as `Moved` has them."""
    written: int
    lost: int
    """Bytes that the top level was asked to read and one below it did not deliver: memory in between answered, or
    holes of an image."""
    flushes: int | None
    """Of the devices that count them, in sum; None where none does."""
    flushes_unseen: str = ""
    """Why none does."""
    chain: tuple[Device, ...] = ()
    """The devices, top first."""
    flushes_of: str = ""
    """Whose flushes these are, where several devices count them: '4 loop devices'."""

    def delivered(self, fetched: int | None) -> int:
        """Return bytes that storage delivered to a program. `fetched`: what its processes got from block devices and
        servers, wherever its files were; None where that is not known: then it may be that of other programs."""
        return self.read if fetched is None else max(0, fetched - self.lost)


def moved(evidence: Evidence) -> list[Moved]:
    """Return what each counted trial on a device whose counters were kept moved, cells in the order of the sweep."""
    return [trial for cell in evidence.sweep.cells for side in SIDES for trial in moved_by(evidence, cell, side)]


def moved_by(evidence: Evidence, cell: Cell, side: Direction) -> Iterator[Moved]:
    """Yield what the trials of a cell moved in one direction, of those on a device whose counters were kept."""
    for trial_id in evidence.counted.get(cell.id, ()):
        sums = level_sums(evidence.traffic.get(trial_id, {}), evidence.levels_of(trial_id))
        tool_bytes = evidence.moved.get((trial_id, side))
        if tool_bytes and sums:
            device = least_bytes(sums, side)
            if side == "read":  # each read reaches the device in the process that asks; a write may do so later
                device -= sum(load.disk_reads for load in evidence.neighbours_on(trial_id, same=True))
            yield Moved(trial_id, cell, side, tool_bytes, max(0, device))


def moved_below(
    evidence: Evidence, traffic: Mapping[str, Mapping[Device, DeviceBytes]], mounts: Mapping[str, str]
) -> dict[str, Below]:
    """Return trial id to what the devices below its file system did. `traffic` and `mounts`: trial id to what each
    block device moved, and to its mount; of diagnostic trials, too."""
    trials = ((trial_id, devices, mounts.get(trial_id, "")) for trial_id, devices in traffic.items())
    below = {trial_id: _below(evidence, devices, evidence.levels.get(mount, ())) for trial_id, devices, mount in trials}
    return {trial_id: moved for trial_id, moved in below.items() if moved}


def below_trial(evidence: Evidence, trial_id: str) -> Below | None:
    """Return what the devices below the file system of a trial did; None where none was counted."""
    return _below(evidence, evidence.traffic.get(trial_id, {}), evidence.levels_of(trial_id))


def _below(evidence: Evidence, devices: Mapping[Device, DeviceBytes], levels: DeviceLevels) -> Below | None:
    sums = level_sums(devices, levels)
    if not sums:
        return None
    flushed, why = flushed_devices(levels, devices, evidence.device_names, evidence.facts)
    read, written = (least_bytes(sums, side) for side in SIDES)
    return Below(
        read,
        written,
        lost=sums[0].read - read,
        flushes=None if why else sum(devices[device].flushes for device in flushed),
        flushes_unseen=why,
        chain=every_device(levels),
        flushes_of=level_name(flushed, evidence.device_names) if len(flushed) > 1 else "",
    )


def bytes_of(moved: DeviceBytes, side: Direction) -> int:
    """Return what a device read, or wrote."""
    return moved.read if side == "read" else moved.written


def least_bytes(sums: Sequence[DeviceBytes], side: Direction) -> int:
    """Return what the least busy of these levels moved."""
    return min(bytes_of(moved, side) for moved in sums)


def range_of(shares: Sequence[float]) -> str:
    """'5%', '5% to 80%'."""
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return low if low == high else f"{low} to {high}"


def distinct_bytes(evidence: Evidence, cell: Cell, trial_id: str) -> float:
    """Return bytes of the files that a trial touched, at most."""
    moved = sum(evidence.moved.get((trial_id, side), 0.0) for side in SIDES)
    return min(moved, float(holds_bytes(cell.workload)))


def no_traffic(evidence: Evidence) -> str | None:
    """Blind where no trial has counters of devices."""
    return None if evidence.traffic else "no counters of the devices were kept"
