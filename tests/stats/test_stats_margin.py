"""Figures against a margin: by scipy where there is one figure, by theory and simulation where there are many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from mountlab.core.model import Until
from mountlab.stats import looks as looking
from mountlab.stats.looks import Looks, Unit
from mountlab.stats.margin import AgainstMargin, against_margin
from repetition import few_then_many, others_long
from rows import every_row
from scipy import stats

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def lower_is_better(change: Floats, baseline: Floats, *, unit: Unit = "block", looks: Looks = "once") -> AgainstMargin:
    better = np.zeros(len(change), dtype=bool)
    return against_margin(change, baseline, more_is_better=better, margin=0.05, unit=unit, looks=looks)


def test_the_bounds_of_one_figure_are_those_of_one_sided_t_tests() -> None:
    """Two samples of one size: Welch's standard error, and degrees of freedom between n - 1, which are never too many,
    and those of Satterthwaite."""
    change, baseline = np.array([[1.02, 1.05, 1.10, 1.04]]), np.array([[1.0, 1.01, 0.97, 1.03]])
    found = lower_is_better(change, baseline)
    a, b = np.log(change[0]), np.log(baseline[0])
    se = math.sqrt(a.var(ddof=1) / 4 + b.var(ddof=1) / 4)
    usual = stats.ttest_ind(a, b, equal_var=False).df
    assert found.worse[0] == pytest.approx(math.exp(a.mean() - b.mean()))
    for half in (a.mean() - b.mean() - math.log(found.low[0]), math.log(found.high[0]) - a.mean() + b.mean()):
        assert stats.t.ppf(0.95, usual) * se < half < stats.t.ppf(0.95, 3) * se


def test_what_is_better_is_turned_round() -> None:
    change, baseline = np.array([[50.0, 51.0, 49.5]]), np.array([[100.0, 101.0, 99.0]])
    more = against_margin(change, baseline, more_is_better=np.array([True]), margin=0.05, looks="once")
    less = lower_is_better(1 / change, 1 / baseline)
    assert more.worse == pytest.approx(less.worse)
    assert more.worse[0] == pytest.approx(2.0, abs=0.05)
    assert (more.low, more.high) == (pytest.approx(less.low), pytest.approx(less.high))
    assert bool(more.fails[0])
    assert not bool(more.passes[0])


def test_a_new_value_beside_earlier_ones_has_the_interval_of_a_prediction() -> None:
    change, baseline = np.array([[1.3]]), np.array([[1.0, 1.04, 0.98, 1.01]])
    found = lower_is_better(change, baseline, unit="run")
    logs = np.log(baseline[0])
    half = stats.t.ppf(0.95, 3) * logs.std(ddof=1) * math.sqrt(1 + 1 / 4)
    assert math.log(found.low[0]) == pytest.approx(math.log(1.3) - logs.mean() - half)
    turned = lower_is_better(baseline, change, unit="run")
    assert turned.high[0] == pytest.approx(1 / found.low[0])


def test_several_runs_on_both_sides_have_the_bounds_of_students_t() -> None:
    change, baseline = np.array([[1.3, 1.2]]), np.array([[1.0, 1.04, 0.98, 1.01]])
    found = lower_is_better(change, baseline, unit="run")
    expected = stats.ttest_ind(np.log(change[0]), np.log(baseline[0])).confidence_interval(0.9)
    assert (math.log(found.low[0]), math.log(found.high[0])) == pytest.approx((expected.low, expected.high))


def of_spread(n: int) -> Floats:
    """n values whose logarithms have the mean 0 and the standard deviation 0.02."""
    logs = np.arange(n) - (n - 1) / 2
    return np.exp(0.02 * logs / (logs.std(ddof=1) if n > 1 else 1))[None, :]


@pytest.mark.long
def test_more_runs_of_either_side_never_tell_less() -> None:
    """At the same spread each further run makes the interval of a single look narrower; 1 % is left for a 20th run
    beside a single one, which has hardly anything to add."""
    high = np.full((20, 20), math.inf)
    for m, k in itertools.product(range(1, 21), repeat=2):
        if m + k > 2:
            high[m - 1, k - 1] = math.log(lower_is_better(of_spread(m), of_spread(k), unit="run").high[0])
    assert (high[1:] <= 1.01 * high[:-1]).all()
    assert (high[:, 1:] <= 1.01 * high[:, :-1]).all()


def test_each_look_at_runs_tells_more_than_the_one_before() -> None:
    """Also where it has a smaller share of the error."""
    for sizes in ([(1, 5), (1, 10), (1, 20)], [(3, 3), (6, 6), (12, 12), (24, 24)]):
        high = [lower_is_better(of_spread(m), of_spread(k), unit="run", looks="any").high[0] for m, k in sizes]
        assert all(later < earlier for earlier, later in itertools.pairwise(high))


@every_row(
    ("runs", "counted"),
    [((3, 4), (3, 3)), ((1, 9), (1, 5)), ((9, 2), (5, 1)), ((6, 7), (6, 6)), ((1, 19), (1, 10)), ((2, 4), (2, 4))],
)
def test_runs_after_a_look_count_at_the_next_one(runs: tuple[int, int], counted: tuple[int, int]) -> None:
    """Else each further run would be a look, and three beside three had a tenth of the error."""
    change, baseline = np.random.default_rng(12).lognormal(0, 0.02, (2, 1, 20))
    sides = change[:, : runs[0]], baseline[:, : runs[1]]
    found = lower_is_better(*sides, unit="run", looks="any")
    first = lower_is_better(sides[0][:, : counted[0]], sides[1][:, : counted[1]], unit="run", looks="any")
    assert found.counted == counted
    assert found.left_out == (runs != counted)
    assert (found.low, found.high) == (first.low, first.high)


@pytest.mark.parametrize(("looks", "sd"), [("any", 0.015), ("once", 0.025)])
@pytest.mark.long
def test_more_runs_of_either_side_pass_more_often(looks: Looks, sd: float) -> None:
    """Nothing changed: with each further run of the same 80 cases it passes as often or more often, but for chance.
    That each further run makes the interval narrower is shown above, without chance."""
    cases, numbers = 80, (1, 2, 3, 5)
    passes = np.zeros((4, 4))
    for change, baseline in np.random.default_rng(14).lognormal(0, sd, (cases, 2, 1, 5)):
        for (i, m), (j, k) in itertools.product(enumerate(numbers), repeat=2):
            found = lower_is_better(change[:, :m], baseline[:, :k], unit="run", looks=looks)
            passes[i, j] += found.passes[0] / cases
    assert (np.diff(passes, axis=0) > -0.09).all(), passes
    assert (np.diff(passes, axis=1) > -0.09).all(), passes
    assert passes[3, 3] > max(passes[0, 1], passes[1, 0]) + 0.2, passes


def one_after_another(sides: Sequence[Floats], path: Sequence[tuple[int, int]]) -> tuple[bool, bool]:
    """Whether any look at (change, baseline) runs fails, and whether any passes."""
    found = [lower_is_better(sides[0][:, :m], sides[1][:, :k], unit="run", looks="any") for m, k in path]
    return any(each.fails[0] for each in found), any(each.passes[0] for each in found)


def to_the_unlucky_side(sides: Sequence[Floats]) -> list[tuple[int, int]]:
    """A path that is chosen by what was seen: the side that looks worse than it is gets the next run."""
    path = [(1, 2)]
    while sum(path[-1]) < 14:
        m, k = path[-1]
        change, baseline = np.log(sides[0][0, :m]).mean() - math.log(1.05), np.log(sides[1][0, :k]).mean()
        path.append((m, k + 1) if change * math.sqrt(m) < -baseline * math.sqrt(k) else (m + 1, k))
    return path


BASELINE_GROWS = [(1, k) for k in range(2, 21)]
CHANGE_GROWS = [(m, 5) for m in range(1, 16)]
BOTH_GROW = [(1, 2), *((m, k) for m in range(2, 11) for k in (m, m + 1))]
IN_TURN = [*((1, k) for k in range(2, 11)), *((m, 10) for m in range(2, 11))]


@pytest.mark.parametrize(
    ("path", "cases"),
    [
        pytest.param(None, 40, id="chosen by what was seen"),
        pytest.param(None, 80, id="chosen by what was seen, more", marks=pytest.mark.long),
        pytest.param(BOTH_GROW, 80, id="both grow", marks=pytest.mark.long),
        pytest.param(BASELINE_GROWS, 80, id="baseline grows", marks=pytest.mark.long),
        pytest.param(CHANGE_GROWS, 80, id="change grows", marks=pytest.mark.long),
        pytest.param(IN_TURN, 80, id="one after the other", marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_however_runs_are_added_the_error_is_that_which_is_said(path: list[tuple[int, int]] | None, cases: int) -> None:
    """At the margin, where either outcome is a mistake, asked after each run: any look that fails, any that passes.
    Of 40 cases 7 are allowed, of 80 11, which is 5 % but for chance in one of 1,000; without shares 20 % are wrong."""
    rng, wrong = np.random.default_rng(16), np.zeros(2)
    for _ in range(cases):
        change, baseline = rng.lognormal(0, 0.03, (2, 1, 20))
        sides = (1.05 * change, baseline)
        wrong += one_after_another(sides, path or to_the_unlucky_side(sides))
    assert (wrong <= stats.binom.isf(1e-3, cases, 0.05)).all(), wrong


@pytest.mark.parametrize("unit", ["block", "run"])
def test_all_looks_share_the_error_of_one(unit: Unit) -> None:
    """Whichever numbers of values are looked at, in whatever order, and however far it goes: each is at the same
    data whenever it is made, and has a share of its own."""
    sizes = [*range(1, 100), 200, 400, 800, 1600, 3200]
    pairs = [(m, k) for m, k in itertools.product(sizes, repeat=2) if (min(m, k) > 1 if unit == "block" else m + k > 2)]
    at = {looking.counted(m, k, unit) for m, k in pairs}
    at = {(min(pair), min(pair)) for pair in at} if unit == "block" else at
    assert 0.9 < sum(looking.share(m, k, unit) for m, k in at) <= 1
    assert looking.share(7, 7, unit, "once") == 1
    assert looking.later(5, "block") == [10, 20, 40, 80, 160, 320, 640, 1280]
    assert looking.later(1, "run")[:3] == [3, 6, 12]
    assert [*looking.later(1, "run", "once")][:2] == [2, 3]


def test_what_was_added_after_a_look_counts_at_the_next() -> None:
    """Else looking after each block would be a look each."""
    change, baseline = np.random.default_rng(4).lognormal(0, 0.02, (2, 3, 10))
    first = lower_is_better(change[:, :5], baseline[:, :5], looks="any")
    between = lower_is_better(change[:, :9], baseline[:, :9], looks="any")
    later = lower_is_better(change, baseline, looks="any")
    assert (first.counted, between.counted, later.counted) == ((5, 5), (5, 5), (10, 10))
    assert between.low.tolist() == first.low.tolist()
    assert (between.n == 9).all()
    assert (later.high != first.high).all()


def test_a_longer_run_beside_the_same_shorter_one_is_no_further_look() -> None:
    """Blocks count up to those that both have: else each length of the longer run would be a look with the same
    share."""
    change, baseline = np.random.default_rng(6).lognormal(0, 0.02, (2, 3, 40))
    found = [lower_is_better(change[:, :5], baseline[:, :n], looks="any") for n in (5, 10, 40)]
    assert all(each.high.tolist() == found[0].high.tolist() for each in found)
    assert [each.left_out for each in found] == [False, True, True]
    once = lower_is_better(change[:, :5], baseline, looks="once")
    assert not once.left_out


@pytest.mark.long
def test_looking_after_every_block_is_wrong_as_seldom_as_is_said() -> None:
    """At the margin, 5 to 100 blocks: any look that fails, or passes, is wrong. Without shares it is one in four."""
    rng, cases, wrong = np.random.default_rng(15), 100, np.zeros(2)
    for _ in range(cases):
        change, baseline = rng.lognormal(0, 0.05, (2, 1, 100))
        found = [
            lower_is_better(1.05 * change[:, :n], baseline[:, :n], looks="any") for n in (5, 7, 10, 20, 40, 80, 99)
        ]
        wrong += [any(each.fails[0] for each in found), any(each.passes[0] for each in found)]
    assert (wrong <= stats.binom.isf(1e-3, cases, 0.05)).all(), wrong


def test_bounds_of_many_figures_lie_where_the_outcome_is() -> None:
    rng = np.random.default_rng(8)
    truth = np.exp(rng.uniform(-0.3, 0.3, (400, 1)))
    found = lower_is_better(truth * rng.lognormal(0, 0.05, (400, 6)), rng.lognormal(0, 0.05, (400, 6)))
    alone = lower_is_better(truth[:1] * rng.lognormal(0, 0.05, (1, 6)), rng.lognormal(0, 0.05, (1, 6)))
    assert found.fails.any()
    assert found.passes.any()
    assert not (found.fails & found.passes).any()
    assert ((found.low > 1.05) == found.fails).all()
    assert np.isnan(found.needed[found.fails | found.passes]).all()
    assert (found.needed[~found.fails & ~found.passes] > 6).all()
    assert alone.n.tolist() == [6]


@pytest.mark.parametrize("values", [[[1.0]], [[math.nan, math.nan]], [[0.0, 0.0]]])
def test_what_has_no_interval_is_neither(values: list[list[float]]) -> None:
    found = lower_is_better(np.array(values), np.array([[1.0]]))
    assert not found.fails[0]
    assert not found.passes[0]
    assert math.isnan(found.needed[0])


@pytest.mark.parametrize(("columns", "unit"), [(1, "run"), (2, "run"), (2, "block")])
def test_no_spread_at_all_decides_only_where_the_step_is_known(columns: int, unit: Unit) -> None:
    change, baseline = np.array([[2.0, 2.0], [1.0, 1.0]])[:, :columns], np.ones((2, 3))
    better, steps = np.zeros(2, dtype=bool), (1e-4, 1e-4)
    unknown = against_margin(change, baseline, more_is_better=better, margin=0.05, unit=unit)
    assert not (unknown.fails | unknown.passes).any()
    found = against_margin(change, baseline, more_is_better=better, margin=0.05, steps=steps, unit=unit)
    assert (found.fails.tolist(), found.passes.tolist()) == ([True, False], [False, True])


def test_after_a_stopping_rule_the_bounds_are_wider() -> None:
    rng = np.random.default_rng(3)
    change, baseline = rng.lognormal(0, 0.05, (2, 5, 8))
    fixed = lower_is_better(change, baseline)
    rule = Until(half_width=0.03, min=5, max=40)
    better = np.zeros(5, dtype=bool)
    stopped = against_margin(change, baseline, more_is_better=better, margin=0.05, repeated_looks=rule, looks="once")
    assert (stopped.high >= fixed.high).all()
    assert stopped.high.sum() > fixed.high.sum()


def shares(truth: float, n: int, *, cases: int, figures: int = 10, cv: float = 0.05) -> tuple[int, int]:
    """In how many cases of ten figures that are truly `truth` times as bad any fails, and any passes."""
    rng = np.random.default_rng([11, n, round(1000 * truth)])
    fails = passes = 0
    for _ in range(cases):
        change, baseline = rng.lognormal(0, cv, (2, figures, n))
        found = lower_is_better(truth * change, baseline)
        fails, passes = fails + bool(found.fails.any()), passes + bool(found.passes.any())
    return fails, passes


@pytest.mark.parametrize(("n", "cases"), others_long([(3, 80), (3, 200), (10, 200)], kept=[(3, 80)]))
def test_at_the_margin_any_is_called_worse_or_fine_as_seldom_as_is_said(n: int, cases: int) -> None:
    """Where a figure lies just at the margin, either is a mistake: each in at most 5 % of cases."""
    for wrong in shares(1.05, n, cases=cases):
        assert stats.binomtest(wrong, cases, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("cases", few_then_many(80, 200))
def test_nothing_that_has_not_changed_fails_beyond_what_is_said(cases: int) -> None:
    assert shares(1.0, 5, cases=cases)[0] <= cases * 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("looks", "most", "pilots"),
    others_long([("any", 0.99, 60), ("any", 0.99, 200), ("once", 0.95, 200)], kept=[("any", 0.99, 60)]),
)
def test_as_many_as_are_said_to_be_needed_do_tell(looks: Looks, most: float, pilots: int) -> None:
    """One figure: a pilot of 5 says how many; a run with so many passes where nothing changed, and fails where it is
    twice the margin worse, about as often as the power that is promised, or more often where looks are far apart."""
    rng = np.random.default_rng(5)
    told, asked = np.zeros(2), 0
    for _ in range(pilots):
        change, baseline = rng.lognormal(0, 0.05, (2, 1, 5))
        pilot = lower_is_better(change, baseline, looks=looks)
        if not np.isfinite(pilot.needed[0]) or pilot.needed[0] > 500:
            continue
        asked += 1
        change, baseline = rng.lognormal(0, 0.05, (2, 1, int(pilot.needed[0])))
        sides = ((change, baseline), (change * 1.05**2, baseline))
        same, far = (lower_is_better(*each, looks=looks) for each in sides)
        told += [same.passes[0], far.fails[0]]
    assert asked > pilots / 2
    assert (told / asked > 0.7).all(), told / asked
    assert (told / asked < most).all(), "more than is needed"
