"""derived.json: the checksums of the derived files of a run, and of what they were made from.

It is removed before these files are written and written after them, so that it never speaks of files that a crash has
left half done. Without it nothing is known about them: figures are then read from the raw output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mountlab.core.disk import path_text, read_plain, remove_file, replace_file
from mountlab.core.errors import AlteredError, StoreError
from mountlab.results.stamp import FIGURES, LARGEST, truth_bytes

FILE = "derived.json"
TABLES = 7
"""Raised whenever the same figures give other tables, or more of them: those of before are derived again before a
report. 1: intervals of means reached below zero; no latency_comparisons.csv. 2: no why_sleeps. 3: sync(),
and calls below a directory that was open, were no operations where the tool's calls alone were recorded. 4: no
records.parquet. 5: verdicts on cells that are not to be used. 6: no shares of a sync behind the journal."""
_TRIES = 5
"""Another process may write these files while they are read."""
DAMAGE = (ValueError, RecursionError, OSError, StoreError)
"""What a derived file that was altered, or cannot be read, raises."""


@dataclass(frozen=True)
class Seal:
    """What derived.json says."""

    made_from: Mapping[str, str]
    """Name of a file to its SHA-256 (mountlab.results.stamp.truth_of)."""
    files: Mapping[str, str]
    """Name of a derived file to its SHA-256."""
    figures: int = FIGURES
    tables: int = 1

    def vouches(self, name: str, data: bytes) -> bool:
        """Return whether a derived file is as it was written."""
        return self.files.get(name) == sha256(data).hexdigest()


def write(run: Path, made_from: Mapping[str, str], files: Mapping[str, bytes]) -> None:
    """Write the derived files of a run, and their checksums last. Raises KeepError."""
    remove_file(run / FILE)
    for name, data in files.items():
        replace_file(run / name, data)
    replace_file(run / FILE, sealed(made_from, files))


def sealed(made_from: Mapping[str, str], files: Mapping[str, bytes]) -> bytes:
    """Return derived.json for these files."""
    content = {
        "made_from": dict(made_from),
        "figures": FIGURES,
        "tables": TABLES,
        "files": {name: sha256(data).hexdigest() for name, data in files.items()},
    }
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode()


def read(run: Path) -> Seal | None:
    """Return what derived.json says; None where there is none. Raises ValueError where it was altered itself."""
    data = truth_bytes(run / FILE)
    if data is None:
        return None
    content: Any = json.loads(data)
    try:
        if content.pop("checksum") != _checksum(content):
            raise ValueError("its checksum is another")
        return Seal(
            dict(content["made_from"]), dict(content["files"]), int(content["figures"]), int(content.get("tables", 1))
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("not a file of checksums") from error


def read_whole(run: Path, name: str) -> bytes | None:
    """Return a derived file; None where there is none. Raises AlteredError where it is not as it was written, OSError
    where it cannot be read, and StoreError for what is no plain file."""
    for last in (*[False] * (_TRIES - 1), True):
        before = _bytes(run / FILE)
        data = truth_bytes(run / name)
        if data is None:
            return None
        if _holds(run, name, data):
            return data
        if last or _bytes(run / FILE) == before:
            break
    raise AlteredError(
        "altered after it was written",
        where=path_text(run / name),
        next_step=f"derive it again from the raw output: mountlab reparse {path_text(run)}",
    )


def is_made_from(run: Path, truth: Mapping[str, str], *, today: bool = False) -> bool:
    """Return whether the derived files of a run were made from these files; with `today` by the parsers and statistics
    of today."""
    try:
        seal = read(run)
    except DAMAGE:
        return False
    as_today = seal is not None and (seal.figures, seal.tables) == (FIGURES, TABLES)
    return seal is not None and dict(seal.made_from) == dict(truth) and (as_today or not today)


def _holds(run: Path, name: str, data: bytes) -> bool:
    try:
        seal = read(run)
    except (ValueError, RecursionError):
        return False
    return seal is None or seal.vouches(name, data)


def altered(run: Path) -> list[str]:
    """Return the names of derived files that are not as they were written. A file that is missing is not among them:
    it is made again."""
    for _ in range(_TRIES):
        before = _bytes(run / FILE)
        names = _altered(run)
        if not names or _bytes(run / FILE) == before:
            return names
    return []


def _altered(run: Path) -> list[str]:
    try:
        seal = read(run)
    except DAMAGE:
        return [FILE]
    files = {name: _bytes(run / name) for name in seal.files if "/" not in name} if seal else {}
    return [name for name, data in files.items() if seal and data is not None and not seal.vouches(name, data)]


def _bytes(file: Path) -> bytes | None:
    try:
        return read_plain(file, LARGEST)
    except (OSError, StoreError):
        return None


def _checksum(content: Mapping[str, object]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
