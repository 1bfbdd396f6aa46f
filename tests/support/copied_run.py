"""Copies of runs whose own files are changed. Their raw output, hundreds of files that take long to write, is linked:
who changes that makes a copy of all with shutil."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from mountlab.core.places import SHIPPED

EARLIER = SHIPPED / "tests" / "data" / "earlier_run"


def copied(run: Path, place: Path) -> Path:
    return Path(shutil.copytree(run, place, copy_function=_linked_if_raw))


def earlier_run(place: Path) -> Path:
    """A copy of the recorded run of an earlier version."""
    return copied(_away_from_the_repository(), place)


def _linked_if_raw(source: str, target: str) -> None:
    if "raw" in Path(source).parts:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


@cache
def _away_from_the_repository() -> Path:
    """Among the temporary files of the session, so that no mistake of a test can reach the recording."""
    return Path(shutil.copytree(EARLIER, Path(tempfile.mkdtemp()) / "run"))
