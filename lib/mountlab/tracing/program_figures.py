"""From a recording of the system calls of a program to its profile."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from mountlab.core.units import KIB
from mountlab.tracing.program import (
    BINS,
    MOST_POINTS,
    PATTERNS,
    BusyFile,
    Concurrency,
    Direction,
    FileCounts,
    Hidden,
    OperationRow,
    Points,
    Profile,
    Quantiles,
    Seen,
    SizeCount,
    Syncs,
)
from mountlab.tracing.program_calls import Recording, read_calls
from mountlab.tracing.program_state import TEST, Access, FileState, Followed, follow

T = TypeVar("T")
_MOST_SYNCS = 1000
_MOST_SIZES = 8
_MOST_FILES = 8
_MOST_BLOCKS = 1 << 18
_HOT = 0.1
"""The share of blocks that is looked at for skew."""
_MOSTLY = 0.9
_SKEWED = 1.5
"""How many times as many accesses the hottest blocks have as they would by chance, from which on they are skewed."""
_FEWEST_FOR_SKEW = 100
"""Accesses: of fewer, chance alone makes some blocks hot."""


def profile_of(lines: Iterable[str]) -> Profile:
    """Return the profile of a record that program_calls.sh wrote. Raises ParseError."""
    return profile(read_calls(lines))


def profile(recording: Recording) -> Profile:
    """Return the figures of a recording."""
    followed = follow(recording)
    accesses = followed.accesses
    reads = [access for access in accesses if access.direction == "read"]
    writes = [access for access in accesses if access.direction == "write"]
    busiest = _busiest(accesses)
    return Profile(
        seen=Seen(
            calls=len(recording.calls),
            skipped=recording.skipped,
            unread=recording.unread,
            seconds=recording.seconds,
            seen_s=recording.seen_s,
            is_whole=recording.is_whole,
        ),
        operations=tuple(_operations(followed)),
        reads=_direction(reads),
        writes=_direction(writes),
        syncs=_syncs(followed),
        concurrency=_concurrency(followed, recording.seen_s),
        files=_file_counts(followed),
        flags={"opens" if flag == "" else flag: count for flag, count in followed.opens.items()},
        think_s=_think(followed),
        hidden=Hidden(
            map_calls=followed.map_calls,
            map_bytes=followed.map_bytes,
            shared_maps=followed.shared_maps,
            uring_calls=followed.uring_calls,
            uring_requests=followed.uring_requests,
            unknown_positions=sum(access.how == "unknown" for access in accesses),
        ),
        busiest=tuple(_busy_file(number, file, accesses) for number, file in enumerate(busiest, start=1)),
        points=_points(followed, busiest),
    )


# ── operations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _operations(followed: Followed) -> list[OperationRow]:
    """Return the rows: those under test first, each place with its most frequent operation first. Reads and writes are
    those of io_submit, too."""
    operations = {key: list(figures) for key, figures in followed.operations.items()}
    for access in followed.accesses:
        if access.is_async:
            figures = operations.setdefault((TEST, access.direction, "io_submit"), [0, 0, 0, 0.0])
            figures[0] += 1
            figures[2] += access.bytes
    rows: dict[tuple[str, str], list[tuple[str, list[float]]]] = defaultdict(list)
    for (place, kind, name), figures in operations.items():
        rows[place, kind].append((name, figures))
    made = [_operation(place, kind, sorted(members)) for (place, kind), members in rows.items()]
    return sorted(made, key=lambda row: (row.place != TEST, row.place, -row.calls, row.operation))


def _operation(place: str, kind: str, members: Sequence[tuple[str, Sequence[float]]]) -> OperationRow:
    calls, failed, size = (int(sum(figures[at] for _, figures in members)) for at in range(3))
    return OperationRow(
        place=place,
        operation=kind,
        calls=calls,
        failed=failed,
        bytes=size,
        seconds=math.fsum(figures[3] for _, figures in members),
        names={name: int(figures[0]) for name, figures in members},
    )


def spread(values: Sequence[float]) -> Quantiles:
    """Return some values by their order; percentiles are values of the list (nearest rank)."""
    if not values:
        return Quantiles()
    ordered = sorted(values)
    ranked = [float(ordered[max(math.ceil(share * len(ordered)), 1) - 1]) for share in (0.5, 0.9)]
    return Quantiles(
        n=len(ordered),
        least=float(ordered[0]),
        median=ranked[0],
        p90=ranked[1],
        most=float(ordered[-1]),
        mean=math.fsum(ordered) / len(ordered),
    )


def _by_size(sizes: Counter[int]) -> tuple[SizeCount, ...]:
    bins: Counter[int] = Counter()
    for size, count in sizes.items():
        bins[1 << (size.bit_length() - 1) if size else 0] += count
    return tuple(SizeCount(size=size, calls=bins[size]) for size in sorted(bins))


# ── reads and writes ─────────────────────────────────────────────────────────────────────────────────────────────────


def _direction(accesses: Sequence[Access]) -> Direction | None:
    if not accesses:
        return None
    sizes = Counter(access.bytes for access in accesses)
    how = Counter(access.how for access in accesses)
    total = sum(access.bytes for access in accesses)
    known = [access for access in accesses if access.offset is not None]
    unique = _unique_bytes(known) + sum(access.bytes for access in accesses if access.offset is None)
    block, extent, hot, by_chance = _hot(known)
    most = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:_MOST_SIZES]
    return Direction(
        calls=len(accesses),
        bytes=total,
        files=len({access.file for access in accesses}),
        threads=len({access.thread for access in accesses}),
        sizes=tuple(SizeCount(size=size, calls=count) for size, count in most),
        by_size=_by_size(sizes),
        pattern=_pattern(how, hot, by_chance),
        how={name: how[name] for name in PATTERNS if how[name]},
        unique_bytes=unique,
        again_share=1 - unique / total,
        hot_share=hot,
        hot_by_chance=by_chance,
        block=block,
        extent=extent,
        direct_share=sum(access.bytes for access in accesses if access.direct) / total,
        through_share=sum(access.through for access in accesses) / len(accesses),
        async_share=sum(access.is_async for access in accesses) / len(accesses),
    )


def _pattern(how: Counter[str], hot: float, by_chance: float) -> str:
    """Return the word for most accesses. The first one of each file counts for none, unless there is nothing else: a
    file that is read in one piece is read from its beginning to its end."""
    judged = sum(how[name] for name in PATTERNS[:4])
    if how["unknown"] > judged + how["first"]:
        return "unknown"
    if how["consecutive"] >= _MOSTLY * judged:
        return "sequential"
    if how["strided"] >= _MOSTLY * judged:
        return "strided"
    if how["consecutive"] + how["strided"] > judged / 2:
        return "mixed"
    if how.total() < _FEWEST_FOR_SKEW:
        return "random"
    return "skewed" if hot > _SKEWED * by_chance and hot > 2 * _HOT else "random"


def _by_file(accesses: Sequence[Access]) -> dict[FileState, list[Access]]:
    of_file: dict[FileState, list[Access]] = defaultdict(list)
    for access in accesses:
        of_file[access.file].append(access)
    return of_file


def _unique_bytes(accesses: Sequence[Access]) -> int:
    """Return how many bytes of files were in at least one of the accesses."""
    total = 0
    for members in _by_file(accesses).values():
        covered = 0
        for begin, end in sorted((one.offset or 0, (one.offset or 0) + one.bytes) for one in members):
            total += max(end - max(begin, covered), 0)
            covered = max(covered, end)
    return total


def _hot(accesses: Sequence[Access]) -> tuple[int, int, float, float]:
    """Return the size of a block, the extent of all files, and the share of accesses to blocks that the hottest tenth
    of these has: as it is, and as it would be by chance, if the accesses fell on the blocks like rain (Poisson)."""
    of_file = _by_file(accesses)
    ends = [max((one.offset or 0) + one.bytes for one in members) for members in of_file.values()]
    extent = sum(ends)
    block = 4 * KIB
    while extent // block > _MOST_BLOCKS:
        block *= 2
    counts = []
    for members, end in zip(of_file.values(), ends, strict=True):
        change = np.zeros(-(-end // block) + 1, dtype=np.int64)
        begins = np.array([one.offset for one in members], dtype=np.int64)
        lasts = begins + np.array([one.bytes for one in members], dtype=np.int64) - 1
        np.add.at(change, begins // block, 1)
        np.add.at(change, lasts // block + 1, -1)
        counts.append(np.cumsum(change)[:-1])
    every = np.sort(np.concatenate(counts))[::-1] if counts else np.zeros(0, dtype=np.int64)
    touched = int(every.sum())
    if not touched:
        return block, extent, 0.0, 0.0
    hottest = max(1, round(_HOT * len(every)))
    return block, extent, float(every[:hottest].sum()) / touched, _hot_by_chance(touched / len(every))


def _hot_by_chance(mean: float) -> float:
    """Return which share of all accesses the hottest tenth of blocks would have, of a Poisson distribution."""
    most = int(mean + 12 * math.sqrt(mean) + 12)
    chances = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most + 1)]
    left, inside = _HOT, 0.0
    for k in range(most, 0, -1):
        taken = min(left, chances[k])
        inside += taken * k
        left -= taken
    return min(inside / mean, 1.0)


# ── syncs, concurrency, think time ───────────────────────────────────────────────────────────────────────────────────


def _syncs(followed: Followed) -> Syncs:
    syncs = followed.syncs
    full = [sync for sync in syncs if sync.writes]
    starts = sorted(sync.at for sync in syncs)
    return Syncs(
        calls=len(syncs),
        names=dict(sorted(Counter(sync.name for sync in syncs).items())),
        seconds=math.fsum(sync.seconds for sync in syncs),
        empty=len(syncs) - len(full),
        writes_between=spread([sync.writes for sync in full]),
        bytes_between=spread([sync.bytes for sync in full]),
        interval_s=spread([later - earlier for earlier, later in pairwise(starts)]),
    )


def _concurrency(followed: Followed, seconds: float) -> Concurrency:
    calls = [change for begin, end, _ in followed.spans if end > begin for change in ((begin, 1), (end, -1))]
    shares = _shares(calls, seconds)
    requests = _shares(followed.requests, seconds)
    busy = _shares([*calls, *followed.requests], seconds)
    return Concurrency(
        processes=len(followed.processes),
        threads=len(followed.threads),
        movers=_movers(followed.accesses),
        busy_share=1 - busy.get(0, 1.0),
        mean=_mean_depth(shares),
        most=_deepest(calls),
        shares=shares,
        requests_mean=_mean_depth(requests),
        requests_most=_deepest(followed.requests),
        course=_course([*calls, *followed.requests], seconds),
    )


def _movers(accesses: Sequence[Access]) -> int:
    """Return how many threads with a hundredth of the accesses or more have theirs over the same time, at most."""
    of_thread: dict[int, list[float]] = defaultdict(list)
    for access in accesses:
        of_thread[access.thread].append(access.at)
    shares = [times for times in of_thread.values() if 100 * len(times) >= len(accesses)]
    changes = [change for times in shares for change in ((min(times), 1), (math.nextafter(max(times), math.inf), -1))]
    return _deepest(changes)


def _steps(changes: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return (time, how many are under way from then on). What ends at a time makes room before what begins then."""
    depth, steps = 0, []
    for at, change in sorted(changes):
        depth = max(depth + change, 0)
        steps.append((at, depth))
    return steps


def _deepest(changes: Iterable[tuple[float, int]]) -> int:
    return max((depth for _, depth in _steps(changes)), default=0)


def _shares(changes: Iterable[tuple[float, int]], seconds: float) -> dict[int, float]:
    """Return how many are under way to the share of the time; {} of no time."""
    if seconds <= 0:
        return {}
    times: dict[int, float] = defaultdict(float)
    before, depth = 0.0, 0
    for at, now in [*_steps(changes), (seconds, 0)]:
        times[depth] += max(min(at, seconds) - before, 0.0)
        before, depth = max(before, at), now
    return {depth: times[depth] / seconds for depth in sorted(times) if times[depth] > 0}


def _mean_depth(shares: Mapping[int, float]) -> float:
    busy = sum(share for depth, share in shares.items() if depth)
    return sum(depth * share for depth, share in shares.items()) / busy if busy else 0.0


def _course(changes: Iterable[tuple[float, int]], seconds: float) -> tuple[float, ...]:
    """Return the mean number under way in each of BINS equal parts of the time."""
    if seconds <= 0:
        return ()
    steps = [(0.0, 0), *_steps(changes)]
    times = np.array([at for at, _ in steps])
    depths = np.array([depth for _, depth in steps], dtype=float)
    area = np.concatenate([[0.0], np.cumsum(np.diff(times) * depths[:-1])])
    edges = np.linspace(0, seconds, BINS + 1)
    at_edges = np.interp(edges, times, area)
    return tuple(float(value) for value in np.diff(at_edges) / (seconds / BINS))


def _think(followed: Followed) -> Quantiles:
    of_thread: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for begin, end, thread in followed.spans:
        of_thread[thread].append((begin, end))
    gaps = []
    for spans in of_thread.values():
        spans.sort()
        gaps += [max(later[0] - earlier[1], 0.0) for earlier, later in pairwise(spans)]
    return spread(gaps)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _file_counts(followed: Followed) -> FileCounts:
    moved: dict[str, set[FileState]] = {"read": set(), "write": set()}
    for access in followed.accesses:
        moved[access.direction].add(access.file)
    files = [file for file in followed.files if not file.is_directory]
    sizes = [file.size for file in files if file.size is not None]
    names = followed.names
    return FileCounts(
        opened=len(files),
        created=sum(file.created for file in files),
        read=len(moved["read"]),
        written=len(moved["write"]),
        removed=names["removed"],
        renamed=names["renamed"],
        linked=names["linked"],
        mapped=sum(file.is_mapped for file in files),
        directories_made=names["directories made"],
        directories_removed=names["directories removed"],
        deepest=max((_depth(file) for file in files), default=0),
        sizes=spread(sizes),
        by_size=_by_size(Counter(sizes)),
    )


def _depth(file: FileState) -> int:
    return max(file.path.count("/") - 1, 0)


def _busiest(accesses: Sequence[Access]) -> list[FileState]:
    counts = Counter(access.file for access in accesses)
    return [file for file, _ in counts.most_common(_MOST_FILES)]


def _busy_file(number: int, file: FileState, accesses: Sequence[Access]) -> BusyFile:
    own = [access for access in accesses if access.file is file]
    reads = [access.bytes for access in own if access.direction == "read"]
    writes = [access.bytes for access in own if access.direction == "write"]
    return BusyFile(
        name=f"file {number}",
        depth=_depth(file),
        size=file.size,
        reads=len(reads),
        writes=len(writes),
        read_bytes=sum(reads),
        write_bytes=sum(writes),
    )


def _points(followed: Followed, busiest: Sequence[FileState]) -> Points:
    places = {file: number for number, file in enumerate(busiest)}
    drawn = [one for one in followed.accesses if one.file in places and one.offset is not None]
    kept = _thinned(drawn, MOST_POINTS)
    syncs = _thinned(followed.syncs, _MOST_SYNCS)
    return Points(
        at=tuple(one.at for one in kept),
        file=tuple(places[one.file] for one in kept),
        offset=tuple(one.offset or 0 for one in kept),
        size=tuple(one.bytes for one in kept),
        is_write=tuple(one.direction == "write" for one in kept),
        of=len(drawn),
        sync_at=tuple(sync.at for sync in syncs),
        sync_bytes=tuple(sync.bytes for sync in syncs),
        sync_s=tuple(sync.seconds for sync in syncs),
    )


def _thinned(items: Sequence[T], most: int) -> Sequence[T]:
    """Return at most so many items, evenly spread over all of them."""
    step = max(len(items) / most, 1.0)
    return [items[int(place * step)] for place in range(int(len(items) / step))]
