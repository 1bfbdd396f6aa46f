"""The rules of the design that a reader should be able to rely on, checked on the source itself."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from mountlab.core.box_facts import FactPart
from rows import every_row
from vulture import Vulture

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "lib" / "mountlab"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# --- the rooms --------------------------------------------------------------------------------------------------------

ROOMS = tuple(PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"])
"""`make lint` refuses a room that is not in this contract, and an import against its order."""
LARGEST_ROOM, LARGEST_MODULE = 8_000, 600
"""Lines."""
PURE_ROOMS = {
    "core", "stats", "wording", "tools", "fio", "programs", "logs", "filesystems", "tracing", "outcome", "checks",
    "sweep", "analysis", "sentences", "plots", "report",
}  # fmt: skip
WITH_EFFECTS = {
    "core/disk.py", "core/places.py", "core/process.py", "core/signals.py", "programs/parsing.py",
    "report/chronicle.py", "report/execute.py", "report/kernels.py", "report/kernel_server.py",
}  # fmt: skip
"""The only modules of pure rooms that reach outside."""
PURE_ELSEWHERE = {
    "box/known_hosts.py", "results/entries.py", "results/import_claims.py", "results/import_file.py",
    "results/import_levels.py", "results/import_names.py", "batch/batch_file.py", "batch/queue.py", "batch/view.py",
    "batch/board.py", "publish/bundle.py", "publish/bundle_view.py", "publish/crate.py", "runner/live_view.py",
}  # fmt: skip

ONLY_IN = {
    "fabric": ("box/",),
    "invoke": ("box/",),
    "paramiko": ("box/",),
    "distributed": ("batch/cluster.py",),
    "dask": ("batch/cluster.py",),
    "papermill": ("report/execute.py",),
    "nbconvert": ("report/execute.py",),
    "matplotlib": ("plots/",),
    "seaborn": ("plots/",),
    "duckdb": ("results/catalog/",),
    "junitparser": ("cli/gate_text.py",),
}
WRITERS = (
    "core/disk.py", "results/lock.py", "results/writer.py", "results/derived.py", "report/execute.py",
    "report/chronicle.py", "box/embedded/", "batch/store.py", "publish/", "results/catalog/",
)  # fmt: skip
"""Where files of this machine may be written."""

EFFECTS = {
    "asyncio", "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today",
    "getpass", "glob", "http", "multiprocessing", "numpy.random", "os", "platform", "random", "secrets", "select",
    "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
"""What a pure module may not name: clocks, randomness, files, processes, the network."""
BUILTIN_EFFECTS = {"open", "print", "input"}
SEEDED = {"random.Random", "numpy.random.default_rng", "numpy.random.Generator"}
"""Randomness that came in as an argument: allowed, but never called with nothing."""

WRITING_METHODS = {
    "chmod", "hardlink_to", "mkdir", "rmdir", "symlink_to", "to_excel", "to_feather", "to_parquet", "touch",
    "unlink", "write_bytes", "write_text",
}  # fmt: skip
WRITING_CALLS = {
    "json.dump", "os.makedirs", "os.mkdir", "os.open", "os.remove", "os.rename", "os.replace", "os.rmdir", "os.symlink",
    "os.truncate", "os.unlink", "os.write", "yaml.dump_all",
}  # fmt: skip
WRITING_MODULES = ("shutil", "tempfile")
HARMLESS_CALLS = {"shutil.which", "shutil.get_terminal_size", "shutil.disk_usage", "tempfile.TemporaryDirectory"}
"""What these modules have that only looks, or that removes itself."""
LONGEST_FUNCTION = 40
MOST_MEANINGS = 2
"""Of one name of a class."""
NEVER_CALLED_BY_US = {
    "pydantic reads the setting of a model": {"model_config"},
    "argcomplete asks an argument": {"completer"},
    "keys of a sweep file, read by their names": {"zram", "journal_image", "realtime_image"},
    "columns of a journal": {"started_at", "ended_at"},
    "columns of the frames of traces": {"began_s", "begin_s", "lost_events", "tool_mean", "traced_mean", "window_s"},
    "argparse reads it": {"_negative_number_matcher"},
    "Python calls or reads it": {"__init_subclass__", "writelines", "__class__"},
    "IPython calls it": {"_render_traceback_", "_ipython_display_"},
    "paramiko calls it": {"missing_host_key"},
    "invoke reads or calls it": {"read_chunk_size", "respond", "send_interrupt"},
    "jupyter_client reads it": {"connection_file", "ip", "pgid"},
    "ipywidgets and ipykernel read it": {"disabled", "_reply_subshell_for"},
    "rocrate writes it": {"datePublished", "license"},
    "zipfile writes it": {"compress_type", "create_system"},
    "openpyxl writes it": {"data_type", "freeze_panes"},
    "junitparser writes it": {"system_out"},
    "pytest calls it (mutate_probe.py)": {"pytest_configure", "pytest_runtest_logfinish"},
    "doubles for tests (box/testing.py)": {"RecordingBox", "fail"},
}
"""Reason to names. Only what another library, a file or a template reaches may stand here."""


# --- reading the source -----------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    """'results/store.py'."""
    return path.relative_to(PACKAGE).as_posix()


def is_pure(path: Path) -> bool:
    name = name_of(path)
    return (name.split("/")[0] in PURE_ROOMS and name not in WITH_EFFECTS) or name in PURE_ELSEWHERE


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All of a module, found once: a dozen rules go through it."""
    return tuple(ast.walk(tree))


SOURCES = sorted(PACKAGE.rglob("*.py"))
PURE_SOURCES = [path for path in SOURCES if is_pure(path)]


def against(rule: Callable[[Path], object], paths: Iterable[Path]) -> dict[str, object]:
    """File to what is in it against a rule. One test a rule: a test of each file and rule would be thousands."""
    found = {str(path.relative_to(PACKAGE)): rule(path) for path in paths}
    assert found
    return {name: what for name, what in found.items() if what}


def imports(tree: ast.Module) -> Iterator[str]:
    """The dotted name of everything imported, at any depth: 'a.b' for `import a.b`, 'a.b.c' for `from a.b import c`."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def aliases(tree: ast.Module) -> dict[str, str]:
    """Local name to full name of what is imported: {'np': 'numpy', 'now': 'datetime.datetime.now'}."""
    found: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def full_name(node: ast.expr, known: dict[str, str]) -> str:
    """'numpy.random.default_rng' for `np.random.default_rng`; '' for what is not a plain dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([known.get(node.id, node.id), *reversed(parts)])


def root_name(node: ast.expr) -> str:
    """'np' for `np.random.default_rng`; '' for what is not a plain dotted name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_what_is_against_a_rule_is_named() -> None:
    assert against(lambda path: path.name == "errors.py", SOURCES) == {"core/errors.py": True}


# --- rooms and imports ------------------------------------------------------------------------------------------------


def test_no_import_cycle() -> None:
    modules = {_dotted(path) for path in SOURCES}

    def needs(path: Path) -> set[str]:
        """The modules that are loaded as this one is: what functions import comes later."""
        top = ast.Module(
            body=[node for node in parse(path).body if not isinstance(node, ast.FunctionDef)], type_ignores=[]
        )
        return {name if name in modules else name.rpartition(".")[0] for name in imports(top)} & modules

    graph = {_dotted(path): needs(path) - {_dotted(path)} for path in SOURCES}
    assert list(TopologicalSorter(graph).static_order())


def _dotted(path: Path) -> str:
    return ".".join(("mountlab", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def test_no_room_and_no_module_is_too_large() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in SOURCES}
    assert {name_of(path): n for path, n in lines.items() if n > LARGEST_MODULE} == {}
    rooms = {room: sum(n for path, n in lines.items() if name_of(path).startswith(f"{room}/")) for room in ROOMS}
    assert {room: n for room, n in rooms.items() if n > LARGEST_ROOM} == {}


def test_the_drawing_of_the_rooms_is_the_contract() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    drawing = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert drawing
    rows = [line.split() for line in drawing[1].splitlines()]
    assert [row[0] for row in rows] == list(reversed(ROOMS))
    assert "has 23 folders, called rooms" in text
    assert len(ROOMS) == 23
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(ROOMS)
    pure = [row[0] for row in rows[: next(number for number, row in enumerate(rows) if "┘" in row) + 1]]
    assert set(pure) <= PURE_ROOMS


def test_the_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert set(ROOMS) - folders == set()
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert [name for name in sorted(folders - {*ROOMS, "__pycache__"}) if f"`{name}/`" not in text] == []
    assert not list((ROOT / "tests").glob("test_*.py")), "a test lies in the room of what it tests"


def test_exceptions_to_a_rule_exist() -> None:
    names = {name_of(path) for path in SOURCES}
    assert (WITH_EFFECTS | PURE_ELSEWHERE) - names == set()
    assert [place for place in WRITERS if not any(name.startswith(place) for name in names)] == []


def test_third_parties_stay_in_their_place() -> None:
    def misplaced(path: Path) -> set[str]:
        own = name_of(path)
        return {name for name in imports(parse(path)) if not own.startswith(ONLY_IN.get(name.split(".")[0], ""))}

    assert against(misplaced, SOURCES) == {}


# --- effects ----------------------------------------------------------------------------------------------------------


def effects(tree: ast.Module) -> set[str]:
    """The names in a module that reach outside of it: clocks, randomness, files, processes."""
    known = aliases(tree) | {name: name for name in BUILTIN_EFFECTS}
    named = [node for node in nodes(tree) if isinstance(node, ast.Name | ast.Attribute)]
    used = {full_name(node, known) for node in named if root_name(node) in known} | set(aliases(tree).values())
    calls = [node for node in nodes(tree) if isinstance(node, ast.Call) and not node.args and not node.keywords]
    unseeded = {full_name(call.func, known) for call in calls} & SEEDED
    return {name for name in used if _is_effect(name)} - SEEDED - {"random", "numpy.random"} | unseeded


def _is_effect(name: str) -> bool:
    return any(name == effect or name.startswith(f"{effect}.") for effect in EFFECTS | BUILTIN_EFFECTS)


def writes(tree: ast.Module) -> Iterator[str]:
    """Every call that makes, changes or removes a file of the control machine, with its line."""
    known = aliases(tree)
    for node in nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        name = full_name(node.func, known)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if (
            name in WRITING_CALLS
            or (name.split(".")[0] in WRITING_MODULES and name not in HARMLESS_CALLS)
            or (method in WRITING_METHODS and name.split(".")[0] != "os")
            or (method == "to_csv" and node.args)
            or ((name == "open" or method == "open") and _opens_for_writing(node, 1 if name == "open" else 0))
        ):
            yield f"line {node.lineno}: {name or method}"


def _opens_for_writing(call: ast.Call, position: int) -> bool:
    modes = [*call.args[position : position + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set("wax+") & set(str(mode.value)) for mode in modes)


def test_pure_modules_have_no_effects() -> None:
    assert against(lambda path: effects(parse(path)), PURE_SOURCES) == {}


def test_files_are_written_in_few_places() -> None:
    others = [path for path in SOURCES if not name_of(path).startswith(WRITERS)]
    assert against(lambda path: list(writes(parse(path))), others) == {}


@every_row(
    ("source", "found"),
    [
        ("import time", {"time"}),
        ("from time import monotonic\nmonotonic()", {"time.monotonic"}),
        ("import os.path", {"os"}),
        ("from datetime import datetime\ndatetime.now()", {"datetime.datetime.now"}),
        ("import datetime\ndatetime.date.today()", {"datetime.date.today"}),
        ("import random\nrandom.shuffle([])", {"random.shuffle"}),
        ("import random\nrandom.Random()", {"random.Random"}),
        ("import random\nrandom.Random(7).shuffle([])", set()),
        ("from random import Random\nRandom(seed)", set()),
        ("import numpy as np\nnp.random.normal()", {"numpy.random.normal"}),
        ("import numpy as np\nnp.random.default_rng(7).normal()", set()),
        ("import numpy as np\nnp.random.default_rng()", {"numpy.random.default_rng"}),
        ("print('x')", {"print"}),
        ("open('x')", {"open"}),
        ("select = 1\nselect", set()),
        ("import math\nmath.sqrt(2)\nstatus = {}\nstatus.items()", set()),
    ],
)
def test_effects_are_seen(source: str, found: set[str]) -> None:
    assert effects(ast.parse(source)) == found


@every_row(
    ("source", "count"),
    [
        ("p.write_text('x')", 1),
        ("p.open('w')", 1),
        ("p.open(mode='ab')", 1),
        ("open(p, 'r+')", 1),
        ("from tempfile import mkdtemp\nmkdtemp()", 1),
        ("frame.to_csv(path)", 1),
        ("open(p)\np.open()\nopen(p, 'rb')\np.read_text()\nframe.to_csv()", 0),
        ("from shutil import which\nwhich('fio')", 0),
    ],
)
def test_writes_are_seen(source: str, count: int) -> None:
    assert len(list(writes(ast.parse(source)))) == count


# --- readable code ----------------------------------------------------------------------------------------------------


def test_functions_are_short() -> None:
    def long(path: Path) -> list[str]:
        lengths = [(node.name, length(node)) for node in functions(parse(path))]
        return [f"{name}: {lines} lines" for name, lines in lengths if lines > LONGEST_FUNCTION]

    assert against(long, SOURCES) == {}


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines without the docstring, each statement on one: the formatter's breaks inside a call do not count."""
    bare = copy.copy(function)
    if ast.get_docstring(function) is not None:
        bare.body = function.body[1:] or [ast.Pass()]
    return len(ast.unparse(bare).splitlines())


def test_a_class_name_stands_in_few_modules() -> None:
    """One name, one meaning. Names of types count, too, unless both mean the same; a leading _ makes no other name."""
    assert shared_type_names({name_of(path): parse(path) for path in SOURCES}) == {}


def shared_type_names(modules: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The names of classes and types that more than MOST_MEANINGS modules define, each otherwise."""
    found: dict[str, dict[str, str]] = {}
    for module, tree in modules.items():
        for node in tree.body:
            match node:
                case ast.ClassDef():
                    found.setdefault(node.name.lstrip("_"), {})[module] = module
                case ast.Assign(targets=[ast.Name(id=name)]) if re.fullmatch(r"_?[A-Z][a-z]\w*", name):
                    found.setdefault(name.lstrip("_"), {})[module] = ast.unparse(node.value)
    return {name: sorted(where) for name, where in found.items() if len(set(where.values())) > MOST_MEANINGS}


def test_names_that_several_modules_define_are_seen() -> None:
    texts = {"a": "class Row: pass\nFloats = list[float]", "b": "class _Row: pass\nFloats = list[float]"}
    texts |= {"c": "Row = tuple[str]\nFloats = list[float]", "d": "ROW = 1\ndef row(): pass"}
    assert shared_type_names({name: ast.parse(text) for name, text in texts.items()}) == {"Row": ["a", "b", "c"]}


def test_modules_say_what_they_are() -> None:
    assert against(lambda path: not ast.get_docstring(parse(path)), SOURCES) == {}


def test_public_names_are_explained() -> None:
    def unexplained(path: Path) -> list[str]:
        public = (node for node in parse(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        return [node.name for node in public if not node.name.startswith("_") and not ast.get_docstring(node)]

    # The tree of errors is drawn and explained in the docstring of its module.
    assert against(unexplained, [path for path in PURE_SOURCES if name_of(path) != "core/errors.py"]) == {}


def test_no_error_is_swallowed() -> None:
    """No bare except and no `except Exception`; BaseException only where it is raised again at the end."""
    assert against(lambda path: list(swallowing(parse(path))), SOURCES) == {}


def swallowing(tree: ast.Module) -> Iterator[str]:
    """The lines of handlers that would catch anything, and do not end by raising it, or another error from it (what
    the code of a plug-in raises may be anything)."""
    for handler in (node for node in nodes(tree) if isinstance(node, ast.ExceptHandler)):
        caught = [] if handler.type is None else ast.walk(handler.type)
        names = {node.id for node in caught if isinstance(node, ast.Name)}
        last = handler.body[-1]
        raised_again = isinstance(last, ast.Raise) and last.exc is None
        from_it = isinstance(last, ast.Raise) and isinstance(last.cause, ast.Name) and last.cause.id == handler.name
        anything = ("Exception" in names and not from_it) or ("BaseException" in names and not raised_again)
        if handler.type is None or anything:
            yield f"line {handler.lineno}"


# --- nothing is kept that is never called -----------------------------------------------------------------------------


PLANTED = "def planted(): return 1\n"
"""Read with the library, so that a scan that finds nothing fails."""


def never_called() -> set[str]:
    """The names that neither the library nor a notebook nor the list of public names uses."""
    seen = Vulture()
    seen.scavenge([ROOT / "lib"], exclude=["*/mountlab_dev/site/conf.py"])  # Sphinx reads its names
    notebooks = map(_cells, sorted((ROOT / "notebooks").glob("*.ipynb")))
    for text in (*notebooks, (PACKAGE / "__init__.pyi").read_text(), PLANTED):
        seen.scan(text)
    assert seen.exit_code == 0, "a module or a notebook could not be read"
    return {str(item.name) for item in seen.get_unused_code(min_confidence=60)}


def _cells(notebook: Path) -> str:
    """The code of a notebook. What papermill takes for the type of a parameter is a comment of prose to Python."""
    cells = json.loads(notebook.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return code.replace("# type:", "#")


def test_everything_is_called() -> None:
    """What only its own test calls counts as never called: delete both."""
    others = set().union({"planted"}, *NEVER_CALLED_BY_US.values())
    assert never_called() - (fact_fields() - others) == others


def fact_fields() -> set[str]:
    """What run.json keeps of a box: most of it is read by its key, for the report and to compare runs."""
    parts = [FactPart]
    for part in parts:
        parts += part.__subclasses__()
    return {name for part in parts for name in part.model_fields}


# --- the text of the repository ---------------------------------------------------------------------------------------


def repository_files() -> list[Path]:
    """What is, or is about to be, in git."""
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip(f"not a git checkout: {listing.stderr.strip()}")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def lines_with(pattern: str, *, beside: tuple[str, ...] = ()) -> list[str]:
    """'file:line: text' for each match in the text files of the repository, but for those below `beside`."""
    found = []
    for path in repository_files():
        name = str(path.relative_to(ROOT))
        content = path.read_bytes()
        if b"\0" in content or name.startswith(beside):
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{name}:{number}: {line.strip()[:120]}")
    return found


def test_nothing_is_left_to_do() -> None:
    """Unfinished work belongs into an issue. (One letter of each mark is in brackets, so as not to find this file.)"""
    assert lines_with(r"\b(TOD[O]|FIXM[E]|XX[X])\b", beside=("tests/data/", "results/")) == []


def test_no_path_of_an_authors_machine() -> None:
    assert (
        lines_with(
            rf"{re.escape(str(ROOT))}\b|(?<![\w.])/[w]ork/|/tmp/[w]\b|/home/(?!user\b|you\b|alice\b)\w+/|/[U]sers/\w+/"
        )
        == []
    )


def test_no_package_host_is_named() -> None:
    """Which host packages come from is for the user's own settings to say."""
    hosts = r"pypi\.or[g]|pythonhosted\.or[g]|anaconda\.(or[g]|co[m])|deb\.debian\.or[g]|archive\.ubuntu\.co[m]"
    assert lines_with(rf"{hosts}|--(extra-)?index-ur[l]|\[tool\.uv\.inde[x]|UV_(DEFAULT_)?INDE[X]") == []


def test_effects_exist() -> None:
    """A misspelled name would forbid nothing."""
    assert {name.split(".")[0] for name in EFFECTS} - {"numpy"} <= set(sys.stdlib_module_names)
