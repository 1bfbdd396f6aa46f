"""The system calls of a tool, which are recorded by number and of no other program: in windows where they are many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mountlab.core.errors import ParseError
from mountlab.tracing.events import SYSCALLS
from mountlab.tracing.perf_data import Columns, Trace

_X86_64: Mapping[str, int] = {
    "read": 0, "write": 1, "open": 2, "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "msync": 26,
    "fsync": 74, "fdatasync": 75, "rename": 82, "mkdir": 83, "creat": 85, "unlink": 87, "sync": 162,
    "io_getevents": 208, "io_submit": 209, "openat": 257, "mkdirat": 258, "unlinkat": 263, "renameat": 264,
    "sync_file_range": 277, "preadv": 295, "pwritev": 296, "syncfs": 306, "renameat2": 316, "preadv2": 327,
    "pwritev2": 328, "io_pgetevents": 333, "io_uring_enter": 426, "openat2": 437,
}  # fmt: skip
_GENERIC: Mapping[str, int] = {
    "io_submit": 2, "io_getevents": 4, "mkdirat": 34, "unlinkat": 35, "renameat": 38, "openat": 56, "read": 63,
    "write": 64, "readv": 65, "writev": 66, "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70, "sync": 81,
    "fsync": 82, "fdatasync": 83, "sync_file_range": 84, "msync": 227, "syncfs": 267, "renameat2": 276,
    "preadv2": 286, "pwritev2": 287, "io_pgetevents": 292, "io_uring_enter": 426, "openat2": 437,
}  # fmt: skip
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": _X86_64, **dict.fromkeys(("aarch64", "riscv64", "loongarch64"), _GENERIC)
}  # fmt: skip
"""Machine (`uname -m`) to the numbers of the system calls in CALLS that it has. Source: syscall_64.tbl and
include/uapi/asm-generic/unistd.h of the kernel."""
_FLAGS_AT = {"open": 1, "openat": 2}
"""Which argument of a call is its flags."""
_OF_A_FILE = frozenset((*SYSCALLS["read"], *SYSCALLS["write"], "fsync", "fdatasync", "sync_file_range", "syncfs"))
"""Calls whose first argument is the number of the file that they are about. Of others it is an address, the directory
from which a path leads to the file, or there is none."""
_ARGUMENTS_SIZE = 48
"""Six arguments of 8 bytes."""
_WINDOW = re.compile(r"^(enable|disable) ([0-9]{1,20})$", re.MULTILINE)
Pause = tuple[int, int]


def with_calls(trace: Trace, calls: Trace, windows: str) -> Trace:
    """Return a trace with the system calls that were recorded beside it, as events by name; those outside of its own
    time are left out. `windows`: lines of `enable` or `disable` and the time of day in ns. Raises ParseError for a
    machine whose numbers are not known, and where the times of windows are not known."""
    numbers = NUMBERS.get(calls.machine)
    if numbers is None:
        raise ParseError(
            "system calls of this machine are not known by number", got=repr(calls.machine), allowed=", ".join(NUMBERS)
        )
    begin, end = trace.span_ns
    enters, exits = (
        rows[(rows["TIME"] >= begin) & (rows["TIME"] <= end)] if rows is not None and len(rows) else None
        for rows in (calls.rows("raw_syscalls:sys_enter"), calls.rows("raw_syscalls:sys_exit"))
    )
    named = dict[str, Columns]()
    for call, number in numbers.items():
        if enters is not None:
            named[f"syscalls:sys_enter_{call}"] = _read_begins(enters[enters["id"] == number], call)
        if exits is not None:
            named[f"syscalls:sys_exit_{call}"] = exits[exits["id"] == number]
    return replace(
        trace,
        events={**trace.events, **named},
        lost=trace.lost + calls.lost,
        parents={**trace.parents, **calls.parents},
        pauses=tuple(_read_pauses(windows, calls)),
    )


def _read_begins(rows: Columns, call: str) -> Columns:
    """Return the begins of one call with its flags, and the number of its file, if it is about one."""
    size = rows.dtype["args"].itemsize
    if size != _ARGUMENTS_SIZE:
        raise ParseError("system calls have other arguments than Linux has", got=f"{size} bytes", allowed="48 bytes")
    arguments = np.ascontiguousarray(rows["args"]).view("<u8").reshape(-1, size // 8)
    common, added = ("TIME", "CPU", "PID", "TID", "STACK"), ("fd", "flags") if call in _OF_A_FILE else ("flags",)
    calls = np.zeros(len(rows), [*((name, rows.dtype[name]) for name in common), *((name, "<i8") for name in added)])
    for name in common:
        calls[name] = rows[name]
    if len(rows):
        calls["flags"] = arguments[:, _FLAGS_AT[call]].view("<i8") if call in _FLAGS_AT else 0
        if call in _OF_A_FILE:
            calls["fd"] = arguments[:, 0].view("<i8")
    return calls


def _read_pauses(windows: str, calls: Trace) -> Iterator[Pause]:
    switches = [(kind, int(at)) for kind, at in _WINDOW.findall(windows)]
    if len(switches) > 1 and calls.epoch_ns is None:
        raise ParseError("perf does not say by which clock it recorded", got="no CLOCK_DATA", allowed="perf 5.10")
    off: int | None = None
    for kind, time_of_day in [*switches, ("enable", 1 << 62)]:
        at = time_of_day - (calls.epoch_ns or 0)
        if kind == "disable" and off is None:
            off = at
        elif kind == "enable" and off is not None:
            yield off, at
            off = None


def stretches(begin: int, end: int, pauses: Sequence[Pause]) -> list[tuple[int, int]]:
    """Return the parts of a time that lie outside of the pauses, in order."""
    ends = [begin, *(min(max(at, begin), end) for pause in pauses for at in pause), end]
    return [(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if low < high]


def seen_share(begin: int, end: int, pauses: Sequence[Pause]) -> float:
    """Return the share of a time that lies outside of the pauses."""
    return sum(high - low for low, high in stretches(begin, end, pauses)) / (end - begin) if end > begin else 1.0


def seen_weights(lengths: Columns, begin: int, end: int, pauses: Sequence[Pause]) -> Columns:
    """Return what an operation of each length stands for: the inverse of its chance to lie wholly between two pauses
    if it lies anywhere in this time (Horvitz and Thompson 1952). Without pauses all count the same."""
    if not pauses:
        return np.ones(len(lengths))
    windows = np.array([high - low for low, high in stretches(begin, end, pauses)])
    room = np.maximum(windows[None, :] - lengths[:, None], 0).sum(axis=1)
    return np.asarray(np.maximum(end - begin - lengths, 1) / np.maximum(room, 1))
