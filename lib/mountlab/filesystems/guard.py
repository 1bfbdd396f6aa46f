"""What the guard of scratch devices says, and the mark by which it knows a device as ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GUARD = "guard.sh"
"""The name by which the guard stands in a command; DEVICE, OVERWRITE, EXPECTED follow, and what it lets pass."""
OURS = "6d6f756e-746c-6162-"
"""How every UUID begins that Mountlab gives to a file system: 'mountlab' in ASCII. guard.sh knows it too."""
MARK_UUID = f"{OURS}0000-000000000000"
REFUSED, PERMIT, IDENTITY = "refused: ", "permit: ", "identity: "
BY_HAND = "-"


def mark_argv(device: str, uuid: str = MARK_UUID) -> tuple[str, ...]:
    """The command that marks a device as ours: an ext2 of 1 MiB at its beginning, however large it is."""
    return ("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024", "-E", "nodiscard", "-U", uuid, device, "1024")


def formatted(argv: tuple[str, ...]) -> Iterator[str]:
    """The scratch devices that a command writes a file system on, below the guard."""
    return (argv[place + 1] for place in _guards(argv))


def permitting(argv: tuple[str, ...], cut_off: Iterable[str]) -> tuple[str, ...]:
    """The same command, where it formats again what the same run was formatting when the box lost power: a mkfs that
    was cut off has written over every signature, the mark included, and left none."""
    words = list(argv)
    for place in _guards(argv):
        if argv[place + 1] in cut_off:
            words[place + 2] = BY_HAND
    return tuple(words)


def _guards(argv: tuple[str, ...]) -> Iterator[int]:
    return (place for place, word in enumerate(argv) if word == GUARD and len(argv) > place + 4)


@dataclass(frozen=True)
class Refusal:
    """Why a device will not be written over."""

    found: str
    permit: str
    """The id that, given as `overwrite`, would permit it; BY_HAND; '' where nothing would (it is in use)."""

    def next_step(self, device: str, key: str) -> str:
        """The one line that would permit it. `key`: where in the sweep file an id is given."""
        if self.permit == BY_HAND:
            mark = " ".join(mark_argv(device))
            return (
                "name another device; or, if nothing on this one is needed, give it to Mountlab by hand, which "
                f"destroys what is on it: wipefs -a {device} && {mark}"
            )
        if self.permit:
            return (
                f"name another device; or, if nothing on this one is needed, let Mountlab destroy it: add "
                f"`{key.rpartition('.')[2]}: {self.permit}`{_to(key)} in the sweep file"
            )
        return "end that use, or name another device"


def _to(key: str) -> str:
    """' to filesystems.ext4' of 'filesystems.ext4.overwrite'."""
    entry = key.rpartition(".")[0]
    return f" to {entry}" if entry else " to its file system"


def read_refusal(said: str) -> Refusal:
    """From what guard.sh wrote to standard error."""
    lines = said.strip().splitlines()
    permit = next((line.removeprefix(PERMIT) for line in lines if line.startswith(PERMIT)), "")
    found = " ".join(line for line in lines if not line.startswith(PERMIT))
    return Refusal(found=found.removeprefix(REFUSED), permit=permit)


def read_permission(said: str) -> tuple[str, str]:
    """The device's identity, and what is on it, from what guard.sh wrote to standard error."""
    lines = said.strip().splitlines()
    identity = next((line.removeprefix(IDENTITY) for line in lines if line.startswith(IDENTITY)), "")
    return identity, " ".join(line for line in lines if not line.startswith(IDENTITY))
