"""The order of trials: randomised complete blocks with file systems as the hard-to-change factor."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from mountlab.core.model import Sweep
from mountlab.sweep.design import diagnostic_mount_groups, mount_groups
from mountlab.sweep.extension import extended
from rows import every_row
from scipy import stats
from sweeps import DD_READ, DD_WRITE, TMPFS, sweep

FILESYSTEMS = {"a": TMPFS, "b": TMPFS, "c": TMPFS}
WORKLOADS = {"w": DD_WRITE, "r": DD_READ}


def make(**design: Any) -> Sweep:
    return sweep(filesystems=FILESYSTEMS, workloads=WORKLOADS, design={"repeats": 4, "warmup": 1, **design}).sweep


def order(the_sweep: Sweep, seed: int) -> list[tuple[int, str]]:
    return [(group.block, cell.id) for group in mount_groups(the_sweep, seed) for cell in group.cells]


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_every_block_holds_every_cell_once(fresh: str) -> None:
    the_sweep = make(fresh_filesystem=fresh)
    counts = Counter(order(the_sweep, 1))
    cells = [cell.id for cell in the_sweep.cells]
    assert counts == {(block, cell): 1 for block in range(5) for cell in cells}


def test_blocks_come_one_after_another_warm_up_first() -> None:
    groups = mount_groups(make(warmup=2, repeats=3), 1)
    blocks = [group.block for group in groups]
    assert blocks == sorted(blocks)
    assert sorted(set(blocks)) == [-1, 0, 1, 2, 3]
    assert all(group.warmup == (group.block < 1) for group in groups)


def test_without_warm_up_the_first_block_is_number_1() -> None:
    assert {group.block for group in mount_groups(make(warmup=0), 1)} == {1, 2, 3, 4}
    assert not any(group.warmup for group in mount_groups(make(warmup=0), 1))


@pytest.mark.parametrize("fresh", ["block", "never"])
def test_a_file_system_has_one_turn_in_a_block_with_all_its_cells(fresh: str) -> None:
    for _, group in itertools.groupby(mount_groups(make(fresh_filesystem=fresh), 3), key=lambda group: group.block):
        turns = list(group)
        assert sorted(mount_group.filesystem.name for mount_group in turns) == ["a", "b", "c"]
        assert all(len(mount_group.cells) == 3 for mount_group in turns)
        assert all(cell.filesystem is mount_group.filesystem for mount_group in turns for cell in mount_group.cells)


def test_a_fresh_file_system_for_each_cell_makes_a_turn_for_each() -> None:
    turns = mount_groups(make(fresh_filesystem="cell", warmup=0, repeats=1), 3)
    assert [len(mount_group.cells) for mount_group in turns] == [1] * 9
    names = [mount_group.filesystem.name for mount_group in turns]
    assert [name for name, _ in itertools.groupby(names)] == list(dict.fromkeys(names)), "turns stay together"


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    the_sweep = make()
    assert mount_groups(the_sweep, 5) == mount_groups(the_sweep, 5)
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
    for _, group in itertools.groupby(mount_groups(the_sweep, 20261120), key=lambda group: group.block):
        for position, mount_group in enumerate(group):
            fs_positions[mount_group.filesystem.name, position] += 1
            cell_positions.update((cell.id, i) for i, cell in enumerate(mount_group.cells))
    assert len(fs_positions) == 9
    assert len(cell_positions) == 27
    for counts in (fs_positions, cell_positions):
        assert stats.chisquare(list(counts.values())).pvalue > 0.001


# --- diagnostic blocks ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_row("fresh", ["block", "cell", "never"])
@every_row("blocks", [2, 5])
def test_the_order_of_other_blocks_is_the_same_with_diagnostic_ones(fresh: str, blocks: int) -> None:
    for seed in range(30):
        plain, traced = (mount_groups(make(fresh_filesystem=fresh, explain=each), seed) for each in (False, blocks))
        assert [(v.block, v.filesystem.name, v.cells) for v in plain] == [
            (v.block, v.filesystem.name, v.cells) for v in traced
        ]


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_every_diagnostic_block_holds_every_cell_once_and_counts_nothing(fresh: str) -> None:
    the_sweep = make(fresh_filesystem=fresh, explain=3)
    found = diagnostic_mount_groups(the_sweep, 1)
    counts = Counter((group.block, cell.id) for group in found for cell in group.cells)
    assert counts == {(block, cell.id): 1 for block in (1, 2, 3) for cell in the_sweep.cells}
    assert all(group.diagnostic and group.warmup for group in found)
    assert [group.block for group in found] == sorted(group.block for group in found)


def test_more_diagnostic_blocks_begin_as_fewer_do() -> None:
    few, many = (diagnostic_mount_groups(make(explain=each), 5) for each in (2, 6))
    assert many[: len(few)] == few
    assert diagnostic_mount_groups(make(), 5) == ()


def test_an_extension_has_diagnostic_blocks_of_its_new_cells_after_the_others() -> None:
    before = sweep(filesystems={"a": TMPFS}, workloads=WORKLOADS, design={"explain": 2})
    asked = sweep(filesystems={"a": TMPFS, "b": TMPFS}, workloads=WORKLOADS, design={"explain": 2})
    after = extended(before, asked, at="now", only_new=False, where="tests").sweep
    own = diagnostic_mount_groups(before.sweep, 3)
    cells = [[cell.id for cell in group.cells] for group in diagnostic_mount_groups(after, 3)]
    assert cells[: len(own)] == [[cell.id for cell in group.cells] for group in own]
    assert {cell.partition("/")[0] for group in cells[len(own) :] for cell in group} == {"b"}
