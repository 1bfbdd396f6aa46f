"""Whether a process of this machine is still the one that was written down: numbers are used again, starts are not."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal

ProcessState = Literal["running", "gone", "unknown", "hidden"]
"""Of a process that somebody wrote down; 'unknown' on another machine, 'hidden' in another PID namespace."""


def started(pid: int) -> str:
    """When a process began, in clock ticks since boot (proc(5), field 22 of stat); '' where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def boot_id() -> str:
    """Return what the kernel calls this boot; '' where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the number of our PID namespace: in another one, such as a container, the same process has another number.
    '' where the kernel does not say."""
    try:
        return os.readlink("/proc/self/ns/pid").partition("[")[2].rstrip("]")
    except OSError:
        return ""


def state_elsewhere(host: str, boot: str, namespace: str) -> ProcessState | None:
    """Return the state of a process from where it ran; None where that is here, so that its number and start decide.
    '' for a boot or a namespace that was not written down."""
    if host != socket.gethostname():
        return "unknown"
    if boot not in ("", boot_id()):
        return "gone"
    return "hidden" if namespace not in ("", pid_namespace()) else None
