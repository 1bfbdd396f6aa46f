"""What lies on the devices of a mount, as trials reach them."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.array import Array
from mountlab.core.model import Filesystem, Place
from mountlab.core.redundancy import plain_devices, redundant_array
from mountlab.filesystems.zfs import pool_uuid


def planned_array(fs: Filesystem, place: Place) -> Array | None:
    """Return what a trial may lose a member of, or damage a device of, by the UUID that this run gives to it. None
    where Mountlab makes no such thing."""
    array = plain_devices(fs)
    if isinstance(array, str):
        array = redundant_array(fs)
    if isinstance(array, str):
        return None
    uuid = {"zfs": pool_uuid(place), "device": place.uuid}.get(array.kind) or place.layer_uuids[0]
    return replace(array, run_dir=place.run_dir, uuid=uuid)
