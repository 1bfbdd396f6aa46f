"""Recordings of perf: fifty or sixty operations of fio on loop devices and tmpfs, cut to the fields that are read."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mountlab.tracing.explained import Explained, ToolFigures, explained
from mountlab.tracing.operations import OpenFiles, operations_of
from mountlab.tracing.parts import Splitter
from mountlab.tracing.perf_data import Trace, read_trace
from mountlab.tracing.requests import device_number, requests_of
from mountlab.tracing.symbols import read_symbols
from mountlab.tracing.tasks import Tasks
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "traces"
RECORDINGS: dict[str, dict[str, Any]] = json.loads((DATA / "recordings.json").read_text())
KALLSYMS = gzip.decompress((DATA / "kallsyms.gz").read_bytes()).decode()
OPERATION = {
    "btrfs_fsync": "sync", "ext4_fsync": "sync", "ext4_libaio": "read", "ext4_limit_fsync": "sync",
    "ext4_uring": "read", "tmpfs_write": "write", "xfs_fsync": "sync",
}  # fmt: skip


@cache
def data_of(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.data.gz").read_bytes())


def explain(data: bytes, name: str) -> Explained:
    said = RECORDINGS[name]
    return explained(
        data,
        kallsyms=KALLSYMS,
        tasks="",
        fds=said["fds"],
        directory="trial",
        devices=[tuple(said["device"])] if said["device"] else [],
        tool=ToolFigures(said["fio_mean_s"]),
    )


@cache
def of(name: str) -> Explained:
    return explain(data_of(name), name)


def layers(name: str) -> dict[str, float]:
    """Layer to its share of the mean."""
    found: dict[str, float] = {}
    for row in of(name).layers:
        if (row.operation, row.statistic) == (OPERATION[name], "mean"):
            found[row.layer] = found.get(row.layer, 0) + row.seconds
    return {layer: seconds / sum(found.values()) for layer, seconds in found.items()}


def work(name: str) -> dict[str, float]:
    return {f"{row.quantity} {row.label}".strip(): row.value for row in of(name).work}


@pytest.mark.slow
@every_row("name", OPERATION)
def test_each_operation_is_found(name: str) -> None:
    (row,) = (each for each in of(name).trace if each.operation == OPERATION[name])
    assert row.operations in ((49, 50) if "fsync" in name else (60,))
    assert (row.withheld, row.lost_events) == ("", 0)


@every_row("name", [name for name in OPERATION if name != "tmpfs_write"])
def test_the_parts_are_together_what_fio_says(name: str) -> None:
    (row,) = (each for each in of(name).trace if each.operation == OPERATION[name])
    parts = [each.seconds for each in of(name).layers if (each.operation, each.statistic) == (row.operation, "mean")]
    assert sum(parts) == pytest.approx(row.traced_mean)
    assert row.traced_mean == pytest.approx(row.tool_mean, rel=0.05)


def test_of_an_operation_of_some_microseconds_the_trace_sees_the_call_alone() -> None:
    (row,) = (each for each in of("tmpfs_write").trace if each.operation == "write")
    assert 0 < row.tool_mean - row.traced_mean < 5e-6
    assert layers("tmpfs_write") == {"processor": 1}


@pytest.mark.parametrize("name", ["btrfs_fsync", "ext4_fsync", "xfs_fsync"])
def test_a_sync_is_mostly_its_flushes_and_the_writing_of_the_log(name: str) -> None:
    shares = layers(name)
    assert max(shares, key=shares.__getitem__) in ("flush", "device")
    assert shares["flush"] > 0.25
    assert shares.get("unattributed", 0) < 0.02
    through = {row.through for row in of(name).layers if row.layer == "flush" and row.statistic == "mean"}
    assert through == {"journal"}, "a device without FUA is flushed for the commit"
    assert work(name)["flushes_per_sync"] == pytest.approx(2, abs=0.05), "before and behind the commit block"
    assert work(name)["fua_per_sync"] == 0


def test_under_a_write_limit_a_sync_waits_in_the_queue_and_not_for_what_workers_did_for_others() -> None:
    """8 MiB/s by the controller of block I/O, 64 KiB a sync: 7.8 ms of it, while workers serve other devices."""
    shares = layers("ext4_limit_fsync")
    assert shares["queue"] > 0.9
    assert shares["processor"] + shares["run_queue"] < 0.05


def test_without_the_events_of_work_queues_the_requests_say_the_same() -> None:
    trace = read_trace(data_of("ext4_limit_fsync"))
    older = Trace({name: rows for name, rows in trace.events.items() if "workqueue" not in name}, trace.stacks, 0)
    requests = requests_of(older, {device_number(*RECORDINGS["ext4_limit_fsync"]["device"])})
    splitter = Splitter(older, Tasks(older), requests, read_symbols(KALLSYMS))
    syncs = [each for each in operations_of(older, requests, (), OpenFiles()) if each.name == "sync"]
    parts = [part for each in syncs for part in splitter.parts(each)]
    queue = sum(part.end - part.begin for part in parts if part.layer == "queue")
    assert queue > 0.9 * sum(part.end - part.begin for part in parts)


def test_who_writes_for_a_sync_is_jbd2_on_ext4_and_the_tool_itself_on_xfs() -> None:
    assert work("ext4_fsync")["commits_per_sync"] == pytest.approx(1, abs=0.05)
    assert work("ext4_fsync")["share_of_ios journal"] > 0.7
    assert work("xfs_fsync")["share_of_ios tool"] > 0.95
    assert work("ext4_fsync")["write_amplification"] > 2 * work("xfs_fsync")["write_amplification"]


@pytest.mark.parametrize("name", ["ext4_libaio", "ext4_uring"])
def test_a_direct_read_is_mostly_the_device(name: str) -> None:
    shares = layers(name)
    assert max(shares, key=shares.__getitem__) == "device"
    assert shares["device"] > 0.5
    assert shares.get("journal", 0) == shares.get("flush", 0) == 0
    assert work(name)["device_ios_per_op"] == pytest.approx(1)
    assert work(name)["device_bytes_per_op"] == pytest.approx(4096)


@pytest.mark.slow
@every_row("name", OPERATION)
def test_recordings_name_no_program_but_fio_and_the_kernels_own(name: str) -> None:
    names = {bytes(each).rstrip(b"\0") for each in read_trace(data_of(name)).events["sched:sched_switch"]["prev_comm"]}
    ours = (b"fio", b"kworker", b"jbd2", b"xfs", b"btrfs", b"swapper", b"ksoftirqd", b"loop", b"other", b"iou-")
    assert all(each.startswith(ours) for each in names), names
