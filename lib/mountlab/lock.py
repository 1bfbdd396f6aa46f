"""One run at a time on a box: two would measure each other. The owner's name lies in <mount_root>/lock on the box.

It is written by open.sh, when a run opens, and removed when it closes. What a crash left is recognised by its owner: a
process of this control machine that is gone. Of an owner on another machine nobody here can tell.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from mountlab.box import BoxConnection
from mountlab.errors import BoxInUse
from mountlab.process import State, started


@dataclass(frozen=True)
class Owner:
    """The process that runs a run: machine, process number with its start (numbers are used again), run."""

    host: str
    process: str
    run_id: str

    def __str__(self) -> str:
        return f"{self.host} {self.process} {self.run_id}"


def this_process(run_id: str) -> Owner:
    """The owner that a run of this process has."""
    return Owner(socket.gethostname(), f"{os.getpid()}/{started(os.getpid())}", run_id)


def holder(connection: BoxConnection, mount_root: str) -> Owner | None:
    """Who holds the box now; None where nobody does."""
    done = connection.run(("cat", f"{mount_root}/lock"))
    parts = done.text.split()
    return Owner(*parts) if done.ok and len(parts) == 3 else None


def state(owner: Owner) -> State:
    """Whether the owner still runs, as far as this machine can tell."""
    if owner.host != socket.gethostname():
        return "unknown"
    pid, _, since = owner.process.partition("/")
    return "running" if pid.isdigit() and started(int(pid)) == since else "gone"


def check_free(connection: BoxConnection, mount_root: str) -> Owner | None:
    """The owner that a crash has left, or None. Raises BoxInUse where a run goes on, or where nobody here can tell."""
    owner = holder(connection, mount_root)
    if owner is None or state(owner) == "gone":
        return owner
    verb = "is running" if state(owner) == "running" else "may still be running"
    raise BoxInUse(
        f"run {owner.run_id} {verb} on this box",
        where=f"box {connection.box.name}: {mount_root}/lock",
        got=f"process {owner.process.partition('/')[0]} on {owner.host}",
        allowed="one run at a time on a box: two would measure each other",
        next_step=f"wait for it, or stop it with Ctrl-C; if it is gone: "
        f"python -m mountlab box clean {connection.box.name} --force",
    )
