"""The order of trials: randomised complete blocks with file systems as the hard-to-change factor."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from mountlab.core.model import Sweep
from mountlab.sweep.design import visits
from scipy import stats
from sweeps import DD_READ, DD_WRITE, TMPFS, sweep

FILESYSTEMS = {"a": TMPFS, "b": TMPFS, "c": TMPFS}
WORKLOADS = {"w": DD_WRITE, "r": DD_READ}


def make(**design: Any) -> Sweep:
    return sweep(filesystems=FILESYSTEMS, workloads=WORKLOADS, design={"repeats": 4, "warmup": 1, **design}).sweep


def order(the_sweep: Sweep, seed: int) -> list[tuple[int, str]]:
    return [(visit.block, cell.id) for visit in visits(the_sweep, seed) for cell in visit.cells]


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_every_block_holds_every_cell_once(fresh: str) -> None:
    the_sweep = make(fresh_filesystem=fresh)
    counts = Counter(order(the_sweep, 1))
    cells = [cell.id for cell in the_sweep.cells]
    assert counts == {(block, cell): 1 for block in range(5) for cell in cells}


def test_blocks_come_one_after_another_warm_up_first() -> None:
    the_visits = visits(make(warmup=2, repeats=3), 1)
    blocks = [visit.block for visit in the_visits]
    assert blocks == sorted(blocks)
    assert sorted(set(blocks)) == [-1, 0, 1, 2, 3]
    assert all(visit.warmup == (visit.block < 1) for visit in the_visits)


def test_without_warm_up_the_first_block_is_number_1() -> None:
    assert {visit.block for visit in visits(make(warmup=0), 1)} == {1, 2, 3, 4}
    assert not any(visit.warmup for visit in visits(make(warmup=0), 1))


@pytest.mark.parametrize("fresh", ["block", "never"])
def test_a_file_system_has_one_turn_in_a_block_with_all_its_cells(fresh: str) -> None:
    for _, group in itertools.groupby(visits(make(fresh_filesystem=fresh), 3), key=lambda visit: visit.block):
        turns = list(group)
        assert sorted(turn.filesystem.name for turn in turns) == ["a", "b", "c"]
        assert all(len(turn.cells) == 3 for turn in turns)
        assert all(cell.filesystem is turn.filesystem for turn in turns for cell in turn.cells)


def test_a_fresh_file_system_for_each_cell_makes_a_turn_for_each() -> None:
    turns = visits(make(fresh_filesystem="cell", warmup=0, repeats=1), 3)
    assert [len(turn.cells) for turn in turns] == [1] * 9
    names = [turn.filesystem.name for turn in turns]
    assert [name for name, _ in itertools.groupby(names)] == list(dict.fromkeys(names)), "turns stay together"


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    the_sweep = make()
    assert visits(the_sweep, 5) == visits(the_sweep, 5)
    assert order(the_sweep, 5) != order(the_sweep, 6)


def test_the_order_is_drawn_anew_in_each_block() -> None:
    the_sweep = make(repeats=8, warmup=0)
    by_block = [tuple(cell for block, cell in order(the_sweep, 9) if block == number) for number in range(1, 9)]
    assert len(set(by_block)) == 8


def test_every_cell_is_as_often_early_as_late() -> None:
    """Positions of the 3 file systems, and of the 3 workloads within them, over 600 blocks against a uniform draw."""
    the_sweep = make(repeats=600, warmup=0)
    fs_positions: Counter[tuple[str, int]] = Counter()
    cell_positions: Counter[tuple[str, int]] = Counter()
    for _, group in itertools.groupby(visits(the_sweep, 20261120), key=lambda visit: visit.block):
        for position, turn in enumerate(group):
            fs_positions[turn.filesystem.name, position] += 1
            cell_positions.update((cell.id, i) for i, cell in enumerate(turn.cells))
    assert len(fs_positions) == 9
    assert len(cell_positions) == 27
    for counts in (fs_positions, cell_positions):
        assert stats.chisquare(list(counts.values())).pvalue > 0.001
