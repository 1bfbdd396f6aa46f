"""Find runs by the names that people give them: a path, an id, a name, `latest` or `interrupted`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from mountlab.core.disk import path_text
from mountlab.core.errors import StoreError, did_you_mean
from mountlab.core.places import SHIPPED
from mountlab.core.run_info import RunInfo
from mountlab.results import paths
from mountlab.results.info import runs_below
from mountlab.results.run_names import INTERRUPTED, LATEST, is_run, run_names


def run_path(name: Path | str, results: Path | None = None) -> Path:
    """Return the directory of a run or of a batch.

    `name` is a path (from here, or from the workspace), the name of a directory below `results`, the id of a run, the
    name of a sweep (then the newest run of it), `latest` (the newest run of all), or `interrupted` (the newest run that
    was stopped). The first of these that fits is taken. Raises StoreError for an unknown name, with the nearest. A path
    to elsewhere is returned as it is: its reader says that there is no run.
    """
    path, results = paths.locate(name), results or paths.RESULTS
    may_be_name = len(Path(name).parts) == 1 or path.absolute().parent == results.absolute()
    if is_run(path) or not may_be_name:
        return path
    by_name = _run_by_name(path.name, results)
    if by_name or path.exists():
        return by_name or path
    raise _no_such_run(Path(name), results)


def _run_by_name(name: str, results: Path) -> Path | None:
    if is_run(results / name):
        return results / name
    runs = runs_below(results)
    if name in (LATEST, INTERRUPTED):
        return _newest(runs, name, results)
    by_id = (path for path, info in runs if info.run_id == name)
    by_sweep = (path for path, info in runs if info.parameters.get("name") == name)
    shipped = SHIPPED / "results" / name
    return next(chain(by_id, by_sweep), shipped if is_run(shipped) else None)


def _newest(runs: list[tuple[Path, RunInfo]], name: str, results: Path) -> Path:
    """Return the newest run, or the newest that was stopped. Raises StoreError where there is none."""
    candidates = [path for path, info in runs if name in (LATEST, info.status)]
    if not candidates:
        kind, next_step = ("", "mountlab demo") if name == LATEST else ("interrupted ", "name the run to resume")
        raise StoreError(f"there is no {kind}run yet", where=path_text(results), got=name, next_step=next_step)
    return candidates[0]


def _no_such_run(name: Path, results: Path) -> StoreError:
    place = results if len(name.parts) == 1 else name.parent
    return StoreError(
        "no such run",
        where=path_text(place),
        got=name.name,
        allowed=f"a directory below results/, the id of a run, the name of its sweep, `{LATEST}` or `{INTERRUPTED}`",
        next_step=did_you_mean(name.name, dict.fromkeys(_names(results)))
        or "open results/index.html, which lists all runs",
    )


def _names(results: Path) -> Iterator[str]:
    """Yield every name that a run or a batch below `results` goes by."""
    yield from (LATEST, INTERRUPTED)
    yield from run_names(results)
    for _, info in runs_below(results):
        yield info.run_id
        yield str(info.parameters.get("name"))
