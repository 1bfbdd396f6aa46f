"""pgbench and its server: figures of a recorded trial, and trials that did other work than was asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.programs.pgbench import read_server
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import sweep

DATA = Path(__file__).parents[1] / "data" / "pgbench"
TOOL = TOOLS["pgbench"]
SMALL = {"tool": "pgbench", "scale": 1, "sessions": 2, "threads": 2, "runtime": "1s", "wal_segment_size": "1MiB",
         "max_wal_size": "8MiB", "synchronous_commit": True}  # fmt: skip
TEXTS = {name: (DATA / f"ext4.{name}").read_text() for name in ("stdout", "server", "latencies")}


def workload(**options: Any) -> Workload:
    entry = {key: value for key, value in {**SMALL, **options}.items() if value is not None}
    (own,) = sweep(workloads={"w": entry}).sweep.workloads
    return own


def parse(texts: dict[str, str] = TEXTS, **options: Any) -> dict[tuple[str, str], Measurement]:
    output = ToolOutput(exit_status=0, stdout=texts["stdout"], stderr="", files=texts)
    return {(row.metric, row.label): row for row in TOOL.parse(workload(**options), output)}


def printed(pattern: str, name: str = "stdout") -> float:
    match = re.search(pattern, TEXTS[name])
    assert match
    return float(match[1])


def test_rate_latency_and_time_are_those_that_pgbench_prints() -> None:
    rows = parse()
    tps, count = printed(r"tps = (\S+)"), printed(r"processed: (\d+)")
    assert rows["operation_rate", ""].value == tps
    assert rows["operation_latency", ""].value == pytest.approx(printed(r"latency average = (\S+)") / 1e3)
    assert rows["operations", ""].value == count
    assert rows["elapsed", ""].value == pytest.approx(count / tps)
    syncs = printed(r"after wal_sync (\d+)", "server") - printed(r"before wal_sync (\d+)", "server")
    assert rows["sync_rate", "log"].value == pytest.approx(syncs / (count / tps))


def test_percentiles_are_of_each_transaction() -> None:
    lines = [list(map(int, line.split())) for line in TEXTS["latencies"].splitlines()]
    each = sorted(us for us, count in lines for _ in range(count))
    rows = {metric: row.value for (metric, _), row in parse().items() if metric.startswith("operation_latency_")}
    assert rows["operation_latency_min"] == pytest.approx(each[0] / 1e6)
    assert rows["operation_latency_max"] == pytest.approx(each[-1] / 1e6)
    for part, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
        rank = -(-len(each) * percent // 100)
        assert rows[f"operation_latency_{part}"] == pytest.approx(each[rank - 1] / 1e6)


def test_without_a_log_and_without_counters_of_the_log_the_rest_is_told() -> None:
    texts = {**TEXTS, "server": re.sub(r"(before|after) wal_sync .*\n", "", TEXTS["server"])}
    del texts["latencies"]
    assert {metric for metric, _ in parse(texts, percentiles=False)} == {
        "operation_rate", "operation_latency", "operations", "elapsed",
    }  # fmt: skip


OTHER: list[tuple[str, str, str, type[Exception], str]] = [
    ("stdout", r"number of clients: 2", "number of clients: 1", ToolError, "number of clients"),
    ("stdout", r"duration: 1 s", "duration: 2 s", ToolError, "duration"),
    ("stdout", r"TPC-B \(sort of\)", "select only", ToolError, "transaction type"),
    ("stdout", r"failed transactions: 0", "failed transactions: 3", ToolError, "3 transactions failed"),
    ("stdout", r"processed: \d+", "processed: 0", ToolError, "made no transaction"),
    ("stdout", r"tps = .*", "tps = many", ParseError, "tps"),
    ("server", r"synchronous_commit on", "synchronous_commit off", ToolError, "a setting is not in effect"),
    ("server", r"max_wal_size 8 MB", "max_wal_size 9 MB", ToolError, "a setting is not in effect"),
    ("server", r"setting max_wal_size .*\n", "", ToolError, "a setting is not in effect"),
    ("server", r"data_checksums off", "data_checksums on", ToolError, "data_checksums"),
    ("server", r"listen_addresses ", "listen_addresses localhost", ToolError, "no address"),
    ("server", r"after xact_commit \d+", "after xact_commit 40", ToolError, "committed fewer"),
    ("server", r"after xact_commit \d+\n", "", ParseError, "too little"),
    ("server", r"after xact_commit \d+", "after xact_commit x", ParseError, "line"),
    ("latencies", r"^(\d+) \d+", r"\1 9999", ParseError, "do not agree"),
    ("latencies", r"^(\d+) \d+", r"\1 x", ParseError, "line 1"),
]


@every_row(("name", "old", "new", "kind", "words"), OTHER)
def test_a_trial_of_other_work_is_refused(name: str, old: str, new: str, kind: type[Exception], words: str) -> None:
    changed = re.sub(old, new, TEXTS[name], count=1)
    assert changed != TEXTS[name]
    with pytest.raises(kind, match=re.escape(words)):
        parse({**TEXTS, name: changed})


def test_a_fixed_number_of_transactions_must_all_be_there() -> None:
    stdout = TEXTS["stdout"].replace("duration: 1 s", "number of transactions per client: 500")
    with pytest.raises(ToolError, match="ended early") as caught:
        parse({**TEXTS, "stdout": stdout}, runtime=None, transactions=500)
    assert caught.value.allowed == "1000 transactions"


@every_row(
    ("changes", "key", "allowed"),
    [
        ({"scale": 0}, "scale", "1 to 21474"),
        ({"sessions": 1001}, "sessions", "1 to 1000"),
        ({"runtime": "1.5s"}, "runtime", "without a fraction"),
        ({"runtime": None}, "runtime", "or transactions"),
        ({"transactions": 5}, "transactions", "one of the two"),
        ({"builtin": "tpcb-like", "script": "SELECT 1;"}, "script", "one of the two"),
        ({"shared_buffers": "1MB"}, "shared_buffers", "whole 8KiB"),
        ({"checkpoint_timeout": "10s"}, "checkpoint_timeout", "30 s to 86400 s"),
        ({"wal_segment_size": "3MiB"}, "wal_segment_size", "1, 2, 4 ... 1024 MiB"),
        ({"wal_segment_size": "16MiB"}, "max_wal_size", "32MiB"),
        ({"commit_delay": 100_001}, "commit_delay", "0 to 100000"),
    ],
)
def test_what_the_server_would_not_take_is_refused_before_it_starts(
    changes: dict[str, Any], key: str, allowed: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**changes)
    assert caught.value.where.endswith(f"workloads.w.{key}")
    assert allowed in caught.value.allowed


def test_the_words_on_and_off_of_yaml_are_settings() -> None:
    texts = [
        " ".join(TOOL.command(workload(wal_compression=raw), "/d", "/o").argv) for raw in ("lz4", False)
    ]  # fmt: skip
    assert ["wal_compression=lz4" in texts[0], "wal_compression=off" in texts[1]] == [True, True]


def test_what_the_server_counts_is_a_difference() -> None:
    report = read_server("setting fsync on \nbefore xact_commit 5\nafter xact_commit 25\n")
    assert (report.settings, report.grown) == ({"fsync": ("on", "")}, {"xact_commit": 20})
