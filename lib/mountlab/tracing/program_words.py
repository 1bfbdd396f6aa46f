"""The sentences about what a program does to its files."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.core import numbers
from mountlab.core.units import format_bytes
from mountlab.tracing.program import Direction, OperationRow, Profile
from mountlab.tracing.program_state import TEST

ABOUT = (
    "A tracer stops the program at each call, so times in it, gaps and how much goes on at a time are those of the "
    "recorded trial. Names and contents were not recorded. Think time is the time of a thread outside of its calls."
)
_LEAST_SHARE = 0.005


def operations_under_test(profile: Profile) -> list[OperationRow]:
    """Return the operations on files below the directory under test."""
    return [row for row in profile.operations if row.place == TEST]


def facts(profile: Profile) -> dict[str, str]:
    """Return what a program does, by subject."""
    shown = {"Reads": _direction(profile.reads), "Writes": _direction(profile.writes), "Syncs": _syncs(profile)}
    shown |= {"Files": _files(profile), "At a time": _at_a_time(profile), "Think time": _think(profile)}
    if flags := [f"{flag} {_count(count)}" for flag, count in profile.flags.items() if flag != "opens"]:
        shown["Flags of open"] = f"{', '.join(flags)}, of {numbers.counted(profile.flags['opens'], 'open')}"
    return shown


def _count(count: float) -> str:
    return f"{count:,.0f}".replace(",", "\u202f")


def _direction(side: Direction | None) -> str:
    if side is None:
        return "none"
    sizes = ", ".join(f"{format_bytes(entry.size)} ({_share(entry.calls, side.calls)})" for entry in side.sizes[:3])
    parts = [
        f"{side.pattern}: {_count(side.calls)} calls, {format_bytes(float(side.bytes))} in "
        f"{numbers.counted(side.files, 'file')}; sizes {sizes}"
    ]
    how = {name: count for name, count in side.how.items() if name != "first" and count >= _LEAST_SHARE * side.calls}
    if how:
        parts.append(", ".join(f"{name} {_share(count, side.calls)}" for name, count in how.items()))
    parts.append(
        f"{format_bytes(float(side.unique_bytes))} of them different"
        f" ({numbers.percent(round(side.again_share, 3))} of the bytes again)"
    )
    parts.append(
        f"the hottest tenth of the blocks has {numbers.percent(round(side.hot_share, 2))} of the accesses "
        f"({numbers.percent(round(side.hot_by_chance, 2))} by chance)"
    )
    for share, noun in ((side.direct_share, "of the bytes by O_DIRECT"), (side.through_share, "through to the device"),
                        (side.async_share, "by io_submit")):  # fmt: skip
        if share:
            parts.append(f"{numbers.percent(round(share, 2))} {noun}")
    return "; ".join(parts)


def _share(part: int, whole: int) -> str:
    return numbers.percent(round(part / whole, 2))


def _syncs(profile: Profile) -> str:
    syncs = profile.syncs
    if not syncs.calls:
        return "none"
    names = ", ".join(f"{name} {_count(count)}" for name, count in syncs.names.items())
    parts = [f"{names}, {numbers.quantity(syncs.seconds, 's')} in all"]
    if syncs.writes_between.n:
        writes, size = syncs.writes_between, syncs.bytes_between
        parts.append(
            f"each makes {_count(writes.median)} writes and {format_bytes(size.median)} safe (medians; at most "
            f"{_count(writes.most)} and {format_bytes(size.most)})"
        )
    if syncs.empty:
        parts.append(f"{_count(syncs.empty)} of them with nothing written before")
    if syncs.interval_s.n:
        parts.append(f"one each {numbers.quantity(syncs.interval_s.median, 's')} (median)")
    return "; ".join(parts)


def _files(profile: Profile) -> str:
    files = profile.files
    counts = {
        "opened": files.opened, "created": files.created, "read": files.read, "written": files.written,
        "removed": files.removed, "renamed": files.renamed, "linked": files.linked, "mapped": files.mapped,
        "directories made": files.directories_made, "directories removed": files.directories_removed,
    }  # fmt: skip
    text = ", ".join(f"{_count(count)} {name}" for name, count in counts.items() if count) or "none"
    if files.sizes.n:
        text += f"; sizes {format_bytes(files.sizes.median)} (median) to {format_bytes(files.sizes.most)}"
    return f"{text}; {numbers.counted(files.deepest, 'level')} of directories" if files.deepest else text


def _at_a_time(profile: Profile) -> str:
    flow = profile.concurrency
    text = (
        f"{numbers.counted(flow.threads, 'thread')} in {_processes(flow.processes)}, at most {flow.movers} of them "
        f"reading or writing over the same time; {flow.mean:.2g} calls under way while there is one (at most "
        f"{flow.most})"
    )
    if flow.requests_most:
        text += f"; {flow.requests_mean:.2g} requests of io_submit (at most {flow.requests_most})"
    return text


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _think(profile: Profile) -> str:
    gaps = profile.think_s
    if not gaps.n:
        return "no thread made two calls"
    idle = numbers.percent(round(1 - profile.concurrency.busy_share, 2))
    return (
        f"{numbers.quantity(gaps.median, 's')} between two calls of a thread (median; 90 % below "
        f"{numbers.quantity(gaps.p90, 's')}); no call is under way in {idle} of the time"
    )


def unseen(profile: Profile) -> Iterator[str]:
    """Yield what the record could not show."""
    seen, hidden = profile.seen, profile.hidden
    if seen.skipped:
        yield (
            f"Seen: the first {_count(seen.calls)} calls, {numbers.quantity(seen.seen_s, 's')} of "
            f"{numbers.quantity(seen.seconds, 's')} ({numbers.percent(round(seen.share, 2))} of the time). "
            f"{_count(seen.skipped)} more calls were counted only."
        )
    if not seen.is_whole:
        yield "The record ends before the program did."
    if seen.unread:
        yield f"{numbers.counted(seen.unread, 'line')} of the tracer could not be read, and are left out."
    if hidden.map_calls:
        shared = f", {_count(hidden.shared_maps)} of them to write through" if hidden.shared_maps else ""
        yield (
            f"Files are mapped into memory ({_count(hidden.map_calls)} times, {format_bytes(float(hidden.map_bytes))}"
            f"{shared}). Reads and writes of mapped memory are no system calls, and cannot be seen."
        )
    if hidden.uring_calls:
        yield (
            f"{_count(hidden.uring_requests)} requests went through io_uring in {_count(hidden.uring_calls)} calls. "
            "What they read or write cannot be seen."
        )
    if hidden.unknown_positions:
        yield f"The position of {_count(hidden.unknown_positions)} reads or writes is unknown."
