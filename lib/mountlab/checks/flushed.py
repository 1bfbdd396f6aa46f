"""Which device counts the flushes of a trial, and why none does."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from mountlab.core.box_facts import BoxFacts
from mountlab.filesystems.evidence import Device
from mountlab.filesystems.without_effect import kernel_version

_COUNTED_SINCE = (5, 5)
"""The version of Linux whose /proc/diskstats counts flushes."""


def flushed_device(
    chain: Sequence[Device], counted: Container[Device], names: Mapping[Device, str], facts: BoxFacts
) -> tuple[Device, str]:
    """Return the device that counts the flushes of a file system, and '' or why none does.

    Of a partition the disk counts them, and a loop device counts those that it is asked for, whatever lies below. A
    device without a volatile cache is flushed without being counted. `chain`: the block devices below the file system,
    top first; `counted`: those with counters; `names`: number of a device to its name.
    """
    release = facts.kernel.release or ""
    if kernel_version(release) < _COUNTED_SINCE:
        return "", f"Linux {release or '(of an unknown version)'} does not count flushes of devices"
    if not chain:
        return "", "the kernel does not tell the device below"
    disk = facts.storage.disk_of(names.get(chain[0], ""))
    numbers = {name: number for number, name in names.items()}
    device = numbers.get(disk.name, chain[0]) if disk else chain[0]
    if device not in counted:
        return "", "the devices below were not counted"
    name = names[device]
    settings = (facts.storage.settings or {}).get(name)
    cache = "write back" if name.startswith("loop") else getattr(settings, "write_cache", None)
    if cache != "write back":
        known = (
            f"{name} has no volatile cache ({cache})" if cache else f"it is not known whether {name} has such a cache"
        )
        return "", f"the kernel counts flushes of a device with a volatile cache only, and {known}"
    return device, ""
