"""What runs say beside each other, comparison by comparison, cell by cell, and as frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mountlab.analysis import verdicts
from mountlab.analysis.compare.comparisons import AnswerOverRuns, key_of
from mountlab.analysis.run_view import AnsweredRun, Measured
from mountlab.core import numbers
from mountlab.core.findings import Comparison, Estimate
from mountlab.core.frames import pd
from mountlab.core.model import Cell

RATIO_COLUMNS = ("ratio", "low", "high", "n", "verdict")
VERDICT_COLUMNS = ("run", "candidate", "baseline", "workload", "metric", "label", *RATIO_COLUMNS)
FIGURE_COLUMNS = ("run", "filesystem", "workload", "metric", "label", "unit", "mean", "low", "high", "n")


def answers_over(runs: Sequence[AnsweredRun]) -> Iterator[AnswerOverRuns]:
    """Yield the comparisons of the first run that another has too, with intervals for all comparisons of a run."""
    by_run = [{key_of(each): verdicts.together(each) for each in run.comparisons} for run in runs]
    for key in by_run[0]:
        found = AnswerOverRuns(tuple(each.get(key) for each in by_run))
        if len(found.known) > 1:
            yield found


def verdict_frame(answers: Iterable[AnswerOverRuns], names: Sequence[str], over: Sequence[Comparison]) -> pd.DataFrame:
    """Return one row for each comparison and run that has it, with the interval that holds for all of that run; and for
    each comparison `over` all boxes."""
    rows = [_verdict_row(name, one) for each in answers for name, one in zip(names, each.on_each, strict=True) if one]
    return pd.DataFrame([*rows, *(_verdict_row("all boxes", one) for one in over)], columns=list(VERDICT_COLUMNS))


def _verdict_row(run: str, one: Comparison) -> dict[str, Any]:
    about = {"candidate": one.candidate, "baseline": one.baseline, "workload": verdicts.workload_of(one)}
    return {"run": run, **about, "metric": one.metric, "label": one.label, **ratio_of(one)}


def ratio_of(one: Comparison) -> dict[str, Any]:
    """Return ratio, low, high, n and verdict of a comparison."""
    return {name: getattr(one, name) for name in RATIO_COLUMNS}


def figure_row(run: str, cell: Cell, metric: str, label: str, found: Estimate) -> dict[str, Any]:
    """Return the mean of one figure in one run, with its interval."""
    about = {"run": run, "filesystem": cell.filesystem.name, "workload": cell.workload.label}
    figures = {name: getattr(found, name) for name in ("unit", "mean", "low", "high", "n")}
    return {**about, "metric": metric, "label": label, **figures}


def cells_not_in_all(runs: Sequence[Measured], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the cells that some runs do not have, by the names of those that do, such as 'A' or 'A and C'."""
    found: dict[str, tuple[str, ...]] = {}
    for cell, places in _places(runs).items():
        if len(places) < len(runs):
            where = numbers.listed([names[place] for place in places])
            found[where] = (*found.get(where, ()), cell)
    return found


def _places(runs: Sequence[Measured]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        for cell in run.sweep.cells:
            found.setdefault(cell.id, []).append(place)
    return found
