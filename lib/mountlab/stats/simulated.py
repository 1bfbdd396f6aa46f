"""Simulated runs of n trials with a known truth, for a reader who wants to try distribution, spread and n.

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

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.findings import Verdict
from mountlab.stats.adjusted import verdict
from mountlab.stats.comparisons import compare_rows
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.shape import any_suspicious

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
SEED = 20_140_101
LEVEL = 0.95
MARGIN = 0.02


def generator(*names: object) -> Generator:
    """Return a generator for one figure, whatever was simulated before it."""
    return np.random.default_rng([SEED, *"/".join(map(str, names)).encode()])


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
        f"normal, cv {100 * cv:g} %", 1.0, normal_log_mean(cv), lambda rng, size: positive(rng.normal(1, cv, size))
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


def two_modes(share: float = FAST_SHARE, times: float = FAST_TIMES, cv: float = NOISE) -> Process:
    """Most trials are slow and a share of them is fast, as when a cache sometimes helps."""
    return Process(
        f"two modes, {100 * share:g} % at {times:g} times the speed",
        1 + share * (times - 1),
        normal_log_mean(cv) + share * math.log(times),
        lambda rng, size: normal(cv).draw(rng, size) * np.where(rng.random(size) < share, times, 1.0),
    )


def autocorrelated(correlation: float = SERIAL, cv: float = NOISE) -> Process:
    """Return a first-order autoregressive process: each trial is like the one before."""

    def draw(rng: Generator, size: tuple[int, int]) -> Floats:
        return positive(1 + cv * _series(rng, size, correlation))

    return Process(
        f"autocorrelated, {correlation:g}",
        1.0,
        normal_log_mean(cv),
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
        normal_log_mean(cv),
        lambda rng, size: normal(cv).draw(rng, size) * factors(rng, size),
        common=factors,
    )


def positive(values: Floats) -> Floats:
    """Replace values below a thousandth by it."""
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
def normal_log_mean(cv: float) -> float:
    """Return the mean of log(1 + cv z) for a standard normal z, by Gauss and Hermite's quadrature."""
    nodes, weights = scipy.special.roots_hermitenorm(64)
    return float(weights @ np.log(np.maximum(1 + cv * nodes, 1e-3)) / weights.sum())


KINDS: dict[str, Callable[[float], Process]] = {
    "normal": normal,
    "lognormal": lambda cv: lognormal(math.sqrt(math.log1p(cv**2))),
    "gamma": lambda cv: gamma(cv**-2),
    "two modes": lambda cv: two_modes(times=1 + cv / math.sqrt(FAST_SHARE * (1 - FAST_SHARE)), cv=cv / 10),
    "autocorrelated": lambda cv: autocorrelated(cv=cv),
    "drifting": lambda cv: drifting(cv=cv),
}
"""Processes by name, for a given coefficient of variation (of two modes about)."""

VERDICTS: tuple[Verdict, ...] = ("faster", "slower", "same", "undecided")


@dataclass(frozen=True)
class SimulatedRuns:
    """Many simulated runs of one cell with n trials each, and of a second one that is truly `effect` times as fast."""

    kind: str
    cv: float
    effect: float
    truth: float
    """The mean that the intervals should hold."""
    values: Floats
    """(runs, n) trials of the cell."""
    low: Floats
    high: Floats
    """(runs,) ends of the 95 % intervals of its mean."""
    verdicts: dict[Verdict, float]
    """Share of runs whose comparison of the two cells says so, were it the only one of its sweep."""
    caveats: float
    """Share of runs in which the trials of the cell raise a caveat of shape or order."""

    @property
    def n(self) -> int:
        return int(self.values.shape[1])

    @property
    def covered(self) -> float:
        """Share of runs whose interval holds the truth."""
        return float(np.mean((self.low <= self.truth) & (self.truth <= self.high)))

    def first(self, runs: int) -> list[tuple[list[float], float, float]]:
        """Return trials, low and high of the first runs, as `plots.plot_simulated` takes them."""
        values, low, high = (rows[:runs].tolist() for rows in (self.values, self.low, self.high))
        return list(zip(values, low, high, strict=True))

    @property
    def finding(self) -> str:
        """A title: how many intervals hold the truth."""
        return f"n = {self.n}, {self.kind}: {100 * self.covered:.0f} % of the 95 % intervals hold the truth"

    @property
    def half_width(self) -> float:
        """Half of the median interval, as a share of the truth."""
        return float(np.median(self.high - self.low) / 2 / self.truth)


def simulate_runs(
    n: int, *, kind: str = "normal", cv: float = 0.05, effect: float = 1.05, runs: int = 2_000
) -> SimulatedRuns:
    """Simulates `runs` runs of n trials. `kind` is one of `kinds()`; `effect` is the true ratio of two cells.

    The same arguments give the same runs. Raises ParameterError for what cannot be simulated.
    """
    process = _process(n, kind, cv, effect)
    rng = generator("what would", kind, cv, n)
    values = process.draw(rng, (runs, n))
    found = estimate_samples(values.ravel(), np.full(runs, n), level=LEVEL)
    baseline, candidate = process.sides(rng, 2, (runs, n))
    return SimulatedRuns(
        kind=kind,
        cv=cv,
        effect=effect,
        truth=process.mean,
        values=values,
        low=found.low,
        high=found.high,
        verdicts=_verdicts(effect * candidate, baseline),
        caveats=float(np.mean(any_suspicious(values))),
    )


def _process(n: int, kind: str, cv: float, effect: float) -> Process:
    if kind not in KINDS:
        allowed, near = ", ".join(KINDS), did_you_mean(kind, KINDS)
        raise ParameterError("no such kind of trials", where="kind", got=repr(kind), allowed=allowed, next_step=near)
    if not 2 <= n <= 200:
        raise ParameterError("not so many trials", where="n", got=str(n), allowed="2 to 200")
    if not 0.001 <= cv <= 1:
        raise ParameterError("no such spread", where="cv", got=str(cv), allowed="0.001 to 1 (0.05 is 5 %)")
    if not 0.1 <= effect <= 10:
        raise ParameterError(
            "no such effect", where="effect", got=str(effect), allowed="0.1 to 10 (1.05 is 5 % faster)"
        )
    return KINDS[kind](cv)


def _verdicts(candidates: Floats, baselines: Floats) -> dict[Verdict, float]:
    ratios = compare_rows(candidates, baselines)
    found = [
        verdict(ratio, p_adjusted=p, p_equivalent_adjusted=same, level=LEVEL, more_is_better=True)
        for ratio, p, same in zip(ratios.ratio, ratios.p(), ratios.p_equivalent(MARGIN), strict=True)
    ]
    return {word: found.count(word) / len(found) for word in VERDICTS}
