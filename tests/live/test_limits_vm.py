"""Limits of neighbours on a kernel whose controllers are those of cgroup v2, in the virtual box: set, read back, or
refused before anything is formatted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guests import measured, sh
from mountlab.box.connection import BoxConnection
from mountlab.box.containment import CGROUPS
from mountlab.core.errors import PlanError
from mountlab.filesystems.neighbours import read_beside
from mountlab.results import store
from sweeps import CLOCK

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.long, pytest.mark.requires_program("qemu-system-x86_64")]

DEVICE = "/dev/disk/by-id/virtio-mountlab-scratch"
EXT4 = {"type": "ext4", "device": "scratch"}
BFQ = {"tunables": {"queue/scheduler": "bfq"}}
STREAM = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "2MiB", "rate": "1m", **CLOCK}
MEASURED = {
    "tool": "command", "argv": "sh -c 'sleep 2; echo > {directory}/f'", "space": "1MiB", "beside": "n",
    "metrics": {"elapsed": {"from": "clock"}},
}  # fmt: skip
LIMITS = {
    "io_max_read": "3MiB", "io_max_write": "2MiB", "io_max_read_iops": 300, "io_max_write_iops": 200, "cpu_weight": 50,
    "cpu_max": "80%", "memory_high": "256MiB", "memory_max": "512MiB",
}  # fmt: skip


@pytest.fixture(params=["io cpu memory"])
def guest(vm_connection: BoxConnection, request: pytest.FixtureRequest) -> Iterator[BoxConnection]:
    """The virtual box with cgroup2 alone, and these controllers on below its root. It mounts none itself."""
    words = request.param.split()
    on, off = (" ".join(f"{sign}{word}" for word in words) for sign in "+-")
    control = f"{CGROUPS}/cgroup.subtree_control"
    sh(vm_connection, f"mount -t cgroup2 none {CGROUPS} && echo {on} > {control}")
    yield vm_connection
    assert sh(vm_connection, f"find {CGROUPS} -name 'mountlab-*'") == ""
    sh(vm_connection, f"echo {off} > {control}; umount {CGROUPS}")


def run(box: BoxConnection, results: Path, *filesystems: dict[str, Any], **neighbour: Any) -> store.Run:
    named = {f"f{number}": entry for number, entry in enumerate(filesystems)}
    asked = {"workloads": {"w": MEASURED}, "neighbours": {"n": {**STREAM, **neighbour}}}
    return measured(box, results, design={"repeats": 1, "warmup": 0}, filesystems=named, **asked)


def limits_of(run: store.Run) -> dict[str, str]:
    """Limit to what the kernel reported of it, the same in each trial."""
    assert {(row.status, row.reason) for row in run.trials.itertuples()} == {("ok", "")}
    kept = [read_beside({"neighbours": file.read_text()})["n"] for file in run.path.glob("raw/*/neighbours")]
    assert len(kept) == len(run.trials)
    assert all(beside.limits == kept[0].limits for beside in kept)
    return dict(kept[0].limits)


def number_of(box: BoxConnection, device: str) -> str:
    """Major and minor number of a device."""
    return sh(box, f"cat /sys/class/block/$(basename $(readlink -f {device}))/dev")


def test_limits_are_set_in_a_cgroup_of_v2_and_read_back(guest: BoxConnection, tmp_path: Path) -> None:
    """Writes through the page cache count as well: ext4 tells whose they are."""
    number = number_of(guest, DEVICE)
    limits = limits_of(run(guest, tmp_path, {**EXT4, **BFQ}, limits={"io_weight": 50, **LIMITS}))
    assert limits == {
        "io_weight": "io.bfq.weight: default 50",
        "io_max_read": f"io.max: {number} rbps=3145728 wbps=max riops=max wiops=max",
        "io_max_write": f"io.max: {number} rbps=3145728 wbps=2097152 riops=max wiops=max",
        "io_max_read_iops": f"io.max: {number} rbps=3145728 wbps=2097152 riops=300 wiops=max",
        "io_max_write_iops": f"io.max: {number} rbps=3145728 wbps=2097152 riops=300 wiops=200",
        "cpu_weight": "cpu.weight: 50",
        "cpu_max": "cpu.max: 80000 100000",
        "memory_high": "memory.high: 268435456",
        "memory_max": "memory.max: 536870912",
    }


def test_where_iocost_is_on_the_weight_is_its_own_although_bfq_is_loaded(guest: BoxConnection, tmp_path: Path) -> None:
    number = number_of(guest, DEVICE)
    sh(guest, f"modprobe bfq; echo '{number} enable=1' > {CGROUPS}/io.cost.qos")
    try:
        limits = limits_of(run(guest, tmp_path, EXT4, limits={"io_weight": 5000}))
    finally:
        sh(guest, f"echo '{number} enable=0' > {CGROUPS}/io.cost.qos")
    assert limits == {"io_weight": "io.weight: default 5000"}


def test_limits_of_a_neighbour_on_another_file_system_are_those_of_its_device(
    guest: BoxConnection, tmp_path: Path
) -> None:
    number = number_of(guest, DEVICE)
    tmpfs = {"type": "tmpfs", "size": "64MiB"}
    limited = run(guest, tmp_path, EXT4, tmpfs, where={"filesystem": "f0"}, limits={"io_max_read": "3MiB"})
    assert limits_of(limited) == {"io_max_read": f"io.max: {number} rbps=3145728 wbps=max riops=max wiops=max"}


def test_limits_on_a_directory_are_those_of_the_device_below(guest: BoxConnection, tmp_path: Path) -> None:
    number = number_of(guest, "/dev/disk/by-id/virtio-mountlab-work")
    limits = limits_of(run(guest, tmp_path, {"type": "dir"}, limits={"io_max_write": "3MiB"}))
    assert limits == {"io_max_write": f"io.max: {number} rbps=max wbps=3145728 riops=max wiops=max"}


@pytest.mark.parametrize(
    ("guest", "filesystem", "limits", "words"),
    [
        pytest.param(
            "cpu memory", EXT4, {"io_max_read": "1MiB"},
            ["its cgroup has no io.max: the controller io is not on", "(enabled: cpu memory)",
             "allowed: cpu_weight, cpu_max, memory_high, memory_max", f"echo +io > {CGROUPS}/cgroup.subtree_control"],
            id="controller off",
        ),
        pytest.param(
            "io cpu", EXT4, {"io_max_write": "1MiB"},
            ["without the memory controller", f"echo +memory > {CGROUPS}/cgroup.subtree_control"],
            id="buffered writes",
        ),
        pytest.param(
            "io memory", EXT4, {"io_weight": 50},
            ["the scheduler of vd", "has no weights", "tunables: {queue/scheduler: bfq}", "io.cost.qos"],
            id="scheduler",
        ),
        pytest.param(
            "io memory", {**EXT4, **BFQ}, {"io_weight": 2000},
            ["bfq takes no weight of 2000", "choose 1 to 1000"],
            id="weight of bfq",
        ),
    ],
    indirect=["guest"],
)  # fmt: skip
def test_a_limit_that_cannot_be_set_is_refused_before_the_device_is_touched(
    guest: BoxConnection, tmp_path: Path, filesystem: dict[str, Any], limits: dict[str, Any], words: list[str]
) -> None:
    before = sh(guest, f"head -c 65536 {DEVICE} | sha256sum")
    with pytest.raises(PlanError) as error:
        run(guest, tmp_path, filesystem, limits=limits)
    assert [
        word for word in (f"neighbours.n.limits.{next(iter(limits))}", *words) if word not in str(error.value)
    ] == []
    assert sh(guest, f"head -c 65536 {DEVICE} | sha256sum") == before
    assert list(tmp_path.iterdir()) == []
