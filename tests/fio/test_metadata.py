"""fio's engines that create, look up or delete files: what they are given, and what is believed of their reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import ParameterError, ToolError
from mountlab.core.model import Measurement, Workload
from mountlab.filesystems import FAMILIES
from mountlab.fio.metadata import SINCE
from mountlab.logs import read_log
from mountlab.programs import TOOLS
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput

FIO = TOOLS["fio"]
DATA = Path(__file__).parents[1] / "data" / "fio"
FILES = {"tool": "fio", "ioengine": "filecreate", "nrfiles": 1500, "numjobs": 2}
RECORDED = {
    "filecreate": DATA / "filecreate.jsonplus",
    "filestat": DATA / "filestat.jsonplus",
    "filedelete": DATA / "filedelete.jsonplus",
}


def workload(**changes: Any) -> Workload:
    entry = {name: value for name, value in {**FILES, **changes}.items() if value is not None}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


def parsed(own: Workload, text: str) -> list[Measurement]:
    output = ToolOutput(exit_status=0, stdout="", stderr="", files={"fio.json": text})
    return FIO.parse(own, output)


@pytest.mark.parametrize("engine", SINCE)
def test_a_report_tells_files_and_no_bytes(engine: str) -> None:
    """By its own numbers: 3000 I/Os of 4096 bytes, of which not one was moved."""
    text = RECORDED[engine].read_text()
    (job,) = json.loads(text)["jobs"]
    side = job["write" if engine == "filecreate" else "read"]
    rows = {row.metric: row for row in parsed(workload(ioengine=engine), text)}
    assert rows["file_rate"].value == side["iops"] == pytest.approx(3000 / (side["runtime"] / 1000))
    assert rows["operation_latency"].value == pytest.approx(side["clat_ns"]["mean"] / 1e9)
    assert rows["operations"].value == 3000
    assert rows["elapsed"].value == side["runtime"] / 1000
    assert 0 < rows["operation_latency_p50"].value < rows["operation_latency_p99"].value
    assert not {name for name in rows if name.startswith(("read_", "write_")) or name in ("bytes", "bandwidth")}
    assert {*rows} <= {*FIO.gives}
    assert FIO.main_metrics(workload(ioengine=engine)) == ("file_rate",)


def test_the_direction_says_only_whether_files_are_laid_out_before() -> None:
    created, looked_up = (FIO.command(workload(ioengine=name), "/d", "/o") for name in ("filecreate", "filestat"))
    assert not created.prepare
    assert "--create_only=1" in looked_up.prepare[0]
    for command in (created, looked_up):
        assert {"--size=6144000", "--nrfiles=1500", "--openfiles=1", "--file_service_type=sequential"} <= {
            *command.argv
        }
        assert not [word for word in command.argv if "log" in word], "bytes over time that are not moved"


@pytest.mark.parametrize(
    ("changes", "key", "what"),
    [
        ({"nrfiles": None}, "nrfiles", "fio needs nrfiles"),
        ({"rw": "read"}, "rw", "rw has no effect with ioengine filecreate"),
        ({"size": "1MiB"}, "size", "size has no effect"),
        ({"fsync": 1}, "fsync", "fsync has no effect"),
        ({"direct": True}, "direct", "direct has no effect"),
        ({"log_avg_msec": 100}, "log_avg_msec", "log_avg_msec has no effect"),
        ({"ioengine": "filestat", "cache": "cold"}, "cache", "looks up every file before filestat begins"),
        ({"ioengine": "filedelete", "cache": "cold"}, "cache", "looks up every file before filedelete begins"),
        ({"time_based": True, "runtime": "2s"}, "time_based", "filecreate does its work once"),
        ({"ioengine": "filedelete", "loops": 2}, "loops", "filedelete does its work once"),
        (
            {"ioengine": "dircreate", "rw": "read", "size": "1MiB"},
            "ioengine",
            "not an engine that reads and writes files",
        ),
    ],
)
def test_what_they_cannot_do_is_refused(changes: Mapping[str, Any], key: str, what: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**changes)
    error = caught.value
    assert what in error.what
    assert error.where.endswith(f"workloads.w.{key}")
    assert error.allowed


def test_look_ups_again_and_again_for_a_time_are_allowed() -> None:
    command = FIO.command(workload(ioengine="filestat", time_based=True, runtime="2s"), "/d", "/o")
    assert "--time_based=1" in command.argv


def test_a_job_file_may_have_them_with_what_changes_said() -> None:
    text = "[t0]\nioengine=filecreate\nfilesize=1m\nnrfiles=200\nbs=4k\n"
    own = workload(ioengine=None, nrfiles=None, numjobs=None, jobs=text)
    job_file = FIO.command(own, "/d", "/o").files["/o/jobs.fio"]
    assert {"rw=write", "size=819200", "openfiles=1"} <= {*job_file.split()}
    assert "filesize" not in job_file
    assert any("filesize=1m is dropped" in remark for remark in FIO.remarks(own))


def test_jobs_that_move_data_have_no_figures_together_with_those_that_move_none() -> None:
    text = "[a]\nioengine=filecreate\nnrfiles=9\n[b]\nrw=write\nsize=1m\nioengine=psync\n"
    with pytest.raises(ParameterError, match="jobs that move data beside jobs that move none"):
        workload(ioengine=None, nrfiles=None, numjobs=None, jobs=text)


def test_an_engine_that_the_box_lacks_is_named_with_the_version_that_brought_it() -> None:
    text = (DATA / "help-3.33.txt").read_text()
    own = workload(ioengine="filedelete").options
    FIO.check_help(own, text, where="workloads.w")
    older = text.replace("IO engine filedelete has no options", "IO engine filedelete not found")
    with pytest.raises(ParameterError) as caught:
        FIO.check_help(own, older, where="workloads.w")
    assert caught.value.what == "the box's fio has no engine filedelete"
    assert caught.value.allowed == "fio 3.27 or later for it"
    assert "tool: tree" in caught.value.next_step


def test_fewer_files_than_asked_are_no_figure() -> None:
    with pytest.raises(ToolError) as caught:
        parsed(workload(nrfiles=1501), RECORDED["filecreate"].read_text().replace('"1500"', '"1501"'))
    assert "fio" in caught.value.what


def test_a_killed_one_says_how_many_files_it_handled() -> None:
    """Trap: on SIGTERM the report is whole, and its error 0."""
    report = json.loads(RECORDED["filecreate"].read_text())
    side = report["jobs"][0]["write"]
    side["io_bytes"], side["total_ios"] = 1000 * 4096, 1000
    with pytest.raises(ToolError, match="fio stopped early") as caught:
        parsed(workload(), json.dumps(report))
    assert caught.value.got.startswith("1000 files in ")
    assert caught.value.allowed == "3000 files"


def test_a_raw_device_has_no_files_to_create() -> None:
    entry = {"type": "raw", "image": "64MiB"}
    raw = {"name": "s", "question": "?", "filesystems": {"r": entry}, "workloads": {"w": FILES}}
    (cell,) = resolve(raw, where="s.yml").sweep.cells
    assert "filecreate works on files" in str(FAMILIES["raw"].refuses(cell.filesystem, cell.workload))


def test_a_log_from_elsewhere_tells_files_and_no_bytes() -> None:
    (output,) = read_log("fio", RECORDED["filecreate"].read_text(), where="filecreate.jsonplus")
    metrics = {figure.measurement.metric for figure in output.figures}
    assert {"file_rate", "operation_latency", "operation_latency_p99", "operations", "elapsed"} <= metrics
    assert not {name for name in metrics if name.startswith(("read_", "write_", "bytes"))}
