"""States of file systems on a box: made by a seeded procedure, kept, restored before each mount, and checked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from mountlab.core.errors import ParseError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, everywhere
from mountlab.core.shell import script_argv
from mountlab.core.state import State
from mountlab.filesystems.backing import DEVICE, LONGEST_S, format_step
from mountlab.filesystems.base import evidence_step, script_step
from mountlab.filesystems.profiles import PROFILES, ageing_argv

IDENTITY = "{identity}"
"""Stands for the checksum of the blocks in use, as the step that keeps a state prints it."""
AGED = "aged"
"""The directory at the root of a file system that holds the files of its state."""
AGE_FILE, IDENTITY_FILE, MADE_FILE = "age.txt", "identity.txt", "evidence-made.txt"
"""Raw output of the making of a state: what was made, the checksum, and the kernel's report after it."""
_PROGRAMS = {
    "ext": Program(name="dumpe2fs", packages=everywhere("e2fsprogs"), version=("dumpe2fs", "-V")),
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
    """SHA-256 of the blocks in use: of the mounts with the same one, each began from the same bytes."""
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


def digest_of(age_text: str) -> str:
    """Return the digest of the files of a state, from the output of age.sh. Raises ParseError."""
    digest = next((line.removeprefix("digest ") for line in age_text.splitlines() if line.startswith("digest ")), "")
    if not digest:
        raise ParseError(f"{AGE_FILE} names no digest of the files", got=age_text[-200:], allowed="digest ...")
    return digest


def programs(fs: Filesystem, states: tuple[State, ...]) -> tuple[Program, ...]:
    """Return the programs that bring a file system into these states, and keep and restore them."""
    made = any(not state.worn for state in states)
    listing = tuple(program for kind, program in _PROGRAMS.items() if made and fs.type.startswith(kind))
    holes = (_HOLES,) if made and fs.image_bytes and not fs.preallocate else ()
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
    directory = f"{place.mountpoint}/{AGED}"
    argv = ageing_argv(directory, fill=state.fill, churn=state.churn, profile=PROFILES[state.profile], seed=state.seed)
    why = f"make the state {state.name}"
    return (
        evidence_step(place.mountpoint, DEVICE),
        Step(argv=("mkdir", directory), why="the directory of its files"),
        Step(argv=argv, why=why, keep=AGE_FILE, timeout_s=LONGEST_S),
        replace(evidence_step(place.mountpoint, DEVICE), keep=MADE_FILE),
    )
