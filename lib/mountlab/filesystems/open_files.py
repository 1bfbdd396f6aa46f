"""The files that a watched program had open, as a box saw them by looking at its processes now and then (trial.sh)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mountlab.core.mountinfo import MountLine, mount_lines
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.evidence import parts_by_heading


@dataclass(frozen=True)
class OpenDirectory:
    """A directory in which files were open."""

    path: str
    files: int
    read: int
    """Of these files, those that were open for reading."""
    written: int
    """Of these files, those that were open for writing."""
    size_bytes: int
    """Of the files that were there when the program had ended."""


@dataclass(frozen=True)
class OpenFiles:
    """What was seen of the files of a watched program."""

    looks: int = 0
    """How often its processes were looked at."""
    pipes: int = 0
    """How often one of them was seen to have a pipe, a socket, a device without end or a file of /proc or /sys open for
    reading."""
    directories: Sequence[OpenDirectory] = ()
    lines: Sequence[MountLine] = ()
    """All mounts of the box."""
    place: str = ""
    """The directory of the program without symbolic links, as paths of open files are; '' where that was not seen."""

    @cached_property
    def mounts(self) -> Mapping[str, MountLine]:
        """Directory with open files to the mount that holds it."""
        holders = {directory.path: self.holder(directory.path) for directory in self.directories}
        return {path: mount for path, mount in holders.items() if mount}

    def own_mount(self, path: str) -> MountLine | None:
        """Return the mount that holds the directory of the program, `path` as it was given."""
        return self.holder(self.place or path)

    def holder(self, path: str) -> MountLine | None:
        """Return the mount that holds a directory: the longest mount point on its way, the latest of several there."""
        on_the_way = [line for line in self.lines if f"{path}/".startswith(f"{line.mountpoint.rstrip('/')}/")]
        return max(reversed(on_the_way), key=lambda line: len(line.mountpoint), default=None)


def read_open_files(files: Mapping[str, str]) -> OpenFiles | None:
    """Return what a trial brought back; None where its processes could not be looked at."""
    parts = parts_by_heading(files.get(TrialFiles.OPEN_FILES, ""))
    if not parts.get("looks", "").strip().isdecimal():
        return None
    directories = []
    for line in parts.get("directories", "").splitlines():
        files_, read, written, size, path = line.split(" ", 4)
        directories.append(OpenDirectory(path, int(files_), int(read), int(written), int(size)))
    pipes = parts.get("pipes", "").strip()
    return OpenFiles(
        int(parts["looks"]),
        int(pipes) if pipes.isdecimal() else 0,
        directories,
        mount_lines(parts.get("mountinfo", "")),
        parts.get("place", ""),
    )
