"""A finished run goes on, for real: on tmpfs and ext4, more blocks, a crash, a new file system, a trial left out."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.core.errors import Interrupted
from mountlab.report import execute, kernels
from mountlab.results import paths, store
from mountlab.results.exclusion import exclude
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from mountlab.runner import workflow
from mountlab.runner.extend import extend
from mountlab.sweep.sweep_file import resolve
from ownbox import own_box
from sweeps import DD_WRITE, EXT4, TMPFS
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd", "mkfs.ext4", "dd")]

SWEEP = {
    "name": "go-on",
    "question": "Is tmpfs faster?",
    "filesystems": {"ext4": EXT4, "tmpfs": TMPFS},
    "workloads": {"w": DD_WRITE},
    "baseline": "ext4",
    "expectation": "it is",
    "design": {"repeats": 3, "warmup": 1, "seed": 7, "trial_timeout": "60s", "shortest_trial": "0s",
               "drop_caches": False},
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that every test goes on with: each with a copy of its own."""
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        return workflow.run(resolve(SWEEP, where="tests"), results=place / "results")


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_box(tmp_path, monkeypatch)
    return shutil.copytree(finished, tmp_path / "results" / finished.name)


def ran(run: Path) -> list[tuple[int, str]]:
    return [(trial.block, trial.cell) for trial in read_journal(run)]


@pytest.mark.long
def test_a_run_is_extended_by_blocks_and_a_file_system_and_a_trial_is_left_out(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (run / "trials.jsonl").read_bytes()
    assert main(["extend", str(run), "-p", "repeats=5", "--plan"]) == 0
    assert "8 trials" in (said := capsys.readouterr().out) or "6: 2 cells x 2 blocks" in said
    assert (run / "trials.jsonl").read_bytes() == first
    with monkeypatch.context() as patch:  # one page is enough, at the end
        patch.setattr(kernels, "prepare", lambda: None)
        patch.setattr(execute, "write_report", lambda path: path / "report.html")
        assert main(["extend", str(run), "-p", "repeats=5"]) == 0
        assert "Corrected for 2 looks." in capsys.readouterr().out
        assert main(["extend", str(run), "-p", "filesystems.ramfs={type: ramfs, size: 64MiB}"]) == 0
        assert "Corrected for 3 looks." in capsys.readouterr().out
    assert (run / "trials.jsonl").read_bytes().startswith(first)
    whole = store.load_run(run)
    assert set(whole.trials["status"]) == {"ok"}
    ratios = {each.candidate: each.n for each in whole.comparisons}
    assert ratios == {"tmpfs": 8, "ramfs": 3}, "new cells in the blocks that hold both"
    left_out = next(trial.trial_id for trial in read_journal(run) if trial.cell == "tmpfs/w" and not trial.warmup)
    after = exclude(run, left_out, reason="a test wants it")
    assert {each.candidate: each.n for each in after.comparisons} == {"tmpfs": 7, "ramfs": 3}
    page = execute.write_report(run).read_text()
    for text in (
        "The number of blocks was fixed beforehand: 3.",
        "with 2 blocks (4 to 5; looks: 2)",
        "with 3 blocks (6 to 8; looks: 3), which hold the new cells ramfs/w",
        "corrected for 3 looks",
        "a test wants it",
        "Ratios without the excluded trials, and with them",
    ):
        assert text in page, text
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


@pytest.mark.long
def test_an_extension_that_is_interrupted_is_resumed(run: Path) -> None:
    count = len(read_journal(run))

    def stop() -> None:
        wait_until("three more trials", lambda: len(read_journal(run)) >= count + 3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(Interrupted, match="resume"):
        extend(run, repeats=12)
    assert read_info(run).status == "interrupted"
    assert count + 3 <= len(read_journal(run)) < count + 20
    workflow.resume(run)
    assert read_info(run).status == "complete"
    found = ran(run)
    assert len(found) == len(set(found)) == 2 * (1 + 3) + 2 * (1 + 9)


@pytest.mark.long
def test_another_kernel_than_before_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run / "run.json").read_bytes()
    real = workflow.gather

    def other(*words: object) -> dict[str, object]:
        return {**real(*words), "kernel": "2.6.32"}  # type: ignore[arg-type]

    monkeypatch.setattr(workflow, "gather", other)
    assert main(["extend", str(run), "-p", "repeats=5"]) == 2
    assert (run / "run.json").read_bytes() == before
