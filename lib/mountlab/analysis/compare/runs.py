"""Runs beside each other: what differs between the levels of one factor.

The factor is `run` (a kernel before and after, many days of one sweep) or `box` (one sweep on several boxes, one run
each, the box being a random factor). Of both: what is known to differ between the levels, whether the answer of the
sweep holds at each of them (its own comparisons, paired by block), and how much a figure differs between levels, kept
apart from its trials. Runs also have ratios to the first of them, boxes a ratio over all of them (compare.over_boxes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from mountlab.analysis.compare.caveats import caveats_of_boxes, caveats_of_runs
from mountlab.analysis.compare.comparisons import AnswerOverRuns, key_of
from mountlab.analysis.compare.differences import Difference, differences
from mountlab.analysis.compare.figures import (
    SharedFigure,
    common_cells,
    first_repeated,
    level_of,
    name_of,
    repeated_looks_of,
    shared_figures,
    smallest_effect_of,
)
from mountlab.analysis.compare.over_boxes import RatioOverBoxes, ratios_over_boxes
from mountlab.analysis.compare.run_spread import RunsDiffer, source
from mountlab.analysis.compare.to_first import CellRatio, ratios_to_first
from mountlab.analysis.measurements import counted
from mountlab.analysis.run_view import ComparedRun, Measured, RunView
from mountlab.analysis.same_cells import aligned
from mountlab.analysis.trust import Trust, trust_in
from mountlab.core import numbers
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.frames import pd
from mountlab.core.groups import by_key
from mountlab.core.model import Cell
from mountlab.stats import estimate, sequential
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.wording import verdicts

Factor = Literal["run", "box"]
RATIO_COLUMNS = ("ratio", "low", "high", "n", "verdict")
VERDICT_COLUMNS = ("run", "candidate", "baseline", "workload", "metric", "label", *RATIO_COLUMNS)
FIGURE_COLUMNS = ("run", "filesystem", "workload", "metric", "label", "unit", "mean", "low", "high", "n")
PAIR_COLUMNS = (
    "filesystem", "workload", "metric", "label", "unit", "mean_a", "mean_b", "n_a", "n_b", *RATIO_COLUMNS,
)  # fmt: skip
TO_FIRST_COLUMNS = ("ratio", "ratio_low", "ratio_high", "verdict")
_PAIR = 2


@dataclass(frozen=True)
class CellOverRuns:
    """One figure of one cell in every run, or on every box."""

    cell: Cell
    metric: str
    label: str
    unit: str
    estimates: tuple[Estimate | None, ...]
    """None where a run does not have it."""
    spread: Spread
    """Between the runs and inside them."""
    p_adjusted: float
    """Of the runs being alike, over all figures together (Holm); NaN where it is not known."""
    ratios: tuple[CellRatio | None, ...]
    """To the first run; None for the first itself, where a run does not have the figure, and over boxes."""


@dataclass(frozen=True, repr=False)
class RunComparison:
    """Runs beside each other: two, many, or one on each of several boxes."""

    factor: Factor
    """What the runs are levels of: each is a level of its own, or stands for its box."""
    runs: tuple[RunView, ...]
    """In the order in which they were given."""
    names: tuple[str, ...]
    """Of the levels: 'A', 'B' and so on, or the names of the boxes."""
    answers: tuple[AnswerOverRuns, ...]
    """The comparisons of the sweep in every run."""
    shared: tuple[SharedFigure, ...]
    """Every figure that is compared, with the values of each run."""
    to_first: tuple[tuple[CellRatio | None, ...], ...]
    """Of each of these its ratio in every run to the first; () over boxes."""
    differences: tuple[Difference, ...]
    """What is known to differ between the runs."""
    caveats: tuple[Caveat, ...]
    """What gives reason to doubt the answer."""
    level: float
    smallest_effect: float
    """The smallest difference that matters, of those that the sweeps name."""
    runs_differ: str = ""
    """By how much runs differ by themselves, and how that is known; '' over boxes, which tell it themselves."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Boxes of the sweep without any figure, and why."""

    @cached_property
    def trust(self) -> Trust:
        """The trust in its figures. That two runs share no blocks and that several settings differ is no reason: the
        intervals hold the one, and the answer says the other."""
        figures = [((figure.cell.id,), figure.metric) for figure in self.shared]
        return trust_in(figures, [one for one in self.caveats if one.code not in ("runs-not-paired", "sides-differ")])

    @property
    def is_pair(self) -> bool:
        """Whether two runs are compared by their ratios: B / A."""
        return self.factor == "run" and len(self.runs) == _PAIR

    @property
    def ratios(self) -> tuple[CellRatio, ...]:
        """The ratios of all runs to the first, figure by figure; () over boxes."""
        return tuple(ratio for ratios in self.to_first for ratio in ratios if ratio)

    @cached_property
    def cells(self) -> tuple[CellOverRuns, ...]:
        """Every figure in every run, with the spread between runs, and the ratios to the first."""
        spreads = [spread(figure.values, level=self.level, steps=figure.steps) for figure in self.shared]
        adjusted = alike_p(spreads, repeated_looks_of(self.runs, self.level))
        ratios = self.to_first or [(None,) * len(self.runs)] * len(self.shared)
        return tuple(
            CellOverRuns(
                figure.cell,
                figure.metric,
                figure.label,
                figure.unit,
                _estimates(self.runs, figure, self.level),
                between,
                p_adjusted,
                to_first,
            )
            for figure, between, p_adjusted, to_first in zip(self.shared, spreads, adjusted, ratios, strict=True)
        )

    @property
    def over_boxes(self) -> tuple[RatioOverBoxes, ...]:
        """The comparisons of the sweep with their ratio over all boxes; () of runs."""
        return tuple(answer for answer in self.answers if isinstance(answer, RatioOverBoxes))

    @property
    def only_in(self) -> Mapping[str, Sequence[str]]:
        """The cells that some runs lack, by the names of the runs that have them, such as 'A' or 'A and C'."""
        runs = zip(self.names, self.runs, strict=True)
        names_of = by_key((cell.id, name) for name, run in runs for cell in run.sweep.cells)
        lacking = ((numbers.listed(names), cell) for cell, names in names_of.items() if len(names) < len(self.runs))
        return {names: tuple(cells) for names, cells in by_key(lacking).items()}

    @property
    def trials(self) -> pd.DataFrame:
        """The trials of all runs, as `Run.trials`, with the run or the box in front of the index."""
        frames = {name: run.trials for name, run in zip(self.names, self.runs, strict=True)}
        return pd.concat(frames, names=[self.factor])

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row for each comparison of the sweep and run, with the interval that holds for all of that run; and for
        each comparison over all boxes."""
        pairs = [pair for answer in self.answers for pair in zip(self.names, answer.on_each, strict=True)]
        pairs += [("all boxes", answer.over) for answer in self.over_boxes]
        rows = [
            (name, c.candidate, c.baseline, verdicts.workload_of(c), c.metric, c.label, *_ratio_values(c))
            for name, c in pairs
            if c
        ]
        return pd.DataFrame(rows, columns=list(VERDICT_COLUMNS))

    @property
    def figures(self) -> pd.DataFrame:
        """Of two runs a row for each figure: both means, and the ratio of B to A with the interval of its verdict. Else
        a row for each figure and run: the mean with its interval inside the run, and its ratio to the first run."""
        rows: list[tuple[object, ...]] = []
        if self.is_pair:
            for ratio in self.ratios:
                about = (ratio.cell.filesystem.name, ratio.cell.workload.label, ratio.metric, ratio.label, ratio.unit)
                means = (ratio.mean_a, ratio.mean_b, ratio.n_a, ratio.n_b)
                rows.append((*about, *means, *_ratio_values(ratio.comparison)))
            return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))
        for cell in self.cells:
            names = (cell.cell.filesystem.name, cell.cell.workload.label, cell.metric, cell.label)
            for run, one, to_first in zip(self.names, cell.estimates, cell.ratios, strict=True):
                if one:
                    *bounds, _, verdict = _ratio_values(to_first.comparison) if to_first else (math.nan,) * 5
                    rows.append((run, *names, one.unit, one.mean, one.low, one.high, one.n, *bounds, verdict))
        frame = pd.DataFrame(rows, columns=[*FIGURE_COLUMNS, *TO_FIRST_COLUMNS])
        return frame if self.factor == "run" else frame[list(FIGURE_COLUMNS)]

    def __repr__(self) -> str:
        """Without the runs."""
        return f"<RunComparison by {self.factor}: {', '.join(self.names)}>"


def _ratio_values(comparison: Comparison) -> tuple[object, ...]:
    """Return those of RATIO_COLUMNS; `low` and `high` are of the interval of the verdict."""
    interval = comparison.verdict_interval
    return comparison.ratio, interval.low, interval.high, comparison.n, comparison.verdict


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────────────


def compare_runs(
    runs: Sequence[RunView],
    runs_differ: RunsDiffer | None = None,
    *,
    factor: Factor = "run",
    missing: Mapping[str, str] | None = None,
) -> RunComparison:
    """Compare runs in the order given: with the first of them, or (`factor` is box) boxes of one sweep, one run each.

    `runs_differ`: what is known of how much runs differ by themselves (None: nothing). `missing`: boxes without a run,
    and why. Raises PlanError for fewer than two, for one that is named twice, and for one that has no cell in common
    with the first; of runs also for one without a common figure of the same metric and unit.
    """
    by_box = factor == "box"
    absent = dict(missing or {})
    if by_box:
        runs, absent = _with_figures(aligned(runs), absent)
        names = tuple(map(box_of, runs))
    else:
        _refuse_repetition(runs)
        runs, names = aligned(runs), tuple(map(name_of, range(len(runs))))
    first, others = runs[0], runs[1:]
    level, smallest_effect = level_of(runs), smallest_effect_of(runs)
    common = [common_cells(first.sweep, other.sweep) for other in others]
    changed = differences(first, others, common)
    if by_box:
        changed = tuple(row for row in changed if row.what != "box")  # their names differ: that is the factor
        shared = shared_figures(runs, whole=True)
        to_first: list[tuple[CellRatio | None, ...]] = []
        answers: list[AnswerOverRuns] = list(ratios_over_boxes(runs, level, smallest_effect))
        caveats = caveats_of_boxes(runs, names, common, changed, shared, absent)
        how = ""
    else:
        differ = runs_differ or RunsDiffer()
        shared, to_first = ratios_to_first(runs, differ)
        # The comparisons of the first run that another has too, with intervals for all comparisons of a run.
        by_run = [{key_of(one): one for one in run.comparisons} for run in runs]
        answers = [AnswerOverRuns(tuple(comparisons.get(key) for comparisons in by_run)) for key in by_run[0]]
        answers = [answer for answer in answers if len(answer.present) > 1]
        caveats = caveats_of_runs(runs, names, common, changed)
        how = source(differ, [side for ratios in to_first for ratio in ratios if ratio for side in ratio.spread])
    return RunComparison(
        factor=factor,
        runs=tuple(runs),
        names=names,
        answers=tuple(answers),
        shared=tuple(shared),
        to_first=tuple(to_first),
        differences=changed,
        caveats=tuple(caveats),
        level=level,
        smallest_effect=smallest_effect,
        runs_differ=how,
        missing=absent,
    )


def box_of(run: Measured) -> str:
    """Return the name of the box of a run."""
    return run.info.box_name or run.sweep.box


def _refuse_repetition(runs: Sequence[RunView]) -> None:
    ids = [run.info.run_id for run in runs]
    repeated = first_repeated(ids)
    if len(runs) < _PAIR or repeated:
        raise PlanError(
            "a run is not compared with itself" if repeated else "one run has nothing to be compared with",
            where="compare",
            got=repeated or ", ".join(ids),
            allowed="two runs or more, each once",
        )


def _with_figures(runs: Sequence[RunView], absent: dict[str, str]) -> tuple[list[RunView], dict[str, str]]:
    """Return the runs that have a figure, and the boxes that have none, with the reason."""
    if repeated := first_repeated(list(map(box_of, runs))):
        raise PlanError(
            "a box has two runs here",
            where="across boxes",
            got=repeated,
            allowed="one run a box",
            next_step="mountlab compare RUN RUN ... says how much runs of one box differ",
        )
    measured = [run for run in runs if len(counted(run.measurements))]
    absent |= {box_of(run): "its run has no figure" for run in runs if not any(run is other for other in measured)}
    if len(measured) < _PAIR:
        why = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
        raise PlanError(
            "one box says nothing of others",
            where="across boxes",
            got=f"figures of {numbers.listed(list(map(box_of, measured))) or 'none'}{f' ({why})' if why else ''}",
            allowed="two boxes or more",
            next_step="the report of each run says what holds on its own box",
        )
    return measured, absent


def _estimates(runs: Sequence[ComparedRun], figure: SharedFigure, level: float) -> tuple[Estimate | None, ...]:
    """Return the mean of each run's values, None where it has none, with an interval that covers `level` also where the
    run had a stopping rule, and where its figures are rounded."""
    rules = [sequential.level_after(run.sweep.repeated_looks, level) for run in runs]
    signed = any(value < 0 for values in figure.values for value in values)
    return tuple(
        estimate(values, level=level, unit=figure.unit, within=within, step=step, signed=signed) if values else None
        for within, values, step in zip(rules, figure.values, figure.steps, strict=True)
    )
