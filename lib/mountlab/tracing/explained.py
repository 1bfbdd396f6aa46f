"""A trace of a trial explained: where the time of its operations went, and what work was done for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mountlab.core.groups import by_key
from mountlab.core.layers import RAN_INSTEAD, WAITS
from mountlab.core.units import NS_PER_S
from mountlab.stats.histograms import enough
from mountlab.tracing.calls import seen_share, seen_weights, with_calls
from mountlab.tracing.events import SYSCALLS
from mountlab.tracing.flame import SleepRow, StackRow, plain_name, sleeps_of, stacks_of
from mountlab.tracing.operations import OpenFiles, Operation, operations_of, without_setup
from mountlab.tracing.parts import LAYERS, THROUGH, Layer, Splitter, Through
from mountlab.tracing.perf_data import Trace, read_trace
from mountlab.tracing.requests import Requests, device_number, requests_of
from mountlab.tracing.spent import Processors, Times
from mountlab.tracing.symbols import read_symbols
from mountlab.tracing.tasks import Tasks
from mountlab.tracing.work import WorkRow, data_of_others, journal_shares, work_of

MOST_LOST = 0.01
"""Of all events: above it no split is shown."""
MOST_OFF = 0.2
"""Of the latency that the tool measured: where the parts of an operation are further from it, no split is shown, unless
as many operations are under way at a time: then they are slower while they are traced."""
MOST_SLOWED = 2.0
"""The factor up to which tracing explains that."""
_OUTSIDE_S = 5e-6
"""So much of a latency may lie outside of the kernel: the tool's own clock, and entry and exit of a system call."""
_FULL = re.compile(r"^(calls: )?.*size limit reached", re.MULTILINE)
"""What perf prints when it ends a record by itself."""
SLOWEST = 10
"""Operations of each name whose parts are kept one by one."""
_BAND = (0.985, 0.995)
"""Ranks of the operations that stand for those at the 99th percentile."""
_COLUMNS = tuple((layer, through) for layer in LAYERS for through in THROUGH)
_BEHIND_JOURNAL = ("journal", "checkpoint")
_STRANGE = re.compile(r"(pipe|socket|anon_inode):|/(proc|sys)/|/dev/(null|zero|u?random|tty|pts/|ptmx|shm/)|/memfd:")
"""Where a file that is open leads to that is not under test."""
_FD = re.compile(r"^([0-9]{1,10}) ([0-9]{1,10}) (.*)$", re.MULTILINE)
_TASK = re.compile(r"^([0-9]{1,10}) (.*)$", re.MULTILINE)


class LayerRow(NamedTuple):
    """A part of an operation: of its mean, or of its 99th percentile."""

    operation: str
    statistic: str
    layer: Layer
    through: Through
    seconds: float


class SlowRow(NamedTuple):
    """A piece of one of the slowest operations, for its timeline."""

    operation: str
    rank: int
    """1: the slowest."""
    began_s: float
    """When the operation began, since the first event."""
    begin_s: float
    """When the piece began, since the operation did."""
    seconds: float
    layer: Layer
    through: Through


class TraceRow(NamedTuple):
    """How the trace of a trial, and what it holds of one operation, are to be judged."""

    operation: str
    """'' where no operation was seen."""
    operations: int
    events: int
    lost_events: int
    window_s: float
    traced_mean: float
    tool_mean: float
    """What the tool itself says; NaN where it says nothing."""
    withheld: str
    """Why no split of it is shown; "" where one is."""
    seen: float = 1.0
    """Share of the time in which the system calls of the tool were recorded."""
    cut: str = ""
    """Why the record ended before the tool did, after `window_s`; '' where it did not."""
    traced_in_flight: float = np.nan
    """Operations under way at a time, by the trace; NaN where none was seen."""
    tool_in_flight: float = np.nan
    """The same, by what the tool says; NaN where it does not say enough."""


@dataclass(frozen=True)
class ToolFigures:
    """What the tool itself measured of its operations."""

    mean: Mapping[str, float] = field(default_factory=dict)
    """Operation to its mean latency, in seconds."""
    rate: Mapping[str, float] = field(default_factory=dict)
    """Operation to how many it did by time, 1/s."""
    times_itself: bool = False
    """Whether the latency may hold time of its own beside that of its calls."""

    def in_flight(self, name: str) -> float:
        """Return how many operations were under way at a time, by Little's law; NaN where that is not known."""
        return self.mean[name] * self.rate[name] if name in self.mean and name in self.rate else np.nan


@dataclass(frozen=True)
class Explained:
    """Everything that is kept of a trace, as rows of tidy tables."""

    layers: tuple[LayerRow, ...] = ()
    work: tuple[WorkRow, ...] = ()
    slowest: tuple[SlowRow, ...] = ()
    stacks: tuple[StackRow, ...] = ()
    sleeps: tuple[SleepRow, ...] = ()
    trace: tuple[TraceRow, ...] = ()


@dataclass(frozen=True)
class Calls:
    """The record of the tool's system calls, which lies beside that of everything else."""

    data: bytes
    """perf.data."""
    windows: str
    """When it was switched on and off: lines of `enable` or `disable` and the time of day in ns."""
    root: int
    """The process below which the tool runs; 0 where that is not known."""


def explained(
    data: bytes,
    *,
    calls: Calls | None = None,
    said: str = "",
    depth: int = 0,
    kallsyms: str,
    tasks: str,
    fds: str,
    directory: str,
    devices: Collection[tuple[int, int]] | None,
    tool: ToolFigures,
) -> Explained:
    """Return where the time of the operations in a trace went.

    `data`: perf.data; `calls`: None where `data` has the system calls of all processes, as records of Mountlab before
    2026-12; `said`: what perf printed; `depth`: operations that each thread of the tool keeps under way, 0 where that
    is not known; `kallsyms`: the kernel's functions; `tasks`: lines of thread and name; `fds`: lines of process,
    number and target of the files that the tool has open; `directory`: how the name of that of its files ends;
    `devices`: major and minor number of the device below the file system, and of the disk that it is a part of; None
    where they are not known: then nothing is said about it, and what waits for it is `unattributed`;
    Raises ParseError where the trace cannot be read.
    """
    trace, symbols = read_trace(data), read_symbols(kallsyms)
    if calls is not None:
        trace = with_calls(trace, read_trace(calls.data), calls.windows)
    roots = [int(pid) for pid, _, _ in _FD.findall(fds)] if calls is None else [calls.root]
    processes = _find_descendants(roots, trace.parents)
    numbers = None if devices is None else frozenset(device_number(*device) for device in devices)
    requests = requests_of(trace, numbers)
    threads = Tasks(trace)
    operations = without_setup(
        operations_of(trace, requests, processes, files_of(fds, directory), depth), trace.parents
    )
    unmeasured = {"read", "write"} - tool.mean.keys()
    if len(unmeasured) == 1:  # a tool that times its writes times its reads, too: these are of its libraries and logs
        operations = [operation for operation in operations if operation.name not in unmeasured]
    samples = {
        name: _make_sample([operation for operation in operations if operation.name == name], trace.pauses)
        for name in dict.fromkeys(operation.name for operation in operations)
    }
    rows = tuple(_trace_rows(trace, requests, samples, tool, said, calls is None or calls.root > 0))
    shown = [row.operation for row in rows if not row.withheld]
    if not shown:
        return Explained(trace=rows)
    splitter, names = Splitter(trace, threads, requests, symbols), names_of(trace, tasks)
    layers: list[LayerRow] = []
    slowest: list[SlowRow] = []
    waited: list[WorkRow] = []
    processors = Processors(trace, _names_beside(names, processes))
    others = Times(data_of_others(requests, processes | {operation.tid for operation in operations}))
    for name, sample in ((name, samples[name]) for name in shown):
        table, waits, beside_ns = _split_table(sample.operations, splitter, others)
        count = len(sample.operations)
        waited.append(WorkRow(name, WAITS, "", len(waits) / count, "1"))
        for thread, ns in processors.ran(waits).most_common():  # together as long as the operations waited
            waited.append(WorkRow(name, RAN_INSTEAD, thread, ns / count / NS_PER_S, "s"))
        layers += _layer_rows(name, table, sample.weights)
        if name == "sync" and table.any():
            columns = [column for column, (_, through) in enumerate(_COLUMNS) if through in _BEHIND_JOURNAL]
            behind, whole = table[:, columns].sum(axis=1) @ sample.weights, table.sum(axis=1) @ sample.weights
            beside = beside_ns @ sample.weights / NS_PER_S
            waited += journal_shares(float(behind), float(beside), float(whole), requests)
        slowest += _slow_rows(name, sample.operations, splitter, trace.span_ns[0])
    return Explained(
        layers=tuple(layers),
        work=(*work_of(trace, operations, requests, threads, processes, names, numbers or ()), *waited),
        slowest=tuple(slowest),
        stacks=tuple(stacks_of(trace, symbols, processes, names)),
        sleeps=tuple(sleeps_of(trace, symbols, operations, threads, names)),
        trace=rows,
    )


@dataclass(frozen=True)
class _Sample:
    """The operations of one name that the trace shows."""

    operations: list[Operation]
    weights: np.ndarray
    """How many operations each stands for, shape (operations,)."""
    mean_s: float
    in_flight: float
    """Operations under way at a time."""


def _make_sample(operations: list[Operation], pauses: Sequence[tuple[int, int]]) -> _Sample:
    lengths = np.array([operation.end - operation.begin for operation in operations], np.float64)
    begin, end = min(operation.begin for operation in operations), max(operation.end for operation in operations)
    weights = seen_weights(lengths, begin, end, pauses)
    mean_s = float(np.average(lengths, weights=weights)) / NS_PER_S
    return _Sample(operations, weights, mean_s, float(lengths @ weights) / max(end - begin, 1))


def _find_descendants(roots: Iterable[int], parents: Mapping[int, int]) -> frozenset[int]:
    """Return the threads of the tool: its first ones, and what they started."""
    children = by_key((parent, child) for child, parent in parents.items())
    threads: set[int] = set()
    more = list(roots)
    while more:
        if (pid := more.pop()) not in threads:
            threads.add(pid)
            more += children.get(pid, [])
    return frozenset(threads)


def files_of(fds: str, directory: str) -> OpenFiles:
    """Return the files that each process was seen to have open. `directory`: how the name of that of the files under
    test ends. It may lie below /dev/shm, where a tool's reports are as well."""
    opened = [(int(pid), int(number), target) for pid, number, target in _FD.findall(fds)]
    strange = {(pid, number) for pid, number, target in opened if _STRANGE.match(target)}
    devices = {(pid, number) for pid, number, target in opened if target.startswith("/dev/")} - strange
    tested = {(pid, number) for pid, number, target in opened if f"{directory}/" in target}
    return OpenFiles(frozenset(tested | devices), frozenset(strange - tested))


def names_of(trace: Trace, tasks: str) -> dict[int, str]:
    """Return thread to its name, by the switches between threads, and by what was seen at the end."""
    names = {int(tid): name for tid, name in _TASK.findall(tasks)}
    switches = trace.rows("sched:sched_switch")
    if switches is not None:
        tids, first = np.unique(switches["prev_pid"], return_index=True)
        left = (bytes(name).split(b"\0")[0].decode(errors="replace") for name in switches["prev_comm"][first])
        names = dict(zip(tids.tolist(), left, strict=True)) | names
    return names


def _names_beside(names: Mapping[int, str], processes: Collection[int]) -> dict[int, str]:
    """Return thread to its plain name; of a program beside the tool that has the name of one of its threads, such as a
    neighbour, with a word that tells them apart."""
    tools = {plain_name(name) for tid, name in names.items() if tid in processes}
    plain = ((tid, plain_name(name)) for tid, name in names.items())
    return {tid: f"another {name}" if tid not in processes and name in tools else name for tid, name in plain}


def _find_reason(trace: Trace, requests: Requests, operations: int, tool_is_known: bool) -> str:
    """Return why no split is shown; '' where one is."""
    issued = len(requests.all) + requests.endless
    if not tool_is_known:
        return "which process is the tool is not known"
    if trace.lost > MOST_LOST * (trace.total + trace.lost):
        return f"the kernel had no room for {trace.lost} of {trace.total + trace.lost} events"
    if requests.endless > MOST_LOST * issued:
        return f"perf did not see the end of {requests.endless} of {issued} requests: this kernel hides idle processors"
    return "" if operations else "no operation of the tool lies in the trace"


def _trace_rows(
    trace: Trace,
    requests: Requests,
    samples: Mapping[str, _Sample],
    tool: ToolFigures,
    printed: str,
    tool_is_known: bool,
) -> Iterator[TraceRow]:
    """Yield how each operation is to be judged. `printed`: what perf printed, which says whether it ended early."""
    begin, end = trace.span_ns
    withheld = _find_reason(trace, requests, len(samples), tool_is_known)
    full = _FULL.search(printed)
    names = [*samples, *(name for name in tool.mean if name in SYSCALLS and name not in samples)] if samples else [""]
    for name in names:
        sample, measured = samples.get(name, _Sample([], np.zeros(0), np.nan, np.nan)), tool.mean.get(name, np.nan)
        slowed = measured <= sample.mean_s <= MOST_SLOWED * measured and _is_near(
            sample.in_flight, tool.in_flight(name)
        )
        yield TraceRow(
            operation=name,
            operations=len(sample.operations),
            events=trace.total,
            lost_events=trace.lost,
            window_s=(end - begin) / NS_PER_S,
            traced_mean=sample.mean_s,
            tool_mean=measured,
            withheld=withheld or ("" if slowed else _find_mismatch(name, sample.mean_s, tool)),
            seen=seen_share(begin, end, trace.pauses),
            cut=f"the record of {'system calls' if full[1] else 'events'} reached its limit of size" if full else "",
            traced_in_flight=sample.in_flight,
            tool_in_flight=tool.in_flight(name),
        )


def _find_mismatch(name: str, traced: float, tool: ToolFigures) -> str:
    """Return why the parts of an operation are no split of what the tool measured; '' where they are one."""
    measured = tool.mean.get(name, np.nan)
    if np.isnan(traced):
        return f"no {name} is a system call of the tool: mapped memory, or a thread of the kernel submits it"
    holds_more = tool.times_itself and traced < measured
    if np.isnan(measured) or holds_more or abs(traced - measured) <= _OUTSIDE_S or _is_near(traced, measured):
        return ""
    return f"its parts add up to {traced / measured:.2f} of the latency that the tool measured"


def _is_near(traced: float, tool: float) -> bool:
    return abs(traced / tool - 1) <= MOST_OFF if tool else False


def _split_table(
    operations: list[Operation], splitter: Splitter, others: Times
) -> tuple[np.ndarray, list[tuple[int, int]], np.ndarray]:
    """Return the seconds of each operation in each of _COLUMNS, shape (operations, columns); begin and end of each wait
    for a processor, in ns; and the ns of each behind the journal that lie in `others`, shape (operations,)."""
    table, waits = np.zeros((len(operations), len(_COLUMNS))), list[tuple[int, int]]()
    beside = np.zeros(len(operations))
    column = {part: number for number, part in enumerate(_COLUMNS)}
    for row, (operation, whole) in enumerate(zip(operations, splitter.on_processor(operations), strict=True)):
        if whole:
            table[row, column["processor", "own"]] = operation.end - operation.begin
            continue
        for part in splitter.parts(operation):
            table[row, column[part.layer, part.through]] += part.end - part.begin
            if part.layer == "run_queue":
                waits.append((part.begin, part.end))
            if part.through in _BEHIND_JOURNAL:
                beside[row] += others.within(part.begin, part.end)
    return table / NS_PER_S, waits, beside


def _layer_rows(name: str, table: np.ndarray, weights: np.ndarray) -> Iterator[LayerRow]:
    yield from _rows_of(name, "mean", np.average(table, axis=0, weights=weights))
    if enough(len(table), 99):
        latency = table.sum(axis=1)
        order = np.argsort(latency, kind="stable")
        behind = np.cumsum(weights[order])
        low, high = (int(np.searchsorted(behind, share * behind[-1])) for share in _BAND)
        near = order[low : max(high, low + 1)]
        ranks = (behind - weights[order]) / (behind[-1] - weights[order[-1]])
        p99 = float(np.interp(0.99, ranks, latency[order]))
        of_near = np.average(table[near], axis=0, weights=weights[near])
        yield from _rows_of(name, "p99", of_near * (p99 / of_near.sum()) if p99 else of_near)


def _rows_of(name: str, statistic: str, seconds: np.ndarray) -> Iterator[LayerRow]:
    for (layer, through), value in zip(_COLUMNS, seconds.tolist(), strict=True):
        if value > 0:
            yield LayerRow(name, statistic, layer, through, value)


def _slow_rows(name: str, operations: list[Operation], splitter: Splitter, first: int) -> Iterator[SlowRow]:
    ranked = sorted(operations, key=lambda operation: operation.begin - operation.end)[:SLOWEST]
    for rank, operation in enumerate(ranked, start=1):
        for part in splitter.parts(operation):
            since_first, since_begin, length = (
                ns / NS_PER_S for ns in (operation.begin - first, part.begin - operation.begin, part.end - part.begin)
            )
            yield SlowRow(name, rank, since_first, since_begin, length, part.layer, part.through)
