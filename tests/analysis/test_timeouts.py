"""Trials that ran into their time limit: what is said of a cell, of a ratio, and of runs of before."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from analysis.test_cells import frame, make, trial
from mountlab.analysis import gate
from mountlab.analysis.compare.runs import compare_runs
from mountlab.analysis.estimates import estimate_frame, percentile_frame
from mountlab.analysis.ranks import ranks
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.analysis.time_limits import censored_blocks
from mountlab.core.findings import Comparison
from mountlab.core.model import Trial
from mountlab.publish.export import Pivot, export_files, paper_files
from mountlab.publish.seal_again import seal_again
from mountlab.report import sections
from mountlab.report.sections.figures import shape
from mountlab.report.terminal import answer_text
from mountlab.results import catalog
from mountlab.results.catalog.reading import check, read_run
from mountlab.results.histories import Wanted, load_years
from mountlab.results.info import read_trials
from mountlab.results.journal import read_journal
from mountlab.results.store import Run, load_run
from mountlab.results.tables import write_derived
from mountlab.runner import progress
from mountlab.runner.trial_executor import as_trial
from mountlab.sentences.history import sentences
from mountlab.stats.adjusted import adjust_comparisons
from mountlab.stats.censored import SIGN_METHOD, estimate_censored, ranked_ratios
from mountlab.stats.comparisons import RATIO_METHOD, compare_rows
from mountlab.stats.histograms import count
from mountlab.stats.simulated import generator
from mountlab.sweep.sweep_file import ParameterError
from mountlab.wording import verdicts
from mountlab_dev.calibration import limits
from repetition import others_long
from results.test_store import NOW, brought_back, create, ok, the_plan
from rows import every_row
from scipy import stats
from synthetic_run import SWEPT, synthetic_run

INF, NAN = math.inf, math.nan
LATE = "ran longer than 60 s and was ended (design.trial_timeout)"


# --- the median of a cell ---------------------------------------------------------------------------------------------


@every_row(
    ("values", "late", "worst", "expected"),
    [
        ([5, 1, 2, 3, 4, 6, 7, 8, 9], 1, INF, (5.5, 2, 9)),
        ([5, 1, 2, 3, 4, 6, 7, 8], 2, INF, (5.5, 2, INF)),
        ([5, 1, 2, 3, 4, 6, 7, 8], 2, 0.0, (3.5, 0, 7)),
        ([1, 2, 3, 4, 5], 5, INF, (NAN, 2, INF)),
        ([3, 1, 2], 9, INF, (NAN, 3, INF)),
        ([3, 1, 2], 9, 0.0, (NAN, 0, 1)),
        ([], 6, INF, (NAN, NAN, NAN)),
        ([1, 2, 3], 1, INF, (2.5, 0, INF)),
        ([1, 2, 3], 1, NAN, (NAN, NAN, NAN)),
    ],
    ids=[
        "one of ten",
        "two of ten",
        "of a rate",
        "a half",
        "most",
        "most, of a rate",
        "all",
        "too few for an interval",
        "of an amount",
    ],
)
def test_the_median_counts_them_as_the_worst(
    values: list[float], late: int, worst: float, expected: tuple[float, float, float]
) -> None:
    """By hand: of ten values the 2nd and the 9th enclose the median with 97.9 %, the 1st and the 10th with 99.8 %."""
    found = estimate_censored(np.array(values, dtype=float), late, level=0.95, worst=worst)
    assert (found.figure, found.low, found.high) == pytest.approx(expected, nan_ok=True)
    assert f"{late} of {len(values) + late} trials ran into the time limit" in found.method


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20])
def test_the_interval_covers_the_median_of_all_trials(n: int) -> None:
    """Defect: with one trial in five stalling, and drawn again, no interval held the truth."""
    values, late = limits.times_with_stalls(generator("test", n), (2_000, n))
    truth = math.exp(limits.NOISE * stats.norm.ppf(0.5 / 0.8))
    found = [
        estimate_censored(row[~own], int(own.sum()), level=0.95, worst=INF)
        for row, own in zip(values, late, strict=True)
        if own.any()
    ]
    held = sum(each.low <= truth <= each.high for each in found)
    assert held >= stats.binom.ppf(0.001, len(found), 0.95)


# --- ratios -----------------------------------------------------------------------------------------------------------


def test_the_sign_test_and_its_bounds_are_those_of_coin_tosses() -> None:
    """Nine blocks, in one of which the candidate did not end and in one the baseline did not, and one with neither."""
    logs = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, NAN, 0.0, NAN])
    late = np.zeros((2, 1, 9), dtype=bool)
    late[0, 0, [6, 8]] = late[1, 0, [7, 8]] = True
    sides = (np.exp(logs)[None], np.where(late[1], NAN, 1.0))
    found = ranked_ratios(compare_rows(*sides), sides, (late[0], late[1]), np.ones(1))
    assert found.n.tolist() == [8]
    assert math.log(found.ratio[0]) == pytest.approx((0.3 + 0.4) / 2), "-inf, 0.1 ... 0.6, inf"
    assert found.p_above()[0] == pytest.approx(stats.binomtest(7, 8, alternative="greater").pvalue)
    assert found.p()[0] == pytest.approx(stats.binomtest(7, 8).pvalue)
    low, high = found.bounds(0.9)
    assert (math.log(low[0]), math.log(high[0])) == pytest.approx((0.1, 0.6)), "2nd and 7th: 1 - 2 * 9/256"
    turned = ranked_ratios(compare_rows(*sides[::-1]), sides[::-1], (late[1], late[0]), np.ones(1))
    assert 1 / turned.bounds(0.9)[1][0] == pytest.approx(low[0])


def test_an_interval_lies_beyond_1_exactly_where_the_family_decides() -> None:
    rng = np.random.default_rng(5)
    sides = [limits.times_with_stalls(rng, (40, 30)) for _ in range(2)]
    effects = np.exp(rng.normal(0, 0.2, (40, 1)))
    ratios = limits.ratios_with_stalls((effects * sides[0][0], sides[0][1]), sides[1])
    found = adjust_comparisons(ratios, level=0.95, smallest_effect=0.02)
    decided = found.p_adjusted < 0.05
    assert 0 < decided.sum() < 40
    assert (decided == ((found.joint.low > 1) | (found.joint.high < 1))).all()
    assert np.isnan(found.needed[ratios.ranked]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sweeps"), others_long([(8, 20), (8, 60), (15, 60)], kept=[(8, 20)]))
def test_identical_cells_with_stalls_have_false_verdicts_in_5_percent_of_sweeps_at_most(n: int, sweeps: int) -> None:
    """9 of 60, 5 of 20 but for chance in one of 1,000 cases."""
    share = limits._any_false(n, sweeps)
    assert share.hits <= stats.binom.ppf(0.999, sweeps, 0.05)


def rows_of(late: dict[str, tuple[int, ...]], metric: str = "write_bandwidth", blocks: int = 12) -> list[Comparison]:
    sweep, rng = replace(make(), metrics=(metric,)), np.random.default_rng(2)
    values = {
        cell: {b: scale * rng.lognormal(0, 0.01) for b in range(1, blocks + 1) if b not in late.get(cell, ())}
        for cell, scale in (("a/w", 100), ("b/w", 200), ("c/w", 100))
    }
    censored = {cell: frozenset(own) for cell, own in late.items()}
    return comparisons(sweep, frame(sweep, values, metric), censored)


def test_the_direction_of_a_verdict_follows_the_metric_and_the_side_that_stalls() -> None:
    every = tuple(range(1, 13))
    by_rate, by_time = rows_of({"c/w": every}), rows_of({"c/w": every}, "elapsed")
    assert [each.verdict for each in by_rate if each.candidate == "c"] == ["slower"]
    assert [each.verdict for each in by_time if each.candidate == "c"] == ["slower"]
    assert {each.verdict for each in rows_of({"a/w": every}) if each.candidate == "c"} == {"faster"}
    (rate,) = [each for each in by_rate if each.candidate == "c"]
    assert (rate.n, rate.censored, math.isnan(rate.ratio)) == (12, 12, True)
    assert "Most trials of c" in verdicts.comparison_sentence(rate, smallest_effect=0.02)


def test_two_cells_that_both_stalled_or_whose_metric_no_limit_bounds_are_undecided() -> None:
    every = tuple(range(1, 13))
    both = [each for each in rows_of({"a/w": every, "c/w": every}) if each.candidate == "c"]
    amount = [each for each in rows_of({"c/w": (1,)}, "user_cpu") if each.candidate == "c"]
    for each in (*both, *amount):
        assert (each.verdict, each.n) == ("undecided", 0)


def test_equality_is_never_concluded_from_trials_that_did_not_end() -> None:
    late, whole = (
        next(each for each in rows_of(own, blocks=60) if each.candidate == "c") for own in ({"c/w": (3,)}, {})
    )
    assert (whole.verdict, late.verdict) == ("same", "undecided")
    assert late.ratio == pytest.approx(whole.ratio, rel=0.01)


def test_a_comparison_says_how_it_was_made_and_the_others_of_the_sweep_are_what_they_were() -> None:
    (whole,), (beside, late) = (rows_of(own)[: 1 + bool(own)] for own in ({}, {"c/w": (3,)}))
    assert (late.candidate, late.method, whole.method) == ("c", SIGN_METHOD, RATIO_METHOD)
    assert repr(beside) == repr(whole)  # figures that are missing are NaN, which is no equal of itself


def test_times_of_mkfs_are_not_those_of_a_trial_nor_are_warm_up_trials_counted() -> None:
    sweep = make()
    warm = replace(trial(sweep.cells[1], 0), status="timeout", warmup=True)
    own = estimate_frame(
        sweep,
        frame(sweep, {"a/w": {1: 2.0, 2: 4.0}}, "mkfs_time"),
        run_id="r",
        box="b",
        censored=censored_blocks([replace(trial(sweep.cells[0], 3), status="timeout"), warm]),
    )
    assert own[["n", "censored", "mean"]].to_numpy().tolist() == [[2, 0, 3.0]]


def test_a_run_without_timeouts_is_what_it_was_and_has_no_more_to_compute() -> None:
    sweep = make()
    whole = frame(sweep, {"a/w": {1: 2.0, 2: 4.0}}, "elapsed")
    found = estimate_frame(sweep, whole, run_id="r", box="b")
    assert found["censored"].tolist() == [0]
    assert found["method"].tolist() == ["mean, t interval on the log scale"]


# --- cells that never ended -------------------------------------------------------------------------------------------


def test_a_cell_that_never_ended_has_a_row_that_says_so() -> None:
    """Defect: it had none, so that it looked like a cell that the sweep leaves out."""
    sweep = replace(make(), metrics=("elapsed",))
    values = frame(sweep, {"a/w": {1: 2.0, 2: 4.0}, "c/w": {1: 2.0, 2: 3.0}}, "elapsed")
    found = estimate_frame(sweep, values, run_id="r", box="b", censored={"b/w": frozenset({1, 2})})
    assert found["cell"].tolist() == ["a/w", "b/w", "c/w"], "in the order of the sweep"
    row = found.set_index("cell").loc["b/w"]
    assert (row["run_id"], row["filesystem"], row["metric"], row["unit"]) == ("r", "b", "elapsed", "s")
    assert (row["n"], row["censored"]) == (2, 2)
    assert math.isnan(row["mean"])
    assert row["method"] == "no figure; 2 of 2 trials ran into the time limit"


def test_where_no_trial_of_a_run_ended_every_cell_has_its_row() -> None:
    sweep = replace(make(), metrics=("elapsed",))
    empty = frame(sweep, {"a/w": {1: 2.0}}, "elapsed").iloc[:0]
    found = estimate_frame(sweep, empty, run_id="r", box="b", censored={"a/w": frozenset({1}), "b/w": frozenset({1})})
    assert dict(zip(found["cell"], found["n"], strict=True)) == {"a/w": 1, "b/w": 1}


def test_latency_curves_are_of_all_trials() -> None:
    """The 3rd of five is the median, two being slower than all that ended."""
    cell = make().cells[0]
    each = [count([1000 * scale] * 2000) for scale in (1, 2, 3)]
    found = percentile_frame(make(), {cell.id: {"read.clat_ns": each}}, {cell.id: frozenset({4, 5})})
    row = found.set_index("percent").loc[50.0]
    assert (row["n"], row["censored"]) == (5, 2)
    assert row["mean"] == pytest.approx(3e-6, rel=0.01)
    assert "2 of 5 trials" in row["method"]
    alone = percentile_frame(make(), {cell.id: {"read.clat_ns": each}}).set_index("percent").loc[50.0]
    assert alone["mean"] == pytest.approx(2e-6, rel=0.01)


# --- a run ------------------------------------------------------------------------------------------------------------


def a_run(results: Path, *late: tuple[str, int], retried: bool = False) -> Path:
    """Three blocks, in which trials (cell, block) ran into the limit; `retried`: as an earlier version kept them."""
    writer = create(results)
    for planned in the_plan().trials:
        if (planned.cell.id, planned.block) not in late:
            writer.record(ok(planned), brought_back(planned))
        elif retried:
            files = {**brought_back(planned), "attempt-1/reason": LATE.encode()}
            writer.record(replace(ok(planned), attempts=2), files)
        else:
            writer.record(as_trial(planned, "timeout", LATE, NOW, 60.0), {})
    writer.finish("complete")
    return writer.path


COLD = ("ext4/r cache=cold", 2)


@pytest.mark.slow
def test_no_page_prints_a_mean_without_its_slow_trials(results_dir: Path) -> None:
    run = load_run(a_run(results_dir, COLD))
    row = run.estimates.set_index(["cell", "metric"]).loc[COLD[0], "read_bandwidth"]
    assert (row["n"], row["censored"]) == (3, 1)
    assert "median; 1 of 3 trials ran into the time limit" in row["method"]
    own = run.measurements[(run.measurements.cell == COLD[0]) & (run.measurements.metric == "read_bandwidth")]
    assert row["mean"] == own[~own.warmup].value.min(), "the slower of the two, as the third is slower still"
    told = answer_text(run.sweep, run.comparisons, run.caveats)
    assert "warning: Timed out (1 cell)" in told
    assert "3, 1 at the limit (median)" in told
    page = "".join(getattr(sections, name)(run) for name in ("answer", "overview", "tables", "caveats", "trials"))
    assert page.count("3, 1 at the limit (median)") >= 2
    assert "1 timeout" in page
    write_derived(run)
    assert pd.read_csv(run.path / "estimates.csv")["censored"].sum() > 0


def cells_of(results: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Cell and metric to n, censored, mean, sd and log_mean in the catalog."""
    sql = "SELECT cell, metric, n, censored, mean, sd, log_mean FROM cells WHERE label = ''"
    with catalog.opened(catalog.build(results).file) as connection:
        return {row[:2]: row[2:] for row in catalog.ask(connection, sql).rows}


@pytest.mark.slow
def test_the_catalog_has_the_figure_of_the_estimates(results_dir: Path) -> None:
    run = load_run(a_run(results_dir, COLD))
    found, own = cells_of(results_dir), run.estimates[run.estimates["label"] == ""]
    assert len(found) == len(own)
    for row in own.itertuples():
        n, censored, mean, *_ = found[row.cell, row.metric]
        assert (n, censored) == (row.n, row.censored)
        assert mean == (None if math.isnan(row.mean) else pytest.approx(row.mean))
    assert found[COLD[0], "read_bandwidth"][3:] == (None, None), "trials without a value have no spread"


@pytest.mark.slow
def test_the_catalog_has_no_figure_of_a_cell_of_which_no_trial_or_half_of_them_ended(results_dir: Path) -> None:
    a_run(results_dir, COLD, (COLD[0], 1))
    assert cells_of(results_dir)[COLD[0], "read_bandwidth"] == (3, 2, None, None, None)
    a_run(results_dir / "b", *((COLD[0], block) for block in (1, 2, 3)))
    assert cells_of(results_dir / "b")[COLD[0], "read_bandwidth"] == (3, 3, None, None, None)


@pytest.mark.slow
def test_a_history_names_the_run_with_trials_at_their_limit(results_dir: Path) -> None:
    a_run(results_dir, COLD)
    (history,) = load_years(results_dir, Wanted(cell=COLD[0])).histories
    assert [(point.n, point.censored) for point in history.by_median] == [(3, 1)]
    assert any("time limit" in each for each in sentences([history]))


@pytest.mark.slow
def test_a_retried_timeout_of_an_earlier_run_is_read_as_the_timeout_that_it_was(results_dir: Path) -> None:
    """Its journal holds the figure of the second attempt; raw/ holds why the first gave none."""
    path = a_run(results_dir, COLD, retried=True)
    info = path / "run.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "schema": 3}))
    seal_again(path)
    (late,) = [each for each in read_trials(path) if each.status == "timeout"]
    assert (late.cell, late.block) == COLD
    assert late.reason.startswith(LATE)
    assert {each.status for each in read_journal(path)} == {"ok"}, "what lies there stays"
    run = load_run(path)
    assert [each.subject for each in run.caveats if each.code == "timed-out"] == [COLD[0]]
    assert run.estimates.set_index(["cell", "metric"]).loc[(COLD[0], "read_bandwidth"), "censored"] == 1
    write_derived(run)
    rows = read_run(path, "r")
    assert rows.source == "measurements.parquet"
    assert rows.trials.column("status").to_pylist().count("timeout") == 1
    assert check(path, "r") == ""


def test_one_that_had_failed_at_its_limit_is_one_too(results_dir: Path) -> None:
    path = a_run(results_dir, COLD)
    journal = path / "trials.jsonl"
    journal.write_text(journal.read_text().replace('"timeout"', '"failed"'))
    seal_again(path)
    assert [each.status for each in read_trials(path)].count("timeout") == 1


@pytest.mark.slow
def test_a_timeout_may_be_excluded_with_a_reason_and_a_failure_need_not(results_dir: Path) -> None:
    path = a_run(results_dir, COLD)
    (late,) = [each for each in read_trials(path) if each.status == "timeout"]
    (path / "exclude.yml").write_text(f"exclude: {{{late.trial_id}: the disk was being replaced}}\n")
    run = load_run(path)
    assert run.estimates["censored"].sum() == 0
    assert [each.code for each in run.caveats].count("excluded") == 1
    journal = path / "trials.jsonl"
    journal.write_text(journal.read_text().replace('"timeout"', '"failed"').replace("ran longer", "broke"))
    seal_again(path)
    with pytest.raises(ParameterError, match="need not be excluded"):
        read_trials(path)


def two_runs(results: Path) -> tuple[Run, Run]:
    whole, late = load_run(a_run(results / "a")), load_run(a_run(results / "b", COLD))
    return replace(whole, info=replace(whole.info, run_id="r0")), late


@pytest.mark.slow
def test_runs_share_no_blocks_so_that_such_a_cell_is_not_compared_and_the_gate_cannot_tell(results_dir: Path) -> None:
    whole, late = two_runs(results_dir)
    found = {each.cell.id: each.comparison.verdict for each in compare_runs((whole, late)).ratios}
    assert found[COLD[0]] == "undecided"
    assert [each.n_b for each in compare_runs((whole, late)).ratios if each.cell.id == COLD[0]] == [0]
    for change, baseline in ((late, whole), (whole, late)):
        judged = {each.cell.id: each for each in gate.judge([change], [baseline], margin=0.05).judged}
        assert judged[COLD[0]].outcome == "cannot tell"
        assert "timed-out" in judged[COLD[0]].reason


@pytest.mark.slow
def test_ranks_are_of_the_same_comparisons(results_dir: Path) -> None:
    run = load_run(a_run(results_dir, *[(COLD[0], block) for block in (1, 2, 3)]))
    found = {rank.text for rank in ranks(run) if rank.workload_label == "r cache=cold"}
    assert found == {"1 to 2"}, "n = 3 decides nothing"


def test_no_analysis_of_variance_is_made_of_the_trials_that_ended(results_dir: Path) -> None:
    run = load_run(a_run(results_dir, COLD))
    told = sections.explained(run)
    assert "No analysis of variance of" in told
    assert "1 trial ran into the time limit and has no value" in told


@pytest.mark.long
@pytest.mark.slow
def test_every_plot_of_trials_says_which_are_not_in_it(results_dir: Path) -> None:
    run = load_run(a_run(results_dir, COLD))
    whole = load_run(a_run(results_dir / "whole"))
    for name in ("every_trial", "run_order", "distributions", "bar_charts"):
        assert f"(1 of {COLD[0]})" in getattr(sections, name)(run)
        assert "Not drawn" not in getattr(sections, name)(whole)


@pytest.mark.slow
@pytest.mark.parametrize("cells", others_long([1, 2, 8], kept=[8]))
def test_every_section_is_made_where_cells_have_no_figure(results_dir: Path, cells: int) -> None:
    names = list(dict.fromkeys(each.cell.id for each in the_plan().trials))[:cells]
    run = load_run(a_run(results_dir, *[(name, block) for name in names for block in (0, 1, 2, 3)]))
    for name in (
        "answer",
        "overview",
        "tables",
        "explained",
        "responses",
        "every_trial",
        "run_order",
        "distributions",
        "bar_charts",
        "latencies",
        "inside_trials",
        "device_bytes",
        "caveats",
        "trials",
    ):
        assert getattr(sections, name)(run)
    assert "all at the limit (no figure)" in sections.tables(run)


@pytest.mark.slow
def test_nothing_is_drawn_over_options_where_no_cell_has_a_figure() -> None:
    """Defect: a plot was asked for, which raised InputError."""
    run = synthetic_run(workloads=SWEPT)
    assert shape(run).levels
    assert not shape(replace(run, estimates=run.estimates.assign(mean=NAN))).levels


@pytest.mark.slow
def test_a_pivot_has_medians_beside_how_many_trials_they_lack(results_dir: Path) -> None:
    run, wanted = load_run(a_run(results_dir, COLD)), Pivot.read("filesystem:cache", "read_bandwidth", None)
    found = export_files({"estimates": run.estimates}, run.sweep, "csv", wanted)
    assert [name for name in found if "censored" in name] == ["read_bandwidth-by-cache-censored.csv"]
    assert "3, 1 at the limit" in b"".join(paper_files(run, "markdown", wanted).values()).decode()
    whole = load_run(a_run(results_dir / "whole"))
    assert list(export_files({"estimates": whole.estimates}, whole.sweep, "csv", wanted)) == [
        "read_bandwidth-by-cache.csv"
    ]


@pytest.mark.slow
def test_over_boxes_such_a_cell_has_no_figure_and_its_ratio_is_said_to_be_a_median(results_dir: Path) -> None:
    whole, late = two_runs(results_dir)
    boxes = [replace(run, info=replace(run.info, box={"name": name})) for run, name in ((whole, "x"), (late, "y"))]
    found = compare_runs(boxes, factor="box")
    (cell,) = [each for each in found.cells if each.cell.id == COLD[0] and each.metric == "read_bandwidth"]
    assert [each is None for each in cell.estimates] == [False, True]
    told = {each.code: each.message for each in found.caveats}
    assert told["timed-out-ratios"].startswith("on y trials ran into their time limit")
    assert COLD[0] in told["not-on-all-boxes"]


def test_what_each_trial_says_of_itself() -> None:
    late = Trial(**{**vars(trial(make().cells[0], 1)), "status": "timeout", "reason": LATE})
    assert progress.failure_counts([late, replace(late, status="failed"), late]) == ["1 failed", "2 timed out"]
    assert progress.failure_counts([]) == []
