"""Runs beside each other as frames: what the sections of a comparison show, to go on with in pandas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from mountlab.analysis.compare.runs import compare_runs
from mountlab.report import sections
from mountlab.wording.verdicts import together
from synthetic_run import SyntheticRun, synthetic_run


def run(name: str, **options: object) -> SyntheticRun:
    made = synthetic_run(**options)  # type: ignore[arg-type]
    made.info = {**made.info, "run_id": name, "box": {"name": f"box-{name}"}}
    return made


def without(made: SyntheticRun, name: str) -> SyntheticRun:
    """A run of the same sweep that has left one file system out."""
    kept = tuple(fs for fs in made.sweep.filesystems if fs.name != name)
    frames = {what: getattr(made, what) for what in ("trials", "measurements", "estimates")}
    fewer = {what: frame[frame["filesystem"] != name] for what, frame in frames.items()}
    return replace(made, sweep=replace(made.sweep, filesystems=kept), **fewer)


def test_the_ratios_of_two_runs_are_rows_with_the_interval_of_their_verdict() -> None:
    found = compare_runs((run("a"), run("b")))
    rows = found.figures.to_dict("records")
    assert len(rows) == len(found.ratios)
    for row, each in zip(rows, found.ratios, strict=True):
        ours = together(each.comparison)
        assert (row["ratio"], row["low"], row["high"], row["verdict"]) == pytest.approx(
            (ours.ratio, ours.low, ours.high, ours.verdict), nan_ok=True
        )
        assert (row["mean_a"], row["n_b"], row["filesystem"]) == (each.mean_a, each.n_b, each.cell.filesystem.name)


def test_the_verdicts_of_each_run_are_those_of_its_own_report() -> None:
    runs = [run("a"), run("b")]
    frame = compare_runs(runs).verdicts
    for name, own in zip("AB", runs, strict=True):
        assert list(frame[frame["run"] == name]["verdict"]) == [each.verdict for each in own.comparisons]
        assert list(frame[frame["run"] == name]["high"]) == pytest.approx(
            [together(each).high for each in own.comparisons], nan_ok=True
        )


def test_the_figures_of_many_runs_have_a_ratio_to_the_first() -> None:
    found = compare_runs([run("a"), run("b"), run("c")])
    frame = found.figures
    assert set(frame["run"]) == {"A", "B", "C"}
    assert frame[frame["run"] == "A"]["ratio"].isna().all()
    one, last = found.cells[0], frame[frame["run"] == "C"].iloc[0]
    estimate, ratio = one.estimates[2], one.ratios[2]
    assert estimate is not None
    assert ratio is not None
    assert (last["mean"], last["low"], last["ratio"]) == (estimate.mean, estimate.low, ratio.comparison.ratio)


def test_over_boxes_the_verdicts_also_hold_a_row_over_all_of_them() -> None:
    found = compare_runs([run("a"), run("b"), run("c")], factor="box")
    frame = found.verdicts
    over = frame[frame["run"] == "all boxes"]
    assert list(over["ratio"]) == [each.over.ratio for each in found.over_boxes]
    assert list(over["n"]) == [each.over.n for each in found.over_boxes]
    assert all(math.isfinite(mean) for mean in found.figures["mean"])
    assert set(found.figures["run"]) == {"box-a", "box-b", "box-c"}


def test_cells_that_some_runs_lack_are_named_with_the_runs_that_have_them() -> None:
    runs = [run("a"), without(run("b"), "tmpfs"), run("c")]
    found = compare_runs(runs)
    (where,) = found.only_in
    assert where == "A and C"
    assert all(cell.startswith("tmpfs/") for cell in found.only_in[where])
    assert f"Only in A and C: {len(found.only_in[where])}" in sections.not_compared(found).text
    assert "All runs have the same cells." in sections.not_compared(compare_runs([run("a"), run("b"), run("c")])).text
