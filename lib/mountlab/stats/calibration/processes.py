"""How the trials of a simulated cell come about: the distributions and the troubles that the statistics are tried on.

Values are speeds in no unit; an undisturbed trial has a speed of about 1. What interests is the ratio to the truth, so
that one scale is as good as another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator, tuple[int, int]], Floats]

NOISE = 0.05
"""The coefficient of variation of a trial where nothing else is said."""
DRIFT_SD = 4.0
"""How far the drift goes from the first to the last trial, in standard deviations of the noise."""
SERIAL = 0.5
"""Correlation of one trial with the next."""
FAST_SHARE, FAST_TIMES = 0.3, 2.0
"""Of two modes: the share of the fast trials, and how many times as fast they are."""


@dataclass(frozen=True)
class Process:
    """Where trials come from. `draw(rng, (samples, n))` gives samples, one a row, oldest trial first; all positive."""

    name: str
    mean: float
    """What an interval of the mean should cover."""
    log_mean: float
    """The mean of the logarithm: what an interval of a ratio should cover."""
    draw: Draw
    common: Draw | None = None
    """Where the trouble may be the box's: the factors that each block puts on all of its trials, over normal noise."""

    def sides(self, rng: Generator, count: int, size: tuple[int, int]) -> Floats:
        """`count` cells of this process in the same blocks: (count, samples, n). What the box does acts on them all."""
        if self.common is None:
            return np.stack([self.draw(rng, size) for _ in range(count)])
        return self.common(rng, size) * np.stack([normal().draw(rng, size) for _ in range(count)])


def normal(cv: float = NOISE) -> Process:
    """Bell-shaped: what a t interval assumes. Values that would not be positive are kept at a thousandth."""
    return Process(
        f"normal, cv {100 * cv:g} %", 1.0, _log_mean(cv), lambda rng, size: _positive(rng.normal(1, cv, size))
    )


def lognormal(sigma: float) -> Process:
    """Skewed to the right; sigma is the standard deviation of the logarithm."""
    return Process(
        f"lognormal, σ {sigma:g}", math.exp(sigma**2 / 2), 0.0, lambda rng, size: rng.lognormal(0, sigma, size)
    )


def gamma(shape: float = 4.0) -> Process:
    """Skewed to the right; the coefficient of variation is 1/√shape."""
    log_mean = float(scipy.special.digamma(shape)) - math.log(shape)
    return Process(f"gamma, shape {shape:g}", 1.0, log_mean, lambda rng, size: rng.gamma(shape, 1 / shape, size))


def shifted_gamma(shape: float, cv: float = NOISE) -> Process:
    """As skewed as a gamma, 2/√shape, with this cv; shape 1 is exponential. For cv √shape below 1."""
    nodes, weights = scipy.special.roots_genlaguerre(64, shape - 1)
    log_mean = float(weights @ np.log1p(cv * (nodes - shape) / math.sqrt(shape)) / weights.sum())
    return Process(
        f"shifted gamma, shape {shape:g}, cv {100 * cv:g} %",
        1.0,
        log_mean,
        lambda rng, size: 1 + cv * (rng.gamma(shape, 1, size) - shape) / math.sqrt(shape),
    )


def mirrored(shape: float = 4.0, cv: float = 0.2) -> Process:
    """Skewed to the left: a trial is sometimes much slower, never much faster. As skewed as a gamma, with this cv."""
    nodes, weights = scipy.special.roots_genlaguerre(64, shape - 1)
    log_mean = float(weights @ np.log(_positive(1 - cv * (nodes - shape) / math.sqrt(shape))) / weights.sum())
    return Process(
        f"tail to the left (mirrored gamma, shape {shape:g}), cv {100 * cv:g} %",
        1.0,
        log_mean,
        lambda rng, size: _positive(1 - cv * (rng.gamma(shape, 1, size) - shape) / math.sqrt(shape)),
    )


def two_modes(share: float = FAST_SHARE, times: float = FAST_TIMES, cv: float = NOISE) -> Process:
    """Most trials are slow and a share of them is fast, as when a cache sometimes helps."""
    return Process(
        f"two modes, {100 * share:g} % at {times:g} times the speed",
        1 + share * (times - 1),
        _log_mean(cv) + share * math.log(times),
        lambda rng, size: normal(cv).draw(rng, size) * np.where(rng.random(size) < share, times, 1.0),
    )


def autocorrelated(correlation: float = SERIAL, cv: float = NOISE) -> Process:
    """Return a first-order autoregressive process: each trial is like the one before."""

    def draw(rng: Generator, size: tuple[int, int]) -> Floats:
        return _positive(1 + cv * _series(rng, size, correlation))

    return Process(
        f"autocorrelated, {correlation:g}",
        1.0,
        _log_mean(cv),
        draw,
        common=lambda rng, size: np.exp(cv * _series(rng, size, correlation)),
    )


def drifting(total_sd: float = DRIFT_SD, cv: float = NOISE) -> Process:
    """Return a process that becomes slower in a straight line, by `total_sd` standard deviations from the first to the
    last trial.

    The truth is the speed at the beginning.
    """

    def factors(_: Generator, size: tuple[int, int]) -> Floats:
        return np.broadcast_to(1 - total_sd * cv * np.linspace(0, 1, size[1]), size)

    return Process(
        f"drifting by {total_sd:g} sd",
        1.0,
        _log_mean(cv),
        lambda rng, size: normal(cv).draw(rng, size) * factors(rng, size),
        common=factors,
    )


def stepping(total_sd: float = DRIFT_SD, cv: float = NOISE) -> Process:
    """Return a process that becomes slower at once, half way through, by `total_sd` standard deviations."""

    def factors(_: Generator, size: tuple[int, int]) -> Floats:
        return np.broadcast_to(np.where(np.arange(size[1]) < size[1] // 2, 1.0, 1 - total_sd * cv), size)

    return Process(
        f"one step of {total_sd:g} sd",
        1.0,
        _log_mean(cv),
        lambda rng, size: normal(cv).draw(rng, size) * factors(rng, size),
        common=factors,
    )


def with_outlier(far_sd: float = 15.0, cv: float = NOISE) -> Process:
    """Return a process with one trial in each sample, at a random place, faster by `far_sd` standard deviations."""

    def draw(rng: Generator, size: tuple[int, int]) -> Floats:
        values = normal(cv).draw(rng, size)
        values[np.arange(size[0]), rng.integers(0, size[1], size[0])] += far_sd * cv
        return values

    return Process(f"one trial {far_sd:g} sd away", 1.0, _log_mean(cv), draw)


def _positive(values: Floats) -> Floats:
    return np.maximum(values, 1e-3)


def _series(rng: Generator, size: tuple[int, int], correlation: float) -> Floats:
    """Return a stationary autoregressive series of standard deviation 1 in each row."""
    noise = rng.normal(size=size)
    values = np.empty(size)
    values[:, 0] = noise[:, 0]
    for i in range(1, size[1]):
        values[:, i] = correlation * values[:, i - 1] + math.sqrt(1 - correlation**2) * noise[:, i]
    return values


@cache
def _log_mean(cv: float) -> float:
    """Return the mean of log(1 + cv z) for a standard normal z, by Gauss and Hermite's quadrature."""
    nodes, weights = scipy.special.roots_hermitenorm(64)
    return float(weights @ np.log(np.maximum(1 + cv * nodes, 1e-3)) / weights.sum())


LISTED = (normal(), lognormal(0.05), lognormal(0.3), lognormal(1.0), gamma(), two_modes(), autocorrelated(), drifting())
"""Those of the tables of coverage."""
SKEWED = (shifted_gamma(4.0), shifted_gamma(2.0), shifted_gamma(1.0))
"""Beside these, in the table of the stopping rule: skew without the large spread that a gamma has by itself."""

KINDS: dict[str, Callable[[float], Process]] = {
    "normal": normal,
    "lognormal": lambda cv: lognormal(math.sqrt(math.log1p(cv**2))),
    "gamma": lambda cv: gamma(cv**-2),
    "two modes": lambda cv: two_modes(times=1 + cv / math.sqrt(FAST_SHARE * (1 - FAST_SHARE)), cv=cv / 10),
    "autocorrelated": lambda cv: autocorrelated(cv=cv),
    "drifting": lambda cv: drifting(cv=cv),
}
"""Processes by name, for a given coefficient of variation (of two modes about)."""
