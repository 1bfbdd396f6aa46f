"""Capacity by betting: the bets and their fairness from the definition, the interval, the ratio and the search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.stats import adjust_comparisons
from mountlab.stats.capacity import Capacity, RateTrial, capacity, next_rate, stakes
from mountlab.stats.capacity_ratios import level_at_end, ratio, searched_ratios
from repetition import few_then_many, others_long
from rows import every_row

RATES = (100.0, 140.0, 150.0, 160.0, 200.0)
trials_of_a_search = st.lists(st.builds(RateTrial, st.sampled_from(RATES), st.booleans()), max_size=40)
searches = st.tuples(st.integers(0, 2**32 - 1), st.floats(0.005, 0.05), st.integers(1, 30))
"""Seed, width of the transition, and number of trials."""
Answer = Callable[[float], bool]


def searched(
    answer: Answer, *, most: int = 60, start: float = 300.0, half_width: float = 0.05, level: float = 0.95
) -> list[RateTrial]:
    """A search until it is precise."""
    trials: list[RateTrial] = []
    while len(trials) < most and not capacity(trials, level).half_width <= half_width:
        rate = next_rate(trials, half_width=half_width, start=start, left=most - len(trials), level=level)
        trials.append(RateTrial(rate, answer(rate)))
    return trials


def noisy(seed: int, width: float, *, grows: float = 1.0) -> Answer:
    """A capacity of 1,000, after 40 answers so many times as much. The smaller `width`, the surer the answers."""
    rng = np.random.default_rng(seed)
    truths = (1000 * grows ** (asked / 40) for asked in count())
    return lambda rate: bool(rng.random() < 1 / (1 + (rate / next(truths)) ** min(1 / width, 200)))


def wealths(trials: Sequence[RateTrial], x: float) -> tuple[float, float]:
    """What the bets against C <= x and against C >= x have become, one trial after the other, as METHODS says it."""
    above = below = 1.0
    for place, trial in enumerate(trials):
        before = trials[:place]
        holds = lead([each for each in before if each.rate >= trial.rate], trial.rate, wanted=True)
        fails = lead([each for each in before if each.rate <= trial.rate], trial.rate, wanted=False)
        stake = (holds[0] - fails[0]) / (holds[1] + fails[1] + 0.5)
        factor = 1 + (stake if trial.holds else -stake)
        above *= factor if stake > 0 and trial.rate > x else 1
        below *= factor if stake < 0 and trial.rate < x else 1
    return above, below


def lead(trials: Sequence[RateTrial], rate: float, *, wanted: bool) -> tuple[int, int]:
    """By how much one answer leads among trials from this rate to any other, where most clearly; how many these are."""
    best = (0, 0)
    for end in sorted({trial.rate for trial in trials}, key=lambda end: abs(end - rate)):
        own = [trial for trial in trials if abs(trial.rate - rate) <= abs(end - rate)]
        ahead = sum(1 if trial.holds == wanted else -1 for trial in own)
        best = max(best, (ahead, len(own)), key=lambda pair: pair[0] / (pair[1] + 0.5))
    return best


def points(trials: Sequence[RateTrial]) -> list[float]:
    """A rate in each step: every tested rate, one between any two, one below and one above all."""
    rates = sorted({trial.rate for trial in trials}) or [1.0]
    between = [math.sqrt(a * b) for a, b in pairwise(rates)]
    return sorted([rates[0] / 2, *rates, *between, rates[-1] * 2])


def every_course(trials: tuple[RateTrial, ...], length: int) -> Iterator[tuple[RateTrial, ...]]:
    """Every search of this many trials, one for each series of answers."""
    if len(trials) == length:
        yield trials
        return
    rate = next_rate(trials, half_width=0.1, start=100.0)
    for holds in (True, False):
        yield from every_course((*trials, RateTrial(rate, holds)), length)


# --- bets ------------------------------------------------------------------------------------------------------------


@given(trials_of_a_search)
def test_a_bet_knows_neither_its_trial_nor_a_later_one(trials: list[RateTrial]) -> None:
    known = stakes(trials)
    for place in range(len(trials)):
        other = [*trials[:place], RateTrial(trials[place].rate, not trials[place].holds), RateTrial(1.0, True)]
        assert stakes(other)[place] == known[place]
    assert np.all(np.abs(known) < 1)


@pytest.mark.slow
@pytest.mark.parametrize(("looks", "lowest"), few_then_many((8, 0.1), (10, 0.5)))
def test_no_capacity_can_be_bet_against_with_an_advantage(looks: int, lowest: float) -> None:
    """All courses of so many trials that the search chooses itself, where each trial holds by the toss of a coin: every
    rate is then a capacity. What is won on either side is 1 in the mean, and the true one is excluded at any of the
    looks in no more courses than the level allows."""
    courses = list(every_course((), looks))
    assert len(courses) == 2**looks
    found = cache(capacity)
    levels = {
        level: [[found(each[:n], level) for n in range(1, looks + 1)] for each in courses]
        for level in (lowest, 0.9, 0.95)
    }
    for x in (50.0, 80.0, 100.0, 130.0):
        purses = [(*wealths(each, x), math.prod(wealths(each, x))) for each in courses]
        assert np.mean(purses, axis=0) == pytest.approx([1, 1, 1])
        for level, of_courses in levels.items():
            missed = [any(not _holds(each, x) for each in of_looks) for of_looks in of_courses]
            assert np.mean(missed) <= 1 - level
        assert np.mean([not _holds(last, x) for *_, last in levels[lowest]]) > 0, "some course is misled"


def _holds(found: Capacity, x: float) -> bool:
    return found.low <= x <= found.high


def test_a_lower_chance_than_one_half_makes_bets_on_holds_lose() -> None:
    """Every course of seven trials at two rates above the capacity, each holding with a probability of 0.4."""
    rates = (150.0, 160.0, 150.0, 150.0, 160.0, 150.0, 150.0)
    mean = 0.0
    for course in range(2**7):
        answers = [bool(course >> bit & 1) for bit in range(7)]
        chance = math.prod(0.4 if answer else 0.6 for answer in answers)
        mean += chance * wealths([RateTrial(*each) for each in zip(rates, answers, strict=True)], 140.0)[0]
    assert mean < 1


# --- the interval ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(trials_of_a_search.filter(bool), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_interval_holds_what_neither_bet_has_refuted(trials: list[RateTrial], level: float) -> None:
    found = capacity(trials, level)
    bound = 1 / (1 - level)
    kept = [x for x in points(trials) if math.prod(wealths(trials, x)) < bound * (1 - 1e-9)]
    assert all(_holds(found, x) for x in kept)
    assert found.low in {0.0, *RATES}
    assert found.high in {math.inf, *RATES}
    if kept:
        outside = [x for x in points(trials) if not _holds(found, x)]
        assert all(math.prod(wealths(trials, x)) >= bound * (1 - 1e-9) for x in outside)


@given(trials_of_a_search)
def test_the_estimate_lies_in_the_interval_and_needs_both_answers(trials: list[RateTrial]) -> None:
    found = capacity(trials)
    assert found.n == len(trials)
    assert math.isnan(found.estimate) == (len({trial.holds for trial in trials}) < 2)
    assert math.isnan(found.estimate) or _holds(found, found.estimate)


@given(trials_of_a_search)
def test_more_confidence_is_never_narrower(trials: list[RateTrial]) -> None:
    inner, outer = capacity(trials, 0.8), capacity(trials, 0.99)
    assert outer.low <= inner.low <= inner.high <= outer.high


def test_equal_answers_at_two_rates_bound_the_capacity_there() -> None:
    """The bets 0, 2/3, 4/5, ..., 10/11 make 20.1 of 1 after six equal answers, and 10.5 after five: 20 are needed."""
    trials = [RateTrial(rate, rate < 150) for _ in range(5) for rate in (140.0, 160.0)]
    assert capacity(trials) == Capacity(10, pytest.approx(math.sqrt(140 * 160)), 0.0, math.inf, 0.95)
    assert math.isinf(capacity(trials).half_width)
    found = capacity([*trials, RateTrial(140.0, True), RateTrial(160.0, False)])
    assert (found.low, found.high) == (140.0, 160.0)
    assert found.half_width == pytest.approx(20 / 300)


def test_the_estimate_is_the_rate_that_the_fewest_answers_speak_against() -> None:
    held = [RateTrial(rate, True) for rate in (100.0, 140.0, 150.0)]
    failed = [RateTrial(rate, False) for rate in (140.0, 160.0, 200.0)]
    assert capacity([*held, *failed]).estimate == pytest.approx(math.sqrt(150 * 160))
    assert capacity([RateTrial(100.0, False), RateTrial(400.0, True)]).estimate == pytest.approx(200)


def test_no_trial_says_nothing() -> None:
    found = capacity([])
    assert (found.n, found.low, found.high) == (0, 0.0, math.inf)
    assert math.isnan(found.estimate)


@every_row("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ParameterError, match="above 0"):
        RateTrial(rate, True)


# --- the ratio -------------------------------------------------------------------------------------------------------


@given(trials_of_a_search, trials_of_a_search, st.sampled_from([0.3, 0.5, 0.8, 0.95]))
def test_the_interval_of_a_ratio_contains_1_where_p_says_so(
    one: list[RateTrial], other: list[RateTrial], level: float
) -> None:
    found = ratio(one, other, level)
    assert (found.low <= 1 <= found.high) == (found.p > 1 - level)
    assert math.isnan(found.ratio) or found.low <= found.ratio <= found.high
    assert 0 < found.p <= 1


@pytest.mark.slow
@given(trials_of_a_search, trials_of_a_search)
def test_the_inverse_ratio_is_that_of_the_cells_exchanged(one: list[RateTrial], other: list[RateTrial]) -> None:
    found, inverse = ratio(one, other), ratio(other, one)
    assert inverse.p == pytest.approx(found.p)
    assert math.isnan(found.ratio) or found.ratio * inverse.ratio == pytest.approx(1)
    for here, there in ((found.low, inverse.high), (found.high, inverse.low)):
        assert there == pytest.approx(1 / here if here else math.inf)


@settings(max_examples=30)
@given(trials_of_a_search, trials_of_a_search, st.sampled_from([0.5, 0.8]))
def test_the_interval_of_a_ratio_holds_each_pair_that_the_joint_bets_have_not_refuted(
    one: list[RateTrial], other: list[RateTrial], level: float
) -> None:
    """By the definition, over a rate in each step of both; and its ends are no further out than such pairs allow. Of
    the money 0.4 is bet on either search alone, and 0.2 on both."""
    found = ratio(one, other, level)
    mine = {x: math.prod(wealths(one, x)) for x in points(one)}
    theirs = {x: math.prod(wealths(other, x)) for x in points(other)}
    kept = [x / y for x, won in mine.items() for y, too in theirs.items()
            if 0.4 * (won + too) + 0.2 * won * too < (1 - 1e-9) / (1 - level)]  # fmt: skip
    assert all(found.low <= each <= found.high for each in kept)
    ends = {0.0, math.inf} | {a / b for a in RATES for b in RATES}
    assert any(found.low == pytest.approx(end) for end in ends)
    assert any(found.high == pytest.approx(end) for end in ends)


def test_a_capacity_of_twice_another_is_seen() -> None:
    level = level_at_end(0.95, 1)
    one, other = searched(lambda rate: rate < 2000, level=level), searched(lambda rate: rate < 1000, level=level)
    found = ratio(one, other)
    assert found.low > 1.5
    assert found.low <= 2 <= found.high < 2.7
    assert found.ratio == pytest.approx(2, rel=0.06)
    assert found.p < 0.05


def test_a_cell_without_trials_compares_with_nothing() -> None:
    found = ratio([], searched(lambda rate: rate < 1000))
    assert (found.low, found.high, found.p) == (0.0, math.inf, 1.0)
    assert math.isnan(found.ratio)


def test_a_ratio_that_nothing_bounds_is_unknown_and_not_from_0_to_infinity() -> None:
    open_above, open_below = [RateTrial(800.0, True)] * 20, [RateTrial(400.0, False)] * 20
    nothing = [RateTrial(400.0, True), RateTrial(1600.0, False)]
    known = [RateTrial(rate, rate < 1000) for rate in [900.0, 1100.0] * 20]
    found = searched_ratios(
        [(nothing, nothing), (known, nothing), ([], known), (open_above, known), (open_below, known)]
    )
    low, high = found.bounds(0.95)
    unknown = [True, True, True, False, False]
    for values in (low, high, found.ratio):
        assert np.isnan(values).tolist() == unknown
    assert (low[3] > 0.7, high[3], low[4], high[4] < 0.5) == (True, math.inf, 0.0, True)
    together = adjust_comparisons(found, level=0.95, smallest_effect=0.02)
    for values in (together.joint.low, together.joint.high):
        assert np.isnan(values).tolist() == unknown


# --- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_row("start", [3.0, 100.0, 1000.0, 1010.0, 50_000.0])
def test_a_search_of_a_sharp_capacity_ends_with_few_trials(start: float) -> None:
    trials = searched(lambda rate: rate < 1000, start=start)
    found = capacity(trials)
    assert found.half_width <= 0.05
    assert _holds(found, 1000)
    assert len(trials) <= 36


def test_a_search_begins_with_steps_of_2_and_4() -> None:
    trials = searched(lambda rate: rate < 1000, start=10)
    assert [trial.rate for trial in trials[:5]] == [10, 20, 80, 320, 1280]
    assert 320 < trials[5].rate < 1280
    down = searched(lambda rate: rate < 1000, start=100_000)
    assert [trial.rate for trial in down[:4]] == [100_000, 50_000, 12_500, 3125]


@pytest.mark.slow
def test_near_the_smallest_rate_that_can_be_made_a_search_goes_on_at_that_rate_or_above() -> None:
    """Whatever three trials at one to three steps say: the rates of a pair lie less than a step apart there."""
    for rates in product((10.0, 20.0, 30.0), repeat=3):
        for answers in product((True, False), repeat=3):
            trials = [RateTrial(*trial) for trial in zip(rates, answers, strict=True)]
            chosen = next_rate(trials, half_width=0.05, start=10, step=10, left=20)
            assert (chosen % 10, chosen >= 10) == (0, True)


def test_a_search_comes_back_to_its_two_rates() -> None:
    trials = searched(lambda rate: rate < 1000)
    assert {type(trial.rate) for trial in trials} == {float}, "rates go into a journal"
    ending = [trial.rate for trial in trials[-10:]]
    assert len(set(ending)) <= 3
    assert max(ending) / min(ending) <= 1.05 / 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "wrong"),
    others_long(
        [(start, wrong) for start in (250.0, 3000.0) for wrong in range(12)],
        kept={(250.0, 0), (250.0, 4), (250.0, 9), (3000.0, 1), (3000.0, 6), (3000.0, 11)},
    ),
)
def test_a_search_recovers_from_one_wrong_answer(start: float, wrong: int) -> None:
    answers = iter(range(60))
    trials = searched(lambda rate: (rate < 1000) != (next(answers) == wrong), start=start)
    found = capacity(trials)
    assert found.half_width <= 0.05
    assert _holds(found, 1000)


def test_the_ceiling_is_not_passed_and_becomes_the_lower_end() -> None:
    trials: list[RateTrial] = []
    for _ in range(12):
        trials.append(RateTrial(next_rate(trials, half_width=0.05, start=100, ceiling=500), True))
    assert max(trial.rate for trial in trials) == 500
    assert (capacity(trials).low, capacity(trials).high) == (500, math.inf)
    assert next_rate([], half_width=0.05, start=900, ceiling=500) == 500


@pytest.mark.slow
@settings(max_examples=4)
@given(searches)
def test_a_scale_of_all_rates_scales_all_answers(search: tuple[int, float, int]) -> None:
    seed, width, most = search
    small = searched(noisy(seed, width), most=most)
    large = [RateTrial(8 * trial.rate, trial.holds) for trial in small]
    found, scaled = capacity(small), capacity(large)
    assert (scaled.low, scaled.high) == (8 * found.low, 8 * found.high)
    assert scaled.estimate == pytest.approx(8 * found.estimate, nan_ok=True)
    again = next_rate(large, half_width=0.05, start=8 * 300.0)
    assert again == pytest.approx(8 * next_rate(small, half_width=0.05, start=300.0))
    assert ratio(large, small).p == pytest.approx(ratio(large, [RateTrial(t.rate, t.holds) for t in small]).p)
    assert ratio(large, large).p == pytest.approx(ratio(small, small).p)


@pytest.mark.slow
@settings(max_examples=4)
@given(searches)
def test_a_search_that_is_resumed_chooses_as_it_would_have_done(search: tuple[int, float, int]) -> None:
    seed, width, most = search
    trials = searched(noisy(seed, width), most=most)
    for place, trial in enumerate(trials):
        kept = [RateTrial(each.rate, each.holds) for each in trials[:place]]
        assert next_rate(kept, half_width=0.05, start=300.0, left=most - place) == trial.rate


@every_row("start", [100.0, 300.0, 1000.0, 2000.0, 10_000.0])
def test_a_search_with_as_many_trials_as_right_answers_need_is_precise(start: float) -> None:
    """Of a sharp capacity, at 10 % and 25 trials: it gives up no earlier than it must."""
    trials = searched(lambda rate: rate < 1000, most=25, start=start, half_width=0.1)
    assert capacity(trials).half_width <= 0.1
    assert len(trials) <= 22


@pytest.mark.slow
@every_row("start", [100.0, 300.0, 900.0, 3000.0, 10_000.0])
@every_row("wrong", [1, 2])
def test_a_search_whose_first_answers_were_wrong_leaves_their_bracket(start: float, wrong: int) -> None:
    """As on a box that was busy when it began. Within ten trials more it has asked beyond that bracket, and it ends
    with an interval of the true capacity."""
    trials: list[RateTrial] = []
    while len(trials) < 60 and not capacity(trials).half_width <= 0.1:
        rate = next_rate(trials, half_width=0.1, start=start, left=60 - len(trials))
        trials.append(RateTrial(rate, (rate < 1000) != (len(trials) < wrong)))
    asked = [trial.rate for trial in trials[: wrong + 10]]
    assert min(asked) < 1000 < max(asked)
    assert _holds(capacity(trials), 1000)
    assert capacity(trials).half_width <= 0.1
    assert len(trials) <= 28 + 8 * (wrong - 1)


@pytest.mark.slow
@pytest.mark.parametrize("cases", few_then_many(20, 40))
def test_a_search_that_runs_out_of_trials_is_bounded_on_one_side_at_least(cases: int) -> None:
    """15 trials of a noisy capacity, in a search that ends at 98.75 %: at 95 % there is an end."""
    bounded = 0
    for seed in range(cases):
        found = capacity(compared(noisy(seed, 0.2), most=15, start=200.0, half_width=0.5, fallback=None))
        bounded += found.low > 0 or math.isfinite(found.high)
    assert bounded >= 0.95 * cases


@every_row("start", [100.0, 300.0, 2000.0])
def test_a_search_whose_trials_do_not_suffice_for_its_level_is_precise_at_the_one_that_is_printed(start: float) -> None:
    trials = compared(lambda rate: rate < 1000, most=18, start=start, half_width=0.1, fallback=0.95)
    assert capacity(trials).half_width <= 0.1


def compared(answer: Answer, *, most: int, start: float, half_width: float, fallback: float | None) -> list[RateTrial]:
    """All trials of a search that two others are compared with."""
    trials: list[RateTrial] = []
    while len(trials) < most:
        left = most - len(trials)
        rate = next_rate(trials, half_width=half_width, start=start, level=0.9875, fallback=fallback, left=left)
        trials.append(RateTrial(rate, answer(rate)))
    return trials


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "grows", "cases"),
    others_long([(0.1, 1.0, 3), (0.05, 1.0, 8), (0.1, 1.0, 8), (0.01, 2.0, 8)], kept={(0.1, 1.0, 3)}),
)
def test_a_search_that_cannot_be_precise_is_bounded_all_the_same(width: float, grows: float, cases: int) -> None:
    """Answers are a matter of chance over many rates, or the capacity doubles while it is sought."""
    found = [capacity(searched(noisy(seed, width, grows=grows), most=40)) for seed in range(cases)]
    assert 4 * sum(math.isfinite(each.half_width) for each in found) >= 3 * cases
    assert sum(each.low <= 1000 * grows and each.high >= 1000 for each in found) >= cases - 1


@pytest.mark.slow
@pytest.mark.parametrize("cases", few_then_many(5, 15))
def test_a_search_whose_trials_do_not_suffice_ends_about_as_narrow_as_they_allow(cases: int) -> None:
    """Wanted is a half width over which answers are still a matter of chance: 12 % are wrong at the ends of it."""
    found = [capacity(searched(noisy(seed, 0.1), most=40, half_width=0.2)) for seed in range(cases)]
    assert all(each.low <= 1000 <= each.high for each in found)
    assert np.median([each.half_width for each in found]) < 0.45
    assert sum(each.half_width <= 0.2 for each in found) >= cases // 5
