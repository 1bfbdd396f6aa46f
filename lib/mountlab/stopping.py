"""When the cells of a run have been measured often enough: `design.until`, decided from the trials so far.

Pure, and a function of the journal alone, so that a run that was interrupted decides as it would have done. The cells
of a workload leave together, that its blocks stay complete and its ratios paired; a cell that gives no figures leaves
alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mountlab.analysis import answer_labels, answer_metrics, by_block, counted, log_ratios
from mountlab.model import Cell, Stop, StopReason, Sweep, Trial, Until
from mountlab.stats import sequential

Values = dict[int, float]
"""Block to value."""
Row = tuple[str, str]
"""Metric and label."""


def decide(
    sweep: Sweep, trials: Sequence[Trial], measurements: pd.DataFrame, *, before: int, left: Mapping[str, Stop]
) -> dict[str, Stop]:
    """The cells that leave before block `before`, by id, beside those that have `left` earlier.

    Only trials of the blocks before it are looked at. Nothing leaves before `min` blocks are done. `trials` may hold
    those of any block, `measurements` has the columns of analysis.measurement_frame.
    """
    until = sweep.design.until
    if until is None or before <= until.min:
        return {}
    look = _Look.at(sweep, until, trials, measurements, before)
    waiting = [cell for cell in sweep.cells if cell.id not in left]
    hopeless = [cell for cell in waiting if look.hopeless(cell)]
    gone = {cell.id: look.stop(cell, "could not") for cell in hopeless}
    for cells in _by_workload([cell for cell in waiting if cell.id not in gone]):
        if all(look.precise(cell) for cell in cells):
            gone |= {cell.id: look.stop(cell, "precise") for cell in cells}
    rest = [cell for cell in waiting if cell.id not in gone]
    if before > until.max:
        return gone | {cell.id: look.stop(cell, "max reached") for cell in rest}
    if until.budget_s is not None and look.spent_s() + look.next_block_s(rest) > until.budget_s:
        return gone | {cell.id: look.stop(cell, "budget") for cell in rest}
    return gone


def stops(sweep: Sweep, trials: Sequence[Trial], measurements: pd.DataFrame) -> list[Stop]:
    """Why each cell has no more trials, in the order of the sweep; [] where the design has no stopping rule.

    A cell whose run was interrupted before it could leave is 'not finished'.
    """
    until = sweep.design.until
    if until is None:
        return []
    left: dict[str, Stop] = {}
    blocks: dict[str, set[int]] = defaultdict(set)
    for trial in trials:
        blocks[trial.cell].add(trial.block)
    for block in range(1, until.max + 1):
        if not all(block in blocks[cell.id] for cell in sweep.cells if cell.id not in left):
            break
        left |= decide(sweep, trials, measurements, before=block + 1, left=left)
    after = max((trial.block for trial in trials), default=0)
    look = _Look.at(sweep, until, trials, measurements, after + 1)
    return [left.get(cell.id) or look.stop(cell, "not finished") for cell in sweep.cells]


def _by_workload(cells: Sequence[Cell]) -> list[list[Cell]]:
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.workload.label].append(cell)
    return list(groups.values())


@dataclass(frozen=True)
class _Look:
    """What is known before a block."""

    sweep: Sweep
    until: Until
    done: int
    """Counted blocks before it."""
    trials: Mapping[str, Sequence[Trial]]
    """Cell to its trials so far, those of the warm-up too."""
    rows: Mapping[str, Mapping[Row, Values]]
    """Cell to its figures of the metrics that the answer is about."""

    @classmethod
    def at(cls, sweep: Sweep, until: Until, trials: Sequence[Trial], measurements: pd.DataFrame, before: int) -> _Look:
        by_cell: dict[str, list[Trial]] = defaultdict(list)
        for trial in trials:
            if trial.block < before:
                by_cell[trial.cell].append(trial)
        rows = _rows(sweep, measurements[measurements["block"] < before])
        return cls(sweep, until, before - 1, by_cell, rows)

    def hopeless(self, cell: Cell) -> bool:
        """Whether it cannot become precise any more: of a ratio either side may be the reason."""
        if self.until.of == "cells":
            return self._silent(cell.id)
        partners = self._partners(cell)
        return self._silent(cell.id) or (bool(partners) and all(map(self._silent, partners)))

    def _partners(self, cell: Cell) -> list[str]:
        """The cells that it is compared with; none where the sweep leaves them out."""
        same = [each for each in self.sweep.cells if each.workload.label == cell.workload.label]
        baseline = self.sweep.baseline
        if cell.filesystem.name == baseline:
            return [each.id for each in same if each.filesystem.name != baseline]
        return [each.id for each in same if each.filesystem.name == baseline]

    def _silent(self, cell: str) -> bool:
        """Whether it gave no figure, has no more trials, or can give too few until the last block."""
        n = self._n(cell)
        return (
            n == 0
            or any(trial.set_aside for trial in self.trials.get(cell, ()))
            or n + self.until.max - self.done < self.until.min
        )

    def _n(self, cell: str) -> int:
        return max((len(values) for values in self.rows.get(cell, {}).values()), default=0)

    def _baseline_of(self, cell: Cell) -> str:
        return f"{self.sweep.baseline}/{cell.workload.label}"

    def precise(self, cell: Cell) -> bool:
        """Whether all of its figures, or ratios to the baseline, are; the baseline's own ratio is 1. A cell with a
        trial that ran into its time limit is not: its figure is a median, for which there is no rule."""
        if any(trial.status == "timeout" and not trial.warmup for trial in self.trials.get(cell.id, ())):
            return False
        samples = list(self._samples(cell).values())
        if self.until.of == "cells":
            return all(sequential.precise(values, self.until)[-1] for values in samples)
        if cell.filesystem.name == self.sweep.baseline or not self._partners(cell):
            return True
        ratios = [logs for logs in samples if logs]
        return bool(ratios) and all(sequential.precise_ratio(logs, self.until)[-1] for logs in ratios)

    def _samples(self, cell: Cell) -> dict[Row, list[float]]:
        """The values that the rule looks at: figures in the order of blocks, or logarithms of the ratios of the blocks
        that hold both. A row that a file system never shows (n/a) is not waited for."""
        own = self.rows.get(cell.id, {})
        if self.until.of == "cells":
            return {row: list(values.values()) for row, values in own.items()}
        if cell.filesystem.name == self.sweep.baseline:
            return {}
        theirs = self.rows.get(self._baseline_of(cell), {})
        return {row: log_ratios(values, theirs[row]) for row, values in own.items() if row in theirs}

    def stop(self, cell: Cell, reason: StopReason) -> Stop:
        widths = {row: self._width(values) for row, values in self._samples(cell).items()}
        known = {row: width for row, width in widths.items() if not math.isnan(width)}
        row = max(known, key=lambda each: known[each], default=("", ""))
        said = [trial.reason for trial in self.trials.get(cell.id, ()) if trial.reason]
        return Stop(
            cell=cell.id, reason=reason, blocks=self.done, n=self._n(cell.id), half_width=known.get(row, math.nan),
            metric=" ".join(filter(None, row)), why=said[-1] if said and reason == "could not" else "",
        )  # fmt: skip

    def _width(self, values: Sequence[float]) -> float:
        """The relative half width of a row; NaN where there is none."""
        if len(values) < 2:
            return math.nan
        level = sequential.nominal_level(self.until, self.until.confidence)
        half = float(sequential.half_widths(values, level)[-1])
        if self.until.of == "comparisons":
            return math.expm1(half)
        mean = abs(float(np.mean(values)))
        return half / mean if mean else (0.0 if half == 0 else math.inf)

    def spent_s(self) -> float:
        return sum(trial.elapsed_s for trials in self.trials.values() for trial in trials)

    def next_block_s(self, cells: Sequence[Cell]) -> float:
        """What one more block of these cells will take, by what each of them took so far."""
        took = [[trial.elapsed_s for trial in self.trials.get(cell.id, ())] for cell in cells]
        return sum(sum(each) / len(each) for each in took if each)


def _rows(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, dict[Row, Values]]:
    frame = counted(measurements).sort_values("block", kind="stable")
    metrics, labels = answer_metrics(sweep, frame), answer_labels(frame)
    wanted = {
        (workload.label, metric, label)
        for workload in sweep.workloads
        for metric in metrics[workload.label]
        for label in labels.get((workload.label, metric), ("",))
    }
    workloads = {cell.id: cell.workload.label for cell in sweep.cells}
    found: dict[str, dict[Row, Values]] = defaultdict(dict)
    for (cell, metric, label), values in by_block(frame).items():
        if (workloads.get(cell), metric, label) in wanted:
            found[cell][metric, label] = values
    return found
