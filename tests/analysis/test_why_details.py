"""The slowest operations of a cell, and where its processors were, out of the frames of diagnostic trials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mountlab.analysis.why_details import processor_stacks, slowest
from simulated_why import STACKS, simulated_why, sweep_of

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


def test_from_few_samples_nothing_is_drawn() -> None:
    few = replace(WHY, stacks=WHY.stacks.assign(samples=1))
    assert processor_stacks(few, EXT4) == {}
