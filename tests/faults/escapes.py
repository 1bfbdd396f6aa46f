"""Tools that get away from their trial: they leave a daemon, or take the file system away from under themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults import counting
from mountlab.box import containment
from mountlab.sweep import trial_head
from mountlab.sweep.sweep_file import Resolved, resolve

SCRIPT = r"""#!/bin/sh
# $1: the way; $2: the directory of the trial. The word that a daemon carries names the mount point: so it is counted.
mountpoint=${2%/*}
file=$2/NAME
head -c 4096 /dev/zero >"$file"
wc -c <"$file"
daemon() {
    env -i setsid sh -c 'env -i setsid sh -c "while :; do sleep 1; done" "$0" &' "$mountpoint" \
        </dev/null >/dev/null 2>&1
}
case $1 in
daemon) cd / && daemon ;;
busy) daemon ;;
umount) cd / && umount "$mountpoint" ;;
over) cd / && mount -t tmpfs none "$mountpoint" ;;
read-only) cd / && mount -o remount,ro "$mountpoint" ;;
loop) losetup --find "$file" ;;
shutdown) xfs_io -x -c shutdown "$mountpoint" ;;
esac
"""
DAEMONS = ("daemon", "busy")
"""Ways that leave a process without environment, in a session of its own."""
SPOILERS = ("umount", "over", "read-only", "loop")
"""Ways that change what is mounted, or keep it busy without a process."""
WORLDS = {"v2": ("unified",), "v1": ("freezer", "pids", "systemd"), "none": ()}
"""What a box has of cgroups: directories of this machine's, as a hybrid has them."""
HELD = {"v2": "cgroup v2", "v1": "cgroup v1 (freezer)", "none": "PID namespace", "bare": "environment"}
"""What then holds the processes of a tool."""


@contextmanager
def world(name: str, directory: Path) -> Iterator[None]:
    """Boxes that have such cgroups and no others; in the world `bare` they allow no namespaces, either."""
    directory.mkdir()
    for each in WORLDS.get(name, ()):
        if not Path("/sys/fs/cgroup", each).is_dir():
            pytest.skip(f"this machine has no cgroup hierarchy {each}")
        (directory / each).symlink_to(f"/sys/fs/cgroup/{each}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_head, "CGROUPS", str(directory))
        if name == "bare":
            patch.setattr(containment, "OFFERS", dict.fromkeys(containment.OFFERS, ()))
        yield


def groups(run: str) -> tuple[str, ...]:
    """Cgroups of the trials of one run that are there: other runs may go on at the same time."""
    return tuple(
        f"cgroup {above}/{name}"
        for above, names, _ in os.walk("/sys/fs/cgroup")  # it bears what the other runs remove meanwhile
        for name in names
        if name.startswith(f"mountlab-{run}.")
    )


def loops(home: Path) -> tuple[str, ...]:
    """Loop devices on the file of a trial whose mount namespace is gone: of the scene its path shows the name only."""
    looped = re.compile(rf"/t\d{{4}}/{re.escape(home.name)}( \(deleted\))?\Z")
    files = {
        path.parts[3]: counting.text_of(path).strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")
    }
    return tuple(f"loop {name} on {file}" for name, file in files.items() if looped.match(file))


def program(home: Path) -> Path:
    """The tool, in `home`."""
    path = home / "escape"
    path.write_text(SCRIPT.replace("NAME", home.name))
    path.chmod(0o755)
    return path


def sweep(home: Path, ways: Sequence[str], times: int, filesystems: dict[str, Any], **design: Any) -> Resolved:
    """A sweep in which the tool gets away so often in each way, each in a cell of its own, beside one that stays."""
    tool = {
        "tool": "command", "space": "1MiB", "version": "true",
        "metrics": {"bytes": {"pattern": r"^(\d+)$", "unit": "B"}},
    }  # fmt: skip
    path = program(home)
    often = [*range(1, times + 1)]
    workloads = {way: {**tool, "argv": f"{path} {way} {{directory}} {{time_no}}", "time_no": often} for way in ways} | {
        "stays": {**tool, "argv": f"{path} stays {{directory}}"}
    }
    asked = {"repeats": 1, "warmup": 0, "seed": 7, "trial_timeout": "20s", "drop_caches": False, **design}
    raw = {"name": "escapes", "question": "Does anything get away?", "box": "local", "filesystems": filesystems,
           "workloads": workloads, "design": asked}  # fmt: skip
    return resolve(raw, where="tests")
