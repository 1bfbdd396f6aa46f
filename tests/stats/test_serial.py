"""Trials that are like their neighbours: the estimate of how much, what it adds to an interval, and what the intervals
of a stopping rule then cover."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from mountlab.core.model import Until
from mountlab.stats import sequential, serial
from mountlab.stats.comparisons import compare_rows
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.simulated import autocorrelated, normal
from mountlab_dev.calibration.stopped import OrderedRuns
from rows import every_row
from scipy import stats

RULE = Until(half_width=0.03, min=5, max=40)


def neighbours(row: list[float]) -> float:
    """By the definition: the products of neighbours about the mean, by the squares."""
    off = [value - sum(row) / len(row) for value in row]
    return sum(a * b for a, b in pairwise(off)) / sum(each**2 for each in off)


ROWS = [[1.0, 2.0, 4.0, 3.0, 6.0], [2.0, 1.0, 2.0, 1.0, 3.0], [5.0, 5.1, 4.9, 5.3, 5.2]]


def test_a_sample_is_drawn_to_the_others_of_its_pool_and_these_to_what_histories_show() -> None:
    """(n r + 1) of each sample, with the weight of n; what is believed has that of 20."""
    evidence = [5 * neighbours(row) + 1 for row in ROWS]
    second = (evidence[1] + 20 * (evidence[0] + 20 * 0.35) / 25) / 25
    found = serial.pooled(serial.of_rows(np.array(ROWS)), np.full(3, 5), np.array([7, 7, 2]))
    alone = (evidence[2] + 20 * 0.35) / 25
    assert found == pytest.approx([(evidence[0] + 20 * (evidence[1] + 7) / 25) / 25, second, alone])
    assert float(serial.shrunken(neighbours(ROWS[2]), 5)) == pytest.approx(alone)


def test_after_each_block_it_is_what_the_blocks_so_far_show() -> None:
    rows = np.array(ROWS)
    so_far = serial.pooled_so_far(rows)
    for n in range(2, 6):
        once = serial.pooled(serial.of_rows(rows[:, :n]), np.full(3, n), np.zeros(3, dtype=np.int64))
        assert so_far[:, n - 1] == pytest.approx(once)


@every_row("correlation, n", [(0.0, 5), (0.35, 3), (0.6, 12), (0.9, 40)])
def test_the_variance_of_a_mean_is_that_of_an_autoregressive_series(correlation: float, n: int) -> None:
    """From the covariances of all pairs; the sample variance is on average (n - factor) / (n - 1) of the true one."""
    places = np.arange(n)
    factor = np.power(correlation, np.abs(places[:, None] - places), where=True).sum() / n
    assert float(serial.inflation(np.array(correlation), n)) == pytest.approx(factor)
    error = math.sqrt(factor * (n - 1) / (n - factor))
    assert float(serial.error_factor(np.array(correlation), n)) == pytest.approx(error)


def test_half_of_an_interval_is_widened_and_so_is_that_of_a_ratio() -> None:
    rows, pools = np.array(ROWS), np.array([0, 0, 1])
    found = estimate_samples(rows.ravel(), np.full(3, 5), level=0.95, signed=np.ones(3, dtype=bool), pools=pools)
    correlation = serial.pooled(serial.of_rows(rows), np.full(3, 5), pools)
    degrees = 4 * (1 - correlation**2) / (1 + correlation**2)
    error = serial.error_factor(correlation, 5) * rows.std(axis=1, ddof=1) / math.sqrt(5)
    assert found.high - found.figure == pytest.approx(stats.t.ppf(0.975, degrees) * error)
    ratios = compare_rows(np.exp(rows), np.ones((3, 5)), pools=pools)
    assert ratios.log_se == pytest.approx(error)
    assert ratios.df == pytest.approx(degrees)


@every_row("values", [[3.0] * 5, [0.0] * 5, [1e-300, 2e-300, 1e-300, 2e-300, 1e-300]])
def test_values_that_are_alike_or_tiny_have_a_correlation(values: list[float]) -> None:
    row = np.array([values])
    assert np.isfinite(serial.pooled_so_far(row)).all()
    assert abs(serial.of_rows(row)[0]) <= 1


PROMISED = [
    (0.0, 1, 0.96, 1.45), (0.0, 4, 0.96, 1.2), (0.3, 1, 0.94, 9),
    (0.3, 4, 0.95, 9), (0.6, 1, 0.85, 9), (0.6, 4, 0.93, 9),
]  # fmt: skip
"""Correlation of neighbouring blocks, cells of the workload, what METHODS.md says is covered at least, and how many
times the blocks of a rule that takes trials as independent it takes at most."""


@pytest.mark.slow
@every_row("correlation, cells, covered, times", PROMISED)
def test_intervals_after_a_stopping_rule_allow_for_trials_like_their_neighbours(
    correlation: float, cells: int, covered: float, times: float
) -> None:
    """± 3 % where trials vary by 5 %. Taken as independent, 89 % are covered at a correlation of 0.3, 71 % at 0.6."""
    process = autocorrelated(correlation) if correlation else normal()
    values = process.draw(np.random.default_rng(20261128), (1200, RULE.max)).reshape(-1, cells, RULE.max)
    before, now = (OrderedRuns.of(values, RULE, allowed=allowed) for allowed in (False, True))
    holds = ~now.missed
    assert stats.binom.cdf(holds.sum(), holds.size, covered) > 1e-3, f"{holds.mean():.3f} covered"
    assert now.blocks.mean() <= times * before.blocks.mean()
    if correlation and cells == 1:
        assert before.missed.mean() > 1.5 * now.missed.mean()


def test_the_rule_looks_at_the_interval_that_is_printed() -> None:
    values = 1 + 0.05 * np.random.default_rng(3).standard_normal((4, 12))
    level = sequential.nominal_level(RULE, 0.95)
    printed = estimate_samples(
        values.ravel(), np.full(4, 12), level=level, signed=np.ones(4, dtype=bool), pools=np.zeros(4, dtype=np.int64)
    )
    assert sequential.allowed_half_widths(values, level)[:, -1] == pytest.approx(printed.high - printed.figure)
