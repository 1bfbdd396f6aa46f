"""Earlier runs of a sweep on a box, out of the catalog: they tell by how much runs differ by themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from mountlab.analysis.compare.run_spread import EarlierFigure, FigureName, RunsDiffer
from mountlab.analysis.same_cells import same_workload
from mountlab.core.errors import KeepError, MissingExtra
from mountlab.results import catalog, paths
from mountlab.results.catalog.reading import moment
from mountlab.results.store import Run

_ROWS = """
    SELECT r.created_at, c.filesystem, c.workload, c.factors::VARCHAR, c.metric, c.label, c.unit, c.asked, c.n,
        c.log_mean, c.log_sd
    FROM cells AS c JOIN runs AS r ON r.run = c.run
    WHERE r.copy_of IS NULL AND r.created_at IS NOT NULL AND c.censored = 0 AND c.log_mean IS NOT NULL
        AND r.sweep = ? AND r.box = ?
"""
Say = Callable[[str], None]


def runs_differ(runs: Sequence[Run], stated: str | None = None, *, say: Say = lambda _: None) -> RunsDiffer:
    """Return by how much runs differ that are to be compared: what is `stated` ('3%'), or what earlier runs below
    results/ tell of those that lie there. Earlier are all that began before the last of the compared ones; what was
    asked of the cell is the same. Where the catalog cannot be written, or DuckDB is not installed, `say` gets a line,
    and nothing is known.

    Raises ParameterError as `RunsDiffer.of`, StoreError as `catalog.build`.
    """
    ours = [run for run in runs if run.path.resolve().is_relative_to(paths.RESULTS.resolve())]
    began = {at for run in runs if (at := moment(run.info.created_at))}
    if stated is not None or not ours or not began:
        return RunsDiffer.of(stated, {})
    try:
        built = catalog.build(paths.RESULTS.resolve(), say=say)
    except (KeepError, MissingExtra) as error:
        command = f"; {error.next_step}" if isinstance(error, MissingExtra) else ""
        say(f"earlier runs are not read: {error.what}: {error.got}{command}")
        return RunsDiffer.of(None, {})
    with catalog.opened(built.file) as connection:
        return RunsDiffer.of(None, {run.info.run_id: _earlier(connection, run, began) for run in ours})


def _earlier(connection: Any, run: Run, began: set[datetime]) -> dict[FigureName, list[EarlierFigure]]:
    """Return each figure of a run in all runs before the last that is compared, without those that are compared."""
    by_figure: dict[tuple[FigureName, str], list[EarlierFigure]] = {}
    for at, filesystem, workload, factors, metric, label, unit, definition, *figures in catalog.ask(
        connection, _ROWS, [run.sweep.name, run.info.box_name]
    ).rows:
        name = ((filesystem, same_workload(workload, json.loads(factors))), metric, label or "", unit)
        n, mean, sd = figures
        one = EarlierFigure(at, n, mean, math.nan if sd is None else sd)
        by_figure.setdefault((name, definition), []).append(one)
    this = moment(run.info.created_at)
    of_run = {name: runs for (name, _), runs in by_figure.items() if any(one.at == this for one in runs)}
    return {name: [one for one in runs if one.at < max(began) and one.at not in began] for name, runs in of_run.items()}
