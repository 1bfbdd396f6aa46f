"""The conformance suite of file systems: what a plan, the guard and the clean-up rely on.

`mountlab conform` runs it for plug-ins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mountlab.core.model import Filesystem, Place, Step, StepRole
from mountlab.filesystems.base import BLOCK_DEVICE, NOT_MOUNTED, Family
from mountlab.filesystems.guard import GUARD, MAKES_DEVICES, unguarded, uuid_for
from mountlab.runner.conformance.rules import NAME, Rule, require

RUN_DIR = "/mr/r1"
PLACE = Place(
    run_id="r1",
    run_dir=RUN_DIR,
    mountpoint=f"{RUN_DIR}/mnt/f",
    image=f"{RUN_DIR}/img/f.img",
    uuid=uuid_for("", "r1", "m1"),
    journal_uuid=uuid_for("", "r1", "m1", "journal"),
)
"""Where a file system of an example is made, in a run that there never is."""
PACKAGE_MANAGERS = {"apt", "dnf", "zypper", "pacman"}
_MAKERS = ("mkdir", "losetup", "image.sh", "borrow.sh", "make-dir", "ln")
_NAMED = re.compile(r"\{(device|journal|member\d+|layer\d+)\}")
"""What stands for what an earlier step binds."""


@dataclass(frozen=True)
class FilesystemExample:
    """A file system of a family as a sweep names it."""

    type: str
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Its keys in a sweep file, beside `type`."""


@dataclass(frozen=True)
class FamilyCase:
    """An example of a family, and where it is made."""

    family: Family
    fs: Filesystem
    place: Place

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.family.steps(self.fs, self.place)


def shortened(argv: tuple[str, ...]) -> str:
    """Return a command as one line; of a script, and of those that it runs, name and arguments."""
    words = list(argv)
    while "sh" in words and words[(at := words.index("sh")) + 1 : at + 2] == ["-c"]:
        del words[at : at + 3]
    return " ".join(word or "''" for word in words)


# --- of a family ------------------------------------------------------------------------------------------------------


def says_what_it_is(family: Family) -> None:
    """It has a plain type, and a docstring that says what it is."""
    require(re.fullmatch(NAME, family.type), "not a type of file system", got=family.type, allowed=f"as in {NAME}")
    require(type(family).__doc__, "the class of the family has no docstring", allowed="a sentence: what it is")


# --- of an example ----------------------------------------------------------------------------------------------------


def programs_tell_their_version(case: FamilyCase) -> None:
    """Its programs say how to ask their version, and where to get them."""
    needed = {program.name: program for program in case.family.needed_programs(case.fs)}
    names = {program.name for program in case.family.programs}
    require(names <= needed.keys(), "needed_programs", got=sorted(needed), allowed=f"all of {sorted(names)}")
    require(
        bool(needed) == case.family.needs_root, "programs", got=sorted(needed), allowed="`mount` and its like, as root"
    )
    for program in needed.values():
        asks = program.version[:1] == (program.name,)
        require(asks, f"the version of {program.name}", got=program.version, allowed="a command of that program")
        found = {*program.packages} >= PACKAGE_MANAGERS
        require(
            found, f"where {program.name} is from", got=dict(program.packages), allowed="packages=everywhere('NAME')"
        )


def accepts_its_example(case: FamilyCase) -> None:
    """It accepts its own example, and its root is a path."""
    case.family.check(case.fs, where="f")
    root = case.family.root_of(case.fs, case.place)
    require(root.startswith("/"), "root_of", got=root, allowed="a path from the root")


def steps_say_why(case: FamilyCase) -> None:
    """Every step says why, and is a list of words."""
    for step in case.steps:
        require(step.why, "a step without `why`", got=shortened(step.argv), allowed="words for the plan")
        for argv in (step.argv, step.undo or ("-",)):
            words = argv and argv[0] and all(isinstance(word, str) for word in argv)
            require(words, "a command", got=argv, allowed="words, the first of them a program")


def what_it_makes_is_undone(case: FamilyCase) -> None:
    """What a step makes is undone, what it mounts is unmounted, and the end of a scratch device's use is recorded."""
    steps = case.steps
    for step in steps:
        words = [*shortened(step.argv).split(), ""]
        makes = words[0] in _MAKERS or words[1] == "mount" or (words[0] == GUARD and step.binds is not None)
        makes = makes or f"{MAKES_DEVICES} make" in shortened(step.argv)
        require(makes == (step.undo is not None), f"undo of `{step.why}`", got=step.undo, allowed="what takes it back")
    mounts = [step for step in steps if shortened(step.argv).startswith("timed.sh mount ")]
    for step in mounts:
        require(
            step.undo == ("umount", step.argv[-1]), "undo of a mount", got=step.undo, allowed=f"umount {step.argv[-1]}"
        )
        require(step.role is StepRole.MOUNT, "role of a mount", got=step.role, allowed="StepRole.MOUNT (mount_step)")
        require(step.keep in ("mount.txt", "mount-below.txt"), "keep of a mount", got=step.keep, allowed="mount.txt")
    mounted = case.family.mounted_as(case.fs)
    is_mounted = mounted not in (NOT_MOUNTED, BLOCK_DEVICE)
    require(
        bool(mounts) == is_mounted, "mounted_as", got=repr(mounted), allowed="a type where a step mounts, by mount_step"
    )


def a_device_is_named_before_it_is_used(case: FamilyCase) -> None:
    """A device is named by a step before one uses it."""

    def used(argv: tuple[str, ...]) -> set[str]:
        return {name for word in argv if "\n" not in word for name in _NAMED.findall(word)}

    bound: set[str] = set()
    for step in case.steps:
        require(used(step.argv) <= bound, f"`{step.why}`", got=used(step.argv), allowed="what an earlier step binds")
        bound |= {step.binds} if step.binds else set()
        require(used(step.undo or ()) <= bound, f"undo of `{step.why}`", got=step.undo, allowed="what a step binds")
    names = {word.strip("{}") for word in case.family.evidence_devices(case.fs)}
    require(names <= bound, "evidence_devices", got=names, allowed="what a step binds")


def stays_in_its_place(case: FamilyCase) -> None:
    """It is made and mounted below the run's own directory, or where the sweep says."""
    words = [word for step in case.steps for word in (*step.argv, *(step.undo or ()))]
    fs, place = case.fs, case.place
    suffix = f"/mountlab-{place.run_id}-{fs.name}"
    places = [f"{directory}{suffix}" for directory in (fs.path, fs.image_dir, "/dev/shm") if directory]  # noqa: S108  # of a box
    devices = [stable for stable, _ in place.scratch_devices]
    allowed = tuple(filter(None, (place.run_dir, *devices, place.journal, "/dev/pma", *places)))
    for path in (word for word in words if word.startswith("/")):
        require(path.startswith(allowed), "a path elsewhere", got=path, allowed=f"below {', '.join(allowed)}")


def formats_below_the_guard(case: FamilyCase) -> None:
    """What writes to a scratch device runs below the guard, and marks what it makes as Mountlab's."""
    for step in unguarded(case.steps, case.place):
        require(False, f"`{step.why}`", got=shortened(step.argv), allowed="format_step of mountlab.filesystems.backing")
    for step in case.steps:
        line = shortened(step.argv)
        if "mke2fs" in line or "mkfs." in line:
            journal = "journal_dev" in line
            scratch = case.place.journal if journal else case.place.device
            named = case.fs.journal_device if journal else case.fs.device and not case.fs.stack
            below = line.startswith(f"{GUARD} {scratch} '' " if named else "timed.sh ")
            require(below, f"`{step.why}`", got=line, allowed="format_step of mountlab.filesystems.backing")
            marked = case.place.uuid in line or case.place.journal_uuid in line
            require(marked, f"`{step.why}`", got=line, allowed="place.uuid, by which the guard knows it again")


def is_deterministic(case: FamilyCase) -> None:
    """The same file system gives the same steps."""
    require(case.steps == case.steps, "two lists of steps for one file system", allowed="no clock and no randomness")


def knows_what_it_holds(case: FamilyCase) -> None:
    """What it can hold is known, or left to the box."""
    capacity, backed = case.family.capacity_bytes(case.fs), case.fs.over or case.fs
    images = (backed.image_bytes or 0) * backed.members
    limits = [size for size in (backed.size_bytes, images, backed.zram_bytes) if size]
    limits = [backed.realtime_image_bytes] if backed.realtime_image_bytes else limits
    is_right = capacity is None if not limits else capacity is not None and 0 < capacity <= min(limits)
    require(is_right, "capacity_bytes", got=capacity, allowed=f"up to {min(limits)}" if limits else "None")


OF_FAMILY: tuple[Rule[Family], ...] = (says_what_it_is,)
OF_EXAMPLE: tuple[Rule[FamilyCase], ...] = (
    programs_tell_their_version, accepts_its_example, steps_say_why, what_it_makes_is_undone,
    a_device_is_named_before_it_is_used, stays_in_its_place, formats_below_the_guard, is_deterministic,
    knows_what_it_holds,
)  # fmt: skip
