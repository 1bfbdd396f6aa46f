"""The layers that may lie between a file system and its devices. A new one is one new file and one entry here, with a
script of its own beside it."""

from __future__ import annotations

from mountlab.filesystems.layers.base import LayerKind
from mountlab.filesystems.layers.integrity import Integrity
from mountlab.filesystems.layers.luks import Luks
from mountlab.filesystems.layers.lvm import Lvm
from mountlab.filesystems.layers.md import Md

STACK_LAYERS: dict[str, LayerKind] = {kind.kind: kind for kind in (Md(), Lvm(), Luks(), Integrity())}
"""Name in `stack` to layer."""
NOT_RUN = {
    "vdo": "dm-vdo needs Linux 6.9 or later with CONFIG_DM_VDO, and vdoformat of the package vdo; Mountlab makes none, "
    "since it was not run by us: make it by hand, and measure its directory as {type: dir, path: DIRECTORY}",
}
"""Layer, or kind of lvm, that exists and is not offered, to what it needs."""
