"""Where a bundle is made, beside its place: nothing of it stays, however the process ends."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mountlab.core.disk import disk_errors
from mountlab.results.lock import FILE, held, holder

BUNDLE, ARCHIVE = "bundle", "bundle.zip"
_NAME = re.compile(r"\.bundle-[a-z0-9_]{8}")
_NAMELESS_S = 86400.0
"""So old is a directory without an owner that its process, of an earlier version, has ended."""


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """Make a directory for one bundle, and remove it at the end. Those of killed processes are removed first.

    Raises KeepError where nothing can be written.
    """
    with disk_errors(parent):
        parent.mkdir(parents=True, exist_ok=True)
        for path in parent.iterdir():
            if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink() and _is_left(path):
                shutil.rmtree(path, ignore_errors=True)
        place = Path(tempfile.mkdtemp(dir=parent, prefix=".bundle-"))
    try:
        with held(place, what="bundle"):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_left(path: Path) -> bool:
    """Return whether no process makes a bundle there any more: its owner has ended, or left no name and began long
    ago. A directory with other files in it is none of ours."""
    if path.stat().st_uid != os.geteuid() or not {entry.name for entry in path.iterdir()} <= {BUNDLE, ARCHIVE, FILE}:
        return False
    owner = path / FILE
    if owner.exists() and owner.stat().st_size:
        return holder(path) is None
    return time.time() - path.stat().st_mtime > _NAMELESS_S
