"""kill -9 of the control process at random instants of a run, resumed each time until it is complete."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import counting
from faults.counting import Count
from faults.scenes import Control, control, scene, undisturbed
from faults.table import Report

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]


class Killer:
    """Runs a sweep again and again, and kills it."""

    def __init__(self, control: Control, sweep: Path, seed: int) -> None:
        self.control, self.sweep = control, sweep
        self.random = random.Random(seed)
        self.expected, self.took = undisturbed(control, sweep)
        self.kills = 0
        self.phases: Counter[str] = Counter()
        self.count = Count()

    def until_complete(self, most: int) -> None:
        """One run, killed in `most` sessions of it at most; then left to end by itself."""
        scene, before, kills, known = self.control.scene, self.control.scene.runs, 0, ()
        while True:
            run = next((run for run in scene.runs if run not in before), None)
            if run and status_of(run) == "complete":  # killed as the figures were derived, which is done again
                assert self.control.do("reparse", run) == 0, self.control.said()
                break
            killed = self.session("resume" if run else "run", run or self.sweep, kill=kills < most)
            kills += killed
            known = self.still(known, next((run for run in scene.runs if run not in before), None))
            if not killed:
                break
        (run,) = (run for run in scene.runs if run not in before)
        self.count += counting.compare(run, self.expected)

    def still(self, known: tuple[str, ...], run: Path | None) -> tuple[str, ...]:
        """What the journal holds now. What it held before must be in it still."""
        now = counting.kept(run).order if run else ()
        self.count += Count(lost=tuple(f"{trial}: was in the journal" for trial in known if trial not in now))
        return now

    def session(self, do: str, target: Path, *, kill: bool) -> bool:
        """Start it, and kill it after a random part of the time that a whole run takes. Whether it was killed."""
        pid = self.control.start(do, target)
        if kill:
            time.sleep(self.random.uniform(0, self.took))
            phase = self.phase()
            os.kill(pid, signal.SIGKILL)
        status = self.control.wait()
        if kill and status == -signal.SIGKILL:
            self.phases[phase] += 1
            self.kills += 1
            return True
        assert status == 0, self.control.said()
        return False

    def phase(self) -> str:
        """How far the run is, by what is on the disk."""
        scene = self.control.scene
        if not scene.runs:
            return "outside"
        run, expected = scene.runs[-1], len(self.expected.trials)
        journal = run / "trials.jsonl"  # and no directory that may be exchanged while we look
        done = journal.read_bytes().count(b"\n") if journal.exists() else 0
        if done == expected:
            return "outside"  # of the measuring: before the run has a directory, or after its last trial
        mounted = str(scene.mount_root) in Path("/proc/self/mountinfo").read_text()
        return "trials" if mounted else "between"


def status_of(run: Path) -> str:
    return str(json.loads((run / "run.json").read_text())["status"])


@pytest.fixture
def killer(request: pytest.FixtureRequest) -> Iterator[Killer]:
    with scene() as place, control(place) as machine:
        seed, repeats = request.param
        yield Killer(machine, place.put_sweep(**place.keys(repeats)), seed)


def kill(killer: Killer, times: int, in_one_run: int, report: Report) -> Killer:
    started = time.monotonic()
    while killer.kills < times:
        killer.until_complete(min(in_one_run, times - killer.kills))
    left = killer.control.scene.left()
    report("kill -9 of the control process", killer.kills, killer.count + left, time.monotonic() - started)
    return killer


def reports(killer: Killer, times: int, report: Report) -> None:
    """kill -9 while the report of a complete run is written: what was measured stays, and the report can be written."""
    host, started = killer.control, time.monotonic()
    assert host.do("run", killer.sweep) == 0, host.said()
    run = host.scene.runs[-1]
    began = time.monotonic()
    assert host.do("report", run) == 0, host.said()
    took_s, kills = time.monotonic() - began, 0
    while kills < times:
        pid = host.start("report", run)
        time.sleep(killer.random.uniform(0, took_s))
        os.kill(pid, signal.SIGKILL)
        kills += host.wait() == -signal.SIGKILL
    assert host.do("report", run) == 0, host.said()
    assert [*run.rglob(".*"), *run.rglob("*.unfinished.ipynb")] == [], "a finished run is clean again"
    count = counting.compare(run, killer.expected) + host.scene.left()
    report("kill -9 while the report is written", kills, count, time.monotonic() - started)


@pytest.mark.faults
@pytest.mark.parametrize("killer", [(1, 1)], indirect=True)
def test_two_kills(killer: Killer, report: Report) -> None:
    kill(killer, times=2, in_one_run=2, report=report)


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.parametrize("killer", [(1, 2)], indirect=True)
def test_six_kills(killer: Killer, report: Report) -> None:
    kill(killer, times=6, in_one_run=6, report=report)


@pytest.mark.faults
def test_a_private_sshd_goes_though_we_are_killed_while_it_starts() -> None:
    """Before the watchdog could be told of it."""
    code = """
import os, signal
from mountlab.box.embedded import loopback
from mountlab.core.model import Box
waits = loopback._wait_for_greeting
loopback._wait_for_greeting = lambda daemon, port: waits(daemon, port) and os.kill(os.getpid(), signal.SIGKILL)
with loopback.private_sshd(Box(name="local", host="", embedded="loopback")): pass
"""
    with scene() as place:
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **place.environment}, check=False)
        assert done.returncode == -signal.SIGKILL
        assert place.left() == Count()


@pytest.mark.soak
@pytest.mark.parametrize("killer", [(2, 5)], indirect=True)
def test_two_hundred_kills(killer: Killer, report: Report) -> None:
    phases = kill(killer, times=200, in_one_run=5, report=report).phases
    assert min(phases[name] for name in ("trials", "between", "outside")) >= 5, phases


@pytest.mark.soak
@pytest.mark.parametrize("killer", [(3, 1)], indirect=True)
def test_ten_kills_while_the_report_is_written(killer: Killer, report: Report) -> None:
    reports(killer, times=10, report=report)
