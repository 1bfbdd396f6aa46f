"""What memory files take, on this machine: files of a known size, on everything that lives in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab.box import care
from mountlab.box.embedded import open_box
from mountlab.core.units import MIB
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import EXT4, sweep

pytestmark = [
    pytest.mark.box,
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


def test_files_take_their_size_and_a_zram_device_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)
    resolved = sweep(filesystems={**MEMORY, "disk": EXT4}, workloads={"w": MAPPED}, design={"repeats": 3, "warmup": 0})
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    assert {*run.trials["reason"]} == {""}
    found = {use.cell.filesystem.name: use for use in run.memory}
    assert set(found) == set(MEMORY), "nothing is said of a disk"
    assert {name: use.files for name, use in found.items()} == dict.fromkeys(MEMORY, SIZE)
    for name, use in found.items():
        assert abs(use.taken - SIZE) < NEAR, name
        assert abs(use.kept - (SIZE if name == "zram" else 0)) < NEAR, name
    assert {name for name, use in found.items() if use.huge_pages} == {"hugetlbfs"}
    with open_box(paths.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []
