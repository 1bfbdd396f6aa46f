"""Which device a file system can lose: that of an array of md, or of a pool of ZFS, directly on its devices."""

from __future__ import annotations

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


def _of_layer(fs: Filesystem) -> Array | str:
    lowest = fs.stack[0]
    if lowest.kind != "md":
        return f"its lowest layer is {lowest.kind}, whose members Mountlab does not take away: {ALLOWED}"
    if lowest.options["level"] not in REDUNDANT_LEVELS:
        return f"md {lowest.options['level']} has no copies and no parity: {ALLOWED}"
    count = (len(fs.devices) or fs.members) - int(lowest.options.get("journal", 0))
    return Array("md", tuple(range(1, count + 1)))
