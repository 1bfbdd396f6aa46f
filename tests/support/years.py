"""Small directories of results over some weeks, by the generator of the benchmark, and what is done to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from mountlab.results import catalog
from mountlab.results.catalog import reading
from mountlab_dev.bench_catalog import Years, write_years
from shared import shared

SMALL = Years(sweeps=1, boxes=2, runs=18, blocks=4, changed_at=8, change=0.7)


def small(results: Path) -> Path:
    """36 runs of one sweep on two boxes; from the ninth run on, one cell on box0 is slower by 30 %."""
    results.mkdir()
    write_years(results, SMALL)
    return results


def small_with_catalog(factory: pytest.TempPathFactory) -> Path:
    """The same with their catalog, made once in a session: for those who read it."""
    return shared(factory, "years", _with_catalog) / "results"


def _with_catalog(directory: Path) -> None:
    results = small(directory / "results")
    with mock.patch.object(reading, "SETTLED_S", 0.0):
        catalog.build(results)
    time.sleep(reading.SETTLED_S)  # what was written just now would be read again by each who asks


def run_of(results: Path, box: int, number: int) -> Path:
    """The directory of one run, oldest first."""
    return sorted(results.glob(f"*-box{box}"))[number]


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change something in a run.json."""
    info = json.loads((run / "run.json").read_text())
    change(info)
    (run / "run.json").write_text(json.dumps(info))
