"""The control machine vanishes: nobody closes the connection, nobody undoes anything. The box does it by itself."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from faults import counting
from faults.counting import Count
from faults.proxy import Link
from faults.scenes import Control, Scene, control, linked
from faults.table import Report
from waiting import LIMIT_S, happens, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

GRACE_S = 5
LOAD_S = 2 * LIMIT_S
"""The tool does not end by itself while the box is waited for."""


def vanish(place: Scene, wire: Link, host: Control, after_s: float) -> Count:
    """A run loses its control machine while a tool runs. What the box still holds after its grace time."""
    keys = place.keys(repeats=1)
    keys["workloads"] = {"long": place.seen(LOAD_S)}
    pid = host.start("run", place.put_sweep(**keys))
    wait_until("the tool", place.witness.exists, ended=lambda: host.ended(0) and host.said())
    time.sleep(after_s)
    wire.stall()
    os.kill(pid, signal.SIGKILL)
    host.wait()
    happens(lambda: not held(place))
    waits = held(place)
    wire.flow()
    wire.reset()  # only now the sshd learns that nobody is there
    place.witness.unlink()
    return Count(left=waits) + place.left()


def held(place: Scene) -> tuple[str, ...]:
    """What the box still holds. Processes of the connection stay: their sshd does not know yet that nobody is there."""
    found = counting.left_behind((place.mount_root, place.output_root), patience_s=0)
    return tuple(each for each in found if not each.startswith("process") or "sleep" in each)


def vanished(report: Report, times: int) -> None:
    dice, count = random.Random(8), Count()
    with linked(f"{GRACE_S}s") as (place, wire), control(place) as host:
        started = time.monotonic()
        for _ in range(times):
            count += vanish(place, wire, host, dice.uniform(0, 2))
        report("the control machine vanishes while a tool runs", times, count, time.monotonic() - started)


@pytest.mark.faults
def test_the_box_gives_everything_back_by_itself(report: Report) -> None:
    vanished(report, 1)


@pytest.mark.soak
def test_it_does_so_five_times(report: Report) -> None:
    vanished(report, 5)
