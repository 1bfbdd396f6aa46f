"""Where it is looked: the lock file, a database of advisories, the files that git tracks."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mountlab.core.errors import StoreError

from mountlab_dev.audit.rules import Advisory, Pin, advisories, pins, secrets

SERVICE = "https://api.osv.dev/v1/querybatch"
"""Open advisories (OSV). It gets names and versions of the libraries, and nothing else."""
DATABASE = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
PATIENCE_S = 20.0
_LARGEST = 4 * 1024 * 1024
Ask = Callable[[bytes], Any]


@dataclass(frozen=True)
class Outcome:
    """One thing that was looked at: what was found; or why it was not looked at."""

    what: str
    findings: tuple[str, ...] = ()
    not_looked: str = ""

    def __str__(self) -> str:
        if self.not_looked:
            return f"NOT LOOKED  {self.what}: {self.not_looked}"
        head = f"{'FOUND' if self.findings else 'ok':11} {self.what}"
        return "\n".join([head, *(f"{'':12}{each}" for each in self.findings)])


def audit(root: Path, *, database: Path | None = None, offline: bool = False, ask: Ask | None = None) -> list[Outcome]:
    """Return everything that can be looked at. `database`: an OSV export for PyPI, in the place of the service."""
    pinned = pins((root / "requirements.lock").read_text())
    tracked = _tracked(root)
    return [
        Outcome(
            f"checksums of {len(pinned)} libraries", tuple(str(each.name) for each in pinned if not each.has_checksum)
        ),
        _known(pinned, database, offline, ask or _ask_service),
        _of_files("secrets", tracked, lambda files: _secrets(root, files)),
        _of_files("permissions", tracked, lambda files: _permissions(root, files)),
    ]


# --- advisories -------------------------------------------------------------------------------------------------------


def _known(pinned: list[Pin], database: Path | None, offline: bool, ask: Ask) -> Outcome:
    what = f"advisories for {len(pinned)} libraries"
    if database is not None:
        return Outcome(f"{what}, by {database.name}", tuple(map(str, advisories(_records(database), pinned))))
    instead = f"give a database: ARGS='--database all.zip', from {DATABASE}"
    if offline or not pinned:
        return Outcome(what, not_looked=f"--offline; {instead}" if pinned else "requirements.lock names none")
    try:
        return Outcome(f"{what}, by {SERVICE}", tuple(map(str, _answered(ask, pinned))))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Outcome(what, not_looked=f"{SERVICE} gave no answer ({error}); {instead}")


def _answered(ask: Ask, pinned: list[Pin]) -> Iterator[Advisory]:
    asked = [{"package": {"name": each.name, "ecosystem": "PyPI"}, "version": each.version} for each in pinned]
    results = ask(json.dumps({"queries": asked}).encode())["results"]
    for pin, result in zip(pinned, results, strict=True):
        for each in result.get("vulns", ()):
            yield Advisory(pin, str(each["id"]), f"https://osv.dev/vulnerability/{each['id']}")


def _ask_service(question: bytes) -> Any:
    request = urllib.request.Request(SERVICE, question, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310  # the address is ours, and https
        return json.loads(answer.read(64 * 1024 * 1024))


def _records(database: Path) -> Iterator[dict[str, Any]]:
    """Yield the advisories of an export: one JSON file each."""
    try:
        with zipfile.ZipFile(database) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".json") and entry.file_size < _LARGEST:
                    record = json.loads(archive.read(entry))
                    if isinstance(record, dict):
                        yield record
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise StoreError(
            "not a database of advisories", where=str(database), got=str(error), allowed=DATABASE
        ) from error


# --- the tree ---------------------------------------------------------------------------------------------------------


def _tracked(root: Path) -> dict[str, str] | None:
    """File to mode, of what git tracks; None outside of a clone."""
    argv = ["git", "-C", str(root), "ls-files", "--stage", "-z"]
    try:
        listed = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    rows = (row.partition("\t") for row in listed.split("\0") if row)
    return {name: mode.split()[0] for mode, _, name in rows}


def _of_files(what: str, tracked: dict[str, str] | None, look: Callable[[dict[str, str]], Iterable[str]]) -> Outcome:
    if not tracked:
        return Outcome(what, not_looked="this is not a clone, so it is not known which files belong to it")
    return Outcome(f"{what} in {len(tracked)} files", tuple(look(tracked)))


def _secrets(root: Path, tracked: dict[str, str]) -> Iterator[str]:
    for name in tracked:
        path = root / name
        if path.is_file() and path.stat().st_size <= _LARGEST:
            text = path.read_bytes().decode("utf-8", "replace")
            yield from (f"{name}, line {number}: {kind}" for number, kind in secrets(text))


def _permissions(root: Path, tracked: dict[str, str]) -> Iterator[str]:
    for name, mode in tracked.items():
        path = root / name
        if mode == "120000":
            yield f"{name}: a symbolic link"
            continue
        if not path.is_file():
            continue
        is_script = path.read_bytes()[:2] == b"#!"
        if (mode == "100755") != is_script and not name.endswith(".sh"):
            yield f"{name}: {'a script that cannot be run' if is_script else 'may be run, and is no script'}"
        if os.stat(path).st_mode & (stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID):
            yield f"{name}: writable for all, or setuid"
