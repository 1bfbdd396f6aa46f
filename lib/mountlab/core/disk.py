"""Files of the control machine that survive it: whole or not at all, and on the disk with their names.

A write that returns is on the disk, with the entry of its directory: a power cut after it takes nothing away. One that
fails leaves what was there before, and raises KeepError, which says what to do.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mountlab.core.errors import KeepError, StoreError
from mountlab.core.places import WORKSPACE

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

UNFINISHED, REPLACED = ".new", ".old"
"""Endings of the names of directories that are being written, and that are being replaced; both begin with a dot."""
LARGEST_FILE = 1 << 28
"""What one file of a run may hold: far more than any tool writes in a trial, and little enough to be read at once."""
_GONE = "it is not there any more: see whether the disk is still mounted"
_REASONS = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room: your quota of the disk is used up",
    errno.EFBIG: "no file may grow that large here: see `ulimit -f`",
    errno.EROFS: "the disk is mounted read-only: see the kernel's log (dmesg), and mount it again",
    errno.EACCES: "see who may write there (ls -ld)",
    errno.EPERM: "see who may write there (ls -ld, lsattr)",
    errno.ENOENT: _GONE,
    errno.ENOTDIR: _GONE,
    errno.ESTALE: _GONE,
    errno.EIO: "the disk reports errors: see the kernel's log (dmesg), and do not trust it with more",
}
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
OPEN_AT_ONCE = 64
"""How many files of a directory are written together."""
FLUSHED_AT_ONCE = 8
"""How many files are flushed at the same time: the disk then empties its cache once for several of them."""
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of file systems without fsync of a directory: their entries are on the disk at once, or never surely."""


def path_text(path: Path) -> str:
    """Return a path as people know it: from the current directory or the workspace where it is below them."""
    for start in (Path.cwd(), WORKSPACE):
        if path.is_relative_to(start):
            return str(path.relative_to(start))
    return str(path)


@contextmanager
def disk_errors(path: Path, what: str = "a file cannot be written") -> Iterator[None]:
    """Turn an error of the disk into one that names the file and what to do. Raises KeepError."""
    try:
        yield
    except OSError as error:
        raise KeepError(
            what,
            where=path_text(path),
            got=error.strerror or str(error),
            next_step=_REASONS.get(error.errno or 0, "see whether the disk is well"),
        ) from error


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole: a reader sees the old one or the new one, also where two processes write it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        try:
            with _open(temporary, _NEW) as handle:
                _write_all(handle, data)
                os.fsync(handle)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_directory(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file where it is there, and its name from the disk."""
    with disk_errors(path), suppress(FileNotFoundError):
        os.unlink(path)
        sync_directory(path.parent)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, which is made where it is not there. Where that fails the file is cut back to what it was,
    or, if even that fails, ends with a torn line."""
    with disk_errors(path):
        is_new = not path.exists()
        with _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as handle:
            _append(handle, line)
        if is_new:
            sync_directory(path.parent)


def _append(handle: int, line: bytes) -> None:
    size = os.fstat(handle).st_size
    try:
        _write_all(handle, line)
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def cut(path: Path, size: int) -> None:
    """Truncate a file to a size."""
    with disk_errors(path), _open(path, os.O_WRONLY) as handle:
        os.ftruncate(handle, size)
        os.fsync(handle)


@contextmanager
def _open(path: Path, flags: int) -> Iterator[int]:
    handle = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    """Write all bytes. One write may take fewer, as on a disk that is nearly full: the next one raises the reason."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


# ── directories ──────────────────────────────────────────────────────────────────────────────────────────────────────


def sync_directory(path: Path) -> None:
    """Put the names in a directory on the disk."""
    with _open(path, os.O_RDONLY | os.O_DIRECTORY) as handle:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, where they are missing."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with disk_errors(path):
        with suppress(FileExistsError):
            os.mkdir(path)
        sync_directory(path.parent)


def keep_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """Make or replace a directory, with these files and no others; whole or not at all.

    A name may have directories before it. Stopped half-way it leaves what `tidy` puts right.
    """
    new, old = _beside(path, UNFINISHED), _beside(path, REPLACED)
    with disk_errors(path):
        _remove(new)
        try:
            _fill(new, files)
            if path.exists():
                _remove(old)
                os.rename(path, old)
            os.rename(new, path)
        except BaseException:
            with suppress(OSError):
                _put_back(path, old)
                _remove(new)
            raise
        sync_directory(path.parent)
        _remove(old)


def _fill(directory: Path, files: Mapping[str, bytes]) -> None:
    os.mkdir(directory)
    for name in files:
        for above in reversed(Path(name).parents[:-1]):
            if not (directory / above).is_dir():
                os.mkdir(directory / above)
    names = list(files)
    for first in range(0, len(names), OPEN_AT_ONCE):
        _write_together({directory / name: files[name] for name in names[first : first + OPEN_AT_ONCE]})
    for below in {directory, *(directory / above for name in files for above in Path(name).parents[:-1])}:
        sync_directory(below)


def _write_together(files: Mapping[Path, bytes]) -> None:
    """Write files, and flush them at the same time: none waits for another."""
    with ExitStack() as handles:
        opened_handles = []
        for path, data in files.items():
            handle = handles.enter_context(_open(path, _NEW))
            _write_all(handle, data)
            opened_handles.append(handle)
        _flush(opened_handles)


def _flush(handles: Sequence[int]) -> None:
    """Flush all of these to the disk, and only then raise the first error."""
    from concurrent.futures import wait

    futures = [_flushers(os.getpid()).submit(os.fsync, handle) for handle in handles]
    wait(futures)
    for future in futures:
        future.result()


@cache
def _flushers(_process: int) -> ThreadPoolExecutor:
    """Return the threads of this process that flush files. They are kept: to start them takes as long as a flush. A
    forked process has no threads of its parent."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(FLUSHED_AT_ONCE, "mountlab-flush")


def new_directory(path: Path, files: Mapping[str, bytes], *, empty: str) -> None:
    """Make a directory with these files and an empty directory in it. Raises StoreError where it is there already."""
    new = _beside(path, UNFINISHED)
    with disk_errors(path):
        _remove(new)
        try:
            _fill(new, files)
            os.mkdir(new / empty)
            sync_directory(new)
            if path.exists():
                raise StoreError(
                    "is there already", where=path_text(path), next_step="run it again: it takes another name"
                )
            os.rename(new, path)
        except BaseException:
            with suppress(OSError):
                _remove(new)
            raise
        sync_directory(path.parent)


def tidy(directory: Path) -> None:
    """Put right what a crash has left of files and directories that were being written: the old ones stay."""
    with disk_errors(directory):
        for old in directory.glob(f".*{REPLACED}"):
            _put_back(old.with_name(old.name[1 : -len(REPLACED)]), old)
            _remove(old)
    clear(directory, f".*{UNFINISHED}", ".*.tmp")


def clear(directory: Path, *patterns: str) -> None:
    """Remove what killed processes left half-written. The caller holds the lock under which such files are written."""
    with disk_errors(directory):
        for pattern in patterns:
            for path in directory.glob(pattern):
                _remove(path)


def _put_back(path: Path, old: Path) -> None:
    if old.exists() and not path.exists():
        os.rename(old, path)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}{ending}")


def _remove(path: Path) -> None:
    """Remove a file, or a directory with all that is in it; links are not followed."""
    if path.is_symlink() or path.is_file():
        os.unlink(path)
    elif path.exists():
        shutil.rmtree(path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_plain(path: Path | str, limit: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a plain file. Raises StoreError for another kind (a link, a pipe, a device: reading it could
    hang, or show what lies elsewhere) and for one that is too large, OSError where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError("not a plain file", where=path_text(Path(path)), got="a symbolic link") from error
        raise
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise StoreError("not a plain file", where=path_text(Path(path)), got=stat.filemode(status.st_mode))
        if status.st_size > limit:
            got = f"{status.st_size} B"
            raise StoreError("too large a file for a run", where=path_text(Path(path)), got=got, allowed=f"{limit} B")
        return _read_all(handle, status.st_size, limit)
    finally:
        os.close(handle)


def _read_all(handle: int, size: int, limit: int) -> bytes:
    """Read without a file object, which costs as much as all the rest: a run has thousands of small files."""
    first = os.read(handle, min(size + 1, limit))
    if len(first) == size:
        return first
    parts = [first]
    while parts[-1]:
        parts.append(os.read(handle, limit - sum(map(len, parts))))
    return b"".join(parts)
