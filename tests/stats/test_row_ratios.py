"""Ratios of two ratios inside blocks: whether a state changes how one file system compares with another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.stats import compare_row_ratios, compare_rows, compare_unpaired
from mountlab.stats.comparisons import Ratios
from numpy.typing import NDArray
from rows import every_row
from scipy import stats

NAN = math.nan
Floats = NDArray[np.float64]
LOGS = st.lists(st.tuples(*[st.floats(-3, 3)] * 4), min_size=4, max_size=12)


def of_four(cells: Any, **more: Any) -> Ratios:
    """The first ratio by the second, of candidate, baseline, candidate and baseline by block."""
    a, b, c, d = np.asarray(cells, dtype=float)[:, None, :]
    return compare_row_ratios((a, b), (c, d), **more)


@given(LOGS)
@settings(max_examples=40, deadline=None)
def test_it_is_the_t_interval_of_the_difference_of_two_log_ratios(logs: list[tuple[float, ...]]) -> None:
    a, b, c, d = np.array(logs).T
    difference = (a - b) - (c - d)
    ours = of_four(np.exp([a, b, c, d]))
    assert ours.log_mean[0] == pytest.approx(difference.mean(), abs=1e-9)
    if difference.std(ddof=1) > 1e-6:
        low, high = stats.t.interval(0.95, len(logs) - 1, difference.mean(), stats.sem(difference))
        assert np.log(ours.bounds(0.95)).ravel() == pytest.approx([low, high], rel=1e-6, abs=1e-8)
        assert ours.p()[0] == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, rel=1e-6)


@given(LOGS)
@settings(max_examples=40, deadline=None)
def test_with_baselines_of_1_it_is_the_ratio_of_the_candidates(logs: list[tuple[float, ...]]) -> None:
    a, _, c, _ = np.exp(np.array(logs).T)
    ones = np.ones_like(a)
    ours, plain = of_four([a, ones, c, ones]), compare_rows(a[None], c[None])
    assert ours.log_mean == pytest.approx(plain.log_mean, abs=1e-12)
    assert ours.log_se == pytest.approx(plain.log_se, rel=1e-9, nan_ok=True)


def test_what_acts_on_a_whole_block_and_on_a_side_in_all_blocks_cancels() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.02, (4, 12))
    block, sides = rng.normal(0, 2, 12), np.array([[3.0], [1.0], [0.0], [-2.0]])
    plain = of_four(np.exp(noise))
    moved = of_four(np.exp(noise + block + sides))
    assert moved.log_se == pytest.approx(plain.log_se)
    assert moved.log_mean - plain.log_mean == pytest.approx(0.0), "3 - 1 is as much as 0 - -2"


def test_a_block_that_lacks_one_of_the_four_does_not_count() -> None:
    rng = np.random.default_rng(4)
    cells = np.exp(rng.normal(0, 0.05, (4, 9)))
    holed = cells.copy()
    holed[[0, 1, 2, 3], [0, 1, 2, 3]] = NAN
    ours, whole = of_four(holed), of_four(cells[:, 4:])
    assert ours.n[0] == 5
    assert (ours.log_mean[0], ours.log_se[0]) == pytest.approx((whole.log_mean[0], whole.log_se[0]))


def test_too_few_common_blocks_make_it_a_test_of_two_samples_of_ratios() -> None:
    rng = np.random.default_rng(5)
    cells = np.exp(rng.normal(0, 0.05, (4, 12)))
    cells[:2, 7:], cells[2:, :5] = NAN, NAN
    ours = of_four(cells)
    samples = (cells[0] / cells[1])[:7].tolist(), (cells[2] / cells[3])[5:].tolist()
    by_welch = compare_unpaired(*samples)
    assert not ours.paired[0]
    assert ours.log_mean[0] == pytest.approx(by_welch.log_mean)
    assert ours.bounds(0.95)[0][0] == pytest.approx(by_welch.low)


@every_row("rounded", [0, 1, 2, 3])
def test_one_rounded_cell_of_four_widens_the_interval_whatever_the_others_do(rounded: int) -> None:
    """All trials of one cell print 100, to a step of 10: its mean is off by up to 5 %, which the noise of the other
    cells does not average out. The variance of that is 10^2 / 12 of 100^2."""
    cells = np.exp(np.random.default_rng(6).normal(0, 0.1, (4, 40))) * 100
    cells[rounded] = 100.0
    steps = [0.0] * 4
    steps[rounded] = 10.0
    plain, wider = of_four(cells), of_four(cells, steps=((steps[0], steps[1]), (steps[2], steps[3])))
    added = wider.log_se[0] ** 2 - plain.log_se[0] ** 2
    assert added == pytest.approx(0.1**2 / 12, rel=1e-6)


def test_nothing_varies_and_no_step_is_known_so_there_is_no_interval() -> None:
    ours = of_four(np.full((4, 6), 5.0))
    assert (ours.ratio[0], bool(ours.known[0])) == (1.0, False)


def test_intervals_after_a_stopping_rule_allow_for_neighbours_that_are_alike() -> None:
    rng = np.random.default_rng(7)
    walk = np.cumsum(rng.normal(0, 0.02, (4, 30)), axis=1)
    alone, pooled = (of_four(np.exp(walk), pools=pools) for pools in (None, np.array([0])))
    assert pooled.log_se[0] > alone.log_se[0]
