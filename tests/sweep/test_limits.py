"""Limits of neighbours in a plan: what a box answered, recorded, and what its script finds without a cgroup to set."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.box.containment import CGROUPS
from mountlab.box.testing import Call, ReplayBox
from mountlab.core.errors import CommandError, PlanError
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.shell import script_argv
from mountlab.sweep.limits import MODEST, LimitAnswers, check_limits, read_answers
from mountlab.sweep.neighbour_entry import LIMITS_KNOWN
from rows import every_row
from sweeps import FIO, sweep

RECORDED = Path(__file__).parents[1] / "data" / "limits"
HYBRID = "cpu cpuacct cpuset memory devices freezer blkio pids; v2 in /sys/fs/cgroup/unified: hugetlb (enabled: none)"
DISK = "/dev/disk/by-id/disk"
BOX = Box(name="b", host="h", scratch=(ScratchDevice(name="data", device=DISK),))
FACTS = known(rights="root", kernel="6.1.0", mount_root="/srv/m", kernel_filesystems=["ext4", "tmpfs"])
EXT4, IMAGE = {"type": "ext4", "device": "data"}, {"type": "ext4", "image": "128MiB"}
STREAM = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "4MiB"}


def recorded(name: str, *limits: str) -> str:
    """What a real box answered, of these limits; of all where none is given."""
    lines = (RECORDED / f"{name}.txt").read_text().splitlines()
    return "\n".join(line for line in lines if not limits or {"cgroups", *limits} & {*line.split("\t")[:2]})


def check(answer: str, everything: str = "", status: int = 0, **changes: Any) -> list[Call]:
    """Check a sweep on a box that gives the one answer to its limits, the other to all limits."""
    box = ReplayBox(BOX)
    box.when(lambda argv: "memory_high" in argv and "cpu_weight" in argv, everything)
    box.when(lambda argv: "try_limits.sh" in argv, answer, exit_status=status)
    asked = {"filesystems": {"f": EXT4}, "neighbours": {"n": {**STREAM, "limits": {"io_weight": 50, "cpu_max": "80%"}}}}
    resolved = sweep(workloads={"w": {**FIO, "beside": ["none", "n"]}}, **{**asked, **changes})
    check_limits(resolved.sweep, box, FACTS)
    return box.calls


@every_row(
    ("name", "limit", "text"),
    [
        (
            "hybrid", "io_weight",
            "the box cannot set io_weight for neighbour n on f\n"
            "  where:   neighbours.n.limits.io_weight\n"
            "  got:     the scheduler of loop8 has no weights ([none] mq-deadline kyber bfq); cgroups of the box: v1: "
            f"{HYBRID}\n"
            "  allowed: io_max_read, io_max_read_iops, cpu_weight, cpu_max, memory_max\n"
            "  next:    set bfq (tunables: {queue/scheduler: bfq}, where Mountlab mounts it); or choose "
            "io_max_read, or with direct I/O io_max_write: they need no scheduler",
        ),
        (
            "hybrid", "io_max_write",
            "the box cannot set io_max_write for neighbour n on f\n"
            "  where:   neighbours.n.limits.io_max_write\n"
            "  got:     buffered writes count for no cgroup of v1; cgroups of the box: v1: "
            f"{HYBRID}\n"
            "  allowed: io_max_read, io_max_read_iops, cpu_weight, cpu_max, memory_max\n"
            "  next:    give the neighbour direct: true",
        ),
        (
            "v2-without-io", "io_max_read",
            "the box cannot set io_max_read for neighbour n on f\n"
            "  where:   neighbours.n.limits.io_max_read\n"
            "  got:     its cgroup has no io.max: the controller io is not on in "
            "/sys/fs/cgroup/cgroup.subtree_control; cgroups of the box: v1: none; v2 in "
            "/sys/fs/cgroup: cpuset cpu io memory hugetlb pids rdma misc (enabled: cpu memory)\n"
            "  allowed: cpu_weight, cpu_max, memory_high, memory_max\n"
            "  next:    echo +io > /sys/fs/cgroup/cgroup.subtree_control",
        ),
        (
            "none", "cpu_max",
            "the box cannot set cpu_max for neighbour n on f\n"
            "  where:   neighbours.n.limits.cpu_max\n"
            "  got:     no controller cpu is mounted in /sys/fs/cgroup; cgroups of the box: v1: none\n"
            "  allowed: no limit can be set there\n"
            "  next:    mount cgroup2 there, or: mkdir -p /sys/fs/cgroup/cpu && mount -t cgroup -o cpu cgroup "
            "/sys/fs/cgroup/cpu",
        ),
    ],
)  # fmt: skip
def test_a_limit_that_the_box_cannot_set_is_an_error_of_the_plan(name: str, limit: str, text: str) -> None:
    with pytest.raises(PlanError) as error:
        check(recorded(name, limit), recorded(name))
    assert str(error.value) == text


def test_limits_that_can_be_set_are_tried_once_for_each_neighbour_and_file_system() -> None:
    (call,) = check(recorded("v2", "io_max_read", "cpu_max"))
    words = ("ext4", DISK, "", "", "io_weight", "50", "cpu_max", "80000")
    assert call == Call(script_argv("try_limits.sh", CGROUPS, *words), root=True)


@every_row(
    ("filesystem", "neighbour", "words"),
    [
        (IMAGE, {"direct": True}, ("ext4", "loop", "", "yes")),
        ({**IMAGE, "tunables": {"queue/scheduler": "bfq"}}, {}, ("ext4", "loop", "bfq", "")),
        ({"type": "ext4", "zram": "64MiB"}, {}, ("ext4", "unknown", "", "")),
        ({"type": "tmpfs", "size": "64MiB"}, {}, ("tmpfs", "", "", "")),
        ({"type": "dir"}, {}, ("", "/srv/m", "", "")),
        ({"type": "dir", "path": "/data"}, {}, ("", "/data", "", "")),
        ({"type": "overlay", "over": {"type": "tmpfs", "size": "64MiB"}}, {}, ("overlay", "", "", "")),
    ],
)
def test_a_limit_is_tried_on_the_device_below_the_file_system(
    filesystem: Any, neighbour: Any, words: tuple[str, ...]
) -> None:
    entry = {**STREAM, **neighbour, "limits": {"io_max_read": "1MiB"}}
    (call,) = check("cgroups\tv1: blkio\nset\tio_max_read\n", filesystems={"f": filesystem}, neighbours={"n": entry})
    assert call.argv == script_argv("try_limits.sh", CGROUPS, *words, "io_max_read", "1048576")


def test_a_neighbour_on_another_file_system_is_tried_there() -> None:
    entry = {**STREAM, "where": {"filesystem": "other"}, "limits": {"cpu_max": "80%"}}
    filesystems = {"f": EXT4, "other": {"type": "tmpfs", "size": "64MiB"}}
    (call,) = check(recorded("v2", "cpu_max"), filesystems=filesystems, neighbours={"n": entry})
    assert call.argv == script_argv("try_limits.sh", CGROUPS, "tmpfs", "", "", "", "cpu_max", "80000")


def test_a_neighbour_is_tried_only_where_a_cell_has_it() -> None:
    tmpfs = {"type": "tmpfs", "size": "64MiB"}
    excluded = [{"filesystem": "f", "beside": "n"}]
    (call,) = check("cgroups\tv1: cpu\nset\tcpu_max\n", filesystems={"f": EXT4, "t": tmpfs}, exclude=excluded)
    assert call.argv[5:7] == ("tmpfs", "")
    assert check("", neighbours={"n": STREAM}) == []


def test_a_box_that_cannot_try_is_an_error() -> None:
    with pytest.raises(CommandError, match="limits of neighbour n cannot be tried"):
        check("", status=1)


def test_every_limit_has_a_modest_value() -> None:
    assert set(MODEST) == set(LIMITS_KNOWN)


# --- the script -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    """A directory like the root of cgroup v2: a cgroup made in it has no files, as where a controller is off."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    return tmp_path


def answers(cgroups: Path, device: str, *limits: str) -> LimitAnswers:
    argv = script_argv("try_limits.sh", str(cgroups), "ext4", device, "", "", *limits)
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return read_answers(done.stdout)


@every_row(
    ("limit", "why", "next_step"),
    [
        ("cpu_max", "its cgroup has no cpu.max: the controller cpu is not on in {0}/cgroup.subtree_control",
         "echo +cpu > {0}/cgroup.subtree_control"),
        ("memory_high", "its cgroup has no memory.high", "take a kernel that has it"),
        ("io_max_read", "there is no block device below its file system",
         "choose a limit of cpu or memory, or take these cells out with `exclude`"),
    ],
)  # fmt: skip
def test_the_reason_is_found_by_trying_and_nothing_is_left(cgroups: Path, limit: str, why: str, next_step: str) -> None:
    found = answers(cgroups, "", limit, "100")
    assert found.refused == {limit: (why.format(cgroups), next_step.format(cgroups))}
    assert [path.name for path in cgroups.iterdir() if path.is_dir()] == []


def test_limits_of_io_on_a_device_that_only_the_mount_makes_are_left_to_the_trial(cgroups: Path) -> None:
    found = answers(cgroups, "unknown", "io_weight", "100", "io_max_read", "100", "cpu_max", "100")
    assert [*found.refused] == ["cpu_max"]


def test_a_controller_that_v2_has_not_needs_a_boot(cgroups: Path) -> None:
    (cgroups / "cgroup.controllers").write_text("memory\n")
    assert answers(cgroups, "", "cpu_max", "100").refused["cpu_max"][1] == (
        "boot with cgroup_no_v1=cpu, so that v2 has the controller"
    )


def test_without_v2_a_controller_that_is_not_mounted_is_named(tmp_path: Path) -> None:
    found = answers(tmp_path, "", "cpu_max", "100", "memory_high", "100")
    assert found.refused["cpu_max"][0] == f"no controller cpu is mounted in {tmp_path}"
    assert found.refused["memory_high"][0] == "cgroup v1 has nothing like it"


def test_nothing_is_left_where_the_reader_goes_away(cgroups: Path) -> None:
    argv = script_argv("try_limits.sh", str(cgroups), "ext4", "", "", "", *["cpu_max", "100"] * 50)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        process.stdout.close()
    assert [path.name for path in cgroups.iterdir() if path.is_dir()] == []
