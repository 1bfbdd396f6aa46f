"""Pools of ZFS in a virtual box that has it: made, read back and undone; what a kill leaves is found again, and pools
of others stay as they are, whatever their names."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guests import (
    as_line,
    clean,
    disks_of,
    measured,
    place_of,
    prepare_run,
    prepared_run,
    put,
    quoted,
    read,
    sh,
    virtual_box,
)  # fmt: skip
from mountlab.box.connection import BoxConnection
from mountlab.core.model import Step
from mountlab.core.shell import script_argv, script_text
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.zfs import pool_name, pool_uuid
from mountlab.results import store
from rows import every_row

pytestmark = [
    pytest.mark.box,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.requires_program("qemu-system-x86_64"),
]

RUN_DIR = "/var/tmp/pools/20260101T000000-pools"
PLACE = place_of(RUN_DIR)
DISKS = 4
DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 32, "data": "random", "cache": "as_is"}
COLD = {"tool": "dd", "direction": "read", "bs": "64KiB", "count": 32, "cache": "cold"}


def on_images(members: int, *vdevs: Any, image: str = "80MiB", **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "zfs", "image": image, "members": members, "preallocate": False, **more}
    return {**entry, "vdevs": list(vdevs)} if vdevs else entry


POOLS: dict[str, dict[str, Any]] = {
    "stripe": on_images(
        2,
        arc="96MiB",
        mkfs=["-o", "ashift=12", "-o", "autotrim=on"],
        options=["recordsize=8K", "compression=lz4", "atime=off", "xattr=sa", "logbias=throughput", "sync=always"],
    ),
    "mirror": on_images(
        2,
        {"mirror": [1, 2]},
        options=["checksum=sha256", "primarycache=metadata", "redundant_metadata=most", "dnodesize=auto",
                 "acltype=posixacl"],
    ),
    "mirrors": on_images(
        4, {"mirror": [1, 2]}, {"mirror": [3, 4]}, options=["copies=2", "compression=gzip-6", "snapdir=visible"]
    ),
    "raidz1": on_images(3, {"raidz1": [1, 2, 3]}, options=["compression=zstd-3", "recordsize=1M"]),
    "raidz2": on_images(
        4,
        {"raidz2": [1, 2, 3, 4]},
        mkfs=["-o", "ashift=9", "-o", "failmode=continue"],
        options=["exec=off", "devices=off", "setuid=off"],
    ),
    "encrypted": on_images(2, {"mirror": [1, 2]}, options=["encryption=aes-256-gcm"]),
    "parts": on_images(
        6,
        {"mirror": [1, 2]},
        {"log": [3]},
        {"cache": [4]},
        {"special": {"mirror": [5, 6]}},
        options=["special_small_blocks=4K", "secondarycache=metadata"],
    ),
    "on-md": {
        "type": "zfs", "image": "128MiB", "members": 2, "stack": [{"layer": "md", "level": "raid1"}],
        "options": ["dedup=on"], "mkfs": ["-o", "feature@lz4_compress=enabled"],
    },
}  # fmt: skip
LEFT = "zpool list -H -o name; losetup --list --noheadings; ls /dev | grep mountlab-"


@pytest.fixture(scope="module")
def zfs_box() -> Iterator[BoxConnection]:
    """It takes ten minutes to build where this machine has no such box yet."""
    with virtual_box(**{"with": ["zfs"], "disks": DISKS}) as connection:
        yield connection


@pytest.fixture
def run_dir(zfs_box: BoxConnection) -> Iterator[str]:
    with prepared_run(zfs_box, RUN_DIR):
        yield RUN_DIR


# --- made, read back, undone ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, zfs_box: BoxConnection) -> store.Run:
    results, design = tmp_path_factory.mktemp("results"), {"repeats": 1, "on_ineffective": "caveat"}
    return measured(zfs_box, results, filesystems=POOLS, workloads={"write": DD, "read": COLD}, design=design)


@every_row("name", list(POOLS))
def test_a_pool_is_measured_and_all_that_was_asked_of_it_is_in_effect(run: store.Run, name: str) -> None:
    rows = run.trials[run.trials["filesystem"] == name].to_dict("records")
    assert {(row["status"], row["reason"]) for row in rows} == {("ok", "")}
    states = {row.option: (row.state, row.kernel_says) for row in run.options if row.filesystem == name}
    entry = POOLS[name]
    asked = {*entry.get("options", []), *(f"-o {word}" for word in entry.get("mkfs", []) if "=" in word)}
    assert asked <= states.keys()
    assert sum(option.startswith("vdev ") for option in states) == len(entry.get("vdevs", []))
    assert {state for state, _ in states.values()} == {"in effect"}, states


@every_row("name", ["mirror", "raidz2", "encrypted", "parts"])
def test_a_cold_read_comes_from_the_devices_of_the_pool(run: store.Run, name: str) -> None:
    """The ARC outlives drop_caches; export and import of the pool empty it. Pools that compress, or that store equal
    records once, deliver less: the file is of zeros."""
    trials = run.trials[run.trials["filesystem"] == name]
    (cold,) = trials[trials["workload"] == "read"]["trial_id"]
    (moved,) = (each.device_bytes for each in run.moved if each.trial_id == cold)
    assert moved > 0.9 * 32 * 64 * 1024, moved


def test_nothing_of_them_is_left_and_the_bound_of_the_cache_is_given_back(
    run: store.Run, zfs_box: BoxConnection
) -> None:
    assert zfs_box.run(("sh", "-c", LEFT), root=True).text.strip() == ""
    assert sh(zfs_box, "cat /sys/module/zfs/parameters/zfs_arc_max /sys/module/zfs/parameters/zfs_arc_min") == "0\n0"
    assert int(sh(zfs_box, "awk '$1 == \"c_max\" { print $3 }' /proc/spl/kstat/zfs/arcstats")) > 96 * 2**20
    assert Path(run.path).exists()


# --- datasets and snapshots in them -----------------------------------------------------------------------------------

SMALL = {"type": "zfs", "image": "96MiB", "members": 2, "preallocate": False}
SENT = {"tool": "send", "size": "2MiB", "change": "10%"}
ON_DATASETS: dict[str, dict[str, Any]] = {
    "copy": {**SENT, "via": "send"},
    "stream": {**SENT, "via": "send", "to": "null", "cache": "as_is"},
    "taken": {"tool": "snapshot", "size": "2MiB", "snapshots": 3, "change": "10%"},
}


def test_copies_and_snapshots_are_what_their_source_was_and_nothing_is_left(
    zfs_box: BoxConnection, results_dir: Path
) -> None:
    """The copy is cold: the pool is exported and imported with the dataset of the source in it."""
    compressed = {"z": {**SMALL, "options": ["compression=lz4"]}}
    run = measured(zfs_box, results_dir, filesystems=compressed, workloads=ON_DATASETS, design={"repeats": 1})
    assert {(row["status"], row["reason"]) for row in run.trials.to_dict("records")} == {("ok", "")}
    labels = {(row["workload"], row["label"]) for row in run.measurements.to_dict("records")}
    assert {("copy", "incremental"), ("stream", "full"), ("taken", "space back")} <= labels
    assert zfs_box.run(("sh", "-c", LEFT), root=True).text.strip() == ""
    assert "array-not-clean" not in {caveat.code for caveat in run.caveats}


def test_each_mount_of_a_pool_begins_from_the_same_files_and_snapshots(
    zfs_box: BoxConnection, results_dir: Path
) -> None:
    states = {"many": {"fill": "10%", "profile": "mail", "snapshots": 2, "change": "5%"}}
    run = measured(
        zfs_box, results_dir, filesystems={"z": {**SMALL, "state": "many"}}, workloads={"w": DD}, states=states,
        design={"repeats": 2, "warmup": 0},
    )  # fmt: skip
    assert {(row["status"], row["reason"]) for row in run.trials.to_dict("records")} == {("ok", "")}
    (record,) = run.states
    assert (len(record.mounts), record.identities) == (2, ("",)), "nothing is kept"
    assert abs(record.made.fill - 0.1) < 0.02
    assert "snapshots 2" in (run.path / "raw" / "s-z-many" / "snapshots.txt").read_text()


def test_a_scrub_that_begins_during_a_trial_is_said(zfs_box: BoxConnection, results_dir: Path) -> None:
    """The box may begin one by itself; this one does not end before the trial."""
    begun = {
        "tool": "command", "argv": "sh -c 'touch {directory}/f; zpool scrub $(zpool list -H -o name)'", "space": "1MiB",
        "metrics": {"elapsed": {"from": "clock"}},
    }  # fmt: skip
    suspends = "/sys/module/zfs/parameters/zfs_scan_suspend_progress"
    sh(zfs_box, f"echo 1 >{suspends}")
    try:
        run = measured(zfs_box, results_dir, filesystems={"z": SMALL}, workloads={"w": begun}, design={"repeats": 1})
    finally:
        sh(zfs_box, f"echo 0 >{suspends}")
    assert {(row["status"], row["reason"]) for row in run.trials.to_dict("records")} == {("ok", "")}
    (caveat,) = (each for each in run.caveats if each.code == "array-not-clean")
    assert re.search(r"the pool mountlab-\w+ \(ONLINE, scrub\) was not clean", caveat.message)


TRIALS = """set -e
mkdir -p {run}/mnt/f && mount -t zfs {pool}/data {run}/mnt/f
for trial in t0001 t0002; do
    mkdir -p {run}/mnt/f/$trial/source
    zfs create -p {pool}/data/$trial/source && zfs create {pool}/data/$trial/copy
    mount -t zfs {pool}/data/$trial/source {run}/mnt/f/$trial/source
    zfs snapshot {pool}/data/$trial/source@first
done
directory={run}/mnt/f/t0001
"""
REST = """
remove_datasets $directory
zfs list -H -r -t all -o name {pool}/data
awk '$5 ~ "^{run}/mnt/f" {{ print $5 }}' /proc/self/mountinfo
umount {run}/mnt/f/t0002/source {run}/mnt/f; rm -rf {run}/mnt
"""


def test_datasets_of_one_trial_are_removed_and_no_others(zfs_box: BoxConnection, run_dir: str) -> None:
    name, uuid = pool_name(PLACE), pool_uuid(PLACE)
    loop = sh(zfs_box, f"truncate -s 80M {RUN_DIR}/x; losetup --find --show {RUN_DIR}/x")
    try:
        sh(
            zfs_box,
            shlex.join(script_argv("layer.sh", "make", RUN_DIR, "zfs", uuid, "images", "+", "+", "1", "--", loop)),
        )
        words = {"run": RUN_DIR, "pool": name}
        seen = sh(zfs_box, TRIALS.format(**words) + script_text("datasets.sh") + REST.format(**words)).split()
        of_other = [f"{name}/data/t0002{rest}" for rest in ("", "/copy", "/source", "/source@first")]
        assert seen == [f"{name}/data", *of_other, f"{RUN_DIR}/mnt/f", f"{RUN_DIR}/mnt/f/t0002/source"]
    finally:
        zfs_box.run(script_argv("layer.sh", "back", RUN_DIR, uuid), root=True)
        zfs_box.run(("sh", "-c", f"losetup -d {loop}; rm -f {RUN_DIR}/x"), root=True)


# --- killed, beside pools of others -----------------------------------------------------------------------------------

OTHERS = """set -e
mkdir -p /var/tmp/others && cd /var/tmp/others
for name in a b c d; do truncate -s 80M $name; losetup --find --show $PWD/$name; done >loops
{ read -r a; read -r b; read -r c; read -r d; } <loops
zpool create -o cachefile=none -m none exported mirror $a $b
zfs create -o mountpoint=legacy exported/data
zpool export exported
zpool create -o cachefile=none -m none others mirror $c $d
zfs create -o mountpoint=legacy others/data
mkdir -p /var/tmp/others/mnt; mount -t zfs others/data /var/tmp/others/mnt
dd if=/dev/urandom of=/var/tmp/others/mnt/file bs=1M count=4 2>/dev/null; sync
"""
LOOK = """cd /var/tmp/others; sha256sum a b mnt/file
zpool get -H -o value guid,health others; zpool status others | grep errors"""
REMOVE_OTHERS = """cd /var/tmp/others; umount mnt; zpool destroy others
xargs losetup -d <loops; cd /; rm -rf /var/tmp/others"""


@pytest.fixture(scope="module")
def others(zfs_box: BoxConnection) -> Iterator[str]:
    """A pool of somebody else's that is in use, and one that is exported: what they hold, and are."""
    try:
        sh(zfs_box, OTHERS)
        yield sh(zfs_box, LOOK)
    finally:
        zfs_box.run(("sh", "-c", REMOVE_OTHERS), root=True, timeout_s=120.0)


ON_DISKS = {
    "type": "zfs", "device": ["a", "b", "c", "d"], "options": ["recordsize=8K"],
    "vdevs": [{"mirror": ["a", "b"]}, {"log": ["c"]}, {"cache": ["d"]}],
}  # fmt: skip


def as_script(steps: tuple[Step, ...]) -> str:
    """Commands one after the other as one script, and what undoes them, the last first."""
    undo = [f"{quoted(step.undo)} >/dev/null" for step in reversed(steps) if step.undo]
    return "\n".join([*map(as_line, steps), *undo])


INSTANTS = 10


def test_a_pool_that_is_killed_anywhere_is_undone_and_pools_of_others_stay(
    zfs_box: BoxConnection, run_dir: str, others: str
) -> None:
    """At random instants of making and undoing; afterwards the guard knows each disk as ours."""
    disks = disks_of(zfs_box, DISKS)
    identity = disks[0][1]
    place = replace(
        PLACE, device=disks[0][0], device_id=identity, more_devices=disks[1:], uuid=uuid_for(identity, "pools")
    )
    fs = read(ON_DISKS)
    script = as_script(FAMILIES["zfs"].steps(fs, place))
    timed = f"began=$(date +%s%N)\n{script}\necho $((($(date +%s%N) - began) / 1000000))"
    put(zfs_box, "/var/tmp/pools-script", f"export MOUNTLAB_RUN=pools\n{timed}")
    took = int(sh(zfs_box, "sh /var/tmp/pools-script").splitlines()[-1])
    assert sh(zfs_box, LOOK) == others
    picked = random.Random(1)
    for _ in range(INSTANTS):
        after = picked.uniform(0.02, 0.95) * took / 1000
        prepare_run(zfs_box, RUN_DIR)
        sh(
            zfs_box,
            f"setsid sh /var/tmp/pools-script >/dev/null 2>&1 & sleep {after:.3f}; kill -s KILL -- -$!; wait; true",
        )
        removed = clean(zfs_box, RUN_DIR)
        assert [found for found in removed if not found.removed] == [], f"after {after} s"
        left = zfs_box.run(("sh", "-c", LEFT), root=True).text
        assert "mountlab-" not in left, f"after {after} s: {left}"
        assert disks_of(zfs_box, DISKS) == disks, f"after {after} s"
        assert sh(zfs_box, LOOK) == others
    sh(zfs_box, "rm /var/tmp/pools-script")


def test_a_pool_of_others_with_the_name_of_ours_is_neither_destroyed_nor_taken(
    zfs_box: BoxConnection, run_dir: str
) -> None:
    """Nor are its devices, though a record names them: the comment in their labels is not ours."""
    name, uuid = pool_name(PLACE), pool_uuid(PLACE)
    (loop,) = sh(zfs_box, f"truncate -s 80M {RUN_DIR}/theirs; losetup --find --show {RUN_DIR}/theirs").split()
    try:
        sh(zfs_box, f"zpool create -o cachefile=none -m none {name} {loop}")
        guid = sh(zfs_box, f"zpool get -H -o value guid {name}")
        made = zfs_box.run(
            script_argv("layer.sh", "make", RUN_DIR, "zfs", uuid, "images", "+", "+", "1", "--", "/dev/ram0"), root=True
        )
        assert not made.ok
        sh(zfs_box, f"echo '{uuid} zfs images {loop}' >{RUN_DIR}/layers")
        assert zfs_box.run(script_argv("layer.sh", "back", RUN_DIR, uuid), root=True).ok
        assert sh(zfs_box, f"zpool get -H -o value guid {name}") == guid
    finally:
        zfs_box.run(("sh", "-c", f"zpool destroy {name}; losetup -d {loop}; rm -f {RUN_DIR}/theirs"), root=True)


def test_a_pool_that_others_gave_a_device_of_theirs_is_not_destroyed(zfs_box: BoxConnection, run_dir: str) -> None:
    name, uuid = pool_name(PLACE), pool_uuid(PLACE)
    loops = [sh(zfs_box, f"truncate -s 80M {RUN_DIR}/{n}; losetup --find --show {RUN_DIR}/{n}") for n in ("x", "y")]
    back = script_argv("layer.sh", "back", RUN_DIR, uuid)
    try:
        make = script_argv("layer.sh", "make", RUN_DIR, "zfs", uuid, "images", "+", "+", "1", "--", loops[0])
        made = zfs_box.run(make, root=True)
        assert made.ok, made.error_text
        sh(zfs_box, f"zpool attach {name} /dev/{name}/1 {loops[1]}; zpool wait {name}")
        refused = zfs_box.run(back, root=True)
        assert not refused.ok
        assert f"a device that this run did not give it: {loops[1]}" in refused.error_text
        sh(zfs_box, f"zpool detach {name} {loops[1]}")
        assert zfs_box.run(back, root=True).ok
        assert "mountlab-" not in zfs_box.run(("sh", "-c", "zpool list -H; ls /dev"), root=True).text
    finally:
        zfs_box.run(("sh", "-c", f"losetup -d {' '.join(loops)}; rm -f {RUN_DIR}/x {RUN_DIR}/y"), root=True)


def test_the_guard_refuses_a_pool_of_others_and_knows_ours_by_the_record(zfs_box: BoxConnection, run_dir: str) -> None:
    """On a disk that Mountlab made the label alone tells; a pool of another name is refused also there."""
    disks = disks_of(zfs_box, DISKS)
    sh(zfs_box, f"mkdir /dev/tank; mknod /dev/tank/1 b $(stat -L -c '0x%t 0x%T' {disks[0][0]})")
    try:
        sh(zfs_box, "zpool create -f -o cachefile=none -m none tank /dev/tank/1")
        look = script_argv("guard.sh", disks[0][0], "", "")
        busy = zfs_box.run(look, root=True)
        assert (busy.ok, "is in use" in busy.error_text) == (False, True)
        sh(zfs_box, "zpool export tank")
        theirs = zfs_box.run(look, root=True)
        assert (theirs.ok, "zfs_member, label tank" in theirs.error_text) == (False, True), theirs.error_text
        sh(zfs_box, f"zpool import -d /dev/tank -N -o cachefile=none tank {pool_name(PLACE)}; zpool export -a")
        ours = zfs_box.run(look, root=True)
        assert ours.ok, ours.error_text
    finally:
        zfs_box.run(("sh", "-c", f"wipefs -a -q {disks[0][0]}; rm -rf /dev/tank"), root=True)
