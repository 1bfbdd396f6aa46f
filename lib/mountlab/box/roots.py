"""The roots of a box: the directories below which runs make theirs. Only what Mountlab made there is ever removed.

open.sh looks at them: a plan asks it what a run will ask, so that both say the same.
"""

from __future__ import annotations

from mountlab.box.connection import BoxConnection
from mountlab.core.errors import BoxInUse, UnsafeError
from mountlab.core.shell import script_argv
from mountlab.filesystems.directory import OPEN

REFUSED, NEXT, KEPT, PRIVATE = "refused: ", "next: ", "kept: ", "private: "
ALLOWED = (
    "a directory for Mountlab alone: one that does not exist yet, is empty (a mount point too), or holds only what "
    "Mountlab made"
)
LOOK_TIMEOUT_S = 120.0


def check(connection: BoxConnection, mount_root: str, output_root: str) -> None:
    """Raise UnsafeError for a root that a run would refuse: a link, another's, or one that holds what Mountlab did not
    make. Changes nothing."""
    argv = script_argv(OPEN, "look", mount_root, output_root)
    completed = connection.run(argv, timeout_s=LOOK_TIMEOUT_S, root=connection.rights != "none")
    if not completed.ok:
        raise refusal(completed.error_text, connection.box.name, mount_root)


def refusal(stderr: str, box: str, mount_root: str) -> UnsafeError | BoxInUse:
    """Return the error that open.sh printed. `stderr`: its standard error."""
    lines = stderr.strip().splitlines()
    reason = next((line.removeprefix(REFUSED) for line in lines if line.startswith(REFUSED)), stderr.strip())
    advice = next((line.removeprefix(NEXT) for line in lines if line.startswith(NEXT)), "look at it on the box")
    if " is in use by " in reason:
        return BoxInUse("another run has just taken this box", where=f"box {box}", got=reason, next_step="wait for it")
    in_mount_root = reason.startswith((f"{mount_root} ", f"{mount_root}/"))
    return UnsafeError(
        "refused to use a directory of the box",
        where=f"params/boxes/{box}.yml: {'mount_root' if in_mount_root else 'output_root'}",
        got=reason,
        allowed=ALLOWED,
        next_step=advice,
    )


def sharing_notices(printed: str, box: str) -> tuple[str, ...]:
    """Return a notice for each mount root that open.sh could not share. `printed`: its output."""
    reasons = [line.removeprefix(PRIVATE) for line in printed.splitlines() if line.startswith(PRIVATE)]
    return tuple(
        f"box {box}: mounts below the mount root stay private ({reason}): where another mount namespace holds them, as "
        "that of a trial of another Mountlab does, their devices stay busy until it ends"
        for reason in reasons
    )


def read_kept_paths(printed: str) -> tuple[str, ...]:
    """Return the paths that a close or a removal left alone since Mountlab did not make them. `printed`: its output."""
    return tuple(line.removeprefix(KEPT) for line in printed.splitlines() if line.startswith(KEPT))
