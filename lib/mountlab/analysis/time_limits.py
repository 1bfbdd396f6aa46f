"""Trials that ran into their time limit: which they are, and what is known of a figure of their cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mountlab.core.groups import by_key
from mountlab.core.metrics import Metric
from mountlab.core.model import Trial
from mountlab.stats.censored import CensoredEstimate, estimate_censored

OF_A_MOUNT = ("layers_time", "mkfs_time", "mount_time")
"""Metrics that no trial bounds: they belong to a mount."""
Censored = Mapping[str, frozenset[int]]
"""Cell to the counted blocks in which its trial ran into the time limit: trials that are known to be slow, by how much
is not known."""
NONE_CENSORED: Censored = {}


def censored_blocks(trials: Iterable[Trial]) -> dict[str, frozenset[int]]:
    """Return the counted blocks of each cell in which its trial ran into the time limit; without the cells that have
    none."""
    late = (trial for trial in trials if trial.status == "timeout" and not trial.warmup)
    blocks = by_key((trial.cell, int(trial.block)) for trial in late)
    return {cell: frozenset(late_blocks) for cell, late_blocks in blocks.items()}


def late_trials(censored: Censored, cell: str, metric: str) -> int:
    """Return how many counted trials of a cell ran into the time limit and so have no figure of this metric."""
    return 0 if metric in OF_A_MOUNT else len(censored.get(cell, ()))


def censored_estimate(metric: Metric, values: NDArray[np.float64], late: int, level: float) -> CensoredEstimate:
    """Return the median of a metric over values and so many trials that ran into the time limit."""
    return estimate_censored(values, late, level=level, worst=metric.worst)


def worse_side(metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Of each metric 1 where more is worse, -1 where less is, NaN where a time limit says nothing of it."""
    worst = np.array([metric.worst for metric in metrics])
    return np.where(np.isnan(worst), math.nan, np.where(worst > 0, 1.0, -1.0))
