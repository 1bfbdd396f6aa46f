"""The ratio over boxes, and the parts of the variance: by scipy, by formulas of others, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mountlab.stats.between import spread
from mountlab.stats.over_boxes import further_box, over_boxes
from scipy import stats


def test_over_boxes_is_the_t_interval_of_the_boxes() -> None:
    logs = np.log([[1.2, 1.5, 1.1, 1.3]])
    found = over_boxes(logs)
    low, high = found.bounds(0.95)
    reference = stats.ttest_1samp(logs[0], 0).confidence_interval(0.95)
    assert (math.log(low[0]), math.log(high[0])) == pytest.approx((reference.low, reference.high))
    assert found.p()[0] == pytest.approx(stats.ttest_1samp(logs[0], 0).pvalue)
    assert (found.n[0], found.ratio[0]) == (4, pytest.approx(stats.gmean([1.2, 1.5, 1.1, 1.3])))


def test_a_box_without_the_ratio_is_left_out_and_one_alone_has_no_interval() -> None:
    found = over_boxes(np.array([[0.1, math.nan, 0.3], [0.2, math.nan, math.nan], [math.nan] * 3]))
    assert found.n.tolist() == [2, 1, 0]
    assert found.log_mean[:2] == pytest.approx([0.2, 0.2])
    assert np.isnan(found.log_se).tolist() == [False, True, True]
    further = further_box(found, 0.95)
    assert np.isnan(further.low).tolist() == [False, True, True]


def test_of_equal_boxes_it_is_hartung_and_knapp() -> None:
    """With one within-box variance their weights are equal, whatever the variance between is estimated to be."""
    y = np.array([0.10, 0.25, 0.18, 0.02])
    w = np.full(4, 1 / (0.03**2 + 0.01))
    mean = (w * y).sum() / w.sum()
    se = math.sqrt((w * (y - mean) ** 2).sum() / (3 * w.sum()))
    found = over_boxes(y[None, :])
    assert (found.log_mean[0], found.log_se[0], found.df[0]) == (pytest.approx(mean), pytest.approx(se), 3)


def test_the_interval_of_a_further_box() -> None:
    y = np.array([0.10, 0.25, 0.18, 0.02])
    found = further_box(over_boxes(y[None, :]), 0.9)
    half = stats.t.ppf(0.95, 3) * y.std(ddof=1) * math.sqrt(1 + 1 / 4)
    assert (math.log(found.low[0]), math.log(found.high[0])) == pytest.approx((y.mean() - half, y.mean() + half))


@pytest.mark.parametrize("boxes", [2, 3, 6])
def test_boxes_of_unlike_noise_are_covered_at_least_as_often_as_is_said(boxes: int) -> None:
    """The worst for weights: one box is ten times as noisy as the others."""
    rng = np.random.default_rng(boxes)
    noise = np.array([0.5, *[0.05] * (boxes - 1)])
    low, high = over_boxes(rng.normal(0, 0.03, (4000, boxes)) + rng.normal(0, noise, (4000, boxes))).bounds(0.95)
    held = int(((low <= 1) & (high >= 1)).sum())
    assert stats.binomtest(held, 4000, 0.95, alternative="less").pvalue > 0.001


def test_the_share_between_boxes_is_the_intraclass_correlation() -> None:
    """Against the formulas of Shrout and Fleiss (1979), ICC(1,1), and their interval, of their own ratings."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = spread(np.exp(ratings).tolist())
    assert found.share == pytest.approx(0.166, abs=0.0005)
    assert (found.share_low, found.share_high) == pytest.approx((0.0, 0.72), abs=0.005)
    means = np.array(ratings, dtype=float)
    within = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum()
    assert found.within_low == pytest.approx(math.sqrt(within / stats.chi2.ppf(0.975, 18)))
    assert found.within_high == pytest.approx(math.sqrt(within / stats.chi2.ppf(0.025, 18)))


def test_shares_at_their_ends() -> None:
    apart = spread([[2.0, 2.0], [4.0, 4.0]])
    assert all(math.isnan(each) for each in (apart.p, apart.share, apart.share_low, apart.share_high))
    rounded = spread([[2.0, 2.0], [4.0, 4.0]], steps=[1.0, 1.0])
    assert rounded.p > 0.05, "half a step each way"
    assert spread([[2.0, 2.0], [4.0, 4.0]], steps=[0.001, 0.001]).p < 0.001
    alike = spread([[1.0, 1.2, 0.9], [1.2, 0.9, 1.0]])
    assert (alike.share, alike.share_low) == (0, 0)
    nothing = spread([[2.0, 2.0], [2.0, 2.0]])
    assert math.isnan(nothing.share)
    one = spread([[1.0, 1.1, 1.2]])
    assert math.isnan(one.share)
    assert one.within_low < one.within < one.within_high


@pytest.mark.parametrize("between", [pytest.param(0.0, marks=pytest.mark.long), 1.0])
@pytest.mark.slow
def test_the_intervals_of_the_parts_hold_the_truth_as_often_as_they_say(between: float) -> None:
    rng = np.random.default_rng(12)
    held = np.zeros(2)
    for _ in range(600):
        found = spread(np.exp(rng.normal(0, between, (4, 1)) + rng.normal(0, 1, (4, 5))).tolist())
        share = between**2 / (between**2 + 1)
        held += [found.share_low <= share <= found.share_high, found.within_low <= 1 <= found.within_high]
    assert all(stats.binomtest(int(each), 600, 0.95, alternative="less").pvalue > 0.001 for each in held), held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "between"),
    [((2, 2, 2, 2, 40, 40, 40), 1.0), pytest.param((3, 3, 3, 20, 20), 4.0, marks=pytest.mark.long)],
)
def test_runs_of_unlike_length_are_covered_as_often_as_is_said(sizes: tuple[int, ...], between: float) -> None:
    """With n0 in the place of n the first is covered in 83 %. Of 400 times 365 must hold."""
    rng, held = np.random.default_rng(len(sizes)), np.zeros(2)
    share = between**2 / (between**2 + 1)
    for _ in range(400):
        found = spread([np.exp(rng.normal(0, between) + rng.normal(0, 1, n)).tolist() for n in sizes])
        held += [found.low <= between <= found.high, found.share_low <= share <= found.share_high]
    assert all(stats.binomtest(int(each), 400, 0.95, alternative="less").pvalue > 0.001 for each in held), held


def test_with_runs_of_one_length_it_is_the_interval_of_williams() -> None:
    values = np.random.default_rng(3).normal(0, 1, (5, 1)) + np.random.default_rng(4).normal(0, 0.5, (5, 4))
    found, within = spread(np.exp(values).tolist()), values.var(axis=1, ddof=1).mean()
    squares = 4 * values.mean(axis=1).var(ddof=1) * 4
    f = squares / 4 / within
    low, high = (
        math.sqrt(squares * (1 - stats.f.ppf(tail, 4, 15) / f) / (4 * stats.chi2.ppf(tail, 4)))
        for tail in (0.975, 0.025)
    )
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.between == pytest.approx(math.sqrt((squares / 4 - within) / 4))
    assert found.p == pytest.approx(stats.f_oneway(*values).pvalue)


@pytest.mark.slow
def test_the_estimate_lies_in_its_interval_and_the_test_is_the_usual_one() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        values = [rng.normal(rng.normal(), 1, n) for n in (2, 3, 9, 30)]
        found = spread([np.exp(each).tolist() for each in values])
        assert found.low <= found.between <= found.high
        assert found.share_low <= found.share <= found.share_high
        assert found.p == pytest.approx(stats.f_oneway(*values).pvalue)
