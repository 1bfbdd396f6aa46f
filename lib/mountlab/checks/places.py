"""Where the files of a watched program were, by looks at its processes."""

from __future__ import annotations

from collections.abc import Iterable

from mountlab.checks.traffic import CACHED_BELOW, TELLING_BYTES, Below
from mountlab.core.mountinfo import MountLine
from mountlab.filesystems.cache_counters import why_fetches_unseen
from mountlab.filesystems.counters import Around
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles

_LOOKS = 3
"""Looks that would have seen a pipe that is read all the time."""
_SHARES_BLOCKS = ("bcachefs", "btrfs", "ceph", "cifs", "nfs4", "ocfs2", "overlay", "xfs")
_IN_MEMORY = ("tmpfs", "ramfs")


def elsewhere(files: OpenFiles, path: str) -> MountLine | None:
    """Return the mount with the most bytes of the files that were open, where the directory of the program lies on
    another one; None where it does not, or too little is known."""
    sizes = _bytes_by_mount(files, files.directories)
    if not sizes or not (own := files.own_mount(path)):
        return None
    largest = max(sizes, key=lambda mount: sizes[mount])
    return largest if sizes[largest] >= TELLING_BYTES and largest.device != own.device else None


def writes_elsewhere(files: OpenFiles, path: str) -> MountLine | None:
    """Return a mount other than that of its directory which took much of what a program wrote, or most of it: what
    the device below its directory took and flushed says nothing of that. None for memory, and where it is not known."""
    own = files.own_mount(path)
    sizes = _bytes_by_mount(files, [one for one in files.directories if one.written])
    others = [mount for mount in sizes if own and mount.device != own.device and mount.fstype not in _IN_MEMORY]
    if not others:
        return None
    largest = max(others, key=lambda mount: sizes[mount])
    here = sum(size for mount, size in sizes.items() if own and mount.device == own.device)
    return largest if sizes[largest] >= TELLING_BYTES or sizes[largest] > here else None


def _bytes_by_mount(files: OpenFiles, directories: Iterable[OpenDirectory]) -> dict[MountLine, int]:
    """Return mount to the bytes of the files that were open there in these directories."""
    sizes: dict[MountLine, int] = {}
    for directory in directories:
        if mount := files.mounts.get(directory.path):
            sizes[mount] = sizes.get(mount, 0) + directory.size_bytes
    return sizes


def reads_no_files(files: OpenFiles) -> bool:
    """Return whether a program was seen to read pipes, sockets, /dev/zero or /proc, with no files open that could hold
    what its calls read."""
    return bool(files.pipes) and not saw_files_read(files)


def reads_only_files(files: OpenFiles, read: int) -> bool:
    """Return whether what a program read came from files: several looks saw these, with half of the bytes at least,
    and no pipe."""
    return not files.pipes and files.looks >= _LOOKS and 2 * bytes_to_read(files) >= read


def bytes_to_read(files: OpenFiles) -> int:
    """Return the bytes of the files that it was seen to read, with those beside them that it had open."""
    return sum(one.size_bytes for one in files.directories if one.read)


def saw_files_read(files: OpenFiles) -> bool:
    """Return whether files that it read were seen, with so many bytes that they tell something."""
    return bytes_to_read(files) >= TELLING_BYTES


def may_share_blocks(files: OpenFiles) -> bool:
    """Return whether a program was seen to write files where a copy may share the blocks of its source (reflink): calls
    of copy_file_range count as read and written there, and nothing is."""
    return any(
        one.written and one.size_bytes >= TELLING_BYTES and mount.fstype in _SHARES_BLOCKS
        for one in files.directories
        if (mount := files.mounts.get(one.path))
    )


def fetches_unseen(files: OpenFiles, path: str) -> str:
    """Return why it is not known what storage delivered to a program: its directory, or files that it read, lie on a
    file system whose deliveries /proc/PID/io does not tell; '' where they are known."""
    read = [one for one in files.directories if one.read and one.size_bytes >= TELLING_BYTES]
    mounts = [files.own_mount(path), *(files.mounts.get(one.path) for one in read)]
    reasons = (f"{mount.mountpoint}: {why}" for mount in mounts if mount and (why := why_fetches_unseen(mount.fstype)))
    return next(reasons, "")


def loops_unseen(files: OpenFiles | None, path: str, around: Around, below: Below | None) -> str:
    """Return why storage delivered no more than it is said to have: to the program, a loop device that is not below its
    directory is storage, too, whatever answered for its image. '' where its files were seen on others."""
    if files and _came_from_disks(files, path, around.fetched or 0):
        return ""
    chain = below.chain if below else ()
    loops = {
        around.names[device]: moved.read
        for device, moved in around.traffic.items()
        if device not in chain and around.names.get(device, "").startswith("loop") and moved.read
    }
    may_be = min(sum(loops.values()), around.fetched or 0)
    if may_be < max(TELLING_BYTES, (1 - CACHED_BELOW) * (around.read_calls or 0)):
        return ""
    busiest = max(loops, key=lambda name: loops[name])
    return f"{busiest}, which is not below its directory: memory may have answered the reads of its image"


def _came_from_disks(files: OpenFiles, path: str, fetched: int) -> bool:
    """Return whether the files that a program was seen to read hold all that storage delivered to it, and lie on no
    loop device but the one below its directory."""
    own, on_disks = files.own_mount(path), 0
    for directory in files.directories:
        mount = files.mounts.get(directory.path)
        if not directory.read or not mount:
            continue
        is_own = own is not None and mount.device == own.device
        if mount.source.startswith("/dev/loop") and not is_own and directory.size_bytes >= TELLING_BYTES:
            return False
        if is_own or mount.source.startswith("/dev/") or mount.fstype in _IN_MEMORY:
            on_disks += directory.size_bytes
    return fetched <= on_disks + TELLING_BYTES
