"""The comparisons of a sweep: every file system against the baseline, all corrected for one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mountlab.analysis import capacity
from mountlab.analysis.answer_metrics import Metrics, answer_labels, answer_metrics, measured_metrics
from mountlab.analysis.compare.comparisons import Sides, comparisons_of
from mountlab.analysis.measurements import FIGURE, FigureKey, counted
from mountlab.analysis.samples import Samples, pools_of
from mountlab.analysis.time_limits import NONE_CENSORED, OF_A_MOUNT, Censored, worse_side
from mountlab.core.findings import Comparison, NoiseSource
from mountlab.core.frames import pd, rows_of
from mountlab.core.garbage import pause_gc
from mountlab.core.metrics import COMPARED_PERCENTILES
from mountlab.core.model import Filesystem, Sweep, Workload
from mountlab.core.names import cell_id
from mountlab.stats import adjust_comparisons, compare_rows
from mountlab.stats.capacity_ratios import searched_ratios
from mountlab.stats.censored import ranked_ratios
from mountlab.stats.comparisons import Flags, Ratios
from mountlab.stats.estimates import Floats
from mountlab.stats.noise import noise_sources
from mountlab.sweep.clients import refusal


class Question(NamedTuple):
    """One question of a sweep: one figure of a candidate against that of the baseline."""

    workload: Workload
    metric: str
    label: str
    candidate: str
    baseline: str
    candidate_key: FigureKey
    """Of the candidate's figure."""
    baseline_key: FigureKey

    @property
    def candidate_cell(self) -> str:
        """Its id."""
        return self.candidate_key[0]

    @property
    def baseline_cell(self) -> str:
        """Its id."""
        return self.baseline_key[0]

    @property
    def sides(self) -> Sides:
        """What is compared with what."""
        return Sides.of(self.workload, self.metric, self.label, baseline=self.baseline, candidate=self.candidate)


class BlockValues(NamedTuple):
    """The values of both sides of comparisons by block."""

    blocks: NDArray[np.int64]
    sides: tuple[Floats, Floats]
    """Of the candidates and of the baselines, (comparisons, blocks) each, NaN where there is none."""
    steps: tuple[Floats, Floats]
    """Of both sides, (comparisons,) each."""

    def noise(self, places: Sequence[int]) -> list[NoiseSource]:
        """Return where the noise of some comparisons comes from."""
        candidates, baselines = self.sides
        ours, theirs = self.steps
        return noise_sources(candidates[places], baselines[places], steps=(ours[places], theirs[places]))


class SweepRatios(NamedTuple):
    """The ratios of a sweep, not yet corrected for one another."""

    questions: list[Question]
    ratios: Ratios
    censored: NDArray[np.int64]
    """In how many blocks a side of each ran into the time limit."""
    values: BlockValues | None = None
    """None of searches."""


def comparisons(sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED) -> list[Comparison]:
    """Return every file system against the baseline, for every workload and every metric that the answer is about.

    p values are adjusted over all comparisons of the sweep, and so are the intervals for all together
    (stats.adjusted says how); those of equivalence by Holm over the same family. Where a side has trials that ran
    into the time limit the ratio is a median over blocks (stats.censored).
    """
    return _compare_together(sweep, measurements, censored, answer_metrics(sweep, measurements))


def latency_comparisons(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED, *, answered: Metrics
) -> list[Comparison]:
    """Return the median and the tail of latencies (COMPARED_PERCENTILES) of every file system against the baseline, as
    `comparisons`, where every trial of both sides has enough I/Os for them; without those that are `answered`.

    They are a family of their own: however many there are, they make nothing of the answer less certain.
    """
    if sweep.searches:
        return []
    metrics = {
        label: tuple(name for name in COMPARED_PERCENTILES if name in measured and name not in answered.get(label, ()))
        for label, measured in measured_metrics(sweep, measurements).items()
    }
    if not any(metrics.values()):
        return []
    family = _compare_together(sweep, measurements, censored, metrics)
    return [comparison for comparison in family if comparison.n or comparison.censored]


def sweep_ratios(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED, metrics: Metrics | None = None
) -> SweepRatios:
    """Return the ratios of what a sweep compares; none without a baseline. `metrics`: of each workload, those of the
    answer where none are given."""
    metrics = answer_metrics(sweep, measurements) if metrics is None else metrics
    return ratios_of(sweep, measurements, censored, questions_of(sweep, measurements, metrics))


def ratios_of(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored, questions: Sequence[Question]
) -> SweepRatios:
    """Return the ratio that answers each of some questions, not yet corrected for one another."""
    if sweep.searches:
        trials = {cell: search.trials for cell, search in capacity.searches(sweep, measurements).items()}
        pairs = [(trials[question.candidate_cell], trials[question.baseline_cell]) for question in questions]
        none = np.zeros(len(questions), dtype=np.int64)
        return SweepRatios(list(questions), searched_ratios(pairs, sweep.design.level), none)
    values, late = block_values(sweep, measurements, censored, questions)
    ratios = compare_rows(*values.sides, steps=values.steps, pools=question_pools(sweep, questions))
    if censored:
        worse = worse_side([question.workload.metric(question.metric) for question in questions])
        ratios = ranked_ratios(ratios, values.sides, late, worse)
    return SweepRatios(list(questions), ratios, (late[0] | late[1]).sum(axis=1), values)


def question_pools(sweep: Sweep, questions: Sequence[Question]) -> NDArray[np.int64] | None:
    """Return which questions are about the same blocks (samples.pools_of)."""
    return pools_of(sweep, [(question.workload.label, question.metric, question.label) for question in questions])


def block_values(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored, questions: Sequence[Question]
) -> tuple[BlockValues, tuple[Flags, Flags]]:
    """Return what the questions compare, and the blocks in which their candidates, and their baselines, ran into the
    time limit; of a run that was extended in the blocks that were planned to hold both sides."""
    values = _by_block(measurements, sweep, questions)
    late = _late_sides(questions, values.blocks, censored)
    if sweep.extended:
        unplanned = _unplanned(sweep, questions, values.blocks)
        ours, theirs = values.sides
        values = values._replace(sides=(np.where(unplanned, math.nan, ours), np.where(unplanned, math.nan, theirs)))
        late = late[0] & ~unplanned, late[1] & ~unplanned
    return values, late


@pause_gc()
def _compare_together(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored, metrics: Metrics
) -> list[Comparison]:
    """Return the comparisons of these metrics as one family."""
    return adjusted_together(sweep, sweep_ratios(sweep, measurements, censored, metrics))


def adjusted_together(sweep: Sweep, family: SweepRatios) -> list[Comparison]:
    """Return the comparisons of ratios that are corrected for one another, and for nothing else."""
    questions, ratios, late, values = family
    design = sweep.design
    adjusted = adjust_comparisons(
        ratios, level=design.level, smallest_effect=design.smallest_effect, repeated_looks=sweep.repeated_looks
    )
    return list(
        comparisons_of(
            (question.sides for question in questions),
            ratios,
            adjusted,
            level=design.level,
            late=late.tolist(),
            method=capacity.RATIO_METHOD if sweep.searches else "",
            noise=values.noise if values else None,
        )
    )


def questions_of(sweep: Sweep, measurements: pd.DataFrame, metrics: Metrics) -> list[Question]:
    """Return what the sweep compares: each file system that can take a workload, in blocks that also hold the
    baseline."""
    if sweep.baseline is None:
        return []
    questions = []
    for workload, figures in compared_figures(sweep, measurements, metrics).items():
        baseline = cell_id(sweep.baseline, workload)
        candidates = [
            (fs.name, cell)
            for fs in sweep.filesystems
            if fs.name != sweep.baseline
            and has_cells(sweep, fs, figures.workload, cell := cell_id(fs.name, workload), baseline)
        ]
        for metric, label in figures.of:
            theirs = baseline, metric, label
            questions += [
                Question(figures.workload, metric, label, name, sweep.baseline, (cell, metric, label), theirs)
                for name, cell in candidates
            ]
    return questions


class ComparedFigures(NamedTuple):
    """What is compared under one workload."""

    workload: Workload
    of: tuple[tuple[str, str], ...]
    """Metric and label of each figure."""


def compared_figures(sweep: Sweep, measurements: pd.DataFrame, metrics: Metrics) -> dict[str, ComparedFigures]:
    """Return label of each workload to what is compared under it: the metrics that have a better direction."""
    labels = answer_labels(sweep, counted(measurements[[*FIGURE, "warmup"]]))
    return {
        workload.label: ComparedFigures(
            workload,
            tuple(
                (metric, label)
                for metric in metrics[workload.label]
                if workload.metric(metric).better != "neither"
                for label in labels.get((workload.label, metric), ("",))
            ),
        )
        for workload in sweep.workloads
    }


def has_cells(sweep: Sweep, fs: Filesystem, workload: Workload, *cells: str) -> bool:
    """Return whether a file system can take a workload at all (hugetlbfs has no write()), and blocks were planned that
    hold all of these cells."""
    present = all(map(sweep.has_cell, cells)) and sweep.have_blocks(*cells)
    return present and (sweep.imported or refusal(fs, workload) is None)


def _by_block(measurements: pd.DataFrame, sweep: Sweep, questions: Sequence[Question]) -> BlockValues:
    """Return what the questions compare. Where a block has two values of a figure, the last counts."""
    samples = Samples.of(sweep, measurements)
    blocks, columns = np.unique(samples.blocks, return_inverse=True)
    table = np.full((len(samples.sizes) + 1, len(blocks)), math.nan)  # the last row is that of a cell without figures
    table[samples.numbers, columns] = samples.values
    steps = np.append(samples.steps, 0.0)
    rows: dict[FigureKey, int] = {key: row for row, key in enumerate(rows_of(samples.names, *FIGURE))}
    candidates = [rows.get(question.candidate_key, -1) for question in questions]
    baselines = [rows.get(question.baseline_key, -1) for question in questions]
    return BlockValues(blocks, (table[candidates], table[baselines]), (steps[candidates], steps[baselines]))


def _late_sides(questions: Sequence[Question], blocks: NDArray[np.int64], censored: Censored) -> tuple[Flags, Flags]:
    """Return the blocks in which the candidates, and the baselines, ran into the time limit: (comparisons, blocks)
    each."""
    candidates, baselines = (np.zeros((len(questions), len(blocks)), dtype=bool) for _ in range(2))
    late = {cell: np.isin(blocks, list(late_blocks)) for cell, late_blocks in censored.items()}
    for row, question in enumerate(questions if late else ()):
        if question.metric not in OF_A_MOUNT:
            candidates[row] = late.get(question.candidate_cell, False)
            baselines[row] = late.get(question.baseline_cell, False)
    return candidates, baselines


def _unplanned(sweep: Sweep, questions: Sequence[Question], blocks: NDArray[np.int64]) -> Flags:
    """Return the blocks that were not planned to hold both sides, (comparisons, blocks): a cell that was added later is
    compared in the others alone."""
    planned = {cell.id: np.isin(blocks, list(sweep.blocks_of(cell.id))) for cell in sweep.cells}
    unplanned = np.zeros((len(questions), len(blocks)), dtype=bool)
    for row, question in enumerate(questions):
        unplanned[row] = ~(planned[question.candidate_cell] & planned[question.baseline_cell])
    return unplanned
