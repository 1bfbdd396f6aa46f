"""The state in which trials find a file system: fresh, or what a seeded procedure makes of a fresh one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FRESH = "fresh"
"""The state of a file system that was just made: no sweep file defines it."""
Profile = Literal["developer", "mail", "media"]
Purge = Literal["discard", "none"]


@dataclass(frozen=True, kw_only=True)
class State:
    """How a state is made. All of it follows from these values and the capacity of the file system."""

    name: str
    fill: float = 0.0
    """The share of the capacity that is in use at the end, as a number from 0 to 1; 0: nothing is added."""
    churn: float = 0.0
    """How often the whole capacity is written by files that come and go, at that fill."""
    profile: Profile = "developer"
    """Of sizes and lifetimes of the files."""
    seed: int = 1
    snapshots: int = 0
    """How many are taken, and kept."""
    change: float = 0.0
    """The share of the data that is overwritten before each snapshot."""
    write: float = 0.0
    """How often the whole device is written before the file system is made; 0: never."""
    purge: Purge = "none"
    """How a device that was written so is emptied before a mount in another state."""

    @property
    def worn(self) -> bool:
        """Whether it is a state of the device: it cannot be restored, and is made before each mount."""
        return self.write > 0
