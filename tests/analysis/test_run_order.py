"""The trend over the run order: by its definition, and in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mountlab.analysis.run_order import Trend, run_order_sentences, trend_of, trend_sentence
from mountlab.core.findings import Caveat
from scipy import stats
from synthetic_run import SyntheticRun, synthetic_run

SHOWN_WORSE, SHOWN_BETTER = "The figures got worse over the run:", "The figures got better over the run:"
NONE, OPEN = "No trend over the run:", "A trend over the run is neither shown nor excluded:"


def changed_by_block(factor: float, *caveats: Caveat) -> SyntheticRun:
    """A run whose figures change by a factor from block to block."""
    run = synthetic_run()
    rows = run.measurements
    run.measurements = rows.assign(value=rows["value"] * factor ** rows["block"].astype(float))
    run.caveats = list(caveats)
    return run


def test_the_trend_is_that_of_a_line_through_the_logarithms_of_the_levels() -> None:
    run = changed_by_block(0.9)
    rows = run.measurements[~run.measurements["warmup"].astype(bool)]
    cells = map(run.sweep.combinations.__getitem__, rows["cell"])
    answered = [
        metric in run.answer_metrics[cell.workload.label] for cell, metric in zip(cells, rows["metric"], strict=True)
    ]
    logs = rows[answered].assign(log=np.log(rows["value"]))
    levels = logs.pivot_table(index="block", columns="cell", values="log").dropna().mean(axis=1)
    line = stats.linregress(np.arange(len(levels)), levels)
    trend, steps = trend_of(run), len(levels) - 1
    assert trend is not None
    assert trend.blocks == len(levels)
    assert trend.ratio == pytest.approx(np.exp(steps * line.slope))
    half = stats.t.ppf(0.975, len(levels) - 2) * line.stderr
    assert (trend.low, trend.high) == pytest.approx(tuple(np.exp(steps * (line.slope + end)) for end in (-half, half)))


def test_there_is_no_trend_of_two_blocks() -> None:
    run = changed_by_block(0.9)
    run.measurements = run.measurements[run.measurements["block"] <= 2]
    assert trend_of(run) is None
    assert list(run_order_sentences(run)) == []


@pytest.mark.parametrize(
    ("ratio", "low", "high", "shown"),
    [
        (0.7, 0.6, 0.8, SHOWN_WORSE),
        (1.3, 1.1, 1.5, SHOWN_BETTER),
        (1.0, 0.99, 1.01, NONE),
        (0.99, 0.97, 1.01, OPEN),
        (1.01, 0.99, 1.03, OPEN),
    ],
)
def test_no_trend_is_said_only_where_the_interval_shows_it(ratio: float, low: float, high: float, shown: str) -> None:
    assert trend_sentence(Trend(ratio, low, high, 5), 0.02).startswith(shown)


def test_a_caveat_about_the_run_comes_in_place_of_the_line_and_cells_are_named() -> None:
    of_run = Caveat(code="drift", severity="warning", scope="run", message="over all the figures got worse. More.")
    of_cell = replace(of_run, code="step", scope="cell", subject="ext4/dd-write", message="it changed.")
    assert next(run_order_sentences(changed_by_block(0.9))).startswith(SHOWN_WORSE)
    assert list(run_order_sentences(changed_by_block(0.9, of_run, of_cell))) == [
        "Over all the figures got worse.",
        "Step: ext4/dd-write (see Caveats).",
    ]
