"""A scratch device that is not on the box: what is there is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from facts import known
from mountlab.box.scratch_links import SCRIPT, check_links
from mountlab.box.testing import ReplayBox
from mountlab.core.errors import PlanError
from mountlab.core.model import Box, ScratchDevice
from sweeps import sweep

DISK, JOURNAL = "/dev/disk/by-id/nvme-a", "/dev/disk/by-id/ata-b"
BOX = Box(
    name="lab",
    host="h",
    scratch=(
        ScratchDevice(name="data", device=DISK),
        ScratchDevice(name="log", device=JOURNAL),
        ScratchDevice(name="unused", device="/dev/disk/by-id/other"),
    ),
)
EXT4 = {"type": "ext4", "device": "data", "journal_device": "log"}
FACTS = known(kernel_filesystems=["ext4"])


def check(said: str, *devices: str, **filesystem: object) -> None:
    box = ReplayBox(BOX).answer(("sh", "-c", SCRIPT, "mountlab-links", *devices), said)
    check_links(sweep(filesystems={"f": filesystem}).sweep, box, FACTS)


def test_devices_that_are_there_pass_and_those_of_no_file_system_are_not_asked_for() -> None:
    check("there\t/dev/disk/by-id/x\t/dev/sda\t8\n", DISK, JOURNAL, **EXT4)
    check_links(sweep(filesystems={"f": {"type": "tmpfs", "size": "1MiB"}}).sweep, ReplayBox(BOX), FACTS)


def test_one_that_is_not_there_is_named_with_what_is() -> None:
    there = "there\t/dev/disk/by-id/nvme-x\t/dev/nvme0n1\t2097152\nthere\t/dev/disk/by-id/y\t/dev/sdb\t\n"
    with pytest.raises(PlanError) as caught:
        check(f"missing\t{JOURNAL}\tdoes not exist\n{there}", DISK, JOURNAL, **EXT4)
    error = caught.value
    assert error.where == "params/boxes/lab.yml: scratch.log"
    assert error.got == f"{JOURNAL} does not exist"
    assert error.allowed == "/dev/disk/by-id/nvme-x = /dev/nvme0n1, 1.00 GiB; /dev/disk/by-id/y = /dev/sdb"
    assert error.next_step == "write the name of the disk that is meant, or attach it"


def test_a_box_without_any_such_name_gets_advice_that_fits() -> None:
    with pytest.raises(PlanError) as caught:
        check(f"missing\t{DISK}\tleads to ../../sdz, which is not there\n", DISK, type="ext4", device="data")
    assert caught.value.got.endswith("leads to ../../sdz, which is not there")
    assert "the box has none there" in caught.value.allowed
    assert "udev" in caught.value.next_step


def test_many_names_are_cut_short() -> None:
    there = "".join(f"there\t/dev/disk/by-id/{n}\t/dev/sd{n}\t8\n" for n in range(20))
    with pytest.raises(PlanError) as caught:
        check(f"missing\t{DISK}\tdoes not exist\n{there}", DISK, type="ext4", device="data")
    assert caught.value.allowed.endswith("; 8 more")


def test_what_the_script_says_on_a_real_machine(tmp_path: Path) -> None:
    dangling, there = tmp_path / "dangling", tmp_path / "there"
    dangling.symlink_to("nowhere")
    there.touch()
    argv = ("sh", "-c", SCRIPT, "mountlab-links", str(dangling), str(there), str(tmp_path / "none"))
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in lines if line.startswith("missing")] == [
        f"missing\t{dangling}\tleads to nowhere, which is not there",
        f"missing\t{tmp_path / 'none'}\tdoes not exist",
    ]
