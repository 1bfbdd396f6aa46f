"""image.sh: a file for a loop device, where there was nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from mountlab.core.shell import script_argv

SIZE = 1024 * 1024


def make(path: Path, size: int = SIZE, blocks: str = "sparse") -> subprocess.CompletedProcess[str]:
    argv = script_argv("image.sh", str(path), str(size), blocks)
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("blocks", "allocated"), [("sparse", 0), ("full", SIZE)])
def test_an_image_is_made_sparse_or_with_all_its_blocks(blocks: str, allocated: int, tmp_path: Path) -> None:
    path = tmp_path / "an image"
    assert make(path, blocks=blocks).returncode == 0
    assert path.stat().st_size == SIZE
    assert path.stat().st_blocks * 512 >= allocated
    assert (path.stat().st_blocks > 0) == (allocated > 0)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("blocks", ["sparse", "full"])
def test_a_file_that_is_there_is_refused_and_stays(blocks: str, tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    path.write_bytes(b"precious")
    done = make(path, blocks=blocks)
    assert done.returncode == 1
    assert done.stderr.startswith(f"refused: {path} is there already")
    assert path.read_bytes() == b"precious"


def test_no_link_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    link = tmp_path / "disk.img"
    link.symlink_to(elsewhere)
    assert make(link).stderr.startswith(f"refused: {link} is there already")
    assert not elsewhere.exists()
    directory = tmp_path / "directory"
    directory.symlink_to(tmp_path)
    assert make(directory / "new.img").stderr.startswith(f"refused: {directory} is a symbolic link")
    assert not (tmp_path / "new.img").exists()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A shell that must not overwrite still opens what is there and no regular file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert make(pipe).stderr.startswith(f"refused: {pipe} is there already")
    assert make(tmp_path / "absent" / "disk.img").stderr.startswith("refused: ")


@pytest.mark.parametrize("blocks", ["sparse", "full"])
def test_an_image_that_does_not_fit_leaves_nothing(blocks: str, tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    done = make(path, size=2**63 - 1, blocks=blocks)
    assert done.returncode == 1
    assert f"no image of {2**63 - 1} bytes, {blocks}, can be made at {path}" in done.stderr
    assert not done.stderr.startswith("refused: ")
    assert not path.exists()
