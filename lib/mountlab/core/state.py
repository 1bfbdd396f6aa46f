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

    @property
    def taken(self) -> float:
        """The share of the capacity that its files take, and what its snapshots keep."""
        return self.fill * (1 + self.snapshots * self.change)

    @property
    def moved(self) -> float:
        """How often the making of it writes the whole capacity."""
        return self.write or self.taken + self.churn


@dataclass(frozen=True, kw_only=True)
class Origin:
    """From what a mount begins, in a sweep with states. Paths are on the box, in the run's own directory of images."""

    kept: str = ""
    """The file that holds the used blocks of a state, at their places; '': mkfs makes the file system."""
    used: str = ""
    """The file that lists these blocks."""
    written: bool = False
    """Whether each block of a new image is written, as each of a restored one is: a first write to a block that is
    only allocated costs more than the next one."""
    write: float = 0.0
    """How often the whole device is written first (State.write)."""
    discard: bool = False
    """Whether the whole device is discarded first."""


NEW = Origin()
"""That of every mount in a sweep without states."""
