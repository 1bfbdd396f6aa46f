"""Notebooks that need no box, run from top to bottom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from mountlab import store
from mountlab.report import execute

pytestmark = [pytest.mark.slow]


def outputs(path: Path) -> list[Any]:
    cells = nbformat.read(path, as_version=4).cells
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_tour_runs_without_a_box(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "tour.ipynb"
    execute(store.NOTEBOOKS / "00_tour.ipynb", executed, {})
    pages = [output.data["text/html"] for output in outputs(executed) if "text/html" in output.get("data", {})]
    assert any("as fast as ext4" in page for page in pages)
    assert any("<svg" in page for page in pages)
    assert not [output for output in outputs(executed) if output.output_type == "error"]
