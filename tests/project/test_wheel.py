"""The wheel: what is in it, and what is not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {"lib/mountlab": "mountlab"} | {
    name: f"mountlab/shipped/{name}"
    for name in ("notebooks", "params", "results/tour", "LICENSE", "environment.yml", "requirements.lock")
}
"""What is packed, to its place in the wheel."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working tree, built as `make env` does it: by the libraries of the lock, with no network."""
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = place.glob("*.whl")
    return path


def in_git(place: str) -> set[str]:
    """Files below a place that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", place]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).exists()}


@pytest.mark.slow
@pytest.mark.requires_program("git")
def test_wheel_holds_the_library_and_what_is_shipped_and_no_other_file(wheel: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is not a clone")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if PurePosixPath(name).parts[0] == "mountlab"}
        (other,) = {PurePosixPath(name).parts[0] for name in archive.namelist()} - {"mountlab"}
    expected = {place + name.removeprefix(source) for source, place in PLACES.items() for name in in_git(source)}
    assert packed == expected
    assert "mountlab/py.typed" in packed
    assert other.endswith(".dist-info")
