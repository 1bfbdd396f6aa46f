"""How much each file system can take at a latency objective, as frames for a notebook."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from mountlab.analysis import load_curve
from mountlab.analysis.load_curve import LoadCurve
from mountlab.analysis.run_view import RunView


@dataclass(frozen=True)
class Capacities:
    """What the searches of a run found; frames without rows where it has none."""

    estimates: pd.DataFrame
    """A row for each search: the capacity in requests per second, with its interval."""
    trials: pd.DataFrame
    """A row for each trial: its rates, the largest lateness, how much of the objective it used, and percentiles of
    latency from when a request was due, in seconds."""
    points: pd.DataFrame
    """A row for each point of each curve: medians of a percentile over trials at about one rate."""
    curves: list[LoadCurve]
    """What `mountlab.plots.plot_capacity` draws; `knee` is where a curve leaves its flat part."""


def capacity(run: RunView) -> Capacities:
    """Return what the searches of a run found: the capacity of each cell, its trials, and latency over load. A workload
    asks for a search by `capacity`."""
    searches = load_curve.searches(run)
    return Capacities(
        estimates=run.estimates[run.estimates["metric"] == "capacity"].reset_index(drop=True),
        trials=load_curve.trial_frame(searches),
        points=load_curve.point_frame(searches),
        curves=[curve for search in searches for curve in search.curves],
    )
