"""Diagnostic trials in a run: they are kept, and change nothing that is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mountlab.box.connection import Completed
from mountlab.plots.order import plot_run_order
from mountlab.report import sections
from mountlab.results.journal import read_journal
from mountlab.results.store import Run, load_run
from mountlab.results.writer import RunWriter
from mountlab.runner.progress import place_text
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import Plan
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, resolve
from runner.test_runner_until import RULE, TimedBox, calm
from runner.test_sweep_runner import FACTS, LOCAL, SUMMARY, Memory, ScriptedBox, archive, plan
from sweeps import DD_WRITE, TMPFS, Silent

FAILED = {"exit_status": b"1\n", "stdout": b"", "stderr": b"dd: No space left on device\n"}
LATE = {**FAILED, "exit_status": b"124\n"}
UNTRACED = {"untraced": b"perf did not begin to record: No permission\n", "trace_said": b"No permission\n"}
BROKEN = {**UNTRACED, "started_ns": b"1\n", "exit_status": b"0\n", "stdout": b"", "stderr": SUMMARY}


class DiagnosticBox(ScriptedBox):
    """Its diagnostic trials bring back what a test says, one after the other."""

    def __init__(self, *given: Mapping[str, bytes], **script: Sequence[Any]) -> None:
        super().__init__(**script)
        self.given = list(given)

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        if self.name(argv) != "trial" or not argv[-1].startswith("x") or not self.given:
            return done
        return replace(done, stdout=archive(self.given.pop(0)))


def ran(box: ScriptedBox, **design: Any) -> Memory:
    journal = Memory()
    run_sweep(plan({"a": TMPFS}, **{"repeats": 2, "explain": 3, **design}), box, journal, Silent())
    return journal


def outcomes(journal: Memory) -> list[tuple[str, str]]:
    return [(trial.trial_id, trial.status) for trial in journal.trials]


def test_diagnostic_trials_run_last_and_are_marked() -> None:
    trials = ran(DiagnosticBox()).trials
    assert [trial.trial_id for trial in trials] == ["t0001", "t0002", "x0001", "x0002", "x0003"]
    assert [(trial.diagnostic, trial.warmup) for trial in trials] == [(False, False)] * 2 + [(True, True)] * 3


@pytest.mark.parametrize("brought", [FAILED, UNTRACED])
def test_a_diagnostic_trial_that_fails_sets_no_cell_aside(brought: Mapping[str, bytes]) -> None:
    journal = ran(DiagnosticBox(brought))
    assert outcomes(journal)[2:] == [("x0001", "failed"), ("x0002", "ok"), ("x0003", "ok")]
    assert not any(trial.set_aside for trial in journal.trials)


def test_diagnostic_trials_that_time_out_set_no_cell_aside() -> None:
    journal = ran(DiagnosticBox(LATE, LATE, LATE))
    assert [status for _, status in outcomes(journal)] == ["ok", "ok", "timeout", "timeout", "timeout"]
    assert not any(trial.set_aside for trial in journal.trials)


def test_what_kept_perf_from_recording_is_the_reason() -> None:
    (trial,) = (each for each in ran(DiagnosticBox(UNTRACED)).trials if each.trial_id == "x0001")
    assert "it was not traced: perf did not begin to record: No permission" in trial.reason
    assert trial.attempts == 1


def test_a_record_that_broke_off_is_made_again() -> None:
    (trial,) = (each for each in ran(DiagnosticBox(BROKEN)).trials if each.trial_id == "x0001")
    assert (trial.status, trial.attempts) == ("ok", 2)


@pytest.mark.slow
def test_a_stopping_rule_drops_no_diagnostic_trial(tmp_path: Path) -> None:
    asked = traced_until()
    the_plan = make_plan(asked.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=7)
    writer = RunWriter.create(the_plan, asked, FACTS, results=tmp_path)
    box = TimedBox(the_plan, calm)
    run_sweep(the_plan, box, writer, Silent())
    ids = [trial.trial_id for trial in read_journal(writer.path)]
    assert [name for name in ids if name.startswith("x")] == ["x0001", "x0002", "x0003", "x0004"]
    assert len(ids) == 3 * 2 + 4, "precise after three blocks of six"
    assert {stop.blocks for stop in writer.stops(the_plan.sweep)} == {3}


def traced_until() -> Resolved:
    raw = {
        "question": "Why?",
        "name": "tiny",
        "filesystems": {"t": TMPFS, "u": TMPFS},
        "workloads": {"w": DD_WRITE},
        "design": {"until": dict(RULE), "warmup": 0, "seed": 7, "trial_timeout": "60s", "explain": 2},
    }
    return resolve(raw, where="tests")


# --- figures ----------------------------------------------------------------------------------------------------------


def slower_when_traced(the_plan: Plan) -> Any:
    """A box on which diagnostic trials take ten times as long."""

    class Box(TimedBox):
        def answer(self, trial: Any) -> bytes:
            took = 0.01 + 0.001 * int(trial.trial_id[1:])
            took = took * 10 if trial.diagnostic else took
            summary = f"8+0 records in\n8+0 records out\n8388608 bytes (8.4 MB) copied, {took} s, 1 GB/s\n"
            return archive({"exit_status": b"0\n", "stdout": b"", "stderr": summary.encode()})

    return Box(the_plan, calm)


def measured(results: Path, explain: int) -> Run:
    raw = {
        "question": "Why?",
        "name": "tiny",
        "baseline": "t",
        "filesystems": {"t": TMPFS, "u": TMPFS},
        "workloads": {"w": DD_WRITE},
        "design": {"repeats": 4, "warmup": 1, "seed": 7, "explain": explain, "trial_timeout": "60s"},
    }
    asked = resolve(raw, where="tests")
    the_plan = make_plan(asked.sweep, LOCAL, FACTS, run_id=f"R{explain}", owner="me", seed=7)
    writer = RunWriter.create(the_plan, asked, FACTS, results=results)
    run_sweep(the_plan, slower_when_traced(the_plan), writer, Silent())
    writer.finish("complete")
    return load_run(writer.path)


@pytest.mark.slow
def test_no_figure_and_no_caveat_changes_by_diagnostic_trials(tmp_path: Path) -> None:
    plain, traced = measured(tmp_path, 0), measured(tmp_path, 3)
    pd.testing.assert_frame_equal(
        plain.estimates.drop(columns="run_id"), traced.estimates.drop(columns="run_id"), check_exact=True
    )
    assert repr(list(plain.comparisons)) == repr(list(traced.comparisons))
    assert list(plain.caveats) == list(traced.caveats)
    assert plain.checks_passed == traced.checks_passed
    assert traced.trials["diagnostic"].sum() == 6
    assert set(traced.measurements["trial_id"]) >= {"x0001", "x0006"}


@pytest.mark.slow
def test_texts_say_diagnostic_and_not_warm_up(tmp_path: Path) -> None:
    run = measured(tmp_path, 2)
    assert "ok, diagnostic" in sections.trials(run)
    drawn = plot_run_order(run.measurements, "write_bandwidth", filesystems=["t", "u"])
    label = drawn.figure.axes[-1].get_xlabel()
    assert "W, hollow: warm-up; D, hollow: diagnostic" in " ".join(label.split())
    ticks = [text.get_text() for text in drawn.figure.axes[-1].get_xticklabels()]
    assert ticks == ["W", "1", "2", "3", "4", "D", "D"]
    (planned,) = (each for each in plan({"a": TMPFS}, explain=2).trials if each.trial_id == "x0002")
    assert place_text(planned) == "diagnostic block 2, a/dd-write"
