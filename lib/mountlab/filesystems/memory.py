"""File systems that live in memory: tmpfs, ramfs, shmfs (as tmpfs was once called) and hugetlbfs."""

from __future__ import annotations

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Step, Target, Workload
from mountlab.core.units import kernel_bytes
from mountlab.filesystems.base import NOT_MOUNTED, OF_ANY_MOUNT, Family, borrow_step, directory_step, mount_step
from mountlab.filesystems.directory import made_directory

SHM = "/dev/shm"  # noqa: S108  # of the box


class _Memory(Family):
    in_memory = True
    keys = frozenset({"size", "options"})
    source = "mountlab"

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

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        return fs.size_bytes

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return (f"size={fs.size_bytes}",)

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        mount = mount_step(fs, self.kernel_types[0], self.source, place, own=self.own_options(fs))
        return (directory_step(place.mountpoint), mount)


class Tmpfs(_Memory):
    """Memory and swap, with a size that the kernel enforces."""

    type = "tmpfs"


class Shmfs(Tmpfs):
    """The name that tmpfs had in kernel 2.4. No kernel of today knows it: `mount -t shm` is "unknown filesystem type",
    and `shmfs` is only the word in the source column of old fstab lines.

    With a size it is a tmpfs of that size with that source, on our own mount point: mounted over /dev/shm, as old
    articles do it, it would hide what the box's programs keep there. Without a size it is a directory of ours in the
    box's own /dev/shm.
    """

    type = "shmfs"
    source = "shmfs"
    kernel_types = ("tmpfs",)

    def check(self, fs: Filesystem, *, where: str) -> None:
        if fs.size_bytes is not None:
            super().check(fs, where=where)
        elif fs.options:
            raise ParameterError(
                "options need a mount of its own",
                where=f"{where}.options",
                got=", ".join(fs.options),
                allowed="size: SIZE beside them; without a size the box's own /dev/shm is measured as it is",
            )

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return super().own_options(fs) if fs.size_bytes is not None else ()

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        if fs.size_bytes is not None:
            return super().steps(fs, place)
        return (made_directory(self.root_of(fs, place), place, SHM),)

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return place.mountpoint if fs.size_bytes is not None else f"{SHM}/mountlab-{place.run_id}-{fs.name}"

    def mounted_as(self, fs: Filesystem) -> str:
        return "tmpfs" if fs.size_bytes is not None else NOT_MOUNTED


class Ramfs(_Memory):
    """Memory without any limit: the kernel accepts `size=` and every other word, and ignores it. The size of the
    sweep file is therefore not passed to mount; it is the cap that the plan holds workloads to."""

    type = "ramfs"

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return ()

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        names = {option: option.partition("=")[0] for option in fs.options}
        return super().foreseen(fs, facts) | {
            option: "ramfs accepts every word, and ignores all but mode= and the options of the mount itself"
            for option, name in names.items()
            if name not in (*OF_ANY_MOUNT, "mode")
        }

    def refuses(self, fs: Filesystem, workload: Workload) -> str | None:
        if workload.tool != "fs_mark":
            return None
        return "fs_mark makes no file where it sees no free space, and ramfs tells of none (tmpfs does)"


class Hugetlbfs(_Memory):
    """Huge pages, reserved before the mount and given back after it. Files cannot be written to, only mapped."""

    type = "hugetlbfs"

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        sizes = [option.partition("=")[2] for option in fs.options if option.startswith("pagesize=")]
        page = str((kernel_bytes(sizes[-1]) if sizes else None) or "")  # '': the usual size
        why = "huge pages are reserved"
        reserve = borrow_step(place, "hugepages", str(fs.size_bytes), page, back=("setting", f"huge:{page}"), why=why)
        return (reserve, *super().steps(fs, place))

    def target_of(self, fs: Filesystem, place: Place) -> Target:
        return Target(kind="mapped")

    def refuses(self, fs: Filesystem, workload: Workload) -> str | None:
        if workload.options.get("ioengine") == "mmap":
            return None
        return "hugetlbfs has no write(): its files can only be mapped (fio with ioengine: mmap)"
