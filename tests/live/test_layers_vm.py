"""Layers of md, LVM and LUKS in the virtual box, whose kernel has them: made, read back and undone; what a kill leaves
is found again, and what others have made stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guests import clean_all, make_until, measured, place_of, prepared_run, sh
from mountlab.box.connection import BoxConnection
from mountlab.core.shell import script_argv
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.results import store
from rows import every_row

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_program("qemu-system-x86_64")]

RUN_DIR = "/var/tmp/layers/20260101T000000-layers"
MIRROR, LUKS = {"layer": "md", "level": "raid1"}, {"layer": "luks"}
DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 32, "cache": "as_is"}


def on_images(members: int, *stack: dict[str, Any], image: str = "64MiB") -> dict[str, Any]:
    return {"type": "ext4", "image": image, "members": members, "stack": list(stack)}


def md(level: str, **options: Any) -> dict[str, Any]:
    return {"layer": "md", "level": level, **options}


def integrity(**options: Any) -> dict[str, Any]:
    return {"layer": "integrity", **options}


def lvm(kind: str, **options: Any) -> dict[str, Any]:
    return {"layer": "lvm", "kind": kind, **options}


STACKS: dict[str, dict[str, Any]] = {
    "raid0": on_images(2, md("raid0", chunk="16KiB")),
    "linear": on_images(2, md("linear")),
    "raid1": on_images(2, md("raid1", bitmap="internal")),
    "raid1-mostly": on_images(3, md("raid1", bitmap="none", write_mostly=2)),
    "raid4": on_images(3, md("raid4", chunk="32KiB")),
    "raid5-journal": on_images(4, md("raid5", chunk="64KiB", journal=True)),
    "raid6": on_images(4, md("raid6", chunk="128KiB")),
    "raid10-n2": on_images(4, md("raid10", layout="n2")),
    "raid10-f2": on_images(2, md("raid10", layout="f2", chunk="64KiB")),
    "raid10-o3": on_images(3, md("raid10", layout="o3")),
    "luks": on_images(1, {**LUKS, "cipher": "aes-xts-plain64", "key_size": 256, "sector_size": "512B"}),
    "luks-direct": on_images(1, {**LUKS, "sector_size": "4KiB", "no_read_workqueue": True, "discards": True}),
    "luks-threads": on_images(1, {**LUKS, "no_read_workqueue": False, "no_write_workqueue": False}),
    "luks-tags": on_images(1, {**LUKS, "integrity": "hmac-sha256", "key_size": 256, "sector_size": "4KiB"}),
    "luks-tags-512": on_images(1, {**LUKS, "integrity": "hmac-sha512", "sector_size": "4KiB"}, image="48MiB"),
    "tags-journal": on_images(1, integrity(algorithm="crc32c", mode="journal", sector_size="512B")),
    "tags-bitmap": on_images(1, integrity(algorithm="sha256", mode="bitmap", sector_size="4KiB", discards=True)),
    "tags-none": on_images(1, integrity(algorithm="xxhash64", mode="none"), image="48MiB"),
    "tags-crc32": on_images(1, integrity(algorithm="crc32", sector_size="4KiB"), image="48MiB"),
    "tags-sha1": on_images(1, integrity(algorithm="sha1", discards=False), image="48MiB"),
    "mirrored-tags": on_images(2, md("raid1"), integrity(sector_size="4KiB")),
    "lv-linear": on_images(2, lvm("linear")),
    "lv-striped": on_images(2, lvm("striped", stripe="16KiB")),
    "lv-raid1": on_images(2, lvm("raid1")),
    "lv-raid5": on_images(3, lvm("raid5", stripe="64KiB")),
    "lv-raid6": on_images(5, lvm("raid6", stripe="32KiB")),
    "lv-raid10": on_images(4, lvm("raid10", stripe="128KiB")),
    "lv-raid10-integrity": on_images(4, lvm("raid10", integrity="journal"), image="320MiB"),
    "lv-thin": on_images(1, lvm("thin", chunk="128KiB", volume="64MiB"), image="128MiB"),
    "lv-thin-large": on_images(3, lvm("thin", chunk="32MiB")),
    "lv-cache": on_images(3, lvm("cache", mode="writeback", chunk="32KiB")),
    "lv-cache-through": on_images(2, lvm("cache", mode="writethrough")),
    "lv-writecache": on_images(2, lvm("writecache", block_size="4KiB")),
    "lv-writecache-512": on_images(2, lvm("writecache", block_size="512B")),
    "lv-snapshot": on_images(2, lvm("snapshot", chunk="16KiB")),
    "cached-tags": on_images(2, lvm("cache"), integrity(mode="bitmap")),
    "all": on_images(3, md("raid5"), LUKS, lvm("linear"), image="96MiB"),
    "btrfs": {"type": "btrfs", "image": "128MiB", "members": 2, "mkfs": ["-d", "raid1", "-m", "raid1"]},
}

WHAT_IS_LEFT = """
grep ^md /proc/mdstat; dmsetup ls | grep -v 'No devices'; losetup --list --noheadings
ls /dev/md /dev/mapper | grep mountlab; pgrep -a dmeventd
"""


def left(box: BoxConnection) -> str:
    return box.run(("sh", "-c", WHAT_IS_LEFT), root=True).text.strip()


@pytest.fixture
def run_dir(vm_connection: BoxConnection) -> Iterator[str]:
    """The directory of a run that is interrupted wherever a test likes."""
    with prepared_run(vm_connection, RUN_DIR):
        yield RUN_DIR


UUIDS = tuple(uuid_for("", "layers", str(number)) for number in range(3))


def make_stack_until(box: BoxConnection, entry: dict[str, Any], word: str) -> dict[str, str]:
    """As `make_until`, with the UUIDs by which the tests know the layers."""
    return make_until(box, entry, replace(place_of(RUN_DIR), layer_uuids=UUIDS[: len(entry["stack"])]), word)


# --- made, read back, undone ------------------------------------------------------------------------------------------


def test_a_mirror_below_encryption_is_made_and_what_a_kill_leaves_of_it_is_undone(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    """Nothing undoes it here, as after a kill: the record in the run's directory is all that clean has."""
    before = left(vm_connection)
    values = make_stack_until(vm_connection, on_images(2, MIRROR, LUKS), "mke2fs")
    assert sh(vm_connection, f"cat /sys/block/{values['device'].removeprefix('/dev/')}/dm/uuid").startswith(
        "CRYPT-LUKS2-"
    )
    assert values["layer1"].startswith("/dev/md")
    removed = clean_all(vm_connection, RUN_DIR)
    assert [each.name.split()[0] for each in removed if each.kind == "layer"] == ["luks", "md"], "the last first"
    assert left(vm_connection) == before


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, vm_connection: BoxConnection) -> store.Run:
    results, design = tmp_path_factory.mktemp("results"), {"repeats": 1, "on_ineffective": "caveat"}
    return measured(vm_connection, results, filesystems=STACKS, workloads={"dd": DD}, design=design)


def test_every_layer_is_tried_in_the_virtual_box() -> None:
    tried = {layer["layer"]: set[str]() for entry in STACKS.values() for layer in entry.get("stack", [])}
    for entry in STACKS.values():
        for layer in entry.get("stack", []):
            tried[layer["layer"]] |= layer.keys() - {"layer"}
    assert tried == {kind: {*layer.options} for kind, layer in STACK_LAYERS.items()}


@pytest.mark.long
@every_row("name", list(STACKS))
def test_it_is_measured_and_every_option_of_every_layer_is_in_effect(run: store.Run, name: str) -> None:
    (row,) = run.trials[run.trials["filesystem"] == name].to_dict("records")
    assert (row["status"], row["reason"]) == ("ok", "")
    states = {row.option: (row.state, row.kernel_says) for row in run.options if row.filesystem == name}
    asked = [f"{layer['layer']}: {key}" for layer in STACKS[name].get("stack", []) for key in layer if key != "layer"]
    assert sorted(option.partition("=")[0] for option in states if ": " in option and "=" in option) == sorted(asked)
    assert {state for state, _ in states.values()} == {"in effect"}, states


@pytest.mark.long
def test_nothing_of_them_is_left(run: store.Run, vm_connection: BoxConnection) -> None:
    assert left(vm_connection) == ""
    assert Path(run.path).exists()


@pytest.mark.long
def test_a_check_of_a_volume_that_begins_during_a_trial_is_said(vm_connection: BoxConnection, tmp_path: Path) -> None:
    """It is so slow that it does not end before the trial."""
    begun = {
        "tool": "command", "space": "1MiB", "metrics": {"elapsed": {"from": "clock"}},
        "argv": "sh -c 'touch {directory}/f; dmsetup message $(ls /dev/mapper | grep data$) 0 check'",
    }  # fmt: skip
    limits = "/proc/sys/dev/raid/speed_limit_min /proc/sys/dev/raid/speed_limit_max"
    usual = sh(vm_connection, f"modprobe md-mod; cat {limits}").split()
    set_limits = "; ".join(f"echo {{}} >{file}" for file in limits.split())
    stack = {"lv": on_images(2, lvm("raid1"))}
    sh(vm_connection, set_limits.format(10, 10))
    try:
        run = measured(vm_connection, tmp_path, filesystems=stack, workloads={"w": begun}, design={"repeats": 1})
    finally:
        sh(vm_connection, set_limits.format(*usual))
    assert {(row["status"], row["reason"]) for row in run.trials.to_dict("records")} == {("ok", "")}
    (caveat,) = (each for each in run.caveats if each.code == "array-not-clean")
    assert re.search(r"the volume mountlab-\w+/data \(check\) was not clean", caveat.message)


# --- what others have made --------------------------------------------------------------------------------------------

OTHERS = """set -e
mkdir -p /var/tmp/others && cd /var/tmp/others
for name in a b c d; do truncate -s 32M $name; losetup --find --show $PWD/$name; done >loops
{ read -r a; read -r b; read -r c; read -r d; } <loops
mdadm --create --quiet /dev/md/others --level=1 --raid-devices=2 --run --assume-clean $a $b </dev/null
printf x | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file=- $c
printf x | cryptsetup open --key-file=- $c others
export DM_DISABLE_UDEV=1; config='activation { monitoring = 0 }'
pvcreate -qq -y --config "$config" $d && vgcreate -qq -y --config "$config" others $d
lvcreate -qq -y --config "$config" -l 100%FREE -n data others
"""
LOOK_AT_OTHERS = """cd /var/tmp/others; sync
sha256sum /dev/md/others /dev/mapper/others /dev/others/data; dmsetup table others
mdadm --detail --export /dev/md/others"""
REMOVE_OTHERS = """cd /var/tmp/others; export DM_DISABLE_UDEV=1
vgremove -qq -ff -y others; cryptsetup close others
array=$(readlink -f /dev/md/others); mdadm --stop --quiet /dev/md/others
rm -f /dev/md/others "$array"; xargs losetup -d <loops; cd /; rm -rf /var/tmp/others"""


@pytest.fixture(scope="module")
def others(vm_connection: BoxConnection) -> Iterator[str]:
    """An array, a mapping and a volume group of somebody else's: what they hold, and are."""
    try:
        sh(vm_connection, OTHERS)
        yield sh(vm_connection, LOOK_AT_OTHERS)
    finally:
        vm_connection.run(("sh", "-c", REMOVE_OTHERS), root=True, timeout_s=120.0)


@pytest.mark.long
@pytest.mark.parametrize("stop_at", ["layer.sh", "find", "mke2fs"])
def test_what_others_have_made_stays_as_it_is_when_a_half_made_stack_is_undone(
    stop_at: str, vm_connection: BoxConnection, run_dir: str, others: str
) -> None:
    make_stack_until(vm_connection, on_images(4, md("raid5"), LUKS, lvm("linear")), stop_at)
    clean_all(vm_connection, RUN_DIR)
    assert sh(vm_connection, LOOK_AT_OTHERS) == others
    assert "mountlab" not in left(vm_connection)


@pytest.mark.long
def test_a_layer_that_others_have_made_is_not_undone_by_the_name_that_ours_would_have(
    vm_connection: BoxConnection, run_dir: str, others: str
) -> None:
    """The record names it, and its UUID is another one."""
    sh(vm_connection, f"echo '{UUIDS[0]} md images /dev/loop0' >{run_dir}/layers")
    sh(vm_connection, f"ln -sfn $(readlink -f /dev/md/others) /dev/md/mountlab-{UUIDS[0].replace('-', '')[16:]}")
    done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    assert done.ok, done.error_text
    sh(vm_connection, f"rm -f /dev/md/mountlab-{UUIDS[0].replace('-', '')[16:]}")
    assert sh(vm_connection, LOOK_AT_OTHERS) == others


@pytest.mark.long
def test_a_layer_below_something_of_others_stays_in_the_record_and_says_why(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    values = make_stack_until(vm_connection, on_images(2, MIRROR), "mke2fs")
    back = script_argv("layer.sh", "back", run_dir, UUIDS[0])
    sh(vm_connection, f"DM_DISABLE_UDEV=1 dmsetup create someone --table '0 2048 linear {values['device']} 0'")
    try:
        refused = vm_connection.run(back, root=True)
    finally:
        sh(vm_connection, "DM_DISABLE_UDEV=1 dmsetup remove someone")
    assert (refused.ok, refused.error_text.strip()) == (False, f"refused: md {UUIDS[0]} is still in use")
    assert vm_connection.run(back, root=True).ok
    assert "mountlab" not in left(vm_connection)


@pytest.mark.long
def test_volumes_that_a_killed_lvm_left_and_its_metadata_do_not_have_are_removed_from_above(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    """Seen where lvconvert was killed: the kernel has parts of the new volume, and LVM knows only the old one."""
    values = make_stack_until(vm_connection, on_images(1, lvm("linear")), "mke2fs")
    name = f"mountlab--{UUIDS[0].replace('-', '')[16:]}"
    for part, below in (("corig", values["member1"]), ("part", f"/dev/mapper/{name}-corig"), ("top", f"{name}-part")):
        table = f"0 2048 linear {below if '/' in below else f'/dev/mapper/{below}'} 0"
        create = f"DM_DISABLE_UDEV=1 dmsetup create {name}-{part} --uuid LVM-{part} --table '{table}'"
        sh(vm_connection, create)
    done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    assert done.ok, done.error_text
    assert "mountlab" not in sh(vm_connection, "dmsetup ls")


@pytest.mark.long
def test_a_volume_of_others_on_a_device_of_the_record_that_carries_nothing_is_not_removed(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    """After a restart another disk may have the name that was written down."""
    loop = sh(vm_connection, f"truncate -s 16M {run_dir}/img/f.img; losetup --find --show {run_dir}/img/f.img")
    sh(
        vm_connection,
        f"DM_DISABLE_UDEV=1 dmsetup create theirs-data --uuid LVM-theirs --table '0 2048 linear {loop} 0'",
    )
    sh(vm_connection, f"echo '{UUIDS[0]} lvm images {loop} {UUIDS[1].replace('-', '')}' >{run_dir}/layers")
    done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    stay = sh(vm_connection, "dmsetup ls | cut -f 1")
    sh(vm_connection, "DM_DISABLE_UDEV=1 dmsetup remove theirs-data")
    assert (done.ok, "theirs-data" in stay.split()) == (True, True), done.error_text


# --- a tool that is killed while it formats -------------------------------------------------------------------------


@pytest.mark.long
def test_the_mapping_through_which_a_killed_tool_formatted_is_removed_and_one_of_another_process_is_not(
    vm_connection: BoxConnection, run_dir: str
) -> None:
    """cryptsetup names it after its process."""
    loop = sh(vm_connection, f"truncate -s 16M {run_dir}/img/f.img; losetup --find --show {run_dir}/img/f.img")
    boot = sh(vm_connection, "cat /proc/sys/kernel/random/boot_id")
    lines = f"{UUIDS[0]} {boot} temporary-cryptsetup-41", f"{UUIDS[0]} {boot[::-1]} temporary-cryptsetup-42"
    for number in (41, 42):
        table = f"0 2048 linear {loop} {number * 64}"
        sh(vm_connection, f"DM_DISABLE_UDEV=1 dmsetup create temporary-cryptsetup-{number} --table '{table}'")
    sh(vm_connection, f"echo '{UUIDS[0]} integrity images {loop}' >{run_dir}/layers")
    for line in lines:
        sh(vm_connection, f"echo '{line}' >>{run_dir}/layers.process")
    done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    stay = sh(vm_connection, "dmsetup ls | cut -f 1 | grep temporary")
    sh(vm_connection, "DM_DISABLE_UDEV=1 dmsetup remove temporary-cryptsetup-42")
    assert (done.ok, stay) == (True, "temporary-cryptsetup-42"), done.error_text


# --- scratch devices --------------------------------------------------------------------------------------------------

SCRATCH = "/dev/disk/by-id/virtio-mountlab-scratch"
ON_ONE = {"luks": (), "lvm": (f"volumes={uuid_for('', UUIDS[0], '0')}", "--type=linear"), "integrity": ()}
"""Layer to the words that make it on one device."""
CARRIES = f"blkid -p -o value -s TYPE -s UUID {SCRATCH} | tr '\\n' ' '"


def make_on(box: BoxConnection, kind: str, device: str, run_dir: str) -> None:
    """Make a layer on a scratch device below its guard, which records its UUID."""
    made = script_argv("layer.sh", "make", run_dir, kind, UUIDS[0], "marked", *ON_ONE[kind], "--", device)
    done = box.run((*script_argv("guard.sh", SCRATCH, "", ""), *made), root=True, timeout_s=600.0)
    assert done.ok, done.error_text


@pytest.fixture
def small_scratch(vm_connection: BoxConnection, run_dir: str) -> Iterator[str]:
    """The name that the kernel has for the scratch device; nothing lies on it at the end."""
    device = sh(vm_connection, f"readlink -f {SCRATCH}")
    yield device
    vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    sh(vm_connection, f"wipefs -a -q {device}")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["luks", "lvm"])
def test_a_layer_on_a_disk_that_has_another_name_after_a_restart_is_undone(
    kind: str, vm_connection: BoxConnection, run_dir: str, small_scratch: str
) -> None:
    make_on(vm_connection, kind, small_scratch, run_dir)
    sh(vm_connection, f"sed -i 's,{small_scratch},/dev/vdz,' {run_dir}/layers")
    done = vm_connection.run(script_argv("layer.sh", "back", run_dir, UUIDS[0]), root=True)
    assert done.ok, done.error_text
    assert "mountlab" not in left(vm_connection)
    assert sh(vm_connection, CARRIES).split() == [UUIDS[0], "ext2"]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "command"), [("luks", "dmsetup remove"), ("lvm", "vgchange -an")])
def test_the_guard_says_how_a_device_is_freed_of_a_layer_whose_record_is_lost(
    kind: str, command: str, vm_connection: BoxConnection, run_dir: str, small_scratch: str
) -> None:
    make_on(vm_connection, kind, small_scratch, run_dir)
    sh(vm_connection, f"mv {run_dir}/layers {run_dir}/kept")
    refused = vm_connection.run(script_argv("guard.sh", SCRATCH, "", ""), root=True)
    sh(vm_connection, f"mv {run_dir}/kept {run_dir}/layers")
    name = f"mountlab-{UUIDS[0].replace('-', '')[16:]}"
    assert (refused.ok, f"`{command} {name}`" in refused.error_text) == (False, True), refused.error_text
