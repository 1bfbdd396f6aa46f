"""The file systems that Mountlab can put under test. A new family is one new file and one entry here, or an
entry point of a plug-in."""

from __future__ import annotations

from mountlab.core import plugins
from mountlab.core.errors import UnsafeError
from mountlab.core.model import Filesystem, Place, Step
from mountlab.filesystems.base import Family
from mountlab.filesystems.btrfs import Btrfs
from mountlab.filesystems.directory import Bind, Directory, InPlace
from mountlab.filesystems.ext import Ext2, Ext3, Ext4
from mountlab.filesystems.f2fs import F2fs
from mountlab.filesystems.guard import unguarded
from mountlab.filesystems.memory import Hugetlbfs, Ramfs, Shmfs, Tmpfs
from mountlab.filesystems.nfs import Nfs
from mountlab.filesystems.overlay import Overlay
from mountlab.filesystems.pmfs import Pmfs
from mountlab.filesystems.raw import Raw
from mountlab.filesystems.xfs import Xfs
from mountlab.filesystems.zfs import Zfs

_PLAIN: tuple[Family, ...] = (
    Directory(),
    InPlace(),
    Bind(),
    Tmpfs(),
    Shmfs(),
    Ramfs(),
    Hugetlbfs(),
    Ext4(),
    Ext3(),
    Ext2(),
    Xfs(),
    Btrfs(),
    F2fs(),
    Zfs(),
    Raw(),
    Pmfs(),
    Nfs(),
)
_OWN: dict[str, Family] = {family.type: family for family in _PLAIN}
FAMILIES = plugins.Registry(plugins.FILESYSTEMS, _OWN, Family, key="type")  # type: ignore[type-abstract]
"""File system type to family."""
_OWN["overlay"] = Overlay(FAMILIES)


def kernel_types() -> dict[str, bool]:
    """Return the types of all families that a kernel may know, and whether any box should."""
    return {kind: family.expected for family in FAMILIES.values() for kind in family.kernel_types}


def guarded_steps(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    """Return the steps of a file system. Raises UnsafeError for a plug-in's that writes to a scratch device without the
    guard: this catches mistakes, and a plug-in has to be trusted all the same."""
    steps, types = FAMILIES[fs.type].steps(fs, place), (fs.type, *((fs.over.type,) if fs.over else ()))
    entry = next((entry for kind in types if (entry := FAMILIES.entry(kind))), None)
    for step in unguarded(steps, place) if entry else ():
        raise UnsafeError(
            "a plug-in would write to a scratch device without the guard",
            where=entry.where if entry else "",
            got=" ".join(step.argv),
            allowed="format_step of mountlab.filesystems.backing",
            next_step=f"nothing was touched; report it to the authors of {entry.distribution if entry else ''}",
        )
    return steps


def is_in_place(fs: Filesystem) -> bool:
    """Return whether it is a directory of the user's in which nothing is made. That of a log has no known type."""
    return fs.type in FAMILIES and FAMILIES[fs.type].in_place


def is_made(fs: Filesystem) -> bool:
    """Return whether mounting it makes it, what lies below it included."""
    return FAMILIES[fs.type].made and (fs.over is None or is_made(fs.over))
