"""Whether a state or a neighbour changes the answer: what each file system keeps of its figures, and how its ratio to
the baseline changes.

Ratios of ratios are a family of their own, and so is what file systems keep: however many there are, they make nothing
of the answer less certain. That a ranking flips follows from two verdicts of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mountlab.analysis.compare.comparisons import key_of
from mountlab.analysis.run_view import AnsweredRun
from mountlab.analysis.sweep_comparisons import (
    Question,
    SweepRatios,
    adjusted_together,
    block_values,
    compared_figures,
    has_cells,
    question_pools,
    questions_of,
    ratios_of,
)
from mountlab.analysis.trust import Trust, withhold_verdict
from mountlab.core.conditions import CONDITIONS, reference_level
from mountlab.core.findings import ConditionChange, Kept
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep, Workload
from mountlab.core.names import cell_id
from mountlab.stats import compare_row_ratios
from mountlab.stats.comparisons import Ratios
from mountlab.wording.conditions import first_sentence


class Shift(NamedTuple):
    """A workload under a condition, beside the same workload at the reference."""

    condition: str
    level: str
    reference: str
    workload: Workload
    before: Workload
    """The workload at the reference."""


@dataclass(frozen=True)
class Effects:
    """What the conditions of a run do."""

    kept: Sequence[Kept] = ()
    """Of each file system by itself."""
    changes: Sequence[ConditionChange] = ()
    """Of each ratio to the baseline."""


def effects_of(run: AnsweredRun) -> Effects:
    """Return what the conditions of a run do to the figures and ratios of its answer; nothing where it has none."""
    shifts = shifts_of(run.sweep)
    if not shifts:
        return Effects()
    kept = _kept(run, shifts)
    return Effects(list(kept.values()), list(_changes(run, shifts, kept)))


def effect_sentence(run: AnsweredRun, trust: Trust) -> str:
    """Return what states and neighbours do to the answer of a run, for a first screen: it only looks so where its trust
    is low. '' of a run without any."""
    return first_sentence(effects_of(run).changes, sure=trust.grade != "low")


def shifts_of(sweep: Sweep) -> list[Shift]:
    """Return each workload at a level of a condition that is not its reference, where the reference has the same
    workload with the same other factors."""
    shifts = []
    for condition in CONDITIONS:
        swept = [workload for workload in sweep.workloads if condition in workload.factors]
        levels = list(dict.fromkeys(workload.factors[condition] for workload in swept))
        reference = reference_level(condition, levels) if levels else ""
        for group in by_key((_without(condition, workload), workload) for workload in swept).values():
            at = {workload.factors[condition]: workload for workload in group}
            if before := at.pop(reference, None):
                shifts += [Shift(condition, level, reference, workload, before) for level, workload in at.items()]
    return shifts


def _without(condition: str, workload: Workload) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return what workloads have in common that differ in one condition alone."""
    return workload.name, frozenset((name, level) for name, level in workload.factors.items() if name != condition)


_KeptKey = tuple[str, str, str, str, str]
"""Condition, file system, label of the workload at the level, metric, label."""


def _kept(run: AnsweredRun, shifts: Sequence[Shift]) -> dict[_KeptKey, Kept]:
    """Return what each file system keeps of each figure of the answer at each level."""
    sweep = run.sweep
    figures = compared_figures(sweep, run.measurements, run.answer_metrics)
    asked = [
        (
            shift,
            Question(shift.workload, metric, label, fs.name, fs.name, (cell, metric, label), (before, metric, label)),
        )
        for shift in shifts
        for metric, label in figures[shift.workload.label].of
        for fs in sweep.filesystems
        for cell, before in [(cell_id(fs.name, shift.workload.label), cell_id(fs.name, shift.before.label))]
        if has_cells(sweep, fs, shift.workload, cell, before)
    ]
    family = ratios_of(sweep, run.measurements, run.censored, [question for _, question in asked])
    errors = [caveat for caveat in run.caveats if caveat.severity == "error"]
    kept = {}
    for (shift, question), ratio in zip(asked, adjusted_together(sweep, family), strict=True):
        usable = withhold_verdict(ratio, (question.candidate_cell, question.baseline_cell), errors)
        figure = (shift.condition, ratio.candidate, shift.workload.label, ratio.metric, ratio.label)
        kept[figure] = Kept(condition=shift.condition, level=shift.level, reference=shift.reference, ratio=usable)
    return kept


def _changes(run: AnsweredRun, shifts: Sequence[Shift], kept: Mapping[_KeptKey, Kept]) -> Iterator[ConditionChange]:
    """Yield how each ratio of the answer changes at each level. Where a side is not to be used, its change is not."""
    answer = {key_of(comparison): comparison for comparison in run.comparisons}
    questions = {_key(q): q for q in questions_of(run.sweep, run.measurements, run.answer_metrics)}
    of_workload = by_key((question.workload.label, question) for question in questions.values())
    pairs = [
        (shift, after, before)
        for shift in shifts
        for after in of_workload.get(shift.workload.label, ())
        if (before := questions.get(_key(after, shift.before))) and _have_blocks(run.sweep, after, before)
    ]
    ratios_of_ratios = _ratios_of_ratios(run, [after for _, after, _ in pairs], [before for *_, before in pairs])
    family = adjusted_together(run.sweep, ratios_of_ratios)
    for (shift, after, before), change in zip(pairs, family, strict=True):
        ratios = answer[_key(before)], answer[_key(after)]
        withheld = "not usable" in {ratio.verdict for ratio in ratios}
        ours, theirs = (
            kept[shift.condition, name, after.workload.label, after.metric, after.label].ratio
            for name in (after.candidate, after.baseline)
        )
        yield ConditionChange(
            condition=shift.condition,
            level=shift.level,
            reference=shift.reference,
            before=ratios[0],
            after=ratios[1],
            change=replace(change, verdict="not usable", needed=None, reduce=math.nan) if withheld else change,
            kept=ours,
            baseline_kept=theirs,
        )


def _key(question: Question, workload: Workload | None = None) -> tuple[str, ...]:
    """Return the key of a question's comparison (key_of), or of the same under another workload."""
    label = (workload or question.workload).label
    return question.candidate, question.baseline, label, question.metric, question.label


def _have_blocks(sweep: Sweep, after: Question, before: Question) -> bool:
    return sweep.have_blocks(after.candidate_cell, after.baseline_cell, before.candidate_cell, before.baseline_cell)


def _ratios_of_ratios(run: AnsweredRun, afters: Sequence[Question], befores: Sequence[Question]) -> SweepRatios:
    """Return by how much each ratio differs from that at the reference, in the blocks that hold all four cells.

    Where a trial of these ran into the time limit there is none: it is known to be slow, but not whether the ratio of
    its block is smaller or larger than that at the reference. A search for a capacity has no blocks, and so none.
    """
    none = np.zeros(len(afters), dtype=np.int64)
    if run.sweep.searches:
        unknown = np.full(len(afters), math.nan)
        return SweepRatios(list(afters), Ratios(unknown, unknown, unknown, none, none == 0), none)
    of_afters, of_befores = (
        block_values(run.sweep, run.measurements, run.censored, questions) for questions in (afters, befores)
    )
    (after, late_after), (before, late_before) = of_afters, of_befores
    ratios = compare_row_ratios(
        after.sides,
        before.sides,
        steps=(after.steps, before.steps),
        pools=question_pools(run.sweep, afters),
    )
    late = np.any([*late_after, *late_before], axis=0).sum(axis=1)
    known = np.where(late > 0, math.nan, 1.0)
    ratios = replace(
        ratios,
        log_mean=ratios.log_mean * known,
        log_se=ratios.log_se * known,
        df=ratios.df * known,
        n=np.where(late > 0, 0, ratios.n),
    )
    return SweepRatios(list(afters), ratios, late)
