"""The guard of scratch devices: its words, and the mark by which it knows a device as ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from mountlab.core.model import Box, Place, Step
from mountlab.core.shell import script_argv

MAKES_DEVICES = "layer.sh"
"""Name of the script whose devices were made a moment ago, on scratch devices or images."""
GUARD, CLAIM = "guard.sh", "claim.sh"
"""The names by which the scripts stand in a command. DEVICE, CUT_OFF and EXPECTED follow the guard's, and the command
that it lets pass."""
OURS = "6d6f756e-746c-6162-"
"""How a UUID begins that Mountlab gives to what it makes itself, and gave to scratch devices before they were claimed:
'mountlab' in ASCII. device.sh knows both."""
BOUND = "6d6f756e-746c-6143-"
"""How a UUID begins that is bound to a scratch device: 'mountlaC'."""
MARK_UUID = f"{OURS}0000-000000000000"
REFUSED, PERMIT, IDENTITY = "refused: ", "permit: ", "identity: "
UNCLAIMED = "claim"
LOOK_TIMEOUT_S = 6 * 3600.0
"""The first look at a device after a restart of the box compares a page of each 2 MiB: hours for a large disk that
rotates."""
CUT_OFF = "-"
_BOUND_TO = re.compile(r",bound=([0-9a-f]{8})\Z")


def uuid_for(identity: str, *parts: str) -> str:
    """Return a UUID for a file system that Mountlab makes, another one for other `parts`.

    It is bound to the scratch device whose identity the guard has stated ('' for what Mountlab makes itself). The guard
    records it before mkfs runs, and knows the file system by the record.
    """
    digest = sha256("/".join(parts).encode()).hexdigest()
    bound = bound_to(identity)
    if not bound:
        return f"{OURS}{digest[:4]}-{digest[4:16]}"
    return f"{BOUND}{bound[:4]}-{bound[4:]}{digest[:8]}"


def bound_to(identity: str) -> str:
    """Return the part of an identity that stays the same when the box restarts; '' where an earlier version stated the
    identity."""
    match = _BOUND_TO.search(identity)
    return match[1] if match else ""


def mark_argv(device: str, uuid: str = MARK_UUID) -> tuple[str, ...]:
    """Return the command that marks a device as ours: an ext2 of 1 MiB at its beginning, however large it is."""
    return ("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024", "-E", "nodiscard", "-U", uuid, device, "1024")


def guarded(argv: tuple[str, ...], devices: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a command that runs below the guard of each of these scratch devices, given by stable name and identity:
    one guard after the other, and the last becomes the command."""
    words = [word for device, identity in devices for word in (GUARD, device, "", identity)]
    return (*script_argv(*words[:4]), *words[4:], *argv) if words else argv


def formatted(argv: tuple[str, ...]) -> Iterator[str]:
    """Return the scratch devices that a command writes a file system on, below the guard."""
    return (argv[place + 1] for place in _guards(argv))


def permitting(argv: tuple[str, ...], cut_off: Iterable[str]) -> tuple[str, ...]:
    """Return a command that may format again what the same run was formatting when the box lost power: a mkfs that was
    cut off has written over every signature, the mark included, and left none."""
    words = list(argv)
    for place in _guards(argv):
        if argv[place + 1] in cut_off:
            words[place + 2] = CUT_OFF
    return tuple(words)


def _guards(argv: tuple[str, ...]) -> Iterator[int]:
    return (place for place, word in enumerate(argv) if word == GUARD and len(argv) > place + 4)


@dataclass(frozen=True)
class Refusal:
    """Why a device will not be written over."""

    reason: str
    permit: str
    """UNCLAIMED; the id that `box claim --erase` takes; '' where nothing permits it (it is in use)."""

    def next_step(self, box: Box, device: str) -> str:
        """Return the one command that may permit it. `device`: its stable name in the box file."""
        name = next((entry.name for entry in box.scratch if entry.device == device), device)
        command = f"mountlab box claim {box.name} {shlex.quote(name)}"
        if self.permit == UNCLAIMED:
            return f"{command}   (reads the whole device, and marks it as Mountlab's if it is blank)"
        if self.permit:
            return (
                "name another device; or, if nothing on this one is needed, let Mountlab destroy it: "
                f"{command} --erase {shlex.quote(self.permit)}"
            )
        return "end that use, or name another device"


def read_refusal(stderr: str) -> Refusal:
    """Parse the refusal that guard.sh or claim.sh wrote to standard error."""
    lines = stderr.strip().splitlines()
    permit = next((line.removeprefix(PERMIT) for line in lines if line.startswith(PERMIT)), "")
    reason = " ".join(line for line in lines if not line.startswith(PERMIT))
    return Refusal(reason.removeprefix(REFUSED), permit)


def read_permission(stderr: str) -> tuple[str, str]:
    """Parse guard.sh's standard error: the device's identity, and what is on the device."""
    lines = stderr.strip().splitlines()
    identity = next((line.removeprefix(IDENTITY) for line in lines if line.startswith(IDENTITY)), "")
    return identity, " ".join(line for line in lines if not line.startswith(IDENTITY))


_ONLY_LOOKS = ("mount", "borrow.sh", "evidence.sh", "ln", "readlink", "settle.sh", "umount")
"""Commands that may name a scratch device without the guard: they mount it, read it, or set what is given back."""


def unguarded(steps: Iterable[Step], place: Place) -> Iterator[Step]:
    """Yield the steps that name a scratch device and neither run below the guard nor only mount or read it."""
    steps = tuple(steps)
    paths = [*(path for path, _ in place.scratch_devices), *filter(None, (place.journal,))]
    made = {step.binds for step in steps if MAKES_DEVICES in step.argv}
    names = {"device": place.device, "journal": place.journal}
    scratch = {name for name, path in names.items() if path} | {step.binds for step in steps if GUARD in step.argv}
    held = {f"{{{name}}}" for name in scratch - made if name}
    for step in steps:
        for argv in (step.argv, step.undo or ()):
            command = argv[3:] if argv[:2] == ("sh", "-c") else argv
            first = command[1:2] if command[:1] == ("timed.sh",) else command[:1]
            named = any(name in word for name in held for word in command)
            named |= any(path in word for path in paths for word in argv)
            if named and not {*first} & {GUARD, *_ONLY_LOOKS}:
                yield step
