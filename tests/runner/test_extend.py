"""A finished run goes on: what is measured in which order, what a crash leaves, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.__main__ import main
from mountlab.core import disk
from mountlab.core.errors import MountlabError, ParameterError, PlanError
from mountlab.core.places import SHIPPED
from mountlab.core.seeds import derived
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.reproduce import differing, sweep_of
from mountlab.report import execute
from mountlab.results import journal as journals
from mountlab.results import paths, writer
from mountlab.results.info import read_info, read_sweep
from mountlab.results.journal import read_journal
from mountlab.results.paths import load_sweep
from mountlab.results.store import load_run
from mountlab.runner import extend as extending
from mountlab.runner import finish, workflow
from mountlab.runner.extend import extend
from mountlab.runner.workflow import Session
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, resolve
from project.test_readme import commands
from runner.test_sweep_runner import FACTS, LOCAL, ScriptedBox
from sweeps import DD_WRITE, TMPFS, sweep

BEGUN = sweep(
    filesystems={"tmpfs": TMPFS, "ramfs": {"type": "ramfs", "size": "64MiB"}},
    workloads={"w": DD_WRITE},
    design={"repeats": 2, "warmup": 1},
    baseline="tmpfs",
)
KNOWN = known(
    FACTS, hostname="bench", kernel="6.1", programs={name: {"version": "1"} for name in FACTS.programs.installed}
)
DIR = {"filesystems.plain": {"type": "dir"}}


class TimedBox(ScriptedBox):
    """One that also says how long a mount took."""

    def output(self, name: str) -> bytes:
        return b"==> elapsed_ns <==\n1000000\n" if name.split()[0] in ("mount", "mkfs") else super().output(name)


class Bench:
    """A box that does everything, and how often something is done to it or to the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.facts = KNOWN
        self.box = TimedBox()
        monkeypatch.setattr(workflow, "planned", self.planned)

    @contextmanager
    def planned(
        self, resolved: Resolved, *, run_id: str | None = None, seed: int | None = None, **_: object
    ) -> Iterator[Session]:
        self.box = TimedBox()
        plan = make_plan(resolved.sweep, LOCAL, self.facts, run_id=run_id or "R", owner="me", seed=seed or 7)
        connection: Any = self.box
        yield Session(plan, resolved, connection, self.facts, {"local": connection})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is derived and listed at the end of a run is tested elsewhere, and takes time."""
    monkeypatch.setattr(finish.tables, "derive", lambda *_: None)
    monkeypatch.setattr(finish, "_update_index", lambda *_: None)


@pytest.fixture
def run(bench: Bench, without_figures: None, results_dir: Path) -> Path:
    return workflow.run(BEGUN, results=results_dir)


def ran(path: Path) -> list[tuple[int, str]]:
    return [(trial.block, trial.cell) for trial in read_journal(path)]


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_further_blocks_follow_in_the_journal_with_a_warm_up_of_their_own(run: Path) -> None:
    before = (run / "trials.jsonl").read_bytes()
    assert extend(run, repeats=4) == run
    after = (run / "trials.jsonl").read_bytes()
    assert after.startswith(before)
    blocks = [block for block, _ in ran(run)]
    assert blocks == [0, 0, 1, 1, 2, 2, -1, -1, 3, 3, 4, 4]
    assert [trial.warmup for trial in read_journal(run)] == [block < 1 for block in blocks]
    assert (read_info(run).status, read_sweep(run).sweep.design.repeats) == ("complete", 4)
    assert load_sweep(run / "sweep.yml").sweep.design.repeats == 4, "what would measure all of it in one go"


def test_what_an_extension_does_is_what_a_run_of_these_trials_does(run: Path, bench: Bench) -> None:
    calls = list(bench.box.calls)
    one_block = calls[1 : 1 + (len(calls) - 2) // 3]  # opened first, closed last; a warm-up and two blocks between
    assert bench.box is not (extend(run, repeats=4), bench.box)[1]
    assert bench.box.calls == [calls[0], *one_block * 3, calls[-1]]


def test_the_order_is_drawn_anew_and_what_was_drawn_stays(run: Path) -> None:
    extend(run, repeats=12)
    order = [[cell for block, cell in ran(run) if block == number] for number in range(1, 13)]
    assert len({tuple(each) for each in order}) == 2, "both orders of two cells"
    whole = make_plan(read_sweep(run).sweep, LOCAL, KNOWN, run_id="R", owner="me", seed=7)
    assert [(each.block, each.cell.id) for each in whole.trials] == ran(run)


def test_tools_get_the_seed_of_their_block() -> None:
    resolved = sweep(workloads={"r": {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "8MiB"}})
    asked = sweep(
        workloads={"r": {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "8MiB"}}, design={"repeats": 3}
    )
    whole = extending.extended(resolved, asked, at="2026-11-23", only_new=False, where="r")
    plan = make_plan(whole.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=7)
    assert {trial.block: trial.command.seed for trial in plan.trials} == {
        block: derived(7, "block", block) for block in (1, 2, 3)
    }


def test_a_run_is_extended_again_and_again(run: Path) -> None:
    extend(run, repeats=3)
    extend(run, repeats=4)
    assert sorted({block for block, _ in ran(run)}) == [-2, -1, 0, 1, 2, 3, 4]
    repeated_looks = read_sweep(run).sweep.repeated_looks
    assert repeated_looks is not None
    assert vars(repeated_looks) == {"count": 2}


# --- cells ------------------------------------------------------------------------------------------------------------


def test_added_blocks_hold_old_cells_and_new_ones(run: Path) -> None:
    extend(run, **DIR)
    assert {cell for block, cell in ran(run) if block in (-1, 3, 4)} == {"tmpfs/w", "ramfs/w", "plain/w"}
    assert max(block for block, _ in ran(run)) == 4, "as many blocks as the run was begun with"
    assert read_sweep(run).sweep.blocks_of("plain/w") == {3, 4}


def test_with_only_new_they_hold_new_cells_alone_and_nothing_old_is_looked_at_again(run: Path) -> None:
    extend(run, only_new=True, repeats=3, **{"workloads.again": {**DD_WRITE, "count": 16}})
    assert {cell for block, cell in ran(run) if block in (-1, 3)} == {"tmpfs/again", "ramfs/again"}
    whole = read_sweep(run).sweep
    assert whole.repeated_looks is None
    assert whole.have_blocks("tmpfs/again", "ramfs/again")
    assert not whole.have_blocks("tmpfs/again", "tmpfs/w")


def test_a_sweep_file_may_say_what_is_added(run: Path, tmp_path: Path) -> None:
    raw = {**BEGUN.parameters, "filesystems": {**BEGUN.parameters["filesystems"], "plain": {"type": "dir"}}}
    (tmp_path / "more.yml").write_text(json.dumps({**raw, "name": "more"}))
    extend(run, tmp_path / "more.yml")
    assert {cell for _, cell in ran(run)} == {"tmpfs/w", "ramfs/w", "plain/w"}
    assert read_sweep(run).sweep.name == "tiny", "the run keeps its name"


def test_a_file_system_that_lasts_for_the_run_keeps_its_first_evidence(
    bench: Bench, without_figures: None, results_dir: Path
) -> None:
    resolved = sweep(design={"fresh_filesystem": "never", "repeats": 1})
    run = workflow.run(resolved, results=results_dir)
    first = (run / "raw" / "m000-tmpfs").stat().st_mtime_ns
    extend(run, repeats=2)
    assert (run / "raw" / "m000-tmpfs").stat().st_mtime_ns == first
    assert [trial.mount for trial in read_journal(run)] == ["m000-tmpfs", "m000.1-tmpfs"]


# --- a crash ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing is done after it."""


class Mortal:
    """Lets so many effects on the disk and on the box happen, and none after them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: float = float("inf")
        self.done = 0
        for place, name in (
            (disk, "replace_file"), (disk, "keep_directory"), (journals, "append_line"), (ScriptedBox, "run"),
        ):  # fmt: skip
            monkeypatch.setattr(place, name, self.mortal(getattr(place, name)))
        monkeypatch.setattr(writer.disk, "replace_file", disk.replace_file)

    def mortal(self, effect: Any) -> Any:
        def counted(*args: Any, **more: Any) -> Any:
            if self.done >= self.left:
                raise Killed
            self.done += 1
            return effect(*args, **more)

        return counted


@pytest.mark.slow
def test_after_a_crash_at_any_instant_every_trial_is_in_the_journal_once(
    bench: Bench, without_figures: None, results_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is complete, or `resume` completes it; what was there stays byte for byte."""
    kept = workflow.run(sweep(design={"repeats": 1}), results=results_dir)
    before = (kept / "trials.jsonl").read_bytes()
    shutil.copytree(kept, tmp_path / "kept")
    mortal = Mortal(monkeypatch)
    extend(kept, repeats=2, **DIR)
    whole, instants = ran(kept), mortal.done
    assert instants > 15
    for instant in range(instants):
        shutil.rmtree(kept)
        shutil.copytree(tmp_path / "kept", kept)
        mortal.done, mortal.left = 0, instant
        with pytest.raises(Killed):
            extend(kept, repeats=2, **DIR)
        mortal.left = float("inf")
        if read_info(kept).status == "complete" and instant < 2:
            extend(kept, repeats=2, **DIR)
        elif read_info(kept).status != "complete":
            workflow.resume(kept)
        assert ran(kept) == whole, instant
        assert (kept / "trials.jsonl").read_bytes().startswith(before)
        assert read_info(kept).status == "complete"
        assert load_sweep(kept / "sweep.yml").sweep.design.repeats == 2


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "what", "where", "got", "allowed"),
    [
        (
            {"filesystems.tmpfs.size": "32MiB"},
            "an extension only adds: what was measured cannot be changed",
            "filesystems.tmpfs.size",
            "filesystems.tmpfs.size: 32MiB",
            "filesystems.tmpfs.size: 64MiB",
        ),
        (
            {"workloads.w.count": [8, 16]},
            "an extension only adds: what was measured cannot be changed",
            "workloads.w.count",
            "workloads.w.count: [8, 16]",
            "workloads.w.count: 8",
        ),
        (
            {"baseline": "ramfs", "level": 0.9},
            "an extension only adds: what was measured cannot be changed",
            "baseline, design.level",
            "baseline: ramfs; design.level: 0.9",
            "baseline: tmpfs; design.level: nothing",
        ),
        (
            {"filesystems.ramfs": None},
            "an extension only adds: what was measured cannot be changed",
            "filesystems.ramfs.type, filesystems.ramfs.size",
            "filesystems.ramfs.type: nothing; filesystems.ramfs.size: nothing",
            "filesystems.ramfs.type: ramfs; filesystems.ramfs.size: 64MiB",
        ),
        (
            {"repeats": 2},
            "nothing is added to the run",
            "",
            "repeats: 2, and the same cells",
            "repeats above 2, or new file systems or workloads",
        ),
        (
            {"expectation": "tmpfs is faster"},
            "an extension only adds: what was measured cannot be changed",
            "expectation",
            "expectation: tmpfs is faster",
            "expectation: nothing",
        ),
    ],
)
def test_what_was_measured_cannot_be_changed(
    run: Path, changes: dict[str, Any], what: str, where: str, got: str, allowed: str
) -> None:
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    with pytest.raises(ParameterError) as caught:
        extend(run, **changes)
    assert (caught.value.what, caught.value.got, caught.value.allowed) == (what, got, allowed)
    assert caught.value.where == (f"{disk.path_text(run)}: {where}" if where else disk.path_text(run))
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file() and file.name != ".lock"} == before


def refusal(run: Path, **changes: Any) -> MountlabError:
    with pytest.raises(MountlabError) as caught:
        extend(run, **changes)
    return caught.value


def test_only_new_cells_must_be_there(run: Path) -> None:
    assert refusal(run, repeats=4, only_new=True).what == "only new cells are asked for, and there are none"


def test_a_run_that_is_not_complete_is_resumed_first(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    error = refusal(run, repeats=4)
    assert (error.what, error.got) == ("a run is extended when it is complete", "it is interrupted")
    assert error.next_step == f"mountlab resume {disk.path_text(run)}"


def test_another_box_kernel_or_tool_is_refused_and_nothing_is_written(run: Path, bench: Bench) -> None:
    before = (run / "run.json").read_bytes()
    bench.facts = known(KNOWN, kernel="7.0")
    error = refusal(run, repeats=4)
    assert isinstance(error, PlanError)
    assert (error.what, error.got) == ("the box is not as it was when the run began", "kernel: 7.0")
    assert (run / "run.json").read_bytes() == before


def test_a_scratch_device_is_the_same_after_a_restart_of_the_box_and_another_one_is_refused(
    run: Path, bench: Bench
) -> None:
    facts = known(read_info(run).facts, device_ids={"data": "boot=1,8:16,sectors=9,serial=S,bound=0123abcd"})
    for now, refused in (
        ("boot=2,8:32,sectors=9,serial=S,bound=0123abcd", False),
        ("boot=1,8:16,bound=99999999", True),
    ):
        with pytest.raises(PlanError) if refused else nullcontext():
            workflow.check_same_box(facts, known(KNOWN, device_ids={"data": now}), "r")


@pytest.mark.slow
def test_a_run_with_a_stopping_rule_ends_by_its_rule(bench: Bench, without_figures: None, results_dir: Path) -> None:
    design = {"until": {"half_width": "50%", "min": 3, "max": 4}}
    run = workflow.run(resolve({**BEGUN.parameters, "design": design}, where="tests"), results=results_dir)
    assert refusal(run, **DIR).what.startswith("a run with a stopping rule is not extended")


def test_a_run_whose_trials_were_drawn_in_another_order_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version may have drawn them otherwise: its numbers of trials are not those of today."""
    kept = read_journal(run)
    other = [replace(each, cell="ramfs/w" if each.cell == "tmpfs/w" else "tmpfs/w") for each in kept]
    monkeypatch.setattr(extending.journal, "read_journal", lambda _: other)
    error = refusal(run, repeats=4)
    assert error.what == "the trials of the run were drawn in another order, by another version of Mountlab"
    assert (error.got, error.allowed) == (f"{other[0].cell} in block 0", f"{kept[0].cell} in block 0")


@pytest.mark.slow
def test_a_run_of_an_earlier_version_goes_on_where_its_box_is_the_same(
    bench: Bench, without_figures: None, tmp_path: Path
) -> None:
    """The recorded run of the tour was made on another machine: it is refused with what differs."""
    tour = tmp_path / "results" / "tour"
    shutil.copytree(SHIPPED / "results" / "tour", tour)
    error = refusal(tour, repeats=11)
    assert error.what == "the box is not as it was when the run began"
    bench.facts = known(KNOWN, **read_info(tour).facts.as_record())
    before = (tour / "trials.jsonl").read_bytes()
    extend(tour, repeats=11)
    assert (tour / "trials.jsonl").read_bytes().startswith(before)


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
def test_the_commands_and_the_code_of_the_page_do_what_it_says(
    bench: Bench, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", results_dir)
    monkeypatch.setattr("mountlab.report.execute.write_report", lambda path: path / "report.html")
    monkeypatch.chdir(results_dir)
    page = (SHIPPED / "docs" / "how-to" / "go-on.md").read_text()
    asked = sweep(workloads={"w": DD_WRITE}, design={"repeats": 6, "warmup": 1})
    run = workflow.run(asked, results=results_dir)
    for line in commands(page):
        if "--sweep" in line:
            raw = read_info(run).parameters
            more = {**raw, "filesystems": {**raw["filesystems"], "plain": {"type": "dir"}}}
            (results_dir / "more.yml").write_text(json.dumps(more))
        before = len(read_journal(run))
        assert main(shlex.split(line)[1:]) == 0, line
        assert (len(read_journal(run)) > before) == (" extend " in line and "--plan" not in line), line
    sweep_ = read_sweep(run).sweep
    assert [len(stage.counted) for stage in sweep_.stages] == [6, 14, 6, 6, 6]
    assert sweep_.stages[3].cells == ("tmpfs/short", "large/short")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    code = code.replace("repeats=20", "repeats=40").replace("filesystems.large", "filesystems.larger")
    exec(code, {})  # our own page
    assert [len(stage.counted) for stage in read_sweep(run).sweep.stages] == [6, 14, 6, 6, 6, 2, 6]
    assert not (run / "exclude.yml").exists()


# --- what others make of it -------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
def test_an_extended_run_is_published_reproduced_and_found_in_the_catalog(
    bench: Bench, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "write_report", page_of_nothing)
    run = workflow.run(BEGUN, results=results_dir)
    extend(run, repeats=4, **DIR)
    folder, _ = publish([run], Wishes(licence="CC-BY-4.0", title="t", to=results_dir / "bundle"), results=results_dir)
    (copy,) = (folder / "runs").iterdir()
    again = read_sweep(copy).sweep
    assert [len(stage.counted) for stage in again.stages] == [2, 2]
    assert again.repeated_looks is not None
    assert load_sweep(copy / "sweep.yml").sweep.design.repeats == 4
    assert differing(copy, load_run(copy)) == []
    assert sweep_of(copy).sweep.extended is None, "an extended run is repeated in one go"
    assert main(["catalog", str(results_dir)]) == 0


def page_of_nothing(path: Path) -> Path:
    (path / "report.html").write_text("<html></html>")
    return path / "report.html"


# --- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_extends_and_reports(
    bench: Bench, results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = workflow.run(BEGUN, results=results_dir)
    monkeypatch.setattr("mountlab.report.execute.write_report", lambda path: path / "report.html")
    assert main(["extend", str(run), "-p", "repeats=4", "--plan"]) == 0
    assert "Does it work?" in capsys.readouterr().out
    assert len(ran(run)) == 6, "a plan changes nothing"
    assert main(["extend", str(run), "-p", "repeats=4"]) == 0
    said = capsys.readouterr().out
    assert "orrected for 2 looks" in said
    assert len(load_run(run).trials) == 12
