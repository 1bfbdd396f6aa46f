"""What the answer about a planted cause is judged by, and the tables of planted causes in docs/data."""

from __future__ import annotations

import math
from pathlib import Path

from cause_parts import EXPECTED, Expected, Verdict
from cause_records import LOADED, QUIET, RECORDS, Record, keep, kept, named, shares_of, table
from causes import CAUSES
from mountlab.core.layers import LAYERS, QUANTITIES, THROUGH
from mountlab_dev import evidence
from rows import every_row

OURS = {"throttled reads", "processor hog", "frequent commits", "lock contention"}
"""Causes of the first tests of why, beside those whose runs are counted."""
JOURNAL = Expected("sync", ("*/journal", "journal/*"), "", consequence=("queue/own",))


def record(cause: str, verdict: Verdict, *, beside: str = QUIET, share: float = math.nan, named: bool = True) -> Record:
    return Record(
        cause=cause, beside=beside, run="20261128T101112-cause", verdict=verdict, named=[], share=share,
        low=share, high=share, work="", work_named=named, sentence="", ratio=2.0, parts={}, sums={}, withheld=[],
        cost={}, took_s=1.0, next_verdict=verdict if verdict != "wrong" else "right", load=1.0, kernel="6.18",
    )  # fmt: skip


@every_row(
    "layer, through, verdict",
    [
        ("device", "journal", "right"), ("journal", "own", "right"), ("queue", "own", "consequence"),
        ("queue", "writeback", "wrong"), ("device", "own", "wrong"), ("", "journal", "right"),
        ("journal", "", "right"), ("queue", "", "wrong"), ("", "own", "wrong"),
    ],
)  # fmt: skip
def test_the_largest_part_is_judged_by_layer_and_by_whom_it_was_for(layer: str, through: str, verdict: Verdict) -> None:
    assert JOURNAL.verdict([(layer, through)]) == verdict


@every_row(
    ("named", "verdict"),
    [
        ([], "not shown"),
        ([("journal", "own"), ("device", "journal")], "right"),
        ([("journal", "own"), ("device", "own")], "among several"),
        ([("device", "own"), ("queue", "own"), ("journal", "own")], "among several"),
        ([("queue", "own"), ("device", "own")], "consequence"),
        ([("device", "own"), ("queue", "own")], "wrong"),
    ],
)
def test_where_several_parts_are_named_all_of_them_are_to_be_right(
    named: list[tuple[str, str]], verdict: Verdict
) -> None:
    assert JOURNAL.verdict(named) == verdict


def test_each_planted_cause_has_parts_that_exist_and_leaves_some_that_are_wrong() -> None:
    assert [cause.name for cause in CAUSES] == list(EXPECTED)
    for name, expected in EXPECTED.items():
        verdicts = [expected.verdict_of(layer, through) for layer in LAYERS for through in THROUGH]
        assert "right" in verdicts, name
        assert verdicts.count("wrong") > len(verdicts) / 3, name
        assert expected.ratio in {"", *QUANTITIES}, name


def test_the_table_counts_verdicts_of_each_cause_quiet_and_loaded_apart() -> None:
    records = [
        record("write limit", "right", share=0.7),
        record("write limit", "consequence"),
        record("write limit", "right", share=0.9, beside=LOADED),
        record("fragmented file", "wrong", share=0.8, named=False),
        record("fragmented file", "not shown"),
    ]
    _, write_limit, fragmented, total = table(records)
    assert write_limit[3:] == (
        "1 / 0 / 1 / 0 / 0", "1 / 0 / 0 / 0 / 0", "2 / 0 / 1 / 0 / 0", "80%", "3 of 3", "2026-11-28", "6.18",
    )  # fmt: skip
    assert fragmented[3:] == ("0 / 0 / 0 / 1 / 1", "not run", "1 / 0 / 0 / 0 / 1", "", "1 of 2", "2026-11-28", "6.18")
    assert total[3:6] == ("1 / 0 / 1 / 1 / 1", "1 / 0 / 0 / 0 / 0", "3 / 0 / 1 / 0 / 1")


def test_records_are_kept_line_by_line_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "below" / "records.jsonl"
    assert kept(path) == []
    for verdict in ("right", "wrong"):
        keep(path, record("write limit", verdict, share=0.5))
    assert [each.verdict for each in kept(path)] == ["right", "wrong"]
    assert kept(path)[0].share == 0.5


def test_the_tables_in_git_are_those_of_the_records() -> None:
    records = kept(RECORDS)
    assert records
    assert evidence.rows("causes") == [list(row) for row in table(records)]
    assert evidence.rows("causes-named") == [list(row) for row in named(records)]


@every_row("beside", [QUIET, LOADED])
def test_the_planted_part_is_named_in_80_percent_of_the_records_and_a_wrong_one_in_2(beside: str) -> None:
    """Five runs of each cause, quiet and beside the load. What is mapped is never split."""
    records = [each for each in kept(RECORDS) if each.beside == beside]
    for cause in CAUSES:
        verdicts = [each.verdict for each in records if each.cause == cause.name]
        assert len(verdicts) >= (5 if cause.name not in OURS else 0), cause.name
        assert not cause.is_mapped or {*verdicts} == {"not shown"}
    named, wrong = shares_of(records, beside)
    assert named >= 0.8
    assert wrong <= 0.02


def test_what_is_mapped_and_the_other_load_do_not_count_in_the_shares() -> None:
    records = [
        record("write limit", "right"), record("tiny journal", "among several"), record("dirsync", "consequence"),
        record("compression", "wrong"), record("write limit", "wrong", beside=LOADED),
        record("memory limit, mapped reads", "not shown"),
    ]  # fmt: skip
    assert shares_of(records, QUIET) == (0.5, 0.25)
    assert shares_of(records, LOADED) == (0, 1)
    assert named(records)[1:] == [("quiet", "50.0%", "25.0%"), ("loaded", "0.0%", "100.0%")]
