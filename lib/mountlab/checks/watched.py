"""Of watched programs: whether their files lay where one looked, and whether a server answered from its memory."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks import places
from mountlab.checks.base import Check, Doubt, Evidence, of_trials
from mountlab.checks.traffic import CACHED_BELOW, TELLING_BYTES, range_of
from mountlab.core.groups import by_key
from mountlab.core.model import Cell
from mountlab.core.numbers import listed
from mountlab.core.units import format_bytes
from mountlab.filesystems import is_in_place
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import is_server

_MOST_NAMED = 3
_HERE = ("127.", "localhost:", "[::1]:")
"""How the source of a mount begins that this box serves itself."""


def files_elsewhere(evidence: Evidence) -> Iterator[Doubt]:
    """Watched programs whose files lay on another file system than their directory: device, options and flushes are
    those of the wrong one.

    Most of the bytes of the files that it was seen to have open lay on another mount than its directory.
    """
    for cell, trials in evidence.trials_with(evidence.open_files):
        mounts = {trial_id: places.elsewhere(files, str(cell.filesystem.path)) for trial_id, files in trials}
        found = {trial_id: mount for trial_id, mount in mounts.items() if mount}
        if found:
            names = list(dict.fromkeys(mount.label for mount in found.values()))
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(found), trials)} most of the bytes in the files that it had open lay on "
                f"{listed(names[:_MOST_NAMED])}, and not on the file system of {cell.filesystem.path}: figures of "
                f"the device are not about these. Watch it with --in and a directory there.",
            )


def server_answered(evidence: Evidence) -> Iterator[Doubt]:
    """Reads over NFS that the server answered from its memory.

    The box serves the mount itself, and in some trial its devices delivered less than 90 % of what the server sent.
    A note where another machine serves it: whether its memory answered cannot be seen from here.
    """
    for cell, trials in evidence.trials_with(evidence.around):
        read = [
            (trial_id, point, moved.from_server, _all_read(around))
            for trial_id, around in trials
            for point, moved in around.nfs.items()
            if moved.from_server >= TELLING_BYTES
        ]
        for point, rows in by_key((row[1], row) for row in read).items():
            if not _is_served_here(evidence, cell, rows[0][0], point):
                most = format_bytes(float(max(row[2] for row in rows)))
                yield Doubt.of_cell(
                    cell,
                    f"{point} is served by another machine, which sent up to {most}: "
                    "whether its memory or its disks answered cannot be seen from here. Look there, or read more than "
                    "its memory holds.",
                    severity="note",
                )
                continue
            served = [row for row in rows if row[3] < CACHED_BELOW * row[2]]
            if served:
                shares = range_of([devices / sent for _, _, sent, devices in served])
                most = format_bytes(float(max(row[2] for row in served)))
                yield Doubt.of_cell(
                    cell,
                    f"{of_trials([row[0] for row in served], trials)} the server of {point} sent up to {most}, "
                    f"and its devices delivered {shares} of it: the server's memory answered the rest. This is not "
                    "the speed of its disks.",
                )


def _is_served_here(evidence: Evidence, cell: Cell, trial_id: str, point: str) -> bool:
    if cell.filesystem.type == "nfs" or len(evidence.levels_of(trial_id)) > 1:
        return True
    lines = (line for files in evidence.open_files.values() for line in files.lines if line.mountpoint == point)
    sources = {line.source for line in lines}
    return bool(sources) and all(source.startswith(_HERE) for source in sources)


def _all_read(around: Around) -> int:
    """Return what all block devices delivered, of those on top of each other the one that delivered the most: no less
    than what reached the disks."""
    return max((moved.read for device, moved in around.traffic.items() if not is_server(device)), default=0)


def _not_watched(evidence: Evidence) -> str | None:
    watched = any(is_in_place(cell.filesystem) for cell in evidence.sweep.cells)
    looks = sum(files.looks for files in evidence.open_files.values())
    return "its processes could not be looked at" if watched and not looks else None


CHECKS = (
    Check(
        "files-elsewhere",
        files_elsewhere,
        "Watch it in a directory of the file system that it uses.",
        blind=_not_watched,
    ),
    Check(
        "server-answered",
        server_answered,
        "Read more than the memory of the server holds, or empty its caches before each run.",
        severities=("warning", "note"),
    ),
)
