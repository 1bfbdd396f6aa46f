"""What lies on the devices of a file system, by which a trial reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Array:
    """An array, a volume group, a pool, or the file system itself."""

    kind: Literal["md", "zfs", "lvm", "device"]
    """`device`: the file system, without layers."""
    members: tuple[int, ...]
    """Numbers of the devices whose loss it survives, one at a time, from 1, in the order of the file system's. ()
    where it has no copies and no parity."""
    run_dir: str = ""
    """Where the run has written down what it made (layer.sh); '' while that is not known."""
    uuid: str = ""
    """What it is marked with."""
    count: int = 1
    """How many devices hold data."""
