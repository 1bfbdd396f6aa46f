"""What is expensive to make and only read: made once in a session, by the first worker that needs it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the directory that `make` has filled, the same for all workers of this session. Nobody may change it.

    Another worker that needs it meanwhile waits; one that was killed while it made it leaves no half of it.
    """
    base = factory.getbasetemp()
    place = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared"
    place.mkdir(exist_ok=True)
    made, done = place / name, place / f"{name}.done"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            make(made)
            done.touch()
    return made
