"""The shell text that knows what Mountlab makes on a box, removes this, and leaves all else alone (made.sh)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

OPEN = "open.sh"
"""The name by which the script of a run's directories stands in a command."""
DETACH = "detach.sh"
"""The same of the script that undoes a loop device."""


@cache
def made() -> str:
    """Return the functions of made.sh, to be put in front of a script that removes what Mountlab made."""
    return files("mountlab.filesystems").joinpath("made.sh").read_text()


@cache
def roots_script() -> str:
    """Return the script that looks at the roots of a box, opens a run in them, and closes it."""
    return made() + files("mountlab.filesystems").joinpath(OPEN).read_text()
