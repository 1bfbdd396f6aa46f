"""How long a run will still take, and what is told of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from mountlab.runner.progress import Bar, Remaining, Standing
from mountlab.runner.trial_executor import as_trial
from mountlab.sweep.plan import Plan
from sweep.test_plan import BOX, FACTS, make_plan
from sweeps import DD_WRITE, FIO, TMPFS, sweep

NOW = datetime(2026, 11, 20, tzinfo=UTC)

TIMED = {**FIO, "rw": "randread", "time_based": True, "runtime": "10s"}


def make(repeats: int = 2, **workloads: object) -> Plan:
    the_sweep = sweep(
        filesystems={"t": TMPFS}, workloads=workloads or {"w": DD_WRITE}, design={"repeats": repeats}
    ).sweep
    return make_plan(the_sweep, BOX, FACTS, run_id="r1", owner="me", seed=1)


def test_before_the_first_trial_the_plans_guess_is_all_there_is() -> None:
    plan = make()
    assert Remaining(plan).seconds() == pytest.approx(plan.expected_s)


def test_a_cell_that_has_run_is_expected_to_take_as_long_again() -> None:
    plan = make(repeats=4)
    remaining = Remaining(plan)
    remaining.end(plan.trials[0], 3.0)
    remaining.end(plan.trials[1], 5.0)
    assert remaining.seconds() == pytest.approx(2 * 4.0)


def test_a_cell_that_has_not_run_is_guessed_by_how_wrong_the_guess_was_so_far() -> None:
    plan = make(repeats=1, w=DD_WRITE, f=TIMED)
    first, second = plan.trials
    remaining = Remaining(plan)
    remaining.end(first, 3 * (plan.expected_s - second.expected_s))  # the first one with its mount
    assert remaining.seconds() == pytest.approx(3 * second.expected_s)


def test_trials_of_an_earlier_session_are_forgotten() -> None:
    plan = make(repeats=3)
    remaining = Remaining(plan)
    remaining.forget("t0001")
    assert remaining.seconds() == pytest.approx(plan.expected_s * 2 / 3)


def test_what_lies_between_two_trials_is_expected_again_before_those_that_wait() -> None:
    plan = make(repeats=4)
    ended = [100.0, 112.0, 124.0]
    moments = iter([ended[0], ended[0] + 9.0, ended[1], ended[1] + 9.0, ended[2]])
    standing = Standing(plan, recorded_ids=set(), clock=lambda: next(moments))
    for trial in plan.trials[:3]:
        standing.begin(trial)
        standing.end(trial, as_trial(trial, "ok", "", NOW, 3.0))
    mean_s = (3.0 + 12.0 + 12.0) / 3  # before the first trial is what is done once
    assert standing.remaining.seconds() == pytest.approx(mean_s)


def test_at_the_end_nothing_remains() -> None:
    plan = make()
    remaining = Remaining(plan)
    for trial in plan.trials:
        remaining.end(trial, 1.0)
    assert remaining.seconds() == 0


def test_the_bar_tells_the_running_cell_the_time_left_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make()
    with Bar(plan, recorded_ids=set()) as bar:
        for planned, status in zip(plan.trials, ("failed", "ok"), strict=True):
            bar.begin(planned)
            bar.end(planned, as_trial(planned, status, "no space\nmore" if status == "failed" else "", NOW, 2.0))
    out, err = capsys.readouterr()
    assert out == "", "standard output belongs to the answer"
    assert "failed: t0001 t/w: no space\n" in err
    assert "2/2 trials" in err
    assert "about 00:00 left, 1 failed" in err


def test_the_bar_of_a_resumed_run_starts_where_the_first_session_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make(repeats=3)
    with Bar(plan, recorded_ids={"t0001", "t0002"}) as bar:
        bar.begin(plan.trials[2])
    assert "2/3 trials" in capsys.readouterr().err
