"""A file system has one colour in every notebook that draws a run: read from what the notebook shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat
import pytest
from every_plot import NAMES
from mountlab import plots
from mountlab.report.execute import COMPARISON
from mountlab.results import paths
from searched_run import searched_run
from svg_marks import beside, colours, drawings, keys
from synthetic_report import executed_here, recorded_report
from synthetic_run import SyntheticRun, synthetic_run

pytestmark = [pytest.mark.slow]
EXPECTED = {name: mark.colour.lower() for name, mark in plots.colour_of(NAMES).items()}
"""Those of the tour, and of a synthetic run."""
OF_A_RUN = {"00_tour", "30_inspect_trials", "40_plan_repeats", "45_compare_filesystems", "70_explore"}
"""Notebooks that draw a run without a box: test_notebooks_run.py runs them, and looks at their colours."""


def page_of(notebook: Path, parameters: dict[str, Any], runs: dict[Any, Any], directory: Path) -> str:
    with mpl.rc_context():  # seaborn sets a theme for all that is drawn later
        return shown_in(executed_here(notebook, parameters, runs, directory))


def shown_in(path: Path) -> str:
    """All that an executed notebook shows."""
    executed = nbformat.read(path, as_version=4)
    outputs = [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(output["data"]["text/html"] for output in outputs if "data" in output)


def wrong_colours(page: str) -> list[object]:
    """What is drawn on a page in a colour that is not that of its file system."""
    told = [pair for pair in keys(page) if pair[0] in EXPECTED]
    told += [pair for drawing in drawings(page) for pair in beside(drawing, NAMES)]
    strange = [found for drawing in drawings(page) if (found := colours(drawing) - set(EXPECTED.values()))]
    return [pair for pair in told if pair[1] != EXPECTED[pair[0]]] + strange


@pytest.mark.long
def test_the_report_draws_each_file_system_in_its_colour(tmp_path_factory: pytest.TempPathFactory) -> None:
    page = shown_in(recorded_report(tmp_path_factory).parent / "notebooks" / "20_report.ipynb")
    assert drawings(page)
    assert wrong_colours(page) == []


def test_every_notebook_that_draws_a_run_is_looked_at() -> None:
    """By the parts of a report and the plots that their cells name."""
    drawing = re.compile(r"plots\.|\boverview\(|run_order\(|every_trial\(|explore\(")
    found = {path.stem for path in paths.NOTEBOOKS.glob("*.ipynb") if drawing.search(path.read_text())}
    need_a_box = {"10_run_sweep", "12_by_hand"}
    shown_elsewhere = {"50_compare_runs", "65_capacity", "75_history"}
    assert found - need_a_box - shown_elsewhere <= {*OF_A_RUN, "20_report"}


def test_searches_are_drawn_in_the_colours_of_their_file_systems(tmp_path: Path) -> None:
    page = page_of(paths.NOTEBOOKS / "65_capacity.ipynb", {"run": "it"}, {"it": searched_run(*NAMES)}, tmp_path)
    assert drawings(page)
    assert wrong_colours(page) == []


def without(run: SyntheticRun, name: str, run_id: str) -> SyntheticRun:
    """A run of the same sweep that has left one file system out."""
    kept = tuple(fs for fs in run.sweep.filesystems if fs.name != name)
    frames = {what: getattr(run, what) for what in ("trials", "measurements", "estimates")}
    return replace(
        run,
        sweep=replace(run.sweep, filesystems=kept),
        info=replace(run.info, run_id=run_id),
        **{what: frame[frame["filesystem"] != name] for what, frame in frames.items()},
    )


@pytest.mark.parametrize(
    "left_out", [pytest.param("", marks=pytest.mark.long), "tmpfs", pytest.param("ramfs", marks=pytest.mark.long)]
)
def test_runs_beside_each_other_keep_their_colours_where_one_has_left_some_out(left_out: str, tmp_path: Path) -> None:
    usable = synthetic_run(caveats=False)  # what is not to be used is grey
    runs = {"one": usable, "two": without(usable, left_out, "two")}
    runs["three"] = replace(runs["one"], info=replace(runs["one"].info, run_id="three"))
    for names in (["one", "two"], ["one", "two", "three"]):
        page = page_of(COMPARISON, {"runs": names}, runs, tmp_path)
        assert drawings(page)
        assert wrong_colours(page) == []
