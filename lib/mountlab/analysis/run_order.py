"""How the figures of a run change from its first block to its last, and the sentences on it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mountlab.analysis.run_view import RunView
from mountlab.checks.base import samples_of
from mountlab.checks.levels import block_levels
from mountlab.core.names import code_words
from mountlab.core.numbers import first_few, ratio_figures
from mountlab.core.text import capital
from mountlab.stats.estimates import t_quantile
from mountlab.wording.caveats import grouped

FEWEST = 3
"""Blocks: a line through two has no interval."""
_CODES, _MOST_NAMED = ("drift", "step", "burst-credits"), 3


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


def run_order_sentences(run: RunView) -> Iterator[str]:
    """Yield whether the figures of all cells together rose or fell over the run, by the checks where these raise a
    caveat about it and else by a line through the blocks; and the cells that changed by themselves."""
    groups = grouped(caveat for caveat in run.caveats if caveat.code in _CODES)
    of_run = [group for group in groups if group.caveats[0].scope == "run"]
    if of_run:
        yield from (f"{capital(group.first_sentence)}." for group in of_run)
    elif trend := trend_of(run):
        yield trend_sentence(trend, run.sweep.design.smallest_effect)
    for group in (group for group in groups if group not in of_run):
        cells = first_few([caveat.subject for caveat in group.caveats], _MOST_NAMED)
        yield f"{code_words(group.code).capitalize()}: {cells} (see Caveats)."


def trend_sentence(trend: Trend, smallest_effect: float) -> str:
    """Return whether the figures got better or worse; that they did neither only where the interval shows it."""
    if trend.low > 1 or trend.high < 1:
        shown = f"The figures got {'better' if trend.ratio > 1 else 'worse'} over the run"
    elif max(trend.high, 1 / trend.low) <= 1 + smallest_effect:
        shown = "No trend over the run"
    else:
        shown = "A trend over the run is neither shown nor excluded"
    figures = ratio_figures(trend.ratio, trend.low, trend.high)
    line = "by a line through all cells (times as rates)"
    return f"{shown}: {line}, the last of {trend.blocks} blocks is at {figures} of the first."
