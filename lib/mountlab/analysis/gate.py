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
from operator import attrgetter
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
    means: tuple[float, float] = (math.nan, math.nan)
    """Geometric means of the change and of the baseline, whose quotient is the ratio, in the unit of the metric."""
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
        return min((judged.outcome for judged in self.judged), key=WORST_FIRST.index)

    @property
    def unit(self) -> Unit:
        """What n counts."""
        return _Sides(self.baseline, self.change).unit


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
    began = attrgetter("info.created_at")
    runs = aligned((*sorted(baseline, key=began), *sorted(change, key=began)))
    sides = _Sides(tuple(runs[: len(baseline)]), tuple(runs[len(baseline) :]))
    if repeated := first_repeated([run.info.run_id for run in runs]):
        raise PlanError("a run is not held against itself", where="gate", got=repeated, allowed="each run once")
    common = [common_cells(runs[0].sweep, other.sweep) for other in runs[1:]]
    _check_directions(runs, metrics)
    figures = [
        figure
        for figure in shared_figures(runs, metrics=metrics)
        if any(figure.values[sides.places[0]]) and figure.cell.workload.metric(figure.metric).better != "neither"
    ]
    if not figures:
        raise PlanError(
            "the baseline has no figure to hold the change against",
            where="gate --metric",
            got=", ".join(metrics) or "none that its answer is about",
            allowed=", ".join(sorted(set(runs[0].measurements["metric"]))) or "a run that has measured something",
        )
    without_ratio = [_without_ratio(figure, sides) for figure in figures]
    present = [figure for figure, judged in zip(figures, without_ratio, strict=True) if judged is None]
    differ = runs_differ or RunsDiffer()
    spreads = [_spread(figure, runs, differ) for figure in present]
    against = _against(present, sides, margin, looks, spreads)
    judged = [
        replace(_judged(figure, against, place, spreads[place]), means=_means(figure, sides, against.counted))
        for place, figure in enumerate(present)
    ]
    judged += filter(None, without_ratio)
    changed = differences(runs[0], runs[1:], common)
    changed_first = differences(runs[0], sides.change[:1], [common[len(sides.baseline) - 1]])
    by_blocks = sides.unit == "block"
    return Gate(
        change=sides.change,
        baseline=sides.baseline,
        margin=margin,
        level=level_of(runs),
        judged=tuple(sorted(judged, key=_worst_first)),
        differs=tuple(known_areas(changed_first)),
        options=tuple(option_texts(changed, sides.names)),
        unequal=tuple(unequal_work(runs, sides.names, changed, common)),
        looks=looks,
        counted=against.counted,
        left_out=against.left_out,
        runs_differ=source(differ, (one for pair in spreads for one in pair)) if by_blocks else _BY_RUNS,
    )


_BY_RUNS = "How much runs differ is measured by the runs themselves, in each figure."


@dataclass(frozen=True)
class _Sides:
    """The runs of the baseline and of the change, in the order in which they were made: which of them count does not
    depend on how they are named. A figure has its values in the order of `runs`."""

    baseline: tuple[ComparedRun, ...]
    change: tuple[ComparedRun, ...]

    @property
    def runs(self) -> tuple[ComparedRun, ...]:
        return (*self.baseline, *self.change)

    @property
    def places(self) -> tuple[slice, slice]:
        """Those of the baseline and of the change among all runs."""
        count = len(self.baseline)
        return slice(0, count), slice(count, None)

    @property
    def unit(self) -> Unit:
        return "block" if len(self.runs) == _ONE_EACH else "run"

    @property
    def by_name(self) -> tuple[tuple[str, Sequence[ComparedRun]], ...]:
        return ("the baseline", self.baseline), ("the change", self.change)

    @property
    def names(self) -> list[str]:
        """A name for each run: 'the baseline', or 'run 2 of the baseline' where a side has several."""
        pairs = ((side, runs, place) for side, runs in self.by_name for place in range(1, len(runs) + 1))
        return [f"run {place} of {side}" if len(runs) > 1 else side for side, runs, place in pairs]


def _spread(figure: SharedFigure, runs: Sequence[ComparedRun], differ: RunsDiffer) -> tuple[FigureSpread, ...]:
    """Return by how much the run of the change and that of the baseline differ by themselves; () for several."""
    if len(runs) > _ONE_EACH:
        return ()
    theirs, ours = (differ.figure(run, figure.cell, figure.metric, figure.label, figure.unit) for run in runs)
    return ours, theirs


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


def _against(
    figures: Sequence[SharedFigure],
    sides: _Sides,
    margin: float,
    looks: Looks,
    spreads: Sequence[Sequence[FigureSpread]],
) -> AgainstMargin:
    """Return the figures that can be judged, all together."""
    level = level_of(sides.runs)
    theirs, ours = (table_of([_values(figure, side) for figure in figures]) for side in sides.places)
    # The coarsest of the runs of a side.
    base_steps, steps = (np.array([max(figure.steps[side]) for figure in figures]) for side in sides.places)
    better = [figure.cell.workload.metric(figure.metric).better == "higher" for figure in figures]
    repeated_looks, run_spreads = None, None  # runs as units follow no rule, and tell their spread
    if sides.unit == "block":
        repeated_looks = _repeated_looks(sides.runs, level, looks)
        run_spreads = side_of(pair[0] for pair in spreads), side_of(pair[1] for pair in spreads)
    return against_margin(
        ours,
        theirs,
        more_is_better=np.array(better, dtype=bool),
        margin=margin,
        level=level,
        repeated_looks=repeated_looks,
        steps=(steps, base_steps),
        unit=sides.unit,
        looks=looks,
        spreads=run_spreads,
    )


def _repeated_looks(runs: Sequence[ComparedRun], level: float, looks: Looks) -> RepeatedLooks | None:
    """Return what intervals are corrected for. Extensions count where a single look was decided before; else each
    number of blocks has its share of the error already."""
    repeated_looks = repeated_looks_of(runs, level)
    return repeated_looks if isinstance(repeated_looks, Until) or looks == "once" else None


def _without_ratio(figure: SharedFigure, sides: _Sides) -> Judged | None:
    """Judge a figure without a ratio: one that cannot be trusted, or that the change lacks. Else None."""
    about = (figure.cell, figure.metric, figure.label)
    if any(figure.values[sides.places[1]]):
        distrust = _distrust(figure, sides)
        return Judged(*about, "cannot tell", reason=f"its figures cannot be trusted ({distrust})") if distrust else None
    absent = "the change has no figure of it"
    missing = [_why_missing(figure, run) for run in sides.change]
    if all(missing):
        return Judged(*about, "cannot tell", reason=f"{absent}: {missing[0]}")
    return Judged(*about, "fails", reason=absent)


def _distrust(figure: SharedFigure, sides: _Sides) -> str:
    """Say for which errors of its runs a figure cannot be trusted: 'not-flushed in the change'. Trials that ran into
    their time limit count, which a mean would leave out."""
    reasons = []
    for side, runs in sides.by_name:
        caveats = [caveat for run in runs for caveat in caveats_of(side, run, [figure.cell])]
        codes = {
            caveat.code
            for caveat in caveats
            if (caveat.severity == "error" or caveat.code == "timed-out") and figure.metric.startswith(caveat.metrics)
        }
        reasons += [f"{code} in {side}" for code in sorted(codes)]
    return "; ".join(reasons)


def _why_missing(figure: SharedFigure, run: ComparedRun) -> str:
    """Return why a run has no figure, where that is no failure of it: too few I/Os, or its time limit. Else ''."""
    if any(caveat.code == "timed-out" and caveat.subject == figure.cell.id for caveat in run.caveats):
        return "its trials ran into their time limit (timed-out)"
    ios = fewest_ios(run.measurements).get((figure.cell.id, figure.metric.partition("_")[0]))
    if figure.metric in PERCENT_OF and ios and not enough(ios, PERCENT_OF[figure.metric]):
        return f"{too_few(figure.metric, ios).rstrip('.')} (few-operations)"
    return ""


def _values(figure: SharedFigure, side: slice) -> Sequence[float]:
    """Return the trials of the one run of a side; of several runs the geometric mean of each."""
    samples = [sample for sample in figure.values[side] if sample]
    if len(figure.values) == _ONE_EACH:
        return samples[0]
    return [float(np.exp(np.mean(np.log(sample)))) if min(sample) > 0 else math.nan for sample in samples]


def _means(figure: SharedFigure, sides: _Sides, counted: tuple[int, int]) -> tuple[float, float]:
    """Return the geometric mean of what counts of the change, and of the baseline; NaN where nothing is positive."""
    theirs, ours = (
        np.log([value for value in _values(figure, side)[:most] if value > 0] or [math.nan])
        for side, most in zip(sides.places, reversed(counted), strict=True)
    )
    return float(np.exp(ours.mean())), float(np.exp(theirs.mean()))


def _judged(figure: SharedFigure, against: AgainstMargin, place: int, spread: tuple[FigureSpread, ...]) -> Judged:
    outcome: GateOutcome = "fails" if against.fails[place] else "passes" if against.passes[place] else "cannot tell"
    needed = float(against.needed[place])
    if outcome == "cannot tell" and math.isnan(needed):
        needed = _FEWEST
    about, bounds = (figure.cell, figure.metric, figure.label), (float(against.low[place]), float(against.high[place]))
    worse, n, seen = float(against.worse[place]), int(against.n[place]), float(against.seen[place])
    judged = Judged(*about, outcome, worse, *bounds, n, needed, seen, unit="run")
    if not spread:
        return judged
    unless = float(against.unless[place])
    judged = replace(judged, unit=_UNITS[int(against.needs.in_runs[place])], spread=spread)
    if math.isnan(unless):
        return judged
    return replace(judged, unless=unless, would="fails" if judged.worse > 1 + against.margin else "passes")


def _worst_first(judged: Judged) -> tuple[int, float]:
    return WORST_FIRST.index(judged.outcome), -judged.at_least if math.isfinite(judged.at_least) else 0.0


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf
