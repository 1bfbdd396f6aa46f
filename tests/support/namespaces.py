"""Machines of a test's own, as far as the kernel tells them apart: mounts that are private, shared or slaves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mount_namespace(propagation: str) -> Iterator[int]:
    """A process in a mount namespace of its own whose mounts have this propagation; its number."""
    with holding("unshare", "-m", "--propagation", propagation) as pid:
        yield pid


@contextmanager
def holding(*around: str) -> Iterator[int]:
    """A process that waits behind these words until the end; its number."""
    words = (*around, "sh", "-c", "echo in; read _")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n", f"{' '.join(around)} does not work here"
        try:
            yield process.pid
        finally:
            process.communicate("\n")


def entered(pid: int) -> tuple[str, ...]:
    """Words before a command that runs it in the mount namespace of a process, and below its root: that of a process
    in a chroot is not the namespace's."""
    return ("nsenter", "-t", str(pid), "-m", "-r", "-w", "--")


def mount_points(pid: int, below: Path) -> list[str]:
    """Mount points at or below a directory, as a process sees them, in the order of their making."""
    points = [line.split()[4] for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    return [point for point in points if point == str(below) or point.startswith(f"{below}/")]
