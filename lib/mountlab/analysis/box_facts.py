"""What a run keeps of its box that may explain why another run came out otherwise, the likeliest causes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mountlab.core.box_facts import COMPARED, BoxFacts
from mountlab.core.fact_words import fact_name, fact_text

DISKS = ("block_devices", "disk_settings")
"""The facts from which the device area has its disks."""
_OF_A_DISK = ("model", "size_bytes", "rotational", "scheduler", "transport", "logical_sector_bytes")
_DETAILS = {("kernel_config", "sha256"), ("kernel_build", "")}
"""That two kernels are not the same one; what in them differs is more telling."""


def by_area(facts: BoxFacts) -> dict[str, dict[str, Any]]:
    """Return area to the facts in it; None for what is not known."""
    record = facts.as_record()
    areas: dict[str, dict[str, Any]] = {area: {key: record.get(key) for key in keys} for area, keys in COMPARED.items()}
    areas["device"] |= _disks(facts)
    return areas


def _disks(facts: BoxFacts) -> dict[str, Any]:
    """Return the disks of a box, without those that are made for a file system."""
    settings = facts.storage.settings or {}
    disks = [disk for disk in facts.storage.block_devices or () if disk.type == "disk" and disk.size_bytes]
    return {
        f"disk {disk.name}": {
            **{key: value for key in _OF_A_DISK if (value := getattr(disk, key)) not in (None, "")},
            **(settings[disk.name].as_record() if disk.name in settings else {}),
        }
        for disk in disks
        if not disk.name.startswith(("loop", "zram", "ram"))
    }


def is_detail(key: str, part: str) -> bool:
    """Return whether a fact, or one of its values, says only that something differs."""
    return (key, part) in _DETAILS


def texts(facts: BoxFacts) -> dict[str, str]:
    """Return every fact and every value of one as people read it, by its name; what is not known is left out."""
    found = [(key, part, value) for own in by_area(facts).values() for key, part, value in _single(own)]
    found.sort(key=lambda each: is_detail(each[0], each[1]))
    return {fact_name(key, part): fact_text(key, value, part) for key, part, value in found}


def _single(own: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, value in own.items():
        if isinstance(value, Mapping):
            yield from ((key, part, each) for part, each in value.items() if each not in (None, ""))
        elif value not in (None, ""):
            yield key, "", value
