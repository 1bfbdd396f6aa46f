"""SQLite: figures of a recorded trial, and trials in which it did not work as was asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import sweep

DATA = Path(__file__).parents[1] / "data" / "sqlite"
TOOL = TOOLS["sqlite"]
ASKED = {"tool": "sqlite", "rows": 500, "transaction": 5, "journal_mode": "wal"}
TEXTS = {name: (DATA / f"ext4-wal.{name}").read_text() for name in ("stdout", "pragmas")}


def workload(**options: Any) -> Workload:
    (own,) = sweep(workloads={"w": {**ASKED, **options}}).sweep.workloads
    return own


def parse(texts: dict[str, str] = TEXTS, **options: Any) -> dict[tuple[str, str], Measurement]:
    output = ToolOutput(exit_status=0, stdout=texts["stdout"], stderr="", files=texts)
    return {(row.metric, row.label): row for row in TOOL.parse(workload(**options), output)}


def test_rates_are_commits_and_reads_by_the_time_of_each_operation() -> None:
    rows = parse()
    stamps = {line.split()[0]: line.split(":")[1].split() for line in TEXTS["stdout"].splitlines()}
    for name, number in (("insert", 100), ("update", 100), ("select", 500)):
        seconds = (int(stamps[name][2]) - int(stamps[name][1])) / 1e9
        assert rows["operation_rate", name].value == pytest.approx(number / seconds)
        assert rows["elapsed", name].value == pytest.approx(seconds)
    assert ("operation_rate", "vacuum") not in rows
    assert rows["elapsed", ""].value == pytest.approx(sum(rows["elapsed", name].value for name in stamps))


@every_row(
    ("name", "old", "new", "kind", "words"),
    [
        # A file system without shared maps of a file: SQLite keeps its journal, and says so only when it is asked.
        ("pragmas", "insert wal", "insert delete", ToolError, "SQLite does not work as was asked"),
        ("pragmas", "update wal 2", "update wal 1", ToolError, "update"),
        ("pragmas", "select wal 2 4096", "select wal 2 1024", ToolError, "journal_mode, synchronous, page_size"),
        ("pragmas", "vacuum .*\n", "", ParseError, "does not tell its settings"),
        ("stdout", "insert 500 50000", "insert 499 49900", ToolError, "500 rows, 50000 B"),
        ("stdout", "update 500", "update 0", ToolError, "update"),
        ("stdout", "select 500 50000", "select 500 0", ToolError, "select"),
        ("stdout", "vacuum .*\n", "", ParseError, "insert, update, select, vacuum"),
    ],
)
def test_a_trial_of_other_work_is_refused(name: str, old: str, new: str, kind: type[Exception], words: str) -> None:
    changed = re.sub(old, new, TEXTS[name], count=1)
    assert changed != TEXTS[name]
    with pytest.raises(kind, match=re.escape(words)):
        parse({**TEXTS, name: changed})


@every_row(
    ("changes", "key", "allowed"),
    [
        ({"row_size": "65KiB"}, "row_size", "1B to 64KiB"),
        ({"page_size": "3KiB"}, "page_size", "512B, 1KiB"),
        ({"transaction": 0}, "transaction", "a divisor of rows (500)"),
        ({"journal_mode": "none"}, "journal_mode", "delete, truncate, persist, memory, wal, off"),
    ],
)
def test_what_sqlite_cannot_do_is_refused(changes: dict[str, Any], key: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**changes)
    assert caught.value.where.endswith(f"workloads.w.{key}")
    assert allowed in caught.value.allowed


def test_a_vacuum_alone_is_answered_by_its_time() -> None:
    assert TOOL.main_metrics(workload(operations="vacuum")) == ("elapsed",)
    assert TOOL.main_metrics(workload()) == ("operation_rate",)
