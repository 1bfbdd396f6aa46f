"""Lines of /proc/self/mountinfo, turned into values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from mountlab.core.errors import ParseError


@dataclass(frozen=True)
class MountLine:
    """One line of /proc/self/mountinfo (proc(5))."""

    device: str
    """'major:minor'."""
    mountpoint: str
    fstype: str
    source: str
    options: str
    """Per-mount and per-super-block options, joined by commas."""
    text: str = field(default="", compare=False)
    """The line as the kernel wrote it; '' where there is none."""

    @property
    def label(self) -> str:
        """Where and what it is, for a sentence: '/srv (ext4)'."""
        return f"{self.mountpoint} ({self.fstype})"


def mount_lines(mountinfo: str) -> list[MountLine]:
    """Return every line of /proc/self/mountinfo, octal escapes undone. Raises ParseError for a line it cannot read."""
    return [_mount_line(line) for line in mountinfo.splitlines() if line.strip()]


@lru_cache(maxsize=4096)  # evidence of a run has the same lines a hundred times over
def _mount_line(line: str) -> MountLine:
    left, dash, right = line.partition(" - ")
    mount, super_block = left.split(" "), right.split(" ")
    if not dash or len(mount) < 6 or len(super_block) < 3:
        raise ParseError("a line of /proc/self/mountinfo cannot be read", got=repr(line))
    return MountLine(
        device=mount[2],
        mountpoint=unescape(mount[4]),
        fstype=super_block[0],
        source=unescape(super_block[1]),
        options=",".join((mount[5], " ".join(super_block[2:]))),
        text=line,
    )


def unescape(text: str) -> str:
    r"""Return a path as the kernel writes it, with blank, tab, newline and backslash as \040, \011, \012, \134."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
