"""By how much runs differ, out of the runs of some weeks: which runs tell, what they tell, and where it is said."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mountlab import __main__
from mountlab.analysis.compare.run_spread import FigureSpread
from mountlab.core.errors import KeepError, ParameterError
from mountlab.results import catalog, paths, store
from mountlab.results.earlier import runs_differ
from mountlab.stats.run_spread import ASSUMED
from rows import every_row
from years import run_of, small_with_catalog

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_with_catalog(tmp_path_factory)


@pytest.fixture(autouse=True)
def here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", results)


def spreads(results: Path, numbers: Sequence[int], stated: str | None = None) -> dict[str, FigureSpread]:
    """Of the figures of the last of these runs of box0, by cell."""
    runs = [store.load_run(run_of(results, 0, number)) for number in numbers]
    differ, last = runs_differ(runs, stated), runs[-1]
    return {cell.id: differ.figure(last, cell, "read_bandwidth", "", "B/s") for cell in last.sweep.cells}


def log_means(results: Path, cell: str, numbers: Sequence[int]) -> list[float]:
    frames = [store.load_run(run_of(results, 0, number)).measurements for number in numbers]
    own = [each[(each["cell"] == cell) & (each["metric"] == "read_bandwidth") & ~each["warmup"]] for each in frames]
    return [float(np.log(each["value"]).mean()) for each in own]


def test_the_spread_is_that_of_the_means_of_earlier_runs_of_the_sweep_on_the_box(results: Path) -> None:
    """Of the seventh and eighth run the six before: neither these two, nor later ones, nor those of the other box."""
    found = spreads(results, [6, 7])
    for cell, spread in found.items():
        assert spread.sd == pytest.approx(np.std(log_means(results, cell, range(6)), ddof=1))
        assert (spread.degrees, spread.runs) == (5, 6)
        assert spread.covered == pytest.approx(1 / 4), "each mean is of four trials"


def test_figures_of_one_metric_that_a_label_tells_apart_have_earlier_runs_of_their_own(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = catalog.ask

    def labelled(*asked: Any) -> Any:
        """The catalog, as if reads per second were figures of a label."""
        found = ask(*asked)
        rows = [tuple("fsync" if at == 5 and row[4] == "read_iops" else cell for at, cell in enumerate(row))
                for row in found.rows]  # fmt: skip
        return replace(found, rows=rows)

    monkeypatch.setattr(catalog, "ask", labelled)
    runs = [store.load_run(run_of(results, 0, number)) for number in (6, 7)]
    differ, last = runs_differ(runs), runs[-1]
    known = {
        label: {differ.figure(last, cell, "read_iops", label, "1/s").runs for cell in last.sweep.cells}
        for label in ("fsync", "")
    }
    assert known == {"fsync": {6}, "": {0}}


def test_a_change_of_the_level_is_no_spread_between_runs(results: Path) -> None:
    """One cell became 30 % slower with the ninth run: about its own levels it varies like the others."""
    found = spreads(results, [16, 17])
    assert all(0 < spread.sd < 0.05 for spread in found.values())
    assert sorted({spread.degrees for spread in found.values()}) == [14, 15]


@every_row(("numbers", "stated", "sd"), [([3, 4], None, ASSUMED), ([5, 6], "3%", 0.03), ([5, 6], "0%", 0.0)])
def test_few_runs_do_not_tell_and_what_is_stated_takes_their_place(
    results: Path, numbers: list[int], stated: str | None, sd: float
) -> None:
    assert {(each.sd, each.runs) for each in spreads(results, numbers, stated).values()} == {(sd, 0)}


def test_what_is_stated_is_a_share(results: Path) -> None:
    with pytest.raises(ParameterError, match="runs cannot differ by so much") as caught:
        spreads(results, [5, 6], "150%")
    assert (caught.value.where, caught.value.allowed) == ("--runs-differ", "0% to 100%")


def test_without_a_catalog_nothing_is_known_and_that_is_said(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot_write(*_: object, **__: object) -> None:
        raise KeepError("a file cannot be written", where=".cataloguing", got="Read-only file system")

    monkeypatch.setattr(catalog, "build", cannot_write)
    said: list[str] = []
    runs = [store.load_run(run_of(results, 0, number)) for number in (16, 17)]
    assert runs_differ(runs, say=said.append).measured == {}
    assert re.match("earlier runs are not read: .*Read-only file system", said[0])


def test_without_duckdb_nothing_is_known_and_that_is_said(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [store.load_run(run_of(results, 0, number)) for number in (16, 17)]
    monkeypatch.setitem(sys.modules, "duckdb", None)
    said: list[str] = []
    assert runs_differ(runs, say=said.append).measured == {}
    why = "the catalog of runs needs a library that is not installed: no duckdb"
    assert said == [f"earlier runs are not read: {why}; pip install 'mountlab[catalog]'"]


def test_a_run_that_lies_elsewhere_has_no_earlier_runs(tmp_path: Path, results: Path) -> None:
    """Nothing is written beside it."""
    place = tmp_path / "run"
    shutil.copytree(run_of(results, 0, 16), place)
    assert runs_differ([store.load_run(place)]).measured == {}
    assert list(tmp_path.iterdir()) == [place]


def test_the_gate_and_the_comparison_say_how_it_is_known(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, baseline = map(str, (run_of(results, 0, 7), run_of(results, 0, 6)))
    said = {}
    for name, stated in (("measured", []), ("stated", ["--runs-differ", "3%"])):
        __main__.main(["gate", change, "--against", baseline, "--json", *stated])
        gate = json.loads(capsys.readouterr().out)
        assert __main__.main(["compare", baseline, change, "--json", *stated]) == 0
        compared = json.loads(capsys.readouterr().out)
        said[name] = gate["runs_differ"].replace("\xa0", " ")
        assert compared["runs_differ"] == gate["runs_differ"]
        assert {one["run_spread"]["change"]["earlier_runs"] for one in gate["figures"]} == {0 if stated else 6}
        assert {one["run_spread"]["a"]["runs"] for one in compared["ratios"]} == {0 if stated else 6}
    source = r"Runs differ by (.+) % to (.+) % \(standard .+\), measured from 6 earlier runs .+ box\."
    told = re.fullmatch(source, said["measured"])
    assert told
    assert float(told[1]) < float(told[2]), "from the figure that differs least to that which differs most"
    assert said["stated"].startswith("Runs differ by 3 % or less (standard deviation from run to run), as --runs-")


def test_with_several_runs_on_a_side_nothing_is_stated(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several = [str(run_of(results, 0, number)) for number in (4, 5)]
    code = __main__.main(["gate", str(run_of(results, 0, 6)), "--against", *several, "--runs-differ", "3%"])
    assert code == 2
    assert "leave it out: several runs of a side tell themselves" in capsys.readouterr().err
