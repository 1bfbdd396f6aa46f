"""The pages of the documentation that are built from code and data, made once in a session."""

from __future__ import annotations

import fcntl
import json
from functools import cache

import workers
from mountlab_dev import site


@cache
def built_pages() -> dict[str, str]:
    """Path in the repository to Markdown. Another worker that needs them meanwhile waits."""
    place = workers.PLACE / "built-pages"
    with place.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if place.stat().st_size == 0:
            json.dump({f"docs/{name}": text for name, text in site.pages().items()}, file)
            file.flush()
        file.seek(0)
        made: dict[str, str] = json.load(file)
        return made
