"""Subvolumes of btrfs that a killed trial leaves are removed with its directory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from disks import BTRFS_SIZE, Disks, btrfs, command
from mountlab.core.shell import script_text

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("mkfs.btrfs", "losetup")]

REMOVE = """
stuck() { echo "$1" >&2; exit 1; }
act=remove
ours tree "$1"
"""


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


def test_read_only_ones_and_those_inside_of_others_go_and_no_other_does(disks: Disks) -> None:
    """Defect: rm cannot empty a read-only subvolume, so that its directory stayed, and held space."""
    loop = disks.loop(size=BTRFS_SIZE)
    btrfs(loop)
    point = disks.mount(loop)
    for name in ("t0001", "theirs"):
        (point / name).mkdir()
        volume = point / name / "volume"
        command("btrfs", "subvolume", "create", volume)
        (volume / "file").write_text("x")
        command("btrfs", "subvolume", "snapshot", "-r", volume, volume / "inside")
    assert _remove(point / "t0001") == ""
    assert sorted(path.name for path in point.iterdir()) == ["theirs"]
    assert len(command("btrfs", "subvolume", "list", point).splitlines()) == 2


def _remove(directory: Path) -> str:
    argv = ["sh", "-c", script_text("ownership.sh") + REMOVE, "remove", str(directory)]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stderr
