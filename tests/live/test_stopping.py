"""Ctrl-C in the middle of a run: everything is undone, all measurements are kept, and resume goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.scenes import Control, control, scene
from mountlab import __main__
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.report import execute, kernels
from mountlab.results import paths
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from mountlab.runner import workflow
from sweeps import EXT4, TMPFS
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    """A process of Mountlab in which a command is typed, and which is stopped. We see the same box as it does."""
    with scene() as place, control(place) as machine:
        monkeypatch.setattr(paths, "PARAMS", place.params)
        monkeypatch.setitem(workflow.run.__kwdefaults__, "results", place.results)
        yield machine


@pytest.fixture
def sweep_file(host: Control) -> Path:
    keys = {
        "filesystems": {"tmpfs": TMPFS, "ext4": EXT4},
        "workloads": {"slow": host.scene.seen(1.0)},
        "design": {"repeats": 2, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
    }
    return host.scene.put_sweep(**keys)


def journal(results: Path) -> list[str]:
    return [trial.trial_id for path in results.glob("*") for trial in read_journal(path)]


def running_tool(results: Path) -> list[int]:
    """Processes of a trial of the runs in here: they carry MOUNTLAB_RUN."""
    found, marks = [], [f"MOUNTLAB_RUN={path.parent.name}\0".encode() for path in results.glob("*/run.json")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            if any(mark in environment for mark in marks) and b"sleep" in (process / "comm").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def in_the_second_trial(host: Control, sweep_file: Path) -> int:
    """A run whose second trial is at work, or on a busy machine the third; the number of its process."""
    number, results = host.type("run", str(sweep_file)), host.scene.results
    at_work = lambda: journal(results) and running_tool(results)  # noqa: E731
    wait_until("the second trial", at_work, ended=lambda: host.ended(0) and host.said())
    return number


def stop(number: signal.Signals, sweep_file: Path, host: Control) -> Path:
    """Stop a run in its second trial, and check that it went away cleanly. Gives the run's directory."""
    os.kill(in_the_second_trial(host, sweep_file), number)
    assert host.wait() == 130
    assert "everything on the box is undone, and all measurements are kept" in host.said()
    assert running_tool(host.scene.results) == []
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []
    (path,) = host.scene.runs
    assert read_info(path).status == "interrupted"
    return path


@pytest.mark.long
def test_an_end_by_sigterm_undoes_everything(sweep_file: Path, host: Control) -> None:
    path = stop(signal.SIGTERM, sweep_file, host)
    done = [each.trial_id for each in read_journal(path)]
    assert 0 < len(done) < 4
    assert done == read_info(path).order[: len(done)]


def test_after_ctrl_c_everything_is_undone_and_resume_completes_the_same_run(
    sweep_file: Path, host: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stop(signal.SIGINT, sweep_file, host)
    reported: list[Path] = []
    monkeypatch.setattr(kernels, "prepare", lambda: None)
    monkeypatch.setattr(execute, "write_report", lambda run: reported.append(run) or run / "report.html")
    assert __main__.main(["resume", str(path)]) == 0
    assert reported == [path], "a page takes six seconds, and test_papermill has one"
    info = json.loads((path / "run.json").read_text())
    assert info["status"] == "complete"
    assert journal(host.scene.results) == info["order"]
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {path}/report.html"


def test_while_a_run_goes_on_a_second_one_and_box_clean_are_refused(
    sweep_file: Path, host: Control, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs on one box would measure each other, and cleaning would end the first."""
    results = host.scene.results
    first = host.type("run", str(sweep_file), "-p", "repeats=20")
    at_work = lambda: host.scene.runs and running_tool(results)  # noqa: E731
    wait_until("a trial", at_work, ended=lambda: host.ended(0) and host.said())
    (path,) = host.scene.runs
    on_this_box, to_this_run = f"run {path.name} is running on this box", "another process is writing to this run"
    for arguments, said in (
        (["run", str(sweep_file)], on_this_box),
        (["box", "clean", "local"], on_this_box),
        (["resume", str(path)], to_this_run),
    ):
        assert __main__.main(arguments) == 3, arguments
        stderr = capsys.readouterr().err
        assert f"error: {said}" in stderr
        assert f"process {first} on " in stderr
    assert list(results.glob("*")) == [path], "a refused run leaves no directory"
    os.kill(first, signal.SIGINT)
    assert host.wait() == 130


@pytest.mark.long
def test_after_kill_9_resume_removes_what_was_left_and_completes_the_same_run(sweep_file: Path, host: Control) -> None:
    """faults/test_kill9.py kills runs in `make test`, too."""
    os.kill(in_the_second_trial(host, sweep_file), signal.SIGKILL)
    host.wait()
    (path,) = host.scene.runs
    with open_box(paths.load_box("local")) as connection:
        kinds = {left.kind for left in leftovers.remove_leftovers(connection, dry_run=True)}
    assert {"mount", "files", "root"} <= kinds

    workflow.resume(path)
    info = json.loads((path / "run.json").read_text())
    assert info["status"] == "complete"
    assert journal(host.scene.results) == info["order"]
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []
