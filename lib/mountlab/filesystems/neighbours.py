"""What ran beside a trial, as neighbour.sh kept it: how much it moved, and whether it ran all the time.

On a client nothing looks right around the measured command. Then a line says by how many seconds the client's clock is
ahead of the box's, and what had moved at both ends of the measured time follows from the looks around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from mountlab.core.groups import by_key
from mountlab.core.trial_files import TrialFiles, Uptimes, read_uptimes

MOST_GAP = 0.05
"""A neighbour that does not run for more than this share of the measured time has not run beside the trial."""
_LOOKS = ("from", "look", "to")
AHEAD = "ahead"
"""The event of that line."""
TICKS_PER_S = 100
"""The unit of /proc/stat (USER_HZ), which is 100 on every architecture that Mountlab's tools are built for."""
_UPTIME_STEP_S = 0.01


class Look(NamedTuple):
    """What a neighbour had moved by some moment, all of its processes together. All but the last two are sums."""

    at: float
    read_calls: int
    write_calls: int
    read: int
    written: int
    calls: int
    user_ticks: int
    all_ticks: int
    running: int
    stopped: int


@dataclass(frozen=True, kw_only=True)
class Beside:
    """One neighbour during one trial, from a look right before the measured command to one right after it."""

    seconds: float
    read_bytes: int
    write_bytes: int
    """Bytes that its calls moved; where the block layer counts more, those that it caused there. Calls count buffered,
    direct and flushed I/O alike, on any file system, but not mapped memory, io_uring and libaio. The block layer shows
    these; it counts a buffered write once for each page that becomes dirty, and no read from the page cache."""
    calls: int
    """Read and write calls; 0 of what is not read and written by calls."""
    disk_reads: int
    """Bytes of its reads that reached the block layer."""
    user_s: float
    """Time of processors in user mode."""
    all_s: float
    """Time of processors, kernel work included."""
    restarts: int
    """How often it ended by itself and was started again."""
    gaps: tuple[tuple[float, float], ...]
    """When it did not run, in seconds from the start: from its end, or when it was seen stopped, until it moved bytes
    again."""
    last_status: int | None = None
    """Exit status of the last time that it ended by itself."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Limit to what the kernel reports of it."""

    def moved(self, side: Literal["read", "write"]) -> int:
        """Return the bytes in one direction."""
        return self.read_bytes if side == "read" else self.write_bytes

    @property
    def gap_s(self) -> float:
        return sum(end - begin for begin, end in self.gaps)

    @property
    def gap_share(self) -> float:
        return self.gap_s / self.seconds if self.seconds else 1.0

    @property
    def bytes_per_s(self) -> float:
        """Achieved load, reads and writes together."""
        return (self.read_bytes + self.write_bytes) / self.seconds if self.seconds else 0.0

    @property
    def calls_per_s(self) -> float:
        return self.calls / self.seconds if self.seconds else 0.0


def neighbour_file(name: str) -> str:
    """Return the name of the file with the last words of a neighbour that ended by itself."""
    return f"neighbour-{name}.txt"


def read_beside(files: Mapping[str, str]) -> dict[str, Beside]:
    """Return name of a neighbour to what it did, from the files of a trial; of those whose looks are complete."""
    lines = [line.split() for line in files.get(TrialFiles.NEIGHBOURS, "").splitlines()]
    by_name = by_key((words[0], words[1:]) for words in lines if len(words) > 2)
    found = {name: _beside(events, read_uptimes(files)) for name, events in by_name.items()}
    return {name: beside for name, beside in found.items() if beside}


def _beside(events: Sequence[Sequence[str]], box: Uptimes | None) -> Beside | None:
    """`box`: when the tool began and ended, on the clock of the box."""
    ahead_s = next((float(words[1]) for words in events if words[0] == AHEAD), None)
    if ahead_s is not None:
        events = [(words[0], str(float(words[1]) - ahead_s), *words[2:]) for words in events]
    looks = {kind: [_look(words[1:]) for words in events if words[0] == kind and len(words) == 11] for kind in _LOOKS}
    if ahead_s is not None and box:
        looks |= {kind: [*_look_between(looks["look"], at)] for kind, at in (("from", box.start), ("to", box.end))}
    if not looks["from"] or not looks["to"]:
        return None
    first, last = looks["from"][0], looks["to"][-1]
    between = [look for look in looks["look"] if first.at <= look.at <= last.at]
    ends = [(float(words[1]), int(words[2])) for words in events if words[0] == "ended" and len(words) == 3]
    gaps = _joined([*_gaps_of_runs(events, last.at), *_gaps_of_looks([first, *between, last])])
    inside = [(max(begin, first.at) - first.at, min(end, last.at) - first.at) for begin, end in gaps]
    reads, writes = last.read_calls - first.read_calls, last.write_calls - first.write_calls
    return Beside(
        seconds=round(last.at - first.at, 2),  # as exact as /proc/uptime: so a gap ends within it
        read_bytes=max(0, reads, last.read - first.read),
        write_bytes=max(0, writes, last.written - first.written),
        calls=max(0, last.calls - first.calls),
        disk_reads=max(0, last.read - first.read),
        user_s=max(0, last.user_ticks - first.user_ticks) / TICKS_PER_S,
        all_s=max(0, last.all_ticks - first.all_ticks) / TICKS_PER_S,
        restarts=sum(first.at <= at <= last.at for at, _ in ends),
        gaps=tuple((round(begin, 2), round(end, 2)) for begin, end in inside if end - begin > _UPTIME_STEP_S / 2),
        last_status=ends[-1][1] if ends else None,
        limits={words[2]: " ".join(words[3:]) for words in events if words[0] == "limit" and len(words) > 3},
    )


def _look(words: Sequence[str]) -> Look:
    return Look(float(words[0]), *map(int, words[1:]))


def _look_between(looks: Sequence[Look], at: float) -> Iterator[Look]:
    """Yield what a look at a moment between two others would have seen: sums by proportion, and what runs as the later
    one saw it."""
    for before, after in pairwise(looks):
        if before.at <= at < after.at:
            share = (at - before.at) / (after.at - before.at)
            sums = (round(low + share * (high - low)) for low, high in zip(before[1:-2], after[1:-2], strict=True))
            yield Look._make((at, *sums, *after[-2:]))


def _gaps_of_runs(events: Sequence[Sequence[str]], last: float) -> Iterator[tuple[float, float]]:
    """Yield the times from an end to the next first bytes; without these, to the last look."""
    ended: float | None = None
    moments = [(float(words[1]), words[0]) for words in events if words[0] in ("moves", "ended")]
    for at, kind in sorted(moments):
        if kind == "ended":
            ended = at if ended is None else ended
        elif ended is not None:
            yield ended, at
            ended = None
    if ended is not None and ended < last:
        yield ended, last


def _gaps_of_looks(looks: Sequence[Look]) -> Iterator[tuple[float, float]]:
    """Yield the times before a look that saw no process of it, or a stopped one, back to the look before."""
    for before, look in pairwise(looks):
        if look.stopped or not look.running:
            yield before.at, look.at


def _joined(gaps: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield times that do not overlap."""
    begin = end = None
    for start, stop in sorted(gaps):
        if begin is None or end is None or start > end:
            if begin is not None and end is not None:
                yield begin, end
            begin, end = start, stop
        else:
            end = max(end, stop)
    if begin is not None and end is not None:
        yield begin, end
