"""What file systems on a block device have in common: backing, mkfs, mount, tunables, in this order."""

from __future__ import annotations

import re

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step
from mountlab.core.state import State
from mountlab.core.units import MIB
from mountlab.filesystems import backing, kept, thin
from mountlab.filesystems.backing import DEVICE
from mountlab.filesystems.base import MOUNT, Family, borrow_step, directory_step, mount_step
from mountlab.filesystems.stack import top_bytes

_TUNABLE = re.compile(r"(queue/)?[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*\Z")


class DeviceFamily(Family):
    """A file system that mkfs makes on a device."""

    keys = frozenset({"mkfs", "options", "tunables"}) | backing.KEYS | backing.JOURNAL_KEYS
    smallest_bytes: int
    mkfs_with_argument: frozenset[str]
    """Options of its mkfs that a sweep may give, each with an argument. Not those that name files, label or UUID."""
    mkfs_alone: frozenset[str] = frozenset()
    """Options of its mkfs that a sweep may give, without an argument."""
    mkfs_reserved: frozenset[str] = frozenset()
    """Words inside of arguments that would reach beyond the device: `device=` and the like."""
    make: Program
    takes_several = False
    """Whether it lies on several devices by itself, without a layer that makes one of them."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return (MOUNT, self.make)

    def needed_programs(self, fs: Filesystem) -> tuple[Program, ...]:
        return (*self.programs, *backing.programs(fs))

    def check(self, fs: Filesystem, *, where: str) -> None:
        backing.check(fs, smallest=self.smallest_bytes, where=where, takes_several=self.takes_several)
        self._check_mkfs(fs, where)
        for name in fs.tunables:
            if not _TUNABLE.match(name):
                raise ParameterError(
                    "not a tunable",
                    where=f"{where}.tunables",
                    got=name,
                    allowed=f"a name below /sys/fs/{self.type}/DEVICE, such as inode_readahead_blks, or queue/NAME",
                )

    def _check_mkfs(self, fs: Filesystem, where: str) -> None:
        """Options that are known, with their arguments, and no path: else a word could name another device."""
        words = iter(fs.mkfs)
        for word in words:
            argument = next(words, None) if word in self.mkfs_with_argument else ""
            named = argument is not None and [word for word in self.mkfs_reserved if word in f",{argument}"]
            if word not in self.mkfs_with_argument | self.mkfs_alone or argument is None or named or "/" in argument:
                allowed = " ".join(sorted(self.mkfs_with_argument))
                alone = f" (and {' '.join(sorted(self.mkfs_alone))} without one)" if self.mkfs_alone else ""
                raise ParameterError(
                    f"not options for {self.make.name}",
                    where=f"{where}.mkfs",
                    got=f"{word} {argument or ''}".strip(),
                    allowed=f"a list of options, each followed by its argument: {allowed}{alone}; no path",
                    next_step="name what is formatted by image, device or journal_device alone",
                )

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        return (
            *backing.steps(fs, place),
            *self.journal_steps(fs, place),
            *(kept.restore_steps(fs, place) or (self._mkfs_step(fs, place),)),
            directory_step(place.mountpoint),
            mount_step(fs, self.type, DEVICE, place, own=self.own_options(fs)),
            *(self._tunable(name, value, place) for name, value in fs.tunables.items()),
        )

    def _mkfs_step(self, fs: Filesystem, place: Place) -> Step:
        return backing.format_step(fs, place, self.mkfs_argv(fs, place), why=f"make {fs.name}", keep="mkfs.txt")

    def journal_steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        """Return what an external journal needs before the file system is made."""
        return ()

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """Return the command that makes the file system on {device}, marked as ours by place.uuid."""
        raise NotImplementedError

    def evidence_devices(self, fs: Filesystem) -> tuple[str, ...]:
        return (DEVICE, *((backing.JOURNAL,) if backing.has_journal(fs) else ()))

    takes_snapshots = False
    """Whether snapshots of it can be taken, and kept."""

    def refuses_state(self, fs: Filesystem, state: State) -> str | None:
        if fs.image_bytes is None and fs.device is None:
            return "a state is kept as an image of its device: image: SIZE, or device: NAME"
        if state.worn and not kept.can_be_kept(fs):
            return f"{state.name} writes one device (write: {state.write:g}), and it lies on several, or on layers"
        if backing.has_journal(fs):
            return "its journal lies outside: a state is an image of one device"
        if state.snapshots and not self.takes_snapshots:
            return thin.refuses_snapshots(fs, state, self.smallest_bytes)
        if state.worn and fs.device is None:
            return f"{state.name} writes a whole device (write: {state.write:g}): device: NAME"
        return None

    def unavailable(self, fs: Filesystem, facts: BoxFacts) -> str | None:
        if fs.pmbd is None or "pmbd" in (facts.kernel.features or ("pmbd",)):
            return None
        return (
            "pmbd needs a kernel with the pmbd module (3.2) booted with memmap=SIZE$ADDRESS numa=off "
            f"(such as memmap=16G$8G); this box runs {facts.kernel.release}"
        )

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        """DAX needs a device that the processor addresses like memory: elsewhere it is refused, or turned off."""
        named = [option for option in fs.options if option.partition("=")[0] == "dax"]
        requested = [option for option in named if option not in ("dax=never", "dax=inode")]
        has_dax = fs.device is not None and facts.surveyed.device_dax.get(fs.device, True)
        lies_on = "a loop image" if fs.image_bytes else "a zram device" if fs.zram_bytes else f"{fs.device}"
        why = f"{lies_on} has no DAX (queue/dax is 0): ext4 refuses to mount, xfs turns it off"
        return super().foreseen(fs, facts) | ({} if has_dax or fs.pmbd else dict.fromkeys(requested, why))

    def sysfs_name(self, place: Place) -> str:
        """Return the directory of this file system below /sys/fs, as borrow.sh takes it."""
        return f"{self.type}:{DEVICE}"

    def _tunable(self, name: str, value: str, place: Place) -> Step:
        queue = name.startswith("queue/")
        file = f"queue:{DEVICE}:{name.removeprefix('queue/')}" if queue else f"fs:{self.sysfs_name(place)}:{name}"
        why = f"set {name} for the time of the mount"
        return borrow_step(place, "setting", file, value, back=("setting", file), why=why)

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """Of an image: less a tenth and 64 MiB for what the file system keeps. Of a device: only the box can tell."""
        each = fs.image_bytes or fs.zram_bytes
        if each is None:
            return None
        size = top_bytes(fs, each)
        return int(size * 0.9) - min(64 * MIB, size // 8)


def merged(words: tuple[str, ...], option: str, *ours: str) -> tuple[str, ...]:
    """Return the user's mkfs options with our comma-separated arguments added to those of `option`, where the user has
    not said otherwise: mkfs uses only the last one of most options."""
    rest, theirs = [], []
    pending = iter(words)
    for word in pending:
        if word == option:
            theirs += next(pending).split(",")
        else:
            rest.append(word)
    named = {setting.partition("=")[0].removeprefix("no") for setting in theirs}
    kept = [setting for setting in ours if setting.partition("=")[0].removeprefix("no") not in named]
    return (*rest, *((option, ",".join([*theirs, *kept])) if theirs or kept else ()))
