"""Caveats about the trials of a cell beside each other and in their order: raised, not raised, and how often."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from checks.test_checks import EXT4, READ, TEN, build, found, make, the_only
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS, Evidence, find_caveats
from mountlab.checks.steady import rounds_of
from mountlab.core.findings import Caveat
from mountlab.core.model import Measurement, Trial
from mountlab.fio.series import Series, SeriesPoint
from rows import every_row

SHAPES = ("outlier", "two-modes", "drift", "step", "autocorrelated", "warm-up-too-short", "noisy")


def of(*values: float) -> Evidence:
    """One cell with these values, in MB/s, in the order of the blocks."""
    return build(make(), values={"ext4/r": [each * 1e6 for each in values]})


def cells(values: np.ndarray) -> Evidence:
    """Many cells, one a row."""
    many = make(workloads={f"r{i:02d}": READ for i in range(len(values))})
    return build(many, values={cell.id: list(row) for cell, row in zip(many.cells, values, strict=True)})


# --- outliers and modes -----------------------------------------------------------------------------------------------


def test_an_outlier_is_named_with_its_trial_and_still_counts() -> None:
    evidence = of(100, 101, 99, 100.5, 99.5, 100.2, 40, 101.3, 99.9, 100.8)
    caveat = the_only("outlier", evidence)
    assert (caveat.severity, caveat.subject, caveat.metrics) == ("note", "ext4/r", "read_bandwidth")
    assert "far from their median: t0007 (-60.0%). They count: Mountlab drops no trial by itself" in caveat.message
    assert len(evidence.samples[0].values) == 10


def test_a_cell_without_a_scale_is_not_passed() -> None:
    flat = find_caveats(of(*[20] * 9, 24))
    assert "ext4/r" in flat.not_checked["outlier"]
    assert "outlier" not in flat.passed
    assert "outlier" in find_caveats(of(*[20] * 10)).passed, "all alike: none is far"
    assert "t0010" in the_only("outlier", of(*[20] * 6, 20.5, 21, 22, 200)).message


def test_ordinary_spread_is_no_outlier_nor_is_a_deviation_that_does_not_matter() -> None:
    assert found("outlier", build(make(), values={"ext4/r": TEN})) == []
    assert found("outlier", of(100, 100.01, 99.99, 100.02, 99.98, 101)) == [], "1 %, and 2 % is what matters"


def test_trials_in_two_groups_are_told() -> None:
    caveat = the_only("two-modes", of(*([100, 101, 99, 100.5, 99.5, 100.2, 150, 151, 149, 150.5, 149.6, 150.3] * 2)))
    assert caveat.severity == "warning"
    assert "read_bandwidth falls into two groups or more (dip test over 24 trials)" in caveat.message


def test_trials_in_one_group_are_not() -> None:
    assert found("two-modes", build(make(), values={"ext4/r": TEN})) == []


# --- order ------------------------------------------------------------------------------------------------------------


def test_values_that_fall_over_the_run_drift() -> None:
    caveat = the_only("drift", of(*(100 - 2 * i for i in range(10))))
    assert (caveat.severity, caveat.scope, caveat.metrics) == ("warning", "cell", "read_bandwidth")
    assert "read_bandwidth fell over the run, by -14.3% from its first to its last third" in caveat.message


@pytest.mark.parametrize(("first", "last", "cancels"), [(1, 6, True), (5, 12, True), (7, 9, False)])
def test_drift_says_in_which_ratios_it_does_not_cancel(first: int, last: int, cancels: bool) -> None:
    """Of 12 blocks the baseline lacks those before `first`, the other side those after `last`; 3 pairs are too few."""
    falling = [1e8 * (1 - 0.02 * block) for block in range(12)]
    two = make(filesystems={"ext4": EXT4, "xfs": {**EXT4, "type": "xfs"}}, baseline="ext4")
    whole = build(two, values={"ext4/r": falling, "xfs/r": falling})
    rows = whole.measurements
    has = np.where(rows["filesystem"] == "ext4", rows["block"] >= first, rows["block"] <= last)
    messages = [each.message for each in found("drift", replace(whole, measurements=rows[has]))]
    assert messages
    assert all(("in the ratio of xfs/r it does not" in each) is not cancels for each in messages)


def test_all_cells_that_drift_a_little_together_are_told_of_the_run() -> None:
    rng = np.random.default_rng(5)
    values = 100e6 * np.linspace(1, 1.06, 10) * rng.normal(1, 0.03, size=(20, 10))
    (of_run,) = [each for each in found("drift", cells(values)) if each.scope == "run"]
    assert "over all cells together the figures got better, by +" in of_run.message


@pytest.mark.parametrize("name", ["drift", "step", "warm-up-too-short"])
def test_a_box_that_slows_down_shows_in_rates_that_fall_beside_times_that_rise(name: str) -> None:
    """As much as the rates of half of the cells fall, the times of the others rise: averaged as they are, they
    cancel."""
    courses = {
        "drift": np.geomspace(1, 0.6, 20),
        "step": np.repeat([1, 0.6], 10),
        "warm-up-too-short": np.append(0.5, np.ones(19)),
    }
    speeds = courses[name] * np.random.default_rng(9).normal(1, 0.02, size=(8, 20))
    times = {f"r{i:02d}" for i in range(4, 8)}
    speeds[4:] = 1 / speeds[4:]
    whole = cells(100e6 * speeds)
    rows = whole.measurements.copy()
    rows.loc[rows["workload"].isin(times), "metric"] = "elapsed"
    answer = {label: ("elapsed",) if label in times else ("read_bandwidth",) for label in whole.answer_metrics}
    (of_run,) = [
        each for each in found(name, replace(whole, measurements=rows, answer_metrics=answer)) if each.scope == "run"
    ]
    assert "(times as rates)" in of_run.message
    assert re.search(r"-(3|4|5)\d\.\d% \(times as rates\)", of_run.message)


def cells_in_order(logs: np.ndarray, fall: float, rng: np.random.Generator) -> Evidence:
    """Many cells, one a row, in a new order in each block, with a fall from the first trial of the run to the last."""
    count, blocks = logs.shape
    orders = rng.permuted(np.tile(np.arange(count), (blocks, 1)), axis=1)
    falls = np.empty((blocks, count))
    np.put_along_axis(falls, orders, np.linspace(0, math.log(fall), blocks * count).reshape(blocks, count), axis=1)
    whole = cells(100e6 * np.exp(logs + falls.T))
    ran = [cell * blocks + block for block in range(blocks) for cell in orders[block]]
    return replace(whole, trials=whole.trials.iloc[ran].reset_index(drop=True))


@pytest.mark.parametrize("blocks", [4, 5])
def test_few_blocks_show_a_drift_of_all_cells_by_their_order_and_by_the_order_inside(blocks: int) -> None:
    """From 2 to 0.3 of the mean over the run, trial after trial; no cell alone has trials enough."""
    rng = np.random.default_rng(7)
    (of_run,) = found("drift", cells_in_order(rng.normal(0, 0.05, size=(12, blocks)), 0.3 / 2, rng))
    assert (of_run.scope, of_run.severity) == ("run", "warning")
    assert "the figures got worse, by -" in of_run.message
    assert "from the first to the last block, in every block, and inside of blocks" in of_run.message


def test_few_blocks_that_fall_without_a_fall_inside_show_no_drift() -> None:
    """Of four blocks one order in twelve is straight, whatever their trials have in common."""
    rng = np.random.default_rng(8)
    logs = np.array([0.3, 0.2, 0.1, 0.0]) + rng.normal(0, 0.05, size=(12, 4))
    assert found("drift", cells_in_order(logs, 1.0, rng)) == []
    assert found("drift", cells_in_order(logs[:, ::-1], 1.0, rng)) == []


def test_values_without_a_trend_and_one_too_small_to_matter_do_not_drift() -> None:
    assert found("drift", build(make(), values={"ext4/r": TEN})) == []
    assert found("drift", of(*(100 + 0.1 * i for i in range(10)))) == [], "1 % over the whole run"
    assert found("drift", of(100, 90, 80, 70, 60)) == [], "five trials cannot show it"


def test_values_that_change_at_once_are_told_with_the_block() -> None:
    wobble = [0, 0.7, -0.4, 0.3, -0.8, 0.5, -0.2, 0.9, -0.6, 0.1]
    caveat = the_only("step", of(*(100 + each for each in wobble), *(80 + each for each in wobble)))
    assert caveat.severity == "warning"
    assert "changed by -20.0% at block 11 (t0011) and stayed there (Pettitt)" in caveat.message


def test_all_cells_that_change_at_once_are_told_of_the_run() -> None:
    rng = np.random.default_rng(6)
    values = 100e6 * np.repeat([1, 0.9], 10) * rng.normal(1, 0.05, size=(12, 20))
    (of_run,) = [each for each in found("step", cells(values)) if each.scope == "run"]
    assert "over all cells together the figures changed by -" in of_run.message
    assert "after 10 blocks" in of_run.message


def test_values_that_change_never_or_by_too_little_have_no_step() -> None:
    assert found("step", build(make(), values={"ext4/r": TEN})) == []
    assert found("step", of(*([100, 100.1, 99.9, 100.05, 99.95] * 2), *([101, 101.1, 100.9, 101.05, 100.95] * 2))) == []


def test_what_is_rare_in_one_cell_and_not_among_forty_is_a_note_that_says_so() -> None:
    rng = np.random.default_rng(12)
    values = rng.normal(100e6, 2e6, size=(40, 10))
    values[7] = 100e6 * np.repeat([1, 0.8], 5) * rng.normal(1, 0.01, size=10)
    (caveat,) = [each for each in found("step", cells(values)) if each.subject == "ext4/r07"]
    assert caveat.severity == "note"
    assert caveat.message.endswith("By chance, at most 1% of 40 cells without a cause look like this.")


def test_neighbours_that_are_alike_are_told() -> None:
    wave = [100 + 10 * np.sin(2 * np.pi * i / 12) for i in range(36)]
    caveat = the_only("autocorrelated", of(*wave))
    assert caveat.severity == "warning"
    assert "of one block is like that of the next (rank von Neumann ratio over 36 trials)" in caveat.message


def test_independent_trials_and_those_that_drift_are_not_called_autocorrelated() -> None:
    assert found("autocorrelated", build(make(), values={"ext4/r": TEN})) == []
    assert found("autocorrelated", of(*(100 - 2 * i for i in range(10)))) == [], "told by drift"


# --- steady state -----------------------------------------------------------------------------------------------------


def test_a_first_block_that_is_slower_everywhere_tells_of_a_short_warm_up() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(100e6, 1e6, size=(8, 6))
    values[:, 0] *= 0.6
    caveat = the_only("warm-up-too-short", cells(values))
    assert (caveat.severity, caveat.scope) == ("warning", "run")
    assert "over all cells the first block was -40" in caveat.message
    assert "limit 20%" in caveat.message
    assert "Set design.warmup to more blocks" in caveat.message


def test_a_run_that_begins_as_it_goes_on_was_warm() -> None:
    rng = np.random.default_rng(1)
    assert found("warm-up-too-short", cells(rng.normal(100e6, 1e6, size=(8, 6)))) == []
    noisy = rng.normal(100e6, 20e6, size=(1, 6))
    assert found("warm-up-too-short", cells(noisy)) == [], "unsteady, but the first is like the others"
    close = rng.normal(100e6, 1e5, size=(8, 6)) * [0.95, 1, 1, 1, 1, 1]
    assert found("warm-up-too-short", cells(close)) == [], "the first is unlike the others, but all are steady"


def logged(*rounds: float, points: int = 4, jobs: int = 1) -> list[Series]:
    """fio's log of a trial that had these bandwidths in equal parts."""
    seconds = [(i + 1) * 0.1 for i in range(points * len(rounds))]
    values = [value for value in rounds for _ in range(points)]
    row = tuple(SeriesPoint(second, value) for second, value in zip(seconds, values, strict=True))
    return [Series("read_bandwidth", "B/s", job + 1, row) for job in range(jobs)]


def with_logs(series: list[Series]) -> Evidence:
    the_sweep = make(workloads={"f": {"tool": "fio", "rw": "randread", "size": "64MiB", "log_avg_msec": 100}})
    trials = [
        Trial(
            trial_id=f"t{block:04d}",
            block=block,
            warmup=False,
            cell="ext4/f",
            filesystem="ext4",
            workload="f",
            tool="fio",
            factors={},
            mount="m-ext4",
            status="ok",
            reason="",
            started_at="",
            elapsed_s=1.0,
        )
        for block in range(1, 6)
    ]
    rows = measurement_frame((trial, Measurement(metric="read_bandwidth", value=1e8, unit="B/s")) for trial in trials)
    return replace(
        build(make()),
        trials=pd.DataFrame([vars(trial) for trial in trials]),
        sweep=the_sweep,
        measurements=rows,
        answer_metrics=answer_metrics(the_sweep, rows),
        estimates=estimate_frame(the_sweep, rows, run_id="r", box="b"),
        series={trial.trial_id: series for trial in trials},
    )


def test_a_trial_whose_bandwidth_falls_inside_of_it_is_not_steady() -> None:
    """SNIA: excursion within 20 %, slope within 10 % of the average, over five rounds."""
    caveat = the_only("not-steady", with_logs(logged(150, 130, 110, 90, 80)))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/f")
    assert "in 5 of its 5 trials (t0001, t0002, t0003, ...) the bandwidth was not steady" in caveat.message
    assert "by up to 62% of its average (limit 20%)" in caveat.message


def test_a_trial_whose_bandwidth_stays_is_steady() -> None:
    assert found("not-steady", with_logs(logged(100, 104, 98, 101, 102))) == []
    assert found("not-steady", with_logs(logged(150, 80, 90, 100, 10, points=1))) == [], "too coarse a log"


def test_the_jobs_of_a_trial_are_added_up_in_equal_parts_of_its_time() -> None:
    assert rounds_of(logged(10, 20, 30, 40, 50, jobs=2)) == [20, 40, 60, 80, 100]
    assert rounds_of([]) == []


# --- how often --------------------------------------------------------------------------------------------------------


def raised(evidence: Evidence) -> list[Caveat]:
    return [each for code in SHAPES for each in found(code, evidence) if each.severity != "note"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "sweeps", "most"),
    [(10, 5, 2), *(pytest.param(blocks, 25, 5, marks=pytest.mark.long) for blocks in (10, 20))],
)
def test_forty_quiet_cells_rarely_raise_one(blocks: int, sweeps: int, most: int) -> None:
    """Holm over the cells: of 25 sweeps of 40 identical cells at cv 5 %, no more than chance would have.

    Families of tests at 1 % each, and two modes at 5 % of a test that is careful, make some 5 %: more than 2 of 5
    sweeps, or 5 of 25, raise one in one of 1,000 cases. Without Holm nearly all would.
    """
    rng = np.random.default_rng(blocks)
    found = [raised(cells(rng.normal(100e6, 5e6, size=(40, blocks)))) for _ in range(sweeps)]
    assert sum(bool(each) for each in found) <= most


def test_a_run_with_trials_missing_from_a_block_is_judged_by_the_blocks_that_all_have() -> None:
    rng = np.random.default_rng(3)
    evidence = cells(rng.normal(100e6, 1e6, size=(3, 7)))
    gone = evidence.measurements[
        ~((evidence.measurements["cell"] == "ext4/r01") & (evidence.measurements["block"] < 4))
    ]
    assert "warm-up-too-short" in find_caveats(replace(evidence, measurements=gone)).not_checked


@pytest.mark.slow
@every_row("code", SHAPES)
def test_zeros_and_constants_are_no_reason_to_crash(code: str) -> None:
    for values in ([0.0] * 12, [100e6] * 12, [0.0] * 6 + [1.0] * 6):
        list(CHECKS[code](build(make(filesystems={"ext4": EXT4}), values={"ext4/r": values})))
