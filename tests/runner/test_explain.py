"""A finished run is explained: what is measured then, what a stop leaves, and what is refused."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from facts import known
from mountlab.__main__ import main
from mountlab.core import disk
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import BoxLost, MountlabError, ParameterError, PlanError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.publish.publish import Wishes, publish
from mountlab.results import journal as journals
from mountlab.results import paths
from mountlab.results.info import read_info, read_sweep
from mountlab.results.journal import read_journal
from mountlab.results.paths import load_sweep
from mountlab.results.store import load_run
from mountlab.runner import explain as explaining
from mountlab.runner import workflow
from mountlab.runner.explain import explain, explain_plan, requested_blocks
from mountlab.runner.extend import extend, extension_plan
from mountlab.sweep.extension import extended
from mountlab.tracing.events import EVENTS
from project.test_readme import commands
from rows import every_row
from runner.test_extend import BEGUN, DIR, KNOWN, Bench, TimedBox
from sweeps import sweep

ABLE: BoxFacts = known(KNOWN, trace_events=[event.name for event in EVENTS], trace_reason="")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(monkeypatch)
    made.facts = ABLE
    return made


@pytest.fixture
def run(bench: Bench, results_dir: Path) -> Path:
    return workflow.run(BEGUN, results=results_dir)


def diagnostic(path: Path) -> list[str]:
    return [trial.trial_id for trial in read_journal(path) if trial.diagnostic]


@pytest.mark.slow
def test_diagnostic_trials_follow_in_the_journal_and_no_figure_changes(run: Path) -> None:
    journal, before = (run / "trials.jsonl").read_bytes(), load_run(run)
    assert explain(run, blocks=3) == run
    assert (run / "trials.jsonl").read_bytes().startswith(journal)
    assert diagnostic(run) == [f"x{number:04d}" for number in range(1, 7)]
    after = load_run(run)
    pd.testing.assert_frame_equal(before.estimates, after.estimates, check_exact=True)
    assert repr(list(before.comparisons)) == repr(list(after.comparisons))
    assert journals.altered(run, journals.read_as_it_is(run)) == []


@pytest.mark.slow
def test_a_run_that_was_explained_afterwards_is_as_one_that_was_asked_to_from_the_beginning(run: Path) -> None:
    explain(run)
    info, asked = read_info(run), read_sweep(run)
    assert info.status == "complete"
    assert asked.sweep.design.explain == 5
    assert asked.parameters["design"]["explain"] == info.parameters["design"]["explain"] == 5
    assert load_sweep(run / "sweep.yml").sweep.design.explain == 5
    assert info.facts.surveyed.trace_events == ABLE.surveyed.trace_events


@pytest.mark.slow
def test_more_blocks_add_what_the_journal_lacks(run: Path) -> None:
    explain(run, blocks=2)
    first = (run / "trials.jsonl").read_bytes()
    explain(run, blocks=3)
    assert (run / "trials.jsonl").read_bytes().startswith(first)
    assert len(diagnostic(run)) == 6


@pytest.mark.slow
def test_what_was_stopped_goes_on(run: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "run_sweep", lost_after(3, workflow.run_sweep))
    with pytest.raises(BoxLost):
        explain(run, blocks=3)
    assert read_info(run).status != "complete"
    with pytest.raises(StoreError, match="explained when it is complete"):
        explain(run, blocks=4)
    done = diagnostic(run)
    assert 0 < len(done) < 6
    monkeypatch.undo()
    monkeypatch.setattr(workflow, "planned", bench.planned)
    workflow.resume(run)
    assert read_info(run).status == "complete"
    assert diagnostic(run) == [f"x{number:04d}" for number in range(1, 7)]


def lost_after(trials: int, run_sweep: Any) -> Any:
    """The box is lost after so many trials."""

    def lose(plan: Any, box: Any, journal: Any, *more: Any) -> None:
        record, left = journal.record, [trials]

        def count(*given: Any) -> None:
            if not left[0]:
                raise BoxLost("gone")
            left[0] -= 1
            record(*given)

        journal.record = count
        run_sweep(plan, box, journal, *more)

    return lose


@pytest.mark.slow
def test_the_plan_shows_the_diagnostic_blocks_alone_and_changes_nothing(run: Path) -> None:
    before = (run / "run.json").read_bytes()
    with explain_plan(run, blocks=2) as session:
        assert [trial.trial_id for trial in session.plan.trials] == ["x0001", "x0002", "x0003", "x0004"]
    assert (run / "run.json").read_bytes() == before


@pytest.mark.slow
def test_file_systems_that_last_keep_the_times_of_their_first_making(
    bench: Bench, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = workflow.run(sweep(design={"fresh_filesystem": "never"}), results=results_dir)
    mount = run / "raw" / "m000-tmpfs" / "mount.txt"
    mount_time = load_run(run).estimates.query("metric == 'mount_time'")
    monkeypatch.setattr(TimedBox, "output", lambda self, name: b"==> elapsed_ns <==\n77\n" if name == "mount" else b"")
    explain(run, blocks=2)
    assert (run / "raw" / "m000-tmpfs" / "kallsyms.gz").exists()
    assert b"1000000" in mount.read_bytes()
    assert load_run(run).estimates.query("metric == 'mount_time'").equals(mount_time)


# --- the profile of programs ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_profile_is_recorded_once_for_each_cell_and_no_figure_changes(run: Path) -> None:
    journal, before = (run / "trials.jsonl").read_bytes(), load_run(run)
    with explain_plan(run, profile=True) as session:
        assert [trial.trial_id for trial in session.plan.trials] == ["p0001", "p0002"]
    assert explain(run, profile=True) == run
    assert diagnostic(run) == ["p0001", "p0002"]
    assert (run / "trials.jsonl").read_bytes().startswith(journal)
    after = load_run(run)
    pd.testing.assert_frame_equal(before.estimates, after.estimates, check_exact=True)
    assert not after.why
    assert [program.reason for program in after.programs] == ["no system call was recorded"] * 2
    asked = read_sweep(run)
    assert (asked.sweep.design.profile, asked.sweep.design.explain) == (True, 0)
    assert load_sweep(run / "sweep.yml").sweep.design.profile
    with pytest.raises(StoreError, match="profile of each cell already"):
        explain(run, profile=True)


@pytest.mark.slow
def test_a_run_is_profiled_and_explained_in_any_order(run: Path) -> None:
    explain(run, profile=True)
    explain(run, blocks=2)
    assert diagnostic(run) == ["p0001", "p0002", "x0001", "x0002", "x0003", "x0004"]
    info = read_info(run)
    assert (info.status, info.parameters["design"]["profile"]) == ("complete", True)
    assert info.facts.surveyed.trace_events == ABLE.surveyed.trace_events
    assert read_sweep(run).sweep.design == replace(BEGUN.sweep.design, explain=2, profile=True)


def test_a_profile_has_no_number_of_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "none", "--profile", "-p", "explain=3"]) == 2
    said = capsys.readouterr().err
    assert "a profile is recorded once for each cell" in said
    assert "--profile alone" in said


# --- extensions -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_explained_run_is_extended_and_its_new_cells_are_explained(run: Path) -> None:
    explain(run, blocks=2)
    first = diagnostic(run)
    with extension_plan(run, overrides=DIR) as session:
        own = {trial.cell.filesystem.name for trial in session.plan.trials if trial.diagnostic}
    assert own == {"plain"}
    extend(run, **DIR)
    trials = [trial for trial in read_journal(run) if trial.diagnostic]
    assert [trial.trial_id for trial in trials[:4]] == first
    assert {trial.cell for trial in trials[4:]} == {"plain/w"}
    assert read_sweep(run).sweep.design.explain == 2
    with pytest.raises(StoreError, match="diagnostic blocks at once"):
        explain(run, blocks=3)


@pytest.mark.slow
def test_an_extended_run_is_explained_whole(run: Path) -> None:
    extend(run, repeats=3)
    explain(run, blocks=2)
    assert len(diagnostic(run)) == 4
    assert read_sweep(run).sweep.extended is not None
    assert load_run(run).sweep.design.explain == 2


def test_an_extension_may_not_say_how_often_is_explained() -> None:
    before, asked = sweep(design={"explain": 2}), sweep(design={"explain": 4, "repeats": 3})
    made = extended(before, asked, at="now", only_new=False, where="tests")
    assert made.sweep.design.explain == made.parameters["design"]["explain"] == 2


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overrides", [{"repeats": 3}, {"explain": "much"}, {"explain": 3, "seed": 1}])
def test_nothing_but_the_number_of_blocks_can_be_said(overrides: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="changes nothing"):
        requested_blocks(overrides)


def test_the_number_of_blocks_is_an_override() -> None:
    assert requested_blocks({}) is True
    assert requested_blocks({"explain": 8}) == requested_blocks({"design.explain": 8}) == 8


@pytest.mark.slow
def test_a_run_that_has_the_blocks_is_refused(run: Path) -> None:
    explain(run, blocks=3)
    with pytest.raises(StoreError, match="has these diagnostic blocks already"):
        explain(run, blocks=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"imported": {}}, "logs from elsewhere"),
        ({"by_hand": "a session"}, "a run by hand"),
        ({"status": "interrupted"}, "when it is complete"),
    ],
)
def test_a_run_that_is_not_complete_and_planned_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], words: str
) -> None:
    info = replace(read_info(run), **said)
    monkeypatch.setattr(explaining, "read_info", lambda _: info)
    with pytest.raises(StoreError, match=words) as caught:
        explain(run)
    assert caught.value.got


@pytest.mark.slow
def test_another_box_is_refused(run: Path, bench: Bench) -> None:
    bench.facts = known(ABLE, kernel="6.99")
    with pytest.raises(PlanError, match="not as it was when the run began"):
        explain(run)


@pytest.mark.slow
def test_a_box_that_cannot_be_traced_is_refused_and_the_run_stays_complete(run: Path, bench: Bench) -> None:
    bench.facts = known(ABLE, trace_reason="its kernel is locked down")
    with pytest.raises(PlanError, match="cannot be traced"):
        explain(run)
    assert read_info(run).status == "complete"


@every_row("entry", [{}, {"blocks": 2}, "two", {"blocks": 1}, {"blocks": 51}, {"events": [1]}, {"profile": "yes"}])
def test_an_explanation_that_is_not_ours_is_refused(entry: Any) -> None:
    from mountlab.sweep.untrusted import check_explained

    good = {"at": "a", "finished_at": "b", "blocks": 2, "events": ["c:d"], "programs": {}}
    for blocks in (2, 50):
        check_explained({**good, "blocks": blocks}, "here")
    check_explained({**good, "blocks": 0, "profile": True}, "here")
    if isinstance(entry, dict) and len(entry) == 1 and entry != {"blocks": 2}:
        entry = {**good, **entry}
    with pytest.raises(MountlabError, match="not a run of Mountlab's"):
        check_explained(entry, "here")


# --- the command, and what is handed on -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_shows_the_plan_and_explains(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(run), "-p", "explain=2", "--plan"]) == 0
    assert "diagnostic   4 trials in 2 blocks after all others" in capsys.readouterr().out
    assert diagnostic(run) == []


@pytest.mark.slow
@pytest.mark.parametrize("language", ["sh", pytest.param("python", marks=pytest.mark.long)])
def test_the_page_does_what_it_says(
    run: Path, language: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", results_dir)
    monkeypatch.setattr("mountlab.report.execute.write_report", lambda path: path / "report.html")
    page = (SHIPPED / "docs" / "why.md").read_text()
    if language == "sh":
        for line in commands(page):
            assert main(shlex.split(line)[1:]) == 0, line
    else:
        (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        exec(block, {})  # our own page
    assert len([name for name in diagnostic(run) if name.startswith("x")]) == 8 * 2


@pytest.mark.long
def test_a_bundle_without_identities_has_no_record_of_perf(
    run: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mountlab.report.execute.write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report")
    )
    explain(run, blocks=2)
    assert list(run.rglob("kallsyms.gz"))
    wishes = Wishes(licence="CC-BY-4.0", title="t", to=results_dir / "bundle")
    folder, _ = publish([run], wishes, results=results_dir)
    names = {file.name for file in folder.rglob("*")}
    assert "x0001" in names
    assert not names & {"trace.data.gz", "kallsyms.gz"}
    (copy,) = folder.rglob("sweep.yml")
    assert "explain: 2" in copy.read_text()
