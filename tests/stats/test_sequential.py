"""Intervals under a stopping rule: the correction against other routes, and the coverage that is claimed for it.

A coverage is judged by an exact binomial bound: the claim is refused where so few hits would come, were it true, in
less than one of ten thousand simulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from mountlab.core.model import Until
from mountlab.stats import look_level, sequential
from mountlab.stats.estimates import estimate
from numpy.typing import NDArray
from repetition import others_long
from scipy import stats

Array = NDArray[np.float64]
CLAIMED = 0.95
RULES = ((3, 10), (5, 10), (5, 40), (10, 40))
ALPHA = 1e-4


def rule(least: int = 5, most: int = 40, half_width: float = 0.03, confidence: float = CLAIMED) -> Until:
    return Until(half_width=half_width, min=least, max=most, confidence=confidence)


def lognormal(sigma: float) -> Callable[..., Array]:
    """Of mean 1."""
    return lambda rng, shape: np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2)


def gamma(shape_of: float) -> Callable[..., Array]:
    return lambda rng, shape: rng.gamma(shape_of, 1 / shape_of, shape)


def normal(cv: float) -> Callable[..., Array]:
    return lambda rng, shape: 1 + cv * rng.standard_normal(shape)


def scaled(draw: Callable[..., Array], sd: float, cv: float = 0.05) -> Callable[..., Array]:
    """The same shape with this cv, and not the one that it has by itself, which is `sd`; a negative cv puts its tail on
    the low side, as of a bandwidth that is now and then disturbed."""
    return lambda rng, shape: 1 + (draw(rng, shape) - 1) * cv / sd


LOGNORMAL_SD = math.sqrt(math.expm1(0.3**2))
SHAPES: dict[str, tuple[Callable[..., Array], float, float]] = {
    "normal 0.05": (normal(0.05), 0.05, 0.94),
    "lognormal 0.05": (lognormal(0.05), math.sqrt(math.expm1(0.05**2)), 0.94),
    "lognormal 0.3": (lognormal(0.3), LOGNORMAL_SD, 0.94),
    "lognormal 0.3, cv 5 %": (scaled(lognormal(0.3), LOGNORMAL_SD), 0.05, 0.94),
    "lognormal 0.3, cv 5 %, low tail": (scaled(lognormal(0.3), LOGNORMAL_SD, -0.05), 0.05, 0.94),
    "gamma 4": (gamma(4), 0.5, 0.94),
    "gamma 4, cv 5 %": (scaled(gamma(4), 0.5), 0.05, 0.94),
    "gamma 4, cv 5 %, low tail": (scaled(gamma(4), 0.5, -0.05), 0.05, 0.94),
    "gamma 2, cv 5 %": (scaled(gamma(2), math.sqrt(0.5)), 0.05, 0.915),
    "gamma 2, cv 5 %, low tail": (scaled(gamma(2), math.sqrt(0.5), -0.05), 0.05, 0.915),
    "exponential, cv 5 %": (scaled(gamma(1), 1), 0.05, 0.87),
    "exponential, cv 5 %, low tail": (scaled(gamma(1), 1, -0.05), 0.05, 0.87),
}
"""How to draw values of mean 1, their coefficient of variation, and the coverage that METHODS.md claims for them."""


def half_width_ratios(until: Until, count: int) -> list[float]:
    """Half widths in standard deviations, from where the rule mostly goes on to `max` to where it mostly stops at
    `min`: the worst lies between."""
    level = sequential.nominal_level(until, until.confidence)
    first, last = (stats.t.ppf((1 + level) / 2, n - 1) / math.sqrt(n) for n in (until.min, until.max))
    return list(np.geomspace(0.8 * last, 1.1 * first, count))


def run(values: Array, until: Until, truth: float = 1.0, level: float | None = None) -> tuple[NDArray[np.bool_], Array]:
    """Whether the interval holds the truth, and after how many blocks the rule stopped: values (trials, cells, max)
    give (trials, cells) and (trials,)."""
    taken = sequential.blocks_taken(values, until)
    hits = np.zeros(values.shape[:2], dtype=bool)
    level = sequential.nominal_level(until, until.confidence) if level is None else level
    for n in np.unique(taken):
        sample = values[taken == n, :, :n]
        half = sequential.allowed_half_widths(sample, level)[..., -1]
        hits[taken == n] = np.abs(sample.mean(axis=-1) - truth) <= half
    return hits, taken


def refuted(hits: NDArray[np.bool_], promised: float) -> bool:
    """Whether so few hits refute that the coverage is what was promised."""
    return bool(stats.binom.cdf(hits.sum(), hits.size, promised) < ALPHA)


# --- coverage ---------------------------------------------------------------------------------------------------------


FEW = 1500
REPRESENTATIVE = [
    ("normal 0.05", 5, 40, FEW), ("lognormal 0.3", 5, 10, FEW), ("exponential, cv 5 %", 3, 10, FEW),
]  # fmt: skip
"""The worst shape, a calm one and one between, each with another rule."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "least", "most", "trials"),
    others_long([*REPRESENTATIVE, *((shape, *each, 3000) for shape in SHAPES for each in RULES)], kept=REPRESENTATIVE),
)
def test_every_shape_is_covered_as_often_as_is_said_at_every_ratio_of_half_width_to_spread(
    shape: str, least: int, most: int, trials: int
) -> None:
    draw, cv, promised = SHAPES[shape]
    rng = np.random.default_rng(20261120)
    until = rule(least, most)
    values = draw(rng, (trials, 1, most))
    for ratio in half_width_ratios(until, 7):
        hits, taken = run(values, replace(until, half_width=ratio * cv))
        assert not refuted(hits, promised), f"{hits.mean():.4f} at {ratio:.2f} standard deviations, n = {taken.mean()}"


def test_without_the_correction_the_same_rule_covers_less_than_is_claimed() -> None:
    """Trap: stop rules that stop early, of which one covers 86 % at a 95 % claim, and another 91 %."""
    values = normal(0.05)(np.random.default_rng(1), (20_000, 40))
    counts = np.arange(1, 41)
    half = sequential.half_widths(values, CLAIMED)
    means = values.cumsum(axis=1) / counts
    stopped = (half <= 0.025 * means) & (counts >= 5)
    at = np.where(stopped.any(axis=1), stopped.argmax(axis=1), 39)
    rows = np.arange(len(values))
    covered = np.mean(np.abs(means[rows, at] - 1) <= half[rows, at])
    assert covered == pytest.approx(0.92, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("confidence", "trials"), others_long([(0.8, FEW), (0.8, 10_000), (0.9, 10_000), (0.99, 10_000)], kept=[(0.8, FEW)])
)
def test_other_confidences_are_kept_too(confidence: float, trials: int) -> None:
    until = rule(confidence=confidence)
    values = normal(0.05)(np.random.default_rng(2), (trials, 1, 40))
    for ratio in half_width_ratios(until, 5):
        hits, _ = run(values, replace(until, half_width=ratio * 0.05))
        assert not refuted(hits, confidence)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spreads", "trials"),
    others_long(
        [((1, 0.5, 0.25), FEW), *((each, 6000) for each in [(1, 0.5, 0.25), (1, 1, 1), (1, 1.5, 3)])],
        kept=[((1, 0.5, 0.25), FEW)],
    ),
)
def test_cells_that_leave_together_are_each_covered(spreads: tuple[float, ...], trials: int) -> None:
    """The last one to be precise decides, which no cell can do alone: the worst is a cell whose neighbours are calm."""
    rng = np.random.default_rng(3)
    common = 0.03 * rng.standard_normal((trials, 1, 40))  # what a block does to all of its trials
    own = rng.standard_normal((trials, 3, 40)) * 0.04 * np.array(spreads)[:, None]
    for ratio in half_width_ratios(rule(), 5):
        hits, _ = run(1 + common + own, rule(half_width=ratio * 0.05))
        assert not refuted(hits[:, 0], CLAIMED)
        assert not refuted(hits[:, 2], CLAIMED)


@pytest.mark.slow
def test_ratios_paired_by_block_are_covered_when_the_cells_decide() -> None:
    """The rule looks at the cells, the interval is that of the ratio, also where one side has nearly all the spread."""
    rng = np.random.default_rng(4)
    level = sequential.nominal_level(rule(), CLAIMED)
    for baseline in (0.002, 0.05):
        logs = rng.standard_normal((8000, 2, 40)) * np.array([baseline, 0.05])[:, None]
        for ratio in half_width_ratios(rule(), 4):
            taken = sequential.blocks_taken(np.exp(logs), rule(half_width=ratio * 0.05))
            ratios = logs[:, 1] - logs[:, 0]
            half = sequential.half_widths(ratios, level)
            rows = np.arange(len(ratios))
            means = ratios.cumsum(axis=1)[rows, taken - 1] / taken
            assert not refuted(np.abs(means) <= half[rows, taken - 1], CLAIMED)


@pytest.mark.long
@pytest.mark.parametrize("comparisons", [1, 20])
def test_ratios_are_covered_when_they_decide(comparisons: int) -> None:
    """Alone, or by intervals for all of 20 together, which are wider."""
    logs = 0.05 * np.random.default_rng(5).standard_normal((8000, 40))
    until = replace(rule(), of="comparisons")
    level, look = sequential.nominal_level(until, CLAIMED), look_level(until, comparisons)
    for ratio in np.array(half_width_ratios(rule(), 5)) * stats.norm.ppf((1 + look) / 2) / stats.norm.ppf(0.99):
        precise = sequential.precise_ratio(logs[:, None], rule(half_width=math.expm1(ratio * 0.05)), look)[:, 0]
        taken = np.where(precise.any(axis=1), precise.argmax(axis=1) + 1, 40)
        rows = np.arange(len(logs))
        means = logs.cumsum(axis=1)[rows, taken - 1] / taken
        assert not refuted(np.abs(means) <= sequential.half_widths(logs, level)[rows, taken - 1], CLAIMED)


@pytest.mark.slow
@pytest.mark.parametrize("most", [8, 15, 40])
def test_a_budget_that_ends_a_run_early_leaves_the_coverage(most: int) -> None:
    """The correction is that of `max` 40, the run ends before."""
    values = normal(0.05)(np.random.default_rng(6), (10_000, 1, 40))
    level = sequential.nominal_level(rule(), CLAIMED)
    for ratio in half_width_ratios(rule(), 5):
        until = rule(half_width=ratio * 0.05)
        taken = np.minimum(sequential.blocks_taken(values, until), most)
        half, counts = sequential.half_widths(values[:, 0], level), np.arange(1, 41)
        rows = np.arange(len(values))
        means = (values[:, 0].cumsum(axis=1) / counts)[rows, taken - 1]
        assert not refuted(np.abs(means - 1) <= half[rows, taken - 1], CLAIMED)


# --- the correction against other routes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "most"), [(3, 10), (5, 40), (10, 40)])
@pytest.mark.slow
def test_the_recursion_agrees_with_simulated_paths_of_the_spread(least: int, most: int) -> None:
    """By chi-square increments drawn, at one half width, for p values from 0.2 to 1e-3."""
    p_values = np.array([0.2, 0.05, 0.03, 0.01, 1e-3])
    counts = np.arange(least, most + 1)
    quantiles = stats.t.ppf(0.985, counts - 1)
    ratio = 1.1 * quantiles[len(counts) // 3] / math.sqrt(counts[len(counts) // 3])
    limits = ratio**2 * counts * (counts - 1) / quantiles**2

    rng = np.random.default_rng(7)
    w = rng.chisquare(least - 1, (60_000, 1)) + np.pad(
        rng.chisquare(1, (60_000, most - least)).cumsum(axis=1), ((0, 0), (1, 0))
    )
    stopped = w <= limits
    stopped[:, -1] = True
    at = stopped.argmax(axis=1)
    n, s = counts[at], np.sqrt(w[np.arange(len(w)), at] / (counts[at] - 1))
    drawn = [np.mean(2 * stats.norm.sf(stats.t.isf(p / 2, n - 1) * s)) for p in p_values]

    computed = sequential._misses(counts, limits[None, :])[0]
    interpolated = np.exp(np.interp(np.log(p_values), np.log(sequential._P), np.log(computed)))
    assert interpolated[:4] == pytest.approx(drawn[:4], rel=0.03)
    assert interpolated[4] == pytest.approx(drawn[4], rel=0.1), "few of the paths drawn matter here"


def stopping_paths(looked: float, least: int, most: int, ratio: float, paths: int) -> tuple[Array, Array]:
    """Blocks and spread (in units of the true one) at which a rule stops that looks at intervals at the level `looked`;
    by chi-square increments drawn."""
    counts = np.arange(least, most + 1)
    rng = np.random.default_rng(13)
    first = rng.chisquare(least - 1, (paths, 1))
    w = first + np.pad(rng.chisquare(1, (paths, most - least)).cumsum(axis=1), ((0, 0), (1, 0)))
    spreads = np.sqrt(w / (counts - 1))
    stopped = stats.t.ppf((1 + looked) / 2, counts - 1) * spreads / np.sqrt(counts) <= ratio
    stopped[:, -1] = True
    at = stopped.argmax(axis=1)
    return counts[at], spreads[np.arange(paths), at]


@pytest.mark.slow
@pytest.mark.parametrize("looked", others_long([0.98, 0.999, 0.9999], kept=[0.999]))
def test_the_correction_for_ratios_holds_however_deep_the_intervals_are_that_the_rule_looks_at(looked: float) -> None:
    """A rule that looks at intervals for many comparisons together errs most often in p values about as deep."""
    until = replace(rule(3, 10), of="comparisons")
    first, last = (stats.t.ppf((1 + looked) / 2, n - 1) / math.sqrt(n) for n in (3, 10))
    for ratio in np.geomspace(0.8 * last, 0.5 * first, 6):
        n, spread = stopping_paths(looked, 3, 10, ratio, 40_000)
        for p in (0.05, 1e-2, 1e-3, 1e-4):
            real = np.mean(2 * stats.norm.sf(stats.t.isf(p / 2, n - 1) * spread))
            assert real <= sequential.SHARE * sequential.true_p(p, until) * 1.1, f"{p} at {ratio:.2f}"


@pytest.mark.slow
def test_the_rule_looks_at_the_widest_interval_for_all_together() -> None:
    """Of 20 comparisons some of which are decided: at a fifth of Bonferroni's share; one is its own interval."""
    cells, ratios = rule(), replace(rule(), of="comparisons")
    assert look_level(cells, 20) == look_level(cells, 1) == sequential.nominal_level(cells, 0.95)
    assert look_level(ratios, 1) == sequential.nominal_level(ratios, 0.95)
    assert look_level(ratios, 20) == sequential.nominal_level(ratios, 1 - 0.05 * 0.2 / 20)


def test_with_one_look_the_real_p_is_the_nominal_one() -> None:
    """No looking again, nothing to correct, nine decimal powers down; where the grid is coarse the error is small, and
    on the careful side."""
    p = np.geomspace(1e-9, 0.5, 60)
    for n in (3, 5, 20):
        excess = sequential.SHARE * sequential.true_p(p, rule(n, n)) / p
        assert excess.min() > 0.999
        assert excess.max() < 1.06
        assert excess[p > 1e-3].max() < 1.02


@pytest.mark.parametrize(
    "until", [rule(), rule(3, 10), pytest.param(rule(10, 200, confidence=0.99), marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_the_real_p_is_larger_than_the_nominal_one_and_rises_with_it(until: Until) -> None:
    p = np.geomspace(1e-15, 1, 400)
    real = sequential.true_p(p, until)
    assert np.all(real >= p)
    assert np.all(np.diff(real) >= 0)
    assert np.all(real <= np.minimum(1, p * (until.max - until.min + 1) / sequential.SHARE)), (
        "Bonferroni over the looks"
    )


@pytest.mark.slow
def test_the_level_of_an_interval_and_its_p_value_are_one_map() -> None:
    for level in (0.5, 0.9, 0.95, 0.99, 0.9999):
        nominal = sequential.nominal_level(rule(), level)
        assert nominal > level
        assert sequential.true_p(1 - nominal, rule()) == pytest.approx(1 - level, rel=1e-6)


def test_what_has_no_p_value_gets_none() -> None:
    assert sequential.true_p([math.nan, 0.0, 1.0], rule()) == pytest.approx([math.nan, 0.0, 1.0], nan_ok=True)
    assert sequential.true_p([], rule()).shape == (0,)
    assert sequential.true_p(0.01, rule()).shape == ()


def test_a_one_sided_p_value_is_half_of_the_two_sided_one() -> None:
    one_sided = sequential.true_p_one_sided([0.001, 0.02, 0.7, math.nan], rule())
    assert one_sided[:2] == pytest.approx(sequential.true_p([0.002, 0.04], rule()) / 2)
    assert one_sided[2] == 0.7
    assert math.isnan(one_sided[3])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="a level lies between 0 and 1"):
        sequential.nominal_level(rule(), level)


@pytest.mark.long
def test_a_narrower_look_needs_no_new_calibration_and_more_looks_need_more() -> None:
    assert sequential.nominal_level(rule(half_width=0.2), 0.95) == sequential.nominal_level(rule(), 0.95)
    levels = [sequential.nominal_level(rule(5, most), 0.95) for most in (6, 10, 40)]
    assert levels == sorted(levels)
    assert sequential.nominal_level(rule(3, 40), 0.95) > sequential.nominal_level(rule(10, 40), 0.95)


# --- the rule ---------------------------------------------------------------------------------------------------------


def test_half_widths_are_those_of_the_estimate_after_each_block() -> None:
    values = np.random.default_rng(8).gamma(3, 2, (2, 12))
    widths = sequential.half_widths(values, 0.97)
    for row, sample in enumerate(values):
        for n in range(2, 13):
            told = estimate(sample[:n], level=0.97, signed=True)
            assert widths[row, n - 1] == pytest.approx((told.high - told.low) / 2, rel=1e-9)
    assert np.all(np.isinf(widths[:, 0]))


def test_what_was_decided_after_a_block_does_not_change_with_later_blocks() -> None:
    values = 1 + 0.05 * np.random.default_rng(9).standard_normal((50, 40))
    whole = sequential.precise(values, rule())
    for n in (5, 11, 40):
        assert np.array_equal(sequential.precise(values[:, :n], rule()), whole[:, :n])


def test_nothing_is_precise_before_min_and_a_constant_sample_is_at_min() -> None:
    for constant in (3.5e9, 0.0):
        assert sequential.precise([constant] * 7, rule(5)).tolist() == [False] * 4 + [True] * 3


def test_a_missing_value_is_never_precise() -> None:
    assert not sequential.precise([1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0], rule()).any()


def test_a_factor_either_way_is_what_precise_means_of_a_ratio() -> None:
    logs = np.array([0.04, -0.04, 0.04, -0.04, 0.04, -0.04])
    half = float(sequential.allowed_half_widths(logs, sequential.nominal_level(rule(), 0.95))[-1])
    level = sequential.nominal_level(rule(), 0.95)
    assert sequential.precise_ratio(logs, rule(half_width=math.expm1(half) * 1.001), level)[-1]
    assert not sequential.precise_ratio(logs, rule(half_width=math.expm1(half) * 0.999), level)[-1]


def test_cells_stop_when_the_last_of_them_is_precise() -> None:
    rng = np.random.default_rng(10)
    calm, restless = 1 + 0.001 * rng.standard_normal(40), 1 + 0.04 * rng.standard_normal(40)
    both = np.array([calm, restless])
    last = int(sequential.precise(both, rule())[1].argmax()) + 1
    assert sequential.blocks_taken([calm], rule()) == 5
    assert 5 < last < 40
    assert sequential.blocks_taken(both, rule()) == last
    assert sequential.blocks_taken([restless, 1 + 10 * rng.standard_normal(40)], rule()) == 40


def test_how_many_trials_it_takes_beside_a_design_that_knew_the_spread_beforehand() -> None:
    """At a half width that ten blocks would give a fixed design of known spread, a single cell takes a bit more than
    twice as many: the price of not knowing, of looking, of the margin, and of blocks that may be like their neighbours.
    Where the spread is small it stops at `min`."""
    cv, n_known = 0.05, 10
    half_width = 1.96 * cv / math.sqrt(n_known)
    values = normal(cv)(np.random.default_rng(11), (8000, 1, 40))
    taken = sequential.blocks_taken(values, rule(half_width=half_width))
    assert taken.mean() == pytest.approx(2.25 * n_known, rel=0.1)
    calm = sequential.blocks_taken(
        normal(cv / 10)(np.random.default_rng(12), (500, 1, 40)), rule(half_width=half_width)
    )
    assert np.all(calm == 5)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_half_widths_of_very_small_and_very_large_values(size: float) -> None:
    usual = sequential.half_widths([1.0, 2.0, 4.0], 0.95)
    assert sequential.half_widths([1 * size, 2 * size, 4 * size], 0.95)[1:] / size == pytest.approx(usual[1:])
