"""How the figures of a run change from its first block to its last, over all cells together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mountlab.analysis.run_view import RunView
from mountlab.checks.base import samples_of
from mountlab.checks.levels import block_levels
from mountlab.stats.estimates import t_quantile

FEWEST = 3
"""Blocks: a line through two has no interval."""


@dataclass(frozen=True)
class Trend:
    """The level of the last block as a multiple of the first, by a line through the logarithms of all levels."""

    ratio: float
    low: float
    high: float
    blocks: int
    """Those that every cell has."""


def trend_of(run: RunView) -> Trend | None:
    """Return the trend, with its t interval at the level of the design; None for fewer than three common blocks."""
    levels = np.log(block_levels(samples_of(run.sweep, run.measurements, run.answer_metrics)))
    n = len(levels)
    if n < FEWEST:
        return None
    places = np.arange(n) - (n - 1) / 2
    slope = float(places @ levels / (places @ places))
    rest = levels - levels.mean() - slope * places
    error = math.sqrt(float(rest @ rest) / (n - 2) / float(places @ places))
    half = t_quantile(run.sweep.design.level, n - 2) * error
    ratio, low, high = (math.exp((n - 1) * end) for end in (slope, slope - half, slope + half))
    return Trend(ratio, low, high, n)
