"""The report of a run that is made up: the real notebook, executed and exported for real, but for its one load cell."""

from __future__ import annotations

import ast
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
import mountlab
import nbformat
import pytest
from mountlab.core.places import SHIPPED
from mountlab.report import execute
from mountlab.results import store
from mountlab.results.run_file import SCHEMA
from nbformat.v4 import new_output
from shared import shared
from synthetic_run import synthetic_run

LOADING = "the_run = mountlab.load_run(run)"
HOSTILE = (
    "</style></script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u202e=1"
)
"""What would change the title of a page, were it more than text."""


def hostile_report(factory: pytest.TempPathFactory) -> Path:
    """The report of a run with hostile text wherever text can be, made once in a session: for those who read it. It is
    written although the kernelspec `python3` that Jupyter finds first is of somebody else."""
    return shared(factory, "hostile-report", _write_hostile) / "run" / "report.html"


def _write_hostile(directory: Path) -> None:
    spec = directory / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    foreign = {"argv": ["/nonexistent/python", "{connection_file}"], "display_name": "x", "language": "python"}
    spec.write_text(json.dumps(foreign))
    (directory / "run").mkdir()
    with mock.patch.dict(os.environ, JUPYTER_PATH=str(directory / "jupyter")):
        write_synthetic_report(directory / "run", hostile=HOSTILE)


def recorded_report(factory: pytest.TempPathFactory) -> Path:
    """The report of results/tour, which has the shape of the demo's, made once in a session and without a kernel."""
    return shared(factory, "recorded-report", _write_recorded) / "tour" / "report.html"


def _write_recorded(directory: Path) -> None:
    run = shutil.copytree(SHIPPED / "results" / "tour", directory / "tour")
    with mock.patch.object(execute, "execute", execute_here), mpl.rc_context():  # seaborn sets a theme for all
        execute.write_report(run)


def write_synthetic_report(directory: Path, **options: object) -> Path:
    """report.html of `synthetic_run(**options)` in an empty directory."""
    info = synthetic_run(**options).info  # type: ignore[arg-type]
    keys = ("run_id", "status", "created_at", "box", "seed", "order", "parameters", "left_out", "published")
    record = {key: getattr(info, key) for key in keys} | {"facts": info.facts.as_record()}
    (directory / "run.json").write_text(json.dumps({**record, "schema": SCHEMA}))
    return execute.write_report(directory, notebook=notebook_with(directory, f"the_run = synthetic_run(**{options!r})"))


def notebook_with(directory: Path, loading: str) -> Path:
    """The report notebook, as a file in `directory`, with another statement in the place of the one that loads."""
    notebook = nbformat.read(execute.NOTEBOOK, as_version=4)
    cell = next(cell for cell in notebook.cells if LOADING in cell.source)
    here = str(Path(__file__).parent)
    beside = f"import sys\n\nsys.path.insert(0, {here!r})\nfrom synthetic_run import synthetic_run\n"
    cell.source = cell.source.replace(LOADING, f"{beside}\n{loading}")
    path = directory / execute.NOTEBOOK.name
    nbformat.write(notebook, path)
    return path


def executed_here(notebook: Path, parameters: Mapping[str, Any], runs: Mapping[str, Any], directory: Path) -> Path:
    """A notebook executed without a kernel, which takes ten seconds less: its runs are those given here, by name."""
    read, names = nbformat.read(notebook, as_version=4), dict[str, Any]()
    # The package keeps a public name from its first use on.
    with (
        mock.patch.object(mountlab, "load_run", runs.__getitem__),
        mock.patch.object(store, "load_run", runs.__getitem__),
    ):
        for cell in read.cells:
            if cell.cell_type == "code":
                shown = _executed(cell.source, names)
                names.update(parameters if "parameters" in cell.metadata.get("tags", []) else {})
                cell.outputs = [new_output("execute_result", {"text/html": shown})] if shown else []
    path = directory / notebook.name
    nbformat.write(read, path)
    return path


class LoadedRuns(dict[str, Any]):
    """Runs by their paths, loaded when they are asked for."""

    load = staticmethod(store.load_run)

    def __missing__(self, path: Path | str) -> Any:
        return self.load(path)


def execute_here(notebook: Path, executed: Path, parameters: Mapping[str, Any]) -> None:
    """In the place of `execute.execute`, for tests of what a command does around it: without a kernel."""
    executed.parent.mkdir(parents=True, exist_ok=True)
    executed_here(notebook, parameters, LoadedRuns(), executed.parent)


def _executed(source: str, names: dict[str, Any]) -> str:
    """Run a cell; the HTML of its last line, '' where that is none."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    return str(shown._repr_html_()) if hasattr(shown, "_repr_html_") else ""
