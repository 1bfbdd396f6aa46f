"""What a workload asks of the page cache: whether it goes past it, reads again and again, flushes what it writes. By
that, which part of a question its figures answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.core.metrics import METRICS
from mountlab.core.model import Design, Scalar, Workload
from mountlab.core.names import metric_noun
from mountlab.fio.jobs import jobs_of
from mountlab.fio.metadata import is_metadata
from mountlab.fio.options import READS, WRITES
from mountlab.programs import TOOLS, sysbench

_OFF = ("", "0", "none", "False")
_READ_AGAIN = ("fileserver", "varmail", "webserver", "webproxy", "oltp", "videoserver", "seqread", "rread")
"""Workloads of filebench that read the same files for as long as they run."""


@dataclass(frozen=True)
class Stream:
    """Reads, or writes, of one job of a workload."""

    writes: bool
    direct: bool
    again: bool
    """Whether it may come back to the same bytes."""
    flushed: bool
    """Of writes: whether they are flushed before the tool's clock stops."""


def streams(workload: Workload) -> list[Stream]:
    """Return what the workload reads and writes; [] where that is not known (tool: command, a text for filebench)."""
    reader = {
        "dd": _dd, "fio": _fio, "fs_mark": _fs_mark, "filebench": _filebench, "ioping": _ioping, "sysbench": _sysbench,
    }.get(workload.tool)  # fmt: skip
    return list(reader(workload.options)) if reader else []


def reads_of(workload: Workload) -> list[Stream]:
    """Return what it is known to read."""
    return [stream for stream in streams(workload) if not stream.writes]


def writes_of(workload: Workload) -> list[Stream]:
    """Return what it is known to write."""
    return [stream for stream in streams(workload) if stream.writes]


def asks_direct(workload: Workload) -> bool:
    """Return whether all that it reads and writes is to go past the page cache."""
    return _all_direct(streams(workload))


def _all_direct(some: Sequence[Stream]) -> bool:
    return bool(some) and all(stream.direct for stream in some)


def reads_directly(workload: Workload) -> bool:
    """Return whether all that it reads is to go past the page cache."""
    return _all_direct(reads_of(workload))


BY_CALLS = "calls"


def device_reads(workload: Workload, cache: str) -> str:
    """Return the most bytes that it reads in different places and that a device should deliver: past the page cache, or
    from a cold one. '' where it reads nothing so, BY_CALLS where only its read calls can tell."""
    if not streams(workload) and cache != "warm":
        return BY_CALLS
    reads = reads_of(workload)
    return str(holds_bytes(workload)) if _all_direct(reads) or (reads and cache == "cold") else ""


def cache_state(workload: Workload, design: Design) -> str:
    """cold, warm or as_is: the page cache when the tool starts."""
    return str(workload.options.get("cache") or ("cold" if design.drop_caches else "as_is"))


PARTS = (
    "flushed writes", "unflushed writes", "direct writes", "writes",
    "cold reads", "warm reads", "direct reads", "reads",
)  # fmt: skip
"""The parts of a question that rates of reading and writing answer."""


def part_of(workload: Workload, metric: str, design: Design, *, known: bool = True) -> str:
    """Return the part of a question that a metric of a workload answers: one of PARTS for a rate of reading or writing,
    such a part and the metric for a latency or an amount of it, and else the metric.

    'flushed writes', 'cold reads: median read completion latency', 'file rate'. `known`: whether all that was asked of
    the tool is; of logs from elsewhere it is not.
    """
    side = metric.partition("_")[0]
    if side not in ("read", "write"):
        return metric_noun(metric)
    kind = "" if not known else _kind_of_reads(workload, design) if side == "read" else _kind_of_writes(workload)
    part = f"{kind} {side}s".strip()
    return part if METRICS.get(metric) in ("B/s", "1/s") else f"{part}: {metric_noun(metric)}"


def _kind_of_reads(workload: Workload, design: Design) -> str:
    if reads_directly(workload):
        return "direct"
    return {"cold": "cold", "warm": "warm"}.get(cache_state(workload, design), "")


def _kind_of_writes(workload: Workload) -> str:
    """'' where it is not known, or where some jobs flush and others do not."""
    kinds = {
        "direct" if stream.direct else "flushed" if stream.flushed else "unflushed" for stream in writes_of(workload)
    }
    return kinds.pop() if len(kinds) == 1 else ""


def holds_bytes(workload: Workload) -> int:
    """Return the most that it reads or writes in different places."""
    return TOOLS[workload.tool].space_bytes(workload)


def _dd(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    if options.get("direction") == "read":
        yield Stream(writes=False, direct=options.get("iflag") == "direct", again=False, flushed=True)
    else:
        synced = options.get("conv") in ("fdatasync", "fsync") or options.get("oflag") in ("dsync", "sync")
        direct = options.get("oflag") == "direct"
        yield Stream(writes=True, direct=direct, again=False, flushed=synced or direct)


def _fio(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    """fio drops its file from the page cache before each pass over it (`invalidate`), and in one pass a random reader
    comes to each block once: so a job that runs for a time, or loops, does not read from memory by itself."""
    for job in jobs_of(options):
        options = job.options
        if is_metadata(options):
            continue
        direct = _on(options, "direct") or str(options.get("buffered", "1")) == "0"
        repeats = _on(options, "norandommap") or str(options.get("random_distribution", "random")) != "random"
        again = repeats or str(options.get("invalidate", "1")) == "0"
        flushed = direct or any(_on(options, name) for name in ("end_fsync", "fsync", "fdatasync", "sync"))
        if options["rw"] in READS:
            yield Stream(writes=False, direct=direct, again=again, flushed=True)
        if options["rw"] in WRITES:
            yield Stream(writes=True, direct=direct, again=again, flushed=flushed)


def _on(options: Mapping[str, Scalar], name: str) -> bool:
    return str(options.get(name, "")) not in _OFF


def _fs_mark(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    yield Stream(writes=True, direct=False, again=False, flushed=options.get("sync") != "none")


def _filebench(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    if options.get("workload") in _READ_AGAIN:
        yield Stream(writes=False, direct=_on(options, "direct"), again=True, flushed=True)


def _ioping(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    """ioping drops each block from the page cache before a request, and flushes each write, unless it is `cached`."""
    cached, direct = options["access"] == "cached", options["access"] == "direct"
    flushed = not cached or options["durability"] != "none"
    yield Stream(writes=options["operation"] == "write", direct=direct, again=cached, flushed=flushed)


def _sysbench(options: Mapping[str, Scalar]) -> Iterator[Stream]:
    """sysbench draws places at random, and begins again at the end of its files."""
    mode, direct = str(options["mode"]), options["flags"] == "direct"
    again = not mode.startswith("seq") or int(options.get("events", 0)) * int(options["bs"]) != int(options["size"])
    flushed = options["flags"] != "none" or any(options[name] for name in ("fsync_all", "fsync_end", "fsync_every"))
    if mode in sysbench.READS:
        yield Stream(writes=False, direct=direct, again=again, flushed=True)
    if mode in sysbench.WRITES:
        yield Stream(writes=True, direct=direct, again=again, flushed=flushed)
