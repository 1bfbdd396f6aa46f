"""Runs beside each other in a notebook: those that are named, or the newest that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mountlab.analysis.compare import runs as analysis
from mountlab.analysis.compare.figures import common_cells
from mountlab.analysis.compare.runs import RunComparison
from mountlab.core.disk import path_text
from mountlab.core.errors import MountlabError, StoreError
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep
from mountlab.results import earlier, find, journal, store
from mountlab.results.info import read_info, read_sweep, runs_below
from mountlab.results.paths import RESULTS
from mountlab.results.store import Run


def compare_runs(
    runs: Sequence[Path | str | Run] | None = None,
    *,
    over_boxes: bool = False,
    missing: Mapping[str, str] | None = None,
    runs_differ: str | None = None,
) -> RunComparison:
    """Compare runs: two with their ratios, more with the spread between them, or (`over_boxes`) one sweep on several
    boxes. Each is a Run, a path, or a name as for `load_run`.

    One run is compared with the newest that shares a cell with it. None: the runs of the sweep that was run last and
    more than once, or last on two boxes. `missing`: boxes without a run, and why. Raises StoreError where there are no
    such runs, PlanError for runs that cannot be compared.

    `runs_differ`: by how much two runs of the same thing differ, such as '3%'. None: what earlier runs tell, else 5 %.
    """
    chosen = runs or (newest_over_boxes() if over_boxes else newest_of_one_sweep())
    loaded = [store.load_run(run) if isinstance(run, Path | str) else run for run in chosen]
    if over_boxes:
        return analysis.compare_runs(loaded, factor="box", missing=missing)
    if len(loaded) == 1:
        loaded.append(store.load_run(newest_beside(loaded[0].path)))
    return analysis.compare_runs(loaded, earlier.runs_differ(loaded, runs_differ))


def newest_over_boxes(results: Path = RESULTS) -> list[Path]:
    """Return the newest run on each box of the sweep that was run last on two boxes or more, oldest first. Raises
    StoreError where there is none."""
    by_name: dict[str, dict[str, Path]] = {}
    for path, info in runs_below(results):
        boxes = by_name.setdefault(str(info.parameters.get("name")), {})
        boxes.setdefault(info.box_name, path)
    oldest_first = (list(runs.values())[::-1] for runs in by_name.values())
    return _fitting(oldest_first, like=-1, kind="runs on two boxes", results=results)


def newest_beside(run: Path | str, results: Path = RESULTS) -> Path:
    """Return the newest run below results/ that can be compared with one: it has a cell in common with it. Raises
    StoreError where there is none."""
    path = find.run_path(run).resolve()
    name, sweep = read_info(path).run_id, read_sweep(path).sweep
    for other, info in runs_below(results):
        if info.run_id != name and _is_comparable(other, sweep):
            return other
    what = f"no other run below {path_text(results)}/ has a cell in common with {path_text(path)}; name more in `runs`"
    raise StoreError(what, where=path_text(results))


def newest_of_one_sweep(results: Path = RESULTS) -> list[Path]:
    """Return the runs of the sweep that was run last and more than once, oldest first. Raises StoreError where there is
    none."""
    by_name = by_key((str(info.parameters.get("name")), path) for path, info in runs_below(results))
    return _fitting((runs[::-1] for runs in by_name.values()), like=0, kind="two runs", results=results)


def _fitting(of_sweeps: Iterable[list[Path]], *, like: int, kind: str, results: Path) -> list[Path]:
    """Return the runs of the first sweep that has two or more which compare with the one at place `like`."""
    for runs in of_sweeps:
        sweep = read_sweep(runs[like]).sweep
        fitting = [path for path in runs if _is_comparable(path, sweep)]
        if len(fitting) > 1:
            return fitting
    raise StoreError(f"no sweep has {kind} below {path_text(results)}/; name some in `runs`", where=path_text(results))


def _is_comparable(path: Path, sweep: Sweep) -> bool:
    """Return whether a run has trials, and a cell of the sweep."""
    with suppress(MountlabError):
        return bool(journal.read_journal(path)) and bool(common_cells(sweep, read_sweep(path).sweep))
    return False
