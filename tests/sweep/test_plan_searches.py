"""The plan of a sweep of searches."""

from __future__ import annotations

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.numbers import rough_duration
from mountlab.sweep.by_hand import HandSweep
from mountlab.sweep.capacity_time import SearchTime, fewest_trials
from mountlab.sweep.extension import extended
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, resolve
from runner.test_sweep_runner import FACTS, LOCAL
from sweeps import TMPFS

MAIL = {"tool": "fio", "rw": "randrw", "bs": "4KiB", "size": "16MiB", "runtime": "5s"}


def searching(**capacity: object) -> Resolved:
    asked = {"objective": {"p99": "5ms"}, **capacity}
    raw = {
        "name": "s",
        "question": "How much can it take?",
        "filesystems": {"a": TMPFS, "b": TMPFS},
        "workloads": {"mail": {**MAIL, "capacity": asked}},
    }
    return resolve(raw, where="s.yml")


def planned(**capacity: object) -> Plan:
    return make_plan(searching(**capacity).sweep, LOCAL, FACTS, run_id="R", owner="me", seed=7)


def test_each_cell_of_a_block_has_arrivals_of_its_own() -> None:
    """With common arrivals two searches would answer alike, and their bets would count twice."""
    seeds = [trial.command.seed for trial in planned().trials]
    assert len(set(seeds)) == len(seeds)


def test_a_trial_at_another_rate_is_the_same_but_for_the_rate() -> None:
    trial = planned(start=500).trials[0]
    assert trial.at_rate
    (before,), (after,) = trial.command.files.values(), trial.at_rate(800.0).command.files.values()
    assert trial.at_rate(500.0) == trial
    assert "rate_iops" in before
    assert before != after
    assert trial.at_rate(800.0).command.argv == trial.command.argv


def test_the_plan_says_how_a_search_goes_on() -> None:
    text = plan_text(planned(start=500, max_trials=20), FACTS)
    assert "at most 20 blocks" in text
    assert "500 requests/s in its first trial" in text
    assert "capacity at" in text
    assert "± 5 %" in text.replace("\u00a0", " ")


def test_the_plan_says_how_long_from_the_fewest_trials_to_the_most_at_the_floor() -> None:
    """A p99 of a direction that half of the requests have needs 2,000 of them: 5 s at 400/s, 20 s at 100/s."""
    plan = planned(start=500, max_trials=20, floor=100)
    text, time = plan_text(plan, FACTS), SearchTime.of(plan)
    assert "500 requests/s in its first trial; then from the answers before it, 100 or more" in text
    assert f"{fewest_trials(0.95)} to 20 trials for each capacity, each of " in text
    assert 5 < time.shortest_s < 12
    assert 20 < time.longest_s < 32
    assert 2 * time.fewest * time.shortest_s <= time.least_s < time.most_s
    assert time.most_s == pytest.approx(2 * 20 * time.longest_s, rel=0.1)
    written = plan_json(plan, FACTS)
    assert (written["expected_least_s"], written["expected_s"]) == (round(time.least_s, 1), round(time.most_s, 1))
    assert f"about {rough_duration(round(time.least_s))} to {rough_duration(round(time.most_s))}" in text


def test_no_search_that_bounds_a_capacity_on_both_sides_has_fewer_trials() -> None:
    """A right guess of a fair coin's next side, n times, has a chance of 0.5**n: that of 5 is above 2.5 %."""
    assert fewest_trials(0.95) >= 10
    assert fewest_trials(0.99) > fewest_trials(0.95)


def test_what_a_search_decides_by_itself_is_not_asked_of_it_later_or_by_hand() -> None:
    more = searching(max_trials=90)
    with pytest.raises(ParameterError, match="says itself when it ends"):
        extended(searching(), more, at="now", only_new=False, where="r")
    with pytest.raises(ParameterError, match="chooses its own trials"):
        HandSweep(box="local", question="?", design={}).with_workload(
            "a", "mail", {**MAIL, "capacity": {"objective": {"p99": "5ms"}}}
        )
