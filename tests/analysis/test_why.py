"""Why one is slower: the parts of a latency, their shares of a difference, ratios of work, and what is withheld."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from mountlab.analysis import why, why_doubts
from mountlab.analysis.why import LayerPart
from mountlab.analysis.why_frames import COLUMNS, Why, frame_of
from mountlab.core.findings import Comparison
from mountlab.stats import compare
from repetition import few_then_many
from rows import every_row
from simulated_why import FSYNC, simulated_why, sweep_of
from synthetic_run import comparison

SWEEP = sweep_of("ext4", "xfs")
PAIR = comparison(baseline="ext4", candidate="xfs", workload="fsync", tool="fio")


def causes(frames: Why, sweep: object = SWEEP, *pairs: Comparison) -> list[why.Cause]:
    return why.causes(frames, sweep, pairs or [PAIR])  # type: ignore[arg-type]


def test_the_parts_of_a_latency_add_up_to_it() -> None:
    found = why.splits(simulated_why(SWEEP), SWEEP)
    assert [(s.operation, s.statistic, s.filesystem) for s in found][:4] == [
        ("sync", "mean", "ext4"), ("sync", "mean", "xfs"), ("sync", "p99", "ext4"), ("sync", "p99", "xfs"),
    ]  # fmt: skip
    for split in found:
        assert sum(each.mean for each in split.parts.values()) == pytest.approx(split.whole.mean)
    flush = found[0].parts[LayerPart("flush", "journal")]
    assert flush.low < 900e-6 < flush.high
    assert flush.n == 5


def test_the_largest_part_of_a_difference_is_the_planted_one_and_its_interval_holds_the_truth() -> None:
    first = causes(simulated_why(SWEEP))[0]
    assert (first.operation, first.candidate, first.baseline) == ("sync", "xfs", "ext4")
    largest = first.largest
    assert largest is not None
    assert largest.part == LayerPart("flush", "journal")
    sums = [sum(FSYNC[name]["sync"].values()) for name in ("ext4", "xfs")]
    truth = (900e-6 - 420e-6) / (sums[0] - sums[1])
    assert largest.share.low < truth < largest.share.high
    assert first.ratio.high < 1


def test_shares_of_the_parts_and_of_the_layers_add_up_to_one() -> None:
    for cause in causes(simulated_why(SWEEP)):
        for parts in (cause.parts, cause.by_layer, cause.by_through):
            assert sum(each.share.share for each in parts) == pytest.approx(1)
        shares = [each.share.share for each in cause.parts]
        assert shares == sorted(shares, reverse=True)
    by_layer = {each.part.layer: each.share.share for each in causes(simulated_why(SWEEP))[0].by_layer}
    assert by_layer["processor"] < 0, "xfs spends more of it"


@pytest.mark.slow
@pytest.mark.parametrize("runs", few_then_many(6, 20))
def test_the_planted_cause_is_the_largest_in_ninety_five_of_a_hundred_runs(runs: int) -> None:
    named = sum(
        (first := causes(simulated_why(SWEEP, seed=seed, spread=0.15))[0]).largest is not None
        and first.largest.part == LayerPart("flush", "journal")
        for seed in range(runs)
    )
    assert named >= 0.95 * runs


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "most"), few_then_many((8, 3), (25, 6)))
def test_of_the_same_file_system_twice_nothing_is_shown(runs: int, most: int) -> None:
    """A twin differs by noise alone: at most one in twenty may seem to differ."""
    twin = {"ext4": FSYNC["ext4"], "xfs": FSYNC["ext4"]}
    shown = sum(causes(simulated_why(SWEEP, twin, seed=seed))[0].largest is not None for seed in range(runs))
    assert shown <= most, "two operations and two statistics: the first that is shown comes first"


def test_a_part_that_is_missing_on_one_side_counts_as_zero_there() -> None:
    sweep = sweep_of("ext4", "btrfs")
    pair = comparison(baseline="ext4", candidate="btrfs", workload="fsync", tool="fio")
    mean = next(each for each in causes(simulated_why(sweep), sweep, pair) if each.statistic == "mean")
    parts = {each.part: each for each in mean.parts}
    assert parts[LayerPart("writeback", "writeback")].seconds == pytest.approx(120e-6, rel=0.2)


def test_blocks_that_hold_one_side_only_are_left_out_and_one_block_says_nothing() -> None:
    lost = {"withheld": "2.0 % of the events were lost"}
    frames = simulated_why(SWEEP, changes={("xfs", 1): lost, ("ext4", 2): lost})
    assert {each.ratio.n for each in causes(frames)} == {3}
    frames = simulated_why(SWEEP, changes={("xfs", block): lost for block in (1, 2, 3, 4)})
    assert causes(frames) == []


def test_a_percentile_needs_as_many_operations_as_every_other_in_each_trial_of_a_cell() -> None:
    """Without the one trial that has too few, the others would be a choice among trials: the slow ones do less."""
    enough, few = ({("xfs", 2): {"operations": count}} for count in (1000, 999))
    for changes, missing in ((enough, False), (few, True)):
        frames = simulated_why(SWEEP, changes=changes)
        assert (
            {split.filesystem for split in why.splits(frames, SWEEP) if split.statistic == "p99"} == {"ext4"}
        ) == missing
        assert ({cause.statistic for cause in causes(frames)} == {"mean"}) == missing
    assert {each.operation: (each.cell, each.fewest) for each in why.few_operations(frames)} == dict.fromkeys(
        ("write", "sync"), ("xfs/fsync", 999)
    )


def test_a_latency_is_compared_as_every_figure_is() -> None:
    """As a ratio: the t interval of a difference in seconds covers 91 % of skewed latencies."""
    frames = simulated_why(SWEEP, spread=0.5)
    wholes = frames.layers.query("operation == 'sync' and statistic == 'mean'").groupby(["block", "filesystem"])[
        "seconds"
    ]
    ours, theirs = (wholes.sum().unstack()[name].tolist() for name in ("xfs", "ext4"))
    mean = next(each for each in causes(frames) if each.statistic == "mean")
    assert mean.ratio == compare(list(zip(ours, theirs, strict=True)))


def test_the_shares_of_all_parts_of_a_difference_hold_together() -> None:
    """Eight parts, a layer that is two of them, and what was done for the journal: ten candidates. What each operation
    did for itself is the rest of that. A part below 1 % of both sides together is none."""
    parts = {part for name in ("ext4", "xfs") for part in FSYNC[name]["sync"]}
    both = {part: sum(FSYNC[name]["sync"].get(part, 0.0) for name in ("ext4", "xfs")) for part in parts}
    minor = [part for part, seconds in both.items() if seconds < 0.01 * sum(both.values())]
    assert len(minor) == 1
    for cause in causes(simulated_why(SWEEP)):
        assert {each.share.level for each in (*cause.parts, *cause.by_layer, *cause.by_through)} == {1 - 0.05 / 9}


def of_parts(*blocks: dict[tuple[str, str], float]) -> Why:
    """ext4 has these parts in each block, xfs nothing but 20 µs on a processor."""
    rows = [
        (f"x{block}{name}", block, f"{name}/fsync", name, "fsync", "sync", "mean", *part, seconds)
        for block, own in enumerate(blocks, start=1)
        for name, parts in {"ext4": own, "xfs": {("processor", "own"): 2e-5 + 1e-7 * block}}.items()
        for part, seconds in parts.items()
    ]
    return replace(simulated_why(SWEEP), layers=frame_of("why_layers", rows))


def test_where_noise_hides_which_of_several_parts_is_the_largest_their_sum_is_named() -> None:
    """What was done for a checkpoint moves between the device and its flushes from block to block."""
    blocks = [
        {("device", "checkpoint"): device, ("flush", "checkpoint"): 4.1e-4 - device, ("processor", "own"): 2e-5}
        for device in (1e-5, 4e-4, 1e-5, 4e-4, 1e-5)
    ]
    largest = causes(of_parts(*blocks))[0].largest
    assert largest is not None
    assert largest.part == LayerPart("", "checkpoint")


def test_where_the_largest_part_may_be_none_of_the_difference_what_may_be_as_large_is_named_with_it() -> None:
    """Memory was short in three blocks of five."""
    blocks = [{("reclaim", "own"): reclaim, ("processor", "own"): 1.2e-4} for reclaim in (3e-4, 1e-6, 2e-4, 3e-4, 1e-6)]
    cause = causes(of_parts(*blocks))[0]
    assert not cause.parts[0].share.shown
    assert cause.largest is not None
    assert (cause.parts[0].part, cause.largest.part) == (LayerPart("reclaim", "own"), LayerPart("processor", "own"))
    assert cause.as_large == (cause.parts[0],)


@every_row(
    ("waited", "before_s", "often", "named", "before"),
    [
        (0.45, 1e-4, {}, "freeze", "run_queue"),
        (0.55, 1e-4, {}, "run_queue", None),
        (0.55, 3e-3, {}, "freeze", "run_queue"),
        (0.2, 1e-4, {}, "device", None),
        (0.55, 1e-4, {"ext4": 1.0, "xfs": 20.0}, "run_queue", None),
        (0.55, 1e-4, {"ext4": 1.0, "xfs": 40.0}, "freeze", "run_queue"),
    ],
)
def test_a_wait_for_a_processor_is_named_first_where_it_is_half_of_a_difference_and_does_not_follow_from_others(
    waited: float, before_s: float, often: dict[str, float], named: str, before: str | None
) -> None:
    """`waited`: its share; `before_s`: how long the faster side waits. That runs for 0.1 ms, the slower one for 0.2.
    `often`: how many times a side waits, where that is known; 56 times as long in all are 1.4 times each of 40."""
    parts = {"run_queue": waited, "processor": 0.01, "freeze": 0.32, "device": 0.67 - waited}
    truth = {
        "ext4": {"sync": {(layer, "own"): before_s if layer == "run_queue" else 1e-4 for layer in parts}},
        "xfs": {"sync": {(layer, "own"): (before_s if layer == "run_queue" else 1e-4) + 1e-2 * share
                         for layer, share in parts.items()}},
    }  # fmt: skip
    found = causes(simulated_why(SWEEP, truth, spread=0.01, often=often))
    (cause,) = (each for each in found if each.statistic == "mean")
    assert cause.largest is not None
    assert cause.largest.part == LayerPart(named, "own")
    assert (cause.wait_before.part.layer if cause.wait_before else None) == before


def test_where_there_is_nothing_but_waits_for_a_processor_these_are_named() -> None:
    """Those of the operation, and those of the journal that it waits for. The slower side waits as long by time."""
    truth = {
        name: {"sync": {("run_queue", "own"): 6e-4 * times, ("run_queue", "journal"): 4e-4 * times}}
        for name, times in (("ext4", 1), ("xfs", 3))
    }
    cause = causes(simulated_why(SWEEP, truth, spread=0.01))[0]
    assert cause.largest is not None
    assert cause.largest.part == LayerPart("run_queue", "own")


def test_withheld_trials_show_in_no_figure_and_are_named_with_their_reason() -> None:
    frames = simulated_why(SWEEP, changes={("xfs", 2): {"withheld": "2.0 % of the events were lost"}})
    counts = {split.filesystem: split.whole.n for split in why.splits(frames, SWEEP)}
    assert counts == {"ext4": 5, "xfs": 4}
    assert {each.figure.n for each in why.work(frames, SWEEP) if each.filesystem == "xfs"} == {4}
    found = why_doubts.withheld(frames)
    assert {(each.cell, each.reason, each.trials, each.of) for each in found} == {
        ("xfs/fsync", "2.0 % of the events were lost", 1, 5)
    }


def test_parts_that_do_not_add_up_to_what_the_tool_says_are_named() -> None:
    assert why_doubts.off(simulated_why(SWEEP)) == []
    other = {"traced_mean": 1e-3, "tool_mean": 1.2e-3}
    found = why_doubts.off(simulated_why(SWEEP, changes={("xfs", block): other for block in range(1, 6)}))
    assert {(each.cell, each.operation) for each in found} == {("xfs/fsync", "sync"), ("xfs/fsync", "write")}
    assert found[0].by == pytest.approx(1 / 6)
    assert not found[0].is_slowed
    slower = {"traced_mean": 1.2e-3, "tool_mean": 1e-3, "traced_in_flight": 31.5, "tool_in_flight": 32.0}
    found = why_doubts.off(simulated_why(SWEEP, changes={("xfs", block): slower for block in range(1, 6)}))
    assert [each.is_slowed for each in found] == [True, True]
    unknown = {"traced_mean": 1e-3, "tool_mean": math.nan}
    assert why_doubts.off(simulated_why(SWEEP, changes={("xfs", block): unknown for block in range(1, 6)})) == []


def test_ratios_of_work_are_paired_with_those_of_the_baseline() -> None:
    found = {(each.filesystem, each.quantity, each.label): each for each in why.work(simulated_why(SWEEP), SWEEP)}
    flushes = found["xfs", "flushes_per_sync", ""]
    assert flushes.ratio is not None
    assert flushes.ratio.low < 1 / 2.1 < flushes.ratio.high
    assert found["ext4", "flushes_per_sync", ""].ratio is None
    assert found["ext4", "share_of_ios", "journal"].figure.mean == pytest.approx(0.62, rel=0.02)


def test_an_operation_that_takes_almost_no_time_is_not_spoken_of() -> None:
    assert {each.operation for each in causes(simulated_why(SWEEP))} == {"sync"}
    busy = {name: {**own, "write": {("processor", "own"): 1e-3}} for name, own in FSYNC.items()}
    assert {each.operation for each in causes(simulated_why(SWEEP, busy))} == {"sync", "write"}


@every_row(
    ("reads", "writes", "opens", "per"),
    [
        (5000, 0, 0, "read"), (0, 5000, 9, "write"), (5000, 9, 0, "read"), (400, 5000, 5000, "read or write"),
        (0, 1, 5000, "operation"), (0, 0, 8, "operation"), (0, 60, 5000, "write"), (0, 0, 0, "read or write"),
    ],
)  # fmt: skip
def test_work_of_a_whole_trial_is_for_each_of_what_the_trial_does(
    reads: int, writes: int, opens: int, per: str
) -> None:
    frames, counts = simulated_why(SWEEP), {"read": reads, "write": writes, "open": opens}
    each = [frames.traces.assign(operation=name, operations=n) for name, n in counts.items()]
    found = why.work(replace(frames, traces=pd.concat(each)), SWEEP)
    assert {each.per for each in found if not each.operation} == {per}
    assert {each.per for each in found if each.operation == "sync"} == {"sync"}


def test_an_interval_of_work_lies_where_its_quantity_can() -> None:
    """Shares of I/Os are between 0 and 1, counts at least 0, however the trials differ."""
    frames = simulated_why(SWEEP, blocks=3)
    for quantity, values in (("share_of_ios", [1.0, 0.1, 0.99]), ("flushes_per_sync", [0.0, 0.0, 3.0])):
        rows = frames.work[frames.work["quantity"] == "flushes_per_sync"].assign(quantity=quantity)
        rows["value"] = [values[block - 1] for block in rows["block"]]
        for each in why.work(replace(frames, work=rows), SWEEP):
            assert 0 <= each.figure.low <= each.figure.mean <= each.figure.high
            assert each.figure.high == 1 if quantity == "share_of_ios" else each.figure.high > 1


def test_what_tracing_costs_is_the_ratio_of_diagnostic_to_counted_trials() -> None:
    frames = simulated_why(SWEEP)
    traced = dict(zip(frames.traces["trial_id"], frames.traces["cell"], strict=True))
    rows = [(trial, cell, True, 95.0 + place % 3) for place, (trial, cell) in enumerate(traced.items())]
    rows += [(f"t{n}", cell, False, 100.0 + n % 3) for n, cell in enumerate(["ext4/fsync", "xfs/fsync"] * 5)]
    measured = pd.DataFrame(rows, columns=["trial_id", "cell", "warmup", "value"])
    measured = measured.assign(metric="write_iops", label="", unit="1/s", block=1)
    found = why_doubts.costs(frames, measured, {"fsync": ("write_iops",)}, SWEEP)
    assert [each.cell for each in found] == ["ext4/fsync", "xfs/fsync"]
    assert found[0].ratio.low < 0.95 < found[0].ratio.high
    assert found[0].ratio.high < 1
    assert {each.ratio.level for each in found} == {0.975}, "the one that changed most is named: they hold together"


def test_a_run_without_diagnostic_trials_has_empty_frames_and_no_findings() -> None:
    none = Why()
    assert not none
    assert {name: list(frame.columns) for name, frame in none.frames.items()} == {
        name: list(columns) for name, columns in COLUMNS.items()
    }
    assert (why.splits(none, SWEEP), causes(none), why.work(none, SWEEP), why_doubts.withheld(none)) == ([], [], [], [])
    assert why_doubts.lost(none) == (0, 0)


def test_lost_events_are_counted_once_a_trial() -> None:
    frames = simulated_why(SWEEP, changes={("xfs", 1): {"lost_events": 7}})
    assert why_doubts.lost(frames) == (7, 10 * 40_000)


def test_the_frames_of_the_findings_have_a_row_for_each_part() -> None:
    frames = simulated_why(SWEEP)
    found = causes(frames)
    shares = why.cause_frame(found)
    whole = shares[(shares["layer"] != "") & (shares["through"] != "")]
    assert whole.groupby(["candidate", "operation", "statistic"])["share"].sum().tolist() == pytest.approx([1, 1])
    splits = why.splits(frames, SWEEP)
    assert len(why.split_frame(splits)) == sum(len(each.parts) for each in splits)
    assert set(why.work_frame(why.work(frames, SWEEP))["quantity"]) >= {"flushes_per_sync", "share_of_ios"}


def test_a_frame_takes_the_types_of_its_columns_from_the_contract() -> None:
    empty, full = frame_of("why_layers", []), simulated_why(SWEEP).layers
    assert empty.dtypes.tolist() == full.dtypes.tolist()


def test_no_baseline_has_no_ratios() -> None:
    alone = replace(SWEEP, baseline=None)
    assert all(each.ratio is None for each in why.work(simulated_why(alone), alone))
