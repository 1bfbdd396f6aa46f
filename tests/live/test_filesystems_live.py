"""Every family of file systems, for real: it is made, proven, measured by one trial, and gone afterwards."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from disks import BTRFS_SIZE, Disks, command
from installed_programs import program
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.evidence import device_levels, mount_of
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import CLOCK, EXT4, RAMFS, TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]


HERE: dict[str, dict[str, Any]] = {
    "tmpfs": {**TMPFS, "options": ["noatime", "nodiratime", "nr_inodes=10000", "huge=never", "mpol=local"]},
    "ramfs": RAMFS,
    "shmfs": {"type": "shmfs", "size": "64MiB"},
    "shm": {"type": "shmfs"},
    "hugetlbfs": {"type": "hugetlbfs", "size": "64MiB"},
    "ext4-journal": {**EXT4, "options": ["noatime", "data=journal"]},
    "ext4-async": {**EXT4, "options": ["data=writeback", "journal_async_commit"]},
    "ext4-nobarrier": {**EXT4, "options": ["nobarrier", "commit=30", "lazytime"]},
    "ext4-made": {**EXT4, "mkfs": ["-b", "4096", "-I", "512", "-O", "bigalloc", "-E", "stride=16,stripe_width=64"]},
    "ext4-lazy": {"type": "ext4", "image": "128MiB", "mkfs": ["-E", "lazy_itable_init=1,lazy_journal_init=1"]},
    "ext4-tuned": {"type": "ext4", "image": "128MiB", "tunables": {
        "inode_readahead_blks": 64, "queue/read_ahead_kb": 512, "queue/scheduler": "none"}},
    "ext4-external": {"type": "ext4", "image": "128MiB", "journal_image": "16MiB"},
    "ext4-elsewhere": {"type": "ext4", "image": "64MiB"},
    "ext3-sparse": {"type": "ext3", "image": "64MiB", "preallocate": False},
    "ext2-cached": {"type": "ext2", "image": "64MiB", "direct_io": False},
    "ext4-zram": {"type": "ext4", "zram": "128MiB", "zram_algorithm": "lz4"},
    "xfs-zram": {"type": "xfs", "zram": "320MiB"},
    "xfs": {"type": "xfs", "image": "512MiB", "mkfs": ["-m", "reflink=0", "-d", "sunit=128,swidth=256,agcount=2"]},
    "xfs-external": {"type": "xfs", "image": "320MiB", "journal_image": "80MiB", "options": ["noatime"]},
    "btrfs": {"type": "btrfs", "image": "256MiB", "mkfs": ["-d", "single", "-m", "dup"], "options": ["compress=zstd"]},
    "btrfs-nocow": {"type": "btrfs", "image": "256MiB", "options": ["nodatacow"]},
    "overlay-ext4": {"type": "overlay", "over": EXT4},
    "overlay-tmpfs": {"type": "overlay", "over": TMPFS},
    "raw": {"type": "raw", "image": "64MiB"},
    "bind": {"type": "bind", "options": ["noatime"]},
    "dir": {"type": "dir"},
}  # fmt: skip
ELSEWHERE = {"pmfs": {"type": "pmfs", "device": "nvm", "size": "64MiB"}, "pmbd": {"type": "ext4", "pmbd": "pmbd16;"}}
IN_THE_VM = {"nfs", "f2fs", "zfs"}
"""What only test_filesystems_vm.py has a kernel for."""
FIO = {"tool": "fio", "rw": "randread", "bs": "64KiB", "size": "2MiB", "ioengine": "mmap", **CLOCK}
BOTH = {"fio": {**FIO, "ioengine": ["psync", "mmap"]}}
READ = {"tool": "dd", "direction": "read", "bs": "64KiB", "count": 32}
MARKED = {**FIO, "rw": "write", "ioengine": "psync", "direct": True}
"""Of a raw device only."""


ONCE = ("hugetlbfs", "ext4-zram")
"""What takes huge pages or a zram device, which a machine has once."""
AGAIN = (
    "shm",
    "ext4-made",
    "ext4-elsewhere",
    "btrfs",
    "ext4-async",
    "ext4-nobarrier",
    "xfs-zram",
    "xfs-external",
    "overlay-tmpfs",
    "ext4-external",
    "ext3-sparse",
    "ext2-cached",
    "shmfs",
)
"""`long`: what the others show already, once more with other options or on something else. All of them are measured
there with write() and mmap(), too."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    """One run of each family, and of each thing that it may lie on."""
    of = {name: HERE[name] for name in HERE if name not in (*ONCE, *AGAIN)}
    excluded = [{"filesystem": name, "workload": "marked"} for name in of if name != "raw"]
    return one_run(tmp_path_factory.mktemp("all"), of, {"read": READ, "marked": MARKED}, exclude=excluded)


@pytest.fixture(scope="module")
def run_limited(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    """What does not take all that is asked, and what needs another kernel."""
    return one_run(tmp_path_factory.mktemp("limited"), {"hugetlbfs": HERE["hugetlbfs"], **ELSEWHERE}, BOTH)


@pytest.fixture(scope="module")
def run_again(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    of = {name: HERE[name] for name in HERE if name != "hugetlbfs"}
    return one_run(tmp_path_factory.mktemp("again"), of, {"fio": FIO, "write": {**READ, "direction": "write"}})


def one_run(place: Path, of: dict[str, dict[str, Any]], workloads: dict[str, dict[str, Any]], **more: Any) -> store.Run:
    for name in ("mkfs.xfs", "mkfs.btrfs"):
        program(name)
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        directory = place / "elsewhere"
        directory.mkdir()
        filesystems = dict(of)
        if "ext4-elsewhere" in of:
            filesystems["ext4-elsewhere"] = {**of["ext4-elsewhere"], "image_dir": str(directory)}
        design = {"repeats": 1, "drop_caches": False}
        resolved = as_is(filesystems=filesystems, workloads=workloads, design=design, **more)
        path = workflow.run(resolved, results=place / "results")
        assert list(directory.iterdir()) == []
        with open_box(paths.load_box("local")) as connection:
            assert leftovers.remove_leftovers(connection, dry_run=True) == []
        return store.load_run(path)


def status(run: store.Run, filesystem: str) -> dict[str, str]:
    rows = run.trials[run.trials["filesystem"] == filesystem]
    return dict(zip(rows["cell"].str.rpartition("=")[2], rows["status"] + ": " + rows["reason"], strict=True))


def test_every_family_is_in_one_of_the_tables() -> None:
    assert {entry["type"] for entry in (*HERE.values(), *ELSEWHERE.values())} == set(FAMILIES) - IN_THE_VM - {
        "in_place"
    }


@pytest.mark.parametrize("name", [name for name in HERE if name not in (*ONCE, *AGAIN)])
def test_it_is_mounted_and_measured_and_every_option_is_in_effect(run: store.Run, name: str) -> None:
    in_effect(run, name)


@pytest.mark.long
@pytest.mark.machine
@pytest.mark.parametrize("name", [name for name in HERE if name != "hugetlbfs"])
def test_so_is_each_with_write_and_mmap(run_again: store.Run, name: str) -> None:
    in_effect(run_again, name)


def in_effect(run: store.Run, name: str) -> None:
    assert {*status(run, name).values()} == {"ok: "}
    own = [row for row in run.options if row.filesystem == name]
    assert [row for row in own if row.state in ("ignored", "changed")] == []
    asked = len(HERE[name].get("options", [])) + len(HERE[name].get("tunables", {}))
    assert len([row for row in own if row.state in ("in effect", "not visible")]) >= asked


@pytest.mark.machine
def test_hugetlbfs_takes_mmap_and_nothing_else(run_limited: store.Run) -> None:
    """Trap: write() is refused."""
    found = status(run_limited, "hugetlbfs")
    assert found["mmap"] == "ok: "
    assert found["psync"].startswith("skipped: hugetlbfs has no write()")
    caveat = next(each for each in run_limited.caveats if (each.code, each.subject) == ("skipped", "hugetlbfs"))
    assert "fio ioengine=psync: not measured" in caveat.message


@pytest.mark.machine
@pytest.mark.parametrize("name", list(ELSEWHERE))
def test_what_needs_another_kernel_is_skipped_and_says_which(run_limited: store.Run, name: str) -> None:
    found = status(run_limited, name)
    assert len(found) == 2
    assert all(text.startswith(f"skipped: {name} needs a kernel with") and "memmap=" in text for text in found.values())


def test_making_and_mounting_are_timed_once_for_each_mount(run: store.Run) -> None:
    times = run.measurements[run.measurements["metric"].isin(["mkfs_time", "mount_time"])]
    assert (times["value"] > 0).all()
    by_filesystem = times.groupby("filesystem")["metric"].agg(sorted).to_dict()
    assert by_filesystem["ext4-lazy"] == ["mkfs_time", "mount_time"]
    assert by_filesystem["tmpfs"] == ["mount_time"]
    assert {"dir", "raw"} & by_filesystem.keys() == set()


def test_what_the_kernel_adds_by_itself_is_in_the_table(run: store.Run) -> None:
    """Trap: data=journal silently adds nodelalloc."""
    added = {row.kernel_says for row in run.options if row.filesystem == "ext4-journal" and row.state == "added"}
    assert "nodelalloc" in added
    nocow = {row.kernel_says for row in run.options if row.filesystem == "btrfs-nocow" and row.state == "added"}
    assert "nodatasum" in nocow


def test_below_an_overlay_and_below_btrfs_the_device_is_known(run: store.Run) -> None:
    """Or nobody could say whether the page cache answered."""
    unchecked = {caveat.subject for caveat in run.caveats if caveat.code == "cache-not-checked"}
    assert unchecked & {"btrfs", "btrfs-nocow", "overlay-ext4"} == set()


@pytest.mark.requires_program("mkfs.btrfs")
@pytest.mark.parametrize("devices", [1, 2])
def test_a_directory_on_btrfs_lies_on_its_devices(devices: int, tmp_path: Path) -> None:
    """stat(2) and mountinfo have a number that is no device's, and a subvolume has another one, for which df finds no
    mount."""
    script = files("mountlab.filesystems").joinpath("evidence.sh").read_text()
    with ExitStack() as undo:
        disks = Disks(tmp_path, undo)
        first, *others = (disks.loop(size=BTRFS_SIZE) for _ in range(devices))
        command("mkfs.btrfs", "-q", "-f", "-K", first, *others)
        mount = disks.mount(first, *(word for each in others for word in ("-o", f"device={each}")))
        command("btrfs", "subvolume", "create", f"{mount}/sub")
        os.mkdir(f"{mount}/sub/deep")
        # With its device, as for a file system that was made for the run.
        places = [(mount,), (f"{mount}/sub",), (f"{mount}/sub/deep",), (mount, first)]
        seen = [{"evidence.txt": command("sh", "-c", script, "evidence.sh", *place)} for place in places]
        numbers = [os.stat(device).st_rdev for device in (first, *others)]
    known = {f"{os.major(number)}:{os.minor(number)}" for number in numbers}
    for evidence in seen:
        assert set(device_levels(evidence)[0]) == known
        assert (mount_of(evidence).mountpoint, mount_of(evidence).fstype) == (str(mount), "btrfs")


def test_a_trial_on_a_raw_device_leaves_our_mark(run: store.Run) -> None:
    own = run.measurements[run.measurements["workload"] == "marked"]
    assert set(own["filesystem"]) == {"raw"}
    assert set(run.trials[run.trials["workload"] == "marked"]["status"]) == {"ok"}
    assert (own[own["metric"] == "write_bandwidth"]["value"] > 0).all()


@pytest.mark.long
def test_below_an_overlay_options_are_judged_as_they_are_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)
    below = {
        "ramfs": {"type": "ramfs", "size": "16MiB", "options": ["nobarrier"]},
        "ext4": {"type": "ext4", "image": "64MiB", "options": ["noatime", "oldalloc"]},
    }
    filesystems = {name: {"type": "overlay", "over": entry} for name, entry in below.items()}
    resolved = as_is(filesystems=filesystems, design={"repeats": 1, "on_ineffective": "caveat"})
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    states = {(row.filesystem, row.option): row.state for row in run.options}
    assert states["ramfs", "nobarrier"] == "ignored"
    assert states["ext4", "oldalloc"] == "ignored"
    assert states["ext4", "noatime"] == "in effect"
