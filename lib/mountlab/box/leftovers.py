"""What Mountlab has left on a box, and its removal: after a crash, when a lease ends, by `mountlab box clean`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.box.connection import BoxConnection, checked
from mountlab.box.facts import roots
from mountlab.core.errors import BoxError, LeftoverError
from mountlab.core.mountinfo import unescape
from mountlab.core.shell import script_text

CLEAN_TIMEOUT_S = 300.0
KILL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Leftover:
    """Something that Mountlab left on the box."""

    kind: Literal["process", "cgroup", "mount", "layer", "loop", "borrowed", "files", "root", "foreign"]
    """`foreign`: in a directory of ours, and not made by us. It is named, and never removed."""
    name: str
    removed: bool
    note: str = ""
    """Why it was not removed, in the words of the box."""


def remove_leftovers(
    connection: BoxConnection, *, dry_run: bool = False, below: tuple[str, str] | None = None
) -> list[Leftover]:
    """Remove all that Mountlab left on the box, runs in progress included; with `dry_run` only list it.

    Processes first, then mounts (deepest first), layers, loop devices, what was borrowed (settings, zram devices,
    modules), run directories and our root directories. What could not be removed has `removed` False. `below` are the
    mount root and the output root where they are known already.
    Only what a run has made is removed (ownership.sh); what else lies in our directories is `foreign`, and stays.
    """
    # Under sudo `id -u` would print root's: the number of the user who logs in is read beforehand.
    uid = checked(connection, ("id", "-u"), what="the user's number could not be read").text.strip()
    arguments = ("list" if dry_run else "clean", uid, "", *(below or roots(connection)))
    return _run_clean_script(connection, arguments, CLEAN_TIMEOUT_S)


def kill_run(connection: BoxConnection, run_id: str) -> None:
    """End all processes of one run. Raises LeftoverError when one is still there (waiting for a device, say)."""
    if not run_id:
        raise ValueError("kill_run needs a run id")
    leftovers = _run_clean_script(connection, ("kill", "", run_id, "", ""), KILL_TIMEOUT_S)
    alive = [leftover.name for leftover in leftovers if not leftover.removed]
    if alive:
        raise LeftoverError(
            "processes of the run do not end, not even by SIGKILL",
            where=f"box {connection.box.name}, run {run_id}",
            got="; ".join(alive),
            next_step="they may wait for a device: see dmesg on the box; "
            f"later, mountlab box clean {connection.box.name}",
        )


def _run_clean_script(connection: BoxConnection, arguments: Sequence[str], timeout_s: float) -> list[Leftover]:
    argv = _clean_argv(arguments)
    as_root = connection.rights != "none"
    return parse_leftovers(
        checked(connection, argv, what="cleaning the box failed", timeout_s=timeout_s, root=as_root).text
    )


def remove_leftovers_argv(
    mode: Literal["list", "clean"], uid: str, mount_root: str, output_root: str, owner: str
) -> tuple[str, ...]:
    """Return the command that cleans below two roots. `uid` is the number of the user who logs in; a root that `owner`
    has not locked is left alone."""
    return _clean_argv((mode, uid, "", mount_root, output_root), owner)


def _clean_argv(arguments: Sequence[str], owner: str = "") -> tuple[str, ...]:
    others = (script_text("borrow.sh"), owner, script_text("layer.sh"))
    return ("sh", "-c", script_text("leftovers.sh"), "mountlab-clean", *arguments, *others)


def parse_leftovers(printed: str) -> list[Leftover]:
    """Parse the output of leftovers.sh."""
    return [_leftover(line) for line in printed.splitlines()]


def _leftover(line: str) -> Leftover:
    match line.split("\t"):
        case [
            ("process" | "cgroup" | "mount" | "layer" | "loop" | "borrowed" | "files" | "root" | "foreign") as kind,
            ("0" | "1") as removed,
            name,
            note,
        ]:
            return Leftover(kind, unescape(name), removed == "1", note.strip())
        case _:
            raise BoxError("cleaning the box gave an answer that cannot be read", got=repr(line))
