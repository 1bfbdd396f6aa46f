"""What the facts about a box are called, in which group they stand, and how their values are read by people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mountlab.core.units import format_bytes, format_seconds

GROUPS = ("Machine", "Processor", "Memory", "Kernel", "Storage", "Limits of the session", "Programs", "Mountlab's own")
"""In the order in which a report shows them."""


@dataclass(frozen=True)
class FactWords:
    """How one fact is called."""

    name: str
    """Inside a sentence."""
    group: str
    parts: Mapping[str, str] = field(default_factory=dict)
    """Of a fact with several values: what those are called whose key is no word of the kernel's."""
    lacking: str = ""
    """What it means that such a fact has no value of a name that another run has; '' where nothing is known then."""


_LIMITS = {
    "memory_bytes": "memory", "memory_high_bytes": "memory before it is slowed", "processors": "processor time",
    "processors_allowed": "processors it may run on", "tasks": "tasks", "disks": "disks",
}  # fmt: skip
_DISK = {
    "size_bytes": "size", "read_only": "read-only", "mountpoints": "mounted on",
    "physical_sector_bytes": "physical sector", "logical_sector_bytes": "logical sector", "write_cache": "write cache",
    "read_ahead_bytes": "read-ahead",
    "requests": "requests in its queue", "writeback_throttling": "writeback throttling",
}  # fmt: skip
_FREQUENCY = {"lowest_hz": "lowest", "highest_hz": "highest", "possible_hz": "highest possible"}
_RECLAIM = {"lru_gen": "multi-generational LRU", "damon": "DAMON", "damon_reclaim": "DAMON_RECLAIM",
            "damon_lru_sort": "DAMON_LRU_SORT", "same_page_merging": "same-page merging",
            "free_page_reporting": "free page reporting"}  # fmt: skip
_IDLE = {"switched_off": "switched off", "times": "time to leave, and to stay in", "limit": "limit"}
_SENSOR = {"file": "read from", "warning_celsius": "warns at °C", "critical_celsius": "critical at °C"}
_MACHINE, _PROCESSOR, _MEMORY, _KERNEL, _STORAGE, _LIMIT, _PROGRAMS, _OWN = GROUPS

FACT_WORDS: Mapping[str, FactWords] = {
    "hostname": FactWords("host name", _MACHINE),
    "machine_model": FactWords("model", _MACHINE),
    "firmware": FactWords("firmware", _MACHINE),
    "virtualization": FactWords("virtualisation", _MACHINE),
    "emulated": FactWords("emulated", _MACHINE),
    "power": FactWords("power", _MACHINE),
    "cpu_model": FactWords("processor", _PROCESSOR),
    "machine": FactWords("architecture", _PROCESSOR),
    "cpus": FactWords("processors in use", _PROCESSOR),
    "smt": FactWords("simultaneous multithreading", _PROCESSOR),
    "numa": FactWords("NUMA", _PROCESSOR),
    "cpu_governor": FactWords("frequency governor", _PROCESSOR),
    "cpu_frequency": FactWords("frequency", _PROCESSOR, _FREQUENCY),
    "cpu_idle": FactWords("idle states", _PROCESSOR, _IDLE),
    "cpu_mitigations": FactWords("mitigations", _PROCESSOR),
    "cpu_microcode": FactWords("microcode", _PROCESSOR),
    "clocksource": FactWords("clock source", _PROCESSOR),
    "memory_bytes": FactWords("memory", _MEMORY),
    "memory_available_bytes": FactWords("memory available", _MEMORY),
    "page_bytes": FactWords("page size", _MEMORY),
    "huge_pages": FactWords("transparent huge pages", _MEMORY, {"shmem_enabled": "of files in memory"}),
    "swap_bytes": FactWords("swap", _MEMORY),
    "swap_used_bytes": FactWords("swap in use", _MEMORY),
    "swap_areas": FactWords("kinds of swap", _MEMORY),
    "reclaim": FactWords("reclaim", _MEMORY, _RECLAIM),
    "vm_settings": FactWords("memory settings (vm)", _MEMORY),
    "kernel": FactWords("kernel", _KERNEL),
    "kernel_build": FactWords("kernel build", _KERNEL),
    "os": FactWords("operating system", _KERNEL),
    "kernel_command_line": FactWords("kernel command line", _KERNEL, lacking="not set"),
    "kernel_config": FactWords("kernel configuration", _KERNEL, {"sha256": "SHA-256"}),
    "security_modules": FactWords("security modules", _KERNEL),
    "kernel_filesystems": FactWords("file systems of the kernel", _KERNEL),
    "kernel_features": FactWords("devices that it can make", _KERNEL),
    "loop_devices": FactWords("loop devices", _KERNEL),
    "mount_root_fstype": FactWords("file system of the mount root", _STORAGE),
    "mount_root_source": FactWords("device of the mount root", _STORAGE),
    "mount_root_free_bytes": FactWords("free below the mount root", _STORAGE),
    "output_root_fstype": FactWords("file system of the output root", _STORAGE),
    "output_root_free_bytes": FactWords("free below the output root", _STORAGE),
    "disk_links": FactWords("links to the disks", _STORAGE),
    "block_devices": FactWords("block devices", _STORAGE, _DISK),
    "disk_settings": FactWords("settings of the disks", _STORAGE, _DISK),
    "drive_sensors": FactWords("temperatures of the drives", _STORAGE, _SENSOR),
    "session_limits": FactWords("control group", _LIMIT, _LIMITS),
    "package_manager": FactWords("package manager", _PROGRAMS),
    "sampling_shell": FactWords("shell that samples the counters inside trials", _PROGRAMS),
    "programs": FactWords("programs", _PROGRAMS),
    "rights": FactWords("rights", _OWN),
    "may_mount": FactWords("may mount", _OWN),
    "user": FactWords("user", _OWN),
    "uid": FactWords("user number", _OWN),
    "boot_id": FactWords("boot id", _OWN),
    "mount_root": FactWords("mount root", _OWN),
    "output_root": FactWords("output root", _OWN),
    "room": FactWords("room for each file system", _OWN),
    "image_room": FactWords("room for images", _OWN),
    "memory_directories": FactWords("directories in memory", _OWN),
    "devices": FactWords("scratch devices", _OWN),
    "device_ids": FactWords("ids of scratch devices", _OWN),
    "device_dax": FactWords("DAX of scratch devices", _OWN),
    "namespaces": FactWords("namespaces that hold a tool", _OWN),
    "trace_events": FactWords("events that are traced", _OWN),
    "trace_reason": FactWords("why it cannot be traced", _OWN),
    "peers": FactWords("addresses of the clients", _OWN),
    "clients": FactWords("clients", _OWN),
}
"""Every fact, in the order of its group. A fact of another version has the words of its key, and stands in the last
group."""


def words_of(key: str) -> FactWords:
    """Return the words for a fact, for 'disk NAME', or for any other key of what a run keeps."""
    found = FACT_WORDS.get(key)
    if found:
        return found
    return FactWords(key, _STORAGE, _DISK) if key.startswith("disk ") else FactWords(_plain(key), _OWN)


def fact_name(key: str, part: str = "") -> str:
    """'mitigations', or of one of its values 'mitigations: spectre_v2'."""
    words = words_of(key)
    return f"{words.name}: {part_name(key, part)}" if part else words.name


def part_name(key: str, part: str) -> str:
    """Return what one value of a fact is called: in our words, or as the kernel and the user name it."""
    return words_of(key).parts.get(part, part)


def heading(name: str) -> str:
    """Return a name at the beginning of a line."""
    return name[:1].upper() + name[1:]


def _plain(key: str) -> str:
    return key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


# --- values -----------------------------------------------------------------------------------------------------------


def fact_text(key: str, value: object, part: str = "") -> str:
    """Return a fact, or one of its values, as people read it: bytes with a unit, lists with commas, what is not known
    as 'not known'."""
    if value is None or value == "":
        return "not known"
    if value in ({}, [], ()):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{part_name(key, str(name))}: {fact_text(key, own, str(name))}" for name, own in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(fact_text(key, own) for own in value)
    if key == "cpu_mitigations":
        return mitigation_text(str(value))
    return _single_text(part or key, value)


def _single_text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if key.endswith("_bytes"):
            return format_bytes(float(value))
        if key.endswith("_s"):
            return format_seconds(float(value))
        if key.endswith("_hz"):
            return f"{value / 1e9:.3g} GHz"
    return str(value)


_STATE = re.compile(r"(?:KVM: )?(?P<state>Mitigation|Vulnerable|Not affected)(?:: |, |\Z)(?P<how>.*)", re.DOTALL)
_STATES = {"Mitigation": "on", "Vulnerable": "off", "Not affected": "not affected"}


def mitigation_text(said: str) -> str:
    """Format the kernel's report on one weakness: 'on (Retpolines; STIBP: disabled)', 'off' or 'not affected'."""
    match = _STATE.match(said)
    if not match:
        return said
    state, how = _STATES[match["state"]], match["how"]
    return f"{state} ({how})" if how else state
