"""Geometric mean, median and harmonic mean with their intervals: by other routes, simulated, on degenerate input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.stats import STATISTICS, estimate, estimate_samples
from mountlab.stats.estimates import NO_INTERVAL, order_statistic
from rows import every_row
from scipy import stats

POSITIVE = st.lists(st.floats(min_value=1e-3, max_value=1e9), min_size=2, max_size=12)
EACH = pytest.mark.parametrize("name", STATISTICS)


def allowed_misses(trials: int, rate: float) -> int:
    """More misses than this come up once in a thousand times when the rate is as claimed."""
    return int(stats.binom.ppf(0.999, trials, rate))


# --- geometric mean ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(POSITIVE, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_geometric_mean_is_that_of_scipy_with_the_t_interval_of_logs(values: list[float], level: float) -> None:
    ours = estimate(values, level=level, statistic="geometric")
    assert ours.mean == pytest.approx(stats.gmean(values), rel=1e-12)
    logs = np.log(values)
    if stats.sem(logs) > 1e-9:
        low, high = stats.t.interval(level, len(values) - 1, loc=logs.mean(), scale=stats.sem(logs))
        with np.errstate(over="ignore"):
            assert (ours.low, ours.high) == pytest.approx((np.exp(low), np.exp(high)), rel=1e-6)


def test_the_geometric_mean_of_times_is_one_over_that_of_rates() -> None:
    rates = [3.0, 5.0, 4.0, 8.0]
    forwards, backwards = (estimate(each, statistic="geometric") for each in (rates, [1 / rate for rate in rates]))
    assert backwards.mean == pytest.approx(1 / forwards.mean, rel=1e-14)
    assert (backwards.low, backwards.high) == pytest.approx((1 / forwards.high, 1 / forwards.low), rel=1e-12)


# --- harmonic mean ----------------------------------------------------------------------------------------------------


def test_the_harmonic_mean_is_all_work_divided_by_all_time() -> None:
    """1 GB at 100 MB/s and 1 GB at 50 MB/s: 2 GB in 10 + 20 s. The mean, 75 MB/s, would have it done in 26.7 s."""
    ours = estimate([100e6, 50e6], statistic="harmonic")
    assert ours.mean == pytest.approx(2e9 / (1e9 / 100e6 + 1e9 / 50e6), rel=1e-14)
    assert ours.mean == pytest.approx(66.67e6, rel=1e-4)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(POSITIVE)
def test_the_harmonic_mean_is_that_of_scipy_and_below_the_others(values: list[float]) -> None:
    ours = estimate(values, statistic="harmonic").mean
    assert ours == pytest.approx(stats.hmean(values), rel=1e-12)
    assert ours <= estimate(values, statistic="geometric").mean * (1 + 1e-12)
    assert ours <= estimate(values).mean * (1 + 1e-12)


def test_the_end_points_are_those_of_the_times_transformed_back_and_never_a_half_width() -> None:
    """Trap: 'harmonic mean 105.4 +- 642.8'."""
    rates = [105.0, 98.0, 112.0, 101.0]
    ours, times = estimate(rates, statistic="harmonic"), estimate([1 / rate for rate in rates])
    assert (ours.low, ours.high) == pytest.approx((1 / times.high, 1 / times.low), rel=1e-12)
    assert ours.high - ours.mean > ours.mean - ours.low


def test_a_rate_of_times_that_vary_much_has_an_upper_bound() -> None:
    ours = estimate([1.0, 100.0, 3.0], statistic="harmonic")
    assert 0 < ours.low < ours.mean < ours.high < math.inf


# --- median -----------------------------------------------------------------------------------------------------------


@every_row(
    ("n", "rank"),
    [(2, 0), (5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18)],
)
def test_ranks_are_those_of_printed_tables(n: int, rank: int) -> None:
    """95 % intervals of a median, as tables of the sign test have them: n = 10 takes the 2nd and the 9th value."""
    assert order_statistic(n, 0.95) == rank


@every_row("n", [6, 7, 11, 30, 101])
@every_row("level", [0.8, 0.95, 0.99])
def test_the_chance_of_enclosing_the_median_is_the_level_or_just_above(n: int, level: float) -> None:
    """Added up from binomial coefficients in whole numbers."""
    rank = order_statistic(n, level)

    def outside(k: int) -> float:
        return 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    assert outside(rank) <= 1 - level < outside(rank + 1)


def test_a_worked_example() -> None:
    """Ten values: the 2nd and the 9th in order of size enclose the median with a chance of 97.9 %."""
    ours = estimate([31, 7, 12, 45, 22, 9, 18, 27, 14, 60], statistic="median")
    assert (ours.low, ours.mean, ours.high, ours.n) == (9, 20, 45, 10)
    assert ours.method == "median, order statistics"


@every_row("n", [2, 3, 4, 5])
def test_where_n_is_too_small_the_median_has_an_interval_without_end_and_says_so(n: int) -> None:
    ours = estimate([float(value) for value in range(n)], statistic="median")
    signed = estimate([float(value) for value in range(-1, n - 1)], statistic="median")
    assert (ours.low, ours.high) == (0.0, math.inf)
    assert (signed.low, signed.high) == (-math.inf, math.inf)
    assert ours.method == "median, order statistics: n is too small for a finite interval"
    assert ours.method.endswith(NO_INTERVAL)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(st.lists(st.floats(1e-3, 1e6), min_size=6, max_size=30, unique=True))
def test_the_median_and_its_interval_follow_any_rising_change_of_scale(values: list[float]) -> None:
    ours, logs = estimate(values, statistic="median"), estimate(list(np.log(values)), statistic="median")
    assert (math.log(ours.low), math.log(ours.high)) == pytest.approx((logs.low, logs.high), rel=1e-12, abs=1e-12)


# --- what holds for all of them ---------------------------------------------------------------------------------------


@EACH
def test_every_statistic_says_what_it_is_and_when_it_is_right(name: str) -> None:
    """A new statistic is one entry of STATISTICS; this fails until it is complete."""
    entry = STATISTICS[name]
    assert entry.noun
    assert entry.noun[0].isupper()
    assert entry.noun.lower() in f"{entry.method} "
    assert len(entry.right) > 20
    rows = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])
    figure, low, high = entry.interval(rows, 0.95, np.zeros(1), np.zeros(1, dtype=bool), np.ones(1))
    assert figure.shape == low.shape == high.shape == (1,)
    assert low[0] < figure[0] < high[0]


@EACH
def test_a_unit_scales_figure_and_bounds(name: str) -> None:
    values = [3.0, 4.0, 3.5, 5.0, 4.4, 3.9, 4.1]
    ours, scaled = (estimate([f * v for v in values], statistic=name) for f in (1.0, 1000.0))
    wanted = [1000 * part for part in (ours.low, ours.mean, ours.high)]
    assert (scaled.low, scaled.mean, scaled.high) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
@EACH
@settings(deadline=None)  # on a busy machine
@given(data=st.data())
def test_the_order_of_values_does_not_matter(name: str, data: st.DataObject) -> None:
    values = data.draw(st.permutations([3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.3]))
    ours, other = estimate(values, statistic=name), estimate(sorted(values), statistic=name)
    assert (ours.low, ours.mean, ours.high) == pytest.approx((other.low, other.mean, other.high), rel=1e-12)


@EACH
@pytest.mark.parametrize("value", [7.5, 0.1, 1e9 / 3])
def test_a_constant_sample_has_the_interval_of_its_step_and_none_without_one(name: str, value: float) -> None:
    """The error is the same in all trials: seven of them are no better than two, but for the quantile of t."""
    ours, step = estimate([value] * 7, statistic=name), value * 1e-6
    assert ours.mean == pytest.approx(value, rel=1e-14)
    assert (ours.sd, ours.cv) == (0.0, 0.0)
    assert math.isnan(ours.low)
    assert math.isnan(ours.high)
    rounded = estimate([value] * 7, statistic=name, step=step)
    half = step / 2 if name == "median" else 2.446912 * step / math.sqrt(12)
    assert (rounded.low, rounded.high) == pytest.approx((value - half, value + half), rel=1e-10)


@EACH
def test_no_value_gives_nothing_and_one_value_gives_no_interval(name: str) -> None:
    none, one = estimate([], statistic=name), estimate([5.0], statistic=name)
    assert (none.n, one.n, one.mean) == (0, 1, 5.0)
    assert math.isnan(none.mean)
    for each in (none, one):
        assert all(math.isnan(part) for part in (each.low, each.high, each.sd, each.cv))


@pytest.mark.parametrize("name", [name for name, each in STATISTICS.items() if each.positive])
def test_what_needs_positive_values_refuses_others(name: str) -> None:
    with pytest.raises(ValueError, match=r"(geometric|harmonic) mean needs positive values"):
        estimate([1.0, 0.0], statistic=name)
    many = estimate_samples(np.array([1.0, 0.0, 2.0, 4.0]), np.array([2, 2]), level=0.95, statistic=name)
    assert math.isnan(many.figure[0])
    assert many.figure[1] > 0


@EACH
@pytest.mark.parametrize("n", [6, 12])
def test_a_95_percent_interval_covers_95_percent_of_what_it_is_about(name: str, n: int) -> None:
    """Of data whose true figure is known, and whose shape the method can bear: rates whose times are normal for the
    harmonic mean, lognormal values for the geometric mean and the median, normal ones for the mean."""
    rng = np.random.default_rng(n)
    normal = rng.normal(0.0, 0.1, size=(4000, n))
    rows, truth = {
        "mean": (5 + normal, 5.0),
        "geometric": (np.exp(normal), 1.0),
        "median": (np.exp(5 * normal), 1.0),
        "harmonic": (1 / (1 + normal), 1.0),
    }[name]
    found = estimate_samples(rows.ravel(), np.full(len(rows), n), level=0.95, statistic=name)
    missed = int(np.count_nonzero((found.low > truth) | (found.high < truth)))
    assert missed <= allowed_misses(4000, 0.05)
    assert missed > 0


@EACH
@settings(deadline=None)  # on a busy machine
@given(data=st.data())
@pytest.mark.slow
def test_many_samples_at_once_give_what_each_gives_alone(name: str, data: st.DataObject) -> None:
    samples = data.draw(st.lists(st.lists(st.floats(1e-3, 1e6), max_size=9), min_size=1, max_size=8))
    sizes = np.array([len(sample) for sample in samples])
    many = estimate_samples(np.array([v for s in samples for v in s], dtype=float), sizes, level=0.9, statistic=name)
    for place, sample in enumerate(samples):
        one = estimate(sample, level=0.9, statistic=name)
        together = [column[place] for column in (many.figure, many.low, many.high, many.sd, many.cv)]
        alone = [one.mean, one.low, one.high, one.sd, one.cv]
        assert together == pytest.approx(alone, rel=1e-12, nan_ok=True)
        assert (many.n[place], many.method[place]) == (one.n, one.method)


def test_after_a_stopping_rule_the_interval_is_wider_than_the_level_that_it_claims() -> None:
    plain, honest = estimate([9.0, 10.0, 11.0]), estimate([9.0, 10.0, 11.0], within=0.98)
    assert honest.level == plain.level == 0.95
    assert honest.high == estimate([9.0, 10.0, 11.0], level=0.98).high > plain.high


@every_row("size", [1e-300, 1e-160, 1e160, 1e300])
def test_very_small_and_very_large_values_have_the_interval_of_others(size: float) -> None:
    usual, scaled = estimate([1.0, 2.0, 3.0]), estimate([1 * size, 2 * size, 3 * size])
    assert (scaled.low / size, scaled.high / size, scaled.sd / size) == pytest.approx((usual.low, usual.high, 1.0))
    assert (scaled.method, scaled.cv) == (usual.method, pytest.approx(usual.cv))
