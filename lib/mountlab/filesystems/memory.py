"""tmpfs and ramfs: file systems that live in the page cache."""

from __future__ import annotations

from mountlab.errors import ParameterError
from mountlab.evidence import mount_options
from mountlab.filesystems.base import MOUNT, Evidence, directory_step, mount_step
from mountlab.model import Filesystem, Place, Program, Step


class _Memory:
    needs_root = True
    in_memory = True
    keys = frozenset({"size", "options"})
    programs: tuple[Program, ...] = (MOUNT,)
    type: str

    def check(self, fs: Filesystem, *, where: str) -> None:
        if fs.size_bytes is None:
            raise ParameterError(
                f"{self.type} needs a size",
                where=f"{where}.size",
                got="nothing",
                allowed="text with a unit, such as 4GiB",
                next_step="without one it may take all the memory of the box",
            )
        for option in fs.options:
            if option.partition("=")[0] in ("size", "nr_blocks"):
                raise ParameterError(
                    "the size is a key of its own, so that the plan can hold it against the memory of the box",
                    where=f"{where}.options",
                    got=option,
                    allowed="size: 4GiB beside options",
                )

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return place.mountpoint

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        return fs.size_bytes

    def in_effect(self, fs: Filesystem, evidence: Evidence) -> dict[str, str]:
        return mount_options(evidence)


class Tmpfs(_Memory):
    """Memory and swap, with a size that the kernel enforces."""

    type = "tmpfs"

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        size = (f"size={fs.size_bytes}",)
        return (directory_step(place), mount_step(fs, "mountlab", place, extra=size))


class Ramfs(_Memory):
    """Memory without any limit: the kernel accepts `size=` and every other word, and ignores it. The size of the
    sweep file is therefore not passed to mount; it is the cap that the plan holds workloads to."""

    type = "ramfs"

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        return (directory_step(place), mount_step(fs, "mountlab", place))
