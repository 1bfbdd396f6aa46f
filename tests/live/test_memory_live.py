"""What memory files take, on this machine: files of a known size, on everything that lives in memory."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from mountlab.analysis.memory_use import Use
from mountlab.box import care
from mountlab.box.embedded import open_box
from mountlab.core.units import MIB
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import EXT4, as_is
from whole_machine import only_session

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
REPEATS = (1, 3, 3)
"""Of each try: on a quiet machine one trial of each is enough."""
MAPPED = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB", "ioengine": "mmap", "end_fsync": True}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with only_session():
        yield


def far_off(found: Mapping[str, Use]) -> dict[str, tuple[float, float]]:
    """What is taken and kept where that is not near to what it should be."""
    kept = {name: SIZE if name == "zram" else 0 for name in found}
    return {
        name: (use.taken, use.kept)
        for name, use in found.items()
        if abs(use.taken - SIZE) >= NEAR or abs(use.kept - kept[name]) >= NEAR
    }


def moved_by_others() -> int:
    """How far the available memory goes up and down in ten seconds in which this test does nothing."""
    seen = []
    for _ in range(40):
        (kib,) = re.findall(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        seen.append(int(kib) * 1024)
        time.sleep(0.25)
    return max(seen) - min(seen)


@pytest.mark.long
def test_files_take_their_size_and_a_zram_device_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)
    filesystems = {**MEMORY, "disk": EXT4}
    for repeats in REPEATS:
        design = {"repeats": repeats, "warmup": 0, "drop_caches": False}
        resolved = as_is(filesystems=filesystems, workloads={"w": MAPPED}, design=design)
        run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
        assert {*run.trials["reason"]} == {""}
        found = {use.cell.filesystem.name: use for use in run.memory}
        assert set(found) == set(MEMORY), "nothing is said of a disk"
        assert {name: use.files for name, use in found.items()} == dict.fromkeys(MEMORY, SIZE)
        assert {name for name, use in found.items() if use.huge_pages} == {"hugetlbfs"}
        if not (far := far_off(found)):
            break
        filesystems = {name: filesystems[name] for name in MEMORY}
    else:
        moved = next((each for each in (moved_by_others() for _ in range(6)) if each > NEAR), 0)
        assert moved > NEAR, far
        pytest.skip(f"others change the memory of this machine by {moved / MIB:.0f} MiB in a few seconds")
    with open_box(paths.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []
