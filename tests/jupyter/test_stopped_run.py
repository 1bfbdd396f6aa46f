"""A notebook that is given a stopped run: its sweep, what is left of it, and nothing beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.places import SHIPPED
from mountlab.jupyter.api import show_plan, sweep_from_notebook

EARLIER = SHIPPED / "tests" / "data" / "earlier_run"
MEASURED = 5


@pytest.fixture
def stopped(results_dir: Path) -> Path:
    """A run that was stopped after five trials."""
    path = results_dir / "stopped"
    shutil.copytree(EARLIER, path)
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "run_id": "stopped", "status": "interrupted"}))
    lines = (path / "trials.jsonl").read_text().splitlines(keepends=True)
    (path / "trials.jsonl").write_text("".join(lines[:MEASURED]))
    return path


def test_its_sweep_counts_and_the_plan_says_what_is_left(stopped: Path) -> None:
    found = sweep_from_notebook({"run": str(stopped), "sweep_file": "params/sweeps/ramdisk.yml", "box": None})
    assert found.sweep.name == "tour"
    whole = len(json.loads((stopped / "run.json").read_text())["order"])
    shown = str(show_plan(str(stopped)))
    assert "stopped on box local is interrupted." in shown
    assert f"Its journal has 5 of {whole} trials: {whole - MEASURED} left." in shown


@pytest.mark.parametrize("others", [{"box": "local"}, {"overrides": {"repeats": 3}}, {"workloads": {"w": {}}}])
def test_keys_of_a_sweep_beside_it_are_refused(others: dict[str, Any], stopped: Path) -> None:
    with pytest.raises(ParameterError, match="resumes with its own sweep") as raised:
        sweep_from_notebook({"run": str(stopped), **others})
    assert raised.value.got == f"{str(stopped)!r} beside {next(iter(others))}"
