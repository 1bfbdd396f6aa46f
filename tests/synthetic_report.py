"""The report of a run that is made up: the real notebook, executed and exported for real, but for its one load cell."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from mountlab import report, store
from synthetic_run import synthetic_run

LOADING = "the_run = store.load_run(run)"


def write_synthetic_report(directory: Path, **options: object) -> Path:
    """report.html of `synthetic_run(**options)` in an empty directory."""
    info = synthetic_run(**options).info  # type: ignore[arg-type]
    (directory / "run.json").write_text(json.dumps({**info, "schema": store.SCHEMA}))
    return report.write_report(directory, notebook=notebook_with(directory, f"the_run = synthetic_run(**{options!r})"))


def notebook_with(directory: Path, loading: str) -> Path:
    """The report notebook, as a file in `directory`, with another statement in the place of the one that loads."""
    notebook = nbformat.read(report.NOTEBOOK, as_version=4)
    cell = next(cell for cell in notebook.cells if LOADING in cell.source)
    beside = (
        f"import sys\n\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom synthetic_run import synthetic_run\n"
    )
    cell.source = cell.source.replace(LOADING, f"{beside}\n{loading}")
    path = directory / report.NOTEBOOK.name
    nbformat.write(notebook, path)
    return path
