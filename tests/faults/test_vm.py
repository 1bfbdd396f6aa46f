"""The virtual box is reset and switched off at random instants of a run: the run is completed, its disks are sound."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from faults import counting
from faults.counting import Count
from faults.machine import Machine, machine, over_ssh
from faults.scenes import DD, TMPFS, Control, Scene, control, scene, undisturbed
from faults.table import Report
from mountlab.model import Box

pytestmark = [
    pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("qemu-system-x86_64"),
    pytest.mark.requires_program("ssh"), pytest.mark.requires_program("e2fsck"),
]  # fmt: skip

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


def keys(repeats: int) -> dict[str, Any]:
    """Two workloads on a disk of its own, on an image and in memory."""
    return {
        "filesystems": {"disk": {"type": "ext4", "device": "scratch"}, "image": {"type": "ext4", "image": "64MiB"},
                        "tmpfs": TMPFS},
        "workloads": {"dd": DD, "more": {**DD, "count": 8}},
        "design": {"repeats": repeats, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
    }  # fmt: skip


class Button:
    """Presses the button of a machine on which runs go on."""

    def __init__(self, control: Control, box: Machine, sweep: Path, seed: int) -> None:
        self.control, self.box, self.sweep = control, box, sweep
        self.random = random.Random(seed)
        self.expected, self.took = undisturbed(control, sweep)
        self.presses: Counter[str] = Counter()
        self.looked = 0
        """So often an ext4 was mounted on the disk at that instant, and was looked at."""
        self.count = Count()

    def run(self, most: int) -> None:
        """One run, disturbed `most` times at most."""
        scene, presses = self.control.scene, 0
        self.control.start("run", self.sweep)
        while presses < most and not self.control.ended(self.random.uniform(0.2, 0.7) * self.took):
            self.press()
            presses += 1
        status = self.control.wait()
        assert status == 0, self.control.said()
        (run,) = scene.runs
        failed = [each["trial_id"] for each in counting.kept(run).trials if RESTARTED in each["reason"]]
        assert len(failed) <= presses
        self.count += counting.compare(run, self.expected, may_fail=failed)
        shutil.rmtree(run)

    def press(self) -> None:
        found = self.box.fsck()
        self.looked += found is not None
        self.count += Count(lost=(found,) if found else ())
        kind = self.random.choice(("reset", "off_and_on"))
        getattr(self.box, kind)()
        self.presses[kind] += 1


def press(place: Scene, box: Box, report: Report, *, times: int, in_one_run: int, repeats: int) -> Button:
    """Presses it that often, and tells the table."""
    with machine(box, place.home / "vm") as guest, control(place) as host:
        place.put_ssh(guest.endpoint, guest.endpoint.port)
        place.put_box(host="behind", scratch={"scratch": SCRATCH}, mount_root=MOUNT_ROOT, output_root=OUTPUT_ROOT)
        button = Button(host, guest, place.put_sweep(**keys(repeats)), seed=5)
        started = time.monotonic()
        while (done := sum(button.presses.values())) < times:
            button.run(min(in_one_run, times - done))
        left = Count(left=tuple(over_ssh(place.home / ".ssh" / "config", LEFT).splitlines()))
        took_s = time.monotonic() - started
        guard_is_right(host, button.sweep, place)
    report("the box is reset, or switched off and on", done, button.count + left + place.left(), took_s)
    return button


def guard_is_right(host: Control, sweep: Path, place: Scene) -> None:
    """A file system of somebody else's on the disk is refused, after all of that, and stays as it is."""
    config = place.home / ".ssh" / "config"
    look = f"dd if={SCRATCH} bs=64k count=16 status=none | sha256sum"
    over_ssh(config, f"mke2fs -q -F -t ext4 {SCRATCH} 64M && sync")
    before = over_ssh(config, look)
    assert host.do("run", sweep) == UNSAFE, host.said()
    assert over_ssh(config, look) == before


@pytest.mark.faults
def test_one_press_of_the_button(vm_box: Box, report: Report) -> None:
    with scene() as place:
        press(place, vm_box, report, times=1, in_one_run=1, repeats=1)


@pytest.mark.soak
def test_twenty_presses_of_the_button(vm_box: Box, report: Report) -> None:
    with scene() as place:
        button = press(place, vm_box, report, times=20, in_one_run=3, repeats=3)
    assert set(button.presses) == {"reset", "off_and_on"}
    assert button.looked >= 3
