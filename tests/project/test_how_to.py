"""What the how-to pages tell people to write is written, and works: in a copy of the repository, on recorded runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.places import SHIPPED
from mountlab.results import store
from project.test_docs import FENCE, FILE

ROOT = SHIPPED
HOW_TO = ROOT / "docs" / "how-to"
TOUR = ROOT / "results" / "tour"
EARLIER = ROOT / "tests" / "data" / "earlier_run"
EXTEND = HOW_TO / "extend.md"
PARTS = FILE.findall(EXTEND.read_text())
"""The files of extend.diff with the parts that the page shows."""


def code(page: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall((HOW_TO / page).read_text()) if found == language]


# --- additions to the library -----------------------------------------------------------------------------------------


ROWS = """\
import importlib, sys
for test in vars(importlib.import_module(sys.argv[1])).values():
    for name, _ in getattr(test, "row_table", ()):
        print(name)
"""
"""Prints the rows of the tables in a module of tests."""
CACHED = shutil.ignore_patterns("__pycache__", "_build")
"""Other workers write there at this moment; `make docs` writes its pages there."""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with all that docs/how-to/extend.diff adds."""
    copy = tmp_path_factory.mktemp("how-to") / "mountlab"
    pages = ("pyproject.toml", "METHODS.md", "ARCHITECTURE.md")
    for name in ("lib", "tests", "params", "notebooks", "results/tour", "docs", *pages):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=CACHED)
        else:
            shutil.copy(ROOT / name, copy / name)
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    argv = ["git", "apply", str(EXTEND.with_suffix(".diff"))]
    done = subprocess.run(argv, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return copy


@pytest.mark.long
@pytest.mark.slow
def test_a_tool_a_file_system_and_a_caveat_of_ones_own_pass_the_conformance_suites(extended: Path) -> None:
    """Run there, with the library of the copy in front of ours."""

    def said(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{extended / 'lib'}:.:support"}
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=extended / "tests", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    tables = {"programs/test_conformance.py": "xfs_io", "filesystems/test_filesystems.py": "nilfs2",
              "checks/test_checks.py": "in-a-burst"}  # fmt: skip
    others = ("checks/test_checks_burst.py", "project/test_architecture.py")
    said("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tables, *others)
    for file, added in tables.items():
        module = file.removesuffix(".py").replace("/", ".")
        assert added in said("-c", ROWS, module), f"{file}: {added} is in no row"


@pytest.mark.slow
def test_the_page_shows_parts_of_them(extended: Path) -> None:
    assert len(PARTS) == 3
    for name, part in PARTS:
        assert part in (extended / name).read_text(), f"not in {name}"


@pytest.mark.slow
def test_they_are_as_well_formed_as_the_rest(extended: Path) -> None:
    for arguments in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        files = ["lib/mountlab/programs/xfs_io.py", "lib/mountlab/filesystems/nilfs2.py",
                 "lib/mountlab/checks/device.py", "tests/checks/test_checks_burst.py"]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--no-cache", *files],
            cwd=extended,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


# --- plots ------------------------------------------------------------------------------------------------------------


def executed(page: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the Python blocks of a page leave, run one after the other beside results/tour; parts of files are
    left out."""
    (directory / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(directory)
    namespace: dict[str, Any] = {}
    parts = {part for _, part in PARTS}
    for block in (block for block in code(page, "python") if block not in parts):
        exec(compile(block, page, "exec"), namespace)
    return namespace


@pytest.mark.slow
def test_a_plot_of_ones_own_draws_the_estimates_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = executed("extend.md", tmp_path, monkeypatch)
    rows = names["rows"]
    (axes,) = names["figure"].axes
    lines = [tuple(float(x) * 1e9 for x in line.get_xdata()) for line in axes.get_lines()]
    assert lines[::2] == [pytest.approx(ends) for ends in zip(rows["low"], rows["high"], strict=True)]
    assert lines[1::2] == [pytest.approx((mean,)) for mean in rows["mean"]]
    assert [label.get_text() for label in axes.get_yticklabels()] == [*rows["cell"]]
    assert f"{max(rows['mean']) / 1e9:.1f} GB/s" in names["plot"].title
    assert names["plot"].title in names["plot"]._repr_html_()


@pytest.mark.slow
def test_figures_for_a_paper_are_files_with_a_white_ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.image import imread

    executed("custom-figures.md", tmp_path, monkeypatch)
    assert (tmp_path / "ratios.pdf").read_bytes().startswith(b"%PDF")
    picture = imread(tmp_path / "ratios.png")
    assert picture.shape[1] > 1000, "300 dpi"
    assert list(picture[0, 0][:3]) == [1, 1, 1]


# --- the gate ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The script of the page, beside the environment that it calls."""
    (script,) = (body for name, body in FILE.findall((HOW_TO / "ci-gate.md").read_text()) if name == "ci/gate.sh")
    (tmp_path / "ci").mkdir()
    path = tmp_path / "ci/gate.sh"
    path.write_text(script)
    path.chmod(0o755)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "exit_code", "said"),
    [
        (20.0, 1, "does not pass"),
        pytest.param(0.05, 0, "passes", marks=pytest.mark.long),
        pytest.param(1.05, 5, "cannot tell", marks=pytest.mark.long),
    ],
)
def test_the_script_of_the_gate_ends_as_a_job_needs_it(
    gate: Path, tmp_path: Path, times: float, exit_code: int, said: str
) -> None:
    after = tmp_path / "after"
    shutil.copytree(EARLIER, after)  # which has no seal against what is done to it here
    info = json.loads((after / "run.json").read_text())
    (after / "run.json").write_text(json.dumps({**info, "run_id": "after"}))
    for file in after.glob("raw/t*/stderr"):
        text = re.sub(r"copied, ([0-9.]+) s", lambda m: f"copied, {float(m[1]) * times:.6f} s", file.read_text())
        file.write_text(text)
    done = run_gate(gate, EARLIER, after)
    assert done.returncode == exit_code, done.stderr
    assert done.stdout.splitlines()[-1].startswith(said)
    assert (tmp_path / "gate.txt").read_text() in done.stdout
    assert (tmp_path / "gate.xml").read_text().startswith("<testsuites")
    assert (tmp_path / "gate.md").read_text().startswith("## ")


@pytest.mark.parametrize(
    ("exit_code", "said"), [(0, "passes"), (5, "cannot tell"), (2, "no answer: exit code 2"), (3, "no answer")]
)
def test_the_script_ends_as_the_gate_does(gate: Path, exit_code: int, said: str) -> None:
    """With a stand-in for the gate, whose exit codes tests/analysis/test_gate.py is about."""
    stand_in = gate.parent / "python"
    stand_in.write_text(f"#!/bin/sh\necho rows\nexit {exit_code}\n")
    stand_in.chmod(0o755)
    done = run_gate(gate, TOUR, TOUR, python=stand_in)
    assert done.returncode == exit_code
    first, last = done.stdout.splitlines()
    assert first == "rows"
    assert last.startswith(said)


def test_the_script_sorts_pairs_of_runs_into_sides(gate: Path) -> None:
    stand_in = gate.parent / "python"
    stand_in.write_text('#!/bin/sh\necho "$@"\n')
    stand_in.chmod(0o755)
    done = run_gate(gate, *map(Path, ("b1", "a1", "b2", "a2", "b3", "a3")), python=stand_in)
    assert " gate a1 a2 a3 --against b1 b2 b3 --worse-than 5%" in done.stdout


def run_gate(gate: Path, *pairs: Path, python: Path = Path(sys.executable)) -> subprocess.CompletedProcess[str]:
    """`pairs`: a run before and one after, as often as one likes."""
    return subprocess.run(
        ["ci/gate.sh", *map(str, pairs)],
        cwd=gate.parents[1],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )


# --- logs -------------------------------------------------------------------------------------------------------------


def test_the_file_of_an_import_makes_a_run(tmp_path: Path, results_dir: Path) -> None:
    from mountlab.results.imported import import_file

    dd = "200+0 records in\n200+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, {:.3f} s, {:.0f} MB/s\n"
    (tmp_path / "logs").mkdir()
    for number in (1, 2, 3):
        for name, seconds in (("ext4", 0.4), ("tmpfs", 0.2)):
            took = seconds + number / 1000
            (tmp_path / "logs" / f"{name}-1M-{number}.txt").write_text(dd.format(took, 209.7152 / took))
    ((name, text),) = FILE.findall((HOW_TO / "import-logs.md").read_text())
    (tmp_path / name).write_text(text)
    run = store.load_run(import_file(tmp_path / name, results=results_dir))
    (ratio,) = run.comparisons
    assert (ratio.candidate, ratio.verdict) == ("tmpfs", "faster")
    assert ratio.ratio == pytest.approx(2.0, rel=0.01)
