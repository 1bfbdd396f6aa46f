"""xfs."""

from __future__ import annotations

from itertools import pairwise

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, Workload, everywhere
from mountlab.core.state import State
from mountlab.core.units import MIB, format_bytes
from mountlab.filesystems import backing
from mountlab.filesystems.backing import DEVICE, JOURNAL, REALTIME
from mountlab.filesystems.device import DeviceFamily, merged
from mountlab.filesystems.guard import mark_argv

SMALLEST_REALTIME = 16 * MIB


class Xfs(DeviceFamily):
    """The X file system. What others call an external journal it calls an external log (logdev). The data of files may
    lie on a realtime device, which needs a kernel with CONFIG_XFS_RT."""

    type = "xfs"
    make = Program(name="mkfs.xfs", packages=everywhere("xfsprogs"), version=("mkfs.xfs", "-V"))
    smallest_bytes = 300 * MIB
    """Since xfsprogs 5.19 mkfs.xfs refuses smaller ones."""
    keys = DeviceFamily.keys | {"realtime_image"}
    # Not -c and -p (they name files), -L (ours), -N (it makes no file system).
    mkfs_with_argument = frozenset(f"-{letter}" for letter in "bdilmnrs")
    mkfs_alone = frozenset({"-K"})
    mkfs_reserved = frozenset({",logdev=", ",name=", ",file", ",rtdev=", ",uuid=", ",internal=0"})

    def check(self, fs: Filesystem, *, where: str) -> None:
        super().check(fs, where=where)
        size = fs.realtime_image_bytes
        if size is not None and size < SMALLEST_REALTIME:
            raise ParameterError(
                "too small for a realtime device of xfs",
                where=f"{where}.realtime_image",
                got=format_bytes(float(size)),
                allowed=f"{format_bytes(float(SMALLEST_REALTIME))} or more",
            )
        given = [item for letter, items in _pairs(fs.mkfs) for item in items.split(",") if letter != "-r"]
        if size is None and ("-r" in fs.mkfs or "rtinherit=1" in given):
            raise ParameterError(
                "xfs has no realtime device here",
                where=f"{where}.mkfs",
                got=" ".join(fs.mkfs),
                allowed="-r and -d rtinherit=1 beside realtime_image: SIZE",
            )
        not_there = [item for item in given if item in ("reflink=1", "rmapbt=1", "rtinherit=0")]
        if size is not None and not_there:
            raise ParameterError(
                "with a realtime device there can be no such option",
                where=f"{where}.mkfs",
                got=not_there[0],
                allowed="any but reflink=1 and rmapbt=1, which mkfs.xfs refuses, and rtinherit=0, with which no data "
                "would lie on it",
            )

    def mkfs_argv(self, fs: Filesystem, place: Place) -> tuple[str, ...]:
        """`-K` on an image with all its blocks keeps them: a discard would punch them out again. With `rtinherit=1` the
        data of every file goes to the realtime device."""
        words = merged(fs.mkfs, "-m", f"uuid={place.uuid}")
        if backing.has_journal(fs):
            words = merged(words, "-l", f"logdev={JOURNAL}")
        if fs.realtime_image_bytes:
            words = merged(merged(words, "-d", "rtinherit=1"), "-r", f"rtdev={REALTIME}")
        full = ("-K",) if fs.images_bytes and fs.preallocate and "-K" not in words else ()
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
        if workload.tool == "reflink" and fs.realtime_image_bytes:
            return "files on a realtime device cannot share blocks"
        if workload.tool != "reflink" or "reflink=0" not in ",".join(fs.mkfs).split(","):
            return None
        return "mkfs was given reflink=0, so that its files cannot share blocks; leave that out"

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        log = (f"logdev={JOURNAL}",) if backing.has_journal(fs) else ()
        return (*log, *((f"rtdev={REALTIME}",) if fs.realtime_image_bytes else ()))

    def evidence_devices(self, fs: Filesystem) -> tuple[str, ...]:
        return (*super().evidence_devices(fs), *((REALTIME,) if fs.realtime_image_bytes else ()))

    def refuses_state(self, fs: Filesystem, state: State) -> str | None:
        if fs.realtime_image_bytes:
            return "its data lie on a realtime device: a state is an image of one device"
        return super().refuses_state(fs, state)

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """Of a realtime device: nearly all of it, since everything but data lies on the other device."""
        if fs.realtime_image_bytes:
            return int(fs.realtime_image_bytes * 0.98)
        return super().capacity_bytes(fs)


def _pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [pair for pair in pairwise(words) if pair[0].startswith("-")]
