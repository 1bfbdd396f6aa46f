"""Every family of file systems in the virtual box, on its disks and its persistent memory: DAX is in effect there, and
refused where the device has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guests import measured
from mountlab.box.connection import BoxConnection
from mountlab.box.ssh import SshBox, connect
from mountlab.core.model import Box
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.neighbours import read_beside
from mountlab.report.execute import write_report
from mountlab.results import paths, store
from mountlab.runner import workflow
from sweeps import CLOCK, EXT4, RAMFS, TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_program("qemu-system-x86_64")]

FIO = {"tool": "fio", "rw": "randread", "bs": "64KiB", "size": "2MiB", "ioengine": "mmap", "cache": "as_is", **CLOCK}
DD = {"tool": "dd", "direction": "read", "bs": "64KiB", "count": 32, "cache": "as_is"}
"""It needs a tenth of the time in an emulated guest."""
MEMORY: dict[str, dict[str, Any]] = {
    "tmpfs": TMPFS, "ramfs": RAMFS, "shmfs": {"type": "shmfs", "size": "64MiB"},
    "hugetlbfs": {"type": "hugetlbfs", "size": "16MiB"}, "dir": {"type": "dir"}, "bind": {"type": "bind"},
    "ext3": {"type": "ext3", "image": "32MiB"}, "ext2": {"type": "ext2", "image": "32MiB"},
    "ext4-zram": {"type": "ext4", "zram": "64MiB"}, "overlay": {"type": "overlay", "over": TMPFS},
    "btrfs": {"type": "btrfs", "image": "128MiB", "options": ["compress=zstd"]}, "nfs": {"type": "nfs"},
}  # fmt: skip
DISKS: dict[str, dict[str, Any]] = {
    "ext4": {"type": "ext4", "device": "pmem", "mkfs": ["-b", "4096"]},
    "ext4-dax": {"type": "ext4", "device": "pmem", "mkfs": ["-b", "4096"], "options": ["dax=always"]},
    "xfs-dax": {"type": "xfs", "device": "pmem", "mkfs": ["-m", "reflink=0"], "options": ["dax=always"]},
    "raw": {"type": "raw", "device": "pmem"},
    "ext4-external": {"type": "ext4", "image": "64MiB", "journal_device": "journal"},
    "xfs-external": {"type": "xfs", "image": "320MiB", "journal_device": "journal"},
    "ext4-no-dax": {**EXT4, "options": ["dax=always"]},
    "xfs-no-dax": {"type": "xfs", "image": "320MiB", "options": ["dax=always"]},
}  # fmt: skip
ELSEWHERE = {"pmfs": {"type": "pmfs", "device": "nvm", "size": "64MiB"}, "pmbd": {"type": "ext4", "pmbd": "pmbd16;"}}

ALL = {**MEMORY, **DISKS, **ELSEWHERE}
MAPPED = [name for name in ALL if name == "hugetlbfs" or name.endswith("-dax")]
"""Read by mmap: hugetlbfs takes nothing else, and DAX is about it."""


def run_in_the_guest(box: BoxConnection, results: Path, **asked: Any) -> store.Run:
    return measured(box, results, design={"repeats": 1}, **asked)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, vm_connection: BoxConnection) -> store.Run:
    """One run of all. It takes minutes where the guest is emulated: `make test` mounts with DAX in test_vm.py."""
    exclude = [{"filesystem": name, "workload": "dd" if name in MAPPED else "fio"} for name in ALL]
    asked = {"filesystems": ALL, "workloads": {"fio": FIO, "dd": DD}, "exclude": exclude}
    return run_in_the_guest(vm_connection, tmp_path_factory.mktemp("results"), **asked)


@pytest.fixture(scope="module")
def client_run(tmp_path_factory: pytest.TempPathFactory, vm_connection: BoxConnection) -> store.Run:
    """The guest is server and client at once: it has no network but that to itself."""
    fio = {**FIO, "ioengine": "psync", "cache": "cold", "clients": ["vm"]}
    nfs = {"nfs": {"type": "nfs", "options": ["noatime"]}}
    results = tmp_path_factory.mktemp("results")
    return run_in_the_guest(vm_connection, results, filesystems=nfs, workloads={"fio": fio})


def outcome(run: store.Run, filesystem: str) -> tuple[str, str]:
    (row,) = run.trials[run.trials["filesystem"] == filesystem].to_dict("records")
    return row["status"], row["reason"]


def test_every_family_is_tried_in_the_virtual_box() -> None:
    assert {entry["type"] for entry in ALL.values()} == set(FAMILIES) - {
        "in_place",
        "f2fs",
        "zfs",
    }  # test_watch_vm.py, test_full_kernel_vm.py, test_zfs_vm.py


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in {**MEMORY, **DISKS} if "no-dax" not in name])
def test_it_is_mounted_and_measured_and_every_option_is_in_effect(run: store.Run, name: str) -> None:
    assert outcome(run, name) == ("ok", "")
    states = {row.option: row.state for row in run.options if row.filesystem == name}
    assert {"ignored", "changed"} & set(states.values()) == set(), states
    if name.endswith("-dax"):
        assert states["dax=always"] == "in effect"


@pytest.mark.long
def test_a_client_drives_nfs_and_server_and_export_are_gone_afterwards(
    client_run: store.Run, vm_connection: BoxConnection
) -> None:
    assert outcome(client_run, "nfs") == ("ok", "")
    assert {row.option: row.state for row in client_run.options}["noatime"] == "in effect"
    left = vm_connection.run(("sh", "-c", "cat /var/lib/nfs/etab /proc/fs/nfsd/threads; pgrep rpc.mountd"))
    assert left.text == "", "no export, no server, no files of its own"


@pytest.mark.long
def test_a_neighbour_writes_over_nfs_from_a_client(
    tmp_path: Path, vm_connection: SshBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest is the box, and under another name and with roots of its own the client."""
    client = replace(vm_connection.box, name="b", mount_root="/var/tmp/b", output_root="/dev/shm/b")
    boxes = {"vm": vm_connection.box, "b": client}

    @contextmanager
    def opened(box: Box, *, forwards: bool = False) -> Iterator[SshBox]:
        with (
            nullcontext(vm_connection) if box.name == "vm" else closing(connect(box, vm_connection._endpoint))
        ) as connection:
            yield connection

    monkeypatch.setattr(paths, "load_box", boxes.__getitem__)
    monkeypatch.setattr(workflow, "open_box", opened)
    monkeypatch.setattr(workflow, "peers", lambda *_: {"nfs": ["127.0.0.1"]})  # the guest has no `ip`
    write = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "2MiB", **CLOCK}
    sweep = as_is(
        filesystems={"nfs": {"type": "nfs", "server": "127.0.0.1"}},
        workloads={"w": {**write, "runtime": "3s", "time_based": True, "beside": "n"}},
        neighbours={"n": {**write, "rate": "1m", "where": {"client": "b"}}},
        design={"repeats": 1, "warmup": 0, "retries": 0},
    )
    path = workflow.run(sweep, box="vm", results=tmp_path)
    assert outcome(store.load_run(path), "nfs") == ("ok", "")
    kept = {name: (path / "raw" / "t0001" / name).read_text() for name in ("neighbours", "uptime")}
    beside = read_beside(kept)["n"]
    assert beside.write_bytes > 0
    assert beside.gaps == ()
    left = vm_connection.run(("sh", "-c", "ls -d /var/tmp/b /dev/shm/b; grep nfs4 /proc/mounts; pgrep fio"))
    assert left.text == ""


@pytest.mark.long
def test_without_a_device_that_has_it_dax_is_refused_and_the_kernel_says_why(run: store.Run) -> None:
    status, reason = outcome(run, "ext4-no-dax")
    assert status == "failed"
    assert "DAX unsupported by block device" in reason


@pytest.mark.long
def test_where_the_kernel_turns_dax_off_the_trial_is_not_run(run: store.Run) -> None:
    status, reason = outcome(run, "xfs-no-dax")
    assert status == "failed"
    assert "xfs-no-dax: not in effect as asked: dax=always (changed)" in reason
    assert "dax=always: changed" in reason
    assert "Turning off DAX" in reason


@pytest.mark.long
@pytest.mark.parametrize("name", list(ELSEWHERE))
def test_what_needs_another_kernel_is_skipped(run: store.Run, name: str) -> None:
    status, reason = outcome(run, name)
    assert status == "skipped"
    assert f"{name} needs a kernel with" in reason


@pytest.mark.long
@pytest.mark.parametrize("name", ["ext4-dax", "xfs-dax", "raw"])
def test_an_emulated_box_and_persistent_memory_are_told_by_caveats(run: store.Run, name: str) -> None:
    """A pmem device counts no bytes: without that the page cache would seem to have answered every read."""
    if run.info.facts.value("emulated"):
        assert [caveat.severity for caveat in run.caveats if caveat.code == "emulated"] == ["warning"]
    checked = {caveat.subject for caveat in run.caveats if caveat.code in ("cache-served", "not-flushed")}
    assert name not in {subject.partition("/")[0] for subject in checked}
    if name == "raw":
        assert name in {caveat.subject for caveat in run.caveats if caveat.code == "cache-not-checked"}


@pytest.mark.long
def test_what_answered_reads_over_nfs_is_known_from_the_counters_of_the_mount(run: store.Run) -> None:
    """The box serves it from a directory of its own: the mount lies on the server, and that on a disk."""
    (trial,) = run.trials.loc[run.trials["filesystem"] == "nfs", "trial_id"]
    around = run.records[trial].around
    assert around is not None
    (server,) = (device for device in around.traffic if device.startswith("nfs:"))
    assert run.records[trial].device is not None
    assert run.records[trial].device.chain[0] == server
    assert len(run.records[trial].device.chain) > 1
    assert "nfs" not in {caveat.subject for caveat in run.caveats if caveat.code == "cache-not-checked"}


@pytest.mark.long
def test_the_results_are_kept_outside_of_the_box(run: store.Run) -> None:
    assert (Path(run.path) / "trials.jsonl").exists()


@pytest.mark.long
def test_the_report_says_that_figures_of_an_emulated_box_are_emulated(client_run: store.Run) -> None:
    page = write_report(client_run.path).read_text()
    assert ("The box is emulated" in page) is client_run.info.facts.value("emulated")
