"""Small directories of results over some weeks, by the generator of the benchmark, and what is done to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mountlab_dev.bench_catalog import Years, write_years

SMALL = Years(sweeps=1, boxes=2, runs=18, blocks=4, changed_at=8, change=0.7)


def small(results: Path) -> Path:
    """36 runs of one sweep on two boxes; from the ninth run on, one cell on box0 is slower by 30 %."""
    results.mkdir()
    write_years(results, SMALL)
    return results


def run_of(results: Path, box: int, number: int) -> Path:
    """The directory of one run, oldest first."""
    return sorted(results.glob(f"*-box{box}"))[number]


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change something in a run.json."""
    info = json.loads((run / "run.json").read_text())
    change(info)
    (run / "run.json").write_text(json.dumps(info))
