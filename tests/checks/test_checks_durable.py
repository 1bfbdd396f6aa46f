"""Commits that are called durable, by flushes of the device: raised and not raised, and where that cannot be seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from checks.test_checks import EXT4, found, the_only
from facts import known
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS, Evidence, moved_below
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement, Trial
from mountlab.core.mountinfo import mount_lines
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles
from mountlab.programs import TOOLS
from rows import every_row
from sweeps import sweep

LOOP, DISK, PART = "7:0", "254:0", "254:1"
NAMES = {LOOP: "loop0", DISK: "vda", PART: "vda1"}
TPCB = {"tool": "pgbench", "scale": 1, "sessions": 4, "runtime": "10s"}
OWN = {**TPCB, "script": "UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 1;"}
LITE = {"tool": "sqlite", "rows": 1000}
FSYNCS = {"tool": "fio", "rw": "write", "size": "1MiB", "fsync": 1, "numjobs": 4}
METHODS = {"tool": "pg_test_fsync", "time_per_test": "5s"}
COMMAND: dict[str, Any] = {
    "tool": "command", "argv": "db {directory}", "space": "1MiB", "commit_clients": 4,
    "metrics": {"commits": {"pattern": "(x)", "unit": "1", "better": "neither"}},
}  # fmt: skip
TEN_S = {("operation_rate", ""): 100.0, ("elapsed", ""): 10.0}
"""A thousand commits in ten seconds."""
INSERTS = {("elapsed", "insert"): 4.0, ("elapsed", "update"): 6.0}
SYNCS = {("sync_ios", ""): 1000.0, ("elapsed", ""): 10.0}
RATES = {("sync_rate", f"one 8kB: {name}"): 100.0 for name in ("fsync", "fdatasync", "open_sync")}
VIRTIO = {
    "block_devices": [{"name": "vda", "type": "disk"}, {"name": "vda1", "parent": "vda", "type": "part"}],
    "disk_settings": {"vda": {"write_cache": "write back"}},
}


def evidence(
    workload: dict[str, Any],
    figures: dict[tuple[str, str], float],
    flushes: int,
    *,
    chain: tuple[str, ...] = (LOOP, DISK),
    filesystem: dict[str, Any] = EXT4,
    storage: dict[str, Any] = VIRTIO,
    release: str = "6.1.0",
) -> Evidence:
    """Two trials on the first device of `chain`, which counted so many flushes in eleven seconds; others count more."""
    the_sweep = sweep(filesystems={"fs": filesystem}, workloads={"w": workload}).sweep
    (cell,) = the_sweep.cells
    facts = known(rights="root", kernel=release, **storage)
    trials = [
        Trial(
            trial_id=f"t{number}", block=number, warmup=False, cell=cell.id, filesystem="fs", workload="w",
            tool=cell.workload.tool, factors={}, mount="m", status="ok", reason="", started_at="", elapsed_s=11.0,
        )
        for number in (1, 2)
    ]  # fmt: skip
    rows = [
        (trial, Measurement(metric=metric, label=label, value=value, unit=METRICS.get(metric, "1/s")))
        for trial in trials
        for (metric, label), value in figures.items()
    ]
    counted = {number: DeviceBytes(0, 0, 10**6) for number in NAMES} | {
        DISK if number == PART else number: DeviceBytes(0, 0, flushes) for number in chain[:1]
    }
    frame = pd.DataFrame([vars(trial) for trial in trials], columns=list(Trial.__dataclass_fields__))
    measured = measurement_frame(rows)
    return Evidence(
        sweep=the_sweep,
        trials=frame,
        measurements=measured,
        estimates=measured,
        traffic={trial.trial_id: counted for trial in trials},
        levels={"m": tuple((device,) for device in chain)},
        backing_types={},
        unseen={},
        answer_metrics={},
        options=[],
        facts=facts,
        around={trial.trial_id: Around(seconds=11.0, names=NAMES) for trial in trials},
    )


Row = tuple[dict[str, Any], dict[tuple[str, str], float], int, bool]
CLAIMS: list[Row] = [
    # Of four sessions one flush may serve four commits: 1000 of them take 250.
    (TPCB, TEN_S, 250, False),
    (TPCB, TEN_S, 200, True),
    (TPCB, TEN_S, 0, True),
    ({**TPCB, "sessions": 1}, TEN_S, 1000, False),
    ({**TPCB, "sessions": 1}, TEN_S, 100, True),
    (OWN, TEN_S, 100, True),
    # SQLite commits a thousand inserts and a thousand updates, one after the other.
    (LITE, INSERTS, 2000, False),
    (LITE, INSERTS, 1000, True),
    ({**LITE, "synchronous": "extra", "journal_mode": "wal"}, INSERTS, 0, True),
    ({**LITE, "transaction": 10}, INSERTS, 200, False),
    (FSYNCS, SYNCS, 250, False),
    (FSYNCS, SYNCS, 20, True),
    # Two methods of five seconds each need their flushes; a write with O_SYNC may not.
    (METHODS, RATES, 1000, False),
    (METHODS, RATES, 100, True),
    # A command counts its commits, for however long a part of its time it made them.
    (COMMAND, {("commits", ""): 1100.0}, 275, False),
    (COMMAND, {("commits", ""): 1100.0}, 100, True),
    ({**COMMAND, "commit_clients": 1}, {("commits", ""): 100.0, ("elapsed", ""): 11.0}, 100, False),
]


@every_row(("workload", "figures", "flushes", "raised"), CLAIMS)
def test_more_commits_than_flushes_times_clients_were_not_durable(
    workload: dict[str, Any], figures: dict[tuple[str, str], float], flushes: int, raised: bool
) -> None:
    seen = evidence(workload, figures, flushes)
    assert bool(found("not-durable", seen)) == raised
    assert CHECKS["not-durable"].blind(seen) is None


def test_the_caveat_is_an_error_that_says_rates_clients_and_device() -> None:
    caveat = the_only("not-durable", evidence(TPCB, TEN_S, 22))
    assert (caveat.severity, caveat.subject) == ("error", "fs/w")
    assert "in 2 of its 2 trials (t1, t2) commits were acknowledged as durable" in caveat.message
    assert "90.9 commits a second by 4 clients, and loop0 counted 2.0 flushes a second" in caveat.message
    assert "need no flush on a device that knows FUA" in caveat.message
    assert "loop0 counted no flush at all" in the_only("not-durable", evidence(TPCB, TEN_S, 0)).message


@every_row(
    "workload",
    [
        {**TPCB, "builtin": "select-only"},
        {**TPCB, "fsync": False},
        {**TPCB, "synchronous_commit": False},
        {**TPCB, "script": "SELECT 1;"},
        {**LITE, "synchronous": "normal"},
        {**LITE, "synchronous": "off"},
        {**COMMAND, "metrics": {"operation_rate": {"pattern": "(x)", "unit": "1/s"}}},
        {"tool": "dd", "direction": "write", "count": 8},
    ],
)
def test_who_claims_nothing_is_not_doubted(workload: dict[str, Any]) -> None:
    seen = evidence(workload, {**TEN_S, **INSERTS}, 0)
    assert found("not-durable", seen) == []
    assert CHECKS["not-durable"].blind(seen) is None


def test_the_disk_counts_the_flushes_of_its_partitions() -> None:
    assert found("not-durable", evidence(TPCB, TEN_S, 250, chain=(PART,))) == []
    seen = evidence(TPCB, TEN_S, 10, chain=(PART,))
    assert "vda counted" in the_only("not-durable", seen).message
    assert {below.flushes for below in moved_below(seen, seen.traffic, seen.mounts).values()} == {10}


@every_row(
    ("more", "why"),
    [
        ({"release": "5.4.0"}, "Linux 5.4.0 does not count flushes of devices"),
        ({"chain": ()}, "the kernel does not tell the device below"),
        (
            {"chain": (DISK,), "storage": {"disk_settings": {"vda": {"write_cache": "write through"}}}},
            "vda has no volatile cache (write through)",
        ),
        ({"chain": (DISK,), "storage": {}}, "it is not known whether vda has such a cache"),
    ],
)
def test_where_flushes_are_not_counted_the_check_could_not_look(more: dict[str, Any], why: str) -> None:
    """A device without a volatile cache gets no flush, and needs none."""
    seen = evidence(TPCB, TEN_S, 0, **more)
    assert found("not-durable", seen) == []
    assert why in str(CHECKS["not-durable"].blind(seen))
    for below in moved_below(seen, seen.traffic, seen.mounts).values():
        assert (below.flushes, why in below.flushes_unseen) == (None, True)


@every_row(("written", "judged"), [("/srv/x", True), ("/far/db", False)])
def test_a_program_that_wrote_elsewhere_is_not_judged_by_the_device_below_its_directory(
    written: str, judged: bool
) -> None:
    watched: dict[str, Any] = {"tool": "watched", "argv": "db", "metrics": COMMAND["metrics"]}
    place = {"type": "in_place", "path": "/srv"}
    seen = evidence(watched, {("commits", ""): 1000.0}, 0, chain=(DISK,), filesystem=place)
    mounts = mount_lines("27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 8:1 / /far rw - xfs /dev/sda1 rw\n")
    files = OpenFiles(3, 0, [OpenDirectory(written, 1, 1, 1, 4096)], mounts)
    seen = replace(seen, open_files=dict.fromkeys(seen.traffic, files))
    assert bool(found("not-durable", seen)) == judged
    assert ("it wrote to /far (xfs)" in str(CHECKS["not-durable"].blind(seen))) != judged


def test_nothing_is_claimed_of_a_file_system_in_memory() -> None:
    seen = evidence(TPCB, TEN_S, 0, chain=(), filesystem={"type": "tmpfs", "size": "1GiB"})
    assert found("not-durable", seen) == []
    assert CHECKS["not-durable"].blind(seen) is None


def test_a_tool_claims_nothing_without_its_figures() -> None:
    for workload in (TPCB, LITE, FSYNCS, METHODS, COMMAND):
        (own,) = sweep(workloads={"w": workload}).sweep.workloads
        assert TOOLS[own.tool].commits(own, {}) is None
