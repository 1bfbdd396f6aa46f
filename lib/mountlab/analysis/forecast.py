"""What a sweep will show, predicted from the spread of an earlier run: blocks, time, the smallest visible difference.

The spread of the noisiest file system counts, for each workload and metric; times are those that trials took. A pilot
that holds some of the cells only is used for these, and the forecast says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mountlab.analysis.answer_metrics import answer_labels, answer_metrics
from mountlab.analysis.measurements import by_block, counted, log_ratios
from mountlab.analysis.run_view import PilotRun
from mountlab.analysis.same_cells import aligned_to
from mountlab.analysis.time_limits import OF_A_MOUNT
from mountlab.core import numbers
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.model import Cell, Sweep, Workload
from mountlab.core.names import cell_id
from mountlab.filesystems import is_made
from mountlab.programs import TOOLS
from mountlab.stats import look_level, power, sequential
from mountlab.sweep.planned_state import MOUNT_S

HALF_WIDTHS = (0.01, 0.03, 0.10)
RATIOS = (1.02, 1.05, 1.10, 1.20)
"""Precisions, and differences, whose needed blocks are stated whatever the design asks for."""
BLOCKS = (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)
"""Designs whose smallest visible ratio is stated."""
LATE = 0.80
_FEWEST_CASES, _MOST_CASES, _DRAWN_VALUES, _SEED = 200, 2_000, 4_000_000, 19_530_600
_MOST_NAMED = 4
MetricLabel = tuple[str, str]
"""Metric and label."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How much one metric of one workload varied in the pilot, on the file system where it varied most."""

    workload_label: str
    """The name, with the levels of the factors."""
    metric: str
    label: str
    cv: float
    """Standard deviation over mean of the noisiest cell."""
    cell: str
    n: int
    """Trials of that cell."""
    log_sd: float
    """Standard deviation of the log ratios to the baseline, block by block; NaN where nothing is compared."""
    candidate: str
    """The file system whose ratios vary most; '' where nothing is compared."""
    pairs: int


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the planned design gives for one metric of one workload. Blocks are infinite where too many are needed."""

    spread: Spread
    blocks: float
    """Blocks of the design; with a stopping rule those at which half of such runs have ended."""
    blocks_late: float
    """Those at which four of five have."""
    block_s: float
    """Seconds that one block of the workload takes, on all of its file systems."""
    half_width: float
    """By how much of the mean the farther end of its interval is expected to be off."""
    smallest_ratio: float
    """The smallest ratio that is shown with a chance of 80 %, all comparisons of the sweep being corrected for."""
    smallest_ratio_cautious: float
    """The same where the true spread is as large as the pilot leaves possible."""
    shows: Mapping[int, float]
    """Number of blocks to the smallest ratio that so many show, as `smallest_ratio` for the design's own."""
    for_half_width: Mapping[float, float]
    """Relative half width of the mean's interval to the blocks that it takes."""
    for_ratio: Mapping[float, float]
    """Ratio to the blocks that show it."""
    for_same: float
    """Blocks that show two equal file systems to be the same within the smallest effect."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Predictions for a sweep, and what they rest on."""

    pilot: str
    predictions: tuple[Prediction, ...]
    cells: int
    used: tuple[str, ...]
    """Ids of the cells of the sweep whose spread the pilot shows."""
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    """What in the pilot was not as it will be in the sweep."""
    comparisons: int
    level: float
    """Of each test: that of the design, shared among all comparisons of the sweep."""
    expected_s: float
    fresh_more_s: float
    """What it would take beyond that to make every file system in each block, by what mkfs and mount took in the pilot;
    0 where that is done already."""


def forecast(sweep: Sweep, pilot: PilotRun, *, facts: BoxFacts | None = None) -> Forecast:
    """Predict a sweep from an earlier run. `facts`: of the box on which the sweep will run, where they are known.

    Raises PlanError where no cell of the sweep has two trials in the pilot.
    """
    pilot = aligned_to(sweep, pilot)
    figures = _PilotFigures.of(sweep, pilot)
    comparisons = sum(figures.rows_expected(w) * len(_candidates(sweep, w)) for w in sweep.workloads)
    level = 1 - (1 - sweep.design.level) / max(comparisons, 1)
    ends = {w.label: _planned_blocks(sweep, w, figures, comparisons) for w in sweep.workloads}
    typical = {label: ending.typical for label, ending in ends.items()}
    predictions = [
        _prediction(sweep, spread, ends[workload.label], figures.block_s(workload.label), level)
        for workload in sweep.workloads
        for spread in figures.spreads(workload)
    ]
    return Forecast(
        pilot=pilot.info.run_id,
        predictions=tuple(predictions),
        cells=len(sweep.cells),
        used=tuple(figures.used),
        missing=tuple(c.id for c in sweep.cells if c.id not in figures.used),
        notes=(
            *_other_cells(sweep, pilot.sweep, figures.used),
            *_other_box(pilot, facts or BoxFacts()),
            *_timed_out(pilot),
        ),
        comparisons=comparisons,
        level=level,
        expected_s=figures.expected_s(typical),
        fresh_more_s=figures.fresh_more_s(typical, pilot),
    )


def _measured(sweep: Sweep, workload: Workload) -> list[str]:
    """Return the file systems that a sweep measures under a workload."""
    return [fs.name for fs in sweep.filesystems if sweep.has_cell(cell_id(fs.name, workload.label))]


def _candidates(sweep: Sweep, workload: Workload) -> list[str]:
    """Return the file systems that are compared with the baseline under a workload."""
    names = _measured(sweep, workload)
    return [name for name in names if name != sweep.baseline] if sweep.baseline in names else []


@dataclass(frozen=True)
class _PilotFigures:
    """The figures of a pilot that are about cells of the sweep."""

    sweep: Sweep
    values: Mapping[tuple[str, str, str], Mapping[int, float]]
    """Cell, metric and label to block to value."""
    metrics: Mapping[str, Sequence[str]]
    labels: Mapping[tuple[str, str], Sequence[str]]
    used: Sequence[str]
    elapsed_s: Mapping[str, float]
    """Cell to the mean duration of its trials, with all that belongs to them."""

    @classmethod
    def of(cls, sweep: Sweep, pilot: PilotRun) -> _PilotFigures:
        frame = counted(pilot.measurements)
        frame = frame[frame["cell"].isin({cell.id for cell in sweep.cells})]
        values = by_block(frame)
        repeated = {cell for (cell, _, _), blocks in values.items() if len(blocks) > 1}
        used = [cell.id for cell in sweep.cells if cell.id in repeated]
        if not used:
            raise _does_not_fit(sweep, pilot)
        ran = pilot.trials["status"].isin(("ok", "timeout")) & ~pilot.trials["warmup"].astype(bool)
        means = pilot.trials[ran].groupby("cell")["elapsed_s"].mean()
        took = {str(cell): float(s) for cell, s in means.items() if math.isfinite(s)}
        return cls(sweep, values, answer_metrics(sweep, frame), answer_labels(sweep, frame), used, took)

    def rows(self, workload: Workload) -> list[MetricLabel]:
        """Return the rows that the answer is about and that the pilot has."""
        rows = [
            (metric, label)
            for metric in self.metrics[workload.label]
            for label in self.labels.get((workload.label, metric), ())
        ]
        return [row for row in rows if list(self.samples(workload, row))]

    def rows_expected(self, workload: Workload) -> int:
        """Return how many rows the answer will be about; one for a metric that the pilot lacks."""
        return sum(len(self.labels.get((workload.label, metric), ("",))) for metric in self.metrics[workload.label])

    def samples(self, workload: Workload, row: MetricLabel) -> Iterator[tuple[str, Mapping[int, float]]]:
        """File system and values by block, for each cell of the sweep that has two or more."""
        for fs in self.sweep.filesystems:
            cell = cell_id(fs.name, workload.label)
            values = self.values.get((cell, *row), {})
            if len(values) > 1:
                yield fs.name, values

    def spreads(self, workload: Workload) -> Iterator[Spread]:
        for row in self.rows(workload):
            samples = dict(self.samples(workload, row))
            noise = {name: (_cv(list(values.values())), len(values)) for name, values in samples.items()}
            worst = max(noise, key=lambda name: noise[name][0])
            ratios = self._ratios(workload, samples)
            widths = {name: _sd(logs) for name, logs in ratios.items()}
            widest = max(widths, key=lambda name: widths[name], default="")
            yield Spread(
                workload_label=workload.label,
                metric=row[0],
                label=row[1],
                cv=noise[worst][0],
                n=noise[worst][1],
                cell=cell_id(worst, workload.label),
                log_sd=widths.get(widest, math.nan),
                candidate=widest,
                pairs=len(ratios.get(widest, ())),
            )

    def _ratios(self, workload: Workload, samples: Mapping[str, Mapping[int, float]]) -> dict[str, list[float]]:
        """Return the log ratios to the baseline of each file system that has two or more."""
        base = samples.get(self.sweep.baseline or "", {})
        names = [name for name in _candidates(self.sweep, workload) if name in samples]
        ratios = {name: list(log_ratios(samples[name], base).values()) for name in names}
        return {name: logs for name, logs in ratios.items() if len(logs) > 1}

    def waited_for(self, workload: Workload, row: MetricLabel) -> list[float]:
        """Return the spreads of all figures that a stopping rule waits for: of the cells' means, or of the logarithms
        of ratios. Where the pilot does not tell one, the largest that it tells."""
        samples = dict(self.samples(workload, row))
        if self.sweep.design.until is not None and self.sweep.design.until.of == "comparisons":
            names = _candidates(self.sweep, workload)
            spreads = [_sd(logs) for logs in self._ratios(workload, samples).values()]
        else:
            names = _measured(self.sweep, workload)
            spreads = [_cv(list(values.values())) for values in samples.values()]
        finite = [spread for spread in spreads if math.isfinite(spread)]
        return finite + [max(finite)] * (len(names) - len(finite)) if finite else []

    def fresh_more_s(self, blocks: Mapping[str, float], pilot: PilotRun) -> float:
        """Of making file systems in each further block: by what it took in the pilot, else the guess of the plan."""
        if self.sweep.design.fresh_filesystem != "never":
            return 0.0
        took = pilot.measurements[pilot.measurements["metric"].isin(OF_A_MOUNT)]
        by_filesystem = took.groupby(["filesystem", "metric"])["value"].mean().groupby("filesystem").sum().to_dict()
        times = [float(by_filesystem.get(fs.name, MOUNT_S)) for fs in self.sweep.filesystems if is_made(fs)]
        return sum(times) * (self._most(blocks) + self.sweep.design.warmup - 1)

    def _most(self, blocks: Mapping[str, float]) -> float:
        design = self.sweep.design
        return design.repeats if design.until is None else max(blocks.values())

    def expected_s(self, blocks: Mapping[str, float]) -> float:
        """Return the whole run: what trials took in the pilot, and a guess for those that it does not hold."""
        design, most = self.sweep.design, self._most(blocks)
        trials = sum((blocks[c.workload.label] + design.warmup) * self._trial_s(c) for c in self.sweep.cells)
        makings = 1 if design.fresh_filesystem == "never" else most + design.warmup
        return float(trials + MOUNT_S * len(self.sweep.filesystems) * makings)

    def block_s(self, workload: str) -> float:
        """Return the trials of one block under a workload."""
        return sum(self._trial_s(cell) for cell in self.sweep.cells if cell.workload.label == workload)

    def _trial_s(self, cell: Cell) -> float:
        return self.elapsed_s.get(cell.id) or TOOLS[cell.workload.tool].expected_s(cell.workload)


def _cv(values: Sequence[float]) -> float:
    mean = float(np.mean(values))
    return _sd(values) / abs(mean) if mean else math.nan


def _sd(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1))


class Ending(NamedTuple):
    """After how many blocks a workload ends."""

    typical: float
    """Half of such runs are done then."""
    late: float
    """Four of five are."""


def _planned_blocks(sweep: Sweep, workload: Workload, figures: _PilotFigures, comparisons: int) -> Ending:
    """Return those of the design, or those at which its rule ends, which is when the last of its cells and metrics is
    precise: simulated with normal figures of the spreads of the pilot, independent of one another. A cell that the
    pilot lacks is like the noisiest. Where the pilot has no cell, the rule ends at its most."""
    until = sweep.design.until
    if until is None:
        return Ending(sweep.design.repeats, sweep.design.repeats)
    spreads = [spread for row in figures.rows(workload) for spread in figures.waited_for(workload, row)]
    if not spreads:
        return Ending(until.max, until.max)
    cases = max(_FEWEST_CASES, min(_MOST_CASES, _DRAWN_VALUES // (len(spreads) * until.max)))
    noise = np.random.default_rng(_SEED).normal(size=(cases, len(spreads), until.max)) * np.array(spreads)[:, None]
    if until.of == "cells":
        narrow = sequential.precise(1 + noise, until)
    else:
        narrow = sequential.precise_ratio(noise, until, look_level(until, comparisons))
    together: NDArray[np.bool_] = np.all(narrow, axis=1)
    ends = np.where(together.any(axis=1), together.argmax(axis=1) + 1, until.max)
    typical, late = np.quantile(ends, (0.5, LATE), method="inverted_cdf").tolist()
    return Ending(typical, late)


def _prediction(sweep: Sweep, spread: Spread, ending: Ending, block_s: float, level: float) -> Prediction:
    design, blocks = sweep.design, ending.typical
    looked = level if design.until is None else sequential.nominal_level(design.until, level)
    cautious = float(power.upper_spread(spread.log_sd, spread.pairs))
    mean_level = design.level if design.until is None else sequential.nominal_level(design.until, design.level)
    return Prediction(
        spread=spread,
        blocks=blocks,
        blocks_late=ending.late,
        block_s=block_s,
        half_width=math.expm1(spread.cv * float(power.width_of_mean(blocks, level=mean_level))),
        smallest_ratio=float(power.smallest_ratio(blocks, spread.log_sd, level=looked)),
        smallest_ratio_cautious=float(power.smallest_ratio(blocks, cautious, level=looked)),
        shows={n: float(power.smallest_ratio(n, spread.log_sd, level=looked)) for n in BLOCKS},
        for_half_width={
            width: float(power.blocks_for_half_width(spread.cv, width, level=mean_level)) for width in HALF_WIDTHS
        },
        for_ratio={ratio: float(power.needed_blocks(ratio, spread.log_sd, level=looked)) for ratio in RATIOS},
        for_same=power.blocks_to_show_same(spread.log_sd, design.smallest_effect, level=looked),
    )


# ── does it fit? ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _does_not_fit(sweep: Sweep, pilot: PilotRun) -> PlanError:
    theirs, ours = [cell.id for cell in pilot.sweep.cells], [cell.id for cell in sweep.cells]
    common = [cell for cell in ours if cell in theirs]
    if common:
        return PlanError(
            "the pilot shows no spread",
            where="--pilot",
            got=f"fewer than two counted trials of {numbers.first_few(common, _MOST_NAMED)}",
            allowed="two blocks or more, five to be of use",
            next_step="run the pilot with -p repeats=5",
        )
    return PlanError(
        "the pilot has none of the cells of this sweep",
        where="--pilot",
        got=numbers.first_few(theirs, _MOST_NAMED),
        allowed=numbers.first_few(ours, _MOST_NAMED),
        next_step="a pilot is a run of the same sweep with few blocks, for example -p repeats=5",
    )


def _other_cells(sweep: Sweep, pilot: Sweep, used: Sequence[str]) -> Iterator[str]:
    """File systems and workloads that have the same name, and are not the same."""
    cells = [cell for cell in sweep.cells if cell.id in used]
    filesystems = {fs.name: fs for fs in pilot.filesystems}
    for ours in {cell.filesystem.name: cell.filesystem for cell in cells}.values():
        theirs = filesystems[ours.name]
        changed = [field.name for field in fields(ours) if getattr(ours, field.name) != getattr(theirs, field.name)]
        if changed:
            yield f"{ours.name} differs in {', '.join(name.removesuffix('_bytes') for name in changed)}"
    workloads = {workload.label: workload for workload in pilot.workloads}
    for label, workload in {cell.workload.label: cell.workload for cell in cells}.items():
        here, there = workload.options, workloads[label].options
        keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
        if keys:
            changes = (f"{key} {there.get(key)} there, {here.get(key)} here" for key in keys)
            yield f"{label} differs: {'; '.join(changes)}"


def _timed_out(pilot: PilotRun) -> Iterator[str]:
    late = int(((pilot.trials["status"] == "timeout") & ~pilot.trials["warmup"].astype(bool)).sum())
    if late:
        yield (
            f"{numbers.counted(late, 'trial')} of the pilot ran into the time limit: the spread is that of the others, "
            "so that cells with such trials need more blocks than foreseen here"
        )


def _other_box(pilot: PilotRun, facts: BoxFacts) -> Iterator[str]:
    if pilot.sweep.imported:
        yield "the pilot was imported: Mountlab did not measure it"
    before = pilot.info.facts
    for key in ("hostname", "kernel", "cpu_model"):
        if facts.value(key) not in (None, before.value(key)):
            yield f"another {key.replace('_', ' ')}: {before.value(key)} in the pilot, {facts.value(key)} now"
