"""States of file systems on a box: made by a seeded procedure, kept, restored before each mount, and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from mountlab.core.errors import ParseError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, everywhere
from mountlab.core.shell import script_argv, script_text
from mountlab.core.state import State
from mountlab.filesystems import thin
from mountlab.filesystems.backing import DEVICE, LONGEST_S, format_step
from mountlab.filesystems.base import evidence_step, script_step
from mountlab.filesystems.guard import MAKES_DEVICES
from mountlab.filesystems.profiles import PROFILES, ageing_argv
from mountlab.filesystems.stack import devices_below
from mountlab.filesystems.state_evidence import (
    MadeState,
    StateEvidence,
    free_space_reading,
    read_made,
    read_state,
    state_reading,
)

CAPACITY = "{capacity}"
"""Stands for the capacity in bytes that the first making in this run had; '' where that begins. What a pool shows may
differ a little each time, and files follow from it."""
IDENTITY = "{identity}"
"""Stands for the checksum of the blocks in use, as the step that keeps a state prints it."""
AGED = "aged"
"""The directory at the root of a file system that holds the files of its state."""
SNAPSHOTS = "snapshots"
"""The one beside it that holds its snapshots."""
AGE_FILE, SNAPSHOTS_FILE, IDENTITY_FILE = "age.txt", "snapshots.txt", "identity.txt"
"""Raw output of the making of a state: what was made, and the checksum of the blocks in use."""
POOL = "zfs"
"""The type of a file system that has no device of its own, and whose use of space shows when its pool has committed."""
READINGS = {"fresh": ("fresh.txt", "fresh-free.txt"), "made": ("made.txt", "made-free.txt")}
"""What was read before and after, mounted and (not of a pool) unmounted (state_evidence.sh)."""
_PROGRAMS = {
    "ext": Program(name="dumpe2fs", packages=everywhere("e2fsprogs"), version=("dumpe2fs", "-V")),
    "f2fs": Program(name="dump.f2fs", packages=everywhere("f2fs-tools"), version=("dump.f2fs", "-V")),
    "xfs": Program(name="xfs_db", packages=everywhere("xfsprogs"), version=("xfs_db", "-V")),
}
_SUM = Program(name="sha256sum", packages=everywhere("coreutils"), version=("sha256sum", "--version"))
_HOLES = Program(
    name="cp", packages=everywhere("coreutils"), version=("cp", "--version"), busybox_lacks="--sparse and --reflink"
)
_DISCARD = Program(name="blkdiscard", packages=everywhere("util-linux"), version=("blkdiscard", "--version"))
ALL_PROGRAMS = (*_PROGRAMS.values(), _SUM, _HOLES, _DISCARD)


@dataclass(frozen=True)
class StateOfMount:
    """In which making of a state the trials of one mount have begun."""

    state: str
    making: str
    """Name of the directory of raw output that tells how it was made."""
    identity: str
    """SHA-256 of the blocks in use: of the mounts with the same one, each began from the same bytes. '' where nothing
    is kept, so that each mount is a making of its own."""
    digest: str
    """Of the files in it: the same in each making from the same seed."""

    FILE: ClassVar = "state.json"

    def text(self) -> str:
        """Return the text of its file of raw output."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def read(cls, text: str) -> StateOfMount:
        """Read its file. Raises ParseError."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            raise ParseError(
                f"{cls.FILE} cannot be read", got=text[:100], allowed="state, making, identity, digest"
            ) from error


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of all files of a state, from the raw output of its making. Raises ParseError."""
    snapshots = re.search(r"^digest (\S+)", files.get(SNAPSHOTS_FILE, ""), re.MULTILINE)
    return read_made(files[AGE_FILE]).digest + (f"+{snapshots[1]}" if snapshots else "")


@dataclass(frozen=True)
class StateRecord:
    """What was made of one file system in one state, and how often mounts began from it."""

    filesystem: str
    state: str
    made: MadeState
    fresh: StateEvidence
    """Before its files were made."""
    reached: StateEvidence
    mounts: Mapping[str, str]
    """Mount to the checksum of the blocks in use from which it began."""

    @property
    def identities(self) -> tuple[str, ...]:
        """The checksums, each once: several where a later session, or each mount, made the state again."""
        return tuple(dict.fromkeys(self.mounts.values()))


def read_record(filesystem: str, state: str, files: Mapping[str, str], mounts: Mapping[str, str]) -> StateRecord:
    """Return the record of a state from the raw output of its making. Raises ParseError."""
    missing = [name for name in (AGE_FILE, *(mounted for mounted, _ in READINGS.values())) if name not in files]
    if missing:
        raise ParseError(f"the making of the state {state} left no {missing[0]}", allowed=", ".join(sorted(files)))
    fresh, reached = (read_state(files[mounted], files.get(unmounted, "")) for mounted, unmounted in READINGS.values())
    return StateRecord(filesystem, state, read_made(files[AGE_FILE]), fresh, reached, dict(mounts))


def can_be_kept(fs: Filesystem) -> bool:
    """Return whether a state of it can be kept: as the blocks in use of one device, without layers or a pool."""
    return fs.type != POOL and not fs.stack and devices_below(fs) == 1


def programs(fs: Filesystem, states: tuple[State, ...]) -> tuple[Program, ...]:
    """Return the programs that bring a file system into these states, and keep and restore them."""
    made = any(not state.worn for state in states)
    kept = made and can_be_kept(fs)
    listing = tuple(program for kind, program in _PROGRAMS.items() if kept and fs.type.startswith(kind))
    holes = (_HOLES,) if kept and fs.image_bytes and not fs.preallocate else ()
    discard = (_DISCARD,) if any(state.worn and state.purge == "discard" for state in states) else ()
    return (*listing, *((_SUM,) if made else ()), *holes, *discard)


def restore_steps(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    """Return the steps in the place of mkfs where a kept state is restored. On an image it is there already: the image
    is a copy."""
    origin = place.origin
    if not origin.kept:
        return ()
    # The guard records the UUID as ours: by it the end of this use, and the next guard, know the device.
    argv = script_argv("keep_state.sh", "restore", DEVICE, origin.used, origin.kept, place.uuid)
    why = "restore the blocks in use"
    copy = replace(format_step(fs, place, argv, why=why, keep="restore.txt", role=StepRole.OTHER), timeout_s=LONGEST_S)
    why = "the same blocks as those that were kept?"
    check = script_step("keep_state.sh", "check", DEVICE, origin.used, IDENTITY, why=why, keep=IDENTITY_FILE)
    return (*((copy,) if fs.device else ()), replace(check, timeout_s=LONGEST_S))


def free_space_step(fs: Filesystem, when: str) -> Step:
    """Return the step that reads in how many pieces the free space of {device} lies: `fresh`, or `made`."""
    argv = free_space_reading(fs.type, DEVICE)
    return Step(argv=argv, why=f"the free space of {fs.name}, {when}", keep=READINGS[when][1], timeout_s=LONGEST_S)


def keep_step(fs: Filesystem, used: str, kept: str = "") -> Step:
    """Return the step that lists the blocks in use of {device}, and copies them to the file `kept` where one is
    named."""
    files = (kept,) if kept else ()
    step = script_step(
        "keep_state.sh", "keep", DEVICE, used, fs.type, *files, why="the blocks in use, and their checksum",
        keep=IDENTITY_FILE, binds=IDENTITY.strip("{}"), undo=("rm", "-f", used, *files),
    )  # fmt: skip
    return replace(step, timeout_s=LONGEST_S)


def ageing_steps(fs: Filesystem, place: Place, state: State) -> tuple[Step, ...]:
    """Return the steps that bring a mounted file system into a state, with evidence before and after."""
    aged, snapshots = f"{place.mountpoint}/{AGED}", f"{place.mountpoint}/{SNAPSHOTS}"
    profile = PROFILES[state.profile]
    pool = fs.type == POOL
    age = ageing_argv(aged, fill=state.fill, churn=state.churn, profile=profile, seed=state.seed)
    age = (*age, *((CAPACITY,) if pool else ()))
    on_thin = state.snapshots > 0 and thin.takes_snapshots(fs)
    again = (CAPACITY, f"{state.fill:g}") if pool or on_thin else ()
    layer = (place.run_dir, place.layer_uuids[-1]) if on_thin else ()
    text = (script_text(MAKES_DEVICES),) if on_thin else ()
    words = (snapshots, str(state.snapshots), f"{state.change:g}", str(state.seed), *again, *layer, *text)
    steps = [
        evidence_step(place.mountpoint, *(() if pool else (DEVICE,))),
        _mounted_reading(state, "fresh", place),
        Step(argv=("mkdir", aged), why="the directory of its files"),
        Step(argv=age, why=f"make the state {state.name}", keep=AGE_FILE, timeout_s=LONGEST_S),
    ]
    if state.snapshots:
        taking = script_step("snapshots.sh", *words, why="overwrite and take snapshots", keep=SNAPSHOTS_FILE)
        # What is killed while it takes one may leave the volume suspended, and then nothing can be unmounted.
        resume = script_argv(MAKES_DEVICES, "resume", *layer) if on_thin else ()
        steps.append(Step(argv=("mkdir", snapshots), why="the directory of its snapshots", undo=resume))
        steps.append(replace(taking, timeout_s=LONGEST_S))
    return (*steps, _mounted_reading(state, "made", place))


def _mounted_reading(state: State, when: str, place: Place) -> Step:
    argv = state_reading(place.mountpoint, seed=state.seed)
    return Step(argv=argv, why=f"files and their extents, {when}", keep=READINGS[when][0], timeout_s=LONGEST_S)
