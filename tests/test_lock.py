"""One run at a time on a box, and what a crash has left is recognised."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from mountlab import lock
from mountlab.box import ReplayBox
from mountlab.errors import BoxInUse
from mountlab.lock import Owner
from mountlab.model import Box
from mountlab.process import started

ROOT = "/srv/m"
HOST = socket.gethostname()


def box_held_by(owner: Owner | None) -> ReplayBox:
    box = ReplayBox(Box(name="b1", host="b1"))
    return box.answer(("cat", "/srv/m/lock"), f"{owner}\n" if owner else "", exit_status=0 if owner else 1)


def ended_process() -> str:
    """The name of a process that has ended, as it was while it ran."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = f"{process.pid}/{started(process.pid)}"
        process.communicate(b"\n")
    return name


def test_a_box_without_a_lock_is_free() -> None:
    assert lock.check_free(box_held_by(None), ROOT) is None


def test_a_lock_of_this_very_process_says_that_it_runs() -> None:
    owner = lock.this_process("r1")
    assert (owner.host, owner.run_id) == (HOST, "r1")
    assert owner.process.startswith(f"{os.getpid()}/")
    assert lock.state(owner) == "running"


def test_a_second_run_is_refused_with_the_owner_named() -> None:
    with pytest.raises(BoxInUse, match="run r1 is running on this box") as refusal:
        lock.check_free(box_held_by(lock.this_process("r1")), ROOT)
    assert refusal.value.exit_code == 3
    assert refusal.value.where == "box b1: /srv/m/lock"
    assert refusal.value.got == f"process {os.getpid()} on {HOST}"
    assert "two would measure each other" in refusal.value.allowed
    assert refusal.value.next_step.endswith("if it is gone: python -m mountlab box clean b1 --force")


def test_an_owner_on_another_machine_may_still_run() -> None:
    with pytest.raises(BoxInUse, match="run r1 may still be running on this box"):
        lock.check_free(box_held_by(Owner("elsewhere.example", "1/1", "r1")), ROOT)


def test_the_lock_of_a_process_that_is_gone_is_stale() -> None:
    owner = Owner(HOST, ended_process(), "r1")
    assert lock.check_free(box_held_by(owner), ROOT) == owner


def test_a_process_number_that_was_used_again_is_not_the_owner() -> None:
    assert lock.state(Owner(HOST, f"{os.getpid()}/1", "r1")) == "gone"


def test_a_lock_that_cannot_be_read_holds_nobody() -> None:
    assert lock.holder(ReplayBox().answer(("cat", "/srv/m/lock"), "torn"), ROOT) is None
