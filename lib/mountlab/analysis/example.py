"""A run that was never measured: given figures in the frames of a run, for tests of a check or a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.estimates import estimate_frame, percentile_frame
from mountlab.analysis.inside import Inside
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.memory_use import Use
from mountlab.analysis.program import ProgramTrial
from mountlab.analysis.run_view import TrialRecord
from mountlab.analysis.samples import figure_steps
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.analysis.why_frames import Why
from mountlab.checks import CellWrites, Evidence, Moved
from mountlab.core.box_facts import BoxFacts, RightsFacts
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import StoreError
from mountlab.core.findings import Caveat, Comparison, Exclusions, OptionEvidence, PublishedFigure
from mountlab.core.frames import pd
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Measurement, Sweep, Trial
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.counters import Around
from mountlab.filesystems.kept import StateRecord
from mountlab.filesystems.making import Setup
from mountlab.fio.series import Series
from mountlab.stats.histograms import Histogram


@dataclass(frozen=True)
class ExampleRun:
    """Good trials of every cell of a sweep, with the figures that are given; nothing else is known of them."""

    sweep: Sweep
    figures: Mapping[str, Sequence[float]]
    """`metric` or `metric/label` to its value in each block, in base units; the same in every cell."""
    of_cells: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Cell to figures of its own, in the place of these. NaN: the trial has no such figure."""
    facts: BoxFacts = field(default_factory=lambda: BoxFacts(rights=RightsFacts(level="root")))
    censored: Mapping[str, frozenset[int]] = field(default_factory=dict)
    caveats: Sequence[Caveat] = ()
    options: Sequence[OptionEvidence] = ()
    checks_passed: Sequence[str] = ()
    not_checked: Mapping[str, str] = field(default_factory=dict)
    published: Sequence[PublishedFigure] = ()
    stops: Sequence[CellStop] = ()
    exclusions: Exclusions = field(default_factory=Exclusions)
    series: Mapping[str, Sequence[Series]] = field(default_factory=dict)
    moved: Sequence[Moved] = ()
    layer_writes: Sequence[CellWrites] = ()
    memory: Sequence[Use] = ()
    latency_comparisons: Sequence[Comparison] = ()
    setups: Sequence[Setup] = ()
    states: Sequence[StateRecord] = ()
    why: Why = field(default_factory=Why)
    programs: Sequence[ProgramTrial] = ()

    @cached_property
    def _trials(self) -> list[Trial]:
        counts = {cell.id: max(map(len, self._figures_of(cell.id).values()), default=0) for cell in self.sweep.cells}
        blocks = range(1, max(counts.values(), default=0) + 1)
        cells = [(block, cell) for block in blocks for cell in self.sweep.cells if block <= counts[cell.id]]
        return [good_trial(number, block, cell) for number, (block, cell) in enumerate(cells, start=1)]

    def _figures_of(self, cell: str) -> Mapping[str, Sequence[float]]:
        return self.of_cells.get(cell, self.figures)

    @property
    def info(self) -> RunInfo:
        return RunInfo(run_id="example", box={"name": "example"}, facts=self.facts)

    @cached_property
    def trials(self) -> pd.DataFrame:
        rows = [{"seq": seq, **asdict(trial)} for seq, trial in enumerate(self._trials, start=1)]
        return pd.DataFrame(rows, columns=["seq", *Trial.__dataclass_fields__])

    @cached_property
    def measurements(self) -> pd.DataFrame:
        rows = [
            (trial, Measurement(metric=metric, label=label, value=values[trial.block - 1], unit=METRICS[metric]))
            for trial in self._trials
            for name, values in self._figures_of(trial.cell).items()
            for metric, _, label in [name.partition("/")]
            if trial.block <= len(values) and not math.isnan(values[trial.block - 1])
        ]
        return measurement_frame(rows)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        return estimate_frame(self.sweep, self.measurements, run_id="example", box="example")

    @cached_property
    def answer_metrics(self) -> Mapping[str, tuple[str, ...]]:
        return answer_metrics(self.sweep, self.measurements)

    @cached_property
    def comparisons(self) -> Sequence[Comparison]:
        return comparisons(self.sweep, self.measurements)

    @cached_property
    def percentiles(self) -> pd.DataFrame:
        return percentile_frame(self.sweep, {})

    @property
    def records(self) -> Mapping[str, TrialRecord]:
        return {trial.trial_id: TrialRecord() for trial in self._trials}

    def latencies(self, cell: str) -> Mapping[str, Histogram]:
        return {}

    def inside(self, trial_id: str) -> Inside:
        raise StoreError("nothing was logged inside of the trials of an example", got=trial_id)

    def evidence(self, **more: Any) -> Evidence:
        """Return what checks look at. `more`: attributes of Evidence that are known beside the figures."""
        evidence = Evidence(
            sweep=self.sweep,
            trials=self.trials,
            measurements=self.measurements,
            estimates=self.estimates,
            traffic={},
            levels={},
            backing_types={},
            unseen={},
            answer_metrics=self.answer_metrics,
            options=list(self.options),
            facts=self.facts,
            around={trial.trial_id: Around() for trial in self._trials},
            steps=figure_steps(self.sweep, self.measurements),
        )
        return replace(evidence, **more)


def good_trial(number: int, block: int, cell: Cell) -> Trial:
    """Return a counted trial of a cell that went well."""
    return Trial(
        trial_id=f"t{number:04d}",
        block=block,
        warmup=False,
        cell=cell.id,
        filesystem=cell.filesystem.name,
        workload=cell.workload.name,
        tool=cell.workload.tool,
        factors=cell.workload.factors,
        mount=f"m-{cell.filesystem.name}",
        status="ok",
        reason="",
        started_at="2026-01-01T00:00:00+00:00",
        elapsed_s=1.0,
    )
