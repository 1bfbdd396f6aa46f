"""The guard against real devices: names, identities, races, the command that it becomes. What it makes of each state of
a device: test_guard_states.py."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import disks
import pytest
from device_states import GPT, Done, beginning_lost, claim, claimed, guard, lvm_label
from disks import BTRFS_SIZE, MIB, OURS, SIZE, THEIRS, XFS_SIZE, Disks, another_id, command, detach
from installed_programs import program
from mountlab.core.shell import script_argv
from mountlab.filesystems.guard import mark_argv, read_permission, read_refusal

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("losetup", "mke2fs", "wipefs"),
]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


def assert_refused(done: Done, found: str, permit: str = "") -> None:
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("refused: "), done.stderr
    refusal = read_refusal(done.stderr)
    assert re.search(found, refusal.reason), refusal.reason
    assert re.fullmatch(permit, refusal.permit), done.stderr


# --- open ------------------------------------------------------------------------------------------------------------


def test_a_device_that_a_process_has_open_is_refused(made: Disks) -> None:
    """A database or a virtual machine on the raw device: no exclusive open tells."""
    device = claimed()(made)
    with Path(device).open("rb") as file:
        holder = made.process("sh", "-c", "sleep 60 & read -r _ </dev/null; kill $!", stdin=file.fileno())
        assert_refused(guard(device), rf"is held open by process {os.getpid()}|{holder.pid}")


def test_udev_that_looks_into_a_device_for_a_moment_is_waited_for(made: Disks) -> None:
    device = claimed()(made)
    with Path(device).open("rb") as file:
        made.process("sleep", "0.3", stdin=file.fileno())
    assert guard(device).returncode == 0


# --- several devices, and layers on them ------------------------------------------------------------------------------


def below_both(first: str, second: str, *words: str) -> Done:
    return guard(first, "guard.sh", second, "", "", *words)


def test_a_command_runs_where_the_guards_of_all_its_devices_let_it_pass(made: Disks) -> None:
    first, second = claimed()(made), claimed()(made)
    done = below_both(first, second, "echo", first, second)
    assert (done.returncode, done.stdout.strip()) == (0, f"{first} {second}"), done.stderr
    assert_refused(below_both(first, second, "echo", first), f"is {second}, which the command does not name")


def test_a_command_is_not_run_where_one_of_its_devices_is_somebody_s(made: Disks) -> None:
    ours, theirs = claimed()(made), made.loop()
    disks.ext4(theirs)
    before = made.digests()[1]
    for first, second in ((ours, theirs), (theirs, ours)):
        assert_refused(below_both(first, second, "echo", first, second), "holds ext4, id ", THEIRS)
    assert made.digests()[1] == before


@pytest.mark.requires_program("pvcreate")
@pytest.mark.parametrize("write_member", [disks.md_member, disks.luks, disks.lvm_member], ids=["md", "luks", "lvm"])
def test_a_member_of_a_layer_is_ours_by_the_uuid_that_the_guard_has_recorded(
    write_member: Callable[[str, str], None], made: Disks
) -> None:
    """As a kill leaves it while a layer lies on the device."""
    device, layer = claimed()(made), another_id()
    assert guard(device, "true", layer, device).returncode == 0
    disks.write(device, bytes(1024), at=1024)  # the mark: what makes a layer writes over it
    write_member(device, layer)
    looked = guard(device)
    assert looked.returncode == 0, looked.stderr
    assert "of Mountlab's own (UUID " in looked.stderr
    write_member(device, THEIRS)
    assert_refused(guard(device), "holds (linux_raid_member|crypto_LUKS|LVM2_member),? ", ".+")


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_name_with_odd_characters_is_one_name(made: Disks) -> None:
    device = claimed()(made)
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
    first, second = claimed()(made), made.loop()
    disks.ext4(second)
    link = made.stable(first)
    identity, _ = read_permission(guard(link).stderr)
    link.unlink()
    link.symlink_to(second)
    before = made.digests()
    done = guard(link, *mark_argv(second), expected=identity)
    assert_refused(done, f"is not the device that the plan looked at: that was {re.escape(identity)}, this is ")
    assert_refused(guard(link, *mark_argv(first)), f"is {second}, which the command does not name")
    assert made.digests() == before


def test_another_disk_under_the_same_name_is_refused(made: Disks) -> None:
    """As when a disk is taken out and another put in: same node, same size."""
    first, image = made.image(), made.image()
    for _ in range(50):
        device = command("losetup", "--find", "--show", str(first))
        assert claim(device).returncode == 0
        identity, _ = read_permission(guard(device).stderr)
        detach(device, first)
        if subprocess.run(["losetup", device, str(image)], capture_output=True, check=False).returncode == 0:
            break  # else another worker has taken the number meanwhile
    made.undo.callback(command, "losetup", "--detach", device)
    assert_refused(guard(device, *mark_argv(device), expected=identity), "is not the device that the plan looked at")
    assert not any(image.read_bytes())


RESTARTED = "boot=00000000"


def test_after_a_restart_a_loop_device_is_known_by_its_file(made: Disks) -> None:
    """However the kernel numbers it then: a disk by its serial number, which test_guard_vm.py shows."""
    device = claimed()(made)
    identity, _ = read_permission(guard(device).stderr)
    boot, number, rest = identity.split(",", 2)
    assert guard(device, expected=f"{RESTARTED},{number},{rest}").returncode == 0
    assert guard(device, expected=f"{RESTARTED},99:9,{rest}").returncode == 0
    assert_refused(guard(device, expected=f"{boot},99:9,{rest}"), "is not the device that the plan looked at")
    other = re.sub("file=[^,]*", "file=1:2:0", rest)
    assert_refused(guard(device, expected=f"{RESTARTED},99:9,{other}"), "is not the device that the plan looked at")


def test_what_a_cut_off_mkfs_left_is_permitted_to_the_run_that_made_it_and_to_no_other(made: Disks) -> None:
    device = claimed()(made)
    assert guard(device, "dd", "if=/dev/zero", f"of={device}", "bs=1M", "count=1").returncode == 0
    before = made.digests()
    assert_refused(guard(device, *mark_argv(device)), "carries no signature, and Mountlab has not", "claim")
    assert made.digests() == before
    done = guard(device, *mark_argv(device), cut_off="-")
    assert done.returncode == 0, done.stderr
    assert "Mountlab's own" in guard(device).stderr


def test_the_same_permission_is_none_where_no_mkfs_of_ours_was_going_on(made: Disks) -> None:
    never_claimed, lost = beginning_lost(made), claimed()(made)
    disks.write(lost, bytes(MIB))
    for device in (never_claimed, lost):
        done = guard(device, *mark_argv(device), cut_off="-")
        assert_refused(done, "carries no signature, and Mountlab has not", "claim")


@pytest.mark.parametrize(
    "fill",
    [
        disks.ext4,
        pytest.param(lambda device: disks.xfs(device, THEIRS), marks=pytest.mark.long),
        pytest.param(lambda device: command("mkswap", "--quiet", device), marks=pytest.mark.long),
    ],
    ids=["ext4", "xfs", "swap"],
)
def test_the_same_permission_lets_no_signature_of_somebody_else_s_be_destroyed(
    made: Disks, fill: Callable[[str], object]
) -> None:
    device = made.loop(size=XFS_SIZE)
    fill(device)
    before = made.digests()
    assert_refused(guard(device, *mark_argv(device), cut_off="-"), "holds", ".+")
    assert made.digests() == before


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_becomes_the_command(made: Disks) -> None:
    device = claimed()(made)
    done = guard(device, "sh", "-c", "echo out; echo err >&2; exit 7", "x", device)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_command_that_does_not_name_the_device_is_not_run(made: Disks) -> None:
    device = claimed()(made)
    for words in (("touch",), ("echo", device + "0"), ("echo", "/dev" + device)):
        assert_refused(guard(device, *words), "which the command does not name")
    assert guard(device, "echo", f"logdev={device},size=64m").stdout == f"logdev={device},size=64m\n"


def test_a_mkfs_that_fails_leaves_a_device_of_ours(made: Disks) -> None:
    """Else one wrong option in a sweep would make the device unknown to the guard."""
    device = claimed()(made)
    failed = guard(device, "mke2fs", "-q", "-F", "-O", "nonsense", device)
    assert failed.returncode == 1
    assert not failed.stderr.startswith("refused: ")
    assert "holds ext2 of Mountlab's own" in guard(device).stderr


@pytest.mark.requires_program("mkfs.xfs", "mkfs.btrfs")
@pytest.mark.parametrize(
    "kinds",
    [
        ("btrfs", "xfs", "ext4"),
        pytest.param(("btrfs", "ext2", "btrfs", "jbd", "xfs", "ext2", "xfs", "ext4"), marks=pytest.mark.long),
    ],
    ids=len,
)
def test_our_own_device_stays_ours_whatever_was_made_on_it_before(kinds: tuple[str, ...], made: Disks) -> None:
    """A mkfs leaves the signatures that it does not happen to write over: btrfs keeps its own at 64 KiB."""
    device = claimed(XFS_SIZE)(made)
    makes = {
        "ext4": ("mke2fs", "-q", "-F", "-t", "ext4", "-E", "nodiscard", "-U", OURS, device),
        "xfs": ("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={OURS}", device),
        "btrfs": ("mkfs.btrfs", "-q", "-f", "-K", "-U", another_id(), device),
        "ext2": mark_argv(device, OURS),
        "jbd": ("mke2fs", "-q", "-F", "-O", "journal_dev", "-E", "nodiscard", "-U", OURS, device),
    }
    for kind in kinds:
        done = guard(device, *makes[kind])
        assert done.returncode == 0, f"{kind}: {done.stderr}"
    assert "holds ext4 of Mountlab's own" in guard(device).stderr


@pytest.mark.requires_program("mkfs.xfs")
def test_a_disk_that_was_erased_loses_both_its_partition_tables(made: Disks) -> None:
    device = made.loop(size=XFS_SIZE)
    command("sfdisk", "--quiet", "--no-reread", device, stdin=GPT)
    assert claim(device, THEIRS).returncode == 0
    done = guard(device, "mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={OURS}", device)
    assert done.returncode == 0, done.stderr
    assert "holds xfs of Mountlab's own" in guard(device).stderr


@pytest.mark.parametrize(
    ("mkfs", "size"),
    [(("mke2fs", "-q", "-F"), SIZE), (("mkfs.xfs", "-q", "-f"), XFS_SIZE), (("mkfs.btrfs", "-q", "-f"), BTRFS_SIZE)],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_mount_between_the_last_look_and_mkfs_makes_mkfs_fail(mkfs: tuple[str, ...], size: int, made: Disks) -> None:
    """What the guard relies on: with and without force, each mkfs opens the device exclusively."""
    program(mkfs[0])
    device = claimed(size)(made)
    script = (
        'device=$1; shift; mount "$device" "$1" || exit 3; shift; '
        'exec unshare -m --propagation slave sh -c \'umount "$0"; exec "$@"\' "$@"'
    )
    place = made.directory / "mountlab-between"
    place.mkdir()
    made.undo.callback(subprocess.run, ["umount", str(place)], check=False)
    done = guard(device, "sh", "-c", script, "race", device, str(place), str(place), *mkfs, device)
    assert done.returncode == 1, done.stderr
    assert command("findmnt", "-n", "-o", "SOURCE", str(place)) == device
    assert not done.stderr.startswith("refused: ")


def test_the_disk_is_locked_while_the_command_runs_as_udev_asks_for_it(made: Disks) -> None:
    device = claimed()(made)
    assert guard(device, "flock", "--nonblock", device, "true").returncode == 1
    assert command("flock", "--nonblock", device, "echo", "free") == "free"


def test_a_lock_of_another_program_is_waited_for(made: Disks) -> None:
    device = claimed()(made)
    released = made.directory / "released"
    holder = made.process("flock", device, "sh", "-c", 'echo held; sleep 0.5; touch "$0"', str(released))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    # Looked at once the lock is ours: by then nobody else has the device open.
    assert guard(device, *mark_argv(device)).returncode == 0
    assert released.exists()


def test_one_guard_within_another_serves_a_file_system_on_two_partitions_of_a_disk(made: Disks) -> None:
    disk = made.partitioned("label: gpt\nsize=20MiB\n,\n")
    device, journal = f"{disk}p2", f"{disk}p1"
    assert claim(device).returncode == claim(journal).returncode == 0
    made_both = script_argv(
        "guard.sh", journal, "", "", "sh", "-c", 'mke2fs -q -F "$0" && mke2fs -q -F "$1"', device, journal
    )
    done = guard(device, *made_both)
    assert done.returncode == 0, done.stderr
    assert [command("blkid", "-p", "-o", "value", "-s", "TYPE", each) for each in (device, journal)] == ["ext2"] * 2


def test_marking_a_large_device_writes_little(made: Disks) -> None:
    device = claimed(2**36)(made)
    assert made.images[-1].stat().st_blocks * 512 < 4 * MIB, "zeros at both ends, and the mark"
    assert f"{device} (64 GiB) holds ext2 of Mountlab's own" in guard(device).stderr


# --- other boxes ------------------------------------------------------------------------------------------------------


APPLETS = ("awk", "cat", "cmp", "cut", "dd", "grep", "head", "ls", "printf", "readlink", "sed", "sleep", "stat", "tr",
           "wc", "od", "sha256sum", "xargs", "mv", "mkdir", "rm", "date", "sync")  # fmt: skip


@pytest.mark.long
@pytest.mark.requires_program("busybox")
def test_it_says_the_same_with_the_tools_of_busybox(made: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = made.directory / "tools"
    tools.mkdir()
    for applet in APPLETS:
        (tools / applet).symlink_to(command("sh", "-c", "command -v busybox"))
    monkeypatch.setenv("PATH", f"{tools}:{disks.PATH}")
    device = made.loop()
    disks.write(device, b"x", at=40 * MIB)
    assert_refused(claim(device), r"there is data at byte 41943040 \(40 MiB\)", r"[\w:.-]+")
    disks.write(device, b"\0", at=40 * MIB)
    assert claim(device).stdout.startswith("claimed ")
    assert "holds ext2 of Mountlab's own" in guard(device).stderr
    lvm_label(0, 1)(device)
    assert_refused(guard(device), "beside it an LVM label at byte 0", r"[\w:.-]+")
    disks.ext4(device)
    assert_refused(guard(device), "holds ext4, id " + THEIRS, THEIRS)
    made.mount_elsewhere(device)
    assert_refused(guard(device), "is mounted on .* in another mount namespace")


def test_a_box_without_wipefs_is_told_so(made: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = made.directory / "tools"
    tools.mkdir()
    for tool in ("sh", "readlink", "awk", "blkid", "cmp", "od", "sha256sum"):
        (tools / tool).symlink_to(command("sh", "-c", f"command -v {tool}"))
    monkeypatch.setenv("PATH", str(tools))
    assert_refused(guard("/dev/loop0"), "the box lacks wipefs")
