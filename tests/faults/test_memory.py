"""A long run of short trials: nothing of it grows, on neither side."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from faults import counting
from faults.scenes import DD, EXT4, TMPFS, Scene, control, scene
from faults.table import Report

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

FLAT_BYTES = 20 * 10**6
SLOWER = 1.3
BETWEEN_S = 1.0
"""From one look at the process to the next: it takes time itself."""
MOST_FILES = 400
"""What commands have printed is removed from the box from time to time, and not after each (job.sh)."""
MOST_MORE = {"descriptors": 2, "threads": 2, "mounts": 2}
MOST_STAYING = 8
"""Processes of a late look that have begun since the early ones, and were there two trials before. Those of a trial are
gone by then; where each of thirty left one, they would be fifteen."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Look:
    """The process that measures, and what belongs to it, at one instant."""

    done: int
    resident_bytes: int
    descriptors: int
    threads: int
    others: frozenset[str]
    """Processes of the scene but this one: its sshd, the watchdog, what runs on the box."""
    mounts: int
    files: int
    """Temporary ones of the control machine, and in the roots of the box."""


def look(pid: int, place: Scene, done: int) -> Look:
    process = Path("/proc", str(pid))
    roots = (place.mount_root, place.output_root, place.temporary)
    found = counting.left_behind(roots, but=(pid,), patience_s=0)
    return Look(
        done=done,
        resident_bytes=int((process / "statm").read_text().split()[1]) * PAGE_BYTES,
        descriptors=len(list((process / "fd").iterdir())),
        threads=len(list((process / "task").iterdir())),
        others=frozenset(each for each in found if each.startswith("process")),
        mounts=sum(each.startswith(("mount", "loop")) for each in found),
        files=sum(len(files) for root in roots for _, _, files in os.walk(root)),
    )


def keys(blocks: int) -> dict[str, Any]:
    """Ten cells."""
    return {
        "filesystems": {"tmpfs": TMPFS, "ext4": EXT4},
        "workloads": {"dd": {**DD, "count": [1, 2, 3, 4, 5]}},
        "design": {"repeats": blocks, "warmup": 0, "seed": 7, "trial_timeout": "30s", "drop_caches": False},
    }


def watched(place: Scene, blocks: int, between_s: float) -> tuple[list[Look], Path]:
    """A run of ten trials a block, looked at until its last trial is in the journal."""
    total = 10 * blocks
    looks: list[Look] = []
    with control(place) as machine:
        pid = machine.start("run", place.put_sweep(**keys(blocks)))
        while not machine.ended(between_s):
            journal = next(place.results.glob("[!.]*/trials.jsonl"), None)
            done = journal.read_bytes().count(b"\n") if journal else 0
            if 0 < done < total:
                looks.append(look(pid, place, done))
        assert machine.wait() == 0, machine.said()
        (run,) = place.runs
    return looks, run


def grown(looks: Sequence[Look]) -> list[str]:
    """What is more at the end than after the first tenth, in the middle of the looks taken there."""
    warm = [each for each in looks if each.done > looks[-1].done * 0.1]
    early = [each for each in warm if each.done <= looks[-1].done * 0.3] or warm[:1]  # a busy machine looks seldom
    late = [each for each in looks if each.done > looks[-1].done * 0.8]
    told = []
    if max(each.files for each in late) > MOST_FILES:
        told.append(f"files: {max(each.files for each in late)}")
    for name in MOST_MORE:
        # The fewest, since a look may catch a trial with all its processes at work; what stays is among the fewest too.
        before, after = (min(getattr(each, name) for each in part) for part in (early, late))
        if after > before + MOST_MORE[name]:
            told.append(f"{name}: {before} at first, {after} at the end")
    if (most := max(len(staying(each, looks, early)) for each in late)) > MOST_STAYING:
        told.append(f"processes: {most} more at the end, which stay")
    resident = [each.resident_bytes for each in warm]
    if max(resident) - min(resident) > FLAT_BYTES:
        told.append(f"resident bytes: from {min(resident):,} to {max(resident):,}")
    return told


def staying(late: Look, looks: Sequence[Look], early: Sequence[Look]) -> frozenset[str]:
    """Return which processes of a late look were there two trials before, and were not there early."""
    before = frozenset().union(*(each.others for each in looks if each.done <= late.done - 2))
    return (late.others & before) - frozenset().union(*(each.others for each in early))


def overheads_s(run: Path) -> list[float]:
    """From the beginning of a trial to that of the next on the same mount, without what the tool took."""
    spent, trials = [], counting.kept(run).trials
    for trial, after in pairwise(trials):
        if trial["mount"] == after["mount"]:
            raw = run / "raw" / trial["trial_id"]
            tool_s = (int((raw / "ended_ns").read_text()) - int((raw / "started_ns").read_text())) / 1e9
            begins = [datetime.fromisoformat(each["started_at"]) for each in (trial, after)]
            spent.append((begins[1] - begins[0]).total_seconds() - tool_s)
    return spent


@pytest.mark.parametrize(
    ("others", "told"),
    [
        pytest.param(lambda done: [0, *range(1000 * done, 1000 * done + 15)], [], id="each at work with fifteen"),
        pytest.param(range, ["processes: 18 more at the end, which stay"], id="each leaves one"),
    ],
)
def test_processes_that_stay_are_told_from_those_at_work(
    others: Callable[[int], Iterable[int]], told: list[str]
) -> None:
    """Whenever it is looked at: here after every third trial."""
    looks = [Look(done, 10**8, 9, 4, frozenset(map(str, others(done))), 1, 50) for done in range(1, 30, 3)]
    assert grown(looks) == told


@pytest.mark.faults
def test_nothing_grows_over_thirty_trials(report: Report) -> None:
    started = time.monotonic()
    with scene() as place:
        looks, run = watched(place, 3, BETWEEN_S / 4)
        cost = counting.once(run, 30) + place.left()
    assert grown(looks) == []
    report("many short trials on the local box", 30, cost, time.monotonic() - started)


@pytest.mark.soak
def test_nothing_grows_over_two_thousand_trials(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    with scene() as place:
        looks, run = watched(place, 200, BETWEEN_S)
        cost, spent = counting.once(run, 2000) + place.left(), overheads_s(run)
    first, last = statistics.median(spent[:200]), statistics.median(spent[-200:])
    told = {
        "resident": [looks[len(looks) * tenth // 10].resident_bytes for tenth in range(10)],
        "median": (first, last),
    }
    with capsys.disabled():
        print(f"\nmemory: {json.dumps(told)}")  # noqa: T201
    report("many short trials on the local box", 2000, cost, time.monotonic() - started)
    assert grown(looks) == []
    assert last <= SLOWER * first
