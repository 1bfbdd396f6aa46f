"""raw: the block device itself, without a file system: what a file system costs is what remains."""

from __future__ import annotations

from mountlab.core.model import MARK_BYTES, Filesystem, Place, Step, StepRole, Target, Workload
from mountlab.core.units import MIB
from mountlab.filesystems import backing
from mountlab.filesystems.backing import DEVICE
from mountlab.filesystems.base import BLOCK_DEVICE, directory_step
from mountlab.filesystems.device import DeviceFamily
from mountlab.filesystems.ext import Ext4
from mountlab.filesystems.guard import mark_argv
from mountlab.filesystems.stack import top_bytes
from mountlab.fio import metadata as fio_metadata


class Raw(DeviceFamily):
    """A device that is written without a file system.

    Its first MiB holds a small super block of ours, by which the guard knows the device again. Workloads begin above
    it, and what is to be read is written before. All jobs of fio share the same part.
    """

    type = "raw"
    make = Ext4.make
    programs = (make,)
    kernel_types = ()
    controlled = False
    keys = backing.KEYS | {"tunables"}
    smallest_bytes = 16 * MIB
    mkfs_with_argument = frozenset()

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        mark = mark_argv(DEVICE, place.uuid)
        link = self.target_of(fs, place).device
        return (
            *backing.steps(fs, place),
            backing.format_step(fs, place, mark, why="mark the device as ours", keep="mark.txt", role=StepRole.OTHER),
            directory_step(place.mountpoint, "a directory for the trials of this device"),
            Step(argv=("ln", "-s", DEVICE, link), why="the device, by a name of ours", undo=("rm", "-f", link)),
            *(self._tunable(name, value, place) for name, value in fs.tunables.items()),
        )

    def target_of(self, fs: Filesystem, place: Place) -> Target:
        return Target(kind="device", device=f"{place.mountpoint}.device")

    def mounted_as(self, fs: Filesystem) -> str:
        return BLOCK_DEVICE

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        each = fs.image_bytes or fs.zram_bytes
        return None if each is None else top_bytes(fs, each) - MARK_BYTES

    def refuses(self, fs: Filesystem, workload: Workload) -> str | None:
        if workload.tool not in ("fio", "dd"):
            return f"{workload.tool} makes files, and a raw device has none (fio and dd run on it)"
        if workload.options.get("ioengine") in fio_metadata.SINCE:
            return f"fio's engine {workload.options['ioengine']} works on files, and a raw device has none"
        return None
