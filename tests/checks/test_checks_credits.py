"""Throughput that steps down to a lower level, told from cliffs of the page cache, drifts, warm-ups and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from checks.test_checks import CHAIN, build, found, make, the_only
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS, Evidence
from mountlab.checks.burst import ODD, fall
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Measurement, Trial
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes, every_device
from mountlab.fio.series import Series, SeriesPoint
from repetition import others_long
from rows import every_row

READ = {"tool": "fio", "rw": "randread", "size": "64MiB", "direct": True}
WRITE = {**READ, "rw": "write"}
HIGH, LOW = 100e6, 40e6
HELD, ENDED = [HIGH] * 20, [LOW] * 20


def falls(at: int, *, high: float = HIGH, low: float = LOW, of: int = 20) -> list[float]:
    return [high] * at + [low] * (of - at)


def logged(*trials: Sequence[float], workload: dict[str, Any] | None = None, share: float = 1.0) -> Evidence:
    """Trials of one cell whose windows of 0.5 s had these bandwidths, on a device that moved such a share of it."""
    return run_of({"f": [list(each) for each in trials]}, workload or READ, share=share)


def run_of(cells: dict[str, list[list[float]]], workload: dict[str, Any], *, share: float = 1.0) -> Evidence:
    """Trials in blocks, each with a log; a log of one value is a trial without one."""
    the_sweep = make(workloads=dict.fromkeys(cells, workload))
    side = "write" if workload["rw"] == "write" else "read"
    rows: list[tuple[Trial, Measurement]] = []
    trials: dict[str, Trial] = {}
    series: dict[str, list[Series]] = {}
    for block in range(1, 1 + max(map(len, cells.values()))):
        for cell in the_sweep.cells:
            values = cells[cell.workload.name][block - 1]
            trial = _trial(cell, block, len(trials) + 1)
            trials[trial.trial_id] = trial
            rows += [(trial, row) for row in _measurements(side, float(np.mean(values)))]
            points = tuple(SeriesPoint((i + 1) * 0.5, value) for i, value in enumerate(values))
            series[trial.trial_id] = [Series(f"{side}_bandwidth", "B/s", 1, points)] if len(points) > 1 else []
    frame = measurement_frame(rows)
    moved = {trial: DeviceBytes(int(1e9 * share), int(1e9 * share)) for trial in trials}
    evidence: Evidence = build(make())
    return replace(
        evidence,
        sweep=the_sweep,
        trials=pd.DataFrame([vars(each) for each in trials.values()]),
        measurements=frame,
        answer_metrics=answer_metrics(the_sweep, frame),
        series=series,
        traffic={trial: dict.fromkeys(every_device(CHAIN), each) for trial, each in moved.items()},
    )


def _trial(cell: Cell, block: int, number: int) -> Trial:
    return Trial(
        trial_id=f"t{number:04d}", block=block, warmup=False, cell=cell.id, filesystem="ext4",
        workload=cell.workload.name, tool="fio", factors={}, mount="m-ext4", status="ok", reason="", started_at="",
        elapsed_s=10.0,
    )  # fmt: skip


def _measurements(side: str, bandwidth: float) -> list[Measurement]:
    table = [(f"{side}_bandwidth", bandwidth, ""), (f"{side}_ios", 1e9 / 4096, ""), ("bytes", 1e9, side)]
    return [
        Measurement(metric=metric, value=value, unit=METRICS[metric], label=label) for metric, value, label in table
    ]


# --- inside of trials -------------------------------------------------------------------------------------------------


def test_a_step_down_inside_of_a_trial_is_an_error_with_both_levels_when_and_after_how_much() -> None:
    evidence = logged(HELD, falls(8), ENDED)
    caveat = the_only("burst-credits", evidence)
    assert (caveat.severity, caveat.scope, caveat.subject) == ("error", "cell", "ext4/f")
    said = caveat.message.replace("\u00a0", " ")
    assert "fell at once from 100 MB/s to 40.0 MB/s 4.00 s into t0002, and stayed there" in said
    assert "after 381 MiB (97,656 I/Os) of this trial, 1.30 GiB of all trials on this device." in said, "8 x 0.5 s"
    assert "Later trials, from t0003 on, were at the lower level." in said
    for part in ("burst credits are used up", "A mean over both levels describes neither", "mountlab exclude"):
        assert part in said


RECORDED = [6400, 6400, 6400, 6400, 6400, 6432, 6400, 6400, 6400, 6400, 780, 2412, *[2400] * 8]
"""KiB/s of fio 3.33 in windows of 200 ms, on a device whose limit was lowered from 1,600 to 600 reads a second."""


def test_other_work_on_the_box_explains_a_step_down() -> None:
    evidence = logged(falls(10), falls(8), falls(9))
    others = Around(others=0.4, seconds=10.0)
    busy = replace(evidence, around=dict.fromkeys(evidence.trials["trial_id"], others))
    assert [the_only("burst-credits", each).severity for each in (evidence, busy)] == ["error", "note"]
    assert "Other programs used the processors or the disk" in the_only("burst-credits", busy).message


def test_a_recorded_log_of_a_device_whose_limit_was_lowered_is_seen() -> None:
    recorded = logged([1024.0 * each for each in RECORDED], [1024.0 * 2400] * 20)
    assert "from 6.55 MB/s to 2.46 MB/s" in the_only("burst-credits", recorded).message.replace("\u00a0", " ")


def test_credits_that_come_back_between_trials_end_after_the_same_amount_of_each() -> None:
    assert "It fell in 3 of its 3 trials (t0001, t0002, t0003), after 381 MiB to 477 MiB of each." in the_only(
        "burst-credits", logged(falls(10), falls(8), falls(9))
    ).message.replace("\u00a0", " ")
    assert found("burst-credits", logged(falls(4), HELD, falls(15), falls(9))) == [], "another amount each time"


def test_somebody_who_disturbs_one_trial_is_not_taken_for_it() -> None:
    assert found("burst-credits", logged(HELD, falls(8), HELD, HELD)) == [], "fast again, without a fall"
    assert found("burst-credits", logged(HELD, falls(8), [0.6 * HIGH] * 20)) == [], "a third level"
    assert found("burst-credits", logged([HIGH] * 8 + [LOW] * 4 + [HIGH] * 8)) == [], "back in the same trial"


def test_who_reads_that_does_not_read_it_as_a_drift_or_as_not_steady_too() -> None:
    evidence = logged(*[HELD] * 5, *[falls(8)], *[ENDED] * 5)
    assert the_only("burst-credits", evidence)
    for code in ("step", "drift", "two-modes", "autocorrelated", "not-steady"):
        assert found(code, evidence) == []


@pytest.mark.parametrize(
    ("workload", "share"),
    [
        ({**WRITE, "direct": False, "end_fsync": True}, 1.0),
        ({**WRITE, "direct": False}, 0.3),
        (READ, 0.5),
    ],
)
def test_the_cliff_of_a_page_cache_is_none(workload: dict[str, Any], share: float) -> None:
    """Buffered writes fill the cache, then wait for the device; reads from a cache are no speed of a device."""
    assert found("burst-credits", logged(*[falls(8)] * 5, workload=workload, share=share)) == []


def test_writes_that_each_wait_for_the_device_have_no_such_cliff() -> None:
    assert found("burst-credits", logged(*[falls(8)] * 5, workload=WRITE)) != []
    assert found("burst-credits", logged(*[falls(8)] * 5, workload={**WRITE, "direct": False, "fsync": 1})) != []


RNG = np.random.default_rng(3)
SHAPES = {
    "steady": HELD,
    "noise of 30 %": list(RNG.normal(HIGH, 0.3 * HIGH, 20).clip(1e6)),
    "a drift": list(np.linspace(HIGH, LOW, 20)),
    "a warm-up that is slow": falls(5, high=LOW, low=HIGH),
    "a warm-up that is fast": [1.8 * HIGH, 1.4 * HIGH, 1.1 * HIGH, *[HIGH] * 17],
    "a decay": [LOW + (HIGH - LOW) * 0.8**i for i in range(20)],
    "a small step": falls(10, low=0.85 * HIGH),
    "up and down": [HIGH, LOW] * 10,
}


@every_row("shape", SHAPES)
def test_other_shapes_of_a_log_are_none(shape: str) -> None:
    assert found("burst-credits", logged(*[SHAPES[shape]] * 3)) == []


@pytest.mark.parametrize(
    ("cv", "most", "series"),
    others_long([(0.2, 1, 100), *((cv, 4, 1000) for cv in (0.05, 0.2, 0.4))], kept=[(0.2, 1, 100)]),
)
def test_noise_is_hardly_ever_taken_for_it(cv: float, most: int, series: int) -> None:
    """Independent windows, and windows that are like their neighbours: a random walk back to its mean."""
    rng = np.random.default_rng(11)
    raised = 0
    for _ in range(series):
        steps = rng.normal(0, 1, 20)
        walk = np.zeros(20)
        for i in range(20):
            walk[i] = 0.5 * walk[i - 1] + np.sqrt(0.75) * steps[i]
        raised += fall([*np.exp(cv * steps)], least=3, between=1, odd=ODD) is not None
        raised += fall([*np.exp(cv * walk)], least=3, between=1, odd=ODD) is not None
    assert raised <= most


# --- between trials ---------------------------------------------------------------------------------------------------


def between(*firsts: int, of: int = 5) -> Evidence:
    """Cells without logs, of which so many of the first trials are fast."""
    cells = {f"c{i}": [[HIGH]] * first + [[LOW]] * (of - first) for i, first in enumerate(firsts)}
    return run_of(cells, READ)


def test_cells_of_a_device_that_step_down_between_the_same_trials_are_an_error() -> None:
    caveats = found("burst-credits", between(2, 2))
    assert [(each.severity, each.subject) for each in caveats] == [("error", "ext4/c0"), ("error", "ext4/c1")]
    said = caveats[0].message.replace("\u00a0", " ")
    assert "read_bandwidth fell at once from 100 MB/s to 40.0 MB/s between two trials and stayed there" in said
    assert "from t0005 (block 3) on: after 3.73 GiB of all trials on this device. 2 of 2 cells" in said


def test_one_cell_of_five_trials_could_be_chance_and_one_of_ten_could_not() -> None:
    assert found("burst-credits", between(2)) == []
    assert found("burst-credits", between(5, of=10)) != []
    assert found("step", between(5, of=10)) == [], "said once"


def test_cells_that_step_down_at_different_times_are_none() -> None:
    assert found("burst-credits", between(2, 4)) == []
    assert found("burst-credits", between(2, 2, 5, 5, 5)) == [], "most cells of the device did not"


def test_what_steps_up_or_is_slow_in_any_order_is_none() -> None:
    up = {f"c{i}": [[LOW]] * 3 + [[HIGH]] * 3 for i in range(3)}
    assert found("burst-credits", run_of(up, READ)) == []
    mixed = {f"c{i}": [[LOW], [HIGH], [LOW], [HIGH], [LOW], [LOW]] for i in range(3)}
    assert found("burst-credits", run_of(mixed, READ)) == []


def test_without_the_counters_of_a_device_it_could_not_look() -> None:
    evidence = replace(logged(falls(8)), traffic={})
    assert found("burst-credits", evidence) == []
    assert "no cell moved its bytes on a device" in str(CHECKS["burst-credits"].blind(evidence))
