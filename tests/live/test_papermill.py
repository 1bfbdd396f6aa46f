"""papermill with no Makefile: a sweep file is a parameter file of the notebook, and unknown keys are errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import yaml
from mountlab.core.errors import MountlabError
from mountlab.report.execute import execute
from mountlab.results import paths, store
from sweeps import DD_WRITE, DIR
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

NOTEBOOK = paths.NOTEBOOKS / "10_run_sweep.ipynb"
SWEEP = {
    "question": "Does papermill do the same as make run?",
    "filesystems": {"disk": DIR, "shm": {**DIR, "path": "/dev/shm"}},
    "workloads": {"dd-write": DD_WRITE},
    "design": {"repeats": 2, "warmup": 0, "drop_caches": False},
    "baseline": "disk",
}


def papermill(directory: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the notebook from a directory that is not the repository's."""
    out = directory / "out.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "papermill", str(NOTEBOOK), str(out), *arguments, "--no-progress-bar", "-k", "python3"],
        cwd=directory,
        env={**os.environ, "MOUNTLAB_RESULTS": str(directory / "results")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done, out


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the kernels of this process put runs: one server for them all forks each."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("results")
        patch.setenv("MOUNTLAB_RESULTS", str(path))
        yield path


def run_by_papermill(directory: Path, box: str) -> tuple[Path, str]:
    """Run the sweep file on a box, with another number of repeats, and check what comes of it. Gives the directory of
    the run, and all that papermill wrote beside it."""
    (directory / "results").mkdir()
    file = directory / "x.yml"
    file.write_text(yaml.safe_dump(SWEEP))
    done, out = papermill(directory, "-f", str(file), "-p", "box", box, "-y", "overrides: {repeats: 3}")
    assert done.returncode == 0, done.stderr
    (path,) = (file.parent for file in (directory / "results").glob("*/run.json"))
    run = store.load_run(path)
    assert (run.sweep.name, run.sweep.design.repeats) == ("x", 3)
    assert len(run.trials) == 6
    assert (path / "report.html").stat().st_size > 10_000
    text = nbformat.writes(nbformat.read(out, as_version=4))
    compared = r"Ratios to disk with 95\W% intervals\. shm, dd-write: \S+ \[[^],]+, [^],]+\] \w+"
    assert re.search(compared, text), "in one form, whichever of the two this machine shows to be faster"
    return path, text + done.stdout + done.stderr


@pytest.mark.long
def test_a_parameter_that_nobody_knows_is_an_error(tmp_path: Path, results: Path) -> None:
    """papermill itself only warns."""
    given = {**SWEEP, "repeets": 3}
    with pytest.raises(MountlabError) as caught:
        execute(NOTEBOOK, tmp_path / "executed" / "out.ipynb", given)
    assert "unknown parameter" in caught.value.got
    assert "'repeets'" in caught.value.got
    assert list(results.iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("results")
def test_a_box_is_checked_by_its_notebook(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "check.ipynb"
    execute(paths.NOTEBOOKS / "05_check_box.ipynb", executed, {"box": "local", "pause": 0.5, "rounds": 5})
    text = executed.read_text()
    assert "measured here" in text
    assert "5 rounds of equal work took" in text
    assert re.search(r"In \d\.\d s other programs ran on the processors for", text)
