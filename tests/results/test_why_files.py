"""The frames of diagnostic trials in a run directory: of traces, in derived files, in a bundle, in the catalog."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mountlab.core import disk
from mountlab.core.errors import ParseError
from mountlab.publish import publish as publishing
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.report import execute
from mountlab.results import catalog, derived, store, tables
from mountlab.results import why as why_files
from mountlab.results.catalog import database, reading
from mountlab.results.catalog.build import FILE
from mountlab.results.journal import read_journal
from mountlab.tracing.explained import Calls, Explained, LayerRow, TraceRow
from mountlab.tracing.flame import StackRow
from mountlab.tracing.work import WorkRow
from results.test_store import DATA, brought_back, create, ok, the_plan, written

DEVICE, KERNEL = (7, 0), b"ffffffff81000000 T vfs_read\n"
FOUND = Explained(
    layers=(LayerRow("read", "mean", "device", "own", 0.1 + 0.2), LayerRow("read", "mean", "processor", "own", 1e-6)),
    work=(WorkRow("", "device_ios_per_op", "", 1.5, "1"),),
    trace=(TraceRow("read", 512, np.int64(9000), 3, 1.5, 0.300001, 0.31, "", 0.5, "full", 31.5, 32.0),),
)


def traced(results: Path, files: dict[str, bytes], *, in_memory: bytes = b"tmpfs") -> Path:
    """A finished run whose first block is diagnostic, and has these files beside its output. `in_memory`: what the
    kernel calls the file system without a device."""
    writer = create(results)
    for mount in the_plan().mounts:
        evidence = (DATA / "evidence" / f"{mount.filesystem.name}.txt").read_bytes()
        evidence = evidence.replace(b" - tmpfs mountlab ", b" - %b mountlab " % in_memory)
        writer.keep_mount(mount.id, {"evidence.txt": evidence, why_files.SYMBOLS: gzip.compress(KERNEL)})
    for planned in the_plan().trials:
        first = planned.block == 0
        writer.record(replace(ok(planned), diagnostic=first), brought_back(planned) | (files if first else {}))
    writer.finish("complete")
    return writer.path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked of the traces: each explains the same."""
    calls: list[dict[str, Any]] = []

    def explained(data: bytes, **more: Any) -> Explained:
        calls.append({"data": data, **more})
        return FOUND

    monkeypatch.setattr(why_files, "explained", explained)
    return calls


CALLS = {why_files.CALLS: gzip.compress(b"PERFILE2 calls"), why_files.WINDOWS: b"1.0 1.2\n", why_files.TOOL: b"12\n"}
TRACE = {why_files.TRACE: gzip.compress(b"PERFILE2"), why_files.TASKS: b"12 fio\n", why_files.FDS: b"12 3 /mnt/f\n"}


def test_a_trace_is_read_with_the_kernel_of_its_mount_and_the_device_of_its_file_system(
    results_dir: Path, asked: list[dict[str, Any]]
) -> None:
    run = store.load_run(traced(results_dir, TRACE))
    assert len(run.why.traces) == 4
    assert set(run.why.layers["trial_id"]) == set(run.trials.loc[run.trials["warmup"], "trial_id"])
    by_disk = [call for call in asked if call["devices"]]
    assert len(by_disk) == 2
    assert [call["devices"] for call in asked if not call["devices"]] == [[], []], "tmpfs has none"
    assert (by_disk[0]["data"], by_disk[0]["kallsyms"]) == (b"PERFILE2", KERNEL.decode())
    assert (by_disk[0]["tasks"], by_disk[0]["fds"]) == ("12 fio\n", "12 3 /mnt/f\n")


@pytest.mark.parametrize(
    ("absent", "calls"),
    [
        ((), Calls(b"PERFILE2 calls", "1.0 1.2\n", 12)),
        ((why_files.WINDOWS, why_files.TOOL), Calls(b"PERFILE2 calls", "", 0)),
        ((why_files.CALLS,), None),
    ],
)
def test_the_calls_beside_a_trace_are_read_with_their_windows_and_the_process_of_the_tool(
    results_dir: Path, asked: list[dict[str, Any]], absent: tuple[str, ...], calls: Calls | None
) -> None:
    files = {name: content for name, content in {**TRACE, **CALLS}.items() if name not in absent}
    assert len(store.load_run(traced(results_dir, files)).why.traces) == 4
    assert [call["calls"] for call in asked] == [calls] * 4


def test_the_device_of_a_server_is_not_known(results_dir: Path, asked: list[dict[str, Any]]) -> None:
    run = store.load_run(traced(results_dir, TRACE, in_memory=b"nfs4"))
    assert len(run.why.traces) == 4
    assert [call["devices"] for call in asked if not call["devices"]] == [None, None]


def test_an_engine_without_system_calls_is_withheld_with_the_reason(
    results_dir: Path, asked: list[dict[str, Any]]
) -> None:
    run = traced(results_dir, TRACE)
    (first, *_) = (trial for trial in read_journal(run) if trial.diagnostic)
    measurements = store.load_run(run).measurements
    argv = json.dumps(["fio", "--rw=randread", "--ioengine=mmap"]).encode()
    (run / "raw" / first.trial_id / why_files.ARGV).write_bytes(argv)
    found = why_files.explained_of(run / "raw", replace(first, tool="fio"), measurements)
    assert [row.withheld for row in found.trace] == [
        "fio's engine mmap reads and writes mapped memory: page faults are no system calls"
    ]
    assert not found.layers


@pytest.mark.slow
def test_frames_are_read_again_from_derived_files_and_traces_no_more(
    results_dir: Path, asked: list[dict[str, Any]]
) -> None:
    path = traced(results_dir, TRACE)
    tables.derive(path)
    assert {file_of for file_of in why_files.FILES if (path / file_of).exists()} == set(why_files.FILES)
    asked.clear()
    again = store.load_run(path).why
    assert asked == []
    assert again.layers["seconds"].tolist()[:2] == [0.1 + 0.2, 1e-6]
    assert derived.altered(path) == []
    (path / "why_layers.parquet").write_bytes(b"PAR1 altered")
    with pytest.warns(UserWarning, match=r"why_layers\.parquet"):
        mended = store.load_run(path)
    assert mended.why.layers.equals(again.layers)
    assert len(asked) == 4


@pytest.mark.slow
def test_deriving_again_reads_the_traces_again(results_dir: Path, asked: list[dict[str, Any]]) -> None:
    path = traced(results_dir, TRACE)
    tables.derive(path)
    asked.clear()
    tables.derive(path)
    assert len(asked) == 4


@pytest.mark.slow
def test_a_run_without_traces_has_no_such_files(results_dir: Path) -> None:
    path = written(results_dir)
    tables.derive(path)
    assert not store.load_run(path).why
    assert [name for name in why_files.FILES if (path / name).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({why_files.TRACE: b"no gzip at all"}, "the trace cannot be read"),
        ({why_files.TRACE: gzip.compress(b"x" * 9000)[:-20]}, "cut off"),
        ({why_files.TRACE: gzip.compress(b"PERFILE2 and nothing that perf wrote")}, "the trace cannot be read"),
        ({why_files.UNTRACED: b"perf did not begin to record: why?\n"}, "perf did not begin to record"),
        ({}, "there is no trace"),
        ({why_files.SAID: b"No permission to enable cycles event.\n"}, "No permission to enable"),
        ({why_files.EXPLAINED: b'{"layers": 3}'}, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_withheld_with_its_reason(
    files: dict[str, bytes], reason: str, results_dir: Path
) -> None:
    frames = store.load_run(traced(results_dir, files)).why
    assert len(frames.layers) == 0
    assert all(reason in each for each in frames.traces["withheld"])


def test_a_trace_that_unpacks_to_more_than_a_trace_may_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why_files, "_LARGEST", 1 << 16)
    file = tmp_path / why_files.TRACE
    file.write_bytes(gzip.compress(bytes(1 << 20)))
    with pytest.raises(ParseError, match="too large"):
        why_files._unpacked(file)


@pytest.mark.slow
def test_the_tools_own_means_are_those_of_the_trial(
    results_dir: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = traced(results_dir, TRACE)
    trial, own = read_journal(path)[0], store.load_run(path).measurements
    row = own[own["trial_id"] == trial.trial_id].iloc[0].to_dict()
    figures = (
        ("sync_latency_mean", 0.002, "s"),
        ("sync_ios", 100.0, "1"),
        ("write_ios", 500.0, "1"),
        ("write_iops", 2000.0, "1/s"),
    )
    for metric, value, unit in figures:
        own.loc[len(own)] = {**row, "metric": metric, "label": "", "value": value, "unit": unit}
    said = why_files._tool_figures(own, trial)
    assert said.mean == {"sync": 0.002}
    assert said.in_flight("sync") == pytest.approx(0.8)


def test_disks_of_a_partition_are_found_by_their_names() -> None:
    rows = {"8:0": ["8", "0", "sda"], "8:1": ["8", "1", "sda1"], "259:0": ["259", "0", "nvme0n1"],
            "259:3": ["259", "3", "nvme0n1p3"], "7:0": ["7", "0", "loop0"]}  # fmt: skip
    assert list(why_files._disks("8:1", rows)) == ["8:0"]
    assert list(why_files._disks("259:3", rows)) == ["259:0"]
    assert list(why_files._disks("7:0", rows)) == list(why_files._disks("9:9", rows)) == []


@pytest.mark.slow
def test_a_bundle_holds_what_traces_explain_and_no_trace(
    results_dir: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))
    path = traced(results_dir, {**TRACE, why_files.SAID: b""})
    folder, _ = publish([path], Wishes(title="Why"), results=results_dir)
    (copy,) = (folder / "runs").iterdir()
    names = {file.name for file in copy.rglob("*")}
    assert not names & set(why_files.NAMES_A_MACHINE)
    assert why_files.EXPLAINED in names
    assert store.load_run(copy).why.layers["seconds"].tolist()[0] == 0.1 + 0.2
    assert reproduce.differing(copy, store.load_run(copy, as_it_is=True)) == []
    shutil.copyfile(copy / "why_work.parquet", copy / "why_layers.parquet")
    with pytest.warns(UserWarning, match=r"why_layers\.parquet"):
        altered = store.load_run(copy, as_it_is=True)
    assert {each.table for each in reproduce.differing(copy, altered)} == {"why_layers.parquet"}
    assert publishing.why is why_files


def test_a_copy_of_an_earlier_version_is_read_without_the_sleeps_that_it_lacks(tmp_path: Path) -> None:
    trial = ok(the_plan().trials[0])
    said = json.loads(why_files.as_json(FOUND))
    del said["sleeps"]
    said["trace"] = [row[:8] for row in said["trace"]]
    (tmp_path / trial.trial_id).mkdir()
    (tmp_path / trial.trial_id / why_files.EXPLAINED).write_text(json.dumps(said))
    found = why_files.explained_of(tmp_path, trial, pd.DataFrame())
    assert replace(found, trace=()) == replace(FOUND, trace=())
    (row,) = found.trace
    assert row[:10] == (*FOUND.trace[0][:8], 1.0, "")
    assert np.isnan([row.traced_in_flight, row.tool_in_flight]).all()


def test_a_copy_names_no_other_program_of_the_box() -> None:
    """What ran while operations waited for a processor: the tool, the kernel, and what is nobody's business."""
    seconds = {"fio": 0.1, "kworker": 0.2, "idle": 0.3, "held back": 0.4, "secret-job": 0.5, "bash": 0.25}
    ran = tuple(WorkRow("read", "ran_instead_s_per_op", name, value, "s") for name, value in seconds.items())
    found = replace(FOUND, work=(*FOUND.work, *ran), stacks=(StackRow("fio;vfs_read", 12),))
    rows = json.loads(why_files.as_json(found))["work"]
    kept = {label: value for _, quantity, label, value, _ in rows if quantity == "ran_instead_s_per_op"}
    assert kept == {"fio": 0.1, "kworker": 0.2, "idle": 0.3, "held back": 0.4, "other programs": 0.75}
    assert list(FOUND.work[0]) in rows


@pytest.mark.long
@pytest.mark.slow
def test_the_catalog_has_the_frames_whether_they_were_derived_or_not(
    results_dir: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SETTLED_S", 0.0)
    path = traced(results_dir, TRACE)
    query = "SELECT cell, layer, seconds FROM why_layers ORDER BY ALL"
    found = []
    for prepare in (lambda: None, lambda: tables.derive(path)):
        prepare()
        catalog.build(results_dir, rebuild=True)
        with database.opened(results_dir / FILE) as connection:
            found.append(database.ask(connection, query).rows)
            assert len(database.ask(connection, "SELECT * FROM why_traces").rows) == 4
            assert database.ask(connection, "SELECT DISTINCT quantity FROM why_work").rows == [("device_ios_per_op",)]
    assert len(found[0]) == 8
    assert found[0] == found[1]
