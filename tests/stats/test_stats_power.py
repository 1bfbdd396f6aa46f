"""How many blocks it takes: against published sizes, other implementations, and simulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.stats import power
from repetition import others_long
from rows import every_row
from scipy import stats
from scipy.integrate import quad

SIZES, LEVELS = (2, 3, 5, 10, 40, 200), (0.90, 0.95, 1 - 0.05 / 40)


def by_quadrature(effect: float, n: int, level: float) -> float:
    """Power of the upper test, integrated over the spread that is estimated: no noncentral t in it."""
    critical = stats.t.isf((1 - level) / 2, n - 1)

    def given_share(share: float) -> float:
        spread = math.sqrt(stats.chi2.ppf(share, n - 1) / (n - 1))
        return float(stats.norm.cdf(effect * math.sqrt(n) - critical * spread))

    return float(quad(given_share, 0, 1, limit=400)[0])


@pytest.mark.parametrize(
    ("n", "level"),
    others_long(product(SIZES, LEVELS), kept=set(zip(SIZES, LEVELS * 2, strict=True))),
)
@pytest.mark.slow
def test_power_is_what_integrating_over_the_spread_gives(n: int, level: float) -> None:
    for wanted in (0.3, 0.5, 0.9):
        effect = float(power.smallest_effects(np.array(n), power=wanted, level=level))
        assert by_quadrature(effect, n, level) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
def test_power_of_a_published_example() -> None:
    """Manual of G*Power 3.1, matched pairs: dz = 0.4216370, n = 50, two-sided 5 %: power 0.832114."""
    reached = [float(power.needed_blocks(math.exp(0.4216370), 1.0, power=share)) for share in (0.832112, 0.832116)]
    assert reached == [50, 51]


@pytest.mark.parametrize(("d", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_needed_blocks_of_published_tables(d: float, n: int) -> None:
    """Small, medium and large effect of Cohen (1988) in a paired t test, 80 %, two-sided 5 %: 199, 34 and 15 pairs."""
    assert float(power.needed_blocks(math.exp(d), 1.0)) == n


@pytest.mark.slow
@pytest.mark.xdist_group("statsmodels")
def test_power_as_in_statsmodels() -> None:
    reference = pytest.importorskip("statsmodels.stats.power", reason="statsmodels is not installed").TTestPower()
    for n in (3, 5, 10, 30, 100):
        for wanted in (0.2, 0.5, 0.95):
            effect = float(power.smallest_effects(np.array(n), power=wanted))
            upper = reference.power(effect_size=effect, nobs=n, alpha=0.025, alternative="larger")
            assert upper == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "level"),
    others_long(product((0.5, 0.8, 0.95), (0.5, 0.95, 0.999)), kept={(0.8, 0.95)}),
)
def test_needed_blocks_are_the_fewest(wanted: float, level: float) -> None:
    for effect in (0.15, 0.5, 1.0, 3.0, 40.0):
        n = int(power.needed_blocks(math.exp(effect), 1.0, power=wanted, level=level))
        assert by_quadrature(effect, n, level) >= wanted
        assert n == 2 or by_quadrature(effect, n - 1, level) < wanted


@pytest.mark.slow
@given(st.integers(2, power.MOST_BLOCKS), st.floats(0.001, 0.5))
def test_the_smallest_ratio_of_a_design_needs_that_design(n: int, log_sd: float) -> None:
    ratio = float(power.smallest_ratio(n, log_sd))
    if math.isfinite(ratio):
        assert float(power.needed_blocks(ratio * (1 + 1e-9), log_sd)) == n
        assert float(power.needed_blocks(1 / (ratio * (1 + 1e-9)), log_sd)) == n


@every_row(
    ("ratio", "log_sd", "needed"),
    [
        (1.0, 0.05, math.inf),
        (1.0001, 0.5, math.inf),
        (1.5, 0.0, 2),
        (100.0, 1e-9, 2),
        (math.nan, 0.1, math.nan),
        (1.1, math.nan, math.nan),
        (1.0, 0.0, math.nan),
    ],
)
def test_degenerate_input(ratio: float, log_sd: float, needed: float) -> None:
    assert float(power.needed_blocks(ratio, log_sd)) == pytest.approx(needed, nan_ok=True)


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-7])
def test_a_limit_leaves_out_what_needs_more_and_changes_no_other_figure(level: float) -> None:
    effects = np.geomspace(0.01, 30, 200)
    whole = power.needed_blocks(np.exp(effects), 1.0, level=level)
    limits = np.resize([2, 20, 200], len(effects))
    limited = power.needed_blocks(np.exp(effects), 1.0, level=level, most=limits)
    assert limited.tolist() == np.where(whole > limits, math.inf, whole).tolist()
    assert 0 < np.count_nonzero(np.isinf(limited)) < len(effects)


def test_what_makes_no_test_has_no_figure() -> None:
    assert np.isnan(power.smallest_ratio([0, 1, math.nan], 0.05)).all()
    assert math.isnan(float(power.smallest_ratio(5, math.nan)))
    assert float(power.smallest_ratio(5, 0.0)) == 1.0
    assert float(power.smallest_ratio(2, 1000.0)) == math.inf
    assert math.isnan(power.power_to_show_same(1, 0.05, 0.02))
    assert math.isnan(power.blocks_to_show_same(math.nan, 0.02))


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_share(level: float) -> None:
    for call in (
        lambda: power.needed_blocks(1.1, 0.1, level=level),
        lambda: power.blocks_for_half_width(0.1, 0.03, level=level),
        lambda: power.power_to_show_same(5, 0.1, 0.03, level=level),
    ):
        with pytest.raises(ValueError, match="level lies between 0 and 1"):
            call()


def test_what_is_no_ratio_and_no_width_is_refused() -> None:
    with pytest.raises(ValueError, match="a ratio is positive"):
        power.needed_blocks([1.1, 0.0], 0.1)
    with pytest.raises(ValueError, match="a half width is positive, got 0"):
        power.blocks_for_half_width(0.1, 0)
    with pytest.raises(ValueError, match="power lies between 0 and 1, got 80"):
        power.needed_blocks(1.1, 0.1, power=80)


@pytest.mark.slow
def test_very_strict_levels_of_few_blocks_are_computed_and_not_hung_on() -> None:
    """80,000 comparisons by Bonferroni: the critical value of one degree of freedom is a million."""
    level = 1 - 0.05 / 80_000
    effects = power.smallest_effects(np.array([*range(2, 100), 500, power.MOST_BLOCKS]), level=level)
    assert np.all(np.diff(effects) < 0)
    assert by_quadrature(float(effects[1]), 3, level) == pytest.approx(0.8, abs=1e-6)
    # One degree of freedom: the power is the chance that |z| stays below effect * sqrt(2) / critical.
    critical = float(stats.t.isf((1 - level) / 2, 1))
    assert math.erf(effects[0] / critical) == pytest.approx(0.8, abs=1e-4)


# ── that there is no difference ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("cv", "n", "published"), [(0.20, 20, 0.834680), (0.25, 28, 0.807439), (0.30, 40, 0.815845)])
def test_power_of_equivalence_of_published_sizes(cv: float, n: int, published: float) -> None:
    """Sizes of bioequivalence studies (2x2 crossover, true ratio 0.95, limits 0.80 to 1.25) by R's PowerTOST, exact
    method: n - 2 degrees of freedom, and a standard error of sqrt(2/n) of the spread within a subject."""
    within = math.sqrt(math.log1p(cv**2))
    found = power.power_of_equivalence(within * math.sqrt(2 / n), n - 2, math.log(1.25), math.log(0.95), 0.05)
    assert found == pytest.approx(published, abs=1e-6)


def test_power_of_equivalence_by_simulation() -> None:
    rng, n, spread = np.random.default_rng(20), 12, 0.02
    logs = rng.normal(math.log(1.004), spread, (20_000, n))
    se = logs.std(axis=1, ddof=1) / math.sqrt(n)
    p = stats.t.sf((math.log1p(0.02) - np.abs(logs.mean(axis=1))) / se, n - 1)
    shown = int((p < 0.05).sum())
    expected = power.power_to_show_same(n, spread, 0.02, ratio=1.004)
    assert stats.binomtest(shown, len(logs), expected).pvalue > 0.001


def test_blocks_to_show_same_are_the_fewest() -> None:
    for spread in (0.01, 0.03, 0.1):
        n = int(power.blocks_to_show_same(spread, 0.02))
        assert power.power_to_show_same(n, spread, 0.02) >= 0.8 > power.power_to_show_same(n - 1, spread, 0.02)
    assert power.blocks_to_show_same(0.05, 0.02, ratio=1.03) == math.inf
    assert power.blocks_to_show_same(0.0, 0.02) == 2
    assert power.blocks_to_show_same(0.0, 0.02, ratio=1.02) == math.inf


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_blocks_for_a_half_width_are_the_fewest() -> None:
    for cv in (0.001, 0.01, 0.05, 0.2):
        n = int(power.blocks_for_half_width(cv, 0.03))
        # The upper end is the farther one: mean * exp(half).
        half = [stats.t.ppf(0.975, k - 1) * cv / math.sqrt(k) if k > 1 else math.inf for k in (n - 1, n)]
        width = [math.expm1(each) for each in half]
        assert width[1] <= 0.03
        assert n == 2 or width[0] > 0.03


def test_blocks_for_a_half_width_of_what_is_not_known() -> None:
    found = power.blocks_for_half_width([0.0, math.nan, 50.0], 0.03)
    assert found[0] == 2
    assert math.isnan(found[1])
    assert found[2] == math.inf
