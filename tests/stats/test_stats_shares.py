"""The share of a difference that one part has: exact cases, the definition by its t test, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mountlab.core.errors import ParameterError
from mountlab.stats import not_smaller, shares_of_parts
from mountlab.stats.shares import parts_of_log_ratio, share_of_difference, shares_of_rows
from scipy import stats

PART, WHOLE = [0.8, 1.1, 0.9, 1.2], [1.0, 1.3, 1.2, 1.4]


def test_a_part_that_is_the_whole_has_all_of_the_difference() -> None:
    found = share_of_difference(WHOLE, WHOLE)
    assert (found.share, found.low, found.high, found.n) == (1, 1, 1, 4)
    assert found.shown


def test_a_part_that_never_differs_has_none_of_it() -> None:
    found = share_of_difference([0.0] * 4, WHOLE)
    assert (found.share, found.low, found.high) == (0, 0, 0)
    assert not found.shown


def test_a_share_of_a_difference_that_is_nearly_noise_has_a_wide_interval_and_is_shown() -> None:
    """The t interval of the whole leaves out 0 by a hair: shares of thousands of per cent are not rejected; 0 is."""
    whole = [0.1, 1.0, 2.0, 2.9, 1.4]
    low, _ = stats.t.interval(0.95, 4, loc=np.mean(whole), scale=stats.sem(whole))
    barely = [each - low + 1e-3 for each in whole]
    found = share_of_difference([0.5 * each for each in whole], barely)
    assert found.high > 10
    assert 0 < found.low < 1
    assert found.shown


@pytest.mark.parametrize("sign", [1, -1])
def test_a_share_of_a_difference_whose_sign_is_known_at_its_own_level_has_the_end_that_is_next_to_zero(
    sign: int,
) -> None:
    """The t test of the whole rejects at 5 %, and not at the level of the share."""
    part, whole = [0.8, 1.1, 0.9, 1.2, 1.0], [0.4, 2.2, 1.9, 0.6, 1.3]
    assert 0.005 < stats.ttest_1samp(whole, 0).pvalue < 0.05
    found = share_of_difference([sign * each for each in part], whole, level=0.995, gate=0.95)
    near, far = (found.low, found.high) if sign > 0 else (-found.high, -found.low)
    assert far == math.inf
    assert 0 < near < sign * found.share
    assert stats.ttest_1samp(np.array(part) - near * np.array(whole), 0).pvalue == pytest.approx(0.005)
    assert found.shown
    closed = share_of_difference(part, whole, level=0.995, gate=0.999)
    assert (closed.low, closed.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("seed", range(40))
def test_a_share_is_shown_where_the_whole_differs_and_the_part_does(seed: int) -> None:
    """By the t test of the whole at its level, and by that of the part at the level of all parts together."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0.8, 0.8, 6)
    part = 0.6 * common + rng.normal(0, rng.choice([0.05, 0.5]), 6)
    found = share_of_difference(part, common, level=0.99, gate=0.95)
    differ = stats.ttest_1samp(common, 0).pvalue < 0.05 and stats.ttest_1samp(part, 0).pvalue < 0.01
    assert found.shown == differ


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
    assert not found.shown


def test_one_block_has_a_share_without_an_interval_and_none_has_nothing() -> None:
    one, none = share_of_difference([1.0], [2.0]), share_of_difference([], [])
    assert (one.share, one.n, none.n) == (0.5, 1, 0)
    assert all(map(math.isnan, (one.low, one.high, none.share, none.low, none.high)))


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


# --- the parts of the ratio of two sums, and all of their shares together ---------------------------------------------


def gamma(rng: np.random.Generator, means: list[float], spread: float, blocks: int) -> np.ndarray:
    """Parts of a latency in each block, each gamma-distributed about its mean with this relative spread."""
    return rng.gamma(spread**-2, np.array(means)[:, None] * spread**2, (len(means), blocks))


def test_the_parts_add_up_to_the_log_ratio_in_each_block_and_have_the_shares_of_the_differences_there() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = gamma(rng, [3, 1, 0.2], 0.3, 6), gamma(rng, [1, 1, 0.3], 0.3, 6)
    parts, whole = parts_of_log_ratio(ours, theirs), np.log(ours.sum(axis=0) / theirs.sum(axis=0))
    assert parts.sum(axis=0) == pytest.approx(whole)
    assert parts / whole == pytest.approx((ours - theirs) / (ours - theirs).sum(axis=0))
    slow = rng.gamma(1, 1, 6)
    assert parts_of_log_ratio(slow * ours, slow * theirs) == pytest.approx(parts), "a slow block counts no more"


def test_parts_that_make_up_for_one_another_are_relative_to_the_sum() -> None:
    assert parts_of_log_ratio(np.array([[3.0], [1.0]]), np.array([[1.0], [3.0]])) == pytest.approx([0.5, -0.5])


def test_the_intervals_of_all_candidates_share_the_error() -> None:
    """Three parts, two of them together (which is all but the third), and all of them: three candidates."""
    rng = np.random.default_rng(3)
    ours, theirs = gamma(rng, [3, 1, 0.5], 0.05, 5), gamma(rng, [1, 1, 0.3], 0.05, 5)
    found = shares_of_parts(ours, theirs, [[0], [1], [2], [0, 1], [0, 1, 2], [2]], level=0.9)
    parts = parts_of_log_ratio(ours, theirs)
    for group, share in zip(([0], [1], [2], [0, 1]), found, strict=False):
        for end in (share.low, share.high):
            off = parts[group].sum(axis=0) - end * parts.sum(axis=0)
            assert stats.ttest_1samp(off, 0).pvalue == pytest.approx(0.1 / 3)
    assert (found[3].low, found[3].high) == (pytest.approx(1 - found[2].high), pytest.approx(1 - found[2].low))
    assert (found[4].share, found[4].low, found[4].high) == (1, 1, 1)
    assert found[5] == found[2]


def test_a_part_is_smaller_where_the_paired_t_test_says_so_in_the_direction_of_the_whole() -> None:
    """Three parts, each against a group, at half of the error each: a part has two others. The fourth is minor."""
    rng = np.random.default_rng(5)
    theirs, ours = gamma(rng, [3, 2.6, 2.3, 0.02], 0.1, 5), gamma(rng, [1, 1, 1, 0.02], 0.1, 5)
    parts, groups = -parts_of_log_ratio(ours, theirs), [[0], [1], [2], [0, 1]]
    found = not_smaller(ours, theirs, groups, level=0.9)
    for group, rows in zip(groups, found, strict=True):
        own = parts[group].sum(axis=0)
        p = {
            row: stats.ttest_rel(own, parts[row], alternative="greater").pvalue for row in range(3) if row not in group
        }
        assert rows == [row for row, value in p.items() if value >= 0.05]
    assert {len(rows) for rows in found} >= {0, 1}, "the test has both"
    assert not_smaller(theirs, ours, groups, level=0.9) == found, "whichever side is the slower one"


FAMILIES = 500
TEN = [[row] for row in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_the_interval_of_the_part_that_is_named_covers_although_it_was_picked(blocks: int) -> None:
    """Ten parts with a tenth of the difference each, of which the largest is named."""
    rng = np.random.default_rng(blocks)
    held = 0
    for _ in range(FAMILIES):
        found = shares_of_parts(gamma(rng, [2] * 10, 0.1, blocks), gamma(rng, [1] * 10, 0.1, blocks), TEN)
        named = max(found, key=lambda share: share.share)
        held += named.low <= 0.1 <= named.high
    assert stats.binomtest(held, FAMILIES, 0.95, alternative="less").pvalue > 0.001, held / FAMILIES


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_the_largest_part_is_the_one_that_is_named_or_not_shown_to_be_smaller(blocks: int) -> None:
    """Ten parts that are the same, so that chance picks the largest: the worst case."""
    rng = np.random.default_rng(blocks)
    among = 0
    for _ in range(FAMILIES):
        sides = gamma(rng, [2] * 10, 0.1, blocks), gamma(rng, [1] * 10, 0.1, blocks)
        named = int(np.argmax(parts_of_log_ratio(*sides).mean(axis=1)))
        among += named == 0 or 0 in not_smaller(*sides, TEN)[named]
    assert stats.binomtest(among, FAMILIES, 0.95, alternative="less").pvalue > 0.001, among / FAMILIES


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [5, 10])
def test_a_part_that_does_not_differ_is_shown_in_one_of_twenty_differences_at_most(blocks: int) -> None:
    """One part makes the difference, nine are the same on both sides."""
    rng = np.random.default_rng(blocks)
    wrong = 0
    for _ in range(FAMILIES):
        found = shares_of_parts(gamma(rng, [9, *[1] * 9], 0.1, blocks), gamma(rng, [1] * 10, 0.1, blocks), TEN)
        assert found[0].shown
        wrong += any(share.shown for share in found[1:])
    assert stats.binomtest(wrong, FAMILIES, 0.05, alternative="greater").pvalue > 0.001, wrong / FAMILIES


@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_coverage_of_skewed_latencies(blocks: int) -> None:
    """Lognormal with sigma 1, where the t interval of a difference in seconds covers 91 to 93 %."""
    rng = np.random.default_rng(blocks)
    ours, theirs = (
        np.array(means)[:, None, None] * rng.lognormal(0, 1, (3, SIMULATED, blocks))
        for means in ((1.0, 0.5, 0.3), (6.0, 1.0, 0.3))
    )
    parts = parts_of_log_ratio(ours, theirs)
    whole = parts.sum(axis=0)
    truth = parts[0].mean() / whole.mean()
    _, low, high = shares_of_rows(parts[0], whole, level=0.95)
    _bounded(int(((low <= truth) & (high >= truth)).sum()), at_least_only=True)
