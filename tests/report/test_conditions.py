"""The part of a report on states and neighbours, and what a first screen and a terminal say of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core.model import Workload
from mountlab.report import html, sections
from mountlab.report.terminal import run_answer
from mountlab.results.tables import CHANGES, tables
from synthetic_run import SyntheticRun, synthetic_run

STATES = tuple(
    Workload(name="app", tool="dd", options={"direction": "write"}, factors={"state": state})
    for state in ("fresh", "aged")
)


@cache
def aged(**more: Any) -> SyntheticRun:
    """ramfs and tmpfs write as fast when aged; ext4, the baseline, ten times as fast as when fresh, so that it passes
    both."""
    run = synthetic_run(workloads=STATES, caveats=False, blocks=10)
    run.sweep = replace(run.sweep, metrics=("write_bandwidth",), expectation="", **more)
    run.answer_metrics = {workload.label: ("write_bandwidth",) for workload in STATES}
    faster = run.measurements["cell"] == "ext4/app state=aged"
    run.measurements.loc[faster, "value"] *= 10
    run.measurements["metric"] = "write_bandwidth"
    run.comparisons = comparisons(run.sweep, run.measurements)
    return run


def test_every_figure_and_every_ratio_has_its_row_and_flips_stand_first() -> None:
    text = repr(sections.conditions(aged()))
    assert "Write bandwidth under app: from state fresh to state aged" in text
    assert "⇅ flips" in text
    assert "Of 2 ratios 2 flip." in text
    assert "each change with its verdict for all 2 changes together" in text
    assert "all 3 figures together" in text
    frame = sections.conditions(aged()).frame
    assert list(frame["candidate"]) == ["tmpfs", "ramfs", "ext4", "tmpfs", "ramfs"]
    assert list(frame["flips"]) == [False] * 3 + [True] * 2


def test_the_plot_is_of_the_ratios_of_the_answer() -> None:
    page = sections.conditions(aged())._repr_html_()
    assert page.count("<figure") == 1
    assert "Ratios to ext4 by state." in page


def test_without_a_baseline_there_is_what_each_keeps() -> None:
    text = repr(sections.conditions(aged(baseline=None)))
    assert "the write bandwidth of ext4 rises to 9.8 [9.0, 10.5] times that in state fresh." in text
    assert "Change" not in text


def test_a_sweep_without_states_says_so_and_its_screens_are_as_they_were() -> None:
    run = synthetic_run()
    assert sections.conditions(run).startswith(html.NOTHING)
    assert "ranking" not in repr(sections.answer(run))
    assert tables(run)[CHANGES].empty


@pytest.mark.slow
def test_the_first_screen_and_the_terminal_name_the_flip() -> None:
    flips = "The ranking flips: tmpfs is faster than ext4 in state fresh"
    assert flips in repr(sections.answer(aged()))
    assert flips in run_answer(aged())


@pytest.mark.slow
def test_the_changes_can_be_saved() -> None:
    assert f"{CHANGES}.csv" in repr(sections.downloads(aged()))
    assert len(tables(aged())[CHANGES]) == 5
