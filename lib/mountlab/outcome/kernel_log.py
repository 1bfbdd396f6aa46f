"""What the kernel complained of while a trial ran that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mountlab.core.errors import KERNEL
from mountlab.core.trial_files import TrialFiles

KERNEL_LINES = 8
"""Of the kernel's log: the last ones are nearest to the end of the trial."""
_RECORD = re.compile(r"^<\d+>(?:\[ *[\d.]+\](?:\[ *[TC]\d+\])? ?)?")
_OUT_OF_MEMORY = re.compile(r"[Oo]ut of memory: Killed process \d+ \(([^)]*)\)")


def kernel_words(files: Mapping[str, bytes]) -> list[str]:
    """Return the lines of the kernel's log, without stamps."""
    lines = files.get(TrialFiles.KERNEL, b"").decode(errors="replace").splitlines()
    return [text for line in lines if (text := _RECORD.sub("", line).strip())]


def with_kernel(reason: str, words: Sequence[str]) -> str:
    """Return a reason with the kernel's last words below it, as the evidence of an error has them."""
    if not words or KERNEL in reason:
        return reason
    lines = [KERNEL, *dict.fromkeys(words[-KERNEL_LINES:])]
    return "\n".join([reason, *(f"    | {line}" for line in lines)])


def killed_for_memory(files: Mapping[str, bytes]) -> list[str]:
    """Return the programs that the kernel killed because memory had run out."""
    killed = [match[1] for line in kernel_words(files) if (match := _OUT_OF_MEMORY.search(line))]
    return list(dict.fromkeys(killed))
