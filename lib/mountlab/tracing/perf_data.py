"""perf.data, the file that `perf record` writes: bytes in, one table an event out.

The file says itself how each event is laid out. Source: tools/perf/Documentation/perf.data-file-format.txt and
include/uapi/linux/perf_event.h of the kernel. What it says is not trusted: every offset and every count is checked
before it is used, and nothing is made that is much larger than the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mountlab.core.errors import ParseError
from mountlab.tracing.events import CALL_EVENTS, EVENTS, RAW_CALLS

Columns = np.ndarray
"""A structured array, one row an event; its fields are those of the tracepoint and TIME, CPU, PID, TID, STACK."""
MAGIC = b"PERFILE2"
TRACING_MAGIC = b"\x17\x08\x44tracing"
_TRACING_DATA, _ARCH, _EVENT_DESC, _CLOCK_DATA = 1, 6, 12, 29
"""Numbers of the parts of the header that say how tracepoints are laid out, what machine it was, what each event is
called, and what time of day it was at one moment of the clock of the events."""
_SAMPLE, _LOST, _LOST_SAMPLES, _FORK = 9, 2, 13, 7
"""Types of records."""
_SMALLEST = {_SAMPLE: 16, _LOST: 24, _LOST_SAMPLES: 16, _FORK: 24}
"""Bytes of a record that is read; how many were lost stands at the end of them."""
_IP, _TID, _TIME, _ADDR, _READ, _CALLCHAIN, _ID, _CPU, _PERIOD, _STREAM, _RAW, _IDENTIFIER = (
    1 << bit for bit in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16)
)  # fmt: skip
_UNREADABLE = ~(_IP | _TID | _TIME | _ADDR | _CALLCHAIN | _ID | _CPU | _PERIOD | _STREAM | _RAW | _IDENTIFIER)
_TRACEPOINT = 2
_MOST_EVENTS, _MOST_IDS, _MOST_FIELDS, _MOST_LOST = 4096, 1 << 20, 256, 1 << 48
_NO_TIME = 1 << 62
"""A clock that counts ns from the start of a machine does not come so far."""
_FIELD = re.compile(r"^\tfield:([^;\n]+);\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);", re.MULTILINE)
_READ_OF = {event.name: event for event in (*EVENTS, *CALL_EVENTS, *RAW_CALLS)}
_OUR_FIELDS = (("TIME", "<u8"), ("CPU", "<u4"), ("PID", "<i4"), ("TID", "<i4"), ("STACK", "<i8"))


@dataclass(frozen=True)
class Trace:
    """What perf recorded."""

    events: Mapping[str, Columns]
    """Name of an event to its rows in order of time. TIME: ns of the monotonic clock. STACK: its place in `stacks`; -1:
    none."""
    stacks: tuple[tuple[int, ...], ...]
    """Addresses, innermost first; each different stack once."""
    lost: int
    """Events that the kernel had no room for."""
    parents: Mapping[int, int] = field(default_factory=dict)
    """Thread to the one that started it, of those that were started meanwhile; the first thread of a process has its
    number."""
    machine: str = ""
    """As `uname -m` has it; '' where the file does not say."""
    pauses: tuple[tuple[int, int], ...] = ()
    """Begins and ends of times in which no system call was recorded, in order."""
    epoch_ns: int | None = None
    """Time of day when the clock of the events was 0, in ns since 1970; None where the file does not say."""

    @property
    def total(self) -> int:
        """How many events there are."""
        return sum(len(rows) for rows in self.events.values())

    @property
    def span_ns(self) -> tuple[int, int]:
        """The times of the first and of the last event; (0, 0) without any."""
        times = [rows["TIME"] for rows in self.events.values() if len(rows)]
        return (min(int(time[0]) for time in times), max(int(time[-1]) for time in times)) if times else (0, 0)

    def rows(self, *names: str) -> Columns | None:
        """Return the rows of the first of these events that were recorded."""
        return next((self.events[name] for name in names if name in self.events), None)


def read_trace(data: bytes) -> Trace:
    """Return what a perf.data file holds. Raises ParseError where it is damaged, or of a kind that is not read."""
    try:
        return _read(data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise _damaged(str(error)) from error


def _damaged(got: str) -> ParseError:
    return ParseError(
        "this is no trace that can be read", got=got, allowed="a file that `perf record` wrote to its end"
    )


def _read(data: bytes) -> Trace:
    if data[:8] != MAGIC:
        raise _damaged(f"it begins with {data[:8]!r}")
    attr_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from("<QQQQQ", data, 16)
    if data_size == 0:
        raise _damaged("it has no end: perf was killed")
    if data_at + data_size > len(data):
        raise _damaged(f"{len(data)} bytes, of {data_at + data_size} that it speaks of")
    features = dict(_read_features(data, data_at + data_size))
    formats = _read_formats(features.get(_TRACING_DATA, b""))
    kinds = _read_kinds(data, attrs_at, attrs_size, attr_size, _read_names(features.get(_EVENT_DESC, b"")))
    trace = _walk_records(data, data_at, data_at + data_size, kinds, formats)
    if machine := features.get(_ARCH, b""):
        (size,) = struct.unpack_from("<I", machine)
        trace = replace(trace, machine=machine[4 : 4 + size].split(b"\0")[0].decode())
    if clocks := features.get(_CLOCK_DATA, b""):
        time_of_day, clock = struct.unpack_from("<QQ", clocks, 8)
        trace = replace(trace, epoch_ns=int(time_of_day) - int(clock))
    return trace


def _read_features(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of the parts of the header that are read; they stand behind the records."""
    bits = int.from_bytes(data[72:104], "little")
    for number in (bit for bit in range(256) if bits >> bit & 1):
        offset, size = struct.unpack_from("<QQ", data, at)
        at += 16
        if number in (_TRACING_DATA, _ARCH, _EVENT_DESC, _CLOCK_DATA):
            yield number, data[offset : offset + size]


@dataclass(frozen=True)
class _Kind:
    """One event as it was asked for."""

    name: str
    config: int
    sample_type: int
    is_tracepoint: bool


def _read_kinds(data: bytes, at: int, size: int, attr_size: int, names: Mapping[int, str]) -> dict[int, _Kind]:
    """Return the id that a record carries to what it is a record of."""
    kind_of_id: dict[int, _Kind] = {}
    total = 0
    if attr_size < 48 or size // attr_size > _MOST_EVENTS:
        raise _damaged(f"{size} bytes of events of {attr_size} bytes")
    for start in range(at, at + size - attr_size + 1, attr_size):
        kind, _, config, _, sample_type = struct.unpack_from("<IIQQQ", data, start)
        ids_at, ids_size = struct.unpack_from("<QQ", data, start + attr_size - 16)
        if sample_type & _UNREADABLE or not sample_type & _IDENTIFIER:
            raise _damaged("records with parts that were not asked for")
        total += ids_size // 8
        if total > _MOST_IDS:
            raise _damaged(f"{total} ids of events")
        ids = np.frombuffer(data, "<u8", ids_size // 8, ids_at).tolist() if ids_size // 8 else []
        name = names.get(ids[0], f"event {config}") if ids else ""
        kind_of_id |= dict.fromkeys(ids, _Kind(name, config, sample_type, kind == _TRACEPOINT))
    return kind_of_id


def _read_names(data: bytes) -> dict[int, str]:
    """Return id to the name of its event."""
    name_of_id: dict[int, str] = {}
    if not data:
        return name_of_id
    count, attr_size = struct.unpack_from("<II", data, 0)
    at = 8
    for _ in range(min(count, _MOST_EVENTS)):
        ids, length = struct.unpack_from("<II", data, at + attr_size)
        at += attr_size + 8
        name = data[at : at + length].split(b"\0")[0].decode()
        at += length
        if len(name_of_id) + ids > _MOST_IDS:
            raise _damaged(f"{ids} ids of {name!r}")
        name_of_id |= dict.fromkeys(struct.unpack_from(f"<{ids}Q", data, at), name.partition("/")[0])
        at += 8 * ids
    return name_of_id


def _read_formats(data: bytes) -> dict[int, str]:
    """Return the number of a tracepoint to the kernel's text on its fields."""
    if not data:
        return {}
    if data[: len(TRACING_MAGIC)] != TRACING_MAGIC:
        raise _damaged("its description of events begins with something else")
    at = data.index(b"\0", len(TRACING_MAGIC)) + 1 + 1 + 1 + 4
    for word in (b"header_page\0", b"header_event\0"):
        if data[at : at + len(word)] != word:
            raise _damaged(f"its description of events lacks {word!r}")
        at += len(word)
        at += 8 + int.from_bytes(data[at : at + 8], "little")
    texts: list[str] = []
    (count,) = struct.unpack_from("<I", data, at)
    at = _read_texts(data, at + 4, count, texts)
    (systems,) = struct.unpack_from("<I", data, at)
    at += 4
    for _ in range(min(systems, _MOST_EVENTS)):
        at = data.index(b"\0", at) + 1
        (count,) = struct.unpack_from("<I", data, at)
        at = _read_texts(data, at + 4, count, texts)
    numbered = ((re.search(r"^ID: (\d+)$", text, re.MULTILINE), text) for text in texts)
    return {int(number[1]): text for number, text in numbered if number}


def _read_texts(data: bytes, at: int, count: int, into: list[str]) -> int:
    for _ in range(min(count, _MOST_EVENTS)):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 8 + size > len(data):
            raise _damaged("its description of events is cut off")
        into.append(data[at + 8 : at + 8 + size].decode())
        at += 8 + size
    return at


def _read_layout(text: str) -> np.dtype:
    """Return the fields of a tracepoint that have a fixed size of a number or of a text, where they lie."""
    fields: dict[str, tuple[str, int]] = {}
    for declared, offset, size, signed in _FIELD.findall(text):
        name = declared.split()[-1].partition("[")[0]
        if "__data_loc" in declared or "__rel_loc" in declared:
            continue
        if "[" in declared:
            kind = f"S{size}" if 0 < int(size) < 1 << 16 else ""
        else:
            kind = f"<{'i' if signed == '1' else 'u'}{size}" if size in ("1", "2", "4", "8") else ""
        if kind and name not in fields:
            fields[name] = (kind, int(offset))
    if len(fields) > _MOST_FIELDS:
        raise _damaged(f"an event of {len(fields)} fields")
    kinds, offsets = [kind for kind, _ in fields.values()], [offset for _, offset in fields.values()]
    return np.dtype({"names": list(fields), "formats": kinds, "offsets": offsets})


def _find_missing_field(name: str, layout: np.dtype) -> str:
    """Return the first field that is read of an event, and that it does not have; '' where it has all."""
    event = _READ_OF.get(name)
    fields: Mapping[str, Sequence[Any]] = layout.fields or {}
    wanted = [*((name, "iu") for name in event.numbers), *((name, "S") for name in event.texts)] if event else []
    return next((name for name, kinds in wanted if name not in fields or fields[name][0].kind not in kinds), "")


def _walk_records(data: bytes, at: int, end: int, kinds: Mapping[int, _Kind], formats: Mapping[int, str]) -> Trace:
    """Walk over all records; what they hold is read later, event by event."""
    places: dict[_Kind, list[int]] = {kind: [] for kind in kinds.values()}
    lost, parents = 0, dict[int, int]()
    header = struct.Struct("<IHH").unpack_from
    while at + 8 <= end:
        kind, _, size = header(data, at)
        if size < _SMALLEST.get(kind, 8) or at + size > end:
            raise _damaged(f"a record of {size} bytes at {at}")
        if kind == _SAMPLE:
            number = int.from_bytes(data[at + 8 : at + 16], "little")
            places[kinds[number]].append(at + 8) if number in kinds else None
        elif kind in (_LOST, _LOST_SAMPLES):
            lost += int.from_bytes(data[at + _SMALLEST[kind] - 8 : at + _SMALLEST[kind]], "little")
        elif kind == _FORK:
            child, parent = struct.unpack_from("<II", data, at + 16)
            parents[child] = parent
        at += size
    if lost >= _MOST_LOST:
        raise _damaged(f"{lost} lost events")
    return _build_trace(data, places, formats, lost, parents)


def _build_trace(
    data: bytes, places: Mapping[_Kind, list[int]], formats: Mapping[int, str], lost: int, parents: Mapping[int, int]
) -> Trace:
    stacks: dict[bytes, int] = {}
    tables: dict[str, list[Columns]] = {}
    layouts = {config: _read_layout(formats.get(config, "")) for config in {kind.config for kind in places}}
    for kind, where in places.items():
        layout = layouts[kind.config] if kind.is_tracepoint and kind.sample_type & _RAW else np.dtype([])
        lacks = _find_missing_field(kind.name, layout)
        if lacks and _READ_OF[kind.name].needed:
            raise _damaged(f"{kind.name} without its field {lacks}")
        if not lacks:
            rows = _read_samples(
                np.frombuffer(data, np.uint8), np.array(where, np.int64), kind.sample_type, layout, stacks
            )
            rows_of_kinds = tables.setdefault(kind.name, [])  # switches with a stack, and those without
            if not rows_of_kinds or rows_of_kinds[0].dtype == rows.dtype:
                rows_of_kinds.append(rows)
    events = {name: np.concatenate(rows_of_kinds) for name, rows_of_kinds in tables.items()}
    in_order = {name: rows[np.argsort(rows["TIME"], kind="stable")] for name, rows in events.items()}
    addresses = (tuple(np.frombuffer(stack, "<u8").tolist()) for stack in stacks)
    return Trace(in_order, tuple(addresses), lost, parents)


def _read_samples(data: Columns, at: Columns, sample_type: int, layout: np.dtype, stacks: dict[bytes, int]) -> Columns:
    """Return the rows of one event. `at`: where its records begin, behind their header."""
    ends = at - 8 + (_read_number(data, at - 2, "<u2", at) if len(at) else 0)
    cursor = _Cursor(data, at + 8, ends)
    cursor.skip(sample_type, _IP)
    pid, tid = cursor.pair(sample_type & _TID)
    time = cursor.take(sample_type & _TIME)
    cursor.skip(sample_type, _ADDR, _ID, _STREAM)
    cpu, _ = cursor.pair(sample_type & _CPU)
    cursor.skip(sample_type, _PERIOD)
    stack = cursor.stacks(stacks) if sample_type & _CALLCHAIN else np.full(len(at), -1)
    if (time >= _NO_TIME).any():
        raise _damaged("an event at a time that no clock shows")
    raw = _read_raw(data, cursor.at, ends, layout) if layout.names else {}
    rows = np.zeros(len(at), [*_OUR_FIELDS, *((name, values.dtype) for name, values in raw.items())])
    for name, values in zip(("TIME", "CPU", "PID", "TID", "STACK"), (time, cpu, pid, tid, stack), strict=True):
        rows[name] = values
    for name, values in raw.items():
        rows[name] = values
    return rows


class _Cursor:
    """Cursor over N records, vectorised: `at` and `ends` are their places in `data`, shape (N,)."""

    def __init__(self, data: Columns, at: Columns, ends: Columns) -> None:
        self.data, self.at, self.ends = data, at, ends

    def skip(self, sample_type: int, *parts: int) -> None:
        self.at = self.at + 8 * sum(bool(sample_type & part) for part in parts)

    def take(self, present: int) -> Columns:
        """Return the number of 8 bytes that stands here; 0 where the records do not have it."""
        if not present:
            return np.zeros(len(self.at), "<u8")
        self.at = self.at + 8
        return _read_number(self.data, self.at - 8, "<u8", self.ends)

    def pair(self, present: int) -> tuple[Columns, Columns]:
        """Return the two numbers of 4 bytes that stand here."""
        both = self.take(present)
        return (both & 0xFFFFFFFF).astype("<u4").view("<i4"), (both >> 32).astype("<u4").view("<i4")

    def stacks(self, numbers: dict[bytes, int]) -> Columns:
        """Return the number of the stack that stands here; new ones are added to those known."""
        depth = self.take(1)
        if (depth > np.maximum(self.ends - self.at, 0).astype("<u8") // 8).any():
            raise _damaged("a stack without end")
        begins, self.at = self.at, self.at + 8 * depth.astype(np.int64)
        stacks = (self.data[low:high].tobytes() for low, high in zip(begins.tolist(), self.at.tolist(), strict=True))
        return np.array([numbers.setdefault(stack, len(numbers)) for stack in stacks], np.int64)


def _read_raw(data: Columns, at: Columns, ends: Columns, layout: np.dtype) -> dict[str, Columns]:
    """Return the fields of a tracepoint. Behind its size there are its bytes."""
    ends = np.minimum(ends, at + 4 + _read_number(data, at, "<u4", ends).astype(np.int64))
    assert layout.fields is not None
    fields = {name: layout.fields[name][:2] for name in layout.names or ()}
    if len(at) and sum(kind.itemsize for kind, _ in fields.values()) > (ends - at - 4).min():
        raise _damaged("an event that is smaller than its fields")
    return {name: _read_number(data, at + 4 + offset, kind, ends) for name, (kind, offset) in fields.items()}


def _read_number(data: Columns, at: Columns, kind: str | np.dtype, ends: Columns) -> Columns:
    """Return the values of this kind that begin at these places."""
    kind = np.dtype(kind)
    if (at + kind.itemsize > ends).any():
        raise _damaged("a record that ends before what it holds")
    return np.ascontiguousarray(data[at[:, None] + np.arange(kind.itemsize)]).view(kind)[:, 0]


def groups(rows: Columns | None, column: str) -> dict[int, Columns]:
    """Return each value of a column to the numbers of its rows, in their order."""
    if rows is None or not len(rows):
        return {}
    order = np.argsort(rows[column], kind="stable")
    values, begins = np.unique(rows[column][order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, begins[1:]), strict=True))
