"""The rows of the benchmark on the catalog, at a small size: what they measure is there, and is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab.results import catalog, info, journal
from mountlab_dev import bench_catalog
from mountlab_dev.bench_catalog import MILLION, Years


def test_a_million_is_a_million() -> None:
    assert (MILLION.trials, MILLION.count) == (1_000_000, 5_000)


@pytest.mark.slow
def test_run_directories_are_as_those_that_were_measured(tmp_path: Path) -> None:
    bench_catalog.write_years(tmp_path, Years(sweeps=1, boxes=1, runs=1, blocks=2))
    (run,) = tmp_path.iterdir()
    assert info.read_info(run).status == "complete"
    assert [trial.trial_id for trial in journal.read_journal(run)] == info.read_info(run).order
    assert info.read_sweep(run).sweep.name == "nightly-00"
    built = catalog.build(tmp_path)
    assert (built.problems, built.from_raw) == ({}, ()), "the stamp holds"


@pytest.mark.long
def test_every_row_is_measured(tmp_path: Path) -> None:
    found = list(bench_catalog.rows(1, tmp_path, Years(sweeps=1, boxes=1, runs=6, blocks=2, changed_at=3)))
    assert len(found) == 8
    assert len({name for name, *_ in found}) == 8
    assert all(values and min(values) > 0 for _, _, values, _ in found)
    assert {unit for *_, unit in found} == {"s", "B"}
