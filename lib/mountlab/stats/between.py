"""How much a figure differs from run to run beyond what its trials inside a run explain.

One-way random effects on logarithms: x_ij = mu + r_i + e_ij, with r_i of the runs and e_ij of the trials. Sources:
Searle, Casella and McCulloch, Variance Components (1992), ch. 3; the interval of what lies between is that of Williams,
Biometrika 49 (1962), that of its share the usual one by F (section 3.6d.vi), both with n0 in the place of n where runs
have unlike numbers of trials; that of what lies inside is by chi-square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.stats.rounding import alike, common_variance

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Standard deviations of logarithms: 0.03 is about 3 %. NaN where they cannot be known."""

    between: float
    """Of the runs, without what the trials inside them explain; 0 where these explain all of it."""
    low: float
    high: float
    within: float
    """Of the trials inside a run, pooled over the runs."""
    p: float
    """That the runs would differ like this or more if they were one."""
    runs: int
    n: int
    within_low: float = math.nan
    within_high: float = math.nan
    share: float = math.nan
    """Of the whole variance of a trial: how much lies between the runs. Its interval is cut at 0."""
    share_low: float = math.nan
    share_high: float = math.nan


def spread(samples: Sequence[Sequence[float]], *, level: float = 0.95, steps: Sequence[float] = ()) -> Spread:
    """The spread between and inside runs, from the values of one figure in each run.

    Needs two runs with a value, and one with two; all values above 0. Else all is NaN: `within` too, but where only the
    second run is missing. `steps`: to what the values of each run are rounded, in their unit (0, (): unknown); a
    difference that this makes is no spread between runs. Without any spread inside runs, and without a step, p and the
    bounds are NaN.
    """
    logs = [np.log(np.asarray(each, dtype=float)) for each in samples if len(each) and min(each) > 0]
    runs, n = len(logs), sum(map(len, logs))
    whole = len(logs) == sum(bool(len(each)) for each in samples)
    inside = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    if not whole or n <= runs:
        return Spread(math.nan, math.nan, math.nan, math.nan, math.nan, runs, n)
    within = inside / (n - runs)
    if runs <= 1:
        found = Spread(math.nan, math.nan, math.nan, math.sqrt(within), math.nan, runs, n)
    else:
        found = _between(logs, within, _rounding(logs, steps, within), level)
    tail = (1 - level) / 2
    low, high = (math.sqrt(inside / float(scipy.stats.chi2.ppf(share, n - runs))) for share in (1 - tail, tail))
    return replace(found, within_low=low, within_high=high)


def _rounding(logs: Sequence[Floats], steps: Sequence[float], within: float) -> float:
    """The variance that rounding adds to the log mean of a run, on average over the runs."""
    shares = [step / math.exp(own.mean()) for own, step in zip(logs, steps, strict=False)]
    return float(np.mean(common_variance(np.array(shares), np.array(math.sqrt(within))))) if shares else 0.0


def _between(logs: Sequence[Floats], within: float, rounding: float, level: float) -> Spread:
    runs, n = len(logs), sum(map(len, logs))
    sizes, means = np.array([len(each) for each in logs]), np.array([each.mean() for each in logs])
    squares = float((sizes * (means - np.concatenate(logs).mean()) ** 2).sum())
    typical = (n - (sizes**2).sum() / n) / (runs - 1)
    inside = within + typical * rounding
    if alike(np.array(math.sqrt(inside)), np.maximum(np.abs(means).max(), 1.0)):
        between = math.sqrt(squares / (runs - 1) / typical)
        return Spread(between, math.nan, math.nan, math.sqrt(within), math.nan, runs, n)
    f = squares / (runs - 1) / inside
    tail, degrees = (1 - level) / 2, (runs - 1, n - runs)
    bounds = [
        squares * (1 - scipy.stats.f.ppf(share, *degrees) / f) / (typical * scipy.stats.chi2.ppf(share, runs - 1))
        if f
        else 0.0
        for share in (1 - tail, tail)
    ]
    excess = (squares / (runs - 1) - inside) / typical
    low, high, between = (math.sqrt(max(0.0, float(each))) for each in (*bounds, excess))
    excesses = [f / float(scipy.stats.f.ppf(share, *degrees)) - 1 for share in (1 - tail, tail)]
    share_low, share_high = (_share(each, typical) for each in excesses)
    whole = between**2 + within
    return Spread(
        between, low, high, math.sqrt(within), float(scipy.stats.f.sf(f, *degrees)), runs, n, share_low=share_low,
        share=between**2 / whole if whole else math.nan, share_high=share_high,
    )  # fmt: skip


def _share(excess: float, typical: float) -> float:
    return 1.0 if math.isinf(excess) else max(0.0, excess) / (typical + max(0.0, excess))
