"""One run at a time on a box, and what a crash has left is recognised."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab.box import lock
from mountlab.box.lock import Owner
from mountlab.box.testing import ReplayBox
from mountlab.core.errors import BoxInUse
from mountlab.core.model import Box
from mountlab.core.process import started

ROOT, OUTPUT = "/srv/m", "/dev/shm/m"
HOST = socket.gethostname()


def box_held_by(owner: Owner | None, *roots: str) -> ReplayBox:
    """A box whose mount root, or the roots that are given, are locked by `owner`."""
    box = ReplayBox(Box(name="b1", host="b1"))
    text = "".join(f"{root} {owner}\n" for root in roots or (ROOT,)) if owner else ""
    return box.answer(("sh", "-c", lock.READ, "mountlab-locks", ROOT, OUTPUT), text)


def ended_process() -> str:
    """The name of a process that has ended, as it was while it ran."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = f"{process.pid}/{started(process.pid)}"
        process.communicate(b"\n")
    return name


def test_a_box_without_a_lock_is_free() -> None:
    assert lock.check_free(box_held_by(None), ROOT, OUTPUT) == {}


def test_a_lock_of_this_very_process_says_that_it_runs() -> None:
    owner = lock.this_process("r1")
    assert (owner.host, owner.run_id) == (HOST, "r1")
    assert owner.process.startswith(f"{os.getpid()}/")
    assert lock.state(owner) == "running"


def another_process(run_id: str) -> Owner:
    """The owner of a run of the process that started this one."""
    return Owner(HOST, f"{os.getppid()}/{started(os.getppid())}", run_id)


def test_a_second_run_is_refused_with_the_owner_named() -> None:
    with pytest.raises(BoxInUse, match="run r1 is running on this box") as refusal:
        lock.check_free(box_held_by(another_process("r1")), ROOT, OUTPUT)
    assert refusal.value.exit_code == 3
    assert refusal.value.where == "box b1: /srv/m/lock"
    assert refusal.value.got == f"process {os.getppid()} on {HOST} uses /srv/m"
    assert "two would measure each other" in refusal.value.allowed
    assert refusal.value.next_step.endswith("if it is gone: mountlab box clean b1 --force")


def test_an_owner_on_another_machine_may_still_run() -> None:
    with pytest.raises(BoxInUse, match="run r1 may still be running on this box"):
        lock.check_free(box_held_by(Owner("elsewhere.example", "1/1", "r1")), ROOT, OUTPUT)


def test_the_lock_of_a_process_that_is_gone_is_stale() -> None:
    owner = Owner(HOST, ended_process(), "r1")
    assert lock.check_free(box_held_by(owner), ROOT, OUTPUT) == {ROOT: owner}


def test_a_process_number_that_was_used_again_is_not_the_owner() -> None:
    assert lock.state(Owner(HOST, f"{os.getpid()}/1", "r1")) == "gone"


def test_a_process_number_of_another_pid_namespace_says_nothing_within_the_same_boot() -> None:
    pid, since, boot, namespace = lock.this_process("r1").process.split("/")
    other = str(int(namespace) + 1)
    assert lock.state(Owner(HOST, f"{pid}/{since}/{boot}/{other}", "r1")) == "hidden", "though ours has that number"
    assert lock.state(Owner(HOST, f"4194304/1/{boot}/{other}", "r1")) == "hidden"
    assert lock.state(Owner(HOST, f"4194304/1/{boot}/{namespace}", "r1")) == "gone"
    assert lock.state(Owner(HOST, f"{pid}/{since}/an-earlier-boot/{other}", "r1")) == "gone"
    assert lock.state(Owner(HOST, f"{pid}/{since}", "r1")) == "running", "as an earlier version wrote it"


def test_a_run_with_another_mount_root_holds_the_output_root_that_both_have() -> None:
    """Two boxes, or two parameter folders, that share one directory would end each other's trials."""
    with pytest.raises(BoxInUse, match="run r1 is running on this box") as refusal:
        lock.check_free(box_held_by(another_process("r1"), OUTPUT), ROOT, OUTPUT)
    assert refusal.value.where == "box b1: /dev/shm/m/lock"
    assert refusal.value.got.endswith("uses /dev/shm/m")
    with pytest.raises(BoxInUse) as both:
        lock.check_free(box_held_by(another_process("r1"), ROOT, OUTPUT), ROOT, OUTPUT)
    assert both.value.got.endswith("uses /srv/m and /dev/shm/m")


def test_the_locks_of_a_real_machine_are_read(tmp_path: Path) -> None:
    held, free, torn = (tmp_path / name for name in ("held", "free", "torn"))
    for root, text in ((held, "me 1/2 r1\n"), (torn, "me 1")):
        root.mkdir()
        (root / "lock").write_text(text)
    argv = ("sh", "-c", lock.READ, "mountlab-locks", str(held), str(free), str(torn))
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    box = ReplayBox().answer(argv, said)
    assert lock.holders(box, str(held), str(free), str(torn)) == {str(held): Owner("me", "1/2", "r1")}
