"""Latency over load: points by rate and the knee, held against queues whose latency is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from mountlab.analysis.load_curve import (
    POINT_COLUMNS,
    TRIAL_COLUMNS,
    LoadCurve,
    point_frame,
    searches,
    trial_frame,
)
from mountlab.core.objectives import objective_text
from mountlab.core.search import Objective
from rows import every_row
from searched_run import MAIL, SERVED, percentile_s, searched_run
from synthetic_run import synthetic_run

LOWEST, HIGHEST = 500, 3900


def curve_of(rates: list[float], latencies: list[float], *, unsure: tuple[int, ...] = ()) -> LoadCurve:
    """The curve of a search that had these trials."""
    (found,) = searches(searched_run("ext4", trials=len(rates)))
    trials = [
        replace(
            trial,
            asked=rate,
            used=math.nan if place in unsure else latency / 0.005,
            latencies={"read_latency_p99": latency, "read_latency_p50": latency / 5},
        )
        for place, (trial, rate, latency) in enumerate(zip(found.trials, rates, latencies, strict=True))
    ]
    (curve,) = replace(found, trials=tuple(trials)).curves
    return curve


def test_trials_at_about_one_rate_are_one_point_of_their_medians() -> None:
    curve = curve_of([1000, 1010, 990, 2000], [1e-3, 9e-3, 2e-3, 4e-3])
    low, high = curve.points
    assert (low.rate, low.latency, low.middle, low.n) == (1000, 2e-3, 4e-4, 3)
    assert (high.rate, high.latency, high.n) == (2000, 4e-3, 1)


def test_a_trial_whose_schedule_was_not_kept_is_in_no_point() -> None:
    curve = curve_of([1000, 2000, 4000], [1e-3, 2e-3, 7.0], unsure=(2,))
    assert [point.rate for point in curve.points] == [1000, 2000]
    (found,) = searches(searched_run("ext4", trials=12, lost=(4, 9)))
    assert [trial.block for trial in found.lost] == [5, 10]


@pytest.mark.parametrize("name", ["ext4", "xfs"])
def test_the_knee_of_a_queue_lies_where_its_percentile_has_doubled(name: str) -> None:
    """M/M/1: p99 = ln(100) / (served - rate), so it is twice that of the rate b at (served + b) / 2."""
    served = SERVED[name]
    rates = [float(rate) for rate in range(LOWEST, HIGHEST, 100)]
    curve = curve_of(rates, [percentile_s(served, rate, 99) for rate in rates])
    doubled = (served + rates[1]) / 2
    assert curve.knee is not None
    assert curve.knee[0] <= doubled <= curve.knee[1]


@every_row(
    ("rates", "milliseconds"),
    [
        ([1000, 2000, 3000, 4000], [1, 1.1, 1.2, 1.9]),  # it never leaves the flat part
        ([1000, 2000], [1, 5]),  # too few to know what flat is
        ([1000, 2000, 3000, 4000, 5000], [1, 1, 1, 5, 1]),  # it comes back
        ([1000, 1200, 1400, 1600], [1, 1, 1, 5]),  # too short to be known as flat
        ([1000, 2000, 3000, 4000], [9, 1, 1, 1]),  # slower at the lowest rate
    ],
)
def test_where_trials_do_not_show_a_knee_there_is_none(rates: list[float], milliseconds: list[float]) -> None:
    assert curve_of(rates, [each / 1e3 for each in milliseconds]).knee is None


def test_an_objective_of_two_directions_has_a_curve_for_each() -> None:
    both = Objective(limits={"p50": 0.001, "p99_9": 0.25}, of=("read", "write"))
    assert objective_text(both).replace("\u00a0", " ") == "read and write p50 ≤ 1 ms and p99.9 ≤ 250 ms"
    assert MAIL.search is not None
    (found,) = searches(searched_run("ext4", trials=3))
    curves = list(replace(found, search=replace(MAIL.search, objective=both)).curves)
    assert [curve.metric for curve in curves] == [
        "read_latency_p50", "read_latency_p99_9", "write_latency_p50", "write_latency_p99_9",
    ]  # fmt: skip


def test_frames_have_a_row_a_trial_and_a_row_a_point() -> None:
    found = searches(searched_run("ext4", "xfs", trials=10, lost=(3,)))
    trials, points = trial_frame(found), point_frame(found)
    assert len(trials) == 20
    assert trials["used"].isna().sum() == 2
    assert {"read_latency_p50", "read_latency_p99"} < set(trials)
    assert points.groupby("filesystem")["n"].sum().to_dict() == {"ext4": 9, "xfs": 9}


def test_a_run_without_searches_has_frames_without_rows() -> None:
    found = searches(synthetic_run())
    assert found == []
    assert list(trial_frame(found)) == list(TRIAL_COLUMNS)
    assert list(point_frame(found)) == list(POINT_COLUMNS)
