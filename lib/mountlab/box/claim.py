"""Claiming a scratch device for Mountlab: the box reads all of it, and marks it where it is blank (claim.sh)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mountlab.box.connection import BoxConnection
from mountlab.core.errors import BoxError, ParameterError, PlanError, UnsafeError
from mountlab.core.model import Box
from mountlab.core.shell import script_argv
from mountlab.filesystems.guard import CLAIM, read_refusal

SLICE_S = 5
"""How long the box reads between two words of how far it is."""
CALL_S = 99_999.0
"""The limit of one call. A kernel that does not count what is written to a device makes one call of it all."""


@dataclass(frozen=True)
class Position:
    """How far the box has read, in bytes."""

    read: int
    size: int


Tell = Callable[[Position], object]


def scratch_device(box: Box, named: str) -> str:
    """Return the stable name of the scratch device that `named` is or means in the box file. Raises ParameterError."""
    listed = box.block_devices
    if named not in listed and named not in listed.values():
        raise ParameterError(
            "the box file lists no such scratch device",
            where=f"params/boxes/{box.name}.yml: scratch",
            got=named,
            allowed=", ".join(listed) or "no device is listed",
            next_step=f"list it there by its stable id, as `ls -l /dev/disk/by-id` on the box shows it: {named}: ...",
        )
    return listed.get(named, named)


def claim(connection: BoxConnection, device: str, *, erase: str = "", tell: Tell = lambda _: None) -> str:
    """Claim a scratch device, given by its stable name, and return the box's answer.

    Without `erase` all of it is read; `tell` gets the position. An interrupted claim resumes there, unless something
    was written to the device meanwhile. `erase`: the id of what is on it, which is destroyed. Raises UnsafeError for a
    device that is in use or holds data, which is left as it is; PlanError without root.
    """
    if connection.rights == "none":
        raise PlanError(
            "claiming a device needs root or password-less sudo on the box",
            where=f"box {connection.box.name}",
            allowed="`become: auto`, and a user who may",
            next_step=f"mountlab box check {connection.box.name}",
        )
    for word, said in _calls(connection, device, erase):
        if word != "reading":
            return said
        tell(_position(said))
    raise BoxError("claiming the device gave no answer", where=f"box {connection.box.name}: {device}")


def _calls(connection: BoxConnection, device: str, erase: str) -> Iterator[tuple[str, str]]:
    """Yield what the box says after each slice: `reading AT SIZE`, or `claimed ...` and `already ...` at the end."""
    while True:
        completed = connection.run(script_argv(CLAIM, device, erase, str(SLICE_S)), root=True, timeout_s=CALL_S)
        if not completed.ok:
            refusal = read_refusal(completed.error_text)
            raise UnsafeError(
                f"{device} is not claimed",
                where=f"box {connection.box.name}",
                got=refusal.found,
                allowed="a device that nothing uses, and that is blank",
                next_step=refusal.next_step(connection.box, device),
            )
        word, _, said = completed.text.strip().partition(" ")
        yield word, said


def _position(said: str) -> Position:
    try:
        read, size = map(int, said.split())
    except ValueError as error:
        raise BoxError("claiming the device gave an answer that cannot be read", got=repr(said)) from error
    return Position(read, size)
