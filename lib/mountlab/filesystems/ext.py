"""ext4 on a loop image that we make, or on a scratch device that the box's owner gave us."""

from __future__ import annotations

from mountlab.errors import ParameterError
from mountlab.evidence import ext4_options, mount_options
from mountlab.filesystems.base import BLKID, LOSETUP, MOUNT, Evidence, directory_step, mount_step, script_step
from mountlab.model import Filesystem, Place, Program, Step, everywhere
from mountlab.units import MIB

E2FSPROGS = Program(
    name="mke2fs",
    packages=everywhere("e2fsprogs"),
    version=("mke2fs", "-V"),
)
WITH_ARGUMENT = frozenset(f"-{letter}" for letter in "bCeEgGiIJmMNoOrTU")
"""Options of mke2fs that a sweep may give, each with its argument. Not -d, -l, -z (they name files), -L and -t (ours),
-n and -S (they make no file system)."""
LABEL = "mountlab"
DEVICE = "{device}"
"""What losetup, or the guard of a scratch device, says that the device is. Not its stable name: that is a link."""
SMALLEST_IMAGE = 16 * MIB


class Ext4:
    """The fourth extended file system, made without lazy initialisation: a background thread that still writes
    inode tables would tax the first minutes of every result."""

    type = "ext4"
    needs_root = True
    in_memory = False
    keys = frozenset({"image", "direct_io", "device", "mkfs", "options"})
    programs: tuple[Program, ...] = (MOUNT, LOSETUP, BLKID, E2FSPROGS)

    def check(self, fs: Filesystem, *, where: str) -> None:
        if (fs.image_bytes is None) == (fs.device is None):
            raise ParameterError(
                "ext4 needs either an image or a device",
                where=where,
                got="both" if fs.device else "neither",
                allowed="image: SIZE (a loop image that Mountlab makes) or device: NAME (a scratch device of the box)",
            )
        if fs.image_bytes is not None and fs.image_bytes < SMALLEST_IMAGE:
            raise ParameterError(
                "the image is too small for ext4",
                where=f"{where}.image",
                got=f"{fs.image_bytes} B",
                allowed="16MiB or more",
            )
        _check_mkfs(fs, where)

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        backing = self._scratch(place) if fs.device else self._image(fs, place)
        make = Step(argv=("mke2fs", "-t", "ext4", "-F", "-q", "-L", LABEL, *_mkfs(fs), DEVICE), why=f"make {fs.name}")
        return (*backing, make, directory_step(place), mount_step(fs, DEVICE, place))

    def _image(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        make = Step(
            argv=("fallocate", "-l", str(fs.image_bytes), place.image),
            why="the image, all its blocks allocated beforehand",
            undo=("rm", "-f", place.image),
        )
        direct = f"--direct-io={'on' if fs.direct_io else 'off'}"
        attach = Step(
            argv=("losetup", "--find", "--show", direct, place.image),
            why="a loop device on the image",
            undo=("losetup", "-d", "{device}"),
            binds="device",
        )
        return (make, attach)

    def _scratch(self, place: Place) -> tuple[Step, ...]:
        assert place.device is not None
        why = "the device must be blank, or ours"
        return (script_step("guard.sh", place.device, why=why, keep="guard.txt", guard=True, binds="device"),)

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return place.mountpoint

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """Of an image: less a tenth and 64 MiB for inode tables and journal. Of a device: only the box can tell."""
        return None if fs.image_bytes is None else int(fs.image_bytes * 0.9) - min(64 * MIB, fs.image_bytes // 8)

    def in_effect(self, fs: Filesystem, evidence: Evidence) -> dict[str, str]:
        return {**ext4_options(evidence), **mount_options(evidence)}


def _check_mkfs(fs: Filesystem, where: str) -> None:
    """Options and arguments in pairs, and no path: else a word could name another device to mke2fs."""
    for position, word in enumerate(fs.mkfs):
        fits = word in WITH_ARGUMENT if position % 2 == 0 else "/" not in word and "device=" not in word
        if not fits or (position % 2 == 0 and position + 1 == len(fs.mkfs)):
            raise ParameterError(
                "not options for mke2fs",
                where=f"{where}.mkfs",
                got=repr(word),
                allowed=f"a list of options, each followed by its argument: {' '.join(sorted(WITH_ARGUMENT))}; no path",
                next_step="what is formatted is said by image or device alone",
            )


def _mkfs(fs: Filesystem) -> tuple[str, ...]:
    """The user's mkfs options, with ours merged into their -E (mke2fs heeds only the last -E).

    `nodiscard` on an image keeps its blocks allocated: a discard would punch them out again.
    """
    ours = ["lazy_itable_init=0", "lazy_journal_init=0", *(["nodiscard"] if fs.image_bytes else [])]
    rest, theirs = [], []
    words = iter(fs.mkfs)
    for word in words:
        if word == "-E":
            theirs += next(words, "").split(",")
        else:
            rest.append(word)
    names = {option.partition("=")[0].removeprefix("no") for option in theirs}
    kept = [option for option in ours if option.partition("=")[0].removeprefix("no") not in names]
    return (*rest, "-E", ",".join([*theirs, *kept]))
