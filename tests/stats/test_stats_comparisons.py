"""Ratios of many cells: Welch, families and their intervals for all together, and what it would take to decide."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.model import Until
from mountlab.stats import (
    RATIO_METHOD,
    WELCH_METHOD,
    adjust_comparisons,
    compare,
    compare_rows,
    compare_rows_unpaired,
    compare_unpaired,
    holm,
    p_equivalent,
    sequential,
)
from mountlab.stats.adjusted import KEPT, ComparisonSet, WouldDecide, step_down
from mountlab.stats.comparisons import Ratios
from repetition import others_long
from rows import every_row
from scipy import stats

NAN = math.nan
STUDENT = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)  # fmt: skip
"""Hours of sleep gained by ten patients with each of two drugs: the example of Student (1908)."""
P_VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(NAN)), max_size=30)


def allowed_misses(trials: int, rate: float) -> int:
    """More misses than this come up once in a thousand times when the rate is as claimed."""
    return int(stats.binom.ppf(0.999, trials, rate))


def all_together(ratios: Ratios, **changes: Any) -> ComparisonSet:
    return adjust_comparisons(ratios, **{"level": 0.95, "smallest_effect": 0.02, **changes})


# --- worked examples --------------------------------------------------------------------------------------------------


def test_the_paired_test_of_student_1908() -> None:
    """Published everywhere: t = -4.0621, df = 9, p = 0.002833, 95 % interval of the difference [-2.4599, -0.7001]."""
    ours = compare([(math.exp(a), math.exp(b)) for a, b in zip(*STUDENT, strict=True)])
    assert ours.log_mean / ours.log_se == pytest.approx(-4.0621, abs=5e-5)
    assert (ours.df, ours.method) == (9, RATIO_METHOD)
    assert ours.p == pytest.approx(0.002833, abs=5e-7)
    assert (math.log(ours.low), math.log(ours.high)) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)


def test_the_same_data_not_paired_by_welch() -> None:
    """As printed in the manual of R's t.test: t = -1.8608, df = 17.776, p = 0.07939. Ours lies between that p and the
    one with 9 degrees of freedom, those of the smaller side, near the first."""
    ours = compare_unpaired(*([math.exp(value) for value in side] for side in STUDENT))
    assert ours.log_mean / ours.log_se == pytest.approx(-1.8608, abs=5e-5)
    assert ours.df == pytest.approx(17.776, abs=5e-4)
    assert 0.07939 < ours.p < 0.0805 < 2 * stats.t.sf(1.860813, 9)
    assert (ours.n, ours.method) == (10, WELCH_METHOD)


# --- Welch ------------------------------------------------------------------------------------------------------------

SIDE = st.lists(st.integers(10, 10**6), min_size=2, max_size=9, unique=True).map(lambda side: [x / 100 for x in side])
"""Not so near to each other that scipy warns of lost digits."""


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(SIDE, SIDE)
def test_welch_has_the_error_of_scipys_and_no_more_degrees_of_freedom(ours: list[float], theirs: list[float]) -> None:
    found = compare_unpaired(ours, theirs, level=0.9)
    if found.log_se > 1e-6:
        expected = stats.ttest_ind(np.log(ours), np.log(theirs), equal_var=False)
        assert found.log_mean / found.log_se == pytest.approx(expected.statistic, rel=1e-7, abs=1e-9)
        assert found.df == pytest.approx(expected.df, rel=1e-6)
        assert found.p >= expected.pvalue * (1 - 1e-9)
        assert found.p <= 2 * stats.t.sf(abs(expected.statistic), min(len(ours), len(theirs)) - 1) * (1 + 1e-6)
        half = found.log_mean - math.log(found.low)
        least, most = (stats.t.ppf(0.95, df) for df in (expected.df, min(len(ours), len(theirs)) - 1))
        assert least * (1 - 1e-6) <= half / found.log_se <= most * (1 + 1e-6)
        assert math.log(found.high) - found.log_mean == pytest.approx(half, rel=1e-6, abs=1e-9)


def exact_error(n: int, other: int, tail: float, variances: float) -> float:
    """How often Welch's t of two normal samples lies beyond its bound at `tail`, where nothing differs. The shares of
    the two sums of squares are a beta variable; given them, t times a known factor has Student's distribution."""
    degrees = np.array([n - 1, other - 1])
    edges = np.linspace(-25, 25, 1201)
    weights = np.diff(stats.beta.cdf(1 / (1 + np.exp(-edges)), *degrees / 2))
    shares = 1 / (1 + np.exp(-(edges[1:] + edges[:-1]) / 2))
    true = np.array([variances / n, 1 / other]) / (variances / n + 1 / other)
    parts = [true[0] * shares / degrees[0], true[1] * (1 - shares) / degrees[1]]
    of_first = parts[0] / (parts[0] + parts[1])
    df = 1 / (of_first**2 / degrees[0] + (1 - of_first) ** 2 / degrees[1])
    unpaired = np.zeros(len(df), dtype=bool)
    ratios = Ratios(np.zeros(len(df)), np.full(len(df), 1e-3), df, np.full(len(df), min(n, other)), unpaired)
    bound = -np.log(ratios.bounds(1 - 2 * tail)[0]) * 1e3
    return float(weights @ stats.t.sf(bound * np.sqrt(degrees.sum() * (parts[0] + parts[1])), degrees.sum()))


@pytest.mark.slow
@every_row("sizes", [(2, 2), (2, 10), (3, 30), (5, 5), (5, 30), (10, 10), (10, 30), (30, 30)])
def test_welch_keeps_its_error_in_far_tails(sizes: tuple[int, int]) -> None:
    """Trap: Satterthwaite's degrees of freedom. 5 values a side reject twice as often as they should at 0.064 %, which
    is where one of 39 comparisons is decided; 2 beside 10 much more often."""
    for tail in (0.025, 0.05 / 2 / 39, 1e-5):
        worst = max(exact_error(*sizes, tail, variances) for variances in np.geomspace(0.01, 100, 9))
        assert worst < 1.05 * tail, (tail, worst / tail)


def test_welch_wastes_little_where_few_comparisons_are_made() -> None:
    """Trap: degrees of freedom of the smaller side, with which 5 values a side reject 2.3 % at 5 %."""
    assert 2 * exact_error(5, 5, 0.025, 1) > 0.035
    assert 2 * exact_error(10, 10, 0.025, 1) > 0.045


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sides", "spreads", "sweeps"),
    others_long(
        [
            ((2, 10), (1, 1), 40), ((5, 5), (1, 5), 40),
            ((2, 10), (1, 1), 120), ((3, 30), (1, 2), 120), ((5, 5), (1, 5), 120), ((5, 40), (2, 1), 120),
        ],
        kept=[((2, 10), (1, 1), 40), ((5, 5), (1, 5), 40)],
    ),
)  # fmt: skip
def test_a_family_that_is_not_paired_has_a_false_verdict_in_at_most_5_percent_of_sweeps(
    sides: tuple[int, int], spreads: tuple[int, int], sweeps: int
) -> None:
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(sweeps):
        ours, theirs = (np.exp(rng.normal(0, 0.05 * s, (40, n))) for n, s in zip(sides, spreads, strict=True))
        together = adjust_comparisons(compare_rows_unpaired(ours, theirs), level=0.95, smallest_effect=0.0)
        wrong += bool(np.any(together.p_adjusted < 0.05))
    assert wrong <= stats.binom.isf(1e-4, sweeps, 0.05)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(SIDE, SIDE)
def test_swapping_unpaired_sides_gives_exactly_the_reciprocal(ours: list[float], theirs: list[float]) -> None:
    found, swapped = compare_unpaired(ours, theirs), compare_unpaired(theirs, ours)
    assert swapped.log_mean == -found.log_mean
    assert swapped.p == found.p
    assert swapped.low * found.high == pytest.approx(1, rel=1e-12)


def test_welch_with_too_few_values_has_a_ratio_and_no_interval() -> None:
    one = compare_unpaired([4.0], [1.0, 1.0, 1.0])
    assert one.ratio == pytest.approx(4)
    assert all(math.isnan(part) for part in (one.low, one.high, one.p))
    assert math.isnan(compare_unpaired([], [1.0, 2.0]).ratio)


def test_welch_without_any_spread_has_no_interval_but_by_the_step() -> None:
    found = compare_unpaired([2.0, 2.0], [1.0, 1.0, 1.0])
    assert all(math.isnan(part) for part in (found.low, found.high, found.p))
    rounded = compare_unpaired([2.0, 2.0], [1.0, 1.0, 1.0], steps=(0.1, 0.1))
    assert rounded.log_se == pytest.approx(math.hypot(0.05, 0.1) / math.sqrt(12))


# --- which of the two -------------------------------------------------------------------------------------------------


def one_row(candidate: list[float], baseline: list[float]) -> Ratios:
    return compare_rows(np.array([candidate]), np.array([baseline]))


@every_row(
    ("candidate", "baseline", "paired", "n"),
    [
        ([1, 2, 3, 4], [1, 1, 1, 1], True, 4),
        ([1, NAN, 3], [1, 1, 2], True, 2),  # 4 of 5 values stand in pairs
        ([1, 2, 3, NAN, NAN, NAN], [1, 1, 2, 1, 2, 1], True, 3),  # all of one side have partners
        ([1, 2, 4, 3, 5, NAN, NAN], [1, 3, 2, 2, NAN, 4, 2], True, 4),  # four pairs are enough
        ([1, 2, 4, 3, NAN, NAN], [1, 3, 2, NAN, 4, 2], False, 4),  # three are not, with values alone on both sides
        ([1, 2, NAN, NAN], [NAN, NAN, 1, 2], False, 2),  # no block has both
        ([1, 2, NAN], [NAN, 1, 2], False, 2),  # one pair, which would have no interval
        ([1, NAN, NAN], [1, 1, 2], True, 1),  # neither has an interval
        ([0, 2, 3, 4], [1, 1, 1, 1], True, 3),  # a count of zero has no ratio, and counts as missing
    ],
)
def test_pairs_are_used_where_four_exist_or_one_side_has_partners_for_all(
    candidate: list[float], baseline: list[float], paired: bool, n: int
) -> None:
    found = one_row(candidate, baseline)
    assert (bool(found.paired[0]), int(found.n[0])) == (paired, n)
    pairs = [(a, b) for a, b in zip(candidate, baseline, strict=True) if a > 0 and b > 0]
    sides = [[value for value in side if value > 0] for side in (candidate, baseline)]
    expected = compare(pairs) if paired else compare_unpaired(*sides)
    low, high = found.bounds(0.95)
    assert [found.ratio[0], low[0], high[0], found.p()[0]] == pytest.approx(
        [expected.ratio, expected.low, expected.high, expected.p], rel=1e-12, nan_ok=True
    )


@every_row("kept", [11, 10, 4, 3])
def test_drift_cancels_where_one_side_ends_early(kept: int) -> None:
    """A box that slows down by 10 % over 20 blocks, two identical cells: 5 % of intervals miss 1, and there is no bias.
    By Welch 52 % do after 10 blocks, with a bias of 2.7 %."""
    rng = np.random.default_rng(kept)
    drift = -0.1 * np.linspace(0, 1, 20)
    ours, theirs = np.exp(drift + 0.02 * rng.standard_normal((2, 2000, 20)))
    ours[:, kept:] = NAN
    found = compare_rows(ours, theirs)
    assert np.mean(found.p() < 0.05) < 0.07
    assert abs(found.log_mean.mean()) < 0.002


TABLE = st.integers(1, 6).flatmap(
    lambda blocks: st.lists(
        st.tuples(*[st.lists(st.one_of(st.just(NAN), st.floats(0.01, 1e6)), min_size=blocks, max_size=blocks)] * 2),
        min_size=1,
        max_size=6,
    )
)


@settings(deadline=None)  # on a busy machine
@given(TABLE)
@pytest.mark.slow
def test_many_comparisons_at_once_give_what_each_gives_alone(table: list[tuple[list[float], list[float]]]) -> None:
    """Unequal n, missing trials, n of 0, 1 and 2 among them."""
    ours, theirs = (np.array(side) for side in zip(*table, strict=True))
    found = compare_rows(ours, theirs)
    low, high = found.bounds(0.95)
    for place, (candidate, baseline) in enumerate(table):
        pairs = [(a, b) for a, b in zip(candidate, baseline, strict=True) if a > 0 and b > 0]
        sides = [[value for value in side if value > 0] for side in (candidate, baseline)]
        alone = compare(pairs) if found.paired[place] else compare_unpaired(*sides)
        together = [found.ratio[place], low[place], high[place], found.p()[place], found.log_se[place]]
        expected = [alone.ratio, alone.low, alone.high, alone.p, alone.log_se]
        assert together == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(TABLE, st.randoms(use_true_random=False))
def test_the_order_of_blocks_does_not_matter(table: list[tuple[list[float], list[float]]], random: Any) -> None:
    ours, theirs = (np.array(side) for side in zip(*table, strict=True))
    order = list(range(ours.shape[1]))
    random.shuffle(order)
    found, other = compare_rows(ours, theirs), compare_rows(ours[:, order], theirs[:, order])
    assert other.log_mean == pytest.approx(found.log_mean, rel=1e-9, abs=1e-12, nan_ok=True)
    assert other.log_se == pytest.approx(found.log_se, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(TABLE, st.floats(1e-3, 1e3))
def test_a_unit_changes_no_ratio(table: list[tuple[list[float], list[float]]], factor: float) -> None:
    ours, theirs = (np.array(side) for side in zip(*table, strict=True))
    found, scaled = compare_rows(ours, theirs), compare_rows(ours * factor, theirs * factor)
    assert scaled.ratio == pytest.approx(found.ratio, rel=1e-9, nan_ok=True)


# --- families: p values -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def multitest() -> Any:
    return pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")


ALIKE, SPREAD = [0.03] * 6 + [0.0, 1.0], np.random.default_rng(1).beta(0.3, 1, 25).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("p_values", [[], [NAN], [0.2], ALIKE, [*SPREAD[:12], NAN, 0.0, NAN, *SPREAD[12:]]])
@pytest.mark.xdist_group("statsmodels")
def test_with_no_share_kept_it_is_holm_and_with_all_of_it_bonferroni(multitest: Any, p_values: list[float]) -> None:
    known = [p for p in p_values if not math.isnan(p)]
    for kept, method in ((0.0, "holm"), (1.0, "bonferroni")):
        expected = multitest.multipletests(known, method=method)[1] if known else []
        found = step_down(np.array(p_values), kept=kept)
        np.testing.assert_allclose(found[~np.isnan(found)], expected, rtol=1e-12)
        assert list(np.isnan(found)) == [math.isnan(p) for p in p_values]


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(P_VALUES)
def test_what_is_adjusted_lies_between_holm_and_bonferroni(p_values: list[float]) -> None:
    found, count = step_down(np.array(p_values)), sum(not math.isnan(p) for p in p_values)
    for p, ours, by_holm in zip(p_values, found, holm(p_values), strict=True):
        if not math.isnan(p):
            assert by_holm * (1 - 1e-12) <= ours <= min(1, count * p) * (1 + 1e-12)


@pytest.mark.slow
@settings(deadline=None)  # on a busy machine
@given(P_VALUES)
def test_the_first_step_is_that_of_holm(p_values: list[float]) -> None:
    found, by_holm = step_down(np.array(p_values)), np.array(holm(p_values))
    if np.any(~np.isnan(found)):
        assert np.nanmin(found) == pytest.approx(np.nanmin(by_holm), rel=1e-12)


def test_by_hand() -> None:
    """Three p values: 0.01 is weighted 3; 0.02 by 1 / (0.8 / 2 + 0.2 / 3); 0.04 by 1 / (0.8 + 0.2 / 3)."""
    assert KEPT == 0.2
    found = step_down(np.array([0.04, 0.01, 0.02]))
    assert found == pytest.approx([0.04 / (0.8 + 0.2 / 3), 0.03, 0.02 / (0.4 + 0.2 / 3)])


def test_one_comparison_alone_is_not_adjusted() -> None:
    ratios = one_row([1.1, 1.2, 1.15], [1.0, 1.0, 1.0])
    found = all_together(ratios)
    assert found.p_adjusted[0] == pytest.approx(found.p[0], rel=1e-12)
    assert (found.joint.low[0], found.joint.high[0]) == pytest.approx((found.own.low[0], found.own.high[0]), rel=1e-12)


# --- families: intervals for all together -----------------------------------------------------------------------------


def drawn(rng: np.random.Generator, effects: np.ndarray, blocks: int, spread: float = 0.05) -> Ratios:
    """Ratios of cells to one baseline, whose noise they share."""
    logs = rng.normal(0, spread, size=(len(effects) + 1, blocks))
    return compare_rows(np.exp(logs[1:] + effects[:, None]), np.exp(np.broadcast_to(logs[0], logs[1:].shape)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "families"),
    others_long([(2, 10), (5, 10), (2, 40), (3, 40), (5, 40), (20, 40)], kept=[(2, 10), (5, 10)]),
)
def test_an_interval_leaves_out_1_exactly_where_a_difference_is_shown(blocks: int, families: int) -> None:
    rng, seen = np.random.default_rng(blocks), set()
    for _ in range(families):
        ratios = drawn(rng, rng.choice([0.0, 0.1, -0.3, 1.0], size=12), blocks)
        found = all_together(ratios)
        shown = found.p_adjusted < 0.05
        assert list((found.joint.low > 1) | (found.joint.high < 1)) == list(shown)
        assert list(found.joint.low[shown] > 1) == list(ratios.ratio[shown] > 1)
        assert np.all(found.joint.low <= ratios.ratio)
        assert np.all(ratios.ratio <= found.joint.high)
        seen |= set(shown.tolist())
    assert seen == {True, False} or blocks == 2


def test_they_are_wider_than_those_of_each_alone_but_for_the_side_that_is_cut_at_1() -> None:
    rng = np.random.default_rng(3)
    found = all_together(drawn(rng, rng.choice([0.0, 0.2, 1.0], size=20), 5))
    uncut = found.joint.low > 1 + 1e-9
    assert np.all(found.joint.low[uncut] <= found.own.low[uncut])
    assert np.all(found.joint.high >= found.own.high * (1 - 1e-12))


def test_swapping_the_sides_of_all_comparisons_turns_every_interval_round() -> None:
    rng = np.random.default_rng(5)
    ours = np.exp(rng.normal(rng.choice([0.0, 0.2, -0.5], size=(15, 1)), 0.05, size=(15, 6)))
    theirs = np.exp(rng.normal(0, 0.05, size=(15, 6)))
    found, swapped = (all_together(compare_rows(*sides)) for sides in ((ours, theirs), (theirs, ours)))
    assert swapped.joint.low == pytest.approx(1 / found.joint.high, rel=1e-12)
    assert swapped.joint.high == pytest.approx(1 / found.joint.low, rel=1e-12)
    assert swapped.p_adjusted == pytest.approx(found.p_adjusted, rel=1e-12)
    assert swapped.needed == pytest.approx(found.needed, nan_ok=True)


def test_where_all_are_decided_every_bound_is_that_of_bonferroni() -> None:
    ratios = drawn(np.random.default_rng(8), np.array([1.0, 2.0, 3.0, 4.0]), 6)
    found = all_together(ratios)
    assert np.all(found.p_adjusted < 0.05)
    assert found.joint.low == pytest.approx(ratios.bounds(1 - 0.05 / 4)[0], rel=1e-12)


def test_unknown_comparisons_are_not_counted_and_stay_unknown() -> None:
    known, unknown = ([1.1, 1.3, 1.2], [1.0, 1.0, 1.0]), ([1.1, NAN, NAN], [1.0, NAN, NAN])
    both = all_together(compare_rows(*(np.array(side) for side in zip(known, unknown, strict=True))))
    alone = all_together(one_row(*known))
    assert both.joint.low[0] == pytest.approx(alone.joint.low[0], rel=1e-12)
    unknown_parts = (both.p_adjusted, both.joint.low, both.joint.high, both.needed, both.p_equivalent_adjusted)
    assert all(math.isnan(part[1]) for part in unknown_parts)


EFFECTS = {
    "nothing differs": np.zeros(20),
    "one differs": np.r_[2.0, np.zeros(19)],
    "half differ, some each way": np.r_[np.full(5, 0.2), np.full(5, -2.0), np.zeros(10)],
    "all but one differ": np.r_[np.linspace(0.05, 3.0, 19), 0.0],
    "all differ": np.linspace(0.05, 3.0, 20),
}
"""True log ratios of 20 comparisons with one baseline."""


REPRESENTATIVE = [(3, "nothing differs", 50), (5, "half differ, some each way", 50)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "truth", "sweeps"),
    others_long([*REPRESENTATIVE, *product((3, 5, 10), EFFECTS, [150])], kept=REPRESENTATIVE),
)
def test_no_false_verdict_and_no_miss_in_95_percent_of_sweeps(truth: str, blocks: int, sweeps: int) -> None:
    """Together: a sweep fails if any verdict is false, or any interval for all together misses."""
    rng, effects = np.random.default_rng(blocks), EFFECTS[truth]
    failed = 0
    for _ in range(sweeps):
        found = all_together(drawn(rng, effects, blocks))
        above, below = found.joint.low > 1, found.joint.high < 1
        wrong = np.any(above & (effects <= 0)) or np.any(below & (effects >= 0))
        missed = np.any(np.log(found.joint.low) > effects) or np.any(np.log(found.joint.high) < effects)
        failed += bool(wrong or missed)
    assert failed <= allowed_misses(sweeps, 0.05)


@pytest.mark.long
def test_intervals_of_each_alone_would_not_do() -> None:
    """The simulation above would show a missing correction."""
    rng, effects = np.random.default_rng(1), EFFECTS["half differ, some each way"]
    missed = 0
    for _ in range(80):
        found = all_together(drawn(rng, effects, 5))
        missed += bool(np.any(np.log(found.own.low) > effects) or np.any(np.log(found.own.high) < effects))
    assert missed > 0.3 * 80


def test_deciding_some_makes_it_easier_to_decide_the_others() -> None:
    """What Holm gains over Bonferroni: among 19 decided comparisons the last is tested nearly as if it were alone."""
    last = one_row([1.1, 1.12, 1.08, 1.11], [1.0, 1.0, 1.0, 1.0])
    huge = compare_rows(np.exp(3.0 + np.tile([0, 0.01, 0.02, 0.03], (19, 1))), np.ones((19, 4)))
    both = Ratios(*(np.r_[getattr(huge, name), getattr(last, name)] for name in Ratios.__dataclass_fields__))
    p, adjusted = float(last.p()[0]), float(all_together(both).p_adjusted[-1])
    assert adjusted == pytest.approx(p / (0.8 + 0.2 / 20), rel=1e-9)


# --- equivalence ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 0.02, -0.1])
def test_two_one_sided_tests_are_those_of_statsmodels(shift: float) -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats", reason="statsmodels is not installed")
    logs = np.random.default_rng(2).normal(shift, 0.03, size=(2, 8))
    bound = math.log(1.05)
    expected = weightstats.ttost_paired(logs[0], logs[1], -bound, bound)[0]
    ours = compare([(math.exp(a), math.exp(b)) for a, b in logs.T])
    assert p_equivalent(ours, 0.05) == pytest.approx(expected, rel=1e-9)


def test_equivalence_is_adjusted_by_holm_over_the_same_family() -> None:
    ratios = drawn(np.random.default_rng(4), np.array([0.0, 0.0, 0.5]), 12, spread=0.005)
    found = all_together(ratios)
    assert list(found.p_equivalent_adjusted) == pytest.approx(holm(ratios.p_equivalent(0.02)), rel=1e-12)


# --- what it would take -----------------------------------------------------------------------------------------------


def needed_blocks(ratios: Ratios, undecided: int, level: float, smallest_effect: float) -> np.ndarray:
    return WouldDecide.of(ratios, undecided, level, smallest_effect).needed()


def ratio_of(mean: float, sd: float, n: int) -> Ratios:
    """One comparison with exactly this mean and standard deviation of its log ratios."""
    one = np.ones(1)
    return Ratios(mean * one, sd / math.sqrt(n) * one, (n - 1) * one, np.array([n]), np.array([True]))


@every_row(("mean", "sd"), [(0.05, 0.1), (0.1, 0.1), (0.3, 0.2), (0.03, 0.05)])
def test_the_blocks_that_show_a_difference_are_those_of_statsmodels(mean: float, sd: float) -> None:
    power = pytest.importorskip("statsmodels.stats.power", reason="statsmodels is not installed")
    expected = power.TTestPower().solve_power(effect_size=mean / sd, alpha=0.05, power=0.8, alternative="two-sided")
    (found,) = needed_blocks(ratio_of(mean, sd, 3), 1, 0.95, 0.0)
    assert found == math.ceil(expected)


def test_with_as_many_blocks_as_said_the_chance_is_80_percent() -> None:
    mean, sd = 0.06, 0.1
    (blocks,) = needed_blocks(ratio_of(mean, sd, 3), 1, 0.95, 0.0)
    logs = np.random.default_rng(6).normal(mean, sd, size=(4000, int(blocks)))
    shown = int(np.count_nonzero(compare_rows(np.exp(logs), np.ones(logs.shape)).p() < 0.05))
    assert stats.binom.ppf(0.001, 4000, 0.79) <= shown <= stats.binom.ppf(0.999, 4000, 0.84)


def test_of_two_equal_sides_it_is_the_blocks_that_show_that_they_are_the_same() -> None:
    (blocks,) = needed_blocks(ratio_of(0.0, 0.03, 3), 1, 0.95, 0.02)
    logs = np.random.default_rng(7).normal(0.0, 0.03, size=(4000, int(blocks)))
    shown = np.count_nonzero(compare_rows(np.exp(logs), np.ones(logs.shape)).p_equivalent(0.02) < 0.05)
    assert 0.77 * 4000 < shown < 0.87 * 4000


def test_many_comparisons_take_more_blocks_than_one() -> None:
    one = ratio_of(0.05, 0.1, 3)
    many = Ratios(*(np.repeat(part, 40) for part in vars(one).values()))
    assert needed_blocks(one, 1, 0.95, 0.0)[0] < needed_blocks(many, 40, 0.95, 0.0)[0]


def test_it_is_said_of_what_is_undecided_only_and_is_more_than_there_are() -> None:
    ratios = drawn(np.random.default_rng(9), np.array([3.0, 0.05, 0.0]), 4)
    found = all_together(ratios)
    undecided = ~((found.p_adjusted < 0.05) | (found.p_equivalent_adjusted < 0.05))
    assert list(undecided) == [False, True, True]
    assert list(np.isnan(found.needed)) == [True, False, False]
    assert np.all(found.needed[undecided] > 4)


def test_where_no_number_of_blocks_would_do_it_is_infinite() -> None:
    """Right at the margin, and very noisy: neither can be shown."""
    assert np.isinf(needed_blocks(ratio_of(math.log(1.02), 30.0, 3), 1, 0.95, 0.02)).all()


@pytest.mark.long
def test_sweeps_of_thousands_of_comparisons_have_an_answer_too() -> None:
    """At a millionth of error the noncentral t of scipy does not converge for few blocks: another way is taken."""
    ratios = drawn(np.random.default_rng(10), np.zeros(40_000), 3)
    found = all_together(ratios)
    assert np.all(found.needed[~np.isnan(found.needed)] > 3)
    assert np.count_nonzero(~np.isnan(found.needed)) > 39_000


# --- after a stopping rule --------------------------------------------------------------------------------------------


def test_after_a_stopping_rule_levels_and_p_values_are_those_that_hold() -> None:
    until = Until(half_width=0.03, min=5, max=40)
    ratios = drawn(np.random.default_rng(11), np.array([0.0, 0.1, 1.0]), 6)
    plain, honest = all_together(ratios), all_together(ratios, repeated_looks=until)
    low, high = ratios.bounds(sequential.nominal_level(until, 0.95))
    assert (list(honest.own.low), list(honest.own.high)) == (list(low), list(high))
    assert np.all(honest.own.low < plain.own.low)
    assert list(honest.p) == pytest.approx(list(sequential.true_p(plain.p, until)))
    assert np.all(honest.p_adjusted >= plain.p_adjusted)
    shown = honest.p_adjusted < 0.05
    assert list((honest.joint.low > 1) | (honest.joint.high < 1)) == list(shown)


# --- the interval beside 'the same' -----------------------------------------------------------------------------------


@pytest.mark.slow
@every_row("until", [None, Until(half_width=0.03, min=5, max=40)])
@every_row("count", [1, 12])
def test_the_interval_of_a_same_lies_inside_the_margin(count: int, until: Until | None) -> None:
    rng, seen = np.random.default_rng(count), 0
    for sd in (0.01, 0.015, 0.02):
        ours, theirs = np.exp(rng.normal(0, sd, (2, count, 10)))
        found = adjust_comparisons(compare_rows(ours, theirs), level=0.95, smallest_effect=0.02, repeated_looks=until)
        same = found.p_equivalent_adjusted < 0.05
        assert np.all(np.isnan(found.equivalence.low) == ~same)
        assert np.all((found.equivalence.low[same] > 1 / 1.02) & (found.equivalence.high[same] < 1.02))
        seen += int(same.sum())
    assert seen


def test_alone_it_is_the_90_percent_interval() -> None:
    logs = np.random.default_rng(1).normal(0, 0.01, (1, 8))
    found = adjust_comparisons(compare_rows(np.exp(logs), np.ones((1, 8))), level=0.95, smallest_effect=0.02)
    low, high = stats.t.interval(0.9, 7, logs.mean(), stats.sem(logs[0]))
    assert (found.equivalence.low[0], found.equivalence.high[0]) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.equivalence.level[0] == pytest.approx(0.9)
