"""The section Why: what its sentences say, and when they say that nothing is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from mountlab.analysis import why as analysis
from mountlab.analysis.why_frames import Why, frame_of
from mountlab.core import numbers
from mountlab.core.layers import layer_noun
from mountlab.core.model import Workload
from mountlab.report import html, sections
from mountlab.report.sections import why_details
from mountlab.report.sections.why import layer_plots
from mountlab.sentences.why import cause_sentence, cause_subject, share_cells, share_words
from mountlab.stats import DifferenceShare
from rows import every_row
from simulated_why import FSYNC, simulated_why, sweep_of
from synthetic_run import SyntheticRun, comparison, synthetic_run

NAMES = ("ext4", "xfs", "btrfs", "tmpfs")


def run_of(*names: str, truth: Any = FSYNC, **more: Any) -> SyntheticRun:
    """A run of these file systems that has diagnostic trials; the first is the baseline."""
    sweep = sweep_of(*names)
    pairs = [comparison(baseline=names[0], candidate=each, workload="fsync", tool="fio") for each in names[1:]]
    base = synthetic_run()
    return replace(
        base,
        sweep=sweep,
        why=simulated_why(sweep, truth, **more),
        comparisons=pairs,
        measurements=base.measurements.iloc[:0],
        answer_metrics={"fsync": ("write_iops",)},
    )


def sentences(run: SyntheticRun, ran: Mapping[str, float] | None = None) -> list[str]:
    """The sentence of each difference behind its subject. `ran`: what ran while operations waited for a processor."""
    figures = analysis.work(run.why, run.sweep)
    causes = analysis.causes(run.why, run.sweep, run.comparisons)
    said = [(cause_subject(each), cause_sentence(each, figures, lambda *_: ran or {})) for each in causes]
    return [": ".join(each).replace("\u00a0", " ") for each in said]


def shown(run: SyntheticRun) -> str:
    return html.words_of(sections.why(run)).replace("\u00a0", " ")


def test_the_largest_part_comes_first_then_both_times_then_the_work() -> None:
    said = next(each for each in sentences(run_of("ext4", "xfs")) if "mean sync" in each)
    whole = re.fullmatch(
        r"ext4 takes longer than xfs, mean sync latency under fsync: The largest part of the difference is flushes "
        r"\(for the journal\): (\d+) % \[(\d+), (\d+)\]\. Then: the device \(for the journal\), [^.]+\. "
        r"xfs takes 0\.\d+ \[0\.\d+, 0\.\d+\] of ext4's time: [\d.]+ µs against 1\.\d+ ms; n = 5 diagnostic blocks\. "
        r"Work: 2\.1 flushes per sync on ext4, 1\.0 on xfs \(0\.4\d* \[[^]]+\] times\); "
        r"3\.9 device bytes per byte written on ext4, 2\.2 on xfs \([^)]+\)\.",
        said,
    )
    assert whole is not None, said
    assert int(whole[2]) <= 79 <= int(whole[3]), "of 627 µs, by the truth, 480 are flushes"


def test_n_that_all_differences_share_stands_once() -> None:
    text = shown(run_of("ext4", "xfs", "btrfs"))
    assert text.count("n = 5 diagnostic blocks") == 1
    assert "n = 5 diagnostic blocks each." in text


def work_of(**values: tuple[float, float]) -> str:
    """The work that is named behind a sync that takes twice as long on btrfs, and costs this on ext4 and on btrfs."""
    journal = {"ext4": {"sync": {("journal", "journal"): 1e-3}}, "btrfs": {"sync": {("journal", "journal"): 2e-3}}}
    run = run_of("ext4", "btrfs", truth=journal)
    trials = run.why.work[["trial_id", "block", "cell", "filesystem", "workload"]].drop_duplicates()
    rows = [
        (*trial, "sync", name, "", own[trial[3] == "btrfs"] * (1 + trial[1] / 1000 * (trial[3] == "ext4")), "1")
        for trial in trials.itertuples(index=False, name=None)
        for name, own in values.items()
    ]
    said = sentences(replace(run, why=replace(run.why, work=frame_of("why_work", rows))))[0]
    assert "The largest part of the difference is waiting for a journal or log commit: 100 % [100, 100]" in said
    return said.partition("Work: ")[2]


def test_of_the_work_what_differs_is_named_and_what_is_alike_where_nothing_does() -> None:
    alike = work_of(device_ios_per_op=(2.0, 2.1), commits_per_sync=(1.0, 1.0))
    assert alike == "the same on both, 1.0 commits per sync."
    unlike = work_of(device_ios_per_op=(2.0, 6.0), commits_per_sync=(1.0, 1.0))
    assert unlike.startswith("2.0 device I/Os per sync on ext4, 6.0 on btrfs (2.99")
    none = work_of(device_ios_per_op=(0.0, 3.0))
    assert none == "no device I/Os per sync on ext4, 3.0 on btrfs."
    assert work_of(device_ios_per_op=(4e-5, 3.0)).startswith("fewer than 0.001 device I/Os per sync on ext4, 3.0 on")
    assert work_of() == ""


def test_the_work_of_syncs_does_not_explain_writes_that_wait_for_no_device() -> None:
    truth = {name: {"write": {("processor", "own"): us * 1e-6}} for name, us in (("ext4", 2), ("xfs", 9))}
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean write" in each)
    assert said.startswith(
        "xfs takes longer than ext4, mean write latency under fsync: The largest part of the difference is time on "
    )


def test_the_work_of_reads_explains_reads_that_wait_for_no_device_where_nothing_else_is_at_work() -> None:
    """As where a memory cgroup frees what was read, and read-ahead reads it again in time."""
    truth = {name: {"read": {("processor", "own"): us * 1e-6}} for name, us in (("ext4", 20), ("xfs", 90))}
    (said,) = (each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean read" in each)
    assert re.search(r" Work: 3\.1 device I/Os per read on ext4, 2\.0 on xfs \(", said), said


def test_work_of_operations_that_take_hardly_any_time_has_no_row() -> None:
    run = run_of("ext4", "xfs")
    work = run.why.work
    of_writes = work[work["operation"] == "sync"].assign(operation="write")
    said = shown(replace(run, why=replace(run.why, work=pd.concat([work, of_writes], ignore_index=True))))
    assert "context switches per sync" in said
    assert "context switches per write" not in said


def test_a_part_that_points_the_other_way_is_named_as_such() -> None:
    truth = {
        "ext4": {"sync": {("flush", "journal"): 2e-3, ("processor", "own"): 1e-4}},
        "xfs": {"sync": {("flush", "journal"): 1e-3, ("processor", "own"): 4e-4}},
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean sync" in each)
    assert re.search(r"is flushes \(for the journal\): more than all of it( \(at least \d\d %\))?\. ", said), said
    assert re.search(r"Against it: time on the processor, \d\d % \[\d\d, \d\d\]\.", said), said


def test_no_two_parts_have_one_name() -> None:
    own = {"ext4": 4e-4, "xfs": 1e-4}
    truth = {
        name: {"sync": {("flush", "journal"): 2 * own[name], ("flush", "own"): own[name], ("lock", "own"): 1e-5}}
        for name in own
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth, spread=0.01)) if "mean sync" in each)
    assert "is flushes (for the journal): 6" in said
    assert "Then: flushes (of the sync itself), 3" in said
    assert "flushes: " not in said
    assert "flushes, " not in said


@pytest.mark.slow
@every_row(("traced", "tool", "withheld"), [(2.2, 1.0, True), (1.0, 1.6, True), (1.4, 1.0, False), (1.0, 1.4, False)])
def test_shares_are_withheld_with_their_reason_first_where_parts_add_up_far_from_the_tools_mean(
    traced: float, tool: float, *, withheld: bool
) -> None:
    wrong = {("xfs", block): {"traced_mean": traced * 1e-3, "tool_mean": tool * 1e-3} for block in range(1, 6)}
    text = shown(run_of("ext4", "xfs", changes=wrong))
    subject = "ext4 takes longer than xfs, mean sync latency"
    times = {2.2: "2.2", 1.0: "0.62"}.get(traced)
    reason = f"{subject} : Shares are withheld: the parts of xfs/fsync add up to {times} times the tool's own mean. xfs"
    assert (reason in text) == withheld
    assert ("The largest part of the difference" in text) != withheld
    assert ("Parts of each difference that is shown" in text) != withheld


def test_a_difference_that_the_counted_trials_show_the_other_way_round_says_so() -> None:
    run = run_of("ext4", "xfs")
    slower = [replace(each, verdict="slower", metric="sync_rate") for each in run.comparisons]
    text = shown(replace(run, comparisons=slower, answer_metrics={"fsync": ("sync_rate",)}))
    assert "mean sync latency : The counted trials show the opposite. The largest part of the difference is" in text


def test_of_a_difference_that_may_be_zero_nothing_is_shown() -> None:
    twin = {"ext4": FSYNC["ext4"], "xfs": FSYNC["ext4"]}
    said = sentences(run_of("ext4", "xfs", truth=twin, spread=0.3, blocks=3))
    assert said
    assert all(
        re.search(r"The diagnostic trials show no difference in \S+ \w+ latency: xfs takes [^;]+'s time; n = 3", each)
        for each in said
    )


def test_of_a_difference_whose_parts_are_all_noise_nothing_is_shown() -> None:
    """The sum differs in each block, now by one part and now by the other."""
    rows = [
        (f"x{2 * block + side}", block, f"{name}/fsync", name, "fsync", "sync", "mean", layer, "own", seconds)
        for block in range(4)
        for side, name in enumerate(("ext4", "xfs"))
        for layer, seconds in (
            ("device", 1.0 if side == 0 else 1.5 + (-1) ** block),
            ("lock", 1.0 if side == 0 else 1.5 - (-1) ** block + 0.01 * block),
        )
    ]
    run = run_of("ext4", "xfs", blocks=4)
    noisy = Why(layers=run.why.layers.iloc[:0], work=run.why.work, traces=run.why.traces)
    frame = noisy.layers.reindex(range(len(rows)))
    frame.loc[:, :] = rows
    said = sentences(replace(run, why=replace(noisy, layers=frame.astype({"seconds": float, "block": int}))))
    assert len(said) == 1
    assert "'s time, but no part stands out of the noise: " in said[0]
    assert ", the largest, may be 0; n = 4 diagnostic blocks." in said[0]


def test_the_layer_that_has_more_in_all_that_it_served_is_named() -> None:
    truth = {
        "ext4": {"sync": {("device", "own"): 4e-4, ("device", "journal"): 4e-4, ("flush", "own"): 5e-4}},
        "xfs": {"sync": {("device", "own"): 1e-4, ("device", "journal"): 1e-4, ("flush", "own"): 1e-4}},
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth, spread=0.01)) if "mean sync" in each)
    assert "The largest part of the difference is flushes: " in said
    assert "In total the device has more: 6" in said


def test_parts_that_may_be_larger_than_the_largest_are_named_with_it() -> None:
    truth = {
        "ext4": {"sync": {("device", "own"): 4e-4, ("reclaim", "own"): 4.1e-4, ("processor", "own"): 1e-4}},
        "xfs": {"sync": {("device", "own"): 1e-4, ("reclaim", "own"): 1e-4, ("processor", "own"): 5e-5}},
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean sync" in each)
    part = r"(freeing memory|the device), \d+ % \[\d+, \d+\]"
    assert re.search(
        rf"The largest part of the difference may be {part}, or {part}\. Then: time on the processor, \d+ %", said,
    ), said  # fmt: skip


CROWDED = {
    "ext4": {"sync": {("run_queue", "own"): 1e-4, ("device", "own"): 1e-3}},
    "xfs": {"sync": {("run_queue", "own"): 3e-3, ("device", "own"): 1e-3}},
}


@every_row(
    ("ran", "said"),
    [
        ({"stress-ng": 2e-3, "kworker": 7e-4, "idle": 2e-4, "sh": 1e-4},
         "on xfs the processor meanwhile ran stress-ng (67 %) and kworker (23 %)"),
        ({"held back": 2.5e-3, "fio": 0.5e-3},
         "on xfs the processor was idle for 83 % of the wait: a CPU quota, or a virtual machine that is throttled"),
        ({"idle": 2.5e-3, "fio": 0.5e-3},
         "on xfs the processor was idle for 83 % of the wait: it wakes up late, as in a virtual machine, or got the "
         "thread from another processor late"),
        ({f"program-{number}": 1e-4 for number in range(30)},
         "on xfs the processor meanwhile ran many programs, none for long"),
        ({"?": 2e-3, "kworker": 1e-3},
         "on xfs the processor meanwhile ran what is not known (67 %) and kworker (33 %)"),
        ({}, "what ran meanwhile is not known"),
    ],
)  # fmt: skip
def test_waiting_for_a_processor_is_called_a_consequence_of_what_ran_instead(ran: dict[str, float], said: str) -> None:
    whole = sentences(run_of("ext4", "xfs", truth=CROWDED), ran)[0]
    assert "The largest part of the difference is waiting for a processor: " in whole
    assert f" Waiting for a processor is a consequence, not a cause: {said}. xfs takes " in whole
    assert not any("a consequence" in text for text in sentences(run_of("ext4", "xfs"), ran)), "a small wait is none"


MIXED = {
    "ext4": {"sync": {("run_queue", "own"): 1e-4, ("reclaim", "own"): 1e-4, ("device", "own"): 1e-4}},
    "xfs": {"sync": {("run_queue", "own"): 4.3e-3, ("reclaim", "own"): 3.5e-3, ("device", "own"): 2.4e-3}},
}


def test_beside_a_wait_for_a_processor_below_half_of_a_difference_the_largest_part_is_named() -> None:
    said = sentences(run_of("ext4", "xfs", truth=MIXED, spread=0.01), {"stress-ng": 4e-3})[0]
    assert re.search(
        r"Beside waiting for a processor, 4\d % \[\d+, \d+\], the largest part of the difference is freeing memory: "
        r"3\d % \[\d+, \d+\]\.", said,
    )  # fmt: skip
    assert re.search(r"Then: the device, 2\d % \[\d+, \d+\]\. Waiting for a processor is a consequence", said)


def test_a_wait_for_a_processor_that_is_larger_is_named_also_where_it_may_be_0() -> None:
    """Else what is named as the largest part would not be it."""
    run = run_of("ext4", "xfs", truth=MIXED, spread=0.01)
    cause = analysis.causes(run.why, run.sweep, run.comparisons)[0]
    parts, layers = (
        tuple(
            replace(each, share=replace(each.share, low=-0.1)) if each.is_wait_for_processor else each for each in own
        )
        for own in (cause.parts, cause.by_layer)
    )
    said = cause_sentence(replace(cause, parts=parts, by_layer=layers), [], lambda *_: {}).replace("\u00a0", " ")
    assert re.match(
        r"Beside waiting for a processor, 4\d %, which may be 0, the largest part .* freeing memory: 3", said
    )
    assert said.count("waiting for a processor") == 1, "a wait that may be 0 is explained by nothing"


def test_a_part_of_the_sum_that_is_named_is_not_named_again() -> None:
    """The wait of the operation itself stands out alone, that of the journal only together with it."""
    waits = {
        name: {"sync": {("run_queue", "own"): 4e-4 * times, ("run_queue", "journal"): 6e-4 * times}}
        for name, times in (("ext4", 1), ("xfs", 3))
    }
    run = run_of("ext4", "xfs", truth=waits, spread=0.01)
    cause = analysis.causes(run.why, run.sweep, run.comparisons)[0]
    journal, own = cause.parts
    parts = (replace(journal, share=replace(journal.share, low=-0.1)), own)
    said = cause_sentence(replace(cause, parts=parts), [], lambda *_: {"sh": 1.0}).replace("\u00a0", " ")
    assert re.match(r"The largest part of the difference is waiting for a processor: \d+ %", said), said
    assert "Then" not in said
    assert (
        " Waiting for a processor is a consequence, not a cause: on xfs the processor meanwhile ran sh (100 %)." in said
    )


def test_what_ran_while_operations_waited_stands_in_a_table_of_those_that_waited() -> None:
    run = run_of("ext4", "xfs", truth=CROWDED)
    trials = run.why.traces[["trial_id", "block", "cell", "filesystem", "workload"]].itertuples(index=False, name=None)
    ran = {"ext4": {"sh": 1e-5}, "xfs": {"stress-ng": 2.4e-3, "held back": 6e-4}}
    rows = [
        (*trial, "sync", "ran_instead_s_per_op", name, seconds, "s")
        for trial in trials
        for name, seconds in ran[trial[3]].items()
    ]
    text = shown(replace(run, why=replace(run.why, work=frame_of("why_work", rows))))
    table = text[text.index("What ran while operations waited for a processor") :]
    assert (
        "while a sync waited for it under fsync Had the processor ■ xfs waited, each sync 3.00 ms stress-ng 80 %"
        in table
    )
    assert "none: a CPU quota, or a virtual machine that is throttled 20 %" in table
    assert "ext4" not in table[: table.index("none: ")]


@pytest.mark.slow
def test_a_record_that_was_cut_off_and_calls_that_were_seen_in_windows_are_said() -> None:
    cut = "the record of events reached its limit of size"
    changes = {
        ("xfs", 1): {"cut": cut, "window_s": 1.25},
        ("xfs", 2): {"cut": cut, "window_s": 0.75},
        **{("ext4", block): {"seen": 0.25} for block in (1, 2, 3, 4, 5)},
    }
    text = shown(run_of("ext4", "xfs", changes=changes))
    assert f"xfs/fsync: {cut} in 2 of 5 diagnostic trials, after 0.75 s or later: the split is" in text
    assert "recorded in windows where they are many: for 25 % of the time in ext4/fsync." in text
    text = shown(run_of("ext4", "xfs"))
    assert "limit of size" not in text
    assert "windows" not in text


def test_a_percentile_that_one_of_several_file_systems_has_is_no_panel() -> None:
    few = {(name, 1): {"operations": 999} for name in ("ext4", "btrfs")}
    (plot,) = layer_plots(run_of("ext4", "xfs", "btrfs", changes=few))
    assert "99th-percentile" not in plot.alt
    (plot,) = layer_plots(run_of("xfs"))
    assert "99th-percentile" in plot.alt


@every_row(
    ("share", "words", "cells"),
    [
        ((0.804, 0.71, 0.884), "80 % [71, 88]", ("80 %", "[71, 88]")),
        ((0.9, 0.71, 1.1), "90 % (at least 71 %)", ("90 %", "[71, all]")),
        ((1.2, 0.71, 1.6), "more than all of it (at least 71 %)", ("more than all", "[71, all]")),
        ((1.2, 1.1, 1.6), "more than all of it", ("more than all", "no bound")),
        ((-0.04, -0.06, -0.02), "4 % [2, 6]", ("4 % against", "[6 against, 2 against]")),
        ((0.1, -0.2, 0.4), "10 %", ("10 %", "[20 against, 40]")),
        ((-0.001, -0.01, 0.02), "0 %", ("0 %", "[1 against, 2]")),
        ((0.1, -1.2, 1.4), "10 %", ("10 %", "no bound")),
        ((0.5, float("-inf"), float("inf")), "50 %", ("50 %", "no bound")),
        ((float("nan"),) * 3, "n/a", ("n/a", "")),
    ],
)
def test_a_share_is_whole_per_cents_of_the_whole_or_words(
    share: tuple[float, float, float], words: str, cells: tuple[str, str]
) -> None:
    found = DifferenceShare(*share, 5, 0.95)
    assert share_words(found).replace("\u00a0", " ") == words
    assert tuple(each.replace("\u00a0", " ") for each in share_cells(found)) == cells


def test_parts_have_names() -> None:
    assert layer_noun("flush", "journal") == "flushes (for the journal)"
    assert layer_noun("journal", "journal") == "waiting for a journal or log commit"
    assert layer_noun("", "journal") == "what was done for the journal"
    assert layer_noun("device", "") == layer_noun("device", "own") == "the device"


@pytest.mark.slow
def test_the_section_says_what_it_shows_and_what_it_cannot_know() -> None:
    text = shown(run_of(*NAMES))
    assert text.index("The largest part of the difference is") < text.index("Largest part of the mean sync latency")
    assert text.index("Largest part of") < text.index("Work under fsync; below, as a multiple of ext4")
    assert "flushes per sync" in text
    assert re.search(r"None of [\d\s]+ events was lost\.", text)
    assert "a journal commit serves every operation that waits for it" in text


def test_means_of_traced_trials_stand_beside_those_of_counted_ones() -> None:
    run = run_of("ext4", "xfs")
    splits = [split for split in analysis.splits(run.why, run.sweep) if split.statistic == "mean"]
    traced = {split.filesystem: split.whole.mean for split in splits if split.operation == "sync"}
    row = {"cell": "ext4/fsync", "metric": "sync_latency_mean", "label": "", "mean": 1.5e-3}
    text = shown(replace(run, estimates=pd.DataFrame([row])))
    of_ext4 = numbers.quantity(traced["ext4"], "s").replace("\u00a0", " ")
    assert f"Mean sync latency under fsync: ext4 {of_ext4} (1.50 ms)." in text


def test_a_percentile_of_too_few_operations_is_named_as_missing() -> None:
    run = run_of("ext4", "xfs", changes={("xfs", 2): {"operations": 412}})
    assert not any("p99" in each or "99th" in each for each in sentences(run))
    said = "xfs/fsync: no 99th percentile of sync: a diagnostic trial holds 412 operations, and 1,000 are needed."
    assert shown(run).count(said) == 1


@pytest.mark.slow
def test_withheld_trials_and_sums_that_are_off_are_said_beside_the_figures() -> None:
    lost = {"withheld": "the kernel had no room for 9 of 99 events", "lost_events": 9}
    wrong = {"traced_mean": 1e-3, "tool_mean": 1.2e-3}
    changes: dict[tuple[str, int], dict[str, Any]] = {("btrfs", 2): lost}
    slowed = {"traced_mean": 1.2e-3, "tool_mean": 1e-3, "traced_in_flight": 16.1, "tool_in_flight": 16.0}
    changes |= {("xfs", block): wrong for block in range(1, 6)} | {("tmpfs", block): slowed for block in range(1, 6)}
    text = shown(run_of(*NAMES, changes=changes))
    said = "btrfs/fsync: 1 of 5 diagnostic trials is withheld: the kernel had no room for 9 of 99 events."
    assert text.count(said) == 1
    assert "xfs/fsync: one sync takes 1.00 ms by the trace and 1.20 ms by the tool, 0.83 times as long." in text
    assert "1.00 ms by the tool, 1.2 times as long, since operations are slower while they are traced." in text


def test_a_run_without_diagnostic_trials_says_in_one_line_how_to_get_them() -> None:
    page = sections.why(synthetic_run())
    assert html.words_of(page) == "The run has no diagnostic trials: mountlab explain RUN adds them."
    assert page.startswith(html.NOTHING)
    for section in (sections.why_slowest, sections.why_processors, sections.why_asleep):
        assert "The run has no diagnostic trials" in html.words_of(section(synthetic_run()))


@pytest.mark.slow
def test_a_run_that_compares_nothing_still_shows_its_parts() -> None:
    text = shown(replace(run_of(*NAMES), comparisons=[]))
    assert "No difference is explained: no two file systems are compared." in text
    assert "Largest part of the mean sync latency" in text


def test_trials_that_are_all_withheld_leave_their_reason() -> None:
    lost = {"withheld": "there is no trace: perf did not begin to record"}
    run = run_of("ext4", "xfs", changes={(name, block): lost for name in NAMES for block in range(1, 6)})
    text = shown(run)
    assert "No difference is explained: too few diagnostic trials are shown." in text
    assert "xfs/fsync: 5 of 5 diagnostic trials are withheld: there is no trace" in text


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\x1b[2J", "a\u202eb"])
def test_names_from_elsewhere_are_text(hostile: str) -> None:
    sweep = sweep_of("ext4", "xfs", workloads=(Workload(name=hostile, tool="fio", options={}),))
    pair = comparison(baseline="ext4", candidate="xfs", workload=hostile, tool="fio")
    lost = {("xfs", 1): {"withheld": hostile}}
    run = replace(run_of("ext4", "xfs"), sweep=sweep, comparisons=[pair], why=simulated_why(sweep, changes=lost))
    assert hostile not in sections.why(run)


@pytest.mark.long
def test_the_latencies_lead_to_the_timelines_of_the_slowest_operations() -> None:
    traced = replace(synthetic_run(), why=simulated_why(synthetic_run().sweep, {"ext4": FSYNC["ext4"]}))
    link = 'href="#The-slowest-operations"'
    assert link in sections.latencies(traced)
    assert link not in sections.latencies(synthetic_run())
    assert "The slowest sync of ext4" in html.words_of(sections.why_slowest(traced))


def test_where_threads_slept_is_drawn_for_each_cell_and_against_the_baseline() -> None:
    text = html.words_of(sections.why_asleep(run_of("ext4", "xfs"))).replace("\u00a0", " ")
    said = re.findall(r"Threads on \w+ sleep [\d.]+ .s an operation(?:, on \w+ [\d.]+ .s)?", text)
    assert set(said) == {
        "Threads on ext4 sleep 2.30 ms an operation", "Threads on xfs sleep 600 µs an operation",
        "Threads on xfs sleep 600 µs an operation, on ext4 2.30 ms",
    }  # fmt: skip


@pytest.mark.parametrize(("most", "drawn"), [(2, 2), (4, 3)])
def test_where_more_could_be_drawn_the_page_says_so(most: int, drawn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why_details, "_MOST_PLOTS", most)
    part = sections.why_slowest(run_of("ext4", "xfs", "btrfs", blocks=1))
    assert part.count("<details") == drawn
    assert (f"The page draws {drawn} plots of them at most" in html.words_of(part)) == (drawn == most)
