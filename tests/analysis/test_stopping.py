"""When cells leave, and why: decided from made-up journals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.stopping import RunSoFar, replay_stops, stop_rule
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core.cell_stop import CellStop
from mountlab.core.model import Cell, Design, Filesystem, Measurement, Status, Sweep, Trial, Until, Workload
from mountlab.stats import sequential
from repetition import others_long
from rows import every_row

RULE = Until(half_width=0.03, min=5, max=12)
Value = Callable[[Cell, int], float | None]
"""What a cell gives in a block; None where its trial fails."""


def a_sweep(until: Until | None = RULE, *, workloads: Sequence[str] = ("w", "v"), names: str = "ab") -> Sweep:
    return Sweep(
        name="s",
        question="?",
        box="local",
        baseline="a",
        design=Design(until=until, repeats=12, warmup=1),
        filesystems=tuple(Filesystem(name=name, type="tmpfs") for name in names),
        workloads=tuple(Workload(name=name, tool="dd", options={"direction": "write"}) for name in workloads),
    )


def journal(
    sweep: Sweep, value: Value, blocks: int, *, elapsed_s: float = 1.0, failed: Status = "failed"
) -> tuple[list[Trial], pd.DataFrame]:
    """Whole blocks of every cell, and one of warm-up whose figures are far off."""
    rows: list[tuple[Trial, Measurement]] = []
    trials = []
    for block in range(blocks + 1):
        for cell in sweep.cells:
            figure = 1.0 + block if block == 0 else value(cell, block)
            trial = Trial(
                trial_id=f"t{len(trials):04d}",
                block=block,
                warmup=block == 0,
                cell=cell.id,
                filesystem=cell.filesystem.name,
                workload=cell.workload.name,
                tool="dd",
                factors={},
                mount="m",
                status=failed if figure is None else "ok",
                reason="dd: No space left" if figure is None else "",
                started_at="2026-11-20T10:00:00+00:00",
                elapsed_s=elapsed_s,
            )
            trials.append(trial)
            if figure is not None:
                row = Measurement(metric="write_bandwidth", value=figure, unit="B/s", step=1e-5 * figure)
                rows.append((trial, row))
    return trials, measurement_frame(rows)


def wave(size: float) -> Value:
    return lambda cell, block: 100.0 * (1 + size * (-1) ** block)


def by_cell(**sizes: float) -> Value:
    """A wave for each cell, by names such as aw (file system a, workload w)."""
    return lambda cell, block: wave(sizes[cell.id.replace("/", "")])(cell, block)


CALM = wave(0.001)
NOISY = wave(0.5)


def leaving(value: Value, blocks: int, sweep: Sweep | None = None, left: Any = None, **more: Any) -> dict[str, str]:
    the_sweep = sweep or a_sweep()
    trials, frame = journal(the_sweep, value, blocks, **more)
    found = decide(the_sweep, trials, frame, before=blocks + 1, stopped=left or {})
    return {cell: stop.reason for cell, stop in found.items()}


def decide(sweep: Sweep, *seen: Any, before: int, stopped: Mapping[str, CellStop]) -> Mapping[str, CellStop]:
    rule = stop_rule(sweep)
    return rule.decide(RunSoFar(*seen), before=before, stopped=stopped).stops if rule else {}


def told(value: Value, blocks: int, sweep: Sweep | None = None, **more: Any) -> dict[str, CellStop]:
    the_sweep = sweep or a_sweep()
    return {stop.cell: stop for stop in replay_stops(the_sweep, *journal(the_sweep, value, blocks, **more))}


ALL = ["a/w", "a/v", "b/w", "b/v"]


# --- one look ---------------------------------------------------------------------------------------------------------


@every_row("blocks", range(5))
def test_nothing_leaves_before_min_blocks(blocks: int) -> None:
    assert leaving(CALM, blocks) == {}


@pytest.mark.slow
def test_what_is_precise_leaves_after_min_blocks() -> None:
    assert leaving(CALM, 5) == dict.fromkeys(ALL, "precise")


def test_without_a_rule_nothing_leaves_and_nothing_is_told() -> None:
    sweep = a_sweep(None)
    assert leaving(CALM, 12, sweep) == {}
    assert told(CALM, 12, sweep) == {}


def test_the_cells_of_a_workload_leave_together_and_other_workloads_go_on() -> None:
    value = by_cell(aw=0.001, bw=0.001, av=0.001, bv=0.5)
    assert leaving(value, 7) == {"a/w": "precise", "b/w": "precise"}


@pytest.mark.slow
def test_a_cell_that_has_left_does_not_leave_again() -> None:
    left = {"a/w": CellStop(cell="a/w", reason="precise", blocks=5, n=5, half_width=0.01, metric="write_bandwidth")}
    assert leaving(CALM, 6, left=left) == dict.fromkeys(["b/w", "a/v", "b/v"], "precise")


def test_the_interval_that_is_looked_at_is_the_corrected_one() -> None:
    """A spread at which the t interval at 95 % is narrow enough after five blocks, and the corrected one is not."""
    values = [100.0, 102.0, 98.0, 102.0, 98.0]
    plain, corrected = (
        math.expm1(sequential.allowed_half_widths([values] * 2, level)[0, -1] / np.mean(values))
        for level in (0.95, sequential.nominal_level(RULE, 0.95))
    )
    sweep = a_sweep(replace(RULE, half_width=(plain + corrected) / 2))
    assert plain < corrected
    assert leaving(lambda cell, block: values[block - 1], 5, sweep) == {}
    assert leaving(lambda cell, block: values[block - 1], 5, a_sweep(replace(RULE, half_width=corrected * 1.001))) != {}


@pytest.mark.slow
def test_warm_up_does_not_count() -> None:
    """Its figure is a hundredth of the others."""
    assert told(CALM, 5)["a/w"].half_width < 0.01


@pytest.mark.parametrize(("block", "stops"), [(3, set()), (0, {"a/w", "b/w"})], ids=["counted", "warm-up"])
def test_a_cell_with_a_counted_trial_that_ran_into_its_limit_is_never_precise(block: int, stops: set[str]) -> None:
    """Its figure is a median of all of them, and the rule would look at the quick ones."""
    sweep, blocks = a_sweep(workloads=("w",)), 9
    trials, frame = journal(sweep, wave(0.001), blocks)
    late = next(trial for trial in trials if trial.cell == "a/w" and trial.block == block)
    trials = [replace(trial, status="timeout") if trial == late else trial for trial in trials]
    frame = frame[frame["trial_id"] != late.trial_id]
    assert set(decide(sweep, trials, frame, before=blocks + 1, stopped={})) == stops
    assert RULE.max > blocks


def test_later_blocks_are_not_looked_at() -> None:
    sweep = a_sweep()
    trials, frame = journal(sweep, lambda cell, block: 100.0 if block <= 5 else 1e6 * block, 9)
    assert set(decide(sweep, trials, frame, before=6, stopped={})) == set(ALL)
    budget = a_sweep(replace(RULE, budget_s=28.0))
    assert decide(budget, *journal(budget, NOISY, 9), before=6, stopped={}) == {}, "24 s, and 4 s of the next block"


@pytest.mark.slow
def test_diagnostic_trials_change_nothing() -> None:
    sweep = a_sweep(replace(RULE, budget_s=1e4))
    trials, frame = journal(sweep, CALM, 7)
    late = replace(trials[-1], trial_id="x", status="timeout", reason="late", elapsed_s=1e6, diagnostic=True)
    more = [*trials, *(replace(late, cell=cell.id, block=block) for cell in sweep.cells for block in (1, 50))]
    for rule in (sweep, a_sweep()):
        assert decide(rule, more, frame, before=8, stopped={}) == decide(rule, trials, frame, before=8, stopped={})
        assert replay_stops(rule, more, frame) == replay_stops(rule, trials, frame)
    noisy, figures = journal(a_sweep(), NOISY, 7)
    assert {stop.blocks for stop in replay_stops(a_sweep(), [*noisy, *more[-2:]], figures)} == {7}


# --- max, budget, failures --------------------------------------------------------------------------------------------


def test_at_max_everything_leaves() -> None:
    assert leaving(NOISY, 11) == {}
    assert leaving(NOISY, 12) == dict.fromkeys(ALL, "max reached")


@pytest.mark.parametrize(("budget_s", "leaves"), [(32.0, False), (31.9, True)])
def test_no_block_is_begun_that_would_go_beyond_the_budget(budget_s: float, leaves: bool) -> None:
    """Six blocks and one of warm-up, of four cells of a second each, are 28 s: the next one makes it 32."""
    sweep = a_sweep(replace(RULE, budget_s=budget_s))
    assert leaving(NOISY, 5, sweep) == {}
    assert leaving(NOISY, 6, sweep) == (dict.fromkeys(ALL, "budget") if leaves else {})


def test_a_budget_is_counted_for_the_cells_that_would_go_on() -> None:
    """Half of the cells have left: the next block takes two seconds."""
    value = by_cell(aw=0.001, bw=0.001, av=0.5, bv=0.5)
    sweep = a_sweep(replace(RULE, budget_s=26.0))
    assert leaving(value, 5, sweep) == dict.fromkeys(["a/w", "b/w"], "precise")
    assert leaving(value, 5, a_sweep(replace(RULE, budget_s=25.9)))["a/v"] == "budget"


def test_the_next_block_takes_what_each_cell_took_on_average() -> None:
    trials, frame = journal(a_sweep(), NOISY, 5)
    took = [replace(trial, elapsed_s=1.0 + 2 * (trial.block % 2)) for trial in trials]
    assert {trial.block % 2 for trial in took} == {0, 1}
    whole = 4 * (3 * 1 + 3 * 3 + 2)
    for budget_s, reasons in ((whole, set()), (whole - 0.1, {"budget"})):
        found = decide(a_sweep(replace(RULE, budget_s=budget_s)), took, frame, before=6, stopped={})
        assert {stop.reason for stop in found.values()} == reasons


def test_the_least_number_of_blocks_is_run_whatever_the_budget() -> None:
    assert leaving(NOISY, 4, a_sweep(replace(RULE, budget_s=0.1))) == {}
    assert leaving(NOISY, 5, a_sweep(replace(RULE, budget_s=0.1))) == dict.fromkeys(ALL, "budget")


@pytest.mark.slow
@pytest.mark.parametrize("status", ["failed", "invalid", "skipped"])
def test_a_cell_that_gives_no_figure_leaves_alone_and_holds_nobody_up(status: Status) -> None:
    silent: Value = lambda cell, block: None if cell.id == "b/w" else CALM(cell, block)  # noqa: E731
    assert leaving(silent, 5, failed=status) == {
        "b/w": "could not",
        "a/w": "precise",
        "a/v": "precise",
        "b/v": "precise",
    }
    noisy: Value = lambda cell, block: None if cell.id == "b/w" else NOISY(cell, block)  # noqa: E731
    assert leaving(noisy, 5, failed=status) == {"b/w": "could not"}
    assert told(noisy, 5, failed=status)["b/w"].why == "dd: No space left"


@pytest.mark.slow
def test_a_cell_with_failed_trials_goes_on_until_it_has_min_figures() -> None:
    value: Value = lambda cell, block: None if cell.id == "b/w" and block in (1, 3) else CALM(cell, block)  # noqa: E731
    assert leaving(value, 5) == dict.fromkeys(["a/v", "b/v"], "precise")
    assert leaving(value, 7)["b/w"] == "precise"
    stop = told(value, 7)["b/w"]
    assert (stop.blocks, stop.n) == (7, 5)


def test_a_cell_that_was_set_aside_is_given_up_with_its_last_reason() -> None:
    trials, frame = journal(
        a_sweep(), lambda cell, block: None if block > 5 and cell.id == "b/w" else NOISY(cell, block), 7
    )
    ended = [replace(trial, set_aside=trial.block == 6) if trial.reason else trial for trial in trials]
    last = [replace(trial, reason="set aside") if trial.reason and trial.block == 7 else trial for trial in ended]
    assert decide(a_sweep(), trials, frame, before=8, stopped={}) == {}
    assert {
        cell: (stop.reason, stop.why) for cell, stop in decide(a_sweep(), last, frame, before=8, stopped={}).items()
    } == {"b/w": ("could not", "set aside")}
    others = {stop.why for stop in replay_stops(a_sweep(), trials, frame)}
    assert others == {""}, "only a cell that could not says why"


def test_a_cell_that_cannot_reach_min_figures_any_more_is_given_up() -> None:
    """One figure in nine blocks: with the three that are left it would have four."""
    value: Value = lambda cell, block: None if cell.id == "b/w" and block > 1 else NOISY(cell, block)  # noqa: E731
    assert "b/w" not in leaving(value, 8)
    assert leaving(value, 9) == {"b/w": "could not"}


# --- comparisons ------------------------------------------------------------------------------------------------------

RATIOS = replace(RULE, of="comparisons")


@pytest.mark.slow
def test_ratios_may_be_precise_where_means_are_not() -> None:
    """All file systems of a block rise and fall together."""
    assert leaving(NOISY, 5, a_sweep(RATIOS)) == dict.fromkeys(ALL, "precise")
    assert leaving(NOISY, 5) == {}


def test_every_ratio_of_a_workload_is_waited_for() -> None:
    sweep = a_sweep(RATIOS, names="abc", workloads=("w",))
    value = by_cell(aw=0.001, bw=0.001, cw=0.3)
    assert leaving(value, 6, sweep) == {}
    assert leaving(by_cell(aw=0.001, bw=0.001, cw=0.002), 6, sweep) == dict.fromkeys(["a/w", "b/w", "c/w"], "precise")


@pytest.mark.slow
def test_without_a_baseline_that_works_nothing_can_be_compared() -> None:
    value: Value = lambda cell, block: None if cell.id == "a/w" else CALM(cell, block)  # noqa: E731
    found = leaving(value, 5, a_sweep(RATIOS))
    assert found == {"a/w": "could not", "b/w": "could not", "a/v": "precise", "b/v": "precise"}


def test_a_baseline_that_nothing_can_be_compared_with_is_given_up_too() -> None:
    value: Value = lambda cell, block: None if cell.id == "b/w" else CALM(cell, block)  # noqa: E731
    assert leaving(value, 5, a_sweep(RATIOS))["a/w"] == "could not"
    noisy: Value = lambda cell, block: None if cell.id == "b/w" else 100.0 + (hash((cell.id, block)) % 97)  # noqa: E731
    assert leaving(noisy, 5, a_sweep(RATIOS, names="abc", workloads=("w",))) == {"b/w": "could not"}, "c is left"


@pytest.mark.parametrize("missing", ["a/v", "b/v"])
def test_what_is_compared_with_nothing_leaves_with_its_workload_and_is_not_given_up(missing: str) -> None:
    """A sweep may leave combinations out, also those of the baseline."""
    the_sweep = replace(a_sweep(RATIOS), excluded=(missing,))
    assert leaving(CALM, 5, the_sweep) == {cell: "precise" for cell in ALL if cell != missing}


def noise(names: str, workloads: Sequence[str], sd: float, seed: int, blocks: int = 12) -> dict[tuple[str, int], float]:
    """A logarithm for each cell and block."""
    rng = np.random.default_rng(seed)
    cells = [f"{name}/{workload}" for name in names for workload in workloads]
    return {(cell, block): float(rng.normal(0, sd)) for cell in cells for block in range(1, blocks + 1)}


def ended(sweep: Sweep, value: Value, blocks: int = 12) -> tuple[dict[str, CellStop], pd.DataFrame]:
    """A run that is ended by the rule: why each cell stopped, and what was measured until then."""
    trials, frame = journal(sweep, value, blocks)
    left: dict[str, CellStop] = {}
    for block in range(1, blocks + 1):
        left |= decide(sweep, trials, frame, before=block + 1, stopped=left)
    last = frame["cell"].map({cell: stop.blocks for cell, stop in left.items()})
    return left, frame[frame["block"] <= last]


def printed(sweep: Sweep, frame: pd.DataFrame) -> dict[str, float]:
    """How far the interval for all together goes from its ratio, as a factor less one."""
    return {
        f"{each.candidate}/{each.workload}": max(each.joint.high / each.ratio, each.ratio / each.joint.low) - 1
        for each in comparisons(sweep, frame)
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", others_long(range(4), kept=[0]))
def test_what_a_report_prints_of_precise_ratios_is_as_narrow_as_was_asked(seed: int) -> None:
    """Trap: rules that look at each ratio alone, where the report prints intervals for all together. One file system is
    truly faster, so that some comparisons are decided, and the workloads end at different blocks."""
    sweep = a_sweep(replace(RATIOS, half_width=0.05), names="abcd", workloads=("u", "v", "w"))
    sds, logs = {"u": 0.005, "v": 0.01, "w": 0.015}, noise("abcd", "uvw", 1.0, seed)

    def value(cell: Cell, block: int) -> float:
        return (1.2 if cell.filesystem.name == "d" else 1.0) * math.exp(sds[cell.workload.name] * logs[cell.id, block])

    stopped, frame = ended(sweep, value)
    widths = printed(sweep, frame)
    precise = [cell for cell in widths if stopped[cell].reason == "precise"]
    assert len(precise) >= 3
    assert len({stopped[cell].blocks for cell in precise}) > 1
    assert all(widths[cell] <= 0.05 for cell in precise), widths
    for cell in widths:
        if stopped[cell].reason == "max reached":
            assert stopped[cell].half_width == pytest.approx(widths[cell]), "what the caveat says is what is printed"


@pytest.mark.slow
def test_when_ratios_are_precise_does_not_depend_on_what_they_are() -> None:
    """A choice of when to stop by the ratios themselves would be a choice of ratios."""
    sweep = a_sweep(replace(RATIOS, half_width=0.06), names="abc", workloads=("w",))
    logs = noise("abc", "w", 0.01, 5)
    blocks = set()
    for faster in (1.0, 1.02, 1.05, 3.0):
        value: Value = lambda cell, block, by=faster: (  # noqa: E731
            math.exp(logs[cell.id, block]) * (by if cell.filesystem.name == "b" else 1.0)
        )
        blocks.add(ended(sweep, value)[0]["b/w"].blocks)
    (one,) = blocks
    assert 5 < one < 12


@pytest.mark.slow
def test_means_are_printed_as_narrow_as_was_asked() -> None:
    sweep = a_sweep(replace(RULE, half_width=0.02))
    logs = noise("ab", "wv", 0.012, 6)
    stopped, frame = ended(sweep, lambda cell, block: math.exp(logs[cell.id, block]))
    rows = estimate_frame(sweep, frame, run_id="", box="").set_index("cell")
    widths = rows["high"] / rows["mean"] - 1
    assert {"precise"} <= {stop.reason for stop in stopped.values()}
    for cell, stop in stopped.items():
        assert stop.half_width == pytest.approx(widths[cell])
        assert (stop.reason != "precise") or widths[cell] <= 0.02


# --- the whole history ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_history_says_for_each_cell_after_how_many_blocks_it_left_and_how_precise_it_was() -> None:
    value = by_cell(aw=0.001, bw=0.02, av=0.5, bv=0.5)
    found = told(value, 12)
    assert {cell: (stop.reason, stop.blocks) for cell, stop in found.items()} == {
        "a/w": ("precise", 6),
        "b/w": ("precise", 6),
        "a/v": ("max reached", 12),
        "b/v": ("max reached", 12),
    }
    assert found["b/w"].half_width <= 0.03 < found["a/v"].half_width
    assert {stop.metric for stop in found.values()} == {"write_bandwidth"}


@pytest.mark.slow
@pytest.mark.parametrize("size", others_long([0.001, 0.02, 0.03, 0.5], kept=[0.02, 0.5]))
def test_the_history_is_what_was_decided_block_by_block(size: float) -> None:
    sweep = a_sweep()
    value = by_cell(aw=0.001, bw=size, av=size / 2, bv=0.02)
    left: dict[str, CellStop] = {}
    trials: list[Trial] = []
    everything, frame = journal(sweep, value, 12)
    for block in range(13):
        left |= decide(sweep, trials, frame, before=block, stopped=left)
        trials += [trial for trial in everything if trial.block == block and trial.cell not in left]
    left |= decide(sweep, trials, frame, before=13, stopped=left)
    ran = frame[frame["trial_id"].isin({trial.trial_id for trial in trials})]
    assert replay_stops(sweep, trials, ran) == [left[cell.id] for cell in sweep.cells]


def test_a_workload_that_left_has_no_later_blocks_and_the_others_go_on() -> None:
    trials, frame = journal(a_sweep(), by_cell(aw=0.001, bw=0.001, av=0.5, bv=0.5), 12)
    ran = [trial for trial in trials if trial.workload == "v" or trial.block <= 5]
    found = replay_stops(a_sweep(), ran, frame[frame["trial_id"].isin({trial.trial_id for trial in ran})])
    assert {stop.cell: (stop.reason, stop.blocks) for stop in found} == {
        **dict.fromkeys(("a/w", "b/w"), ("precise", 5)),
        **dict.fromkeys(("a/v", "b/v"), ("max reached", 12)),
    }


def test_a_run_that_was_interrupted_is_not_finished_and_says_how_far_it_came() -> None:
    sweep = a_sweep()
    trials, frame = journal(sweep, NOISY, 8)
    cut = [trial for trial in trials if (trial.block, trial.cell) < (8, "b")]
    found = replay_stops(sweep, cut, frame[frame["trial_id"].isin({trial.trial_id for trial in cut})])
    assert {(stop.reason, stop.blocks) for stop in found} == {("not finished", 8)}


def test_a_run_of_which_nothing_ran_is_not_finished() -> None:
    found = replay_stops(a_sweep(), [], measurement_frame([]))
    assert [(stop.cell, stop.reason, stop.blocks, stop.n) for stop in found] == [
        (cell, "not finished", 0, 0) for cell in ALL
    ]
    assert all(math.isnan(stop.half_width) for stop in found)


def test_a_metric_that_a_file_system_never_shows_is_not_waited_for() -> None:
    """pg_test_fsync says n/a of open_datasync on tmpfs."""
    methods = {"a": ("fsync", "open_datasync"), "b": ("fsync",)}
    workload = Workload(name="w", tool="pg_test_fsync", options={})
    sweep = replace(a_sweep(), workloads=(workload,))
    trials, _ = journal(sweep, CALM, 5)
    rows = [
        (
            replace(trial, tool="pg_test_fsync"),
            Measurement(metric="sync_rate", value=100.0 + 0.1 * (trial.block % 2), unit="1/s", label=label),
        )
        for trial in trials
        for label in methods[trial.filesystem]
    ]
    found = decide(sweep, trials, measurement_frame(rows), before=6, stopped={})
    assert {cell: stop.reason for cell, stop in found.items()} == {"a/w": "precise", "b/w": "precise"}
    assert found["b/w"].metric == "sync_rate fsync"
