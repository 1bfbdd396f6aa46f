"""Snapshots of thin volumes of LVM as the state of a file system, in the virtual box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guests import clean_all, measured, sh
from live.test_layers_vm import DD, RUN_DIR, UUIDS, left, lvm, make_stack_until, on_images, run_dir
from mountlab.box.connection import BoxConnection
from mountlab.core.shell import script_argv, script_text

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_program("qemu-system-x86_64")]
__all__ = ["run_dir"]

OLD: dict[str, Any] = {"fill": "10%", "profile": "mail", "snapshots": 3, "change": "5%"}
ROOT = RUN_DIR.rpartition("/")[0]
POINT = f"{RUN_DIR}/mnt/f"
THIN = on_images(1, lvm("thin", volume="64MiB", chunk="64KiB"), image="256MiB")
MOUNTED = f"mke2fs -q -F {{device}} && mkdir -p {POINT} && mount -t ext4 {{device}} {POINT} && mkdir {POINT}/snapshots"
IN_POOL = "lvm lvs -a --noheadings -o lv_name,lv_active --config 'devices { use_devicesfile = 0 }'"
VOLUME = f"mountlab--{UUIDS[0].replace('-', '')[16:]}-data"


def mount_thin(box: BoxConnection) -> None:
    """Make a thin volume, and mount ext4 on it below the run's directory."""
    values = make_stack_until(box, THIN, "mke2fs")
    sh(box, MOUNTED.format(**values))


def take(box: BoxConnection, run_of: str = RUN_DIR) -> Any:
    text = script_text("layer.sh")
    words = (f"{POINT}/snapshots", "3", "0.05", "1", "", "0.1", run_of, UUIDS[0], text)
    return box.run(script_argv("snapshots.sh", *words), root=True, timeout_s=300.0)


@pytest.mark.long
def test_snapshots_of_a_mounted_volume_are_there_not_active_and_gone_with_it(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    mount_thin(vm_connection)
    done = take(vm_connection)
    assert done.ok, done.error_text
    figures = dict(line.split(" ", 1) for line in done.text.splitlines())
    assert (figures["snapshots"], 0 < float(figures["pool_percent"]) < 50) == ("3", True)
    rows = [line.split() for line in sh(vm_connection, IN_POOL).splitlines()]
    assert [row for row in rows if row[0].startswith("kept")] == [["kept1"], ["kept2"], ["kept3"]], rows
    clean_all(vm_connection, RUN_DIR)
    assert "mountlab" not in left(vm_connection)


@pytest.mark.long
def test_a_volume_that_no_record_names_has_no_snapshots_taken(vm_connection: BoxConnection, run_dir: str) -> None:
    """Nor has one that is mounted elsewhere than where the file lies."""
    mount_thin(vm_connection)
    sh(vm_connection, f"mkdir -p {ROOT}/other")
    done = take(vm_connection, f"{ROOT}/other")
    assert (done.ok, f"has no record of a layer {UUIDS[0]}" in done.error_text) == (False, True), done.error_text
    elsewhere = vm_connection.run(script_argv("layer.sh", "snapshot", run_dir, UUIDS[0], "9", "/tmp"), root=True)
    assert "is not on the volume of lvm" in elsewhere.error_text
    assert "kept" not in sh(vm_connection, IN_POOL)


@pytest.mark.long
@pytest.mark.parametrize("way", ["clean", "back"])
def test_a_volume_that_a_kill_left_suspended_goes_on_and_is_undone(
    way: str, vm_connection: BoxConnection, run_dir: str
) -> None:
    """Its file system is frozen, and a process waits to write: without more, both wait for ever."""
    mount_thin(vm_connection)
    sh(vm_connection, f"dmsetup suspend {VOLUME}")
    if way == "clean":
        writer = (
            f"cd {POINT}; MOUNTLAB_RUN={RUN_DIR.rpartition('/')[2]} setsid dd if=/dev/zero of={POINT}/x bs=4096 count=1"
        )
        sh(vm_connection, f"({writer}) >/dev/null 2>&1 </dev/null &")
    else:
        sh(vm_connection, f"cd /; {{ umount {POINT} & }} >/dev/null 2>&1; sleep 1; grep -c {POINT} /proc/mounts || :")
        for _ in range(2):
            done = vm_connection.run(script_argv("layer.sh", "resume", run_dir, UUIDS[0]), root=True, timeout_s=60.0)
            assert (done.ok, done.error_text) == (True, "")
        sh(vm_connection, f"for i in 1 2 3 4 5 6; do grep -q {POINT} /proc/mounts || break; sleep 1; done")
        done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True, timeout_s=60.0)
        assert done.ok, done.error_text
    clean_all(vm_connection, RUN_DIR)
    assert "mountlab" not in left(vm_connection)


@pytest.mark.long
def test_what_others_have_suspended_stays_so(vm_connection: BoxConnection, run_dir: str) -> None:
    mount_thin(vm_connection)
    sh(vm_connection, "DM_DISABLE_UDEV=1 dmsetup create someone --table '0 2048 zero'; dmsetup suspend someone")
    try:
        clean_all(vm_connection, RUN_DIR)
        assert sh(vm_connection, "dmsetup info -c --noheadings -o suspended someone") == "Suspended"
    finally:
        sh(vm_connection, "dmsetup resume someone; DM_DISABLE_UDEV=1 dmsetup remove someone")


@pytest.mark.long
def test_fresh_and_old_mounts_of_ext4_and_xfs_are_measured_and_nothing_is_left(
    vm_connection: BoxConnection, tmp_path: Path
) -> None:
    thin = {"ext4": ("256MiB", "64MiB"), "xfs": ("900MiB", "304MiB")}
    filesystems = {
        name: {"type": name, "image": image, "state": ["fresh", "old"],
               "stack": [lvm("thin", volume=volume, chunk="64KiB")]}
        for name, (image, volume) in thin.items()
    }  # fmt: skip
    run = measured(
        vm_connection, tmp_path, filesystems=filesystems, workloads={"w": DD}, states={"old": OLD},
        design={"repeats": 1, "warmup": 0},
    )  # fmt: skip
    rows = [(row["filesystem"], row["status"], row["reason"]) for row in run.trials.to_dict("records")]
    assert sorted(rows) == [(name, "ok", "") for name in ("ext4", "ext4", "xfs", "xfs")]
    for name in thin:
        printed = (run.path / "raw" / f"s-{name}-old" / "snapshots.txt").read_text()
        figures = dict(line.split(" ", 1) for line in printed.splitlines())
        assert (figures["snapshots"], float(figures["pool_percent"]) < 100) == ("3", True)
    assert left(vm_connection) == ""
