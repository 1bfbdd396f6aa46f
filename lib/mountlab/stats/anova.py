"""Analysis of variance: which factor explains how much of what was measured.

On logarithms, since what is swept acts by factors: 'twice as fast' is the same step everywhere. Sums of squares are of
type II (each effect beside all others that do not contain it; Yates 1934), so that cells and trials may be missing.
With nothing missing they are those of the textbook, and add up.

Split plot: within a block a file system is made once and then runs all of its cells (its turn), so whatever was
peculiar about that turn is the same in all of them. File systems are therefore tested against how their turns differ
from block to block, everything else against the residual (Yates 1935). To take the residual for both would find file
systems to differ that do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
import pandas as pd
import scipy

from mountlab.stats.estimates import Floats

BLOCK, FILESYSTEM, RESIDUAL = "block", "filesystem", "residual"
COLUMNS = ("effect", "df", "sum_sq", "error_df", "f", "p", "share", "low", "high")
Term = frozenset[str]
_ROUNDING = 1e-26
"""Squares of residuals below this share of all squares are nothing but rounding."""
_VAST = 1e8
"""F times its degrees of freedom from which on all that its interval needs to know is the spread of the error."""


@dataclass(frozen=True)
class _Fit:
    squares: float
    """What the model leaves unexplained."""
    df: int


def explained(
    measurements: pd.DataFrame, *, workload: str, metric: str, label: str = "", level: float = 0.95
) -> pd.DataFrame:
    """How much of one metric of one workload (by name) each swept option, the file system, their interactions in pairs,
    the blocks and the turns explain: one row an effect, columns COLUMNS, the residual last.

    `measurements`: rows as analysis.measurement_frame makes them; warm-up trials are left out. No rows come back where
    nothing can be told: no factor has two levels, nothing is left for the residual, or a value is not positive, which
    has no logarithm. See `variance_table` for the columns.
    """
    own = measurements[(measurements["workload"] == workload) & (measurements["metric"] == metric)]
    own = own[(own["label"] == label) & ~own["warmup"].astype(bool)]
    options = pd.DataFrame(list(own["factors"]), index=own.index)
    levels = pd.concat([own[["filesystem", "block"]], options], axis=1)
    factors = [name for name in (FILESYSTEM, *options.columns) if levels[name].nunique(dropna=False) > 1]
    if not factors or not (own["value"] > 0).all():
        return pd.DataFrame(columns=list(COLUMNS))
    values = np.log(own["value"].to_numpy(dtype=float))
    return variance_table(values, {name: levels[name].tolist() for name in (BLOCK, *factors)}, level=level)


def variance_table(
    values: Floats, levels: Mapping[str, Sequence[object]], *, level: float = 0.95
) -> pd.DataFrame:  # fmt: skip
    """The analysis of variance of `values` over factors: `levels` holds, for each factor, the level of each value.

    A factor named 'block' has no interactions but with 'filesystem' (the turns). One row an effect ('filesystem x bs'
    for an interaction), then the residual, which holds the interactions of three and more. `f` and `p` against the
    error with `error_df` degrees of freedom. `share` of all variance is omega squared, (SS - df * MS error) / (SS total
    + MS residual): what is left after taking off what chance alone would explain, never below 0; that of the residual
    is the rest. Where cells are missing effects overlap; where they overlap so far that shares would be more than one
    whole, and where all is constant, there are none (NaN). `low` and `high` come from the interval of the noncentrality
    of F (Steiger & Fouladi 1997; Smithson 2003), other effects taken as estimated. The frame is empty where no degree
    of freedom is left for the residual.
    Raises ValueError for values that are not finite, and for a level outside (0, 1).
    """
    if not 0 < level < 1 or not np.all(np.isfinite(values)):
        raise ValueError("an analysis of variance needs finite values, and a level between 0 and 1")
    codes = {
        name: pd.factorize(np.array(each, dtype=object), use_na_sentinel=False)[0] for name, each in levels.items()
    }
    codes = {name: each for name, each in codes.items() if len(np.unique(each)) > 1}
    terms = _terms(list(codes))
    centred = values - values[:1]  # keeps the digits of values that are alike in all but the last of them
    full = _fit(centred, codes, terms)
    if not terms or full.df < 1:
        return pd.DataFrame(columns=list(COLUMNS))
    return _table(_effects(centred, codes, terms, full), full, _fit(centred, codes, ()), level)


def _terms(factors: Sequence[str]) -> list[Term]:
    """Main effects, interactions of two, blocks, turns."""
    swept = [name for name in factors if name != BLOCK]
    terms = [frozenset({name}) for name in swept] + [frozenset(pair) for pair in combinations(swept, 2)]
    blocks = [frozenset({BLOCK})] if BLOCK in factors else []
    turns = [frozenset({BLOCK, FILESYSTEM})] if blocks and FILESYSTEM in swept and len(swept) > 1 else []
    return [*terms, *blocks, *turns]


def _fit(values: Floats, codes: Mapping[str, np.ndarray], terms: Iterable[Term]) -> _Fit:
    """Least squares on indicator columns; ranks tell the degrees of freedom, so that cells may be missing.

    By the normal equations: of indicators they are well conditioned, and the squares are those of the residuals
    themselves, in which an error of the solution counts only squared.
    """
    columns = [_indicators(codes, term) for term in terms]
    design = np.concatenate([np.ones((len(values), 1)), *columns], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(design.T @ design, design.T @ values, rcond=1e-10)
    squares = float(np.sum((values - design @ solution) ** 2))
    left_by_rounding = squares < _ROUNDING * float(np.sum(values**2))
    return _Fit(0.0 if left_by_rounding else squares, len(values) - int(rank))


def _indicators(codes: Mapping[str, np.ndarray], term: Term) -> Floats:
    """One column for each combination of levels that occurs."""
    own = [codes[name] for name in sorted(term)]
    together = reduce(lambda first, second: first * (int(second.max()) + 1) + second, own)
    found, places = np.unique(together, return_inverse=True)
    return np.eye(len(found))[places]


def _effects(
    values: Floats, codes: Mapping[str, np.ndarray], terms: Sequence[Term], full: _Fit
) -> dict[Term, _Fit]:  # fmt: skip
    """Sum of squares and degrees of freedom of each term, beside all terms that do not contain it."""
    found = {}
    for term in terms:
        beside = [other for other in terms if not term <= other]
        without = _fit(values, codes, beside)
        with_it = full if len(beside) + 1 == len(terms) else _fit(values, codes, [*beside, term])
        found[term] = _Fit(without.squares - with_it.squares, without.df - with_it.df)
    return found


def _table(effects: Mapping[Term, _Fit], full: _Fit, nothing: _Fit, level: float) -> pd.DataFrame:
    total = nothing.squares + full.squares / full.df
    turns = effects.get(frozenset({BLOCK, FILESYSTEM}), full)
    rows: list[tuple[str, int, float, int, float, float, float, float, float]] = []
    for term, effect in effects.items():
        if not effect.df:
            continue  # cells are missing, so that it cannot be told from others
        error = turns if term == {FILESYSTEM} and turns.df > 0 else full
        f, p, share, low, high = _tested(effect, error, total, level)
        rows.append((_name(term), effect.df, effect.squares, error.df, f, p, share, low, high))
    rest = 1 - sum(share for *_, share, _low, _high in rows) if total else math.nan
    if rest < 0:  # cells are missing, and effects overlap: shares of one whole are not to be had
        rest, rows = math.nan, [(*row[:6], math.nan, math.nan, math.nan) for row in rows]
    rows.append((RESIDUAL, full.df, full.squares, 0, math.nan, math.nan, rest, math.nan, math.nan))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _name(term: Term) -> str:
    """'filesystem x bs'; the file system first, as people say it."""
    if term == {BLOCK, FILESYSTEM}:
        return "turn of a file system"
    return " x ".join(sorted(term, key=lambda name: (name != FILESYSTEM, name)))


def _tested(effect: _Fit, error: _Fit, total: float, level: float) -> tuple[float, float, float, float, float]:
    """F, p, share and its interval. Without any error F is infinite; where all is constant, there is no share."""
    variance = error.squares / error.df
    if effect.df == 0 or total == 0:
        return math.nan, math.nan, math.nan, math.nan, math.nan
    share = max(effect.squares - effect.df * variance, 0) / total
    if variance == 0:
        return math.inf, 0.0, share, math.nan, math.nan
    f = max(effect.squares, 0) / effect.df / variance
    others = total * (1 - share)
    tails = ((1 + level) / 2, (1 - level) / 2)
    low, high = (_noncentrality(f, effect.df, error.df, tail) * variance for tail in tails)
    return f, float(scipy.stats.f.sf(f, effect.df, error.df)), share, low / (low + others), high / (high + others)


def _noncentrality(f: float, df: int, error_df: int, tail: float) -> float:
    """The noncentrality of the F distribution at which an F of at most `f` has this chance; 0 where none has."""
    if scipy.stats.f.cdf(f, df, error_df) <= tail:
        return 0.0
    if f * df > _VAST:  # where the series for the noncentral F would take long, or give nothing
        return float(f * df * scipy.stats.chi2.isf(tail, error_df) / error_df)
    high = max(f * df, 1.0)
    while scipy.stats.ncf.cdf(f, df, error_df, high) > tail:
        high *= 2
    return float(
        scipy.optimize.brentq(lambda size: scipy.stats.ncf.cdf(f, df, error_df, size) - tail, 0, high, rtol=1e-10)
    )
