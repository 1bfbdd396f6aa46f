"""No room: on the control machine at any point where something is written, and on the box."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import counting
from faults.counting import Count
from faults.scenes import Control, Scene, control, scene
from faults.table import Report
from installed_programs import program

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

PAGE_BYTES = 4096
ROOM = "64m"
LEAST_PAGES = 4
MOST_PAGES = 60
"""What a trial prints has room in so many."""


@contextmanager
def small(place: Path, size: str) -> Iterator[None]:
    """A file system of this size on a directory."""
    place.mkdir(exist_ok=True)
    subprocess.run([program("mount"), "-t", "tmpfs", "-o", f"size={size},nr_inodes=0", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def grow(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


def used_pages(place: Path) -> int:
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize // PAGE_BYTES


def keys(place: Scene, repeats: int) -> dict[str, Any]:
    """In memory alone where each is tried once: what is kept of a trial on ext4 takes the same room."""
    asked = place.keys(repeats)
    return asked if repeats > 1 else {**asked, "filesystems": {"tmpfs": asked["filesystems"]["tmpfs"]}}


# --- on the control machine -------------------------------------------------------------------------------------------


def fill(host: Control, sweep: Path, pages: int) -> Count:
    """A run for which there is no room but for so much; then there is, and it goes on. What that has left, and what
    was in the journal and is not any more."""
    place = host.scene
    status, said = host.do("run", sweep), host.said()
    count = place.left()
    if "o space left" not in said and "make room on the disk" not in said:
        count += Count(lost=(f"{pages} pages: exit status {status}, and nothing is said of it: {said[-300:]}",))
    before = counting.kept(place.runs[0]).order if place.runs else ()
    grow(place.results, ROOM)
    if host.do(*(onward(place.runs[0]) if place.runs else ("run", sweep))) != 0:
        count += Count(lost=(f"{pages} pages: {host.said()[-300:]}",))
    after = counting.kept(place.runs[0]).order if place.runs else ()
    return count + Count(lost=tuple(f"{trial}: was in the journal" for trial in before if trial not in after))


def onward(run: Path) -> tuple[str, Path]:
    """What a person does then: of a run whose trials are all there only the figures are still to be made."""
    complete = json.loads((run / "run.json").read_text())["status"] == "complete"
    return ("reparse" if complete else "resume"), run


def filled(report: Report, times: int, repeats: int) -> None:
    dice, count = random.Random(11), Count()
    with scene() as place, control(place) as host:
        sweep = place.put_sweep(**keys(place, repeats))
        with small(place.results, ROOM):
            assert host.do("run", sweep) == 0, host.said()
            most, expected = used_pages(place.results), counting.kept(place.runs[0])
        started = time.monotonic()
        for _ in range(times):
            pages = dice.randrange(LEAST_PAGES, most - LEAST_PAGES)
            with small(place.results, str(pages * PAGE_BYTES)):
                count += fill(host, sweep, pages)
                count += counting.compare(place.runs[0], expected) if place.runs else Count(lost=("no run",))
        report("no room on the control machine", times, count + place.left(), time.monotonic() - started)


@pytest.mark.faults
def test_the_control_machine_has_no_room(report: Report) -> None:
    filled(report, 1, repeats=1)


@pytest.mark.soak
def test_the_control_machine_has_no_room_at_fifteen_points(report: Report) -> None:
    filled(report, 15, repeats=3)


# --- on the box -------------------------------------------------------------------------------------------------------


def squeeze(host: Control, sweep: Path, pages: int) -> Count:
    """A run on a box that has so many pages for what commands print. It comes to an end; what failed says why."""
    place = host.scene
    with small(place.output_root.parent, str(pages * PAGE_BYTES)):
        status = host.do("run", sweep)
        count = place.left()
    trials = [trial for run in place.runs for trial in counting.kept(run).trials]
    names = [trial["trial_id"] for trial in trials]
    silent = [f"{each['trial_id']}: {each['status']} without a reason" for each in trials if not told(each)]
    if status and not host.said().count("error: "):
        silent.append(f"{pages} pages: exit status {status}: {host.said()[-300:]}")
    for run in place.runs:
        shutil.rmtree(run)
    return count + Count(tuple(silent), tuple({name for name in names if names.count(name) > 1}))


def told(trial: dict[str, Any]) -> bool:
    return trial["status"] == "ok" or bool(trial["reason"])


def squeezed(report: Report, times: int, repeats: int) -> None:
    dice, count = random.Random(12), Count()
    with scene() as plain:
        place = replace(plain, output_root=plain.home / "memory" / plain.output_root.name)
        place.put_box()
        with control(place) as host:
            sweep = place.put_sweep(**keys(place, repeats))
            started = time.monotonic()
            for _ in range(times):
                count += squeeze(host, sweep, dice.randrange(1, MOST_PAGES))
            report("no room on the box for what tools print", times, count, time.monotonic() - started)


@pytest.mark.faults
def test_the_box_has_no_room(report: Report) -> None:
    squeezed(report, 1, repeats=1)


@pytest.mark.soak
def test_the_box_has_no_room_at_fifteen_points(report: Report) -> None:
    squeezed(report, 15, repeats=2)
