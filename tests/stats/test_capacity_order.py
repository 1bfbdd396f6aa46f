"""A capacity that changes while it is searched for: the Bayes factor from its definition, and what searches show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from mountlab.stats.capacity import RateTrial, capacity, next_rate
from mountlab.stats.capacity_order import (
    BEYOND,
    FINE,
    PLACES,
    SLOPES,
    STEPS,
    WIDTHS,
    change,
    is_precise,
    searched_capacity,
)
from repetition import few_then_many
from rows import every_row

MOST, HALF_WIDTH = 60, 0.05
Course = Callable[[int], float]


def one_capacity(_: int) -> float:
    return 1000.0


def falls_at_once(trial: int) -> float:
    return 1000.0 if trial < 18 else 800.0


def search(seed: int, course: Course, width: float = 0.02) -> tuple[list[RateTrial], list[float]]:
    """A search for a capacity that is `course` at each trial; answers near it are a matter of chance."""
    rng, trials, truths = np.random.default_rng(seed), [], []
    while len(trials) < MOST and not is_precise(trials, HALF_WIDTH):
        rate = next_rate(trials, half_width=HALF_WIDTH, start=700.0, left=MOST - len(trials))
        truths.append(course(len(trials)))
        trials.append(RateTrial(rate, bool(rng.random() < 1 / (1 + (rate / truths[-1]) ** (1 / width)))))
    return trials, truths


def likelihood(trials: Sequence[RateTrial], shift: Callable[[int], float]) -> float:
    """On average over capacities and widths: 2 % of answers are wrong wherever, the others follow a logistic curve."""
    logs = [math.log(trial.rate / min(each.rate for each in trials)) for trial in trials]
    total = 0.0
    for first in np.arange(-BEYOND, max(logs) + BEYOND, FINE):
        for width in WIDTHS:
            product = 1.0
            for place, (log, trial) in enumerate(zip(logs, trials, strict=True)):
                holds = 0.02 + 0.96 / (1 + math.exp(-(first + shift(place) - log) / width))
                product *= holds if trial.holds else 1 - holds
            total += product
    return total


def test_the_bayes_factor_is_the_average_likelihood_of_all_changes_over_that_of_none() -> None:
    trials = [RateTrial(rate, rate < (1000 if place < 9 else 850)) for place, rate in enumerate([800, 1100, 900] * 6)]
    slopes = [lambda place, by=sign * slope: by * place for slope in SLOPES for sign in (1, -1)]
    steps = [
        lambda place, by=sign * size, at=at: by * (place >= at) for size in STEPS for at in PLACES for sign in (1, -1)
    ]
    changes: list[Callable[[int], float]] = [*slopes, *steps]
    by_hand = float(np.mean([likelihood(trials, each) for each in changes])) / likelihood(trials, lambda _: 0.0)
    assert change(trials).factor == pytest.approx(by_hand, rel=1e-6)


def test_without_both_answers_nothing_is_known_of_a_change() -> None:
    assert not change([RateTrial(100.0, True)] * 5).noticed
    assert math.isinf(searched_capacity([]).half_width)


@pytest.mark.slow
@every_row("start", [100.0, 300.0, 700.0, 900.0, 1300.0, 3000.0])
def test_a_capacity_that_left_a_narrow_interval_at_the_end_not_asked_last_is_noticed(start: float) -> None:
    """Sharp answers. Those so far do not show the move, so that end is asked before the search ends."""
    trials = list[RateTrial]()
    while not (found := capacity(trials)).half_width <= HALF_WIDTH:
        rate = next_rate(trials, half_width=HALF_WIDTH, start=start)
        trials.append(RateTrial(rate, rate < 1000))
    last = trials[-1].rate
    assert is_precise(trials, HALF_WIDTH) == ({last, trials[-2].rate} == {found.low, found.high})
    if is_precise(trials, HALF_WIDTH):
        return
    truth, falls = (found.low * 0.8, True) if last == found.high else (found.high * 1.25, False)
    while len(trials) < MOST and not is_precise(trials, HALF_WIDTH):
        rate = next_rate(trials, half_width=HALF_WIDTH, start=start, left=MOST - len(trials))
        trials.append(RateTrial(rate, rate < truth))
    assert change(trials).noticed
    assert (change(trials).ratio < 1) == falls


@pytest.mark.slow
@pytest.mark.parametrize("cases", few_then_many(15, 60))
def test_a_capacity_that_falls_by_a_fifth_is_noticed_and_its_interval_holds_what_it_lay_between(cases: int) -> None:
    """Of the searches that had not ended before."""
    found = [each for each in (search(seed, falls_at_once) for seed in range(cases)) if each[1][-1] < 1000]
    noticed = [each for each in found if change(each[0]).noticed]
    assert len(found) >= cases / 4
    assert len(noticed) >= 0.7 * len(found)
    held = 0
    for trials, truths in noticed:
        printed, bets = searched_capacity(trials), capacity(trials)
        assert printed.low <= bets.low
        assert printed.high >= bets.high
        assert change(trials).ratio < 1
        held += printed.low <= min(truths) and printed.high >= max(truths)
    assert held >= 0.8 * len(noticed)


@pytest.mark.slow
@pytest.mark.parametrize("cases", few_then_many(8, 100))
def test_one_capacity_is_hardly_ever_doubted(cases: int) -> None:
    assert sum(change(search(seed, one_capacity)[0]).noticed for seed in range(cases)) <= max(1, 0.02 * cases)
