"""An array of md or a pool of ZFS, by which a trial reaches the devices below its file system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Array:
    """One that has copies or parity of what is on a device."""

    kind: Literal["md", "zfs"]
    members: tuple[int, ...]
    """Numbers of the devices whose loss it survives, one at a time, from 1, in the order of the file system's."""
    run_dir: str = ""
    """Where the run has written down what it made (layer.sh); '' while that is not known."""
    uuid: str = ""
    """What it is marked with."""
