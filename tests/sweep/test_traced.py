"""Diagnostic trials: how they are asked for and planned, and on which boxes they are refused."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from facts import known
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_json, plan_text, sweep_text
from mountlab.tracing.events import EVENTS, perf_words
from rows import every_row
from sweep.test_plan import FACTS, plan, refusal
from sweeps import DIR, FIO, TMPFS, sweep

ABLE: BoxFacts = known(FACTS, trace_events=[event.name for event in EVENTS], trace_reason="")
EXPLAIN: dict[str, Any] = {"design": {"explain": 3}}


def traced(**more: Any) -> Plan:
    return plan(ABLE, **{**EXPLAIN, **more})


@every_row(("asked", "blocks"), [(True, 5), (False, 0), (0, 0), (2, 2), (50, 50)])
def test_explain_says_how_many_diagnostic_blocks_there_are(asked: object, blocks: int) -> None:
    assert sweep(design={"explain": asked}).sweep.design.explain == blocks


@every_row("asked", [1, 51, -1, "yes please", 2.5])
def test_no_other_number_of_diagnostic_blocks_is_taken(asked: object) -> None:
    with pytest.raises(ParameterError) as caught:
        sweep(design={"explain": asked})
    assert "design.explain" in caught.value.where


def test_diagnostic_trials_come_last_with_names_and_mounts_of_their_own() -> None:
    trials = traced(filesystems={"a": TMPFS, "b": TMPFS}).trials
    assert [trial.trial_id for trial in trials] == [f"t{n:04d}" for n in range(1, 5)] + [
        f"x{n:04d}" for n in range(1, 7)
    ]
    assert [trial.diagnostic for trial in trials] == [False] * 4 + [True] * 6
    assert all(trial.warmup for trial in trials if trial.diagnostic)
    assert [trial.mount[:5] for trial in trials[4:]] == [f"x{n:03d}-" for n in range(1, 7)]
    assert [trial.block for trial in trials[4:]] == [1, 1, 2, 2, 3, 3]


def test_counted_trials_are_the_same_to_the_last_byte_with_diagnostic_ones() -> None:
    plain, with_more = plan(ABLE, workloads={"f": FIO}), traced(workloads={"f": FIO})
    count = len(plain.trials)
    assert [trial.argv for trial in with_more.trials[:count]] == [trial.argv for trial in plain.trials]
    assert [mount_group.mount for mount_group in with_more.mount_groups[:2]] == [
        mount_group.mount for mount_group in plain.mount_groups
    ]


def test_file_systems_that_last_are_those_of_diagnostic_trials_too() -> None:
    lasting = traced(design={"explain": 2, "fresh_filesystem": "never"})
    assert {trial.mount for trial in lasting.trials} == {"m000-tmpfs"}
    assert any(step.keep == "kallsyms.gz" for step in lasting.lasting[0].steps)


def test_only_a_diagnostic_trial_records_and_keeps_the_symbols_of_its_mount() -> None:
    the_plan = traced()
    scripts = {trial.trial_id: trial.argv[4] for trial in the_plan.trials}
    assert {name for name, text in scripts.items() if "perf record" in text} == {"x0001", "x0002", "x0003"}
    kept = {mount.id: [step.keep for step in mount.steps] for mount in the_plan.mounts}
    assert {name for name, keeps in kept.items() if "kallsyms.gz" in keeps} == {
        "x001-tmpfs",
        "x002-tmpfs",
        "x003-tmpfs",
    }


def test_the_script_of_a_diagnostic_trial_names_what_is_recorded() -> None:
    text = traced().trials[-1].argv[4]
    (named,) = (line for line in text.splitlines() if line.startswith("trace_events="))
    assert shlex.split(named)[0].removeprefix("trace_events=").split() == [*perf_words(ABLE.surveyed.trace_events)]
    assert "trace_delay_ms=1\n" in text


def test_tracing_begins_after_what_a_tool_does_not_count() -> None:
    ramped = {**FIO, "rw": "read", "time_based": True, "runtime": "2s", "ramp_time": "3s", "end_fsync": False}
    assert "trace_delay_ms=3000\n" in traced(workloads={"f": ramped}).trials[-1].argv[4]


def test_rounds_of_a_precondition_are_not_traced() -> None:
    steady = {**FIO, "rw": "randwrite", "time_based": True, "runtime": "2s", "precondition": 5}
    trial = traced(workloads={"f": steady}).trials[-1]
    assert trial.redrawn is not None
    assert "perf record" not in trial.redrawn(1).argv[4]


def test_the_plan_says_how_many_diagnostic_trials_there_are() -> None:
    the_plan = traced()
    assert plan_json(the_plan, ABLE)["trials"] == 2
    assert plan_json(the_plan, ABLE)["diagnostic_trials"] == 3
    assert "diagnostic   3 trials in 3 blocks after all others, traced and never counted: about" in plan_text(
        the_plan, ABLE
    )
    assert "diagnostic   3: 1 cells x 3 blocks, never counted" in sweep_text(sweep(**EXPLAIN).sweep, [])
    assert "diagnostic" not in plan_text(plan(ABLE), ABLE)


def test_diagnostic_blocks_take_time_and_no_counted_block_is_longer() -> None:
    plain, with_more = plan(ABLE), traced()
    assert with_more.expected_s == pytest.approx(plain.expected_s + with_more.diagnostic_s)
    assert with_more.diagnostic_s > plain.expected_s


# --- boxes that cannot be traced --------------------------------------------------------------------------------------


def test_a_box_that_can_be_traced_is_not_refused() -> None:
    assert traced().trials
    assert plan(known(ABLE, trace_reason="it cannot")).trials  # nobody asks


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"rights": "none"}, "neither root nor password-less sudo"),
        (
            {"rights": "helper", "trace_reason": "the helper of the box refuses: not permitted"},
            "refuses: not permitted",
        ),
        ({"trace_reason": "its kernel is locked down (confidentiality)"}, "locked down"),
    ],
)
def test_a_box_that_cannot_be_traced_is_refused_with_the_reason(facts: dict[str, Any], words: str) -> None:
    error = refusal(known(ABLE, **facts).as_record(), filesystems={"d": DIR}, **EXPLAIN)
    assert words in error.got
    assert "design.explain" in error.where
    assert "what the box counts by itself" in error.next_step
    assert ("--tracing" in error.next_step) == (facts.get("rights") == "helper")


def test_a_box_without_perf_gets_it_by_prepare() -> None:
    programs = {name: each for name, each in FACTS.programs.installed.items() if name != "perf"}
    error = refusal(known(ABLE, programs=programs, package_manager="apt").as_record(), **EXPLAIN)
    assert error.what == "the box lacks perf"
    assert error.next_step == "mountlab box prepare local"
    assert plan(known(FACTS, programs=programs)).trials


def test_a_record_needs_room() -> None:
    error = refusal(known(ABLE, output_root_free_bytes=50 * 2**20).as_record(), **EXPLAIN)
    assert error.what == "there is no room for the record of a trace"


def test_what_clients_drive_is_not_explained() -> None:
    from mountlab.sweep.traced import check_traceable
    from sweep.test_plan import BOX

    the_sweep = sweep(workloads={"f": {**FIO, "rw": "read"}}, **EXPLAIN).sweep
    driven = replace(the_sweep, workloads=tuple(replace(each, clients=("c1",)) for each in the_sweep.workloads))
    with pytest.raises(Exception, match="clients drive"):
        check_traceable(driven, BOX, ABLE)
