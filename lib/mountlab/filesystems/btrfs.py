"""btrfs, on one device or several."""

from __future__ import annotations

from mountlab.core.model import Filesystem, Place, Program, everywhere
from mountlab.core.units import MIB
from mountlab.filesystems import backing
from mountlab.filesystems.device import DeviceFamily


class Btrfs(DeviceFamily):
    """The B-tree file system: copy on write, checksums, compression; profiles say how often data is kept."""

    type = "btrfs"
    make = Program(
        name="mkfs.btrfs", packages=everywhere("btrfs-progs", zypper="btrfsprogs"), version=("mkfs.btrfs", "--version")
    )
    keys = DeviceFamily.keys - backing.JOURNAL_KEYS
    smallest_bytes = 128 * MIB
    takes_snapshots = True
    takes_several = True
    # Not -r and -u (they name directories), -L and -U (ours).
    mkfs_with_argument = frozenset({"-d", "-m", "-n", "-s", "-O", "-R", "--csum", "--data", "--metadata", "--nodesize"})
    mkfs_alone = frozenset({"-K", "--nodiscard", "-M", "--mixed"})

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """`-K` on an image with all its blocks keeps them: a discard would punch them out again."""
        full = ("-K",) if fs.image_bytes and fs.preallocate and not {"-K", "--nodiscard"} & {*fs.mkfs} else ()
        return ("mkfs.btrfs", "-f", "-q", "-U", place.uuid, *full, *fs.mkfs, *backing.members(fs))

    def sysfs_name(self, place: Place) -> str:
        return f"btrfs:{place.uuid}"
