"""A batch on the real local box: killed in the middle and gone on with, and one page on what became of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.results import info
from processes import processes_with, soon
from sweeps import DIR

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_program("sshd"),
    pytest.mark.requires_program("fio"),
]

BLOCKS = 4
SWEEP = {
    "question": "Is memory <b>faster</b> than the disk?",
    "filesystems": {"disk": DIR, "shm": {**DIR, "path": "/dev/shm"}},
    "workloads": {"w": {"tool": "fio", "rw": "randwrite", "bs": "4KiB", "size": "4MiB", "runtime": "400ms",
                        "time_based": True}},
    "baseline": "disk",
    "design": {"repeats": BLOCKS, "warmup": 0},
}  # fmt: skip
BATCH = {
    "title": "Killed, stopped and done",
    "groups": {
        "long": {"sweep": "params/x.yml", "box": "local"},
        "impossible": {"sweep": "params/x.yml", "box": "local", "overrides": {"filesystems.disk.size": "900TiB",
                       "filesystems.disk.type": "tmpfs"}, "optional": True},
    },
}  # fmt: skip


def begin(directory: Path) -> subprocess.Popen[str]:
    """`mountlab batch` from a directory that is not the repository's."""
    environment = {**os.environ, "MOUNTLAB_RESULTS": str(directory / "results")}
    return subprocess.Popen(
        [sys.executable, "-m", "mountlab", "batch", "b.yml"],
        cwd=directory,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def trials(directory: Path) -> list[dict[str, Any]]:
    journals = (directory / "results").glob("2*/trials.jsonl")
    return [json.loads(line) for journal in journals for line in journal.read_text().split("\n")[:-1]]


def interrupt(directory: Path, number: signal.Signals, *, after: int) -> tuple[int, str]:
    """Begin or go on, send a signal once so many trials are in the journal; gives exit code and standard error."""
    running = begin(directory)
    assert soon(lambda: len(trials(directory)) >= after or running.poll() is not None, timeout_s=180)
    running.send_signal(number)
    _, said = running.communicate(timeout=180)
    return running.returncode, said


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "x.yml").write_text(yaml.safe_dump(SWEEP))
    (tmp_path / "b.yml").write_text(yaml.safe_dump(BATCH, sort_keys=False))
    return tmp_path


@pytest.mark.parametrize("stopped", [False, pytest.param(True, marks=pytest.mark.long)], ids=["killed", "stopped too"])
def test_killed_and_stopped_it_goes_on_with_the_run_that_it_began(directory: Path, stopped: bool) -> None:
    code, _ = interrupt(directory, signal.SIGKILL, after=2)
    assert code == -signal.SIGKILL
    assert soon(lambda: not processes_with(str(directory / "results")), timeout_s=60), "its kernel goes with it"
    before = trials(directory)
    if stopped:
        code, said = interrupt(directory, signal.SIGINT, after=len(before) + 2)
        assert (code, "mountlab batch --resume results/batch-b-" in said) == (130, True), said
    running = begin(directory)
    out, said = running.communicate(timeout=300)
    assert running.returncode == 0, said + out

    (run,) = (directory / "results").glob("2*")
    done = trials(directory)
    assert len(done) == 2 * BLOCKS == len({trial["trial_id"] for trial in done})
    assert done[: len(before)] == before, "what was measured before it was killed stands"
    assert {trial["status"] for trial in done} == {"ok"}
    (batch,) = (directory / "results").glob("batch-b-*")
    assert info.read_info(run)["batch"] == f"{batch.name}/01-x-local"
    _check_page(batch, run, out)


def _check_page(batch: Path, run: Path, out: str) -> None:
    states = {
        line["item"]: line["state"] for line in map(json.loads, (batch / "journal.jsonl").read_text().splitlines())
    }
    assert states == {"01-x-local": "done", "02-x-local": "left out"}
    page = (batch / "report.html").read_text()
    assert f'href="../{run.name}/report.html"' in page
    assert (run / "report.html").is_file()
    assert "Is memory &lt;b&gt;faster&lt;/b&gt; than the disk?" in page
    assert "too large" in page
    assert json.loads((batch / "entry.json").read_text())["runs"] == [run.name]
    assert re.search(r"Of 2 items: 1 done and 1 left out\.", out)
    assert re.search(r"left out: 02-x-local\n  too large", out)
