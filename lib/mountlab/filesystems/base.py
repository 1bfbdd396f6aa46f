"""What every family of file systems tells Mountlab about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from mountlab.core.box_facts import BoxFacts
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import FILES, Filesystem, Place, Program, Step, StepRole, Target, Workload, everywhere
from mountlab.core.shell import script_argv
from mountlab.core.state import State
from mountlab.filesystems.documented import undocumented
from mountlab.filesystems.evidence import split_options
from mountlab.filesystems.without_effect import foreseen

MOUNT = Program(name="mount", packages=everywhere("util-linux", apt="mount"), version=("mount", "--version"))
NOT_MOUNTED = ""
"""`mounted_as` of a file system that Mountlab does not mount."""
ANYTHING = "*"
"""`mounted_as` of a mount whose type is that of whatever lies below."""
OF_ANY_MOUNT = (
    "defaults", "ro", "rw", "sync", "async", "dirsync", "atime", "noatime", "diratime", "nodiratime", "relatime",
    "norelatime", "strictatime", "lazytime", "nolazytime", "suid", "nosuid", "dev", "nodev", "exec", "noexec",
)  # fmt: skip
"""Options that the kernel itself applies to every file system (mount(8), FILESYSTEM-INDEPENDENT MOUNT OPTIONS)."""
BLOCK_DEVICE = "raw"
"""`mounted_as` of a device that is used without a file system."""


class Family(ABC):
    """A family of file system types. Pure: it names commands, and runs nothing.

    What stands here is what most have in common: a mount of their own, made as root, that takes every workload.
    """

    type: str
    needs_root = True
    in_memory = False
    """Data lives in the page cache itself, so 'served from the cache' says nothing against a read."""
    keys: frozenset[str] = frozenset({"options"})
    """Keys of a sweep file that it understands, beside `type`."""
    in_place = False
    """Whether it is a directory in which Mountlab makes nothing, not even directories of trials."""
    controlled = True
    """Whether it is once mounted without any option, to see what the kernel shows by itself."""
    expected = True
    """Whether any box should have it: one that has not is unfit, and otherwise only limited."""
    made = True
    """Whether a mount makes it; an existing directory was made by its owner."""
    cache_counters: tuple[str, ...] = ()
    """Files of the kernel that count what caches beside the page cache answered (filesystems.cache_counters)."""
    kernel_hint = ""
    """How a box whose kernel lacks it gets it."""
    client_programs: tuple[Program, ...] = ()
    """Programs that a client needs to mount it."""
    client_kernel_types: tuple[str, ...] = ()
    """The types that a client's kernel must know."""

    def state_commands(self, place: Place) -> tuple[tuple[str, ...], ...]:
        """Return commands that show whether what it lies on is whole (filesystems.arrays), run around each trial."""
        return ()

    @property
    def programs(self) -> tuple[Program, ...]:
        """Programs that every file system of this family needs."""
        return (MOUNT,)

    @property
    def kernel_types(self) -> tuple[str, ...]:
        """The types that the box's kernel must know."""
        return (self.type,)

    @abstractmethod
    def check(self, fs: Filesystem, *, where: str) -> None:
        """Raise ParameterError where the settings do not make sense together."""

    def needed_programs(self, fs: Filesystem) -> tuple[Program, ...]:
        """Return the programs that this file system needs, its backing included."""
        return self.programs

    @abstractmethod
    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        """Return commands that make the file system and mount it, in order, each with its undo."""

    def root_of(self, fs: Filesystem, place: Place) -> str:
        """Return the directory below which trials make their own directories."""
        return place.mountpoint

    def target_of(self, fs: Filesystem, place: Place) -> Target:
        """Return what trials read and write."""
        return FILES

    def evidence_devices(self, fs: Filesystem) -> tuple[str, ...]:
        """Return the devices whose super blocks are read back."""
        return ()

    def mounted_as(self, fs: Filesystem) -> str:
        """Return the type that /proc/self/mountinfo must show at the root, NOT_MOUNTED, ANYTHING or BLOCK_DEVICE."""
        return self.kernel_types[0]

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        """Return the mount options that Mountlab adds to those of the sweep."""
        return ()

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        """Return how many bytes a workload may write into it; None where only the box can report that."""
        return None

    def refuses(self, fs: Filesystem, workload: Workload) -> str | None:
        """Return why this workload cannot run on it; None where it can."""
        return None

    def refuses_state(self, fs: Filesystem, state: State) -> str | None:
        """Return why it cannot be brought into a state; None where it can."""
        return f"a state is kept as an image of a device, and {fs.type} is none: image: SIZE, or device: NAME"

    def refuses_clients(self, fs: Filesystem) -> str | None:
        """Return why several boxes cannot drive it together; None where they can."""
        return f"{fs.type} is seen by one box only; clients share nfs, or a directory (type: dir) that all of them see"

    def client_steps(self, fs: Filesystem, place: Place, own: Place) -> tuple[Step, ...]:
        """Return commands that bring a client what was made at `place` of the box; `own` is where on the client."""
        return ()

    def client_root(self, fs: Filesystem, place: Place, own: Place) -> str:
        """Return the directory below which trials make theirs, as a client sees it."""
        return self.root_of(fs, place)

    def unavailable(self, fs: Filesystem, facts: BoxFacts) -> str | None:
        """Return why a box with these facts can never mount it; None where it may."""
        return None

    def judge(self, fs: Filesystem, files: Mapping[str, str]) -> list[OptionEvidence] | None:
        """Return each option and what the family's own tools show of it; None where the kernel's report on the mount
        tells."""
        return None

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        """Return option to what the kernel will do with it on a box with these facts, where that is not what the sweep
        requests."""
        words = [word for option in fs.options for word in split_options(option)]
        kind = self.mounted_as(fs)
        return undocumented(kind, words) | foreseen(kind, words, facts.kernel.release or "")


def mount_step(fs: Filesystem, kind: str, source: str, place: Place, own: tuple[str, ...] = ()) -> Step:
    """Return a step `mount -t KIND -o OPTIONS SOURCE MOUNTPOINT`, timed. `own`: options before the sweep's."""
    options = ",".join((*own, *fs.options))
    argv = ("mount", "-t", kind, *(("-o", options) if options else ()), source, place.mountpoint)
    undo = ("umount", place.mountpoint)
    return timed_step(argv, StepRole.MOUNT, why=f"mount {fs.name}", keep="mount.txt", undo=undo)


def directory_step(directory: str, why: str = "the mount point, in the run's own directory") -> Step:
    """Return a step that makes a directory below the run's own, undone by rmdir."""
    return Step(argv=("mkdir", "-p", directory), why=why, undo=("rmdir", directory))


def script_step(
    script: str,
    *arguments: str,
    why: str,
    keep: str | None = None,
    guard: bool = False,
    binds: str | None = None,
    undo: tuple[str, ...] | None = None,
) -> Step:
    """Return a step that runs one of the shell scripts beside this file on the box."""
    return Step(argv=script_argv(script, *arguments), why=why, keep=keep, guard=guard, binds=binds, undo=undo)


def borrow_step(
    place: Place, kind: str, *arguments: str, back: tuple[str, ...], why: str, binds: str | None = None
) -> Step:
    """Return a step that takes something of the box's own for the time of a mount (borrow.sh). `back`: kind and name by
    which it is given back."""
    undo = script_argv("borrow.sh", "back", place.run_dir, *back)
    return script_step("borrow.sh", kind, place.run_dir, *arguments, why=why, binds=binds, undo=undo)


def timed_step(
    argv: tuple[str, ...], role: StepRole = StepRole.OTHER, *, why: str, keep: str, undo: tuple[str, ...] | None = None
) -> Step:
    """Return a step whose duration and kernel log are kept."""
    return Step(argv=script_argv("timed.sh", *argv), role=role, why=why, keep=keep, undo=undo)


def evidence_step(root: str, *devices: str) -> Step:
    """Return a step that reads the kernel's report on the file system that holds `root` (filesystems.evidence)."""
    step = script_step("evidence.sh", root, *devices, why="read back what the kernel says", keep="evidence.txt")
    return replace(step, role=StepRole.EVIDENCE)
