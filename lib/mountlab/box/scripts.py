"""The shell scripts of this room, which run on the box."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def script_text(name: str) -> str:
    """Return the text of a script beside this module."""
    return files("mountlab.box").joinpath(name).read_text()


def script_argv(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the argument list that runs a script beside this module."""
    return ("sh", "-c", script_text(name), name, *arguments)
