"""Shell scripts of the package as programs for a box: each with what its header says comes before it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

ROOMS = ("box", "filesystems", "filesystems/layers", "programs", "sweep", "tools")
"""Where scripts lie. No two have the same name."""
_NEEDS = re.compile(r"^# Needs ((?:\w+\.sh ?)+)", re.MULTILINE)


class SharedScript(str):
    """A script with a body that other scripts of a run have, too: a shell that stays on the box gets that once."""

    body: str

    def __new__(cls, head: str, body: str) -> SharedScript:
        script = super().__new__(cls, head + body)
        script.body = body
        return script


@cache
def script_text(name: str) -> str:
    """Return a script with those before it that its header names: `# Needs ownership.sh`, and what they need."""
    file = next(path for room in ROOMS if (path := files("mountlab").joinpath(room, name)).is_file())
    text = file.read_text()
    needs = _NEEDS.search(text)
    return "".join(map(script_text, needs[1].split() if needs else ())) + text


def script_argv(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the argument list that runs a script."""
    return ("sh", "-c", script_text(name), name, *arguments)
