"""Every recording that the project was given, and what a careful person reads from it: figures, or why there are none.

The figures were typed from the recordings, in base units, not computed by the parsers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.core.metrics import METRICS, PERCENT_OF
from mountlab.logs import Output, decoded, read_log
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
MIB = 1024**2
KIB = 1024

Figures = dict[str, float]
"""'metric' or 'metric label' to value."""

READ: dict[str, Figures] = {
    # bytes and seconds as printed, and the rate that follows: dd prints that to two or three digits
    "dd/512-bytes.stderr": {"bandwidth": 512 / 7.7536e-05, "elapsed": 7.7536e-05, "bytes": 512},
    "dd/direct.stderr": {"bandwidth": 104857600 / 0.0457039, "elapsed": 0.0457039, "bytes": 104857600},
    "dd/dsync.stderr": {"bandwidth": 4096000 / 0.147769, "elapsed": 0.147769, "bytes": 4096000},
    "dd/locale-de_DE.stderr": {"bandwidth": 209715200 / 0.0971606, "elapsed": 0.0971606, "bytes": 209715200},
    "dd/status-progress.stderr": {"bandwidth": 104857600 / 0.0263561, "elapsed": 0.0263561, "bytes": 104857600},
    "dd/write-1m.stderr": {"bandwidth": 209715200 / 0.279132, "elapsed": 0.279132, "bytes": 209715200},
    "filebench/samples/fileserver.stdout": {
        "operations": 661392, "operation_rate": 110077.378, "bandwidth": 2547.9 * MIB, "operation_latency": 0.033e-3,
        "elapsed": 661392 / 110077.378, "operations statfile1": 60130, "operation_latency statfile1": 0.006e-3,
        "bandwidth readfile1": 1270.5 * MIB, "operation_latency_max appendfilerand1": 48.197e-3,
        "operation_latency_min wrtfile1": 0.002e-3, "operations createfile1": 60134,
        "operation_rate statfile1": 60130 / 661392 * 110077.378,
    },
    "filebench/samples/seqread.stdout": {
        "operations": 30275, "operation_rate": 6054.091, "bandwidth": 6030.5 * MIB, "operation_latency": 0.165e-3,
        "bandwidth seqread-file": 6030.5 * MIB, "operation_latency_min seqread-file": 0.149e-3,
        "operation_latency_max seqread-file": 0.513e-3,
    },
    "fio/human-randrw.stdout": {
        "read_bandwidth": 76.6 * MIB, "read_iops": 39236 / 2.001, "bytes read": 153 * MIB,
        "read_latency_mean": 87.54e-6, "read_completion_latency_mean": 87.49e-6, "read_latency_p50": 71e-6,
        "read_latency_p95": 145e-6, "read_latency_p99": 478e-6, "read_latency_p99_9": 1795e-6,
        "write_bandwidth": 76.9 * MIB, "write_iops": 39397 / 2.001, "bytes write": 154 * MIB,
        "write_latency_mean": 6.55e-6, "write_completion_latency_mean": 6.47e-6, "write_latency_p50": 4e-6,
        "write_latency_p95": 17e-6, "write_latency_p99": 52e-6, "write_latency_p99_9": 141e-6, "elapsed": 2.001,
        "user_cpu": 0.0175, "system_cpu": 0.2693, "context_switches": 40884, "major_faults": 0, "minor_faults": 24,
    },
    "fio/human-write.stdout": {
        "write_bandwidth": 2187 * MIB, "write_iops": 4376 / 2.001, "bytes write": 4376 * MIB,
        "write_latency_mean": 455.92e-6, "write_completion_latency_mean": 414.01e-6, "write_latency_p50": 347e-6,
        "write_latency_p95": 701e-6, "write_latency_p99": 1598e-6, "write_ios": 4376, "elapsed": 2.001,
        "user_cpu": 0.069, "system_cpu": 0.153, "context_switches": 5197, "major_faults": 0, "minor_faults": 12,
    },
    "fio/io_uring-randread.json": {
        "read_bandwidth": 294314282, "read_iops": 71854.072964, "bytes read": 588922880, "elapsed": 2.001,
        "read_latency_mean": 222307.893935e-9, "read_latency_p99": 716800e-9,
    },
    "fio/json-and-normal.stdout": {
        "read_bandwidth": 1078969507, "read_iops": 1028.985507, "bytes read": 2159017984, "elapsed": 2.001,
        "read_latency_mean": 968174.722681e-9, "read_completion_latency_mean": 967845.015542e-9,
        "read_latency_p50": 913408e-9, "read_latency_p95": 1220608e-9, "read_latency_p99": 1581056e-9,
        "read_ios": 2059, "disk_utilization": 0.92871287,
    },
    "fio/psync-randread-buffered.jsonplus": {
        "read_bandwidth": 64090834, "read_iops": 15647.176412, "bytes read": 128245760, "elapsed": 2.001,
        "read_latency_mean": 63199.388566e-9,
    },
    "fio/psync-randread-direct.jsonplus": {
        "read_bandwidth": 59724633, "read_iops": 14581.209395, "bytes read": 119508992, "elapsed": 2.001,
        "read_latency_mean": 68050.735031e-9,
    },
    "fio/psync-randwrite-fsync1.jsonplus": {
        "write_bandwidth": 17024703, "write_iops": 4156.421789, "bytes write": 34066432, "elapsed": 2.001,
        "write_latency_mean": 68615.527835e-9,
    },
    "fs_mark/S0-t4.stdout": {
        "file_rate": 82023.6, "bytes write": 400000, "app_overhead": 0.017394, "space_used": 0.69,
        "elapsed": 4000 / 82023.6,
    },
    "fs_mark/S1-L2.stdout": {
        "file_rate iteration 1": 4695.6, "file_rate iteration 2": 4747.1,
        "file_rate": 400 / (200 / 4695.6 + 200 / 4747.1), "bytes write": 400 * 4096,
        "app_overhead": 0.001017 + 0.001036, "space_used": 0.69, "elapsed": 200 / 4695.6 + 200 / 4747.1,
    },
    "fs_mark/S2-L2.stdout": {
        "file_rate iteration 1": 5631.1, "file_rate iteration 2": 26277.8,
        "file_rate": 400 / (200 / 5631.1 + 200 / 26277.8), "bytes write": 400 * 4096, "space_used": 0.69,
        "app_overhead": 0.000537 + 0.000579, "elapsed": 200 / 5631.1 + 200 / 26277.8,
    },
    "fs_mark/verbose.stdout": {
        "file_rate": 2598.6, "elapsed": 400 / 2598.6, "bytes write": 400 * 4096, "app_overhead": 0.010260,
        "space_used": 0.69, "operation_latency_min creat": 13e-6, "operation_latency creat": 177e-6,
        "operation_latency_max creat": 3780e-6, "operation_latency_min write": 4e-6, "operation_latency write": 9e-6,
        "operation_latency_max write": 300e-6, "operation_latency_min fsync": 149e-6,
        "operation_latency fsync": 547e-6, "operation_latency_max fsync": 8634e-6,
        "operation_latency_min close": 1e-6, "operation_latency close": 8e-6, "operation_latency_max close": 337e-6,
    },
    "pg_test_fsync/ext4.stdout": {
        f"sync_rate {label}": rate
        for label, rate in {
            "one 8kB: open_datasync": 12043.664, "one 8kB: fdatasync": 11886.728, "one 8kB: fsync": 9415.482,
            "one 8kB: open_sync": 10284.972, "two 8kB: open_datasync": 5369.495, "two 8kB: fdatasync": 10601.299,
            "two 8kB: fsync": 10382.380, "two 8kB: open_sync": 5800.486, "write sizes: 1 * 16kB open_sync": 11142.409,
            "write sizes: 2 * 8kB open_sync": 5991.185, "write sizes: 4 * 4kB open_sync": 3241.956,
            "write sizes: 8 * 2kB open_sync": 1632.708, "write sizes: 16 * 1kB open_sync": 778.158,
            "descriptor: write, fsync, close": 10180.033, "descriptor: write, close, fsync": 9629.835,
            "non-sync: write": 1317471.841,
        }.items()
    },
}  # fmt: skip
"""Recording to figures that must be among those read."""

COMPLETE = {
    "dd/write-1m.stderr": 3, "fio/human-randrw.stdout": 26, "fio/human-write.stdout": 15, "fs_mark/S0-t4.stdout": 5,
    "fs_mark/S1-L2.stdout": 7, "fs_mark/S2-L2.stdout": 7, "fs_mark/verbose.stdout": 17, "pg_test_fsync/ext4.stdout": 32,
    "filebench/samples/fileserver.stdout": 62, "filebench/samples/seqread.stdout": 11,
}  # fmt: skip
"""How many figures there are in all."""

REFUSED: dict[str, tuple[str, str]] = {
    "dd/einval.stderr": ("line 1", "Invalid argument"),
    "dd/no-space.stderr": ("line 1", "No space left on device"),
    "filebench/samples/hang-under-aslr.stdout": ("line 11", "hung, before it measured"),
    "filebench/samples/killed.stdout": ("line 12", "ended while it measured"),
    "filebench/samples/no-run-command.stdout": ("line 4", "no run line"),
    "filebench/samples/no-space.stdout": ("line 9", "ran out of space"),
    "filebench/samples/syntax-error.stdout": ("line 3", "could not read the workload"),
    "fio/bad-directory.stderr": ("line 1", "/nonexist is not a directory"),
    "fio/bad-directory.stdout": ("line 1", "No such file or directory"),
    "fio/no-space.stderr": ("line 1", "No space left on device"),
    "fio/no-space.stdout": ("line 11", "fio failed with error 28"),
    "fs_mark/bad-option.stdout": ("line 18", "printed its usage"),
    "fs_mark/no-space.stdout": ("line 11", "Insufficient free space"),
}
"""Recording to the line of its error, and words that must be in it."""


def outputs(name: str) -> list[Output]:
    return read_log(name.split("/")[0], decoded((DATA / name).read_bytes()), where=name)


def by_name(output: Output) -> Figures:
    return {f"{row.metric} {row.label}".strip(): row.value for row in output.measurements}


@every_row("name", READ)
def test_a_recording_gives_the_figures_that_a_person_reads(name: str) -> None:
    (output,) = outputs(name)
    assert output.problem is None, str(output.problem)
    found = by_name(output)
    assert {key: found.get(key) for key in READ[name]} == pytest.approx(READ[name], rel=1e-7)
    assert len(found) == COMPLETE.get(name, len(found))


@every_row("name", REFUSED)
def test_a_failed_run_gives_no_figure_and_the_reason_with_its_line(name: str) -> None:
    (output,) = outputs(name)
    assert output.figures == ()
    assert output.problem is not None
    line, words = REFUSED[name]
    assert output.problem.where.split(", ")[:2] == [name, line]
    assert words in str(output.problem)


COMPUTED = {
    "dd": {"bandwidth"},
    "filebench": {"elapsed", "operation_rate"},
    "fio": set[str](),
    "fs_mark": {"file_rate", "elapsed", "bytes", "app_overhead"},
    "pg_test_fsync": {"operation_latency"},
}
"""Metrics of a tool that it does not print as they are: they follow from several figures, or from better ones."""
SCALES = (1, 1e3, 1e6, 1e9, 100, 1 / KIB, 1 / MIB, 1e-3)
"""What tools count in: base units, milli-, micro- and nanoseconds, per cent, KiB, MiB, thousands."""


@every_row("name", READ)
def test_every_printed_figure_stands_in_the_line_that_it_names(name: str) -> None:
    (output,) = outputs(name)
    lines = (DATA / name).read_text().splitlines()
    computed = COMPUTED[name.split("/")[0]]
    checked = 0
    for figure in output.figures:
        row, line = figure.measurement, lines[figure.line - 1]
        assert METRICS[row.metric] == row.unit
        number = r"\d+" if row.metric.endswith("_ios") else r"\d+(?:[.,]\d+)?(?:e-\d+)?"
        words = [float(word.replace(",", ".")) for word in re.findall(number, line)]
        if row.metric not in computed:
            checked += 1
            meant = [row.value * scale for scale in SCALES]
            off = 1 / 128 if row.metric in PERCENT_OF and name.endswith("plus") else 1e-6  # interpolated in its bin
            off = 1e-3 if row.metric.endswith("_iops") and name.endswith("stdout") else off  # of the number of I/Os
            assert any(each == pytest.approx(word, rel=off) for each in meant for word in words), (figure, line)
    assert checked
