"""Figures of trials beside those of their cells, held against their definition."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from mountlab.analysis.trial_values import trial_values
from synthetic_run import synthetic_run

RUN = synthetic_run()
METRICS = {cell.id: RUN.answer_metrics[cell.workload.label][0] for cell in RUN.sweep.cells}


def test_the_multiples_of_the_counted_trials_of_a_cell_have_the_mean_1() -> None:
    values = trial_values(RUN)
    good = RUN.trials[(RUN.trials.status == "ok") & ~RUN.trials.warmup]
    for cell, own in good.groupby("cell"):
        multiples = [values[trial_id, METRICS[str(cell)]].multiple for trial_id in own.trial_id]
        assert sum(multiples) / len(multiples) == pytest.approx(1)


def test_a_warm_up_is_held_against_the_counted_trials_too() -> None:
    """Those of the run that is made up are a fifth slower."""
    warm = RUN.trials[RUN.trials.warmup]
    values = trial_values(RUN)
    found = [values[row.trial_id, METRICS[row.cell]].multiple for row in warm.itertuples()]
    assert sum(found) / len(found) == pytest.approx(0.8, abs=0.03)


def test_a_trial_that_failed_has_no_figure_and_others_than_the_answers_metrics_are_left_out() -> None:
    values = trial_values(RUN)
    failed = RUN.trials[RUN.trials.status != "ok"].trial_id.item()
    assert failed not in {trial_id for trial_id, _ in values}
    assert {metric for _, metric in values} == set(METRICS.values())


def labelled(labels: tuple[str, ...], multiples: tuple[float, ...]) -> tuple[float, float, int]:
    """Value, multiple and rows of the first trial of a cell, whose metric has these labels, each with a mean of 10."""
    trial = RUN.trials.iloc[0]
    metric = METRICS[trial.cell]
    common = {"trial_id": trial.trial_id, "cell": trial.cell, "metric": metric}
    rows = [{**common, "label": label, "value": 10 * each} for label, each in zip(labels, multiples, strict=True)]
    means = [{**common, "label": label, "mean": 10.0} for label in labels]
    run = replace(RUN, measurements=pd.DataFrame(rows), estimates=pd.DataFrame(means))
    found = trial_values(run)[trial.trial_id, metric]
    return found.value, found.multiple, found.rows


def test_the_row_of_the_whole_stands_for_all() -> None:
    assert labelled(("a", "", "b"), (4, 2, 3)) == (20, 2, 1)


def test_of_rows_without_a_whole_the_multiples_are_averaged_as_ratios() -> None:
    value, multiple, rows = labelled(("a", "b"), (4, 1))
    assert value != value
    assert (multiple, rows) == (pytest.approx(2), 2)
