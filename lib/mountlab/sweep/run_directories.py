"""The first step of every run on a box, and the mark by which its processes are known."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.held import Lease
from mountlab.core.model import Step
from mountlab.core.shell import script_argv
from mountlab.filesystems.directory import OPEN


def open_run_step(lease: Lease) -> Step:
    """Make the directories of a run on one box, and take the lock on it (open.sh)."""
    command = script_argv(OPEN)
    names = (f"{lease.mount_root}/{lease.run_id}", lease.output_dir, lease.owner)
    return Step(
        argv=(*command, "open", *names), why="the directories of this run", undo=(*command, "close", *names), guard=True
    )


def marked(step: Step, run_id: str) -> Step:
    """Put the name of the run into the environment of a step: what a crash leaves running is found and ended by it."""
    return replace(step, argv=("env", f"MOUNTLAB_RUN={run_id}", *step.argv))
