"""run.json: the one place that reads and writes the file. `core.run_info` says what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mountlab.core import chain, disk
from mountlab.core.disk import disk_errors, path_text, read_plain
from mountlab.core.errors import StoreError
from mountlab.results.paths import read_text
from mountlab.sweep.untrusted import check_explained, check_extension, check_record

FILE = "run.json"
SCHEMA = 6
"""Version of the run directory. 1: first (2026). 2: logs from elsewhere may be a run: `imported` in run.json, and the
duration of a trial may be null. 3: a trial has `attempts` and `set_aside`; without them it was tried once. 4: a trial
has the `seed` of its tool; without it the tool was given none. One that ran into its time limit has the status
`timeout`; before, it was repeated, or had failed (`as_outcomes`). 5: lines of the journal hold the digest of their raw
output and a checksum chain, which starts in run.json (mountlab.core.chain). 6: a trial has `exhausted`.
A run that was extended has `extensions`, one that was explained afterwards `explained`; diagnostic trials have
`diagnostic`."""
_NEEDED = frozenset(
    {"schema", "run_id", "status", "box", "seed", "parameters", "facts", "order", "left_out", "published"}
)


def check_is_run(path: Path) -> None:
    """Raise StoreError for what is no directory of a run: to be called before anything there is locked or written."""
    _text(path)


def _text(path: Path) -> str:
    return read_text(path / FILE, "run", "name a directory below results/")


def read_record(path: Path) -> dict[str, Any]:
    """Return what stands in the run.json of a run, its types checked.

    Raises StoreError where there is none, one that is not ours, or one of a later Mountlab.
    """
    text, where = _text(path), path_text(path / FILE)
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError("run.json is not whole", where=where, got=str(error)) from error
    record: dict[str, Any] = content if isinstance(content, dict) else {}
    if missing := _NEEDED - record.keys():
        raise StoreError("not a run of Mountlab's", where=where, got=f"no {', '.join(sorted(missing))}")
    check_record(record, where)
    if record["schema"] > SCHEMA:
        got, newest = f"schema {record['schema']}", f"up to {SCHEMA}"
        raise StoreError("written by a later Mountlab", where=path_text(path), got=got, allowed=newest)
    for entry in record.get(chain.EXTENSIONS, ()):
        check_extension(entry, f"{where}: {chain.EXTENSIONS}")
    for entry in record.get(chain.EXPLAINED, ()):
        check_explained(entry, f"{where}: {chain.EXPLAINED}")
    return record


def read_unchecked(path: Path) -> dict[str, Any]:
    """Return what stands in a run.json, for those who need little of it; {} where there is none, or no JSON in it.
    Raises KeepError where it cannot be read: the chain of the journal starts in it, and lines that follow another start
    would pass for altered ones."""
    if not (path / FILE).exists():
        return {}
    try:
        with disk_errors(path / FILE, "a file cannot be read"):
            record = json.loads(read_plain(path / FILE))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def text_of(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=1)


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Replace the run.json of a run."""
    disk.replace_file(path / FILE, text_of(record).encode())
