"""The array or pool of a mount, as trials reach its members."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.array import Array
from mountlab.core.model import Filesystem, Place
from mountlab.core.redundancy import redundant_array
from mountlab.filesystems.zfs import pool_uuid


def planned_array(fs: Filesystem, place: Place) -> Array | None:
    """Return what of this mount can lose a member, by the UUID that layer.sh writes down; None where nothing can."""
    array = redundant_array(fs)
    if isinstance(array, str):
        return None
    uuid = place.layer_uuids[0] if array.kind == "md" else pool_uuid(place)
    return replace(array, run_dir=place.run_dir, uuid=uuid)
