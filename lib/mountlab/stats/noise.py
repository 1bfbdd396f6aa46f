"""Where the noise of a ratio comes from, told from the values of its blocks: so that one knows what to reduce.

What all trials of a block have in common cancels in a paired ratio. What is left is put down to what the blocks show: a
few that lie far off, a step or a drift of the ratio, two modes; else to the sides. The variance of a log ratio is
(V(a) - C) + (V(b) - C), with the variances of the logarithms of both sides and their covariance C over blocks, which is
what blocks have in common: each part belongs to one side. One side is named where its part is the larger one and the
two differ by more than chance (Pitman 1939, Morgan 1939: the correlation of their sum with their difference). What a
trial adds and what making its file system adds cannot be told apart: each cell runs once on each making.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from mountlab.core.findings import NoiseSource
from mountlab.stats import shape
from mountlab.stats.comparisons import is_paired, log_step, logarithms
from mountlab.stats.estimates import Floats

DOMINANT = 0.5
"""Of the variance of the log ratios: the share from which on a source is named by itself."""
FEWEST = 3
"""Blocks: two values say nothing about where their difference comes from."""
_SURE = 0.95


def noise_source(candidate: Floats, baseline: Floats, *, steps: tuple[float, float] = (0.0, 0.0)) -> NoiseSource:
    """Return what most of the spread of a ratio comes from; 'unknown' where too few blocks tell.

    Values of both sides in the order of blocks, NaN where a block has none; `steps`: to what each side is rounded.
    """
    logs = [logarithms(side) for side in (candidate, baseline)]
    known = [~np.isnan(side) for side in logs]
    both = known[0] & known[1]
    pairs, *counts = (np.array([np.count_nonzero(each)]) for each in (both, *known))
    if not is_paired(pairs, counts[0], counts[1])[0]:
        return _of_apart(logs[0][known[0]], logs[1][known[1]])
    ours, theirs = (side[both] for side in logs)
    if len(ours) < FEWEST:
        return "unknown"
    rounded = [log_step(side[None, :], step)[0] for side, step in zip((candidate, baseline), steps, strict=True)]
    if (rounded[0] ** 2 + rounded[1] ** 2) / 12 > DOMINANT * (ours - theirs).var(ddof=1):
        return "rounding"
    return _of_course(ours - theirs) or _of_sides(ours, theirs)


def _of_course(ratios: Floats) -> NoiseSource | None:
    """What the log ratios show over the blocks; None where they are like independent draws of one shape. Each test is
    that of the caveat of the same name, at its limit."""
    limits, far = shape.SUSPICIOUS_P, shape.outlier_mask([ratios])[0]
    if far.any() and _left([ratios[~far]], ratios) < 1 - DOMINANT:
        return "one block" if far.sum() == 1 else "few blocks"
    at, step_p = shape.step(ratios.tolist())
    straight = _correlation(np.arange(len(ratios), dtype=float), ratios) ** 2
    by_drift = straight if shape.drift(ratios.tolist()) < limits["drift"] else 0.0
    by_step = 1 - _left([ratios[:at], ratios[at:]], ratios) if step_p < limits["step"] else 0.0
    if max(by_drift, by_step) > DOMINANT:
        return "drift" if by_drift > by_step else "step"
    return "two modes" if shape.two_modes(ratios.tolist()) < limits["two_modes"] else None


def _left(parts: Sequence[Floats], whole: Floats) -> float:
    """The share of the squared deviations of the whole that is left around the means of its parts."""
    return float(sum(part.var() * len(part) for part in parts) / (whole.var() * len(whole)))


def _correlation(one: Floats, other: Floats) -> float:
    """0 where one of them does not vary."""
    return float(np.corrcoef(one, other)[0, 1]) if one.std() > 0 and other.std() > 0 else 0.0


def _of_sides(ours: Floats, theirs: Floats) -> NoiseSource:
    """The side whose own part of the variance dominates, where the sides differ by more than chance."""
    correlation, degrees = _correlation(ours + theirs, ours - theirs), len(ours) - 2
    t = abs(correlation) * math.sqrt(degrees / max(1 - correlation**2, 1e-12))
    p = 2 * float(special.stdtr(degrees, -t))
    return _side(float(ours.var()), float(theirs.var()), p)  # the common part is the same in both


def _of_apart(ours: Floats, theirs: Floats) -> NoiseSource:
    """The same of sides that share too few blocks: by the F test of their variances."""
    if min(len(ours), len(theirs)) < FEWEST:
        return "unknown"
    variances = [float(side.var(ddof=1)) for side in (ours, theirs)]
    f = variances[0] / variances[1] if variances[1] else math.inf
    above = float(special.fdtrc(len(ours) - 1, len(theirs) - 1, f))
    return _side(variances[0] / len(ours), variances[1] / len(theirs), 2 * min(above, 1 - above))


def _side(ours: float, theirs: float, p: float) -> NoiseSource:
    if not p < 1 - _SURE:
        return "both"
    return "candidate" if ours > theirs else "baseline"
