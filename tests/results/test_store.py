"""Run directories: the journal, whole files, and what is derived from the raw output."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from facts import known
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import MEASUREMENT_COLUMNS, measurement_frame
from mountlab.core.box_facts import BoxFacts
from mountlab.core.disk import replace_file
from mountlab.core.errors import KeepError, MountlabWarning, ParameterError, PlanError, StoreError
from mountlab.core.findings import COMPARISON_COLUMNS
from mountlab.core.model import COLUMNS, Trial
from mountlab.core.places import SHIPPED
from mountlab.fio.report import decode, histograms_of
from mountlab.publish.seal_again import seal_again
from mountlab.results import paths, run_file
from mountlab.results import writer as run_writer
from mountlab.results.info import read_info, read_sweep
from mountlab.results.journal import read_journal
from mountlab.results.paths import load_box, load_published, load_sweep
from mountlab.results.run_file import SCHEMA
from mountlab.results.store import load_run
from mountlab.results.tables import write_derived
from mountlab.results.writer import RunWriter, git_commit, held_run, new_run_id
from mountlab.runner import workflow
from mountlab.runner.trial_executor import as_trial
from mountlab.stats import compare, estimate
from mountlab.stats.histograms import merge
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved
from sweep.test_plan import BOX, FACTS
from sweeps import sweep

NOW = datetime(2026, 11, 20, tzinfo=UTC)

DATA = Path(__file__).parents[1] / "data"
RESOLVED: Resolved = sweep(
    filesystems={
        "ext4": {"type": "ext4", "image": "1GiB"},
        "tmpfs": {"type": "tmpfs", "size": "1GiB", "options": ["noatime"]},
    },
    workloads={"r": {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 512, "cache": ["cold", "warm"]}},
    design={"repeats": 3, "warmup": 1},
    baseline="ext4",
    published=["b-tmpfs-cloud"],
)
SECONDS = {
    "ext4/r cache=cold": 0.16,
    "ext4/r cache=warm": 0.019,
    "tmpfs/r cache=cold": 0.018,
    "tmpfs/r cache=warm": 0.018,
}

DISK = "boot=0a1b2c3d,8:16,sectors=9,serial=S,bound=0123abcd"
OTHER_DISK = "boot=0a1b2c3d,8:16,sectors=9,serial=T,bound=4567abcd"
BEFORE = known(FACTS, device_ids={"data": DISK}, hostname="b", kernel="6.1", programs={"fio": {"version": "fio-3"}})
"""Facts of the box of a run that may be resumed: those of its programs too."""


def the_plan() -> Plan:
    return make_plan(RESOLVED.sweep, BOX, FACTS, run_id="r1", owner="me", seed=7)


def create(results: Path, facts: BoxFacts = FACTS) -> RunWriter:
    return RunWriter.create(the_plan(), RESOLVED, facts, results=results)


def seconds(planned: PlannedTrial) -> float:
    return round(SECONDS[planned.cell.id] * (1 + 0.01 * planned.block), 6)


def brought_back(planned: PlannedTrial) -> dict[str, bytes]:
    """The files of a trial, with counters recorded on a real machine."""
    recorded = DATA / "trials" / f"ext4-{planned.cell.workload.options['cache']}-read"
    summary = (
        f"512+0 records in\n512+0 records out\n536870912 bytes (537 MB, 512 MiB) copied, {seconds(planned)} s, 3 GB/s\n"
    )
    counters = {name: (recorded / name).read_bytes() for name in ("before.txt", "after.txt")}
    return {"exit_status": b"0\n", "stdout": b"", "stderr": summary.encode(), **counters}


def ok(planned: PlannedTrial) -> Trial:
    return as_trial(planned, "ok", "", NOW, 1.5)


def written(results: Path, *, failed: str = "") -> Path:
    """A finished run of recorded output; `failed` names a trial that gave no figure."""
    writer = create(results)
    for mount in the_plan().mounts:
        writer.keep_mount(mount.id, {"evidence.txt": (DATA / "evidence" / f"{mount.filesystem.name}.txt").read_bytes()})
    for planned in the_plan().trials:
        trial = as_trial(planned, "failed", "dd failed", NOW, 0.1) if planned.trial_id == failed else ok(planned)
        writer.record(trial, brought_back(planned))
    writer.finish("complete")
    return writer.path


# --- the journal ------------------------------------------------------------------------------------------------------


def test_a_recorded_trial_is_in_the_journal_with_its_raw_files(results_dir: Path) -> None:
    writer = create(results_dir)
    first, second, *_ = the_plan().trials
    assert not writer.has(first.trial_id)
    writer.record(ok(first), brought_back(first))
    assert writer.has(first.trial_id)
    assert not writer.has(second.trial_id)
    assert read_journal(writer.path) == [ok_like(writer, first)]
    raw = writer.path / "raw" / first.trial_id
    assert {file.name: file.read_bytes() for file in raw.iterdir()} == brought_back(first)


def ok_like(writer: RunWriter, planned: PlannedTrial) -> Trial:
    """The trial with the time that the journal holds."""
    started = json.loads((writer.path / "trials.jsonl").read_text().splitlines()[0])["started_at"]
    return Trial(**{**vars(ok(planned)), "started_at": started})


def test_the_journal_grows_by_one_whole_line_a_trial(results_dir: Path) -> None:
    writer = create(results_dir)
    before = b""
    for planned in the_plan().trials[:3]:
        writer.record(ok(planned), {})
        now = (writer.path / "trials.jsonl").read_bytes()
        assert now.startswith(before), "append-only"
        assert now.count(b"\n") == before.count(b"\n") + 1
        before = now


def test_every_line_of_the_journal_is_on_the_disk_before_the_next_trial(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name), real(fd))
    )
    writer = create(results_dir)
    synced.clear()
    writer.record(ok(the_plan().trials[0]), {"stdout": b"x", "stderr": b"y"})
    assert sorted(synced[:2]) == ["stderr", "stdout"], "raw files are flushed at the same time, in any order"
    assert synced[2:] == [".t0001.new", "raw", "trials.jsonl", "r1"], "their names, then the line that vouches for them"


def test_a_trial_whose_raw_files_could_not_be_kept_is_not_in_the_journal(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: a resume that trusts that a file exists."""
    writer = create(results_dir)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeepError) as caught:
        writer.record(ok(the_plan().trials[0]), {"stdout": b"x"})
    assert caught.value.what == "what is measured cannot be written any more: the run stops, 0 trials are kept"
    assert caught.value.got == "No space left on device"
    assert caught.value.next_step == f"make room on the disk; then: mountlab resume {writer.path}"
    assert not writer.has("t0001")
    assert not (writer.path / "raw" / "t0001").exists()
    assert read_journal(writer.path) == []


@pytest.mark.parametrize("torn", [b'{"trial_id": "t0002", "bl', b"{", b'{"trial_id": "t0002"}'])
def test_a_torn_last_line_counts_as_not_run_and_is_cut_off(results_dir: Path, torn: bytes) -> None:
    """The control machine lost power. Trap: a resume that skips what did not run and repeats what did."""
    writer = create(results_dir)
    first, second, *_ = the_plan().trials
    writer.record(ok(first), {})
    journal = writer.path / "trials.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + torn)
    assert [trial.trial_id for trial in read_journal(writer.path)] == ["t0001"]
    with pytest.warns(MountlabWarning, match=rf"trials.jsonl was torn \({len(torn)} B: it begins with .*counts as not"):
        again = RunWriter(writer.path)
    assert journal.read_bytes() == whole
    assert (again.has("t0001"), again.has("t0002")) == (True, False)
    again.record(ok(second), {})
    assert [trial.trial_id for trial in read_journal(writer.path)] == ["t0001", "t0002"]


def test_a_journal_of_nothing_but_a_torn_line_is_empty(results_dir: Path) -> None:
    writer = create(results_dir)
    assert read_journal(writer.path) == []
    (writer.path / "trials.jsonl").write_bytes(b'{"tri')
    assert read_journal(writer.path) == []
    with pytest.warns(MountlabWarning, match="was torn"):
        RunWriter(writer.path)
    assert (writer.path / "trials.jsonl").read_bytes() == b""


def test_reading_a_journal_changes_nothing(results_dir: Path) -> None:
    writer = create(results_dir)
    (writer.path / "trials.jsonl").write_bytes(b'{"tri')
    read_journal(writer.path)
    assert (writer.path / "trials.jsonl").read_bytes() == b'{"tri'


def test_a_reason_in_any_language_and_over_several_lines_is_one_line(results_dir: Path) -> None:
    writer = create(results_dir)
    reason = 'fio failed\n  it said:\n    | Kein Platz übrig \u2028 "x"'
    writer.record(as_trial(the_plan().trials[0], "failed", reason, NOW, 0.1), {})
    assert [trial.reason for trial in read_journal(writer.path)] == [reason]


# --- whole files ------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(KeepError, match="cannot be written") as caught:
        replace_file(path, b"newer")
    assert (caught.value.where, caught.value.got) == (str(path), "Input/output error")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_run_says_what_will_run_and_how_to_run_it_again(results_dir: Path) -> None:
    writer = create(results_dir)
    with held_run(writer.path):
        info = read_info(writer.path)
    assert (info.schema, info.status, info.finished_at, info.seed) == (SCHEMA, "running", "", 7)
    assert (info.run_id, info.box_name) == (the_plan().run_id, "local")
    assert all((info.created_at, info.facts, info.versions, info.mountlab_version, info.has_checksums))
    assert info.order == [trial.trial_id for trial in the_plan().trials]
    assert info.parameters == info.first_parameters == RESOLVED.parameters
    assert "sweep.yml --box local" in info.command
    assert "seed=7" in info.command
    assert load_sweep(writer.path / "sweep.yml").sweep == RESOLVED.sweep
    assert read_sweep(writer.path).sweep == RESOLVED.sweep


def test_the_commit_is_that_of_the_program_and_asks_no_filter_of_notebooks(tmp_path: Path) -> None:
    """A filter is a process for each notebook: in a fresh clone they took longer than the question may."""
    assert git_commit(tmp_path) is None, "no repository"

    def git(*words: str) -> str:
        own = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    assert git_commit(tmp_path) is None, "no commit yet"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("1\n")
    (tmp_path / "b.ipynb").write_text("{}\n")
    (tmp_path / ".gitattributes").write_text("*.ipynb filter=told\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    git("config", "filter.told.clean", "touch told; cat")
    (tmp_path / "b.ipynb").write_text('{"outputs": 1}\n')
    commit = git("rev-parse", "HEAD").strip()
    assert (git_commit(tmp_path), (tmp_path / "told").exists()) == (commit, False)
    (tmp_path / "lib" / "new.py").write_text("2\n")
    assert git_commit(tmp_path) == f"{commit}+changes"
    (tmp_path / "lib" / "new.py").unlink()
    (tmp_path / "lib" / "a.py").write_text("3\n")
    assert git_commit(tmp_path) == f"{commit}+changes"


def test_finishing_changes_the_status_and_nothing_else(results_dir: Path) -> None:
    writer = create(results_dir)
    before = run_file.read_record(writer.path) | {"of_a_later_version": [1, "two"]}
    run_file.write_record(writer.path, before)
    writer.finish("interrupted")
    after = run_file.read_record(writer.path)
    assert datetime.fromisoformat(after["finished_at"]).tzinfo == UTC
    ending = {"status": "interrupted", "finished_at": after["finished_at"], "journal": after["journal"]}
    assert (after, list(after)[: len(before)]) == (before | ending, list(before))
    assert after["journal"]["trials"] == read_info(writer.path).trials_at_end == 0


def test_the_name_of_a_run_is_time_sweep_and_box_and_is_never_used_again(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: rerunning a name deletes the old results. Nor has any that begins in the same second elsewhere: a run ends
    its processes on the box by its name, and so would end those of the other."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2026, 11, 20, 9, 30, 5, tzinfo=tz)

    monkeypatch.setattr(run_writer, "datetime", Frozen)
    digits = iter(["00a1", "00a1", "00b2", "00c3"])
    monkeypatch.setattr(run_writer.secrets, "token_hex", lambda _: next(digits))
    here = []
    for _ in range(2):
        here.append(new_run_id(RESOLVED.sweep, BOX, results_dir))
        (results_dir / here[-1]).mkdir()
    elsewhere = new_run_id(RESOLVED.sweep, BOX, results_dir / "elsewhere")
    assert here == ["20261120T093005-tiny-local-00a1", "20261120T093005-tiny-local-00b2"]
    assert elsewhere == "20261120T093005-tiny-local-00c3"


def test_a_name_has_digits_that_no_other_run_of_that_second_has(results_dir: Path) -> None:
    names = {new_run_id(RESOLVED.sweep, BOX, results_dir) for _ in range(20)}
    assert all(re.fullmatch(r"\d{8}T\d{6}-tiny-local-[0-9a-f]{4}", name) for name in names)
    assert len({name[-4:] for name in names}) > 15


def test_a_directory_that_is_there_is_never_written_over(results_dir: Path) -> None:
    create(results_dir)
    before = (results_dir / "r1" / "run.json").read_bytes()
    with pytest.raises(StoreError, match="is there already"):
        create(results_dir)
    assert (results_dir / "r1" / "run.json").read_bytes() == before
    assert [path.name for path in results_dir.iterdir()] == ["r1"]


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_an_absent_run_is_an_error_with_the_next_step(results_dir: Path) -> None:
    with pytest.raises(StoreError) as caught:
        load_run(results_dir / "nowhere")
    assert caught.value.what == "no such run"
    assert caught.value.where.endswith("nowhere/run.json")
    assert caught.value.got == "No such file or directory"
    assert caught.value.next_step == "name a directory below results/"


@pytest.mark.slow
def test_a_run_of_a_later_mountlab_is_not_guessed_at(results_dir: Path) -> None:
    path = written(results_dir)
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "schema": SCHEMA + 1}))
    with pytest.raises(StoreError) as caught:
        load_run(path)
    assert caught.value.what == "written by a later Mountlab"
    assert (caught.value.got, caught.value.allowed) == (f"schema {SCHEMA + 1}", f"up to {SCHEMA}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "what"),
    [("{}", "not a run of Mountlab's"), ("[]", "not a run of Mountlab's"), ('{"a', "run.json is not whole")],
)
def test_a_run_file_that_is_not_ours_is_an_error(text: str, what: str, results_dir: Path) -> None:
    path = written(results_dir)
    (path / "run.json").write_text(text)
    with pytest.raises(StoreError) as caught:
        load_run(path)
    assert caught.value.what == what
    assert caught.value.where.endswith("run.json")


def test_a_run_without_trials_says_how_to_go_on(results_dir: Path) -> None:
    with pytest.raises(StoreError, match="the run holds no trials yet") as caught:
        load_run(create(results_dir).path)
    assert caught.value.next_step.startswith("mountlab resume ")


def test_an_absent_sweep_file_names_those_that_are_there() -> None:
    with pytest.raises(StoreError) as caught:
        load_sweep(Path("params/sweeps/ramdsk.yml"))
    assert caught.value.what == "no such sweep file"
    assert caught.value.next_step == "did you mean 'ramdisk'?"
    with pytest.raises(StoreError) as caught:
        load_sweep("qqqqqqqq")
    assert caught.value.where == str(paths.PARAMS / "sweeps" / "qqqqqqqq.yml")
    assert caught.value.next_step.startswith("name one of params/sweeps: ")
    assert "ramdisk" in caught.value.next_step


def test_a_sweep_is_found_by_its_name_or_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.chdir(tmp_path)
    entries = "filesystems: {t: {type: tmpfs, size: 64MiB}}\nworkloads: {w: {tool: fio, rw: read, size: 8MiB}}\n"
    for name in ("params/sweeps/mail.yml", "params/sweeps/recipes/v1.2.yml", "mail.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"question: {name}\n{entries}")
    (tmp_path / "mail").mkdir()
    for given, file in (
        ("mail", "params/sweeps/mail.yml"),
        ("recipes/v1.2", "params/sweeps/recipes/v1.2.yml"),
        ("mail.yml", "mail.yml"),
        (tmp_path / "mail.yml", "mail.yml"),
        ("params/sweeps/mail.yml", "params/sweeps/mail.yml"),
    ):
        assert load_sweep(given).sweep.question == file
    assert {"mail", "recipes/v1.2", "ramdisk"} <= set(paths.sweep_names())


def test_a_directory_is_no_sweep_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        load_sweep(tmp_path)
    assert caught.value.got == "Is a directory"


def test_a_sweep_takes_its_name_from_its_file_and_errors_name_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    workload = "{tool: dd, direction: write, count: 1}"
    text = f"question: Why?\nfilesystems: {{t: {{type: tmpfs, size: SIZE}}}}\nworkloads: {{w: {workload}}}\n"
    path.write_text(text.replace("SIZE", "1MiB"))
    assert load_sweep(path).sweep.name == "mine"
    path.write_text(text.replace("SIZE", "1m"))
    with pytest.raises(ParameterError) as caught:
        load_sweep(path)
    assert caught.value.where.endswith("mine.yml, line 2, column 32: filesystems.t.size")


def test_an_absent_box_file_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PARAMS", SHIPPED / "params")
    with pytest.raises(StoreError) as caught:
        load_box("lokal")
    assert caught.value.what == "no such box file"
    assert caught.value.where == "params/boxes/lokal.yml"
    assert "copy params/boxes/example.yml" in caught.value.next_step
    assert "local" in caught.value.next_step


def test_an_absent_file_of_published_figures_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PARAMS", SHIPPED / "params")
    with pytest.raises(StoreError, match="no such file of published figures") as caught:
        load_published(("b-tmpfs-cloud", "c-nothing"))
    assert caught.value.where == "params/published/c-nothing.yml"


# --- what is derived --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_read_back_with_figures_from_its_raw_output(results_dir: Path) -> None:
    run = load_run(written(results_dir))
    plan = the_plan()
    assert len(run.trials) == len(plan.trials) == 16
    assert list(run.trials["seq"]) == list(range(1, 17))
    assert len(run.measurements) == 3 * 16
    row = run.estimates[
        (run.estimates["cell"] == "ext4/r cache=cold") & (run.estimates["metric"] == "read_bandwidth")
    ].iloc[0]
    expected = estimate([536870912 / round(0.16 * (1 + 0.01 * block), 6) for block in (1, 2, 3)])
    assert (row["n"], row["mean"], row["low"]) == (3, pytest.approx(expected.mean), pytest.approx(expected.low))
    assert run.answer_metrics == {"r cache=cold": ("read_bandwidth",), "r cache=warm": ("read_bandwidth",)}
    assert [figure.study for figure in run.published] == ["B", "B"]


def test_raw_output_that_somebody_has_taken_away_is_named(results_dir: Path) -> None:
    path = written(results_dir)
    shutil.rmtree(path / "raw" / "t0003")
    with pytest.raises(StoreError) as caught:
        load_run(path)
    assert caught.value.got == "the raw output of t0003 is missing"
    assert caught.value.where == str(path / "raw" / "t0003")


@pytest.mark.slow
def test_comparisons_are_of_the_raw_output_too(results_dir: Path) -> None:
    cold, warm = load_run(written(results_dir)).comparisons
    assert (cold.candidate, cold.baseline, cold.factors) == ("tmpfs", "ext4", {"cache": "cold"})
    assert cold.ratio == pytest.approx(compare([(1 / 0.018, 1 / 0.16)]).ratio, rel=1e-3)
    assert (cold.verdict, cold.n) == ("not usable", 3), "tmpfs ignored an option"
    assert warm.factors == {"cache": "warm"}


@pytest.mark.slow
def test_what_was_asked_is_compared_with_what_the_kernel_said(results_dir: Path) -> None:
    rows = {(each.filesystem, each.option): each.state for each in load_run(written(results_dir)).options}
    assert rows == {
        ("ext4", "direct_io: true"): "in effect",
        ("tmpfs", "size=1073741824"): "in effect",
        ("tmpfs", "noatime"): "ignored",
    }


@pytest.mark.slow
def test_caveats_come_from_the_counters_that_were_kept(results_dir: Path) -> None:
    run = load_run(written(results_dir))
    cached = [(caveat.severity, caveat.subject) for caveat in run.caveats if caveat.code == "cache-served"]
    assert cached == [("note", "ext4/r cache=warm")]
    assert "failed-trials" in run.checks_passed


@pytest.mark.slow
def test_a_failed_trial_gives_no_figure_and_stays_in_the_run(results_dir: Path) -> None:
    run = load_run(written(results_dir, failed="t0016"))
    assert dict(run.trials["status"].value_counts()) == {"ok": 15, "failed": 1}
    assert "t0016" not in set(run.measurements["trial_id"])
    assert any(caveat.code == "failed-trials" for caveat in run.caveats)


DERIVED_COLUMNS = {
    "estimates.csv": ["run_id", "box", "filesystem", "tool", "workload", "cache", "metric", "label", "unit", "n",
                      "censored", "mean", "low", "high", "sd", "cv", "level", "method"],
    "comparisons.csv": ["baseline", "candidate", "workload", "tool", "cache", "metric", "label", "ratio", "low",
    "high", "n",
                        "level", "p", "p_adjusted", "verdict", "method", "low_all", "high_all", "low_same",
                        "high_same", "level_same", "needed", "reduce", "noise", "censored"],
    "caveats.csv": ["scope", "subject", "code", "severity", "message"],
}  # fmt: skip
DERIVED_COLUMNS["latency_comparisons.csv"] = DERIVED_COLUMNS["comparisons.csv"]
DESIGN_COLUMNS = {
    "estimates.csv": "run_id,box,filesystem,tool,cache,metric,label,unit,n,mean,low,high,sd,cv,level,method",
    "comparisons.csv": "baseline,candidate,cache,metric,label,ratio,low,high,n,p_adjusted,verdict",
    "caveats.csv": "scope,subject,code,severity,message",
}
DESIGN_COLUMNS["latency_comparisons.csv"] = DESIGN_COLUMNS["comparisons.csv"]
"""Section 4 of the design, with the one factor of this sweep; `subject` is its 'trial_id or cell'."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVED_COLUMNS)
def test_derived_files_have_the_columns_of_the_design_in_its_order(results_dir: Path, name: str) -> None:
    run = load_run(written(results_dir))
    write_derived(run)
    columns = list(pd.read_csv(run.path / name).columns)
    assert columns == DERIVED_COLUMNS[name]
    promised = DESIGN_COLUMNS[name].split(",")
    assert [column for column in columns if column in promised] == promised


@pytest.mark.slow
def test_measurements_are_kept_as_one_table_with_every_trial_marked(results_dir: Path) -> None:
    run = load_run(written(results_dir))
    write_derived(run)
    table = pd.read_parquet(run.path / "measurements.parquet")
    assert list(table.columns) == list(run.measurements.columns)
    assert table["warmup"].sum() == 3 * 4
    assert json.loads(table["factors"].iloc[0]) in ({"cache": "cold"}, {"cache": "warm"})


@pytest.mark.slow
def test_derived_files_are_made_again_the_same_and_leave_no_other_file(results_dir: Path) -> None:
    path = written(results_dir)
    raw = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    names = {*DERIVED_COLUMNS, "measurements.parquet", "records.parquet"}
    write_derived(load_run(path))
    first = {name: (path / name).read_bytes() for name in names}
    for name in names:
        (path / name).unlink()
    write_derived(load_run(path))
    assert {name: (path / name).read_bytes() for name in names} == first
    measured = {"run.json", "sweep.yml", "trials.jsonl", "raw"}
    assert {file.name for file in path.iterdir()} == names | measured | {"derived.json"}
    assert all(file.read_bytes() == before for file, before in raw.items()), "raw output is immutable"


def test_a_run_whose_every_trial_failed_can_still_be_read(results_dir: Path) -> None:
    writer = create(results_dir)
    for planned in the_plan().trials:
        writer.record(as_trial(planned, "failed", "mkfs failed", NOW, 0.0), {})
    run = load_run(writer.path)
    write_derived(run)
    assert len(run.estimates) == 0
    assert [each.verdict for each in run.comparisons] == ["undecided", "undecided"]
    assert list(pd.read_csv(run.path / "estimates.csv").columns) == DERIVED_COLUMNS["estimates.csv"]
    assert {caveat.code for caveat in run.caveats if caveat.severity == "error"} == {"failed-trials"}


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"kernel": "7.0"}, "kernel: 7.0"),
        ({"hostname": "other"}, "hostname: other"),
        ({"programs": {"fio": {"version": "fio-4"}}}, "fio: fio-4"),
        ({"programs": {}}, "fio: None"),
        ({"device_ids": {"data": OTHER_DISK}}, f"device data: {OTHER_DISK}"),
    ],
)
def test_a_run_is_not_resumed_on_another_box_kernel_or_tool(
    change: dict[str, Any], got: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'Does not matter much' is what people say when the two sides differ in more than the factor."""
    run = create(results_dir, BEFORE).path
    session = SimpleNamespace(facts=known(BEFORE, **change))
    monkeypatch.setattr(workflow, "planned", lambda *_, **__: nullcontext(session))
    with pytest.raises(PlanError, match="the box is not as it was when the run began") as caught:
        workflow.resume(run)
    assert caught.value.got == got
    assert caught.value.where == f"{run}/run.json: facts"


# --- trials that the user excludes ------------------------------------------------------------------------------------


def excluding(results: Path, text: str) -> Path:
    path = written(results, failed="t0016")
    (path / "exclude.yml").write_text(text)
    return path


@pytest.mark.slow
def test_excluded_trials_do_not_count_and_stay_in_the_run_with_their_reason(results_dir: Path) -> None:
    path = excluding(results_dir, "exclude:\n  t0007: a backup ran, by its log\n")
    with_it = load_run(written(results_dir / "whole", failed="t0016"))
    run = load_run(path)
    assert "t0007" not in set(run.measurements["trial_id"])
    assert len(run.measurements) == len(with_it.measurements) - 3
    row = run.trials.set_index("trial_id").loc["t0007"]
    assert (row["status"], row["reason"]) == ("excluded", "a backup ran, by its log")
    (caveat,) = [each for each in run.caveats if each.code == "excluded"]
    assert (caveat.subject, caveat.severity) == (row["cell"], "warning")
    assert "t0007 (a backup ran, by its log)" in caveat.message
    assert all(trial.status != "excluded" for trial in read_journal(path)), "the journal says what ran"


@pytest.mark.slow
def test_what_is_excluded_can_be_taken_back(results_dir: Path) -> None:
    path = excluding(results_dir, "exclude: {t0007: x}")
    write_derived(load_run(path))
    without = (path / "estimates.csv").read_text()
    (path / "exclude.yml").unlink()
    write_derived(load_run(path))
    assert (path / "estimates.csv").read_text() != without
    assert "excluded" not in (path / "caveats.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "what", "got"),
    [
        ("exclude: {t0099: x}", "unknown trial of this run", "'t0099'"),
        ("exclude: {t0016: x}", "a trial that gave no figure need not be excluded", "it is failed"),
        ("exclude: {t0007: ' '}", "wrong type or value", "' ' (str)"),
        ("exclude: {t0007: }", "wrong type or value", "None (NoneType)"),
        ("exclude: [t0007]", "wrong type or value", "['t0007'] (list)"),
        ("exclude: {t0007: x}\nalso: 1", "unknown key", "'also'"),
    ],
)
def test_what_cannot_be_excluded_is_said_with_file_and_trial(results_dir: Path, text: str, what: str, got: str) -> None:
    with pytest.raises(ParameterError) as caught:
        load_run(excluding(results_dir, text))
    assert (caught.value.what, caught.value.got) == (what, got)
    assert "exclude.yml" in caught.value.where


@pytest.mark.slow
def test_a_strict_run_with_warnings_ends_with_one_and_names_them(
    results_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mountlab.cli import shared
    from mountlab.report import execute

    path = written(results_dir)
    monkeypatch.setattr(execute, "write_report", lambda run: run / "report.html")
    assert shared.finish(path) == 0
    info = json.loads((path / "run.json").read_text())
    info["parameters"]["design"]["strict"] = True
    (path / "run.json").write_text(json.dumps(info))
    seal_again(path)
    assert shared.finish(path) == 1
    assert "error: strict: these figures cannot be trusted: " in (said := capsys.readouterr().err)
    assert "too-few (ext4/r cache=cold, ext4/r cache=warm" in said


# --- latencies --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_latencies_of_a_cell_are_pooled_over_the_trials_that_count(results_dir: Path) -> None:
    """Merged percentiles are those of the pooled I/Os (tests/stats/test_histograms.py shows it on simulated ones)."""
    path = written(results_dir)
    run = load_run(path)
    cell = "ext4/r cache=cold"
    assert run.latencies(cell) == {}, "dd keeps none"
    trials = run.trials[run.trials["cell"] == cell]
    names = ["psync-randread-direct.jsonplus", "psync-randread-buffered.jsonplus", "psync-randread-direct.jsonplus"]
    for trial_id, name in zip(trials["trial_id"], names, strict=False):  # the first is of the warm-up
        (path / "raw" / trial_id / "fio.json").write_bytes((DATA / "fio" / name).read_bytes())
    seal_again(path)
    run = load_run(path)
    (pooled,) = run.latencies(cell).values()
    parts = [histograms_of(decode((DATA / "fio" / name).read_text())) for name in names[1:]]
    assert list(run.latencies(cell)) == ["read.clat_ns"]
    assert pooled.total == sum(bins.total for part in parts for bins in part.values())
    assert pooled == merge(bins for part in parts for bins in part.values())


@pytest.mark.slow
def test_the_latencies_of_a_cell_that_is_not_there_are_refused(results_dir: Path) -> None:
    with pytest.raises(StoreError, match="no such cell") as caught:
        load_run(written(results_dir)).latencies("ext4/x")
    assert "ext4/r cache=cold" in caught.value.allowed


def test_the_tables_of_an_analysis_have_no_column_that_a_factor_could_be() -> None:
    run_columns = {
        *MEASUREMENT_COLUMNS,
        *estimate_frame(RESOLVED.sweep, measurement_frame([]), run_id="r", box="b").columns,
    }
    own = {*COMPARISON_COLUMNS, "residual"} | run_columns
    assert own - {"cache"} <= COLUMNS
