"""The negative control: cold against warm, where no device is involved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks.test_checks import EXT4, READ, build, found, make, the_only
from facts import known
from mountlab.checks import Evidence, find_caveats
from mountlab.core.model import Sweep
from repetition import few_then_many

TMPFS = {"type": "tmpfs", "size": "1GiB"}
BOTH = {**READ, "cache": ["cold", "warm"]}
WARM = [7.0e9, 7.3e9, 7.1e9, 7.4e9, 7.2e9]


def swept(**more: Any) -> Sweep:
    return make(**{"filesystems": {"tmpfs": TMPFS, "ext4": EXT4}, "workloads": {"r": BOTH}, **more})


def measured(the_sweep: Sweep, ratio: list[float], name: str = "tmpfs", **more: Any) -> Evidence:
    """The cold reads of one file system are so many times the warm ones, block by block."""
    cold = [warm * each for warm, each in zip(WARM, ratio, strict=True)]
    return build(the_sweep, values={f"{name}/r cache=cold": cold, f"{name}/r cache=warm": WARM}, **more)


def test_cold_reads_of_a_file_system_in_memory_that_differ_from_warm_ones_are_a_warning() -> None:
    """As it was in the demo: 12.1 GB/s cold, 7.27 GB/s warm."""
    caveat = the_only("control-failed", measured(swept(), [1.7, 1.6, 1.75, 1.65, 1.7]))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "filesystem", "tmpfs")
    said = caveat.message.replace("\u00a0", " ")
    assert "read_bandwidth of tmpfs is 12.1 GB/s under r cache=cold and 7.20 GB/s under r cache=warm" in said
    assert "1.68 times [1.61, 1.75] (95 %, 5 blocks)" in said
    assert "moves the other figures too" in said


def test_slower_cold_reads_are_told_as_well() -> None:
    assert found("control-failed", measured(swept(), [0.6, 0.62, 0.59, 0.61, 0.6])) != []


@pytest.mark.parametrize(
    "ratio",
    [[1.0, 1.01, 0.99, 1.005, 0.995], [2.0, 0.6, 1.9, 0.7, 1.5], [1.015, 1.016, 1.014, 1.015, 1.016]],
    ids=["the same", "noise", "by less than matters"],
)
def test_what_is_the_same_or_not_known_to_differ_or_by_too_little_passes(ratio: list[float]) -> None:
    evidence = measured(swept(), ratio)
    assert found("control-failed", evidence) == []
    assert "control-failed" in find_caveats(evidence).passed


def test_the_device_makes_the_difference_on_a_disk() -> None:
    assert found("control-failed", measured(swept(), [3.0, 3.1, 2.9, 3.0, 3.05], name="ext4")) == []


def test_two_workloads_that_are_equal_but_for_the_cache_are_a_pair_too() -> None:
    """What a workload does not say is the design's: cold where caches are dropped."""
    the_sweep = swept(workloads={"plain": READ, "again": {**READ, "cache": "warm"}})
    values = {"tmpfs/plain": [11.8e9, 12.5e9, 12.1e9, 12.4e9, 12.3e9], "tmpfs/again": WARM}
    assert "under plain and" in the_only("control-failed", build(the_sweep, values=values)).message


def test_workloads_that_differ_otherwise_or_leave_the_cache_as_it_is_are_no_pair() -> None:
    other = swept(workloads={"a": {**READ, "cache": "cold"}, "b": {**READ, "bs": "4KiB", "cache": "warm"}})
    as_is = swept(workloads={"r": {**READ, "cache": ["cold", "as_is"]}})
    for the_sweep in (other, as_is):
        assert "both cold and warm" in find_caveats(build(the_sweep)).not_checked["control-failed"]


def test_a_directory_in_memory_is_judged_as_well() -> None:
    the_sweep = swept(filesystems={"shm": {"type": "dir", "path": "/dev/shm"}})
    evidence = measured(the_sweep, [1.7, 1.6, 1.75, 1.65, 1.7], name="shm", levels={"m-shm": ()})
    assert find_caveats(evidence).not_checked["control-failed"], "nobody knows what holds it"
    facts = known(rights="root", memory_directories=["/dev/shm"])
    assert (
        the_only("control-failed", measured(the_sweep, [1.7, 1.6, 1.75, 1.65, 1.7], "shm", facts=facts)).subject
        == "shm"
    )


def test_without_memory_or_with_one_block_the_check_has_not_passed() -> None:
    on_disk = build(swept(filesystems={"ext4": EXT4}))
    once = build(swept(), values={f"tmpfs/r cache={state}": [1e9] for state in ("cold", "warm")})
    for evidence in (on_disk, once):
        assert "control-failed" in find_caveats(evidence).not_checked


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "most"), few_then_many((5, 2), (20, 5)))
def test_of_many_pairs_that_do_not_differ_hardly_any_run_is_told_to(runs: int, most: int) -> None:
    """5 % of runs of 20 pairs, where each pair by itself would be told in 5 %: by the correction for their number."""
    rng = np.random.default_rng(11)
    the_sweep = swept(workloads={f"r{i:02d}": {**BOTH, "count": 512 + i} for i in range(20)})
    told = 0
    for _ in range(runs):
        values = {
            cell.id: list(1e9 * np.exp(rng.normal(0, 0.1, size=5)))
            for cell in the_sweep.cells
            if cell.filesystem.name == "tmpfs"
        }
        told += bool(found("control-failed", build(the_sweep, values=values)))
    assert told <= most
