"""Two runs beside each other: a kernel before and after, two boxes, bare metal and a guest.

First what is known to differ between them, then the ratio of B to A for every cell that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis.compare import frames
from mountlab.analysis.compare.comparisons import AnswerOverRuns
from mountlab.analysis.compare.differences import (
    Difference,
    caveats_of,
    differences,
    known_areas,
    sides_differ,
    unequal_work,
)
from mountlab.analysis.compare.figures import common_cells, level_of, smallest_effect_of
from mountlab.analysis.compare.ratios import CellRatio, ratios_to_first
from mountlab.analysis.compare.run_spread import RunsDiffer, source
from mountlab.analysis.run_view import AnsweredRun
from mountlab.analysis.same_cells import aligned
from mountlab.analysis.verdicts import together
from mountlab.checks.base import of_run
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat
from mountlab.core.frames import pd
from mountlab.core.model import Cell


@dataclass(frozen=True)
class RunComparison:
    """Everything that two runs say beside each other."""

    a: AnsweredRun
    """The first run: before, or the one box."""
    b: AnsweredRun
    """The second run: after, or the other box."""
    answers: tuple[AnswerOverRuns, ...]
    """The comparisons of the sweep in both runs."""
    differences: tuple[Difference, ...]
    """What is known to differ between the runs."""
    ratios: tuple[CellRatio, ...]
    """B / A of every figure that both have."""
    caveats: tuple[Caveat, ...]
    """What gives reason to doubt the ratios."""
    level: float
    smallest_effect: float
    """The smallest difference that matters, of those that the sweeps name."""
    runs_differ: str
    """By how much runs differ by themselves, and how that is known."""

    @property
    def runs(self) -> tuple[AnsweredRun, AnsweredRun]:
        """A and B."""
        return self.a, self.b

    @property
    def names(self) -> tuple[str, str]:
        """'A' and 'B'."""
        return "A", "B"

    @property
    def only_in(self) -> Mapping[str, Sequence[str]]:
        """The run that has them to the cells of one run only."""
        return frames.cells_not_in_all(self.runs, self.names)

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row for each comparison of the sweep and run, with the interval that holds for all of that run."""
        return frames.verdict_frame(self.answers, self.names, ())

    @property
    def figures(self) -> pd.DataFrame:
        """One row for each figure of a cell: both means, and the ratio of B to A with the interval of its verdict."""
        return pd.DataFrame(list(map(_figure_row, self.ratios)))


def compare_runs(a: AnsweredRun, b: AnsweredRun, runs_differ: RunsDiffer | None = None) -> RunComparison:
    """Compare run B with run A. `runs_differ`: what is known of how much runs differ by themselves (None: nothing).

    Raises PlanError where they are one run, have no cell in common, or no figure of the
    same metric and unit."""
    if a.info.get("run_id") == b.info.get("run_id"):
        raise PlanError(
            "a run is not compared with itself", where="compare", got=str(a.info.get("run_id")), allowed="two runs"
        )
    a, b = aligned((a, b))
    common = common_cells(a.sweep, b.sweep)
    found = differences(a, [b], [common])
    differ = runs_differ or RunsDiffer()
    (ratios,) = ratios_to_first(a, [b], differ)
    said = source(differ, [one for each in ratios for one in each.spread])
    return RunComparison(
        a=a,
        b=b,
        answers=tuple(frames.answers_over((a, b))),
        differences=found,
        ratios=ratios,
        caveats=tuple(_caveats(a, b, common, found)),
        level=level_of((a, b)),
        smallest_effect=smallest_effect_of((a, b)),
        runs_differ=said,
    )


def _figure_row(each: CellRatio) -> dict[str, Any]:
    about = {"filesystem": each.cell.filesystem.name, "workload": each.cell.workload.label, "metric": each.metric}
    means = {"mean_a": each.mean_a, "mean_b": each.mean_b, "n_a": each.n_a, "n_b": each.n_b}
    return {**about, "label": each.label, "unit": each.unit, **means, **frames.ratio_of(together(each.comparison))}


def _caveats(a: AnsweredRun, b: AnsweredRun, common: Sequence[Cell], found: Sequence[Difference]) -> Iterator[Caveat]:
    yield from sides_differ(found, runs="A and B", so="A ratio is about all of them together.")
    yield from unequal_work((a, b), ("A", "B"), found, [common])
    if not known_areas(found) and not (a.sweep.imported or b.sweep.imported):
        yield of_run(
            "sides-alike",
            "note",
            "nothing that was kept differs between A and B. What the ratios show is how much a run differs from its "
            "own repetition on this box.",
        )
    yield of_run(
        "runs-not-paired",
        "warning",
        "the two runs share no blocks. Whatever else changed between them (time of day, neighbours, temperature, a "
        "reboot) is in every ratio, and by how much runs differ by themselves in every interval. Run A and B again, in "
        "turns, before a small ratio is believed: three runs of each tell `mountlab gate` by how much they differ.",
    )
    for name, run in (("A", a), ("B", b)):
        yield from caveats_of(name, run, common)
