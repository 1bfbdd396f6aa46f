"""What the system calls of a program did to its files: which descriptor stood for which file, and where each read and
write began.

Threads share their descriptors, processes that were forked inherit them, and duplicates share one position. A
descriptor whose name is not the one that was seen at its opening came from a call that is not recorded: its position
is unknown until the next seek.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from mountlab.tracing.program_calls import KINDS, Call, Recording, requests_of

TEST, ELSEWHERE = "under test", "elsewhere"
_PLACES = {
    "t": TEST,
    "e": ELSEWHERE,
    "pipe": "pipes",
    "socket": "sockets",
    "device": "devices",
    "system": "/proc, /sys",
}
_SIZE = re.compile(r"stx?_size=(\d+)")
_IS_FILE = re.compile(r"stx?_mode=S_IFREG")
_FLAG = re.compile(r"O_[A-Z]+")
SHOWN_FLAGS = ("O_DIRECT", "O_SYNC", "O_DSYNC", "O_APPEND", "O_TRUNC", "O_TMPFILE", "O_EXCL")
_FLAGS_AT = {"preadv2": -1, "pwritev2": -1}
_OFFSET_AT = {"pread64": -1, "pwrite64": -1, "preadv": -1, "pwritev": -1, "preadv2": -2, "pwritev2": -2}
_WHOLE_SYNCS = ("sync", "syncfs", "msync")
_DATA_SYNC = ("RWF_DSYNC", "RWF_SYNC")


def place_of(path: str) -> str:
    """Return where a pseudonym lies: below the directory under test, elsewhere, or what else it is."""
    return _PLACES.get(path.partition("/")[0], "other")


@dataclass(slots=True, eq=False)
class FileState:
    """One file, whatever its name is at the moment."""

    path: str
    size: int | None = None
    """In bytes, as far as it is known."""
    created: bool = False
    is_directory: bool = False
    is_mapped: bool = False
    unsynced: int = 0
    """Writes since its last sync."""
    unsynced_bytes: int = 0
    last: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)
    """Direction to begin, end, and stride of the last access."""


@dataclass(slots=True, eq=False)
class _Description:
    """An open file description: what duplicates of a descriptor share."""

    file: FileState
    path: str
    position: int | None
    flags: frozenset[str]


class Access(NamedTuple):
    """One read or write of a file under test."""

    at: float
    seconds: float
    thread: int
    direction: str
    file: FileState
    offset: int | None
    """In bytes; None where it is unknown."""
    bytes: int
    how: str
    """'first', 'consecutive', 'strided', 'forward', 'backward' or 'unknown' (docs/why.md)."""
    direct: bool
    through: bool
    """Whether it returns only after the data is on the device: O_SYNC, O_DSYNC, RWF_DSYNC."""
    is_async: bool


class Sync(NamedTuple):
    """One sync of files under test."""

    at: float
    seconds: float
    name: str
    writes: int
    """Since the last sync of its file; of all files where it is no sync of one."""
    bytes: int


@dataclass(slots=True)
class Followed:
    """What a recording comes to."""

    accesses: list[Access] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    operations: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """(place, kind, system call) to calls, failed ones, bytes and seconds."""
    spans: list[tuple[float, float, int]] = field(default_factory=list)
    """(begin, end, thread) of each call on files under test."""
    files: dict[FileState, None] = field(default_factory=dict)
    """Those under test that were opened, directories too, in that order."""
    opens: Counter[str] = field(default_factory=Counter)
    """Flag to the opens under test that have it; '' to all of them."""
    names: Counter[str] = field(default_factory=Counter)
    """'removed', 'renamed', 'linked', 'directories made', 'directories removed' to how many, under test."""
    requests: list[tuple[float, int]] = field(default_factory=list)
    """(time, change) of requests that are under way in the kernel (io_submit)."""
    map_calls: int = 0
    map_bytes: int = 0
    shared_maps: int = 0
    """Maps through which a file can be written."""
    uring_calls: int = 0
    uring_requests: int = 0
    threads: set[int] = field(default_factory=set)
    """Those with a call on files under test."""
    processes: set[int] = field(default_factory=set)
    """The first threads of their processes."""


def follow(recording: Recording) -> Followed:
    """Return what the calls of a recording did."""
    return _Follower(recording).run()


class _Follower:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._followed = Followed()
        self._files: dict[str, FileState] = {}
        self._tables: dict[int, dict[int, _Description]] = {}
        self._process_of: dict[int, int] = {}
        self._parents: dict[int, deque[tuple[int, bool, bool]]] = defaultdict(deque)
        """Thread to (parent, whether they share descriptors, whether they are of one process), for each time that its
        number was given: a child may run before the call that made it returns."""

    def run(self) -> Followed:
        for call in self._recording.calls:
            if call.name in ("clone", "clone3", "fork", "vfork") and call.result and call.result > 0:
                shares, is_thread = "CLONE_FILES" in call.arguments, "CLONE_THREAD" in call.arguments
                self._parents[call.result].append((call.thread, shares, is_thread))
        ends = deque(self._recording.ends)
        for number, call in enumerate(self._recording.calls):
            while ends and ends[0][0] <= number:
                thread = ends.popleft()[1]
                self._tables.pop(thread, None)
                self._process_of.pop(thread, None)
            self._take(call)
        return self._followed

    # ── descriptors ──────────────────────────────────────────────────────────────────────────────────────────────

    def _table(self, thread: int) -> dict[int, _Description]:
        if thread not in self._tables:
            parent = self._parents[thread].popleft() if self._parents[thread] else None
            inherited = self._table(parent[0]) if parent else {}
            self._tables[thread] = inherited if parent and parent[1] else dict(inherited)
            self._process_of[thread] = self._process_of[parent[0]] if parent and parent[2] else thread
        return self._tables[thread]

    def _described(self, thread: int, descriptor: int, path: str) -> _Description:
        table = self._table(thread)
        known = table.get(descriptor)
        if known is None or known.path != path:
            known = table[descriptor] = _Description(self._file(path), path, None, frozenset())
        return known

    def _file(self, path: str) -> FileState:
        if path not in self._files:
            self._files[path] = FileState(path)
        return self._files[path]

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, call: Call) -> None:
        table = self._table(call.thread)
        kind = KINDS.get(call.name, "")
        if not kind:
            self._follow_descriptor(call, table)
            return
        if call.result is None:
            return
        path = self._path(call, kind)
        if kind == "map" and not path:
            return
        place, moved = place_of(path) if path else ELSEWHERE, 0
        match kind:
            case "read" | "write":
                moved = self._move(call, kind)
            case "open":
                self._open(call, table)
            case "sync":
                place = self._sync(call, path)
            case "look up":
                self._look_up(call, path)
            case "resize":
                self._resize(call, path)
            case "copy":
                moved = self._copy(call)
            case "map":
                self._map(call, path, place)
            case "submit":
                place = self._submit(call)
            case "collect":
                place = TEST
                self._followed.requests.append((call.at + call.seconds, -max(call.result, 0)))
            case "close" | "seek" | "list":
                self._use(call, kind, table)
            case _:
                self._rename_or_remove(call, kind, place)
        self._count(call, place, kind, moved)

    def _use(self, call: Call, kind: str, table: dict[int, _Description]) -> None:
        """Take a close, a seek, or a look into a directory."""
        descriptor, path = _first(call)
        if kind == "close":
            table.pop(descriptor, None)
        elif kind == "seek":
            self._described(call.thread, descriptor, path).position = max(call.result or 0, 0)
        else:
            self._described(call.thread, descriptor, path).file.is_directory = True

    def _path(self, call: Call, kind: str) -> str:
        """Return the pseudonym of what a call is about: of two files the one that is written, or named last."""
        if kind == "open" and call.target:
            return call.target
        if kind in ("read", "write", "sync", "close", "seek", "list", "map") or call.name in ("ftruncate", "fallocate"):
            return next(iter(call.named), "")
        return call.named[0 if call.name == "sendfile" else -1] if call.named else ""

    def _count(self, call: Call, place: str, kind: str, moved: int) -> None:
        row = self._followed.operations.setdefault((place, kind, call.name), [0, 0, 0, 0.0])
        row[0] += 1
        row[1] += bool(call.error)
        row[2] += moved
        row[3] += call.seconds
        if place == TEST:
            self._followed.spans.append((call.at, call.at + call.seconds, call.thread))
            self._followed.threads.add(call.thread)
            self._followed.processes.add(self._process_of[call.thread])

    def _follow_descriptor(self, call: Call, table: dict[int, _Description]) -> None:
        if call.result is None or call.result < 0:
            return
        if call.name in ("dup", "dup2", "dup3") or (call.name == "fcntl" and "F_DUPFD" in call.arguments):
            table[call.result] = self._described(call.thread, *_first(call))
        elif call.name == "fcntl" and "F_SETFL" in call.arguments:
            known = self._described(call.thread, *_first(call))
            kept = known.flags - {"O_APPEND", "O_DIRECT", "O_NONBLOCK"}
            known.flags = kept | frozenset(_FLAG.findall(call.arguments))

    def _open(self, call: Call, table: dict[int, _Description]) -> None:
        assert call.result is not None
        if call.result < 0:
            return
        flags = frozenset(_FLAG.findall(call.arguments))
        if call.name == "creat":
            flags |= {"O_CREAT", "O_WRONLY", "O_TRUNC"}
        path = call.target or self._path(call, "open")
        is_new = path not in self._files or "O_TMPFILE" in flags or "O_EXCL" in flags
        if is_new and path in self._files:
            del self._files[path]
        file = self._file(path)
        file.is_directory |= "O_DIRECTORY" in flags and "O_TMPFILE" not in flags
        if is_new:
            file.created = "O_CREAT" in flags or "O_TMPFILE" in flags
        if "O_TRUNC" in flags or ("O_EXCL" in flags and "O_CREAT" in flags) or "O_TMPFILE" in flags:
            file.size = 0
        table[call.result] = _Description(file, path, 0, flags)
        if place_of(path) == TEST:
            self._followed.opens.update(["", *(flag for flag in SHOWN_FLAGS if flag in flags)])
            self._followed.files[file] = None

    # ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _move(self, call: Call, direction: str) -> int:
        """Take a read or a write, and return its bytes."""
        assert call.result is not None
        descriptor, path = _first(call)
        known = self._described(call.thread, descriptor, path)
        if call.result <= 0:
            return 0
        words = call.arguments.rsplit(", ", 3)
        offset: int | None = int(words[_OFFSET_AT[call.name]]) if call.name in _OFFSET_AT else -1
        moves_position = offset == -1
        if moves_position:
            offset = known.position
        appends = direction == "write" and "O_APPEND" in known.flags
        if appends:  # also of pwrite: on Linux it appends, whatever its offset is
            offset = known.file.size
        if moves_position:
            known.position = None if offset is None else offset + call.result
        if place_of(path) == TEST:
            flags = words[_FLAGS_AT[call.name]] if call.name in _FLAGS_AT else ""
            through = bool({"O_SYNC", "O_DSYNC"} & known.flags) or any(flag in flags for flag in _DATA_SYNC)
            self._access(call, direction, known, offset, call.result, appends=appends, through=through)
        return call.result

    def _access(
        self,
        call: Call,
        direction: str,
        known: _Description,
        offset: int | None,
        size: int,
        *,
        appends: bool = False,
        through: bool = False,
        is_async: bool = False,
    ) -> None:
        file = known.file
        how = "consecutive" if appends and offset is None else _how(file, direction, offset, size)
        if direction == "write":
            file.unsynced += not through
            file.unsynced_bytes += 0 if through else size
            if offset is not None:
                file.size = max(file.size or 0, offset + size)
        seconds = 0.0 if is_async else call.seconds
        direct = "O_DIRECT" in known.flags
        access = Access(call.at, seconds, call.thread, direction, file, offset, size, how, direct, through, is_async)
        self._followed.accesses.append(access)

    def _submit(self, call: Call) -> str:
        """Take requests of io_submit, or count those of io_uring; return where they go."""
        if call.name == "io_uring_enter":
            words = call.words
            self._followed.uring_calls += 1
            self._followed.uring_requests += max(min(int(words[1]), call.result or 0), 0)
            return "other"
        requests = requests_of(call)
        under_test = [request for request in requests if place_of(request.path) == TEST]
        for request in under_test:
            known = self._described(call.thread, request.descriptor, request.path)
            if request.command in ("PREAD", "PREADV", "PWRITE", "PWRITEV"):
                direction = "read" if request.command.startswith("PREAD") else "write"
                through = bool({"O_SYNC", "O_DSYNC"} & known.flags)
                self._access(call, direction, known, request.offset, request.bytes, through=through, is_async=True)
            elif request.command in ("FSYNC", "FDSYNC"):
                self._synced([known.file], Sync(call.at, 0.0, request.command.lower(), 0, 0))
        self._followed.requests.append((call.at, len(requests)))
        return TEST if under_test else ELSEWHERE

    def _copy(self, call: Call) -> int:
        """Take a copy inside the kernel, and return its bytes. Positions move where no offset is given."""
        assert call.result is not None
        moved = max(call.result, 0)
        words = call.words
        places = {"copy_file_range": ((0, 1), (2, 3)), "splice": ((0, 1), (2, 3)), "sendfile": ((1, 2), (0, -1))}
        for descriptor_at, offset_at in places[call.name]:
            number, _, path = words[descriptor_at].rstrip(">").partition("<")
            known = self._described(call.thread, int(number), path)
            given = offset_at >= 0 and words[offset_at] != "NULL"
            if not given and known.position is not None:
                known.position += moved
            if descriptor_at == places[call.name][1][0]:
                end = known.position if not given else None
                known.file.size = max(known.file.size or 0, end) if end is not None else known.file.size
                known.file.unsynced += moved > 0
                known.file.unsynced_bytes += moved
        return moved

    # ── syncs, sizes, names ──────────────────────────────────────────────────────────────────────────────────────

    def _sync(self, call: Call, path: str) -> str:
        """Take a sync, and return where it counts."""
        if call.name in _WHOLE_SYNCS:
            if call.name == "msync" and "MS_SYNC" not in call.arguments:
                return TEST
            if path and place_of(path) != TEST:
                return place_of(path)
            files = [file for file in self._files.values() if place_of(file.path) == TEST]
        elif place_of(path) == TEST:
            files = [self._described(call.thread, *_first(call)).file]
        else:
            return place_of(path)
        if not call.error:
            self._synced(files, Sync(call.at, call.seconds, call.name, 0, 0))
        return TEST

    def _synced(self, files: list[FileState], sync: Sync) -> None:
        writes, size = sum(file.unsynced for file in files), sum(file.unsynced_bytes for file in files)
        self._followed.syncs.append(sync._replace(writes=writes, bytes=size))
        for file in files:
            file.unsynced = file.unsynced_bytes = 0

    def _look_up(self, call: Call, path: str) -> None:
        if call.error:
            return
        descriptor = call.arguments.partition("<")[0]
        known = self._table(call.thread).get(int(descriptor)) if descriptor.isdigit() else None
        file = known.file if known and known.path == path else None
        if file is None and "S_IFLNK" not in call.arguments and path:
            file = self._file(path)
        size = _SIZE.search(call.arguments)
        if file is not None and size and _IS_FILE.search(call.arguments):
            if file.size is None and int(size[1]) > 0 and not file.unsynced:
                file.created = False  # it was there, with data, before the program wrote any
            file.size = int(size[1])

    def _resize(self, call: Call, path: str) -> None:
        if call.error:
            return
        words = call.words
        file = self._file(path) if call.name == "truncate" else self._described(call.thread, *_first(call)).file
        if call.name == "fallocate":
            if not re.search("KEEP_SIZE|PUNCH|COLLAPSE|INSERT", words[1]):
                file.size = max(file.size or 0, int(words[2]) + int(words[3]))
        else:
            file.size = int(words[1])

    def _map(self, call: Call, path: str, place: str) -> None:
        if place != TEST or call.error:
            return
        words = call.words
        self._file(path).is_mapped = True
        self._followed.map_calls += 1
        self._followed.map_bytes += int(words[1])
        self._followed.shared_maps += "PROT_WRITE" in words[2] and "MAP_SHARED" in words[3]

    def _rename_or_remove(self, call: Call, kind: str, place: str) -> None:
        if call.error or not call.named:
            return
        counted = ""
        if kind == "rename":
            named = [name for name in call.named if name != ""]
            old, new = (named[1], named[3]) if len(named) == 4 else (named[0], named[-1])
            self._renamed(old, new)
            counted = "renamed"
        elif kind == "remove":
            is_directory = call.name == "rmdir" or "AT_REMOVEDIR" in call.arguments
            counted = "directories removed" if is_directory else "removed"
            self._files.pop(call.named[-1], None)
        elif kind == "make directory":
            counted = "directories made"
        elif kind == "link":
            counted = "linked"
        if counted and place == TEST:
            self._followed.names[counted] += 1

    def _renamed(self, old: str, new: str) -> None:
        file = self._files.pop(old, None)
        self._files.pop(new, None)
        if file is None:
            return
        file.path = new
        self._files[new] = file
        for table in {id(table): table for table in self._tables.values()}.values():
            for known in table.values():
                if known.file is file:
                    known.path = new


def _first(call: Call) -> tuple[int, str]:
    """Return the descriptor that a call names first, and its pseudonym; -1 where it names none."""
    number, _, rest = call.arguments.partition(",")[0].partition("<")
    return (int(number) if number.lstrip("-").isdigit() else -1), rest.rstrip(">")


def _how(file: FileState, direction: str, offset: int | None, size: int) -> str:
    """Return how an access follows the last one in its direction to its file, and note it as the last one."""
    if offset is None:
        return "unknown"
    last = file.last.get(direction)
    stride = None if last is None else offset - last[0]
    file.last[direction] = (offset, offset + size, stride)
    if last is None:
        return "first"
    if offset == last[1]:
        return "consecutive"
    if stride == last[2] and stride != 0:
        return "strided"
    return "forward" if offset > last[1] else "backward"
