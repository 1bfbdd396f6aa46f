"""Notebooks that need no box, run from top to bottom."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mountlab.core import disk
from mountlab.core.errors import MountlabError
from mountlab.report.execute import execute
from mountlab.results import paths, store

pytestmark = [pytest.mark.slow]


def outputs(path: Path) -> list[Any]:
    cells = nbformat.read(path, as_version=4).cells
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_tour_runs_without_a_box(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "tour.ipynb"
    execute(paths.NOTEBOOKS / "00_tour.ipynb", executed, {})
    pages = [output.data["text/html"] for output in outputs(executed) if "text/html" in output.get("data", {})]
    assert any("as fast as ext4" in page for page in pages)
    assert any("<svg" in page for page in pages)
    assert not [output for output in outputs(executed) if output.output_type == "error"]


def test_what_n_would_have_told_runs_without_a_box_and_without_widgets(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "what.ipynb"
    execute(paths.NOTEBOOKS / "60_what_would_n_have_told.ipynb", executed, {"kind": "gamma", "n": 4, "others": [12]})
    found = outputs(executed)
    assert not [output for output in found if output.output_type == "error"]
    assert any("<svg" in output.get("data", {}).get("text/html", "") for output in found)
    told = "".join(output.get("text", "") for output in found)
    assert "n = 4, gamma: " in told
    assert "n = 12, gamma: " in told
    assert not any("widget" in kind for output in found for kind in output.get("data", {}))


def test_repeats_are_planned_without_a_box(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "plan.ipynb"
    execute(paths.NOTEBOOKS / "40_plan_repeats.ipynb", executed, {})
    shown = "".join(str(output) for output in outputs(executed))
    assert "which has 9 of the 9 cells" in shown
    assert "<svg" in shown
    assert "5 blocks show a difference of" in shown
    assert not [output for output in outputs(executed) if output.output_type == "error"]


def told(path: Path) -> str:
    """All text that an executed notebook shows; it has no error."""
    found = outputs(path)
    assert not [output for output in found if output.output_type == "error"]
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in found]
    return "\n".join("".join(each) for each in shown)


def test_trials_are_inspected_without_a_box(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "inspect.ipynb"
    execute(paths.NOTEBOOKS / "30_inspect_trials.ipynb", executed, {"trial": "t0010"})
    text = told(executed)
    run = store.load_run(disk.ROOT / "results" / "tour")
    files = store.raw_files(run, "t0010")
    assert files["argv"] in text, "what was run, word by word"
    assert files["stderr"].splitlines()[-1] in text, "what the tool printed"
    assert "t0010 took" in text
    assert "45 of 54 trials count" in text


def test_a_trial_that_the_run_does_not_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MountlabError, match="cell of its notebook failed"):
        execute(paths.NOTEBOOKS / "30_inspect_trials.ipynb", tmp_path / "e" / "o.ipynb", {"trial": "t9999"})


def test_file_systems_are_compared_without_a_box(tmp_path: Path) -> None:
    executed = tmp_path / "executed" / "compare.ipynb"
    parameters = {"workloads": ["dd-read"], "metric": "read_bandwidth"}
    execute(paths.NOTEBOOKS / "45_compare_filesystems.ipynb", executed, parameters)
    text = told(executed)
    assert "For read bandwidth under dd-read cache=cold ramfs is the best" in text
    assert "under dd-write" not in text.rpartition("For read bandwidth")[2]
    assert "<svg" in executed.read_text()


@pytest.mark.slow
def test_the_notebook_that_plans_repeats_says_where_nothing_is_compared(tmp_path: Path) -> None:
    text = (disk.ROOT / "params" / "sweeps" / "tour.yml").read_text()
    (tmp_path / "s.yml").write_text("\n".join(line for line in text.splitlines() if not line.startswith("baseline")))
    executed = tmp_path / "o.ipynb"
    execute(paths.NOTEBOOKS / "40_plan_repeats.ipynb", executed, {"sweep_file": str(tmp_path / "s.yml")})
    assert "Nothing is compared: no baseline." in executed.read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("15_resume_run", "there is no interrupted run below"),
        ("50_compare_runs", "has a cell in common with results/tour; name one in `run_b`"),
        ("55_compare_many", "no sweep has two runs below"),
        ("57_across_boxes", "no sweep has runs on two boxes below"),
        ("78_run_batch", "no batch file is named; name one in `batch_file`"),
        ("80_batch", "there is no batch below"),
    ],
)
def test_run_all_in_a_fresh_clone_says_calmly_what_to_name(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results/ holds the tour, which is complete and alone. The executed notebook shows the message and no more."""
    monkeypatch.setenv("MOUNTLAB_RESULTS", str(tmp_path / "results"))
    shutil.copytree(disk.ROOT / "results" / "tour", tmp_path / "results" / "tour")
    with pytest.raises(MountlabError) as caught:
        execute(paths.NOTEBOOKS / f"{name}.ipynb", tmp_path / "e" / "o.ipynb", {})
    assert said in caught.value.got
    (error,) = (each for each in outputs(tmp_path / "e" / "o.failed.ipynb") if each.output_type == "error")
    assert said in error.traceback[0]
    assert len(error.traceback) <= 4
