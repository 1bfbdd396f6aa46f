"""What a run keeps of its box that may explain why another run came out otherwise, the likeliest causes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mountlab.core.fact_words import fact_name, fact_text

Facts = Mapping[str, Any]

AREAS: dict[str, tuple[str, ...]] = {
    "system": (
        "kernel", "os", "cpu_mitigations", "huge_pages", "kernel_command_line", "reclaim", "swap_areas", "vm_settings",
        "security_modules", "kernel_config", "kernel_build",
    ),
    "machine": (
        "hostname", "machine", "cpu_model", "cpus", "cpu_governor", "cpu_frequency", "cpu_idle", "smt", "numa",
        "memory_bytes", "swap_bytes", "power", "clocksource", "page_bytes", "machine_model", "firmware",
        "cpu_microcode",
    ),
    "limits": ("session_limits",),
    "virtualisation": ("virtualization", "emulated"),
    "device": ("mount_root_source", "mount_root_fstype", "disk_links"),
    "rights": ("rights", "may_mount", "user"),
}  # fmt: skip
"""What of the facts about a box is held against each other, by what an owner changes at a time."""
DISKS = ("block_devices", "disk_settings")
"""The facts from which the device area has its disks."""
_OF_A_DISK = ("model", "size_bytes", "rotational", "scheduler", "transport", "logical_sector_bytes")
_DETAILS = {("kernel_config", "sha256"), ("kernel_build", "")}
"""That two kernels are not the same one; what in them differs is more telling."""


def by_area(facts: Facts) -> dict[str, dict[str, Any]]:
    """Return area to the facts in it; None for what is not known."""
    found = {area: {key: facts.get(key) for key in keys} for area, keys in AREAS.items()}
    found["device"] |= _disks(facts)
    return found


def _disks(facts: Facts) -> dict[str, Any]:
    """Return the disks of a box, without those that are made for a file system."""
    disks = [each for each in facts.get("block_devices") or [] if each.get("type") == "disk" and each.get("size_bytes")]
    own = [each for each in disks if not str(each.get("name")).startswith(("loop", "zram", "ram"))]
    settings = facts.get("disk_settings") or {}
    return {
        f"disk {each.get('name')}": {key: each[key] for key in _OF_A_DISK if each.get(key) not in (None, "")}
        | settings.get(each.get("name"), {})
        for each in own
    }


def is_detail(key: str, part: str) -> bool:
    """Return whether a fact, or one of its values, says only that something differs."""
    return (key, part) in _DETAILS


def texts(facts: Facts) -> dict[str, str]:
    """Return every fact and every value of one as people read it, by its name; what is not known is left out."""
    found = [(key, part, value) for own in by_area(facts).values() for key, part, value in _single(own)]
    found.sort(key=lambda each: is_detail(each[0], each[1]))
    return {fact_name(key, part): fact_text(key, value, part) for key, part, value in found}


def _single(own: Facts) -> Iterator[tuple[str, str, Any]]:
    for key, value in own.items():
        if isinstance(value, Mapping):
            yield from ((key, part, each) for part, each in value.items() if each not in (None, ""))
        elif value not in (None, ""):
            yield key, "", value
