"""The kernel's report on a mount and its devices: text read on the box, turned into values."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mountlab.core.errors import ParseError
from mountlab.core.mountinfo import MountLine, mount_lines, unescape
from mountlab.core.units import SECTOR_BYTES

T = TypeVar("T")
Device = str
"""'major:minor', as in /proc/self/mountinfo and /proc/diskstats; of an NFS server what `server_of` returns."""
DeviceLevels = tuple[tuple[Device, ...], ...]
"""Block devices by how far they are below a file system, those that it lies on itself first."""

_NO_DEVICE = "0:"
"""How the numbers of file systems begin that lie on no block device."""
_DF = re.compile(r" \d+ +\d+ +-?\d+ +(?:\d+%|-) (/.*)\Z")
_HEADING = re.compile(r"\n==> (.+) <==$", re.MULTILINE)


def parts_by_heading(text: str) -> dict[str, str]:
    """Split text in the manner of `tail -v`: '==> name <==', then the text of that name."""
    parts = _HEADING.split(f"\n{text}")  # five times as fast as with ^, which is tried at every letter
    return {name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def device_number(st_dev: str) -> Device:
    """Return 'major:minor' from the decimal st_dev of stat(1), by the encoding of <sys/sysmacros.h>."""
    number = int(st_dev)
    major = ((number >> 8) & 0xFFF) | ((number >> 32) & 0xFFFFF000)
    minor = (number & 0xFF) | ((number >> 12) & 0xFFFFFF00)
    return f"{major}:{minor}"


def mount_of(evidence: Mapping[str, str]) -> MountLine:
    """Return the mount that holds the directory of the evidence.

    Inside a chroot the kernel lists no mount for the root: then type and options are unknown, the device is not. A
    block device without a file system has no mount either: its type is 'raw'.
    """
    parts = parts_by_heading(evidence["evidence.txt"])
    if "root" not in parts and parts.get("device"):
        return MountLine(device=parts["device"], mountpoint="", fstype="raw", source=parts.get("name", ""), options="")
    number = device_number(parts["st_dev"])
    last_line = _DF.search(parts["df"])  # the mount point and the source may hold spaces
    if not last_line:
        raise ParseError("the output of df cannot be read", got=repr(parts["df"][-200:]))
    mounted_on = last_line[1]
    latest_first = list(reversed(mount_lines(parts["mountinfo"])))
    # One device may be mounted in several places, and btrfs shows another number in mountinfo than in stat(2).
    for fits in (
        lambda line: line.device == number and line.mountpoint == mounted_on,
        lambda line: line.mountpoint == mounted_on,
        lambda line: line.device == number,
    ):
        for line in filter(fits, latest_first):
            return line
    return MountLine(device=number, mountpoint=mounted_on, fstype="unknown", source="unknown", options="")


def split_options(text: str) -> list[str]:
    """Split mount options. A comma between quotes, or before a digit (mpol=bind:0,2), separates nothing."""
    return [word.strip() for word in _BETWEEN_OPTIONS.split(text) if word.strip()]


_BETWEEN_OPTIONS = re.compile(r""",(?!\d)(?=(?:[^"]*"[^"]*")*[^"]*\Z)""")


def mount_options(evidence: Mapping[str, str]) -> dict[str, str]:
    """Return option to value ('' without one) from /proc/self/mountinfo."""
    return _options(split_options(mount_of(evidence).options))


def ext4_options(evidence: Mapping[str, str]) -> dict[str, str]:
    """Return option to value from /proc/fs/ext4/<device>/options, which shows defaults too."""
    parts = parts_by_heading(evidence["evidence.txt"])
    name = parts.get("name") or mount_of(evidence).source.rpartition("/")[2]
    lines = parts.get(f"/proc/fs/ext4/{name}/options", "").splitlines()
    return _options([word for line in lines for word in split_options(line)])


def _options(words: list[str]) -> dict[str, str]:
    """Return option to value, of one that is shown several times (compress_extension of f2fs) with all its values
    between colons."""
    options: dict[str, str] = {}
    for key, _, value in (word.strip().partition("=") for word in words):
        if key in MANY_VALUES and options.get(key, value) != value:
            options[key] += f":{unescape(value)}"
        elif key:
            options[key] = unescape(value)
    return options


MANY_VALUES = ("compress_extension", "nocompress_extension")
"""Options that the kernel shows once for each value."""


def read_alone(evidence: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return each option that alone.sh mounted with, to the options that the kernel showed then."""
    options = {}
    for option, text in parts_by_heading(evidence.get("alone.txt", "")).items():
        first, *rest = text.splitlines() or [""]
        of_mount = split_options(mount_lines(first)[0].options) if first else []
        options[option] = _options([*of_mount, *(word for line in rest for word in split_options(line)), *of_mount])
    return options


def settings(evidence: Mapping[str, str]) -> dict[str, str]:
    """Return path to content of every file below /sys that was read: of the file system, and of its device's queue."""
    parts = parts_by_heading(evidence["evidence.txt"])
    return {path: text.strip() for path, text in parts.items() if path.startswith("/sys/")}


_STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")


def kernel_log(evidence: Mapping[str, str]) -> list[str]:
    """Return what the kernel logged while this file system was mounted, without time stamps."""
    text = parts_by_heading(evidence.get("mount.txt", "")).get("kernel", "")
    lines = (_STAMP.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line and "callbacks suppressed" not in line]


@dataclass(frozen=True)
class Loop:
    """A loop device: its number, whether it bypasses the cache below, and the device that holds its image."""

    device: Device
    direct_io: bool
    backing_device: Device | None


def loops(evidence: Mapping[str, str]) -> dict[Device, Loop]:
    """Return every loop device of the box that has a backing file, by its number."""
    rows = [line.split("\t") for line in parts_by_heading(evidence["evidence.txt"]).get("loops", "").splitlines()]
    return {
        number: Loop(number, dio == "1", device_number(backing) if backing else None)
        for number, dio, backing, _file in rows
    }


def file_system_device(evidence: Mapping[str, str]) -> Device:
    """Return the block device that the file system lies on. btrfs shows a number of its own in mountinfo."""
    below = _below_overlay(evidence)
    return (
        below.device if below else parts_by_heading(evidence["evidence.txt"]).get("device") or mount_of(evidence).device
    )


def _below_overlay(evidence: Mapping[str, str]) -> MountLine | None:
    """Return the mount that holds the upper directory of an overlay, which is where files are written; None for
    others."""
    line = mount_of(evidence)
    upper = _options(split_options(line.options)).get("upperdir") if line.fstype == "overlay" else None
    if not upper:
        return None
    mounts = mount_lines(parts_by_heading(evidence["evidence.txt"])["mountinfo"])
    candidates = [mount for mount in mounts if f"{upper}/".startswith(f"{mount.mountpoint.rstrip('/')}/")]
    return max(candidates, key=lambda mount: len(mount.mountpoint), default=None)


@dataclass(frozen=True)
class Slave:
    """A block device on which another one lies (md, device mapper), by number and name."""

    upper: Device
    upper_name: str
    device: Device
    name: str


def slaves(evidence: Mapping[str, str]) -> list[Slave]:
    """Return every block device of the box on which another one lies, and which that is: a row for each such pair."""
    rows = [line.split("\t") for line in parts_by_heading(evidence["evidence.txt"]).get("slaves", "").splitlines()]
    return [Slave(*row) for row in rows if len(row) == 4]


def device_levels(evidence: Mapping[str, str]) -> DeviceLevels:
    """Return the block devices below a file system, level by level: its own, or the devices of a btrfs, then what lies
    directly below all of these.

    A level has everything that the file system reads and writes: a device with none below it stays in each level from
    its own down. One that is reached in two ways, one longer than the other, is in the lower level only. () for a file
    system without a device (major number 0), such as tmpfs.
    """
    return _levels_below(_own_devices(evidence), evidence)


def _levels_below(top: Iterable[Device], evidence: Mapping[str, str]) -> DeviceLevels:
    below, level = _below(evidence), dict.fromkeys(top)
    levels: list[tuple[Device, ...]] = []
    while not level.keys() <= {device for upper in levels for device in upper}:
        deeper = {lower for device in level for lower in _all_below(device, below)}
        levels.append(tuple(device for device in level if device not in deeper) or tuple(level))
        level = dict.fromkeys(lower for device in levels[-1] for lower in below.get(device, [device]))
    return tuple(levels)


def _own_devices(evidence: Mapping[str, str]) -> list[Device]:
    """Return the devices that a file system lies on itself. A btrfs on several has a number that is no device's."""
    number = file_system_device(evidence)
    members = parts_by_heading(evidence["evidence.txt"]).get("members", "").split()
    return members or ([] if number.startswith(_NO_DEVICE) else [number])


def _below(evidence: Mapping[str, str]) -> dict[Device, list[Device]]:
    """Return device to what lies directly below it: its slaves, or the device that holds the image of a loop device."""
    below: dict[Device, list[Device]] = {}
    for slave in slaves(evidence):
        below.setdefault(slave.upper, []).append(slave.device)
    for number, loop in loops(evidence).items():
        if loop.backing_device and not loop.backing_device.startswith(_NO_DEVICE):
            below[number] = [loop.backing_device]
    return below


def _all_below(device: Device, below: Mapping[Device, list[Device]]) -> set[Device]:
    """Return every device below one, at any depth."""
    seen: set[Device] = set()
    waiting = [device]
    while waiting:
        lower = [number for number in below.get(waiting.pop(), ()) if number not in seen]
        seen.update(lower)
        waiting += lower
    return seen


def every_device(levels: DeviceLevels) -> tuple[Device, ...]:
    """Return each device once, top first."""
    return tuple(dict.fromkeys(device for level in levels for device in level))


def server_of(mountpoint: str) -> Device:
    """Return what stands for the server of an NFS mount among the devices."""
    return f"nfs:{mountpoint}"


def is_server(device: Device) -> bool:
    """Return whether it is the server of an NFS mount."""
    return device.startswith("nfs:")


def counted_levels(evidence: Mapping[str, str], servers: Container[Device] = ()) -> DeviceLevels:
    """Return the devices below, as far as their bytes can be held against those of a tool: without levels in which a
    device counts none. () where that which the file system lies on counts none, and with DAX, where files are read and
    written past the block layer, and past the page cache.

    An NFS mount lies on its server, where its bytes were counted (`servers`), and on the device that this serves from
    where the box does so itself."""
    server = server_of((_below_overlay(evidence) or mount_of(evidence)).mountpoint)
    if server in servers:
        served = parts_by_heading(evidence["evidence.txt"]).get("served", "")
        device = device_number(served) if served.isdecimal() else _NO_DEVICE
        return ((server,), *_levels_below([] if device.startswith(_NO_DEVICE) else [device], evidence))
    if uses_dax(evidence) or _counts_nothing(evidence):
        return ()
    silent = _silent(evidence)
    return tuple(level for level in device_levels(evidence) if not silent & set(level))


def uncounted_reason(evidence: Mapping[str, str], servers: Container[Device] = ()) -> str | None:
    """Return why the bytes on a device cannot be held against those of a tool; None where they can, and where there is
    no page cache above a device: in memory, and with DAX. `servers`: as for `counted_levels`."""
    line = _below_overlay(evidence) or mount_of(evidence)
    if line.fstype in _IN_MEMORY or uses_dax(evidence) or server_of(line.mountpoint) in servers:
        return None
    if not device_levels(evidence):
        return f"the kernel does not tell the device below {line.fstype}"
    return "its device counts no bytes (queue/iostats is 0)" if _counts_nothing(evidence) else None


def uses_dax(evidence: Mapping[str, str]) -> bool:
    """Return whether every file is mapped from the device itself (dax=always; kernels before 5.10 say just dax)."""
    return mount_options(evidence).get("dax") in ("", "always")


def loops_below(evidence: Mapping[str, str]) -> list[Loop]:
    """Return the loop devices of the uppermost level below a file system that has some; [] where it lies on none."""
    return of_first_level(loops(evidence), device_levels(evidence))


def of_first_level(known: Mapping[Device, T], levels: DeviceLevels) -> list[T]:
    """Return what is known of the devices of the uppermost level that has some of them; [] where none has."""
    by_level = ([known[device] for device in level if device in known] for level in levels)
    return next(filter(None, by_level), [])


def through_cache_below(evidence: Mapping[str, str]) -> bool:
    """Return whether the file system lies on a loop device that goes through the page cache of the file system below
    it."""
    return any(not loop.direct_io for loop in loops_below(evidence))


def zeroed_at_once(evidence: Mapping[str, str]) -> int | None:
    """Return the bytes that the device zeroes by one command, without writing them; 0 where it has no such command,
    None where the kernel does not tell (kernel: ABI/stable/sysfs-block, write_zeroes_max_bytes)."""
    texts = (text for path, text in settings(evidence).items() if path.endswith("/queue/write_zeroes_max_bytes"))
    return next((int(text) for text in texts if text.isdecimal()), None)


def _counts_nothing(evidence: Mapping[str, str]) -> bool:
    flags = {path for path, text in settings(evidence).items() if path.endswith("/queue/iostats") and text == "0"}
    return any(_BY_ITSELF not in path for path in flags) or bool(_silent(evidence) & set(_own_devices(evidence)))


def _silent(evidence: Mapping[str, str]) -> set[Device]:
    """Return devices below others that count no bytes."""
    rows = [line.split("\t") for line in parts_by_heading(evidence["evidence.txt"]).get("below", "").splitlines()]
    return {row[0] for row in rows if row[4:] == ["0"] and not f"/{row[1]}".startswith(_BY_ITSELF)}


_BY_ITSELF = "/dm-"
"""How the names of devices begin that count whatever `queue/iostats` is: those of device mapper (drivers/md/dm.c)."""


_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")


@dataclass(frozen=True)
class Image:
    """The file behind a loop device: its size, and how much of it is allocated."""

    size: int
    allocated: int


def images(evidence: Mapping[str, str]) -> dict[Device, Image]:
    """Return the files behind the box's loop devices, by the number of the device."""
    rows = [line.split() for line in parts_by_heading(evidence["evidence.txt"]).get("images", "").splitlines()]
    return {row[0]: Image(int(row[1]), int(row[2])) for row in rows if len(row) == 3}


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes that a block device has read and written since the box was started, and flushes of its cache."""

    read: int
    """In bytes."""
    written: int
    """In bytes."""
    flushes: int = 0
    """Number of flushes; 0 also where the kernel does not count them (before 5.5)."""

    def __add__(self, other: DeviceBytes) -> DeviceBytes:
        return DeviceBytes(self.read + other.read, self.written + other.written, self.flushes + other.flushes)

    def __sub__(self, earlier: DeviceBytes) -> DeviceBytes:
        flushes = self.flushes - earlier.flushes
        return DeviceBytes(self.read - earlier.read, self.written - earlier.written, flushes)


def disk_rows(parts: Mapping[str, str]) -> dict[Device, list[str]]:
    """Return the fields of each device in the /proc/diskstats section of a counter snapshot (kernel:
    admin-guide/iostats.rst); the first are its number and its name."""
    rows = (line.split() for line in parts.get("/proc/diskstats", "").splitlines())
    return {f"{row[0]}:{row[1]}": row for row in rows if len(row) >= 10}


def device_bytes(snapshot: str) -> dict[Device, DeviceBytes]:
    """Return bytes by device from a counter snapshot."""
    rows = disk_rows(parts_by_heading(snapshot))
    return {
        number: DeviceBytes(
            int(row[5]) * SECTOR_BYTES, int(row[9]) * SECTOR_BYTES, int(row[18]) if len(row) > 18 else 0
        )
        for number, row in rows.items()
    }


def device_traffic(before: str, after: str) -> dict[Device, DeviceBytes]:
    """Return bytes that each device moved between two snapshots. A device that is in only one of them is left out, and
    one that has moved nothing since it is there: it does not count (linear of md), or nothing lies on it."""
    earlier, later = device_bytes(before), device_bytes(after)
    counting = {number for number, moved in later.items() if moved.read or moved.written}
    return {number: later[number] - earlier[number] for number in later if number in earlier and number in counting}
