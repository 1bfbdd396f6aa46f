"""Traces made by hand, from what threads and requests do: as `Trace`, and as the bytes of a perf.data file.

The file is written from its definition (tools/perf/Documentation/perf.data-file-format.txt, perf_event.h, and the
`format` files of tracefs on a 64-bit kernel), with nothing of the code that reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mountlab.tracing.calls import Pause
from mountlab.tracing.operations import OpenFiles, Operation, operations_of
from mountlab.tracing.parts import Piece, Splitter
from mountlab.tracing.perf_data import Trace
from mountlab.tracing.requests import Requests, requests_of
from mountlab.tracing.symbols import read_symbols
from mountlab.tracing.tasks import Tasks

IDENTIFIER, IP, TID, TIME, ADDR, CALLCHAIN, ID, CPU, PERIOD, STREAM, RAW = (
    1 << 16, 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10,
)  # fmt: skip
SAMPLE_TYPE = IDENTIFIER | IP | TID | TIME | CPU | PERIOD
KERNEL_FOLLOWS = (1 << 64) - 128
"""PERF_CONTEXT_KERNEL: the addresses behind it in a stack are the kernel's."""
DEVICE = (7, 3)
DEV = 7 << 20 | 3
"""As events of the kernel name it."""

_BIO = ("dev_t dev 8 4 0", "sector_t sector 16 8 0", "unsigned int nr_sector 24 4 0")
_EXIT = ("int __syscall_nr 8 4 1", "long ret 16 8 1")
_ENTER_FD = ("int __syscall_nr 8 4 1", "unsigned int fd 16 8 0", "char * buf 24 8 0", "size_t count 32 8 0")
_ENTER = ("int __syscall_nr 8 4 1", "aio_context_t ctx_id 16 8 0")
_OPENAT = ("int __syscall_nr 8 4 1", "int dfd 16 8 0", "const char * filename 24 8 0", "int flags 32 8 0")
FORMATS: dict[str, tuple[str, ...]] = {
    "sched:sched_switch": (
        "char prev_comm[16] 8 16 0", "pid_t prev_pid 24 4 1", "int prev_prio 28 4 1", "long prev_state 32 8 1",
        "char next_comm[16] 40 16 0", "pid_t next_pid 56 4 1", "int next_prio 60 4 1",
    ),
    "sched:sched_waking": (
        "char comm[16] 8 16 0", "pid_t pid 24 4 1", "int prio 28 4 1", "int target_cpu 32 4 1",
    ),
    **{
        f"syscalls:sys_enter_{call}": _ENTER_FD
        for call in ("read", "pread64", "write", "pwrite64", "fsync", "fdatasync")
    },
    **{f"syscalls:sys_enter_{call}": _ENTER for call in ("io_submit", "io_getevents", "io_uring_enter", "unlink")},
    "syscalls:sys_enter_sync": ("int __syscall_nr 8 4 1",),
    "syscalls:sys_enter_openat": _OPENAT,
    "raw_syscalls:sys_enter": ("long id 8 8 1", "unsigned long args[6] 16 48 0"),
    "raw_syscalls:sys_exit": ("long id 8 8 1", "long ret 16 8 1"),
    **{
        f"syscalls:sys_exit_{call}": _EXIT
        for call in (
            "read", "pread64", "write", "pwrite64", "fsync", "fdatasync", "io_submit", "io_getevents", "io_uring_enter",
            "unlink", "openat", "sync",
        )
    },
    "block:block_bio_queue": (*_BIO, "char rwbs[10] 28 10 0", "char comm[16] 38 16 0"),
    "block:block_bio_complete": (*_BIO, "int error 28 4 1", "char rwbs[10] 32 10 0"),
    "block:block_bio_backmerge": (*_BIO, "char rwbs[10] 28 10 0", "char comm[16] 38 16 0"),
    "block:block_rq_issue": (
        *_BIO, "unsigned int bytes 28 4 0", "unsigned short ioprio 32 2 0", "char rwbs[10] 34 10 0",
        "char comm[16] 44 16 0", "__data_loc char[] cmd 60 4 0",
    ),
    "block:block_rq_requeue": (*_BIO, "unsigned short ioprio 28 2 0", "char rwbs[10] 30 10 0"),
    "block:block_rq_complete": (
        *_BIO, "int error 28 4 1", "unsigned short ioprio 32 2 0", "char rwbs[10] 34 10 0",
        "__data_loc char[] cmd 44 4 0",
    ),
    "io_uring:io_uring_submit_req": (
        "void * ctx 8 8 0", "void * req 16 8 0", "unsigned long long user_data 24 8 0", "u8 opcode 32 1 0",
    ),
    "io_uring:io_uring_complete": (
        "void * ctx 8 8 0", "void * req 16 8 0", "u64 user_data 24 8 0", "int res 32 4 1", "unsigned cflags 36 4 0",
    ),
    "workqueue:workqueue_queue_work": (
        "void * work 8 8 0", "void * function 16 8 0", "__data_loc char[] workqueue 24 4 0", "int req_cpu 28 4 1",
        "int cpu 32 4 1",
    ),
    "workqueue:workqueue_execute_start": ("void * work 8 8 0", "void * function 16 8 0"),
    **{
        f"vmscan:mm_vmscan_{kind}_reclaim_begin": ("int order 8 4 1", "unsigned long gfp_flags 16 8 0")
        for kind in ("direct", "memcg")
    },
    **{
        f"vmscan:mm_vmscan_{kind}_reclaim_end": ("unsigned long nr_reclaimed 8 8 0",) for kind in ("direct", "memcg")
    },
    "jbd2:jbd2_end_commit": ("dev_t dev 8 4 0", "char sync_commit 12 1 0", "tid_t transaction 16 4 0"),
}  # fmt: skip
"""Event to its fields: declaration, offset, bytes, whether it is signed."""
WITH_STACK = ("sched:sched_switch", "cpu-clock")


@dataclass(frozen=True)
class Field:
    declared: str
    offset: int
    size: int
    signed: bool

    @property
    def name(self) -> str:
        return self.declared.split()[-1].partition("[")[0]

    @property
    def kind(self) -> str:
        if "[" in self.declared:
            return f"S{self.size}"
        return f"<{'i' if self.signed else 'u'}{self.size}"

    @property
    def is_kept(self) -> bool:
        return not self.declared.startswith("__data_loc")


def fields_of(event: str) -> tuple[Field, ...]:
    split = (each.rsplit(" ", 3) for each in FORMATS.get(event, ()))
    return tuple(Field(declared, int(offset), int(size), signed == "1") for declared, offset, size, signed in split)


@dataclass(frozen=True)
class Happened:
    """One event."""

    name: str
    at: int
    tid: int
    pid: int
    cpu: int
    values: Mapping[str, Any]
    stack: tuple[int, ...] = ()


@dataclass
class Timeline:
    """What happens, in ns; each method adds it and returns nothing. A thread is its own process, if `processes` says
    nothing else."""

    processes: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)
    functions: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    forks: dict[int, int] = field(default_factory=dict)
    sector: int = 1000

    def add(self, event: str, at: int, tid: int, cpu: int = 0, stack: Sequence[str] = (), **values: Any) -> None:
        pid, addresses = self.processes.get(tid, tid), tuple(self.address(each) for each in stack)
        self.happened.append(Happened(event, at, tid, pid, cpu, values, (KERNEL_FOLLOWS, *addresses) if stack else ()))

    def address(self, function: str) -> int:
        """Inside of this function of the kernel."""
        return self.functions.setdefault(function, 0xFFFFFFFF81000000 + 0x1000 * (len(self.functions) + 1)) + 0x10

    @property
    def kallsyms(self) -> str:
        return "".join(f"{address:x} T {name}\n" for name, address in self.functions.items())

    # --- threads ------------------------------------------------------------------------------------------------------

    def comes(self, tid: int, at: int, cpu: int = 0, after: int = 0) -> None:
        """A thread gets a processor, after another one (0: the idle one)."""
        self._switch(at, cpu, after, tid, 0, ())

    def leaves(self, tid: int, at: int, cpu: int = 0, state: int = 2, stack: Sequence[str] = (), to: int = 0) -> None:
        """A thread leaves its processor. `state`: 0: it was taken off; 1: waits, also for signals; 2: waits."""
        self._switch(at, cpu, tid, to, state, stack)

    def _switch(self, at: int, cpu: int, out: int, to: int, state: int, stack: Sequence[str]) -> None:
        names = {"prev_comm": self.names.get(out, f"t{out}"), "next_comm": self.names.get(to, f"t{to}")}
        values = {"prev_pid": out, "next_pid": to, "prev_state": state, **names}
        self.add("sched:sched_switch", at, out, cpu, ("schedule", *stack), **values)

    def wakes(self, tid: int, at: int, by: int = 0, cpu: int = 0) -> None:
        """A thread is woken by another, or by an interrupt that meets it."""
        self.add("sched:sched_waking", at, by, cpu, pid=tid, comm=self.names.get(tid, f"t{tid}"))

    def sleeps(
        self,
        tid: int,
        begin: int,
        end: int,
        *stack: str,
        by: int = 0,
        on: int = 0,
        cpu: int = 0,
        back: int | None = None,
    ) -> None:
        """A thread waits in these functions (innermost first) until `by` wakes it, on the processor `on`; it has its
        own processor again at `back`."""
        self.leaves(tid, begin, cpu, stack=stack)
        self.wakes(tid, end, by, on)
        self.comes(tid, end if back is None else back, cpu)

    def waits_for_processor(self, tid: int, begin: int, end: int, cpu: int = 0, to: int = 99) -> None:
        self.leaves(tid, begin, cpu, state=0, to=to)
        self.comes(tid, end, cpu, after=to)

    def queues(self, work: int, at: int, by: int = 0, cpu: int = 0) -> None:
        """A thread, or an interrupt that meets it, queues a work item."""
        self.add("workqueue:workqueue_queue_work", at, by, cpu, work=work)

    def begins(self, work: int, at: int, worker: int, cpu: int = 0) -> None:
        """A worker begins with a work item."""
        self.add("workqueue:workqueue_execute_start", at, worker, cpu, work=work)

    def reclaims(self, tid: int, begin: int, end: int, kind: str = "direct") -> None:
        """A thread frees memory."""
        self.add(f"vmscan:mm_vmscan_{kind}_reclaim_begin", begin, tid)
        self.add(f"vmscan:mm_vmscan_{kind}_reclaim_end", end, tid)

    # --- system calls -------------------------------------------------------------------------------------------------

    def call(self, name: str, tid: int, begin: int, end: int, ret: int = 0, **values: Any) -> None:
        self.add(f"syscalls:sys_enter_{name}", begin, tid, **values)
        self.add(f"syscalls:sys_exit_{name}", end, tid, ret=ret)

    def submits(self, tid: int, at: int, request: int, opcode: int = 22) -> None:
        self.add("io_uring:io_uring_submit_req", at, tid, req=request, opcode=opcode)

    def completes(self, at: int, request: int, result: int = 4096, tid: int = 0) -> None:
        self.add("io_uring:io_uring_complete", at, tid, req=request, res=result)

    # --- requests -----------------------------------------------------------------------------------------------------

    def request(
        self, tid: int, queued: int, issued: int, done: int, flags: str = "WS", *, size: int = 4096, by: int = 0,
        on: int = 0, sector: int | None = None,
    ) -> None:  # fmt: skip
        """A request that a thread queues. Its end is reported on the processor `on`, while `by` runs there."""
        place = self._place(sector, size, flags)
        self.add("block:block_bio_queue", queued, tid, **place)
        self.add("block:block_rq_issue", issued, tid, **place)
        self.add("block:block_rq_complete", done, by, on, **place)

    def bio(self, tid: int, queued: int, done: int, flags: str = "WS", *, size: int = 4096) -> None:
        """The same of a device that has no requests of the kernel's."""
        place = self._place(None, size, flags)
        self.add("block:block_bio_queue", queued, tid, **place)
        self.add("block:block_bio_complete", done, 0, **place)

    def _place(self, sector: int | None, size: int, flags: str) -> dict[str, Any]:
        self.sector += 1000
        first = (self.sector if sector is None else sector) if size else 0
        return {"dev": DEV, "sector": first, "nr_sector": size // 512, "rwbs": flags}

    # --- what it is as a trace ----------------------------------------------------------------------------------------

    def in_order(self) -> list[Happened]:
        return sorted(self.happened, key=lambda each: each.at)

    def trace(self) -> Trace:
        stacks: dict[tuple[int, ...], int] = {}
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for each in self.in_order():
            stack = stacks.setdefault(each.stack, len(stacks)) if each.name in WITH_STACK else -1
            values = (plain(each.values.get(one.name, 0), one) for one in fields_of(each.name) if one.is_kept)
            rows.setdefault(each.name, []).append((each.at, each.cpu, each.pid, each.tid, stack, *values))
        events = {name: np.array(own, dtype_of(name)) for name, own in rows.items()}
        return Trace(events, tuple(stacks), self.lost, dict(self.forks))

    def perf_data(self) -> bytes:
        file = PerfData()
        for each in self.in_order():
            file.sample(each)
        if self.lost:
            file.record(2, struct.pack("<QQ", 0, self.lost))
        for child, parent in self.forks.items():
            file.record(7, struct.pack("<IIIIQ", child, parent, child, parent, 0))
        return file.bytes()


def plain(value: Any, of: Field) -> Any:
    return (value or "").encode() if of.kind.startswith("S") and not isinstance(value, bytes) else value


def dtype_of(event: str) -> list[tuple[str, str]]:
    ours = [("TIME", "<u8"), ("CPU", "<u4"), ("PID", "<i4"), ("TID", "<i4"), ("STACK", "<i8")]
    return [*ours, *((each.name, each.kind) for each in fields_of(event) if each.is_kept)]


@dataclass
class PerfData:
    """A perf.data file. All that is not as perf writes it is a field, so that a test can change it."""

    records: bytearray = field(default_factory=bytearray)
    events: dict[str, int] = field(default_factory=dict)
    """Name of an event to its id, in the order in which they came. With / behind it: the same without its stack."""
    formats: dict[str, str] = field(default_factory=dict)
    """The kernel's text on an event, where a test has another."""
    sample_type: int = SAMPLE_TYPE
    features: dict[int, bytes] = field(default_factory=dict)
    """Other parts of the header."""

    def record(self, kind: int, body: bytes, misc: int = 0) -> None:
        self.records += struct.pack("<IHH", kind, misc, len(body) + 8) + body

    def sample(self, each: Happened, raw: bytes | None = None, *, stack: bool = True) -> None:
        number = self.events.setdefault(each.name if stack else f"{each.name}/", 100 + len(self.events))
        body = struct.pack("<QQiiQ", number, 0, each.pid, each.tid, each.at)
        body += struct.pack("<IIQ", each.cpu, 0, 1)
        if each.name in WITH_STACK and stack:
            body += struct.pack(f"<Q{len(each.stack)}Q", len(each.stack), *each.stack)
        if each.name in FORMATS:
            raw = raw_of(each) if raw is None else raw
            body += struct.pack("<I", len(raw)) + raw
        self.record(9, body + bytes(-len(body) % 8))

    def bytes(self) -> bytes:
        ids = b"".join(struct.pack("<Q", number) for number in self.events.values())
        attrs_at = 104 + len(ids)
        attrs = b"".join(self._attr(name) + struct.pack("<QQ", 104 + 8 * at, 8) for at, name in enumerate(self.events))
        data_at = attrs_at + len(attrs)
        features = {1: self.tracing_data(), 12: self.event_desc(), **self.features}
        bits = sum(1 << number for number in features).to_bytes(32, "little")
        header = b"PERFILE2" + struct.pack("<QQQQ", 104, 144, attrs_at, len(attrs))
        header += struct.pack("<QQQQ", data_at, len(self.records), 0, 0) + bits
        places, at = b"", data_at + len(self.records) + 16 * len(features)
        for number in sorted(features):
            places += struct.pack("<QQ", at, len(features[number]))
            at += len(features[number])
        behind = b"".join(features[number] for number in sorted(features))
        return header + ids + attrs + bytes(self.records) + places + behind

    def _attr(self, name: str) -> bytes:
        """perf_event_attr: type, size, config, period, sample_type, read_format, flags and so on."""
        event = name.rstrip("/")
        kind, config = (2, config_of(event)) if event in FORMATS else (1, 0)
        sample_type = self.sample_type | (CALLCHAIN if name in WITH_STACK else 0) | (RAW if event in FORMATS else 0)
        return struct.pack("<IIQQQQQ", kind, 128, config, 1, sample_type, 0, 0).ljust(128, b"\0")

    def event_desc(self) -> bytes:
        found = struct.pack("<II", len(self.events), 128)
        for name, number in self.events.items():
            text = f"{name}/call-graph=fp/".encode() if name in WITH_STACK else name.encode()
            text = text.ljust(len(text) // 64 * 64 + 64, b"\0")
            found += self._attr(name) + struct.pack("<II", 1, len(text)) + text + struct.pack("<Q", number)
        return found

    def tracing_data(self) -> bytes:
        found = b"\x17\x08\x44tracing" + b"0.6\0" + b"\0" + b"\x08" + struct.pack("<I", 4096)
        for word, text in ((b"header_page\0", b"\tfield: u64 timestamp;\n"), (b"header_event\0", b"# compressed\n")):
            found += word + struct.pack("<Q", len(text)) + text
        found += struct.pack("<I", 0)  # of ftrace itself
        systems: dict[str, list[str]] = {}
        for name in self.events:
            if name in FORMATS:
                systems.setdefault(name.partition(":")[0], []).append(name)
        found += struct.pack("<I", len(systems))
        for system, names in systems.items():
            found += system.encode() + b"\0" + struct.pack("<I", len(names))
            for name in names:
                text = self.formats.get(name, format_text(name)).encode()
                found += struct.pack("<Q", len(text)) + text
        return found + struct.pack("<II", 0, 0) + struct.pack("<Q", 0)


def config_of(name: str) -> int:
    """The kernel's number of a tracepoint."""
    return 300 + list(FORMATS).index(name)


def format_text(name: str, fields: Iterable[Field] | None = None) -> str:
    common = ("unsigned short common_type 0 2 0", "unsigned char common_flags 2 1 0", "int common_pid 4 4 1")
    first = [
        Field(declared, int(at), int(size), signed == "1")
        for declared, at, size, signed in (each.rsplit(" ", 3) for each in common)
    ]
    lines = [line_of(each) for each in first] + [""] + [line_of(each) for each in fields or fields_of(name)]
    body = "\n".join(lines)
    return f'name: {name.partition(":")[2]}\nID: {config_of(name)}\nformat:\n{body}\n\nprint fmt: "x", REC->prev_pid\n'


def line_of(each: Field) -> str:
    return f"\tfield:{each.declared};\toffset:{each.offset};\tsize:{each.size};\tsigned:{each.signed:d};"


def raw_of(each: Happened) -> bytes:
    fields = fields_of(each.name)
    raw = bytearray(max(one.offset + one.size for one in fields))
    for one in fields:
        value = np.array(
            [plain(each.values.get(one.name, 0), one) if one.is_kept else 0], one.kind if one.is_kept else "<u4"
        )
        raw[one.offset : one.offset + one.size] = value.tobytes()
    return bytes(raw)


# --- what is made of one ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """A trace as it is read."""

    trace: Trace
    requests: Requests
    tasks: Tasks
    operations: list[Operation]
    splitter: Splitter

    def parts(self, tid: int = 5) -> list[tuple[int, str, str]]:
        """The parts of the one operation of a thread: ns, layer, through."""
        (operation,) = (each for each in self.operations if each.tid == tid)
        return plain_parts(self.splitter.parts(operation))


def plain_parts(parts: Iterable[Piece]) -> list[tuple[int, str, str]]:
    return [(each.end - each.begin, each.layer, each.through) for each in parts]


def seen(
    line: Timeline,
    threads: Iterable[int] = (),
    files: OpenFiles | None = None,
    pauses: tuple[Pause, ...] = (),
    devices: tuple[int, ...] | None = (DEV,),
) -> Seen:
    trace, symbols = replace(line.trace(), pauses=pauses), read_symbols(line.kallsyms + "ffffffff80000000 T _text\n")
    requests, tasks = requests_of(trace, devices), Tasks(trace)
    operations = operations_of(trace, requests, tuple(threads), files or OpenFiles())
    return Seen(trace, requests, tasks, operations, Splitter(trace, tasks, requests, symbols))
