"""What a plan must know of the box beyond its facts: the room in directories, and what lies on scratch devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mountlab.box import BoxConnection
from mountlab.errors import CommandError, PlanError, UnsafeError
from mountlab.filesystems.base import script_step
from mountlab.model import Filesystem, Sweep
from mountlab.units import KIB

DIRECTORY = """
[ -d "$1" ] || { echo "is not a directory"; exit 1; }
[ -w "$1" ] || { echo "cannot be written"; exit 1; }
df -P -k "$1"
"""


def survey(sweep: Sweep, connection: BoxConnection, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts, with `room` (file system name to bytes that may be written) and `devices` (file system name to what
    the guard says of its scratch device). Reads only.

    Raises PlanError for a directory that is absent or cannot be written, UnsafeError for a device with data.
    """
    room = {fs.name: _room(fs, connection, facts) for fs in sweep.filesystems if fs.type == "dir"}
    scratch = {each.name: each.device for each in connection.box.scratch}
    devices = {fs.name: scratch[fs.device] for fs in sweep.filesystems if fs.device in scratch and fs.device}
    said = {name: _guard(device, connection, facts) for name, device in devices.items()}
    room |= {name: _device_bytes(device, connection, facts) for name, device in devices.items()}
    return {**facts, "room": room, "devices": {name: f"{devices[name]}: {text}" for name, text in said.items()}}


def _room(fs: Filesystem, connection: BoxConnection, facts: Mapping[str, Any]) -> int:
    if fs.path is None:
        return int(facts["mount_root_free_bytes"])
    done = connection.run(("sh", "-c", DIRECTORY, "directory", fs.path), root=_root(facts))
    if not done.ok:
        raise PlanError(
            f"{fs.path} {done.text.strip()}", where=f"filesystems.{fs.name}.path", got=fs.path,
            allowed="an existing directory of the box that you may write",
        )  # fmt: skip
    return int(done.text.splitlines()[-1].split()[3]) * KIB


def _guard(device: str, connection: BoxConnection, facts: Mapping[str, Any]) -> str:
    step = script_step("guard.sh", device, why="the device must be blank, or ours")
    done = connection.run(step.argv, root=_root(facts))
    if not done.ok:
        raise UnsafeError(
            f"{device} will not be formatted", where=f"params/boxes/{connection.box.name}.yml: scratch",
            got=done.error_text.strip().removeprefix("refused: "),
            allowed="a device that is blank, or that Mountlab formatted (ext4 with the label mountlab)",
            next_step="name another device; if nothing on this one is needed, blank it yourself",
        )  # fmt: skip
    return done.error_text.strip()


def _device_bytes(device: str, connection: BoxConnection, facts: Mapping[str, Any]) -> int:
    done = connection.run(("blockdev", "--getsize64", device), root=_root(facts))
    if not done.ok:
        raise CommandError(f"the size of {device} cannot be read", evidence=done.error_text)
    return int(int(done.text) * 0.9)


def _root(facts: Mapping[str, Any]) -> bool:
    return facts["rights"] in ("root", "sudo")
