"""The virtual box is reset and switched off at random instants of a run: the run is completed, its disks are sound."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults import counting
from faults.counting import Count
from faults.machine import Machine, machine, over_ssh
from faults.scenes import DD, TMPFS, Control, control, scene, undisturbed
from faults.table import Report
from mountlab.core.model import Box
from waiting import happens

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("qemu-system-x86_64"),
    pytest.mark.requires_program("ssh"),
    pytest.mark.requires_program("e2fsck"),
]

SCRATCH = "/dev/disk/by-id/virtio-mountlab-scratch"
MOUNT_ROOT, OUTPUT_ROOT = "/var/tmp/mountlab-faults", "/dev/shm/mountlab-faults"
RESTARTED = "started again"
LEFT = f"""
awk '$5 ~ "^{MOUNT_ROOT}" {{ print "mount", $5 }}' /proc/self/mountinfo
cat /sys/block/loop*/loop/backing_file 2>/dev/null | sed 's/^/loop on /'
grep -lE 'MOUNTLAB_(RUN|LEASE)=' /proc/[0-9]*/environ 2>/dev/null | sed 's/^/process /'
for root in {MOUNT_ROOT} {OUTPUT_ROOT}; do [ ! -e "$root" ] || find "$root" | sed 's/^/file /'; done
true
"""
UNSAFE = 4
TIMES = 20


def keys(*filesystems: str, repeats: int) -> dict[str, Any]:
    """One workload on a disk of its own, on an image, in memory."""
    known = {"disk": {"type": "ext4", "device": "scratch"}, "image": {"type": "ext4", "image": "64MiB"}, "tmpfs": TMPFS}
    return {
        "filesystems": {name: known[name] for name in filesystems},
        "workloads": {"dd": DD},
        "design": {"repeats": repeats, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
    }


class Button:
    """Presses the button of a machine on which runs go on."""

    def __init__(self, control: Control, box: Machine, seed: int) -> None:
        self.control, self.box = control, box
        self.random = random.Random(seed)
        self.presses: Counter[str] = Counter()
        self.looked = 0
        """So often an ext4 was mounted on the disk at that instant, and was looked at."""
        self.count = Count()

    def run(self, sweep: Path, most: int, wait: Callable[[], bool]) -> Path:
        """One run, disturbed `most` times at most, each time after `wait`, which says whether it has ended before."""
        before = self.control.scene.runs
        self.control.start("run", sweep)
        presses = 0
        while presses < most and not wait():
            self.press()
            presses += 1
        assert self.control.wait() == 0, self.control.said()
        (run,) = (run for run in self.control.scene.runs if run not in before)
        assert len(restarted(run)) <= presses
        return run

    def press(self) -> None:
        found = self.box.fsck()
        self.looked += found is not None
        self.count += Count(lost=(found,) if found else ())
        kind = self.random.choice(("reset", "off_and_on"))
        getattr(self.box, kind)()
        self.presses[kind] += 1


def restarted(run: Path) -> list[str]:
    """Trials that failed since the box was started again: those that it interrupted."""
    return [each["trial_id"] for each in counting.kept(run).trials if RESTARTED in each["reason"]]


@contextmanager
def stage(box: Box, seed: int) -> Iterator[Button]:
    with scene() as place, machine(box, place.home / "vm") as guest, control(place) as host:
        place.put_ssh(guest.endpoint, guest.endpoint.port)
        place.put_box(host="behind", scratch={"scratch": SCRATCH}, mount_root=MOUNT_ROOT, output_root=OUTPUT_ROOT)
        yield Button(host, guest, seed)


def tell(report: Report, button: Button, took_s: float) -> None:
    place = button.control.scene
    left = Count(left=tuple(over_ssh(place.home / ".ssh" / "config", LEFT).splitlines()))
    report("the box is reset, or switched off and on", sum(button.presses.values()), button.count + left, took_s)


def guard_is_right(host: Control, sweep: Path) -> None:
    """A file system of somebody else's on the disk is refused, after all of that, and stays as it is."""
    config = host.scene.home / ".ssh" / "config"
    look = f"dd if={SCRATCH} bs=64k count=16 status=none | sha256sum"
    over_ssh(config, f"mke2fs -q -F -t ext4 {SCRATCH} 64M && sync")
    before = over_ssh(config, look)
    assert host.do("run", sweep) == UNSAFE, host.said()
    assert over_ssh(config, look) == before


@pytest.mark.long
@pytest.mark.faults
def test_one_press_of_the_button(vm_box: Box, report: Report) -> None:
    with stage(vm_box, seed=5) as button:
        started = time.monotonic()
        run = button.run(button.control.scene.put_sweep(**keys("image", repeats=2)), 1, lambda: not begun(button))
        button.count += counting.once(run, 2, may_fail=restarted(run))
        tell(report, button, time.monotonic() - started)


def begun(button: Button) -> bool:
    """Waits for the first trial to be in the journal."""
    return happens(lambda: any(button.control.scene.results.glob("[!.]*/trials.jsonl")))


@pytest.mark.soak
def test_twenty_presses_of_the_button(vm_box: Box, report: Report) -> None:
    with stage(vm_box, seed=6) as button:
        sweep = button.control.scene.put_sweep(**keys("disk", "image", "tmpfs", repeats=3))
        expected, took_s = undisturbed(button.control, sweep)
        started = time.monotonic()
        while (done := sum(button.presses.values())) < TIMES:
            run = button.run(
                sweep, min(4, TIMES - done), lambda: button.control.ended(button.random.uniform(0, 0.3) * took_s)
            )
            button.count += counting.compare(run, expected, may_fail=restarted(run))
        took_s = time.monotonic() - started
        guard_is_right(button.control, sweep)
        tell(report, button, took_s)
        assert set(button.presses) == {"reset", "off_and_on"}
        assert button.looked >= 2
