"""What caches beside the page cache of the box answered: the client's part of NFS, the ARC of ZFS; and the
file systems whose deliveries the kernel does not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from mountlab.core.mountinfo import unescape

MOUNTSTATS, ARCSTATS = CACHE_COUNTERS = ("/proc/self/mountstats", "/proc/spl/kstat/zfs/arcstats")
_MOUNT = re.compile(r"device (\S+) mounted on (\S+) with fstype nfs4? ")
_BYTES = re.compile(r"^\s*bytes:\s+((?:\d+ ?){8})\s*$", re.MULTILINE)
_ARC = re.compile(r"^(hits|misses) +4 +(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class NfsBytes:
    """Bytes of one NFS mount (kernel: net/sunrpc/stats and nfs/iostat.h, the line `bytes:`)."""

    read: int
    """By read calls that may be answered by the client's page cache."""
    written: int
    direct_read: int
    from_server: int
    """Read from the server."""
    to_server: int
    """Written to the server."""

    def __sub__(self, earlier: NfsBytes) -> NfsBytes:
        return NfsBytes(*(late - early for late, early in zip(astuple(self), astuple(earlier), strict=True)))


@dataclass(frozen=True)
class ArcReads:
    """Look-ups in the ARC of ZFS, of all programs of the box."""

    hits: int
    misses: int


def nfs_bytes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, NfsBytes]:
    """Return mount point to what moved between two snapshots; without mounts that were made meanwhile."""
    earlier, later = (_by_mount(snapshot.get(MOUNTSTATS, "")) for snapshot in (before, after))
    return {point: moved - earlier[point] for point, moved in later.items() if point in earlier}


def _by_mount(text: str) -> dict[str, NfsBytes]:
    moved = {}
    for device in re.split(r"^(?=device )", text, flags=re.MULTILINE):
        mount, counts = _MOUNT.match(device), _BYTES.search(device)
        if mount and counts:
            read, written, direct_read, _, from_server, to_server, *_ = map(int, counts[1].split())
            moved[unescape(mount[2])] = NfsBytes(read, written, direct_read, from_server, to_server)
    return moved


def arc_reads(before: Mapping[str, str], after: Mapping[str, str]) -> ArcReads | None:
    """Return how the ARC answered between two snapshots; None on a box without ZFS."""
    earlier, later = (dict(_ARC.findall(snapshot.get(ARCSTATS, ""))) for snapshot in (before, after))
    if not {"hits", "misses"} <= earlier.keys() & later.keys():
        return None
    return ArcReads(*(int(later[name]) - int(earlier[name]) for name in ("hits", "misses")))


def why_fetches_unseen(fstype: str) -> str:
    """Return why /proc/PID/io does not tell the bytes that storage delivered of files of a type (`read_bytes` of
    proc(5)); '' where it does."""
    if fstype in ("fuse", "fuseblk", "virtiofs") or fstype.startswith("fuse."):
        return f"{fstype} has no counters of what its server reads"
    return {
        "9p": "9p has no counters of what its server sends",
        "zfs": "ZFS counts what its ARC answers as if storage had delivered it",
    }.get(fstype, "")
