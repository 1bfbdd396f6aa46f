"""Loop devices of a test's own, and what may lie on them: for tests of the guard of scratch devices."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from installed_programs import program
from waiting import LIMIT_S, wait_until

MIB = 2**20
SECTOR, SWAP_HEADER = 512, 4096
ELSEWHERE = ("unshare", "-m", "--propagation", "slave")
"""A mount namespace of its own, which lets go of what is unmounted here."""
SIZE = 64 * MIB
BTRFS_SIZE = 128 * MIB
XFS_SIZE = 300 * MIB
OURS = "6d6f756e-746c-6162-0000-0000000000aa"
"""A UUID that begins as all of ours do."""
THEIRS = "11111111-2222-3333-4444-555555555555"
BY_ID = Path("/dev/disk/by-id")
RECORDS = Path("/var/lib/mountlab-claims")
"""Where a box records what was claimed on it."""
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


def command(*argv: str | Path, stdin: str = "") -> str:
    """Run a program and give what it printed; an error that names it where it fails. Without it the test is skipped."""
    done = subprocess.run([program(str(argv[0])), *argv[1:]], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout.strip()


def detach(loop: str, backing: Path | str) -> None:
    """Detach a loop device and wait until it is: the kernel keeps it for as long as any process looks at it."""
    command("losetup", "--detach", loop)
    on_it = ("losetup", "--noheadings", "--output", "NAME", "--associated", backing)
    wait_until(f"no loop device on {backing}", lambda: not command(*on_it))


@dataclass
class Disks:
    """Makes loop devices, mounts and the like, and takes all of it down again, last first."""

    directory: Path
    undo: ExitStack
    images: list[Path] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    mounts: list[Path] = field(default_factory=list)
    swapped: dict[Path, int] = field(default_factory=dict)
    """Image to the byte from which the kernel writes pages that it swaps out, whenever it likes."""

    def image(self, size: int = SIZE) -> Path:
        """A sparse file of zeros."""
        path = self.directory / f"disk{len(self.images)}.img"
        with path.open("xb") as file:
            file.truncate(size)
        self.images.append(path)
        return path

    def loop(self, backing: Path | str | None = None, *options: str, size: int = SIZE) -> str:
        """A loop device on a new image, or on `backing`."""
        below = Path(backing or self.image(size))
        self.undo.callback(forget_claims, below.stat().st_ino)
        device = command("losetup", "--find", "--show", *options, str(below))
        self.undo.callback(command, "losetup", "--detach", device)
        self.loops.append(device)
        return device

    def partitioned(self, script: str, size: int = SIZE) -> str:
        """A loop device with partitions, which the kernel knows: DEVICEp1, DEVICEp2."""
        image = self.image(size)
        command("sfdisk", "--quiet", "--no-reread", str(image), stdin=script)
        device = self.loop(image)
        command("partx", "--add", device)  # and not losetup --partscan: not every kernel has that
        self.undo.callback(_without_partitions, device)
        return device

    def mount(self, device: str, *options: str) -> Path:
        place = self.directory / f"mountlab-mount{len(self.mounts)}"
        place.mkdir()
        command("mount", *options, device, str(place))
        self.undo.callback(command, "umount", str(place))
        self.mounts.append(place)
        return place

    def mount_elsewhere(self, device: str) -> int:
        """Mount it, read-only so that nothing is written by itself, in a mount namespace of its own; gives the process
        that holds it."""
        place = self.directory / "elsewhere"
        place.mkdir()
        hidden = f"mount -o ro {device} {place} && sync -f {place} && echo mounted && read _"
        if subprocess.run([*ELSEWHERE, "true"], check=False).returncode != 0:
            pytest.skip("a mount cannot be hidden here: unshare -m does not work (inside a chroot, say)")
        holder = self.process(*ELSEWHERE, "sh", "-c", hidden)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mounted\n"
        return holder.pid

    def process(self, *argv: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """A process that ends at the latest with the test: its standard input ends, and it is waited for."""
        process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, text=True)
        self.undo.callback(_end, process)
        return process

    def swap_on(self, device: str) -> None:
        command("mkswap", "-U", THEIRS, device)
        command("swapon", device)
        self.undo.callback(command, "swapoff", device)
        block = Path("/sys/class/block", Path(device).name).resolve()
        start = int((block / "start").read_text()) * SECTOR if (block / "partition").exists() else 0
        disk = block.parent if start else block
        self.swapped[Path((disk / "loop/backing_file").read_text().rstrip("\n"))] = start + SWAP_HEADER

    def stable(self, device: str, name: str = "by-id-of-a-disk") -> Path:
        """A link to the device such as udev makes."""
        link = self.directory / name
        link.symlink_to(device)
        return link

    def by_id(self, device: str) -> Path:
        """A link to the device where udev makes them, for as long as the test runs. The directory stays where there was
        none: to remove it would take it from whoever puts a link there meanwhile."""
        BY_ID.mkdir(parents=True, exist_ok=True)
        link = BY_ID / f"mountlab-test-{os.getpid()}-{device.rpartition('/')[2]}"
        link.symlink_to(device)
        self.undo.callback(link.unlink)
        return link

    def digests(self) -> list[str]:
        """Of every image, with all that was written to its device or its file system; of one that is swapped to what
        lies before the pages."""
        for device in reversed(self.loops):  # a file of one may lie in a file system on another
            flush(device)
        for place in self.mounts:
            command("sync", "-f", str(place))
        for device in reversed(self.loops):
            flush(device)
        return [_digest(image, self.swapped.get(image, image.stat().st_size)) for image in self.images]


CHUNK = 64 * 1024


def _digest(image: Path, until: int) -> str:
    """Of all that is not zero, and where it lies: of every byte, without reading gigabytes of nothing."""
    digest, done = hashlib.sha256(str(image.stat().st_size).encode()), 0
    with image.open("rb") as file:
        while (begin := _data_after(file.fileno(), done)) is not None:
            at = begin - begin % CHUNK
            file.seek(at)
            if at >= until:
                break
            if any(chunk := file.read(min(CHUNK, until - at))):
                digest.update(f"{at} ".encode() + chunk)
            done = at + CHUNK
    return digest.hexdigest()


def _data_after(descriptor: int, at: int) -> int | None:
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError:  # ENXIO: nothing but a hole up to the end
        return None


def _without_partitions(device: str) -> None:
    """Until the kernel knows none: one that was mounted elsewhere, or held open, is busy for a moment after that."""
    name = Path(device).name

    def none() -> bool:
        subprocess.run(["partx", "--delete", device], capture_output=True, check=False)
        return not any(Path("/sys/block", name).glob(f"{name}p*"))

    wait_until(f"no partition of {device}", none)


def _end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=LIMIT_S)


def records_of(inode: int) -> list[Path]:
    """The records of claims of devices on the file with this inode: one for each offset and partition."""
    of_file = re.compile(rf"^device .*file=\w+:{inode}[.:]", re.MULTILINE)
    return [path for path in RECORDS.glob("????????") if of_file.search(path.read_text())]


def forget_claims(inode: int) -> None:
    for path in records_of(inode):
        path.unlink()


def file_below(device: str) -> Path:
    """The file of a loop device."""
    return Path(Path("/sys/class/block", Path(device).name, "loop/backing_file").read_text().rstrip("\n"))


def restarted(device: str) -> None:
    """What a restart of the box makes of the record of a claim: it is of another boot."""
    (record,) = records_of(file_below(device).stat().st_ino)
    record.write_text(re.sub(r"^writes \S+", "writes 00000000-0", record.read_text(), flags=re.MULTILINE))


def write(device: str, data: bytes, at: int = 0) -> None:
    with Path(device).open("r+b") as file:
        file.seek(at)
        file.write(data)
    flush(device)


def flush(device: str) -> None:
    """Bring what was written to the device into the file below it. Not `sync`: that waits for the whole machine."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def another_id() -> str:
    """One of ours that was never used: mkfs.btrfs refuses a UUID that any device of the machine carries, and the kernel
    remembers each btrfs by it."""
    return OURS[:-12] + uuid.uuid4().hex[:12]


def ext4(device: str, identity: str = THEIRS, *options: str) -> None:
    command("mke2fs", "-q", "-F", "-t", "ext4", "-U", identity, "-E", "lazy_itable_init=0", *options, device)


def xfs(device: str, identity: str, *options: str) -> None:
    command("mkfs.xfs", "-q", "-f", "-m", f"uuid={identity}", *options, device)


def btrfs(*devices: str, ours: bool = False) -> None:
    """With a UUID of its own each time, so that tests side by side do not meet: see `another_id`."""
    command("mkfs.btrfs", "-q", "-f", "-U", another_id() if ours else str(uuid.uuid4()), *devices)


def journal(device: str, identity: str = THEIRS) -> None:
    command("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", "-U", identity, device)


def lvm_member(device: str, identity: str = "") -> None:
    """LVM writes the 32 digits of a UUID as 6-4-4-4-4-4-6."""
    only = f'devices {{ filter=["a|^{device}$|", "r|.*|"] use_devicesfile=0 }}'
    digits, ends = identity.replace("-", ""), (0, 6, 10, 14, 18, 22, 26, 32)
    grouped = "-".join(digits[begin:end] for begin, end in pairwise(ends))
    given = ("--uuid", grouped, "--norestorefile") if identity else ()
    command("pvcreate", "-qq", "-ff", "-y", "--config", only, *given, device)


def md_superblock(at_sector: int, identity: str = THEIRS) -> bytes:
    """A member of a RAID 1 of two, metadata 1.x, as mdadm would write it: little endian, with its checksum."""
    array, member = uuid.UUID(identity).bytes, uuid.UUID(OURS).bytes
    block = struct.pack("<IIII16s32sQIIQIII", 0xA92B4EFC, 1, 0, 0, array, b"box:0", 0, 1, 0, 100_000, 0, 2, 0)
    block = block.ljust(128, b"\0") + struct.pack("<QQQQII16s", 2048, 100_000, at_sector, 0, 0, 0, member)
    block = block.ljust(192, b"\0") + struct.pack("<QQQII", 0, 1, 2**64 - 1, 0, 2)
    block = block.ljust(256, b"\0") + struct.pack("<HH", 0, 1)
    total = sum(struct.unpack(f"<{len(block) // 4}I", block))
    checksum = (total & 0xFFFFFFFF) + (total >> 32) & 0xFFFFFFFF
    return block[:216] + struct.pack("<I", checksum) + block[220:]


def md_member(device: str, identity: str = THEIRS) -> None:
    write(device, md_superblock(8, identity), at=4096)


def md_member_at_the_end(device: str) -> None:
    """Metadata 1.0: 8 KiB before the end, at a multiple of 4 KiB."""
    write(device, md_superblock(SIZE // 512 - 16), at=SIZE - 8192)


def luks(device: str, identity: str = THEIRS) -> None:
    header = b"LUKS\xba\xbe" + struct.pack(">H", 1) + b"aes".ljust(160, b"\0") + identity.encode().ljust(40, b"\0")
    write(device, header)


def squashfs(device: str) -> None:
    write(device, struct.pack("<4sIIIIHHHHHH", b"hsqs", 1, 0, 131072, 0, 1, 17, 0, 1, 4, 0).ljust(96, b"\1"))


def zfs_member(device: str) -> None:
    """The ring of uberblocks in the first label."""
    for i in range(8):
        write(device, struct.pack("<QQ", 0x00BAB10C, 5000), at=128 * 1024 + i * 1024)


def bcache(device: str) -> None:
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    block = struct.pack("<QQQ16s16s16s", 0, 8, 1, magic, uuid.UUID(THEIRS).bytes, uuid.UUID(THEIRS).bytes)
    write(device, block.ljust(4096, b"\0"), at=4096)
