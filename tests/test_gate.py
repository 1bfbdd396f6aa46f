"""The gate for scripts: what is worse, fine or open, and what the verb ends with."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mountlab import __main__, store
from mountlab.compare_runs import RunComparison, compare_runs
from mountlab.gate import Gate, Judged, gate_json, gate_text, judge
from mountlab.run_ratios import CellRatio
from mountlab.store import Run

TOUR = store.ROOT / "results" / "tour"


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Path]:
    """Makes the recorded run with every dd that many times as slow."""

    def make(times: float) -> Path:
        path = tmp_path_factory.mktemp("runs") / "slower"
        shutil.copytree(TOUR, path)
        info = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**info, "run_id": f"slower-{times:g}"}))
        for file in path.glob("raw/t*/stderr"):
            taken = re.sub(r"copied, ([0-9.]+) s", lambda m: f"copied, {float(m[1]) * times:.6f} s", file.read_text())
            file.write_text(taken)
        return path

    return make


@pytest.fixture(scope="module")
def much_slower(slower: Callable[[float], Path]) -> Path:
    return slower(20.0)


@pytest.fixture(scope="module")
def compared(much_slower: Path) -> RunComparison:
    return compare_runs(store.load_run(TOUR), store.load_run(much_slower))


def with_interval(ratio: CellRatio, low: float, high: float, metric: str) -> CellRatio:
    return replace(ratio, comparison=replace(ratio.comparison, low_all=low, high_all=high, metric=metric))


@pytest.mark.parametrize(
    ("metric", "low", "high", "judgement"),
    [
        ("write_bandwidth", 0.80, 0.90, "worse"),
        ("write_bandwidth", 0.90, 0.99, "open"),
        ("write_bandwidth", 0.96, 1.20, "fine"),
        ("write_bandwidth", 1 / 1.05, 2.00, "fine"),
        ("write_bandwidth", 0.0, 2.00, "open"),
        ("elapsed", 1.06, 1.20, "worse"),
        ("elapsed", 0.90, 1.20, "open"),
        ("elapsed", 0.50, 1.05, "fine"),
        ("elapsed", math.nan, math.nan, "open"),
    ],
)
def test_an_interval_lies_beyond_the_margin_within_it_or_across_it(
    compared: RunComparison, metric: str, low: float, high: float, judgement: str
) -> None:
    one = with_interval(compared.ratios[0], low, high, metric)
    (judged,) = judge(replace(compared, ratios=(one,)), 0.05).judged
    assert judged.judgement == judgement


def gate_of(compared: RunComparison, *judgements: Any) -> Gate:
    return Gate(0.05, 0.95, tuple(Judged(compared.ratios[0], each, 1.0, 1.0) for each in judgements))


def test_what_is_open_passes_unless_one_wants_to_be_sure(compared: RunComparison) -> None:
    assert gate_of(compared, "open", "fine").passes(sure=False)
    assert not gate_of(compared, "open", "fine").passes(sure=True)
    assert gate_of(compared, "fine", "fine").passes(sure=True)
    assert not gate_of(compared, "worse", "fine").passes(sure=False)


def test_a_run_that_is_twenty_times_as_slow_does_not_pass(
    much_slower: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["gate", str(TOUR), str(much_slower)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out[:9]] == ["worse"] * 9
    assert out[-1].replace("\xa0", " ") == "9 worse, 0 open, 0 fine; margin 5 %"


def test_the_other_way_round_it_passes_even_for_the_cautious(
    much_slower: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["gate", str(much_slower), str(TOUR), "--sure", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert {each["judgement"] for each in read["ratios"]} == {"fine"}
    assert all(each["at_most"] < 1 for each in read["ratios"])


def test_a_margin_without_its_sign_is_refused(capsys: pytest.CaptureFixture[str], much_slower: Path) -> None:
    assert __main__.main(["gate", str(TOUR), str(much_slower), "--margin", "5"]) == 2
    assert "--margin" in capsys.readouterr().err


def test_what_is_not_known_is_null_and_stands_after_what_is_worse(compared: RunComparison) -> None:
    bad = with_interval(compared.ratios[0], 0.5, 0.6, "write_bandwidth")
    unknown = with_interval(compared.ratios[1], math.nan, math.nan, "write_bandwidth")
    gate = judge(replace(compared, ratios=(unknown, bad)), 0.05)
    rows = gate_json(gate)["ratios"]
    assert [row["judgement"] for row in rows] == ["worse", "open"]
    assert rows[1]["at_least"] is rows[1]["at_most"] is None
    assert rows[0]["at_least"] == pytest.approx(1 / 0.6)
    lines = [line for line in gate_text(gate).splitlines() if not line.startswith("missing")]
    assert lines[0].startswith("worse")


def test_a_cell_that_gave_no_figure_after_the_change_does_not_pass(compared: RunComparison) -> None:
    """Trap: a gate that passes because what broke is no longer compared."""
    some = tuple(each for each in compared.ratios if each.cell.filesystem.name != "ext4")
    gate = judge(
        replace(compared, ratios=tuple(with_interval(each, 1.0, 1.1, "write_bandwidth") for each in some)), 0.05
    )
    assert {each.judgement for each in gate.judged} == {"fine"}
    assert gate.missing
    assert all(cell.startswith("ext4/") for cell in gate.missing)
    assert not gate.passes(sure=False)
    assert gate_text(gate).startswith(f"missing: {gate.missing[0]}: the second run has no figure of it")


@pytest.mark.slow
def test_two_runs_of_the_same_seldom_fail() -> None:
    """Trap: a gate of many figures that each cry wolf at 5 %. Two runs of nine cells that differ by chance only."""
    run, rng = store.load_run(TOUR), np.random.default_rng(20261120)
    a, b = replace(run, info={**run.info, "run_id": "a"}), replace(run, info={**run.info, "run_id": "b"})
    failed = sum(not judge(compare_runs(_drawn(a, rng), _drawn(b, rng)), 0.0).passes(sure=False) for _ in range(200))
    assert failed <= 20, "5 % of 200, and three standard deviations more"


def _drawn(run: Run, rng: np.random.Generator) -> Run:
    """With figures of chance in the place of its own."""
    rows = run.measurements
    return replace(run, measurements=rows.assign(value=rng.normal(1.0, 0.05, len(rows))))
