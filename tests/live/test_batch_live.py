"""A batch on the real local box: killed in the middle and gone on with, and one page on what became of it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from faults.scenes import Control, Scene, control, scene
from mountlab.results import info
from processes import processes_with
from sweeps import DIR
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

BEGIN = ("batch", "b.yml")
BLOCKS = 4
WHY = "too large" if os.geteuid() == 0 else "the box does not let us mount"
SWEEP = {
    "question": "Is memory <b>faster</b> than the disk?",
    "filesystems": {"disk": DIR, "shm": {**DIR, "path": "/dev/shm"}},
    "workloads": {"w": {
        "tool": "command", "argv": "sh -c 'sleep 0.4; echo 1' w {directory}", "space": "1MiB",
        "metrics": {"elapsed": {"pattern": r"^(\d+)$", "unit": "s"}},
    }},
    "baseline": "disk",
    "design": {"repeats": BLOCKS, "warmup": 0, "drop_caches": False},
}  # fmt: skip
BATCH = {
    "title": "Killed, stopped and done",
    "groups": {
        "long": {"sweep": "params/x.yml", "box": "local"},
        "impossible": {"sweep": "params/x.yml", "box": "local", "overrides": {"filesystems.disk.size": "900TiB",
                       "filesystems.disk.type": "tmpfs"}, "optional": True},
    },
}  # fmt: skip


def interrupt(host: Control, number: signal.Signals, *, after: int) -> int:
    """Begin or go on, send a signal once so many trials are in the journal; gives the exit status."""
    running = host.type(*BEGIN, directory=host.scene.home)
    wait_until(f"{after} trials", lambda: len(trials(host.scene)) >= after, ended=lambda: host.ended(0) and host.said())
    os.kill(running, number)
    return host.wait()


def trials(place: Scene) -> list[dict[str, Any]]:
    journals = place.results.glob("2*/trials.jsonl")
    return [json.loads(line) for journal in journals for line in journal.read_text().split("\n")[:-1]]


@pytest.fixture
def host() -> Iterator[Control]:
    with scene() as place, control(place) as machine:
        (place.params / "x.yml").write_text(yaml.safe_dump(SWEEP))
        (place.home / "b.yml").write_text(yaml.safe_dump(BATCH, sort_keys=False))
        yield machine


@pytest.mark.long
def test_killed_and_stopped_it_goes_on_with_the_run_that_it_began(host: Control) -> None:
    place = host.scene
    assert interrupt(host, signal.SIGKILL, after=2) == -signal.SIGKILL
    wait_until("the end of its kernel", lambda: not processes_with(str(place.results)))
    before = trials(place)
    assert interrupt(host, signal.SIGINT, after=len(before) + 2) == 130
    assert "mountlab batch --resume results/batch-b-" in host.said()
    host.type(*BEGIN, directory=place.home)
    assert host.wait() == 0, host.said()

    (run,) = place.results.glob("2*")
    done = trials(place)
    assert len(done) == 2 * BLOCKS == len({trial["trial_id"] for trial in done})
    assert done[: len(before)] == before, "what was measured before it was killed stands"
    assert {trial["status"] for trial in done} == {"ok"}
    (batch,) = place.results.glob("batch-b-*")
    assert info.read_info(run).batch == f"{batch.name}/01-x-local"
    _check_page(batch, run, host.said())


def _check_page(batch: Path, run: Path, out: str) -> None:
    states = {
        line["item"]: line["state"] for line in map(json.loads, (batch / "journal.jsonl").read_text().splitlines())
    }
    assert states == {"01-x-local": "done", "02-x-local": "left out"}
    page = (batch / "report.html").read_text()
    assert f'href="../{run.name}/report.html"' in page
    assert (run / "report.html").is_file()
    assert "Is memory &lt;b&gt;faster&lt;/b&gt; than the disk?" in page
    assert WHY in page
    assert json.loads((batch / "entry.json").read_text())["runs"] == [run.name]
    assert re.search(r"Of 2 items: 1 done and 1 left out;", out)
    assert re.search(rf"left out: 02-x-local\n  {WHY}", out)
