"""The tests of shape and order: against enumeration, other libraries, printed tables and worked examples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.stats import shape
from mountlab.stats.shape import autocorrelated, drift, outliers, steady, step, two_modes
from mountlab_dev.calibration.order import p_of_run
from numpy.typing import NDArray
from repetition import few_then_many, others_long
from rows import every_row
from scipy import optimize, stats

NILE = [
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
]  # fmt: skip
"""Yearly flow of the Nile at Aswan, 1871 to 1970 (Cobb 1978): the textbook series with a change point, 1898/1899."""
BARTELS = [528, 348, 264, -20, -167, 575, 410, -4, 430, -122]
"""Changes in stock levels, the worked example of Bartels (1982)."""
HIDDEN_BY_EACH_OTHER = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
"""Two outliers that mask each other from the rule of three standard deviations (Iglewicz and Hoaglin 1993)."""

INTEGERS = st.lists(st.integers(-1000, 1000).map(float), min_size=10, max_size=14)
P_VALUES: dict[str, Callable[[list[float]], float]] = {
    "drift": drift,
    "step": lambda values: step(values)[1],
    "autocorrelated": autocorrelated,
    "two_modes": two_modes,
}
each_test = pytest.mark.parametrize("name", P_VALUES)


def orders(n: int) -> NDArray[np.float64]:
    return np.array(list(itertools.permutations(range(n))), dtype=float)


def as_expected(count: int, trials: int, rate: float) -> bool:
    """Whether a count is within what chance does to `rate` in all but one of 500 cases."""
    low, high = stats.binom.interval(0.998, trials, rate)
    return bool(low <= count <= high)


# --- outliers ---------------------------------------------------------------------------------------------------------


def test_outliers_that_mask_each_other_are_found() -> None:
    z = np.abs(HIDDEN_BY_EACH_OTHER - np.mean(HIDDEN_BY_EACH_OTHER)) / np.std(HIDDEN_BY_EACH_OTHER, ddof=1)
    assert z.max() < 2
    assert outliers(HIDDEN_BY_EACH_OTHER) == [8, 9]


@pytest.mark.parametrize("n", [5, 10, 30])
def test_at_most_one_normal_sample_in_a_hundred_has_an_outlier(n: int) -> None:
    """Trap: at 3.5, which was meant for long series, it is one in five at n = 5 and one in eight at n = 10."""
    rows = np.random.default_rng(n).normal(100, 5, (20_000, n))
    assert as_expected(int(shape.outlier_mask(rows).any(axis=1).sum()), 20_000, 0.01)
    away = np.abs(rows - np.median(rows, axis=1, keepdims=True))
    assert (0.6745 * away > 3.5 * np.median(away, axis=1, keepdims=True)).any(axis=1).mean() > 0.08


@pytest.mark.parametrize("n", others_long(range(5, 21), kept={5, 20}))
def test_the_limits_that_are_kept_are_those_of_the_simulation(n: int) -> None:
    assert shape._outlier_limit(n) == pytest.approx(shape._simulated_outlier_limit(n), abs=5e-4)


@pytest.mark.slow
def test_in_a_long_series_nothing_is_an_outlier_below_the_published_limit() -> None:
    """A modified z of 3.5 (Iglewicz and Hoaglin), however many values there are."""
    values = stats.norm.ppf(np.linspace(0.01, 0.99, 2000)).tolist()
    assert outliers([*values, 3.3]) == []
    assert outliers([*values, 8.0]) == [2000]


def test_few_values_or_mostly_equal_ones_have_no_outliers() -> None:
    assert outliers([]) == []
    assert outliers([1, 1.1, 0.9, 50]) == []
    assert outliers([1, 1, 1, 1, 1, 9]) == []
    assert outliers([3.0] * 10) == []


# --- drift ------------------------------------------------------------------------------------------------------------


def block(*values: float, turns: Sequence[int] = ()) -> shape.BlockOrder:
    return shape.BlockOrder(np.array(values) - np.mean(values), np.array(turns or [0] * len(values)))


@every_row(
    "ran, share",
    [
        ([block(3, 2, 1)], 1 / 6),
        ([block(3, 2, 1), block(2, 1)], 1 / 12),
        ([block(1, 2, 3)], 1.0),
        ([block(4, 3, 2, 1, turns=(0, 0, 1, 1))], 1 / 8),
    ],
    ids=["one order of six", "of two blocks", "against the fall", "whole turns change places"],
)
def test_the_p_of_drift_of_few_blocks_is_that_of_their_order_times_that_inside(
    ran: list[shape.BlockOrder], share: float
) -> None:
    """2 / 4! for four falling levels; the share of the orders that the design could have drawn, by counting them."""
    assert shape.drift_of_few([4, 3, 2, 1], ran) == pytest.approx(2 / 24 * share, rel=0.25)
    assert shape.drift_of_few([4, 3, 1, 2], ran) == 1.0
    assert math.isnan(shape.drift_of_few([3, 2, 1], ran))


@pytest.mark.parametrize(("spread", "runs"), others_long([(0.05, 250), (0.0, 2000), (0.05, 2000)], kept=[(0.05, 250)]))
def test_few_blocks_without_a_drift_raise_no_more_alarms_than_they_may(spread: float, runs: int) -> None:
    """At 5 %, which both numbers of blocks can reach; blocks that differ as wholes make no difference."""
    rng = np.random.default_rng(20261128)
    alarms = sum(p_of_run(rng, 0.0, spread, blocks=4, cells=6) < 0.05 for _ in range(runs))
    assert stats.binom.sf(alarms - 1, runs, 0.05) > 1e-3
    assert all(p_of_run(rng, 0.85, spread, blocks=5, cells=20) < 0.01 for _ in range(20)), "from 2 to 0.3 of the mean"


@pytest.mark.parametrize("n", [6, 7])
def test_the_p_of_drift_is_the_share_of_orders_with_as_many_inversions(n: int) -> None:
    every = orders(n)
    scores = np.array([sum(np.sign(b - a) for a, b in itertools.combinations(row, 2)) for row in every])
    p = shape.drift_p(every)
    for score in range(n % 2, n * (n - 1) // 2 + 1):
        if score in scores:
            expected = np.mean(np.abs(scores) >= score)
            assert p[scores == score] == pytest.approx(expected)


@every_row(("n", "method"), [(6, "exact"), (10, "exact"), (30, "exact"), (60, "exact")])
def test_the_p_of_drift_is_that_of_scipy(n: int, method: str) -> None:
    rows = np.random.default_rng(n).normal(size=(20, n)) + np.linspace(0, 1, n)
    theirs = [stats.kendalltau(np.arange(n), row, method=method).pvalue for row in rows]
    assert shape.drift_p(rows) == pytest.approx(theirs, rel=1e-9)


def test_a_long_series_goes_by_the_normal_distribution() -> None:
    """Mann and Kendall's z with the continuity correction; scipy has none, and for 100 values that hardly matters."""
    rows = np.random.default_rng(3).normal(size=(20, 100)) + np.linspace(0, 1, 100)
    theirs = [stats.kendalltau(np.arange(100), row, method="asymptotic").pvalue for row in rows]
    assert shape.drift_p(rows) == pytest.approx(theirs, rel=0.06)
    assert drift(NILE) < 1e-4


@pytest.mark.slow
@given(INTEGERS)
def test_drift_down_is_as_suspicious_as_drift_up(values: list[float]) -> None:
    assert drift(values[::-1]) == drift(values) == drift([-value for value in values])


def test_ties_make_drift_careful() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 4, (4000, 10)).astype(float)
    assert np.mean(shape.drift_p(rows) < 0.05) <= 0.05


# --- step -------------------------------------------------------------------------------------------------------------


def test_the_nile_fell_after_1898() -> None:
    """The change point that every text finds: 1899, index 28, was the first of the lower years."""
    index, p = step(NILE)
    assert 1871 + index == 1899
    assert p == pytest.approx(1 / 10_001)


@pytest.mark.slow
def test_the_p_of_a_step_near_the_formula_of_pettitt_for_long_series() -> None:
    rows = np.random.default_rng(7).normal(size=(200, 100))
    largest = np.array(
        [max(abs(np.sign(np.subtract.outer(row[t:], row[:t])).sum()) for t in range(1, 100)) for row in rows]
    )
    formula = 2 * np.exp(-6 * largest**2 / (100**3 + 100**2))
    ours = shape.step_p(rows)
    rare = formula < 0.2
    assert rare.sum() > 10
    assert np.all(ours[rare] <= formula[rare] + 0.005), "his formula is known to be careful"
    assert np.all(ours[rare] >= 0.5 * formula[rare] - 0.005)


def test_the_clearest_step_of_ten_trials_is_one_order_in_126() -> None:
    """Two of the 252 ways to put the five largest: all in one half."""
    index, p = step([1, 2, 3, 4, 5, 16, 17, 18, 19, 20])
    assert index == 5
    assert p == pytest.approx(2 / 252, rel=0.06)
    assert p < shape.SUSPICIOUS_P["step"], "ten trials can just show it"


@pytest.mark.parametrize("after", [3, 5, 8])
def test_the_index_is_that_of_the_first_value_after_the_change(after: int) -> None:
    values = [10.0] * after + [20.0] * (12 - after)
    assert step(values)[0] == after


# --- serial correlation -----------------------------------------------------------------------------------------------


def test_the_example_of_bartels() -> None:
    """Ranks 9 6 5 3 1 10 7 4 8 2: the squared steps sum to 169, the squared deviations to 82.5. Not rare."""
    assert 0.45 < autocorrelated(BARTELS) < 0.6


@pytest.mark.slow
def test_the_p_of_serial_correlation_is_the_share_of_orders_with_as_like_neighbours() -> None:
    every = orders(8)[::37]
    all_ratios = np.square(np.diff(orders(8), axis=1)).sum(axis=1)
    ratios = np.square(np.diff(every, axis=1)).sum(axis=1)
    expected = [np.mean(all_ratios <= ratio) for ratio in ratios]
    assert shape.autocorrelated_p(every) == pytest.approx(expected)


def test_neighbours_that_alternate_are_not_alike() -> None:
    assert autocorrelated([1, 9] * 5) > 0.95
    assert autocorrelated([1, 2, 3, 4, 5, 6, 5, 4, 3, 2]) < 0.01


# --- modes ------------------------------------------------------------------------------------------------------------


def dip_by_linear_programs(values: NDArray[np.float64]) -> float:
    """The dip from its definition: for each segment that may hold the mode, the least distance of a distribution
    function whose slope rises up to that segment and falls after it."""
    x = np.sort(values)
    n = len(x)
    difference = np.diff(np.eye(n), axis=0) / np.diff(x)[:, None]  # values at x to slopes between them
    distances = []
    for mode in range(n - 1):
        signs = np.where(np.arange(n - 2) < mode, 1.0, -1.0)[:, None]
        shape_rows = np.vstack([signs * (difference[:-1] - difference[1:]), -difference])
        near = np.vstack([np.eye(n), np.eye(n), -np.eye(n), -np.eye(n)])
        steps = np.concatenate([np.arange(1, n + 1), np.arange(n)]) / n
        rows = np.block([[shape_rows, np.zeros((len(shape_rows), 1))], [near, -np.ones((4 * n, 1))]])
        limits = np.concatenate([np.zeros(len(shape_rows)), steps, -steps])
        cost = np.append(np.zeros(n), 1.0)
        distances.append(optimize.linprog(cost, A_ub=rows, b_ub=limits, bounds=[(0, 1)] * (n + 1)).fun)
    return float(min(distances))


@pytest.mark.slow
@pytest.mark.parametrize("apart", [4.0, *(pytest.param(each, marks=pytest.mark.long) for each in (0.0, 12.0))])
def test_the_dip_is_that_of_its_definition(apart: float) -> None:
    rng = np.random.default_rng(11)
    for _ in range(4):
        values = rng.normal(size=12) + apart * (np.arange(12) % 2)
        assert shape.diptest.dipstat(values) == pytest.approx(dip_by_linear_programs(values), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("n", few_then_many(10, 30))
def test_a_flat_distribution_looks_like_two_modes_as_often_as_claimed(n: int) -> None:
    """The uniform distribution is what p is measured against; a normal one is called two modes still less often."""
    rng = np.random.default_rng(n)
    p = shape.two_modes_p(rng.random((3000, n)))
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(shape.two_modes_p(rng.normal(size=(3000, n))) < 0.05) < 0.025


def test_two_groups_far_apart_are_two_modes() -> None:
    assert two_modes([1.0, 1.1, 1.2, 1.05, 1.15, 5.0, 5.1, 5.2, 5.05, 5.15]) < 0.01
    assert two_modes([1.0, 1.1, 1.2, 1.05, 1.15, 1.12, 1.08, 1.13, 1.06, 1.11]) > 0.5


@every_row("n", [9, 10, 25])
@every_row("limit", [0.0, 0.05, 0.5, 1.0])
def test_two_modes_are_found_where_p_is_below_the_limit(n: int, limit: float) -> None:
    rng = np.random.default_rng(n)
    smooth = rng.normal(size=(40, n)) + rng.choice([0, 5], (40, n)) * rng.choice([0, 1], (40, 1))
    rows = np.vstack([smooth, smooth.round(), np.ones((2, n))])
    assert shape.has_two_modes(rows, limit).tolist() == (shape.two_modes_p(rows) < limit).tolist()


# --- what holds for all of them ---------------------------------------------------------------------------------------


@each_test
@settings(deadline=None, max_examples=10)
@given(values=INTEGERS, factor=st.sampled_from([0.25, 2.0, 1024.0]), shift=st.integers(-500, 500))
@pytest.mark.slow
def test_a_change_of_unit_changes_nothing(name: str, values: list[float], factor: float, shift: int) -> None:
    changed = [factor * value + shift for value in values]
    assert P_VALUES[name](changed) == pytest.approx(P_VALUES[name](values), rel=1e-9)
    assert outliers(changed) == outliers(values)


@each_test
@settings(deadline=None, max_examples=15)
@given(values=INTEGERS)
@pytest.mark.slow
def test_a_p_value_lies_above_0_and_up_to_1(name: str, values: list[float]) -> None:
    assert 0 <= P_VALUES[name](values) <= 1


@each_test
@pytest.mark.parametrize("n", few_then_many(10, 20))
@pytest.mark.slow
def test_independent_trials_are_called_suspicious_as_often_as_claimed(name: str, n: int) -> None:
    p = {"step": shape.step_p, "drift": shape.drift_p, "autocorrelated": shape.autocorrelated_p}.get(name)
    if p is None:  # the dip is held to a flat distribution, above
        assert np.mean(shape.two_modes_p(np.random.default_rng(n).normal(size=(2000, n))) < 0.01) < 0.01
        return
    rows = np.random.default_rng(n).lognormal(0, 0.3, (20_000, n))
    assert np.mean(p(rows) < 0.01) <= stats.binom.ppf(0.999, 20_000, 0.01) / 20_000
    assert np.mean(p(rows) < 0.05) <= stats.binom.ppf(0.999, 20_000, 0.05) / 20_000
    assert np.mean(p(rows) < 0.05) > 0.03, "a test that is never raised would be no test"


@each_test
def test_too_few_trials_say_nothing(name: str) -> None:
    fewest = shape.FEWEST[name]
    assert math.isnan(P_VALUES[name]([float(i) for i in range(fewest - 1)]))
    assert not math.isnan(P_VALUES[name]([float(i) for i in range(fewest)]))
    assert math.isnan(P_VALUES[name]([]))


def test_too_few_trials_have_no_change_point() -> None:
    assert step([1.0] * 3)[0] == 0


@each_test
def test_constant_trials_are_not_suspicious(name: str) -> None:
    assert P_VALUES[name]([7.5] * 12) == pytest.approx(1.0)
    assert step([7.5] * 12)[0] == 0


@each_test
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(name: str, bad: float) -> None:
    values = [*map(float, range(11)), bad]
    for refuses in (P_VALUES[name], outliers, steady):
        with pytest.raises(ValueError, match="values must be finite: a missing figure is left out, not NaN"):
            refuses(values)


def test_many_samples_are_rows() -> None:
    with pytest.raises(ValueError, match="samples are rows of values, all of the same length, got an array of 1 dim"):
        shape.drift_p([1.0, 2.0])


@pytest.mark.slow
def test_many_samples_at_once_are_what_each_is_alone() -> None:
    rows = np.random.default_rng(2).normal(size=(20, 11))
    for p, alone in [
        (shape.drift_p, drift),
        (shape.autocorrelated_p, autocorrelated),
        (shape.two_modes_p, two_modes),
        (shape.step_p, lambda row: step(row)[1]),
    ]:
        assert p(rows).tolist() == [alone(row) for row in rows]
    assert [list(np.flatnonzero(row)) for row in shape.outlier_mask(rows)] == [outliers(row) for row in rows]


# --- steady state -----------------------------------------------------------------------------------------------------


def test_the_rule_of_the_storage_industry_by_hand() -> None:
    """The last five: average 100, largest - smallest 8, least-squares slope 1.4, times four rounds 5.6."""
    found = steady([500, 97, 98, 101, 105, 99])
    assert (found.ok, found.rounds) == (True, 6)
    assert found.excursion == pytest.approx(0.08)
    assert found.slope == pytest.approx(4 * 1.1 / 100)


@every_row(
    ("rounds", "ok"),
    [
        ([100, 100, 100, 100, 100], True),
        ([90, 110, 90, 110, 100], True),  # 20 % apart is still within it
        ([89, 110, 90, 110, 101], False),
        ([95, 97.5, 100, 102.5, 105], True),  # a line that rises by 10 %
        ([94, 97, 100, 103, 106], False),  # within 20 %, and still rising
        ([200, 100, 100, 100, 100, 100], True),  # only the last five count
        ([100, 100, 100, 100], False),
        ([0, 0, 0, 0, 0], False),
        ([], False),
    ],
)
def test_excursion_and_slope_are_both_limited(rounds: list[float], ok: bool) -> None:
    assert steady(rounds).ok == ok


def test_too_few_rounds_and_no_work_are_unknown() -> None:
    for rounds in ([1.0, 2.0], [0.0] * 5):
        assert math.isnan(steady(rounds).excursion)
        assert math.isnan(steady(rounds).slope)


def test_the_window_can_be_another() -> None:
    assert steady([1, 100, 100, 100], window=3).ok
    assert not steady([1, 100, 100, 100], window=4).ok
    with pytest.raises(ValueError, match="a window holds at least 2 rounds, got 1"):
        steady([1, 2, 3], window=1)


@pytest.mark.slow
@given(st.lists(st.floats(1, 100), min_size=5, max_size=9), st.sampled_from([0.5, 1024.0]))
def test_a_steady_device_is_steady_in_any_unit(rounds: list[float], factor: float) -> None:
    ours, scaled = steady(rounds), steady([factor * value for value in rounds])
    assert (scaled.excursion, scaled.slope) == pytest.approx((ours.excursion, ours.slope), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [10, 30])
def test_figures_that_are_rounded_to_few_levels_have_no_modes_for_that(n: int) -> None:
    """fio's percentiles are the middles of bins: of quiet trials many are equal."""
    rows = np.round(np.random.default_rng(5).normal(64, 0.64, size=(400, n)))
    assert np.mean(shape.two_modes_p(rows) < shape.SUSPICIOUS_P["two_modes"]) < 0.05
    apart = np.round(np.concatenate([rows[:, ::2], rows[:, 1::2] + 20], axis=1))
    assert np.mean(shape.two_modes_p(apart) < shape.SUSPICIOUS_P["two_modes"]) > 0.5


# --- ties and rounding ------------------------------------------------------------------------------------------------


@every_row("values", [[1, 2, 3, 4, 5, 5], [1, 1, 2, 2, 3, 3], [3, 1, 1, 2, 5, 5, 5], [1, 1, 1, 1, 1, 2], [4] * 6])
def test_drift_with_ties_is_the_share_of_all_orders(values: list[float]) -> None:
    def rising(order: Sequence[float]) -> int:
        pairs = itertools.combinations(order, 2)
        return abs(sum((later > first) - (later < first) for first, later in pairs))

    orders = [rising(order) for order in itertools.permutations(values)]
    assert shape.drift(values) == pytest.approx(np.mean(np.array(orders) >= rising(values)), rel=1e-9)


@pytest.mark.long
def test_eight_rounded_trials_are_called_alike_as_seldom_as_all_orders_say() -> None:
    rows = np.round(np.random.default_rng(8).normal(size=(300, 8)))
    for p in (shape.autocorrelated_p(rows), shape.drift_p(rows)):
        assert np.sum(p < 0.01) <= stats.binom.ppf(0.999, 300, 0.01)


def test_a_trial_ten_times_as_large_is_outlying_though_most_are_equal() -> None:
    assert shape.outliers([20.0] * 6 + [20.5, 21.0, 22.0, 200.0]) == [9]


@every_row(
    ("values", "blind"),
    [
        ([20.0] * 9 + [21.0], True),
        ([20.0] * 8 + [21.0] * 2, True),
        ([20.0] * 10, False),
        ([20.0] * 5 + [21.0] * 5, False),
        ([20.0] * 7 + [21.0, 21.0, 24.0], False),
    ],
)
def test_one_step_of_rounding_is_no_scale(values: list[float], blind: bool) -> None:
    assert shape.outliers(values) == []
    assert shape.scaleless(values) is blind


@pytest.mark.parametrize("step", [1.0, 3.0, 6.0])
def test_rounded_normal_trials_have_no_more_outliers_than_others(step: float) -> None:
    rng = np.random.default_rng(9)
    rows = np.round(rng.normal(size=(3000, 10)) / step + rng.random((3000, 1)))
    assert shape.outlier_mask(rows).any(axis=1).sum() <= stats.binom.ppf(0.999, 3000, 0.01)
