"""The section Why: what its sentences say, and when they say that nothing is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from mountlab.analysis import why as analysis
from mountlab.analysis.why_frames import Why
from mountlab.core.layers import layer_noun
from mountlab.core.model import Workload
from mountlab.report import html, sections
from mountlab.report.sections import why_details
from mountlab.report.why_sentences import cause_sentence, share_words
from mountlab.stats import DifferenceShare
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


def sentences(run: SyntheticRun) -> list[str]:
    figures = analysis.work(run.why, run.sweep)
    causes = analysis.causes(run.why, run.sweep, run.comparisons)
    return [cause_sentence(each, figures, name_workload=False).replace("\u00a0", " ") for each in causes]


def shown(run: SyntheticRun) -> str:
    return html.words_of(sections.why(run)).replace("\u00a0", " ")


def test_the_largest_part_is_named_with_its_share_and_the_work_behind_it() -> None:
    said = next(each for each in sentences(run_of("ext4", "xfs")) if "mean sync" in each)
    share = re.match(r"(\d+) % \[(\d+), (\d+)\] of the difference in mean sync latency between xfs and ext4 is ", said)
    assert share is not None
    low, high = int(share[2]), int(share[3])
    assert low <= 79 <= high, "of 627 µs, by the truth, 480 are flushes"
    assert "is flushes (for the journal): 2.1 flushes per sync on ext4, 1.0 on xfs. xfs takes 0." in said
    assert re.search(r"xfs takes 0\.\d+ \[0\.\d+, 0\.\d+\] of ext4's time: [\d.]+ µs against 1\.\d+ ms; n = 5", said)
    assert "n = 5 diagnostic blocks." in said
    assert "Next: the device (for the journal), " in said


def test_work_that_is_alike_explains_nothing_and_is_not_named() -> None:
    sweep = sweep_of("ext4", "btrfs")
    journal = {"ext4": {"sync": {("journal", "journal"): 1e-3}}, "btrfs": {"sync": {("journal", "journal"): 2e-3}}}
    said = sentences(run_of(*(fs.name for fs in sweep.filesystems), truth=journal))[0]
    assert "is waiting for a journal or log commit. btrfs takes" in said


def test_a_part_that_points_the_other_way_is_named_as_such() -> None:
    truth = {
        "ext4": {"sync": {("flush", "journal"): 2e-3, ("processor", "own"): 1e-4}},
        "xfs": {"sync": {("flush", "journal"): 1e-3, ("processor", "own"): 4e-4}},
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean sync" in each)
    assert "Against it: time on the processor, −4" in said
    assert re.match(r"1[34]\d % \[", said)


def test_of_a_difference_that_may_be_zero_nothing_is_shown() -> None:
    twin = {"ext4": FSYNC["ext4"], "xfs": FSYNC["ext4"]}
    said = sentences(run_of("ext4", "xfs", truth=twin, spread=0.3, blocks=3))
    assert said
    assert all(
        each.startswith("Nothing is shown about the difference in ") and "'s time, which may be 1; n" in each
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
    assert said[0].startswith("Nothing is shown about what makes the difference in mean sync latency")


def test_the_layer_that_has_more_in_all_that_it_served_is_named() -> None:
    truth = {
        "ext4": {"sync": {("device", "own"): 4e-4, ("device", "journal"): 4e-4, ("flush", "own"): 5e-4}},
        "xfs": {"sync": {("device", "own"): 1e-4, ("device", "journal"): 1e-4, ("flush", "own"): 1e-4}},
    }
    said = next(each for each in sentences(run_of("ext4", "xfs", truth=truth)) if "mean sync" in each)
    assert " is flushes: 2.1 flushes per sync" in said
    assert "All in all the device has more: 6" in said


def test_shares_are_whole_per_cents() -> None:
    assert share_words(DifferenceShare(0.804, 0.71, 0.884, 5, 0.95)) == "80\u00a0% [71, 88]"
    assert share_words(DifferenceShare(-0.04, -0.06, -0.02, 5, 0.95)) == "−4\u00a0% [−6, −2]"
    assert share_words(DifferenceShare(0.5, float("-inf"), float("inf"), 3, 0.95)) == "50\u00a0%"
    assert share_words(DifferenceShare(float("nan"), float("nan"), float("nan"), 0, 0.95)) == "n/a"


def test_parts_have_names() -> None:
    assert layer_noun("flush", "journal") == "flushes (for the journal)"
    assert layer_noun("journal", "journal") == "waiting for a journal or log commit"
    assert layer_noun("", "journal") == "what was done for the journal"
    assert layer_noun("device", "") == layer_noun("device", "own") == "the device"


@pytest.mark.slow
def test_the_section_says_what_it_shows_and_what_it_cannot_know() -> None:
    text = shown(run_of(*NAMES))
    assert text.index("of the difference in mean sync latency") < text.index("Largest part of the mean sync latency")
    assert text.index("Largest part of") < text.index("Work under fsync; below, as a multiple of ext4")
    assert "flushes per sync" in text
    assert "Lost events: 0 of" in text
    assert "a journal commit serves every operation that waits for it" in text


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
    changes |= {("xfs", block): wrong for block in range(1, 6)}
    text = shown(run_of(*NAMES, changes=changes))
    said = "btrfs/fsync: 1 of 5 diagnostic trials is withheld: the kernel had no room for 9 of 99 events."
    assert text.count(said) == 1
    assert "xfs/fsync: the traced mean of sync is 1.00 ms, the tool's own 1.20 ms: 17 % apart." in text


def test_a_run_without_diagnostic_trials_says_in_one_line_how_to_get_them() -> None:
    page = sections.why(synthetic_run())
    assert html.words_of(page) == "The run has no diagnostic trials: `mountlab explain RUN` adds them."
    assert page.text.startswith(html.NOTHING)


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
    assert hostile not in sections.why(run).text


@pytest.mark.long
def test_the_latencies_lead_to_the_timelines_of_the_slowest_operations() -> None:
    traced = replace(synthetic_run(), why=simulated_why(synthetic_run().sweep, {"ext4": FSYNC["ext4"]}))
    link = 'href="#The-slowest-operations"'
    assert link in sections.latencies(traced).text
    assert link not in sections.latencies(synthetic_run()).text
    assert "The slowest sync of ext4" in html.words_of(sections.why_slowest(traced))


def test_without_diagnostic_trials_there_are_no_timelines_and_no_flame_graphs() -> None:
    for section in (sections.why_slowest, sections.why_processors, sections.why_asleep):
        assert "The run has no diagnostic trials" in html.words_of(section(synthetic_run()))


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
    assert part.text.count("<details") == drawn
    assert (f"The page draws {drawn} plots of them at most" in html.words_of(part)) == (drawn == most)


@pytest.mark.long
def test_of_many_cells_the_first_are_drawn_and_the_page_says_so() -> None:
    workloads = tuple(Workload(name=f"w{number}", tool="fio", options={}) for number in range(14))
    sweep = sweep_of("ext4", workloads=workloads)
    part = sections.why_slowest(replace(run_of("ext4"), sweep=sweep, why=simulated_why(sweep, blocks=1)))
    assert part.text.count("<details") == 12
    assert "The page draws 12 plots of them at most" in html.words_of(part)
