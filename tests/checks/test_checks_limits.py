"""Caveats of trials that ran into their time limit, and of file systems that were made once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import Evidence, build, found, make, the_only
from mountlab.checks import foresee
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Sweep
from mountlab.sweep.plan import MOUNT_S
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from rows import every_row
from sweep.test_plan import BOX, FACTS

LONG = [100e6, 101e6, 99e6, 100.5e6, 99.5e6, 100e6]


def with_timeouts(*blocks: int, warmup: bool = False) -> Evidence:
    """Six trials of a cell, of which those of some blocks ran into the limit."""
    evidence = build(make(), values={"ext4/r": LONG})
    late = evidence.trials["block"].isin(blocks)
    trials = evidence.trials.assign(
        status=evidence.trials["status"].where(~late, "timeout"),
        warmup=late & warmup,
        reason=evidence.trials["reason"].where(~late, "ran longer than 600 s and was ended (design.trial_timeout)"),
    )
    return replace(
        evidence, trials=trials, measurements=evidence.measurements[~evidence.measurements.block.isin(blocks)]
    )


def test_a_trial_at_its_limit_is_a_warning_that_names_it_and_says_what_the_figure_is() -> None:
    caveat = the_only("timed-out", with_timeouts(2, 5))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "cell", "ext4/r")
    for part in ("2 of its 6 counted trials", "t0002, t0005", "medians of all 6", "10 min"):
        assert part in caveat.message
    assert found("failed-trials", with_timeouts(2, 5)) == [], "it is an outcome"


def test_where_half_of_them_did_not_end_no_figure_is_promised() -> None:
    assert "No figure is given" in the_only("timed-out", with_timeouts(1, 2, 3)).message
    assert "warm-up" in the_only("timed-out", with_timeouts(1, warmup=True)).message


@pytest.mark.parametrize(("limit", "foreseen"), [("90s", True), ("10min", False)])
def test_a_limit_near_to_what_a_trial_takes_is_foreseen(limit: str, foreseen: bool) -> None:
    fio = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "8MiB", "time_based": True, "runtime": "60s"}
    sweep = make(workloads={"r": fio}, design={"repeats": 5, "trial_timeout": limit})
    codes = [(each.severity, each.code) for each in foresee(sweep, BoxFacts())]
    assert (("warning", "timed-out") in codes) == foreseen


# --- job files -------------------------------------------------------------------------------------------------------


@every_row(
    ("text", "severity", "words"),
    [
        ("[a]\nrw=read\nsize=1m\ndirectory=/x\n", "note", "line 4: directory=/x is dropped: "),
        ("[a]\nrw=read\nfilename=/dev/sdb\n", "warning", "line 1: size=1073741824 is added: "),
    ],
)
def test_what_of_a_job_file_fio_does_not_get_as_it_is_is_said_before_and_after(
    text: str, severity: str, words: str
) -> None:
    sweep = make(workloads={"own": {"tool": "fio", "jobs": text}})
    (before,) = [each for each in foresee(sweep, BoxFacts()) if each.code == "job-file-changed"]
    caveat = the_only("job-file-changed", build(make(), sweep=sweep))
    assert (before, caveat.severity, caveat.scope) == (caveat, severity, "run")
    assert caveat.message.startswith("Of the job file of own: ")
    assert words in caveat.message


def test_a_job_file_that_fio_gets_as_it_is_raises_nothing() -> None:
    sweep = make(workloads={"own": {"tool": "fio", "jobs": "[a]\nrw=read\nsize=1m\n"}})
    assert found("job-file-changed", build(make(), sweep=sweep)) == []


# --- file systems that are made once ----------------------------------------------------------------------------------

TWO = {"ext4": {"type": "ext4", "image": "1GiB"}, "tmpfs": {"type": "tmpfs", "size": "1GiB"}}


def once(filesystems: dict[str, Any] = TWO, **design: Any) -> Sweep:
    return make(filesystems=filesystems, design={"repeats": 5, "warmup": 1, "fresh_filesystem": "never", **design})


def test_file_systems_that_are_compared_and_made_once_are_a_warning_before_and_after() -> None:
    (before,) = [each for each in foresee(once(), BoxFacts()) if each.code == "made-once"]
    caveat = the_only("made-once", build(once()))
    assert (before, caveat.severity, caveat.scope) == (caveat, "warning", "run")
    assert "ext4, tmpfs: made once for all blocks" in caveat.message


@every_row(
    "sweep",
    [
        once(fresh_filesystem="block"),
        once(fresh_filesystem="cell"),
        once(repeats=1),
        once({"ext4": TWO["ext4"]}),
        once({"a": {"type": "dir"}, "b": {"type": "dir"}}),
    ],
    ids=["block", "cell", "one block", "nothing is compared", "what is there already"],
)
def test_what_is_made_again_or_cannot_be_raises_nothing(sweep: Sweep) -> None:
    assert found("made-once", build(sweep)) == []


def test_the_plan_says_what_fresh_file_systems_would_cost() -> None:
    plan = make_plan(once(), BOX, FACTS, run_id="r", owner="me", seed=1)
    assert plan.fresh_more_s == pytest.approx(MOUNT_S * 2 * 5), "two file systems in five further blocks"
    assert plan_json(plan, FACTS)["fresh_more_s"] == 3.0
    (line,) = [line for line in plan_text(plan, FACTS).splitlines() if "fresh_filesystem: block would take" in line]
    assert "about 3 s" in line
    block = make_plan(once(fresh_filesystem="block"), BOX, FACTS, run_id="r", owner="me", seed=1)
    assert block.fresh_more_s == 0
    assert block.expected_s == pytest.approx(plan.expected_s + plan.fresh_more_s)
