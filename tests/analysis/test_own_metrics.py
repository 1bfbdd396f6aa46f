"""Metrics that a sweep defines: unit and direction count in everything that is made of a run."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.compare.figures import common_cells
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.frames import comparison_frame
from mountlab.analysis.history import History, Key
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.samples import figure_steps
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.analysis.time_limits import censored_estimate
from mountlab.core.errors import ParameterError, PlanError
from mountlab.core.findings import Comparison
from mountlab.core.metrics import METRICS, Metric, known_metric
from mountlab.core.model import Measurement, Sweep, Trial
from mountlab.publish.export import Pivot
from mountlab.results.entries import comparison_of
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.own_metrics import defined
from mountlab.wording import verdicts
from rows import every_row
from sweeps import TMPFS

SCORE = {"pattern": r"score (\S+)", "unit": "points", "better": "higher"}
LAG = {"pattern": r"lag (\S+)", "unit": "ms", "better": "lower"}
POWER = {"pattern": r"(\S+) watts", "unit": "W", "better": "neither"}
OWN = {"score": SCORE, "lag": LAG, "power": POWER}


def made(metrics: Mapping[str, Any] = OWN, **more: Any) -> Sweep:
    entry = {"tool": "command", "argv": "mybench {directory}", "space": "1MiB", "metrics": dict(metrics)}
    raw = {"name": "s", "question": "?", "filesystems": {"a": TMPFS, "b": TMPFS}, "workloads": {"w": entry},
           "baseline": "a", "design": {"repeats": 6}, **more}  # fmt: skip
    return resolve(raw, where="s.yml").sweep


def measured(sweep: Sweep, *, twice: str = "b") -> Any:
    """Six blocks in which every figure of one file system is about twice that of the other."""
    rng = np.random.default_rng(17)
    rows = []
    for cell in sweep.cells:
        for block in range(1, 7):
            trial = Trial(
                trial_id=f"{cell.id}-{block}",
                block=block,
                warmup=False,
                cell=cell.id,
                filesystem=cell.filesystem.name,
                workload="w",
                tool="command",
                factors={},
                mount="m",
                status="ok",
                reason="",
                started_at="",
                elapsed_s=1.0,
            )
            for name, metric in sweep.own_metrics.items():
                value = rng.normal(10, 0.1) * (2 if cell.filesystem.name == twice else 1)
                rows.append((trial, Measurement(metric=name, value=value, unit=metric.unit)))
    return measurement_frame(rows)


def test_higher_is_faster_lower_is_slower_and_neither_is_not_compared() -> None:
    sweep = made()
    found = {each.metric: each for each in comparisons(sweep, measured(sweep))}
    assert {name: (each.verdict, each.better) for name, each in found.items()} == {
        "score": ("faster", "higher"),
        "lag": ("slower", "lower"),
    }
    assert all(1.9 < each.ratio < 2.1 for each in found.values())
    other = {each.metric: each.verdict for each in comparisons(sweep, measured(sweep, twice="a"))}
    assert other == {"score": "slower", "lag": "faster"}


def test_all_of_them_have_estimates_in_their_own_unit() -> None:
    sweep = made()
    frame = estimate_frame(sweep, measured(sweep), run_id="r", box="b")
    assert dict(zip(frame["metric"], frame["unit"], strict=True)) == {"score": "points", "lag": "s", "power": "W"}
    assert answer_metrics(sweep, measured(sweep))["w"] == ("score", "lag", "power")
    assert set(figure_steps(sweep, measured(sweep)).values()) == {0.0}


def test_a_metric_that_is_negative_in_any_trial_has_plain_intervals_in_every_cell() -> None:
    """A difference may be below zero, a score is not: only the sign of its values tells them apart."""
    sweep = made()
    whole = measured(sweep)
    whole["value"] = whole["value"].where(whole["metric"] != "score", whole["value"] - 9.9)
    frame = estimate_frame(sweep, whole, run_id="r", box="b").set_index(["cell", "metric"])
    assert (whole.loc[(whole["metric"] == "score") & (whole["cell"] == "b/w"), "value"] > 0).all()
    by_metric = frame.groupby("metric")["method"].unique().map(list).to_dict()
    logs = ["mean, t interval on the log scale"]
    assert by_metric == {"score": ["mean, t interval"], "lag": logs, "power": logs}
    assert frame.loc[("a/w", "score"), "low"] < 0


def test_a_sentence_says_better_or_worse_and_in_which_direction() -> None:
    sweep = made()
    sentences = [
        verdicts.comparison_sentence(each, smallest_effect=0.02) for each in comparisons(sweep, measured(sweep))
    ]
    assert "b has 2.0" in sentences[0]
    assert "the score of a under w: better; n = 6" in sentences[0]
    assert "the lag of a under w: worse, as less is better; n = 6" in sentences[1]
    assert [verdicts.verdict_of(each, 0.02) for each in comparisons(sweep, measured(sweep))] == ["better", "worse"]


def test_a_comparison_goes_through_its_file() -> None:
    sweep = made()
    found = comparisons(sweep, measured(sweep))
    frame = comparison_frame(_Half(sweep, found))  # type: ignore[arg-type]
    text = frame.to_csv(index=False)
    header, *lines = text.splitlines()
    rows = [dict(zip(header.split(","), _cells(line), strict=True)) for line in lines]
    assert [comparison_of(row).better for row in rows] == ["higher", "lower"]
    assert [comparison_of(row).more_is_better for row in rows] == [True, False]
    without = [replace(each, better="") for each in found]
    assert "better" not in comparison_frame(_Half(sweep, without))  # type: ignore[arg-type]


class _Half:
    """Of a run what a table of comparisons is made of."""

    def __init__(self, sweep: Sweep, found: list[Comparison]) -> None:
        self.sweep, self.comparisons = sweep, found


def _cells(line: str) -> list[str]:
    return next(csv.reader([line]))


def test_a_trial_that_ran_into_its_limit_is_the_worst_by_the_direction() -> None:
    assert known_metric("elapsed").worst == math.inf
    assert known_metric("file_rate").worst == 0.0
    assert math.isnan(known_metric("bytes").worst)
    assert Metric("s", "lower").worst == math.inf
    assert Metric("1/s", "higher").worst == 0.0
    assert math.isnan(Metric("s", "neither").worst)
    assert math.isnan(Metric("points", "higher").worst)
    late = censored_estimate(Metric("s", "lower"), np.array([1.0, 2.0, 3.0]), 1, 0.95)
    assert late.figure == 2.5


@every_row("metric", METRICS)
def test_the_direction_of_a_known_metric_is_that_of_its_unit(metric: str) -> None:
    assert known_metric(metric) == Metric(METRICS[metric], "higher" if METRICS[metric] in ("B/s", "1/s") else "lower")


# --- several runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{**SCORE, "better": "lower"}, {**SCORE, "unit": "tpmC"}])
def test_runs_that_define_a_metric_differently_are_not_compared(other: dict[str, str]) -> None:
    with pytest.raises(PlanError, match="the two runs define a metric differently") as caught:
        common_cells(made(), made({**OWN, "score": other}))
    assert caught.value.where == "metric score"
    assert caught.value.allowed == "as in A: unit points, better higher"
    assert common_cells(made(), made())


def test_a_history_goes_up_or_down_by_the_direction() -> None:
    class Change:
        ratio = 1.5

    def verdict(better: Any, metric: str = "score") -> str:
        key = Key(sweep="s", box="b", cell="a/w", metric=metric, better=better)
        return History(key, (), (), 1).verdict(Change())  # type: ignore[arg-type]

    assert (verdict("higher"), verdict("lower"), verdict("", "elapsed")) == ("faster", "slower", "slower")


def test_the_catalog_knows_what_a_run_of_before_defined() -> None:
    workload = {"tool": "command", "metrics": {**OWN, "file_rate": {"pattern": "x", "unit": "1/s"},
                                               "took/all": {"from": "clock", "better": "lower"}}}  # fmt: skip
    assert defined(workload) == {**made().own_metrics, "took": Metric("s", "lower")}
    for damaged in (None, {}, [], {"metrics": 3}, {"metrics": {"x": 3}}, {"metrics": {"x": {"better": "up"}}}):
        assert defined(damaged) == {}


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_pivot_is_in_the_unit_of_the_metric() -> None:
    own = made().own_metrics
    pivot = Pivot.read("filesystem:bytes", "score", None, own)
    assert pivot is not None
    assert (pivot.heading, pivot.base) == ("score, points", "points")
    lag = Pivot.read("filesystem:bytes", "lag", "ms", own)
    assert lag is not None
    assert lag.heading == "lag, ms"
    for metric, unit, said in (
        ("score", "MB/s", "not a unit for this metric"),
        ("scor", None, "unknown metric"),
        ("score,lag", None, "have one unit"),
    ):
        with pytest.raises(ParameterError, match=said):
            Pivot.read("filesystem:bytes", metric, unit, own)
