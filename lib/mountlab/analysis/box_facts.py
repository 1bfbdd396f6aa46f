"""What a run keeps of its box that may explain why another run came out otherwise, the likeliest causes first."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.box_facts import COMPARED, BoxFacts
from mountlab.core.fact_words import fact_name, fact_text

DISKS = ("block_devices", "disk_settings")
"""The facts from which the device area has its disks."""
_OF_A_DISK = ("model", "size_bytes", "rotational", "scheduler", "transport", "logical_sector_bytes")
_DETAILS = {("kernel_config", "sha256"), ("kernel_build", "")}
"""That two kernels are not the same one; what in them differs is more telling."""


def by_area(facts: BoxFacts) -> dict[str, dict[str, object]]:
    """Return area to the facts in it; None for what is not known."""
    record, settings = facts.as_record(), facts.storage.settings or {}
    areas: dict[str, dict[str, object]] = {area: {key: record.get(key) for key in COMPARED[area]} for area in COMPARED}
    for disk in facts.storage.block_devices or ():
        is_made = disk.name.startswith(("loop", "zram", "ram"))  # for a file system
        if disk.type == "disk" and disk.size_bytes and not is_made:
            areas["device"][f"disk {disk.name}"] = {
                **{key: value for key in _OF_A_DISK if (value := getattr(disk, key)) not in (None, "")},
                **(settings[disk.name].as_record() if disk.name in settings else {}),
            }
    return areas


def is_detail(key: str, part: str) -> bool:
    """Return whether a fact, or one of its values, says only that something differs."""
    return (key, part) in _DETAILS


def texts(facts: BoxFacts) -> dict[str, str]:
    """Return every fact and every value of one as people read it, by its name; what is not known is left out."""
    values: list[tuple[str, str, object]] = []
    for area in by_area(facts).values():
        for key, whole in area.items():
            parts = whole if isinstance(whole, Mapping) else {"": whole}
            values += [(key, part, value) for part, value in parts.items() if value not in (None, "")]
    values.sort(key=lambda row: is_detail(row[0], row[1]))
    return {fact_name(key, part): fact_text(key, value, part) for key, part, value in values}
