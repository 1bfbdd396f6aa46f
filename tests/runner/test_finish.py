"""How a run ends on this machine: every part is tried, and what fails at the end hides nothing that came before."""

from __future__ import annotations

import json
import os
import threading
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from mountlab import __main__
from mountlab.core import disk
from mountlab.core.errors import BoxError, KeepError, MountlabWarning
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from mountlab.results import derived, paths, tables
from mountlab.results.info import is_derived, read_info
from mountlab.results.lock import alone
from mountlab.results.store import load_run
from mountlab.results.writer import RunWriter, held_run
from mountlab.runner.finish import finishing
from results.test_store import RESOLVED, brought_back, create, ok, the_plan, written

FOREIGN = "<title>My site</title>"


@pytest.fixture
def writer(results_dir: Path) -> RunWriter:
    """Of a run with one trial."""
    made = create(results_dir)
    made.record(ok(the_plan().trials[0]), brought_back(the_plan().trials[0]))
    return made


def full(path: Path, _: bytes) -> None:
    raise KeepError("a file cannot be written", where=path.name, next_step="make room on the disk")


@pytest.mark.slow
def test_a_run_that_is_stopped_is_derived_and_listed(writer: RunWriter) -> None:
    with pytest.raises(BoxError, match="gone"), finishing(writer, RESOLVED.sweep):
        raise BoxError("the box is gone")
    assert json.loads((writer.path / "run.json").read_text())["status"] == "interrupted"
    assert is_derived(writer.path)
    assert writer.path.name in (writer.path.parent / "index.html").read_text()


@pytest.mark.slow
def test_a_complete_run_does_not_write_the_index_that_its_report_writes_next(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(execute, "write_index", made.append)
    (writer.path.parent / "index.html").touch()
    with finishing(writer, RESOLVED.sweep) as ending:
        ending.status = "complete"
    assert made == []
    (writer.path.parent / "index.html").unlink()
    with finishing(writer, RESOLVED.sweep) as ending:
        ending.status = "complete"
    assert made == [writer.path.parent], "but for the first of all"


def test_on_a_full_disk_each_part_is_tried_and_the_first_error_is_raised(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    for module in (derived, disk):
        monkeypatch.setattr(module, "replace_file", lambda path, data: (tried.append(path.name), full(path, data)))
    with (
        pytest.raises(KeepError) as caught,
        pytest.warns(MountlabWarning, match="the list of all runs is as it was"),
        finishing(writer, RESOLVED.sweep) as ending,
    ):
        ending.status = "complete"
    assert tried == ["run.json", "records.parquet", "index.html"]
    assert caught.value.where == "run.json"
    assert read_info(writer.path).status == "interrupted", "as whoever resumes it must know"


def test_what_fails_at_the_end_does_not_hide_what_stopped_the_run(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (derived, disk):
        monkeypatch.setattr(module, "replace_file", full)
    with (
        pytest.warns(MountlabWarning) as warned,
        pytest.raises(BoxError, match="gone"),
        finishing(writer, RESOLVED.sweep),
    ):
        raise BoxError("the box is gone")
    assert "a file cannot be written" in [str(each.message) for each in warned]


def test_a_full_disk_is_told_once(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (derived, disk):
        monkeypatch.setattr(module, "replace_file", full)
    monkeypatch.setattr(execute, "refresh_index", lambda *_, **__: None)
    with (
        warnings.catch_warnings(record=True) as warned,
        pytest.raises(KeepError, match="cannot be kept"),
        finishing(writer, RESOLVED.sweep),
    ):
        raise KeepError("it cannot be kept")
    assert warned == []


# --- the list of all runs ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_index_of_somebody_else_is_a_warning_at_the_end_of_a_run(writer: RunWriter) -> None:
    foreign = writer.path.parent / "index.html"
    foreign.write_text(FOREIGN)
    with (
        pytest.warns(MountlabWarning, match=r"that Mountlab has not made .*index.html; move it"),
        finishing(writer, RESOLVED.sweep) as ending,
    ):
        ending.status = "interrupted"
    assert foreign.read_text() == FOREIGN
    assert is_derived(writer.path)


@pytest.mark.slow
def test_and_at_the_end_of_a_report(results_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(results_dir)
    monkeypatch.setattr(paths, "RESULTS", results_dir)
    monkeypatch.setattr(execute, "execute", lambda *_, **__: None)
    monkeypatch.setattr(execute, "export", lambda *_, **__: "<html>")
    (results_dir / "index.html").write_text(FOREIGN)
    with pytest.warns(MountlabWarning, match="that Mountlab has not made"):
        assert execute.write_report(path).read_text() == "<html>"
    assert (results_dir / "index.html").read_text() == FOREIGN


@pytest.mark.slow
def test_a_warning_is_a_line_of_words_on_the_command_line(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(results_dir)
    (path / "trials.jsonl").write_bytes((path / "trials.jsonl").read_bytes() + b'{"torn')
    monkeypatch.setattr(execute, "write_report", lambda run: (RunWriter(run), path / "report.html")[1])
    assert __main__.main(["report", str(path)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: the last line of ")
    assert line.endswith("was torn (6 B: it begins with b'{\"torn'): what it was to say counts as not done")


@pytest.mark.long
def test_what_killed_processes_left_half_made_goes_with_the_next_that_does_the_same(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (results_dir / ".r0.new" / "raw").mkdir(parents=True)
    (results_dir / ".index.html.17.tmp").touch()
    path = written(results_dir)
    assert not (results_dir / ".r0.new").exists()
    for name in (".estimates.csv.17.tmp", ".measurements.parquet.17.tmp", ".report.html.17.tmp"):
        (path / name).touch()
    monkeypatch.setattr(execute, "execute", lambda *_, **__: None)
    monkeypatch.setattr(execute, "export", lambda *_, **__: "<html>")
    tables.derive(path)
    execute.write_report(path)
    execute.write_index(results_dir)
    assert [each.name for each in results_dir.rglob(".*")] == []


# --- readers and a run that goes on -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_on_a_run_that_goes_on_says_so(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(results_dir)
    monkeypatch.setattr(execute, "write_report", lambda run: run / "report.html")
    with held_run(path):
        assert __main__.main(["report", str(path)]) == 0
        said = capsys.readouterr().err
    assert said.startswith(f"note: the run goes on (process {os.getpid()} on {os.uname().nodename}, since 20")
    assert __main__.main(["report", str(path)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_of_two_reports_at_once_the_second_waits_and_reads_anew(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that began before the last trial could end after the one at the end of the run."""
    path = written(results_dir)
    order: list[str] = []
    monkeypatch.setattr(execute, "execute", lambda *_, **__: order.append("read"))
    monkeypatch.setattr(execute, "export", lambda *_, **__: "<html>")
    with alone(path, what="run's report", fallback=path / ".reporting", wait_s=0):
        second = threading.Thread(target=execute.write_report, args=(path,))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        order.append("first done")
    second.join(10)
    assert order == ["first done", "read"]


# --- a clock that is set ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_clock_that_is_set_back_changes_neither_order_nor_figures(results_dir: Path) -> None:
    """Times of the wall clock are for people: the journal's order is the order, and durations come of another clock."""
    steady = load_run(written(results_dir / "a"))
    path = written(results_dir / "b")
    lines = [json.loads(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    began = datetime.fromisoformat(lines[0]["started_at"])
    for hours, line in enumerate(lines):
        line["started_at"] = (began - timedelta(hours=hours)).isoformat()
    (path / "trials.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "finished_at": "1970-01-01T00:00:00+00:00"}))
    seal_again(path)
    back = load_run(path)
    assert list(back.trials["trial_id"]) == list(steady.trials["trial_id"])
    assert back.estimates.equals(steady.estimates)
    assert [(each.code, each.subject) for each in back.caveats] == [
        (each.code, each.subject) for each in steady.caveats
    ]
