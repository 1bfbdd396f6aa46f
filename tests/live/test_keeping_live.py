"""A real run whose results cannot be kept any more, whose notebook's kernel is killed, and a box that floods us."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab import __main__
from mountlab.box import connection, leftovers, ssh
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import open_box
from mountlab.core.errors import FloodError, KeepError, MountlabError
from mountlab.core.model import Box
from mountlab.report.execute import execute
from mountlab.results import journal, paths
from mountlab.results.info import read_info
from mountlab.results.writer import RunWriter, going_on
from mountlab.runner import workflow
from ownbox import own_box
from processes import processes_with
from sweeps import DIR, TMPFS, as_is
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

WRITE = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 4}
DESIGN = {"repeats": 3, "warmup": 0, "drop_caches": False}


# --- the disk of this machine -----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB for results."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "results", str(path)], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


def fill(disk: Path) -> None:
    (disk / "filler").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize))


def after_two(monkeypatch: pytest.MonkeyPatch, sabotage: Callable[[], object]) -> None:
    """Do something behind the run's back once its second trial is kept."""
    record, count = RunWriter.record, 0

    def recorded(writer: RunWriter, *arguments: Any) -> None:
        nonlocal count
        record(writer, *arguments)
        count += 1
        if count == 2:
            sabotage()

    monkeypatch.setattr(RunWriter, "record", recorded)


def nothing_is_left() -> bool:
    with open_box(paths.load_box("local")) as connection:
        return leftovers.remove_leftovers(connection, dry_run=True) == []


@pytest.mark.requires_root
def test_a_full_disk_ends_the_run_cleans_the_box_and_resume_completes_it(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_box(tmp_path, monkeypatch)
    file = tmp_path / "x.yml"
    text = {"question": "Is it kept?", "filesystems": {"tmpfs": TMPFS}, "workloads": {"w": WRITE}, "design": DESIGN}
    file.write_text(yaml.safe_dump(text))
    run = workflow.run
    monkeypatch.setattr(workflow, "run", lambda resolved, **also: run(resolved, **{**also, "results": small_disk}))
    with monkeypatch.context() as patch:
        after_two(patch, lambda: fill(small_disk))
        assert __main__.main(["run", str(file), "--box", "local"]) == 2
    said = capsys.readouterr().err
    (path,) = small_disk.glob("2*")
    assert "error: what is measured cannot be written any more: the run stops, 2 trials are kept" in said
    assert "got:     No space left on device" in said
    assert f"next:    make room on the disk; then: mountlab resume {path}" in said
    assert nothing_is_left()
    assert read_info(path).status == "interrupted"
    (small_disk / "filler").unlink()
    workflow.resume(path)
    info = read_info(path)
    assert info.status == "complete"
    assert [trial.trial_id for trial in journal.read_journal(path)] == info.order
    assert [each.name for each in path.rglob(".*")] == [], "nothing half-written is left"
    assert nothing_is_left()


def test_a_results_directory_that_goes_away_and_comes_back(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a disk that is unplugged, or a network that is gone."""
    own_box(tmp_path, monkeypatch)
    away = tmp_path / "away"
    resolved = as_is(filesystems={"d": DIR}, workloads={"w": WRITE}, design=DESIGN)
    with monkeypatch.context() as patch:
        after_two(patch, lambda: results_dir.rename(away))
        with pytest.raises(KeepError) as caught:
            workflow.run(resolved, box="local", results=results_dir)
    assert caught.value.what == "what is measured cannot be written any more: the run stops, its directory is gone"
    assert "see whether the disk is still mounted; then: mountlab resume " in caught.value.next_step
    assert not results_dir.exists(), "nothing is made in its place"
    assert nothing_is_left()
    away.rename(results_dir)
    (path,) = results_dir.glob("2*")
    assert read_info(path).status == "interrupted"
    assert len(journal.read_journal(path)) == 2
    workflow.resume(path)
    assert [trial.trial_id for trial in journal.read_journal(path)] == read_info(path).order


@pytest.mark.requires_root
def test_a_disk_that_is_read_only_is_said_before_anything_is_measured(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    resolved = as_is(filesystems={"d": DIR}, workloads={"w": WRITE}, design=DESIGN)
    with pytest.raises(KeepError) as caught:
        workflow.run(resolved, box="local", results=small_disk / "results")
    assert caught.value.got == "Read-only file system"
    assert caught.value.next_step.startswith("the disk is mounted read-only")
    assert nothing_is_left()


# --- the kernel of a notebook -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_run_whose_kernel_is_killed_is_gone_on_with(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """papermill stops with an error; the journal has what was measured, and resume does the rest."""
    design = {"repeats": 60, "warmup": 0, "drop_caches": False}
    text = {"question": "Goes it on?", "filesystems": {"d": DIR}, "workloads": {"w": WRITE}, "design": design}
    monkeypatch.setenv("MOUNTLAB_RESULTS", str(results_dir))
    with ThreadPoolExecutor(1) as pool:
        notebook, executed = paths.NOTEBOOKS / "10_run_sweep.ipynb", tmp_path / "out.ipynb"
        running = pool.submit(execute, notebook, executed, {**text, "box": "local"})
        wait_until("a trial", lambda: any(map(journal.read_journal, results_dir.glob("2*"))), ended=running.done)
        (path,) = results_dir.glob("2*")
        holder = going_on(path).split()
        os.kill(int(holder[holder.index("(process") + 1]), signal.SIGKILL)
    problem = running.exception()
    assert isinstance(problem, MountlabError)
    assert "Kernel died" in problem.got
    before = journal.read_journal(path)
    assert read_info(path).status == "interrupted"
    assert 0 < len(before) < 60
    workflow.resume(path)
    after = journal.read_journal(path)
    assert after[: len(before)] == before, "what was measured stays as it was"
    assert [trial.trial_id for trial in after] == read_info(path).order
    assert nothing_is_left()


# --- a box that floods us ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def local() -> Iterator[BoxConnection]:
    with open_box(Box(name="local", host="", embedded="loopback")) as connection:
        yield connection


@pytest.mark.parametrize("to", ["", ">&2", "| tee /dev/stderr"], ids=["output", "error", "both"])
def test_a_flood_is_ended_and_does_not_fill_the_memory(
    to: str, local: BoxConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (connection, ssh):
        monkeypatch.setattr(module, "LARGEST_ANSWER", 8 << 20)
    size = str(20_000_000_000 + os.getpid())
    script = f"exec head -c {size} /dev/zero {to}"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FloodError) as caught:
        local.run(("sh", "-c", script), timeout_s=60)
    assert caught.value.got.startswith("more than 8 MiB from: sh -c 'exec head")
    assert caught.value.exit_code == 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kB"
    wait_until("the end of the box's side", lambda: not processes_with(size))
    assert local.run(("echo", "again")).text == "again\n"


def test_as_much_as_is_allowed_arrives_whole(local: BoxConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "LARGEST_ANSWER", 4 << 20)
    done = local.run(("sh", "-c", "head -c 2M /dev/zero; head -c 2M /dev/zero >&2"))
    assert (len(done.stdout), len(done.stderr)) == (2 << 20, 2 << 20)
