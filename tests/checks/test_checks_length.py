"""Caveats about trials that measured for too short a time: by the design's minimum, and by the clock of the tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import EXT4, KNOWN, READ, _trial, build, found, make, the_only
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS, Evidence, find_caveats, foresee
from mountlab.core.errors import ParameterError
from mountlab.core.model import Design, Measurement, Sweep
from rows import every_row

NOTHING = measurement_frame([])
FIO = {"tool": "fio", "rw": "read", "size": "1MiB"}


def lasting(the_sweep: Sweep, *seconds: float) -> Evidence:
    """The trials of the first cell measured for the first of these times, those of the second for the second, ..."""
    rows = measurement_frame(
        (_trial(cell, block, block), Measurement(metric="elapsed", value=each, unit="s"))
        for cell, each in zip(the_sweep.cells, seconds, strict=True)
        for block in range(1, 6)
    )
    estimates = estimate_frame(the_sweep, rows, run_id="r", box="b")
    return replace(build(make()), sweep=the_sweep, estimates=estimates)


def shortest(text: str, **more: Any) -> Sweep:
    return make(**{"workloads": {"r": READ}, **more, "design": {"shortest_trial": text}})


# --- the minimum of the design ----------------------------------------------------------------------------------------


def test_trials_below_the_minimum_are_one_doubt_that_says_how_many_how_short_and_how_much_more() -> None:
    the_sweep = make(workloads={"long": READ, "brief": READ, "briefer": READ}, design={"shortest_trial": "1s"})
    caveat = the_only("too-short", lasting(the_sweep, 1.2, 0.2, 0.04))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "run", "")
    assert caveat.message.startswith(
        "Of 3 cells, 2 measured for less than 1.00 s a trial, ext4/briefer for 40.0 ms: so short a time shows how"
    )
    assert "Give it 25 times the work (dd: runtime, or a larger count), or set design.shortest_trial" in caveat.message


@every_row("taken_s, times", [(0.6, "1.7"), (0.11, "9.1"), (0.09, "12"), (0.00447, "224")])
def test_the_factor_is_as_exact_as_it_needs_to_be(taken_s: float, times: str) -> None:
    the_sweep = make(workloads={"brief": READ}, design={"shortest_trial": "1s"})
    assert f"Give it {times} times the work" in the_only("too-short", lasting(the_sweep, taken_s)).message


def test_without_a_word_in_the_design_the_minimum_is_a_second() -> None:
    assert Design().shortest_trial_s == 1.0


def test_the_minimum_is_the_designs_and_zero_is_none() -> None:
    assert found("too-short", lasting(shortest("0s"), 0.01)) == []
    assert found("too-short", lasting(shortest("50ms"), 0.06)) == []
    assert "less than 100 ms a trial" in the_only("too-short", lasting(shortest("100ms"), 0.06)).message


def test_a_tool_that_stops_after_a_second_may_say_a_little_less() -> None:
    assert found("too-short", lasting(shortest("1s", workloads={"r": FIO}), 0.999)) == []


def test_the_way_to_longer_trials_is_that_of_the_tools_in_question() -> None:
    the_sweep = shortest("1s", workloads={"r": READ, "f": FIO})
    message = the_only("too-short", lasting(the_sweep, 0.5, 0.3)).message
    assert "ext4/f for 300 ms" in message
    assert "(dd: runtime, or a larger count and fio: runtime with time_based or loops, or a larger size)" in message


def test_where_no_tool_tells_its_time_the_limit_that_it_was_given_counts() -> None:
    the_sweep = shortest("3s", workloads={"p": {"tool": "pg_test_fsync", "time_per_test": "2s"}})
    evidence = replace(
        build(make()), sweep=the_sweep, trials=build(make()).trials.assign(cell="ext4/p"), measurements=NOTHING
    )
    evidence = replace(evidence, estimates=estimate_frame(the_sweep, NOTHING, run_id="r", box="b"))
    assert "ext4/p for 2.00 s" in the_only("too-short", evidence).message


def test_where_nobody_tells_a_time_the_check_has_not_passed() -> None:
    gone = replace(build(make()), estimates=estimate_frame(make(), NOTHING, run_id="r", box="b"))
    assert "how long" in find_caveats(gone).not_checked["too-short"]


@every_row(
    ("workload", "foreseen"),
    [
        ({**FIO, "runtime": "500ms", "time_based": True}, "ext4/r for 500 ms"),
        ({**FIO, "runtime": "3s", "time_based": True}, ""),
        ({"tool": "filebench", "workload": "seqread", "runtime": "1s"}, "ext4/r for 1.00 s"),
        (FIO, ""),
        (READ, ""),
    ],
    ids=["fio", "long enough", "filebench", "as long as its bytes take", "dd"],
)
def test_what_ends_too_early_by_its_own_limit_is_foreseen(workload: dict[str, Any], foreseen: str) -> None:
    told = [
        each.message for each in foresee(shortest("2s", workloads={"r": workload}), KNOWN) if each.code == "too-short"
    ]
    assert len(told) == bool(foreseen)
    assert all(foreseen in each and "1 will measure for less than 2.00 s" in each for each in told)


def test_a_minimum_beyond_the_limit_of_a_trial_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        make(design={"shortest_trial": "2min", "trial_timeout": "60s"})
    assert caught.value.where.endswith("design.shortest_trial")
    assert "at most the trial_timeout, 60s" in caught.value.allowed


# --- the clock of the tool --------------------------------------------------------------------------------------------


def test_a_trial_of_a_few_ticks_of_the_clock_of_its_tool_is_noted() -> None:
    """fio counts milliseconds: 20 ms may be off by 2.5 %."""
    caveat = the_only("too-short", lasting(shortest("0s", workloads={"r": FIO}), 0.02))
    assert caveat.severity == "note"
    assert "trials took 20.0 ms by a clock that counts 1.00 ms steps" in caveat.message
    assert "off by 2.5%. Give it more work." in caveat.message


def test_what_is_below_the_minimum_is_not_told_twice() -> None:
    assert the_only("too-short", lasting(shortest("1s", workloads={"r": FIO}), 0.02)).severity == "warning"


def test_a_trial_of_seconds_is_not_too_short() -> None:
    assert found("too-short", build(make(filesystems={"ext4": EXT4}))) == []
    assert "too-short" in find_caveats(build(make())).passed
    assert CHECKS["too-short"].severities == ("warning", "note")
