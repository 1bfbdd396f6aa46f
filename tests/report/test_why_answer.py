"""What lies behind the differences that the answer of a run is about: on the first screen and in a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from mountlab.analysis.why_answer import answering
from mountlab.analysis.why_frames import Why
from mountlab.core.model import Workload
from mountlab.report import html, terminal
from mountlab.report.sections import first
from mountlab.report.sentences.why import answer_lines
from rows import every_row
from simulated_why import FSYNC, WORK, simulated_why, sweep_of
from synthetic_run import SyntheticRun, comparison, synthetic_run

SLOWER: Mapping[str, Any] = {"ratio": 0.58, "low": 0.54, "high": 0.62, "verdict": "slower"}
UNDECIDED: Mapping[str, Any] = {"ratio": 1.2, "low": 0.5, "high": 2.9, "verdict": "undecided"}


def run_of(*pairs: Mapping[str, Any], why: Why | None = None, sweep: Any = None, **more: Any) -> SyntheticRun:
    """A run that compares xfs with ext4, or each of these, and has diagnostic trials."""
    sweep = sweep or sweep_of("ext4", "xfs", "btrfs", "tmpfs")
    made = [
        comparison(**{"candidate": "xfs", "workload": "fsync", "tool": "fio", "metric": "sync_rate", **each})
        for each in pairs or [{}]
    ]
    metrics: dict[str, tuple[str, ...]] = {}
    for each in made:
        metrics[each.workload] = tuple(dict.fromkeys((*metrics.get(each.workload, ()), each.metric)))
    measurements = synthetic_run().measurements.iloc[:0]
    return replace(
        synthetic_run(),
        **{
            "sweep": sweep, "why": simulated_why(sweep) if why is None else why, "comparisons": made,
            "answer_metrics": metrics, "caveats": [], "measurements": measurements, **more,
        },
    )  # fmt: skip


def said(run: SyntheticRun) -> list[str]:
    return [f"{subject}: {text}".replace("\u00a0", " ") for subject, text in answer_lines(run)]


def test_one_difference_is_answered_by_its_largest_part_then_a_clue_in_its_work() -> None:
    answer, clue = said(run_of())
    assert re.fullmatch(
        r"Why xfs is faster than ext4: Mostly flushes \(for the journal\), \d\d % \[\d\d, \d\d\] of the difference in "
        r"mean sync latency\. n = 5 diagnostic blocks\.",
        answer,
    ), answer
    assert clue == (
        "Clue: Flushes per sync: ext4 2.1, xfs 1.0; device bytes per byte written: ext4 3.9, xfs 2.2; "
        "device I/Os per write: ext4 3.1, xfs 2.0; commits per sync about equal (1.0)."
    )


def test_a_part_against_which_others_point_is_more_than_all_of_the_difference() -> None:
    truth = {
        "ext4": {"sync": {("flush", "journal"): 2e-3, ("processor", "own"): 1e-4}},
        "xfs": {"sync": {("flush", "journal"): 1e-3, ("processor", "own"): 4e-4}},
    }
    sweep = sweep_of("ext4", "xfs")
    answer = said(run_of(why=simulated_why(sweep, truth), sweep=sweep))[0]
    assert "Mostly flushes (for the journal), more than all of the difference in mean sync latency." in answer


def test_several_differences_have_one_sentence_and_a_line_for_what_is_not_established() -> None:
    lines = said(run_of({"candidate": "xfs", "ratio": 1.4}, {"candidate": "btrfs", **SLOWER}))
    assert [line.partition(":")[0] for line in lines] == ["Why", "btrfs", "Clue", "To explain the rest"]
    assert re.fullmatch(
        r"Why: On xfs mostly flushes \(for the journal\), \d\d % \[\d\d, \d\d\] of the difference in "
        r"mean sync latency\. Not established on btrfs\. n = 5 diagnostic blocks\.",
        lines[0],
    ), lines[0]
    assert re.fullmatch(r"btrfs: The largest part of the difference may be .+, \d+ %.*, or .+, \d+ %.*\.", lines[1])
    assert "btrfs 9.8" in lines[2]
    assert lines[2].count("ext4 3.9") == 1, "the baseline stands once"
    assert lines[3] == "To explain the rest: 10 diagnostic blocks instead of 5 (`mountlab explain RUN -p explain=10`)."


def test_it_stands_in_the_answer_of_the_first_screen_and_of_a_terminal() -> None:
    run = run_of()
    answer, clue = said(run)
    for text in (html.words_of(first.answer(run)), terminal.run_answer(run)):
        plain = " ".join(text.replace("\u00a0", " ").split()).replace(" :", ":")
        assert plain.index("faster") < plain.index(answer) < plain.index(clue)
    assert answer in [each.replace("\u00a0", " ") for each in terminal.run_answer(run).splitlines()]


def test_a_run_without_diagnostic_trials_says_nothing_about_causes() -> None:
    assert answer_lines(run_of(why=Why())) == []


@every_row(
    ("metric", "operation", "statistic"),
    [
        ("sync_rate", "sync", "mean"), ("sync_latency_p99", "sync", "p99"), ("sync_latency_p99_9", "sync", "p99"),
        ("sync_latency_p50", "sync", "mean"), ("write_completion_latency_mean", "write", "mean"),
        ("write_latency_p99", "write", "p99"),
        ("write_iops", "sync", "mean"),  # the rate of writes that are synced follows from the syncs
        ("write_bandwidth", "sync", "mean"), ("elapsed", "sync", "mean"), ("operation_rate", "sync", "mean"),
        ("operation_latency_p99", "sync", "p99"),
    ],
)  # fmt: skip
def test_a_metric_is_answered_by_the_latency_that_decides_it(metric: str, operation: str, statistic: str) -> None:
    longer = {name: {**of, "write": {("processor", "own"): us}} for (name, of), us in zip(
        FSYNC.items(), (9e-5, 1.1e-4, 5e-5, 5e-5), strict=True)}  # fmt: skip
    (found,) = answering(run_of({"metric": metric}, why=simulated_why(sweep_of("ext4", "xfs"), longer)))
    assert found.cause is not None
    assert (found.cause.operation, found.cause.statistic) == (operation, statistic)


def test_a_rate_of_reads_beside_as_many_writes_is_that_of_the_reads() -> None:
    mixed: Any = {
        name: {"read": {("device", "own"): read}, "write": {("device", "own"): 1e-3}}
        for name, read in (("ext4", 6e-4), ("xfs", 9e-4))
    }
    (found,) = answering(run_of({"metric": "read_iops"}, why=simulated_why(sweep_of("ext4", "xfs"), mixed)))
    assert found.cause is not None
    assert found.cause.operation == "read"


@every_row("metric", ["mkfs_time", "space_used", "user_cpu", "capacity"])
def test_what_is_no_time_of_operations_is_not_explained_by_their_latency(metric: str) -> None:
    assert said(run_of({"metric": metric})) == []


def test_two_metrics_that_the_same_latency_decides_are_answered_once() -> None:
    lines = said(run_of({"metric": "sync_rate", "ratio": 1.9}, {"metric": "sync_latency_mean", "ratio": 0.58}))
    assert [each.partition(":")[0] for each in lines] == ["Why xfs is faster than ext4", "Clue"]


def test_of_several_workloads_each_is_named() -> None:
    sweep = sweep_of("ext4", "xfs", workloads=tuple(Workload(name=n, tool="fio", options={}) for n in ("mail", "web")))
    lines = said(run_of({"workload": "mail"}, {"workload": "web", "ratio": 1.1}, sweep=sweep))
    assert [each.partition(":")[0] for each in lines] == ["Why", "Clue under mail", "Clue under web"]
    assert re.match(r"Why: On xfs under mail mostly flushes .+ latency; on xfs under web mostly flushes ", lines[0])


def test_of_what_is_undecided_the_work_alone_is_said_where_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, clue = said(run_of(UNDECIDED))
    assert answer == "Why: Not established: no difference is shown."
    assert clue.startswith("Clue: Flushes per sync: ext4 2.1, xfs 1.0; ")
    monkeypatch.setitem(WORK, "xfs", WORK["ext4"])  # type: ignore[arg-type]
    assert said(run_of(UNDECIDED)) == [answer]


def test_what_the_diagnostic_trials_show_the_other_way_round_is_not_explained() -> None:
    line, _, step = said(run_of(SLOWER))
    assert re.fullmatch(
        r"Why xfs is slower than ext4: Not established\. The diagnostic trials show the opposite: "
        r"xfs takes 0\.\d+ \[0\.\d+, 0\.\d+\] of ext4's time\. n = 5 diagnostic blocks\.",
        line,
    ), line
    assert step.startswith("To explain the rest: 10 diagnostic blocks instead of 5")


def test_where_nothing_can_be_shown_the_reason_is() -> None:
    lost = {"withheld": "the kernel had no room for 9 of 99 events"}
    sweep = sweep_of("ext4", "xfs")
    frames = simulated_why(sweep, changes={("xfs", block): lost for block in range(1, 5)})
    line, _ = said(run_of(why=frames, sweep=sweep))
    assert line == (
        "Why xfs is faster than ext4: Not established. Too few diagnostic trials hold both sides. "
        "xfs/fsync: 4 of 5 diagnostic trials are withheld: the kernel had no room for 9 of 99 events."
    )


def test_what_weakens_the_explanation_is_named_with_it() -> None:
    sweep = sweep_of("ext4", "xfs")
    wrong = {"traced_mean": 1e-3, "tool_mean": 1.25e-3, "cut": "the record of events was full"}
    frames = simulated_why(sweep, changes={("xfs", block): wrong for block in range(1, 6)})
    traced = dict(zip(frames.traces["trial_id"], frames.traces["cell"], strict=True))
    slowed = {"xfs/fsync": 60.0, "ext4/fsync": 97.0}
    rows = [(trial, cell, True, slowed[cell] + at % 3) for at, (trial, cell) in enumerate(traced.items())]
    rows += [(f"t{at}", cell, False, 100.0 + at % 3) for at, cell in enumerate(list(slowed) * 5)]
    measured = pd.DataFrame(rows, columns=["trial_id", "cell", "warmup", "value"])
    measured = measured.assign(metric="sync_rate", label="", unit="1/s", block=1)
    line, _, step = said(run_of(why=frames, sweep=sweep, measurements=measured))
    assert re.search(
        r" Doubtful: while traced, xfs/fsync has 0\.60\d* \[0\.\d+, 0\.\d+\] times its counted sync rate; "
        r"the record of xfs/fsync ended early; the parts of xfs/fsync add up to 0\.80 times the tool's own mean\. "
        r"n = 5 diagnostic blocks\.$",
        line,
    ), line
    assert step == "To explain the rest: Shorter trials, whose record fits."


def test_of_many_differences_the_strongest_are_explained_and_the_others_counted() -> None:
    names = ("ext4", "xfs", "btrfs", "tmpfs", "f2fs", "nilfs2")
    truth = {**FSYNC, "f2fs": FSYNC["xfs"], "nilfs2": FSYNC["btrfs"]}
    sweep = sweep_of(*names)
    pairs = [{"candidate": name, "ratio": 1.5 + at} for at, name in enumerate(names[1:])]
    lines = said(run_of(*pairs, sweep=sweep, why=simulated_why(sweep, truth)))
    assert re.match(r"Why: On f2fs .+; on tmpfs .+\. Not established on nilfs2\. ", lines[0])
    assert lines[-1] == ": The section Why has 2 more differences."
