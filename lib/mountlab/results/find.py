"""Find runs by the names that people give them: a path, an id, a name, or `latest`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mountlab.core.disk import shown
from mountlab.core.errors import StoreError, did_you_mean
from mountlab.results import paths
from mountlab.results.info import runs_below

LATEST = "latest"
"""Names the newest run."""


def run_path(given: Path | str, results: Path | None = None) -> Path:
    """Return the directory of a run or of a batch.

    `given` is a path (from here, or from the repository), the name of a directory below `results`, the id of a run, the
    name of a sweep (then the newest run of it), or `latest` (the newest run of all). The first of these that fits is
    taken. Raises StoreError for an unknown name, with the nearest. A path to elsewhere is returned as it is: whoever
    reads it says that there is no run.
    """
    path, results = paths.found(given), results or paths.RESULTS
    if _is_run(path) or not _may_be_name(path, given, results):
        return path
    named = _named(path.name, results)
    if named or path.exists():
        return named or path
    raise _no_such_run(Path(given), results)


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file() or (path / "batch.json").is_file()


def _may_be_name(path: Path, given: Path | str, results: Path) -> bool:
    """Whether what is given is one word, or a path right below `results`."""
    return len(Path(given).parts) == 1 or path.absolute().parent == results.absolute()


def _named(name: str, results: Path) -> Path | None:
    if _is_run(results / name):
        return results / name
    runs = runs_below(results)
    if name == LATEST:
        if not runs:
            raise StoreError("there is no run yet", where=shown(results), got=name, next_step="make demo")
        return runs[0][0]
    by_id = (path for path, info in runs if info["run_id"] == name)
    by_sweep = (path for path, info in runs if info["parameters"].get("name") == name)
    return next(by_id, None) or next(by_sweep, None)


def _no_such_run(given: Path, results: Path) -> StoreError:
    place = results if len(given.parts) == 1 else given.parent
    return StoreError(
        "no such run",
        where=shown(place),
        got=given.name,
        allowed=f"a directory below results/, the id of a run, the name of its sweep, or `{LATEST}`",
        next_step=did_you_mean(given.name, dict.fromkeys(_names(results)))
        or "open results/index.html, which lists all runs",
    )


def _names(results: Path) -> Iterator[str]:
    """Yield every name that a run or a batch below `results` goes by."""
    yield LATEST
    yield from (path.name for path in sorted(results.glob("[!.]*")) if _is_run(path))
    for _, info in runs_below(results):
        yield info["run_id"]
        yield str(info["parameters"].get("name"))
