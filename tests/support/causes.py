"""Causes that are planted on one of two file systems while a tool runs on both in turn.

Each is planted for as long as its context lasts, and undone whatever happens. cause_parts has what counts as right.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neighbours
import pytest
import slow_device
import small_files
from disks import MIB, Disks
from mountlab.core.units import parse_seconds
from mountlab.runner import workflow
from sweeps import CLOCK, as_is
from waiting import wait_until

CGROUPS = Path(neighbours.CGROUPS)
THROTTLE = CGROUPS / "blkio/blkio.throttle.read_iops_device"
THROTTLE_BYTES = THROTTLE.with_name("blkio.throttle.read_bps_device")
READS_PER_S, WRITTEN_PER_S, HOME_WRITES_PER_S = 400, 8 * MIB, 1000
JOURNAL_MIB = 2
HOGS = 4
"""A processor."""
LOAD = 4
BUSY = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "status=none")
"""Computes for ever, and enters the kernel all the time. A loop that never does leaves its processor by the next tick
of the timer, where what it keeps waiting was woken by another processor (PREEMPT_LAZY)."""
LIBC = ctypes.CDLL(None, use_errno=True)
BDI = {"strict_limit": 0, "max_ratio_fine": 1_000_000}
"""Limits of dirty pages that a loop device has by itself. They outlive what it is used for."""
BLOCK, KEEP_SIZE, PUNCH_HOLE = 4096, 1, 2
PLAIN, PLANTED, WORKLOAD = "plain", "planted", "job"
JOB = {"tool": "fio", "size": "32MiB", "time_based": True, "runtime": "500ms", "bs": "4KiB", **CLOCK}
READS = {"rw": "randread", "direct": True}
WRITES = {"rw": "randwrite", "direct": True, "overwrite": True}
PACKED = {"buffer_compress_percentage": 50, "fallocate": "none"}
SYNCS = {"rw": "write", "bs": "16KiB", "size": "16MiB", "fsync": 1}

Plant = Callable[[ExitStack, Path, bool], dict[str, Any]]
"""Plants a cause until the stack is closed, with files in a directory of its own; with False all but the cause itself.
Gives the file system to measure."""


@dataclass(frozen=True)
class Cause:
    """A cause, how it is planted, and the workload that meets it."""

    name: str
    """Of cause_parts.EXPECTED."""
    plant: Plant
    job: dict[str, Any]
    does: str
    """For the table in the docs."""
    interrupts: bool = False
    """Whether requests end in an interrupt, which no trace shows where the kernel hides idle processors."""

    @property
    def is_mapped(self) -> bool:
        """Whether it is met in page faults, which no system call shows: no split is right."""
        return bool(self.job.get("ioengine") == "mmap")


def compared(cause: Cause, results: Path, measured: Callable[[], None], *, times: int, **design: Any) -> Path:
    """Run a sweep of two file systems that are equal but for the cause. Gives where the run is kept. `measured` is
    called when its last trial has ended, before its traces are read; `times`: how many times as long a trial of fio is
    as on a quiet machine."""
    with ExitStack() as undo:
        place = undo.enter_context(own_place())
        filesystems = {}
        for name in (PLAIN, PLANTED):
            (place / name).mkdir()
            filesystems[name] = cause.plant(undo, place / name, name == PLANTED)
        job = cause.job if "tool" in cause.job else {**JOB, **cause.job}
        if "runtime" in job:
            job = {**job, "runtime": f"{times * parse_seconds(job['runtime']):g}s"}
        resolved = as_is(
            name="cause",
            filesystems=filesystems,
            workloads={WORKLOAD: job},
            design={"repeats": 1, **design},
            baseline=PLAIN,
        )
        return workflow.run(resolved, results=results, measured=measured)


# --- what they are made of --------------------------------------------------------------------------------------------


@contextmanager
def own_place(root: str = "/dev/shm") -> Iterator[Path]:
    """A directory of our own, removed with the context."""
    with tempfile.TemporaryDirectory(prefix="mountlab-cause-", dir=root) as place:
        yield Path(place)


def mounted(
    undo: ExitStack, place: Path, *, backing: Path | None = None, kind: str = "ext4", size: int = 256,
    mkfs: tuple[str, ...] = (), options: str = "defaults", on_disk: bool = False,
) -> tuple[str, Path]:  # fmt: skip
    """Make a file system of our own, of so many MiB, on a loop device of our own. Gives the device, and where it is
    mounted. `on_disk`: the image lies on the machine's disk, and not in memory."""
    if on_disk:
        place = undo.enter_context(own_place("/var/tmp"))
    disks = Disks(place, undo)
    device = disks.loop(backing, *(("--direct-io=on",) if on_disk else ()), size=size * MIB)
    limits = Path("/sys/class/bdi", number_of(device))
    for name, default in BDI.items():
        if (limits / name).exists() and int((limits / name).read_text()) != default:
            raise RuntimeError(f"{limits / name} is not {default}: a limit of another use of {device} is left there")
    always = {"ext4": ("-q", "-E", "nodiscard,lazy_itable_init=0"), "btrfs": ("-q", "-f", "-K")}
    subprocess.run([f"mkfs.{kind}", *always[kind], *mkfs, device], check=True)
    return device, disks.mount(device, "-o", options)


def directory(mount: Path) -> dict[str, Any]:
    return {"type": "dir", "path": str(mount)}


def set_to(undo: ExitStack, path: Path, value: object, after: object = None) -> None:
    """Write a setting of the kernel, and `after` (None: its old value) when the stack is closed."""
    if not path.exists():
        pytest.skip(f"needs {path}: this kernel, or the version of its control groups, has none")
    undo.callback(path.write_text, path.read_text() if after is None else str(after))
    path.write_text(str(value))


def grouped(undo: ExitStack, controller: str, name: str, values: Mapping[str, object]) -> Path:
    """Make a control group (version 1) with these values in its files. Gives the file of its threads."""
    tasks = CGROUPS / controller / name / "tasks"
    if not (CGROUPS / controller / "tasks").exists():
        pytest.skip(f"needs {CGROUPS / controller}: the controller of control groups v1, mounted there")
    tasks.parent.mkdir()
    undo.callback(tasks.parent.rmdir)
    for file, value in values.items():
        tasks.with_name(file).write_text(str(value))
    return tasks


def number_of(device: str) -> str:
    """'7:3', as the kernel's files name a device."""
    status = os.stat(device)
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def held_back(undo: ExitStack, device: str, limit: Path, per_s: int) -> None:
    """Limit a device for all, 0: not at all; until the stack is closed."""
    set_to(undo, limit, f"{number_of(device)} {per_s}", after=f"{number_of(device)} 0")


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process of ours; it has two seconds to undo what it did."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    process.kill()
    process.wait()


def beside(undo: ExitStack, work: Callable[..., None], *values: object, words: tuple[str, ...] = ()) -> None:
    """Run one of the neighbours, in a session of its own, until the stack is closed. `words`: a program to start it."""
    argv = [*words, sys.executable, neighbours.__file__, work.__name__, *map(str, values)]
    undo.callback(ended, subprocess.Popen(argv, start_new_session=True))


def keep_busy(undo: ExitStack, tasks: Path) -> None:
    """Run a busy loop on each processor in a control group, whose file of its threads is `tasks`."""
    for processor in os.sched_getaffinity(0):
        loop = subprocess.Popen(BUSY, start_new_session=True)
        undo.callback(ended, loop)
        os.sched_setaffinity(loop.pid, {processor})
        tasks.write_text(str(loop.pid))


@contextmanager
def busy_at_idle_priority() -> Iterator[None]:
    """No processor is idle, and whatever wants one gets it at once. The group is idle, and not only its loops: as a
    session of its own each would have as much of a processor as a tool in another one (sched_autogroup_enabled)."""
    with ExitStack() as undo:
        keep_busy(undo, grouped(undo, "cpu", f"mountlab-idle-{os.getpid()}", {"cpu.idle": 1}))
        yield


@contextmanager
def busy_machine() -> Iterator[None]:
    """A load of 4: processes that compute, write, read and remove files on a file system of their own."""
    with ExitStack() as undo:
        _, mount = mounted(undo, undo.enter_context(own_place()), on_disk=True)
        for _ in range(LOAD):
            beside(undo, neighbours.compiling, mount)
        yield


@contextmanager
def slow_image(place: Path, delays_s: tuple[float, float, float]) -> Iterator[Path]:
    """A file whose reads, writes and flushes take so long, as long as the context lasts."""
    backing, mount = place / "backing", place / "slow"
    mount.mkdir()
    with backing.open("xb") as file:
        file.truncate(256 * MIB)
    served = subprocess.Popen([sys.executable, slow_device.__file__, str(mount), str(backing), *map(str, delays_s)])
    try:
        ready = Path(f"{backing}.ready")
        wait_until("the file system", ready.exists, ended=lambda: served.poll() is not None and "it has ended")
        yield mount / slow_device.FILE
    finally:
        subprocess.run(["umount", str(mount)], check=False)
        ended(served)


def scatter_free_space(mount: Path) -> None:
    """Leave nothing free on a file system but single blocks of 4 KiB, with others in use between them."""
    free = os.statvfs(mount)
    size = free.f_bavail * free.f_frsize // BLOCK * BLOCK
    with (mount / "full").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        for at in range(0, size, 2 * BLOCK):
            if LIBC.fallocate(file.fileno(), KEEP_SIZE | PUNCH_HOLE, ctypes.c_long(at), ctypes.c_long(BLOCK)):
                raise OSError(ctypes.get_errno(), "no hole", str(mount))
    os.sync()


def own_tool(*words: object, metric: str, prepare: str = "") -> dict[str, Any]:
    """A workload of a program that is not fio, as a user writes it."""
    return {
        "tool": "command",
        "argv": shlex.join(["/usr/bin/env", "python3", "-I", "-S", small_files.__file__, *map(str, words)]),
        **({"prepare": prepare} if prepare else {}),
        "space": "64MiB",
        "time": "2s",
        "metrics": {metric: {"pattern": r"each took (\S+) s", "unit": "s"}},
    }


def created(files: int, processes: int, name_length: int) -> dict[str, Any]:
    return own_tool("create", "{directory}", files, processes, name_length, metric="operation_latency")


# --- how each is planted ----------------------------------------------------------------------------------------------


def made(without: Mapping[str, Any], planted: Mapping[str, Any], **both: Any) -> Plant:
    """A file system that mkfs makes, or mount mounts, in another way where the cause is there."""

    def plant(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
        return directory(mounted(undo, place, **both, **(planted if there else without))[1])

    return plant


def neighbour(work: Callable[..., None], *values: object, copies: int = 1, words: tuple[str, ...] = ()) -> Plant:
    """Others are at work on the file system while a trial runs on it."""

    def plant(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
        _, mount = mounted(undo, place)
        for _ in range(copies * there):
            beside(undo, work, mount, *values, words=words)
        return directory(mount)

    return plant


def device_with(settings: Mapping[str, object], **both: Any) -> Plant:
    """A file system on a device with other settings, whose paths have {name} or {number} of the device."""

    def plant(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
        device, mount = mounted(undo, place, **both)
        for path, value in settings.items() if there else ():
            set_to(undo, Path(path.format(name=Path(device).name, number=number_of(device))), value)
        return directory(mount)

    return plant


def confined(controller: str, **limits: object) -> Plant:
    """The tool runs in a control group (version 1) with limits, while it runs on the file system."""

    def plant(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
        # With data=journal the page cache has no large folios: they would make reclaim cheap.
        _, mount = mounted(undo, place, options="data=journal" if controller == "memory" else "defaults")
        if there:
            values = {name.replace("__", "."): value for name, value in limits.items()}
            tasks = grouped(undo, controller, place.parent.name, values)
            beside(undo, neighbours.moving, mount, tasks)
        return directory(mount)

    return plant


def slow(**delay_s: float) -> Plant:
    """The image of the device lies on a file system whose reads, writes or flushes take their time."""

    def plant(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
        if not Path("/dev/fuse").exists():
            pytest.skip("needs /dev/fuse")
        read, write, flush = (delay_s.get(what, 0.0) * there for what in ("read", "write", "flush"))
        _, mount = mounted(undo, place, backing=undo.enter_context(slow_image(place, (read, write, flush))))
        return directory(mount)

    return plant


def throttled(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """The controller of block I/O holds back the reads of the device."""
    return limited(undo, place, THROTTLE, READS_PER_S if there else 0)


def limited(undo: ExitStack, place: Path, limit: Path, per_s: int) -> dict[str, Any]:
    """A file system whose device may read (or write) no more than so many times, or bytes, a second; 0: as it likes."""
    device, mount = mounted(undo, place)
    held_back(undo, device, limit, per_s)
    return directory(mount)


def limited_writes(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """The controller of block I/O holds back the writes of the device."""
    return limited(undo, place, THROTTLE.with_name("blkio.throttle.write_bps_device"), WRITTEN_PER_S * there)


def fragmented(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """Files can be written in single blocks only."""
    _, mount = mounted(undo, place, size=192, on_disk=True)
    if there:
        scatter_free_space(mount)
    return directory(mount)


def slow_checkpoints(undo: ExitStack, place: Path, there: bool) -> dict[str, Any]:
    """A small journal on a device of its own; the places that its blocks are for take few writes a second."""
    journal = Disks(place, undo).loop(size=JOURNAL_MIB * MIB)
    subprocess.run(["mke2fs", "-q", "-F", *SMALL_BLOCKS, "-O", "journal_dev", journal], check=True)
    home = place / "home"
    home.mkdir()
    device, mount = mounted(undo, home, mkfs=(*SMALL_BLOCKS, "-J", f"device={journal}"))
    held_back(undo, device, THROTTLE.with_name("blkio.throttle.write_iops_device"), HOME_WRITES_PER_S * there)
    return directory(mount)


CACHED = {"rw": "read", "size": "64MiB", "cache": "warm"}
SMALL_BLOCKS = ("-b", "1024")
COPIES = HOGS * (os.cpu_count() or 1)
CAUSES = (
    Cause("write limit", limited_writes, {**SYNCS, "runtime": "1s"},
        f"the blkio controller lets the device write {WRITTEN_PER_S // MIB} MiB/s"),
    Cause("few requests", device_with({"/sys/block/{name}/queue/nr_requests": 4}, on_disk=True),
        {**READS, "bs": "32KiB", "ioengine": "libaio", "iodepth": 32}, "a queue of 4 requests, 32 reads in flight",
        interrupts=True),
    Cause("tiny journal",
        made({"mkfs": (*SMALL_BLOCKS, "-J", "size=64")}, {"mkfs": (*SMALL_BLOCKS, "-J", "size=1")}, size=512,
            on_disk=True),
        created(16000, 8, 200), "a journal of 1 MiB in place of 64, 8 processes that create files", interrupts=True),
    Cause("memory limit, buffered reads", confined("memory", memory__limit_in_bytes=25 * MIB),
        {**CACHED, "bs": "128KiB"}, "a memory cgroup of 25 MiB, a file of 64 MiB again and again"),
    Cause("memory limit, mapped reads", confined("memory", memory__limit_in_bytes=25 * MIB),
        {**CACHED, "ioengine": "mmap"}, "the same, mapped"),
    Cause("fragmented file", fragmented,
        own_tool("read", "{directory}/data", 128 * 1024, 0.5, metric="read_latency_mean",
            prepare="dd if=/dev/urandom of={directory}/data bs=1M count=24 conv=fsync"),
        "a file in pieces of 4 KiB, read from begin to end by a program", interrupts=True),
    Cause("mapped without read-ahead", device_with({"/sys/block/{name}/queue/read_ahead_kb": 0}),
        {"tool": "fio", "rw": "read", "bs": "4KiB", "ioengine": "mmap", "size": "128MiB", **CLOCK},
        "read_ahead_kb of 0, a mapped file"),
    Cause("data journalled", made({}, {"options": "data=journal"}),
        {"rw": "randwrite", "bs": "64KiB", "overwrite": True, "fdatasync": 1},
        "data=journal, overwritten data with fdatasync"),
    Cause("compression", made({}, {"options": "compress=zstd:9"}, kind="btrfs", size=512),
        {**SYNCS, "bs": "1MiB", "size": "64MiB", "runtime": "1s", **PACKED}, "btrfs compresses by zstd:9"),
    Cause("dirsync", made({}, {"options": "dirsync"}),
        created(8000, 1, 20),
        "mounted with dirsync, a program creates files"),
    Cause("no directory index", made({}, {"mkfs": ("-O", "^dir_index")}),
        created(5000, 1, 200),
        "no dir_index, 5,000 files with long names in one directory"),
    Cause("freeze pulses", neighbour(neighbours.freezing, 0.04, 0.02), WRITES,
        "the file system is frozen for 40 ms, again and again"),
    Cause("processor quota", confined("cpu", cpu__cfs_period_us=100_000, cpu__cfs_quota_us=10_000),
        {**READS, "ioengine": "libaio", "iodepth": 16, "runtime": "1s"}, "a quota of 10 % of one processor"),
    Cause("limit of dirty pages",
        device_with({"/sys/class/bdi/{number}/strict_limit": 1, "/sys/class/bdi/{number}/max_ratio_fine": 1000}),
        {"rw": "write", "bs": "64KiB"}, "the device may have 0.1 % of the dirty pages of the machine"),
    Cause("delayed reads", slow(read=0.002), READS, "the device takes 2 ms for a read (FUSE)"),
    Cause("delayed writes", slow(write=0.002), WRITES, "the device takes 2 ms for a write (FUSE)"),
    Cause("delayed flushes", slow(flush=0.02), {"rw": "randwrite", "fsync": 1},
        "the device takes 20 ms for a flush (FUSE)"),
    Cause("neighbour's syncs", neighbour(neighbours.syncing, 4, MIB // 4), SYNCS, "4 others append 256 KiB and sync"),
    Cause("checkpoint stalls", slow_checkpoints, created(12000, 4, 100),
        f"a journal of {JOURNAL_MIB} MiB, {HOME_WRITES_PER_S} writes a second to the places of its blocks"),
    Cause("throttled reads", throttled, READS,
        f"the blkio controller lets the device read {READS_PER_S} times a second"),
    Cause("processor hog", neighbour(neighbours.hogging, copies=COPIES, words=("nice", "-n", "-5")),
        {"rw": "write", "bs": "256KiB"}, f"{HOGS} busy loops a processor at nice -5, buffered writes"),
    Cause("frequent commits", neighbour(neighbours.committing), {"rw": "randwrite", "overwrite": True, "fdatasync": 1},
        "another process changes the size of the tool's file: each fdatasync commits the journal"),
    Cause("lock contention", neighbour(neighbours.appending, 15), {"rw": "write", "bs": "1MiB", "size": "16MiB"},
        "16 that append to one file"),
)  # fmt: skip
