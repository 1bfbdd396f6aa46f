"""sysbench, ioping, dbench and db_bench: what their recorded outputs say, and what of them is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mountlab.checks.asked import Stream, streams
from mountlab.core.errors import ParameterError, ParseError, ToolError, TrialError
from mountlab.core.model import Workload
from mountlab.programs import TOOLS
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
RNDRW = {"tool": "sysbench", "mode": "rndrw", "size": "64MiB", "files": 4, "time": "1s", "threads": 2}
SEQWR = {"tool": "sysbench", "mode": "seqwr", "size": "64MiB", "files": 4, "events": 4096, "fsync_every": 0}
READS = {"tool": "ioping", "operation": "read", "count": 200, "access": "direct"}
CLIENTS = {"tool": "dbench", "processes": 2, "time": "2s"}
SYNCED = {"tool": "dbench", "processes": 1, "time": "2s", "sync": True, "sync_directories": True, "fsync": True}
FILLSYNC = {"tool": "db_bench", "benchmark": "fillsync", "num": 200}
MIXED = {"tool": "db_bench", "benchmark": "readwhilewriting", "num": 20000, "threads": 2, "percentiles": True}


def workload(entry: dict[str, Any]) -> Workload:
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": dict(entry)}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


def figures(entry: dict[str, Any], text: str) -> dict[tuple[str, str], float]:
    own = workload(entry)
    rows = TOOLS[own.tool].parse(own, ToolOutput(exit_status=0, stdout=text, stderr="", files={}))
    return {(row.metric, row.label): row.value for row in rows}


def recorded(name: str) -> str:
    return (DATA / name).read_text()


# --- what the outputs say ---------------------------------------------------------------------------------------------


def test_bytes_of_sysbench_are_those_of_its_files_where_each_is_written_once() -> None:
    """It prints rates only; the time that divides them contains the flush at the end."""
    found = figures(SEQWR, recorded("sysbench/seqwr-ext4.stdout"))
    assert found["bytes", "write"] == 64 * 1024**2
    assert found["write_bandwidth", ""] == pytest.approx(16 * 1024 * found["write_iops", ""])
    assert ("bytes", "read") not in found


def test_the_bandwidth_of_sysbench_is_what_it_prints_in_mebibytes() -> None:
    text = recorded("sysbench/rndrw-ext4.stdout")
    found = figures(RNDRW, text)
    for side, word in (("read", "read"), ("write", "written")):
        printed = float(re.findall(rf"{word}, MiB/s: +([\d.]+)", text)[0])
        assert found[f"{side}_bandwidth", ""] / 1024**2 == pytest.approx(printed, abs=0.01)


def test_a_latency_that_sysbench_prints_as_zero_is_missing() -> None:
    text = recorded("sysbench/rndrw-ext4.stdout")
    assert re.search(r"min: +0\.00", text)
    assert ("operation_latency_min", "") not in figures(RNDRW, text)


def test_the_first_request_of_ioping_is_in_no_latency() -> None:
    found = figures(READS, recorded("ioping/read-direct-ext4.stdout"))
    assert found["operations", ""] == 200
    assert found["bytes", "read"] == 201 * 4096
    mean, least, most = (found[f"operation_latency{part}", ""] for part in ("", "_min", "_max"))
    assert least < mean < most
    assert 200 * mean < found["elapsed", ""]


def test_a_megabyte_of_dbench_is_a_million_bytes() -> None:
    text = recorded("dbench/ext4.stdout")
    printed = float(re.findall(r"Throughput ([\d.]+) MB/sec", text)[0])
    found = figures(CLIENTS, text)
    assert found["bandwidth", ""] == 1e6 * printed
    assert found["operation_latency_max", ""] == max(value for (name, _), value in found.items() if "max" in name)


def test_dbench_is_believed_where_its_semaphore_is_the_first_of_the_machine() -> None:
    """It takes number 0 for a failure, says so, and waits for its clients with it all the same."""
    text = recorded("dbench/ext4.stdout")
    said = text.replace("minimum warmup 0 secs\n", "minimum warmup 0 secs\nfailed to create barrier semaphore \n")
    assert said != text
    assert figures(CLIENTS, said) == figures(CLIENTS, text)


def test_fillsync_writes_to_as_many_keys_as_it_writes_records() -> None:
    """db_bench takes a thousandth of --num for its keys, and writes over these again and again."""
    text = recorded("db_bench/fillsync-ext4.stdout")
    assert "(200 ops)" in text
    found = figures(FILLSYNC, text)
    assert found["operations", ""] == 200
    assert found["elapsed", ""] == pytest.approx(200 * found["operation_latency", ""])
    assert found["bandwidth", ""] == 116 * found["operation_rate", ""]


def test_percentiles_of_db_bench_are_in_order() -> None:
    found = figures(MIXED, recorded("db_bench/readwhilewriting-ext4.stdout"))
    parts = [found[f"operation_latency_{part}", ""] for part in ("p50", "p99", "p99_9")]
    assert parts == sorted(parts)
    assert found["operations", ""] == 40_000


# --- output of other work ---------------------------------------------------------------------------------------------

OTHER = [
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"threads": 3}, ToolError, "Number of threads: 3"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"bs": "8KiB"}, ToolError, "Block size 8KiB"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"files": 8}, ToolError, "8 files, 8MiB each"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"fsync_every": 10}, ToolError, "each 10 requests"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"fsync_all": True}, ToolError, "after each write"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"flags": "direct"}, ToolError, "flags: directio"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"mode": "rndwr"}, ToolError, "Doing random write test"),
    ("sysbench/rndrw-ext4.stdout", RNDRW, {"time": "2s"}, ParseError, "2 s or more"),
    ("sysbench/seqwr-ext4.stdout", SEQWR, {"events": 4095}, ParseError, "4095"),
    ("ioping/read-direct-ext4.stdout", READS, {"count": 199}, ToolError, "199 counted, and 1 more made"),
    ("ioping/read-direct-ext4.stdout", READS, {"count": None, "time": "9s"}, ToolError, "9 s or more"),
    ("dbench/ext4.stdout", CLIENTS, {"processes": 3}, ToolError, "by 3 clients, 3 processes"),
    ("dbench/ext4.stdout", CLIENTS, {"sync": True}, ToolError, "(sync open)"),
    ("dbench/sync-tmpfs.stdout", SYNCED, {"sync_directories": False}, ToolError, "client.txt (sync open) by"),
    ("db_bench/readwhilewriting-ext4.stdout", MIXED, {"threads": 1}, ToolError, "20000 operations"),
    ("db_bench/readwhilewriting-ext4.stdout", MIXED, {"benchmark": "readrandom"}, ToolError, "of readrandom"),
    ("db_bench/readwhilewriting-ext4.stdout", MIXED, {"value_size": "1KiB"}, ToolError, "MiB/s of records"),
    ("db_bench/readwhilewriting-ext4.stdout", MIXED, {"compression": "zstd"}, ToolError, "Compression: ZSTD"),
]


@every_row(("name", "entry", "changes", "error", "allowed"), OTHER)
def test_the_output_of_other_work_is_refused_with_what_was_asked(
    name: str, entry: dict[str, Any], changes: dict[str, Any], error: type[TrialError], allowed: str
) -> None:
    asked = {key: value for key, value in {**entry, **changes}.items() if value is not None}
    with pytest.raises(error) as caught:
        figures(asked, recorded(name))
    assert allowed in caught.value.allowed


SPOILT = [
    (RNDRW, "sysbench/rndrw-ext4.stdout", "99th percentile", "95th percentile", "not whole"),
    (READS, "ioping/read-direct-ext4.stdout", "\n", "\n1 2 3 4 5 6 7 8 9 10\n", "cannot be read"),
    (CLIENTS, "dbench/ext4.stdout", "releasing", "[9] write failed on handle 9 (No space left on device)\nreleasing",
     "a client of dbench failed"),
    (CLIENTS, "dbench/ext4.stdout", "Throughput", "Thorughput", "not whole"),
    (MIXED, "db_bench/readwhilewriting-ext4.stdout", "20000 found", "20001 found", "did not do what was asked"),
    (MIXED, "db_bench/readwhilewriting-ext4.stdout", "Percentiles", "Precentiles", "no percentiles"),
    (MIXED, "db_bench/readwhilewriting-ext4.stdout", "micros/op", "millis/op", "cannot be read"),
]  # fmt: skip


@every_row(("entry", "name", "old", "new", "what"), SPOILT)
def test_an_output_that_is_not_whole_gives_no_figure(
    entry: dict[str, Any], name: str, old: str, new: str, what: str
) -> None:
    text = recorded(name)
    assert old in text
    with pytest.raises(TrialError, match=what):
        figures(entry, text.replace(old, new))


def test_what_db_bench_says_of_its_progress_is_no_reason() -> None:
    said = "... finished 100 ops\r... finished 200 ops\rput error: IO error: No space left on device\n"
    output = ToolOutput(exit_status=1, stdout="", stderr=said, files={})
    with pytest.raises(ToolError, match="exit status 1") as caught:
        TOOLS["db_bench"].parse(workload(FILLSYNC), output)
    assert caught.value.evidence == "put error: IO error: No space left on device"


# --- what cannot be asked ---------------------------------------------------------------------------------------------

REFUSED = [
    ({**RNDRW, "events": 9}, "time", "both time and events", "one of them"),
    ({**RNDRW, "time": None}, "time", "neither time nor events", "one of them"),
    ({**RNDRW, "time": "1.5s"}, "time", "1.5 s", "1s to 3600s"),
    ({**RNDRW, "mode": "rndwr", "read_ratio": "2"}, "read_ratio", "'2'", "of mode: rndrw"),
    ({**RNDRW, "read_ratio": "half"}, "read_ratio", "'half'", "such as '1.5'"),
    ({**SEQWR, "cache": "warm"}, "cache", "'warm'", "warm for reads"),
    ({**READS, "time": "1s"}, "count", "both count and time", "one of them"),
    ({**READS, "count": None}, "count", "neither count nor time", "one of them"),
    ({**READS, "count": 0}, "count", "0", "1 to"),
    ({**CLIENTS, "processes": 0}, "processes", "0", "1 to 1000"),
    ({**CLIENTS, "time": None}, "time", "nothing", "such as '60s'"),
    ({**FILLSYNC, "disable_wal": True}, "disable_wal", "true", "benchmark: fillsync"),
    ({**FILLSYNC, "memtable": "1KiB"}, "memtable", "1024", "65536 to"),
    ({**FILLSYNC, "cache": "warm"}, "cache", "'warm'", "warm for reads"),
]


@every_row(("entry", "key", "got", "allowed"), REFUSED)
def test_what_a_tool_cannot_do_is_refused_before_it_runs(
    entry: dict[str, Any], key: str, got: str, allowed: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        workload({name: value for name, value in entry.items() if value is not None})
    assert caught.value.where.endswith(f"workloads.w.{key}")
    assert got in caught.value.got
    assert allowed in caught.value.allowed


@every_row(
    ("entry", "kind", "refused"),
    [
        ({**RNDRW, "flags": "direct"}, "ramfs", "leave flags out"), (RNDRW, "ramfs", None),
        ({**RNDRW, "flags": "direct"}, "ext4", None), (READS, "ramfs", "leave access out"), (READS, "xfs", None),
        ({**MIXED, "direct": True}, "ramfs", "leave direct out"), (MIXED, "ramfs", None), (CLIENTS, "ramfs", None),
    ],
)  # fmt: skip
def test_direct_io_is_refused_on_ramfs(entry: dict[str, Any], kind: str, refused: str | None) -> None:
    own = workload(entry)
    said = TOOLS[own.tool].refuses(kind, own)
    assert (said is None) if refused is None else (refused in (said or ""))


def test_that_fillsync_has_other_arguments_than_its_name_is_remarked() -> None:
    (remark,) = TOOLS["db_bench"].remarks(workload(FILLSYNC))
    assert "a thousandth" in remark
    assert TOOLS["db_bench"].remarks(workload(MIXED)) == ()


# --- what the checks take from the options ----------------------------------------------------------------------------

PLAIN_READ, FLUSHED = Stream(False, False, False, True), Stream(True, False, False, True)


@every_row(
    ("entry", "expected"),
    [
        (SEQWR, [FLUSHED]),
        ({**SEQWR, "fsync_end": False}, [replace(FLUSHED, flushed=False)]),
        ({**SEQWR, "events": 5000}, [replace(FLUSHED, again=True)]),
        ({**SEQWR, "mode": "seqrd", "flags": "direct"}, [replace(PLAIN_READ, direct=True)]),
        (RNDRW, [replace(PLAIN_READ, again=True), replace(FLUSHED, again=True)]),
        (READS, [replace(PLAIN_READ, direct=True)]),
        ({**READS, "operation": "write", "access": "uncached"}, [FLUSHED]),
        ({**READS, "operation": "write", "access": "cached"}, [replace(FLUSHED, again=True, flushed=False)]),
        (CLIENTS, []), (MIXED, []),
    ],
)  # fmt: skip
def test_what_a_tool_reads_and_writes_is_known_from_its_options(entry: dict[str, Any], expected: list[Stream]) -> None:
    assert streams(workload(entry)) == expected
