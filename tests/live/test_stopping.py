"""Ctrl-C in the middle of a run: everything is undone, what was measured is kept, and resume goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from mountlab.box import care
from mountlab.box.embedded import open_box
from mountlab.results import paths
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from mountlab.runner import workflow
from sweeps import EXT4, TMPFS, sweep

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

LONG = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "16MiB", "time_based": True, "runtime": "1s"}


def start(results: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line in a process of its own, with another results directory."""
    return subprocess.Popen(
        [sys.executable, "-m", "mountlab", *arguments],
        env={**os.environ, "MOUNTLAB_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "waited for a minute"
        time.sleep(0.05)


def journal(results: Path) -> list[str]:
    return [trial.trial_id for path in results.glob("*") for trial in read_journal(path)]


def running_tool(results: Path) -> list[int]:
    """Processes of a trial of the runs in here: they carry MOUNTLAB_RUN."""
    found, marks = [], [f"MOUNTLAB_RUN={path.parent.name}\0".encode() for path in results.glob("*/run.json")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            if any(mark in environment for mark in marks) and b"fio" in (process / "comm").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    resolved = sweep(
        filesystems={"tmpfs": TMPFS, "ext4": EXT4}, workloads={"fio": LONG}, design={"repeats": 2, "drop_caches": False}
    )
    path = tmp_path / "long.yml"
    path.write_text(yaml.safe_dump({**resolved.parameters, "name": "long"}))
    return path


def stop(number: signal.Signals, sweep_file: Path, results: Path) -> Path:
    """Stop a run in its second trial, and check that it went away cleanly. Gives the run's directory."""
    process = start(results, "run", str(sweep_file))
    wait_for(lambda: len(journal(results)) == 1 and bool(running_tool(results)), process)
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "everything on the box is undone, and what was measured is kept" in stderr
    assert running_tool(results) == []
    with open_box(paths.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []
    (path,) = (file.parent for file in results.glob("*/run.json"))
    assert read_info(path)["status"] == "interrupted"
    return path


def test_an_end_by_sigterm_undoes_everything(sweep_file: Path, results_dir: Path) -> None:
    path = stop(signal.SIGTERM, sweep_file, results_dir)
    assert len(read_journal(path)) == 1


def test_after_ctrl_c_everything_is_undone_and_resume_completes_the_same_run(
    sweep_file: Path, results_dir: Path
) -> None:
    path = stop(signal.SIGINT, sweep_file, results_dir)
    resumed = start(results_dir, "resume", str(path))
    stdout, stderr = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, stderr
    info = json.loads((path / "run.json").read_text())
    assert info["status"] == "complete"
    assert journal(results_dir) == info["order"]
    assert "report.html" in stdout


def test_while_a_run_goes_on_a_second_one_and_box_clean_are_refused(sweep_file: Path, results_dir: Path) -> None:
    """Two runs on one box would measure each other, and cleaning would end the first."""
    process = start(results_dir, "run", str(sweep_file), "-p", "repeats=20")
    wait_for(lambda: any(results_dir.glob("*/run.json")) and bool(running_tool(results_dir)), process)
    (path,) = (file.parent for file in results_dir.glob("*/run.json"))
    on_this_box, to_this_run = f"run {path.name} is running on this box", "another process is writing to this run"
    for arguments, said in (
        (["run", str(sweep_file)], on_this_box),
        (["box", "clean", "local"], on_this_box),
        (["resume", str(path)], to_this_run),
    ):
        second = start(results_dir, *arguments)
        _, stderr = second.communicate(timeout=60)
        assert second.returncode == 3, arguments
        assert f"error: {said}" in stderr
        assert f"process {process.pid} on " in stderr
    assert list(results_dir.glob("*")) == [path], "a refused run leaves no directory"
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


def test_after_kill_9_resume_removes_what_was_left_and_completes_the_same_run(
    sweep_file: Path, results_dir: Path
) -> None:
    process = start(results_dir, "run", str(sweep_file))
    wait_for(lambda: len(journal(results_dir)) == 1 and bool(running_tool(results_dir)), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    (path,) = (file.parent for file in results_dir.glob("*/run.json"))
    with open_box(paths.load_box("local")) as connection:
        kinds = {left.kind for left in care.clean(connection, dry_run=True)}
    assert {"mount", "files", "root"} <= kinds

    workflow.resume(path)
    info = json.loads((path / "run.json").read_text())
    assert info["status"] == "complete"
    assert journal(results_dir) == info["order"]
    with open_box(paths.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []
