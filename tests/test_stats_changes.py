"""Changes over runs: the statistic against brute force, its p value against all orders, what it can and cannot show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.stats.changes import (
    LEAST_PERMUTATIONS,
    MOST_PERMUTATIONS,
    SHORTEST,
    Change,
    Level,
    fewest_runs,
    find_changes,
    permutations_for,
    weights_of,
)
from scipy import stats


def levels(values: Sequence[float], *, error: float = 0.01, degrees: int = 4) -> list[Level]:
    return [Level(float(each), error, degrees) for each in values]


def stepped(runs: int, at: int, by: float, *, seed: int = 1, sd: float = 0.02) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sd, runs) + np.where(np.arange(runs) >= at, by, 0.0)


def changes(values: Sequence[float], **options: float) -> list[Change]:
    return find_changes([levels(values, **options)], [7])[0]  # type: ignore[arg-type]


def largest_difference(values: Sequence[float]) -> float:
    """By brute force: t^2 but for its scale, over all splits with three runs or more on either side."""
    parts = ((np.array(values[:at]), np.array(values[at:])) for at in range(SHORTEST, len(values) - SHORTEST + 1))
    return max((a.mean() - b.mean()) ** 2 / (1 / len(a) + 1 / len(b)) for a, b in parts)


def p_of(values: Sequence[float], seed: int) -> float:
    """The p value of a whole series, whatever it is (its parts have larger ones); 1 where it is told at no level."""
    return min((each.p_adjusted for each in find_changes([levels(values)], [seed], level=1e-9)[0]), default=1.0)


# ── one change ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_is_found_where_it_is_and_told_as_a_ratio() -> None:
    (found,) = changes(stepped(40, 25, math.log(0.8)))
    assert found.at == 25
    assert found.first <= 25 <= found.last
    assert found.last - found.first <= 2
    assert (found.since, found.until) == (0, 40)
    assert found.low < 0.8 < found.high
    assert found.ratio == pytest.approx(0.8, rel=0.02)
    assert found.p == found.p_adjusted == 1 / (LEAST_PERMUTATIONS + 1)


def test_the_ratio_is_that_of_welch_over_runs() -> None:
    values = stepped(20, 12, 0.2)
    (found,) = changes(values)
    before, after = values[: found.at], values[found.at :]
    test = stats.ttest_ind(after, before, equal_var=False)
    low, high = test.confidence_interval(0.95)  # by Satterthwaite, of which ours is a little more careful
    assert math.log(found.low) == pytest.approx(low, abs=0.1 * (high - low))
    assert math.log(found.high) == pytest.approx(high, abs=0.1 * (high - low))
    assert math.log(found.low) <= low + 1e-12
    assert math.log(found.high) >= high - 1e-12


def test_the_p_value_is_the_share_of_all_orders_that_look_as_much_like_a_change() -> None:
    values = np.array([0.0, 0.03, 0.01, 0.05, 0.02, 0.06, 0.08])  # too short a series for parts of it
    observed = largest_difference(values) * (1 - 1e-9)
    exact = np.mean([largest_difference(order) >= observed for order in permutations(values.tolist())])
    told = [p_of(values, seed) for seed in range(60)]
    assert np.mean(told) == pytest.approx(exact, rel=0.1), "each knows the share to about a fifth"
    assert 0.02 < exact < 0.5


def test_p_values_of_quiet_series_are_uniform() -> None:
    rng = np.random.default_rng(5)
    told = [p_of(rng.normal(0, 1, 15), seed) for seed in range(400)]
    assert stats.kstest(told, "uniform").pvalue > 0.001


def test_a_change_that_was_mended_again_is_two() -> None:
    values = stepped(45, 15, -0.1) + np.where(np.arange(45) >= 30, 0.1, 0.0)
    assert [each.at for each in changes(values)] == [15, 30]
    assert [(each.since, each.until) for each in changes(values)] == [(0, 30), (15, 45)]


def test_one_odd_run_is_no_change() -> None:
    values = stepped(30, 30, 0)
    values[14] = values[29] = -1.0
    assert changes(values) == []


def test_what_is_always_the_same_has_no_change() -> None:
    assert changes([0.3] * 30) == []
    assert changes([0.3] * 30, error=0.0) == []


# ── what a run counts for ────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_of_more_trials_count_for_more_unless_runs_differ_by_themselves() -> None:
    rng = np.random.default_rng(2)
    few, many = [Level(0, 0.05, 2)] * 10, [Level(0, 0.01, 80)] * 10
    weights = weights_of([Level(rng.normal(0, each.error), each.error, each.degrees) for each in few + many])
    assert weights[10:].min() > 5 * weights[:10].max()
    restless = weights_of([Level(rng.normal(0, 1), each.error, each.degrees) for each in few + many])
    assert restless[10:].max() < 1.1 * restless[:10].min()


def test_runs_of_one_trial_count_alike() -> None:
    assert weights_of([Level(each) for each in (0.1, 0.2, 0.4)]).tolist() == [1, 1, 1]
    assert [each.at for each in find_changes([[Level(each) for each in stepped(30, 10, 0.2)]], [1])[0]] == [10]


def test_a_run_of_one_trial_among_others_has_the_error_of_the_others() -> None:
    weights = weights_of([Level(0.0, 0.01, 3), Level(0.0), Level(0.0, 0.01, 3), Level(0.0, 0.01, 3)])
    assert weights[1] == pytest.approx(weights[0] / 4)


@given(st.permutations(range(8)))
def test_weights_do_not_depend_on_the_order_of_runs(order: list[int]) -> None:
    """Else the test by permutations would not be exact."""
    rng = np.random.default_rng(9)
    runs = [Level(rng.normal(), abs(rng.normal()) + 0.01, int(rng.integers(1, 20))) for _ in range(8)]
    assert weights_of([runs[place] for place in order]) == pytest.approx(weights_of(runs)[order])


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_family_is_corrected_for_its_series() -> None:
    quiet = [levels(stepped(30, 30, 0, seed=seed)) for seed in range(2, 41)]
    alone = changes(stepped(30, 15, 0.1))
    found = find_changes([levels(stepped(30, 15, 0.1)), *quiet], list(range(40)))
    assert [each.at for each in found[0]] == [15]
    assert found[0][0].p_adjusted == pytest.approx(40 * found[0][0].p)
    assert found[0][0].p < alone[0].p, "more permutations, so that the correction leaves something"
    assert not any(found[1:])


def test_the_same_seeds_give_the_same_answer_whatever_the_other_series_say() -> None:
    ours, theirs = levels(stepped(20, 10, 0.05)), levels(stepped(20, 5, 0.5))
    both = find_changes([ours, theirs], [1, 2])
    assert find_changes([ours, levels(stepped(20, 20, 0))], [1, 3])[0][0].p == both[0][0].p
    assert find_changes([ours, theirs], [1, 2]) == both


def test_too_few_runs_can_show_nothing() -> None:
    assert find_changes([], []) == []
    assert find_changes([[], levels([1.0]), levels(range(5))], [1, 2, 3]) == [[], [], []]
    fewest = fewest_runs(1)
    assert fewest == 8
    assert changes([0.0] * 3 + [1.0] * 4) == [], "2 of the 35 ways to choose 3 runs are as extreme"
    assert [each.at for each in changes(stepped(fewest, 4, 5.0))] == [4]


@pytest.mark.parametrize("series", [1, 10, 300])
def test_the_fewest_runs_are_those_that_the_correction_leaves(series: int) -> None:
    fewest = fewest_runs(series)
    assert 2 / math.comb(fewest, fewest // 2) * series <= 0.05 < 2 / math.comb(fewest - 1, (fewest - 1) // 2) * series


def test_permutations_suffice_for_the_correction_up_to_a_limit() -> None:
    assert permutations_for(1, 0.95) == LEAST_PERMUTATIONS
    assert 1 / (permutations_for(500, 0.95) + 1) <= 0.05 / 500
    assert permutations_for(10**6, 0.95) == MOST_PERMUTATIONS
