"""What memory files take, on this machine: files of a known size, on everything that lives in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from mountlab.analysis.memory_use import Use
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.core.units import MIB
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import EXT4, as_is

pytestmark = [
    pytest.mark.box,
    pytest.mark.machine,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd"),
    pytest.mark.requires_program("fio"),
]

SIZE = 64 * MIB
NEAR = 8 * MIB
"""What a machine with other work may change of its memory in the second that a trial takes: seen was 1.5 MiB."""
MEMORY = {
    "tmpfs": {"type": "tmpfs", "size": "128MiB"}, "ramfs": {"type": "ramfs", "size": "128MiB"},
    "shmfs": {"type": "shmfs", "size": "128MiB"}, "hugetlbfs": {"type": "hugetlbfs", "size": "128MiB"},
    "zram": {"type": "ext4", "zram": "256MiB"},
}  # fmt: skip
MAPPED = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB", "ioengine": "mmap", "end_fsync": True}


def far_off(found: Mapping[str, Use]) -> dict[str, tuple[float, float]]:
    """What is taken and kept where that is not near to what it should be."""
    kept = {name: SIZE if name == "zram" else 0 for name in found}
    return {
        name: (use.taken, use.kept)
        for name, use in found.items()
        if abs(use.taken - SIZE) >= NEAR or abs(use.kept - kept[name]) >= NEAR
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> store.Run:
    own_box(tmp_path, monkeypatch)
    filesystems = {**MEMORY, "disk": EXT4}
    resolved = as_is(filesystems=filesystems, workloads={"w": MAPPED}, design={"repeats": 1, "warmup": 0})
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []
    return run


def uses(run: store.Run) -> dict[str, Use]:
    return {use.cell.filesystem.name: use for use in run.memory}


@pytest.mark.long
def test_the_size_of_files_is_read_on_all_that_lives_in_memory_and_on_no_disk(run: store.Run) -> None:
    """What they take of it is judged by recorded counters, in analysis/test_memory_use.py."""
    assert {*run.trials["reason"]} == {""}
    assert {name: use.files for name, use in uses(run).items()} == dict.fromkeys(MEMORY, SIZE)
    assert {name for name, use in uses(run).items() if use.huge_pages} == {"hugetlbfs"}


@pytest.mark.soak
def test_files_take_their_size_and_a_zram_device_keeps_it(run: store.Run) -> None:
    assert far_off(uses(run)) == {}
