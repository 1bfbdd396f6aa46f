"""The slowest operations of a cell, and where its processors were, out of the frames of diagnostic trials."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from mountlab.analysis.why_details import processor_stacks, ran_instead, sleep_stacks, slowest
from mountlab.analysis.why_frames import frame_of
from simulated_why import SLEEPS, STACKS, simulated_why, sweep_of

SWEEP = sweep_of("ext4", "xfs")
WHY = simulated_why(SWEEP, blocks=12)
EXT4, XFS = (cell.id for cell in SWEEP.cells)


def test_the_ten_slowest_of_all_trials_come_first_and_whole() -> None:
    rows = WHY.slowest[(WHY.slowest["cell"] == EXT4) & (WHY.slowest["operation"] == "sync")]
    due = sorted(rows.groupby("trial_id")["seconds"].sum(), reverse=True)[:10]
    assert [each.seconds for each in slowest(WHY, EXT4, "sync")] == pytest.approx(due)


def test_the_pieces_of_an_operation_are_in_the_order_in_which_it_went_through_them() -> None:
    shuffled = replace(WHY, slowest=WHY.slowest.sample(frac=1, random_state=1))
    for each in slowest(shuffled, XFS, "sync"):
        own = WHY.slowest[(WHY.slowest["trial_id"] == each.trial_id) & (WHY.slowest["operation"] == "sync")]
        assert [piece.layer for piece in each.pieces] == own["layer"].tolist()


def test_an_operation_that_no_trace_holds_has_no_slowest() -> None:
    assert slowest(WHY, EXT4, "rename") == []


def test_a_sample_is_a_199th_of_a_second_divided_among_the_reads_and_writes() -> None:
    found = processor_stacks(WHY, EXT4)
    writes = 12 * 2000
    assert found.keys() == STACKS["ext4"].keys()
    for stack, samples in STACKS["ext4"].items():
        assert found[stack] == pytest.approx(12 * samples / 199 / writes)


def test_samples_are_of_all_the_time_and_operations_of_what_was_seen() -> None:
    windows = replace(WHY, traces=WHY.traces.assign(seen=0.1))
    whole, tenth = processor_stacks(WHY, EXT4), processor_stacks(windows, EXT4)
    assert tenth == pytest.approx({stack: seconds / 10 for stack, seconds in whole.items()})
    assert sleep_stacks(windows, EXT4) == sleep_stacks(WHY, EXT4)


def test_sleep_is_divided_among_the_reads_and_writes() -> None:
    found = sleep_stacks(WHY, EXT4)
    assert found == pytest.approx({stack: seconds / 2000 for stack, (_, seconds) in SLEEPS["ext4"].items()})


def test_from_few_samples_or_sleeps_nothing_is_drawn() -> None:
    few = replace(WHY, stacks=WHY.stacks.assign(samples=1), sleeps=WHY.sleeps.assign(sleeps=1))
    assert processor_stacks(few, EXT4) == sleep_stacks(few, EXT4) == {}


def test_what_ran_instead_is_a_mean_over_all_trials_that_are_shown() -> None:
    """A program that ran in one trial only counts as nothing in the others; what is withheld is no trial."""
    lost = {("xfs", 3): {"withheld": "the kernel had no room for 9 of 99 events"}}
    frames = simulated_why(SWEEP, blocks=3, changes=lost)
    about = {row[2]: row for row in frames.work[["trial_id", "block", "cell", "filesystem", "workload"]].to_numpy()
             .tolist() if row[2] == XFS}  # fmt: skip
    trials = sorted({(row[0], row[1]) for row in frames.work[frames.work["cell"] == XFS].to_numpy().tolist()})
    seconds = [{"hog": 4e-3, "idle": 1e-3}, {"idle": 3e-3}, {"hog": 1.0}]
    rows = [
        (trial, block, *about[XFS][2:], "sync", "ran_instead_s_per_op", name, value, "s")
        for (trial, block), own in zip(trials, seconds, strict=True)
        for name, value in own.items()
    ]
    known = replace(frames, work=pd.concat([frames.work, frame_of("why_work", rows)]))
    assert list(ran_instead(known, XFS, "sync").items()) == [("hog", 2e-3), ("idle", 2e-3)]
    assert ran_instead(known, XFS, "write") == ran_instead(known, EXT4, "sync") == {}
