"""Why one file system is slower than another, as frames for a notebook."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from mountlab.analysis import why as analysis
from mountlab.analysis import why_doubts
from mountlab.analysis.run_view import RunView
from mountlab.analysis.why_frames import Why


@dataclass(frozen=True)
class Explanation:
    """What the diagnostic trials of a run explain; frames without rows where it has none."""

    trials: Why
    """The frames of single trials: layers, work, traces, slowest, stacks, sleeps."""
    parts: pd.DataFrame
    """A row for each part of each latency of a cell: mean and interval over diagnostic trials, in seconds."""
    shares: pd.DataFrame
    """A row for each part of each difference to the baseline: its share. The intervals of one difference hold
    together."""
    work: pd.DataFrame
    """A row for each ratio of work of a cell, and its ratio to that of the baseline."""
    withheld: list[str]
    """The trials whose split is not shown, and why."""


def why(run: RunView) -> Explanation:
    """Return what explains the differences of a run: the parts of each latency, their shares of each difference to the
    baseline, and the work behind them. `mountlab explain RUN` adds the diagnostic trials that this needs."""
    causes = analysis.causes(run.why, run.sweep, run.comparisons)
    return Explanation(
        trials=run.why,
        parts=analysis.split_frame(analysis.splits(run.why, run.sweep)),
        shares=analysis.cause_frame(causes),
        work=analysis.work_frame(analysis.work(run.why, run.sweep)),
        withheld=[f"{split.cell}: {split.reason}" for split in why_doubts.withheld(run.why)],
    )
