"""Many runs of one sweep beside each other: what a kernel, a box or just another day changed.

Three questions, each answered with what is fit for it. Whether the answer of the sweep held in each run: its own
comparisons, which are paired by block inside the run. How much a figure differs from run to run: the spread between
runs, told apart from that of the trials inside them. Which run differs from the first: ratios, all corrected together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis import verdicts
from mountlab.analysis.compare.ratios import (
    CellRatio,
    Figures,
    common_cells,
    level_of,
    name_of,
    ratios_to_first,
    rule_of,
    smallest_effect_of,
)
from mountlab.analysis.compare.two import Difference, caveats_of, differences_of
from mountlab.analysis.run_view import AnsweredRun, ComparedRun
from mountlab.analysis.same_cells import aligned
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.model import Cell
from mountlab.core.names import workload_label
from mountlab.stats import estimate
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.stats.sequential import level_after

FEW_RUNS = 5
"""With fewer, the spread between runs is hardly known: its interval spans more than a factor of 3."""


@dataclass(frozen=True)
class CellOverRuns:
    """One figure of one cell in every run."""

    cell: Cell
    metric: str
    label: str
    unit: str
    estimates: tuple[Estimate | None, ...]
    """None where a run does not have it."""
    spread: Spread
    p_adjusted: float
    """Of the runs being alike, over all figures together (Holm); NaN where it is not known."""
    ratios: tuple[CellRatio | None, ...]
    """To the first run; None for the first itself, and where a run does not have the figure."""


@dataclass(frozen=True)
class AnswerOverRuns:
    """One comparison of the sweep in every run, with the verdict of that run."""

    comparisons: tuple[Comparison | None, ...]

    @property
    def known(self) -> list[Comparison]:
        """Those that a run has."""
        return [each for each in self.comparisons if each is not None]

    @property
    def agrees(self) -> bool:
        """Whether every run that has it gives the same verdict."""
        return len({each.verdict for each in self.known}) == 1


@dataclass(frozen=True)
class DifferenceOverRuns:
    """One thing that is not the same in all runs, as it was kept in each."""

    area: str
    what: str
    values: tuple[Any, ...]
    known: bool


@dataclass(frozen=True)
class ManyRuns:
    """Everything that several runs say beside each other."""

    runs: tuple[AnsweredRun, ...]
    names: tuple[str, ...]
    """'A', 'B' and so on, in the order in which they were given."""
    answers: tuple[AnswerOverRuns, ...]
    cells: tuple[CellOverRuns, ...]
    differences: tuple[DifferenceOverRuns, ...]
    caveats: tuple[Caveat, ...]
    level: float
    smallest_effect: float


def compare_many(runs: Sequence[AnsweredRun]) -> ManyRuns:
    """Runs beside each other, in the order given; verdicts of runs are against the first of them.

    Raises PlanError for fewer than two, for one that is named twice, and for one that has no cell or no figure in
    common with the first.
    """
    _check(runs)
    runs = aligned(runs)
    first, others = runs[0], runs[1:]
    level = level_of(runs)
    common = [common_cells(first.sweep, other.sweep) for other in others]
    names = tuple(map(name_of, range(len(runs))))
    differences = differences_over(first, others, common)
    return ManyRuns(
        runs=tuple(runs),
        names=names,
        answers=tuple(_answers(runs)),
        cells=tuple(_cells(runs, level)),
        differences=differences,
        caveats=tuple(_caveats(runs, names, common, differences)),
        level=level,
        smallest_effect=smallest_effect_of(runs),
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


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _answers(runs: Sequence[AnsweredRun]) -> Iterator[AnswerOverRuns]:
    """The comparisons of the first run that another has too, with intervals for all comparisons of a run together."""
    by_run = [{key_of(each): verdicts.together(each) for each in run.comparisons} for run in runs]
    for key in by_run[0]:
        found = AnswerOverRuns(tuple(each.get(key) for each in by_run))
        if len(found.known) > 1:
            yield found


def key_of(comparison: Comparison) -> tuple[str, ...]:
    """What makes a comparison of one run that of another."""
    workload = workload_label(comparison.workload, comparison.factors)
    return comparison.candidate, comparison.baseline, workload, comparison.metric, comparison.label


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cells(runs: Sequence[AnsweredRun], level: float) -> list[CellOverRuns]:
    """Every figure that the first run and another one have."""
    figures = [Figures.whole(run) for run in runs]
    by_row: dict[tuple[str, str, str], dict[int, CellRatio]] = {}
    for place, ratios in enumerate(ratios_to_first(runs[0], runs[1:]), start=1):
        for each in ratios:
            by_row.setdefault((each.cell.id, each.comparison.metric, each.comparison.label), {})[place] = each
    samples = {
        row: [figures[place].values[row] if place in {0, *ratios} else [] for place in range(len(runs))]
        for row, ratios in by_row.items()
    }
    steps = {row: [each.steps.get(row, 0.0) for each in figures] for row in by_row}
    spreads = {row: spread(each, level=level, steps=steps[row]) for row, each in samples.items()}
    adjusted = alike_p(list(spreads.values()), rule_of(runs, level))
    return [
        _cell(runs, row, by_row[row], samples[row], steps[row], spreads[row], p, level)
        for row, p in zip(by_row, adjusted, strict=True)
    ]


def _cell(
    runs: Sequence[AnsweredRun],
    row: tuple[str, str, str],
    ratios: Mapping[int, CellRatio],
    samples: Sequence[Sequence[float]],
    steps: Sequence[float],
    found: Spread,
    p: float,
    level: float,
) -> CellOverRuns:
    one = next(iter(ratios.values()))
    return CellOverRuns(
        cell=one.cell,
        metric=row[1],
        label=row[2],
        unit=one.unit,
        estimates=estimates_of(runs, samples, steps, level=level, unit=one.unit),
        spread=found,
        p_adjusted=p,
        ratios=tuple(ratios.get(place) for place in range(len(samples))),
    )


def estimates_of(
    runs: Sequence[ComparedRun], samples: Sequence[Sequence[float]], steps: Sequence[float], *, level: float, unit: str
) -> tuple[Estimate | None, ...]:
    """The mean of each run's values, None where it has none, with an interval that covers `level` also where the run
    had a stopping rule, and where its figures are rounded to `steps`."""
    rules = [run.sweep.design.until for run in runs]
    return tuple(
        estimate(own, level=level, unit=unit, within=level_after(rule, level), step=step) if own else None
        for rule, own, step in zip(rules, samples, steps, strict=True)
    )


def furthest(cell: CellOverRuns) -> float:
    """The largest ratio to the first run, whichever way it goes, as |log|; -1 where there is none."""
    return max((verdicts.effect(each.comparison) for each in cell.ratios if each), default=-1.0)


def differs(cell: CellOverRuns, level: float) -> bool:
    """Whether the runs differ by more than the trials inside them explain."""
    return cell.p_adjusted < 1 - level


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def differences_over(
    first: AnsweredRun, others: Sequence[AnsweredRun], common: Sequence[Sequence[Cell]]
) -> tuple[DifferenceOverRuns, ...]:
    """What is not the same in all runs: for each the value of every run."""
    found: dict[tuple[str, str], dict[int, Difference]] = {}
    for place, (other, cells) in enumerate(zip(others, common, strict=True)):
        for each in differences_of(first, other, cells):
            found.setdefault((each.area, each.what), {})[place] = each
    return tuple(_difference(key, own, len(others)) for key, own in found.items())


def _difference(key: tuple[str, str], own: Mapping[int, Difference], others: int) -> DifferenceOverRuns:
    a = next(iter(own.values())).a
    values = (a, *(own[place].b if place in own else a for place in range(others)))
    return DifferenceOverRuns(*key, values, known=any(each.known for each in own.values()))


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats(
    runs: Sequence[AnsweredRun],
    names: Sequence[str],
    common: Sequence[Sequence[Cell]],
    differences: Sequence[DifferenceOverRuns],
) -> Iterator[Caveat]:
    areas = list(dict.fromkeys(each.area for each in differences if each.known))
    if len(areas) > 1:
        yield Caveat(
            code="sides-differ",
            severity="warning",
            scope="run",
            message=f"the runs differ in {len(areas)} respects: {'; '.join(areas)}. What differs from run to run may "
            "come of any of them. Change one at a time to learn which of them it is.",
        )
    yield Caveat(
        code="runs-not-paired",
        severity="warning",
        scope="run",
        message="the runs share no blocks. Ratios of one run to another hold whatever else changed between them, and "
        "their intervals know only the spread inside each run: where the spread between runs is large, believe that.",
    )
    if len(runs) < FEW_RUNS:
        yield Caveat(
            code="few-runs",
            severity="note",
            scope="run",
            message=f"{len(runs)} runs say little about the spread between runs: its interval is wide. Five or more "
            "tell.",
        )
    for place, (name, run) in enumerate(zip(names, runs, strict=True)):
        cells = {cell.id: cell for own in (common if place == 0 else common[place - 1 : place]) for cell in own}
        yield from caveats_of(name, run, list(cells.values()))
