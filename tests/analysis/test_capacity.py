"""A search between its blocks: how far up it goes, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from mountlab.analysis.capacity import BACK, Searching, decide, searches
from mountlab.core.model import Objective, Search, Sweep
from mountlab.stats.capacity import RateTrial, capacity
from mountlab.sweep.sweep_file import resolve
from rows import every_row
from sweeps import RAMFS, TMPFS

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
    assert found.found.low <= 780.0
    assert found.found.high > 1045.0
    assert found.ended is None
    assert replace(found, trials=tuple(early)).found == capacity(early), "until then there was one capacity"


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


def of_two() -> Sweep:
    """Two file systems whose capacities are compared, within 10 %."""
    mail = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "16MiB", "runtime": "1s",
            "capacity": {"objective": {"p99": "5ms"}, "half_width": "10%", "max_trials": 40}}  # fmt: skip
    raw = {"name": "two", "question": "Which?", "filesystems": {"old": TMPFS, "new": RAMFS}, "baseline": "old",
           "workloads": {"mail": mail}, "design": {"warmup": 0}}  # fmt: skip
    return resolve(raw, where="tests").sweep


def answered(answers: dict[str, tuple[float, float]], times: int = 9) -> pd.DataFrame:
    """Nine trials that held at the lower rate of each cell, and nine that failed at the higher one."""
    rows = [
        (f"{name}/mail", block, metric, value)
        for name, rates in answers.items()
        for block in range(1, 2 * times + 1)
        for metric, value in (("asked_rate", rates[block % 2]), ("objective_used", 0.5 + block % 2))
    ]
    return pd.DataFrame(rows, columns=["cell", "block", "metric", "value"]).assign(warmup=False)


@every_row(
    ("new", "goes_on"),
    [
        ((820.0, 1000.0), True),  # 1.18 times, and both may be 830
        ((850.0, 1030.0), False),  # larger for sure
        ((720.0, 870.0), False),  # 1.03 times: they may be the same
        ((820.0, 1100.0), False),  # not yet precise itself: the other one is
    ],
)
def test_precise_searches_go_on_to_half_the_width_while_it_is_not_known_which_is_larger(
    new: tuple[float, float], goes_on: bool
) -> None:
    measured, compared = answered({"old": (700.0, 840.0), "new": new}), of_two()
    found = searches(compared, measured)
    assert [each.undecided for each in found.values()] == [goes_on, goes_on]
    stops = decide(compared, [], measured, before=19)
    assert ("old/mail" in stops) == (not goes_on)
    if goes_on:
        assert 700 < found["old/mail"].next_rate < 840
        assert decide(compared, [], measured, before=41)["old/mail"].reason == "precise", "as it was asked for"
