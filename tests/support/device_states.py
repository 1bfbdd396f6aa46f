"""States of a scratch device, each with what the guard and `box claim` make of it: the table in docs/data.

`python tests/support/device_states.py` writes the table; live/test_guard_states.py makes each state and asks both.
"""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import data_files
import disks
from disks import BTRFS_SIZE, MIB, OURS, SIZE, THEIRS, XFS_SIZE, Disks, another_id, command, restarted
from mountlab.core.shell import script_argv
from mountlab.filesystems.guard import mark_argv, read_permission, uuid_for

GPT = f"label: gpt\nlabel-id: {THEIRS}\nsize=20MiB, uuid={OURS}\n,\n"
LARGE = 2 * 2**30

Situation = Callable[[Disks], str]
"""Builds a state, and gives the device that the guard is asked about."""
Done = subprocess.CompletedProcess[str]


def guard(device: str | Path, *words: str, cut_off: str = "", expected: str = "") -> Done:
    argv = script_argv("guard.sh", str(device), cut_off, expected, *words)
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def claim(device: str | Path, erase: str = "", seconds: int = 60) -> Done:
    argv = script_argv("claim.sh", str(device), erase, str(seconds))
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def settle(device: str | Path, expected: str = "") -> None:
    """The end of a use, as it is recorded after the last unmount."""
    subprocess.run(script_argv("settle.sh", str(device), expected), check=True, stdin=subprocess.DEVNULL)


def identity_of(device: str) -> str:
    """What the guard says that a claimed device is."""
    done = guard(device)
    assert done.returncode == 0, done.stderr
    return read_permission(done.stderr)[0]


# --- somebody's data --------------------------------------------------------------------------------------------------


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
    disks.btrfs(device)
    command(*mark_argv(device))
    return device


def table_over_ext4(made: Disks) -> str:
    """Both are real: what the table says lies inside of what the file system says."""
    device = made.loop()
    disks.ext4(device, OURS)
    disks.write(device, bytes([0, 0, 1, 0, 0x83, 0, 1, 0, 0, 8, 0, 0, 0, 8, 0, 0]), at=446)
    disks.write(device, b"\x55\xaa", at=510)
    return device


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
    disks.btrfs(first, second, ours=True)
    made.mount(first, "-o", "ro")  # else btrfs itself writes its super blocks, whenever it likes
    return second


def second_of_btrfs_elsewhere(made: Disks) -> str:
    first, second = made.loop(size=BTRFS_SIZE), made.loop(size=BTRFS_SIZE)
    disks.btrfs(first, second, ours=True)
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


def external_log(made: Disks) -> str:
    device, log = made.loop(size=XFS_SIZE), made.loop(size=XFS_SIZE)
    disks.xfs(device, OURS, "-l", f"logdev={log},size=64m")
    return log


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


def held_open_by_another_name(made: Disks) -> str:
    """A node of the same number somewhere else: no name of the device is open."""
    device = claimed()(made)
    reader(made, another_node(made, device))
    return device


def mapped_with_its_descriptor_closed(made: Disks) -> str:
    device = claimed()(made)
    reader(made, device, MAPPED)
    return device


def mapped_by_another_name(made: Disks) -> str:
    device = claimed()(made)
    reader(made, another_node(made, device), MAPPED)
    return device


def disk_with_a_partition_open(made: Disks) -> str:
    device = made.partitioned(GPT)
    reader(made, f"{device}p2")
    return device


def partition_of_an_open_disk(made: Disks) -> str:
    device = made.partitioned(GPT)
    reader(made, device)
    return f"{device}p1"


MAPPED = """
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))  # PROT_READ, MAP_SHARED
assert at and at != ctypes.c_void_p(-1).value
os.close(fd)
"""
"""Not the module mmap: its objects keep a descriptor."""


def another_node(made: Disks, device: str) -> str:
    node = made.directory / "another-node"
    os.mknod(node, stat.S_IFBLK | 0o600, os.stat(device).st_rdev)
    return str(node)


def reader(made: Disks, path: str, does: str = "", flags: int = os.O_RDONLY) -> None:
    """A process that has opened the device, or the file, and stays."""
    code = f"import ctypes, fcntl, os, socket, struct, sys\nfd = os.open({path!r}, {flags})\n"
    ready = "print('ready', flush=True)\nsys.stdin.read()\n"
    holder = made.process(sys.executable, "-c", f"{code}{does}\n{ready}")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"


# --- claimed ----------------------------------------------------------------------------------------------------------


def claimed(size: int = SIZE, then: Callable[[str], object] = str) -> Situation:
    """A device that was claimed, and then something done to it."""

    def build(made: Disks) -> str:
        device = made.loop(size=size)
        done = claim(device)
        assert done.returncode == 0, done.stderr
        then(device)
        return device

    return build


def marked_before(size: int = SIZE, then: Callable[[str], object] = str) -> Situation:
    """A device with the mark of an earlier version, and then something done to it."""
    return filled(lambda device: (command(*mark_argv(device)), then(device)), size=size)


def format_by_a_sweep(device: str, *words: str) -> None:
    identity = identity_of(device)
    argv = [word.format(uuid=uuid_for(identity, uuid4().hex), device=device) for word in words]
    done = guard(device, *argv, expected=identity)
    assert done.returncode == 0, done.stderr


def used_by_a_sweep(*words: str, size: int = SIZE, then: Callable[[str], object] = str) -> Situation:
    """Claimed, formatted as a plan does it, used, and the end of that recorded; and then something done to it."""

    def build(made: Disks) -> str:
        device = claimed(size)(made)
        format_by_a_sweep(device, *words)
        settle(device)
        then(device)
        return device

    return build


def used_raw(made: Disks) -> str:
    """What a raw workload leaves: our mark, and anything behind the first MiB."""
    device = claimed()(made)
    format_by_a_sweep(device, *mark_argv("{device}", "{uuid}"))
    command("dd", "if=/dev/urandom", f"of={device}", "bs=1M", "seek=1", f"count={SIZE // MIB - 1}", "conv=fsync")
    settle(device)
    return device


def log_of_a_sweep(made: Disks) -> str:
    """The external log of an xfs carries the UUID of the file system, which lies on another device."""
    device, log = claimed(XFS_SIZE)(made), claimed(XFS_SIZE)(made)
    uuid = uuid_for(identity_of(device), "r", "m")
    assert guard(log, *mark_argv(log, uuid)).returncode == 0
    mkfs = ("mkfs.xfs", "-q", "-f", "-m", f"uuid={uuid}", "-l", f"logdev={log},size=64m", device)
    assert guard(device, *mkfs).returncode == 0
    settle(device)
    settle(log)
    assert guard(device).returncode == 0
    return log


def cut_off(then: Callable[[str], object] = str) -> Situation:
    """Formatted by a run that did not record the end of its use; and then something done to it."""

    def build(made: Disks) -> str:
        device = claimed()(made)
        format_by_a_sweep(device, *MKFS_EXT4)
        then(device)
        return device

    return build


MKFS_EXT4 = ("mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0", "-U", "{uuid}", "{device}")
EXT4 = used_by_a_sweep(*MKFS_EXT4)


def copied(build: Situation) -> Situation:
    def copy(made: Disks) -> str:
        original = build(made)
        disks.flush(original)
        image = made.images[-1]
        other = made.image(image.stat().st_size)
        command("cp", "--sparse=always", image, other)
        return made.loop(other)

    return copy


def attached_again(made: Disks) -> str:
    """Another loop device on the same file, as after a reboot."""
    image = made.image()
    first = command("losetup", "--find", "--show", str(image))
    try:
        assert claim(first).returncode == 0
        made.loop()  # so that it gets another number
    finally:
        disks.detach(first, image)
    return made.loop(image)


def grown(made: Disks) -> str:
    device = claimed()(made)
    with made.images[-1].open("r+b") as file:
        file.truncate(2 * SIZE)
    command("losetup", "--set-capacity", device)
    return device


# --- changed by others ------------------------------------------------------------------------------------------------


def after_restart(build: Situation, then: Callable[[str], object] = str) -> Situation:
    """The box was restarted, and something was done to the device before Mountlab looked at it again."""

    def build_and_restart(made: Disks) -> str:
        device = build(made)
        restarted(device)
        then(device)
        return device

    return build_and_restart


def pages_of_a_database(device: str) -> None:
    """8 MiB of PostgreSQL's pages: a header of 24 bytes, then line pointers, a hole, and rows at the end."""
    header = struct.pack("<QHHHHHHI", 0x16B3A28, 0, 0, 28, 8000, 8192, 0x2004, 0)
    page = (header + struct.pack("<I", 0x00C09F40)).ljust(8000, b"\0") + b"a row of a table".ljust(192, b"\1")
    disks.write(device, page * (8 * MIB // len(page)), at=40 * MIB)


def luks_inside(device: str) -> None:
    disks.write(device, b"LUKS\xba\xbe" + struct.pack(">H", 2) + THEIRS.encode(), at=MIB)


def write_files(device: str, *options: str) -> None:
    """Mount what is on it and keep a file there, as whoever takes it for a free disk."""
    with tempfile.TemporaryDirectory() as place:
        command("mount", *options, device, place)
        try:
            Path(place, "thesis.tex").write_text("rows of somebody's work")
        finally:
            command("umount", place)


def mount_only(device: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        command("mount", "-o", "ro,noload", device, place)
        command("umount", place)


def write_the_same(device: str) -> None:
    """Zeros over zeros: nothing that any reading of the device could show."""
    disks.write(device, bytes(4096), at=33 * MIB)


def write_its_file(device: str) -> None:
    """Past the loop device, whose counts show nothing."""
    disks.write(str(disks.file_below(device)), b"x", at=33 * MIB)


def write_unflushed(device: str) -> None:
    descriptor = os.open(device, os.O_WRONLY)
    os.pwrite(descriptor, b"x", 33 * MIB)
    os.close(descriptor)


def their_copy_of_our_file_system(device: str) -> None:
    """Another ext4 with the UUID of ours, which everybody can read."""
    disks.ext4(device, command("blkid", "-p", "-o", "value", "-s", "UUID", device))


def random_bytes(size: int, at: int) -> Callable[[str], object]:
    return lambda device: disks.write(device, os.urandom(size), at=at)


def replaced_by_a_copy(made: Disks) -> str:
    """Under the same name, and where the file system gives numbers again, with the same inode."""
    claimed()(made)
    image = made.images[-1]
    copy = made.image()
    command("cp", "--sparse=always", image, copy)
    image.unlink()
    command("mv", copy, image)
    made.images.remove(copy)
    return made.loop(image)


def copied_over(made: Disks) -> str:
    """The contents of another claimed device over those of this one, in the same file."""
    claimed()(made)
    other, device = made.images[-1], claimed()(made)
    command("cp", "--sparse=always", other, made.images[-1])
    return device


def partition_of_two(then: Callable[[str, str], object]) -> Situation:
    """A claimed partition, its disk with another one, and then something done to the disk, or to the other."""

    def build(made: Disks) -> str:
        disk = made.partitioned(GPT)
        device = f"{disk}p1"
        assert claim(device).returncode == 0
        then(disk, f"{disk}p2")
        return device

    return build


IN_USE_FILE = {
    "open": "",
    "locked by flock": "fcntl.flock(fd, fcntl.LOCK_EX)",
    "locked by fcntl": "fcntl.lockf(fd, fcntl.LOCK_EX)",
    "locked as QEMU does": "fcntl.fcntl(fd, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 100, 1, 0))",  # F_OFD_SETLK
    "mapped, its descriptor closed": MAPPED,
    "locked by a descriptor on its way": (
        "fcntl.flock(fd, fcntl.LOCK_EX); a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [fd]); os.close(fd)"
    ),
}


def its_file_in_use(how: str) -> Situation:
    def build(made: Disks) -> str:
        device = claimed()(made)
        reader(made, str(made.images[-1]), how, os.O_RDWR)
        return device

    return build


# --- beside our mark --------------------------------------------------------------------------------------------------


def lvm_label(sector: int, named: int | None = None) -> Callable[[str], object]:
    """The label of a physical volume. `named`: the sector that it says it lies in."""

    def write(device: str) -> None:
        label = struct.pack("<8sQII8s", b"LABELONE", sector if named is None else named, 0, 32, b"LVM2 001")
        disks.write(device, label + b"K8Q9FTKOUHP3c2kGo7bN1eDdp15cytD1", at=512 * sector)

    return write


def image_at(at: int, *mkfs: str, size: int = 512 * 1024) -> Callable[[str], object]:
    """A whole file system further inside of the device, as `losetup --offset` would find it."""

    def write(device: str) -> None:
        inner = command("losetup", "--find", "--show", "--offset", str(at), "--sizelimit", str(size), device)
        try:
            command(*mkfs, inner)
        finally:
            disks.detach(inner, device)
        disks.flush(device)

    return write


def xfs_super_block(device: str) -> None:
    disks.write(device, b"XFSB" + struct.pack(">IQ", 4096, SIZE // 4096))


def btrfs_copy(device: str) -> None:
    """The second super block, at 64 MiB: what `btrfs rescue super-recover` reads."""
    disks.write(device, uuid4().bytes + bytes(16) + b"_BHRfS_M", at=64 * MIB + 32)


def words(data: bytes, at: int) -> Callable[[str], object]:
    return lambda device: disks.write(device, data, at=at)


INNER_EXT4 = image_at(256 * 1024, "mke2fs", "-q", "-F", "-t", "ext4")

# --- changes: each is one state within a boot, and one after a restart ------------------------------------------------

BYTES = {
    "at the beginning": 0, "in sector 1": 700, "inside the mark": 40_000, "at 1 MiB": MIB, "at 33 MiB": 33 * MIB,
    "at the end": SIZE - 1,
}  # fmt: skip
INNER_EXT4_AT_1_MIB = image_at(MIB, "mke2fs", "-q", "-F", "-t", "ext4", size=16 * MIB)
ONE_BYTE = {f"one byte {where}": words(b"x", at) for where, at in BYTES.items()}
INSIDE: dict[str, Callable[[str], object]] = {
    "8 MiB of a database at 40 MiB": pages_of_a_database,
    "ext4 at 1 MiB": INNER_EXT4_AT_1_MIB,
    "LUKS header at 1 MiB": luks_inside,
}
WHOLE: dict[str, tuple[Callable[[str], object], int]] = {
    "ext4": (disks.ext4, SIZE),
    "ext4 with the UUID of the mark": (their_copy_of_our_file_system, SIZE),
    "xfs": (lambda device: disks.xfs(device, THEIRS), XFS_SIZE),
    "btrfs": (disks.btrfs, BTRFS_SIZE),
    "swap": (lambda device: command("mkswap", "-U", THEIRS, device), SIZE),
    "LVM physical volume": (disks.lvm_member, SIZE),
}
CHANGES: dict[str, tuple[Callable[[str], object], int]] = {
    **{name: (change, SIZE) for name, change in {**ONE_BYTE, **INSIDE}.items()},
    "files in the mark": (write_files, SIZE),
    "zeros written over zeros": (write_the_same, SIZE),
    "a part discarded": (lambda d: command("blkdiscard", "-o", str(32 * MIB), "-l", str(MIB), d), SIZE),
    "one byte written to its file": (write_its_file, SIZE),
    "one byte written and not flushed": (write_unflushed, SIZE),
    **WHOLE,
}
CHANGES_AFTER_USE: dict[str, Callable[[str], object]] = {
    **ONE_BYTE,
    **INSIDE,
    "files in its ext4": write_files,
    "ext4 with the same UUID": their_copy_of_our_file_system,
    "zeros written over zeros": write_the_same,
}
ENDS = "its (first|last) 4 MiB are not"
BETWEEN = "pages between its ends are not"
ANYWHERE = f"{ENDS}|{BETWEEN}|beside it|several|holds"
AFTER_RESTART: dict[str, tuple[Callable[[str], object], int, str]] = {
    **{f"one byte {where}": (words(b"x", at), SIZE, ENDS) for where, at in BYTES.items() if at != 33 * MIB},
    "one byte inside the last 4 MiB": (words(b"x", SIZE - 4 * MIB), SIZE, ENDS),
    "4 MiB at 33 MiB": (random_bytes(4 * MIB, 33 * MIB + 4096), SIZE, BETWEEN),
    "4 MiB behind the first 4": (random_bytes(4 * MIB, 4 * MIB), SIZE, BETWEEN),
    "8 MiB of a database at 40 MiB": (pages_of_a_database, SIZE, BETWEEN),
    "ext4 at 1 MiB": (INNER_EXT4_AT_1_MIB, SIZE, ENDS),
    "LUKS header at 1 MiB": (luks_inside, SIZE, ENDS),
    "files in the mark": (write_files, SIZE, ENDS),
    **{name: (change, size, ANYWHERE) for name, (change, size) in WHOLE.items()},
}
USED_AFTER_RESTART: dict[str, tuple[Callable[[str], object], str]] = {
    "one byte in sector 1": (words(b"x", 700), ENDS),
    "one byte at the end": (words(b"x", SIZE - 1), ENDS),
    "files in its ext4": (write_files, ENDS),
    "ext4 with the same UUID": (their_copy_of_our_file_system, ENDS),
    "ext4": (disks.ext4, f"holds ext4, id {THEIRS}"),
}

# --- all of them ------------------------------------------------------------------------------------------------------

FORMATS, CLAIM, ERASE, NEVER = "formats", "refuses: not claimed", "refuses", "refuses, always"
BY_CLAIM = {FORMATS: "already claimed", CLAIM: "claims", ERASE: "refuses; with `--erase ID` claims", NEVER: "refuses"}


@dataclass(frozen=True)
class State:
    """What a device is, what the guard makes of it, and the key fact of what it says."""

    build: Situation
    verdict: str
    says: str
    permit: str = ""
    """The id that `--erase` takes, as a pattern."""


OWN = r"[\w:.-]+"
"""The id of a device itself, where what is on it has none of its own."""


def holds(build: Situation, says: str, permit: str = OWN) -> State:
    return State(build, ERASE, says, permit)


def used(build: Situation, says: str) -> State:
    return State(build, NEVER, says)


def ours(build: Situation, kind: str = "ext2") -> State:
    return State(build, FORMATS, rf"holds {kind} of Mountlab's own \(UUID 6d6f756e-746c-61")


def unrecorded(build: Situation, kind: str) -> State:
    says = rf"holds {kind} with a mark of Mountlab \(UUID 6d6f.*, but .* has no claim of this device"
    return holds(build, says, "6d6f756e-746c-61[-0-9a-f]{20}")


def beside(then: Callable[[str], object], says: str, size: int = SIZE) -> State:
    return holds(claimed(size, then), says)


STATES: dict[str, dict[str, State]] = {
    "blank": {
        "zeros from end to end": State(filled(str), CLAIM, "carries no signature, and Mountlab has not claimed it"),
        "zeros, 2 GiB": State(filled(str, size=LARGE), CLAIM, "Mountlab has not claimed it"),
        "zeros, a partition": State(partition, CLAIM, "Mountlab has not claimed it"),
        "zeros, on a file in a mounted loop device": State(
            on_a_file_in_a_mounted_loop_device, CLAIM, "Mountlab has not claimed it"
        ),
    },
    "data without a signature": {
        "64 KiB at 900 MiB of 2 GiB": State(
            filled(words(b"x" * 65536, 900 * MIB), size=LARGE), CLAIM, r"data at byte 943718400 \(900 MiB\)", OWN
        ),
        "one byte at the beginning": State(filled(words(b"x", 0)), CLAIM, "data at byte 0 ", OWN),
        "one byte inside": State(filled(words(b"x", 40 * MIB + 7)), CLAIM, "data at byte 41943047 ", OWN),
        "one byte at the end": State(filled(words(b"x", SIZE - 1)), CLAIM, "data at byte 67108863 ", OWN),
        "an ext4 whose first MiB is lost": State(beginning_lost, CLAIM, "data at byte", OWN),
        "zeros, a partition beside a mounted one": State(
            beside_a_mounted_partition, CLAIM, "is a partition of a disk in use: /dev/loop.*p2 is mounted on /", OURS
        ),
    },
    "somebody's data": {
        "ext4": holds(filled(disks.ext4), f"holds ext4, id {THEIRS}", THEIRS),
        "ext4, labelled mountlab": holds(
            filled(lambda device: disks.ext4(device, THEIRS, "-L", "mountlab")), "holds ext4, label mountlab", THEIRS
        ),
        "ext4 in a partition": holds(
            lambda made: (device := partition(made), disks.ext4(device))[0], "holds ext4", THEIRS
        ),
        "external journal of ext4": holds(filled(disks.journal), "holds jbd", THEIRS),
        "xfs": holds(filled(lambda device: disks.xfs(device, THEIRS), size=XFS_SIZE), "holds xfs", THEIRS),
        "btrfs": holds(filled(disks.btrfs, size=BTRFS_SIZE), "holds btrfs", "[0-9a-f-]{36}"),
        "f2fs": holds(filled(lambda device: command("mkfs.f2fs", "-q", "-f", device)), "holds f2fs", "[0-9a-f-]{36}"),
        "swap": holds(filled(lambda device: command("mkswap", "-U", THEIRS, device)), "holds swap", THEIRS),
        "GPT": holds(table(GPT), r"holds a partition table \(gpt\)", THEIRS),
        "GPT whose partitions the kernel knows": holds(
            lambda made: made.partitioned(GPT), r"with the partitions loop\d+p1 loop\d+p2", THEIRS
        ),
        "GPT, only the second copy": holds(second_table_only, "holds gpt by wipefs, but nothing by blkid"),
        "MBR": holds(table("label: dos\nlabel-id: 0x12345678\n,\n"), r"partition table \(dos\)", "12345678"),
        "LVM physical volume": holds(filled(disks.lvm_member), "holds LVM2_member", r"\w{6}(-\w{4}){5}-\w{6}"),
        "md member": holds(filled(disks.md_member), "holds linux_raid_member, label box:0", THEIRS),
        "md member, metadata 1.0": holds(filled(disks.md_member_at_the_end), "holds linux_raid_member", THEIRS),
        "md member over ext4": holds(md_member_over_ext4, "several signatures: (linux_raid_member|ext4) "),
        "LUKS": holds(filled(disks.luks), "holds crypto_LUKS", THEIRS),
        "bcache": holds(filled(disks.bcache), "holds bcache", THEIRS),
        "ZFS member": holds(filled(disks.zfs_member), "holds zfs_member without an id"),
        "squashfs": holds(filled(disks.squashfs), "holds squashfs without an id"),
    },
    "claimed": {
        "claimed": ours(claimed()),
        "claimed, then used raw": ours(used_raw),
        "claimed, then ext4 of a sweep": ours(EXT4, "ext4"),
        "claimed, then xfs of a sweep": ours(
            used_by_a_sweep("mkfs.xfs", "-q", "-f", "-m", "uuid={uuid}", "{device}", size=XFS_SIZE), "xfs"
        ),
        "claimed, then btrfs of a sweep": ours(
            used_by_a_sweep("mkfs.btrfs", "-q", "-f", "-U", "{uuid}", "{device}", size=BTRFS_SIZE), "btrfs"
        ),
        "claimed, then f2fs of a sweep": ours(
            used_by_a_sweep("mkfs.f2fs", "-q", "-f", "-U", "{uuid}", "{device}"), "f2fs"
        ),
        "claimed, then external log of an xfs": ours(log_of_a_sweep, "xfs_external_log"),
        "claimed, file attached to another loop device": ours(attached_again),
        "claimed, then the use of a sweep was cut off": ours(cut_off(), "ext4"),
        "copy of a claimed device": holds(copied(claimed()), "has no claim of this device: it is a copy", "6d6f.*"),
        "copy of a claimed device with ext4": holds(
            copied(EXT4), "holds ext4 with a mark of Mountlab .* it is a copy", "6d6f.*"
        ),
        "its file replaced by a copy": holds(replaced_by_a_copy, "has no claim of this device: it is a copy", "6d6f.*"),
        "claimed, then grown": holds(grown, "has no claim of this device: .* was resized", "6d6f.*"),
    },
    "with a mark that this box has no record of": {
        "mark": unrecorded(marked_before(), "ext2"),
        "ext4": unrecorded(filled(lambda device: disks.ext4(device, OURS)), "ext4"),
        "xfs": unrecorded(filled(lambda device: disks.xfs(device, OURS), size=XFS_SIZE), "xfs"),
        "btrfs": unrecorded(filled(lambda d: disks.btrfs(d, ours=True), size=BTRFS_SIZE), "btrfs"),
        "external journal": unrecorded(filled(lambda device: disks.journal(device, OURS)), "jbd"),
        "external log": unrecorded(external_log, "xfs_external_log"),
        "partition beside a mounted one": unrecorded(ours_beside_a_mounted_partition, "ext2"),
        "LVM label in sector 0": holds(marked_before(then=lvm_label(0)), "LVM"),
    },
    "claimed, then changed in the same boot": {
        name: holds(claimed(size, change), "(the kernel's counts|beside it|several signatures|holds)")
        for name, (change, size) in CHANGES.items()
    }
    | {
        "a partition, by the name of its disk": holds(
            partition_of_two(lambda disk, other: disks.write(disk, b"x", at=15 * MIB)), "the kernel's counts"
        ),
        "a partition, not it but the one beside it": ours(
            partition_of_two(lambda disk, other: disks.write(other, b"x", at=MIB))
        ),
    }
    | {"another device copied over its file": holds(copied_over, "not one that this box has put there", "6d6f.*")},
    "used by a sweep, then changed in the same boot": {
        name: holds(used_by_a_sweep(*MKFS_EXT4, then=change), "(the kernel's counts|beside it|several|holds)")
        for name, change in CHANGES_AFTER_USE.items()
    }
    | {"mounted and read": ours(used_by_a_sweep(*MKFS_EXT4, then=mount_only), "ext4")},
    "claimed, then changed after a restart": {
        name: holds(after_restart(claimed(size), change), says) for name, (change, size, says) in AFTER_RESTART.items()
    }
    | {
        "unchanged": ours(after_restart(claimed())),
        "zeros written over zeros": ours(after_restart(claimed(), write_the_same)),
    },
    "used by a sweep, then changed after a restart": {
        name: holds(after_restart(EXT4, change), says) for name, (change, says) in USED_AFTER_RESTART.items()
    }
    | {
        "unchanged": ours(after_restart(EXT4), "ext4"),
        "its use was cut off": ours(after_restart(cut_off()), "ext4"),
    },
    "a sweep's use was cut off, then": {
        "ext4": holds(cut_off(disks.ext4), f"holds ext4, id {THEIRS}", THEIRS),
        "ext4 with another mark": holds(
            cut_off(lambda device: disks.ext4(device, OURS)), "but not one that this box has put there", OURS
        ),
    },
    "claimed, and beside the mark": {
        "LVM label in sector 0": beside(lvm_label(0), "LVM2_member|an LVM label at byte 0"),
        "LVM label in sector 0, from another sector": beside(lvm_label(0, 1), "beside it an LVM label at byte 0"),
        "LVM label in sector 1": beside(lvm_label(1), "LVM2_member"),
        "LVM label in sector 3, from another sector": beside(lvm_label(3, 1), "beside it an LVM label at byte 1536"),
        "MBR beside an ext4 of ours": holds(table_over_ext4, "several signatures: (dos ext4|ext4 dos)"),
        "GPT": beside(
            lambda d: command("sfdisk", "-q", "--no-reread", "--wipe", "never", d, stdin=GPT), "gpt|contradict"
        ),
        "md member": beside(disks.md_member_at_the_end, "linux_raid_member"),
        "ZFS member": beside(disks.zfs_member, "zfs_member"),
        "squashfs": beside(disks.squashfs, "squashfs"),
        "super block of xfs": beside(xfs_super_block, "beside it xfs|several|contradict"),
        "btrfs, over which the mark was written": holds(
            ext2_over_btrfs, "several signatures(: ext2 btrfs| that contradict)"
        ),
        "btrfs, only its second super block": beside(btrfs_copy, "copy of the super block of a btrfs", BTRFS_SIZE),
        "ISO 9660": beside(words(b"\x01CD001\x01", 32768), "beside it iso9660|iso9660"),
        "second header of LUKS": beside(
            words(b"SKUL\xba\xbe", 16384), "crypto_LUKS|a second LUKS header at byte 16384"
        ),
        "swap": beside(words(b"SWAPSPACE2", 4086), "swap"),
        "ext4 inside of its area": beside(INNER_EXT4, "beside it ext2, ext3 or ext4 at byte 262144|data at byte"),
        "one byte inside of its area": beside(words(b"x", 700_000), "beside it data at byte 700000"),
        "LVM label on an ext4 of ours": holds(
            lambda made: (device := EXT4(made), lvm_label(0, 1)(device))[0], "beside it an LVM label"
        ),
    },
    "in use": {
        "mounted": used(mounted, "is mounted on /.*/mountlab-mount0$"),
        "mounted in another namespace": used(mounted_elsewhere, r"in another mount namespace \(of process \d+\)"),
        "second device of a mounted btrfs": used(
            second_of_btrfs, rf"belongs to a mounted btrfs \(UUID {disks.OURS[:-12]}"
        ),
        "second device of a btrfs mounted elsewhere": used(second_of_btrfs_elsewhere, "belongs to a mounted btrfs"),
        "external journal": used(journal_in_use, "is in use, which only an exclusive open tells"),
        "external log": used(xfs_log_in_use, "is in use, which only an exclusive open tells"),
        "swap": used(swap_on, "is in use as swap"),
        "below a loop device": used(below_a_loop_device, r"lies below the loop device loop\d+"),
        "a loop device on a block device": used(
            on_a_block_device, r"is a loop device on the block device /dev/loop\d+"
        ),
        "partition below a loop device": used(partition_below_a_loop_device, r"p2 lies below the loop device loop\d+"),
        "partition, disk below a loop device": used(
            partition_of_a_disk_below_a_loop_device, r"/dev/loop\d+ lies below the loop device loop\d+"
        ),
        "file with two loop devices": used(file_with_two_loop_devices, r"lies on the same file as /dev/loop\d+"),
        "file with another name": used(file_with_another_name, r"lies on the same file as /dev/loop\d+"),
        "disk of a mounted partition": used(disk_of_a_mounted_partition, r"p2 is mounted on /"),
        "disk of a partition mounted elsewhere": used(
            disk_of_a_partition_mounted_elsewhere, "p2 is mounted on .* namespace"
        ),
        "disk of a partition with swap": used(disk_of_a_partition_with_swap, "p2 is in use as swap"),
        "partition of a mounted disk": used(partition_of_a_mounted_disk, r"/dev/loop\d+ is mounted on /"),
        "open by another node of its number": used(held_open_by_another_name, r"is held open by process \d+"),
        "mapped, its descriptor closed": used(mapped_with_its_descriptor_closed, r"is held open by process \d+"),
        "mapped by another node of its number": used(mapped_by_another_name, r"is held open by process \d+"),
        "disk with an open partition": used(disk_with_a_partition_open, r"is held open by process \d+"),
        "partition of an open disk": used(partition_of_an_open_disk, r"is held open by process \d+"),
        **{
            f"its file {how}": used(
                its_file_in_use(code),
                r"the file below /dev/loop\d+, is held open by process \d+|lies on a file that is locked",
            )
            for how, code in IN_USE_FILE.items()
        },
        "read-only": used(read_only, "is read-only"),
    },
}


# --- the table --------------------------------------------------------------------------------------------------------


def lines() -> Iterator[tuple[str, str, str]]:
    yield "what the device is", "the guard, before mkfs", "`box claim`"
    for group, states in STATES.items():
        for name, state in states.items():
            yield f"{group}: {name}", state.verdict, by_claim(state)


def by_claim(state: State) -> str:
    return BY_CLAIM[ERASE if state.verdict == CLAIM and state.permit else state.verdict]


if __name__ == "__main__":
    data_files.write("device-states", lines())
