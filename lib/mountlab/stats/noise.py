"""Where the noise of a ratio comes from, from the values of its blocks: so that a reader knows what to reduce.

What all trials of a block have in common cancels in a paired ratio. The rest is attributed to patterns of the blocks: a
few that lie far off, a step or a drift of the ratio, two modes; else to the sides. The variance of a log ratio is
(V(a) - C) + (V(b) - C), with the variances of the logarithms of both sides and their covariance C over blocks, which is
what blocks have in common: each part belongs to one side. One side is named where its part is the larger one and the
two differ by more than chance (Pitman 1939, Morgan 1939: the correlation of their sum with their difference). What a
trial adds and what making its file system adds cannot be separated: each cell runs once on each making.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.core.findings import NoiseSource
from mountlab.stats import shape
from mountlab.stats.comparisons import Flags, Steps, is_paired, log_step, logarithms
from mountlab.stats.estimates import Floats

DOMINANT = 0.5
"""Of the variance of the log ratios: the share from which on a source is named by itself."""
FEWEST = 3
"""Blocks: two values say nothing about where their difference comes from."""
_SURE = 0.95
_TINY = 1e-12
Sources = NDArray[np.object_]


def noise_sources(candidates: Floats, baselines: Floats, *, steps: Steps = (0.0, 0.0)) -> list[NoiseSource]:
    """Return what most of the spread of each ratio comes from; 'unknown' where too few blocks tell.

    Values of both sides of shape (comparisons, blocks), in the order of blocks, NaN where a block has none; `steps` as
    in `compare_rows`.
    """
    logs = [logarithms(side) for side in (candidates, baselines)]
    known = [~np.isnan(side) for side in logs]
    both = known[0] & known[1]
    pairs, *counts = (np.count_nonzero(each, axis=1) for each in (both, *known))
    paired = is_paired(pairs, counts[0], counts[1])
    rounded = [log_step(side, step) for side, step in zip((candidates, baselines), steps, strict=True)]
    least = (rounded[0] ** 2 + rounded[1] ** 2) / 12
    found: Sources = np.full(len(pairs), "unknown", dtype=object)
    for n in np.unique(pairs[paired & (pairs >= FEWEST)]):
        own = paired & (pairs == n)
        ours, theirs = (side[own][both[own]].reshape(-1, n) for side in logs)
        found[own] = _of_pairs(ours, theirs, least[own])
    for row in np.flatnonzero(~paired):
        found[row] = _of_apart(*(side[row][here[row]] for side, here in zip(logs, known, strict=True)))
    return list(found)


def _of_pairs(ours: Floats, theirs: Floats, least: Floats) -> Sources:
    """Return the source of each row of (comparisons, blocks): the first that holds. Each test of the log ratios is that
    of the caveat of the same name, at its limit; `least`: their variance by rounding."""
    ratios, limits = ours - theirs, shape.SUSPICIOUS_P
    far, (at, step_p) = shape.outlier_mask(ratios), shape.steps(ratios)
    n = ratios.shape[1]
    places = np.arange(n, dtype=float)
    outlying = far.any(axis=1) & (_left(ratios, [~far]) < 1 - DOMINANT)
    before = places < at[:, None]
    by_step = np.where(step_p < limits["step"], 1 - _left(ratios, [before, ~before]), 0.0)
    straight = _correlation(np.broadcast_to(places, ratios.shape), ratios) ** 2
    by_drift = np.where(shape.drift_p(ratios) < limits["drift"], straight, 0.0)
    cases: dict[NoiseSource, Flags] = {
        "rounding": least > DOMINANT * ratios.var(axis=1, ddof=1),
        "one block": outlying & (far.sum(axis=1) == 1),
        "few blocks": outlying,
        "drift": (by_drift > DOMINANT) & (by_drift > by_step),
        "step": by_step > DOMINANT,
        "two modes": shape.has_two_modes(ratios, limits["two_modes"]),
    }
    return np.select(list(cases.values()), list(cases), default=_of_sides(ours, theirs)).astype(object)


def _left(rows: Floats, parts: list[Flags]) -> Floats:
    """Return the share of the squared deviations of each row that is left around the means of its parts; 1 for a row
    that does not vary."""
    whole = rows.var(axis=1) * rows.shape[1]
    squares = np.zeros(len(rows))
    for part in parts:
        counts = part.sum(axis=1)
        means = np.where(part, rows, 0).sum(axis=1) / np.maximum(counts, 1)
        squares += (np.where(part, rows - means[:, None], 0) ** 2).sum(axis=1)
    return np.asarray(np.divide(squares, whole, out=np.ones(len(rows)), where=whole > 0))


def _correlation(one: Floats, other: Floats) -> Floats:
    """That of each row; 0 where one of them does not vary."""
    off = [side - side.mean(axis=1, keepdims=True) for side in (one, other)]
    size = np.sqrt((off[0] ** 2).sum(axis=1) * (off[1] ** 2).sum(axis=1))
    return np.asarray(np.divide((off[0] * off[1]).sum(axis=1), size, out=np.zeros(len(one)), where=size > 0))


def _of_sides(ours: Floats, theirs: Floats) -> Sources:
    """Return the side whose own part of the variance dominates, where the sides differ by more than chance."""
    correlation, degrees = _correlation(ours + theirs, ours - theirs), ours.shape[1] - 2
    t = np.abs(correlation) * np.sqrt(degrees / np.maximum(1 - correlation**2, _TINY))
    larger = ours.var(axis=1) > theirs.var(axis=1)  # the common part is the same in both
    side = np.where(larger, "candidate", "baseline")
    return np.where(2 * scipy.special.stdtr(degrees, -t) < 1 - _SURE, side, "both").astype(object)


def _of_apart(ours: Floats, theirs: Floats) -> NoiseSource:
    """Return the same of sides that share too few blocks: by the F test of their variances."""
    if min(len(ours), len(theirs)) < FEWEST:
        return "unknown"
    variances = [float(side.var(ddof=1)) for side in (ours, theirs)]
    above = float(scipy.special.fdtrc(len(ours) - 1, len(theirs) - 1, variances[0] / max(variances[1], _TINY)))
    if not 2 * min(above, 1 - above) < 1 - _SURE:
        return "both"
    return "candidate" if variances[0] / len(ours) > variances[1] / len(theirs) else "baseline"
