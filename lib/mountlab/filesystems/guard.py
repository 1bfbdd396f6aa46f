"""What the guard of scratch devices says, and the mark by which it knows a device as ours."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "6d6f756e-746c-6162-"
"""How every UUID begins that Mountlab gives to a file system: 'mountlab' in ASCII. guard.sh knows it too."""
MARK_UUID = f"{OURS}0000-000000000000"
REFUSED, PERMIT, IDENTITY = "refused: ", "permit: ", "identity: "
BY_HAND = "-"


def mark_argv(device: str, uuid: str = MARK_UUID) -> tuple[str, ...]:
    """The command that marks a device as ours: an ext2 of 1 MiB at its beginning, however large it is."""
    return ("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024", "-E", "nodiscard", "-U", uuid, device, "1024")


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
