"""The targets of the Makefile that go to a box, by make itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from mountlab.core.places import SHIPPED
from mountlab.results import journal
from sweeps import DIR, as_is
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("make")]


def make(results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments],
        cwd=SHIPPED,
        env={**os.environ, "MOUNTLAB_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    file = tmp_path / "x.yml"
    file.write_text(yaml.safe_dump(as_is(filesystems={"disk": DIR}).parameters))
    return file


def test_plan_by_make(sweep_file: Path, results_dir: Path) -> None:
    """That the library understands the other targets, tests/project/test_makefile.py says."""
    plan = make(results_dir, "plan", f"SWEEP={sweep_file}", "BOX=local")
    assert plan.returncode == 0, plan.stderr
    assert "trials       2: 1 cells x 2 blocks, and 0 warm-up trials" in plan.stdout
    assert list(results_dir.iterdir()) == []


@pytest.mark.long
def test_run_report_and_resume_by_make(sweep_file: Path, results_dir: Path) -> None:
    run = make(results_dir, "run", f"SWEEP={sweep_file}", "BOX=local", "ARGS=-p repeats=3")
    assert run.returncode == 0, run.stderr
    (path,) = (file.parent for file in results_dir.glob("*/run.json"))
    assert len(journal.read_journal(path)) == 3
    page = path / "report.html"
    page.unlink()

    report = make(results_dir, "report", f"RUN={path}")
    assert report.returncode == 0, report.stderr
    assert page.is_file()

    resume = make(results_dir, "resume", f"RUN={path}")
    assert resume.returncode == 2
    assert "error: the run is complete" in resume.stderr
