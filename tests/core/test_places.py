"""Where an installed Mountlab looks for sweeps, boxes, notebooks and runs, and where a clone does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from mountlab.core import places
from rows import every_row

SHOWN = """
from mountlab.core import places
from mountlab.results import find, paths, writer
for name in ("own", "ramdisk"):
    print(name, paths.sweep_path(name))
print("box", paths.params_file(paths.BOXES, "local"))
print("tour", find.run_path("tour"))
print("notebook", paths.notebook_path("20_report"), paths.notebook_path("30_inspect_trials"))
print("results", paths.RESULTS)
print("names", len(set(paths.sweep_names()) & {"own", "ramdisk"}))
print("commit", writer.git_commit() is not None)
"""


@every_row(
    ("made", "begun_at", "found"),
    [
        (("params/sweeps",), ".", "."),
        (("params/boxes", "notebooks"), "notebooks", "."),
        (("params/sweeps", "deep/er"), "deep/er", "."),
        (("params/sweeps", "inner/params/boxes"), "inner", "inner"),
        (("params/batches", "results"), ".", None),
        ((), ".", None),
    ],
)
def test_a_workspace_is_the_nearest_directory_above_with_sweeps_or_boxes(
    made: tuple[str, ...], begun_at: str, found: str | None, tmp_path: Path
) -> None:
    root = Path(mkdtemp(dir=tmp_path))
    for name in (*made, begun_at):
        (root / name).mkdir(parents=True, exist_ok=True)
    assert places.workspace_above(root / begun_at) == (None if found is None else root / found)


def test_a_clone_is_a_workspace_and_ships_what_it_holds() -> None:
    clone = Path(__file__).parents[2]
    assert not places.INSTALLED
    assert clone == places.SHIPPED


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as a wheel holds it: what comes with Mountlab is inside."""
    site, clone = tmp_path_factory.mktemp("site"), Path(__file__).parents[2]
    shutil.copytree(clone / "lib" / "mountlab", site / "mountlab", ignore=shutil.ignore_patterns("__pycache__"))
    shipped = site / "mountlab" / "shipped"
    (shipped / "results").mkdir(parents=True)
    for name in ("notebooks", "params", "results/tour", "LICENSE"):
        (shipped / name).symlink_to(clone / name)
    return site


def shown(site: Path, directory: Path) -> dict[str, str]:
    variables = {**os.environ, "PYTHONPATH": str(site)}
    for name in ("MOUNTLAB_PARAMS", "MOUNTLAB_RESULTS"):
        variables.pop(name, None)
    argv = [sys.executable, "-c", SHOWN]
    said = subprocess.run(argv, check=False, cwd=directory, env=variables, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return dict(line.split(" ", 1) for line in said.stdout.splitlines())


@pytest.mark.slow
def test_an_installed_package_takes_what_the_workspace_has_and_else_what_comes_with_it(
    site: Path, tmp_path: Path
) -> None:
    for name in ("params/sweeps", "params/boxes", "notebooks", "below"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("params/sweeps/own.yml", "params/boxes/local.yml", "notebooks/20_report.ipynb"):
        (tmp_path / name).touch()
    shipped = site / "mountlab" / "shipped"
    assert shown(site, tmp_path / "below") == {
        "own": f"{tmp_path}/params/sweeps/own.yml",
        "ramdisk": f"{shipped}/params/sweeps/ramdisk.yml",
        "box": f"{tmp_path}/params/boxes/local.yml",
        "tour": f"{shipped}/results/tour",
        "notebook": f"{tmp_path}/notebooks/20_report.ipynb {shipped}/notebooks/30_inspect_trials.ipynb",
        "results": f"{tmp_path}/results",
        "names": "2",
        "commit": "False",
    }


@pytest.mark.slow
def test_an_installed_package_outside_of_a_workspace_keeps_results_in_the_current_directory(
    site: Path, tmp_path: Path
) -> None:
    seen = shown(site, tmp_path)
    assert seen["results"] == f"{tmp_path}/results"
    assert seen["box"] == f"{site}/mountlab/shipped/params/boxes/local.yml"
    assert seen["own"] == f"{tmp_path}/params/sweeps/own.yml"
    assert not list(tmp_path.iterdir())
