"""Which trial runs when: seeded, randomised complete blocks with file systems as the hard-to-change factor."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from mountlab.core.model import Cell, Filesystem, Sweep

T = TypeVar("T")


@dataclass(frozen=True)
class Visit:
    """One file system's turn inside a block: its cells, in the order in which they run."""

    block: int
    warmup: bool
    filesystem: Filesystem
    cells: tuple[Cell, ...]


def visits(sweep: Sweep, seed: int) -> tuple[Visit, ...]:
    """The whole order of a run. Warm-up blocks come first and are numbered from 1 - warmup to 0.

    Inside each block the file systems come in a new random order, and inside each file system its cells do too:
    a split plot. The same sweep and seed give the same order.
    """
    rng = random.Random(seed)  # noqa: S311  # an order that can be drawn again, no secret
    blocks = range(1 - sweep.design.warmup, sweep.design.repeats + 1)
    return tuple(visit for block in blocks for visit in _block(sweep, block, rng))


def _block(sweep: Sweep, block: int, rng: random.Random) -> Iterator[Visit]:
    for filesystem in _shuffled(sweep.filesystems, rng):
        cells = _shuffled([cell for cell in sweep.cells if cell.filesystem is filesystem], rng)
        if sweep.design.fresh_filesystem == "cell":
            yield from (Visit(block, block < 1, filesystem, (cell,)) for cell in cells)
        elif cells:
            yield Visit(block, block < 1, filesystem, tuple(cells))


def _shuffled(items: tuple[T, ...] | list[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))
