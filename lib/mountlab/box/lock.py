"""One run at a time on a box: two would measure each other. The owner's name lies in <root>/lock on the box.

Both roots are locked, so that two boxes, or two parameter folders, that share one of them do not end each other's runs.
open.sh writes the locks, always in the same order, when a run opens; they are removed when it closes. What a crash left
is recognised by its owner: a process of this control machine that is gone. Of an owner on another machine, or in
another PID namespace of this one (a container), this process cannot tell.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from mountlab.box.connection import BoxConnection
from mountlab.core.errors import BoxInUse
from mountlab.core.process import ProcessState, boot_id, pid_namespace, started, state_elsewhere


@dataclass(frozen=True)
class Owner:
    """The process that runs a run: machine, process, run."""

    host: str
    process: str
    """Between slashes: its number, its start (numbers are used again), the boot, and the PID namespace in which that is
    its number. Earlier versions wrote the first two."""
    run_id: str

    def __str__(self) -> str:
        return f"{self.host} {self.process} {self.run_id}"


def this_process(run_id: str) -> Owner:
    """Return the owner that a run of this process has."""
    words = (str(os.getpid()), started(os.getpid()), boot_id(), pid_namespace())
    return Owner(socket.gethostname(), "/".join(words), run_id)


READ = 'for root; do if [ -f "$root/lock" ]; then printf "%s " "$root"; head -n 1 "$root/lock"; fi; done'
"""Prints the locks below the roots that are its arguments, a line each: the root and the owner."""


def holders(connection: BoxConnection, *roots: str) -> dict[str, Owner]:
    """Return the owner of each of these roots that is locked."""
    completed = connection.run(("sh", "-c", READ, "mountlab-locks", *dict.fromkeys(roots)))
    lines = (line.split() for line in completed.text.splitlines())
    return {words[0]: Owner(*words[1:]) for words in lines if len(words) == 4}


def state(owner: Owner) -> ProcessState:
    """Return whether the owner still runs, as far as this process can tell."""
    pid, start, boot, namespace = (*owner.process.split("/"), "", "", "")[:4]
    here: ProcessState = "running" if pid.isdigit() and started(int(pid)) == start else "gone"
    return state_elsewhere(owner.host, boot, namespace) or here


def check_free(connection: BoxConnection, *roots: str) -> dict[str, Owner]:
    """Return the owners that a crash has left in these roots. Raise BoxInUse where a run goes on in one of them, or
    where this process cannot tell."""
    owners = holders(connection, *roots)
    for root, owner in owners.items():
        if state(owner) != "gone":
            raise _in_use(connection.box.name, owner, [name for name, other in owners.items() if other == owner], root)
    return owners


def _in_use(box: str, owner: Owner, its_roots: list[str], root: str) -> BoxInUse:
    verb = "is running" if state(owner) == "running" else "may still be running"
    hidden = ", in another PID namespace (a container)," if state(owner) == "hidden" else ""
    is_this_process = owner == this_process(owner.run_id)
    return BoxInUse(
        f"run {owner.run_id} {verb} on this box",
        where=f"box {box}: {root}/lock",
        got=f"process {owner.process.partition('/')[0]} on {owner.host}{hidden} uses {' and '.join(its_roots)}",
        allowed="one run at a time in a mount_root or an output_root: two would measure each other",
        next_step=_CLOSE_IT
        if is_this_process
        else f"wait for it, or stop it with Ctrl-C; give boxes that run at the same time roots of "
        f"their own; if it is gone: mountlab box clean {box} --force",
    )


_CLOSE_IT = (
    "it is this Python process: stop its run, or close() the box that it has open (or leave its `with`); where its "
    "name is lost, restart the kernel"
)
