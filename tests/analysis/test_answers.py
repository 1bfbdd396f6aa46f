"""The answer by the parts of a question, and what was expected held against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mountlab.analysis import answers
from mountlab.checks.asked import part_of
from mountlab.core.findings import Caveat
from mountlab.core.model import Design, Workload
from rows import every_row
from synthetic_run import SyntheticRun, comparison, synthetic_run

COLD = {"workload": "dd-read", "factors": {"cache": "cold"}, "metric": "read_bandwidth"}
WARM = {"workload": "dd-read", "factors": {"cache": "warm"}, "metric": "read_bandwidth"}
RANDOM = {"workload": "fio", "factors": {"rw": "randwrite"}, "metric": "write_bandwidth", "tool": "fio"}
LOSS = {"ratio": 0.5, "low": 0.4, "high": 0.6, "verdict": "slower"}
OPEN = {"ratio": 1.2, "low": 0.7, "high": 2.0, "verdict": "undecided"}
SAME = {"ratio": 1.0, "low": 0.99, "high": 1.01, "verdict": "same"}


def run_of(*changes: dict[str, Any], **run: Any) -> SyntheticRun:
    base = synthetic_run(caveats=False)
    return replace(base, comparisons=[comparison(**each) for each in changes], **run)


def told(*changes: dict[str, Any], **run: Any) -> list[str]:
    return [str(line) for line in answers.lines(run_of(*changes, **run))]


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_row(
    ("tool", "options", "metric", "part"),
    [
        ("dd", {"direction": "write", "conv": "fdatasync"}, "write_bandwidth", "flushed writes"),
        ("dd", {"direction": "write"}, "write_bandwidth", "unflushed writes"),
        ("dd", {"direction": "write", "oflag": "direct"}, "write_bandwidth", "direct writes"),
        ("dd", {"direction": "read"}, "read_bandwidth", "cold reads"),
        ("dd", {"direction": "read", "cache": "warm"}, "read_bandwidth", "warm reads"),
        ("dd", {"direction": "read", "cache": "as_is"}, "read_bandwidth", "reads"),
        ("fio", {"rw": "randread", "direct": True}, "read_iops", "direct reads"),
        ("fio", {"rw": "randrw", "end_fsync": True}, "write_iops", "flushed writes"),
        ("fio", {"rw": "randread"}, "read_latency_p99", "cold reads: 99th-percentile read completion latency"),
        ("fs_mark", {"sync": "fsync"}, "file_rate", "file rate"),
    ],
)
def test_the_part_of_a_question(tool: str, options: dict[str, Any], metric: str, part: str) -> None:
    workload = Workload(name="w", tool=tool, options=options)
    assert part_of(workload, metric, Design(drop_caches=True)) == part


def test_of_logs_from_elsewhere_nobody_knows_what_was_flushed() -> None:
    workload = Workload(name="w", tool="dd", options={"direction": "write"})
    assert part_of(workload, "write_bandwidth", Design(), known=False) == "writes"


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_part_of_the_question_is_a_line_with_the_range_of_its_ratios() -> None:
    found = told(
        {},
        {**RANDOM, "ratio": 2.0, "low": 1.8, "high": 2.2},
        {**COLD, "ratio": 63.0, "low": 41.0, "high": 83.0},
        {**WARM, **LOSS},
    )
    assert found == [
        "Flushed writes: tmpfs 2.0 to 6.9 times as fast as ext4: faster in both comparisons.",
        "Cold reads: tmpfs 63 times [41, 83] as fast as ext4: faster.",
        "Warm reads: tmpfs at 0.50 [0.40, 0.60] of ext4's speed: slower.",
        "n = 5 blocks each. Verdicts and intervals hold at 95\u00a0% for all 4 comparisons together. "
        "A range covers the ratios only: the plot shows their intervals.",
    ]


def test_the_interval_is_the_one_that_holds_together_with_all_others() -> None:
    assert "[4.1, 12.6]" in told({"low_all": 4.1, "high_all": 12.6}, COLD)[0]


def test_file_systems_with_the_same_verdicts_share_a_clause() -> None:
    both = [{}, {"candidate": "ramfs", "ratio": 5.0, "low": 4.6, "high": 5.4}]
    assert told(*both, COLD)[0] == (
        "Flushed writes: tmpfs 6.9 times [6.5, 7.3] and ramfs 5.0 times [4.6, 5.4] as fast as ext4: each faster."
    )


def test_braces_in_a_name_stay_as_they_are() -> None:
    assert told({"candidate": "fs{0}{times}"}, COLD)[0].startswith("Flushed writes: fs{0}{times} 6.9 times")


def test_what_points_the_other_way_in_a_part_is_told_by_itself() -> None:
    found = told({}, {**RANDOM, **LOSS}, {**RANDOM, "factors": {"rw": "write"}}, COLD)
    assert "faster in 2 and slower in 1 (fio rw=randwrite) of 3 comparisons" in found[0]
    assert "But tmpfs writes at 0.50 [0.40, 0.60] of ext4's speed under fio rw=randwrite: slower." in found


def test_workloads_that_answer_one_part_are_parts_themselves() -> None:
    assert [line.split(":")[0] for line in told({}, RANDOM)[:2]] == ["Dd-write", "Fio"]


def test_where_nothing_is_decided_that_comes_first() -> None:
    assert told(OPEN, {**COLD, **OPEN})[0].startswith("Nothing is shown to be faster or slower than ext4")


def test_a_doubt_is_told_with_the_part_that_it_weakens_and_no_other() -> None:
    found = told({}, RANDOM, COLD, caveats=[DOUBT])
    assert found[0].endswith(": faster in both comparisons. 1 of 2 comparisons is doubtful: implausible.")
    assert "oubtful" not in "".join(found[1:])


def test_noise_is_no_doubt() -> None:
    note = Caveat(code="noisy", severity="note", scope="run", message="m")
    assert "oubtful" not in "".join(told({}, COLD, caveats=[note]))


def test_nothing_compared_says_why() -> None:
    run = synthetic_run(caveats=False)
    alone = replace(run, comparisons=[], sweep=replace(run.sweep, baseline=None))
    assert [str(each) for each in answers.lines(alone)] == [
        "No baseline is named, so nothing is compared; the means are below."
    ]


def test_many_file_systems_make_no_long_line() -> None:
    many = [{"candidate": f"fs{i}", "ratio": 2.0 + i, "low": 1.9 + i, "high": 2.1 + i} for i in range(9)]
    line = told(*many, COLD)[0]
    assert "the other 6 2.0 to 7.0 times" in line
    assert "fs3" not in line


# ── what was expected ────────────────────────────────────────────────────────────────────────────────────────────────


DOUBT = Caveat(code="implausible", severity="warning", scope="cell", subject="ext4/dd-write", message="m")


def held(expected: dict[str, dict[str, Any]], *changes: dict[str, Any], **run_parts: Any) -> list[tuple[str, str]]:
    run = run_of(*changes, **run_parts)
    own = replace(run, sweep=replace(run.sweep, expected=expected))
    return [(each.state, each.text) for each in answers.expectations(own)]


def test_an_expectation_is_confirmed_by_every_comparison_only() -> None:
    claim = {"flushed writes": {"": "faster"}}
    assert held(claim, {}, RANDOM) == [("confirmed", "in both comparisons")]
    assert held(claim, {}, RANDOM, caveats=[DOUBT]) == [("confirmed", "in both comparisons, 1 of them doubtful")]
    assert held(claim, {}, caveats=[DOUBT]) == [("confirmed", "in its only comparison, doubtful")]
    assert held(claim, {}, {**RANDOM, **OPEN}) == [("open", "undecided in 1 of 2 comparisons")]
    assert held(claim, {**OPEN}, {**RANDOM, **LOSS}) == [
        (
            "contradicted",
            "in 1 of 2 comparisons: tmpfs is slower under fio rw=randwrite, at 0.50 [0.40, 0.60] of ext4's speed",
        )
    ]


def test_same_is_confirmed_by_the_margin_and_not_by_a_wide_interval() -> None:
    claim = {"warm reads": {"": "same"}}
    assert held(claim, {**WARM, **SAME}) == [("confirmed", "in its only comparison")]
    assert held(claim, {**WARM, **OPEN})[0][0] == "open"
    assert held(claim, WARM)[0][0] == "contradicted"


def test_an_expectation_is_about_its_own_part_and_file_system() -> None:
    both = [{}, {"candidate": "ramfs", **LOSS}, {**COLD, **LOSS}]
    assert held({"flushed writes": {"tmpfs": "faster", "ramfs": "slower"}}, *both) == [
        ("confirmed", "in its only comparison"),
        ("confirmed", "in its only comparison"),
    ]
    assert held({"dd-read": {"": "slower"}}, *both) == [("confirmed", "in its only comparison")]


def test_what_was_not_measured_is_neither_confirmed_nor_contradicted() -> None:
    assert held({"direct reads": {"": "faster"}}, {}) == [("not measured", "no comparison of it has an interval")]
