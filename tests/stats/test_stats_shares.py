"""The share of a difference that one part has: exact cases, the definition by its t test, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mountlab.core.errors import ParameterError
from mountlab.stats import share_of_difference
from mountlab.stats.shares import shares_of_rows
from scipy import stats

PART, WHOLE = [0.8, 1.1, 0.9, 1.2], [1.0, 1.3, 1.2, 1.4]


def test_a_part_that_is_the_whole_has_all_of_the_difference() -> None:
    found = share_of_difference(WHOLE, WHOLE)
    assert (found.share, found.low, found.high, found.n) == (1, 1, 1, 4)
    assert found.known
    assert found.shown


def test_a_part_that_never_differs_has_none_of_it() -> None:
    found = share_of_difference([0.0] * 4, WHOLE)
    assert (found.share, found.low, found.high) == (0, 0, 0)
    assert found.known
    assert not found.shown


def test_a_share_of_a_difference_that_is_nearly_noise_has_an_interval_and_is_not_shown() -> None:
    """The t interval of the whole leaves out 0 by a hair: shares of thousands of per cent are not rejected."""
    whole = [0.1, 1.0, 2.0, 2.9, 1.4]
    low, _ = stats.t.interval(0.95, 4, loc=np.mean(whole), scale=stats.sem(whole))
    barely = [each - low + 1e-3 for each in whole]
    found = share_of_difference([0.5 * each for each in whole], barely)
    assert found.known
    assert found.high > 10
    assert not found.shown


def test_shares_of_the_parts_add_up_to_one() -> None:
    rest = [whole - part for whole, part in zip(WHOLE, PART, strict=True)]
    ours, others = share_of_difference(PART, WHOLE), share_of_difference(rest, WHOLE)
    assert ours.share + others.share == pytest.approx(1)
    assert (others.low, others.high) == (pytest.approx(1 - ours.high), pytest.approx(1 - ours.low))


def test_the_unit_does_not_matter_and_a_larger_part_has_a_larger_share() -> None:
    plain = share_of_difference(PART, WHOLE)
    micro = share_of_difference([1e-6 * each for each in PART], [1e-6 * each for each in WHOLE])
    twice = share_of_difference([2 * each for each in PART], WHOLE)
    assert (micro.share, micro.low, micro.high) == pytest.approx((plain.share, plain.low, plain.high))
    assert (twice.share, twice.low, twice.high) == pytest.approx((2 * plain.share, 2 * plain.low, 2 * plain.high))


def test_swapping_the_sides_changes_nothing_and_a_part_that_points_the_other_way_is_negative() -> None:
    plain = share_of_difference(PART, WHOLE)
    swapped = share_of_difference([-each for each in PART], [-each for each in WHOLE])
    against = share_of_difference([-each for each in PART], WHOLE)
    assert (swapped.share, swapped.low, swapped.high) == (plain.share, plain.low, plain.high)
    assert (against.share, against.low, against.high) == (-plain.share, -plain.high, -plain.low)


def test_the_ends_are_where_the_t_test_begins_to_reject() -> None:
    found = share_of_difference(PART, WHOLE, level=0.9)
    for end in (found.low, found.high):
        differences = np.array(PART) - end * np.array(WHOLE)
        assert stats.ttest_1samp(differences, 0).pvalue == pytest.approx(0.1)
    assert found.low < found.share < found.high


def test_of_a_difference_that_may_be_zero_every_share_is_possible() -> None:
    found = share_of_difference([0.5, -0.4, 0.3], [0.6, -0.9, 0.8])
    assert stats.ttest_1samp([0.6, -0.9, 0.8], 0).pvalue > 0.05
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert not found.known
    assert not found.shown


def test_one_block_has_a_share_without_an_interval_and_none_has_nothing() -> None:
    one, none = share_of_difference([1.0], [2.0]), share_of_difference([], [])
    assert (one.share, one.n, none.n) == (0.5, 1, 0)
    assert all(map(math.isnan, (one.low, one.high, none.share, none.low, none.high)))
    assert not one.known


def test_without_any_spread_there_is_no_interval() -> None:
    found = share_of_difference([0.8] * 4, [1.0] * 4)
    assert found.share == pytest.approx(0.8)
    assert math.isnan(found.low)
    assert not found.shown


def test_a_mean_difference_of_zero_has_no_share() -> None:
    found = share_of_difference([1.0, 2.0], [1.0, -1.0])
    assert math.isnan(found.share)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        share_of_difference([math.nan], [1.0])
    with pytest.raises(ValueError, match="one difference a block"):
        share_of_difference([1.0], [1.0, 2.0])
    with pytest.raises(ParameterError):
        share_of_difference(PART, WHOLE, level=1.5)


SIMULATED = 4000


def _bounded(held: int, *, at_least_only: bool = False) -> None:
    """The count of intervals that hold the truth is one that 95 % gives."""
    alternative = "less" if at_least_only else "two-sided"
    assert stats.binomtest(held, SIMULATED, 0.95, alternative=alternative).pvalue > 0.001, held / SIMULATED


@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_coverage_of_normal_differences_is_what_is_said(blocks: int) -> None:
    """A difference that is always shown: parts of 3 and 1, with noise of a tenth that they partly share."""
    rng = np.random.default_rng(blocks)
    common = rng.normal(0, 0.1, (SIMULATED, blocks))
    part, other = (mean + common + rng.normal(0, 0.1, common.shape) for mean in (3.0, 1.0))
    _, low, high = shares_of_rows(part, part + other, level=0.95)
    _bounded(int(((low <= 0.75) & (high >= 0.75)).sum()))


@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_coverage_of_a_difference_that_is_seldom_shown_is_at_least_what_is_said(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    part, other = (rng.normal(mean, 1, (SIMULATED, blocks)) for mean in (0.6, 0.2))
    _, low, high = shares_of_rows(part, part + other, level=0.95)
    assert np.isinf(low).mean() > 0.3
    _bounded(int(((low <= 0.75) & (high >= 0.75)).sum()), at_least_only=True)


@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_coverage_of_gamma_distributed_layers(blocks: int) -> None:
    """Layers of a trial are means of many operations, with a tail to the right: gamma with a spread of 20 %."""
    rng = np.random.default_rng(blocks)
    means = {"ext4": (30e-6, 1.6e-3, 0.4e-3), "xfs": (45e-6, 0.8e-3, 0.35e-3)}
    sides = [rng.gamma(25, np.array(own)[:, None, None] / 25, (3, SIMULATED, blocks)) for own in means.values()]
    parts = sides[0] - sides[1]
    truth = (means["ext4"][1] - means["xfs"][1]) / (sum(means["ext4"]) - sum(means["xfs"]))
    _, low, high = shares_of_rows(parts[1], parts.sum(axis=0), level=0.95)
    _bounded(int(((low <= truth) & (high >= truth)).sum()), at_least_only=True)
