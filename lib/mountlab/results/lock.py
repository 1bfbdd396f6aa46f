"""One process at a time writes to a directory of results: the kernel's lock on a file in it, which names its owner.

The kernel gives a lock back when its process ends, however it ends, so that a crash leaves no owner. Where a file
system has no locks the owner's name decides: a process with that number, that start and that boot of this machine; one
in another PID namespace (a container) is believed. An owner on another machine is always believed: not every network
file system passes locks on.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from mountlab.core.disk import disk_errors, path_text
from mountlab.core.errors import RunInUse
from mountlab.core.process import ProcessState, boot_id, pid_namespace, started, state_elsewhere

FILE = ".owner"
"""Of the process that measures; other files keep apart those that write other things beside it."""
_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_TRIES, _PAUSE_S = 20, 0.01
"""For the moment in which a reader looks whether the file is locked, and that before an owner has written its name."""
_LOOK_S = 0.05
"""How often somebody who waits looks."""


@dataclass(frozen=True)
class Holder:
    """A process that writes to a directory. Numbers of processes are used again, so its start (in clock ticks since
    boot), the boot and the PID namespace belong to it; `since` is only for people: clocks are set."""

    host: str
    pid: int
    started: str
    boot: str
    since: str
    namespace: str = ""
    """'' for one of an earlier version."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    @property
    def state(self) -> ProcessState:
        """Whether it still runs, as far as this machine can tell."""
        here: ProcessState = "running" if self.started == started(self.pid) != "" else "gone"
        return state_elsewhere(self.host, self.boot, self.namespace) or here


def this_process() -> Holder:
    """Return the holder that this process is."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(socket.gethostname(), os.getpid(), started(os.getpid()), boot_id(), now, pid_namespace())


def holder(directory: Path) -> Holder | None:
    """Return the process that writes to a directory now, or may: one of another machine is believed. None for none."""
    owner = _read(directory / FILE)
    if owner is None or owner.state == "unknown":
        return owner
    locked = _is_locked(directory / FILE)
    return owner if locked or (locked is None and owner.state != "gone") else None


def _is_locked(file: Path) -> bool | None:
    """None where the file system has no locks, and the name in the file is all there is."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)
    return False


@contextmanager
def held(directory: Path, *, what: str, name: str = FILE, wait_s: float = 0.0) -> Iterator[None]:
    """Be the only process that does this in a directory; another one is waited for as long as `wait_s`.

    What may be waited for does no harm when it is done twice at once: there the kernel's word is enough, also where the
    file names an owner on another machine. Raises RunInUse, which names the other, and KeepError where nothing can be
    written.
    """
    file = directory / name
    handle = _acquire(file, what, wait_s)
    try:
        with disk_errors(file):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(asdict(this_process())).encode(), 0)
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)
        os.close(handle)


@contextmanager
def alone(directory: Path, *, what: str, fallback: Path, wait_s: float) -> Iterator[None]:
    """Be the only process that does this in a directory, by the kernel's lock on the directory itself: nothing is left
    there, however the process ends. Where the file system locks no directories, `held` with the file `fallback`.

    Raises RunInUse where another process does not end within `wait_s`, and KeepError where there is no directory.
    """
    with disk_errors(directory):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _locks_directory(handle, directory, what, wait_s):
            yield
            return
    finally:
        os.close(handle)
    with held(fallback.parent, what=what, name=fallback.name, wait_s=wait_s):
        yield


def _locks_directory(handle: int, directory: Path, what: str, wait_s: float) -> bool:
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise _in_use(directory / FILE, what, None) from error
            time.sleep(_LOOK_S)
        except OSError as error:
            if error.errno not in (*_WITHOUT_LOCKS, errno.EBADF):
                with disk_errors(directory):
                    raise
            return False
        else:
            return True


def sweep(directory: Path, *names: str) -> None:
    """Remove files of locks that a killed process of this machine has left; one that is held, or that another machine
    may hold, stays. Whatever cannot be removed stays, too: it does no harm."""
    for name in names:
        with suppress(OSError):
            _sweep(directory / name)


def _sweep(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = _read(file)
        # The kernel's lock is known in all PID namespaces: one in another that does not hold it is gone.
        if (owner is None or owner.state in ("gone", "hidden")) and _is_still(handle, file):
            os.unlink(file)
    finally:
        os.close(handle)


def _acquire(file: Path, what: str, wait_s: float) -> int:
    """Return a handle of the file, locked."""
    until = time.monotonic() + wait_s
    while True:
        try:
            handle = _try_acquire(file, what, careful=not wait_s)
        except RunInUse:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_S)
            continue
        if handle is not None:
            return handle


def _try_acquire(file: Path, what: str, *, careful: bool) -> int | None:
    """None where its last owner has removed the file meanwhile: then another file has its name, or will."""
    with disk_errors(file):
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(handle, file, what, careful=careful)
        if _is_still(handle, file):
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _lock(handle: int, file: Path, what: str, *, careful: bool) -> None:
    for last in (*[False] * (_TRIES - 1), True):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if last:
                raise _in_use(file, what, _read(file)) from error
            time.sleep(_PAUSE_S)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                with disk_errors(file):
                    raise
            return _refuse(file, what, "running", "unknown", "hidden")
        else:
            return _refuse(file, what, "unknown") if careful else None
    return None


def _refuse(file: Path, what: str, *states: ProcessState) -> None:
    """Raise RunInUse where the owner that the file names is in one of these states."""
    other = _read(file)
    if other and other.state in states:
        raise _in_use(file, what, other)


def _is_still(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def _read(file: Path) -> Holder | None:
    """Return None where there is no file, and where its content is not whole."""
    try:
        return Holder(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _in_use(file: Path, what: str, other: Holder | None) -> RunInUse:
    unsure = other is not None and other.state in ("unknown", "hidden")
    return RunInUse(
        f"another process {'may be' if unsure else 'is'} writing to this {what}",
        where=path_text(file.parent),
        got=str(other) if other else "one that has not said its name",
        allowed=f"one process for one {what}",
        next_step="wait for it, or stop it with Ctrl-C; what it did until then is kept, and can be resumed"
        + (f". If that process is gone: rm {path_text(file)}" if unsure else ""),
    )
