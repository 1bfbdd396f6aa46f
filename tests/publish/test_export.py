"""Exports: the files are opened again, and hold what the run says."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
import yaml
from mountlab.__main__ import main
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Sweep
from mountlab.publish.export import FORMATS, Pivot, export_files, workbook
from mountlab.results.store import load_run
from mountlab.results.tables import tables
from mountlab.sweep.sweep_file import resolve
from results.test_store import written
from rows import every_row

E: dict[str, Any] = {
    "name": "e", "question": "?", "baseline": "ext4",
    "filesystems": {"pmfs": {"type": "tmpfs", "size": "1GiB"}, "ext4": {"type": "tmpfs", "size": "1GiB"}},
    "workloads": {
        "fio": {"tool": "fio", "rw": ["read", "write", "randread", "randwrite"], "numjobs": [1, 2, 4, 8],
                "bs": ["1KiB", "2KiB", "4KiB", "8KiB"], "size": "1MiB"},
    },
}  # fmt: skip
"""Study E: four patterns, four numbers of jobs, four block sizes."""
STUDY = yaml.safe_load((Path(__file__).parents[2] / "params" / "sweeps" / "e-nvm.yml").read_text())["workloads"]["fio"]
SWEEP: Sweep = resolve(E, where="tests").sweep


def estimates(**changes: Any) -> pd.DataFrame:
    """One bandwidth for each cell, from which its cell can be told; out of order."""
    rows = [
        {
            "filesystem": cell.filesystem.name,
            "workload": cell.workload.name,
            **cell.workload.factors,
            "metric": f"{'write' if 'write' in cell.workload.factors['rw'] else 'read'}_bandwidth",
            "label": "",
            "unit": "B/s",
            "n": 3,
            "censored": 0,
            "mean": float(number + 1) * 1e6,
            "low": number * 1e6,
            "high": math.nan,
        }
        for number, cell in enumerate(SWEEP.cells)
    ]
    return pd.DataFrame(rows[::-1]).assign(**changes)


def pivot(text: str, metric: str = "read_bandwidth", unit: str | None = None) -> Pivot:
    found = Pivot.read(text, metric, unit)
    assert found is not None
    return found


def exported(form: str, wanted: Pivot | None = None, frame: pd.DataFrame | None = None) -> dict[str, bytes]:
    return export_files({"estimates": estimates() if frame is None else frame}, SWEEP, form, wanted)


# --- pivot ------------------------------------------------------------------------------------------------------------


def test_the_table_of_study_e_has_a_row_for_each_pattern_and_jobs_and_a_column_for_each_block_size() -> None:
    (content,) = exported("csv", pivot("rw,numjobs:bs", unit="MB/s")).values()
    table = pd.read_csv(io.BytesIO(content))
    assert list(table.columns) == ["filesystem", "rw-numjobs", "1KiB", "2KiB", "4KiB", "8KiB"]
    assert list(table["rw-numjobs"]) == [f"{rw}-{jobs}" for rw in ("read", "randread") for jobs in (1, 2, 4, 8)] * 2
    assert list(table["filesystem"]) == ["pmfs"] * 8 + ["ext4"] * 8
    assert table.iloc[0, 2:].tolist() == [1.0, 2.0, 3.0, 4.0], "MB/s, in the order of the sweep"
    assert table.iloc[8, 2:].tolist() == [65.0, 66.0, 67.0, 68.0]
    (content,) = exported("csv", pivot("rw,numjobs:bs")).values()
    assert pd.read_csv(io.BytesIO(content)).iloc[0, 2] == 1e6, "base units where none is asked for"


def test_the_spreadsheet_of_study_e_shows_reads_and_writes_of_its_64_cells_in_one_table() -> None:
    """Rows X-J, a column for each block size, MB/s, as the study printed it."""
    assert [STUDY[name] for name in ("rw", "bs", "numjobs")] == [
        E["workloads"]["fio"][name] for name in ("rw", "bs", "numjobs")
    ]
    wanted = pivot("rw,numjobs:bs", "read_bandwidth,write_bandwidth", "MB/s")
    ((name, content),) = exported("csv", wanted, estimates().query("filesystem == 'ext4'")).items()
    table = pd.read_csv(io.BytesIO(content))
    assert name == "read_bandwidth+write_bandwidth-by-bs.csv"
    assert list(table.columns) == ["rw-numjobs", "1KiB", "2KiB", "4KiB", "8KiB"]
    assert list(table["rw-numjobs"]) == [f"{rw}-{jobs}" for rw in STUDY["rw"] for jobs in (1, 2, 4, 8)]
    assert table.iloc[:, 1:].to_numpy().ravel().tolist() == [float(n) for n in range(65, 129)], (
        "each of 64 cells, in order"
    )


def test_a_cell_that_both_read_and_wrote_has_a_row_for_each() -> None:
    frame = estimates()
    both = pd.concat([frame, frame.assign(metric="write_bandwidth")]).drop_duplicates(
        ["filesystem", "rw", "numjobs", "bs", "metric"]
    )
    (content,) = exported("csv", pivot("rw,numjobs:bs", "read_bandwidth,write_bandwidth"), both).values()
    table = pd.read_csv(io.BytesIO(content))
    assert list(table.columns[:3]) == ["filesystem", "metric", "rw-numjobs"]
    assert len(table) == 2 * (8 + 16)


def test_a_workbook_of_a_pivot_has_a_sheet_for_each_statistic() -> None:
    ((name, content),) = exported("xlsx", pivot("filesystem,rw,numjobs:bs", unit="MiB/s")).items()
    assert name == "read_bandwidth-by-bs.xlsx"
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["mean", "low", "high", "n"]
    rows = list(book["mean"].iter_rows(values_only=True))
    assert rows[0][0] == "mean: read_bandwidth, MiB/s"
    assert rows[1] == ("filesystem-rw-numjobs", "1KiB", "2KiB", "4KiB", "8KiB")
    assert rows[2][:2] == ("pmfs-read-1", 1e6 / 1024**2)
    assert book["n"]["B3"].value == 3
    assert book["high"]["B3"].value is None, "no interval is an empty cell, and not a number"
    (content,) = exported("xlsx", pivot("filesystem,rw,numjobs:bs", unit="MiB/s"), estimates(censored=2)).values()
    censored = openpyxl.load_workbook(io.BytesIO(content))["censored"]
    assert censored["A1"].value == "censored: trials that ran into their time limit, whose cells show a median"
    assert censored["B3"].value == 2, "a number of trials has no unit"


def test_a_cell_that_was_not_measured_is_empty() -> None:
    frame = estimates()
    frame = frame[~((frame["rw"] == "read") & (frame["numjobs"] == "1") & (frame["bs"] == "2KiB"))]
    (content,) = exported("csv", pivot("rw,numjobs:bs"), frame).values()
    assert math.isnan(pd.read_csv(io.BytesIO(content))["2KiB"][0])


def test_rows_with_labels_are_rows_of_their_own() -> None:
    frame = pd.concat([estimates(label="a"), estimates(label="b")])
    (content,) = exported("csv", pivot("rw,numjobs:bs"), frame).values()
    table = pd.read_csv(io.BytesIO(content))
    assert list(table.columns[:3]) == ["filesystem", "label", "rw-numjobs"]
    assert set(table["label"]) == {"a", "b"}
    assert len(table) == 32


@every_row(
    ("arguments", "what"),
    [
        (("rw,numjobs", "read_bandwidth", None), "a pivot is ROWS:COLUMNS"),
        ((":bs", "read_bandwidth", None), "a pivot is ROWS:COLUMNS"),
        (("bs:bs", "read_bandwidth", None), "a pivot is ROWS:COLUMNS"),
        (("rw:bs", None, None), "a pivot is of a metric"),
        (("rw:bs", "speed", None), "unknown metric"),
        (("rw:bs", "read_bandwidth,read_iops", "MB/s"), "the metrics of one table have one unit"),
        (("rw:bs", "read_bandwidth", "ms"), "not a unit for this metric"),
        (("rw:bs", "read_bandwidth", "KB/s"), "not a unit for this metric"),
        ((None, "read_bandwidth", None), "--metric and --unit are for --pivot"),
    ],
)
def test_a_pivot_that_cannot_be_is_said(arguments: tuple[Any, Any, Any], what: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Pivot.read(*arguments)
    assert caught.value.what.startswith(what)


@every_row(
    ("text", "metric", "what", "next_step"),
    [
        ("rw:bs", "read_bandwidth", "other factors vary too", "--pivot rw,numjobs:bs"),
        ("rw,numjobs:size", "read_bandwidth", "unknown factor of this run", ""),
        ("rw,numjob:bs", "read_bandwidth", "unknown factor of this run", "did you mean 'numjobs'?"),
        ("rw,numjobs:bs", "sync_rate", "the run has no such figures", ""),
    ],
)
def test_a_pivot_that_the_run_cannot_fill_is_said(text: str, metric: str, what: str, next_step: str) -> None:
    with pytest.raises(ParameterError) as caught:
        exported("csv", pivot(text, metric))
    assert caught.value.what == what
    assert next_step in caught.value.next_step


# --- whole runs -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_format_of_a_run_opens_again_and_says_the_same(
    results_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(results_dir)
    expected = tables(load_run(path))
    for form in FORMATS:
        assert main(["export", str(path), "--format", form, "-o", str(results_dir / form)]) == 0
    said = capsys.readouterr().out.split()
    assert len(said) == 2 * len(expected) + 1
    book = pd.read_excel(results_dir / "xlsx" / "tables.xlsx", sheet_name=None, keep_default_na=False, na_values=[""])
    assert list(book) == list(expected)
    for name, table in expected.items():
        frames = [
            pd.read_csv(results_dir / "csv" / f"{name}.csv"),
            pd.read_parquet(results_dir / "parquet" / f"{name}.parquet"),
        ]
        for frame in [*frames, book[name]]:
            assert list(frame.columns) == list(table.columns)
            assert len(frame) == len(table)
        if "mean" in table:
            for frame in [*frames, book[name]]:
                assert frame["mean"].tolist() == pytest.approx(table["mean"].tolist(), rel=1e-12)


@pytest.mark.slow
def test_the_export_lies_in_the_run_where_no_place_is_named(results_dir: Path) -> None:
    path = written(results_dir)
    assert main(["export", str(path)]) == 0
    assert len(pd.read_csv(path / "export" / "estimates.csv")) == len(load_run(path).estimates)


def test_text_from_a_log_is_no_formula_in_a_spreadsheet() -> None:
    evil = '=HYPERLINK("http://x/","y")'
    frame = pd.DataFrame({"reason": [evil, "+1", "a\x07b", ""], "value": [1.5, math.inf, math.nan, 2.0]})
    sheet = openpyxl.load_workbook(io.BytesIO(workbook({"t": frame})))["t"]
    assert [cell.value for cell in sheet["A"]] == ["reason", evil, "+1", "a[U+0007]b", None]
    assert sheet["A2"].data_type == "s"
    assert [cell.value for cell in sheet["B"]] == ["value", 1.5, None, None, 2]


def test_an_unknown_format_is_said() -> None:
    with pytest.raises(ParameterError, match="unknown format"):
        export_files({}, replace(SWEEP, filesystems=(Filesystem(name="x", type="dir"),)), "ods")
