"""Options that the kernel shows and that do nothing: what devices and files say, against what Mountlab says.

Each case measures the same thing with the option and without it. Where both are equal the option did nothing, and
Mountlab must say so; where they differ it must not.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mountlab.core.model import Filesystem
from mountlab.filesystems.effect import effects
from mountlab.report import sections
from mountlab.results import store
from mountlab.runner import workflow
from mountlab.sweep.plan_text import foreseen
from option_bench import IMAGE, MAKE, Bench, local, parse, patiently, refine
from ownbox import own_box
from pages import Page
from sweeps import as_is
from waiting import happens

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("losetup"),
    pytest.mark.requires_program("filefrag"),
]
WRITES = 100
PATIENCE_S = 8.0
"""For what the kernel does each second by itself, on a machine that others keep busy."""
NOT_LAZY = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
"""No thread of the kernel writes inode tables meanwhile."""


@dataclass
class Disk:
    """A loop device of ours, and what the kernel counted on it."""

    device: str
    directory: Path

    @property
    def mountpoint(self) -> Path:
        return self.directory / "mnt"

    def written(self) -> int:
        """Write requests that the device has completed (Documentation/block/stat.rst)."""
        return int(Path(f"/sys/block/{self.device.removeprefix('/dev/')}/stat").read_text().split()[4])

    def sectors(self) -> int:
        return int(Path(f"/sys/block/{self.device.removeprefix('/dev/')}/stat").read_text().split()[6])

    def settle(self) -> None:
        must("sync", "-f", str(self.mountpoint))

    def wait_for_quiet(self) -> None:
        """What mkfs and earlier writes left to the kernel comes by itself, later on a busy machine."""
        for _ in range(20):
            before = self.written()
            time.sleep(1.5)
            if self.written() == before:
                return


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    directory = tmp_path_factory.mktemp("without-effect")
    (directory / "mnt").mkdir()
    image = directory / "disk.img"
    subprocess.run(["truncate", "-s", str(IMAGE), str(image)], check=True)
    attached = local("losetup", "--direct-io=on", "--find", "--show", str(image))
    if attached.status:
        attached = local("losetup", "--find", "--show", str(image))
    if attached.status:
        pytest.skip(f"no loop device: {attached.error.strip()}")
    yield Disk(attached.out.strip(), directory)
    local("losetup", "-d", attached.out.strip())


@contextmanager
def mounted(disk: Disk, kind: str, mkfs: tuple[str, ...], options: str) -> Iterator[Path]:
    """A new file system on the device; for an overlay its layers lie on an ext4 there."""
    made = "ext4" if kind == "overlay" else kind
    patiently(local, *MAKE[made], *(NOT_LAZY if made == "ext4" else ()), *mkfs, disk.device)
    below, undo = disk.directory / "below", [("umount", str(disk.mountpoint))]
    asked = [options] if options else []
    if kind == "overlay":
        below.mkdir(exist_ok=True)
        must("mount", "-o", "commit=1", disk.device, str(below))
        undo.append(("umount", str(below)))
        layers = {name: below / name for name in ("lower", "upper", "work")}
        for layer in layers.values():
            layer.mkdir()
        asked.insert(0, ",".join(f"{name}dir={path}" for name, path in layers.items()))
    source = "mountlab" if kind == "overlay" else disk.device
    try:
        given = ("-o", ",".join(asked)) if asked else ()
        done = local("mount", "-t", kind, *given, source, str(disk.mountpoint))
        if done.status:
            undo.pop(0)
            pytest.skip(f"this kernel does not mount {kind} with {options}: {done.error.strip()}")
        yield disk.mountpoint
    finally:
        for argv in undo:
            must(*argv)


def must(*argv: str) -> str:
    done = local(*argv)
    assert done.status == 0, f"{' '.join(argv)}: {done.error}"
    return done.out


# --- what is measured -------------------------------------------------------------------------------------------------


def compresses(disk: Disk) -> bool:
    """Whether a file of one repeated word lies in compressed extents."""
    path = disk.mountpoint / "data"
    path.write_bytes(b"mountlab " * 2**19)
    disk.settle()
    return "encoded" in must("filefrag", "-v", str(path))


def writes_at_once(disk: Disk) -> bool:
    """Whether writes reach the device without a flush."""
    with (disk.mountpoint / "data").open("wb", buffering=0) as file:
        disk.settle()
        before = disk.written()
        for _ in range(WRITES):
            file.write(b"a" * 4096)
        return disk.written() - before >= WRITES


def creates_at_once(disk: Disk) -> bool:
    """Whether new names reach the device without a flush."""
    (disk.mountpoint / "names").mkdir()
    disk.settle()
    before = disk.written()
    for number in range(WRITES):
        (disk.mountpoint / "names" / str(number)).touch()
    return disk.written() - before >= WRITES


def writes_times(disk: Disk) -> bool:
    """Whether the times of access reach the device by themselves, with a commit each second."""
    path = disk.mountpoint / "read"
    path.write_bytes(b"a" * 100)
    disk.settle()
    disk.wait_for_quiet()
    before = disk.written()

    def written_after_a_read() -> bool:
        path.read_bytes()
        time.sleep(0.25)
        return disk.written() > before

    return happens(written_after_a_read, PATIENCE_S)


def changes_the_inode(disk: Disk) -> bool:
    """Whether a read changes the inode at once. A `sync` of another worker's trial writes what lazytime has kept in
    memory, but hardly five times in a row at that moment."""
    return all(changed_at_once(disk) for _ in range(5))


def changed_at_once(disk: Disk) -> bool:
    """Whether a read changes the inode's block of an ext4, or of that below an overlay, at once: lazytime keeps the
    time of access in memory.

    The device shows a block as soon as the file system has changed it, so that nobody's `sync` comes in between.
    """
    path = disk.mountpoint / "read"
    path.write_bytes(b"a" * 100)
    os.utime(path, (0, 0))
    disk.settle()
    shown = "stat /upper/read" if (disk.directory / "below").is_mount() else "stat /read"
    before = must("debugfs", "-R", shown, disk.device)
    assert " atime: 0x00000000:" in before
    path.read_bytes()
    return must("debugfs", "-R", shown, disk.device) != before


def writes_replaced_files(disk: Disk) -> bool:
    """Whether the data of a file that replaces another one reach the device with the rename."""
    (disk.mountpoint / "file").write_bytes(b"old")
    disk.settle()
    before = disk.sectors()
    for _ in range(10):
        (disk.mountpoint / "new").write_bytes(b"q" * 65536)
        (disk.mountpoint / "new").rename(disk.mountpoint / "file")
    # The rename starts the writes and does not wait for them; by itself ext4 writes after 5 s.
    return happens(lambda: disk.sectors() - before >= 5 * 128, 4.0)


def asks_for_large_io(disk: Disk) -> bool:
    """Whether stat advises more than a page at once."""
    return disk.mountpoint.stat().st_blksize > 4096


def commits_asynchronously(disk: Disk) -> bool:
    """Whether the journal's own super block has checksums, as asynchronous commits need them."""
    return "journal_checksum" in must("dumpe2fs", "-h", disk.device)


# --- the cases --------------------------------------------------------------------------------------------------------

# Columns: type | words for mkfs | other options | option | what is measured | whether the option does nothing
CASES: list[tuple[str, str, str, str, Callable[[Disk], bool], bool]] = [
    ("btrfs", "", "", "compress=zstd", compresses, False),
    ("btrfs", "", "nodatasum,{}", "compress=zstd", compresses, False),
    ("btrfs", "", "{},nodatasum", "compress=zstd", compresses, True),
    ("btrfs", "", "{},nodatasum", "compress-force=zstd", compresses, True),
    ("btrfs", "", "{},nodatasum", "compress-force=lzo", compresses, True),
    ("btrfs", "", "", "sync", writes_at_once, False),
    ("btrfs", "", "", "dirsync", creates_at_once, True),
    ("btrfs", "", "strictatime,commit=1,{}", "lazytime", writes_times, True),
    ("ext4", "", "", "sync", writes_at_once, False),
    ("ext4", "", "", "dirsync", creates_at_once, False),
    ("ext4", "", "strictatime,{}", "lazytime", changes_the_inode, False),
    ("ext4", "", "", "noauto_da_alloc", writes_replaced_files, False),
    ("ext4", "", "nodelalloc,{}", "noauto_da_alloc", writes_replaced_files, True),
    ("ext4", "", "", "nojournal_checksum", commits_asynchronously, False),
    ("ext4", "", "journal_async_commit,data=writeback,{}", "nojournal_checksum", commits_asynchronously, True),
    ("xfs", "", "", "dirsync", creates_at_once, False),
    ("xfs", "", "", "largeio", asks_for_large_io, True),
    ("xfs", "", "allocsize=1m,{}", "largeio", asks_for_large_io, False),
    ("xfs", "-d su=64k,sw=4", "", "largeio", asks_for_large_io, False),
    ("overlay", "", "", "sync", writes_at_once, True),
    ("overlay", "", "", "dirsync", creates_at_once, True),
    ("overlay", "", "strictatime,{}", "lazytime", changes_the_inode, True),
]


AGAIN = {
    ("btrfs", "compress-force=zstd"), ("btrfs", "compress-force=lzo"), ("btrfs", "lazytime"), ("overlay", "dirsync"),
    ("btrfs", "sync"), ("ext4", "dirsync"), ("xfs", "dirsync"), ("overlay", "lazytime"), ("xfs", "largeio"),
    ("btrfs", "dirsync"), ("ext4", "lazytime"), ("ext4", "noauto_da_alloc"), ("ext4", "nojournal_checksum"),
}  # fmt: skip
"""What other cases measure too, of another type or word."""


@pytest.mark.parametrize(
    ("kind", "mkfs", "others", "option", "measure", "idle"),
    [
        pytest.param(
            *case,
            id=f"{case[0]}-{case[1]}{case[2].format(case[3]) or case[3]}",
            marks=[pytest.mark.long] if (case[0], case[3]) in AGAIN else [],
        )
        for case in CASES
    ],
)
def test_an_option_that_does_nothing_is_said_to_do_nothing(
    disk: Disk, kind: str, mkfs: str, others: str, option: str, measure: Callable[[Disk], bool], idle: bool
) -> None:
    words = tuple(mkfs.split())
    asked = (others or "{}").format(option)
    without = ",".join(word for word in asked.split(",") if word != option)

    def measured_under(options: str) -> bool:
        with mounted(disk, kind, words, options):
            return measure(disk)

    assert (measured_under(without) == measured_under(asked)) is idle
    assert state_of(disk, kind, words, asked, option) == ("without effect" if idle else "in effect")


def state_of(disk: Disk, kind: str, mkfs: tuple[str, ...], asked: str, option: str) -> str:
    """What Mountlab says about the option, by the same scripts that a run uses."""
    bench = Bench(local, str(disk.directory), disk.device, ())
    control = bench.control(kind)
    request = parse(refine(f"{kind} | {' '.join(mkfs)} | {asked}"))
    status, kept = bench.ask(request)
    assert status == 0, kept
    fs = Filesystem(name=kind, type=kind, mkfs=mkfs, options=(asked,))
    rows = {row.option: row for row in effects(fs, kept, {**control, "alone.txt": bench.alone(request)})}
    return rows[option].state


# --- in a whole run ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.requires_program("sshd")
def test_a_run_says_it_in_plan_caveat_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)
    image = {"image": "256MiB"}
    plain = {"type": "btrfs", **image, "mkfs": ["-K"], "options": ["compress=zstd", "nodatasum"]}
    filesystems = {
        "checked": plain,
        "over": {"type": "overlay", "over": {"type": "ext4", **image}, "options": ["sync"]},
        "nodes": {"type": "tmpfs", "size": "64MiB", "options": ["mpol=interleave:0,0", "user"]},
    }
    resolved = as_is(filesystems=filesystems, design={"repeats": 1, "on_ineffective": "caveat"})
    with workflow.planned(resolved, results=tmp_path / "results") as session:
        planned = "\n".join(foreseen(session.plan, session.facts))
    assert "checked: compress=zstd: will be shown, but without effect" in planned
    assert "over: sync: will be shown, but without effect" in planned
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    assert set(run.trials["status"]) == {"ok"}, run.trials[["cell", "reason"]]
    states = {(row.filesystem, row.option): row.state for row in run.options}
    assert states["checked", "compress=zstd"] == states["over", "sync"] == "without effect"
    assert states["checked", "-K"] == "not visible"
    assert states["nodes", "mpol=interleave:0,0"] == states["nodes", "user"] == "in effect"
    said = {each.subject: each.message for each in run.caveats if each.code == "option-not-in-effect"}
    assert set(said) == {"checked", "over"}
    assert "is shown, but without effect here" in said["over"]
    assert (run.path / "raw" / "again-checked" / "evidence.txt").exists()
    assert "shown, but without effect here" in Page(sections.options(run)._repr_html_()).words
