"""The order of effects of a run that goes on until its figures are precise, interrupted and resumed too."""

from __future__ import annotations

import json
import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
import pytest
from mountlab.box.connection import Completed
from mountlab.core.cell_stop import CellStop
from mountlab.core.model import Trial, Until
from mountlab.core.numbers import rough_duration
from mountlab.report import sections
from mountlab.results import records
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from mountlab.results.store import load_run
from mountlab.results.tables import write_derived
from mountlab.results.writer import RunWriter
from mountlab.runner import trial_executor
from mountlab.runner.progress import Bar
from mountlab.runner.sweep_runner import run_sweep
from mountlab.stats import sequential
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, resolve
from repetition import others_long
from runner.test_sweep_runner import FACTS, LOCAL, ScriptedBox, archive
from sweeps import DD_WRITE, TMPFS, Silent

BYTES = 8 * 2**20
Seconds = Callable[[str, str, int], float | None]
"""File system, workload and block to the seconds that dd says it took; None where it fails."""
RULE: dict[str, Any] = {"half_width": "5%", "min": 3, "max": 6}
MOUNT, UMOUNT = ["mkdir", "mount", "evidence"], ["umount", "rmdir"]


def resolved(*, workloads: Sequence[str] = ("w",), until: Mapping[str, Any] = RULE, **design: Any) -> Resolved:
    return resolve(
        {
            "name": "tiny",
            "question": "How many blocks does it take?",
            "filesystems": {"t": TMPFS, "u": TMPFS},
            "workloads": dict.fromkeys(workloads, DD_WRITE),
            "design": {"until": dict(until), "warmup": 0, "seed": 7, "trial_timeout": "60s", **design},
        },
        where="tests",
    )


def planned(the_sweep: Resolved, run_id: str = "R") -> Plan:
    return make_plan(the_sweep.sweep, LOCAL, FACTS, run_id=run_id, owner="me", seed=7)


class TimedBox(ScriptedBox):
    """Its dd says that a trial took as long as a test wants."""

    def __init__(self, plan: Plan, seconds: Seconds, **script: Sequence[Any]) -> None:
        super().__init__(**script)
        self.seconds = seconds
        self.by_id = {trial.trial_id: trial for trial in plan.trials}
        self.ran: list[tuple[int, str]] = []

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        if self.name(argv) != "trial" or not done.ok:
            return done
        trial = self.by_id[argv[-1]]
        self.ran.append((trial.block, trial.cell.id))
        return replace(done, stdout=self.answer(trial))

    def output(self, name: str) -> bytes:
        return b"==> elapsed_ns <==\n1000\n" if name == "mount" else super().output(name)

    def answer(self, trial: PlannedTrial) -> bytes:
        took = self.seconds(trial.cell.filesystem.name, trial.cell.workload.name, trial.block)
        if took is None:
            return archive({"exit_status": b"1\n", "stdout": b"", "stderr": b"dd: No space left on device\n"})
        summary = f"8+0 records in\n8+0 records out\n{BYTES} bytes (8.4 MB, 8.0 MiB) copied, {took} s, 1 GB/s\n"
        return archive({"exit_status": b"0\n", "stdout": b"", "stderr": summary.encode()})


class Told(Silent):
    def __init__(self) -> None:
        self.stops: list[CellStop] = []
        self.dropped: list[PlannedTrial] = []

    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None:
        self.stops += stops
        self.dropped += trials


def calm(filesystem: str, workload: str, block: int) -> float:
    return 0.01 + 0.00001 * (block % 2)


def noisy(filesystem: str, workload: str, block: int) -> float:
    return 0.01 * (1 + block % 2)


def w_is_calm(filesystem: str, workload: str, block: int) -> float:
    return (calm if workload == "w" else noisy)(filesystem, workload, block)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def run(
    the_sweep: Resolved, seconds: Seconds, results: Path, progress: Any = None, **script: Sequence[Any]
) -> tuple[TimedBox, Path]:
    plan = planned(the_sweep)
    writer = RunWriter.create(plan, the_sweep, FACTS, results=results)
    box = TimedBox(plan, seconds, **script)
    run_sweep(plan, box, writer, progress or Silent())
    writer.finish("complete", writer.stops(plan.sweep))
    return box, writer.path


def blocks_of(box: TimedBox) -> dict[str, int]:
    return dict(Counter(cell for _, cell in box.ran))


# --- the order of effects ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_whose_cells_are_all_precise_ends_before_its_last_block(results: Path) -> None:
    box, path = run(resolved(), calm, results)
    turn = [*MOUNT, "trial", *UMOUNT]
    assert box.calls == ["open", *turn * 2 * 3, "close"]
    assert blocks_of(box) == {"t/w": 3, "u/w": 3}
    assert read_info(path).order == [f"t{n:04d}" for n in range(1, 13)], "the plan lists up to max blocks"


@pytest.mark.slow
def test_a_run_that_is_never_precise_ends_with_its_last_block(results: Path) -> None:
    box, path = run(resolved(), noisy, results)
    assert blocks_of(box) == {"t/w": 6, "u/w": 6}
    assert {stop["reason"] for stop in read_info(path).stopped.values()} == {"max reached"}


@pytest.mark.slow
def test_workloads_that_are_done_drop_out_and_the_blocks_of_the_others_stay_complete(results: Path) -> None:
    box, _ = run(resolved(workloads=("w", "v")), w_is_calm, results)
    assert blocks_of(box) == {"t/w": 3, "u/w": 3, "t/v": 6, "u/v": 6}
    order = [(trial.block, trial.cell.id) for trial in planned(resolved(workloads=("w", "v"))).trials]
    assert box.ran == [each for each in order if each[0] <= 3 or each[1].endswith("/v")], "the order that was drawn"


@pytest.mark.slow
def test_a_file_system_with_no_cell_left_is_not_mounted(results: Path) -> None:
    def u_fails(filesystem: str, workload: str, block: int) -> float | None:
        return None if filesystem == "u" else noisy(filesystem, workload, block)

    box, path = run(resolved(), u_fails, results)
    assert blocks_of(box) == {"t/w": 6, "u/w": 1}, "set aside after its first block, and left after three"
    assert box.calls.count("mount") == 7
    stopped = read_info(path).stopped["u/w"]
    assert (stopped["reason"], stopped["n"], stopped["half_width"]) == ("could not", 0, None)
    assert "No space left on device" in stopped["why"]


@pytest.mark.slow
def test_with_fresh_cell_only_the_cells_that_go_on_are_made(results: Path) -> None:
    box, _ = run(resolved(workloads=("w", "v"), fresh_filesystem="cell"), w_is_calm, results)
    turn = [*MOUNT, "trial", *UMOUNT]
    assert box.calls == ["open", *turn * (4 * 3 + 2 * 3), "close"]
    assert blocks_of(box) == {"t/w": 3, "u/w": 3, "t/v": 6, "u/v": 6}


@pytest.mark.slow
def test_with_fresh_never_every_file_system_stays_until_the_end_of_a_short_run(results: Path) -> None:
    box, _ = run(resolved(fresh_filesystem="never"), calm, results)
    assert box.calls == ["open", *MOUNT * 2, *["trial"] * 6, *UMOUNT * 2, "close"]


@pytest.mark.slow
def test_warm_up_blocks_run_first_and_do_not_count(results: Path) -> None:
    box, path = run(resolved(warmup=2), calm, results)
    assert sorted({block for block, _ in box.ran}) == [-1, 0, 1, 2, 3]
    assert {stop["blocks"] for stop in read_info(path).stopped.values()} == {3}


@pytest.mark.slow
def test_a_cell_that_cannot_run_here_is_skipped_until_the_others_are_done(results: Path) -> None:
    raw = resolved().parameters
    both = resolve({**raw, "filesystems": {"t": TMPFS, "huge": {"type": "hugetlbfs", "size": "64MiB"}}}, where="tests")
    box, path = run(both, noisy, results)
    assert blocks_of(box) == {"t/w": 6}
    by_status = Counter((trial.filesystem, trial.status) for trial in read_journal(path))
    assert by_status == {("t", "ok"): 6, ("huge", "skipped"): 3}
    assert "hugetlbfs has no write()" in read_info(path).stopped["huge/w"]["why"]


@pytest.mark.slow
def test_the_budget_is_that_of_the_trials_in_the_journal(results: Path) -> None:
    """Trials of no time at all never use it up, however long the test takes; with a budget of a microsecond the run
    ends at its least number of blocks."""
    box, path = run(resolved(until={**RULE, "budget": "1us"}), noisy, results)
    assert blocks_of(box) == {"t/w": 3, "u/w": 3}
    assert {stop["reason"] for stop in read_info(path).stopped.values()} == {"budget"}


@pytest.mark.slow
def test_progress_is_told_who_leaves_and_which_trials_are_not_needed(results: Path) -> None:
    told = Told()
    run(resolved(workloads=("w", "v")), w_is_calm, results, told)
    assert [(stop.cell, stop.reason, stop.blocks) for stop in told.stops] == [
        ("t/w", "precise", 3),
        ("u/w", "precise", 3),
    ]
    assert sorted((trial.block, trial.cell.id) for trial in told.dropped) == [
        (block, cell) for block in (4, 5, 6) for cell in ("t/w", "u/w")
    ]


@pytest.mark.slow
def test_the_bar_ends_full_and_says_why_trials_were_not_needed(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(resolved())
    with Bar(plan, set()) as bar:
        run(resolved(), calm, results, bar)
    err = capsys.readouterr().err
    assert "w: precise after 3 blocks (t, u)" in err
    assert "6/6 trials" in err
    assert "about 00:00 left" in err


# --- interrupted, and resumed -----------------------------------------------------------------------------------------


def interrupted(the_sweep: Resolved, seconds: Seconds, results: Path, after: int) -> tuple[Plan, RunWriter]:
    """A run that a signal ends during the trial after `after` of them."""
    plan = planned(the_sweep)
    writer = RunWriter.create(plan, the_sweep, FACTS, results=results)
    stop = [0] * after + [lambda: os.kill(os.getpid(), signal.SIGINT)]
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, TimedBox(plan, seconds, trial=stop), writer, Silent())
    return plan, writer


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[TimedBox, Path]]:
    """A run that nothing interrupts, once for each `fresh_filesystem`."""

    @cache
    def whole(fresh: str) -> tuple[TimedBox, Path]:
        the_sweep = resolved(workloads=("w", "v"), fresh_filesystem=fresh)
        return run(the_sweep, w_is_calm, tmp_path_factory.mktemp(f"whole-{fresh}"))

    return whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "fresh"),
    others_long(
        product((0, 1, 11, 12, 13, 17), ("block", "cell", "never")),
        kept={(11, "cell"), (12, "block")},
    ),
)
def test_a_resumed_run_decides_as_the_whole_one_would_have(
    after: int, fresh: str, results: Path, whole_run: Callable[[str], tuple[TimedBox, Path]]
) -> None:
    """Stopped in the first block, before a look, just after it, and in the blocks that follow."""
    the_sweep = resolved(workloads=("w", "v"), fresh_filesystem=fresh)
    whole, whole_path = whole_run(fresh)

    plan, writer = interrupted(the_sweep, w_is_calm, results / "cut", after)
    before = [trial.trial_id for trial in read_journal(writer.path)]
    assert len(before) == after
    later = TimedBox(plan, w_is_calm)
    again = RunWriter(writer.path)
    run_sweep(plan, later, again, Silent())

    assert [trial.trial_id for trial in read_journal(writer.path)] == [t.trial_id for t in read_journal(whole_path)]
    assert len(later.ran) == len(whole.ran) - after
    sweep = the_sweep.sweep
    assert again.stops(sweep) == RunWriter(whole_path).stops(sweep)


@pytest.mark.slow
def test_a_resumed_run_does_not_decide_about_an_early_block_with_what_it_learned_later(results: Path) -> None:
    """Defect: u leaves alone after block 5. Asked again about block 4 without u, t was precise there, and the resumed
    run ended it, though its later values had made it imprecise."""

    def falls_apart(filesystem: str, workload: str, block: int) -> float | None:
        if filesystem == "u":
            return noisy(filesystem, workload, block) if block < 5 else None
        return 0.01 if block < 5 else noisy(filesystem, workload, block)

    the_sweep = resolved(until={**RULE, "max": 9})
    whole, whole_path = run(the_sweep, falls_apart, results / "whole")
    assert blocks_of(whole) == {"t/w": 9, "u/w": 5}

    plan, writer = interrupted(the_sweep, falls_apart, results / "cut", after=12)
    later, told = TimedBox(plan, falls_apart), Told()
    run_sweep(plan, later, RunWriter(writer.path), told)
    assert blocks_of(later) == {"t/w": 2}
    assert [(stop.cell, stop.reason, stop.blocks) for stop in told.stops] == [("u/w", "could not", 5)]
    assert RunWriter(writer.path).stops(the_sweep.sweep) == RunWriter(whole_path).stops(the_sweep.sweep)


@pytest.mark.slow
def test_to_decide_and_to_say_why_it_stopped_a_run_parses_each_trial_once(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, parsed = trial_executor.parsed, Counter[str]()
    monkeypatch.setattr(
        trial_executor, "parsed", lambda workload, output: (parsed.update(["judged"]), parse(workload, output))[1]
    )
    monkeypatch.setattr(records, "read_trial", lambda path, *_: parsed.update([path.name]))
    plan = planned(resolved())
    writer = RunWriter.create(plan, resolved(), FACTS, results=results)
    run_sweep(plan, TimedBox(plan, calm), writer, Silent())
    assert {stop.reason for stop in writer.stops(plan.sweep)} == {"precise"}
    assert parsed == {"judged": len(read_journal(writer.path))}
    monkeypatch.undo()
    again = load_run(writer.path, as_it_is=True).all_records
    assert writer.records == {name: replace(record, device=None) for name, record in again.items()}


@pytest.mark.slow
def test_an_interrupted_run_says_of_each_cell_whether_it_had_left(results: Path) -> None:
    the_sweep = resolved(workloads=("w", "v"))
    _, writer = interrupted(the_sweep, w_is_calm, results, 13)
    found = {stop.cell: (stop.reason, stop.blocks) for stop in writer.stops(the_sweep.sweep)}
    assert found["t/w"] == found["u/w"] == ("precise", 3)
    assert found["t/v"] == found["u/v"] == ("not finished", 4)


@pytest.mark.slow
def test_on_resuming_with_fresh_never_a_file_system_with_nothing_left_is_not_made_again(results: Path) -> None:
    def u_fails(filesystem: str, workload: str, block: int) -> float | None:
        return None if filesystem == "u" else noisy(filesystem, workload, block)

    the_sweep = resolved(fresh_filesystem="never")
    plan, writer = interrupted(the_sweep, u_fails, results, 5)
    later = TimedBox(plan, u_fails)
    told = Told()
    run_sweep(plan, later, RunWriter(writer.path), told)
    assert later.calls == ["open", *MOUNT, *["trial"] * 2, *UMOUNT, "close"]
    assert [stop.cell for stop in told.stops] == ["u/w"], "said once in each session"


@pytest.mark.slow
def test_a_mount_that_fails_counts_as_failed_trials(results: Path) -> None:
    """Of twelve mounts the second, third and fourth fail."""
    box, path = run(resolved(), calm, results, mount=[0, 32, 32, 32])
    statuses = Counter(trial.status for trial in read_journal(path))
    assert statuses["failed"] == 3
    reasons = {cell: stop["reason"] for cell, stop in read_info(path).stopped.items()}
    assert reasons == {"t/w": "precise", "u/w": "precise"}
    assert max(block for block, _ in box.ran) == 5, "until the cell with two failures has three figures"


# --- what is kept and told --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_estimates_say_for_each_cell_why_it_stopped(results: Path) -> None:
    _, path = run(resolved(workloads=("w", "v")), w_is_calm, results)
    write_derived(load_run(path))
    estimates = pd.read_csv(path / "estimates.csv")
    assert dict(zip(estimates["workload"], estimates["stopped"], strict=True)) == {"w": "precise", "v": "max reached"}
    rates = [[BYTES / calm(name, "w", block) for block in (1, 2, 3)] for name in ("t", "u")]
    level = sequential.nominal_level(Until(half_width=0.05, min=3, max=6), 0.95)
    half = sequential.allowed_half_widths(rates, level)[0, -1]
    info = json.loads((path / "run.json").read_text())
    assert info["stopped"]["t/w"] == {
        "reason": "precise",
        "blocks": 3,
        "n": 3,
        "half_width": pytest.approx(math.expm1(half / mean(rates[0])), rel=1e-9),
        "metric": "write_bandwidth",
        "why": "",
    }


@pytest.mark.slow
def test_a_run_of_fixed_length_says_nothing_of_stopping(results: Path) -> None:
    fixed = resolve({**resolved().parameters, "design": {"repeats": 2, "warmup": 0}}, where="tests")
    _, path = run(fixed, noisy, results)
    assert read_info(path).stopped == {}
    assert "stopped" not in load_run(path).estimates
    assert repr(sections.stopping(load_run(path))) == "The number of blocks was fixed beforehand: 2."


@pytest.mark.slow
def test_the_report_tells_the_rule_and_each_cell(results: Path) -> None:
    _, path = run(resolved(workloads=("w", "v")), w_is_calm, results)
    the_run = load_run(path)
    text = repr(sections.stopping(the_run)).replace("\u00a0", " ")
    assert "Blocks went on until every mean is within ± 5 % at 95 %, 3 to 6 blocks." in text
    assert "precise after 3 blocks" in text
    assert "not precise after 6 blocks, the most that may be" in text
    assert "write_bandwidth" in text
    assert "n = 3 to 6 blocks" in repr(sections.question(the_run))


def test_the_plan_tells_the_rule_and_the_range_of_time() -> None:
    plan = planned(resolved(workloads=("w", "v")))
    text = plan_text(plan, FACTS).replace("\u00a0", " ")
    assert "trials       at most 24: 4 cells x 3 to 6 blocks, and 0 warm-up trials" in text
    assert "blocks       until every mean is within ± 5 % at 95 %, 3 to 6 blocks" in text
    assert "t, made at most 6 times:" in text
    least, most = plan.expected_until_s(3), plan.expected_s
    assert most == pytest.approx(2 * least)
    assert f"time         about {rough_duration(least)} to {rough_duration(most)}" in text
    view = plan_json(plan, FACTS)
    assert view["until"]["max"] == 6
    assert view["expected_least_s"] == pytest.approx(least, abs=0.1)
    assert view["trials"] == 24


def test_the_plan_ends_at_the_budget_and_says_where_the_least_blocks_are_longer() -> None:
    plan = planned(resolved(until={**RULE, "min": 5, "max": 40, "budget": "1s"}))
    text = plan_text(plan, FACTS)
    assert "5 blocks will take longer than the budget of 1.00 s: they are run all the same" in text
    assert "40 blocks, at most 1.00 s" in text
    least, most = (rough_duration(round(plan.expected_until_s(blocks))) for blocks in (5, 40))
    assert f"time         about {least} to {least}" in text
    ample = planned(resolved(until={**RULE, "min": 5, "max": 40, "budget": "9h"}))
    assert f"time         about {least} to {most}" in plan_text(ample, FACTS)


def test_the_plan_of_a_fixed_number_of_blocks_names_no_rule() -> None:
    fixed = resolve({**resolved().parameters, "design": {"repeats": 2, "warmup": 0}}, where="tests")
    plan = planned(fixed)
    assert "blocks       " not in plan_text(plan, FACTS)
    assert "until" not in plan_json(plan, FACTS)


@pytest.mark.slow
def test_a_run_on_which_nothing_could_be_measured_ends_after_its_least_blocks(results: Path) -> None:
    box, path = run(resolved(), lambda *_: None, results)
    assert blocks_of(box) == {"t/w": 1, "u/w": 1}
    trials: list[Trial] = read_journal(path)
    assert Counter(trial.status for trial in trials) == {"failed": 2, "skipped": 4}
    assert {stop["reason"] for stop in read_info(path).stopped.values()} == {"could not"}
