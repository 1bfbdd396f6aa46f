"""What the box did over the time of one trial: the kernel's counters as sampler.sh read them again and again.

Rates are of windows between two looks, and stand at the end of the window; what is no rate stands where it was read.
What the box does not count has no points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from mountlab.core.trial_files import TrialFiles, read_uptimes
from mountlab.core.units import KIB, NS_PER_S, SECTOR_BYTES
from mountlab.filesystems.evidence import Device

_CLOCKS_AGREE_S = 0.05
_SHORT = 0.5
"""A window shorter than this part of the usual one is joined to the one before: its shares would be coarse."""
_MICROSECONDS, _MILLISECONDS = 1e6, 1e3
_READ, _WRITTEN, _BUSY_MS, _WAITED_MS = 2, 6, 9, 10
"""Fields of /sys/block/*/stat, from 0 (kernel: block/stat.rst)."""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class DeviceOverTime:
    """What one block device did: bytes per second, requests in flight or waiting, and the share of time with any."""

    device: Device
    read: Points = ()
    written: Points = ()
    depth: Points = ()
    busy: Points = ()


@dataclass(frozen=True, kw_only=True)
class OverTime:
    """Points of (seconds since the tool was started, value). Shares are of 1."""

    length: float | None = None
    """How long the tool ran, in steps of 10 ms; None where that was not kept."""
    devices: Sequence[DeviceOverTime] = ()
    """From the file system downwards."""
    processors: Mapping[str, Points] = field(default_factory=dict)
    """user (with nice), system (with interrupts), iowait, steal: shares of the time of all processors."""
    pressure: Points = ()
    """The share of time in which some task waited for memory (PSI)."""
    dirty: Points = ()
    """Bytes that are in the page cache and not on a device, those that are being written included."""

    @property
    def own(self) -> DeviceOverTime | None:
        """The device that the file system lies on, which does nothing for others; None where there is none."""
        return self.devices[0] if self.devices else None


@dataclass(frozen=True)
class _Reading:
    """One line of the sampler's."""

    uptime: float
    clock: float | None
    ticks: list[int]
    waited_us: int | None
    dirty: int | None
    devices: Mapping[Device, list[int]]


def over_time(files: Mapping[str, str]) -> OverTime | None:
    """Return what the files of a trial tell; None where no two looks were taken."""
    looks = list(_looks(files.get(TrialFiles.OVER_TIME, "")))
    times = _since_start(looks, files)
    length = _length(files)
    samples = _apart(_inside(list(zip(times, looks, strict=True)), length))
    if len(samples) < 2:
        return None
    numbers = list(samples[0][1].devices)
    return OverTime(
        length=length,
        devices=[_device(number, samples) for number in numbers],
        processors=dict(_processors(samples)),
        pressure=_rates(samples, lambda look: look.waited_us, 1 / _MICROSECONDS),
        dirty=[(at, float(look.dirty)) for at, look in samples if look.dirty is not None],
    )


def _looks(text: str) -> Iterator[_Reading]:
    """Yield each whole line; the last one may be cut off where the disk was full."""
    for line in text.splitlines(keepends=True):
        parts = line.strip().split(";")
        if not line.endswith("\n") or len(parts) < 4 or not parts[0].strip():
            continue
        times = parts[0].split()
        rows = (part.split() for part in parts[4:])
        yield _Reading(
            uptime=float(times[0]),
            clock=float(times[1]) if len(times) > 1 else None,
            ticks=_whole(parts[1])[:8],
            waited_us=next(iter(_whole(parts[2])), None),
            dirty=sum(_whole(parts[3])) * KIB if parts[3].strip() else None,
            devices={row[0]: _whole(" ".join(row[1:])) for row in rows if len(row) > _WAITED_MS + 1},
        )


def _whole(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdecimal()]


# --- time -------------------------------------------------------------------------------------------------------------


def _since_start(looks: Sequence[_Reading], files: Mapping[str, str]) -> list[float]:
    """Return seconds from the start of the tool to each look: by the wall clock where the shell has it and it was not
    set meanwhile, else by the time since the box was started, whose steps are of 10 ms."""
    if not looks:
        return []
    started = files.get(TrialFiles.STARTED, "").strip()
    clocks = [look.clock for look in looks if look.clock is not None]
    if len(clocks) == len(looks) and started.isdecimal():
        drift = [clock - look.uptime for clock, look in zip(clocks, looks, strict=True)]
        if max(drift) - min(drift) < _CLOCKS_AGREE_S:
            return [clock - int(started) / NS_PER_S for clock in clocks]
    read = read_uptimes(files)
    zero = read.start if read else looks[0].uptime
    return [look.uptime - zero for look in looks]


def _length(files: Mapping[str, str]) -> float | None:
    read = read_uptimes(files)
    return read.end - read.start if read else None


def _inside(looks: Sequence[tuple[float, _Reading]], length: float | None) -> Iterator[tuple[float, _Reading]]:
    """Yield the looks around windows that lie in the time of the tool by at least a half."""
    end = math.inf if length is None else length
    windows = [
        (early, late)
        for early, late in pairwise(looks)
        if min(late[0], end) - max(early[0], 0.0) >= (late[0] - early[0]) / 2
    ]
    yield from ([windows[0][0]] if windows else [])
    yield from (late for _, late in windows)


def _apart(looks: Iterator[tuple[float, _Reading]]) -> list[tuple[float, _Reading]]:
    """Without looks right before another one, as there are at the end: the window before them goes on to the last."""
    taken = list(looks)
    widths = [late[0] - early[0] for early, late in pairwise(taken)]
    least = _SHORT * median(widths) if widths else 0.0
    samples = taken[:1]
    for look in taken[1:]:
        if look[0] - samples[-1][0] < least and len(samples) > 1:
            samples.pop()
        if look[0] - samples[-1][0] >= least > 0:
            samples.append(look)
    return samples


# --- points -----------------------------------------------------------------------------------------------------------


def _rates(looks: Sequence[tuple[float, _Reading]], of: Callable[[_Reading], int | None], factor: float) -> Points:
    """By how much a counter grew per second, in each window that knows it at both ends."""
    points = []
    for (began, early), (ended, late) in pairwise(looks):
        first, last = of(early), of(late)
        if first is not None and last is not None and ended > began:
            points.append((ended, max(0, last - first) * factor / (ended - began)))
    return points


def _device(number: Device, looks: Sequence[tuple[float, _Reading]]) -> DeviceOverTime:
    def counter(place: int) -> Callable[[_Reading], int | None]:
        return lambda look: look.devices[number][place] if number in look.devices else None

    return DeviceOverTime(
        device=number,
        read=_rates(looks, counter(_READ), SECTOR_BYTES),
        written=_rates(looks, counter(_WRITTEN), SECTOR_BYTES),
        depth=_rates(looks, counter(_WAITED_MS), 1 / _MILLISECONDS),
        busy=[(at, min(1.0, share)) for at, share in _rates(looks, counter(_BUSY_MS), 1 / _MILLISECONDS)],
    )


_PARTS = {"user": (0, 1), "system": (2, 5, 6), "iowait": (4,), "steal": (7,)}
"""Of user, nice, system, idle, iowait, irq, softirq, steal (kernel: filesystems/proc.rst, /proc/stat)."""


def _processors(looks: Sequence[tuple[float, _Reading]]) -> Iterator[tuple[str, Points]]:
    """Yield the share of each kind of time in all that passed. iowait may fall; it is 0 then."""
    windows = [
        (at, [max(0, late - first) for first, late in zip(early.ticks, look.ticks, strict=True)])
        for (_, early), (at, look) in pairwise(looks)
        if len(early.ticks) == len(look.ticks) == 8
    ]
    shares = [(at, passed, sum(passed)) for at, passed in windows if sum(passed) > 0]
    for name, places in _PARTS.items():
        yield name, [(at, sum(passed[place] for place in places) / total) for at, passed, total in shares]
