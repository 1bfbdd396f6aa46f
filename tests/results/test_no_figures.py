"""Runs without a figure (all trials failed, or there are none) beside one that has figures: every command goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from copied_run import EARLIER, copied, earlier_run
from mountlab.__main__ import main
from mountlab.analysis.measurements import MEASUREMENT_COLUMNS, measurement_frame
from mountlab.core import disk
from mountlab.report import execute
from mountlab.results import catalog, store, tables
from mountlab.results.catalog import reading
from mountlab.results.stamp import Stamp, figure_types, read_stamped, stamped, truth_of
from repetition import few_then_many, others_long
from synthetic_report import execute_here

Make = Callable[[Path], Path]


def copy(place: Path) -> Path:
    earlier_run(place)
    info = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps({**info, "run_id": place.name}))
    return place


def failed(place: Path, **more: Any) -> Path:
    run = copy(place)
    lines = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    changed = [{**line, "status": "failed", "reason": "fio: exit status 1", **more} for line in lines]
    (run / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))
    return run


def timed_out(place: Path) -> Path:
    return failed(place, status="timeout", reason="it ran into its time limit")


def derived(place: Path) -> Path:
    run = failed(place)
    tables.derive(run)
    return run


def of_an_earlier_version(place: Path) -> Path:
    """Its columns had no types, as a frame without rows has none."""
    run = failed(place)
    tables.derive(run)
    run_truth = Stamp(truth_of(run), store.load_run(run).answer_metrics)
    types = figure_types(pa.null())
    data = stamped(pd.DataFrame({name: [] for name in MEASUREMENT_COLUMNS}), run_truth)
    metadata = pa.parquet.read_schema(pa.BufferReader(data)).metadata
    pa.parquet.write_table(types.empty_table().replace_schema_metadata(metadata), run / store.MEASUREMENTS)
    return run


def without_trials(place: Path) -> Path:
    run = copy(place)
    (run / "trials.jsonl").write_text("")
    return run


KINDS: dict[str, Make] = {
    "all failed": failed, "all timed out": timed_out, "derived": derived, "an earlier version": of_an_earlier_version,
    "no trials": without_trials,
}  # fmt: skip


ONE = "no trials"
one_then_others = pytest.mark.parametrize(
    "kinds", few_then_many([ONE], [kind for kind in KINDS if kind != ONE]), ids=[ONE, f"all but {ONE}"]
)
"""The others, beside each other, say the same again."""


def add(kinds: list[str], results: Path) -> list[Path]:
    """A run of each kind, which is called like it."""
    return [KINDS[kind](results / kind.replace(" ", "-")) for kind in kinds]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with figures, which are derived."""
    run = copy(tmp_path_factory.mktemp("good") / "good")
    tables.derive(run)
    return run


@pytest.fixture
def results(good: Path, tmp_path: Path) -> Path:
    made = tmp_path / "results"
    copied(good, made / "good")
    return made


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLED_S", 0.0)


@pytest.mark.slow
@one_then_others
def test_one_beside_others_takes_nothing_from_catalog_history_and_query(
    kinds: list[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(kinds, results)
    assert main(["catalog", str(results)]) == 0
    assert main(["history", "--results", str(results)]) == 0
    assert "ext4/dd-write" in capsys.readouterr().out
    figures = len(store.load_run(results / "good").measurements)
    assert main(["query", "SELECT count(*) AS n FROM measurements WHERE run = 'good'", "--results", str(results)]) == 0
    assert capsys.readouterr().out.split() == ["n", str(figures)]
    assert main(["index", str(results)]) == 0


@pytest.mark.slow
@one_then_others
def test_alone_it_is_a_catalog_too(kinds: list[str], tmp_path: Path) -> None:
    alone = tmp_path / "results"
    add(kinds, alone)
    assert main(["catalog", str(alone)]) == 0
    sql = "SELECT count(*) AS n, count(*) FILTER (figures_from IS NULL) AS none FROM runs"
    assert main(["query", sql, "--results", str(alone)]) == 0
    sql = "SELECT sum(value) AS total, any_value(warmup) FROM measurements"
    assert main(["query", sql, "--results", str(alone)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", others_long([failed, derived, of_an_earlier_version, without_trials], kept=[failed, without_trials])
)
def test_a_history_of_nothing_says_so(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "results" / "empty")
    assert main(["history", "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err
    assert "nothing was measured that fits" in said
    assert "no trial of any run gave a figure" in said


@pytest.mark.slow
def test_a_history_of_time_limits_is_one_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timed_out(tmp_path / "results" / "empty")
    assert main(["history", "--results", str(tmp_path / "results")]) == 0
    assert "none shown" in capsys.readouterr().out


@pytest.mark.slow
@one_then_others
def test_brought_up_to_date_the_catalog_is_as_if_made_anew(kinds: list[str], results: Path) -> None:
    catalog.build(results)
    add(kinds, results)
    built = catalog.build(results)
    sql = "SELECT run, ok, failed FROM runs ORDER BY run"
    with catalog.opened(built.file) as connection:
        grown = catalog.ask(connection, sql).rows
    with catalog.opened(catalog.build(results, rebuild=True).file) as connection:
        assert catalog.ask(connection, sql).rows == grown


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "xlsx", "parquet", "latex", "markdown"])
def test_it_is_exported_in_every_form(form: str, tmp_path: Path) -> None:
    run = failed(tmp_path / "run")
    assert main(["export", str(run), "--format", form, "-o", str(tmp_path / "out")]) == 0
    assert list((tmp_path / "out").iterdir())
    for file in (tmp_path / "out").glob("*.parquet"):
        types = pa.parquet.read_schema(file)
        assert not [field for field in types if pa.types.is_null(field.type)], file


@pytest.mark.slow
def test_compare_and_gate_say_why_they_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, empty = copy(tmp_path / "good"), failed(tmp_path / "empty")
    assert main(["compare", str(good), str(empty)]) == 2
    assert main(["gate", str(good), "--against", str(empty)]) == 2
    assert main(["gate", str(empty), "--against", str(good)]) == 1
    assert "failed" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.slow
def test_it_is_reported_published_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kernel, which is not what is tested here. That every section survives such a run is tested in
    report/test_sections.py."""
    monkeypatch.setattr(execute, "execute", execute_here)
    run = failed(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_bytes()
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", page))
    assert main(["publish", str(run), "--to", str(tmp_path / "bundle")]) == 0
    assert main(["reproduce", str(tmp_path / "bundle")]) == 0


def test_a_frame_without_rows_has_the_types_of_one_with_rows() -> None:
    with_rows = store.load_run(EARLIER).measurements
    none = measurement_frame([])
    assert dict(none.dtypes) == dict(with_rows.dtypes)
    table, stamp = read_stamped(stamped(tables.with_factors_as_text(none), Stamp({}, {})))
    full, _ = read_stamped(stamped(tables.with_factors_as_text(with_rows), Stamp({}, {})))
    assert table.schema.remove_metadata() == full.schema.remove_metadata()
    assert (table.num_rows, stamp) == (0, Stamp({}, {}))
