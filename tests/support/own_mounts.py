"""A mount namespace of the session's own: what tests change below /etc, /usr and /var goes away with it.

Users, sudoers rules and installed files are there for the session's processes only, also after `kill -9` of pytest.
Mounts of others on loop devices are let go, so that no trial keeps their devices busy; mounts of the tests reach all
processes of the session, and never the machine.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CLONE_NEWNS, MS_BIND, MS_REC, MNT_DETACH, LOOP = 0x20000, 1 << 12, 1 << 14, 2, 7
MS_PRIVATE, MS_SLAVE, MS_SHARED = 1 << 18, 1 << 19, 1 << 20
"""Of sched.h, mount.h and major.h; Python has no mount."""
OVERLAID = ("/etc", "/usr", "/var")
ON_DISK = Path("/var/lib/mountlab-tests")
"""Not overlaid: a directory that only root may write, as are all above it, for a mount root on a real file system."""
REPOSITORY = Path(__file__).parents[2]
USED = (sys.prefix, sys.base_prefix, tempfile.gettempdir())
SEPARATE, WITHOUT = "MOUNTLAB_TESTS_SEPARATE", "MOUNTLAB_TESTS_WITHOUT"
"""Variables: set where /etc, /usr and /var are overlaid; names of programs that are to be missing."""
NEEDED = "needs overlayfs: a test makes no user of this machine"
_libc = ctypes.CDLL(None, use_errno=True)


def separate(place: Path) -> None:
    """Enter the namespace, with upper layers of the overlays in memory. Where the kernel does not allow one of these
    (an ordinary user, no overlayfs), the rest stays as it is, and SEPARATE is not set."""
    if _libc.unshare(CLONE_NEWNS) != 0:
        return
    _mount(None, "/", MS_REC | MS_SLAVE)  # else what is detached here would go away there
    for number, point in ((line[2], line[4]) for line in reversed(_mounts())):
        ours = any(Path(path).is_relative_to(point) for path in (REPOSITORY, *USED))
        if (number.startswith(f"{LOOP}:") or "mountlab" in point) and not ours:
            _libc.umount2(point.encode(), MNT_DETACH)
    _mount(None, "/", MS_REC | MS_SHARED)
    if _overlay(place):
        os.environ[SEPARATE] = "yes"
        _hide(os.environ.get(WITHOUT, "").split())


def is_separate() -> bool:
    """Return whether tests may make users and install files: nobody else sees them."""
    return SEPARATE in os.environ


def _overlay(place: Path) -> bool:
    """Overlay OVERLAID; what is mounted below, and where the tests write, is put back over it."""
    layers, disk = place / "layers", place / "disk"
    for directory in (layers, disk):
        directory.mkdir()
    written = ("/var/tmp", tempfile.gettempdir(), str(REPOSITORY), str(Path.home()))
    points = dict.fromkeys([*(line[4] for line in _mounts()), *written])
    kept = {
        point: os.open(point, os.O_PATH) for point in points if point.startswith(tuple(map("{}/".format, OVERLAID)))
    }
    done = _mount("tmpfs", str(layers), 0, kind="tmpfs", data="mode=0755")
    for directory in OVERLAID:
        upper, work = layers / directory[1:], layers / f"{directory[1:]}.work"
        upper.mkdir()
        work.mkdir()
        options = f"lowerdir={directory},upperdir={upper},workdir={work}"
        done = done and _mount("overlay", directory, 0, kind="overlay", data=options)
    for point, descriptor in kept.items():
        _mount(f"/proc/self/fd/{descriptor}", point, MS_BIND | MS_REC)
        os.close(descriptor)
        for kind in (MS_PRIVATE, MS_SHARED):  # else each mount below it would be there twice: also below the overlay
            _mount(None, point, MS_REC | kind)
    _libc.umount2(str(layers).encode(), MNT_DETACH)  # the overlays hold it
    if done:
        ON_DISK.mkdir(parents=True, exist_ok=True)
        _mount(str(disk), str(ON_DISK), MS_BIND)
    return done


def _hide(names: Sequence[str]) -> None:
    for name in names:
        directories = f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin".split(":")
        for directory in (*directories, *Path("/usr/lib/postgresql").glob("*/bin")):
            program = Path(directory, name)
            if program.resolve().is_relative_to("/usr"):
                program.unlink(missing_ok=True)


def _mounts() -> list[list[str]]:
    return [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _mount(source: str | None, target: str, flags: int, *, kind: str | None = None, data: str | None = None) -> bool:
    words = [None if word is None else word.encode() for word in (source, target, kind, data)]
    return bool(_libc.mount(*words[:3], flags, words[3]) == 0)
