"""No room: on the control machine at any point where something is written, and on the box."""

from __future__ import annotations

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
from faults.counting import Count, Kept
from faults.scenes import Control, control, scene, undisturbed
from faults.table import Report

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
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes=0", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def grow(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


def used_pages(place: Path) -> int:
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize // PAGE_BYTES


# --- on the control machine -------------------------------------------------------------------------------------------


def fill(host: Control, sweep: Path, expected: Kept, pages: int) -> Count:
    """A run for which there is no room but for so much; then there is, and it goes on."""
    place = host.scene
    with small(place.results, str(pages * PAGE_BYTES)):
        status = host.do("run", sweep)
        said = host.said()
        box = place.left(but=(host.pid,))
        before = counting.kept(place.runs[0]).order if place.runs else ()
        if status == 0:
            return Count(lost=(f"{pages} pages were enough",))
        silent = () if "o space left" in said else (f"{pages} pages: nothing is said of it: {said[-300:]}",)
        grow(place.results, ROOM)
        done = host.do("resume", place.runs[0]) if place.runs else host.do("run", sweep)
        if done != 0:
            return Count(lost=(*silent, f"{pages} pages: {host.said()[-300:]}")) + box
        run = place.runs[-1]
        gone = tuple(f"{trial}: was in the journal" for trial in before if trial not in counting.kept(run).order)
        return Count(lost=(*silent, *gone)) + box + counting.compare(run, expected)


def filled(report: Report, times: int) -> None:
    dice, count = random.Random(11), Count()
    with scene() as place, control(place) as host:
        sweep = place.put_sweep()
        with small(place.results, ROOM):
            expected, _ = undisturbed(host, sweep)
            assert host.do("run", sweep) == 0
            most = used_pages(place.results)
        started = time.monotonic()
        for _ in range(times):
            count += fill(host, sweep, expected, dice.randrange(LEAST_PAGES, most - LEAST_PAGES))
        took_s = time.monotonic() - started
        report("no room on the control machine", times, count + place.left(but=(host.pid,)), took_s)


@pytest.mark.faults
def test_the_control_machine_has_no_room(report: Report) -> None:
    filled(report, 1)


@pytest.mark.soak
def test_the_control_machine_has_no_room_at_twenty_points(report: Report) -> None:
    filled(report, 20)


# --- on the box -------------------------------------------------------------------------------------------------------


def squeeze(host: Control, sweep: Path, pages: int) -> Count:
    """A run on a box that has so many pages for what commands print. It comes to an end; what failed says why."""
    place = host.scene
    with small(place.output_root.parent, str(pages * PAGE_BYTES)):
        status = host.do("run", sweep)
        count = place.left(but=(host.pid,))
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


def squeezed(report: Report, times: int) -> None:
    dice, count = random.Random(12), Count()
    with scene() as plain:
        place = replace(plain, output_root=plain.home / "memory" / plain.output_root.name)
        place.put_box()
        with control(place) as host:
            sweep = place.put_sweep()
            started = time.monotonic()
            for _ in range(times):
                count += squeeze(host, sweep, dice.randrange(1, MOST_PAGES))
            report("no room on the box for what tools print", times, count, time.monotonic() - started)


@pytest.mark.faults
def test_the_box_has_no_room(report: Report) -> None:
    squeezed(report, 1)


@pytest.mark.soak
def test_the_box_has_no_room_at_twenty_points(report: Report) -> None:
    squeezed(report, 20)
