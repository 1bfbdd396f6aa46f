"""Causes that are planted while the tool runs, and what a trace must name largest then.

Each is planted for as long as its context lasts, and undone whatever happens.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import slow_flush
from disks import MIB, Disks
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from sweeps import sweep
from waiting import wait_until

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")
THROTTLE_BYTES = THROTTLE.with_name("blkio.throttle.read_bps_device")
READS_PER_S = 400
FLUSH_S = 0.02
HOGS = 4
"""A processor."""
MOST_AT_ONCE = 50
"""Diagnostic blocks of one run."""
IMAGE = {"type": "ext4", "image": "256MiB"}
JOB = {"tool": "fio", "size": "32MiB", "time_based": True, "runtime": "500ms", "bs": "4KiB"}

Plant = Callable[[ExitStack, Path, bool], dict[str, Any]]
"""Plants a cause until the stack is closed, with files in a directory of its own; with False all but the cause itself.
Gives the file system to measure."""


@dataclass(frozen=True)
class Cause:
    """A cause, how it is planted, and what must be found."""

    name: str
    plant: Plant
    job: dict[str, Any]
    operation: str
    largest: str
    by: Literal["layer", "through"] = "layer"
    does: str = ""
    """For the table in the docs."""


def parts_of(run: Run, cause: Cause) -> list[dict[str, float]]:
    """Return the parts of the mean latency of the operation, each as a share of the whole, for each diagnostic trial;
    none where no split of it is shown. With `through`, all that is waited for on behalf of the journal is one part."""
    rows = run.why.layers
    rows = rows[(rows["operation"] == cause.operation) & (rows["statistic"] == "mean")]
    by_cause = (
        rows["through"].where(rows["through"] != "own", rows["layer"]) if cause.by == "through" else rows["layer"]
    )
    seconds = {str(trial): each for trial, each in rows.assign(part=by_cause).groupby("trial_id")}
    diagnostic = map(str, run.trials.loc[run.trials["diagnostic"], "trial_id"])
    named = (seconds[trial].groupby("part")["seconds"].sum() if trial in seconds else None for trial in diagnostic)
    return [{} if each is None else (each / each.sum()).to_dict() for each in named]


def largest(parts: dict[str, float]) -> str:
    """Return the name of the largest part; '' where there is none."""
    return max(parts, key=parts.__getitem__, default="")


def explained_run(cause: Cause, trials: int, results: Path, *, there: bool = True) -> Run:
    """Run a sweep with so many diagnostic trials while the cause is there, or without it."""
    with ExitStack() as undo:
        place = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="mountlab-cause-", dir="/dev/shm")))
        filesystem = cause.plant(undo, place, there)
        resolved = sweep(
            filesystems={"planted": filesystem},
            workloads={"job": {**JOB, **cause.job}},
            design={"repeats": 1, "explain": trials},
        )
        return store.load_run(workflow.run(resolved, results=results))


def mounted(undo: ExitStack, place: Path, *, backing: Path | None = None) -> tuple[str, Path]:
    """Make an ext4 of our own on a loop device of our own. Gives the device, and where it is mounted."""
    disks = Disks(place, undo)
    device = disks.loop(backing, size=256 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", device], check=True)
    return device, disks.mount(device)


def measured(mount: Path) -> dict[str, Any]:
    return {"type": "dir", "path": str(mount)}


# --- the causes -------------------------------------------------------------------------------------------------------


def throttled(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """The controller of block I/O holds back the reads of the device."""
    return limited(undo, place, THROTTLE, READS_PER_S if there else 0)


def limited(undo: ExitStack, place: Path, limit: Path, per_s: int) -> dict[str, Any]:
    """A file system whose device may read no more than so many times, or bytes, a second; 0: as it likes."""
    if not limit.exists():
        pytest.skip(f"needs {limit}: the blkio controller of cgroup v1, mounted there")
    device, mount = mounted(undo, place)
    status = os.stat(device)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    undo.callback(limit.write_text, f"{number} 0")
    limit.write_text(f"{number} {per_s}")
    return measured(mount)


def flushing_slowly(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """The image of the device lies on a file system whose flushes take 20 ms."""
    if not Path("/dev/fuse").exists():
        pytest.skip("needs /dev/fuse")
    _, mount = mounted(undo, place, backing=undo.enter_context(slow_image(place, FLUSH_S if there else 0.0)))
    return measured(mount)


@contextmanager
def slow_image(place: Path, flush_s: float) -> Iterator[Path]:
    """A file whose flushes take so long, as long as the context lasts."""
    backing, mount = place / "backing", place / "slow"
    mount.mkdir()
    with backing.open("xb") as file:
        file.truncate(256 * MIB)
    served = subprocess.Popen([sys.executable, slow_flush.__file__, str(mount), str(backing), str(flush_s)])
    try:
        ready = Path(f"{backing}.ready")
        wait_until("the file system", ready.exists, ended=lambda: served.poll() is not None and "it has ended")
        yield mount / slow_flush.FILE
    finally:
        subprocess.run(["umount", str(mount)], check=False)
        ended(served)


def hogged(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """Others want each processor. Each is a session of its own: the kernel may share out a processor by sessions."""
    keep_busy(undo, HOGS * there, "nice", "-n", "-5")
    return IMAGE


def keep_busy(undo: ExitStack, loops: int, *priority: str) -> None:
    """Run so many busy loops a processor until the stack is closed. `priority`: the words that give them theirs."""
    for _ in range(loops * (os.cpu_count() or 1)):
        words = [*priority, "sh", "-c", "while :; do :; done"]
        undo.callback(ended, subprocess.Popen(words, start_new_session=True))


COMMITTING = """
import glob, os, sys, time
while True:
    for path in glob.glob(sys.argv[1]):
        file = os.open(path, os.O_RDWR)
        size = os.fstat(file).st_size
        while os.fstat(file).st_nlink:
            size += 1
            os.ftruncate(file, size)
            time.sleep(0.00002)
        os.close(file)
    time.sleep(0.01)
"""
APPENDING = """
import glob, os, sys, threading, time
most, block = 64 << 20, bytes(1 << 20)
def append(path):
    with open(path, "ab", buffering=0) as file:
        while os.fstat(file.fileno()).st_nlink:
            file.write(block)
            if file.tell() > most:
                file.truncate(1 << 20)
while True:
    for path in glob.glob(sys.argv[1]):
        others = [threading.Thread(target=append, args=[path]) for _ in range(15)]
        for each in others: each.start()
        for each in others: each.join()
    time.sleep(0.01)
"""


def committing(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """Another process changes the size of the tool's file again and again. So each fdatasync has to commit the journal,
    which it has not where only data changed."""
    _, mount = mounted(undo, place)
    if there:
        undo.callback(ended, subprocess.Popen([sys.executable, "-c", COMMITTING, files_of_fio(mount)]))
    return measured(mount)


def contended(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """Fifteen others append to the file that the tool appends to."""
    _, mount = mounted(undo, place)
    if there:
        undo.callback(ended, subprocess.Popen([sys.executable, "-c", APPENDING, files_of_fio(mount)]))
    return measured(mount)


def files_of_fio(mount: Path) -> str:
    """A pattern: a sweep does not name fio's file."""
    return f"{mount}/mountlab-*/*/mountlab.0.0"


def ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


CAUSES = (
    Cause("throttled device", throttled, {"rw": "randread", "direct": True}, "read", "queue",
        does=f"the blkio controller lets the device read {READS_PER_S} times a second"),
    Cause("slow flush", flushing_slowly, {"rw": "randwrite", "fsync": 1}, "sync", "flush",
        does=f"the image lies on a FUSE file system whose flushes take {FLUSH_S * 1000:.0f} ms"),
    Cause("processor hog", hogged, {"rw": "write", "bs": "256KiB"}, "write", "run_queue",
        does=f"{HOGS} busy loops a processor at nice -5, buffered writes"),
    Cause("frequent commits", committing, {"rw": "randwrite", "overwrite": True, "fdatasync": 1}, "sync", "journal",
        by="through", does="another process changes the size of the tool's file: each fdatasync commits the journal"),
    Cause("lock contention", contended, {"rw": "write", "bs": "1MiB", "size": "16MiB"}, "write", "lock",
        does="16 that append to one file"),
)  # fmt: skip
