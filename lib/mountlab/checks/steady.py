"""Was the box, and was each trial, in a steady state?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import scipy

from mountlab.checks.base import Check, Doubt, Evidence, of_trials
from mountlab.checks.burst import stepped_down
from mountlab.checks.levels import block_levels, over_all, turned
from mountlab.checks.shape import change
from mountlab.core.model import Cell
from mountlab.filesystems import is_in_place
from mountlab.fio.series import Series
from mountlab.stats import shape

ROUNDS = 5
FEWEST_POINTS = 10
"""Windows of a log of fio's that are cut into rounds: two for each."""
FIRST_BLOCK_P = 0.05
_WARM_UP = "Set design.warmup to more blocks, or exclude the first with that reason."
_WATCH_FIRST = (
    "Exclude the first with that reason (`mountlab exclude`), or empty the caches before each: --drop-caches."
)


def cold_start(evidence: Evidence) -> Iterator[Doubt]:
    """First blocks that are unlike the later ones, over all cells: the warm-up was too short.

    The first five blocks are not steady by SNIA's rule (excursion ≤ 20 %, slope ≤ 10 % of the average). And the first
    differs from the later ones (t test on logs, p < 0.05).
    """
    levels = block_levels(evidence.samples)
    if len(levels) < ROUNDS:
        return
    steady = shape.steady(levels[:ROUNDS])
    p = _p_of_first(levels)
    if not steady.ok and p < FIRST_BLOCK_P:
        later = math.exp(float(np.mean(np.log(levels[1:]))))
        watched = all(is_in_place(fs) for fs in evidence.sweep.filesystems)
        seen = (
            f"the first block was {change(levels[0], later)}{turned(evidence.samples)} off the later "
            f"ones, and the first five were not steady (excursion {steady.excursion:.0%}, limit "
            f"{shape.MAX_EXCURSION:.0%}; slope {steady.slope:.0%}, limit {shape.MAX_SLOPE:.0%}): the box was still "
            f"warming up. {_WATCH_FIRST if watched else _WARM_UP}"
        )
        yield Doubt.of_run(f"{over_all(evidence.samples)} {seen}".strip())


def _p_of_first(levels: Sequence[float]) -> float:
    """Return the two-sided p of a t test of whether the first block belongs to the later ones, on logs."""
    first, later = math.log(levels[0]), np.log(levels[1:])
    sd = float(np.std(later, ddof=1)) * math.sqrt(1 + 1 / len(later))
    if sd == 0:
        return 0.0 if first != later[0] else 1.0
    return float(2 * scipy.special.stdtr(len(later) - 1, -abs(first - float(np.mean(later))) / sd))


def unsteady(evidence: Evidence) -> Iterator[Doubt]:
    """Trials with an unsteady bandwidth in fio's log, and rounds before them that never became steady.

    In more than half of the trials fio's bandwidth over five equal parts of the trial is not steady by the same rule.
    It needs `log_avg_msec`, and ten windows or more. Or the rounds of `precondition` ended without being steady.
    """
    yield from _never_steady(evidence)
    falls = evidence.once(stepped_down)
    for cell, trials in evidence.trials_with(evidence.series):
        judged = {trial_id: steady for trial_id, series in trials if (steady := steadiness(cell, series))}
        bad = {trial_id: steady for trial_id, steady in judged.items() if not steady.ok}
        if len(bad) > len(judged) / 2 and cell.id not in falls:
            worst = max(bad.values(), key=lambda steady: max(steady.excursion, steady.slope))
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(bad), judged)} the bandwidth was not steady: over five equal parts of the "
                f"trial it differed by up to {worst.excursion:.0%} of its average (limit {shape.MAX_EXCURSION:.0%}) "
                f"and sloped by {worst.slope:.0%} (limit {shape.MAX_SLOPE:.0%}). The figure depends on how long a "
                "trial is: run longer, with ramp_time, or with precondition.",
            )


def _never_steady(evidence: Evidence) -> Iterator[Doubt]:
    """Cells whose rounds beforehand ended without a steady state."""
    for cell, trials in evidence.trials_with(evidence.preconditioned):
        bad = {trial_id: rounds for trial_id, rounds in trials if not rounds.steady.ok}
        if bad:
            worst = max(bad.values(), key=lambda rounds: len(rounds.levels))
            why = f", and then one failed: {worst.failed}" if worst.failed else ""
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(bad), trials)} the rounds before it were not steady after {len(worst.levels)} "
                f"of at most {worst.most}{why} (the last five within {shape.MAX_EXCURSION:.0%} of their average, their "
                f"slope within {shape.MAX_SLOPE:.0%}). What is measured still changes: allow more rounds "
                "(precondition), or longer ones.",
            )


def steadiness(cell: Cell, series: Sequence[Series]) -> shape.Steady | None:
    """Return whether a trial was steady inside, by what was logged of it; None where the log is too coarse, and for a
    cell whose jobs do different things."""
    rounds = rounds_of(series) if "jobs" not in cell.workload.options else []
    return shape.steady(rounds) if rounds else None


def rounds_of(series: Sequence[Series]) -> list[float]:
    """Return the bandwidth of all jobs together in each of five equal parts of a trial; [] where the log is too
    coarse."""
    logs = [log for log in series if log.metric.endswith("_bandwidth") and len(log.points) >= FEWEST_POINTS]
    if not logs:
        return []
    end_s = max(point.seconds for log in logs for point in log.points)
    totals = [0.0] * ROUNDS
    for log in logs:
        parts: Mapping[int, list[float]] = {i: [] for i in range(ROUNDS)}
        for point in log.points:
            parts[min(ROUNDS - 1, int((point.seconds - 1e-9) / end_s * ROUNDS))].append(point.value)
        if not all(parts.values()):
            return []
        totals = [total + float(np.mean(parts[i])) for i, total in enumerate(totals)]
    return totals


def _no_log(evidence: Evidence) -> str | None:
    logged = any(rounds_of(series) for series in evidence.series.values()) or evidence.preconditioned
    return None if logged else "no trial kept a log over time of ten windows or more (fio: log_avg_msec)"


def _too_few_blocks(evidence: Evidence) -> str | None:
    n = len(block_levels(evidence.samples))
    return None if n >= ROUNDS else f"needs {ROUNDS} blocks that every cell has, and there are {n}"


CHECKS = (
    Check(
        "warm-up-too-short",
        cold_start,
        "Set `design.warmup` to more blocks.",
        watched=_WATCH_FIRST,
        blind=_too_few_blocks,
    ),
    Check("not-steady", unsteady, "Run longer, with `ramp_time` or `precondition`.", blind=_no_log),
)
