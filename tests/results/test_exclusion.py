"""Trials that a person excludes by command: what is written, what the figures are without them and with them."""

from __future__ import annotations

import getpass
import json
import math
import shutil
from pathlib import Path

import pytest
import yaml
from mountlab.__main__ import main
from mountlab.core.errors import InputError, MountlabError, ParameterError, RunInUse, StoreError
from mountlab.report import sections
from mountlab.results.exclusion import exclude
from mountlab.results.journal import read_journal
from mountlab.results.store import load_run
from mountlab.results.writer import held_run
from mountlab.stats import estimate
from results.test_store import seconds, the_plan, written

TRIAL = "t0007"
PLANNED = {trial.trial_id: trial for trial in the_plan().trials}
CELL = PLANNED[TRIAL].cell.id
BYTES = 512 * 2**20


def bandwidths(*, without: tuple[str, ...] = ()) -> list[float]:
    """Of the counted trials of the cell, from the summaries that the run was written with."""
    own = [each for each in PLANNED.values() if each.cell.id == CELL and not each.warmup]
    return [BYTES / seconds(each) for each in own if each.trial_id not in without]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def run(kept: Path, results_dir: Path) -> Path:
    return Path(shutil.copytree(kept, results_dir / "r1"))


@pytest.mark.slow
def test_an_excluded_trial_says_why_who_and_when_and_stays_in_the_journal_and_in_raw(run: Path) -> None:
    journal, raw = (run / "trials.jsonl").read_bytes(), sorted((run / "raw" / TRIAL).iterdir())
    after = exclude(run, TRIAL, reason="the nightly backup ran")
    (entry,) = yaml.safe_load((run / "exclude.yml").read_text())["exclude"].values()
    assert (entry["reason"], entry["by"]) == ("the nightly backup ran", getpass.getuser())
    row = after.trials.set_index("trial_id").loc[TRIAL]
    assert row["status"] == "excluded"
    assert row["reason"] == f"the nightly backup ran; excluded by {getpass.getuser()} on {entry['at'][:10]}"
    assert TRIAL not in set(after.measurements["trial_id"])
    assert ((run / "trials.jsonl").read_bytes(), sorted((run / "raw" / TRIAL).iterdir())) == (journal, raw)


@pytest.mark.slow
def test_every_figure_is_told_without_the_trial_and_with_it(run: Path) -> None:
    before = load_run(run)
    after = exclude(run, TRIAL, reason="x")
    (both,) = after.exclusions.figures
    assert (both.cell, both.metric) == (CELL, "read_bandwidth")
    for told, values in ((both.without, bandwidths(without=(TRIAL,))), (both.counted, bandwidths())):
        own = estimate(values, level=0.95)
        assert (told.n, told.mean) == (len(values), pytest.approx(own.mean))
    (whole,) = before.estimates[(before.estimates["cell"] == CELL) & (before.estimates["metric"] == both.metric)]["low"]
    assert both.counted.low == pytest.approx(whole)
    assert {each.counted.ratio for each in after.exclusions.ratios} <= {each.ratio for each in before.comparisons}
    (caveat,) = [each for each in after.caveats if each.code == "excluded"]
    assert "With them the read bandwidth is" in caveat.message
    assert "(n = 3), without them" in caveat.message
    page = repr(sections.trials(after))
    assert "Means without the excluded trials, and with them" in page
    assert "Ratios without the excluded trials, and with them" in page


@pytest.mark.slow
def test_a_trial_that_is_taken_back_counts_as_before(run: Path) -> None:
    before = load_run(run)
    exclude(run, TRIAL, "t0012", reason="x")
    exclude(run, "t0012", undo=True)
    assert list(yaml.safe_load((run / "exclude.yml").read_text())["exclude"]) == [TRIAL]
    after = exclude(run, TRIAL, undo=True)
    assert not (run / "exclude.yml").exists()
    assert after.estimates.equals(before.estimates)
    assert (after.exclusions.figures, after.exclusions.unread) == ((), ())


@pytest.mark.slow
def test_a_cell_whose_trials_are_all_excluded_has_a_figure_only_with_them(run: Path) -> None:
    own = [trial.trial_id for trial in read_journal(run) if trial.cell == CELL and not trial.warmup]
    (both,) = exclude(run, *own, reason="x").exclusions.figures
    assert (both.without.n, both.counted.n) == (0, len(own))
    assert math.isnan(both.without.mean)


@pytest.mark.slow
def test_what_an_altered_trial_changes_is_not_known(run: Path) -> None:
    (run / "raw" / TRIAL / "stderr").write_text("altered")
    after = exclude(run, TRIAL, reason="its output was altered")
    assert after.exclusions.unread == (TRIAL,)
    (caveat,) = [each for each in after.caveats if each.code == "excluded"]
    assert f"What they change is not known: the raw output of {TRIAL} was altered." in caveat.message


@pytest.mark.parametrize(
    ("trials", "words", "error", "what"),
    [
        ((), {"reason": "x"}, InputError, "no trial is named"),
        ((TRIAL,), {}, InputError, "a trial is excluded for a reason"),
        ((TRIAL,), {"reason": "x", "undo": True}, InputError, "both a reason and undo are given"),
        (("t0099",), {"reason": "x"}, ParameterError, "unknown trial of this run"),
        ((TRIAL,), {"undo": True}, StoreError, "the trial is not excluded"),
    ],
)
def test_what_cannot_be_excluded_changes_nothing(
    run: Path, trials: tuple[str, ...], words: dict[str, str], error: type[MountlabError], what: str
) -> None:
    with pytest.raises(error) as caught:
        exclude(run, *trials, **words)  # type: ignore[arg-type]
    assert caught.value.what == what
    assert not (run / "exclude.yml").exists()


def test_a_run_that_is_measured_is_left_alone(run: Path) -> None:
    with held_run(run), pytest.raises(RunInUse):
        exclude(run, TRIAL, reason="x")


@pytest.mark.slow
def test_the_command_tells_the_figures_without_and_with(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exclude", str(run), TRIAL, "--reason", "the nightly backup ran"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"excluded: {TRIAL}\n{CELL}: read bandwidth is ")
    assert "ext4" in (run / "estimates.csv").read_text()
    assert json.loads((run / "derived.json").read_text())["made_from"]["exclude.yml"]
    assert main(["exclude", str(run), TRIAL, "--undo"]) == 0
    assert capsys.readouterr().out.startswith(f"counted again: {TRIAL}\n")
    assert main(["exclude", str(run), TRIAL]) == 2
    assert "a trial is excluded for a reason" in capsys.readouterr().err
