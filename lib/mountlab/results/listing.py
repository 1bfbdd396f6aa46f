"""What lies below results/: an entry of the index for every run, comparison, batch and bundle.

Small files only, so that thousands of runs take seconds. What cannot be read is an entry that says why: nothing is
left out silently, and one damaged run never takes the index from the others.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mountlab.core import disk
from mountlab.core.errors import MountlabError, in_one_line
from mountlab.results import altered, derived
from mountlab.results.entries import CsvRow, IndexEntry, entry_of_json, entry_of_run
from mountlab.results.info import read_info

OF_A_RUN = ("run.json", "trials.jsonl", "raw", "sweep.yml", "import.yml")
"""A directory that has one of them is a run, be it a damaged one."""
PAGE = "report.html"
_DEEPEST = 3
"""Directories below results/ that are looked into: a batch may hold its runs, a bundle in it too."""
DAMAGE = (
    MountlabError, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, csv.Error,
    RecursionError,
)  # fmt: skip
"""What damaged files raise on their way to an entry, or to the figures of a run."""


def entries(results: Path) -> list[IndexEntry]:
    """Return every run, comparison, batch, bundle and change below a directory."""
    return [_entry(path, results, names) for path, names in _below(results, 1)] if results.is_dir() else []


def runs(results: Path) -> list[Path]:
    """Return the directory of every run that the index lists, be it a damaged one. Those in bundles are not among
    them."""
    directories = _below(results, 1) if results.is_dir() else ()
    return [path for path, names in directories if "entry.json" not in names]


def _below(directory: Path, depth: int) -> Iterator[tuple[Path, set[str]]]:
    """Yield directories that are an entry, each with the names in it."""
    for path in sorted(directory.iterdir()):
        if path.name.startswith(".") or not path.is_dir():
            continue
        names = _names_in(path)
        if "entry.json" in names or names & set(OF_A_RUN):
            yield path, names
        elif depth < _DEEPEST and not path.is_symlink():
            yield from _below(path, depth + 1)


def _names_in(path: Path) -> set[str]:
    try:
        return {file.name for file in path.iterdir()}
    except PermissionError:
        return {"run.json"}  # reading it raises the error that names the reason


def _entry(path: Path, results: Path, names: set[str]) -> IndexEntry:
    name = str(path.relative_to(results))
    try:
        if "entry.json" in names:
            return _of_json(path, name)
        return _of_run(path, name, has_page=PAGE in names)
    except DAMAGE as error:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
        return IndexEntry(path=name, created_at=changed, problem=reason(error))


def reason(error: BaseException) -> str:
    """Return why something cannot be read, in a line."""
    if isinstance(error, MountlabError):
        return in_one_line(": ".join(part for part in (error.what, error.got) if part))
    return f"{type(error).__name__}: {in_one_line(str(error))}"


def _of_json(path: Path, name: str) -> IndexEntry:
    entry = entry_of_json(name, json.loads((path / "entry.json").read_text(encoding="utf-8")))
    page = (path / entry.page).resolve()
    if not (entry.page and page.is_file() and page.is_relative_to(path.resolve())):
        raise FileNotFoundError(f"the page that entry.json names is not there: {entry.page!r}")
    return entry


def _of_run(path: Path, name: str, *, has_page: bool) -> IndexEntry:
    info = read_info(path)
    altered.refuse_altered(path, info)
    comparisons = _rows(path, "comparisons.csv")
    page = {"page": PAGE} if has_page else {}
    if info.status == "interrupted" or (info.status != "running" and not has_page):
        verb = "resume" if info.status == "interrupted" else "report"
        page["next_step"] = f"mountlab {verb} {disk.path_text(path)}"
    return entry_of_run(name, info, comparisons, _rows(path, "caveats.csv") or (), **page)


def _rows(path: Path, name: str) -> list[CsvRow] | None:
    """Return the rows of a CSV file of a run; None where there is none. Raises AlteredError."""
    data = derived.read_whole(path, name)
    if data is None:
        return None
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))
