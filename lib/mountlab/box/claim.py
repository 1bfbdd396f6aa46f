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
"""How long the box reads between two reports of its position."""
CALL_S = 99_999.0
"""The limit of one call. A kernel that does not count what is written to a device makes one call of it all."""


@dataclass(frozen=True)
class Position:
    """How far the box has read, in bytes."""

    read: int
    size: int


Listener = Callable[[Position], object]


def scratch_device(box: Box, name: str) -> str:
    """Return the stable name of a scratch device, by that name or its label in the box file. Raises ParameterError."""
    devices = box.block_devices
    if name not in devices and name not in devices.values():
        raise ParameterError(
            "the box file lists no such scratch device",
            where=f"params/boxes/{box.name}.yml: scratch",
            got=name,
            allowed=", ".join(devices) or "no device is listed",
            next_step=f"list it there by its stable id, as `ls -l /dev/disk/by-id` on the box shows it: {name}: ...",
        )
    return devices.get(name, name)


def claim(connection: BoxConnection, device: str, *, erase: str = "", report: Listener = lambda _: None) -> str:
    """Claim a scratch device, given by its stable name, and return the box's answer.

    Without `erase` all of it is read; `report` gets the position. An interrupted claim resumes there, unless something
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
    for word, answer in _read_slices(connection, device, erase):
        if word != "reading":
            return answer
        report(_position(answer))
    raise BoxError("claiming the device gave no answer", where=f"box {connection.box.name}: {device}")


def _read_slices(connection: BoxConnection, device: str, erase: str) -> Iterator[tuple[str, str]]:
    """Yield the first word of the box's answer after each slice, and the rest: `reading AT SIZE`, `claimed ...`."""
    while True:
        completed = connection.run(script_argv(CLAIM, device, erase, str(SLICE_S)), root=True, timeout_s=CALL_S)
        if not completed.ok:
            refusal = read_refusal(completed.error_text)
            raise UnsafeError(
                f"{device} is not claimed",
                where=f"box {connection.box.name}",
                got=refusal.reason,
                allowed="a device that nothing uses, and that is blank",
                next_step=refusal.next_step(connection.box, device),
            )
        word, _, rest = completed.text.strip().partition(" ")
        yield word, rest


def _position(answer: str) -> Position:
    try:
        read, size = map(int, answer.split())
    except ValueError as error:
        raise BoxError("claiming the device gave an answer that cannot be read", got=repr(answer)) from error
    return Position(read, size)
