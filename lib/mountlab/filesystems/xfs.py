"""xfs."""

from __future__ import annotations

from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, Workload, everywhere
from mountlab.core.units import MIB
from mountlab.filesystems import backing
from mountlab.filesystems.backing import DEVICE, JOURNAL
from mountlab.filesystems.device import DeviceFamily, merged
from mountlab.filesystems.guard import mark_argv


class Xfs(DeviceFamily):
    """The X file system. What others call an external journal it calls an external log (logdev)."""

    type = "xfs"
    make = Program(name="mkfs.xfs", packages=everywhere("xfsprogs"), version=("mkfs.xfs", "-V"))
    smallest_bytes = 300 * MIB
    """Since xfsprogs 5.19 mkfs.xfs refuses smaller ones."""
    # Not -c and -p (they name files), -L (ours), -r (a third device), -N (it makes no file system).
    mkfs_with_argument = frozenset(f"-{letter}" for letter in "bdilmns")
    mkfs_alone = frozenset({"-K"})
    mkfs_reserved = frozenset({",logdev=", ",name=", ",file", ",rtdev=", ",uuid=", ",internal=0"})

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """`-K` on an image with all its blocks keeps them: a discard would punch them out again."""
        words = merged(fs.mkfs, "-m", f"uuid={place.uuid}")
        if backing.has_journal(fs):
            words = merged(words, "-l", f"logdev={JOURNAL}")
        full = ("-K",) if fs.image_bytes and fs.preallocate and "-K" not in words else ()
        return ("mkfs.xfs", "-f", "-q", *full, *words, DEVICE)

    def journal_steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        """mkfs.xfs writes the log as well, but its guard has looked at one device only: the other is marked first, with
        the UUID of the file system, which its log will carry."""
        if fs.journal_device is None:
            return ()
        mark = mark_argv(JOURNAL, place.uuid)
        why = "mark the external log as ours"
        return (
            backing.format_step(fs, place, mark, why=why, keep="mark-journal.txt", role=StepRole.OTHER, journal=True),
        )

    def refuses(self, fs: Filesystem, workload: Workload) -> str | None:
        if workload.tool != "reflink" or "reflink=0" not in ",".join(fs.mkfs).split(","):
            return None
        return "mkfs was given reflink=0, so that its files cannot share blocks; leave that out"

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return (f"logdev={JOURNAL}",) if backing.has_journal(fs) else ()
