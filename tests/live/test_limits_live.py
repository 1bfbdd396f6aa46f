"""Limits of neighbours on this machine, where its controllers are those of cgroup v1: set and read back, in a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab.box.containment import CGROUPS
from mountlab.filesystems.neighbours import read_beside
from mountlab.results import store
from mountlab.runner import workflow
from sweeps import CLOCK, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.slow, pytest.mark.requires_program("fio")]

STREAM = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "2MiB", "rate": "4m", "direct": True, **CLOCK}
MEASURED = {
    "tool": "command", "argv": "sh -c 'sleep 2; echo > {directory}/f'", "space": "1MiB", "beside": "n",
    "metrics": {"elapsed": {"from": "clock"}},
}  # fmt: skip
LIMITS = {
    "io_weight": 50, "io_max_read": "9MiB", "io_max_write": "8MiB", "io_max_read_iops": 300, "io_max_write_iops": 200,
    "cpu_weight": 50, "cpu_max": "80%", "memory_max": "512MiB",
}  # fmt: skip


def test_limits_are_set_in_cgroups_of_v1_and_read_back(tmp_path: Path) -> None:
    """On the loop device of the image, which gets the scheduler that weights need with its mount."""
    if absent := [name for name in ("blkio", "cpu", "memory") if not Path(CGROUPS, name).is_dir()]:
        pytest.skip(f"needs the controllers of cgroup v1, not mounted: {', '.join(absent)}")
    resolved = as_is(
        design={"repeats": 1},
        filesystems={"f": {"type": "ext4", "image": "64MiB", "tunables": {"queue/scheduler": "bfq"}}},
        workloads={"w": MEASURED},
        neighbours={"n": {**STREAM, "limits": LIMITS}},
    )
    run = store.load_run(workflow.run(resolved, results=tmp_path))
    assert [(row.status, row.reason) for row in run.trials.itertuples()] == [("ok", "")]
    (file,) = run.path.glob("raw/*/neighbours")
    limits = read_beside({"neighbours": file.read_text()})["n"].limits
    files = {limit: text.split()[0] for limit, text in limits.items()}
    assert files == {
        "io_weight": "blkio.bfq.weight:",
        "io_max_read": "blkio.throttle.read_bps_device:",
        "io_max_write": "blkio.throttle.write_bps_device:",
        "io_max_read_iops": "blkio.throttle.read_iops_device:",
        "io_max_write_iops": "blkio.throttle.write_iops_device:",
        "cpu_weight": "cpu.shares:",
        "cpu_max": "cpu.cfs_quota_us:",
        "memory_max": "memory.limit_in_bytes:",
    }
    values = {limit: text.split()[-1] for limit, text in limits.items()}
    assert values == {
        "io_weight": "50", "io_max_read": "9437184", "io_max_write": "8388608", "io_max_read_iops": "300",
        "io_max_write_iops": "200", "cpu_weight": "512", "cpu_max": "80000", "memory_max": "536870912",
    }  # fmt: skip
