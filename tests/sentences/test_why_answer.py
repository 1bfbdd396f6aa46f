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
from mountlab.sentences.why import answer_lines
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
        r"mean sync latency\.",
        answer,
    ), answer
    latency, _, others = clue.partition("; ")
    assert re.fullmatch(r"Clue: Traced mean sync latency, ms: ext4 1\.\d\d, xfs 0\.\d{3}", latency), latency
    assert others == (
        "flushes per sync: ext4 2.1, xfs 1.0; device bytes per byte written: ext4 3.9, xfs 2.2; "
        "device I/Os per write: ext4 3.1, xfs 2.0; n = 5 diagnostic blocks. Commits per sync are about equal (1.0)."
    )


@every_row(
    ("flush_us", "said"),
    [
        (900e-6, "Mostly flushes (for the journal), "),
        (300e-6, "The largest part is flushes (for the journal), "),
    ],
)
def test_mostly_is_said_where_the_whole_interval_lies_above_a_half(flush_us: float, said: str) -> None:
    own = {("device", "own"): 1e-4, ("processor", "own"): 5e-5}
    truth = {
        "ext4": {"sync": {**own, ("flush", "journal"): flush_us, ("lock", "own"): 2.5e-4, ("queue", "own"): 1.6e-4}},
        "xfs": {"sync": {**own, ("flush", "journal"): 1e-5, ("lock", "own"): 1e-4, ("queue", "own"): 1e-5}},
    }
    sweep = sweep_of("ext4", "xfs")
    answer = said_of(simulated_why(sweep, truth, spread=0.02), sweep)[0]
    assert f": {said}" in answer, answer


def said_of(frames: Why, sweep: Any) -> list[str]:
    return said(run_of(why=frames, sweep=sweep))


def test_where_there_are_as_many_flushes_but_they_take_longer_the_clue_says_how_long_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WORK, "xfs", {**WORK["xfs"], "flushes_per_sync": 2.0})  # type: ignore[index]
    sweep = sweep_of("ext4", "xfs")
    clue = said_of(simulated_why(sweep), sweep)[1]
    waits = re.search(r"waiting per flush, µs: ext4 (\d+), xfs (\d+); n = 5", clue)
    assert waits, clue
    assert [float(each) for each in waits.groups()] == pytest.approx([900 / 2.1, 420 / 2.0], rel=0.1)
    assert "ext4 has about as many flushes per sync as xfs, and waits longer for each." in clue
    assert "waiting per flush" not in said_of(simulated_why(sweep, {**FSYNC, "xfs": FSYNC["ext4"]}), sweep)[1]


def test_the_first_screen_has_the_next_steps_together_then_the_clue_as_a_table() -> None:
    run = run_of({"candidate": "xfs", "ratio": 1.4}, {"candidate": "btrfs", **SLOWER})
    text = " ".join(html.words_of(first.answer(run)).replace("\u00a0", " ").split())
    assert text.index("Trust: ") < text.index("To explain the rest") < text.index("What lies behind it; n = 5")
    assert re.search(r"Flushes per sync 2\.1 1\.0 2\.0 ", text), text
    assert "may be" not in text, "candidates stand in the section Why"


def test_a_part_against_which_others_point_is_more_than_all_of_the_difference() -> None:
    truth = {
        "ext4": {"sync": {("flush", "journal"): 2e-3, ("processor", "own"): 1e-4}},
        "xfs": {"sync": {("flush", "journal"): 1e-3, ("processor", "own"): 4e-4}},
    }
    sweep = sweep_of("ext4", "xfs")
    answer = said(run_of(why=simulated_why(sweep, truth), sweep=sweep))[0]
    assert "Mostly flushes (for the journal), more than all of the difference in mean sync latency." in answer


def test_several_differences_have_one_sentence_with_why_a_cause_is_not_established() -> None:
    lines = said(run_of({"candidate": "xfs", "ratio": 1.4}, {"candidate": "btrfs", **SLOWER}))
    assert [line.partition(":")[0] for line in lines] == ["Why", "Clue", "To explain the rest"]
    assert re.fullmatch(
        r"Why: On xfs mostly flushes \(for the journal\), \d\d % \[\d\d, \d\d\] of the difference in "
        r"mean sync latency\. The cause is not established on btrfs \(several candidates\)\.",
        lines[0],
    ), lines[0]
    assert "btrfs 9.8" in lines[1]
    assert lines[1].count("ext4 3.9") == 1, "the baseline stands once"
    assert lines[2] == "To explain the rest: 10 diagnostic blocks instead of 5 (`mountlab explain RUN -p explain=10`)."


def test_it_stands_in_the_answer_of_the_first_screen_and_of_a_terminal() -> None:
    run = run_of()
    answer, clue = said(run)
    for text, behind in ((html.words_of(first.answer(run)), "What lies behind it"), (terminal.run_answer(run), clue)):
        plain = " ".join(text.replace("\u00a0", " ").split()).replace(" :", ":")
        assert plain.index("faster") < plain.index(answer) < plain.index(behind)
    assert answer in [each.replace("\u00a0", " ") for each in terminal.run_answer(run).splitlines()]


def test_a_run_without_diagnostic_trials_says_nothing_about_causes() -> None:
    assert answer_lines(run_of(why=Why())) == []


@pytest.mark.slow
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
    assert answer == "Why: The cause is not established: no difference is shown."
    assert "; flushes per sync: ext4 2.1, xfs 1.0; " in clue
    monkeypatch.setitem(WORK, "xfs", WORK["ext4"])  # type: ignore[arg-type]
    _, clue = said(run_of(UNDECIDED))
    assert re.search(r"xfs 0\.\d+; n = 5 diagnostic blocks\. Flushes per sync are about equal \(2\.1\)\.$", clue), clue


def test_what_the_diagnostic_trials_show_the_other_way_round_is_not_explained() -> None:
    line, _, step = said(run_of(SLOWER))
    assert line == "Why xfs is slower than ext4: The cause is not established: the diagnostic trials show the opposite."
    assert step.startswith("To explain the rest: 10 diagnostic blocks instead of 5")


def test_where_nothing_can_be_shown_the_reason_is() -> None:
    lost = {"withheld": "the kernel had no room for 9 of 99 events"}
    sweep = sweep_of("ext4", "xfs")
    frames = simulated_why(sweep, changes={("xfs", block): lost for block in range(1, 5)})
    line, _ = said(run_of(why=frames, sweep=sweep))
    assert line == (
        "Why xfs is faster than ext4: The cause is not established: too few diagnostic trials hold both sides."
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
    _, line, _, step = said(run_of(why=frames, sweep=sweep, measurements=measured))
    assert re.search(
        r"^Doubtful: While traced, xfs/fsync has 0\.60\d* \[0\.\d+, 0\.\d+\] times its counted sync rate; "
        r"the record of xfs/fsync ended early; the parts of xfs/fsync add up to 0\.80 times the tool's own mean\.$",
        line,
    ), line
    assert step == "To explain the rest: Shorter trials, whose record fits."


def test_of_many_differences_the_strongest_are_explained_and_the_others_counted() -> None:
    names = ("ext4", "xfs", "btrfs", "tmpfs", "f2fs", "nilfs2")
    truth = {**FSYNC, "f2fs": FSYNC["xfs"], "nilfs2": FSYNC["btrfs"]}
    sweep = sweep_of(*names)
    pairs = [{"candidate": name, "ratio": 1.5 + at} for at, name in enumerate(names[1:])]
    lines = said(run_of(*pairs, sweep=sweep, why=simulated_why(sweep, truth)))
    assert re.match(r"Why: On f2fs .+; on tmpfs .+\. The cause is not established on nilfs2 \(.+\)\.$", lines[0])
    assert lines[-1] == ": The section Why has 2 more differences."
