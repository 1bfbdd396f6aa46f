"""When the cells of a run have been measured often enough: `design.until`, decided from the trials so far.

Pure, and a function of the journal alone, so that a run that was interrupted decides as it would have done. The cells
of a workload leave together, that its blocks stay complete and its ratios paired; a cell that gives no figures leaves
alone.

The widths are those of the functions that make the report. Of a mean it is the interval that is printed. Of a ratio it
is the widest interval for all together that can be printed, whatever the other comparisons come to in later blocks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mountlab.analysis import capacity
from mountlab.analysis.answer_metrics import answer_labels, answer_metrics
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import FIGURE, counted, without_partial
from mountlab.analysis.sweep_comparisons import sweep_ratios
from mountlab.core.cell_stop import CellStop, StopReason
from mountlab.core.frames import pd, rows_of
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Sweep, Trial, Until
from mountlab.stats import adjust_comparisons, look_level
from mountlab.stats.estimates import Floats

MetricLabel = tuple[str, str]
"""Metric and label."""


@dataclass(frozen=True)
class Decision:
    """What a stop rule decides before a block."""

    stops: Mapping[str, CellStop]
    """Cell to why it has no more trials, of those that end now."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Cell of a search that goes on to the arrival rate of its next trial."""


@dataclass(frozen=True)
class RunSoFar:
    """What a run has measured so far."""

    trials: Sequence[Trial]
    measurements: pd.DataFrame
    """As that of measurement_frame, with percentiles that some trials lack."""

    @property
    def counted(self) -> RunSoFar:
        """Without diagnostic trials: blocks of these are ended by no rule."""
        return RunSoFar([trial for trial in self.trials if not trial.diagnostic], self.measurements)


class StopRule(Protocol):
    """Which cells are measured further, given the trials so far: what a run asks before each of its blocks."""

    @property
    def fewest_blocks(self) -> int:
        """Counted blocks before the first decision."""

    def decide(self, so_far: RunSoFar, *, before: int, stopped: Mapping[str, CellStop]) -> Decision:
        """Decide before block `before`, from the trials of the blocks before it; `so_far` may hold those of any
        block. `stopped`: the cells that ended earlier."""

    def unfinished(self, so_far: RunSoFar, *, after: int) -> Callable[[Cell], CellStop]:
        """Return a function from a cell to how far it had come when its run was interrupted after a block."""


def stop_rule(sweep: Sweep) -> StopRule | None:
    """Return the rule by which cells of a sweep end; None where each has the same number of trials."""
    if sweep.searches:
        return SearchRule(sweep)
    return UntilRule(sweep, sweep.design.until) if sweep.design.until is not None else None


def replay_stops(sweep: Sweep, trials: Sequence[Trial], measurements: pd.DataFrame) -> list[CellStop]:
    """Return why each cell has no more trials, in the order of the sweep; [] where the design has no stop rule.

    A cell whose run was interrupted before it could end is 'not finished'.
    """
    rule = stop_rule(sweep)
    if rule is None:
        return []
    so_far = RunSoFar(trials, measurements).counted
    stopped: dict[str, CellStop] = {}
    blocks: dict[str, set[int]] = defaultdict(set)
    for trial in so_far.trials:
        blocks[trial.cell].add(trial.block)
    for block in range(1, sweep.design.repeats + 1):
        if not all(block in blocks[cell.id] for cell in sweep.cells if cell.id not in stopped):
            break
        stopped |= rule.decide(so_far, before=block + 1, stopped=stopped).stops
    unfinished = rule.unfinished(so_far, after=max((trial.block for trial in so_far.trials), default=0))
    return [stopped.get(cell.id) or unfinished(cell) for cell in sweep.cells]


@dataclass(frozen=True)
class SearchRule:
    """The end of each search for a capacity, and the rate at which it goes on (mountlab.analysis.capacity)."""

    sweep: Sweep
    fewest_blocks = 1

    def decide(self, so_far: RunSoFar, *, before: int, stopped: Mapping[str, CellStop]) -> Decision:
        earlier = (trial for trial in so_far.counted.trials if trial.block < before)
        failed = {trial.cell: trial.reason for trial in earlier if trial.set_aside}
        searches = capacity.searches(self.sweep, so_far.measurements, before=before)
        going_on = {cell: search for cell, search in searches.items() if cell not in stopped}
        ends = {cell: search.ended_after(before - 1, failed.get(cell)) for cell, search in going_on.items()}
        now = {cell: capacity.stop(cell, going_on[cell], before - 1, *end) for cell, end in ends.items() if end}
        return Decision(now, {cell: search.next_rate for cell, search in going_on.items() if cell not in now})

    def unfinished(self, so_far: RunSoFar, *, after: int) -> Callable[[Cell], CellStop]:
        searches = capacity.searches(self.sweep, so_far.measurements)
        return lambda cell: capacity.stop(cell.id, searches[cell.id], after, "not finished")


@dataclass(frozen=True)
class UntilRule:
    """`design.until`: a cell ends when its figures are precise enough, at the last block or when the time is spent."""

    sweep: Sweep
    until: Until

    @property
    def fewest_blocks(self) -> int:
        return self.until.min

    def decide(self, so_far: RunSoFar, *, before: int, stopped: Mapping[str, CellStop]) -> Decision:
        if before <= self.until.min:
            return Decision({})
        interim = _Interim.at(self.sweep, self.until, so_far.counted, before)
        waiting = [cell for cell in self.sweep.cells if cell.id not in stopped]
        now = {cell.id: interim.stop(cell, "could not") for cell in waiting if interim.cannot_be_precise(cell)}
        for cells in by_key((cell.workload.label, cell) for cell in waiting if cell.id not in now).values():
            if all(interim.is_precise(cell) for cell in cells):
                now |= {cell.id: interim.stop(cell, "precise") for cell in cells}
        rest = [cell for cell in waiting if cell.id not in now]
        budget_s = self.until.budget_s
        if before > self.until.max:
            now |= {cell.id: interim.stop(cell, "max reached") for cell in rest}
        elif budget_s is not None and interim.spent_s() + interim.next_block_s(rest) > budget_s:
            now |= {cell.id: interim.stop(cell, "budget") for cell in rest}
        return Decision(now)

    def unfinished(self, so_far: RunSoFar, *, after: int) -> Callable[[Cell], CellStop]:
        interim = _Interim.at(self.sweep, self.until, so_far, after + 1)
        return lambda cell: interim.stop(cell, "not finished")


class _Width(NamedTuple):
    """Of one interval: by how much its farther end is off, relative to the figure; of a ratio less one than the larger
    factor either way. NaN where there is no interval."""

    n: int
    decisive: float
    """What the rule looks at."""
    printed: float
    """What a report would print now."""


Widths = dict[str, dict[MetricLabel, _Width]]
"""Cell to the intervals of its figures, or of its ratios to the baseline."""


@dataclass(frozen=True)
class _Interim:
    """The interim analysis before a block."""

    sweep: Sweep
    until: Until
    blocks_before: int
    """Counted blocks before it."""
    trials: Mapping[str, Sequence[Trial]]
    """Cell to its trials so far, those of the warm-up too."""
    counts: Mapping[str, int]
    """Cell to how many values it has, in the metric of the answer that has most."""
    widths: Widths

    @classmethod
    def at(cls, sweep: Sweep, until: Until, so_far: RunSoFar, before: int) -> _Interim:
        by_cell = by_key((trial.cell, trial) for trial in so_far.trials if trial.block < before)
        measurements = so_far.measurements
        frame = _of_answer(sweep, without_partial(measurements[measurements["block"] < before]))
        sizes = frame.groupby(list(FIGURE), sort=False).size()
        counts = {str(cell): int(n) for cell, n in sizes.groupby(level="cell").max().items()}
        widths = _of_means(sweep, frame) if until.of == "cells" else _of_ratios(sweep, frame, until)
        return cls(sweep, until, before - 1, by_cell, counts, widths)

    def cannot_be_precise(self, cell: Cell) -> bool:
        """Return whether it cannot become precise any more: of a ratio either side may be the reason."""
        if self.until.of == "cells":
            return self._silent(cell.id)
        partners = self._partners(cell)
        return self._silent(cell.id) or (bool(partners) and all(map(self._silent, partners)))

    def _partners(self, cell: Cell) -> list[str]:
        """Return the cells that it is compared with; none where the sweep leaves them out."""
        same = [other for other in self.sweep.cells if other.workload.label == cell.workload.label]
        baseline = self.sweep.baseline
        if cell.filesystem.name == baseline:
            return [other.id for other in same if other.filesystem.name != baseline]
        return [other.id for other in same if other.filesystem.name == baseline]

    def _silent(self, cell: str) -> bool:
        """Return whether it gave no figure, has no more trials, or can give too few until the last block."""
        n = self._n(cell)
        return (
            n == 0
            or any(trial.set_aside for trial in self.trials.get(cell, ()))
            or n + self.until.max - self.blocks_before < self.until.min
        )

    def _n(self, cell: str) -> int:
        return self.counts.get(cell, 0)

    def is_precise(self, cell: Cell) -> bool:
        """Return whether all of its figures, or ratios to the baseline, are; the baseline's own ratio is 1. A row that
        a file system never shows (n/a) is not waited for. A cell with a trial that ran into its time limit is not
        precise: its figure is a median, for which there is no rule."""
        if any(trial.status == "timeout" and not trial.warmup for trial in self.trials.get(cell.id, ())):
            return False
        of_ratios = self.until.of == "comparisons"
        if of_ratios and (cell.filesystem.name == self.sweep.baseline or not self._partners(cell)):
            return True
        widths = [width for width in self.widths.get(cell.id, {}).values() if width.n]
        until = self.until
        return bool(widths) and all(width.n >= until.min and width.decisive <= until.half_width for width in widths)

    def stop(self, cell: Cell, reason: StopReason) -> CellStop:
        widths = {row: width.printed for row, width in self.widths.get(cell.id, {}).items()}
        finite = {row: width for row, width in widths.items() if not math.isnan(width)}
        row = max(finite, key=finite.__getitem__, default=("", ""))
        reasons = [trial.reason for trial in self.trials.get(cell.id, ()) if trial.reason]
        return CellStop(
            cell=cell.id,
            reason=reason,
            blocks=self.blocks_before,
            n=self._n(cell.id),
            half_width=finite.get(row, math.nan),
            metric=" ".join(filter(None, row)),
            why=reasons[-1] if reasons and reason == "could not" else "",
        )

    def spent_s(self) -> float:
        return sum(trial.elapsed_s for trials in self.trials.values() for trial in trials)

    def next_block_s(self, cells: Sequence[Cell]) -> float:
        """Return what one more block of these cells will take, by what each of them took so far."""
        took = [[trial.elapsed_s for trial in self.trials.get(cell.id, ())] for cell in cells]
        return sum(sum(times) / len(times) for times in took if times)


def _of_answer(sweep: Sweep, measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the counted rows that the answer is about."""
    frame = counted(measurements)
    metrics, labels = answer_metrics(sweep, frame), answer_labels(sweep, frame)
    keys = {
        (cell.id, metric, label)
        for cell in sweep.cells
        for metric in metrics[cell.workload.label]
        for label in labels.get((cell.workload.label, metric), ("",))
    }
    return frame[np.array([key in keys for key in rows_of(frame, *FIGURE)], dtype=bool)]


def _of_means(sweep: Sweep, frame: pd.DataFrame) -> Widths:
    estimates = estimate_frame(sweep, frame, run_id="", box="")
    mean, low, high = (estimates[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
    off = np.maximum(high - mean, mean - low)
    widths = np.divide(off, np.abs(mean), out=np.where(off > 0, math.inf, off), where=mean != 0)
    by_cell: Widths = defaultdict(dict)
    rows = rows_of(estimates, *FIGURE, "n")
    for (cell, metric, label, n), width in zip(rows, widths.tolist(), strict=True):
        by_cell[cell][metric, label] = _Width(n, width, width)
    return by_cell


def _of_ratios(sweep: Sweep, frame: pd.DataFrame, until: Until) -> Widths:
    """Return the widths of the ratios to the baseline. What decides is at the level for as many comparisons as the
    sweep makes, whether or not they have figures by now."""
    questions, ratios, *_ = sweep_ratios(sweep, frame)
    design = sweep.design
    now = adjust_comparisons(ratios, level=design.level, smallest_effect=design.smallest_effect, repeated_looks=until)
    decision_width = _factors(ratios.ratio, *ratios.bounds(look_level(until, len(questions))))
    printed = _factors(ratios.ratio, now.joint.low, now.joint.high)
    widths: Widths = defaultdict(dict)
    for question, *width in zip(questions, ratios.n.tolist(), decision_width.tolist(), printed.tolist(), strict=True):
        widths[question.candidate_cell][question.metric, question.label] = _Width(*width)
    return widths


def _factors(ratio: Floats, low: Floats, high: Floats) -> Floats:
    """By how much the farther end of each interval is off its ratio; infinite where it has no end."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.maximum(high / ratio, ratio / low) - 1)
