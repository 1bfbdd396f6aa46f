"""The answer for a terminal."""

from __future__ import annotations

import math
from typing import Any

from mountlab.core.findings import Caveat
from mountlab.report.terminal import answer_text, run_answer
from searched_run import searched_run
from sweeps import sweep
from synthetic_run import comparison, synthetic_run

SWEEP = sweep(design={"level": 0.9, "smallest_effect": 0.05}).sweep


def caveat(**changes: str) -> Caveat:
    parts = {"code": "cache-served", "severity": "warning", "message": "the page cache answered.", "scope": "cell"}
    return Caveat(**{**parts, "subject": "a", **changes})  # type: ignore[arg-type]


def test_the_question_comes_first_then_a_row_a_comparison() -> None:
    text = answer_text(
        SWEEP, [comparison(), comparison(candidate="ramfs", ratio=1.001, low=0.99, high=1.01, verdict="same")], []
    )
    lines = text.splitlines()
    assert lines[:2] == ["Does it work?", ""]
    assert lines[2].split() == ["workload", "compared", "ratio", "90%", "interval", "n", "verdict"]
    assert lines[3].startswith("dd-write  tmpfs / ext4  6.9")
    assert "[6.5, 7.3]" in lines[3]
    assert lines[3].endswith("faster")
    assert "ramfs / ext4" in lines[4]
    assert "the same within 5" in lines[4]
    assert lines[-1] == "No caveats."


def test_the_answer_begins_with_a_sentence_and_its_trust() -> None:
    lines = run_answer(synthetic_run(caveats=False)).splitlines()
    assert lines[2].startswith("tmpfs and ramfs are faster than ext4 for flushed writes and cold reads")
    assert lines[3:5] == ["Trust: high. No caveat weakens the answer, and 2 checks passed.", ""]


def test_the_metric_is_named_where_a_workload_has_several() -> None:
    lines = answer_text(SWEEP, [comparison(), comparison(metric="mkfs_time")], []).splitlines()
    assert lines[2].split()[:3] == ["workload", "metric", "compared"]
    assert [line.split()[1] for line in lines[3:5]] == ["write_bandwidth", "mkfs_time"]


def test_a_single_caveat_says_what_was_seen_and_several_of_a_kind_are_counted() -> None:
    seen = "the page cache answered " + "again and " * 10 + "again"
    one = answer_text(SWEEP, [comparison()], [caveat(message=f"{seen}. Drop the caches before each trial.")])
    assert one.splitlines()[-1] == f"warning: Cache served (1 cell): {seen}"
    two = answer_text(SWEEP, [comparison()], [caveat(), caveat(subject="b")])
    assert two.splitlines()[-1].endswith("(2 cells)")


def test_of_errors_in_several_cells_the_first_says_why() -> None:
    """Defect: three cells failed for one reason, and the last lines of the terminal did not say it."""
    why = "1 of its 4 trials gave no figure: the preparation failed: filebench has no workload x"
    failed = [caveat(code="failed-trials", severity="error", subject=name, message=why) for name in ("a/w", "b/w")]
    assert f"error: Failed trials (2 cells): a/w: {why}" in answer_text(SWEEP, [comparison()], failed)


def test_of_unequal_work_in_many_cells_the_first_are_named_and_the_others_counted() -> None:
    unequal = [caveat(code="unequal-work", subject=f"{n}/w", message=f"{n} differs") for n in range(1, 9)]
    shown = answer_text(SWEEP, [comparison()], unequal).splitlines()[-8:]
    assert shown[0].endswith("Unequal work (8 cells)")
    assert shown[1:] == [*(f"  {n}/w: {n} differs" for n in range(1, 7)), "  and 2 more cells, in the report"]


def test_the_worst_caveats_come_first_and_notes_are_one_line_of_their_names() -> None:
    notes = [caveat(severity="note", code=code) for code in ("loop-image", "noisy")]
    notes.append(caveat(severity="note", code="loop-image", subject="b"))
    caveats = [*notes, caveat(severity="error", code="too-few"), caveat()]
    error, warning, note = answer_text(SWEEP, [comparison()], caveats).splitlines()[-3:]
    assert (error.partition(":")[0], warning.partition(":")[0]) == ("error", "warning")
    assert note == "2 notes: Loop image (2 cells), Noisy (1 cell)"


def test_without_an_interval_or_a_comparison_the_answer_says_why() -> None:
    none: dict[str, Any] = {"low": math.nan, "high": math.nan, "verdict": "undecided"}
    rows = [comparison(**none, n=1), comparison(**none, n=0, ratio=math.nan)]
    one, neither = answer_text(SWEEP, rows, []).splitlines()[3:5]
    assert "[" not in one
    assert one.endswith("1  none: n is below 2")
    assert neither.endswith("0  none: no block has both")
    nothing = answer_text(SWEEP, [], [])
    assert "There is one file system only, so nothing is compared; its means are in the report." in nothing


def test_rows_of_one_metric_are_told_apart_by_their_label() -> None:
    """pg_test_fsync gives a rate for each of sixteen methods."""
    rows = [comparison(metric="sync_rate", label="one 8kB: fsync"), comparison(metric="sync_rate", label="")]
    lines = answer_text(SWEEP, rows, []).splitlines()
    assert lines[3].startswith("dd-write (one 8kB: fsync)  tmpfs / ext4")
    assert lines[4].startswith("dd-write                   tmpfs / ext4"), "columns stand under each other"


def test_the_answer_of_a_search_is_a_sentence_with_its_interval_and_a_row() -> None:
    lines = [" ".join(line.split()) for line in run_answer(searched_run("ext4", "xfs")).splitlines()]
    assert lines[2:8] == [
        "At read p99 ≤ 5 ms, ext4 takes 3 080 [2 930, 3 230] requests/s; xfs takes 3 980 [3 780, 4 180] requests/s, "
        "1.29 times as many [1.17, 1.43]: faster.",
        "Trust: high. No caveat weakens the answer.",
        "",
        "workload file system capacity, requests/s 95% interval search",
        "mail ext4 3 080 [2 930, 3 230] 24 trials, precise",
        "mail xfs 3 980 [3 780, 4 180] 24 trials, precise",
    ]


def test_of_a_capacity_without_a_bound_the_terminal_says_what_is_known() -> None:
    run = searched_run("ext4", "tmpfs", capacities={"tmpfs": (math.nan, 12000.0, math.inf)})
    text = " ".join(run_answer(run).split())
    assert "tmpfs takes at least 12 000 requests/s" in text
    assert "mail tmpfs ≥ 12 000 24 trials" in text
