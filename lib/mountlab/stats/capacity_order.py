"""Whether a capacity changed while it was searched for, by the order of the answers.

The interval of a search holds for one capacity, whatever the rates. Where the capacity moves, answers of different
times speak of different capacities. So two models are compared: one capacity, and one that moves by a constant share
from trial to trial, or once by a step. Answers change from "holds" to "fails" along a logistic curve in the log of the
rate, and a few are wrong, as in the choice of rates (stats.capacity). Capacity, width of the curve and change have a
prior on a grid. The Bayes factor is the average likelihood of the second model over that of the first. It is valid for
any choice of rates, since each answer depends on its own rate alone. Where the first model is right, it reaches k with
a probability of about 1/k at most (Ville 1939; the grid follows the tested rates). Simulated servers reach `NOTICED`
far less often (docs/calibration.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.stats.capacity import LAPSE, Capacity, RateTrial, capacity, confirms

Floats = NDArray[np.float64]
NOTICED = 1.5
"""A Bayes factor from which on a capacity counts as one that seems to have changed."""
SLOPES = (0.002, 0.004, 0.008, 0.016)
"""Changes from trial to trial, in logs, up or down."""
STEPS, PLACES = (0.1, 0.2, 0.4), (8, 15, 22, 30, 40)
"""Changes at once, up or down, and the trials after which they come."""
WIDTHS = (0.0075, 0.025, 0.075, 0.225)
"""Of the transition from holding to failing, in logs: half widths of a search of ± 5 % times 0.15, 0.5, 1.5, 4.5."""
BEYOND, FINE = 0.6, 0.02
"""How far, in logs, a capacity may lie beyond the tested rates, and the step of the grid."""


@dataclass(frozen=True)
class Change:
    """How a capacity moved, where it did."""

    factor: float
    """The Bayes factor for a capacity that moved."""
    ratio: float
    """The capacity at the last trial by that at the first: the likely one of those that moved."""
    low: float
    high: float
    """What the capacity lay between, from the first to the last trial, with the probability that was asked for."""

    @property
    def noticed(self) -> bool:
        return self.factor >= NOTICED


def change(trials: Sequence[RateTrial], level: float = 0.95) -> Change:
    """Return how the capacity moved over trials, in the order in which they were made."""
    rates, held = np.array([trial.rate for trial in trials]), np.array([trial.holds for trial in trials], dtype=bool)
    if held.all() or not held.any():
        return Change(0.0, 1.0, 0.0, math.inf)
    logs, shifts = np.log(rates / rates.min()), _shifts(len(trials))
    capacities = np.arange(-BEYOND, logs.max() + BEYOND, FINE)
    weights = np.stack([_likelihoods(capacities, shift - logs, held) for shift in shifts])
    weights -= weights.max()
    shares = np.exp(weights).sum(axis=2)
    moved = shares[1:] / shares[1:].sum()
    by_change = moved.sum(axis=1)
    ends = [_quantile(capacities + edge(shifts[1:], axis=1)[:, None], moved, share)
            for edge, share in ((np.min, (1 - level) / 2), (np.max, (1 + level) / 2))]  # fmt: skip
    low, high = (float(rates.min()) * math.exp(end) for end in ends)
    factor = float(by_change.mean() * shares[1:].sum() / max(shares[0].sum(), np.finfo(float).tiny))
    return Change(factor, math.exp(float(shifts[1 + int(by_change.argmax()), -1])), low, high)


def searched_capacity(trials: Sequence[RateTrial], level: float = 0.95) -> Capacity:
    """Return the capacity that trials show, in their order; where it changed, with an interval that also holds what it
    lay between."""
    found = capacity(trials, level)
    if math.isinf(found.half_width):
        return found
    moved = change(trials, level)
    if not moved.noticed:
        return found
    return replace(found, low=min(found.low, moved.low), high=max(found.high, moved.high))


def is_precise(trials: Sequence[RateTrial], half_width: float, level: float = 0.95) -> bool:
    """Return whether the interval that is printed is as narrow, and confirmed by the last trials."""
    found = capacity(trials, level)
    if found.half_width > half_width or not confirms(trials, found):
        return False
    return searched_capacity(trials, level).half_width <= half_width


def _shifts(count: int) -> Floats:
    """Return how far the capacity has moved at each trial, (1 + changes, trials) in logs: at first for none."""
    places = np.arange(count, dtype=float)
    straight = [slope * places for slope in SLOPES]
    at_once = [size * (places >= place) for size in STEPS for place in PLACES]
    rising = np.array([*straight, *at_once])
    return np.concatenate([np.zeros((1, count)), rising, -rising])


def _likelihoods(capacities: Floats, off: Floats, held: NDArray[np.bool_]) -> Floats:
    """Return the log likelihood of the answers for each capacity at first and each width. `off`: how much the capacity
    at each trial is above its first value and the rate."""
    beyond = (capacities[:, None] + off)[:, None] / np.array(WIDTHS)[:, None]
    right = LAPSE + (1 - 2 * LAPSE) * scipy.special.expit(np.where(held, beyond, -beyond))
    return np.asarray(np.log(right).sum(axis=2))


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values, axis=None)
    below = np.cumsum(weights.ravel()[order])
    return float(values.ravel()[order][min(int(np.searchsorted(below, share)), len(order) - 1)])
