"""The kernel's log while a failed trial ran."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mountlab.core.errors import KERNEL
from mountlab.core.trial_files import TrialFiles

KERNEL_LINES = 8
"""How many of the log's last lines are quoted: they are nearest to the end of the trial."""
_RECORD = re.compile(r"^<\d+>(?:\[ *[\d.]+\](?:\[ *[TC]\d+\])? ?)?")
_OUT_OF_MEMORY = re.compile(r"[Oo]ut of memory: Killed process \d+ \(([^)]*)\)")


def kernel_lines(files: Mapping[str, bytes]) -> list[str]:
    """Return the lines of the kernel's log, without time stamps."""
    lines = files.get(TrialFiles.KERNEL, b"").decode(errors="replace").splitlines()
    return [text for line in lines if (text := _RECORD.sub("", line).strip())]


def with_kernel(reason: str, log: Sequence[str]) -> str:
    """Return a reason with the last lines of the kernel's log below it, in the form of an error's evidence."""
    if not log or KERNEL in reason:
        return reason
    lines = [KERNEL, *dict.fromkeys(log[-KERNEL_LINES:])]
    return "\n".join([reason, *(f"    | {line}" for line in lines)])


def out_of_memory_programs(files: Mapping[str, bytes]) -> list[str]:
    """Return the programs that the kernel killed because memory had run out."""
    programs = [match[1] for line in kernel_lines(files) if (match := _OUT_OF_MEMORY.search(line))]
    return list(dict.fromkeys(programs))
