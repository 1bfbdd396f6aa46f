"""Snapshots of a thin volume of LVM: whether its pool has room for all that they keep."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.model import Filesystem
from mountlab.core.numbers import counted
from mountlab.core.state import State
from mountlab.core.units import GIB, KIB, MIB, format_bytes
from mountlab.filesystems.layers.lvm import EXTENT
from mountlab.filesystems.stack import top_bytes

_TYPES = ("ext4", "xfs")
"""What the kernel freezes while a snapshot of its volume is taken, and that has none of its own."""
_LARGEST_FILE = GIB
"""Of the file that is overwritten (snapshots.sh), which has a quarter of the free capacity, too."""
_BLOCK = 4 * KIB
"""What is overwritten at once (snapshots.sh)."""
_PLACES, _PLACE = 8, 512 * KIB
"""In how many places, and how much of each, a file system writes its own records between two snapshots."""
_CHUNK = 2 * MIB
"""Above LVM's own choice, which grows with the pool: 64 KiB up to 128 GiB, 2 MiB at 4 TiB."""


def takes_snapshots(fs: Filesystem) -> bool:
    """Return whether snapshots of it are those of the thin volume right below it."""
    return fs.type in _TYPES and bool(fs.stack) and _kind(fs) == "thin"


def refuses_snapshots(fs: Filesystem, state: State, smallest: int) -> str | None:
    """Return why a file system without snapshots of its own cannot have those of a state; None where it can.
    `smallest`: of volumes for it, in bytes."""
    if fs.type in _TYPES and fs.stack and _kind(fs) == "snapshot":
        return "an old-style snapshot of lvm is one beside its volume, by kind: snapshot alone; kind: thin has many"
    if not takes_snapshots(fs):
        return f"{fs.type} has no snapshots: btrfs and zfs have, and {' and '.join(_TYPES)} right on lvm (kind thin)"
    return overflows(fs, state, fs.image_bytes, smallest) if fs.image_bytes else None


def overflows(fs: Filesystem, state: State, each: int, smallest: int = 0) -> str | None:
    """Return why the pool on devices of `each` bytes could overflow, and which volume it has room for; None where it
    cannot."""
    if not state.snapshots or not takes_snapshots(fs):
        return None
    volume, pool = top_bytes(fs, each), _pool_bytes(fs, each)
    if _most(fs, state, volume) <= pool:
        return None
    fitting, too_large = 0, volume // EXTENT + 1
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        fitting, too_large = (middle, too_large) if _most(fs, state, middle * EXTENT) <= pool else (fitting, middle)
    whole, needed = (format_bytes(float(size)) for size in (volume, _most(fs, state, volume)))
    fits = fitting > 0 and fitting * EXTENT >= smallest
    next_step = f"volume: {fitting * EXTENT // MIB}MiB or less in the layer" if fits else "larger devices"
    return (
        f"its pool of {format_bytes(float(pool))} could overflow: {counted(state.snapshots, 'snapshot')} of a volume "
        f"of {whole} and all that trials may overwrite need up to {needed}; {next_step}, fewer snapshots, or a smaller "
        "change or chunk"
    )


def _kind(fs: Filesystem) -> str:
    """Return the kind of the uppermost layer where that is of lvm; else ''."""
    return str(fs.stack[-1].options["kind"]) if fs.stack[-1].kind == "lvm" else ""


def _pool_bytes(fs: Filesystem, each: int) -> int:
    """Return what a volume of all the pool would have."""
    *below, layer = fs.stack
    whole = replace(layer, options={name: value for name, value in layer.options.items() if name != "volume"})
    return top_bytes(replace(fs, stack=(*below, whole)), each)


def _most(fs: Filesystem, state: State, volume: int) -> int:
    """Return the most that a pool may have to hold: the volume as the last snapshot has it, and once more as trials may
    write it; and for each earlier snapshot the chunks that were written before the next.

    A block of 4 KiB that is overwritten takes a chunk. Of LVM's own choice of a chunk any size is possible.
    """
    file = min(_LARGEST_FILE, int(volume * (1 - state.fill) / 4))
    chunk = int(fs.stack[-1].options.get("chunk", 0))
    volume += -volume % (chunk or 1)
    copied = min(file, int(file * state.change) // _BLOCK * chunk) if chunk else file
    return 2 * volume + (state.snapshots - 1) * min(volume, copied + _PLACES * max(chunk or _CHUNK, _PLACE))
