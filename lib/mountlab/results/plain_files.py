"""Files from others, looked at before they are read: a link could lead anywhere on this machine, a pipe would be waited
for for ever, a device has no end."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from mountlab.core.disk import read_plain
from mountlab.core.errors import StoreError

LARGEST_TEXT = 64 * 1024 * 1024
"""Bytes of a parameter file, or of a run.json."""
LARGEST_NAMED = 1024 * 1024
"""Bytes of a text that a parameter file names. The job files and WML files that people write have some thousand."""
_BELOW = "a file in the directory of that parameter file or below it; no part of its name begins with a dot"


def check_text(path: Path, where: str) -> None:
    """Raise StoreError for what is not a file, or too large for a text that people write. Links are followed: the path
    is the user's. OSError where there is nothing."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise StoreError("not a file", where=where, got=stat.filemode(status.st_mode), allowed="a plain file")
    if status.st_size > LARGEST_TEXT:
        raise StoreError("too large to be read", where=where, got=f"{status.st_size} B", allowed=f"{LARGEST_TEXT} B")


def check_below(name: str, where: str) -> None:
    """Raise StoreError for a name that is absolute, leads upwards, or goes through what is hidden: a parameter file
    from others names its own files, and neither keys in `.ssh` nor the files of a system."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or "\0" in name or any(part.startswith(".") for part in path.parts):
        raise StoreError(
            "a file that a parameter file names lies beside it",
            where=where,
            got=repr(name),
            allowed=_BELOW,
            next_step="copy it there; `jobs` and `wml` take the text itself, and `mountlab import 'PATTERN'` takes "
            "logs from anywhere",
        )


def resolved_below(directory: Path, name: str, where: str) -> Path:
    """Return where a named file really lies. Raises StoreError for a name that leads out of the directory, also through
    a link."""
    check_below(name, where)
    try:
        path = (directory / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no text, or links in a circle
        raise StoreError("the name of a file leads nowhere", where=where, got=repr(name)[:300]) from error
    if not path.is_relative_to(directory.resolve()):
        raise StoreError(
            "a link leads out of the directory of the parameter file",
            where=where,
            got=repr(name),
            allowed=_BELOW,
            next_step="copy the file there",
        )
    return path


def read_below(directory: Path, name: str, where: str) -> str:
    """Return the text of a file that a parameter file names, with the ends of lines that YAML reads. Raises StoreError
    for a name that leads elsewhere, for what is no plain file, and for what is too large or no text."""
    path = resolved_below(directory, name, where)
    try:
        return read_plain(path, LARGEST_NAMED).decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise StoreError(
            "no such file named by the sweep",
            where=where,
            got=f"{name!r}: {error.strerror}",
            next_step="correct its path in the sweep file",
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError("a file named by the sweep is text in UTF-8", where=where, got=str(error)) from error
    except StoreError as error:
        raise StoreError(error.what, where=where, got=f"{name!r}: {error.got}", allowed=error.allowed) from error


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
                        "a run holds files and directories only",
                        where=place,
                        got=kind,
                        next_step="look at where it leads; without it the run can be read",
                    )
