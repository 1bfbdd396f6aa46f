"""Which devices count the flushes of a trial, and why none does."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from mountlab.checks.layers import level_name
from mountlab.core.box_facts import BoxFacts
from mountlab.filesystems.evidence import Device, DeviceLevels, is_server
from mountlab.filesystems.without_effect import kernel_version

_COUNTED_SINCE = (5, 5)
"""The version of Linux whose /proc/diskstats counts flushes."""
_WITHOUT_QUEUE = ("md", "dm-")
"""Names of devices that pass flushes on without counting them: the kernel counts those of a request queue only
(blk_account_io_flush)."""


def flushed_devices(
    levels: DeviceLevels, counted: Container[Device], names: Mapping[Device, str], facts: BoxFacts
) -> tuple[tuple[Device, ...], str]:
    """Return the devices that count the flushes of a file system, and '' or why none does.

    These are all devices of the first level without md and device mapper: one flush of the file system may be one of
    each. Of a partition the disk counts them, and a loop device counts those that it is asked for, whatever lies below.
    A device without a volatile cache is flushed without being counted. `levels`: the block devices below the file
    system, top first; `counted`: those with counters; `names`: number of a device to its name.
    """
    release = facts.kernel.release or ""
    if kernel_version(release) < _COUNTED_SINCE:
        return (), f"Linux {release or '(of an unknown version)'} does not count flushes of devices"
    if not levels:
        return (), "the kernel does not tell the device below"
    if is_server(levels[0][0]) and len(levels) == 1:
        return (), f"{level_name(levels[0], names)} counts them, and not this box"
    level = next((level for level in levels if not _passes_on(level, names)), None)
    if level is None:
        top = level_name(levels[0], names)
        return (), f"md and device mapper do not count flushes, and the kernel's report has no device below {top}"
    numbers = {name: number for number, name in names.items()}
    disks = [facts.storage.disk_of(names.get(device, "")) for device in level]
    devices = dict.fromkeys(
        numbers.get(disk.name, device) if disk else device for device, disk in zip(level, disks, strict=True)
    )
    if any(device not in counted for device in devices):
        return (), "the devices below were not counted"
    whys = [why for device in devices if (why := _uncounted(names[device], facts))]
    return ((), whys[0]) if whys else (tuple(devices), "")


def _passes_on(level: Sequence[Device], names: Mapping[Device, str]) -> bool:
    return any(is_server(device) or names.get(device, "").startswith(_WITHOUT_QUEUE) for device in level)


def _uncounted(name: str, facts: BoxFacts) -> str:
    """Return why the kernel does not count the flushes of a disk; '' where it does."""
    settings = (facts.storage.settings or {}).get(name)
    cache = "write back" if name.startswith("loop") else getattr(settings, "write_cache", None)
    if cache == "write back":
        return ""
    known = f"{name} has no volatile cache ({cache})" if cache else f"it is not known whether {name} has such a cache"
    return f"the kernel counts flushes of a device with a volatile cache only, and {known}"
