"""Which device a file system can lose: that of an array of md, or of a pool of ZFS, directly on its devices. And on
which its blocks can be found."""

from __future__ import annotations

from typing import Literal

from mountlab.core.array import Array
from mountlab.core.model import Filesystem

REDUNDANT_LEVELS = ("raid1", "raid4", "raid5", "raid6", "raid10")
_REDUNDANT_VDEVS = ("mirror", "raidz1", "raidz2", "raidz3")
ALLOWED = (
    f"md as the lowest layer, such as stack: [{{layer: md, level: raid1}}] (or {', '.join(REDUNDANT_LEVELS[1:])}), or "
    "zfs with vdevs that are mirrors or raidz"
)


def redundant_array(fs: Filesystem) -> Array | str:
    """Return the array or pool of a file system that can lose a member; or why there is none."""
    if not (fs.image_bytes or fs.device):
        return f"{fs.type} lies on no array that Mountlab makes: {ALLOWED}"
    if fs.stack:
        return _of_layer(fs)
    if fs.type == "zfs":
        names = fs.devices or tuple(str(number) for number in range(1, fs.members + 1))
        kept = [name for vdev in fs.vdevs if vdev.kind in _REDUNDANT_VDEVS and not vdev.use for name in vdev.members]
        numbers = tuple(sorted(names.index(name) + 1 for name in kept))
        return Array("zfs", numbers) if numbers else f"the pool has no copies and no parity: {ALLOWED}"
    if fs.type == "btrfs" and (fs.members > 1 or fs.more_devices):
        return f"btrfs goes on without a device only after a mount with `degraded`: {ALLOWED}"
    return f"{fs.type} on one device has no member to lose: {ALLOWED}"


_IN_CLEAR = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs")
_PLAIN_VOLUMES = ("linear", "striped")
_PLAIN = (
    f"{', '.join(_IN_CLEAR)} on images or scratch devices, on md, or on lvm ({', '.join(_PLAIN_VOLUMES)}): there "
    "blocks lie on devices as they are in files"
)


def plain_devices(fs: Filesystem) -> Array | str:
    """Return what lies on the devices of a file system that hold blocks of its files as they are; or why none does."""
    if fs.type not in _IN_CLEAR or not (fs.image_bytes or fs.device):
        return f"blocks of {fs.type} are not found on a device of its own: {_PLAIN}"
    for layer in fs.stack:
        if layer.kind not in ("md", "lvm"):
            return f"{layer.kind} hides the blocks of files from who looks at its device: {_PLAIN}"
        if layer.kind == "lvm" and layer.options["kind"] not in _PLAIN_VOLUMES:
            return f"lvm {layer.options['kind']} moves blocks, or keeps more copies than one: {_PLAIN}"
    if fs.type == "zfs" and fs.stack:
        return f"a pool on layers has two that could look for errors: {_PLAIN}"
    redundant = redundant_array(fs)
    members = redundant.members if isinstance(redundant, Array) else ()
    kind: Literal["md", "zfs", "lvm", "device"] = "zfs" if fs.type == "zfs" else "device"
    if fs.stack:
        kind = "md" if fs.stack[0].kind == "md" else "lvm"
    return Array(kind, members, count=_with_data(fs))


def _of_layer(fs: Filesystem) -> Array | str:
    lowest = fs.stack[0]
    if lowest.kind != "md":
        return f"its lowest layer is {lowest.kind}, whose members Mountlab does not take away: {ALLOWED}"
    if lowest.options["level"] not in REDUNDANT_LEVELS:
        return f"md {lowest.options['level']} has no copies and no parity: {ALLOWED}"
    return Array("md", tuple(range(1, _with_data(fs) + 1)))


def _with_data(fs: Filesystem) -> int:
    """Return how many devices below a file system hold data."""
    journals = int(fs.stack[0].options.get("journal", 0)) if fs.stack else 0
    return (len(fs.devices) or fs.members) - journals
