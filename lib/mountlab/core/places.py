"""Where things lie: what comes with Mountlab, and the workspace of who uses it.

A workspace is a directory with sweeps and boxes of one's own in params/, and their runs in results/. A clone of
Mountlab is one, with the same layout.
"""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = (_PACKAGE / "shipped").is_dir()
"""Whether this is an installed package, and no clone: a wheel holds what comes with Mountlab inside the package."""
SHIPPED = _PACKAGE / "shipped" if INSTALLED else _PACKAGE.parents[1]
"""What comes with Mountlab, in the layout of its clone: notebooks/, params/, results/tour, licence and environment."""


def workspace_above(start: Path) -> Path | None:
    """Return the nearest directory, from `start` upwards, that has params/sweeps or params/boxes."""
    folders = ("params/sweeps", "params/boxes")
    return next((each for each in (start, *start.parents) if any((each / name).is_dir() for name in folders)), None)


def _here() -> Path:
    """The current directory, by its last name where it is removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))


WORKSPACE = workspace_above(_here()) or (_here() if INSTALLED else SHIPPED)
"""The workspace above the current directory. Where there is none: the current directory, or the clone that runs."""
