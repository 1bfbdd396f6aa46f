"""How long searches for a capacity take: from the fewest trials, at rates of short ones, to the most, at the floor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mountlab.core.model import Workload
from mountlab.programs import TOOLS
from mountlab.stats.capacity import RateTrial, capacity
from mountlab.stats.capacity_ratios import level_at_end
from mountlab.sweep.plan import Plan
from mountlab.tools.base import Tool


@dataclass(frozen=True)
class SearchTime:
    """Guesses for the plan of a sweep of searches; seconds."""

    fewest: int
    """Trials of a search that bounds its capacity on both sides."""
    most: int
    shortest_s: float
    """Of one trial."""
    longest_s: float
    least_s: float
    """Of the whole run."""
    most_s: float

    @classmethod
    def of(cls, plan: Plan) -> SearchTime:
        sweep, most = plan.sweep, plan.sweep.design.repeats
        fewest = min(fewest_trials(level_at_end(sweep.design.level, sweep.compared_searches)), most)
        lengths = [_trial_s(workload, rate) for workload in sweep.workloads for rate in (_largest, _least)]
        return cls(fewest, most, min(lengths), max(lengths), _run_s(plan, fewest, _largest), _run_s(plan, most, _least))


def fewest_trials(level: float) -> int:
    """Return the trials of a search in which each of two rates always answers alike: the lower holds, the higher
    fails. No search that bounds a capacity on both sides has fewer."""
    trials: list[RateTrial] = []
    while math.isinf(capacity(trials, level).half_width):
        holds = len(trials) % 2 == 0
        trials.append(RateTrial(1.0 if holds else 2.0, holds))
    return len(trials)


_RateOf = Callable[[Tool, Workload], float]


def _largest(tool: Tool, workload: Workload) -> float:
    return tool.largest_rate(workload)


def _least(tool: Tool, workload: Workload) -> float:
    return tool.least_rate(workload)


def _trial_s(workload: Workload, rate_of: _RateOf) -> float:
    tool = TOOLS[workload.tool]
    return tool.trial_s(workload, rate_of(tool, workload))


def _run_s(plan: Plan, blocks: int, rate_of: _RateOf) -> float:
    """Return how long the first blocks take where each trial has this rate."""
    trials = [trial for trial in plan.trials if trial.block <= blocks and not trial.skip_reason]
    more = sum(_trial_s(trial.cell.workload, rate_of) - trial.expected_s for trial in trials)
    return plan.expected_until_s(blocks) + more
