"""How much a figure differs from run to run beyond what its trials inside a run explain.

One-way random effects on logarithms: x_ij = mu + r_i + e_ij, with r_i of the runs and e_ij of the trials. The intervals
of what lies between, and of its share, are exact for unlike numbers of trials: those of Wald (Ann. Math. Statist. 11,
1940; Searle, Casella and McCulloch, Variance Components, 1992, section 3.6); for equal numbers the first is that of
Williams (Biometrika 49, 1962). The estimate is that of Paule and Mandel (J. Res. NBS 87, 1982). What lies inside has
its interval by chi-square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.core.model import RepeatedLooks
from mountlab.stats.adjusted import holm
from mountlab.stats.estimates import chi2_quantile
from mountlab.stats.rounding import alike, common_variance
from mountlab.stats.sequential import true_p

Floats = NDArray[np.float64]
_HALVINGS = 52


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
    """Return the spread between and inside runs, from the values of one figure in each run.

    Needs two runs with a value, and one with two; all values above 0. Else all is NaN: `within` too, but where only the
    second run is missing. `steps`: to what the values of each sample are rounded, in their unit (0, (): unknown); a
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
        found = _between(logs, within, _rounding(samples, steps, within), level)
    tail = (1 - level) / 2
    low, high = (math.sqrt(inside / float(chi2_quantile(share, n - runs))) for share in (1 - tail, tail))
    return replace(found, within_low=low, within_high=high)


def _rounding(samples: Sequence[Sequence[float]], steps: Sequence[float], within: float) -> float:
    """Return the variance that rounding adds to the log mean of a run, on average over the runs that have values."""
    pairs = zip(samples, steps or [0.0] * len(samples), strict=True)
    shares = [step / math.exp(np.log(own).mean()) for own, step in pairs if len(own)]
    return float(np.mean(common_variance(np.array(shares), np.array(math.sqrt(within)))))


def _between(logs: Sequence[Floats], within: float, rounding: float, level: float) -> Spread:
    runs, n = len(logs), sum(map(len, logs))
    sizes, means = np.array([len(each) for each in logs]), np.array([each.mean() for each in logs])
    typical = (n - (sizes**2).sum() / n) / (runs - 1)
    inside = within + typical * rounding
    if alike(np.array(math.sqrt(inside)), np.maximum(np.abs(means).max(), 1.0)):
        return Spread(float(np.std(means, ddof=1)), math.nan, math.nan, math.sqrt(within), math.nan, runs, n)
    degrees, tails = (runs - 1, n - runs), np.array([(1 + level) / 2, (1 - level) / 2])
    quantiles = np.array([1.0, *scipy.special.fdtri(*degrees, tails)])
    shares = _shares_at(sizes, means, (runs - 1) * inside * quantiles)
    squares = np.array([runs - 1, *chi2_quantile(tails, runs - 1)])
    between, low, high = np.sqrt(shares * _squares(sizes, means, shares) / squares).tolist()
    f = float(_squares(sizes, means, np.zeros(1))[0]) / (runs - 1) / inside
    share, share_low, share_high = shares.tolist()
    found = Spread(between, low, high, math.sqrt(within), float(scipy.special.fdtrc(*degrees, f)), runs, n)
    return replace(found, share=share, share_low=share_low, share_high=share_high)


def _squares(sizes: NDArray[np.int64], means: Floats, shares: Floats) -> Floats:
    """Q / (1 - share) at each share = rho / (1 + rho): finite from 0 to 1, where every run counts alike. Times the
    share it is rho Q, which over a chi-square is what lies between."""
    weights = sizes / (1 - shares[:, None] + sizes * shares[:, None])
    centre = (weights * means).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    return np.asarray((weights * (means - centre) ** 2).sum(axis=1))


def _shares_at(sizes: NDArray[np.int64], means: Floats, wanted: Floats) -> Floats:
    """Return the shares at which Q is what is wanted, 0 where it is less at once, 1 where it never is: by bisection, as
    Q falls; with runs of one length it falls as 1 / (1 + n rho)."""
    if sizes.min() == sizes.max():
        n, most = sizes[0], _squares(sizes, means, np.zeros(1))
        excess = np.maximum(most - wanted, 0)
        return np.asarray(np.divide(excess, excess + n * wanted, out=np.zeros(len(wanted)), where=excess > 0))
    low, high = np.zeros(len(wanted)), np.ones(len(wanted))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = (1 - middle) * _squares(sizes, means, middle) > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(low == 0, 0.0, high)


def alike_p(spreads: Sequence[Spread], repeated_looks: RepeatedLooks | None) -> list[float]:
    """p of the runs being alike for each figure, adjusted over all figures together (Holm); NaN where it is not known.

    A stopping rule makes the spread inside the runs look a little too small, and so the F test too eager: less so than
    a t test of a single run, whose correction is therefore enough.
    """
    p_values = np.array([each.p for each in spreads])
    return holm(p_values if repeated_looks is None else true_p(p_values, repeated_looks))
