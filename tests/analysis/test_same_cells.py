"""Runs whose sweeps name the same options in another order have the same cells, wherever two runs are matched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mountlab.analysis.compare.figures import common_cells
from mountlab.analysis.compare.runs import compare_runs
from mountlab.analysis.forecast import forecast
from mountlab.analysis.gate import judge
from mountlab.analysis.published import beside
from mountlab.analysis.same_cells import aligned, same_workload
from mountlab.core.findings import PublishedFigure
from mountlab.results import catalog
from mountlab.results.histories import Wanted, read_years
from mountlab.results.imported import import_patterns
from mountlab.results.store import Run, load_run
from mountlab_dev import bench_catalog
from mountlab_dev.bench_catalog import Years, write_years

DD = "{n}+0 records in\n{n}+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, {seconds:.6f} s, {rate:.1f} MB/s\n"
RW_BS, BS_RW = "{filesystem}-{direction}-{bs}-{repeat}.txt", "{filesystem}-{bs}-{direction}-{repeat}.txt"
Runs = Callable[..., Run]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Make a run of dd logs on a box, `factor` times as fast, whose cells are named by the order in a pattern."""

    def make(pattern: str, factor: float = 1.0, box: str = "a") -> Run:
        directory = tmp_path / f"{box}-{factor}-{len(list(tmp_path.iterdir()))}"
        directory.mkdir()
        for fs, speed in (("ext4", 1.0), ("tmpfs", 2.0)):
            for place, bs in enumerate(("64K", "1M")):
                for side in ("read", "write"):
                    for n in (1, 2, 3, 4):
                        seconds = (0.3 + n / 500 + place / 10 + (side == "read") / 20) / speed / factor
                        text = DD.format(n={"1M": 200, "64K": 3200}[bs], seconds=seconds, rate=209.7152 / seconds)
                        name = pattern.format(filesystem=fs, bs=bs, direction=side, repeat=n)
                        (directory / name).write_text(text)
        monkeypatch.chdir(directory)
        asked = {"question": "?", "tool": "dd", "files": pattern, "baseline": "ext4", "box": box, "name": f"r{factor}"}
        return load_run(import_patterns(asked, results=directory / "results"))

    return make


def told(ratios: Any) -> dict[tuple[str, str], tuple[float, float, str]]:
    return {
        (each.cell.id, each.comparison.metric): (
            each.comparison.ratio,
            each.comparison.joint.low,
            each.comparison.verdict,
        )
        for each in ratios
    }


@pytest.mark.slow
def test_two_runs_have_all_cells_in_common(made: Runs) -> None:
    a, same, other = made(RW_BS), made(RW_BS, 1.3), made(BS_RW, 1.3)
    assert {cell.id for cell in a.sweep.cells}.isdisjoint(cell.id for cell in other.sweep.cells)
    assert [cell.id for cell in common_cells(a.sweep, other.sweep)] == [cell.id for cell in a.sweep.cells]
    found = compare_runs((a, other))
    assert told(found.ratios) == told(compare_runs((a, same)).ratios)
    assert len(found.ratios) == 8
    assert found.only_in == {}
    assert {each.cell.id for each in compare_runs((other, a)).ratios} == {cell.id for cell in other.sweep.cells}
    assert not [each for each in found.differences if each.area.startswith("workload")]


@pytest.mark.long
@pytest.mark.slow
def test_many_runs_have_all_cells_and_all_answers_in_common(made: Runs) -> None:
    runs = [made(RW_BS), made(BS_RW, 1.3), made(RW_BS, 1.1)]
    same = [runs[0], made(RW_BS, 1.3), runs[2]]
    found, expected = compare_runs(runs), compare_runs(same)
    assert [(each.cell.id, each.metric, each.p_adjusted) for each in found.cells] == [
        (each.cell.id, each.metric, each.p_adjusted) for each in expected.cells
    ]
    assert len(found.answers) == 4
    assert all(len(each.present) == 3 for each in found.answers)


@pytest.mark.slow
def test_boxes_have_all_cells_and_all_ratios_in_common(made: Runs) -> None:
    runs = [made(RW_BS, 1.0, "a"), made(BS_RW, 1.3, "b")]
    found, expected = compare_runs(runs, factor="box"), compare_runs([runs[0], made(RW_BS, 1.3, "b")], factor="box")
    assert [(each.over.ratio, each.spread) for each in found.over_boxes] == [
        (each.over.ratio, each.spread) for each in expected.over_boxes
    ]
    assert all(None not in each.on_each for each in found.over_boxes)
    assert len(found.cells) == 8
    assert all(None not in each.estimates for each in found.cells)
    assert "not-on-all-boxes" not in {each.code for each in found.caveats}


@pytest.mark.slow
def test_a_change_is_judged_in_every_cell(made: Runs) -> None:
    baseline, slower = made(RW_BS), made(BS_RW, 0.5)
    found = judge([slower], [baseline], margin=0.1)
    assert [each.outcome for each in found.judged] == ["fails"] * 8
    assert all(each.worse == pytest.approx(2.0, rel=1e-3) for each in found.judged), "and not for want of a figure"
    faster = judge([made(BS_RW, 2.0)], [baseline], margin=0.1)
    assert faster.outcome == "passes"


@pytest.mark.slow
def test_a_pilot_serves_a_sweep_of_another_order(made: Runs) -> None:
    a, b = made(RW_BS), made(BS_RW)
    sized = [replace(each, options={**each.options, "bs": 4096, "count": 100}) for each in b.sweep.workloads]
    typed = [replace(each, type=each.name) for each in b.sweep.filesystems]
    sweep = replace(b.sweep, workloads=tuple(sized), filesystems=tuple(typed))
    found, expected = forecast(sweep, a), forecast(sweep, b)
    assert found.used == expected.used == tuple(cell.id for cell in b.sweep.cells)
    assert found.missing == ()
    assert [each.half_width for each in found.predictions] == [each.half_width for each in expected.predictions]


@pytest.mark.slow
def test_every_part_of_a_run_has_the_new_names(made: Runs) -> None:
    a, b = made(RW_BS), made(BS_RW)
    _, other = aligned([a, b])
    cells = {cell.id for cell in a.sweep.cells}
    assert {cell.id for cell in other.sweep.cells} == cells
    assert set(other.measurements["cell"]) == set(other.trials["cell"]) == set(other.estimates["cell"]) == cells
    assert set(other.answer_metrics) == {workload.label for workload in a.sweep.workloads}
    assert {tuple(each.factors) for each in other.comparisons} == {("direction", "bs")}
    named = {each.subject for each in other.caveats if each.scope == "cell"}
    assert named <= cells
    assert other.measurements["value"].tolist() == b.measurements["value"].tolist()
    assert set(b.measurements["cell"]).isdisjoint(cells), "the run itself is as it was"


@pytest.mark.slow
def test_runs_of_one_order_are_not_touched(made: Runs) -> None:
    a, b = made(RW_BS), made(RW_BS)
    assert [each is other for each, other in zip(aligned([a, b]), (a, b), strict=True)] == [True, True]


def test_other_levels_are_other_cells() -> None:
    assert same_workload("w", {"a": "1", "b": "2"}) == same_workload("w", {"b": "2", "a": "1"})
    assert same_workload("w", {"a": "1", "b": "2"}) != same_workload("w", {"a": "2", "b": "1"})
    assert same_workload("w", {"a": "1"}) != same_workload("w", {"a": "1", "b": "2"})


@pytest.mark.slow
def test_published_figures_are_set_beside_cells_of_any_order(made: Runs) -> None:
    theirs = PublishedFigure(
        study="s",
        source="u",
        what="w",
        workload="dd",
        factors={"bs": "1M", "direction": "write"},
        metric="write_bandwidth",
        candidate="tmpfs",
        baseline="ext4",
        candidate_value=2.0,
        baseline_value=1.0,
        unit="B/s",
    )
    for pattern in (RW_BS, BS_RW):
        (found,) = beside(replace(made(pattern), published=[theirs]))
        assert found.ours is not None
        assert found.agreement == "agrees"


@pytest.mark.slow
@pytest.mark.slow
def test_a_history_goes_on_when_the_sweep_names_its_options_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = bench_catalog.resolve

    def ordered(first: str) -> Callable[..., Any]:
        def made_so(raw: dict[str, Any], where: str) -> Any:
            fio = {**raw["workloads"]["fio"], "rw": ["randread", "read"], "bs": ["4KiB", "64KiB"]}
            workload = {key: fio[key] for key in sorted(fio, key=lambda key: key != first)}
            return resolve({**raw, "workloads": {"fio": workload}}, where=where)

        return made_so

    years = Years(sweeps=1, boxes=1, runs=6, blocks=2, changed_at=100)
    for first, days in (("rw", 0), ("bs", 10)):
        monkeypatch.setattr(bench_catalog, "resolve", ordered(first))
        with monkeypatch.context() as later:
            later.setattr(bench_catalog, "_FIRST", bench_catalog._FIRST + timedelta(days=days))
            write_years(tmp_path / "results" if not days else tmp_path / "later", years)
    for run in (tmp_path / "later").iterdir():
        run.rename(tmp_path / "results" / run.name)
    built = catalog.build(tmp_path / "results")
    found = read_years(built).histories
    assert len(found) == 8
    assert all(len(each.points) == 12 for each in found)
    assert {each.key.cell for each in found if each.key.cell.startswith("ext4")} == {
        f"ext4/fio rw={rw} bs={bs}" for rw in ("randread", "read") for bs in ("4KiB", "64KiB")
    }
    for name in ("ext4/fio rw=read bs=4KiB", "ext4/fio bs=4KiB rw=read"):
        (one,) = read_years(built, Wanted(cell=name)).histories
        assert (one.key.cell, len(one.points)) == ("ext4/fio rw=read bs=4KiB", 12)
