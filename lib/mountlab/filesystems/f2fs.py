"""f2fs, on one device or on several images."""

from __future__ import annotations

import re

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, everywhere
from mountlab.core.units import MIB, format_bytes
from mountlab.filesystems import backing
from mountlab.filesystems.backing import DEVICE
from mountlab.filesystems.device import DeviceFamily
from mountlab.filesystems.evidence import split_options
from mountlab.filesystems.stack import top_bytes

COMPRESSION = ("compress_", "nocompress_")
"""How its mount options of compression begin."""
SEGMENT_BYTES = 2 * MIB
MOST_DEVICES = 8
"""In its super block (MAX_DEVICES)."""
_LOGS = 6
_METADATA_SEGMENTS = 7
"""Checkpoints, and the smallest tables: nodes, segments and their owners."""
_TABLES = 1 / 400
"""What the tables take of a large device."""
_OF_FILES = 0.95
"""Share of the room that users see which data may fill. Nodes take some."""
_FEW = 256
"""Segments below which mkfs.f2fs tries coarse shares."""
_COUNT, _SWITCH = (r"[1-9]\d{0,5}", "a whole number from 1"), ("[01]", "0 or 1")
_VALUES = {
    "-a": _SWITCH, "-t": _SWITCH, "-s": _COUNT, "-z": _COUNT, "-o": (r"\d{1,2}(\.\d+)?", "a share in percent, 0 to 99"),
    "-w": ("512|1024|2048|4096", "512, 1024, 2048 or 4096"), "-R": (r"\d+:\d+", "UID:GID"),
    "-C": ("utf8(:strict)?", "utf8 or utf8:strict"),
}  # fmt: skip
"""Options of mkfs.f2fs, the pattern of their values, and that in words: it takes other ones too, as 0 or in part."""


class F2fs(DeviceFamily):
    """The flash-friendly file system: a log, written in segments of 2 MiB.

    While it is mounted threads of the kernel clean segments (`background_gc`, on by default), write checkpoints and
    send flushes and discards: what they do falls into trials, and the counters of the device show it. A part of the
    device is set aside for the cleaning: of 100 MiB only 40 MiB hold files, of 8 GiB 95 %.
    """

    type = "f2fs"
    expected = False
    kernel_hint = "try it in a virtual box with `kernel: 6.1` in its box file"
    make = Program(name="mkfs.f2fs", packages=everywhere("f2fs-tools"), version=("mkfs.f2fs", "-V"))
    keys = DeviceFamily.keys - backing.JOURNAL_KEYS
    smallest_bytes = 64 * MIB
    takes_several = True
    # Not -c (devices), -l and -U (ours), -m (zoned devices), -g and -T (they set several at once, or times).
    mkfs_with_argument = frozenset(f"-{letter}" for letter in "aCeEoOsRtwz")
    mkfs_alone = frozenset({"-i", "-r"})

    def check(self, fs: Filesystem, *, where: str) -> None:
        super().check(fs, where=where)
        if fs.more_devices and not fs.stack:
            raise ParameterError(
                "f2fs lies on one scratch device",
                where=f"{where}.device",
                got=f"{len(fs.devices)} devices",
                allowed="one scratch device, or several images (image: SIZE, members: NUMBER)",
                next_step="f2fs leaves no mark on further devices, by which they were known as Mountlab's afterwards; "
                "make one device of them: stack: [{layer: lvm, kind: striped}]",
            )
        if fs.members > MOST_DEVICES and not fs.stack:
            raise ParameterError(
                "f2fs lies on eight devices at most",
                where=f"{where}.members",
                got=str(fs.members),
                allowed=f"1 to {MOST_DEVICES}",
            )
        for word, argument in zip(fs.mkfs, fs.mkfs[1:], strict=False):
            pattern, allowed = _VALUES.get(word, (".*", ""))
            if not re.fullmatch(pattern, argument):
                raise ParameterError(
                    f"not a value for {word} of mkfs.f2fs", where=f"{where}.mkfs", got=argument, allowed=allowed
                )
        capacity = self.capacity_bytes(fs)
        if capacity is not None and capacity <= 0:
            size = (fs.image_bytes or 0) * (1 if fs.stack else fs.members) or fs.zram_bytes or 0
            raise ParameterError(
                "f2fs would set all of it aside for cleaning",
                where=f"{where}.mkfs",
                got=f"{' '.join(fs.mkfs)} on {format_bytes(float(size))}",
                allowed="a larger device, smaller sections (-s), or no -o",
            )

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        """The kernel takes options of compression and ignores them where mkfs made no file system for them."""
        features = [word for letter, word in zip(fs.mkfs, fs.mkfs[1:], strict=False) if letter == "-O"]
        words = [word for option in fs.options for word in split_options(option) if word.startswith(COMPRESSION)]
        made = "compression" in ",".join(features).split(",")
        why = "will be ignored: mkfs makes no compression; give it mkfs: [-O, 'extra_attr,compression']"
        return super().foreseen(fs, facts) | ({} if made else dict.fromkeys(words, why))

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """`-t 0` on an image with all its blocks keeps them: a discard would punch them out again."""
        full = ("-t", "0") if fs.image_bytes and fs.preallocate and "-t" not in fs.mkfs else ()
        further = [word for member in backing.members(fs)[1:] for word in ("-c", member)] if not fs.stack else []
        return ("mkfs.f2fs", "-f", "-q", "-U", place.uuid, *full, *fs.mkfs, *further, DEVICE)

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """Of an image: less what mkfs sets aside for the cleaning."""
        each = fs.image_bytes or fs.zram_bytes
        if each is None:
            return None
        size = top_bytes(fs, each)
        given = dict(zip(fs.mkfs, fs.mkfs[1:], strict=False))
        share = float(given.get("-o", 0)) or None
        return int(_segments_of_users(size, share, int(given.get("-s", 1))) * SEGMENT_BYTES * _OF_FILES)


def _segments_of_users(size: int, share: float | None, a_section: int) -> int:
    """Return how many segments hold files, within a few: mkfs.f2fs sets aside `share` percent, and sections that the
    cleaning fills. Without a share it takes that which leaves the most (get_best_overprovision)."""
    segments = size // SEGMENT_BYTES - 1
    main = segments - _METADATA_SEGMENTS - int(segments * _TABLES)

    def kept(percent: float) -> int:
        return int((2 * (100 / percent + 1) + _LOGS) * a_section)

    def beyond(percent: float) -> int:
        return int((main - kept(percent)) * percent / 100)

    coarse = [float(percent) for percent in range(10, 96, 5)]
    shares = coarse if main < _FEW else [part / 100 for part in range(1, 1001)]
    best = share or min(shares, key=lambda percent: max(kept(percent), beyond(percent)))
    return main - kept(best) - beyond(best)
