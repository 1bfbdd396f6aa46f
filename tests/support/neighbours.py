"""What others do while a trial runs on one file system: `python neighbours.py WHAT MOUNT [VALUE ...]`.

Each waits until a trial has its directory below the mount point, is at work until that is gone, and waits again. So it
disturbs one of two file systems that are measured in turn.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

PAUSE_S = 0.005
FREEZE, THAW = 0xC0045877, 0xC0045878
"""FIFREEZE and FITHAW of include/uapi/linux/fs.h."""
CGROUPS = "/sys/fs/cgroup"
MIB = 2**20


def trials(mount: str, below: str = "") -> Iterator[Path]:
    """Yield the directory of each trial once it is there, or a file in it, for ever."""
    while True:
        for path in glob.glob(f"{mount}/mountlab-*/*{below}"):
            with suppress(FileNotFoundError):
                yield Path(path)
        time.sleep(PAUSE_S)


def committing(mount: str) -> None:
    """Change the size of fio's file again and again."""
    for path in trials(mount, "/mountlab.0.0"):
        with path.open("r+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            while os.fstat(file.fileno()).st_nlink:
                size += 1
                file.truncate(size)
                time.sleep(0.00002)


def appending(mount: str, writers: str) -> None:
    """Append to fio's file, in so many threads."""

    def append(path: Path) -> None:
        with suppress(FileNotFoundError), path.open("ab", buffering=0) as file:
            while os.fstat(file.fileno()).st_nlink:
                file.write(bytes(MIB))
                if file.tell() > 64 * MIB:
                    file.truncate(MIB)

    for path in trials(mount, "/mountlab.0.0"):
        _in_threads(int(writers), append, path)


def syncing(mount: str, writers: str, size: str) -> None:
    """Append so many bytes to files of our own and sync them, in so many threads."""

    def append(trial: Path) -> None:
        path = Path(mount, f"neighbour-{threading.get_native_id()}")
        with path.open("wb", buffering=0) as file:
            while trial.exists():
                file.write(bytes(int(size)))
                os.fsync(file.fileno())
                if file.tell() > 16 * MIB:
                    file.truncate(0)
                    file.seek(0)
        path.unlink()

    for trial in trials(mount):
        _in_threads(int(writers), append, trial)


def freezing(mount: str, frozen_s: str, pause_s: str) -> None:
    """Freeze the file system again and again, as snapshots do. It is thawed before we end."""
    at = os.open(mount, os.O_RDONLY)
    for trial in trials(mount):
        while trial.exists():
            fcntl.ioctl(at, FREEZE, 0)
            try:
                time.sleep(float(frozen_s))
            finally:
                fcntl.ioctl(at, THAW, 0)
            time.sleep(float(pause_s))


def hogging(mount: str) -> None:
    """Want a processor all the time."""
    for trial in trials(mount):
        while trial.exists():
            for _ in range(100_000):
                pass


def moving(mount: str, tasks: str) -> None:
    """Move the tool of each trial, and so all that it starts, into another control group: `tasks` is its file."""
    for trial in trials(mount):
        run, members, moved = trial.parent.name.rpartition("-")[0], list[str](), set[str]()
        while trial.exists():
            members = members or glob.glob(f"{CGROUPS}/*/**/{run}.{trial.name}.*/[ct]*s", recursive=True)
            for path in members:
                if path.endswith(("/cgroup.threads", "/tasks")):
                    for thread in set(_lines(path)) - moved:
                        with suppress(OSError):  # it has ended
                            Path(tasks).write_text(thread)
                        moved.add(thread)
            time.sleep(PAUSE_S / 5)


def _lines(path: str) -> list[str]:
    with suppress(OSError):  # the group is gone
        return Path(path).read_text().split()
    return []


def compiling(mount: str) -> None:
    """Compute, write, read and remove files for ever, as a build does. `mount` is a directory of our own."""
    path, turn = Path(mount, str(os.getpid())), 0
    data = os.urandom(MIB // 4)
    while True:
        for _ in range(50):
            data = hashlib.sha256(data).digest() + data[32:]
        turn += 1
        with path.open("wb") as file:
            file.write(data)
            if turn % 8 == 0:
                os.fsync(file.fileno())
        path.read_bytes()
        path.unlink()


def _in_threads(number: int, work: Callable[[Path], None], path: Path) -> None:
    threads = [threading.Thread(target=work, args=(path,)) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


NEIGHBOURS = {work.__name__: work for work in (committing, appending, syncing, freezing, hogging, moving, compiling)}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that `finally` is done
    NEIGHBOURS[sys.argv[1]](*sys.argv[2:])
