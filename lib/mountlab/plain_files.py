"""Files from others, looked at before they are read: a link could lead anywhere on this machine, a pipe would be waited
for for ever, a device has no end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mountlab.errors import StoreError

LARGEST_TEXT = 64 * 1024 * 1024
"""Bytes of a parameter file, or of a run.json."""


def check_text(path: Path, where: str) -> None:
    """Raise StoreError for what is not a file, or too large for a text that people write. Links are followed: the path
    is the user's. OSError where there is nothing."""
    found = path.stat()
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise StoreError("not a file", where=where, got=stat.filemode(found.st_mode), allowed="a plain file")
    if found.st_size > LARGEST_TEXT:
        raise StoreError("too large to be read", where=where, got=f"{found.st_size} B", allowed=f"{LARGEST_TEXT} B")


def refuse_others(directory: Path, where: str) -> None:
    """Raise StoreError unless everything below a directory is a plain file or a directory."""
    pending = [str(directory)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    kind = "a link" if entry.is_symlink() else "a pipe, a socket or a device"
                    place = f"{where}/{os.path.relpath(entry.path, directory)}"
                    raise StoreError(
                        "a run holds files and directories only", where=place, got=kind,
                        next_step="look at where it leads; without it the run can be read",
                    )  # fmt: skip
