"""Batches on several boxes at the same time: one is lost, one hangs, a worker is killed, and nothing is done twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mountlab.results import info
from rack import Rack, rack, scheduler, worker
from sweeps import DIR
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.faults, pytest.mark.requires_program("sshd")]

BOXES = ("db1", "db2", "db3", "db4")
LOST, HANGS = "db3", "db4"
"""For what takes ten seconds where nobody else is at work."""
BLOCKS = 5
SWEEP = {
    "question": "Is memory faster than the disk?",
    "filesystems": {"disk": DIR, "shm": {**DIR, "path": "/dev/shm"}},
    "workloads": {"w": {
        "tool": "command", "argv": "sh -c 'sleep 0.15; echo 1' w {directory}", "space": "1MiB",
        "metrics": {"elapsed": {"pattern": r"^(\d+)$", "unit": "s"}},
    }},
    "baseline": "disk",
    "design": {"repeats": BLOCKS, "warmup": 0, "drop_caches": False},
}  # fmt: skip
EACH = {"notebook": "measures", "sweep": "x", "box": list(BOXES)}
ANY = {**EACH, "box": "label:rack", "overrides": {"repeats": 2}}
CELLS = (
    "sweep_file: str = None  # a sweep\nbox: str = None  # a box\noverrides: dict = None  # changes of the sweep",
    "import pathlib, mountlab\nfrom mountlab.results import paths\n"
    "mountlab.run(paths.load_sweep(pathlib.Path(sweep_file), overrides or {}), box=box)",
)
"""A notebook that measures and makes no report, which would be most of what these tests take."""


@pytest.fixture
def place() -> Iterator[Rack]:
    """Four boxes with one label. Short names: an ssh key and a socket have theirs below it."""
    home = Path(tempfile.mkdtemp(prefix="mountlab-rack-"))
    try:
        with rack(home, {name: _keys(name) for name in BOXES}) as made:
            made.put_sweep("x", SWEEP)
            made.put_notebook("measures", *CELLS)
            yield made
            for box in made.sshds:
                made.answer(box)
            wait_until("a rack with nothing left", lambda: not left(made))
    finally:
        shutil.rmtree(home)


def _keys(box: str) -> dict[str, str]:
    """The one that is lost is given up soon; the one that hangs comes back in time."""
    return {"label": "rack", "grace": "10s" if box == LOST else "5min"}


def left(place: Rack) -> list[Path]:
    """What the boxes still hold: after the grace time nothing."""
    return [root for name in BOXES if (root := Path(f"/dev/shm/mountlab-{place.home.name}-{name}")).exists()]


def trials(place: Rack, box: str) -> list[dict[str, Any]]:
    journals = place.results.glob(f"2*-{box}-*/trials.jsonl")
    return [json.loads(line) for journal in journals for line in journal.read_text().split("\n")[:-1]]


def outcomes(place: Rack) -> list[dict[str, Any]]:
    journals = place.results.glob("batch-b-*/journal.jsonl")
    return [json.loads(line) for journal in journals for line in journal.read_text().splitlines()]


def ended(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, said = running.communicate(timeout=LIMIT_S)
    return running.returncode, out, said


def strike(place: Rack, waiting: dict[str, Callable[[str], None]]) -> dict[str, Callable[[str], None]]:
    """What is to befall which box befalls it as soon as it is in the middle of its run; what still waits."""
    for box in [box for box in waiting if len(trials(place, box)) >= 2]:
        waiting.pop(box)(box)
    return waiting


@pytest.mark.long
def test_a_lost_box_and_one_that_hangs_delay_no_other(place: Rack) -> None:
    file = place.put_batch({"title": "Four", "groups": {"each": EACH, "any": ANY}})
    running = place.begin("batch", str(file))
    struck = {LOST: place.lose, HANGS: place.hang}
    wait_until("both boxes in the middle", lambda: not strike(place, struck), ended=lambda: running.poll() is not None)
    wait_until("four outcomes", lambda: len(outcomes(place)) == 4, ended=lambda: running.poll() is not None)
    assert len(trials(place, HANGS)) < 2 * BLOCKS, "all others are through with it, and this one still hangs"
    place.answer(HANGS)
    code, out, said = ended(running)
    assert code == 1, said + out

    found = {each["item"]: each for each in outcomes(place)}
    assert {item: each["state"] for item, each in found.items()} == {
        "01-x-db1": "done",
        "02-x-db2": "done",
        "03-x-db3": "failed",
        "04-x-db4": "done",
        "05-x-label_rack": "done",
    }
    assert found["05-x-label_rack"]["box"] in ("db1", "db2")
    assert found["03-x-db3"]["error"] == "BoxLost"
    assert "when the box is back" in found["03-x-db3"]["reason"]
    for box in ("db1", "db2", "db4"):
        _check_whole(place, box)
    assert "Of 5 items: 4 done and 1 failed;" in out
    (page,) = place.results.glob("batch-b-*/report.html")
    assert page.read_text().count("done on db") == 1


def _check_whole(place: Rack, box: str) -> None:
    (run,) = runs(place, box, BLOCKS)
    counted = Counter(trial["trial_id"] for trial in run)
    assert (len(counted), set(counted.values())) == (2 * BLOCKS, {1}), "one run, each trial once"
    assert {trial["status"] for trial in run} == {"ok"}


def runs(place: Rack, box: str, blocks: int) -> list[list[dict[str, Any]]]:
    """The journals of the runs on a box that were to have so many blocks."""
    found = [path for path in place.results.glob(f"2*-{box}-*") if len(info.read_info(path).order) == 2 * blocks]
    return [[json.loads(line) for line in (path / "trials.jsonl").read_text().splitlines()] for path in found]


@pytest.mark.long
def test_a_worker_is_killed_and_another_goes_on_with_its_runs(place: Rack) -> None:
    file = place.put_batch({"title": "Two", "groups": {"each": {**EACH, "box": list(BOXES[:2])}}})
    with scheduler(place) as address, worker(place, address), worker(place, address) as second:
        running = place.begin("batch", str(file), "--scheduler", address)
        both = lambda: all(len(trials(place, box)) >= 2 for box in BOXES[:2])  # noqa: E731
        wait_until("both runs", both, ended=lambda: running.poll() is not None)
        second.kill()
        code, out, said = ended(running)
    assert code == 0, said + out
    assert "is gone; what it was doing goes on at another" in said
    for box in BOXES[:2]:
        _check_whole(place, box)
