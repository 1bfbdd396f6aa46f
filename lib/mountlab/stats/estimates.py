"""Estimates: one metric of the trials of one cell, as a figure with an interval.

Not by the bootstrap: at n = 3 its nominal 95 % interval covers 75 % on normal data, the t interval 95 %.

Of positive quantities the t interval is made on the log scale: the mean divided and multiplied by exp(h), where h is
half of the t interval as a share of the mean (the delta method). It never reaches zero, and with little spread it is
the t interval. It covers what the t interval covers or more, but for samples with a tail to the left, where it covers
up to a point less (docs/calibration.md).

Everything is computed for many samples at once: `rows` of shape (samples, n) hold one sample a row. STATISTICS lists
what can be estimated; a new statistic is one entry there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mountlab.core.findings import Estimate
from mountlab.core.units import check_level
from mountlab.stats import serial
from mountlab.stats.rounding import alike, common_deviation

Floats = NDArray[np.float64]
LOWEST = 0.01
"""A notebook may ask for a narrower interval than a sweep."""
Flags = NDArray[np.bool_]
Bounded = tuple[Floats, Floats, Floats]
"""Figure, low and high of samples."""
T_METHOD = "mean, t interval"
LOG_METHOD = "mean, t interval on the log scale"
"""Of a positive quantity."""
NO_INTERVAL = ": n is too small for a finite interval"
"""Added to the method where an order statistic interval has no end."""
NO_SPREAD = ": all trials are alike, and the step of the figure is unknown"
"""Added to the method where the spread says nothing, so that there is no interval."""


@dataclass(frozen=True)
class Statistic:
    """One way to sum up a sample."""

    noun: str
    """As in a heading: 'Mean and 95 % interval'."""
    method: str
    right: str
    """When it is the right one, in a sentence."""
    interval: Callable[[Floats, float, Floats, Flags, Floats], Bounded]
    """(samples, n >= 2), a level, the step of each sample, whether values of it may be negative, and what half of its t
    interval is multiplied by, to figure, low and high, each (samples,)."""
    positive: bool = False
    """Whether it is defined for positive values only."""
    signed_method: str = ""
    """Its method for samples that may be negative, or are all zero, where that is another."""
    ranks: bool = False
    """Whether the ends of its interval are values of the sample, so that few values have none."""


@dataclass(frozen=True)
class Estimates:
    """Many estimates as columns, each of shape (samples,). Bounds, sd and cv are NaN for n < 2; bounds also where all
    values are alike and no step is known."""

    figure: Floats
    low: Floats
    high: Floats
    sd: Floats
    cv: Floats
    n: NDArray[np.int64]
    method: list[str]


def estimate(
    values: Sequence[float],
    *,
    level: float = 0.95,
    unit: str = "",
    statistic: str = "mean",
    within: float | None = None,
    step: float = 0.0,
    signed: bool = False,
) -> Estimate:
    """Return the mean of `values` (one a trial) with its t interval, or another of STATISTICS. The interval is made on
    the log scale and never goes below zero: `mean / exp(h)` to `mean * exp(h)`, `h = t(n-1) * sd / (mean * sqrt(n))`.
    Where values are `signed` (may be negative, as logarithms), or one is negative, it is `mean +- t(n-1) * sd /
    sqrt(n)`.

    `step`: to what the values are rounded, in their unit, which the interval then contains (stats.rounding); 0 where it
    is unknown. Without a step, bounds are NaN where all values are alike: these say nothing about the spread. `within`:
    the level at which the interval is computed, where it is not `level`: higher after a stopping rule
    (stats.sequential). The mean is NaN for n = 0; sd, cv and bounds are NaN for n < 2, since one trial says nothing
    about spread. Raises ParameterError for a level out of range, ValueError for values that are not finite, and for
    values that are not positive where the statistic needs that. Source: Student (1908); for the log scale, the delta
    method.
    """
    sample = checked(values, level)
    if STATISTICS[statistic].positive and np.any(sample <= 0):
        raise ValueError(f"a {STATISTICS[statistic].noun.lower()} needs positive values")
    sizes, steps = np.array([len(sample)]), np.array([step])
    found = estimate_samples(
        sample, sizes, level=within or level, statistic=statistic, steps=steps, signed=np.array([signed])
    )
    columns = (found.figure, found.low, found.high, found.sd, found.cv)
    mean, low, high, sd, cv = (float(column[0]) for column in columns)
    return Estimate(
        mean=mean, low=low, high=high, sd=sd, cv=cv, n=len(sample), level=level, method=found.method[0], unit=unit
    )


def estimate_of_moments(mean: float, sd: float, n: int, *, level: float = 0.95, unit: str = "") -> Estimate:
    """Return the interval of a mean from the mean and the standard deviation (n - 1 in the divisor) of its sample: on
    the log scale where the mean is positive. n < 2 has none."""
    half = t_quantile(level, n - 1) * sd / math.sqrt(n) if n > 1 else math.nan
    low, high = (float(end[0]) for end in _bounds(np.array([mean]), np.array([half]), np.array([mean < 0])))
    return Estimate(
        mean=mean,
        low=low,
        high=high,
        sd=sd if n > 1 else math.nan,
        cv=sd / abs(mean) if n > 1 and mean else math.nan,
        n=n,
        level=level,
        method=LOG_METHOD if mean > 0 else T_METHOD,
        unit=unit,
    )


def estimate_samples(
    values: Floats,
    sizes: NDArray[np.int64],
    *,
    level: float,
    statistic: str = "mean",
    steps: Floats | None = None,
    signed: Flags | None = None,
    pools: NDArray[np.int64] | None = None,
) -> Estimates:
    """Many samples at once: `values` holds them one after the other, `sizes` says how long each is, `steps` to what the
    values of each are rounded (None, 0: unknown), `signed` which may be negative (None: those with a negative value).

    With `pools`, which say what samples ran in the same blocks, t intervals allow for values that are like their
    neighbours (stats.serial); without, values are taken as independent. An interval of order statistics does not.

    The values must be finite. Where one is not positive, and the statistic needs that, the figure is NaN. The results
    are those of `estimate`, bit for bit, since that calls this.
    """
    chosen, starts = STATISTICS[statistic], np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    known = np.zeros(len(sizes)) if steps is None else steps
    either = np.zeros(len(sizes), dtype=bool) if signed is None else signed.copy()
    columns, wider = np.full((5, len(sizes)), math.nan), np.ones(len(sizes))
    by_size = {n: np.flatnonzero(sizes == n) for n in np.unique(sizes[sizes > 0])}
    rows = {n: values[starts[own][:, None] + np.arange(n)] for n, own in by_size.items()}
    if pools is not None:
        alike_by = np.zeros(len(sizes))
        for n, own in by_size.items():
            alike_by[own] = serial.of_rows(rows[n])
        wider = serial.widening(serial.pooled(alike_by, sizes, pools), sizes, level)
    for n, own in by_size.items():
        either[own] |= (rows[n] < 0).any(axis=1)
        columns[:, own] = _summed_up(rows[n], level, chosen, known[own], either[own], wider[own])
    figure, low, high, sd, cv = columns
    endless = np.isinf(high) & chosen.ranks
    unknown = np.isnan(low) & ~np.isnan(figure) & (sizes > 1)
    plain = (either | (figure == 0)) & bool(chosen.signed_method)
    methods = [
        (chosen.signed_method if other else chosen.method) + (NO_INTERVAL if no_end else NO_SPREAD if no_spread else "")
        for other, no_end, no_spread in zip(plain.tolist(), endless.tolist(), unknown.tolist(), strict=True)
    ]
    return Estimates(figure, low, high, sd, cv, sizes, methods)


def _summed_up(rows: Floats, level: float, statistic: Statistic, steps: Floats, signed: Flags, wider: Floats) -> Floats:
    """Figure, low, high, sd and cv of each row, as five rows."""
    samples, n = rows.shape
    found = np.full((5, samples), math.nan)
    fit = np.all(rows > 0, axis=1) if statistic.positive else np.ones(samples, dtype=bool)
    if n == 1:
        found[0, fit] = rows[fit, 0]
        return found
    found[:3, fit] = statistic.interval(rows[fit], level, steps[fit], signed[fit], wider[fit])
    mean, sd = moments(rows)
    found[1:3, alike(sd, mean) & (steps == 0)] = math.nan
    found[3], found[4] = sd, np.divide(sd, np.abs(mean), out=np.full(samples, math.nan), where=mean != 0)
    return found


def moments(rows: Floats) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation (n - 1 in the divisor) of each row of (samples, n >= 2).

    In two passes, with what rounding left in the first mean put right: a sum of squares of the values themselves loses
    all digits where the spread is small beside the mean (Chan, Golub & LeVeque 1983). On values over a power of two
    near the largest of their row, which changes no digit: squares of 1e-300 and of 1e300 are beyond floating point.
    """
    n, exponent = rows.shape[1], np.frexp(np.abs(rows).max(axis=1))[1]
    scaled = np.ldexp(rows, -exponent[:, None])
    mean = scaled.mean(axis=1)
    deviations = scaled - mean[:, None]
    left = deviations.mean(axis=1)
    squares = np.sum(deviations**2, axis=1) - n * left**2
    sd = np.sqrt(np.maximum(squares, 0) / (n - 1))
    return np.ldexp(mean + left, exponent), np.ldexp(sd, exponent)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(rows: Floats, level: float, steps: Floats, signed: Flags, wider: Floats) -> Bounded:
    mean, half = _mean_and_half(rows, level, steps, wider)
    return mean, *_bounds(mean, half, signed)


def _mean_and_half(rows: Floats, level: float, steps: Floats, wider: Floats) -> tuple[Floats, Floats]:
    """Return the mean of each row, and half of its t interval."""
    n = rows.shape[1]
    mean, sd = moments(rows)
    return mean, wider * t_quantile(level, n - 1) * np.hypot(sd / math.sqrt(n), common_deviation(steps, sd))


def _bounds(mean: Floats, half: Floats, signed: Flags) -> tuple[Floats, Floats]:
    """Return the ends of intervals from half of the t interval: of what may be negative, or is zero, the t interval,
    which of zeros does not go below them; else that on the log scale."""
    on_logs = ~signed & (mean > 0)
    shift = np.divide(half, mean, out=np.zeros_like(half), where=on_logs)
    with np.errstate(over="ignore"):  # a bound beyond floating point is infinite
        low, high = (np.where(on_logs, mean * np.exp(sign * shift), mean + sign * half) for sign in (-1, 1))
    return np.where(signed, low, np.maximum(low, 0)), high


def _geometric(rows: Floats, level: float, steps: Floats, signed: Flags, wider: Floats) -> Bounded:
    logs = np.log(rows)
    with np.errstate(over="ignore"):  # a bound beyond floating point is infinite
        shares = steps * np.exp(-logs.mean(axis=1))
        mean, half = _mean_and_half(logs, level, shares, wider)
        return np.exp(mean), np.exp(mean - half), np.exp(mean + half)


def _harmonic(rows: Floats, level: float, steps: Floats, signed: Flags, wider: Floats) -> Bounded:
    times = 1 / rows
    time, shortest, longest = _mean(times, level, steps * times.mean(axis=1) ** 2, signed, wider)
    with np.errstate(divide="ignore", over="ignore"):  # a time below floating point is infinitely fast
        return 1 / time, 1 / longest, 1 / shortest


def _median(rows: Floats, level: float, steps: Floats, signed: Flags, _: Floats) -> Bounded:
    """Before it was rounded, each value, and so each end, lay within half a step of where it is."""
    ordered, rank = np.sort(rows, axis=1), order_statistic(rows.shape[1], level)
    figure, least = np.median(ordered, axis=1), np.where(signed, -math.inf, 0.0)
    if rank == 0:
        return figure, least, np.full(len(rows), math.inf)
    return figure, np.maximum(ordered[:, rank - 1] - steps / 2, least), ordered[:, -rank] + steps / 2


def order_statistic(n: int, level: float) -> int:
    """Return the largest k for which the k-th smallest and the k-th largest of n values enclose the median of what they
    were drawn from with a chance of `level` or more, whatever its shape; 0 where not even the extremes do.

    Each value lies below that median with a chance of one half, so the chance is that of the binomial distribution.
    """
    ranks = np.arange(1, n // 2 + 1)
    return int(np.count_nonzero(2 * scipy.special.bdtr(ranks - 1.0, n, 0.5) <= 1 - level))


STATISTICS: dict[str, Statistic] = {
    "mean": Statistic("Mean", LOG_METHOD, "the long run average of a trial's figure", _mean, signed_method=T_METHOD),
    "geometric": Statistic(
        "Geometric mean",
        "geometric mean, t interval on logs",
        "for figures that vary by factors, and beside ratios",
        _geometric,
        positive=True,
    ),
    "median": Statistic(
        "Median", "median, order statistics", "for what is typical, where a few trials stray far", _median, ranks=True
    ),
    "harmonic": Statistic(
        "Harmonic mean",
        "harmonic mean, t interval on times",
        "for rates of trials that each do the same amount of work: all work divided by all time",
        _harmonic,
        positive=True,
    ),
}
"""What `design.estimate` may say."""


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def checked(values: Sequence[float] | Floats, level: float) -> Floats:
    """`values` as an array. Raises ParameterError for a level out of range, ValueError for values that are not
    finite."""
    check_level(level, where="level", least=LOWEST)
    sample = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(sample)):
        raise ValueError("values must be finite: a missing figure is left out, not NaN")
    return sample


def t_quantile(level: float, degrees: int) -> float:
    """Return the factor of a two-sided t interval at `level`."""
    return float(scipy.special.stdtrit(degrees, (1 + level) / 2))


def chi2_quantile(share: ArrayLike, degrees: ArrayLike) -> Floats:
    """Return the value below which a chi-square variable lies with a chance of `share`. Shapes broadcast.

    Distributions are asked for by scipy.special throughout: scipy.stats gives the same figures, but takes a second to
    import and a hundred times as long for each.
    """
    return np.asarray(2 * scipy.special.gammaincinv(np.asarray(degrees) / 2, share), dtype=float)
