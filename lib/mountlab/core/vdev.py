"""A part of a pool of ZFS, as a sweep names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Vdev:
    """Devices that hold data together, and what the pool uses them for."""

    kind: str
    """How data lies on them: stripe, mirror, raidz1, raidz2, raidz3."""
    members: tuple[str, ...]
    """Names of scratch devices, or numbers of images from 1."""
    use: str = ""
    """'' for data; log, cache, special, dedup or spare."""

    @property
    def text(self) -> str:
        """It in words: 'log mirror [a, b]'."""
        kind = self.kind if self.kind != "stripe" or not self.use else ""
        return " ".join(filter(None, (self.use, kind, f"[{', '.join(self.members)}]")))
