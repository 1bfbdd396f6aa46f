"""Why beside a neighbour: syncs behind the journal and beside data of others, and ratios of work that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from mountlab.analysis import why as analysis
from mountlab.analysis.why_frames import frame_of
from mountlab.core.conditions import SAME_PLACE, NeighbourPlace
from mountlab.core.layers import COMMIT_SHARE, OF_THE_DEVICE, OTHERS_SHARE
from mountlab.core.model import Neighbour, Workload
from mountlab.report import html, sections
from mountlab.sentences.why_beside import beside_sentences
from rows import every_row
from simulated_why import simulated_why, sweep_of
from synthetic_run import SyntheticRun, synthetic_run

ALONE, BESIDE = "fsync beside=none", "fsync beside=backup"
LEFT_OUT = (
    "Ratios of device I/Os, flushes and commits are left out: they would count the work of the neighbour as well."
)
TRIAL = ("trial_id", "block", "cell", "filesystem", "workload")
Shares = Mapping[tuple[str, str], tuple[float | None, float | None]]
"""File system and workload to both shares; None is one that the trace does not have."""


def run_of(
    shares: Shares,
    *,
    place: NeighbourPlace = SAME_PLACE,
    levels: tuple[str, ...] = ("none", "backup"),
    blocks: int = 5,
) -> SyntheticRun:
    """A run on ext4 and xfs, alone and beside a backup, whose diagnostic trials all have these shares."""
    commit = Workload(name="fsync", tool="fio", options={})
    workloads = tuple(
        replace(commit, beside=() if level == "none" else (level,), factors={"beside": level}) for level in levels
    )
    sweep = sweep_of("ext4", "xfs", workloads=workloads)
    sweep = replace(sweep, neighbours={"backup": Neighbour(name="backup", workload=commit, place=place)})
    why = simulated_why(sweep, blocks=blocks)
    rows = [
        (*trial, "sync", quantity, "", value, "1")
        for trial in why.traces[list(TRIAL)].drop_duplicates().itertuples(index=False, name=None)
        for quantity, value in zip(
            (COMMIT_SHARE, OTHERS_SHARE), shares.get((trial[3], trial[2].partition("/")[2]), (None, None)), strict=True
        )
        if value is not None
    ]
    work = pd.concat([why.work, frame_of("why_work", rows)], ignore_index=True) if rows else why.work
    return replace(synthetic_run(), sweep=sweep, why=replace(why, work=work), comparisons=[])


def said(run: SyntheticRun) -> dict[str, str]:
    figures = analysis.work(run.why, run.sweep)
    return {label: text.replace("\u00a0", " ") for label, text in beside_sentences(run.sweep, figures)}


BOTH: Shares = {
    ("ext4", ALONE): (0.74, 0.0), ("ext4", BESIDE): (0.8, 0.125),
    ("xfs", ALONE): (0.62, 0.0), ("xfs", BESIDE): (0.6, 0.0),
}  # fmt: skip


def sentence(filesystem: str, commit: str, others: str, without: str = "") -> str:
    waits = f"On {filesystem} a sync waits for the journal in {commit} of its time"
    return f"{waits}, and in {others} the device meanwhile writes data of others{without}."


def test_syncs_of_each_file_system_beside_a_neighbour_and_without() -> None:
    on_ext4 = sentence("ext4", "80.0 %", "12.5 %", " (without neighbour: 74.0 % and 0 %)")
    on_xfs = sentence("xfs", "60.0 %", "0 %", " (without neighbour: 62.0 % and 0 %)")
    assert said(run_of(BOTH)) == {BESIDE: f"{on_ext4} {on_xfs} {LEFT_OUT}"}


ON_EXT4 = sentence("ext4", "80.0 %", "10.0 %")
UNKNOWN = "On ext4 a sync waits for the journal in 80.0 % of its time; how much of it beside data of others is unknown."


@every_row(
    ("shares", "levels", "text"),
    [
        ({("ext4", BESIDE): (0.8, 0.1)}, ("none", "backup"), f"{ON_EXT4} {LEFT_OUT}"),
        ({("ext4", BESIDE): (0.8, 0.1)}, ("backup",), f"{ON_EXT4} {LEFT_OUT}"),
        ({("ext4", BESIDE): (0.8, None)}, ("none", "backup"), f"{UNKNOWN} {LEFT_OUT}"),
        ({}, ("none", "backup"), LEFT_OUT),
    ],
)
def test_what_was_not_recorded_is_not_stated(shares: Shares, levels: tuple[str, ...], text: str) -> None:
    assert said(run_of(shares, levels=levels)) == {BESIDE: text}


def test_of_a_single_diagnostic_trial_no_share_is_stated() -> None:
    assert said(run_of(BOTH, blocks=1)) == {BESIDE: LEFT_OUT}
    assert "On ext4" in said(run_of(BOTH, blocks=2))[BESIDE]


def test_a_workload_without_neighbours_has_no_sentence() -> None:
    assert said(run_of(BOTH, levels=("none",))) == {}


@every_row(
    ("place", "without"),
    [
        (SAME_PLACE, {"ext4", "xfs"}),
        (NeighbourPlace("filesystem", "xfs"), {"xfs"}),
        (NeighbourPlace("filesystem", "ext4"), {"ext4"}),
    ],
)
def test_ratios_that_count_a_neighbours_work_are_left_out_where_it_is_on_the_file_system(
    place: NeighbourPlace, without: set[str]
) -> None:
    run = run_of(BOTH, place=place)
    figures = analysis.work(run.why, run.sweep)
    device = {(each.filesystem, each.workload_label) for each in figures if each.quantity in OF_THE_DEVICE}
    assert device == {("ext4", ALONE), ("xfs", ALONE), *((name, BESIDE) for name in {"ext4", "xfs"} - without)}
    others = {(each.filesystem, each.workload_label) for each in figures if each.quantity == "context_switches_per_op"}
    assert len(others) == 4, "what threads of the tool do is its own"


def test_the_section_has_the_sentences_and_the_shares_as_rows() -> None:
    text = html.words_of(sections.why(run_of(BOTH))).replace("\u00a0", " ")
    assert f"{BESIDE} : On ext4 a sync waits for the journal in 80.0 % of its time" in text
    under = {label: text[text.index(f"Work under {label}") :].partition("Work under")[2] for label in (ALONE, BESIDE)}
    under = {label: rest.partition("Work under")[0] for label, rest in under.items()}
    assert "flushes per sync" in under[ALONE]
    assert "flushes per sync" not in under[BESIDE]
    assert "share of a sync behind the journal 80.0 %" in under[BESIDE]
    assert "share of a sync behind the journal beside data of others 12.5 %" in under[BESIDE]
