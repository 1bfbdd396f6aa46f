"""The example package of the docs: built, installed beside Mountlab, checked, planned, and measured on a real box."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab.core.places import SHIPPED
from waiting import LIMIT_S

EXAMPLE = SHIPPED / "docs" / "example-plugin"
UV = Path(sys.executable).parent / "uv"

FEW = {"repeats": 1, "warmup": 0, "drop_caches": False, "workloads.unpack.files": [10, 20]}
RUN_ONLY = f"""
import pathlib, sys
from mountlab.results import paths
from mountlab.runner import workflow
workflow.run(paths.load_sweep(pathlib.Path(sys.argv[1]), {FEW!r}), box="local")
"""

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory into which it is installed: from a copy, by the builder of the environment, with no network."""
    source, target = (tmp_path_factory.mktemp("plug-in") / name for name in ("source", "site"))
    shutil.copytree(EXAMPLE, source)
    argv = [str(UV), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable]
    subprocess.run([*argv, "--target", str(target), str(source)], check=True, stdin=subprocess.DEVNULL)
    return target


def mountlab(installed: Path, results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(installed, results, "-m", "mountlab", *arguments)


def python(installed: Path, results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=SHIPPED,
        env={**os.environ, "PYTHONPATH": str(installed), "MOUNTLAB_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_the_example_package_is_built_and_its_parts_conform(installed: Path, results_dir: Path) -> None:
    done = mountlab(installed, results_dir, "conform", "mountlab-untar")
    assert done.returncode == 0, done.stdout
    assert "failed  " not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("mountlab-untar 0.1.0: ")


def test_its_sweep_is_read_where_it_is_installed_and_refused_elsewhere(installed: Path, results_dir: Path) -> None:
    sweep = str(EXAMPLE / "unpack.yml")
    assert mountlab(installed, results_dir, "sweep", "check", sweep).returncode == 0
    without = mountlab(results_dir, results_dir, "sweep", "check", sweep)
    assert without.returncode == 2
    assert "unknown tool" in without.stderr


@pytest.mark.box
@pytest.mark.requires_root
@pytest.mark.requires_program("sshd", "tar")
def test_a_run_with_its_tool_shows_its_check_and_its_plot(installed: Path, results_dir: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "unpack.yml"
    sweep.write_text(
        "question: How fast are archives unpacked?\n"
        "filesystems: {tmpfs: {type: tmpfs, size: 64MiB}}\n"
        "workloads: {unpack: {tool: untar, files: [200, 1000]}}\n"
        "design: {repeats: 2, warmup: 0, drop_caches: false}\n"
    )
    plan = mountlab(installed, results_dir, "plan", str(sweep), "--box", "local")
    assert plan.returncode == 0, plan.stderr
    assert "few-files" in plan.stdout
    assert "plug-ins     mountlab-untar 0.1.0 (tools: untar; checks: few-files; plots: time-per-file)" in plan.stdout
    assert "tar -C" in plan.stdout

    run = mountlab(installed, results_dir, "run", str(sweep), "--box", "local")
    assert run.returncode == 0, run.stderr
    (path,) = (file.parent for file in results_dir.glob("*/run.json"))
    info = json.loads((path / "run.json").read_text())
    assert info["plugins"] == {
        "mountlab-untar": {
            "version": "0.1.0", "tools": ["untar"], "checks": ["few-files"], "plots": ["time-per-file"],
        }
    }  # fmt: skip
    page = (path / "report.html").read_text()
    assert "Time per file" in page
    assert "Drawn by mountlab-untar 0.1.0." in page
    assert "the archive has 200 files" in page
    assert "Plug-in mountlab-untar" in page
    caveats = (path / "caveats.csv").read_text()
    assert "few-files" in caveats
    assert "plug-ins-differ" not in caveats

    alone = mountlab(results_dir, results_dir, "report", str(path))
    assert alone.returncode == 2
    assert "the run was measured with the plug-in mountlab-untar 0.1.0, which is not installed" in alone.stderr


@pytest.mark.box
@pytest.mark.requires_root
@pytest.mark.requires_program("sshd", "tar")
def test_its_sweep_measures_its_file_system(installed: Path, results_dir: Path) -> None:
    """Of few files, each of which takes a huge page, for which the kernel may have to move others first. The page was
    looked at above."""
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("the kernel has no transparent huge pages")
    run = python(installed, results_dir, "-c", RUN_ONLY, str(EXAMPLE / "unpack.yml"))
    assert run.returncode == 0, run.stderr
    (evidence,) = {line for file in results_dir.glob("*/raw/m*huge*/evidence.txt") for line in file.read_text().split()
                   if line.startswith("rw,") and "huge=" in line}  # fmt: skip
    assert "huge=always" in evidence
