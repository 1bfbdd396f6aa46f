"""The rules of the design that a reader should be able to rely on, checked on the source itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lib" / "mountlab"

# --- the table: which module may import which -------------------------------------------------------------------------

BASE = {"text", "errors", "units", "model", "seeds"}
CORE = {
    "containment", "evidence", "counters", "memory_use", "options", "filesystems", "effect", "tools", "logs", "stats",
    "design", "helper",
}  # fmt: skip
UPPER = {
    "filesystem_params", "safe_yaml", "precondition", "until_params", "workload_params", "params", "stopping",
    "foreign", "read_back", "permanent", "checks", "plan", "plan_clients",
    "planview", "analysis", "words", "terminal", "html",
    "outline", "page", "plots", "sections",
    "looks", "live_view", "run_view", "import_claims", "import_levels", "import_names", "import_params", "same_cells",
    "stated_facts", "export", "pilot", "pilot_view", "compare_runs",
    "compare_view", "run_ratios", "compare_many", "compare_many_view", "index_view", "calibrate", "claims",
    "batch_params", "batch_view", "batch_queue", "batch_board", "ranks", "fitness_view",
    "outcome", "identities", "bundle", "bundle_view", "crate", "paper", "figures", "glossary", "reference", "gate",
    "gate_view", "as_json", "history", "history_text", "history_view", "across", "across_view", "fact_words",
}  # fmt: skip
PURE = BASE | CORE | UPPER | {"known_hosts"}
BOX = {
    "box", "facts", "care", "device_claim", "survey", "scratch_links", "lock", "roots", "boxes", "steady", "resident",
    "steps",
}  # fmt: skip
BATCH = {"batch_store", "batch_plan", "batch_item", "batch_work", "batch_progress"}
SHELL = {"disk", "journal", "hold", "store", "ending", "listing", "progress", "live", "clients", "runner", "report"}

MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "errors": {"text"},
    "seeds": set(),
    "units": {"errors"},
    "model": {"errors", "units"},
    "containment": {"errors"},
    "evidence": BASE,
    "counters": BASE | {"evidence"},
    "memory_use": BASE | {"evidence"},
    "options": BASE,
    "filesystems": BASE | {"evidence", "options"},
    "effect": BASE | {"evidence", "filesystems"},
    "tools": BASE | {"options"},
    "logs": BASE | {"options", "tools"},
    "stats": BASE,
    "design": BASE,
    "helper": BASE,
    **dict.fromkeys(UPPER, PURE),
    "known_hosts": set(),
    "hostkeys": BASE | {"known_hosts"},
    "box": BASE | {"tools", "filesystems", "hostkeys", "helper"},
    **dict.fromkeys(
        BOX - {"box"}, BASE | {"containment", "evidence", "tools", "filesystems", "helper", "process"} | BOX
    ),
    "parsing": BASE | {"tools"},
    "audit": {"errors"},
    "plain_files": {"errors", "disk"},
    "disk": {"errors"},
    "chain": set(),
    "journal": BASE | {"chain", "disk"},
    "raw_sums": {"bundle", "chain", "disk", "errors"},
    "stamp": {"disk"},
    "derived": {"disk", "errors", "stamp"},
    "accept": {"chain", "disk", "journal", "raw_sums", "store"},
    "seal_again": {"bundle", "chain", "disk", "journal", "raw_sums"},
    "process": set(),
    "hold": {"errors", "disk", "process"},
    "store": PURE | {"chain", "derived", "disk", "journal", "hold", "parsing", "plain_files", "raw_sums", "stamp"},
    "ending": PURE | {"store", "report"},
    "progress": PURE,
    "live": PURE | {"store", "progress"},
    "clients": PURE | BOX,
    "runner": PURE | BOX | {"store", "progress", "parsing", "clients"},
    "kernels": BASE,
    "listing": PURE | {"derived", "store"},
    "bench_catalog": PURE | {"chain", "derived", "store", "stamp", "years"},
    "catalog": BASE | {"analysis", "chain", "derived", "disk", "hold", "journal", "stamp", "store", "tools", "listing"},
    "years": PURE | {"catalog", "store"},
    "chronicle": PURE | {"disk", "store", "report", "years"},
    "signals": set(),
    "report": PURE | {"disk", "store", "hold", "listing", "kernels", "plain_files", "signals"},
    "workflow": PURE | BOX | SHELL,
    "__init__": PURE | BOX | SHELL | {"workflow", "notebook", "pickers"},
    "demo": PURE | BOX | SHELL | {"workflow"},
    "notebook": PURE | BOX | SHELL | {"workflow", "batch", "everywhere"},
    "bench": PURE | BOX | SHELL | {"workflow", "parsing", "bench_catalog"},
    "pickers": PURE | {"store", "live"},
    "lab": {"errors", "store"},
    "batch_store": PURE | {"disk", "journal", "hold", "store"},
    "batch_plan": PURE | {"store", "workflow", "batch_store"},
    "batch_item": PURE | {"store", "report", "kernels", "batch_store"},
    "batch_work": PURE | {"store", "batch_store", "batch_plan", "batch_item"},
    "batch_progress": PURE | {"store", "live", "batch_store"},
    "cluster": PURE,
    "batch_many": PURE | {"store", "cluster", "signals", *BATCH},
    "everywhere": PURE | BOX | SHELL | {"workflow", "batch_store"},
    "batch": PURE | {"store", "report", *BATCH, "batch_many", "everywhere"},
    "fitness": PURE | BOX | {"store"},
    "importer": PURE | {"facts", "store"},
    "reproduce": PURE | SHELL | {"workflow"},
    "publish": PURE | SHELL | {"box", "reproduce", "seal_again"},
    "verbs": PURE
    | BOX
    | SHELL
    | {"workflow", "demo", "bench", "importer", "lab", "batch", "batch_store", "publish", "reproduce", "__init__"}
    | {"accept", "audit", "catalog", "years", "chronicle", "everywhere"},
    "__main__": {"errors", "signals", "text", "verbs"},
}
"""A package (filesystems, tools, boxes, ...) counts as one module: inside, it may import itself."""

ONLY_IN = {
    "fabric": {"box", "boxes", "bench"},
    "invoke": {"box", "boxes"},
    "paramiko": {"box", "boxes", "hostkeys"},
    "distributed": {"cluster"},
    "dask": {"cluster"},
    "papermill": {"report"},
    "nbconvert": {"report"},
    "matplotlib": {"plots"},
    "seaborn": {"plots"},
    "duckdb": {"catalog"},
    "junitparser": {"gate_view"},
}
WRITERS = {
    "disk", "hold", "store", "report", "boxes", "batch_store", "publish", "reproduce", "catalog", "chronicle",
    "bench_catalog",
}  # fmt: skip

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


# --- reading the source -----------------------------------------------------------------------------------------------


def module_of(path: Path) -> str:
    """'store' for lib/mountlab/store.py, 'tools' for everything below lib/mountlab/tools/."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


SOURCES = sorted(PACKAGE.rglob("*.py"))
PURE_SOURCES = [path for path in SOURCES if module_of(path) in PURE]


def against(rule: Callable[[Path], object], paths: Iterable[Path]) -> dict[str, object]:
    """File to what is in it against a rule. One test a rule: a test of each file and rule would be thousands."""
    found = {str(path.relative_to(PACKAGE)): rule(path) for path in paths}
    assert found
    return {name: what for name, what in found.items() if what}


def imports(tree: ast.Module) -> Iterator[str]:
    """The dotted name of everything imported, at any depth: 'a.b' for `import a.b`, 'a.b.c' for `from a.b import c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def internal_imports(tree: ast.Module) -> set[str]:
    """The modules of mountlab (keys of MAY_IMPORT) that are imported; '__init__' for a name of the package itself."""
    names = {
        name.split(".")[1] if "." in name else "__init__" for name in imports(tree) if name.split(".")[0] == "mountlab"
    }
    known = {module_of(path) for path in SOURCES}
    return {name if name in known else "__init__" for name in names}


def aliases(tree: ast.Module) -> dict[str, str]:
    """Local name to full name of what is imported: {'np': 'numpy', 'now': 'datetime.datetime.now'}."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
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
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_what_is_against_a_rule_is_named() -> None:
    assert against(lambda path: path.name == "errors.py", SOURCES) == {"errors.py": True}


# --- imports ----------------------------------------------------------------------------------------------------------


def test_every_module_is_in_the_table() -> None:
    unknown = {module_of(path) for path in SOURCES} - set(MAY_IMPORT)
    assert not unknown, "a new module: give it a line in MAY_IMPORT (and in DESIGN, where it is a layer)"


def test_imports_run_one_way() -> None:
    def forbidden(path: Path) -> set[str]:
        module = module_of(path)
        return internal_imports(parse(path)) - MAY_IMPORT.get(module, set()) - {module}

    assert against(forbidden, SOURCES) == {}, "MAY_IMPORT says what each may import"


def test_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        graph.setdefault(module_of(path), set()).update(internal_imports(parse(path)) - {module_of(path)})
    assert list(TopologicalSorter(graph).static_order())


def test_third_parties_stay_in_their_place() -> None:
    def misplaced(path: Path) -> set[str]:
        own = module_of(path)
        return {name for name in imports(parse(path)) if own not in ONLY_IN.get(name.split(".")[0], {own})}

    assert against(misplaced, SOURCES) == {}


# --- effects ----------------------------------------------------------------------------------------------------------


def effects(tree: ast.Module) -> set[str]:
    """The names in a module that reach outside of it: clocks, randomness, files, processes."""
    known = aliases(tree) | {name: name for name in BUILTIN_EFFECTS}
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    used = {full_name(node, known) for node in named if root_name(node) in known} | set(aliases(tree).values())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and not node.args and not node.keywords]
    unseeded = {full_name(call.func, known) for call in calls} & SEEDED
    return {name for name in used if _is_effect(name)} - SEEDED - {"random", "numpy.random"} | unseeded


def _is_effect(name: str) -> bool:
    return any(name == effect or name.startswith(f"{effect}.") for effect in EFFECTS | BUILTIN_EFFECTS)


def writes(tree: ast.Module) -> Iterator[str]:
    """Every call that makes, changes or removes a file of the control machine, with its line."""
    known = aliases(tree)
    for node in ast.walk(tree):
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
    others = [path for path in SOURCES if module_of(path) not in WRITERS]
    assert against(lambda path: list(writes(parse(path))), others) == {}


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    """Lines from `def` to the end, without the docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def test_modules_say_what_they_are() -> None:
    assert against(lambda path: not ast.get_docstring(parse(path)), SOURCES) == {}


def test_public_names_are_explained() -> None:
    def unexplained(path: Path) -> list[str]:
        public = (node for node in parse(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        return [node.name for node in public if not node.name.startswith("_") and not ast.get_docstring(node)]

    # The tree of errors is drawn and explained in the docstring of its module.
    assert against(unexplained, [path for path in PURE_SOURCES if module_of(path) != "errors"]) == {}


def test_no_error_is_swallowed() -> None:
    """No bare except and no `except Exception`; BaseException only where it is raised again at the end."""
    assert against(lambda path: list(swallowing(parse(path))), SOURCES) == {}


def swallowing(tree: ast.Module) -> Iterator[str]:
    """The lines of handlers that would catch anything."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        caught = [] if handler.type is None else ast.walk(handler.type)
        names = {node.id for node in caught if isinstance(node, ast.Name)}
        raised_again = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
        if handler.type is None or "Exception" in names or ("BaseException" in names and not raised_again):
            yield f"line {handler.lineno}"


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
