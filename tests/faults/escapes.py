"""Tools that get away from their trial: they leave a daemon, or take the file system away from under themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mountlab.params import Resolved, resolve

SCRIPT = r"""#!/bin/sh
# $1: the way; $2: the directory of the trial. The word that a daemon carries names the mount point: so it is counted.
mountpoint=${2%/*}
head -c 4096 /dev/zero >"$2/x"
wc -c <"$2/x"
daemon() { env -i setsid sh -c 'env -i setsid sh -c "while :; do sleep 1; done" "$0" &' "$mountpoint" </dev/null >/dev/null 2>&1; }
case $1 in
daemon) cd / && daemon ;;
busy) daemon ;;
umount) cd / && umount "$mountpoint" ;;
over) cd / && mount -t tmpfs none "$mountpoint" ;;
read-only) cd / && mount -o remount,ro "$mountpoint" ;;
loop) losetup --find "$2/x" ;;
shutdown) xfs_io -x -c shutdown "$mountpoint" ;;
esac
"""
DAEMONS = ("daemon", "busy")
"""Ways that leave a process."""
SPOILERS = ("umount", "over", "read-only")
"""Ways that change what is mounted."""


def program(home: Path) -> Path:
    """The tool, in `home`."""
    path = home / "escape"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


def sweep(home: Path, way: str, times: int, filesystems: dict[str, Any], **design: Any) -> Resolved:
    """A sweep in which the tool gets away so often, each time as a cell of its own, beside one that does not."""
    tool = {
        "tool": "command", "space": "1MiB", "version": "true",
        "metrics": {"bytes": {"pattern": r"^(\d+)$", "unit": "B"}},
    }  # fmt: skip
    path = program(home)
    workloads = {
        "escapes": {**tool, "argv": f"{path} {way} {{directory}} {{time_no}}", "time_no": [*range(1, times + 1)]},
        "stays": {**tool, "argv": f"{path} stays {{directory}}"},
    }
    asked = {"repeats": 1, "warmup": 0, "seed": 7, "trial_timeout": "20s", "drop_caches": False, **design}
    raw = {"name": "escapes", "question": "Does anything get away?", "box": "local", "filesystems": filesystems,
           "workloads": workloads, "design": asked}  # fmt: skip
    return resolve(raw, where="tests")
