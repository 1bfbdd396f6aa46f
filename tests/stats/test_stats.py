"""Statistics, recomputed by other routes, simulated, and tried on degenerate input. Every seed is fixed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.core.findings import Verdict
from mountlab.stats import (
    RATIO_METHOD,
    adjust_comparisons,
    compare,
    compare_rows,
    compare_unpaired,
    estimate,
    holm,
    p_equivalent,
    verdict,
)
from mountlab.stats.estimates import estimate_samples
from rows import every_row
from scipy import stats

VALUES = st.lists(st.floats(min_value=1e-3, max_value=1e12), min_size=2, max_size=12)
PAIRS = st.lists(st.tuples(*[st.floats(min_value=1e-3, max_value=1e9)] * 2), min_size=1, max_size=8)
T_975 = {1: 12.7062, 2: 4.30265, 3: 3.18245, 4: 2.77645, 9: 2.26216, 29: 2.04523}
"""Quantiles of Student's t at 0.975 by degrees of freedom, as printed in tables."""


def allowed_misses(trials: int, rate: float) -> int:
    """More misses than this come up once in a thousand times when the rate is as claimed."""
    return int(stats.binom.ppf(0.999, trials, rate))


# --- estimates --------------------------------------------------------------------------------------------------------


@given(VALUES, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@pytest.mark.slow
def test_the_interval_is_that_of_scipy(values: list[float], level: float) -> None:
    """Of values that may be negative as it is; else as that of the logarithm of the mean, transformed back."""
    ours, signed = estimate(values, level=level), estimate(values, level=level, signed=True)
    scale = stats.sem(values)
    assert ours.mean == signed.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert ours.n == len(values)
    if scale > 1e-9 * ours.mean:
        theirs = stats.t.interval(level, len(values) - 1, loc=np.mean(values), scale=scale)
        assert (signed.low, signed.high) == pytest.approx(theirs, rel=1e-9, abs=1e-9 * ours.mean)
        logs = stats.t.interval(level, len(values) - 1, loc=math.log(ours.mean), scale=scale / ours.mean)
        assert (ours.low, ours.high) == pytest.approx(tuple(map(math.exp, logs)), rel=1e-7)


@every_row("n", [2, 3, 4, 5, 10, 30])
def test_the_interval_by_hand_with_the_quantile_of_a_printed_table(n: int) -> None:
    values = [10 + (i * 7) % 5 + i / 10 for i in range(n)]
    mean = sum(values) / n
    sd = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = T_975[n - 1] * sd / math.sqrt(n)
    ours, signed = estimate(values), estimate(values, signed=True)
    assert (signed.low, signed.high) == pytest.approx((mean - half, mean + half), rel=1e-5)
    assert (ours.low, ours.high) == pytest.approx(
        (mean * math.exp(-half / mean), mean * math.exp(half / mean)), rel=1e-5
    )
    assert (ours.sd, ours.cv) == pytest.approx((sd, sd / mean))


def test_a_worked_example() -> None:
    """1, 2, 3, 4, 5: mean 3, sd sqrt(2.5), 95 % interval 3 +- 2.77645 * sqrt(0.5), which is 1.963243; on the log scale
    3 / 1.924015 and 3 * 1.924015."""
    signed = estimate([1, 2, 3, 4, 5], unit="B/s", signed=True)
    told = (signed.mean, signed.n, signed.level, signed.method, signed.unit)
    assert told == (3.0, 5, 0.95, "mean, t interval", "B/s")
    assert signed.sd == pytest.approx(1.5811388300841898)
    assert (signed.low, signed.high) == pytest.approx((1.036757, 4.963243), rel=1e-6)
    ours = estimate([1, 2, 3, 4, 5])
    assert ours.method == "mean, t interval on the log scale"
    assert (ours.low, ours.high) == pytest.approx((1.559239, 5.772046), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_95_percent_interval_covers_95_percent(n: int) -> None:
    """Trap: stop rules and bootstraps that cover 75 to 91 % at a 95 % claim. Of 20,000 intervals 906 to 1,097 may miss.
    That many samples at once give what each gives alone is tested in test_stats_estimates."""
    samples = np.random.default_rng(n).normal(100.0, 7.0, size=(20_000, n))
    found = estimate_samples(samples.ravel(), np.full(20_000, n), level=0.95)
    missed = np.count_nonzero((found.low > 100.0) | (found.high < 100.0))
    assert missed <= allowed_misses(20_000, 0.05)
    assert missed >= int(stats.binom.ppf(0.001, 20_000, 0.05)), "an interval that is too wide claims too little"


def test_the_interval_is_not_1_96_standard_deviations() -> None:
    """Trap: a '95 % interval' that is the mean +- 1.96 standard deviations."""
    ours = estimate([1, 2, 3, 4, 5])
    assert ours.high - ours.mean != pytest.approx(1.96 * ours.sd, rel=0.05)


@pytest.mark.slow
@given(VALUES, st.floats(min_value=1e-3, max_value=1e3))
def test_an_estimate_scales_with_its_unit(values: list[float], factor: float) -> None:
    ours, scaled = estimate(values), estimate([value * factor for value in values])
    assume(ours.sd > 1e-12 * abs(ours.mean))
    size = max(abs(ours.low), abs(ours.high)) * factor
    assert scaled.mean == pytest.approx(ours.mean * factor, rel=1e-9)
    assert (scaled.low, scaled.high) == pytest.approx(
        (ours.low * factor, ours.high * factor), rel=1e-7, abs=1e-9 * size
    )


@pytest.mark.slow
@given(st.permutations([3.0, 1.0, 4.0, 1.5, 9.0, 2.6]))
def test_the_order_of_values_does_not_matter(values: list[float]) -> None:
    ours, sorted_ones = estimate(values), estimate(sorted(values))
    assert (ours.low, ours.mean, ours.high) == pytest.approx(
        (sorted_ones.low, sorted_ones.mean, sorted_ones.high), rel=1e-12
    )


@pytest.mark.slow
@given(VALUES)
def test_a_higher_level_gives_a_wider_interval_around_the_same_mean(values: list[float]) -> None:
    narrow, wide = estimate(values, level=0.8), estimate(values, level=0.99)
    if narrow.sd > 1e-14 * abs(narrow.mean):
        assert wide.low <= narrow.low <= narrow.mean <= narrow.high <= wide.high
    assert wide.mean == narrow.mean


def test_two_values_give_the_widest_of_intervals() -> None:
    signed, ours = estimate([9.0, 11.0], signed=True), estimate([9.0, 11.0])
    assert (signed.low, signed.high) == pytest.approx((10 - 12.7062, 10 + 12.7062), rel=1e-5)
    assert (ours.low, ours.high) == pytest.approx((2.80657, 35.6307), rel=1e-5)


def test_a_constant_sample_has_no_interval_where_no_step_is_known() -> None:
    ours = estimate([7.5] * 4)
    assert (ours.mean, ours.sd, ours.cv) == (7.5, 0.0, 0.0)
    assert math.isnan(ours.low)
    assert math.isnan(ours.high)
    assert "the step of the figure is unknown" in ours.method


def test_a_mean_of_zero_has_no_coefficient_of_variation() -> None:
    assert math.isnan(estimate([-1.0, 1.0]).cv)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="values must be finite: a missing figure is left out"):
        estimate([1.0, bad])
    with pytest.raises(ValueError, match="values must be finite"):
        compare([(1.0, 2.0), (bad, 1.0)])


@every_row("level", [0, 1, 95, -0.5, math.nan, math.inf, 0.9999999999999999, "0.95", True])
def test_a_level_out_of_range_is_refused_with_the_range(level: Any) -> None:
    for asked in (
        lambda: estimate([1.0, 2.0], level=level),
        lambda: compare([(1.0, 2.0)], level=level),
        lambda: compare_unpaired([1.0, 2.0], [3.0, 4.0], level=level),
    ):
        with pytest.raises(ParameterError, match="not a level") as caught:
            asked()
        assert caught.value.allowed == "a share from 0.01 to 0.999999: 0.95 is 95 %"


# --- ratios -----------------------------------------------------------------------------------------------------------


def test_a_ratio_by_hand() -> None:
    """Log ratios log 2, log 2, log 4: mean 4/3 log 2, sd log 2 / sqrt 3, t(2) = 4.30265."""
    ours = compare([(2, 1), (4, 2), (12, 3)])
    assert ours.ratio == pytest.approx(2 ** (4 / 3))
    half = 4.30265 * math.log(2) / math.sqrt(3) / math.sqrt(3)
    assert (ours.low, ours.high) == pytest.approx(
        (2 ** (4 / 3) / math.exp(half), 2 ** (4 / 3) * math.exp(half)), rel=1e-5
    )
    assert ours.n == 3


def test_it_is_the_ratio_of_geometric_means_as_the_method_says() -> None:
    pairs = [(2.0, 1.0), (5.0, 3.0), (7.0, 2.0)]
    candidate, baseline = zip(*pairs, strict=True)
    assert compare(pairs).ratio == pytest.approx(stats.gmean(candidate) / stats.gmean(baseline))
    assert "geometric means" in RATIO_METHOD


def test_p_is_that_of_the_paired_t_test_on_logs() -> None:
    rng = np.random.default_rng(4)
    pairs = np.exp(rng.normal(0.1, 0.2, size=(6, 2)))
    expected = stats.ttest_rel(np.log(pairs[:, 0]), np.log(pairs[:, 1]))
    ours = compare([(float(a), float(b)) for a, b in pairs])
    assert ours.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


@pytest.mark.slow
@given(PAIRS)
def test_swapping_the_sides_gives_exactly_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    """Trap: transforming an interval's half-width instead of its end points."""
    ours, swapped = compare(pairs), compare([(b, a) for a, b in pairs])
    assert swapped.ratio * ours.ratio == pytest.approx(1, rel=1e-12)
    assert swapped.p == pytest.approx(ours.p, rel=1e-12, nan_ok=True)
    if ours.n > 1 and ours.log_se < 20:
        assert swapped.low * ours.high == pytest.approx(1, rel=1e-12)
        assert swapped.high * ours.low == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
@given(PAIRS, st.floats(min_value=1e-3, max_value=1e3))
def test_a_faster_box_for_both_sides_changes_no_ratio(pairs: list[tuple[float, float]], factor: float) -> None:
    ours, scaled = compare(pairs), compare([(a * factor, b * factor) for a, b in pairs])
    assert scaled.ratio == pytest.approx(ours.ratio, rel=1e-9)


def test_pairing_by_block_takes_the_drift_of_the_box_out() -> None:
    drift = [1.0, 2.0, 4.0, 8.0]
    ours = compare([(1.1 * d * wobble, d) for d, wobble in zip(drift, (1, 1.01, 0.99, 1), strict=True)])
    assert 1.08 < ours.low < 1.1 < ours.high < 1.12


@pytest.mark.parametrize("bad", [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)])
def test_a_ratio_needs_positive_values(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="a ratio needs positive values"):
        compare([(1.0, 1.0), bad])


def test_no_pair_and_one_pair_have_no_interval_and_no_p() -> None:
    none, one = compare([]), compare([(3.0, 2.0)])
    assert math.isnan(none.ratio)
    assert one.ratio == pytest.approx(1.5)
    for each in (none, one):
        assert all(math.isnan(part) for part in (each.low, each.high, each.p))
        assert math.isnan(p_equivalent(each, 0.02))


@pytest.mark.parametrize("pairs", [[(21.0, 20.0)] * 2, [(2.0, 2.0)] * 3, [(4.0, 2.0), (42.0, 21.0), (0.4, 0.2)]])
def test_constant_ratios_say_nothing_about_the_spread(pairs: list[tuple[float, float]]) -> None:
    ours = compare(pairs)
    assert ours.ratio == pytest.approx(pairs[0][0] / pairs[0][1])
    assert all(math.isnan(part) for part in (ours.low, ours.high, ours.p, p_equivalent(ours, 0.02)))


def test_constant_ratios_of_rounded_figures_have_the_variance_of_rounding() -> None:
    """GUM: step^2 / 12 a side, the same for both trials and so not divided by n; and t with one degree of freedom."""
    ours = compare([(21.0, 20.0)] * 2, steps=(1.0, 1.0))
    se = math.sqrt((1 / 21**2 + 1 / 20**2) / 12)
    assert ours.log_se == pytest.approx(se)
    assert ours.p == pytest.approx(2 * stats.t.sf(math.log(21 / 20) / se, 1))


def test_two_very_different_pairs_have_bounds_without_end_and_no_crash() -> None:
    ours = compare([(10.0, 1.0), (1.0, 1.0)], level=0.9999)
    assert (ours.low, ours.high) == (0.0, math.inf)
    assert ours.ratio == pytest.approx(math.sqrt(10))


# --- equivalence ------------------------------------------------------------------------------------------------------


@every_row("effect", [0.02, 0.1, 0.5])
@every_row("shift", [0.0, 0.01, -0.05, 0.3])
def test_equivalence_is_the_worse_of_two_one_sided_tests(effect: float, shift: float) -> None:
    logs = np.random.default_rng(8).normal(shift, 0.02, 6)
    bound = math.log(1 + effect)
    lower = stats.ttest_1samp(logs, -bound, alternative="greater").pvalue
    upper = stats.ttest_1samp(logs, bound, alternative="less").pvalue
    ours = compare([(math.exp(log), 1.0) for log in logs])
    assert p_equivalent(ours, effect) == pytest.approx(max(lower, upper), rel=1e-6, abs=1e-12)


def test_equivalence_agrees_with_the_90_percent_interval_inside_the_bounds() -> None:
    rng = np.random.default_rng(12)
    for _ in range(100):
        pairs = [(float(value), 1.0) for value in np.exp(rng.normal(0, 0.03, 5))]
        narrow = compare(pairs, level=0.90)
        inside = narrow.low > 1 / 1.02 and narrow.high < 1.02
        assert (p_equivalent(narrow, 0.02) < 0.05) == inside


def test_equivalence_does_not_depend_on_which_side_is_the_baseline() -> None:
    pairs = [(1.01, 1.0), (1.0, 1.02), (1.005, 1.0)]
    assert p_equivalent(compare(pairs), 0.05) == pytest.approx(p_equivalent(compare([(b, a) for a, b in pairs]), 0.05))


# --- families ---------------------------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    """p = 0.01, 0.04, 0.03, 0.005: times 3, 1, 2, 4 in order of rank, then never below an earlier one."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.3]) == [0.3]
    assert holm([0.5, 0.6]) == [1.0, 1.0]


def test_an_unknown_p_is_kept_and_not_counted() -> None:
    adjusted = holm([0.01, math.nan, 0.02])
    assert adjusted[0] == pytest.approx(0.02)
    assert math.isnan(adjusted[1])
    assert adjusted[2] == pytest.approx(0.02)


@pytest.mark.slow
@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=30))
def test_holm_never_lowers_a_p_never_passes_1_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    known = [(p, q) for p, q in zip(p_values, adjusted, strict=True) if not math.isnan(p)]
    assert [math.isnan(q) for q in adjusted] == [math.isnan(p) for p in p_values]
    assert all(p <= q <= 1 for p, q in known)
    ranked = sorted(known)
    assert [q for _, q in ranked] == sorted(q for _, q in ranked)
    if known:
        assert min(q for _, q in known) == pytest.approx(min(1.0, len(known) * min(p for p, _ in known)))


@pytest.mark.slow
def test_forty_identical_cells_give_a_false_alarm_in_at_most_5_percent_of_sweeps() -> None:
    """Trap: comparing 40 cells without correction gives an 84 % chance of at least one false alarm."""
    rng = np.random.default_rng(40)
    sweeps, cells, blocks = 200, 40, 5
    alarms = careless = 0
    for _ in range(sweeps):
        ratios = compare_rows(*np.exp(rng.normal(0, 0.05, size=(2, cells, blocks))))
        together = adjust_comparisons(ratios, level=0.95, smallest_effect=0.02)
        words = {
            verdict(ratio, p_adjusted=p, p_equivalent_adjusted=q, level=0.95, more_is_better=True)
            for ratio, p, q in zip(ratios.ratio, together.p_adjusted, together.p_equivalent_adjusted, strict=True)
        }
        alarms += bool(words & {"faster", "slower"})
        careless += bool(np.any(ratios.p() < 0.05))
    assert alarms <= allowed_misses(sweeps, 0.05)
    assert careless > 0.7 * sweeps, "the simulation would show a missing correction"


# --- verdicts ---------------------------------------------------------------------------------------------------------


@every_row(
    ("value", "p", "p_same", "more_is_better", "expected"),
    [
        (2.0, 0.01, 0.9, True, "faster"),
        (0.5, 0.01, 0.9, True, "slower"),
        (2.0, 0.01, 0.9, False, "slower"),
        (0.5, 0.01, 0.9, False, "faster"),
        (1.001, 0.5, 0.01, True, "same"),
        (1.001, 0.01, 0.01, True, "same"),
        (1.2, 0.06, 0.5, True, "undecided"),
        (1.2, 0.0501, 0.0501, True, "undecided"),
        (1.2, 1.0, 1.0, True, "undecided"),
    ],
)
def test_the_four_verdicts(value: float, p: float, p_same: float, more_is_better: bool, expected: Verdict) -> None:
    """Trap: 'p >= 0.05, so they are the same'. Not shown to differ is undecided; same must be shown."""
    said = verdict(value, p_adjusted=p, p_equivalent_adjusted=p_same, level=0.95, more_is_better=more_is_better)
    assert said == expected


def test_the_verdict_is_held_to_the_level_of_the_sweep() -> None:
    p: dict[str, Any] = {"p_adjusted": 0.02, "p_equivalent_adjusted": 1.0, "more_is_better": True}
    assert verdict(2.0, level=0.99, **p) == "undecided"
    assert verdict(2.0, level=0.95, **p) == "faster"


def test_an_unknown_p_value_decides_nothing() -> None:
    unknown: dict[str, Any] = {"p_adjusted": math.nan, "p_equivalent_adjusted": math.nan}
    assert verdict(2.0, level=0.95, more_is_better=True, **unknown) == "undecided"
