"""Whether a process of this machine is still the one that was written down: numbers are used again, starts are not."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

State = Literal["running", "gone", "unknown"]
"""Of a process that somebody wrote down; 'unknown' on another machine."""


def started(pid: int) -> str:
    """When a process began, in clock ticks since boot (proc(5), field 22 of stat); '' where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
