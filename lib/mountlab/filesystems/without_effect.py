"""Mount options that the kernel shows although they do nothing, and options that a later option turns off.

One entry is one rule: file systems, options, the condition, the reason, and where the kernel says or does it. The rules
are checked on real mounts by tests/live/test_without_effect.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

Version = tuple[int, ...]
"""(6, 1) of a kernel; () where it is unknown."""

EXT = ("ext2", "ext3", "ext4")
IN_MEMORY = ("tmpfs", "ramfs", "hugetlbfs")
ANY = ("*",)


@dataclass(frozen=True)
class MountState:
    """What is known about a mount. Before the mount only the options are known, from the sweep."""

    options: Mapping[str, str]
    """Option to value: as the kernel shows them, or as they will be when the last word of the sweep has won."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The sections of evidence.txt."""

    def setting(self, ending: str) -> str | None:
        """Return the text of the file below /sys whose path ends so; None where it was not read."""
        return next(
            (text.strip() for path, text in self.parts.items() if path.startswith("/sys/") and path.endswith(ending)),
            None,
        )


@dataclass(frozen=True)
class _About:
    """Options of a file system, and why they do nothing."""

    types: tuple[str, ...]
    options: tuple[str, ...]
    """Names, or name=value."""
    reason: str
    source: str
    """The file and function of the kernel, or its documentation."""

    def about(self, kind: str, name: str, value: str = "") -> bool:
        """Return whether the rule is about this option of this file system."""
        return (kind in self.types or self.types == ANY) and bool({name, f"{name}={value}"} & {*self.options})

    @property
    def says(self) -> str:
        return f"{self.reason} ({self.source})"


@dataclass(frozen=True)
class Rule(_About):
    """Options of a file system that are shown and do nothing, under a condition."""

    _: KW_ONLY
    beside: tuple[str, ...] = ()
    """Only beside one of these options."""
    where: Callable[[MountState], bool] | None = None
    """Only where this holds. It reads the evidence, so it is known after the mount."""
    since: Version = ()
    """The first kernel for which this holds; () for every kernel, and for one whose version is unknown."""

    def holds(self, mount: MountState, kernel: Version) -> bool:
        """Return whether the condition is met on this kernel; False where the evidence for it is missing."""
        beside = not self.beside or any(name in mount.options for name in self.beside)
        return beside and kernel >= self.since and (self.where is None or self.where(mount))


# --- conditions -------------------------------------------------------------------------------------------------------


def _lacks(feature: str) -> Callable[[MountState], bool]:
    """Return the condition that an ext file system lacks a feature, by dumpe2fs."""

    def lacks(mount: MountState) -> bool:
        line = re.search(r"^Filesystem features:(.*)", mount.parts.get("dumpe2fs", ""), re.MULTILINE)
        return line is not None and feature not in line[1].split()

    return lacks


def _all_zeroed(mount: MountState) -> bool:
    groups = mount.parts.get("itable", "").split()
    return len(groups) == 2 and groups[0] == groups[1] != "0"


def _setting_has(ending: str, word: str) -> Callable[[MountState], bool]:
    """Return the condition that the file below /sys whose path ends so holds this word."""
    return lambda mount: word in (mount.setting(ending) or "").split()


def _geometry(mount: MountState, name: str) -> int | None:
    """Return a number of xfs_info, such as sunit of the data section; None where it is missing."""
    lines = [line for line in mount.parts.get("xfs_info", "").splitlines() if not line.startswith(("log", "realtime"))]
    number = re.search(rf"\b{name}=\s*(\d+)", "\n".join(lines))
    return int(number[1]) if number else None


def _no_stripe(mount: MountState) -> bool:
    return _geometry(mount, "sunit") == 0 and _geometry(mount, "swidth") == 0


def _no_large_io(mount: MountState) -> bool:
    return _no_stripe(mount) and "allocsize" not in mount.options


def _small_inode_numbers(mount: MountState) -> bool:
    """Return whether every inode number fits into 32 bits: group number, block in the group, inode in the block."""
    count, blocks, block, inode = (_geometry(mount, name) for name in ("agcount", "agsize", "bsize", "isize"))
    if not (count and blocks and block and inode):
        return False
    return count << (blocks - 1).bit_length() + (block // inode - 1).bit_length() < 1 << 32


def _by_user(mount: MountState) -> bool:
    return mount.options.get("compress_mode") == "user"


def _no_extension(mount: MountState) -> bool:
    return "compress_extension" not in mount.options


RULES = (
    Rule(("btrfs",), ("compress", "compress-force"), "btrfs compresses no file without checksums",
        "fs/btrfs/inode.c: inode_can_compress", beside=("nodatasum", "nodatacow"), since=(5, 3)),
    Rule(("btrfs",), ("dirsync",), "btrfs does not look at it when it changes a directory",
        "fs/btrfs has no IS_DIRSYNC"),
    Rule(("btrfs",), ("lazytime",), "btrfs writes time stamps as without it", "fs/btrfs/inode.c: btrfs_update_time"),
    Rule(("btrfs",), ("discard",), "the device takes no discards (queue/discard_max_bytes is 0)",
        "fs/btrfs/extent-tree.c", where=_setting_has("/queue/discard_max_bytes", "0")),
    Rule(("f2fs",), ("compress_algorithm", "compress_log_size", "compress_chksum", "compress_mode", "compress_cache"),
        "f2fs compresses files with an extension that compress_extension names, and none is named",
        "Documentation/filesystems/f2fs.rst, Compression implementation", where=_no_extension),
    Rule(("f2fs",), ("compress_extension", "compress_algorithm", "compress_log_size", "compress_chksum"),
        "with compress_mode=user f2fs compresses a file only where a program asks for it by ioctl",
        "Documentation/filesystems/f2fs.rst, Compression modes", where=_by_user),
    Rule(("f2fs",), ("flush_merge",), "nobarrier sends no flush that could be merged",
        "fs/f2fs/segment.c: f2fs_issue_flush", beside=("nobarrier",)),
    Rule(("overlay",), ("sync", "dirsync", "lazytime"),
        "overlayfs writes through the file system below, whose own options count: ask for it under `over`",
        "fs/overlayfs/file.c: ovl_write_iter"),
    Rule(IN_MEMORY, ("sync", "dirsync", "lazytime"), "a file system in memory has no device to write to",
        "mm/shmem.c: noop_fsync"),
    Rule(("tmpfs",), ("huge",), "transparent_hugepage/shmem_enabled is deny, which forbids huge pages on every mount",
        "Documentation/admin-guide/mm/transhuge.rst", where=_setting_has("/shmem_enabled", "[deny]")),
    Rule(EXT, ("quota", "usrquota", "grpquota"), "without the quota feature only the quota tools read it",
        "Documentation/admin-guide/ext4.rst", where=_lacks("quota")),
    Rule(EXT, ("max_batch_time", "min_batch_time", "noload", "norecovery"), "the file system has no journal",
        "fs/ext4/super.c: ext4_init_journal_params", where=_lacks("has_journal")),
    Rule(EXT, ("auto_da_alloc", "noauto_da_alloc"), "without delayed allocation no block waits to be allocated",
        "fs/ext4/inode.c: ext4_alloc_da_blocks", beside=("nodelalloc",)),
    Rule(EXT, ("dioread_nolock",), "ext4 uses it with delayed allocation only",
        "fs/ext4/ext4_jbd2.h: ext4_should_dioread_nolock", beside=("nodelalloc",), since=(5, 8)),
    Rule(EXT, ("init_itable", "noinit_itable"), "all inode tables are zeroed already",
        "fs/ext4/super.c: ext4_register_li_request", where=_all_zeroed),
    Rule(("ext4",), ("dax=inode",), "the device has no DAX (queue/dax is 0)", "Documentation/filesystems/dax.rst",
        where=_setting_has("/queue/dax", "0")),
    Rule(("xfs",), ("largeio",), "the file system has no stripe and no allocsize, from which the size would come",
        "Documentation/admin-guide/xfs.rst", where=_no_large_io),
    Rule(("xfs",), ("swalloc", "noalign"), "the file system was made without a stripe",
        "Documentation/admin-guide/xfs.rst", where=_no_stripe),
    Rule(("xfs",), ("inode32",), "on a file system of this size every inode number fits into 32 bits",
        "fs/xfs/xfs_super.c: xfs_set_inode_alloc", where=_small_inode_numbers),
    Rule(ANY, ("mand",), "this kernel has no mandatory locks", "fs/namespace.c: warn_mandlock", since=(5, 15)),
)  # fmt: skip


@dataclass(frozen=True)
class Undone(_About):
    """Options that a later option of the same mount turns off."""

    by: tuple[str, ...]


_PARSER = "fs/btrfs/super.c: btrfs_parse_param"
_MOUNT = "mount(8)"
UNDONE = (
    Undone(("btrfs",), ("nodatacow", "nodatasum"),
        "compression needs checksums and copy on write, so it turns both on again", _PARSER,
        by=("compress", "compress-force")),
    Undone(("btrfs",), ("compress", "compress-force"), "nodatacow turns compression off", _PARSER, by=("nodatacow",)),
    Undone(("btrfs",), ("nodatacow",), "checksums need copy on write, so datasum turns it on again", _PARSER,
        by=("datasum",)),
    Undone(ANY, ("suid", "dev"), "it brings nosuid and nodev", _MOUNT, by=("user", "users", "owner", "group")),
    Undone(ANY, ("exec",), "it brings noexec", _MOUNT, by=("user", "users")),
)  # fmt: skip

NOT_COMPRESSED = ("no", "none")
"""Values of compress= that ask for no compression."""


def without_effect(kind: str, name: str, value: str, mount: MountState, kernel: Version = ()) -> str | None:
    """Return why an option that the kernel shows does nothing here; None where no rule says so."""
    rules = (rule for rule in RULES if rule.about(kind, name, value) and rule.holds(mount, kernel))
    return next((rule.says for rule in rules), None)


def undone(kind: str, name: str, later: Sequence[str]) -> str | None:
    """Return why an option is off again after the words that follow it; None where no rule says so."""
    for rule in UNDONE:
        by = next((word for word in later if rule.about(kind, name) and _is_one_of(word, rule.by)), None)
        if by:
            return f"{by} comes later: {rule.says}"
    return None


def _is_one_of(word: str, names: tuple[str, ...]) -> bool:
    name, _, value = word.partition("=")
    asks = value not in NOT_COMPRESSED if name.startswith("compress") else not (name == "user" and value)
    return name in names and asks


def foreseen(kind: str, words: Sequence[str], kernel: str) -> dict[str, str]:
    """Return options of a sweep that will do nothing, each with the reason, as far as it is known before the mount."""
    last = [word for at, word in enumerate(words) if not undone(kind, word.partition("=")[0], words[at + 1 :])]
    mount = MountState({name: value for name, _, value in (word.partition("=") for word in last)})
    idle_options: dict[str, str] = {}
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        if value in NOT_COMPRESSED:
            continue
        why = undone(kind, name, words[at + 1 :])
        idle = None if why else without_effect(kind, name, value, mount, kernel_version(kernel))
        if why or idle:
            idle_options[word] = f"is turned off: {why}" if why else f"will be shown, but without effect: {idle}"
    return idle_options


def kernel_version(release: str) -> Version:
    """(6, 1) of '6.1.0-18-amd64'; () of a text without numbers."""
    return tuple(map(int, re.findall(r"\d+", release)[:2]))
