"""Diagnostic trials that record system calls: how they are asked for and planned, and where they are refused."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import PlanError
from mountlab.core.model import Sweep
from mountlab.core.names import is_diagnostic
from mountlab.outcome.judging import ScriptExit, judge
from mountlab.sweep.design import mount_groups, profiled_mount_groups
from mountlab.sweep.extension import continued
from mountlab.sweep.feasible import all_programs, needed_programs
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_text, sweep_text
from mountlab.sweep.profiled import check_profiled
from mountlab.sweep.profiled import profiled as profiled_command
from mountlab.tracing.program_calls import CALLS
from mountlab.tracing.program_figures import profile_of
from sweep.test_clients import FIO as DRIVEN
from sweep.test_clients import SHARED
from sweep.test_plan import FACTS, plan, refusal
from sweep.test_traced import ABLE
from sweeps import FIO, TMPFS, sweep

PROFILE: dict[str, Any] = {"design": {"profile": True}}


def profiled(**more: Any) -> Plan:
    return plan(ABLE, **{**PROFILE, **more})


def test_each_cell_is_profiled_once_after_all_other_trials() -> None:
    both = {"design": {"profile": True, "explain": 2}, "filesystems": {"a": TMPFS, "b": TMPFS}}
    trials = profiled(**both).trials
    assert [trial.trial_id for trial in trials[-6:]] == ["x0001", "x0002", "x0003", "x0004", "p0001", "p0002"]
    assert [trial.profiled for trial in trials[-6:]] == [False] * 4 + [True] * 2
    assert all(trial.diagnostic and trial.warmup and is_diagnostic(trial.trial_id) for trial in trials[-6:])
    assert [trial.mount[:5] for trial in trials[-2:]] == ["p001-", "p002-"]
    assert {trial.cell.id for trial in trials[-2:]} == {trial.cell.id for trial in trials[:2]}


def test_other_trials_are_the_same_to_the_last_byte_with_a_profile() -> None:
    for design in ({}, {"explain": 2}):
        plain = plan(ABLE, workloads={"f": FIO}, design=design)
        more = profiled(workloads={"f": FIO}, design={**design, "profile": True})
        assert [trial.argv for trial in more.trials[: len(plain.trials)]] == [trial.argv for trial in plain.trials]


def test_only_a_profiled_trial_runs_its_tool_below_strace() -> None:
    scripts = {trial.trial_id: trial.argv[4] for trial in profiled().trials}
    assert {name for name, text in scripts.items() if "exec strace" in text} == {"p0001"}
    assert "perf record" not in scripts["p0001"]
    assert ",".join(f"?{name}" for name in CALLS) in scripts["p0001"]
    kept = [step.keep for mount in profiled().mounts for step in mount.steps]
    assert "kallsyms.gz" not in kept


def test_a_profile_needs_strace_and_nothing_else_does() -> None:
    names = {design: {program.name for program in needed_programs(_sweep(profile=design))} for design in (False, True)}
    assert names[True] - names[False] == {"strace", "gzip"}
    programs = {program.name: {} for program in all_programs() if program.name != "strace"}
    error = refusal({"programs": programs}, **PROFILE)
    assert (error.what, error.next_step) == ("the box lacks strace", "mountlab box prepare local")


def _sweep(*, profile: bool) -> Sweep:
    return sweep(design={"profile": profile}).sweep


def test_the_plan_and_the_sweep_say_how_many_trials_are_profiled() -> None:
    assert "diagnostic   1 trial in 1 block after all others, traced and never counted" in plan_text(profiled(), FACTS)
    assert "diagnostic   3: 1 cells x 3 blocks" in sweep_text(sweep(design={"profile": True, "explain": 2}).sweep, [])


def test_rounds_of_a_precondition_are_not_profiled() -> None:
    steady = {**FIO, "rw": "randwrite", "time_based": True, "runtime": "2s", "precondition": 5}
    trial = profiled(workloads={"f": steady}).trials[-1]
    assert trial.profiled
    assert trial.redrawn is not None
    assert "exec strace" not in trial.redrawn(1).argv[4]


def test_cells_of_an_extension_have_a_profile_of_their_own() -> None:
    before = sweep(filesystems={"a": TMPFS}, **PROFILE).sweep
    after = sweep(filesystems={"a": TMPFS, "b": TMPFS}, **PROFILE).sweep
    whole = continued(before, after, at="2026-01-01T00:00:00+00:00", only_new=True)
    groups = profiled_mount_groups(whole, 5)
    assert [(group.stage, group.filesystem.name) for group in groups] == [(0, "a"), (1, "b")]
    assert groups[:1] == profiled_mount_groups(before, 5)
    assert not any(group.profiled for group in mount_groups(whole, 5))


def test_workloads_that_clients_drive_have_no_profile() -> None:
    given: dict[str, Any] = {"filesystems": SHARED, "workloads": {"w": DRIVEN}}
    check_profiled(sweep(**given).sweep)
    with pytest.raises(PlanError, match="clients drive") as caught:
        check_profiled(sweep(**given, **PROFILE).sweep)
    assert caught.value.where == "design.profile"


# --- the script -------------------------------------------------------------------------------------------------------


def below_strace(tmp_path: Path, *command: str, path: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run a command as a profiled trial does, with output and test directory side by side."""
    out, directory = tmp_path / "it's out", tmp_path / "it's under test"
    for each in (out, directory):
        each.mkdir()
    argv = profiled_command(command, str(out), str(directory))
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None
    return subprocess.run(argv, check=False, capture_output=True, env=env, cwd=directory, timeout=60)


def test_where_strace_cannot_trace_the_reason_is_kept_and_nothing_is_measured(tmp_path: Path) -> None:
    fake = tmp_path / "strace"
    fake.write_text("#!/bin/sh\necho 'strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    done = below_strace(tmp_path, "touch", "ran", path=str(tmp_path))
    assert done.returncode == 1
    assert not (tmp_path / "it's under test" / "ran").exists()
    reason = (tmp_path / "it's out" / "unprofiled").read_bytes()
    script_exit = ScriptExit(exit_status=0, archive=b"", error_text="")
    workload = sweep().sweep.workloads[0]
    outcome = judge(workload, {"unprofiled": reason}, script_exit, timeout_s=9, parse=lambda *_: [])
    assert outcome.reason.startswith("its system calls were not recorded: strace: ptrace(PTRACE_TRACEME, ...)")
    assert not outcome.retry


@pytest.mark.requires_program("strace")
def test_the_tool_ends_and_prints_below_strace_as_by_itself(tmp_path: Path) -> None:
    done = below_strace(tmp_path, "sh", "-c", "echo out; echo err >&2; echo data > 'a file'; exit 7")
    if (tmp_path / "it's out" / "unprofiled").exists():
        pytest.skip("nothing may be traced here")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    kept = gzip.decompress((tmp_path / "it's out" / "program_calls.gz").read_bytes()).decode()
    profile = profile_of(kept.splitlines())
    assert profile.writes
    assert (profile.writes.bytes, profile.files.created) == (5, 1)
    assert "a file" not in kept
