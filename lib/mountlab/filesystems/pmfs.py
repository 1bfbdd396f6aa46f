"""pmfs: a file system for persistent memory, of a kernel of its own (3.11)."""

from __future__ import annotations

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Step
from mountlab.filesystems.base import Family, directory_step, mount_step, script_step

PREFIX = "memory:"
"""A scratch device of the box file that is a range of physical memory: `memory:0x100000000`."""


class Pmfs(Family):
    """Memory that the kernel leaves alone (booted with memmap=2G$4G), made into a file system by the mount itself."""

    type = "pmfs"
    controlled = False
    keys = frozenset({"device", "size", "options"})
    kernel_types = ()  # no box is expected to have it: see `unavailable`

    def mounted_as(self, fs: Filesystem) -> str:
        return self.type

    def check(self, fs: Filesystem, *, where: str) -> None:
        if fs.device is None or fs.size_bytes is None:
            raise ParameterError(
                "pmfs needs a device and a size",
                where=where,
                got=" and ".join(k for k, v in (("device", fs.device), ("size", fs.size_bytes)) if v) or "neither",
                allowed="device: NAME, a scratch device of the box file such as memory:0x100000000, and size: 2GiB",
            )

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return (f"init={fs.size_bytes}",)

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        """Return the steps. The driver reads its options in order: physaddr must come first, and init= formats."""
        address = (place.device or f"{PREFIX}ADDRESS").removeprefix(PREFIX)
        options = (f"physaddr={address}", *self.own_options(fs))
        return (
            script_step("guard_memory.sh", address, str(fs.size_bytes), guard=True, why="memory that is not used"),
            directory_step(place.mountpoint),
            mount_step(fs, "pmfs", "none", place, own=options),
        )

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        return fs.size_bytes

    def unavailable(self, fs: Filesystem, facts: BoxFacts) -> str | None:
        if not facts.kernel.lacks(("pmfs",)):
            return None
        return (
            f"pmfs needs a kernel with the pmfs driver (linux-pmfs, 3.11) booted with memmap=SIZE$ADDRESS "
            f"(such as memmap=2G$4G); this box runs {facts.kernel.release}"
        )
