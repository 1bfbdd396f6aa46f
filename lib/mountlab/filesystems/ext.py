"""ext4, and ext3 and ext2 by the same driver."""

from __future__ import annotations

from mountlab.core.model import Filesystem, Place, Step
from mountlab.core.units import MIB
from mountlab.filesystems import backing
from mountlab.filesystems.backing import DEVICE, JOURNAL, MKE2FS
from mountlab.filesystems.device import DeviceFamily, merged


class Ext4(DeviceFamily):
    """The fourth extended file system, made without lazy initialisation unless the sweep asks for it: a background
    thread that still writes inode tables would tax the first minutes of every result."""

    type = "ext4"
    make = MKE2FS
    smallest_bytes = 16 * MIB
    # Not -d, -l, -z (they name files), -L, -U and -t (ours), -n and -S (they make no file system).
    mkfs_with_argument = frozenset(f"-{letter}" for letter in "bCeEgGiIJmMNoOrT")
    mkfs_alone = frozenset({"-D", "-j"})
    mkfs_reserved = frozenset({",device=", ",offset="})

    def journal_steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        if not backing.has_journal(fs):
            return ()
        argv = ("mke2fs", "-O", "journal_dev", "-F", "-q", "-b", _block_size(fs), "-U", place.journal_uuid, JOURNAL)
        why = "make the external journal"
        return (backing.format_step(fs, place, argv, why=why, keep="mkfs-journal.txt", journal=True),)

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """`nodiscard` on an image with all its blocks keeps them: a discard would punch them out again."""
        full = ["nodiscard"] if fs.image_bytes and fs.preallocate else []
        words = merged(fs.mkfs, "-E", "lazy_itable_init=0", "lazy_journal_init=0", *full)
        if backing.has_journal(fs):
            words = merged(("-b", _block_size(fs), *_without_block_size(words)), "-J", f"device={JOURNAL}")
        return ("mke2fs", "-t", self.type, "-F", "-q", "-U", place.uuid, *words, DEVICE)

    def sysfs_name(self, place: Place) -> str:
        return f"ext4:{DEVICE}"


class Ext3(Ext4):
    """ext2 with a journal, by the ext4 driver: kernels from 4.3 on have no other."""

    type = "ext3"


class Ext2(Ext4):
    """The second extended file system: no journal."""

    type = "ext2"
    keys = Ext4.keys - backing.JOURNAL_KEYS


def _block_size(fs: Filesystem) -> str:
    """Return the block size of a file system, for its external journal: mke2fs would otherwise guess another one."""
    given = [argument for word, argument in zip(fs.mkfs, fs.mkfs[1:], strict=False) if word == "-b"]
    return given[-1] if given else "4096"


def _without_block_size(words: tuple[str, ...]) -> tuple[str, ...]:
    given = {at for at, word in enumerate(words) if word == "-b"}
    return tuple(word for at, word in enumerate(words) if not {at, at - 1} & given)
