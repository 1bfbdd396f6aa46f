"""Two boxes that share memory, cgroups and names, but not the numbers of their processes: as two containers may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mountlab.box import lock
from mountlab.box.leftovers import parse_leftovers, remove_leftovers_argv
from mountlab.box.lock import Owner
from mountlab.box.testing import ReplayBox
from mountlab.core.errors import BoxInUse
from mountlab.core.held import Lease
from mountlab.core.model import Box
from mountlab.results import lock as results_lock
from mountlab.sweep.run_directories import open_run_step
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("unshare")]

ELSEWHERE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
RUN = "20260101T000000-test-local"
CGROUPS = {
    "v2": (Path("/sys/fs/cgroup"), "cgroup.threads", "cgroup.freeze", "0"),
    "unified": (Path("/sys/fs/cgroup/unified"), "cgroup.threads", "cgroup.freeze", "0"),
    "v1": (Path("/sys/fs/cgroup/freezer"), "tasks", "freezer.state", "THAWED"),
}
"""Hierarchy to its place, the file by which a thread enters, the file that freezes, and what is in that by itself."""


@pytest.mark.parametrize("kind", CGROUPS)
@pytest.mark.parametrize("mode", ["list", "clean"])
def test_a_cgroup_of_a_run_in_another_container_is_named_and_not_touched(kind: str, mode: str, tmp_path: Path) -> None:
    place, members, freezer, thawed = CGROUPS[kind]
    if not (place / members).is_file():
        pytest.skip(f"no cgroups at {place}")
    lease = Lease(run_id=RUN, mount_root=f"{tmp_path}/m", output_root=f"{tmp_path}/o", owner=f"here 1/2 {RUN}")
    subprocess.run(open_run_step(lease).argv, check=True)
    group = place / f"mountlab-{RUN}.t0001.{os.getpid()}"
    group.mkdir()
    trial = subprocess.Popen(["sleep", "600"])
    try:
        if kind != "v1":
            (group / "cgroup.type").write_text("threaded")
        (group / members).write_text(str(trial.pid))
        argv = remove_leftovers_argv(mode, "0", lease.mount_root, lease.output_root, "")  # type: ignore[arg-type]
        done = subprocess.run(
            [*ELSEWHERE, *argv], capture_output=True, text=True, check=False, timeout=LIMIT_S, start_new_session=True
        )  # a clean that kills its own process group is to fail this test only
        assert (done.returncode, done.stderr) == (0, "")
        (found,) = [left for left in parse_leftovers(done.stdout) if left.kind == "cgroup"]
        assert (found.name, found.removed) == (str(group), False)
        if (kind, mode) != ("v1", "list"):  # v1 does not say that there is anything
            assert found.note.startswith("holds processes of another PID namespace")
        assert trial.poll() is None
        assert (group / freezer).read_text().strip() == thawed
    finally:
        trial.kill()
        trial.wait()
        group.rmdir()


HOLD = """
import sys
from pathlib import Path
from mountlab.box import lock
from mountlab.results import lock as results_lock
with results_lock.held(Path(sys.argv[1]), what="run"):
    print(lock.this_process("r1"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """The owner that a process in another PID namespace is, by its own words. It writes to a directory of results."""
    argv = [*ELSEWHERE, sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def test_a_lock_of_another_pid_namespace_is_not_taken_for_that_of_a_dead_process(elsewhere: str) -> None:
    owner = Owner(*elsewhere.split())
    assert owner.process.startswith("1/"), "its number over there"
    box = ReplayBox(Box(name="b1", host="b1"))
    box.answer(("sh", "-c", lock.READ, "mountlab-locks", "/m", "/o"), f"/m {owner}\n")
    with pytest.raises(BoxInUse, match="run r1 may still be running on this box") as refusal:
        lock.check_free(box, "/m", "/o")
    assert refusal.value.got == (f"process 1 on {os.uname().nodename}, in another PID namespace (a container), uses /m")
    assert refusal.value.next_step.endswith("if it is gone: mountlab box clean b1 --force")


def test_an_earlier_boot_is_over_in_every_namespace(elsewhere: str) -> None:
    host, process, run = elsewhere.split()
    pid, started, boot, namespace = process.split("/")
    earlier = boot.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    assert lock.state(Owner(host, f"{pid}/{started}/{earlier}/{namespace}", run)) == "gone"


def test_results_are_kept_by_the_kernels_lock_across_pid_namespaces(elsewhere: str, tmp_path: Path) -> None:
    found = results_lock.holder(tmp_path)
    assert found is not None
    assert (found.pid, found.state) == (1, "hidden")
    with pytest.raises(results_lock.RunInUse), results_lock.held(tmp_path, what="run"):
        pass
    results_lock.sweep(tmp_path, results_lock.FILE)
    assert (tmp_path / results_lock.FILE).exists()
