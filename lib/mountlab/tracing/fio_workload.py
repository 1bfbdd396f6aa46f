"""From the profile of a program to a workload of fio that does about the same: to begin with, and not validated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mountlab.core.model import Scalar
from mountlab.core.numbers import counted
from mountlab.tracing.program import Direction, Profile, SizeCount

LEAST_SHARE = 0.01
"""Of all reads and writes: a direction with fewer is left out."""
LEAST_THINK_S = 1e-3
"""Gaps below it are those of the tracer, and become no thinktime."""
_ONE_SIZE = 0.95
_LARGEST_NUMBERS = {"numjobs": 64, "nrfiles": 1000}
_SECTOR = 512


@dataclass(frozen=True)
class FioWorkload:
    """An entry of `workloads` in a sweep file."""

    options: dict[str, Scalar] = field(default_factory=dict)
    """Empty where the program neither reads nor writes."""
    not_carried: tuple[str, ...] = ()
    """What it does not carry over from this program, as sentences."""


def fio_workload(profile: Profile) -> FioWorkload:
    """Return a workload of fio with the pattern, sizes, mix, syncs, depth and think time of a profile."""
    reads, writes = _counting(profile)
    sides = [side for side in (reads, writes) if side]
    if not sides:
        return FioWorkload(not_carried=("The program neither reads nor writes files under test by system calls.",))
    jobs = min(max(profile.concurrency.movers, 1), _LARGEST_NUMBERS["numjobs"])
    direct = sum(side.direct_share * side.bytes for side in sides) > sum(side.bytes for side in sides) / 2
    largest = max(sides, key=lambda side: side.bytes)
    is_random = _is_random(largest)
    options: dict[str, Scalar] = {"tool": "fio", "rw": _rw(reads, writes, is_random=is_random)}
    if reads and writes:
        mix = round(100 * reads.calls / (reads.calls + writes.calls))
        options["rwmixread"] = min(max(mix, 1), 99)
    options |= _block_sizes(reads, writes, unit=_SECTOR if direct else 1)
    block = _largest_block(options)
    files = max(side.files for side in sides)
    per_job = max(min(files // jobs, _LARGEST_NUMBERS["nrfiles"]), 1)
    extent = max(side.extent for side in sides) // (jobs if files >= jobs else 1)
    size = max(-(-max(extent, block * per_job) // block) * block, block * per_job)
    moved = max(sum(side.bytes for side in sides) // jobs // block, 1) * block
    options |= {"size": f"{size}B"}
    if moved != size:
        options["io_size"] = f"{moved}B"
    if per_job > 1:
        options["nrfiles"] = per_job
    if jobs > 1:
        options["numjobs"] = jobs
    if largest.async_share > 0.5:
        options |= {"ioengine": "libaio", "iodepth": max(round(profile.concurrency.requests_most / jobs), 1)}
    if direct:
        options["direct"] = True
    options |= _syncs(profile, writes)
    if profile.think_s.median >= LEAST_THINK_S:
        options["thinktime"] = round(profile.think_s.median * 1e6)
    return FioWorkload(options, tuple(_losses(profile, reads, writes, options)))


def _counting(profile: Profile) -> tuple[Direction | None, Direction | None]:
    """Return the directions that a workload has."""
    calls = sum(side.calls for side in (profile.reads, profile.writes) if side)
    reads, writes = (
        side if side and side.calls >= LEAST_SHARE * calls else None for side in (profile.reads, profile.writes)
    )
    return reads, writes


def _is_random(side: Direction) -> bool:
    in_order = side.how.get("consecutive", 0) + side.how.get("first", 0)
    return side.pattern not in ("sequential", "unknown") and 2 * in_order < side.calls


def _rw(reads: Direction | None, writes: Direction | None, *, is_random: bool) -> str:
    plain = "rw" if reads and writes else "read" if reads else "write"
    return f"rand{plain}" if is_random else plain


def _block_sizes(reads: Direction | None, writes: Direction | None, *, unit: int) -> dict[str, Scalar]:
    """Return bs where all are of one size, else bssplit: of reads and writes apart, where these differ."""
    shares = [_shares(side.sizes, side.calls, unit) for side in (reads, writes) if side]
    if all(share == shares[0] for share in shares) and len(shares[0]) == 1:
        return {"bs": f"{shares[0][0][0]}B"}
    texts = [":".join(f"{size}/{percent}" for size, percent in share) for share in shares]
    return {"bssplit": texts[0] if len(set(texts)) == 1 else ",".join(texts)}


def _shares(sizes: Sequence[SizeCount], calls: int, unit: int) -> list[tuple[int, int]]:
    """Return the most frequent sizes and their per cent, 100 together; the one that most have where hardly any has
    another."""
    rounded: dict[int, int] = {}
    for entry in sizes:
        size = max(-(-entry.size // unit) * unit, unit)
        rounded[size] = rounded.get(size, 0) + entry.calls
    size, most = max(rounded.items(), key=lambda item: (item[1], item[0]))
    if most >= _ONE_SIZE * calls:
        return [(size, 100)]
    of_listed = sum(rounded.values())
    percents = {size: round(100 * count / of_listed) for size, count in rounded.items()}
    percents = {size: percent for size, percent in percents.items() if percent} or {size: 100}
    first = max(percents, key=lambda size: (percents[size], size))
    percents[first] += 100 - sum(percents.values())
    return sorted(percents.items())


def _largest_block(options: dict[str, Scalar]) -> int:
    texts = re.findall(r"(\d+)/", str(options.get("bssplit", ""))) or [str(options["bs"]).removesuffix("B")]
    return max(map(int, texts))


def _syncs(profile: Profile, writes: Direction | None) -> dict[str, Scalar]:
    if writes is None:
        return {}
    options: dict[str, Scalar] = {"sync": 1} if writes.through_share > 0.5 else {}
    between = profile.syncs.writes_between
    if not between.n:
        return options
    if between.n <= writes.files:
        return {**options, "end_fsync": True}
    names = profile.syncs.names
    name = "fdatasync" if names.get("fdatasync", 0) + names.get("fdsync", 0) > profile.syncs.calls / 2 else "fsync"
    return {**options, name: max(round(between.median), 1)}


def _losses(
    profile: Profile, reads: Direction | None, writes: Direction | None, options: dict[str, Scalar]
) -> Iterator[str]:
    """Yield what this workload does not carry over from this program."""
    for noun, side, kept in (("reads", profile.reads, reads), ("writes", profile.writes, writes)):
        if side and not kept:
            yield f"Its {counted(side.calls, noun[:-1])} are left out: fewer than 1 % of all."
    if reads and writes and _is_random(reads) != _is_random(writes):
        other = "writes" if reads.bytes >= writes.bytes else "reads"
        word = "random" if str(options["rw"]).startswith("rand") else "sequential"
        yield f"Reads and writes have patterns of their own; the {other} are {word} here, too."
    for noun, side in (("reads", reads), ("writes", writes)):
        if side and side.pattern in ("strided", "skewed", "mixed"):
            yield f"The {noun} are {side.pattern}, which stands here as {options['rw']} with equal chances."
    others = {row.operation: row.calls for row in profile.operations if row.place == "under test"}
    names = ("open", "look up", "list", "make directory", "remove", "rename", "link", "resize", "copy")
    if left := [f"{operation} {others[operation]:,}" for operation in names if others.get(operation)]:
        yield f"Operations without reads and writes are left out (calls: {', '.join(left)})."
    if profile.hidden.map_calls:
        yield "Accesses to mapped files are left out: no system call shows them."
    if profile.hidden.uring_requests:
        yield f"Its {counted(profile.hidden.uring_requests, 'request')} of io_uring are left out: none can be seen."
    if profile.hidden.unknown_positions:
        yield "Some reads or writes have an unknown position."
    if options.get("numjobs", 1) != 1 and max(side.files for side in (reads, writes) if side) < int(options["numjobs"]):
        yield "Threads that share files have files of their own here."
    if profile.think_s.n and "thinktime" not in options:
        yield "Think time is left out: the median gap is below 1 ms, where the tracer adds most of it."
    yield (
        "Never carried over: the order and phases of the work, which operation waits for which, single gaps and sizes, "
        "the data itself and how it compresses, and what the caches hold at the start."
    )
