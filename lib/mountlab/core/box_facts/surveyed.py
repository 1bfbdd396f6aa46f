"""What a plan must know of a box beyond what it is: found for one sweep, once its facts are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mountlab.core.box_facts.base import Group, Listed, fact
from mountlab.core.box_facts.stated import WorkloadOfLogs


class Surveyed(Group):
    """Of the file systems, the devices and the clients of one sweep."""

    section: ClassVar = "Mountlab's own"
    room: Mapping[str, int] = fact("room for each file system", default={})
    """File system to the bytes that may be written."""
    image_room: Mapping[str, int] = fact("room for images", default={})
    """File system to the bytes in the directory of its image."""
    memory_directories: Listed[str] = fact("directories in memory", default=())
    devices: Mapping[str, str] = fact("scratch devices", default={})
    """File system to the guard's report on its scratch devices."""
    device_ids: Mapping[str, str] = fact("ids of scratch devices", default={})
    """Scratch device to its identity."""
    device_dax: Mapping[str, bool] = fact("DAX of scratch devices", default={})
    """Scratch device to whether it has DAX, of those that tell and on which the sweep asks for it."""
    device_discards: Mapping[str, bool] = fact("discards of scratch devices", default={})
    """Scratch device to whether it discards blocks, of those that a state wears."""
    namespaces: Mapping[str, str] = fact("namespaces that hold a tool", default={})
    """Variable of contain.sh to the words that give a program a namespace of its own, '' for none."""
    trace_events: Listed[str] = fact("events that are traced", default=())
    trace_reason: str = fact("why it cannot be traced", default="")
    """'' where it can, or where no sweep asks."""
    peers: Mapping[str, Listed[str]] = fact("addresses of the clients", default={})
    """File system to the addresses of the clients that mount it from its server."""
    stated: Mapping[str, WorkloadOfLogs] | None = fact("stated")
    """Of imported logs: workload label to what is known of its options. None in a measured run, and in one that an
    earlier version imported."""

    def merged(self, later: Surveyed) -> Surveyed:
        """Return both: what is known by name is added to what is known of other names, all else replaced."""
        both: dict[str, Any] = {name: getattr(later, name) for name in later.model_fields_set}
        for name in self.model_fields_set & both.keys():
            before = getattr(self, name)
            if isinstance(before, Mapping):
                both[name] = {**before, **both[name]}
        if self.memory_directories and later.memory_directories:
            both["memory_directories"] = (*self.memory_directories, *later.memory_directories)
        return self.model_copy(update=both)
