"""What the kernel says of a mount and of its devices: text read on the box, turned into values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.errors import ParseError
from mountlab.units import GIB, KIB, MIB, SECTOR_BYTES

Device = str
"""'major:minor', as in /proc/self/mountinfo and /proc/diskstats."""

_DF = re.compile(r" \d+ +\d+ +(?P<free_kib>-?\d+) +(?:\d+%|-) (?P<mounted_on>/.*)\Z")
_HEADING = re.compile(r"^==> (.+) <==$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Split text in the manner of `tail -v`: '==> name <==', then the text of that name."""
    parts = _HEADING.split(text)
    return {name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@dataclass(frozen=True)
class MountLine:
    """One line of /proc/self/mountinfo (proc(5))."""

    device: Device
    mountpoint: str
    fstype: str
    source: str
    options: str
    """Per-mount and per-super-block options, joined by commas."""


def mount_lines(mountinfo: str) -> list[MountLine]:
    """Every line of /proc/self/mountinfo, octal escapes undone. Raises ParseError for a line it cannot read."""
    return [_mount_line(line) for line in mountinfo.splitlines() if line.strip()]


def _mount_line(line: str) -> MountLine:
    left, dash, right = line.partition(" - ")
    mount, super_block = left.split(" "), right.split(" ")
    if not dash or len(mount) < 6 or len(super_block) < 3:
        raise ParseError("a line of /proc/self/mountinfo cannot be read", got=repr(line))
    return MountLine(
        device=mount[2],
        mountpoint=unescape(mount[4]),
        fstype=super_block[0],
        source=unescape(super_block[1]),
        options=",".join((mount[5], " ".join(super_block[2:]))),
    )


def unescape(text: str) -> str:
    r"""A path as the kernel writes it, with blank, tab, newline and backslash as \040, \011, \012, \134."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def device_number(st_dev: str) -> Device:
    """'major:minor' from the decimal st_dev of stat(1), by the encoding of <sys/sysmacros.h>."""
    number = int(st_dev)
    major = ((number >> 8) & 0xFFF) | ((number >> 32) & 0xFFFFF000)
    minor = (number & 0xFF) | ((number >> 12) & 0xFFFFFF00)
    return f"{major}:{minor}"


def mount_of(evidence: Mapping[str, str]) -> MountLine:
    """The mount that holds the directory of the evidence.

    Inside a chroot the kernel lists no mount for the root: then type and options are unknown, the device is not.
    """
    parts = sections(evidence["evidence.txt"])
    number = device_number(parts["st_dev"])
    mounted_on = _df(parts["df"])["mounted_on"]
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


def mount_options(evidence: Mapping[str, str]) -> dict[str, str]:
    """Option to value ('' without one) from /proc/self/mountinfo."""
    return _options(mount_of(evidence).options.split(","))


def ext4_options(evidence: Mapping[str, str]) -> dict[str, str]:
    """Option to value from /proc/fs/ext4/<device>/options, which shows defaults too."""
    name = mount_of(evidence).source.rpartition("/")[2]
    text = sections(evidence["evidence.txt"]).get(f"/proc/fs/ext4/{name}/options", "")
    return _options(text.splitlines())


def _options(words: list[str]) -> dict[str, str]:
    return {key: value for key, _, value in (word.strip().partition("=") for word in words) if key}


@dataclass(frozen=True)
class Loop:
    """A loop device: its number, whether it bypasses the cache below, and the device that holds its image."""

    device: Device
    direct_io: bool
    backing_device: Device | None
    backing_file: str


def loops(evidence: Mapping[str, str]) -> dict[Device, Loop]:
    """Every loop device of the box that has a backing file, by its number."""
    rows = [line.split("\t") for line in sections(evidence["evidence.txt"]).get("loops", "").splitlines()]
    return {
        number: Loop(number, dio == "1", device_number(backing) if backing else None, path)
        for number, dio, backing, path in rows
    }


def device_chain(evidence: Mapping[str, str]) -> list[Device]:
    """Block devices from the file system downwards: its own, then the one below a loop device.

    [] for a file system without a device (major number 0), such as tmpfs.
    """
    chain: list[Device] = []
    number: Device | None = mount_of(evidence).device
    known = loops(evidence)
    while number and not number.startswith("0:") and number not in chain:
        chain.append(number)
        number = known[number].backing_device if number in known else None
    return chain


def unseen_device(evidence: Mapping[str, str]) -> str | None:
    """The type of a file system whose device the kernel does not tell (overlay, btrfs, nfs, ...): bytes on it cannot be
    compared with what a tool moved. None for one on a device, and for one that lives in memory."""
    line = mount_of(evidence)
    return line.fstype if line.device.startswith("0:") and line.fstype not in ("tmpfs", "ramfs", "devtmpfs") else None


def free_bytes(evidence: Mapping[str, str]) -> int:
    """Space that an ordinary user may still write, from `df -P -k`."""
    return int(_df(sections(evidence["evidence.txt"])["df"])["free_kib"]) * KIB


def _df(text: str) -> dict[str, str]:
    """The last line of `df -P -k`, whose source and mount point may hold spaces."""
    match = _DF.search(text)
    if not match:
        raise ParseError("the output of df cannot be read", got=repr(text[-200:]))
    return match.groupdict()


@dataclass(frozen=True)
class OptionState:
    """Whether an option that was asked for shows in what the kernel says."""

    in_effect: bool
    visible: bool
    kernel_says: str


_OPPOSITES = [("barrier", "nobarrier"), ("delalloc", "nodelalloc"), ("discard", "nodiscard"), ("acl", "noacl"),
              ("rw", "ro"), ("auto_da_alloc", "noauto_da_alloc"), ("atime", "noatime"), ("relatime", "noatime"),
              ("strictatime", "noatime"), ("strictatime", "relatime"), ("dioread_lock", "dioread_nolock"),
              ("user_xattr", "nouser_xattr"), ("suid", "nosuid"), ("dev", "nodev"), ("exec", "noexec"),
              ("diratime", "nodiratime"), ("block_validity", "noblock_validity")]  # fmt: skip
_SHOWN_BY_ABSENCE = {"suid", "dev", "exec", "async", "diratime", "strictatime", "atime"}
_ALIASES = {"barrier=1": "barrier", "barrier=0": "nobarrier"}


def option_state(asked: str, stated: Mapping[str, str]) -> OptionState:
    """Compare one option that was asked for with what the kernel states.

    A size is compared in bytes (tmpfs shows 64m as size=65536k). 'defaults' asks for nothing. An option that is
    shown only by the absence of its opposite (suid, dev, ...) is in effect when the opposite is absent.
    """
    asked = _ALIASES.get(asked, asked)
    key, _, value = asked.partition("=")
    if key == "defaults":
        return OptionState(True, True, "asks for nothing")
    if key == "rw" and "ro" in stated:
        # mountinfo shows the mount's state and the file system's: a read-only one of the two rules.
        return OptionState(False, True, "ro")
    if key in stated:
        return OptionState(_same(value, stated[key]), True, f"{key}={stated[key]}" if stated[key] else key)
    opposite = next((other for other in _opposites(key) if other in stated), None)
    if opposite:
        return OptionState(False, True, opposite)
    if key in _SHOWN_BY_ABSENCE:
        return OptionState(True, True, f"no{key} is absent")
    return OptionState(False, False, "nothing")


def _opposites(key: str) -> list[str]:
    return [b if key == a else a for a, b in _OPPOSITES if key in (a, b)]


def _same(asked: str, stated: str) -> bool:
    return asked == stated or (_as_bytes(asked) is not None and _as_bytes(asked) == _as_bytes(stated))


def _as_bytes(text: str) -> int | None:
    """Bytes of a mount option's value: mount(8) counts k, m and g in 1024s."""
    match = re.fullmatch(r"(\d+)([kmg]?)", text.lower())
    return int(match[1]) * {"": 1, "k": KIB, "m": MIB, "g": GIB}[match[2]] if match else None


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes that a block device has read and written since the box was started."""

    read: int
    written: int

    def __sub__(self, earlier: DeviceBytes) -> DeviceBytes:
        return DeviceBytes(self.read - earlier.read, self.written - earlier.written)


def device_bytes(snapshot: str) -> dict[Device, DeviceBytes]:
    """Bytes by device from the /proc/diskstats section of a counter snapshot (kernel: admin-guide/iostats.rst)."""
    rows = [line.split() for line in sections(snapshot).get("/proc/diskstats", "").splitlines()]
    return {
        f"{row[0]}:{row[1]}": DeviceBytes(int(row[5]) * SECTOR_BYTES, int(row[9]) * SECTOR_BYTES)
        for row in rows
        if len(row) >= 10
    }


def device_traffic(before: str, after: str) -> dict[Device, DeviceBytes]:
    """Bytes that each device moved between two snapshots. A device that is in only one of them is left out."""
    earlier, later = device_bytes(before), device_bytes(after)
    return {number: later[number] - earlier[number] for number in later if number in earlier}
