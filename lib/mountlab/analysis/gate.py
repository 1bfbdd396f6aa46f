"""May a change pass? Runs of a change beside runs of its baseline, judged against a margin: for scripts and CI systems.

Each figure passes, fails, or is inconclusive, by bounds that hold for all of them together (stats.margin), and over all
looks at one question: a change against its baseline, asked again with more blocks or more runs (stats.looks). With one
run on each side the unit is a trial, and earlier runs or an assumption say how much runs differ (compare.run_spread);
with several on a side the unit is a run, and the runs themselves tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mountlab.analysis.compare.caveats import caveats_of, unequal_work
from mountlab.analysis.compare.differences import differences, known_areas, option_texts
from mountlab.analysis.compare.figures import (
    SharedFigure,
    common_cells,
    first_repeated,
    level_of,
    repeated_looks_of,
    shared_figures,
    table_of,
)
from mountlab.analysis.compare.run_spread import FigureSpread, RunsDiffer, side_of, source
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import aligned
from mountlab.checks.missing import fewest_ios, too_few
from mountlab.core.errors import ParameterError, PlanError
from mountlab.core.findings import Caveat
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Cell, RepeatedLooks, Until
from mountlab.stats.histograms import enough
from mountlab.stats.looks import Looks, Unit
from mountlab.stats.margin import AgainstMargin, against_margin

GateOutcome = Literal["fails", "cannot tell", "passes"]
WORST_FIRST: tuple[GateOutcome, ...] = ("fails", "cannot tell", "passes")
LARGEST_MARGIN = 10.0
"""A change that may be eleven times as bad is judged by no figure."""
EXIT_CODES: Mapping[GateOutcome, int] = {"passes": 0, "fails": 1, "cannot tell": 5}
"""What the verb ends with."""

_FEWEST = 2.0
"""Values that tell of a spread."""
_UNITS: tuple[Unit, Unit] = ("block", "run")
_ONE_EACH = 2
"""Runs, where each side has one."""


@dataclass(frozen=True)
class Judged:
    """One figure, and what the margin makes of it."""

    cell: Cell
    metric: str
    label: str
    outcome: GateOutcome
    worse: float = math.nan
    """How many times as bad the change is as the baseline, whichever way is better."""
    at_least: float = math.nan
    at_most: float = math.nan
    """Bounds of it that hold for all figures together; NaN where there are none."""
    n: int = 0
    """Trials, or runs, of the smaller side."""
    needed: float = math.nan
    """How many of each side are needed to decide; infinite where no number would; NaN where none is needed or helps."""
    seen: float = math.nan
    """The same if the change is what was seen."""
    reason: str = ""
    """Why there is no figure to be judged, or none that can be trusted."""
    unit: Unit = "block"
    """What `needed` and `seen` count: runs of each side, too, where there is one and more blocks would not do."""
    would: GateOutcome = "cannot tell"
    unless: float = math.nan
    """Of one run beside one: what it does unless runs differ by more than so much, the break-even. Where it does
    nothing even if runs do not differ at all, NaN."""
    spread: tuple[FigureSpread, ...] = ()
    """By how much runs like that of the change, and like that of the baseline, differ; () with several on a side."""

    @property
    def present(self) -> int:
        """How many of its unit the smaller side has."""
        return 1 if self.spread and self.unit == "run" else self.n

    @property
    def more(self) -> float:
        """How many are needed beyond those that there are."""
        return self.needed - self.present

    @property
    def ratio(self) -> tuple[float, float, float]:
        """Change / baseline, and its bounds."""
        if self.cell.workload.metric(self.metric).better != "higher":
            return self.worse, self.at_least, self.at_most
        return _inverse(self.worse), _inverse(self.at_most), _inverse(self.at_least)


@dataclass(frozen=True)
class Gate:
    """All figures of a change against one margin, the worst first."""

    change: tuple[ComparedRun, ...]
    baseline: tuple[ComparedRun, ...]
    margin: float
    level: float
    judged: tuple[Judged, ...]
    differs: tuple[str, ...]
    """In what the first runs of the two sides are known to differ."""
    options: tuple[str, ...]
    """The options of workloads in which any of the runs differ, with their values."""
    unequal: tuple[Caveat, ...]
    """The cells in which the runs did not do the same work, and why."""
    looks: Looks
    """How often the question may be asked."""
    counted: tuple[int, int]
    """The blocks, or runs, of the change and of the baseline that this look counts."""
    left_out: bool
    """Whether there are blocks, or runs, that this look does not count."""
    runs_differ: str
    """By how much runs differ by themselves, and how that is known."""

    @property
    def outcome(self) -> GateOutcome:
        """Of the whole: as good as its worst figure."""
        return min((each.outcome for each in self.judged), key=WORST_FIRST.index)

    @property
    def unit(self) -> Unit:
        """What n counts."""
        return _unit(self.change, self.baseline)


def judge(
    change: Sequence[ComparedRun],
    baseline: Sequence[ComparedRun],
    *,
    margin: float,
    metrics: Sequence[str] = (),
    looks: Looks = "any",
    runs_differ: RunsDiffer | None = None,
) -> Gate:
    """Return each figure of the baseline's answer (or of `metrics`) against a margin: 0.05 lets a change be 1.05 times
    as bad. `looks`: whether the errors hold over all looks at this question, or for this one, if no other is ever made.
    `runs_differ`: what is known of how much runs differ (None: nothing); of several on a side they tell themselves.

    A figure that the baseline has and the change has not, fails, unless the change says why it is missing. Raises
    ParameterError for a margin out of range, PlanError where a run is named twice, where the runs have no cell in
    common, and where the baseline has no figure of the metrics.
    """
    if not 0 <= margin <= LARGEST_MARGIN:
        raise ParameterError(
            "not a margin", where="--worse-than", got=f"{100 * margin:g}%", allowed=f"0% to {100 * LARGEST_MARGIN:g}%"
        )
    runs = aligned((*sorted(baseline, key=_began), *sorted(change, key=_began)))
    _check(runs)
    _check_directions(runs, metrics)
    baseline, change = runs[: len(baseline)], runs[len(baseline) :]
    figures = [
        each
        for each in shared_figures(runs, metrics=metrics)
        if any(each.values[: len(baseline)]) and each.cell.workload.metric(each.metric).better != "neither"
    ]
    if not figures:
        raise PlanError(
            "the baseline has no figure to hold the change against",
            where="gate --metric",
            got=", ".join(metrics) or "none that its answer is about",
            allowed=", ".join(sorted(set(baseline[0].measurements["metric"]))) or "a run that has measured something",
        )
    without = [_without(each, change, baseline) for each in figures]
    present = [each for each, other in zip(figures, without, strict=True) if other is None]
    differ = runs_differ or RunsDiffer()
    spreads = [_spread(figure, runs, differ) for figure in present]
    found = _against(present, runs, change, baseline, margin, looks, spreads)
    judged = [_one(figure, found, place, spreads[place]) for place, figure in enumerate(present)]
    judged += [each for each in without if each]
    common = [common_cells(runs[0].sweep, other.sweep) for other in runs[1:]]
    differs = known_areas(differences(baseline[0], change[:1], [common[len(baseline) - 1]]))
    names, every = _side_names(baseline, change), differences(runs[0], runs[1:], common)
    unequal = tuple(unequal_work(runs, names, every, common))
    sides, ordered = (tuple(change), tuple(baseline)), tuple(sorted(judged, key=_worst_first))
    said = source(differ, [one for own in spreads for one in own]) if _unit(*sides) == "block" else _BY_RUNS
    options, counts = tuple(option_texts(every, names)), (found.counted, found.left_out)
    return Gate(*sides, margin, level_of(runs), ordered, tuple(differs), options, unequal, looks, *counts, said)


_BY_RUNS = "How much runs differ is measured by the runs themselves, in each figure."


def _side_names(baseline: Sequence[ComparedRun], change: Sequence[ComparedRun]) -> list[str]:
    """Return a name for each run: 'the baseline', or 'run 2 of the baseline' where a side has several."""
    sides = (("the baseline", baseline), ("the change", change))
    return [
        f"run {place} of {side}" if len(runs) > 1 else side for side, runs in sides for place in range(1, len(runs) + 1)
    ]


def _began(run: ComparedRun) -> str:
    """Return the key that sorts runs as they were made: which of them count does not depend on how they are named."""
    return run.info.created_at


def _spread(figure: SharedFigure, runs: Sequence[ComparedRun], differ: RunsDiffer) -> tuple[FigureSpread, ...]:
    """Return by how much the run of the change and that of the baseline differ by themselves; () for several."""
    if len(runs) > _ONE_EACH:
        return ()
    theirs, ours = (differ.figure(run, figure.cell, figure.metric, figure.label, figure.unit) for run in runs)
    return ours, theirs


def _check(runs: Sequence[ComparedRun]) -> None:
    if repeated := first_repeated([run.info.run_id for run in runs]):
        raise PlanError("a run is not held against itself", where="gate", got=repeated, allowed="each run once")
    for run in runs[1:]:
        common_cells(runs[0].sweep, run.sweep)


def _check_directions(runs: Sequence[ComparedRun], metrics: Sequence[str]) -> None:
    """Raise PlanError where a metric is asked for that has no better direction."""
    for name in metrics:
        if any(name in run.sweep.own_metrics and run.sweep.metric(name).better == "neither" for run in runs):
            raise PlanError(
                "a metric without a direction cannot become worse",
                where="gate --metric",
                got=f"{name} (better: neither)",
                allowed="metrics with a better direction, higher or lower",
            )


def _unit(change: Sequence[ComparedRun], baseline: Sequence[ComparedRun]) -> Unit:
    return "block" if len(change) == len(baseline) == 1 else "run"


def _against(
    present: Sequence[SharedFigure],
    runs: Sequence[ComparedRun],
    change: Sequence[ComparedRun],
    baseline: Sequence[ComparedRun],
    margin: float,
    looks: Looks,
    spreads: Sequence[Sequence[FigureSpread]],
) -> AgainstMargin:
    """Return the figures that can be judged, all together."""
    first, unit, level = len(baseline), _unit(change, baseline), level_of(runs)
    sides = [[_values(each, part) for each in present] for part in (slice(first, None), slice(0, first))]
    better = np.array([each.cell.workload.metric(each.metric).better == "higher" for each in present], dtype=bool)
    return against_margin(
        table_of(sides[0]),
        table_of(sides[1]),
        more_is_better=better,
        margin=margin,
        level=level,
        repeated_looks=_repeated_looks(runs, level, looks) if unit == "block" else None,  # runs as units follow no rule
        steps=(_steps(present, slice(first, None)), _steps(present, slice(0, first))),
        unit=unit,
        looks=looks,
        spreads=(side_of(own[0] for own in spreads), side_of(own[1] for own in spreads)) if unit == "block" else None,
    )


def _repeated_looks(runs: Sequence[ComparedRun], level: float, looks: Looks) -> RepeatedLooks | None:
    """Return what intervals are corrected for. Extensions count where a single look was decided before; else each
    number of blocks has its share of the error already."""
    repeated_looks = repeated_looks_of(runs, level)
    return repeated_looks if isinstance(repeated_looks, Until) or looks == "once" else None


def _without(figure: SharedFigure, change: Sequence[ComparedRun], baseline: Sequence[ComparedRun]) -> Judged | None:
    """Judge a figure without a ratio: one that cannot be trusted, or that the change lacks. Else None."""
    distrust, absent = _distrust(figure, change, baseline), "the change has no figure of it"
    if any(figure.values[len(baseline) :]):
        return _no_ratio(figure, "cannot tell", f"its figures cannot be trusted ({distrust})") if distrust else None
    missing = [_why_missing(figure, run) for run in change]
    if all(missing):
        return _no_ratio(figure, "cannot tell", f"{absent}: {missing[0]}")
    return _no_ratio(figure, "fails", absent)


def _no_ratio(figure: SharedFigure, outcome: GateOutcome, reason: str) -> Judged:
    return Judged(figure.cell, figure.metric, figure.label, outcome, reason=reason)


def _why_missing(figure: SharedFigure, run: ComparedRun) -> str:
    """Return why a run has no figure, where that is no failure of it: too few I/Os, or its time limit. Else ''."""
    if any(each.code == "timed-out" and each.subject == figure.cell.id for each in run.caveats):
        return "its trials ran into their time limit (timed-out)"
    ios = fewest_ios(run.measurements).get((figure.cell.id, figure.metric.partition("_")[0]))
    if figure.metric in PERCENT_OF and ios and not enough(ios, PERCENT_OF[figure.metric]):
        return f"{too_few(figure.metric, ios).rstrip('.')} (few-operations)"
    return ""


def _values(figure: SharedFigure, part: slice) -> Sequence[float]:
    """Return the trials of the one run of a side; of several runs the geometric mean of each."""
    own = [each for each in figure.values[part] if each]
    if len(figure.values) == _ONE_EACH:
        return own[0]
    return [float(np.exp(np.mean(np.log(each)))) if min(each) > 0 else math.nan for each in own]


def _steps(figures: Sequence[SharedFigure], part: slice) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the coarsest step of each figure among the runs of one side."""
    return np.array([max(each.steps[part]) for each in figures])


def _one(figure: SharedFigure, found: AgainstMargin, place: int, spread: tuple[FigureSpread, ...]) -> Judged:
    outcome: GateOutcome = "fails" if found.fails[place] else "passes" if found.passes[place] else "cannot tell"
    columns = (found.worse, found.low, found.high, found.needed, found.seen)
    worse, low, high, needed, seen = (float(column[place]) for column in columns)
    if outcome == "cannot tell" and math.isnan(needed):
        needed = _FEWEST
    about, n = (figure.cell, figure.metric, figure.label), int(found.n[place])
    judged = Judged(*about, outcome, worse, low, high, n, needed, seen)
    if not spread:
        return replace(judged, unit="run")
    unless, unit = float(found.unless[place]), _UNITS[int(found.needs.in_runs[place])]
    if math.isnan(unless):
        return replace(judged, unit=unit, spread=spread)
    would: GateOutcome = "fails" if worse > 1 + found.margin else "passes"
    return replace(judged, unit=unit, spread=spread, unless=unless, would=would)


def _distrust(figure: SharedFigure, change: Sequence[ComparedRun], baseline: Sequence[ComparedRun]) -> str:
    """Say what the runs found that a figure cannot be trusted with: 'not-flushed in the change'."""
    found = []
    for side, runs in (("the baseline", baseline), ("the change", change)):
        codes = {each.code for run in runs for each in caveats_of(side, run, [figure.cell]) if _is_about(each, figure)}
        found += [f"{code} in {side}" for code in sorted(codes)]
    return "; ".join(found)


def _is_about(caveat: Caveat, figure: SharedFigure) -> bool:
    """Return an error; or trials that ran into their time limit, which a mean would leave out."""
    return (caveat.severity == "error" or caveat.code == "timed-out") and figure.metric.startswith(caveat.metrics)


def _worst_first(each: Judged) -> tuple[int, float]:
    return WORST_FIRST.index(each.outcome), -each.at_least if math.isfinite(each.at_least) else 0.0


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf
