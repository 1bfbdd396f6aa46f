"""The wheel: what is in it, and that its types are used by others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
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


@pytest.mark.long
def test_plugin_is_checked_against_the_types_of_the_installed_library(wheel: Path, tmp_path: Path) -> None:
    """The example plug-in as its author checks it, without the clone: -S leaves out the path to lib."""
    installed, plugin = tmp_path / "installed", tmp_path / "plugin" / "mountlab_untar"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(installed)], check=True)
    shutil.copytree(ROOT / "docs" / "example-plugin" / "src" / "mountlab_untar", plugin)
    (plugin / "wrong.py").write_text("from mountlab.checks.base import Check\n\nWRONG: int = Check\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_path("purelib")])}
    command = [sys.executable, "-S", "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", "plugin"]
    checked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert checked.stdout.splitlines()[1:] == ["Found 1 error in 1 file (checked 7 source files)"]
    assert "wrong.py:3: error: Incompatible types in assignment" in checked.stdout
