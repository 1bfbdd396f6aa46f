"""Many runs of one sweep beside each other: what a kernel, a box or just another day changed.

Three questions, each answered with what is fit for it. Whether the answer of the sweep held in each run: its own
comparisons, which are paired by block inside the run. How much a figure differs from run to run: the spread between
runs, kept apart from that of the trials inside them. Which run differs from the first: ratios, all corrected together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis import verdicts
from mountlab.analysis.compare import figures, frames
from mountlab.analysis.compare.comparisons import AnswerOverRuns
from mountlab.analysis.compare.differences import Difference, caveats_of, differences, sides_differ, unequal_work
from mountlab.analysis.compare.figures import FigureKey, RunFigures, SharedFigure
from mountlab.analysis.compare.ratios import CellRatio, ratios_to_first
from mountlab.analysis.compare.run_spread import RunsDiffer, source
from mountlab.analysis.run_view import AnsweredRun
from mountlab.analysis.same_cells import aligned
from mountlab.checks.base import of_run
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat
from mountlab.core.frames import pd
from mountlab.core.model import Cell

FEW_RUNS = 5
"""With fewer, the spread between runs is hardly known: its interval spans more than a factor of 3."""


@dataclass(frozen=True)
class CellAgainstFirst(figures.CellOverRuns):
    """One figure of one cell in every run, and against the first of them."""

    ratios: tuple[CellRatio | None, ...]
    """To the first run; None for the first itself, and where a run does not have the figure."""


@dataclass(frozen=True)
class ManyRuns:
    """Everything that several runs say beside each other."""

    runs: tuple[AnsweredRun, ...]
    """In the order in which they were given."""
    names: tuple[str, ...]
    """'A', 'B' and so on, in the order in which they were given."""
    answers: tuple[AnswerOverRuns, ...]
    """The comparisons of the sweep in every run."""
    cells: tuple[CellAgainstFirst, ...]
    """Every figure in every run, with the spread between runs."""
    differences: tuple[Difference, ...]
    """What is known to differ between the runs."""
    caveats: tuple[Caveat, ...]
    """What gives reason to doubt the answer."""
    level: float
    smallest_effect: float
    """The smallest difference that matters, of those that the sweeps name."""
    runs_differ: str
    """By how much two runs differ by themselves, and how that is known: part of each ratio to the first."""

    @property
    def only_in(self) -> Mapping[str, Sequence[str]]:
        """The runs that have them to the cells that other runs do not have."""
        return frames.cells_not_in_all(self.runs, self.names)

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row for each comparison of the sweep and run, with the interval that holds for all of that run."""
        return frames.verdict_frame(self.answers, self.names, ())

    @property
    def figures(self) -> pd.DataFrame:
        """One row for each figure of a cell and run: the mean with its interval inside the run, and its ratio to the
        first run with the interval of its verdict."""
        return pd.DataFrame(
            [
                {**frames.figure_row(name, each.cell, each.metric, each.label, one), **_to_first(ratio)}
                for each in self.cells
                for name, one, ratio in zip(self.names, each.estimates, each.ratios, strict=True)
                if one
            ]
        )


def _to_first(ratio: CellRatio | None) -> dict[str, Any]:
    if ratio is None:
        return {}
    one = verdicts.together(ratio.comparison)
    return {"ratio": one.ratio, "ratio_low": one.low, "ratio_high": one.high, "verdict": one.verdict}


def compare_many(runs: Sequence[AnsweredRun], runs_differ: RunsDiffer | None = None) -> ManyRuns:
    """Return runs beside each other, in the order given; verdicts of runs are against the first of them. `runs_differ`:
    what is known of how much runs differ by themselves (None: nothing).

    Raises PlanError for fewer than two, for one that is named twice, and for one that has no cell or no figure in
    common with the first.
    """
    _check(runs)
    runs = aligned(runs)
    first, others = runs[0], runs[1:]
    level = figures.level_of(runs)
    common = [figures.common_cells(first.sweep, other.sweep) for other in others]
    names = tuple(map(figures.name_of, range(len(runs))))
    found = differences(first, others, common)
    differ = runs_differ or RunsDiffer()
    cells = tuple(_cells(runs, level, differ))
    said = source(differ, [one for cell in cells for ratio in cell.ratios if ratio for one in ratio.spread])
    return ManyRuns(
        runs=tuple(runs),
        names=names,
        answers=tuple(frames.answers_over(runs)),
        cells=cells,
        differences=found,
        caveats=tuple(_caveats(runs, names, common, found)),
        level=level,
        smallest_effect=figures.smallest_effect_of(runs),
        runs_differ=said,
    )


def _check(runs: Sequence[AnsweredRun]) -> None:
    ids = [str(run.info.get("run_id")) for run in runs]
    twice = [each for place, each in enumerate(ids) if each in ids[:place]]
    if len(runs) <= 1 or twice:
        raise PlanError(
            "a run is not compared with itself" if twice else "one run has nothing to be compared with",
            where="compare",
            got=", ".join(twice or ids),
            allowed="two runs or more, each once",
        )


def _cells(runs: Sequence[AnsweredRun], level: float, differ: RunsDiffer) -> Iterator[CellAgainstFirst]:
    """Yield every figure that the first run and another one have."""
    by_key: dict[FigureKey, dict[int, CellRatio]] = {}
    for place, ratios in enumerate(ratios_to_first(runs[0], runs[1:], differ), start=1):
        for each in ratios:
            by_key.setdefault((each.cell.id, each.metric, each.label), {})[place] = each
    of_runs = [RunFigures.of(run, whole=True) for run in runs]
    shared = [_shared(key, own, of_runs) for key, own in by_key.items()]
    for found, own in zip(figures.over_runs(runs, shared, level), by_key.values(), strict=True):
        yield CellAgainstFirst(**vars(found), ratios=tuple(own.get(place) for place in range(len(runs))))


def _shared(key: FigureKey, ratios: dict[int, CellRatio], of_runs: Sequence[RunFigures]) -> SharedFigure:
    """Return a figure with the values of the first run and of those that have a ratio to it."""
    one = next(iter(ratios.values()))
    values = (own.values[key] if place in {0, *ratios} else () for place, own in enumerate(of_runs))
    steps = tuple(own.steps.get(key, 0.0) for own in of_runs)
    return SharedFigure(one.cell, one.metric, one.label, one.unit, tuple(values), steps)


def _caveats(
    runs: Sequence[AnsweredRun], names: Sequence[str], common: Sequence[Sequence[Cell]], found: Sequence[Difference]
) -> Iterator[Caveat]:
    yield from sides_differ(found, runs="the runs", so="What differs from run to run may come of any of them.")
    yield from unequal_work(runs, names, found, common)
    yield of_run(
        "runs-not-paired",
        "warning",
        "the runs share no blocks. Ratios of one run to another hold whatever else changed between them. "
        "Their intervals contain by how much runs differ by themselves; where these differ by more, believe that.",
    )
    if len(runs) < FEW_RUNS:
        yield of_run(
            "few-runs",
            "note",
            f"{len(runs)} runs say little about the spread between runs: its interval is wide. Five or more tell.",
        )
    for place, (name, run) in enumerate(zip(names, runs, strict=True)):
        cells = {cell.id: cell for own in (common if place == 0 else common[place - 1 : place]) for cell in own}
        yield from caveats_of(name, run, list(cells.values()))
