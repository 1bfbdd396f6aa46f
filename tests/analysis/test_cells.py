"""Which values form a sample and which pairs a comparison."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sized
from dataclasses import replace
from functools import partial
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.estimates import PERCENTILE_COLUMNS, estimate_frame, percentile_frame
from mountlab.analysis.measurements import (
    MEASUREMENT_COLUMNS,
    counted,
    factor_names,
    measurement_frame,
    without_partial,
)
from mountlab.analysis.samples import figure_steps
from mountlab.analysis.sweep_comparisons import comparisons, latency_comparisons
from mountlab.core.errors import ParameterError
from mountlab.core.findings import Comparison
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Measurement, Sweep, Trial, Until
from mountlab.core.units import NS_PER_S
from mountlab.stats import (
    RATIO_METHOD,
    STATISTICS,
    WELCH_METHOD,
    compare,
    compare_unpaired,
    estimate,
    holm,
)
from mountlab.stats.histograms import FEWEST_BEYOND, count, percentile_ns
from mountlab.stats.sequential import nominal_level
from mountlab.sweep.design_entry import DesignFile
from mountlab_dev.bench import many_cells
from rows import every_row
from sweeps import DD_READ, DD_WRITE, TMPFS, sweep

Values = Mapping[str, Mapping[int, float]]
"""Cell id to block to the value of its main metric."""


def make(**more: Any) -> Sweep:
    workloads = more.pop("workloads", {"w": DD_WRITE})
    return sweep(filesystems={"a": TMPFS, "b": TMPFS, "c": TMPFS}, workloads=workloads, baseline="a", **more).sweep


def trial(cell: Cell, block: int) -> Trial:
    return Trial(
        trial_id=f"t{block}-{cell.id}",
        block=block,
        warmup=block < 1,
        cell=cell.id,
        filesystem=cell.filesystem.name,
        workload=cell.workload.name,
        tool=cell.workload.tool,
        factors=cell.workload.factors,
        mount="m",
        status="ok",
        reason="",
        started_at="",
        elapsed_s=1.0,
    )


def frame(
    the_sweep: Sweep, values: Values, metric: str = "write_bandwidth", label: str = "", step: float = 0.0
) -> pd.DataFrame:
    cells, own = {cell.id: cell for cell in the_sweep.cells}, partial(Measurement, metric=metric, step=step)
    return measurement_frame(
        (trial(cells[cell], block), own(value=value, unit=METRICS[metric], label=label))
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
        "run_id",
        "box",
        "filesystem",
        "tool",
        "workload",
        "cache",
        "metric",
        "label",
        "unit",
        "n",
        "censored",
        "mean",
        "low",
        "high",
        "sd",
        "cv",
        "level",
        "method",
        "cell",
    ]
    assert list(estimates["cell"]) == [cell.id for cell in the_sweep.cells]
    assert list(estimates["cache"])[:3] == ["cold", "warm", ""]


def test_labels_of_one_metric_are_samples_of_their_own() -> None:
    the_sweep = make()
    rows = pd.concat(
        [
            frame(the_sweep, {"a/w": {1: 1.0, 2: 2.0}}, "bytes", "read"),
            frame(the_sweep, {"a/w": {1: 5.0, 2: 6.0}}, "bytes", "write"),
        ]
    )
    estimates = estimate_frame(the_sweep, rows, run_id="r", box="b")
    assert dict(zip(estimates["label"], estimates["mean"], strict=True)) == {"read": 1.5, "write": 5.5}


@every_row("name", STATISTICS)
def test_the_design_says_how_trials_are_summed_up(name: str) -> None:
    the_sweep = make(design={"estimate": name})
    (row, *_) = estimate_frame(the_sweep, frame(the_sweep, VALUES), run_id="r", box="b").to_dict("records")
    expected = estimate([100, 110, 90], statistic=name)
    assert (row["mean"], row["low"], row["high"], row["method"]) == (
        expected.mean,
        expected.low,
        expected.high,
        expected.method,
    )


def test_a_statistic_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        ParameterError, match=r"(?s)design\.estimate.*'mode'.*'mean', 'median', 'geometric' or 'harmonic'"
    ):
        make(design={"estimate": "mode"})


def test_every_statistic_can_be_asked_for() -> None:
    """STATISTICS has one entry a statistic; the sweep key must know it."""
    asked = get_args(get_type_hints(DesignFile)["estimate"])
    assert sorted(asked) == sorted(STATISTICS)


def test_a_figure_of_zero_has_no_geometric_mean_and_that_is_missing_not_zero() -> None:
    the_sweep = make(design={"estimate": "geometric"})
    values = {"a/w": {1: 0.0, 2: 4.0}, "b/w": {1: 2.0, 2: 8.0}, "c/w": {}}
    a, b = estimate_frame(the_sweep, frame(the_sweep, values), run_id="r", box="b").to_dict("records")
    assert (math.isnan(a["mean"]), a["n"], b["mean"]) == (True, 2, pytest.approx(4))


def test_what_a_file_system_cannot_do_is_not_compared() -> None:
    """hugetlbfs has no write(): dd cannot run on it, and there is no comparison, not one without blocks."""
    huge = {"type": "hugetlbfs", "size": "128MiB"}
    the_sweep = sweep(filesystems={"a": TMPFS, "b": TMPFS, "h": huge}, workloads={"w": DD_WRITE}, baseline="a").sweep
    found = comparisons(the_sweep, frame(the_sweep, {cell: VALUES[cell] for cell in ("a/w", "b/w")}))
    assert [each.candidate for each in found] == ["b"]
    imported = replace(the_sweep, imported=True, metrics=("write_bandwidth",))  # a log may be of anything
    assert {each.candidate for each in comparisons(imported, frame(the_sweep, {"a/w": VALUES["a/w"]}))} == {"b", "h"}


@pytest.mark.slow
def test_after_a_stopping_rule_intervals_are_wider_than_their_label_would_make_them() -> None:
    until = Until(half_width=0.03)
    the_sweep = replace(make(), design=replace(make().design, until=until))
    (row, *_) = estimate_frame(the_sweep, frame(the_sweep, VALUES), run_id="r", box="b").to_dict("records")
    honest = nominal_level(until, 0.95)
    assert row["level"] == 0.95 < honest
    assert row["high"] > estimate([100, 110, 90], level=honest).high, "and trials may be like their neighbours"
    b = comparisons(the_sweep, frame(the_sweep, VALUES))[0]
    pairs = [(210.0, 100.0), (215.0, 110.0), (185.0, 90.0)]
    assert b.own.level == 0.95
    assert b.own.low < compare(pairs, level=honest).low
    assert b.p > compare(pairs).p


def test_the_level_of_the_sweep_is_that_of_its_estimates() -> None:
    the_sweep = make(design={"level": 0.8})
    (row, *_) = estimate_frame(the_sweep, frame(the_sweep, VALUES), run_id="r", box="b").to_dict("records")
    assert row["level"] == 0.8
    assert row["low"] == estimate([100, 110, 90], level=0.8).low


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_each_file_system_is_compared_with_the_baseline_paired_by_block() -> None:
    found = comparisons(make(), frame(make(), VALUES))
    assert [(each.candidate, each.baseline, each.workload, each.metric) for each in found] == [
        ("b", "a", "w", "write_bandwidth"),
        ("c", "a", "w", "write_bandwidth"),
    ]
    expected = [compare([(210, 100), (215, 110), (185, 90)]), compare([(101, 100), (89, 90)])]
    for ours, other in zip(found, expected, strict=True):
        assert (ours.ratio, ours.own.low, ours.own.high, ours.n, ours.p) == (
            other.ratio,
            other.low,
            other.high,
            other.n,
            other.p,
        )


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
    by_holm = holm([each.p for each in found])
    assert all(theirs <= each.p_adjusted <= min(1, 4 * each.p) for each, theirs in zip(found, by_holm, strict=True))
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


def test_where_blocks_are_incomplete_the_sides_are_not_paired_and_the_method_says_so() -> None:
    values = {"a/w": {1: 100.0, 2: 110.0, 3: 90.0, 4: 95.0}, "b/w": {1: 210.0, 5: 205.0, 6: 190.0}, "c/w": {1: 9.0}}
    b, c = comparisons(make(), frame(make(), values))
    expected = compare_unpaired([210, 205, 190], [100, 110, 90, 95])
    assert (b.method, b.n) == (WELCH_METHOD, 3)
    assert (b.ratio, b.own.low, b.own.high, b.p) == pytest.approx(
        (expected.ratio, expected.low, expected.high, expected.p), rel=1e-12
    )
    assert (c.method, c.n) == (RATIO_METHOD, 1)
    assert math.isnan(c.own.low)


def test_intervals_for_all_together_agree_with_the_verdicts() -> None:
    values = {
        "a/w": {1: 100.0, 2: 101.0, 3: 102.0, 4: 99.0}, "b/w": {1: 200.0, 2: 203.0, 3: 202.0, 4: 199.0},
        "c/w": {1: 104.0, 2: 95.0, 3: 109.0, 4: 103.0},
    }  # fmt: skip
    b, c = comparisons(make(), frame(make(), values))
    assert (b.verdict, c.verdict) == ("faster", "undecided")
    assert 1 < b.joint.low < b.own.low < b.ratio < b.own.high < b.joint.high
    assert c.joint.low < 1 < c.joint.high
    assert b.needed is None
    assert c.needed is not None
    assert c.needed > 4


def test_two_sides_that_are_no_cells_are_not_compared() -> None:
    """A sweep file may take combinations out."""
    the_sweep = replace(make(), excluded=("c/w",))
    estimates = estimate_frame(the_sweep, frame(make(), VALUES), run_id="r", box="b")
    assert list(estimates["cell"]) == ["a/w", "b/w"]
    found = comparisons(the_sweep, frame(the_sweep, {"a/w": VALUES["a/w"], "b/w": VALUES["b/w"]}))
    assert [each.candidate for each in found] == ["b"]
    without_baseline = replace(make(), excluded=("a/w",))
    assert comparisons(without_baseline, frame(without_baseline, {"b/w": VALUES["b/w"]})) == []


def test_of_two_figures_of_one_block_the_last_counts() -> None:
    rows = pd.concat([frame(make(), VALUES), frame(make(), {"b/w": {3: 180.0}})])
    assert comparisons(make(), rows)[0].ratio == pytest.approx(
        compare([(210, 100), (215, 110), (180, 90)]).ratio, rel=1e-12
    )


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
    return pd.concat(
        [
            frame(
                the_sweep,
                {cell: {b: v * factor[label] for b, v in each.items()} for cell, each in VALUES.items()},
                metric="sync_rate",
                label=label,
            )
            for label in labels
        ]
    )


def test_where_a_metric_has_rows_only_each_of_them_is_compared() -> None:
    """pg_test_fsync: fdatasync and open_sync are two answers."""
    the_sweep = make(metrics=["sync_rate"])
    rows = methods(the_sweep, "fdatasync", "open_sync")
    found = comparisons(the_sweep, rows)
    assert [(each.candidate, each.label) for each in found] == [
        ("b", "fdatasync"),
        ("c", "fdatasync"),
        ("b", "open_sync"),
        ("c", "open_sync"),
    ]
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


# --- many cells -------------------------------------------------------------------------------------------------------

BLOCKS = st.dictionaries(st.integers(0, 6), st.one_of(st.floats(0.01, 1e9), st.just(0.0)), max_size=7)


@settings(deadline=None, max_examples=8)
@given(st.fixed_dictionaries({f"{fs}/w bs={bs}": BLOCKS for fs in "abc" for bs in ("4KiB", "1MiB")}))
@pytest.mark.slow
def test_all_cells_at_once_give_what_each_gives_alone(values: dict[str, dict[int, float]]) -> None:
    """Unequal n, missing trials, n of 0, 1 and 2, zeros and warm-up among them; to 12 digits."""
    the_sweep = make(workloads={"w": {**DD_WRITE, "bs": ["4KiB", "1MiB"]}})
    rows = frame(the_sweep, values)
    estimates = estimate_frame(the_sweep, rows, run_id="r", box="b").set_index("cell")
    kept = {cell: {b: v for b, v in by_block.items() if b > 0} for cell, by_block in values.items()}
    steps, metric = figure_steps(the_sweep, rows), ("write_bandwidth", "")
    assert list(estimates.index) == [cell.id for cell in the_sweep.cells if kept[cell.id]]
    for cell, row in estimates.iterrows():
        alone = estimate(list(kept[str(cell)].values()), step=steps[str(cell), *metric])
        names = ["mean", "low", "high", "sd", "cv", "n"]
        expected = [getattr(alone, name) for name in names]
        assert [row[name] for name in names] == pytest.approx(expected, rel=1e-12, nan_ok=True)
    for each in comparisons(the_sweep, rows):
        ours, theirs = (kept[f"{fs}/w bs={each.factors['bs']}"] for fs in (each.candidate, each.baseline))
        names = (f"{fs}/w bs={each.factors['bs']}" for fs in (each.candidate, each.baseline))
        own = tuple(steps.get((name, *metric), 0.0) for name in names)
        sides = [[v for v in side.values() if v > 0] for side in (ours, theirs)]
        pairs = [(ours[b], theirs[b]) for b in sorted(ours.keys() & theirs.keys()) if ours[b] > 0 and theirs[b] > 0]
        paired = each.method == RATIO_METHOD
        alone_ratio = compare(pairs, steps=own) if paired else compare_unpaired(*sides, steps=own)
        found = [each.ratio, each.own.low, each.own.high, each.p, each.n]
        wanted = [getattr(alone_ratio, name) for name in ("ratio", "low", "high", "p", "n")]
        assert found == pytest.approx(wanted, rel=1e-12, nan_ok=True)


def calls(work: Callable[[], Sized]) -> tuple[int, int]:
    """How many rows the work gives, and how many functions of Python it calls."""
    counted = [0]

    def count(_: object, event: str, __: object) -> None:
        counted[0] += event == "call"

    sys.setprofile(count)
    try:
        rows = len(work())
    finally:
        sys.setprofile(None)
    return rows, counted[0]


@pytest.mark.slow
def test_many_cells_are_not_computed_one_by_one() -> None:
    """`make bench` measures how long it takes. To compare one pair of samples alone takes some 300 calls."""
    works: list[tuple[Callable[..., Sized], int]] = [
        (lambda *cells: estimate_frame(*cells, run_id="r", box="b"), 10),
        (comparisons, 100),
    ]
    few, many = many_cells(100), many_cells(400)
    for work, most in works:
        (rows, called), (more_rows, more_called) = (calls(partial(work, *cells)) for cells in (few, many))
        assert more_rows > 3 * rows
        assert more_called - called < most * (more_rows - rows)


# --- latency percentiles ----------------------------------------------------------------------------------------------


READS = sweep(workloads={"r": DD_READ}).sweep


def latencies(trials: int, ios: int) -> list[Any]:
    rng = np.random.default_rng(11)
    return [rng.lognormal(10, 0.5, ios).astype(int) for _ in range(trials)]


def test_a_percentile_of_a_cell_is_estimated_from_those_of_its_trials() -> None:
    """Each is that of numpy, within a bin of fio's; mean and interval are those of `estimate`."""
    (cell, *_), trials = READS.cells, latencies(4, 3000)
    frame = percentile_frame(READS, {cell.id: {"read.clat_ns": [count(map(int, each)) for each in trials]}})
    assert tuple(frame.columns) == PERCENTILE_COLUMNS
    row = frame[frame.percent == 99].iloc[0]
    own = [float(np.percentile(each, 99, method="inverted_cdf")) / 1e9 for each in trials]
    assert row["mean"] == pytest.approx(np.mean(own), rel=1 / 64)
    wanted = estimate([percentile_ns(count(map(int, each)), 99) / NS_PER_S for each in trials], level=0.95)
    assert (row["mean"], row.low, row.high, row.n) == pytest.approx((wanted.mean, wanted.low, wanted.high, 4))
    assert (row.cell, row.workload, row.place) == (cell.id, cell.workload.label, "read.clat_ns")


def test_a_percentile_that_rests_on_a_handful_of_ios_is_left_out() -> None:
    (cell, *_), few = READS.cells, latencies(2, 100 * FEWEST_BEYOND)
    histograms = [count(map(int, few[0])), count(map(int, few[1][:-1]))]  # one trial has one I/O less
    frame = percentile_frame(READS, {cell.id: {"read.clat_ns": histograms}})
    assert frame.percent.max() == 95
    whole = percentile_frame(READS, {cell.id: {"read.clat_ns": histograms[:1]}})
    assert whole.percent.max() == 99
    assert whole[["low", "high"]].isna().all().all(), "one trial has no interval"


def test_a_low_percentile_rests_on_the_ios_below_it() -> None:
    (cell, *_), few = READS.cells, latencies(1, 100 * FEWEST_BEYOND - 1)
    frame = percentile_frame(READS, {cell.id: {"read.clat_ns": [count(map(int, few[0]))]}})
    assert frame.percent.min() == 10


def test_a_percentile_that_one_trial_lacks_is_missing_in_its_cell() -> None:
    """The other trials would be a choice among trials: those that did more I/Os. The warm-up does not count."""
    own = make()
    rows = [
        (trial(cell, block), Measurement(metric=metric, value=9.0 + block, unit=METRICS[metric]))
        for cell in own.cells
        for block in range(4)
        for metric in ("read_latency_p50", "read_latency_p99", "read_iops")
        if (metric, cell.id, block) != ("read_latency_p99", "a/w", 3) and (metric, block) != ("read_latency_p50", 0)
    ]
    whole = measurement_frame(rows)
    left = without_partial(whole)
    gone = whole.loc[~whole.index.isin(left.index), ["cell", "metric"]].drop_duplicates()
    assert gone.to_numpy().tolist() == [["a/w", "read_latency_p99"]]
    assert without_partial(left).equals(left)
    assert without_partial(whole[:0]).empty


def test_without_histograms_there_are_no_percentiles() -> None:
    assert percentile_frame(READS, {}).empty
    assert tuple(percentile_frame(READS, {}).columns) == PERCENTILE_COLUMNS


# --- rounded figures --------------------------------------------------------------------------------------------------


def test_a_run_of_whole_microseconds_is_not_certain() -> None:
    """Three trials of 21 us each beside three of 20 us: half a step each way explains all of it."""
    the_sweep = make()
    values = {f"{name}/w": dict.fromkeys((1, 2, 3), us * 1e-6) for name, us in (("a", 20), ("b", 21), ("c", 20))}
    rows = frame(the_sweep, values, "write_bandwidth", step=1e-6)
    estimates = estimate_frame(the_sweep, rows, run_id="r", box="b")
    assert (estimates["high"] - estimates["low"] > 1e-6).all()
    assert {each.verdict for each in comparisons(the_sweep, rows)} == {"undecided"}
    assert set(figure_steps(the_sweep, rows).values()) == {1e-6}


def test_the_step_of_a_sample_is_the_root_mean_square_of_those_of_its_values() -> None:
    """999 MB/s and 1.00 GB/s of one cell: uniform errors of 1 and of 10 MB/s have a mean variance of (1 + 100) / 24."""
    the_sweep = make()
    fine, coarse = (frame(the_sweep, {"a/w": {block: 1e9}}, step=step) for block, step in ((1, 1e6), (2, 1e7)))
    rows = pd.concat([fine, coarse], ignore_index=True)
    assert figure_steps(the_sweep, rows)["a/w", "write_bandwidth", ""] ** 2 / 12 == pytest.approx((1 + 100) / 24 * 1e12)


def test_identical_pairs_of_a_coarse_figure_beside_a_fine_one_are_not_certain() -> None:
    """1.23 GB/s in each trial beside 1.24 GB/s, and 250 MB/s in the same run: the digits of one figure say nothing of
    those of another. Rounding alone explains the difference."""
    the_sweep = make()
    fast = {name: dict.fromkeys((1, 2, 3), value) for name, value in (("a/w", 1.23e9), ("b/w", 1.24e9))}
    rows = pd.concat([frame(the_sweep, fast, step=1e7), frame(the_sweep, {"c/w": {1: 2.5e8, 2: 2.5e8}}, step=1e6)])
    (compared,) = [each for each in comparisons(the_sweep, rows) if each.candidate == "b"]
    assert compared.p > 0.05
    assert compared.verdict == "undecided"


def of_latencies(sweep: Sweep, rows: pd.DataFrame) -> list[Comparison]:
    return latency_comparisons(sweep, rows, answered=answer_metrics(sweep, rows))


def with_latencies(**own: Any) -> tuple[Sweep, pd.DataFrame]:
    """Ten blocks of three file systems: c is twice as slow as the others in everything that is kept of latencies."""
    sweep, rng = make(**own), np.random.default_rng(8)
    parts = {"write_bandwidth": 1e8} | dict.fromkeys(
        ("write_latency_p50", "write_latency_p95", "write_latency_p99", "write_latency_p99_9",
         "write_submission_latency_p99", "sync_latency_p99"), 1e-3,
    )  # fmt: skip
    made = []
    for metric, size in parts.items():
        slow = 0.5 if metric == "write_bandwidth" else 2.0
        values = {
            f"{name}/w": {block: size * by * math.exp(rng.normal(0, 0.02)) for block in range(1, 11)}
            for name, by in {"a": 1.0, "b": 1.0, "c": slow}.items()
        }
        made.append(frame(sweep, values, metric))
    return sweep, pd.concat(made, ignore_index=True)


def test_the_middle_and_the_tail_of_latencies_are_compared_and_less_is_faster() -> None:
    sweep, rows = with_latencies()
    found = of_latencies(sweep, rows)
    metrics = ["write_latency_p50", "write_latency_p99", "write_latency_p99_9", "sync_latency_p99"]
    assert {each.metric for each in found} == set(metrics)
    assert {(each.candidate, each.verdict) for each in found if each.candidate == "c"} == {("c", "slower")}
    assert all(1.9 < each.ratio < 2.1 for each in found if each.candidate == "c")
    assert {each.method for each in found} == {RATIO_METHOD}


def test_the_ratio_of_a_percentile_is_that_of_its_trials_paired_by_block() -> None:
    sweep, rows = with_latencies()
    own = rows[rows.metric == "write_latency_p99"].pivot_table(index="block", columns="cell", values="value")
    wanted = compare(list(zip(own["c/w"], own["a/w"], strict=True)))
    found = next(each for each in of_latencies(sweep, rows) if (each.metric, each.candidate) ==
                 ("write_latency_p99", "c"))  # fmt: skip
    assert (found.ratio, found.own.low, found.own.high) == pytest.approx((wanted.ratio, wanted.low, wanted.high))


def test_percentiles_are_a_family_of_their_own() -> None:
    """The answer is as certain with them as without, and they are corrected for one another."""
    sweep, rows = with_latencies()
    alone = comparisons(sweep, rows[rows.metric == "write_bandwidth"])
    assert list(map(repr, comparisons(sweep, rows))) == list(map(repr, alone))
    together = of_latencies(sweep, rows)
    assert len(together) == 8
    few = of_latencies(sweep, rows[rows.metric.isin(["write_bandwidth", "write_latency_p99"])])
    by_key = {(each.metric, each.candidate): each for each in together}
    for each in few:
        same = by_key[each.metric, each.candidate]
        assert same.p == pytest.approx(each.p)
        assert same.joint.high / same.joint.low > each.joint.high / each.joint.low


def test_a_percentile_that_the_answer_is_about_is_in_no_second_family() -> None:
    sweep, rows = with_latencies(metrics=["write_latency_p99"])
    assert {each.metric for each in comparisons(sweep, rows)} == {"write_latency_p99"}
    assert "write_latency_p99" not in {each.metric for each in of_latencies(sweep, rows)}


def test_a_percentile_that_one_side_lacks_is_not_compared() -> None:
    """Too few I/Os in one trial of the baseline: `without_partial` leaves out the percentile of that cell."""
    sweep, rows = with_latencies()
    lost = (rows.metric == "write_latency_p99_9") & (rows.cell == "a/w") & (rows.block == 3)
    found = of_latencies(sweep, without_partial(rows[~lost]))
    assert "write_latency_p99_9" not in {each.metric for each in found}
    assert "write_latency_p99" in {each.metric for each in found}
    assert of_latencies(sweep, rows[rows.metric == "write_bandwidth"]) == []


# --- what would decide ------------------------------------------------------------------------------------------------


def test_what_no_sensible_number_of_blocks_decides_says_how_much_noise_must_go_and_where_it_is() -> None:
    """One side varies by 30 %, the other by 0.3 %, and their means differ by 1 %; beside it a clear difference."""
    sweep, rng = make(), np.random.default_rng(3)
    logs = rng.normal(size=12)
    logs = 0.3 * (logs - logs.mean()) / logs.std()
    noisy = {block: 101 * math.exp(log) for block, log in enumerate(logs, start=1)}
    calm = {block: 100 * math.exp(0.003 * (-1) ** block) for block in noisy}
    found = comparisons(sweep, frame(sweep, {"a/w": calm, "b/w": noisy}))[0]
    assert (found.verdict, found.needed, found.noise) == ("undecided", None, "candidate")
    assert 8 < found.reduce < 40
    clear = comparisons(sweep, frame(sweep, {"a/w": calm, "b/w": {k: 2 * v for k, v in calm.items()}}))[0]
    assert (clear.needed, clear.noise, math.isnan(clear.reduce)) == (None, "", True)
