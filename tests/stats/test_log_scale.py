"""Intervals of positive quantities: they never reach zero, follow the unit, are t intervals where trials agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mountlab.stats import STATISTICS, estimate, estimate_of_moments
from mountlab.stats.estimates import LOG_METHOD, T_METHOD, estimate_samples
from rows import every_row

POSITIVE = st.lists(st.floats(min_value=1e-9, max_value=1e12), min_size=2, max_size=12)
NOT_NEGATIVE = st.lists(st.integers(0, 10**6).map(float), min_size=2, max_size=12)
LEVELS = st.sampled_from([0.8, 0.95, 0.99])


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
@given(values=POSITIVE, level=LEVELS, step=st.sampled_from([0.0, 1e-3, 1.0]))
@example(values=[1.0] * 8 + [2**-14], level=0.8, step=1.0)  # the shortest time is above 0, and its rate beyond floats
def test_the_interval_of_a_positive_sample_is_positive_and_holds_its_figure(
    name: str, values: list[float], level: float, step: float
) -> None:
    ours = estimate(values, level=level, statistic=name, step=step)
    if not math.isnan(ours.low):
        close = 1 + 1e-12
        assert 0 <= ours.low <= ours.mean * close
        assert ours.mean <= ours.high * close
        beyond_floats = math.isinf(ours.high)  # such an interval is wider than the numbers of a computer
        assert name == "median" or ours.low > 0 or step > ours.mean or beyond_floats


@given(NOT_NEGATIVE, LEVELS)
def test_a_sample_with_zeros_has_an_interval_that_does_not_go_below_them(values: list[float], level: float) -> None:
    ours = estimate(values, level=level)
    if ours.sd > 0:
        assert 0 < ours.low < ours.mean < ours.high
        assert ours.method == LOG_METHOD


@given(POSITIVE, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    ours, scaled = estimate(values), estimate([value * factor for value in values])
    if ours.cv > 1e-9:
        bounds = (ours.low * factor, ours.high * factor)
        assert (scaled.low, scaled.high) == pytest.approx(bounds, rel=1e-6)


@given(POSITIVE)
def test_both_ends_are_off_by_the_same_factor(values: list[float]) -> None:
    ours = estimate(values)
    if ours.cv > 1e-9:
        assert ours.mean / ours.low == pytest.approx(ours.high / ours.mean, rel=1e-9)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_where_trials_vary_little_it_is_the_t_interval(n: int) -> None:
    """Ends differ by half of the square of the relative half width: at 1 % by 0.005 % of the mean."""
    values = np.random.default_rng(n).normal(100, 0.3, n).tolist()
    ours, plain = estimate(values), estimate(values, signed=True)
    half = (plain.high - plain.low) / 2 / plain.mean
    assert half < 0.02
    for end, other in ((ours.low, plain.low), (ours.high, plain.high)):
        assert end == pytest.approx(other, rel=0.6 * half**2)
        assert end > other


def test_zeros_alone_have_an_interval_above_zero_where_the_step_is_known() -> None:
    """A count that was 0 each time, of a tool that rounds to whole ones."""
    ours = estimate([0.0] * 5, step=1.0)
    assert (ours.low, ours.mean, ours.method) == (0.0, 0.0, T_METHOD)
    assert ours.high == pytest.approx(2.77645 / math.sqrt(12), rel=1e-5)


def test_what_may_be_negative_has_the_plain_interval() -> None:
    """Logarithms, differences: said by the caller, or seen in a value."""
    seen = estimate([-1.0, 2.0, 1.0])
    assert seen.low < 0
    assert seen.method == T_METHOD
    assert estimate([0.1, 0.2, 0.6], signed=True).low < 0
    assert estimate([-1.0, -2.0, -1.5]).mean == -1.5
    half = estimate([1.0, 2.0, 1.5], signed=True)
    turned = estimate([-1.0, -2.0, -1.5])
    assert (turned.low, turned.high) == pytest.approx((-half.high, -half.low))


def test_moments_give_the_interval_of_their_sample() -> None:
    ours = estimate([1.0, 2.0, 6.0])
    again = estimate_of_moments(ours.mean, ours.sd, 3)
    assert (again.low, again.high, again.method) == pytest.approx((ours.low, ours.high, LOG_METHOD))
    below = estimate_of_moments(-1.0, 0.5, 3)
    assert below.low < -1.0 < below.high
    assert below.method == T_METHOD


@pytest.mark.slow
@every_row("n", [3, 5, 10, 20])
@every_row(("sigma", "least"), [(0.05, 0.945), (0.3, 0.935), (0.6, 0.92), (1.0, 0.875)])
def test_lognormal_trials_are_covered_better_than_by_the_t_interval(n: int, sigma: float, least: float) -> None:
    """The mean of exp(sigma z) is exp(sigma^2 / 2). 8,000 samples: 0.25 points of standard error at 95 %."""
    samples = 8_000
    values = np.random.default_rng(n).lognormal(0, sigma, (samples, n)).ravel()
    truth, sizes = math.exp(sigma**2 / 2), np.full(samples, n)
    ours = estimate_samples(values, sizes, level=0.95)
    plain = estimate_samples(values, sizes, level=0.95, signed=np.ones(samples, dtype=bool))
    covered, usual = (np.mean((each.low <= truth) & (truth <= each.high)) for each in (ours, plain))
    assert covered > least - 0.0075
    assert covered >= usual
