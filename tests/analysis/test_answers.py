"""The answer by the parts of a question, and what was expected held against it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mountlab.analysis import answers
from mountlab.checks.asked import part_of
from mountlab.core.findings import Caveat
from mountlab.core.model import Design, Workload
from rows import every_row
from synthetic_run import SWEPT, SyntheticRun, comparison, synthetic_run

COLD = {"workload": "dd-read", "factors": {"cache": "cold"}, "metric": "read_bandwidth"}
WARM = {"workload": "dd-read", "factors": {"cache": "warm"}, "metric": "read_bandwidth"}
RANDOM = {"workload": "fio", "factors": {"rw": "randwrite"}, "metric": "write_bandwidth", "tool": "fio"}
LOSS = {"ratio": 0.5, "low": 0.4, "high": 0.6, "verdict": "slower"}
OPEN = {"ratio": 1.2, "low": 0.7, "high": 2.0, "verdict": "undecided"}
SAME = {"ratio": 1.0, "low": 0.99, "high": 1.01, "verdict": "same"}


def run_of(*changes: dict[str, Any], **run: Any) -> SyntheticRun:
    base = synthetic_run(caveats=False)
    return replace(base, comparisons=[comparison(**each) for each in changes], **run)


def sentence_of(*changes: dict[str, Any], **run: Any) -> str:
    return answers.sentence(run_of(*changes, **run))


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


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────

RAMFS: dict[str, Any] = {"candidate": "ramfs"}
UNUSABLE = {"verdict": "not usable"}
ABSENT = {"verdict": "undecided", "n": 0, "ratio": math.nan, "low": math.nan, "high": math.nan}


@every_row(
    ("changes", "sentence"),
    [
        ([{}], "tmpfs is faster than ext4 for flushed writes (×6.9)."),
        (
            [{}, RANDOM, COLD, {**WARM, **LOSS}],
            "tmpfs is faster than ext4 for flushed writes (×6.9 and ×6.9) and cold reads (×6.9), "
            "slower for warm reads (×0.50).",
        ),
        (
            [{}, COLD, RAMFS, {**COLD, **RAMFS}],
            "tmpfs and ramfs are faster than ext4 for flushed writes (×6.9) and cold reads (×6.9).",
        ),
        (
            [{}, {**COLD, **RAMFS, **OPEN}, {**RAMFS, **OPEN}],
            "tmpfs is faster than ext4 for flushed writes (×6.9); ramfs is undecided throughout.",
        ),
        (
            [{}, {**COLD, **OPEN}, {**WARM, **OPEN}],
            "tmpfs is faster than ext4 for flushed writes (×6.9), undecided for the rest.",
        ),
        (
            [{}, {**COLD, **SAME}],
            "tmpfs is faster than ext4 for flushed writes (×6.9), the same within 2\u00a0% for cold reads.",
        ),
        ([SAME, {**COLD, **SAME}], "tmpfs is the same within 2\u00a0% as ext4 throughout."),
        (
            [{}, {**RANDOM, **LOSS}, COLD],
            "tmpfs is faster than ext4 for dd-write (×6.9) and cold reads (×6.9), slower for fio rw=randwrite (×0.50).",
        ),
        (
            [{}, {**COLD, **UNUSABLE}],
            "tmpfs is faster than ext4 for flushed writes (×6.9), not to be used for cold reads.",
        ),
        (
            [{"candidate": "fs{0}"}, COLD],
            "tmpfs is faster than ext4 for cold reads (×13.8); fs{0} is faster for flushed writes (×6.9).",
        ),
        (
            [{}, {**COLD, **ABSENT}],
            "tmpfs is faster than ext4 for flushed writes (×6.9), not measured on both sides for cold reads.",
        ),
        ([ABSENT], "Nothing is compared: no block has a figure of ext4 and of another file system."),
        ([OPEN, {**COLD, **OPEN}], "No difference from ext4 is shown, in both comparisons."),
    ],
)
def test_the_answer_is_a_sentence(changes: list[dict[str, Any]], sentence: str) -> None:
    strengths = [{**change, "ratio": change.get("ratio", 6.9) * (1 + place)} for place, change in enumerate(changes)]
    assert sentence_of(*(strengths if "fs{0}" in sentence else changes)) == sentence


def test_what_a_caveat_weakens_only_looks_so() -> None:
    ramfs = {**RAMFS, **COLD}
    assert sentence_of({}, ramfs, caveats=[DOUBT]) == (
        "tmpfs looks faster than ext4 for flushed writes (×6.9); ramfs is faster for cold reads (×6.9)."
    )


def test_an_answer_of_low_trust_only_looks_so() -> None:
    run = run_of({}, {**COLD, **RAMFS, **OPEN}, {**RAMFS, **OPEN})
    assert answers.sentence(run, sure=False) == (
        "tmpfs looks faster than ext4 for flushed writes (×6.9); ramfs is undecided throughout."
    )


def test_workloads_that_answer_one_part_are_parts_themselves() -> None:
    assert sentence_of({}, {**RANDOM, **OPEN}) == "tmpfs is faster than ext4 for dd-write (×6.9), undecided for fio."


def test_many_comparisons_of_one_part_are_counted() -> None:
    run = synthetic_run(workloads=SWEPT, caveats=False)
    reads = [each for each in run.comparisons if each.candidate == "tmpfs" and each.metric == "read_bandwidth"]
    run.comparisons = [replace(each, verdict="faster" if place else "slower") for place, each in enumerate(reads)]
    assert answers.sentence(run) == (
        "tmpfs is faster than ext4 for cold reads in 5 of 6 comparisons, slower for cold reads in 1 of 6 comparisons."
    )


def test_many_levels_of_a_workload_are_counted_below_its_name() -> None:
    """Defect: `faster for 5 of 6 work`, of a workload `work` with six levels that was a part of the answer."""
    work = [replace(each, name="work") for each in SWEPT]
    run = synthetic_run(workloads=(*work, replace(SWEPT[0], name="other")), caveats=False)
    reads = [each for each in run.comparisons if each.candidate == "tmpfs" and each.metric == "read_bandwidth"]
    run.comparisons = [replace(each, verdict="faster" if place else "slower") for place, each in enumerate(reads)]
    assert "work in 5 of 6 comparisons" in answers.sentence(run)
    assert "slower for work in 1 of 6 comparisons" in answers.sentence(run)


def test_many_file_systems_make_no_long_sentence() -> None:
    verdicts = ["faster", "slower", "undecided"]
    many = [
        {**part, "candidate": f"fs{i}", "verdict": verdicts[i // 3 if part else i % 3]}
        for i in range(9)
        for part in ({}, COLD)
    ]
    assert sentence_of(*many).endswith("; 6 more file systems in the table.")


def test_many_file_systems_with_one_answer_are_counted() -> None:
    many = [{"candidate": f"fs{i}", "verdict": "undecided"} for i in range(4)]
    assert sentence_of({}, *many).endswith("; 4 file systems are undecided for flushed writes.")
    assert "fs0, fs1 and fs2 are undecided for flushed writes" in sentence_of({}, *many[:3])


def test_nothing_compared_says_why() -> None:
    run = synthetic_run(caveats=False)
    alone = replace(run, comparisons=[], sweep=replace(run.sweep, baseline=None))
    assert answers.sentence(alone) == "No baseline is named, so nothing is compared; the means are below."


def test_the_common_n_and_the_level_hold_for_all_ratios() -> None:
    assert answers.how_far(run_of({}, COLD)) == (
        "n = 5 blocks each. Verdicts and intervals hold at 95\u00a0% for all 2 ratios together. "
        "A ratio is the geometric mean of those within blocks, not the quotient of the means."
    )
    assert answers.how_far(run_of({}, {**COLD, "n": 4})).startswith("Verdicts and intervals")
    assert answers.how_far(run_of({})) == ""


# ── what was expected ────────────────────────────────────────────────────────────────────────────────────────────────


DOUBT = Caveat(code="implausible", severity="warning", scope="cell", subject="ext4/dd-write", message="m")


def held(expected: dict[str, dict[str, Any]], *changes: dict[str, Any], **run_parts: Any) -> list[tuple[str, str]]:
    run = run_of(*changes, **run_parts)
    own = replace(run, sweep=replace(run.sweep, expected=expected))
    return [(each.state, each.text) for each in answers.expectations(own)]


def test_an_expectation_is_confirmed_by_every_comparison_only() -> None:
    claim = {"flushed writes": {"": "faster"}}
    assert held(claim, {}, RANDOM) == [("confirmed", "held in both comparisons")]
    assert held(claim, {}, RANDOM, caveats=[DOUBT]) == [("confirmed", "held in both comparisons, 1 of them doubtful")]
    assert held(claim, {}, caveats=[DOUBT]) == [("confirmed", "held in its only comparison, doubtful")]
    assert held(claim, {}, {**RANDOM, **OPEN}) == [("open", "held in 1 and undecided in 1 of 2 comparisons")]
    assert held(claim, {**OPEN}, {**RANDOM, **LOSS}) == [
        (
            "contradicted",
            "contradicted in 1 of 2 comparisons: tmpfs is slower under fio rw=randwrite, "
            "at 0.50 [0.40, 0.60] of ext4's speed",
        )
    ]


def test_a_cell_that_is_not_to_be_used_confirms_and_contradicts_nothing() -> None:
    claim = {"flushed writes": {"": "faster"}}
    assert held(claim, UNUSABLE) == [("open", "not to be used in its only comparison")]
    assert held(claim, {}, {**RANDOM, **UNUSABLE})[0][0] == "open"


def test_same_is_confirmed_by_the_margin_and_not_by_a_wide_interval() -> None:
    claim = {"warm reads": {"": "same"}}
    assert held(claim, {**WARM, **SAME}) == [("confirmed", "held in its only comparison")]
    assert held(claim, {**WARM, **OPEN})[0][0] == "open"
    assert held(claim, WARM)[0][0] == "contradicted"


def test_an_expectation_is_about_its_own_part_and_file_system() -> None:
    both = [{}, {"candidate": "ramfs", **LOSS}, {**COLD, **LOSS}]
    assert held({"flushed writes": {"tmpfs": "faster", "ramfs": "slower"}}, *both) == [
        ("confirmed", "held in its only comparison"),
        ("confirmed", "held in its only comparison"),
    ]
    assert held({"dd-read": {"": "slower"}}, *both) == [("confirmed", "held in its only comparison")]


def test_what_was_not_measured_is_neither_confirmed_nor_contradicted() -> None:
    assert held({"direct reads": {"": "faster"}}, {}) == [("not measured", "no comparison of it has an interval")]
