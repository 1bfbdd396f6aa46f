"""Which trial runs when: seeded, randomised complete blocks with file systems as the hard-to-change factor."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from mountlab.core.model import Cell, Filesystem, Stage, Sweep
from mountlab.core.seeds import derived

T = TypeVar("T")


@dataclass(frozen=True)
class MountGroup:
    """Cells that share a mount: the turn in a block of one file system in one state, in the order in which they run.
    Statistics calls it a whole plot."""

    block: int
    warmup: bool
    filesystem: Filesystem
    cells: tuple[Cell, ...]
    stage: int = 0
    """Number of the stage: 0 for the blocks that the run was begun with, 1 for its first extension."""
    diagnostic: bool = False
    """Whether it belongs to a diagnostic block."""
    profiled: bool = False
    """Whether that is the one in which system calls are recorded."""

    @property
    def state(self) -> str:
        """In which the file system is mounted; '' where the sweep has no states."""
        return self.cells[0].workload.state


def mount_groups(sweep: Sweep, seed: int) -> tuple[MountGroup, ...]:
    """Return the whole order of a run. Warm-up blocks come first and are numbered from 1 - warmup to 0.

    Inside each block the file systems, in each of their states, come in a new random order, and inside each of these
    its cells do too: a split plot. The same sweep and seed give the same order. Extensions follow, each with its own
    warm-up; the order before them stays the same.
    """
    rng = random.Random(seed)  # noqa: S311  # an order that can be drawn again, no secret
    return tuple(
        replace(group, stage=number)
        for number, stage in enumerate(sweep.stages)
        for block in (*stage.warmup, *stage.counted)
        for group in _block(stage, block, rng)
    )


def diagnostic_mount_groups(sweep: Sweep, seed: int) -> tuple[MountGroup, ...]:
    """Return the order of the diagnostic blocks, which follow all others and hold every cell once each.

    They are drawn by themselves: the order of the other blocks is the same without them. Cells that an extension has
    added have diagnostic blocks of their own, after those of the cells that were there before.
    """
    return tuple(
        replace(group, stage=number, warmup=True, diagnostic=True)
        for number, stage in enumerate(sweep.stages)
        for rng in [random.Random(derived(seed, "explain", *([number] if number else [])))]  # noqa: S311  # no secret
        for block in range(1, sweep.design.explain + 1)
        for group in _block(replace(stage, cells=stage.added_cells), block, rng)
    )


def profiled_mount_groups(sweep: Sweep, seed: int) -> tuple[MountGroup, ...]:
    """Return the order of the block in which system calls are recorded, which follows all others; () where none is
    asked for. It is drawn by itself. Cells of an extension have one of their own."""
    return tuple(
        replace(group, stage=number, warmup=True, diagnostic=True, profiled=True)
        for number, stage in enumerate(sweep.stages if sweep.design.profile else ())
        for group in _block(
            replace(stage, cells=stage.added_cells),
            1,
            random.Random(derived(seed, "profile", *([number] if number else []))),  # noqa: S311  # no secret
        )
    )


def _block(stage: Stage, block: int, rng: random.Random) -> Iterator[MountGroup]:
    sweep, ids = stage.sweep, frozenset(stage.cells)
    for filesystem, state in _shuffle(sweep.turns, rng):
        of_turn = (cell for cell in sweep.cells if cell.filesystem is filesystem and cell.workload.state == state)
        cells = _shuffle([cell for cell in of_turn if cell.id in ids], rng)
        if sweep.design.fresh_filesystem == "cell":
            yield from (MountGroup(block, block < 1, filesystem, (cell,)) for cell in cells)
        elif cells:
            yield MountGroup(block, block < 1, filesystem, tuple(cells))


def _shuffle(items: tuple[T, ...] | list[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))
