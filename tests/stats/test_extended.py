"""Runs that are extended after a look: how often an interval that is printed then misses, whatever made them go on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from mountlab.core.model import Extensions
from mountlab.stats import adjust_comparisons, compare
from mountlab.stats.comparisons import compare_rows
from mountlab.stats.extended import SHRINK, level_after, true_p
from mountlab.stats.sequential import level_after as level_after_rule
from mountlab.stats.sequential import true_p_one_sided
from mountlab.stats.simulated import normal
from mountlab_dev.calibration import extended
from numpy.typing import NDArray
from repetition import others_long
from rows import every_row
from scipy import stats

Array = NDArray[np.float64]
LEVEL, MOST = 0.95, 5
RNG = np.random.default_rng(21)


# --- the correction ---------------------------------------------------------------------------------------------------


def test_each_look_has_a_quarter_of_the_error_of_the_one_before() -> None:
    assert level_after(0, LEVEL) == LEVEL
    assert [1 - level_after(k, LEVEL) for k in (1, 2, 3)] == pytest.approx([0.05 / 4, 0.05 / 16, 0.05 / 64])
    assert level_after_rule(Extensions(2), LEVEL) == level_after(2, LEVEL)


def test_a_p_value_is_below_the_error_exactly_where_the_interval_leaves_the_value_out() -> None:
    pairs = [(1 + 0.02 * abs(each), 1.0) for each in RNG.normal(size=7)]
    nominal = compare(pairs)
    edge = compare(pairs, level=1 - nominal.p)
    assert min(abs(edge.low - 1), abs(edge.high - 1)) < 1e-9
    assert true_p(nominal.p, 1) == pytest.approx(SHRINK * nominal.p)
    assert true_p([0.5, np.nan], 1).tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    assert true_p_one_sided(0.01, Extensions(1)) == pytest.approx(0.04)


def test_verdicts_of_a_sweep_are_those_of_its_corrected_intervals() -> None:
    """An interval for all together lies on one side of 1 exactly where the corrected p value decides."""
    sides = np.exp(RNG.normal(0.03, 0.02, (200, 8))), np.ones((200, 8))
    found = adjust_comparisons(compare_rows(*sides), level=LEVEL, smallest_effect=0.0, repeated_looks=Extensions(1))
    plain = adjust_comparisons(compare_rows(*sides), level=LEVEL, smallest_effect=0.0)
    beyond = (found.joint.low > 1) | (found.joint.high < 1)
    assert np.array_equal(beyond, found.p_adjusted < 1 - LEVEL)
    assert beyond.sum() < ((plain.joint.low > 1) | (plain.joint.high < 1)).sum()
    assert (found.own.low <= plain.own.low).all()


# --- how often it misses ----------------------------------------------------------------------------------------------


def always(t: Array, n: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.full(len(t), 5)


def one_more(t: Array, n: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.minimum(extended.while_undecided(t, n), 1)


RULES = (extended.while_undecided, extended.as_many_again, extended.as_seem_missing, always, one_more)
RUNS = 6_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "first"),
    others_long(
        [(rule, first) for rule in RULES for first in (3, 5, 10)],
        kept=[(RULES[0], 3), (RULES[0], 10), *((rule, 5) for rule in RULES[1:])],
    ),
)
def test_of_all_runs_at_most_five_in_a_hundred_are_extended_and_then_miss(rule: extended.Added, first: int) -> None:
    assert extended.missed(normal(), rule, RUNS, corrected=True, first=first).rate <= 0.05


@pytest.mark.slow
@every_row("rule", RULES[:4])
def test_without_the_correction_many_more_do(rule: extended.Added) -> None:
    assert extended.missed(normal(), rule, RUNS, corrected=False).rate > 0.09


def test_the_simulated_t_is_students() -> None:
    values = RNG.normal(3.0, 1.0, (4, 7))
    found = extended.t_after_each_block(values)
    for n in range(2, 8):
        assert found[:, n - 1] == pytest.approx(stats.ttest_1samp(values[:, :n], 0.0, axis=1).statistic)


# --- the worst that can be chosen -------------------------------------------------------------------------------------


def worst(levels: Sequence[float]) -> float:
    """The largest chance of a miss at one of these looks, over every rule for going on and for how far, on the normal
    limit: back from the last look, the best number of blocks for each z."""
    z = np.linspace(-8, 8, 401)
    further = 1 + np.concatenate([np.geomspace(1e-3, 1, 15), np.geomspace(1.2, 400, 15)])
    value = np.zeros_like(z)
    for level in reversed(levels):
        bound = stats.norm.ppf((1 + level) / 2)
        later = np.where(np.abs(z) > bound, 0, value)
        choices = []
        for ratio in further:
            mean, sd = z / np.sqrt(ratio), np.sqrt(1 - 1 / ratio)
            outside = stats.norm.sf((bound - mean) / sd) + stats.norm.cdf((-bound - mean) / sd)
            weights = np.exp(-0.5 * ((z - mean[:, None]) / sd) ** 2)
            choices.append(outside + weights / weights.sum(axis=1, keepdims=True) @ later)
        value = np.minimum(np.max(choices, axis=0), 1)
    return float((stats.norm.pdf(z) * value).sum() * (z[1] - z[0]))


def test_one_extension_errs_at_most_as_proschan_and_hunsberger_say() -> None:
    """Two-sided: twice their 1 - Phi(z) + exp(-z**2 / 2) / 4."""
    z = 1.959964
    assert worst([LEVEL]) == pytest.approx(0.05 + np.exp(-(z**2) / 2) / 2, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "allowed"), others_long([(0.95, 1.0), (0.99, 1.0), (0.999, 1.06)], kept=[(0.95, 1.0)])
)
def test_no_choice_of_blocks_in_five_extensions_errs_by_more_than_is_promised(level: float, allowed: float) -> None:
    levels = [level_after(k, level) for k in range(1, MOST + 1)]
    assert worst(levels) <= allowed * (1 - level)


@pytest.mark.slow
def test_halving_the_error_would_not_do() -> None:
    assert worst([1 - 0.05 / 2**k for k in range(1, MOST + 1)]) > 1.5 * 0.05
