"""What the trials of a cell, one beside the other and in their order, say against the interval that is made of them.

Each test is made in every cell and for every metric of the answer. What is below its limit by itself is a note, since
among 40 quiet cells one or two are; what still is after Holm's adjustment over all of them is a warning, which 40 quiet
cells rarely raise. The blocks as a whole are tested too: what changes the box changes all of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from mountlab.checks.base import Check, Doubt, Evidence, Sample
from mountlab.checks.length import CLOCK_SHARE
from mountlab.checks.levels import levels_of_many, orders, over_all, turned, without_steps_down
from mountlab.core import numbers
from mountlab.core.findings import Severity
from mountlab.core.groups import by_key
from mountlab.core.names import cell_id
from mountlab.core.numbers import counted, listed
from mountlab.filesystems import is_in_place
from mountlab.stats import holm, shape
from mountlab.stats.comparisons import is_paired

NOISY_CV = 0.10


Test = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _p_values(samples: Sequence[Sample], test: Test) -> list[float]:
    """Return the p value of a test for each sample; NaN where there are too few trials."""
    p = [math.nan] * len(samples)
    by_length = by_key((len(sample.values), i) for i, sample in enumerate(samples))
    for indices in by_length.values():
        for i, value in zip(indices, test(np.array([samples[i].values for i in indices])), strict=True):
            p[i] = float(value)
    return p


@dataclass(frozen=True)
class Suspect:
    """A sample that a test finds unusual."""

    sample: Sample
    severity: Severity
    """A warning where it would be rare among all samples of the run, a note where it would among few."""
    by_chance: str
    """Of a note: how often chance alone does this."""


def _suspicious(evidence: Evidence, name: str, test: Test) -> Iterator[Suspect]:
    samples, limit = without_steps_down(evidence), shape.SUSPICIOUS_P[name]
    p_values = _p_values(samples, test)
    for sample, p, adjusted in zip(samples, p_values, holm(p_values), strict=True):
        if adjusted < limit:
            yield Suspect(sample, "warning", "")
        elif p < limit:
            tested = sum(not math.isnan(p) for p in p_values)
            chance = f" By chance, at most {limit:.0%} of {tested} cells without a cause look like this."
            yield Suspect(sample, "note", chance)


def _too_few_for(name: str) -> Callable[[Evidence], str | None]:
    """Blind where no cell has trials enough for a test."""

    def blind(evidence: Evidence) -> str | None:
        n = max((len(sample.values) for sample in evidence.samples), default=0)
        least = shape.FEWEST[name]
        return None if n >= least else f"needs {least} trials of a cell, and the most that any has is {n}"

    return blind


# --- how many, how noisy ----------------------------------------------------------------------------------------------


def too_noisy(evidence: Evidence) -> Iterator[Doubt]:
    """Cells whose trials differ by more than a tenth, in a metric that the answer is about.

    The coefficient of variation of a metric of the answer is above 10 %.
    """
    worst: dict[str, tuple[float, str]] = {}
    for sample in evidence.samples:
        worst[sample.cell.id] = max(worst.get(sample.cell.id, (0.0, "")), (_cv(sample.values), sample.metric))
    noisy = {cell: cv_and_metric for cell, cv_and_metric in worst.items() if cv_and_metric[0] > NOISY_CV}
    if noisy:
        cell = max(noisy, key=lambda cell_id: noisy[cell_id][0])
        cv, metric = noisy[cell]
        vary = f"{len(noisy)} {'varies' if len(noisy) == 1 else 'vary'}"
        which = f"Of {counted(len(worst), 'cell')}, {vary}" if len(worst) > 1 else "The figures vary"
        yield Doubt.of_run(
            f"{which} by more than {NOISY_CV:.0%} from trial to trial (coefficient of variation), most of all {metric} "
            f"of {cell}, by {cv:.0%}. The intervals include this noise; longer trials or a quieter box would narrow "
            "them."
        )


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation; 0 for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _cv(values: Sequence[float]) -> float:
    mean = float(np.mean(values))
    return _spread(values) / mean if mean > 0 else 0.0


def rounded(evidence: Evidence) -> Iterator[Doubt]:
    """Figures of the answer that the tool rounds (few digits, bins, its clock) by more than the trials differ.

    Half a step to which the tool rounds (digits, bins, clock) is more than 0.5 % of a figure of the answer, and the
    trials spread by less than that half step.
    """
    for sample in evidence.samples:
        step, mean = evidence.steps[sample.cell.id, sample.metric, sample.label], float(np.mean(sample.values))
        if step / 2 > CLOCK_SHARE * mean > 0 and _spread(sample.values) < step / 2:
            unit = sample.cell.workload.metric(sample.metric).unit
            yield Doubt.of_cell(
                sample.cell,
                f"{sample.name} is {numbers.quantity(mean, unit)}, and rounding may put each figure off by up to "
                f"{numbers.quantity(step / 2, unit)} ({step / 2 / mean:.1%}). The trials differ by less, so that "
                "more trials do not average it out; the intervals contain it. Take a figure that is less rounded (a "
                "rate, a mean), or give each operation more work.",
                metrics=sample.metric,
            )


# --- shape ------------------------------------------------------------------------------------------------------------


def outlying(evidence: Evidence) -> Iterator[Doubt]:
    """Trials far from the others of their cell, which count all the same.

    The modified z score, by the median absolute deviation, is above 3.5 (Iglewicz & Hoaglin 1993). It is also beyond
    what 99 % of normal samples of that size stay within (19 at n = 5, 7 at n = 10). And the distance from the median is
    larger than the smallest effect. Where more than half of the figures are equal, half of their smallest step replaces
    that deviation. With two different figures only, the check could not look.
    """
    smallest = evidence.sweep.design.smallest_effect
    for sample in evidence.samples:
        middle = median(sample.values)
        far = [i for i in shape.outliers(sample.values) if abs(sample.values[i] - middle) > smallest * abs(middle)]
        if far:
            listed = ", ".join(f"{sample.trials[i]} ({change(sample.values[i], middle)})" for i in far)
            yield Doubt.of_cell(
                sample.cell,
                f"{sample.name} of some trials is far from their median: {listed}. They count: Mountlab "
                "drops no trial by itself. Check what else happened then. If the cause was not the file system, "
                "exclude them with that reason (mountlab exclude).",
                metrics=sample.metric,
            )


def _no_scale(evidence: Evidence) -> str | None:
    """Blind where a cell has too few trials, or figures that are all alike but for one other value."""
    flat = [f"{sample.name} of {sample.cell.id}" for sample in evidence.samples if shape.scaleless(sample.values)]
    alike = f"most trials gave the same figure, and the others one other, so that none is near or far: {listed(flat)}"
    return _too_few_for("outliers")(evidence) or (alike if flat else None)


def change(value: float, reference: float) -> str:
    """'+12.3%', '-40.0%', of the reference."""
    return f"{value / reference - 1:+.1%}" if reference else f"{value:g} against 0"


def bimodal(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that fall into two groups.

    The dip test rejects one mode (n ≥ 10, p < 0.05). A note where it does so for this cell alone, a warning where it
    still does after Holm's correction over all cells and metrics of the answer.
    """
    for suspect in _suspicious(evidence, "two_modes", shape.two_modes_p):
        sample = suspect.sample
        factor = "" if is_in_place(sample.cell.filesystem) else ", and make it a factor"
        yield Doubt.of_cell(
            sample.cell,
            f"{sample.name} falls into two groups or more (dip test over {len(sample.values)} trials): the mean lies "
            "between them, and the interval covers less than it states. Find what the groups differ in (order, place "
            f"on the device, cache hits){factor}." + suspect.by_chance,
            severity=suspect.severity,
            metrics=sample.metric,
        )


# --- order ------------------------------------------------------------------------------------------------------------


def drifting(evidence: Evidence) -> Iterator[Suspect]:
    """Samples that rise or fall over the blocks, by more than matters."""
    for suspect in _suspicious(evidence, "drift", shape.drift_p):
        first, last = _ends(suspect.sample.values)
        if abs(last - first) > evidence.sweep.design.smallest_effect * abs(first):
            yield suspect


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and of the last third."""
    third = max(1, len(values) // 3)
    return median(values[:third]), median(values[-third:])


def drift(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that rise or fall over the run, in a cell or in all of them together.

    Mann-Kendall test, exact up to n = 60, with ties up to n = 20 (n ≥ 6, p < 0.01), and a change from the first third
    to the last larger than the smallest effect. Note and warning as in `two-modes`. Also a warning about the run where
    the levels of the blocks over all cells together (times as rates) do so. Of four or five blocks: where each of them
    is lower than the one before (or each higher), and so are later trials inside of blocks, in orders drawn again (p <
    0.01).
    """
    levels = levels_of_many(evidence)
    if _p_of_drift(evidence, levels) < shape.SUSPICIOUS_P["drift"]:
        first, last = _ends(levels)
        few = len(levels) < shape.FEWEST["drift"]
        seen = "block, in every block, and inside of blocks" if few else "third of the blocks (Mann-Kendall)"
        if abs(last / first - 1) > evidence.sweep.design.smallest_effect:
            yield Doubt.of_run(
                f"{over_all(evidence.samples)} together the figures got {'better' if last > first else 'worse'}, by "
                f"{_change_of_levels(evidence, last, first)} from the first to the last {seen}: the box changed "
                "while it was measured. "
                f"{_in_ratios(evidence, evidence.samples)} Means depend on when the run was stopped. Warm up longer, "
                "or find what changes (heat, a filling or ageing device, other users)."
            )
    for suspect in drifting(evidence):
        sample, (first, last) = suspect.sample, _ends(suspect.sample.values)
        watched = is_in_place(sample.cell.filesystem)  # no ratio is made of it, and it has no warm-up
        advice = "Find" if watched else f"{_in_ratios(evidence, [sample])} For means warm up longer, or find"
        yield Doubt.of_cell(
            sample.cell,
            f"{sample.name} {'rose' if last > first else 'fell'} over the run, by {change(last, first)} from its "
            "first to its last third (Mann-Kendall): the mean depends on when the run was stopped, and the trials are "
            f"not independent. {advice} what changes (a filling or ageing device, heat, a cache)." + suspect.by_chance,
            severity=suspect.severity,
            metrics=sample.metric,
        )


def _change_of_levels(evidence: Evidence, level: float, reference: float) -> str:
    """Return by how much levels of many differ, and how they count what they are made of."""
    return f"{change(level, reference)}{turned(without_steps_down(evidence))}"


def _p_of_drift(evidence: Evidence, levels: Sequence[float]) -> float:
    """Return the p value of a drift of the levels of the blocks, over all cells; NaN where there are too few."""
    if not levels or len(levels) >= shape.FEWEST["drift"]:
        return _p(shape.drift_p, levels)
    return shape.drift_of_few(levels, orders(evidence))


def _in_ratios(evidence: Evidence, samples: Sequence[Sample]) -> str:
    """Return whether what changes over the blocks cancels in the ratios that these samples are a side of."""
    inside = "Ratios are made inside a block, where what acts on both sides cancels"
    met = [candidate.cell.id for candidate in _not_paired(evidence) if any(_meet(candidate, one) for one in samples)]
    apart = list(dict.fromkeys(met))
    if not apart:
        return f"{inside}."
    names = apart[0] + (f" and {len(apart) - 1} more" if len(apart) > 1 else "")
    return f"{inside}, but in the ratio of {names} it does not: too few blocks hold both sides."


def _not_paired(evidence: Evidence) -> list[Sample]:
    """Return the samples whose ratio to the baseline is not made by block."""
    baseline = evidence.sweep.baseline
    blocks = {(sample.cell.id, sample.metric, sample.label): set(sample.blocks) for sample in evidence.samples}
    unpaired = []
    for sample in evidence.samples:
        other = blocks.get((cell_id(baseline or "", sample.cell.workload.label), sample.metric, sample.label), set())
        counts = (np.array(len(part)) for part in (other & set(sample.blocks), sample.blocks, other))
        if other and not is_paired(*counts):
            unpaired.append(sample)
    return unpaired


def _meet(candidate: Sample, one: Sample) -> bool:
    """Return whether one sample is the candidate, or may be its baseline."""
    same = (candidate.cell.workload.label, candidate.metric, candidate.label)
    return same == (one.cell.workload.label, one.metric, one.label)


def step(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that change at once during the run, in a cell or in all of them together.

    Pettitt's test (n ≥ 10, p < 0.01), and a step larger than the smallest effect. Note and warning as in `two-modes`,
    and all cells together as in `drift`.
    """
    smallest = evidence.sweep.design.smallest_effect
    levels = levels_of_many(evidence)
    if _p(shape.step_p, levels) < shape.SUSPICIOUS_P["step"]:
        at, _ = shape.step(levels)
        before, after = median(levels[:at]), median(levels[at:])
        if abs(after / before - 1) > smallest:
            yield Doubt.of_run(
                f"{over_all(evidence.samples)} together the figures changed by "
                f"{_change_of_levels(evidence, after, before)} after {at} blocks, and stayed there (Pettitt): the box "
                "was in two states. See what happened on it then, and measure again in one state."
            )
    for suspect in _suspicious(evidence, "step", shape.step_p):
        sample, (at, _) = suspect.sample, shape.step(suspect.sample.values)
        before, after = median(sample.values[:at]), median(sample.values[at:])
        if abs(after - before) > smallest * abs(before):
            yield Doubt.of_cell(
                sample.cell,
                f"{sample.name} changed by {change(after, before)} at block {sample.blocks[at]} "
                f"({sample.trials[at]}) and stayed there (Pettitt): the mean is of two states. See what happened on "
                "the box then, and measure again in one state." + suspect.by_chance,
                severity=suspect.severity,
                metrics=sample.metric,
            )


def autocorrelated(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that are more like their neighbours than like others.

    Rank von Neumann ratio (n ≥ 8, p < 0.01), without a drift that says so already. Note and warning as in `two-modes`.
    """
    drifts = [(suspect.sample, suspect.severity) for suspect in drifting(evidence)]
    for suspect in _suspicious(evidence, "autocorrelated", shape.autocorrelated_p):
        sample = suspect.sample
        if (sample, "warning") not in drifts and (sample, suspect.severity) not in drifts:
            yield Doubt.of_cell(
                sample.cell,
                f"{sample.name} of one block is like that of the next (rank von Neumann ratio over "
                f"{len(sample.values)} trials): n counts them as independent, so the interval is too narrow. Leave "
                "more time between blocks, or find what lasts longer than one of them." + suspect.by_chance,
                severity=suspect.severity,
                metrics=sample.metric,
            )


def _p(test: Test, levels: Sequence[float]) -> float:
    """Return the p value of one row; NaN for an empty one."""
    return float(test(np.array([levels]))[0]) if levels else math.nan


CHECKS = (
    Check(
        "noisy",
        too_noisy,
        "Look at every trial; longer trials or a quieter box narrow the interval.",
        severities=("note",),
    ),
    Check(
        "rounded",
        rounded,
        "Take the rate in the place of the latency, or more work for each operation.",
        severities=("note",),
    ),
    Check(
        "outlier",
        outlying,
        "See what else happened then; exclude the trial only where you know that it was not the file system.",
        severities=("note",),
        blind=_no_scale,
    ),
    Check(
        "two-modes",
        bimodal,
        "Find what the two groups have in common (a cache, a placement on the disk); do not quote the mean of the two.",
        severities=("warning", "note"),
        blind=_too_few_for("two_modes"),
    ),
    Check(
        "drift",
        drift,
        "Find what changes with time (heat, fill, age); longer warm-up, or pauses. Ratios within a block suffer less.",
        watched="Find what changes with time (heat, fill, age, a cache).",
        severities=("warning", "note"),
        blind=_too_few_for("drift"),
    ),
    Check(
        "step",
        step,
        "Find out what happened to the box then, and measure again in one state.",
        severities=("warning", "note"),
        blind=_too_few_for("step"),
    ),
    Check(
        "autocorrelated",
        autocorrelated,
        "Leave more time between blocks, or find what lasts longer than one of them.",
        severities=("warning", "note"),
        blind=_too_few_for("autocorrelated"),
    ),
)
