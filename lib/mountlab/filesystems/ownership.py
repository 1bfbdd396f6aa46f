"""The shell functions that tell what Mountlab made on a box from everything else (made.sh)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

OPEN = "open.sh"
"""The name by which the script of a run's directories stands in a command."""
DETACH = "detach.sh"
"""The same of the script that undoes a loop device."""


@cache
def ownership_functions() -> str:
    """Return the text of made.sh, to be put in front of a script that removes what Mountlab made."""
    return files("mountlab.filesystems").joinpath("made.sh").read_text()


@cache
def roots_script() -> str:
    """Return the script that looks at the roots of a box, opens a run in them, and closes it."""
    return ownership_functions() + files("mountlab.filesystems").joinpath(OPEN).read_text()
