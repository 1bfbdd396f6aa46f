"""The link to the box drops, resets, stalls, corrupts and is cut at random instants of a run, which survives that."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import counting
from faults.counting import Count
from faults.proxy import Link
from faults.scenes import Control, control, linked, undisturbed
from faults.table import Report

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

GRACE = "60s"
LONGEST_CUT_S = 8.0
UNREACHABLE = 3


class Saboteur:
    """Breaks the link while runs go through it."""

    def __init__(self, control: Control, broken: Link, sweep: Path, seed: int) -> None:
        self.control, self.link, self.sweep = control, broken, sweep
        self.random = random.Random(seed)
        self.expected, self.took = undisturbed(control, sweep)
        self.faults: Counter[str] = Counter()
        self.again = 0
        """Sessions that ended before anything was made on the box, or after all was undone."""
        self.count = Count()

    def run(self, longest_s: float, most: int) -> None:
        """One run with `most` faults at most, each of `longest_s` at most."""
        scene = self.control.scene
        before, faults = scene.runs, 0
        while True:
            run = next((run for run in scene.runs if run not in before), None)
            self.control.start("resume" if run else "run", run or self.sweep)
            while faults < most and not self.control.ended(self.random.uniform(0, 0.3 * self.took)):
                self.fault(longest_s)
                faults += 1
            status = self.control.wait()
            if status == 0:
                break
            assert status == UNREACHABLE, self.control.said()
            self.again += 1
        (run,) = (run for run in scene.runs if run not in before)
        self.count += counting.compare(run, self.expected) + self.executions(run)

    def executions(self, run: Path) -> Count:
        """What the tools of the trials themselves say: each was there once, and tried once."""
        tried = {each["trial_id"]: each["attempts"] for each in counting.kept(run).trials}
        why = {file.parent.parent.name: file.read_text() for file in run.glob("raw/*/attempt-*/reason")}
        seen = counting.witnessed(self.control.scene.witness)
        self.control.scene.witness.unlink(missing_ok=True)
        mine = [each["trial_id"] for each in self.expected.trials if each["tool"] == "command"]
        return Count(
            lost=tuple(f"{trial}: never executed" for trial in mine if not seen[trial]),
            duplicated=tuple(
                f"{trial}: executed {n} times, tried {tried[trial]} times {why.get(trial, '')} ({self.again} resumed)"
                for trial, n in seen.items()
                if n > 1
            ),
        )

    def fault(self, longest_s: float) -> None:
        name = self.random.choice(("drop", "reset", "corrupt", "stall", "cut"))
        longest_s = min(longest_s, LONGEST_CUT_S) if name == "cut" else longest_s
        lasts: dict[str, Callable[[], None]] = {"stall": self.link.flow, "cut": self.link.mend}
        getattr(self.link, name)()
        if name in lasts:
            time.sleep(self.random.uniform(min(1.0, longest_s), longest_s))
            lasts[name]()
        self.faults[name] += 1


def sabotage(report: Report, *, times: int, in_one_run: int, longest_s: float, repeats: int, seed: int) -> Counter[str]:
    with linked(GRACE) as (place, broken), control(place) as machine:
        saboteur = Saboteur(machine, broken, place.put_sweep(**place.keys(repeats)), seed)
        started = time.monotonic()
        while (done := sum(saboteur.faults.values())) < times:
            saboteur.run(longest_s, min(in_one_run, times - done))
        left = place.left()
        report(
            "the link drops, resets, stalls, corrupts, or is cut",
            done,
            saboteur.count + left,
            time.monotonic() - started,
        )
        return saboteur.faults


@pytest.mark.faults
def test_two_faults_of_the_link(report: Report) -> None:
    sabotage(report, times=2, in_one_run=2, longest_s=1.0, repeats=1, seed=3)


@pytest.mark.long
@pytest.mark.faults
def test_five_faults_of_the_link(report: Report) -> None:
    sabotage(report, times=5, in_one_run=5, longest_s=1.0, repeats=2, seed=3)


@pytest.mark.soak
def test_a_hundred_faults_of_the_link(report: Report) -> None:
    assert len(sabotage(report, times=100, in_one_run=8, longest_s=20.0, repeats=5, seed=4)) == 5
