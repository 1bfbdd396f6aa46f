"""The frames behind the parts of a report: what a part shows is in its frame, in base units."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mountlab
import pandas as pd
import pytest
from mountlab.analysis.compare.runs import compare_runs
from mountlab.core import numbers
from mountlab.core.findings import Caveat
from mountlab.core.units import scale_for
from mountlab.report import html, sections
from mountlab.report.html import NOTHING, Section
from mountlab.results import store
from mountlab.wording import verdicts
from mountlab.wording.verdicts import SIGNS
from rows import every_row
from synthetic_run import SWEPT, SyntheticRun, synthetic_run

ROOT = Path(__file__).parents[2]
NO_FIGURES = {
    "box", "commands", "downloads", "facts", "not_checked", "parameters", "plots_of_plugins", "question", "reproduce",
    "versions",
}  # fmt: skip
OF_COMPARISONS = {"cell_by_cell", "differences", "not_compared", "verdicts", "which"}
FUNCTIONS = {name: part for name, part in vars(sections).items() if name in sections.__all__ and part is not Section}
OF_RUNS = sorted(FUNCTIONS.keys() - OF_COMPARISONS - {"facts"})


@cache
def swept() -> SyntheticRun:
    return synthetic_run(workloads=SWEPT)


@cache
def recorded(name: str = "tour") -> store.Run:
    return store.load_run(ROOT / "results" / name)


def part_of(run: Any, name: str) -> Any:
    trial = (run.trials["trial_id"].iloc[-1],) if name == "inside_one" else ()
    return FUNCTIONS[name](run, *trial)


@pytest.mark.slow
@every_row("name", OF_RUNS)
def test_a_part_with_figures_has_a_frame_and_another_has_none(name: str) -> None:
    part = part_of(recorded(), name)
    if name in NO_FIGURES:
        assert not hasattr(part, "frame")
        return
    assert isinstance(part, Section)
    assert isinstance(part.frame, pd.DataFrame)
    assert len(part.frame.columns) > 0
    assert inspect.signature(FUNCTIONS[name]).return_annotation == "Section", "what help shows"
    assert part.startswith(NOTHING) or len(part.frame) or name == "stopping"


@pytest.mark.slow
@every_row("name", sorted(OF_COMPARISONS | {"answer", "overview", "caveats", "every_trial", "run_order"}))
def test_parts_of_a_comparison_have_frames(name: str) -> None:
    earlier = store.load_run(ROOT / "tests" / "data" / "earlier_run")
    for runs in ([recorded(), earlier], [recorded(), earlier, synthetic_run()]):
        part = FUNCTIONS[name](compare_runs(runs))
        assert isinstance(part, Section)
        assert len(part.frame) or name == "not_compared"


@every_row("run", [swept, recorded], ids=["swept", "tour"])
def test_the_frame_of_the_means_is_what_the_table_shows(run: Any) -> None:
    part = sections.means(run())
    shown = html.words_of(part)
    for row in part.frame.to_dict("records"):
        assert {row["filesystem"], row["workload"]} <= {*shown.split(), row["workload"]}
        if row["unit"] != "1/s":
            of_workload = part.frame[
                (part.frame["workload"] == row["workload"]) & (part.frame["metric"] == row["metric"])
            ]
            scales = [scale_for(row["unit"], size) for size in (of_workload["mean"].max(), row["mean"])]
            texts = [f"{each.show(row['mean'])} {each.unit}" for each in scales]
            assert any(text in shown for text in texts)
        if row["verdict"] in SIGNS:
            figures = numbers.ratio_figures(row["ratio"], row["ratio_low"], row["ratio_high"])
            assert f"{SIGNS[row['verdict']][0]} {figures}" in shown
    factors = {name for workload in run().sweep.workloads for name in workload.factors}
    assert factors <= set(part.frame.columns), "each swept option has a column"


def test_the_frame_of_the_tables_has_every_estimate_beside_its_ratio() -> None:
    run = recorded()
    frame = sections.tables(run).frame
    assert len(frame) == len(run.estimates)
    assert sorted(frame["mean"]) == sorted(run.estimates["mean"])
    key = ["filesystem", "workload", "metric"]
    by_key = frame.set_index(key)
    for comparison in run.comparisons:
        row = by_key.loc[(comparison.candidate, verdicts.workload_of(comparison), comparison.metric)]
        interval = comparison.verdict_interval
        assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == (comparison.ratio, interval.low, interval.high)
        assert row["verdict"] == comparison.verdict


def test_the_frame_of_the_tables_names_the_caveats_of_a_figure() -> None:
    caveat = Caveat(code="noisy", severity="warning", message="", scope="cell", subject="xfs/dd-write", metrics="write")
    frame = sections.tables(replace(recorded(), caveats=[caveat])).frame
    (doubtful,) = frame[frame["caveats"] == "noisy"].to_dict("records")
    assert [doubtful[name] for name in ("filesystem", "workload", "metric")] == ["xfs", "dd-write", "write_bandwidth"]


@pytest.mark.slow
@every_row("run", [swept, recorded], ids=["swept", "tour"])
def test_the_frames_of_trials_have_each_counted_trial_as_a_multiple_of_its_mean(run: Any) -> None:
    counted, in_order = sections.every_trial(run()).frame, sections.run_order(run()).frame
    of_answer = run().measurements["metric"].isin({name for names in run().answer_metrics.values() for name in names})
    assert len(in_order) == of_answer.sum()
    assert len(counted) == (of_answer & ~run().measurements["warmup"]).sum()
    assert in_order["seq"].is_monotonic_increasing
    cell = ["filesystem", "workload", "metric", "label"]
    assert counted.groupby(cell)["of_mean"].mean().map(lambda mean: math.isclose(mean, 1)).all()
    first = in_order.iloc[0]
    mean = counted.set_index(cell).loc[tuple(first[cell]), "value"].mean()
    assert math.isclose(first["of_mean"], first["value"] / mean)


@pytest.mark.slow
def test_the_answer_of_a_search_rests_on_its_capacities() -> None:
    run = recorded("how-much-example")
    for part in (sections.answer(run), sections.capacity(run)):
        assert set(part.frame["metric"]) == {"capacity"}
        assert sorted(part.frame["mean"]) == sorted(run.estimates.query("metric == 'capacity'")["mean"])


def test_a_notebook_names_the_frame_and_a_page_does_not() -> None:
    part = Section.of(html.paragraph("Speed"), lambda: pd.DataFrame({"n": [1, 2], "mean": [0.5, 0.7]}))
    assert repr(part).splitlines() == ["Speed", "frame: 2 rows × 2 columns: .frame"]
    assert "frame: 2 rows × 2 columns" in part._repr_html_()
    assert html.on_page(part._repr_html_()) == "<p>Speed</p>"
    assert part.frame is part.frame, "it is made once"


@pytest.mark.parametrize("text", [html.nothing("No trial succeeded."), html.paragraph("None.")])
def test_a_part_without_rows_names_no_frame(text: html.Html) -> None:
    part = Section.of(text, pd.DataFrame)
    assert part._repr_html_() == text._repr_html_()
    assert repr(part) == repr(text)


def test_parts_that_are_joined_are_no_longer_of_one_frame() -> None:
    part = sections.means(recorded())
    assert (part + html.paragraph("more")).frame.empty
    assert "frame:" not in repr(html.joined(part, part))


@every_row(
    ("value", "unit", "text"),
    [
        (0.00883, "s", "8.83 ms"),
        (1.44e6, "B", "1.44 MB"),
        (0.38, "%", "38 %"),
        (2.09, "1", "2.09"),
        (-5e-6, "s", "−5.00 µs"),
        (math.nan, "s", "n/a"),
        (8.2e-13, "s", "0.000820 ns"),
    ],
)
def test_figures_are_readable_in_the_unit_of_their_column_or_row(value: float, unit: str, text: str) -> None:
    frame = pd.DataFrame({"mean": [value, 1.0], "unit": [unit, "B/s"]})
    assert [one.replace("\u00a0", " ") for one in mountlab.readable(frame, mean="unit")["mean"]] == [text, "1.00 B/s"]
    assert mountlab.readable(frame, mean=unit)["mean"].iloc[0].replace("\u00a0", " ") == text
    assert frame["mean"].iloc[1] == 1.0, "the frame itself stays as it is"
