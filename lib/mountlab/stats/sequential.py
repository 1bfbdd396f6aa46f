"""Intervals that stay honest when blocks go on until they are narrow enough (`design.until`).

The rule. After each block from `min` on, look at the interval of every cell of a workload; when both ends of each lie
within +- half_width of its mean the workload is done; at `max` blocks it is done in any case. This is the purely
sequential procedure of Anscombe (1953) and Chow & Robbins (1965), begun after a first sample as in Stein (1945), with
an end.

Why it needs a correction. Stopping as soon as the spread happens to look small makes the interval too narrow: with min
5 and max 40 an interval that says 95 % covers 92 %, with min 2 it covers 88 %.

The correction. Let W be the sum of squared deviations from the mean, in units of the variance. On normal data the
deviations are independent of the mean, and the rule looks at nothing but W (that the half width is relative to the mean
matters little), so that given W at the stop, after N blocks, the interval at level 1 - p misses with probability

    2 Phi(-t(N - 1; 1 - p/2) sqrt(W / (N - 1)))

W is a Markov chain: one more block adds a chi-square variable of one degree of freedom (Helmert). Its distribution at
each stop is therefore computed, not drawn: by recursion over the blocks on a grid, as Starr (1966) did for rules of
this kind. The sum over all stops is the real p of a nominal p, deep in the tails too; the largest one over all ratios
of half width to spread is what is used. Intervals are computed at the level whose real level is the one that was asked
for, and the rule looks at these intervals, so that what the report prints is as narrow as was asked.

The level of a look. `of: cells` looks at the interval of each mean by itself. `of: comparisons` looks at intervals for
all comparisons together, whose level depends on how many there are (stats.adjusted.look_level). A deeper level
leaves the first looks fewer chances to stop, which makes the correction of a 95 % interval smaller, and that of an
interval as deep as the look larger. So for ratios the largest real p over all levels of a look from `confidence` to
_DEEPEST is used: it holds for any number of comparisons.

The margin. Skew costs a t interval one to two points under a stopping rule. So the correction aims at SHARE of the
permitted misses: where 95 % is claimed, normal data are covered to 96 % or more, and data as skewed as a lognormal of
sigma 0.3 or a gamma of shape 4, to either side and with any spread, to 94 % or more, without regard to the allowance
for neighbours below. tests/stats/test_sequential.py simulates this for the worst ratios of half width to spread. What
no t interval bears without the rule (heavier tails, two modes, drift) it does not bear with it.

Trials that are like their neighbours. A rule stops sooner where they are, and its interval is too narrow. So both the
interval that it looks at and the one that is printed allow for the correlation of neighbouring blocks (stats.serial).
That depends on the deviations alone, and only widens: what is said above holds with it.

What else may end a workload: other cells that are not yet precise, a budget of time, trials that failed. Each makes the
looks at which one cell can stop fewer, or the largest number of blocks smaller; both bring the stop nearer to one that
does not depend on the data, so the correction for all looks is enough (simulated there too). Ratios are covered by the
same argument: the mean of the log ratios is independent of the deviations of both cells.

Sources: C. Stein, Ann. Math. Statist. 16 (1945) 243; F. J. Anscombe, J. R. Stat. Soc. B 15 (1953) 1; Y. S. Chow and
H. Robbins, Ann. Math. Statist. 36 (1965) 457; N. Starr, Ann. Math. Statist. 37 (1966) 36.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mountlab.core.model import Extensions, RepeatedLooks, Until
from mountlab.stats import extended, serial

Array = NDArray[np.float64]
SHARE = 0.75
"""Of the misses that the claimed level permits: what normal data may use of it. The rest is for skewed data."""
SMALLEST_MIN, LARGEST_MAX = 3, 200
"""Blocks before the first look, and at most: with two there is next to no spread to look at; above two hundred the
recursion would be slow."""
_P = np.geomspace(1e-9, 1.0, 64)
"""Nominal p values at which the real ones are computed; between them the logarithms are interpolated."""
_RATIOS = 20
_DEEPEST, _DEPTHS = 1e-8, 12
"""One less the deepest level at which ratios are looked at, and at how many levels down to it the rule is computed."""
_DUST = 1e-30


def nominal_level(until: Until, level: float) -> float:
    """Return the level at which a t interval must be computed so that, after the rule `until`, it covers `level`.

    Raises ValueError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level}")
    return 1 - float(_nominal(_real_p_of(until), SHARE * (1 - level)))


def level_after(repeated_looks: RepeatedLooks | None, level: float) -> float:
    """Return the level at which a t interval must be computed to cover `level` after a stopping rule or extensions;
    `level` itself where there was neither."""
    if isinstance(repeated_looks, Extensions):
        return extended.level_after(repeated_looks.count, level)
    return level if repeated_looks is None else nominal_level(repeated_looks, level)


def true_p(p: ArrayLike, repeated_looks: RepeatedLooks) -> Array:
    """Return the real p values of nominal two-sided ones, after looks: never smaller. NaN stays NaN.

    It is the same map as that of `nominal_level`: true_p(1 - nominal_level(until, level), until) is 1 - level.
    """
    if isinstance(repeated_looks, Extensions):
        return extended.true_p(p, repeated_looks.count)
    real = _real_p_of(repeated_looks)
    nominal = np.asarray(p, dtype=float)
    with np.errstate(divide="ignore"):  # the logarithm of p = 0
        log_p = np.log(nominal)
    below = np.exp(np.minimum(log_p, np.log(_P[0]))) * (real[0] / _P[0])
    within = np.exp(np.interp(log_p, np.log(_P), np.log(real)))
    honest = np.minimum(np.where(nominal < _P[0], below, within) / SHARE, 1.0)
    return np.where(np.isnan(nominal), np.nan, honest)


def true_p_one_sided(p: ArrayLike, repeated_looks: RepeatedLooks) -> Array:
    """Return the real p values of nominal one-sided ones, as `true_p`: an interval misses equally often on either
    side."""
    nominal = np.asarray(p, dtype=float)
    return np.asarray(np.maximum(true_p(np.minimum(2 * nominal, 1.0), repeated_looks) / 2, nominal))


def half_widths(values: ArrayLike, level: float) -> Array:
    """Return half the width of the t interval after each block: `values` of shape (..., n), the last axis blocks, gives
    the same shape. After the first block, and where a value is NaN, it is infinite."""
    sample = np.asarray(values, dtype=float)
    counts = np.arange(1, sample.shape[-1] + 1)
    shifted = sample - sample[..., :1]
    exponent = np.frexp(np.nanmax(np.abs(shifted), axis=-1, keepdims=True, initial=0.0))[1]
    shifted = np.ldexp(shifted, -exponent)  # exact; squares of very small or large values are beyond floating point
    squares = np.cumsum(shifted**2, axis=-1) - np.cumsum(shifted, axis=-1) ** 2 / counts
    degrees = np.maximum(counts - 1, 1)
    error = np.ldexp(np.sqrt(np.maximum(squares, 0) / degrees / counts), exponent)
    half = scipy.special.stdtrit(degrees, (1 + level) / 2) * error
    return np.where((counts < 2) | np.isnan(half), np.inf, half)


def allowed_half_widths(values: ArrayLike, level: float) -> Array:
    """Return `half_widths` that allow for values like their neighbours (stats.serial), as those of a report after a
    stopping rule do: of (..., cells, n), the cells of a workload, or of a single one, (n,)."""
    sample = np.asarray(values, dtype=float)
    cells = sample if sample.ndim > 1 else sample[None]
    counts = np.arange(1, sample.shape[-1] + 1)
    wider = serial.widening(serial.pooled_so_far(cells), counts, level).reshape(sample.shape)
    half = half_widths(sample, level)
    return np.where(np.isinf(half), np.inf, half * wider)


def precise(values: ArrayLike, until: Until) -> NDArray[np.bool_]:
    """Return whether the mean is as precise as `until` asks, after each block: shapes as `allowed_half_widths`; False
    before `min` values. A sample whose values are all the same is precise, also one of zeros."""
    sample = np.asarray(values, dtype=float)
    counts = np.arange(1, sample.shape[-1] + 1)
    means = np.abs(np.cumsum(sample, axis=-1) / counts)
    signed = np.minimum.accumulate(sample, axis=-1) < 0
    # On the log scale the upper end is the farther one.
    asked = np.where(signed, until.half_width, np.log1p(until.half_width))
    narrow = allowed_half_widths(sample, nominal_level(until, until.confidence)) <= asked * means
    return np.asarray(narrow & (counts >= until.min), dtype=np.bool_)


def precise_ratio(log_ratios: ArrayLike, until: Until, level: float) -> NDArray[np.bool_]:
    """Return the same of ratios, from their logarithms (..., comparisons, n): within a factor of 1 + half_width either
    way, at the `level` at which the rule looks (stats.adjusted.look_level)."""
    sample = np.asarray(log_ratios, dtype=float)
    counts = np.arange(1, sample.shape[-1] + 1)
    narrow = allowed_half_widths(sample, level) <= np.log1p(until.half_width)
    return np.asarray(narrow & (counts >= until.min), dtype=np.bool_)


def blocks_taken(values: ArrayLike, until: Until) -> NDArray[np.intp]:
    """After how many blocks the cells of a workload stop together: shape (..., cells, max) gives (...).

    For simulations and predictions; a run looks at the same intervals after each block (mountlab.analysis.stopping).
    """
    sample = np.asarray(values, dtype=float)
    together = np.asarray(precise(sample[..., : until.max], until).all(axis=-2))
    return first_block(together, until.max)


def first_block(done: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """Return the first block, of the last axis, after which a rule is content; `most` where it never is."""
    return np.where(done.any(axis=-1), done.argmax(axis=-1) + 1, most)


# ── the recursion ────────────────────────────────────────────────────────────────────────────────────────────────────


def _real_p_of(until: Until) -> Array:
    """Return the real p of each of _P."""
    if until.of == "comparisons":
        return _real_p_at_any_depth(until.min, until.max, until.confidence)
    return _real_p(until.min, until.max, until.confidence)


@lru_cache(maxsize=64)
def _real_p(least: int, most: int, confidence: float) -> Array:
    """For the rule whose own level is the corrected one, which is found by repetition."""
    level = 1 - SHARE * (1 - confidence) / 2
    for _ in range(20):
        real = _worst_p(least, most, (level,))
        corrected = 1 - float(_nominal(real, SHARE * (1 - confidence)))
        if abs(corrected - level) < 1e-4:
            break
        level = corrected
    return real


@lru_cache(maxsize=64)
def _real_p_at_any_depth(least: int, most: int, confidence: float) -> Array:
    """For a rule whose own level is `confidence` or any deeper one."""
    return _worst_p(least, most, tuple(1 - np.geomspace(1 - confidence, _DEEPEST, _DEPTHS)))


def _nominal(real: Array, wanted: float) -> float:
    """Return the nominal p whose real p is `wanted`."""
    return float(np.exp(np.interp(np.log(wanted), np.log(real), np.log(_P))))


def _worst_p(least: int, most: int, levels: Sequence[float]) -> Array:
    """Return the largest probability of a miss at each of _P, over the levels at which the rule may look, and over the
    half widths at which it stops between its first and its last look: of shape (len(_P),)."""
    counts = np.arange(least, most + 1)
    limits = np.concatenate([_limits(counts, level) for level in levels])
    return np.asarray(np.maximum(_misses(counts, limits).max(axis=0), _P))


def _limits(counts: NDArray[np.intp], level: float) -> Array:
    """Return the W below which the rule stops at each look, for half widths (in standard deviations) from those that it
    reaches at its first look to those that it reaches at its last: (_RATIOS, looks)."""
    quantiles = scipy.special.stdtrit(counts - 1, (1 + level) / 2)
    widths = quantiles / np.sqrt(counts)
    ratios = np.geomspace(0.6 * widths[-1], 1.6 * widths[0], _RATIOS)
    return np.asarray(ratios[:, None] ** 2 * counts * (counts - 1) / quantiles**2)


def _misses(counts: NDArray[np.intp], limits: Array) -> Array:
    """Probability of a miss at each of _P where a path stops once W <= its limit: limits of shape (paths, looks) give
    (paths, len(_P)). At the last look every path stops."""
    nodes = _nodes(int(counts[-1]))
    step = _transition(int(counts[-1]))
    going = np.tile(_start(nodes, int(counts[0]) - 1), (len(limits), 1))
    tails = -scipy.special.stdtrit((counts - 1)[:, None], _P / 2)
    missed = np.zeros((len(limits), len(_P)))
    for look, count in enumerate(counts):
        share = _share_below(nodes, limits[:, look]) if count < counts[-1] else 1.0
        stopped = going * share
        missed += stopped @ (2 * scipy.special.ndtr(-tails[look] * np.sqrt(nodes / (count - 1))[:, None]))
        going = _without_dust((going - stopped) @ step)
    return missed


def _nodes(most: int) -> Array:
    """Return the grid of W: fine in proportion where it is small, which the tails live on, even where it is large."""
    end = most + 8 * np.sqrt(2 * most) + 20
    return np.concatenate([[0.0], np.geomspace(1e-11, 8.0, 320), np.arange(8.5, 40.0, 0.5), np.arange(40.0, end, 1.0)])


def _weights(nodes: Array, below: Array, moment_below: Array) -> Array:
    """Return a distribution as weights on the nodes, from its distribution function and its mean up to each node,
    shapes (..., nodes). What lies between two nodes is shared so that the mean stays exact; the last node has the
    rest."""
    mass = np.diff(below)
    upper = (np.diff(moment_below) - mass * nodes[:-1]) / np.diff(nodes)
    weights = np.zeros(below.shape)
    weights[..., 1:] += upper
    weights[..., :-1] += mass - upper
    weights[..., -1] += 1 - weights.sum(axis=-1)
    return _without_dust(weights)


def _without_dust(weights: Array) -> Array:
    """Return the weights, 0 where one is smaller than any p value that matters: arithmetic on such numbers is a
    hundred times slower."""
    return np.where(weights > _DUST, weights, 0.0)


def _start(nodes: Array, degrees: int) -> Array:
    """W at the first look: chi-square."""
    return _weights(nodes, scipy.special.chdtr(degrees, nodes), degrees * scipy.special.chdtr(degrees + 2, nodes))


@lru_cache(maxsize=2)
def _transition(most: int) -> Array:
    """Return one more block, which adds a chi-square variable of one degree: row i is the distribution after
    nodes[i]."""
    nodes = _nodes(most)
    added = np.maximum(nodes - nodes[:, None], 0)
    below = scipy.special.erf(np.sqrt(added / 2))
    moment_below = below - np.sqrt(2 * added / np.pi) * np.exp(-added / 2)
    return _weights(nodes, below, moment_below + nodes[:, None] * below)


def _share_below(nodes: Array, limits: Array) -> Array:
    """Return how much of the weight on each node counts as W <= limit: shape (limits, nodes), between 0 and 1."""
    edges = np.concatenate([[0.0], (nodes[1:] + nodes[:-1]) / 2, [nodes[-1] + 1]])
    return np.asarray(np.clip((limits[:, None] - edges[:-1]) / np.diff(edges), 0.0, 1.0))
