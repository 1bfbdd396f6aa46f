"""The catalog made from the run directories: all of it, or what has changed since it was made.

What a run directory says is not read again where size, times and number of each of its files are those of before, and
none of them had changed just before it was read; everything else is. So both ways give the same rows.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mountlab.core.disk import clear, disk_errors, path_text, sync_directory
from mountlab.core.errors import AlteredError, StoreError
from mountlab.core.extras import need
from mountlab.results import listing
from mountlab.results.catalog import database
from mountlab.results.catalog.reading import RAW, check, read_run, signature
from mountlab.results.lock import held

FILE = ".catalog.duckdb"
_TEMPORARY = ".catalog.duckdb.*.tmp"
WAIT_S = 600.0
"""How long another process that makes the catalog is waited for."""
_AT_ONCE = 100
"""Runs whose rows are held in memory together."""
UNFINISHED = ("running", "interrupted")
"""Runs that are read again each time: whether one goes on does not show in its files."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Built:
    """What was done to make the catalog."""

    file: Path
    runs: int
    """In the catalog, copies included."""
    dated: int
    """Of them, those that say when they began."""
    read: int
    """Read now: the others were as they are."""
    from_raw: tuple[str, ...]
    """Of those read, whose figures were read out of the raw output, as nothing derived could be trusted."""
    altered: dict[str, str]
    """Run to its derived files that are not as they were written; its figures were read out of the raw output."""
    gone: int
    problems: dict[str, str]
    """Run that cannot be read to the reason."""
    copies: dict[str, str]
    """Run to the one that it is a copy of: it counts once."""


def build(results: Path, *, rebuild: bool = False, say: Say = lambda _: None) -> Built:
    """Make the catalog of a directory of runs, or bring it up to date; the file of before stays until the new one is
    whole. `say` gets a line about what takes long.

    Raises MissingExtra without DuckDB, StoreError where there is no such directory, KeepError where it cannot be
    written.
    """
    need("catalog", "the catalog of runs")
    if not results.is_dir():
        raise StoreError("no such directory", where=path_text(results), next_step="name that of the runs")
    file = results / FILE
    with held(results, what="catalog", name=".cataloguing", wait_s=WAIT_S):
        clear(results, _TEMPORARY)
        paths = {str(path.relative_to(results)): path for path in listing.runs(results)}
        now = {name: signature(path) for name, path in paths.items()}
        contents = None if rebuild else database.known_contents(file)
        before = contents.sources if contents else {}
        stale = [name for name in paths if not now[name] or name not in before or before[name].signature != now[name]]
        gone = [name for name in before if name not in paths]
        raw, altered = list[str](), dict[str, str]()
        if stale or gone or contents is None:
            forgotten = [*gone, *(name for name in stale if name in before)]
            with _replacing(file, keep=contents is not None) as connection:
                database.forget(connection, forgotten)
                raw, altered = _add(connection, {name: paths[name] for name in stale}, now, say)
                database.settle(connection)
                contents = database.contents(connection)
    problems = {run: problem for run, source in contents.sources.items() if (problem := source.problem)}
    return Built(
        file,
        contents.runs,
        contents.dated,
        len(stale),
        tuple(raw),
        altered,
        len(gone),
        problems,
        copies=contents.copies,
    )


@contextmanager
def _replacing(file: Path, *, keep: bool) -> Iterator[database.Connection]:
    """A database that takes the place of another once it is whole; with what that has, or empty."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with disk_errors(file):
        if keep:
            shutil.copyfile(file, temporary)
        with database.writing(temporary) as connection:
            yield connection
        os.replace(temporary, file)
        sync_directory(file.parent)


def _add(
    connection: database.Connection, runs: Mapping[str, Path], signatures: Mapping[str, str], say: Say
) -> tuple[list[str], dict[str, str]]:
    """Read runs and put their rows in; which of them were read from their raw output, and which hold derived files that
    were altered: these are read again each time."""
    raw, altered = list[str](), dict[str, str]()
    names = list(runs)
    for start in range(0, len(names), _AT_ONCE):
        rows, sources = [], dict[str, database.Source]()
        for name in names[start : start + _AT_ONCE]:
            try:
                run = read_run(runs[name], name)
            except listing.DAMAGE as error:
                sources[name] = database.Source(signatures[name], listing.reason(error))
                continue
            rows.append(run)
            again = run.status in UNFINISHED or run.altered
            sources[name] = database.Source("" if again else signatures[name])
            if run.altered:
                altered[name] = ", ".join(run.altered)
            if run.source == RAW:
                raw.append(name)
        if rows:
            database.add(connection, rows)
        database.note_sources(connection, sources)
        if len(names) > _AT_ONCE:
            say(f"read {min(start + _AT_ONCE, len(names))} of {len(names)} runs")
    return raw, altered


@dataclass(frozen=True)
class CatalogCheck:
    """Runs whose rows were held against their raw output."""

    runs: int
    wrong: dict[str, str]
    """Run to what is wrong."""


def check_runs(results: Path, count: int, *, say: Say = lambda _: None) -> CatalogCheck:
    """Parse the raw output of so many runs again, drawn at random, and hold the figures that the catalog takes from
    derived files against it."""
    runs = {str(path.relative_to(results)): path for path in listing.runs(results)}
    drawn = random.sample(sorted(runs), min(count, len(runs)))
    wrong = {}
    for number, name in enumerate(drawn, start=1):
        try:
            if why := check(runs[name], name):
                wrong[name] = why
        except AlteredError as error:
            wrong[name] = f"{error.what}: {error.where}: {error.got}"
        except listing.DAMAGE:
            continue  # the catalog has no rows of it, and says why
        if number % _AT_ONCE == 0:
            say(f"checked {number} of {len(drawn)} runs")
    return CatalogCheck(len(drawn), wrong)
