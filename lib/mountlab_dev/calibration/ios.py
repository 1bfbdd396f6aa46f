"""What percentiles hold that rest on few I/Os: simulated latencies, sorted into fio's bins, read as reports are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.histograms import FEWEST_BEYOND, Histogram, enough, middle, percentile_ns
from mountlab.stats.simulated import LEVEL, Floats, Generator, generator

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import Effort, held

SCALE_NS = 100_000
TRIALS = 5
IOS = (20, 100, 1_000, 10_000)
PERCENTS = (50.0, 99.0, 99.9)
Quantile = Callable[[Floats], Floats]
"""The share of I/Os that take longer, to the latency in units of SCALE_NS."""


def _lognormal(sigma: float) -> Quantile:
    return lambda above: np.exp(sigma * _score(above))


def _score(above: Floats) -> Floats:
    """Return the normal score that this share lies above."""
    from scipy.special import ndtri

    return np.asarray(-ndtri(above))


def _pareto(above: Floats) -> Floats:
    return np.asarray(above ** (-1 / 1.5))


def _slow(above: Floats) -> Floats:
    """Return latencies, with one I/O in 100 about ten times as long."""
    slow = np.clip(above / 0.01, 1e-12, 1 - 1e-12)
    fast = np.clip((above - 0.01) / 0.99, 1e-12, 1 - 1e-12)
    return np.where(above < 0.01, 10 * np.exp(0.3 * _score(slow)), np.exp(0.3 * _score(fast)))


LATENCIES: tuple[tuple[str, Quantile], ...] = (
    ("lognormal, σ 0.5", _lognormal(0.5)),
    ("lognormal, σ 1", _lognormal(1.0)),
    ("1 % are 10 times as slow", _slow),
    ("Pareto tail, exponent 1.5", _pareto),
)


def percentiles_of_few_ios(effort: Effort) -> Table:
    """Return how often the interval over trials holds the true percentile, by the number of I/Os of a trial."""
    says = (
        f"**Few I/Os**: how often the 95 % interval of a percentile over {TRIALS} trials contains the truth, where "
        f"trials differ by chance alone. A percentile with fewer than {FEWEST_BEYOND} I/Os beyond it is missing (–)."
    )
    rows: list[tuple[str, tuple[Share | None, ...]]] = []
    for name, quantile in LATENCIES:
        found = {ios: _covered(name, quantile, ios, effort.sweeps) for ios in IOS}
        for place, percent in enumerate(PERCENTS):
            shares = tuple(found[ios][place] if enough(ios, percent) else None for ios in IOS)
            rows.append((f"{name}: p{percent:g}", shares))
        rows.append((f"{name}: p99.9, were it shown", tuple(found[ios][-1] for ios in IOS)))
    return Table("few-operations", says, effort.sweeps, ("latencies", *(f"{ios:,} I/Os" for ios in IOS)), tuple(rows))


def _covered(name: str, quantile: Quantile, ios: int, cells: int) -> list[Share]:
    """For each of PERCENTS the share of cells whose interval holds it."""
    rng = generator("few I/Os", name, ios)
    figures = np.array([_figures(rng, quantile, ios) for _ in range(cells * TRIALS)])
    sizes = np.full(cells, TRIALS)
    shares = []
    for place, percent in enumerate(PERCENTS):
        found = estimate_samples(figures[:, place], sizes, level=LEVEL)
        truth = SCALE_NS * float(quantile(np.array(1 - percent / 100)))
        shares.append(held(found.low, found.high, truth))
    return shares


def _figures(rng: Generator, quantile: Quantile, ios: int) -> list[float]:
    """Return the percentiles of one trial, in nanoseconds."""
    latencies = np.floor(SCALE_NS * quantile(rng.random(ios)))
    _, exponent = np.frexp(latencies)
    width = 2.0 ** np.maximum(exponent - 7, 0)
    firsts, counts = np.unique(np.floor(latencies / width) * width, return_counts=True)
    bins = {middle(int(first)): int(number) for first, number in zip(firsts, counts, strict=True)}
    histogram = Histogram(bins, float(latencies.min()), float(latencies.max()))
    return [percentile_ns(histogram, percent) for percent in PERCENTS]
