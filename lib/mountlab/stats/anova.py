"""Analysis of variance: which factor explains how much of what was measured.

On logarithms, since what is swept acts by factors: 'twice as fast' is the same step everywhere. Sums of squares are of
type II (each effect beside all others that do not contain it; Yates 1934), so that cells and trials may be missing.
With nothing missing they are those of the textbook, and add up.

Split plot (Yates 1935; Montgomery, Design and Analysis of Experiments, section 14.4): within a block a file system is
made once and then runs all of its cells (its turn), so whatever was peculiar about that turn is the same in all of
them. A file system that is measured in several states has a turn in each. Blocks B and turns T are random, the swept
options and the file system are fixed. With nothing missing, c cells in a turn, a file systems and b blocks the expected
mean squares are

    blocks        V(e) + c V(T) + a c V(B)
    file systems  V(e) + c V(T) + (what they do), as states and their interaction with file systems
    turns         V(e) + c V(T)
    all others    V(e) + (what they do)
    residual      V(e)

So blocks, file systems and states are tested against turns, everything else against the residual. Where trials are
missing the factors of V(T) and V(B) are traces, tr(Z' Q Z) / df for the projection Q of an effect and the indicators Z
of the turns or blocks (Henderson's method 3: Searle, Casella & McCulloch, Variance Components, 1992, section 5.5); the
error of an effect is then the mixture of the two mean squares that has its factor of V(T), with Satterthwaite's degrees
of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations

import numpy as np
import scipy

from mountlab.core.conditions import STATE
from mountlab.core.frames import pd
from mountlab.core.units import check_level
from mountlab.stats.estimates import LOWEST, Floats

BLOCK, FILESYSTEM, RESIDUAL = "block", "filesystem", "residual"
COLUMNS = ("effect", "df", "sum_sq", "error_df", "f", "p", "share", "low", "high")
Term = frozenset[str]
OF_TURNS = (FILESYSTEM, STATE)
"""The factors that are hard to change: a turn has one level of each."""
BLOCKS: Term = frozenset({BLOCK})
_ROUNDING = 1e-26
"""Squares of residuals below this share of all squares are nothing but rounding."""
_NONE = 1e-9
"""A factor of an expected mean square below this is none, and so near to 1 it is 1."""
_DRAWS, _MULTIPLIER = 1021, 76
"""Of the pivots from which intervals of shares are made."""
_VAST = 50.0
"""A noncentral chi-square, over its degrees of freedom, from which on its square root is as good as normal."""


@dataclass(frozen=True)
class _Fit:
    squares: float
    """What the model leaves unexplained."""
    df: int
    traces: Mapping[Term, float]
    """What it leaves of the indicators of some terms: the same, summed over their columns."""


@dataclass(frozen=True)
class _Effect:
    """One line of the table; its expected mean square is V(e) + turn_factor V(T) + block_factor V(B) + n V / df, with V
    what a fixed effect makes its levels vary by."""

    squares: float
    df: int
    turn_factor: float = 0.0
    block_factor: float = 0.0
    n: float = math.nan
    """All values where none are missing; fewer where values are missing and effects overlap."""

    @property
    def mean(self) -> float:
        """The mean square."""
        return self.squares / self.df


@dataclass(frozen=True)
class _Split:
    """All effects, and what they are tested against."""

    effects: Mapping[Term, _Effect]
    residual: _Effect
    total: float
    """Their sum of squares around their mean."""

    @property
    def turns(self) -> _Effect | None:
        """Where they can be known."""
        return self.effects.get(self.turn)

    @property
    def turn(self) -> Term:
        """The term of the turns; empty where there is none."""
        return next(filter(_is_turn, self.effects), frozenset())

    def weight(self, term: Term) -> float:
        """Return how much of the error of an effect is the mean square of the turns; the rest is that of the
        residual."""
        if self.turns is None or _is_turn(term):
            return 0.0
        weight = self.effects[term].turn_factor / self.turns.turn_factor
        return 1.0 if abs(weight - 1) < _NONE else weight

    def error(self, term: Term) -> tuple[float, float]:
        """Return the mean square and degrees of freedom of what an effect is tested against."""
        weight, rest = self.weight(term), self.residual
        if self.turns is None or weight == 0:
            return rest.mean, float(rest.df)
        if weight == 1:
            return self.turns.mean, float(self.turns.df)
        parts = (weight * self.turns.mean, (1 - weight) * rest.mean)
        mean = max(sum(parts), min(self.turns.mean, rest.mean))
        spread = parts[0] ** 2 / self.turns.df + parts[1] ** 2 / rest.df
        return mean, mean**2 / spread if spread else float(rest.df)


def explained(
    measurements: pd.DataFrame, *, workload: str, metric: str, label: str = "", level: float = 0.95
) -> pd.DataFrame:
    """Return how much of one metric of one workload (by name) each swept option, the file system, their interactions in
    pairs, the blocks and the turns explain: one row an effect, columns COLUMNS, the residual last.

    `measurements`: rows as measurement_frame makes them; warm-up trials are left out. The table is empty where
    no effect can be estimated: no factor has two levels, nothing is left for the residual, or a value is not positive
    and has no logarithm. See `variance_table` for the columns.
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


def variance_table(values: Floats, levels: Mapping[str, Sequence[object]], *, level: float = 0.95) -> pd.DataFrame:
    """Return the analysis of variance of `values` over factors: `levels` holds, for each factor, the level of each
    value.

    A factor named 'block' has no interactions but with 'filesystem' and 'state' (the turns). One row an effect
    ('filesystem x bs' for an interaction), then the residual, which holds the interactions of three and more. `f` and
    `p` against the error with `error_df` degrees of freedom (see the module). `share`: the part of one effect in the
    sum of all. Of blocks, turns and the residual that part is their variance, of a fixed effect (SS - df * MS of its
    error) / n, which without blocks and turns is omega squared; none is below 0. `low` and `high`: generalised
    confidence intervals (Weerahandi 1993; Hannig, Iyer & Patterson 2006), the shares of pivots of all parts together:
    mean squares over chi-squares, and noncentralities at which the sum of squares has a uniform chance. They are evenly
    spread and always the same. Where cells are missing effects overlap; where they overlap so far that shares would be
    more than one whole, and where all is constant, there are none (NaN). The frame is empty where no degree of freedom
    is left for the residual.
    Raises ValueError for values that are not finite, ParameterError for a level out of range.
    """
    check_level(level, where="level", least=LOWEST)
    if not np.all(np.isfinite(values)):
        raise ValueError("an analysis of variance needs finite values")
    codes = {
        name: pd.factorize(np.array(each, dtype=object), use_na_sentinel=False)[0] for name, each in levels.items()
    }
    codes = {name: each for name, each in codes.items() if len(np.unique(each)) > 1}
    terms = _terms(list(codes))
    centred = values - values[:1]  # keeps the digits of values that are alike in all but the last of them
    full = _fit(centred, codes, terms)
    if not terms or full.df < 1:
        return pd.DataFrame(columns=list(COLUMNS))
    effects = {term: each for term, each in _effects(centred, codes, terms).items() if each.df}
    total = _fit(centred, codes, ()).squares
    return _table(_Split(effects, _Effect(full.squares, full.df), total), level)


def _terms(factors: Sequence[str]) -> list[Term]:
    """Main effects, interactions of two, blocks, turns."""
    swept = [name for name in factors if name != BLOCK]
    terms = [frozenset({name}) for name in swept] + [frozenset(pair) for pair in combinations(swept, 2)]
    blocks = [BLOCKS] if BLOCK in factors else []
    whole = [name for name in OF_TURNS if name in swept]
    turns = [frozenset({BLOCK, *whole})] if blocks and whole and len(swept) > len(whole) else []
    return [*terms, *blocks, *turns]


def _is_turn(term: Term) -> bool:
    return BLOCK in term and len(term) > 1


def _fit(values: Floats, codes: Mapping[str, np.ndarray], terms: Iterable[Term], traced: Iterable[Term] = ()) -> _Fit:
    """Least squares on indicator columns; ranks give the degrees of freedom, so that cells may be missing.

    By the normal equations: of indicators they are well conditioned, and the squares are those of the residuals
    themselves, in which an error of the solution counts only squared.
    """
    columns = [_indicators(codes, term) for term in terms]
    design = np.concatenate([np.ones((len(values), 1)), *columns], axis=1)
    wanted = {term: _indicators(codes, term) for term in traced if term <= codes.keys()}
    sides = np.concatenate([values[:, None], *wanted.values()], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(design.T @ design, design.T @ sides, rcond=1e-10)
    left = np.sum((sides - design @ solution) ** 2, axis=0)
    ends = np.cumsum([1, *(each.shape[1] for each in wanted.values())])
    squares, *traces = (float(each.sum()) for each in np.split(left, ends[:-1]))
    left_by_rounding = squares < _ROUNDING * float(np.sum(values**2))
    traced_by = dict(zip(wanted, traces, strict=True))
    return _Fit(0.0 if left_by_rounding else squares, len(values) - int(rank), traced_by)


def _indicators(codes: Mapping[str, np.ndarray], term: Term) -> Floats:
    """Return one column for each combination of levels that occurs."""
    own = [codes[name] for name in sorted(term)]
    together = reduce(lambda first, second: first * (int(second.max()) + 1) + second, own)
    found, places = np.unique(together, return_inverse=True)
    return np.eye(len(found))[places]


def _effects(values: Floats, codes: Mapping[str, np.ndarray], terms: Sequence[Term]) -> dict[Term, _Effect]:
    """Return each term beside all terms that do not contain it."""
    found, random = {}, [*filter(_is_turn, terms), BLOCKS]
    for term in terms:
        beside = [other for other in terms if not term <= other]
        without = _fit(values, codes, beside, (*random, term))
        with_it = _fit(values, codes, [*beside, term], random)
        df = without.df - with_it.df
        factors = {
            _is_turn(each): _factor(without.traces.get(each, 0) - with_it.traces.get(each, 0), df) for each in random
        }
        n = _factor(without.traces[term] * _indicators(codes, term).shape[1], df)
        found[term] = _Effect(
            max(without.squares - with_it.squares, 0.0), df, factors.get(True, 0.0), factors[False], n
        )
    return found


def _factor(trace: float, df: int) -> float:
    factor = trace / df if df else 0.0
    return 0.0 if abs(factor) < _NONE else factor


def _table(split: _Split, level: float) -> pd.DataFrame:
    shares = _shares(split)
    bounds = _bounds(split, level) if shares and split.residual.squares else {}
    rows: list[tuple[str, int, float, float, float, float, float, float, float]] = []
    for term, effect in split.effects.items():
        error, error_df = split.error(term)
        f, p = _tested(effect, error, error_df) if split.total else (math.nan, math.nan)
        low, high = bounds.get(term, (math.nan, math.nan))
        rows.append((_name(term), effect.df, effect.squares, error_df, f, p, shares.get(term, math.nan), low, high))
    rest = (split.residual.df, split.residual.squares, 0, math.nan, math.nan)
    rows.append((RESIDUAL, *rest, shares.get(frozenset(), math.nan), math.nan, math.nan))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _name(term: Term) -> str:
    """'filesystem x bs'; the file system first, as people say it."""
    if _is_turn(term):
        return "turn of a file system"
    return " x ".join(sorted(term, key=lambda name: (name != FILESYSTEM, name)))


def _tested(effect: _Effect, error: float, error_df: float) -> tuple[float, float]:
    """F and p. Without any error F is infinite."""
    if error == 0:
        return math.inf, 0.0
    f = effect.mean / error
    return f, float(scipy.special.fdtrc(effect.df, error_df, f))


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shares(split: _Split) -> dict[Term, float]:
    """Of each effect, and of the residual (the empty term); {} where there are none."""
    rest = split.residual.mean
    explained_by_each = sum(max(each.squares - each.df * rest, 0.0) for each in split.effects.values())
    fixed = {term: each.df * max(each.mean - split.error(term)[0], 0.0) / each.n for term, each in _fixed(split)}
    random = {term: np.array(split.effects[term].mean) for term in (split.turn, BLOCKS) if term in split.effects}
    variances = _random(split, np.array(rest), random)
    parts = {**{term: max(float(each), 0.0) for term, each in variances.items()}, **fixed}
    whole = sum(parts.values())
    if explained_by_each > (1 + _NONE) * (split.total + rest) or not whole:
        return {}
    return {term: part / whole for term, part in parts.items()}


def _fixed(split: _Split) -> list[tuple[Term, _Effect]]:
    return [(term, each) for term, each in split.effects.items() if BLOCK not in term]


def _random(split: _Split, rest: Floats, means: Mapping[Term, Floats]) -> dict[Term, Floats]:
    """Return the variances of the residual, the turns and the blocks that have these mean squares; they may be below
    0."""
    found, turns = {frozenset[str](): rest}, np.zeros_like(rest)
    if split.turn in means:
        found[split.turn] = turns = (means[split.turn] - rest) / split.effects[split.turn].turn_factor
    if BLOCKS in means:
        blocks = split.effects[BLOCKS]
        found[BLOCKS] = (means[BLOCKS] - rest - blocks.turn_factor * turns) / blocks.block_factor
    return found


def _bounds(split: _Split, level: float) -> dict[Term, tuple[float, float]]:
    """Return the interval of each share, from pivots of all parts together."""
    chances = iter(_chances(2 * (len(split.effects) + 1)).T)
    rest = split.residual.squares / scipy.special.chdtri(split.residual.df, next(chances))
    means = {
        term: split.effects[term].squares / scipy.special.chdtri(split.effects[term].df, next(chances))
        for term in (split.turn, BLOCKS)
        if term in split.effects
    }
    parts = _random(split, rest, means)
    about = dict(parts)  # what each adds to the whole of the others: not cut at 0, or the others would look large
    for term, effect in _fixed(split):
        error = np.maximum(rest + split.weight(term) * (means.get(split.turn, rest) - rest), np.finfo(float).tiny)
        ratio, scale = effect.squares / error, error / effect.n
        noncentrality = _noncentrality(ratio, effect.df, next(chances))
        parts[term] = noncentrality * scale
        about[term] = np.where(noncentrality > 0, noncentrality, np.minimum(ratio - effect.df, 0)) * scale
    whole = np.sum(list(about.values()), axis=0)
    tails = ((1 - level) / 2, (1 + level) / 2)
    return {
        term: tuple(np.quantile(_share(part, whole - about[term], rest), tails).tolist())
        for term, part in parts.items()
    }


def _share(part: Floats, others: Floats, least: Floats) -> Floats:
    """Of a part beside others, which together are not less than the residual, and so not below 0."""
    own = np.maximum(part, 0)
    return np.asarray(own / (own + np.maximum(others, least)))


@lru_cache(maxsize=8)
def _chances(columns: int) -> Floats:
    """Return uniform values that fill their cube evenly: shape (_DRAWS, columns).

    Source: the lattice of Korobov that L'Ecuyer & Lemieux (2000) give for so many points, moved to the centre. (The
    sequences of scipy.stats would do as well, but a report would take most of a second more, to load it.)
    """
    steps = np.array([pow(_MULTIPLIER, column, _DRAWS) for column in range(columns)])
    return np.asarray((np.outer(np.arange(_DRAWS), steps) / _DRAWS + 0.5) % 1)


def _noncentrality(x: Floats, df: int, chance: Floats) -> Floats:
    """Return the noncentrality of the chi-square distribution at which a value of at most `x` has this chance; 0 where
    none has. The square root of a vast one is as good as normal: scipy's series for these takes long."""
    vast = x > _VAST * df
    found = np.where(vast, (np.sqrt(x) - scipy.special.ndtri(chance)) ** 2 - (df - 1), 0.0)
    usual = ~vast & (chance < scipy.special.chdtr(df, x))
    found[usual] = scipy.special.chndtrinc(x[usual], df, chance[usual])
    return np.asarray(np.maximum(found, 0))
