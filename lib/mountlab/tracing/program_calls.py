"""The system calls of a program as strace saw them, with pseudonyms in the place of names (sweep/program_calls.sh)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mountlab.core.errors import ParseError

_LINE = re.compile(
    r"(\d+) (\d+\.\d+) (\w+)\((.*)\) += (\?|-?\w+)(?:<([^<>]*)>)?(?: ([A-Z][A-Z0-9]*)\b)?(?: \(.*\))?(?: <([\d.]+)>)?$"
)
_END = re.compile(r"(\d+) (\d+\.\d+) \+\+\+$")
_LAST = re.compile(r"# (\d+) (\d+) (\d+) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?)$")
_NAMED = re.compile(r"<([^<>]*)>")
_REQUEST = re.compile(r"IOCB_CMD_(\w+), (?:aio_reqprio=\d+, )?aio_fildes=(-?\d+)(?:<([^<>]*)>)?")
_OFFSET = re.compile(r"aio_offset=(-?\d+)")
_BYTES = re.compile(r"(?:aio_nbytes|iov_len)=(\d+)")

KINDS: dict[str, str] = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2"), "read"),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), "write"),
    **dict.fromkeys(("fsync", "fdatasync", "sync_file_range", "sync", "syncfs", "msync"), "sync"),
    **dict.fromkeys(("open", "openat", "openat2", "creat"), "open"),
    "close": "close",
    "lseek": "seek",
    **dict.fromkeys(
        ("stat", "lstat", "fstat", "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2"), "look up"
    ),
    **dict.fromkeys(("getdents", "getdents64"), "list"),
    **dict.fromkeys(("mkdir", "mkdirat"), "make directory"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "remove"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("link", "linkat", "symlink", "symlinkat"), "link"),
    **dict.fromkeys(("truncate", "ftruncate", "fallocate"), "resize"),
    **dict.fromkeys(("copy_file_range", "sendfile", "splice"), "copy"),
    "mmap": "map",
    **dict.fromkeys(("io_submit", "io_uring_enter"), "submit"),
    **dict.fromkeys(("io_getevents", "io_pgetevents"), "collect"),
}
"""System call to the kind of operation that it is."""
FOLLOWED = (
    "dup", "dup2", "dup3", "fcntl", "clone", "clone3", "fork", "vfork", "chdir", "fchdir", "io_setup",
    "io_uring_setup", "execve",
)  # fmt: skip
"""Further calls that are recorded: they say which descriptor stands for what."""
CALLS = (*KINDS, *FOLLOWED)


class Call(NamedTuple):
    """One system call."""

    thread: int
    at: float
    """Seconds since the first recorded call began."""
    name: str
    arguments: str
    result: int | None
    """None where it did not return: the thread was killed, or the call is to be restarted."""
    target: str
    """The pseudonym of what the returned descriptor stands for; '' for any other result."""
    error: str
    """'ENOENT'; '' of a call that did not fail."""
    seconds: float
    """0 where it did not return."""

    @property
    def named(self) -> list[str]:
        """Return the pseudonyms in its arguments, in order."""
        return _NAMED.findall(self.arguments)

    @property
    def words(self) -> list[str]:
        """Return its arguments, of a call that has no structures among them."""
        return self.arguments.split(", ")


class Request(NamedTuple):
    """One request that a call of io_submit hands to the kernel."""

    command: str
    """'PREAD', 'PWRITE', 'FSYNC' and others of the kernel's names."""
    descriptor: int
    path: str
    bytes: int
    offset: int


@dataclass(frozen=True)
class Recording:
    """What was recorded of a program."""

    calls: tuple[Call, ...]
    """In the order in which they ended."""
    ends: tuple[tuple[int, int], ...]
    """(number of calls before it, thread) for each thread that ended."""
    skipped: int = 0
    """Calls beyond the limit."""
    unread: int = 0
    """Lines that were left out since they were not understood."""
    seconds: float = 0.0
    """From the first to the last call, with those beyond the limit."""
    seen_s: float = 0.0
    """From the first to the last recorded one."""
    is_whole: bool = True
    """Whether the record has its last line: without it the recording was ended."""


def read_calls(lines: Iterable[str]) -> Recording:
    """Return the calls of a record. Raises ParseError for a line that program_calls.sh does not write."""
    raw: list[tuple[int, float, re.Match[str]]] = []
    ends: list[tuple[int, int]] = []
    last: re.Match[str] | None = None
    for number, line in enumerate(lines, start=1):
        if last is not None:
            raise ParseError("a line after the last one", where=f"line {number}", got=line[:80])
        if match := _LINE.match(line):
            raw.append((int(match[1]), float(match[2]), match))
        elif match := _END.match(line):
            ends.append((len(raw), int(match[1])))
        elif match := _LAST.match(line):
            last = match
        else:
            raise ParseError("not a system call", where=f"line {number}", got=line[:80])
    began = min((at for _, at, _ in raw), default=0.0)
    calls = tuple(_call(thread, at - began, match) for thread, at, match in raw)
    ended = max((call.at + call.seconds for call in calls), default=0.0)
    if last is None:
        return Recording(calls, tuple(ends), seconds=ended, seen_s=ended, is_whole=False)
    skipped = int(last[2])
    whole = max(ended, float(last[5]) - float(last[4])) if skipped else ended
    return Recording(calls, tuple(ends), skipped, int(last[3]), seconds=whole, seen_s=ended)


def _call(thread: int, at: float, match: re.Match[str]) -> Call:
    text = match[5]
    result = None if text == "?" else int(text, 0)
    seconds = float(match[8]) if match[8] else 0.0
    return Call(thread, at, match[3], match[4], result, match[6] or "", match[7] or "", seconds)


def requests_of(call: Call) -> list[Request]:
    """Return the requests of a call of io_submit that the kernel has taken."""
    requests = []
    for text in call.arguments.split("aio_lio_opcode=")[1:]:
        found, offset = _REQUEST.match(text), _OFFSET.search(text)
        if found:
            size = sum(map(int, _BYTES.findall(text)))
            place = int(offset[1]) if offset else 0
            requests.append(Request(found[1], int(found[2]), found[3] or "", size, place))
    return requests[: max(call.result or 0, 0)]
