"""How far the answer of a run can be trusted, by the caveats of the cells that it rests on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mountlab.analysis.answers import answering
from mountlab.analysis.run_view import AnsweredRun
from mountlab.core.findings import Caveat, Comparison
from mountlab.core.groups import by_key
from mountlab.wording import verdicts

Grade = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Reason:
    """The caveats of one code that weaken an answer."""

    code: str
    cells: int
    """How many cells of the answer they are about; 0 where they are about the whole run."""
    error: bool


@dataclass(frozen=True)
class Trust:
    """A grade and the reasons for it, the gravest first."""

    grade: Grade
    reasons: tuple[Reason, ...] = ()
    cells: int = 0
    """The cells that the answer rests on."""
    unfinished: bool = False
    """Whether the run is not complete."""


def trust_of(run: AnsweredRun) -> Trust:
    """Return the trust in the answer of a run: that in its comparisons, or in its cells where nothing is compared.

    Low: an error is about any of them, or half of them or more have a warning about their own cells or file systems.
    Medium: there is another warning, also one about the whole run, or the run is not complete. High: none of these.
    """
    figures: list[tuple[Sequence[str], str]] = [(_cells(c), c.metric) for c in answering(run)]
    if not figures:
        asked = ((cell, run.answer_metrics.get(cell.workload.label, ())) for cell in run.sweep.cells)
        figures = [((cell.id,), metric) for cell, metrics in asked for metric in metrics]
    return trust_in(figures, run.caveats, unfinished=run.info.status != "complete")


def trust_in(
    figures: Sequence[tuple[Sequence[str], str]],
    caveats: Iterable[Caveat],
    *,
    unfinished: bool = False,
) -> Trust:
    """Return the trust in figures, each given by the ids of its cells and its metric."""
    weakening = [caveat for caveat in caveats if caveat.severity != "note"]
    about = [[caveat for caveat in weakening if is_about(caveat, cells, metric)] for cells, metric in figures]
    cells = {cell for ids, _ in figures for cell in ids}
    used = {id(caveat) for group in about for caveat in group}
    by_code = by_key((caveat.code, caveat) for caveat in weakening if id(caveat) in used)
    reasons = [
        Reason(code, _count_cells(group, cells), any(caveat.severity == "error" for caveat in group))
        for code, group in by_code.items()
    ]
    weak = sum(any(caveat.scope != "run" for caveat in group) for group in about)
    low = any(reason.error for reason in reasons) or (weak > 0 and 2 * weak >= len(figures))
    grade: Grade = "low" if low else "medium" if reasons or unfinished else "high"
    ordered = sorted(reasons, key=lambda reason: (not reason.error, -reason.cells))
    return Trust(grade, tuple(ordered), len(cells), unfinished)


def withhold_verdicts(comparisons: Iterable[Comparison], caveats: Iterable[Caveat]) -> list[Comparison]:
    """Return the comparisons, but no verdict where an error is about a side: that is not to be used."""
    errors = [caveat for caveat in caveats if caveat.severity == "error"]
    return [withhold_verdict(comparison, _cells(comparison), errors) for comparison in comparisons]


def withhold_verdict(comparison: Comparison, cells: Sequence[str], errors: Iterable[Caveat]) -> Comparison:
    """Return a comparison of these cells, without its verdict where one of the errors is about them."""
    usable = not any(is_about(error, cells, comparison.metric) for error in errors)
    if usable or not verdicts.has_blocks(comparison):
        return comparison
    return replace(comparison, verdict="not usable", needed=None, reduce=math.nan, noise="")


def _cells(comparison: Comparison) -> tuple[str, str]:
    candidate, baseline = (verdicts.cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline))
    return candidate, baseline


def is_about(caveat: Caveat, cells: Sequence[str], metric: str) -> bool:
    """Return whether a caveat weakens a metric of any of these cells."""
    if caveat.scope == "run":
        return True
    if caveat.scope == "filesystem":
        return any(cell.partition("/")[0] == caveat.subject for cell in cells)
    return caveat.subject in cells and metric.startswith(caveat.metrics)


def _count_cells(caveats: Sequence[Caveat], cells: Collection[str]) -> int:
    """Return how many of the cells the caveats of one code are about; 0 where they are about the run."""
    if any(caveat.scope == "run" for caveat in caveats):
        return 0
    return sum(any(is_about(caveat, (cell,), caveat.metrics) for caveat in caveats) for cell in cells)
