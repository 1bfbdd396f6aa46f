"""Two Mountlabs on one machine whose `/` is private, as in a container: killed, stopped and resumed beside each other.

A mount namespace copies a private mount, and the copy stays when the mount goes: a trial of one Mountlab would keep
the loop devices of the other busy.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faults import counting
from faults.counting import Count
from faults.scenes import Control, Scene, Zygote, control, scene
from faults.table import Report
from namespaces import entered, mount_namespace, mount_points
from waiting import LIMIT_S

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd", "mke2fs", "losetup", "unshare", "nsenter"),
]

TRIAL_S = 6.0
"""Longer than a clean waits for a loop device (2 s), so that it meets a trial of the other."""
SESSION_S = 1.0, 9.0
"""How long a session lasts until it is killed or stopped: shortest and longest."""


@dataclass
class Neighbour:
    """One Mountlab, with what became of its sessions."""

    control: Control
    sweep: Path
    random: random.Random
    refused: list[str] = field(default_factory=list)
    kills: int = 0
    stops: int = 0

    @property
    def scene(self) -> Scene:
        return self.control.scene

    def last(self, times: int) -> None:
        """Run and resume so often, killed and stopped in turn at a random instant; then let the last run end."""
        for number in range(times):
            self.session(signal.SIGKILL if number % 3 < 2 else signal.SIGINT)
        while not self.session(None):
            assert len(self.refused) <= times, self.refused

    def session(self, ends_by: signal.Signals | None) -> bool:
        """One session, and whether its run is complete."""
        open_runs = [run for run in self.scene.runs if '"complete"' not in (run / "run.json").read_text()]
        pid = self.control.start("resume" if open_runs else "run", open_runs[0] if open_runs else self.sweep)
        if ends_by is not None and not self.control.ended(self.random.uniform(*SESSION_S)):
            os.kill(pid, ends_by)
        status, said = self.control.wait(), self.control.said()
        self.kills += status == -signal.SIGKILL
        self.stops += ends_by == signal.SIGINT and status != 0
        if "error: " in said or "still in use" in said or "lazily" in said or (ends_by is None and status != 0):
            self.refused.append(said[-600:])
        return status == 0


@contextmanager
def neighbours(seeds: tuple[int, ...]) -> Iterator[tuple[int, list[Neighbour]]]:
    """A machine whose / is private, and a Mountlab on it for each seed."""
    with ExitStack() as undo:
        machine = undo.enter_context(mount_namespace("private"))
        made = []
        for seed in seeds:
            place = undo.enter_context(scene())
            starter = Zygote(*entered(machine))
            undo.callback(starter.process.communicate, timeout=LIMIT_S)
            keys = place.keys(repeats=1)
            keys["workloads"] = {"seen": place.seen(TRIAL_S), "again": place.seen(TRIAL_S, bytes=8192)}
            host = undo.enter_context(control(place, starter))
            made.append(Neighbour(host, place.put_sweep(**keys), random.Random(seed)))
        yield machine, made


def left(machine: int, neighbour: Neighbour) -> Count:
    """What is left of a scene in the mount namespace of the machine, and elsewhere."""
    place = neighbour.scene
    mounts = [point for root in (place.mount_root, place.output_root) for point in mount_points(machine, root)]
    return place.left() + Count(left=tuple(f"mount {point}" for point in mounts))


def beside(times: int, report: Report) -> None:
    started = time.monotonic()
    with neighbours((1, 2)) as (machine, both):
        with ThreadPoolExecutor(len(both)) as threads:
            for done in [threads.submit(neighbour.last, times) for neighbour in both]:
                done.result()
        refused = tuple(text for neighbour in both for text in neighbour.refused)
        count = Count(lost=refused)
        for neighbour in both:
            count += left(machine, neighbour)
            for run in neighbour.scene.runs:
                count += counting.once(run, 4)
        report(
            "two on a machine whose / is private, killed and stopped",
            sum(neighbour.kills + neighbour.stops for neighbour in both),
            count,
            time.monotonic() - started,
        )


@pytest.mark.soak
def test_two_on_a_private_machine_are_killed_and_resumed_thirty_times(report: Report) -> None:
    beside(30, report)
