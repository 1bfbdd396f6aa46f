"""A search between its blocks: how far up it goes, and when it ends."""

from __future__ import annotations

from dataclasses import replace

from analysis.test_extended_runs import trial
from mountlab.analysis.capacity import BACK, Searching
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.stopping import RunSoFar, stop_rule
from mountlab.core.search import Objective, Search
from mountlab.stats.capacity import RateTrial, capacity
from sweep.test_plan_searches import searching as searching_sweep

SEARCH = Search(objective=Objective(limits={"p99": 0.005}, of=("read",)), start=800.0)


def searching(answers: dict[float, bool], *unsure: float) -> Searching:
    trials = tuple(RateTrial(rate, holds) for rate, holds in answers.items())
    return Searching(SEARCH, trials, unsure, least=25.0, largest=100_000.0, level=0.95, compared=0)


def test_a_schedule_that_was_missed_once_below_a_rate_that_was_kept_ends_nothing() -> None:
    """As on a busy machine: 1,715 requests/s were missed once, and 1,727 answered before."""
    found = searching({800.0: True, 1600.0: False, 1727.0: False}, 1715.0)
    assert found.ceiling == 100_000.0
    assert found.ended is None


def test_a_schedule_that_is_missed_above_all_others_bounds_the_search() -> None:
    found = searching({800.0: True, 1600.0: True}, 6400.0)
    assert found.ceiling == 6400.0 / BACK
    assert found.next_rate <= 6400.0 / BACK


def test_a_capacity_that_fell_has_an_interval_of_all_that_it_lay_between_and_is_not_precise_by_the_bets_alone() -> None:
    """It fell from 1,000 to 800: the bets exclude what is above 1,045, and the order of the answers does not."""
    early = [RateTrial(rate, rate < 1000) for _ in range(12) for rate in (955.0, 1045.0)]
    late = [RateTrial(rate, rate < 800) for _ in range(10) for rate in (780.0, 955.0)]
    bets = capacity([*early, *late])
    found = Searching(
        replace(SEARCH, half_width=bets.half_width), (*early, *late), (), 25.0, 100_000.0, 0.95, compared=0
    )
    assert (bets.low, bets.high) == (780.0, 1045.0)
    assert found.capacity.low <= 780.0
    assert found.capacity.high > 1045.0
    assert found.ended is None
    assert replace(found, trials=tuple(early)).capacity == capacity(early), "until then there was one capacity"


def test_a_search_whose_objective_fails_at_the_floor_says_so() -> None:
    """It goes down to the floor, and no lower; there it ends when the bets exclude what is above."""
    found = searching({800.0: False, 100.0: False})
    while found.ended is None:
        assert found.next_rate == 25.0
        found = replace(found, trials=(*found.trials, RateTrial(25.0, holds=False)))
    assert found.ended == ("could not", "the objective already fails at the floor of 25 requests/s")
    assert len(found.trials) <= 8


def test_a_search_whose_objective_holds_at_every_rate_says_so() -> None:
    found = searching({800.0: True, 50_000.0: True})
    while found.ended is None:
        assert found.next_rate == 100_000.0
        found = replace(found, trials=(*found.trials, RateTrial(100_000.0, holds=True)))
    why = "the objective still holds at 100,000 requests/s, the highest rate that a trial can have"
    assert found.ended == ("could not", why)


def test_a_search_asks_both_ends_of_its_interval_once_more_before_it_ends() -> None:
    """900 held and 990 failed six times each, all at 990 last: the disk may have become slower since."""
    narrow = [RateTrial(900.0, holds=True)] * 6 + [RateTrial(990.0, holds=False)] * 6
    found = replace(searching({}), trials=tuple(narrow))
    assert found.capacity.half_width <= SEARCH.half_width
    assert (found.ended, found.next_rate) == (None, 900.0)
    assert replace(found, trials=(*narrow, RateTrial(900.0, holds=True))).ended == ("precise", "")
    contradicted = replace(found, trials=(*narrow, RateTrial(900.0, holds=False)))
    assert contradicted.ended is None


def test_a_rate_whose_schedule_was_kept_is_in_reach_again() -> None:
    """Its end must be asked once more, although a rate a little above it was not kept on a busy machine."""
    found = searching({800.0: True, 1000.0: False}, 1100.0)
    assert found.ceiling == 1000.0


def test_a_search_ends_before_a_block_where_its_cell_was_set_aside_in_an_earlier_one() -> None:
    swept = searching_sweep().sweep
    rule, figures = stop_rule(swept), measurement_frame([])
    assert rule is not None
    gone = replace(trial("a/mail", "a", 1), status="failed", reason="gone", set_aside=True)
    failed = replace(trial("b/mail", "b", 1), status="failed", reason="killed")
    trials = [gone, failed, replace(failed, block=3, set_aside=True)]
    so_far = RunSoFar(trials, figures)
    decision = rule.decide(so_far, before=3, stopped={})
    assert {cell: (stop.reason, stop.why) for cell, stop in decision.stops.items()} == {"a/mail": ("could not", "gone")}
    assert set(decision.rates) == {"b/mail"}
    assert rule.decide(so_far, before=3, stopped=decision.stops).stops == {}
