"""Shares of a device in a job file, such as `size=50%`, in bytes of the file that stands for the device."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.model import Scalar
from mountlab.core.units import format_bytes
from mountlab.fio.options import blocks, file_count

SHARED = ("size", "io_size", "offset", "offset_increment")
_PLACES = ("offset", "offset_increment")
SHARE = re.compile(r"(\d\d?|100)%")


@dataclass(frozen=True)
class ShareInBytes:
    """A share in bytes."""

    size: int
    why: str


def parts_of(options: Mapping[str, Scalar], whole: int) -> dict[str, ShareInBytes]:
    """Return the shares among the options of a job in bytes, and the size where that is what is left of the file.

    `whole`: bytes of all files of a clone. As in fio (filesetup.c) all are shares of the whole file: places are rounded
    up to the smallest block and sizes down, and nothing goes beyond the end. Clones have one size, that of the last.
    A size in bytes stays as it is: the file is then as large as it takes.
    """
    shares = {name: int(match[1]) for name in SHARED if (match := SHARE.fullmatch(str(options.get(name, ""))))}
    if not shares:
        return {}
    block, count = blocks(options)[0], file_count(options)
    given = 0 if "size" in shares else int(options.get("size", 0))
    file = max(whole // count, _find_least(options, shares, math.ceil(given / count)))
    words = f"of the {format_bytes(file)} that stand for the device"
    places = {name: -(-(file * shares[name] // 100) // block) * block for name in _PLACES if name in shares}
    parts = {name: ShareInBytes(size, f"{shares[name]} % {words}") for name, size in places.items()}
    if not given:
        start = _find_last({**options, **places})
        share = min(file * shares.get("size", 100) // 100, max(0, file - start))
        left = "up to its end: " if "size" not in shares or share == file - start < file else ""
        given = share // block * block * count
        parts["size"] = ShareInBytes(given, f"{left}{shares.get('size', 100)} % {words}")
    if "io_size" in shares:
        parts["io_size"] = ShareInBytes(given * shares["io_size"] // 100, f"{shares['io_size']} % of its size")
    return parts


def _find_last(options: Mapping[str, Scalar]) -> int:
    """Return where the last clone begins."""
    return int(options.get("offset", 0)) + int(options.get("offset_increment", 0)) * (int(options["numjobs"]) - 1)


def _find_least(options: Mapping[str, Scalar], shares: Mapping[str, int], size: int) -> int:
    """Return the bytes of a file in which the last clone has room for a size behind its share."""
    bytes_before = _find_last({**options, **dict.fromkeys((name for name in _PLACES if name in shares), 0)})
    share = _find_last({**options, **{name: shares.get(name, 0) for name in _PLACES}})
    return math.ceil((bytes_before + size) * 100 / (100 - share)) if share < 100 else 0
