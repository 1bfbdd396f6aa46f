"""What every family of file systems tells Mountlab about itself."""

from __future__ import annotations

from importlib.resources import files
from typing import Protocol

from mountlab.model import Filesystem, Place, Program, Step, everywhere

MOUNT = Program(name="mount", packages=everywhere("util-linux", apt="mount"), version=("mount", "--version"))
LOSETUP = Program(name="losetup", packages=everywhere("util-linux", apt="mount"), version=("losetup", "--version"))
BLKID = Program(name="blkid", packages=everywhere("util-linux"), version=("blkid", "--version"))

Evidence = dict[str, str]
"""File name to text, as read on the box after mounting."""


class Family(Protocol):
    """A family of file system types. Pure: it names commands and reads evidence, and runs nothing."""

    type: str
    needs_root: bool
    in_memory: bool
    """Data lives in the page cache itself, so 'served from the cache' says nothing against a read."""
    keys: frozenset[str]
    """Keys of a sweep file that it understands, beside `type`."""
    programs: tuple[Program, ...]

    def check(self, fs: Filesystem, *, where: str) -> None:
        """Raise ParameterError where the settings do not make sense together."""

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        """Commands that make the file system and mount it, in order, each with its undo."""

    def root_of(self, fs: Filesystem, place: Place) -> str:
        """The directory below which trials make their own directories."""

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """What a workload may write into it; None where only the box can tell."""

    def in_effect(self, fs: Filesystem, evidence: Evidence) -> dict[str, str]:
        """Option name to value, as the kernel states them ('' for an option without a value)."""


def mount_step(fs: Filesystem, source: str, place: Place, extra: tuple[str, ...] = ()) -> Step:
    """`mount -t TYPE -o OPTIONS SOURCE MOUNTPOINT`, undone by umount."""
    options = ",".join((*extra, *fs.options))
    return Step(
        argv=("mount", "-t", fs.type, *(("-o", options) if options else ()), source, place.mountpoint),
        why=f"mount {fs.name}",
        undo=("umount", place.mountpoint),
        # mount says "wrong fs type, bad option, bad superblock" of everything: the reason is in the kernel's log
        explain=("sh", "-c", "dmesg 2>/dev/null | tail -n 4"),
    )


def directory_step(place: Place) -> Step:
    """`mkdir` of the mount point, undone by rmdir."""
    return Step(
        argv=("mkdir", "-p", place.mountpoint),
        why="the mount point, in the run's own directory",
        undo=("rmdir", place.mountpoint),
    )


def script_step(
    script: str, *arguments: str, why: str, keep: str | None = None, guard: bool = False, binds: str | None = None
) -> Step:
    """A step that runs one of the shell scripts beside this file on the box."""
    text = files("mountlab.filesystems").joinpath(script).read_text()
    return Step(argv=("sh", "-c", text, script, *arguments), why=why, keep=keep, guard=guard, binds=binds)


def evidence_step(root: str) -> Step:
    """Reads back what the kernel says of the file system that holds `root`; see mountlab.evidence."""
    return script_step("evidence.sh", root, why="read back what the kernel says of the mount", keep="evidence.txt")
