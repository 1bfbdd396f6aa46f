"""A layer between a file system and its devices, as a sweep names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StackLayer:
    """An array of several devices, a volume on them, or what encrypts one."""

    kind: str
    """A name of mountlab.filesystems.layers.STACK_LAYERS."""
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Those that the sweep gives: sizes in bytes, flags as 0 or 1."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The same values as people read them: '64 KiB'."""

    @property
    def text(self) -> str:
        """It in words: 'md (level raid5, chunk 64 KiB)'."""
        options = ", ".join(f"{name} {text}" for name, text in self.labels.items())
        return f"{self.kind} ({options})" if options else self.kind
