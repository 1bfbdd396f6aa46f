"""The layers that may lie between a file system and its devices. A new one is one new file and one entry here, with a
script of its own beside it."""

from __future__ import annotations

from mountlab.filesystems.layers.base import LayerKind
from mountlab.filesystems.layers.luks import Luks
from mountlab.filesystems.layers.lvm import Lvm
from mountlab.filesystems.layers.md import Md

STACK_LAYERS: dict[str, LayerKind] = {kind.kind: kind for kind in (Md(), Lvm(), Luks())}
"""Name in `stack` to layer."""
