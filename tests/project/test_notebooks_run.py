"""Notebooks that need no box, run from top to bottom: in one kernel, which forgets all names between two of them. What
draws a run draws each file system in its colour (test_notebook_colours.py)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mountlab.analysis import load_curve
from mountlab.core.places import SHIPPED
from mountlab.plots.svg import INK
from mountlab.report import html
from mountlab.report.kernels import Kernels
from mountlab.results import paths, store
from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from project.test_notebook_colours import wrong_colours
from svg_marks import drawings

pytestmark = [pytest.mark.slow]
TOUR = SHIPPED / "results" / "tour"
RECORDED = ("tour", "how-much-example", "why-sync-example")


class OneKernel:
    """A kernel of this environment, as reports have it, and what papermill does to a notebook before it runs."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        kernels = Kernels({"PYTHONSAFEPATH": "1", **environment})
        self._manager = kernels.manager(directory / "kernel.json")()
        self._cells = ExecutePreprocessor(timeout=600)
        self.last = new_notebook()

    def run(self, name: str, **parameters: Any) -> NotebookNode:
        """Return the notebook with its outputs. Raises CellExecutionError; the notebook is then `last`."""
        self._execute(new_notebook(cells=[new_code_cell("%reset -f\n%reset -f in")]))
        read = load_notebook_node(str(paths.NOTEBOOKS / f"{name}.ipynb"))
        self.last = parameterize_notebook(read, parameters, kernel_name="python3", language="python")
        self._execute(self.last)
        return self.last

    def _execute(self, notebook: NotebookNode) -> None:
        try:
            self._cells.preprocess(notebook, {}, km=self._manager)
        finally:
            self._cells.kc.stop_channels()

    def end(self) -> None:
        self._cells._cleanup_kernel()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneKernel]:
    """As in a fresh clone: results/ holds the recorded runs, which are complete."""
    directory = tmp_path_factory.mktemp("clone")
    for recorded in RECORDED:
        shutil.copytree(TOUR.with_name(recorded), directory / "results" / recorded)
    one = OneKernel(directory, {"MOUNTLAB_RESULTS": str(directory / "results")})
    yield one
    one.end()


def outputs(notebook: NotebookNode) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def pages(notebook: NotebookNode) -> str:
    return "\n".join(output.get("data", {}).get("text/html", "") for output in outputs(notebook))


def all_in_their_colours(notebook: NotebookNode) -> bool:
    """Whether something is drawn, and each file system in its own colour. What is not fails the test, by name."""
    assert wrong_colours(pages(notebook)) == []
    return bool(drawings(pages(notebook)))


def told(notebook: NotebookNode) -> str:
    """All text that an executed notebook shows."""
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs(notebook)]
    return "\n".join("".join(each) for each in shown)


def test_the_tour_runs_without_a_box(kernel: OneKernel) -> None:
    executed = kernel.run("00_tour")
    assert "as fast as ext4" in pages(executed)
    assert all_in_their_colours(executed)


def test_repeats_are_planned_and_simulated_without_a_box_and_without_widgets(kernel: OneKernel) -> None:
    executed = kernel.run("40_plan_repeats", kind="gamma", n=4, others=[12])
    cv = store.load_run(TOUR).estimates["cv"].median()
    assert f"cv = {cv:.3f}; kinds: normal, lognormal" in told(executed), "that of the pilot, where none is named"
    assert "n = 4, gamma: " in told(executed)
    assert "n = 12, gamma: " in told(executed)
    assert not any("widget" in kind for output in outputs(executed) for kind in output.get("data", {}))
    shown = "".join(str(output) for output in outputs(executed))
    assert "which has 14 of the 14 cells" in shown
    assert all_in_their_colours(executed)
    assert "10 blocks show a difference of" in shown


def test_trials_are_inspected_without_a_box(kernel: OneKernel) -> None:
    executed = kernel.run("30_inspect_trials", trial="t0010")
    text = told(executed)
    assert all_in_their_colours(executed)
    files = store.load_run(TOUR).files("t0010")
    assert files["argv"] in text, "what was run, word by word"
    assert files["stderr"].splitlines()[-1] in text, "what the tool printed"
    assert "t0010 took" in text
    assert "140 of 154 trials count" in text


@pytest.mark.long
def test_a_trial_that_the_run_does_not_have_is_an_error(kernel: OneKernel) -> None:
    with pytest.raises(CellExecutionError, match="t9999"):
        kernel.run("30_inspect_trials", trial="t9999")


def test_file_systems_are_compared_without_a_box(kernel: OneKernel) -> None:
    executed = kernel.run("45_compare_filesystems", workloads=["dd-read"], metric="read_bandwidth")
    text = told(executed)
    assert "For read bandwidth under dd-read cache=cold tmpfs is the best" in text
    assert "under dd-write" not in text.rpartition("For read bandwidth")[2]
    assert all_in_their_colours(executed)


def test_why_says_how_to_get_diagnostic_trials_where_a_run_has_none(kernel: OneKernel) -> None:
    executed = kernel.run("60_why", run=str(TOUR))
    assert "The run has no diagnostic trials: <code>mountlab explain RUN</code> adds them." in pages(executed)
    assert not [output for output in outputs(executed) if output.output_type == "error"]


def test_how_much_it_can_take_says_what_asks_for_a_search_where_a_run_has_none(kernel: OneKernel) -> None:
    executed = kernel.run("65_capacity", run=str(TOUR))
    assert "a workload asks for one by <code>capacity</code>" in pages(executed)
    assert not [output for output in outputs(executed) if output.output_type == "error"]


def test_why_opens_on_a_recorded_run_and_says_what_makes_a_sync_slower(kernel: OneKernel) -> None:
    executed = kernel.run("60_why")
    assert "no diagnostic trials" not in pages(executed)
    assert drawings(pages(executed))


def test_how_much_it_can_take_opens_on_a_recorded_run_and_says_so_with_intervals(kernel: OneKernel) -> None:
    executed = kernel.run("65_capacity")
    found = load_curve.searches(store.load_run(TOUR.with_name("how-much-example")))
    for search in found:
        takes = rf"{search.cell.filesystem.name}( and xfs)? (takes|each take)"
        sentence = rf"{takes} [\d\s]+ \[[\d\s]+, [\d\s]+\] requests/s"
        assert re.search(sentence, html.words_of(html.Html(pages(executed))))
    assert drawings(pages(executed))


@pytest.mark.long
def test_the_notebook_that_explores_runs_without_a_person_and_keeps_no_widget(kernel: OneKernel) -> None:
    executed = kernel.run("70_explore", run=str(TOUR), metric="read_bandwidth")
    text = nbformat.writes(executed)
    assert "read_bandwidth under dd-read cache=cold: xfs / tmpfs = " in text
    assert all_in_their_colours(executed)
    assert "application/vnd.jupyter.widget" not in text
    assert '"widgets"' not in text
    assert "image/png" not in text, "seaborn's figure takes the colours of the theme as well"
    assert INK not in text


@pytest.mark.long
def test_the_notebook_that_plans_repeats_says_where_nothing_is_compared(kernel: OneKernel, tmp_path: Path) -> None:
    text = (SHIPPED / "params" / "sweeps" / "tour.yml").read_text()
    (tmp_path / "s.yml").write_text("\n".join(line for line in text.splitlines() if not line.startswith("baseline")))
    assert "Nothing is compared: no baseline." in told(
        kernel.run("40_plan_repeats", sweep_file=str(tmp_path / "s.yml"), n=2, others=[])
    )


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("10_run_sweep", {"run": "interrupted"}, "there is no interrupted run yet"),
        ("50_compare_runs", {}, "no sweep has two runs below"),
        ("50_compare_runs", {"runs": ["tour"]}, "results/tour; name more in `runs`"),
        pytest.param(
            "50_compare_runs", {"over_boxes": True}, "no sweep has runs on two boxes below", marks=pytest.mark.long
        ),
        pytest.param("80_batch", {}, "there is no batch below", marks=pytest.mark.long),
        ("80_batch", {"batch_file": "stuides"}, "no such batch file"),
    ],
)
@pytest.mark.long
def test_run_all_in_a_fresh_clone_says_calmly_what_to_name(
    name: str, parameters: dict[str, Any], said: str, kernel: OneKernel
) -> None:
    """The executed notebook shows the message and no more."""
    with pytest.raises(CellExecutionError):
        kernel.run(name, **parameters)
    (error,) = (each for each in outputs(kernel.last) if each.output_type == "error")
    assert said in error.traceback[0]
    assert len(error.traceback) <= 4
