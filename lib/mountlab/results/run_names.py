"""Names of the directories of runs and batches, found without reading them whole: a Tab in a shell waits for this."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from mountlab.core.places import SHIPPED
from mountlab.results import paths

LATEST, INTERRUPTED = "latest", "interrupted"
"""Names the newest run, and the newest that was stopped."""
_HEAD = 4096
"""Bytes of a run.json or a batch.json in which `created_at` is."""
_CREATED = re.compile(rb'"created_at": "([^"]*)"')


def is_run(path: Path) -> bool:
    """Return whether a directory is that of a run or of a batch."""
    return (path / "run.json").is_file() or (path / "batch.json").is_file()


def run_names(results: Path | None = None) -> list[str]:
    """Return the names of the directories of runs and batches below `results`, the newest first, and of the runs that
    come with Mountlab."""
    places = (results or paths.RESULTS, SHIPPED / "results")
    return list(dict.fromkeys(name for place in places for name in _newest_first(place)))


def _newest_first(place: Path) -> list[str]:
    files = [*place.glob("[!.]*/run.json"), *place.glob("[!.]*/batch.json")]
    return [file.parent.name for file in sorted(files, key=_created, reverse=True)]


def _created(file: Path) -> bytes:
    with suppress(OSError), file.open("rb") as opened:
        if match := _CREATED.search(opened.read(_HEAD)):
            return match[1]
    return b""
