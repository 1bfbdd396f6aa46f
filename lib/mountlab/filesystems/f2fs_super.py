"""The super block and the checkpoint of f2fs, from the bytes on the device: its own tools read none that is mounted.
Offsets are those of include/linux/f2fs_fs.h."""

from __future__ import annotations

import re
from collections.abc import Mapping

FEATURES = (
    "encrypt", "blkzoned", "atomic_write", "extra_attr", "project_quota", "inode_checksum", "flexible_inline_xattr",
    "quota", "inode_crtime", "lost_found", "verity", "sb_checksum", "casefold", "compression", "ro",
)  # fmt: skip
"""By the number of their bit, under the names that mkfs.f2fs takes."""
_NUMBERS = {
    "log_sectorsize": 8, "segs_per_sec": 24, "secs_per_zone": 28, "segment_count": 48, "segment_count_main": 68,
    "cp_payload": 1664,
}  # fmt: skip
_EXTENSIONS, _COLD, _HOT, _FEATURE, _ENCODING = 1152, 1148, 2757, 2180, 2758
_LONGEST_EXTENSION = 8
_RESERVED, _OVERPROVISION, _FLAGS = 6, 7, 33
"""Places in the checkpoint, in numbers of 32 bits."""
_LARGE_BITMAP = 1 << 10
_STRICT = 1


def f2fs_super(parts: Mapping[str, str]) -> dict[str, str]:
    """Return what the super block and the checkpoint state, by name; {} where they were not read."""
    block = _bytes(parts.get("f2fs-super", ""))
    if len(block) < _ENCODING + 4:
        return {}
    stated = {name: str(_number(block, at)) for name, at in _NUMBERS.items()}
    bits = _number(block, _FEATURE)
    stated["features"] = " ".join(name for bit, name in enumerate(FEATURES) if bits >> bit & 1)
    cold, hot = _number(block, _COLD), block[_HOT]
    stated["cold extensions"] = " ".join(_extensions(block, 0, cold))
    stated["hot extensions"] = " ".join(_extensions(block, cold, hot))
    encoding, flags = _number(block, _ENCODING, 2), _number(block, _ENCODING + 2, 2)
    stated["encoding"] = "" if not encoding else "utf8:strict" if flags & _STRICT else "utf8"
    numbers = [int(word) for word in parts.get("f2fs-checkpoint", "").split() if word.isdecimal()]
    if len(numbers) > _FLAGS:
        stated["reserved segments"] = str(numbers[_RESERVED])
        stated["overprovision segments"] = str(numbers[_OVERPROVISION])
        stated["large bitmap"] = "1" if numbers[_FLAGS] & _LARGE_BITMAP else "0"
    return stated


def _extensions(block: bytes, first: int, count: int) -> list[str]:
    places = (_EXTENSIONS + _LONGEST_EXTENSION * number for number in range(first, first + count))
    words = (block[at : at + _LONGEST_EXTENSION].split(b"\0")[0] for at in places)
    return [word.decode("ascii", "replace") for word in words]


def _number(block: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(block[at : at + size], "little")


def _bytes(dump: str) -> bytes:
    """Return the bytes of `od -A d -t x1`, which writes '*' for lines equal to the one before."""
    out = bytearray()
    start, repeats = 0, False
    for line in dump.splitlines():
        if line == "*":
            repeats = True
            continue
        place, *words = line.split()
        if not re.fullmatch(r"\d+", place) or not all(re.fullmatch(r"[0-9a-f]{2}", word) for word in words):
            return b""
        start = start if out else int(place)
        missing = int(place) - start - len(out)
        if repeats and out and 0 < missing <= 1 << 16:
            out += (bytes(out[-16:]) * (missing // 16 + 1))[:missing]
        repeats = False
        out += bytes.fromhex("".join(words))
    return bytes(out)
