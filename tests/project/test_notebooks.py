"""Notebooks as they are in git: one question each, thin, with nothing in them that a run put there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mountlab
import nbformat
import pytest
from papermill import inspect_notebook
from rows import every_row

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST_FUNCTION = 5
FEWEST_CELLS = 15
SHORTEST_HELP = 10
TYPES = re.compile(r"(str|int|float|bool|list|dict)(\[[\w, ]+\])?")
KERNEL = "Mountlab (.venv)"
METADATA = {"kernelspec", "language_info"}

each_notebook = every_row("path", NOTEBOOKS, ids=lambda path: path.name)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def parameter_cells(path: Path) -> list[Any]:
    return [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]


def test_there_are_notebooks() -> None:
    if not NOTEBOOKS:
        pytest.skip("notebooks/ is empty")
    assert all(path.name[0].isdigit() for path in NOTEBOOKS), "they are numbered, in the order in which to read them"


@each_notebook
def test_is_valid(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert len(notebook.cells) >= FEWEST_CELLS


@each_notebook
def test_holds_nothing_of_a_run(path: Path) -> None:
    """`nbstripout notebooks/*.ipynb` takes it out."""
    for number, cell in enumerate(code_cells(path)):
        assert cell.outputs == [], f"code cell {number} has outputs"
        assert cell.execution_count is None, f"code cell {number} has been counted"
        assert set(cell.metadata) <= {"tags"}, f"code cell {number} has metadata"


@each_notebook
def test_says_only_which_kernel_it_wants(path: Path) -> None:
    metadata = read(path).metadata
    assert set(metadata) <= METADATA
    assert (metadata.kernelspec.name, metadata.kernelspec.language) == ("python3", "python")
    assert metadata.kernelspec.display_name == KERNEL, "JupyterLab would write it in, and git would see a change"
    assert set(metadata.get("language_info", {})) <= {"name"}, "versions are those of whoever ran it last"


@each_notebook
def test_opens_with_its_question(path: Path) -> None:
    first = read(path).cells[0]
    assert first.cell_type == "markdown"
    title = first.source.splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")


@each_notebook
def test_text_explains_the_code(path: Path) -> None:
    """Never more than two cells of code in a row."""
    kinds = ["text" if cell.cell_type == "markdown" else "code" for cell in read(path).cells]
    assert "code code code" not in " ".join(kinds)


@each_notebook
def test_parameters_come_first_and_are_plain(path: Path) -> None:
    """papermill puts what the user gives after this cell: it must not compute anything from its own defaults."""
    marked = parameter_cells(path)
    assert len(marked) == 1
    assert code_cells(path).index(marked[0]) == 0
    for statement in ast.parse(marked[0].source).body:
        assert isinstance(statement, ast.Assign | ast.AnnAssign), ast.unparse(statement)
        ast.literal_eval(statement.value or ast.Constant(None))


@each_notebook
def test_papermill_tells_type_default_and_meaning_of_each_parameter(path: Path) -> None:
    """What `papermill --help-notebook` shows, as papermill itself infers it: it takes `name: type = value  # help` on
    one line, or `name = value  # type: type  help` (which a parameter `run` needs: `run: str` would be IPython's %run),
    and knows no `str | None`."""
    (cell,) = parameter_cells(path)
    targets = [
        node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.AnnAssign | ast.Assign)
    ]
    shown = inspect_notebook(str(path))
    assert list(shown) == [ast.unparse(target) for target in targets], "each parameter has a line of its own"
    for name, parameter in shown.items():
        assert TYPES.fullmatch(parameter["inferred_type_name"]), f"{name} has no plain type"
        assert len(parameter["help"]) >= SHORTEST_HELP, f"{name} is not explained"


def test_how_units_are_told() -> None:
    """A parameter that is a time or a size says its unit in its comment."""
    shown = inspect_notebook(str(NOTEBOOKS[0].parent / "05_check_box.ipynb"))
    assert shown["pause"]["help"].endswith("in s")
    assert shown["pause"]["inferred_type_name"] == "float"


@each_notebook
def test_functions_are_tiny(path: Path) -> None:
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= LONGEST_FUNCTION, f"{node.name} has {lines} lines: it belongs into the library"


@each_notebook
def test_box_is_reached_by_the_library_only(path: Path) -> None:
    for cell in code_cells(path):
        assert not cell.source.lstrip().startswith(("!", "%")), "a shell command or magic: the library does it"
        imports = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name.split(".")[0] for node in imports for alias in node.names}
        names |= {(node.module or "").split(".")[0] for node in imports if isinstance(node, ast.ImportFrom)}
        assert not names & {"fabric", "invoke", "os", "paramiko", "shutil", "subprocess"}


@pytest.mark.long
def test_types_hold_in_the_library_and_what_notebooks_use_of_it_exists(tmp_path: Path) -> None:
    """Without a box most notebooks cannot be run; a name that has moved shows without one."""
    for path in NOTEBOOKS:
        source = "\n\n".join(cell.source for cell in code_cells(path))
        (tmp_path / f"notebook_{path.stem}.py").write_text(source)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "lib", *map(str, tmp_path.glob("*.py"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    said = done.stdout.splitlines()
    missing = ("[attr-defined]", "[call-arg]", "[import-not-found]")
    assert [line for line in said if line.startswith("lib/") or line.endswith(missing)] == []


# --- one parameter for a run, public names, and the line to go on from -----------------------------------------------

NOTEBOOKS_THERE_ARE = 14
OLD_NAMES_OF_A_RUN = re.compile(r"run_path|run_[ab]|pilot|path|directory")


def parameters(path: Path) -> dict[str, str]:
    """Each parameter of a notebook to what its comment says."""
    return {name: shown["help"] for name, shown in inspect_notebook(str(path)).items()}


def test_there_are_as_many_as_questions() -> None:
    """Few enough to be read as a table of contents: a new question has a notebook, a variant of one a parameter."""
    assert len(NOTEBOOKS) == NOTEBOOKS_THERE_ARE


@each_notebook
def test_a_run_is_the_parameter_run_and_several_are_runs(path: Path) -> None:
    found = parameters(path)
    assert not [name for name in found if OLD_NAMES_OF_A_RUN.fullmatch(name)]
    loaded = [call for call in calls(path) if call.startswith(("mountlab.load_run", "mountlab.compare_runs"))]
    makes_its_own = "mountlab.box" in calls(path)
    assert not loaded or makes_its_own or {"run", "runs"} & set(found)


def test_every_notebook_on_a_run_takes_one() -> None:
    """A notebook that is given another name ignores it, and shows a run that nobody asked for."""
    on_one = {path.name[:2] for path in NOTEBOOKS if "run" in parameters(path)}
    assert on_one == {"00", "10", "20", "30", "40", "45", "60", "65", "70"}
    assert {path.name[:2] for path in NOTEBOOKS if "runs" in parameters(path)} == {"50"}


def calls(path: Path) -> list[str]:
    trees = (ast.parse(cell.source) for cell in code_cells(path))
    return [ast.unparse(node.func) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def chains(path: Path) -> list[list[str]]:
    """What a notebook takes from the library, as parts: mountlab.plots.Plot, and names imported from it."""
    found = []
    for tree in (ast.parse(cell.source) for cell in code_cells(path)):
        known = {"mountlab": ["mountlab"]}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mountlab":
                known |= {each.asname or each.name: [*(node.module or "").split("."), each.name] for each in node.names}
            elif isinstance(node, ast.Import):
                found += [each.name.split(".") for each in node.names if each.name.startswith("mountlab.")]
        found += list(known.values())
        found += [[*known[name], *rest] for name, *rest in map(parts_of, ast.walk(tree)) if name in known]
    return found


def parts_of(node: ast.AST) -> list[str]:
    """'a.b.c' as its parts, [''] of anything else."""
    return ast.unparse(node).split(".") if isinstance(node, ast.Attribute) and "(" not in ast.unparse(node) else [""]


@each_notebook
def test_only_public_names_are_used(path: Path) -> None:
    """Names of `mountlab.__all__`, and of the `__all__` of a module that is one of them."""
    for _, *names in chains(path):
        if names:
            assert names[0] in mountlab.__all__, f"mountlab.{'.'.join(names)}"
            public = getattr(mountlab, names[0])
            if inspect.ismodule(public) and names[1:]:
                assert names[1] in public.__all__, f"mountlab.{'.'.join(names)}"
    own = (node for tree in map(ast.parse, (cell.source for cell in code_cells(path))) for node in ast.walk(tree))
    assert not [ast.unparse(node) for node in own if isinstance(node, ast.Attribute) and node.attr.startswith("_")]


@every_row(("name", "of"), [("20_report", "the_run"), ("50_compare_runs", "compared")])
def test_a_cell_that_shows_a_part_is_one_line(name: str, of: str) -> None:
    """A part has its frame itself."""
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    shown = [cell.source for cell in code_cells(path) if "mountlab.sections." in cell.source]
    assert shown
    for source in shown:
        assert re.fullmatch(rf"mountlab\.sections\.\w+\({of}\)", source)
