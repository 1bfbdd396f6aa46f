"""What the box did while the tool of one trial ran: the kernel's counters before and after it, as differences.

The snapshots are made by trial.sh. What an older snapshot lacks, or a box does not count, is None: not known, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mountlab.core.trial_files import TrialFiles, read_uptimes
from mountlab.core.units import NS_PER_S, SECTOR_BYTES
from mountlab.filesystems.arrays import unclean_arrays, unclean_below
from mountlab.filesystems.cache_counters import ArcReads, NfsBytes, arc_reads, nfs_bytes
from mountlab.filesystems.evidence import (
    Device,
    DeviceBytes,
    device_traffic,
    disk_rows,
    parts_by_heading,
    server_of,
)
from mountlab.filesystems.neighbours import TICKS_PER_S, Beside, read_beside

_IDLE, _IOWAIT, _STEAL = 3, 4, 7
"""Positions in a line of /proc/stat."""
_MICROSECONDS = 1e6
_CLOCKS_AGREE_S = 0.05
_UPTIME_STEP_S = 0.01
_PRESSURE = re.compile(r"^some .*\btotal=(\d+)$", re.MULTILINE)
_TIMES = re.compile(r"(\d+)m(\d+(?:[.,]\d+)?)s (\d+)m(\d+(?:[.,]\d+)?)s")
_SENSOR = re.compile(r"/sys/class/hwmon/.+/temp\d+_input")
_RECORD = re.compile(r"^<\d+>(?:\[ *[\d.]+\](?:\[ *[TC]\d+\])? ?)?(.*)$")


@dataclass(frozen=True, kw_only=True)
class Extents:
    """What the first files of a trial consist of (FIEMAP), in bytes. What has no kind below lies on the device."""

    files: int = 0
    size: int = 0
    hole: int = 0
    unwritten: int = 0
    """Allocated and never written: reads as zeros, without the device."""
    inline: int = 0
    """Inside the inode, or the tree of metadata."""
    compressed: int = 0

    @property
    def without_data(self) -> float:
        """The share that reads as zeros, or lies in the metadata. What is not allocated yet is in the page cache."""
        return (self.hole + self.unwritten + self.inline) / self.size if self.size else 0.0

    @property
    def compressed_share(self) -> float:
        """The share for which the device has fewer bytes than are read."""
        return self.compressed / self.size if self.size else 0.0


@dataclass(frozen=True, kw_only=True)
class Around:
    """What changed while the tool of one trial ran. Shares are of 1."""

    seconds: float | None = None
    """How long the tool ran, by the wall clock; where that was set meanwhile, by /proc/uptime, which cannot be set."""
    clock_step_s: float | None = None
    """How much further the wall clock went than the other one permits at most, or (negative) at least; 0 where it
    agrees with it as far as the two can be held against each other."""
    stolen: float | None = None
    """The share of all processors' time that the hypervisor gave to others."""
    others: float | None = None
    """The share of all processors' time that programs other than the trial's and its neighbours ran, kernel work not
    counted."""
    own: float | None = None
    """The share of all processors' time that the trial's programs took, kernel work included."""
    busy: float | None = None
    """The share of all processors' time in which they ran anything, kernel work included: they neither idled, nor
    waited for a device, nor were taken by the hypervisor."""
    pressure: Mapping[str, float] = field(default_factory=dict)
    """cpu, io, memory: the share of the time in which some task waited for it (PSI)."""
    own_pressure: Mapping[str, float] = field(default_factory=dict)
    """The same of the tool's own tasks alone, where they had a cgroup of version 2."""
    swapped_pages: int | None = None
    resident_bytes: int | None = None
    """How much of the trial's files was in the page cache afterwards; read only where direct I/O was to go past it."""
    extents: Extents | None = None
    """Extents of the trial's files; read only where the device should have delivered more than it did."""
    read_calls: int | None = None
    """Bytes that read calls of its programs returned, from whatever: files, pipes, devices."""
    write_calls: int | None = None
    """Bytes that their write calls took, into whatever."""
    read_count: int | None = None
    """How many read calls they made, into whatever."""
    write_count: int | None = None
    """How many write calls they made."""
    fetched: int | None = None
    """Bytes for which they waited until storage delivered them: files of devices and of servers, not of memory."""
    charged: int | None = None
    """Bytes of the page cache that they dirtied and storage has to take, without those that they removed again."""
    dirtied_pages: int | None = None
    """Pages of the page cache that anything on the box dirtied."""
    waiting_pages: int | None = None
    """By how much the pages grew that wait in memory to be written, of anything on the box."""
    celsius: Mapping[str, float] = field(default_factory=dict)
    """File of a drive's sensor to the higher of its temperatures before and after."""
    drive_alarms: Mapping[str, int] = field(default_factory=dict)
    """Drive to by how much its own counts of heat grew: minutes too hot, and times that it slowed itself down."""
    cache: str | None = None
    """How the page cache of the box was emptied before it: drop_caches, or fadvise without root."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """Client to how it prepared its page cache: drop_caches, fadvise or filled."""
    throttled: int | None = None
    """How often a processor was slowed because it was too hot."""
    discarded: Mapping[Device, int] = field(default_factory=dict)
    """Bytes that were discarded on each device (TRIM)."""
    arrays: Mapping[str, str] | None = None
    """Array of md to what it was doing, or lacked, before or after the trial; a clean one is not listed. None where the
    kernel shows none."""
    below: Mapping[str, str] | None = None
    """'the pool NAME' of ZFS, or 'the volume NAME' of LVM, to its state before or after the trial; a clean one is not
    listed. None where neither was shown."""
    lazy_init: bool | None = None
    """Whether the kernel was still writing inode tables of an ext4 file system of the box."""
    kernel_log: tuple[str, ...] | None = None
    """What the kernel logged at the level of a warning or worse, from the dropping of the caches on."""
    nfs: Mapping[str, NfsBytes] = field(default_factory=dict)
    """Mount point to what programs and the server moved there; of NFS and of directories."""
    arc: ArcReads | None = None
    """How the ARC of ZFS answered; of ZFS and of directories."""
    names: Mapping[Device, str] = field(default_factory=dict)
    traffic: Mapping[Device, DeviceBytes] = field(default_factory=dict)
    """Bytes that each block device moved, and each mount of NFS from and to its server."""
    beside: Mapping[str, Beside] = field(default_factory=dict)
    """What its neighbours did, by name."""
    contained_by: str | None = None
    """What held all processes that the tool started (contain.sh); None in a run of an earlier version."""


def around(files: Mapping[str, str]) -> Around | None:
    """Read the counters in the files of a trial; None where it took no snapshots."""
    if not {TrialFiles.BEFORE, TrialFiles.AFTER} <= files.keys():
        return None
    before, after = parts_by_heading(files[TrialFiles.BEFORE]), parts_by_heading(files[TrialFiles.AFTER])
    seconds, clock_step_s = _time(_wall_s(files), _permitted_s(files), _uptime_s(before, after))
    logged, beside = after.get("kernel"), read_beside(files)
    nfs = nfs_bytes(before, after)
    return Around(
        beside=beside,
        seconds=seconds,
        clock_step_s=clock_step_s,
        pressure=_pressures(before, after, seconds, "/proc/pressure/{}"),
        own_pressure=_pressures(before, after, seconds, f"{_own_cgroup(after)}/{{}}.pressure"),
        swapped_pages=_growth(before, after, "pswpin", "pswpout"),
        resident_bytes=sum(map(int, after["resident"].split())) if "resident" in after else None,
        extents=_extents(after),
        read_calls=_calls(before, after, "rchar"),
        write_calls=_calls(before, after, "wchar"),
        read_count=_calls(before, after, "syscr"),
        write_count=_calls(before, after, "syscw"),
        fetched=_calls(before, after, "read_bytes"),
        charged=_charged(before, after),
        dirtied_pages=_growth(before, after, "nr_dirtied"),
        waiting_pages=_growth(before, after, "nr_dirty", "nr_writeback"),
        nfs=nfs,
        arc=arc_reads(before, after),
        cache=files.get(TrialFiles.CACHE, "").strip() or None,
        clients={name: text.strip() for file, text in files.items() if (name := _client_of(file)) and text.strip()},
        celsius=_temperatures(before, after),
        drive_alarms=_drive_alarms(before, after),
        throttled=_throttled(before, after),
        discarded=_discarded(before, after),
        arrays=unclean_arrays(before, after),
        below=unclean_below(before, after),
        lazy_init=None if "ext4lazyinit" not in after else after["ext4lazyinit"].strip() == "1",
        kernel_log=None if logged is None else tuple(_RECORD.sub(r"\1", line) for line in logged.splitlines() if line),
        names={number: row[2] for number, row in disk_rows(after).items()}
        | {server_of(point): f"the server of {point}" for point in nfs},
        traffic=device_traffic(files[TrialFiles.BEFORE], files[TrialFiles.AFTER])
        | {server_of(point): DeviceBytes(moved.from_server, moved.to_server) for point, moved in nfs.items()},
        contained_by=files.get(TrialFiles.CONTAINED_BY, "").strip() or None,
        **_processors(before, after, sum(neighbour.user_s for neighbour in beside.values())),
    )


def _wall_s(files: Mapping[str, str]) -> float | None:
    """Return the seconds from just before the tool to just after it, by the wall clock."""
    stamps = [files.get(name, "").strip() for name in (TrialFiles.STARTED, TrialFiles.ENDED)]
    return (int(stamps[1]) - int(stamps[0])) / NS_PER_S if all(stamp.isdecimal() for stamp in stamps) else None


def _permitted_s(files: Mapping[str, str]) -> tuple[float, float] | None:
    """Return the least and the most that the tool can have taken by the clock that cannot be set. It was read before
    and after each look at the wall clock, so that a machine that keeps us waiting in between makes the two differ by
    more."""
    read = read_uptimes(files)
    if read is None:
        return None
    return read.end - read.start - _UPTIME_STEP_S, read.after_end - read.before_start + _UPTIME_STEP_S


def _uptime_s(before: Mapping[str, str], after: Mapping[str, str]) -> float | None:
    """Return the seconds between two snapshots, by /proc/uptime. Earlier versions took them some delays of the
    scheduler away from the wall clock."""
    words = [snapshot.get("/proc/uptime", "").split(" ")[0] for snapshot in (before, after)]
    numbers = [number for word in words if (number := _number(word)) is not None]
    return numbers[1] - numbers[0] if len(numbers) == 2 else None


def _time(
    wall: float | None, permitted: tuple[float, float] | None, uptime: float | None
) -> tuple[float | None, float | None]:
    """Return how long it took, and how far the wall clock was set meanwhile: not known to an earlier version's run,
    which could not distinguish that from a machine that was busy. The wall clock is the finer one, unless it was
    set."""
    if permitted is not None and wall is None:  # busybox prints no fractions of a second
        return sum(permitted) / 2, None
    if permitted is None or wall is None:
        agree = uptime is None or (wall is not None and abs(wall - uptime) < _CLOCKS_AGREE_S)
        return (wall if agree else uptime), None
    least, most = permitted
    step = min(0.0, wall - least) + max(0.0, wall - most)
    return ((least + most) / 2 if step else wall), step


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


# --- processors -------------------------------------------------------------------------------------------------------


def _processors(before: Mapping[str, str], after: Mapping[str, str], beside_s: float) -> dict[str, float | None]:
    """Return shares of the time of all processors (kernel: filesystems/proc.rst, /proc/stat; `user` holds `guest`
    already). `beside_s`: the seconds of neighbours in user mode."""
    earlier, later = _ticks(before), _ticks(after)
    ticks = [late - early for early, late in zip(earlier, later, strict=False)]
    total = sum(ticks)
    if len(ticks) < 8 or total <= 0:
        return {"stolen": None, "others": None, "own": None, "busy": None}
    user_s, all_s = _trial_seconds(before, after)
    return {
        "busy": 1 - (ticks[_IDLE] + ticks[_IOWAIT] + ticks[_STEAL]) / total,
        "stolen": ticks[_STEAL] / total,
        "others": None if user_s is None else max(0.0, ticks[0] + ticks[1] - (user_s + beside_s) * TICKS_PER_S) / total,
        "own": None if all_s is None else all_s * TICKS_PER_S / total,
    }


def _ticks(snapshot: Mapping[str, str]) -> list[int]:
    """Return user, nice, system, idle, iowait, irq, softirq and steal of all processors together, in ticks."""
    first = snapshot.get("/proc/stat", "").partition("\n")[0].split()
    return [int(word) for word in first[1:9]] if first[:1] == ["cpu"] else []


def _trial_seconds(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Return the seconds of the trial's programs in user mode, and in all: the shell's `times` of its children."""
    earlier, later = _children(before), _children(after)
    if earlier is None or later is None:
        return None, None
    return later[0] - earlier[0], sum(later) - sum(earlier)


def _children(snapshot: Mapping[str, str]) -> tuple[float, float] | None:
    """Return the children's times in user mode and in the kernel: the second line of `times`, '0m1.50s 0m0.25s'."""
    lines = snapshot.get("times", "").splitlines()
    match = _TIMES.fullmatch(lines[1].strip()) if len(lines) > 1 else None
    if not match:
        return None
    minutes, seconds = (int(match[1]), int(match[3])), [float(match[n].replace(",", ".")) for n in (2, 4)]
    return 60 * minutes[0] + seconds[0], 60 * minutes[1] + seconds[1]


def _own_cgroup(snapshot: Mapping[str, str]) -> str:
    """Return the directory of the cgroup that holds the tool; '' without one that counts pressure."""
    return next((name.removesuffix("/io.pressure") for name in snapshot if name.endswith("/io.pressure")), "")


def _pressures(
    before: Mapping[str, str], after: Mapping[str, str], seconds: float | None, file: str
) -> dict[str, float]:
    """Return the share of time in which some task waited, by resource (kernel: accounting/psi.rst, in microseconds).
    `file`: where the kernel tells it, with {} for the resource."""
    shares = {}
    for resource in ("cpu", "io", "memory"):
        texts = [snapshot.get(file.format(resource), "") for snapshot in (before, after)]
        totals = [match for text in texts if (match := _PRESSURE.search(text))]
        if seconds and len(totals) == 2:
            shares[resource] = (int(totals[1][1]) - int(totals[0][1])) / _MICROSECONDS / seconds
    return shares


def _throttled(before: Mapping[str, str], after: Mapping[str, str]) -> int | None:
    counts = {name: text for name, text in after.items() if name.endswith("_throttle_count") and name in before}
    return sum(int(text) - int(before[name]) for name, text in counts.items()) if counts else None


def _temperatures(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, float]:
    """Return temperatures in degrees by sensor; the kernel prints thousandths (kernel: hwmon/sysfs-interface.rst)."""
    celsius: dict[str, float] = {}
    for name, text in (*before.items(), *after.items()):
        if _SENSOR.fullmatch(name) and text.strip().lstrip("-").isdecimal():
            celsius[name] = max(celsius.get(name, -math.inf), int(text) / 1000)
    return celsius


def _drive_alarms(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, int]:
    """Return the growth of alarm counts by NVMe drive, from the health log that nvme-cli or smartctl prints in JSON."""
    earlier, later = (_alarm_counts(snapshot.get("drives", "")) for snapshot in (before, after))
    return {
        drive: sum(count - earlier[drive][name] for name, count in counts.items() if name in earlier[drive])
        for drive, counts in later.items()
        if drive in earlier
    }


_ALARM = re.compile(r'"(warning_temp_time|critical_comp_time|thm_temp[12]_trans_count)"\s*:\s*(\d+)')


def _alarm_counts(text: str) -> dict[str, dict[str, int]]:
    parts = re.split(r"^drive (\S+)$", text, flags=re.MULTILINE)[1:]
    counts = {name: dict(_ALARM.findall(log)) for name, log in zip(parts[::2], parts[1::2], strict=True)}
    return {name: {key: int(value) for key, value in numbers.items()} for name, numbers in counts.items() if numbers}


# --- memory and devices -----------------------------------------------------------------------------------------------


def _growth(before: Mapping[str, str], after: Mapping[str, str], *names: str) -> int | None:
    """Return the growth of counters of /proc/vmstat, added up; None where one of them is missing."""
    pairs = [(_counter(before, name), _counter(after, name)) for name in names]
    numbers = [(early, late) for early, late in pairs if early is not None and late is not None]
    return sum(late - early for early, late in numbers) if len(numbers) == len(names) else None


def _counter(snapshot: Mapping[str, str], name: str) -> int | None:
    match = re.search(rf"\n{name} (\d+)$", f"\n{snapshot.get('/proc/vmstat', '')}", re.MULTILINE)
    return int(match[1]) if match else None


def client_file(client: str) -> str:
    """Return the name of the file in which a client reports how it prepared its page cache."""
    return f"client-{client}-cache"


def _client_of(file: str) -> str | None:
    """Return the client whose `client_file` this is; None for any other file."""
    match = re.fullmatch(client_file("(.+)"), file)
    return match[1] if match else None


def _numbers(text: str) -> dict[str, int]:
    """Return name to number of lines such as 'rchar: 5'."""
    return {name.strip(): int(value) for name, value in re.findall(r"^([a-z_]+):? +(\d+)$", text, re.MULTILINE)}


def _calls(before: Mapping[str, str], after: Mapping[str, str], name: str) -> int | None:
    """Return by how much a counter of /proc/PID/io grew (proc(5)): of the shell around the tool and of all programs
    that it waited for."""
    counts = [_numbers(snapshot.get("io", "")).get(name) for snapshot in (before, after)]
    return None if counts[0] is None or counts[1] is None else counts[1] - counts[0]


def _charged(before: Mapping[str, str], after: Mapping[str, str]) -> int | None:
    written, cancelled = (_calls(before, after, name) for name in ("write_bytes", "cancelled_write_bytes"))
    return None if written is None or cancelled is None else max(0, written - cancelled)


def _extents(after: Mapping[str, str]) -> Extents | None:
    sizes = _numbers(after.get("extents", ""))
    for kind in ("written", "delayed"):  # on the device, or not allocated yet and so in the page cache
        sizes.pop(kind, None)
    return Extents(**sizes) if sizes.get("size") else None


def _discarded(before: Mapping[str, str], after: Mapping[str, str]) -> dict[Device, int]:
    """Return bytes discarded by device: the 14th figure, in kernels from 4.18 on (kernel: admin-guide/iostats.rst)."""
    earlier, later = (
        {number: int(row[16]) for number, row in disk_rows(snapshot).items() if len(row) > 16}
        for snapshot in (before, after)
    )
    return {number: (later[number] - earlier[number]) * SECTOR_BYTES for number in later if number in earlier}
