"""Values that are like their neighbours: what that adds to the variance of their mean.

The correlation of neighbours is estimated, corrected for its bias of -1 / n (Kendall, Biometrika 41, 1954) and drawn to
0.35 with the weight of 20 values: a few values show next to nothing of it. The variance of a mean is that of a
first-order autoregressive series; the sample variance is corrected for it, too, and its degrees of freedom are fewer
(Bayley and Hammersley, J. R. Stat. Soc. Suppl. 8, 1946).

Samples of one pool ran in the same blocks: the cells of a workload, in one metric. What lasts from block to block is
mostly the box, so that each sample is drawn to what the others of its pool show, with the same weight, and these to
0.35. A sample without others has that alone.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
CORRELATION, BELIEF = 0.35, 20.0
"""What the correlation of neighbours is drawn to, and the values that this counts as."""
MOST = 0.9


def shrunken(serial: ArrayLike, count: ArrayLike, towards: ArrayLike = CORRELATION) -> Floats:
    """Return the correlation of neighbours: less its bias, drawn to what is believed before. `serial`: that of a sample
    about its own mean."""
    return _drawn(np.asarray(count) * np.asarray(serial) + 1, count, towards)


def pooled(serial: Floats, counts: NDArray[np.int64], pools: NDArray[np.int64]) -> Floats:
    """Return the correlation of each sample, drawn to that of the others of its pool. All are (samples,)."""
    evidence = counts * serial + 1
    others, count = (np.bincount(pools, each)[pools] - each for each in (evidence, counts))
    return _drawn(evidence, counts, _drawn(others, count, CORRELATION))


def pooled_so_far(values: Floats) -> Floats:
    """Return the same after each block, where all samples of (..., samples, blocks) are one pool."""
    counts = np.arange(1.0, values.shape[-1] + 1)
    evidence = counts * _serial_so_far(values, counts) + 1
    others = evidence.sum(axis=-2, keepdims=True) - evidence
    return _drawn(evidence, counts, _drawn(others, (values.shape[-2] - 1) * counts, CORRELATION))


def _drawn(evidence: ArrayLike, counts: ArrayLike, towards: ArrayLike) -> Floats:
    believed = np.asarray(evidence) + BELIEF * np.asarray(towards)
    return np.asarray(np.clip(believed / (np.asarray(counts) + BELIEF), 0, MOST))


def of_rows(rows: Floats) -> Floats:
    """Return the correlation of neighbours of each row of (samples, n) about its mean; 0 where it does not vary."""
    off = rows - rows.mean(axis=1, keepdims=True)
    off /= np.maximum(np.abs(off).max(axis=1, keepdims=True), np.finfo(float).tiny)  # squares of 1e-200 are 0
    squares = (off**2).sum(axis=1)
    products = (off[:, 1:] * off[:, :-1]).sum(axis=1)
    return np.asarray(np.divide(products, squares, out=np.zeros(len(rows)), where=squares > 0))


def _serial_so_far(values: Floats, counts: Floats) -> Floats:
    """Return `of_rows` of the values up to each."""
    shifted = values - values[..., :1]
    shifted = np.ldexp(shifted, -np.frexp(np.nanmax(np.abs(shifted), axis=-1, keepdims=True, initial=0.0))[1])
    total = np.cumsum(shifted, axis=-1)
    mean = total / counts
    squares = np.cumsum(shifted**2, axis=-1) - total * mean
    products = np.cumsum(shifted[..., 1:] * shifted[..., :-1], axis=-1)
    products = np.concatenate([np.zeros_like(total[..., :1]), products], axis=-1)
    # The first value is 0 once shifted: the others have a neighbour before, all but the last one after.
    products = products - mean * (2 * total - shifted) + (counts - 1) * mean**2
    return np.asarray(np.divide(products, squares, out=np.zeros_like(squares), where=squares > 1e-24 * counts))


def inflation(correlation: Floats, count: ArrayLike) -> Floats:
    """Return what the variance of a mean of so many values is multiplied by, in an autoregressive series."""
    rest, n = 1 - correlation, np.asarray(count)
    return np.asarray((1 + correlation) / rest - 2 * correlation * (1 - correlation**n) / (n * rest**2))


def effective(degrees: ArrayLike, correlation: Floats) -> Floats:
    """Return the degrees of freedom of the variance of an autoregressive series."""
    return np.asarray(np.asarray(degrees) * (1 - correlation**2) / (1 + correlation**2))


def error_factor(correlation: Floats, count: ArrayLike) -> Floats:
    """Return what the standard error of a mean, made as of independent values, is multiplied by."""
    n = np.maximum(np.asarray(count, dtype=float), 2)
    factor = inflation(correlation, n)
    return np.asarray(np.sqrt(factor * (n - 1) / (n - factor)))


def widening(correlation: Floats, count: ArrayLike, level: float) -> Floats:
    """Return what half of the t interval at a level is multiplied by; 1 without a correlation, and below two values."""
    degrees, upper = np.maximum(np.asarray(count, dtype=float) - 1, 1), (1 + level) / 2
    plain = scipy.special.stdtrit(degrees, upper)
    degrees, plain, correlation = np.broadcast_arrays(degrees, plain, correlation)
    t, wider = np.ones(degrees.shape), correlation != 0
    t[wider] = scipy.special.stdtrit(effective(degrees[wider], correlation[wider]), upper) / plain[wider]
    return np.where(np.asarray(count) < 2, 1.0, t * error_factor(correlation, count))
