"""Further processes of the calibration tables, beside those that a user can try (`mountlab.simulate`)."""

from __future__ import annotations

import math

import numpy as np
import scipy
from mountlab.stats.simulated import (
    DRIFT_SD,
    NOISE,
    Floats,
    Generator,
    Process,
    autocorrelated,
    drifting,
    gamma,
    lognormal,
    normal,
    normal_log_mean,
    positive,
    two_modes,
)


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
    log_mean = float(weights @ np.log(positive(1 - cv * (nodes - shape) / math.sqrt(shape))) / weights.sum())
    return Process(
        f"tail to the left (mirrored gamma, shape {shape:g}), cv {100 * cv:g} %",
        1.0,
        log_mean,
        lambda rng, size: positive(1 - cv * (rng.gamma(shape, 1, size) - shape) / math.sqrt(shape)),
    )


def stepping(total_sd: float = DRIFT_SD, cv: float = NOISE) -> Process:
    """Return a process that becomes slower at once, half way through, by `total_sd` standard deviations."""

    def factors(_: Generator, size: tuple[int, int]) -> Floats:
        return np.broadcast_to(np.where(np.arange(size[1]) < size[1] // 2, 1.0, 1 - total_sd * cv), size)

    return Process(
        f"one step of {total_sd:g} sd",
        1.0,
        normal_log_mean(cv),
        lambda rng, size: normal(cv).draw(rng, size) * factors(rng, size),
        common=factors,
    )


def with_outlier(far_sd: float = 15.0, cv: float = NOISE) -> Process:
    """Return a process with one trial in each sample, at a random place, faster by `far_sd` standard deviations."""

    def draw(rng: Generator, size: tuple[int, int]) -> Floats:
        values = normal(cv).draw(rng, size)
        values[np.arange(size[0]), rng.integers(0, size[1], size[0])] += far_sd * cv
        return values

    return Process(f"one trial {far_sd:g} sd away", 1.0, normal_log_mean(cv), draw)


LISTED = (normal(), lognormal(0.05), lognormal(0.3), lognormal(1.0), gamma(), two_modes(), autocorrelated(), drifting())
"""Those of the tables of coverage."""
SKEWED = (shifted_gamma(4.0), shifted_gamma(2.0), shifted_gamma(1.0))
"""Beside these, in the table of the stopping rule: skew without the large spread that a gamma has by itself."""
