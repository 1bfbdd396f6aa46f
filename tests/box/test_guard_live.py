"""The guard against real devices: each way to hold data or to be in use is refused, and no byte of it changes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import disks
import pytest
from disks import BTRFS_SIZE, MIB, OURS, SIZE, THEIRS, XFS_SIZE, Disks, another_id, command
from mountlab.filesystems.base import script_argv
from mountlab.filesystems.guard import mark_argv, read_permission, read_refusal

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("losetup"),
    pytest.mark.requires_program("wipefs"),
]

Situation = Callable[[Disks], str]
"""Builds a situation, and gives the device that the guard is asked about."""
GPT = f"label: gpt\nlabel-id: {THEIRS}\nsize=20MiB, uuid={OURS}\n,\n"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


Done = subprocess.CompletedProcess[str]


def guard(device: str | Path, *command: str, overwrite: str = "", expected: str = "") -> Done:
    argv = script_argv("guard.sh", str(device), overwrite, expected, *command)
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def assert_refused(done: Done, found: str, permit: str = "") -> None:
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("refused: "), done.stderr
    refusal = read_refusal(done.stderr)
    assert re.search(found, refusal.found), refusal.found
    assert re.fullmatch(permit, refusal.permit), done.stderr


# --- data: refused ----------------------------------------------------------------------------------------------------


def filled(fill: Callable[[str], object], *, size: int = SIZE) -> Situation:
    def build(made: Disks) -> str:
        device = made.loop(size=size)
        fill(device)
        return device

    return build


def table(script: str) -> Situation:
    def build(made: Disks) -> str:
        device = made.loop()
        command("sfdisk", "--quiet", "--no-reread", device, stdin=script)
        return device

    return build


def second_table_only(made: Disks) -> str:
    """The usual accident, `dd` to the beginning of a disk: the second copy of the GPT can still save it."""
    device = table(GPT)(made)
    disks.write(device, bytes(MIB))
    return device


def beginning_lost(made: Disks) -> str:
    """The signature is gone, the data can still be rescued."""
    device = made.loop()
    disks.ext4(device)
    disks.write(device, bytes(MIB))
    return device


def md_member_over_ext4(made: Disks) -> str:
    """blkid tells of the array only, since a file system inside of one is to be expected."""
    device = made.loop()
    disks.ext4(device)
    disks.md_member(device)
    return device


def ext2_over_btrfs(made: Disks) -> str:
    """Written over the beginning only: btrfs has its super block at 64 KiB."""
    device = made.loop(size=BTRFS_SIZE)
    disks.btrfs(str(uuid4()), device)
    command(*mark_argv(device))
    return device


def table_over_ext4(made: Disks) -> str:
    """Both are real: what the table says lies inside of what the file system says."""
    device = made.loop()
    disks.ext4(device, OURS)
    disks.write(device, bytes([0, 0, 1, 0, 0x83, 0, 1, 0, 0, 8, 0, 0, 0, 8, 0, 0]), at=446)
    disks.write(device, b"\x55\xaa", at=510)
    return device


def large_with(at: int, size: int = 3 * 2**30) -> Situation:
    """More than a GiB: looked at in places."""
    return filled(lambda device: disks.write(device, b"x", at=at), size=size)


DATA: dict[str, tuple[Situation, str, str]] = {
    "ext4": (filled(disks.ext4), r"holds ext4, id " + THEIRS, THEIRS),
    "ext4 with our name as its label": (
        filled(lambda device: disks.ext4(device, THEIRS, "-L", "mountlab")), r"holds ext4, label mountlab, id", THEIRS,
    ),
    "external journal": (filled(disks.journal), r"holds jbd, id", THEIRS),
    "btrfs": (filled(lambda d: disks.btrfs(str(uuid4()), d), size=BTRFS_SIZE), r"holds btrfs, id", "[0-9a-f-]{36}"),
    "swap": (filled(lambda device: command("mkswap", "-U", THEIRS, device)), r"holds swap, id", THEIRS),
    "GPT": (table(GPT), r"holds a partition table \(gpt\), id", THEIRS),
    "second GPT only": (second_table_only, r"holds gpt by wipefs, but nothing by blkid", "-"),
    "MBR": (table("label: dos\nlabel-id: 0x12345678\n,\n"), r"holds a partition table \(dos\), id", "12345678"),
    "LVM member": (filled(disks.lvm_member), r"holds LVM2_member, id", r"\w{6}(-\w{4}){5}-\w{6}"),
    "md member": (filled(disks.md_member), r"holds linux_raid_member, label box:0, id", THEIRS),
    "md member, metadata 1.0": (filled(disks.md_member_at_the_end), r"holds linux_raid_member", THEIRS),
    "LUKS": (filled(disks.luks), r"holds crypto_LUKS, id", THEIRS),
    "bcache": (filled(disks.bcache), r"holds bcache, id", THEIRS),
    "zfs member": (filled(disks.zfs_member), r"holds zfs_member without an id", "-"),
    "squashfs": (filled(disks.squashfs), r"holds squashfs without an id", "-"),
    "md member over ext4": (md_member_over_ext4, r"holds several signatures: (linux_raid_member|ext4) ", "-"),
    "our mark over btrfs": (ext2_over_btrfs, r"several signatures that contradict each other: (ext2|btrfs) ", "-"),
    "MBR beside a file system of ours": (table_over_ext4, r"holds several signatures: (dos ext4|ext4 dos)", "-"),
    "beginning lost": (beginning_lost, r"no known signature, but is not blank: there is data at \d+ MiB", "-"),
    "one byte at the beginning": (filled(lambda d: disks.write(d, b"x")), r"not blank: there is data at 0 MiB", "-"),
    "one byte inside": (filled(lambda d: disks.write(d, b"x", at=40 * MIB + 7)), r"there is data at 40 MiB", "-"),
    "one byte at the end": (filled(lambda d: disks.write(d, b"x", at=SIZE - 1)), r"there is data at 63 MiB", "-"),
    "large, at the beginning": (large_with(3 * MIB), r"there is data at 3 MiB", "-"),
    "large, third super block of ext4": (large_with(3 * 128 * MIB + 56), r"there is data at 384 MiB", "-"),
    "large, third allocation group of xfs": (large_with(1536 * MIB), r"there is data at 1536 MiB", "-"),
    "large, of no round size": (large_with(2**30 + 69_119, size=2**30 + 69_120), r"there is data at 1024 MiB", "-"),
}  # fmt: skip


@pytest.mark.parametrize("case", DATA, ids=str)
def test_a_device_with_data_is_refused_with_the_id_that_would_permit_it(case: str, made: Disks) -> None:
    build, found, permit = DATA[case]
    device = build(made)
    before = made.digests()
    for argv in ((), mark_argv(device)) if "large" not in case else (mark_argv(device),):
        assert_refused(guard(device, *argv), re.escape(device) + ".*" + found, permit)
    assert made.digests() == before


@pytest.mark.parametrize("wrong", [OURS, THEIRS[:-1], f"{THEIRS} "])
def test_another_id_than_that_of_the_signature_permits_nothing(wrong: str, made: Disks) -> None:
    device = made.loop()
    disks.ext4(device)
    before = made.digests()
    assert_refused(guard(device, *mark_argv(device), overwrite=wrong), "holds ext4, .*, and not " + wrong, THEIRS)
    assert made.digests() == before


def test_a_partition_is_not_named_by_the_id_of_its_content_nor_the_other_way_round(made: Disks) -> None:
    """Its place in the table says nothing of what it holds."""
    device = made.partitioned(GPT) + "p1"
    disks.ext4(device)
    assert_refused(guard(device, overwrite=OURS), "holds ext4, .*, and not " + OURS, THEIRS)


# --- in use: refused, whatever is on it and whatever the sweep says ---------------------------------------------------


def mounted(made: Disks) -> str:
    device = made.loop()
    disks.ext4(device, OURS)
    made.mount(device)
    return device


def mounted_elsewhere(made: Disks) -> str:
    """/proc/self/mountinfo does not show it."""
    device = made.loop()
    disks.ext4(device, OURS)
    made.mount_elsewhere(device)
    return device


def second_of_btrfs(made: Disks) -> str:
    """The mount names the first device only."""
    first, second = made.loop(size=BTRFS_SIZE), made.loop(size=BTRFS_SIZE)
    disks.btrfs(another_id(), first, second)
    made.mount(first, "-o", "ro")  # else btrfs itself writes its super blocks, whenever it likes
    return second


def second_of_btrfs_elsewhere(made: Disks) -> str:
    first, second = made.loop(size=BTRFS_SIZE), made.loop(size=BTRFS_SIZE)
    disks.btrfs(another_id(), first, second)
    made.mount_elsewhere(first)
    return second


def journal_in_use(made: Disks) -> str:
    device, journal = made.loop(), made.loop()
    disks.journal(journal, OURS)
    disks.ext4(device, OURS, "-b", "4096", "-J", f"device={journal}")
    made.mount(device)
    return journal


def xfs_log_in_use(made: Disks) -> str:
    device, log = made.loop(size=XFS_SIZE), made.loop(size=XFS_SIZE)
    disks.xfs(device, another_id(), "-l", f"logdev={log},size=64m")
    made.mount(device, "-o", f"logdev={log}")
    return log


def swap_on(made: Disks) -> str:
    device = made.loop()
    made.swap_on(device)
    return device


def below_a_loop_device(made: Disks) -> str:
    device = made.loop()
    made.loop(device)
    return device


def on_a_block_device(made: Disks) -> str:
    return made.loop(made.loop())


def partition_below_a_loop_device(made: Disks) -> str:
    device = made.partitioned(GPT)
    made.loop(f"{device}p2")
    return device


def partition_of_a_disk_below_a_loop_device(made: Disks) -> str:
    device = made.partitioned(GPT)
    made.loop(device)
    return f"{device}p1"


def file_with_two_loop_devices(made: Disks) -> str:
    image = made.image()
    made.loop(image)
    return made.loop(image)


def file_with_another_name(made: Disks) -> str:
    image = made.image()
    other = made.directory / "other-name"
    other.hardlink_to(image)
    made.loop(other)
    return made.loop(image)


def disk_of_a_mounted_partition(made: Disks) -> str:
    device = made.partitioned(GPT)
    disks.ext4(f"{device}p2")
    made.mount(f"{device}p2")
    return device


def disk_of_a_partition_mounted_elsewhere(made: Disks) -> str:
    device = made.partitioned(GPT)
    disks.ext4(f"{device}p2")
    made.mount_elsewhere(f"{device}p2")
    return device


def disk_of_a_partition_with_swap(made: Disks) -> str:
    device = made.partitioned(GPT)
    made.swap_on(f"{device}p2")
    return device


def partition_of_a_mounted_disk(made: Disks) -> str:
    """A table that the kernel still knows, and then a file system on the whole disk."""
    device = made.partitioned(GPT)
    disks.ext4(device)
    made.mount(device)
    return f"{device}p1"


def read_only(made: Disks) -> str:
    return made.loop(None, "--read-only")


IN_USE: dict[str, tuple[Situation, str]] = {
    "mounted": (mounted, "is mounted on /.*/mountlab-mount0$"),
    "mounted in another namespace": (mounted_elsewhere, r"elsewhere in another mount namespace \(of process \d+\)"),
    "second device of a mounted btrfs": (second_of_btrfs, rf"belongs to a mounted btrfs \(UUID {disks.OURS[:-12]}"),
    "second device of a btrfs mounted elsewhere": (second_of_btrfs_elsewhere, "belongs to a mounted btrfs"),
    "external journal": (journal_in_use, "is in use, which only an exclusive open tells"),
    "external log": (xfs_log_in_use, "is in use, which only an exclusive open tells"),
    "swap": (swap_on, "is in use as swap"),
    "below a loop device": (below_a_loop_device, r"lies below the loop device loop\d+"),
    "a loop device on a block device": (on_a_block_device, r"is a loop device on the block device /dev/loop\d+"),
    "partition below a loop device": (partition_below_a_loop_device, r"p2 lies below the loop device loop\d+"),
    "partition, disk below a loop device": (
        partition_of_a_disk_below_a_loop_device, r"/dev/loop\d+ lies below the loop device loop\d+",
    ),
    "file with two loop devices": (file_with_two_loop_devices, r"lies on the same file as /dev/loop\d+"),
    "file with another name": (file_with_another_name, r"lies on the same file as /dev/loop\d+"),
    "disk of a mounted partition": (disk_of_a_mounted_partition, r"p2 is mounted on /"),
    "disk of a partition mounted elsewhere": (disk_of_a_partition_mounted_elsewhere, "p2 is mounted on .* namespace"),
    "disk of a partition with swap": (disk_of_a_partition_with_swap, "p2 is in use as swap"),
    "partition of a mounted disk": (partition_of_a_mounted_disk, r"/dev/loop\d+ is mounted on /"),
    "read-only": (read_only, "is read-only"),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_USE, ids=str)
def test_a_device_in_use_is_refused_and_the_sweep_cannot_permit_it(case: str, made: Disks) -> None:
    build, found = IN_USE[case]
    device = build(made)
    before = made.digests()
    assert_refused(guard(device), found)
    assert_refused(guard(device, *mark_argv(device), overwrite=THEIRS), found)
    assert made.digests() == before


def test_a_device_that_a_process_has_open_is_refused(made: Disks) -> None:
    """A database or a virtual machine on the raw device: no exclusive open tells."""
    device = made.loop()
    with Path(device).open("rb") as file:
        holder = made.process("sh", "-c", "sleep 60 & read -r _ </dev/null; kill $!", stdin=file.fileno())
        assert_refused(guard(device), rf"is held open by process {os.getpid()}|{holder.pid}")


def test_udev_that_looks_into_a_device_for_a_moment_is_waited_for(made: Disks) -> None:
    device = made.loop()
    with Path(device).open("rb") as file:
        made.process("sleep", "0.3", stdin=file.fileno())
    assert guard(device).returncode == 0


# --- permitted --------------------------------------------------------------------------------------------------------


def blkid(device: str, tag: str) -> str:
    return command("blkid", "-p", "-o", "value", "-s", tag, device)


def external_log(made: Disks) -> str:
    device, log = made.loop(size=XFS_SIZE), made.loop(size=XFS_SIZE)
    disks.xfs(device, OURS, "-l", f"logdev={log},size=64m")
    return log


def used_raw(made: Disks) -> str:
    """What a raw workload leaves: our mark, and anything behind the first MiB."""
    device = made.loop()
    command(*mark_argv(device))
    command("dd", "if=/dev/urandom", f"of={device}", "bs=1M", "seek=1", f"count={SIZE // MIB - 1}", "conv=fsync")
    return device


def on_a_file_in_a_mounted_loop_device(made: Disks) -> str:
    outer = made.loop(size=2 * SIZE)
    disks.ext4(outer)
    inner = made.mount(outer, "-o", "noatime") / "inner.img"
    with inner.open("xb") as file:
        file.truncate(SIZE)
    return made.loop(inner)


def partition(made: Disks) -> str:
    return made.partitioned(GPT) + "p1"


def beside_a_mounted_partition(made: Disks) -> str:
    return disk_of_a_mounted_partition(made) + "p1"


def ours_beside_a_mounted_partition(made: Disks) -> str:
    device = beside_a_mounted_partition(made)
    command(*mark_argv(device))
    return device


Id = Callable[[str], str]
OWN = r"holds {} of Mountlab's own \(UUID 6d6f756e-746c-6162-"
PERMITTED: dict[str, tuple[Situation, Id, str]] = {
    "blank": (filled(str), lambda _: "", r"is blank$"),
    "blank and large": (filled(str, size=3 * 2**30), lambda _: "", r"is blank wherever it was looked at"),
    "blank partition": (partition, lambda _: "", "is blank"),
    "blank partition beside a mounted one, named": (beside_a_mounted_partition, lambda _: OURS, "is blank"),
    "partition of ours beside a mounted one": (ours_beside_a_mounted_partition, lambda _: "", OWN.format("ext2")),
    "file in another loop device": (on_a_file_in_a_mounted_loop_device, lambda _: "", "is blank"),
    "our ext4": (filled(lambda device: disks.ext4(device, OURS)), lambda _: "", OWN.format("ext4")),
    "our xfs": (filled(lambda device: disks.xfs(device, OURS), size=XFS_SIZE), lambda _: "", OWN.format("xfs")),
    "our btrfs": (filled(lambda d: disks.btrfs(another_id(), d), size=BTRFS_SIZE), lambda _: "", OWN.format("btrfs")),
    "our journal": (filled(lambda device: disks.journal(device, OURS)), lambda _: "", OWN.format("jbd")),
    "our log": (external_log, lambda _: "", OWN.format("xfs_external_log")),
    "our raw device": (used_raw, lambda _: "", OWN.format("ext2")),
    "named ext4": (filled(disks.ext4), lambda _: THEIRS, f"holds ext4, id {THEIRS}, as `overwrite` of the sweep says"),
    "named swap": (filled(lambda d: command("mkswap", "-U", THEIRS, d)), lambda _: THEIRS, "holds swap"),
    "named GPT": (table(GPT), lambda _: THEIRS, r"holds a partition table \(gpt\)"),
    "named disk with partitions": (
        lambda made: made.partitioned(GPT), lambda _: THEIRS, r"with the partitions loop\d+p1 loop\d+p2, as",
    ),
    "named LVM member": (filled(disks.lvm_member), lambda device: blkid(device, "UUID"), "holds LVM2_member"),
    "named btrfs, by the id of the device": (
        filled(lambda d: disks.btrfs(str(uuid4()), d), size=BTRFS_SIZE), lambda d: blkid(d, "UUID_SUB"), "holds btrfs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PERMITTED, ids=str)
def test_what_is_blank_ours_or_named_may_be_written_over_and_is_only_read_until_then(case: str, made: Disks) -> None:
    build, name, found = PERMITTED[case]
    device = build(made)
    overwrite, before = name(device), made.digests()
    looked = guard(device, overwrite=overwrite)
    assert (looked.returncode, looked.stdout.strip()) == (0, device), looked.stderr
    identity, text = read_permission(looked.stderr)
    assert re.search(found, text), text
    assert re.fullmatch(r"boot=[0-9a-f]{8},\d+:\d+,sectors=\d+[!-~]*", identity)
    assert made.digests() == before
    done = guard(device, "mke2fs", "-q", "-F", "-U", OURS, device, overwrite=overwrite, expected=identity)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    again = guard(device)
    assert read_permission(again.stderr) == (identity, text_of_ours(device)), "our own device is not known again"


def text_of_ours(device: str) -> str:
    size = int(command("blockdev", "--getsize64", device)) / MIB
    said = f"{size:.4g} MiB" if size < 1024 else f"{size / 1024:.4g} GiB"
    return f"{device} ({said}) holds ext2 of Mountlab's own (UUID {OURS})"


def test_a_blank_partition_of_a_disk_in_use_must_be_named(made: Disks) -> None:
    """The rest of the disk may be the system's: a slip of one digit in the box file must not cost it."""
    device = beside_a_mounted_partition(made)
    before = made.digests()
    for overwrite in ("", THEIRS):
        done = guard(device, *mark_argv(device), overwrite=overwrite)
        assert_refused(done, "is blank, but a partition of a disk in use: /dev/loop.*p2 is mounted on /", OURS)
    assert made.digests() == before


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_name_with_odd_characters_is_one_name(made: Disks) -> None:
    device = made.loop()
    link = made.stable(device, "a 'disk' \"$(touch x)\" ; * -rf\n2")
    assert guard(link).stdout.strip() == device
    assert guard(link, *mark_argv(device)).returncode == 0


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/dev/null", r"\(/dev/null\) is not a block device"),
        ("/nowhere/at/all", "does not exist, or leads nowhere"),
        ("/proc", "is not a block device"),
        ("/proc/version", "is not a block device"),
        ("file", "is not a block device"),
    ],
)
def test_a_link_to_anything_but_a_block_device_is_refused(target: str, found: str, made: Disks) -> None:
    (made.directory / "file").write_bytes(bytes(4096))
    assert_refused(guard(made.stable(target)), found)


def test_a_name_that_is_not_absolute_is_refused() -> None:
    for name in ("", "loop0", "-n", "../dev/loop0"):
        assert_refused(guard(name), "is not an absolute path")


def test_a_name_swapped_after_the_plan_is_refused_whatever_it_leads_to(made: Disks) -> None:
    first, second = made.loop(), made.loop()
    disks.ext4(second)
    link = made.stable(first)
    identity, _ = read_permission(guard(link).stderr)
    link.unlink()
    link.symlink_to(second)
    before = made.digests()
    done = guard(link, *mark_argv(second), overwrite=THEIRS, expected=identity)
    assert_refused(done, f"is not the device that the plan looked at: that was {re.escape(identity)}, this is ")
    assert_refused(guard(link, *mark_argv(first), overwrite=THEIRS), f"is {second}, which the command does not name")
    assert made.digests() == before


def test_another_disk_under_the_same_name_is_refused(made: Disks) -> None:
    """As when a disk is taken out and another put in: same node, same size."""
    first, image = made.image(), made.image()
    device = command("losetup", "--find", "--show", str(first))
    identity, _ = read_permission(guard(device).stderr)
    command("losetup", "--detach", device)
    command("losetup", device, str(image))
    made.undo.callback(command, "losetup", "--detach", device)
    if "diskseq" not in identity:
        pytest.skip("the kernel does not number its disks (diskseq, since 5.15)")
    assert_refused(guard(device, *mark_argv(device), expected=identity), "is not the device that the plan looked at")
    assert not any(image.read_bytes())


RESTARTED = "boot=00000000"


def test_after_a_restart_a_device_that_tells_its_serial_number_is_known_by_it(made: Disks) -> None:
    """A loop device tells none: it is known only where the kernel numbers it as before."""
    device = made.loop()
    identity, _ = read_permission(guard(device).stderr)
    boot, number, rest = identity.split(",", 2)
    assert guard(device, expected=f"{RESTARTED},{number},{rest}").returncode == 0
    assert_refused(guard(device, expected=f"{RESTARTED},99:9,{rest}"), "is not the device that the plan looked at")
    assert_refused(guard(device, expected=f"{boot},99:9,{rest}"), "is not the device that the plan looked at")


def test_what_a_cut_off_mkfs_left_is_permitted_to_the_run_that_made_it_and_to_no_other(made: Disks) -> None:
    device = beginning_lost(made)
    before = made.digests()
    assert_refused(guard(device, *mark_argv(device)), "no known signature, but is not blank", "-")
    assert made.digests() == before
    done = guard(device, *mark_argv(device), overwrite="-")
    assert done.returncode == 0, done.stderr
    assert "Mountlab's own" in guard(device).stderr


@pytest.mark.parametrize(
    "fill", [disks.ext4, lambda device: disks.xfs(device, THEIRS), lambda device: command("mkswap", "--quiet", device)]
)
def test_the_same_permission_lets_no_signature_of_somebody_else_s_be_destroyed(
    made: Disks, fill: Callable[[str], object]
) -> None:
    device = made.loop(size=XFS_SIZE)
    fill(device)
    before = made.digests()
    assert_refused(guard(device, *mark_argv(device), overwrite="-"), "holds", ".+")
    assert made.digests() == before


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_becomes_the_command(made: Disks) -> None:
    device = made.loop()
    done = guard(device, "sh", "-c", "echo out; echo err >&2; exit 7", "x", device)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_command_that_does_not_name_the_device_is_not_run(made: Disks) -> None:
    device = made.loop()
    for words in (("touch",), ("echo", device + "0"), ("echo", "/dev" + device)):
        assert_refused(guard(device, *words), "which the command does not name")
    assert guard(device, "echo", f"logdev={device},size=64m").stdout == f"logdev={device},size=64m\n"


def test_a_mkfs_that_fails_leaves_a_device_of_ours(made: Disks) -> None:
    """Else one wrong option in a sweep would make the device unknown to the guard."""
    device = made.loop()
    disks.ext4(device)
    failed = guard(device, "mke2fs", "-q", "-F", "-O", "nonsense", device, overwrite=THEIRS)
    assert failed.returncode == 1
    assert not failed.stderr.startswith("refused: ")
    assert "holds ext2 of Mountlab's own" in guard(device).stderr


def test_our_own_device_stays_ours_whatever_was_made_on_it_before(made: Disks) -> None:
    """A mkfs leaves the signatures that it does not happen to write over: btrfs keeps its own at 64 KiB."""
    device = made.loop(size=XFS_SIZE)
    makes = {
        "ext4": ("mke2fs", "-q", "-F", "-t", "ext4", "-E", "nodiscard", "-U", OURS, device),
        "xfs": ("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={OURS}", device),
        "btrfs": ("mkfs.btrfs", "-q", "-f", "-K", "-U", another_id(), device),
        "ext2": mark_argv(device, OURS),
        "jbd": ("mke2fs", "-q", "-F", "-O", "journal_dev", "-E", "nodiscard", "-U", OURS, device),
    }
    for kind in ("btrfs", "ext2", "btrfs", "jbd", "xfs", "ext2", "xfs", "ext4"):
        done = guard(device, *makes[kind])
        assert done.returncode == 0, f"{kind}: {done.stderr}"
    assert "holds ext4 of Mountlab's own" in guard(device).stderr


def test_a_disk_that_was_named_loses_both_its_partition_tables(made: Disks) -> None:
    device = made.loop(size=XFS_SIZE)
    command("sfdisk", "--quiet", "--no-reread", device, stdin=GPT)
    done = guard(device, "mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={OURS}", device, overwrite=THEIRS)
    assert done.returncode == 0, done.stderr
    assert "holds xfs of Mountlab's own" in guard(device).stderr


@pytest.mark.parametrize(
    ("mkfs", "size"),
    [(("mke2fs", "-q", "-F"), SIZE), (("mkfs.xfs", "-q", "-f"), XFS_SIZE), (("mkfs.btrfs", "-q", "-f"), BTRFS_SIZE)],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_mount_between_the_last_look_and_mkfs_makes_mkfs_fail(mkfs: tuple[str, ...], size: int, made: Disks) -> None:
    """What the guard relies on: with and without force, each mkfs opens the device exclusively."""
    device = made.loop(size=size)
    disks.ext4(device, OURS)
    script = (
        'device=$1; shift; mount "$device" "$1" || exit 3; shift; exec unshare -m sh -c \'umount "$0"; exec "$@"\' "$@"'
    )
    place = made.directory / "mountlab-between"
    place.mkdir()
    made.undo.callback(subprocess.run, ["umount", str(place)], check=False)
    done = guard(device, "sh", "-c", script, "race", device, str(place), str(place), *mkfs, device)
    assert done.returncode == 1, done.stderr
    assert command("findmnt", "-n", "-o", "SOURCE", str(place)) == device
    assert not done.stderr.startswith("refused: ")


def test_the_disk_is_locked_while_the_command_runs_as_udev_asks_for_it(made: Disks) -> None:
    device = made.loop()
    assert guard(device, "flock", "--nonblock", device, "true").returncode == 1
    assert command("flock", "--nonblock", device, "echo", "free") == "free"


def test_a_lock_of_another_program_is_waited_for(made: Disks) -> None:
    device = made.loop()
    holder = made.process("flock", device, "sh", "-c", "echo held; exec sleep 0.5")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    began = time.monotonic()
    # Looked at once the lock is ours: by then nobody else has the device open.
    assert guard(device, *mark_argv(device)).returncode == 0
    assert time.monotonic() - began > 0.3


def test_one_guard_within_another_serves_a_file_system_on_two_partitions_of_a_disk(made: Disks) -> None:
    disk = made.partitioned("label: gpt\nsize=20MiB\n,\n")
    device, journal = f"{disk}p2", f"{disk}p1"
    made_both = script_argv(
        "guard.sh", journal, "", "", "sh", "-c", 'mke2fs -q -F "$0" && mke2fs -q -F "$1"', device, journal
    )
    done = guard(device, *made_both)
    assert done.returncode == 0, done.stderr
    assert (blkid(device, "TYPE"), blkid(journal, "TYPE")) == ("ext2", "ext2")


def test_marking_a_large_device_takes_no_time(made: Disks) -> None:
    device = made.loop(size=2**40)
    began = time.monotonic()
    command(*mark_argv(device))
    assert time.monotonic() - began < 2
    assert f"{device} (1 TiB) holds ext2 of Mountlab's own" in guard(device).stderr


# --- other boxes ------------------------------------------------------------------------------------------------------


APPLETS = ("awk", "cat", "cmp", "cut", "dd", "grep", "head", "ls", "printf", "readlink", "sed", "sleep", "stat", "tr",
           "wc", "flock")  # fmt: skip


@pytest.mark.requires_program("busybox")
def test_it_says_the_same_with_the_tools_of_busybox(made: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = made.directory / "tools"
    tools.mkdir()
    for applet in APPLETS:
        (tools / applet).symlink_to(command("sh", "-c", "command -v busybox"))
    monkeypatch.setenv("PATH", f"{tools}:{disks.PATH}")
    device = made.loop()
    assert read_permission(guard(device).stderr)[1].endswith("is blank")
    disks.write(device, b"x", at=40 * MIB)
    assert_refused(guard(device), "there is data at 40 MiB", "-")
    disks.ext4(device)
    assert_refused(guard(device), "holds ext4, id " + THEIRS, THEIRS)
    made.mount_elsewhere(device)
    assert_refused(guard(device), "is mounted on .* in another mount namespace")


def test_a_box_without_wipefs_is_told_so(made: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = made.directory / "tools"
    tools.mkdir()
    for tool in ("sh", "readlink", "awk", "blkid", "cmp"):
        (tools / tool).symlink_to(command("sh", "-c", f"command -v {tool}"))
    monkeypatch.setenv("PATH", str(tools))
    assert_refused(guard("/dev/loop0"), "the box lacks wipefs")
