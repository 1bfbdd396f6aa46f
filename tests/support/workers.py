"""A place of its own for each worker of this session: temporary files, and a box `local` with roots of its own.

To import this sets the environment, which the library reads when it is imported, as does each process that a test
starts. Two sessions on one machine, and the user's own runs, never meet.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

NAME = "MOUNTLAB_TESTS"
PARAMS = Path(__file__).parents[2] / "params"
MADE_HERE = NAME not in os.environ
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_SHARED, MNT_DETACH, LOOP = 0x20000, 1 << 14, 1 << 18, 1 << 20, 2, 7
"""Of sched.h, mount.h and major.h; Python has no mount."""
ROOTS = ("/var/tmp", "/dev/shm")
"""What lies below the mount root and the output root of `local`, as without a file of the user's."""

if MADE_HERE:
    # pytest keeps the temporary directories of its last three sessions there.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ[NAME] = tempfile.mkdtemp(prefix="mountlab-tests-")
PLACE = Path(os.environ[NAME])
"""Of the session; its name is in the path of all that the session makes, but for pytest's own temporary directories."""


def _put_params(place: Path) -> None:
    """The repository's sweeps and boxes, and `local` with other roots."""
    (place / "boxes").mkdir(parents=True, exist_ok=True)
    for path in [*PARAMS.glob("[!b]*"), PARAMS / "batches", *(PARAMS / "boxes").glob("[!l]*")]:
        link = place / path.relative_to(PARAMS)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    mount_root, output_root = (f"{root}/{PLACE.name}-{WORKER}" for root in ROOTS)
    box = {"embedded": "loopback", "mount_root": mount_root, "output_root": output_root}
    (place / "boxes" / "local.yml").write_text(yaml.safe_dump(box))


def remove() -> None:
    """Take away the place of the session, where this process has made it."""
    if MADE_HERE:
        shutil.rmtree(PLACE)


def _share_mounts() -> None:
    """Let what is unmounted go away in the mount namespaces of trials too, as on each machine with systemd: else a
    trial of one worker keeps the devices of all others busy. In a namespace of the session's own, which holds no mount
    of somebody else's on a loop device, nor of another run."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    libc = ctypes.CDLL(None)
    if any(" / / " in line and " shared:" in line for line in mounts) or libc.unshare(CLONE_NEWNS) != 0:
        return
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)  # else what is detached here would go away there
    for number, point in ((each[2], each[4]) for each in map(str.split, reversed(mounts))):
        held = any(
            Path(each).is_relative_to(point) for each in (__file__, sys.prefix, sys.base_prefix, tempfile.gettempdir())
        )
        if (number.startswith(f"{LOOP}:") or "mountlab" in point) and not held:
            libc.umount2(point.encode(), MNT_DETACH)
    libc.mount(None, b"/", None, MS_REC | MS_SHARED, None)


PLACE.chmod(0o755)  # tests as another user read below it
if MADE_HERE:
    _share_mounts()
_put_params(PLACE / WORKER / "params")
os.environ["MOUNTLAB_PARAMS"] = str(PLACE / WORKER / "params")
os.environ["TMPDIR"] = tempfile.tempdir = str(PLACE / WORKER)
