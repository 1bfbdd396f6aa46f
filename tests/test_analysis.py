"""Which values form a sample and which pairs a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from mountlab.analysis import (
    MEASUREMENT_COLUMNS,
    answer_metrics,
    comparisons,
    counted,
    estimate_frame,
    factor_names,
    measurement_frame,
)
from mountlab.model import METRICS, Cell, Measurement, Sweep, Trial
from mountlab.stats import compare, estimate, holm
from sweeps import DD_READ, DD_WRITE, TMPFS, sweep

Values = Mapping[str, Mapping[int, float]]
"""Cell id to block to the value of its main metric."""


def make(**more: Any) -> Sweep:
    workloads = more.pop("workloads", {"w": DD_WRITE})
    return sweep(filesystems={"a": TMPFS, "b": TMPFS, "c": TMPFS}, workloads=workloads, baseline="a", **more).sweep


def trial(cell: Cell, block: int) -> Trial:
    return Trial(
        trial_id=f"t{block}-{cell.id}", block=block, warmup=block < 1, cell=cell.id, filesystem=cell.filesystem.name,
        workload=cell.workload.name, tool=cell.workload.tool, factors=cell.workload.factors, mount="m", status="ok",
        reason="", started_at="", elapsed_s=1.0,
    )  # fmt: skip


def frame(the_sweep: Sweep, values: Values, metric: str = "write_bandwidth", label: str = "") -> pd.DataFrame:
    cells = {cell.id: cell for cell in the_sweep.cells}
    return measurement_frame(
        (trial(cells[cell], block), Measurement(metric=metric, value=value, unit=METRICS[metric], label=label))
        for cell, by_block in values.items()
        for block, value in by_block.items()
    )


VALUES: Values = {
    "a/w": {0: 1.0, 1: 100.0, 2: 110.0, 3: 90.0},
    "b/w": {0: 9.0, 1: 210.0, 2: 215.0, 3: 185.0},
    "c/w": {1: 101.0, 3: 89.0},
}


# --- frames -----------------------------------------------------------------------------------------------------------


def test_one_row_a_measurement_with_these_columns() -> None:
    rows = frame(make(), VALUES)
    assert list(rows.columns) == list(MEASUREMENT_COLUMNS)
    assert len(rows) == 10
    first = rows.iloc[0]
    assert (first["cell"], first["block"], first["warmup"], first["unit"]) == ("a/w", 0, True, "B/s")


def test_without_measurements_there_is_an_empty_frame_with_the_same_columns() -> None:
    rows = measurement_frame([])
    assert list(rows.columns) == list(MEASUREMENT_COLUMNS)
    assert len(counted(rows)) == 0
    estimates = estimate_frame(make(), rows, run_id="r", box="b")
    assert len(estimates) == 0
    assert list(estimates.columns)[:2] == ["run_id", "box"]


def test_factors_come_in_the_order_of_the_sweep_file_each_once() -> None:
    the_sweep = make(workloads={"w": {**DD_WRITE, "bs": ["4KiB", "1MiB"]}, "r": {**DD_READ, "bs": ["4KiB", "1MiB"]}})
    assert factor_names(the_sweep) == ["bs", "cache"]


# --- estimates --------------------------------------------------------------------------------------------------------


def test_the_sample_of_a_cell_is_its_counted_trials() -> None:
    """n counts trials, and warm-up trials are kept and not counted."""
    estimates = estimate_frame(make(), frame(make(), VALUES), run_id="r1", box="local").set_index("cell")
    for cell, values in {"a/w": [100, 110, 90], "b/w": [210, 215, 185], "c/w": [101, 89]}.items():
        expected = estimate(values)
        row = estimates.loc[cell]
        assert (row["n"], row["mean"]) == (len(values), expected.mean)
        assert (row["low"], row["high"], row["sd"], row["cv"]) == (
            expected.low,
            expected.high,
            expected.sd,
            expected.cv,
        )
    assert list(estimates["unit"]) == ["B/s"] * 3
    assert set(estimates["run_id"]) == {"r1"}


def test_estimates_have_a_column_a_factor_and_follow_the_order_of_the_sweep() -> None:
    the_sweep = make(workloads={"r": DD_READ, "w": DD_WRITE})
    values = {cell.id: {1: 5.0, 2: 6.0} for cell in reversed(the_sweep.cells)}
    estimates = estimate_frame(the_sweep, frame(the_sweep, values, "elapsed"), run_id="r", box="b")
    assert list(estimates.columns) == [
        "run_id", "box", "filesystem", "tool", "workload", "cache", "metric", "label", "unit", "n", "mean", "low",
        "high",
        "sd", "cv", "level", "method", "cell",
    ]  # fmt: skip
    assert list(estimates["cell"]) == [cell.id for cell in the_sweep.cells]
    assert list(estimates["cache"])[:3] == ["cold", "warm", ""]


def test_labels_of_one_metric_are_samples_of_their_own() -> None:
    the_sweep = make()
    rows = pd.concat([frame(the_sweep, {"a/w": {1: 1.0, 2: 2.0}}, "bytes", "read"),
                      frame(the_sweep, {"a/w": {1: 5.0, 2: 6.0}}, "bytes", "write")])  # fmt: skip
    estimates = estimate_frame(the_sweep, rows, run_id="r", box="b")
    assert dict(zip(estimates["label"], estimates["mean"], strict=True)) == {"read": 1.5, "write": 5.5}


def test_the_level_of_the_sweep_is_that_of_its_estimates() -> None:
    the_sweep = make(design={"level": 0.8})
    (row, *_) = estimate_frame(the_sweep, frame(the_sweep, VALUES), run_id="r", box="b").to_dict("records")
    assert row["level"] == 0.8
    assert row["low"] == estimate([100, 110, 90], level=0.8).low


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_each_file_system_is_compared_with_the_baseline_paired_by_block() -> None:
    found = comparisons(make(), frame(make(), VALUES))
    assert [(each.candidate, each.baseline, each.workload, each.metric) for each in found] == [
        ("b", "a", "w", "write_bandwidth"), ("c", "a", "w", "write_bandwidth"),
    ]  # fmt: skip
    expected = [compare([(210, 100), (215, 110), (185, 90)]), compare([(101, 100), (89, 90)])]
    for ours, other in zip(found, expected, strict=True):
        assert (ours.ratio, ours.low, ours.high, ours.n, ours.p) == (
            other.ratio, other.low, other.high, other.n, other.p,
        )  # fmt: skip


def test_blocks_that_only_one_side_has_form_no_pair() -> None:
    """c failed in block 2: its pairs are blocks 1 and 3, and block 2 of the baseline is left out."""
    assert comparisons(make(), frame(make(), VALUES))[1].n == 2


def test_p_values_are_adjusted_over_the_whole_sweep() -> None:
    the_sweep = make(workloads={"w": {**DD_WRITE, "bs": ["4KiB", "1MiB"]}})
    values = {
        cell.id: {block: 100.0 + 7 * i * block + block % 2 for block in (1, 2, 3)}
        for i, cell in enumerate(the_sweep.cells)
    }
    found = comparisons(the_sweep, frame(the_sweep, values))
    assert len(found) == 4
    assert [each.p_adjusted for each in found] == holm([each.p for each in found])
    assert any(each.p_adjusted > each.p for each in found)


def test_faster_is_a_higher_bandwidth_and_a_lower_time() -> None:
    values = {"a/w": {1: 100.0, 2: 101.0, 3: 100.5}, "b/w": {1: 200.0, 2: 202.5, 3: 201.0}}
    assert comparisons(make(), frame(make(), values))[0].verdict == "faster"
    timed = make(metrics=["elapsed"])
    assert comparisons(timed, frame(timed, values, "elapsed"))[0].verdict == "slower"


def test_equal_sides_are_same_and_unknown_ones_undecided() -> None:
    values = {"a/w": {1: 100.0, 2: 101.0, 3: 99.0}, "b/w": {1: 100.1, 2: 101.0, 3: 99.05}, "c/w": {}}
    b, c = comparisons(make(), frame(make(), values))
    assert b.verdict == "same"
    assert (c.verdict, c.n) == ("undecided", 0)
    assert math.isnan(c.ratio)
    assert math.isnan(c.p_adjusted)


def test_one_block_decides_nothing() -> None:
    found = comparisons(make(), frame(make(), {"a/w": {1: 1.0}, "b/w": {1: 100.0}, "c/w": {1: 1.0}}))
    assert [each.verdict for each in found] == ["undecided", "undecided"]
    assert found[0].ratio == pytest.approx(100)


def test_warm_up_blocks_are_never_compared() -> None:
    found = comparisons(make(), frame(make(), {"a/w": {0: 1.0, 1: 5.0}, "b/w": {0: 3.0}, "c/w": {}}))
    assert [each.n for each in found] == [0, 0]


def test_without_a_baseline_nothing_is_compared() -> None:
    the_sweep = sweep(filesystems={"a": TMPFS, "b": TMPFS}).sweep
    assert comparisons(the_sweep, frame(the_sweep, {"a/dd-write": {1: 1.0}})) == []


def test_without_measurements_every_comparison_is_undecided() -> None:
    found = comparisons(make(), measurement_frame([]))
    assert [each.verdict for each in found] == ["undecided", "undecided"]


# --- what the answer is about -----------------------------------------------------------------------------------------


def test_the_answer_is_about_the_metrics_of_the_sweep_that_a_workload_has() -> None:
    the_sweep = make(
        metrics=["elapsed", "read_bandwidth"], workloads={"w": DD_WRITE, "r": {**DD_READ, "cache": "cold"}}
    )
    rows = pd.concat(
        [frame(the_sweep, {"a/w": {1: 1.0}}, "elapsed"), frame(the_sweep, {"a/r": {1: 1.0}}, "read_bandwidth")]
    )
    assert answer_metrics(the_sweep, rows)["w"] == ("elapsed",)


def test_the_answer_keeps_its_metrics_where_the_first_file_system_failed() -> None:
    the_sweep = make(metrics=["elapsed"])
    assert answer_metrics(the_sweep, frame(the_sweep, {"b/w": {1: 1.0}}, "elapsed")) == {"w": ("elapsed",)}


def test_without_metrics_the_answer_is_about_those_of_the_tool() -> None:
    assert answer_metrics(make(), frame(make(), VALUES)) == {"w": ("write_bandwidth",)}
    assert answer_metrics(make(), measurement_frame([])) == {"w": ("write_bandwidth",)}


# --- metrics of several rows ------------------------------------------------------------------------------------------


def methods(the_sweep: Sweep, *labels: str) -> pd.DataFrame:
    factor = {label: 1.0 + i for i, label in enumerate(labels)}
    return pd.concat([
        frame(the_sweep, {cell: {b: v * factor[label] for b, v in each.items()} for cell, each in VALUES.items()},
              metric="sync_rate", label=label)
        for label in labels
    ])  # fmt: skip


def test_where_a_metric_has_rows_only_each_of_them_is_compared() -> None:
    """pg_test_fsync: fdatasync and open_sync are two answers."""
    the_sweep = make(metrics=["sync_rate"])
    rows = methods(the_sweep, "fdatasync", "open_sync")
    found = comparisons(the_sweep, rows)
    assert [(each.candidate, each.label) for each in found] == [
        ("b", "fdatasync"), ("c", "fdatasync"), ("b", "open_sync"), ("c", "open_sync"),
    ]  # fmt: skip
    assert found[0].ratio == pytest.approx(found[2].ratio)
    assert [each.n for each in found] == [3, 2, 3, 2]


def test_where_a_metric_has_a_whole_its_parts_are_not_compared_beside_it() -> None:
    """Jobs of one fio, and all of them together."""
    the_sweep = make(metrics=["sync_rate"])
    rows = methods(the_sweep, "", "job one")
    assert {each.label for each in comparisons(the_sweep, rows)} == {""}
    assert set(estimate_frame(the_sweep, rows, run_id="r", box="b")["label"]) == {"", "job one"}


def test_a_pair_with_a_zero_has_no_ratio_and_the_others_count() -> None:
    the_sweep = make(metrics=["major_faults"])
    zeros = {**VALUES, "b/w": {1: 0.0, 2: 215.0, 3: 185.0}}
    found = comparisons(the_sweep, frame(the_sweep, zeros, metric="major_faults"))
    assert [each.n for each in found if each.candidate == "b"] == [2]
