"""One list of dependencies, told three times: pyproject.toml, environment.yml and requirements.lock agree."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from mountlab.core.extras import EXTRAS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rows import every_row

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()

NAMED = {
    name: [Requirement(text) for text in texts] for name, texts in PYPROJECT["project"]["optional-dependencies"].items()
}
(EVERY_EXTRA,) = NAMED.pop("all")
CORE = [Requirement(text) for text in PYPROJECT["project"]["dependencies"]]
RUN = [*CORE, *(requirement for name in EXTRAS for requirement in NAMED[name])]
TEST = NAMED["test"]
BUILD = [Requirement(text) for text in PYPROJECT["dependency-groups"]["build"]]
DOCS = NAMED["docs"]
ALL = RUN + TEST + DOCS + BUILD

ON_CONDA_FORGE = {
    "duckdb": "python-duckdb", "jupyter-client": "jupyter_client", "jupyterlab-execute-time": "jupyterlab_execute_time",
    "lazy-loader": "lazy_loader", "playwright": "playwright-python",
}  # fmt: skip
"""Where conda-forge has another name (there, `playwright` is the Node.js package, and - and _ are not the same)."""
NOT_ON_CONDA_FORGE = {"axe-playwright-python", "roc-validator", "detect-secrets"}
"""No feedstock has these names, or none was found: pip brings them."""
FEEDSTOCKS_CHECKED = ("2026-11-30", "63cb388f")
"""When every name was last looked up among conda-forge's feedstocks, and a digest of the names that were: a name that
is added later has to be looked up, too."""

TESTED_PYTHON = PYPROJECT["project"]["requires-python"].removeprefix(">=")
"""The oldest one, which CI uses. repo2docker reads only `=` or `==` of environment.yml, and else takes its default."""

IMPORTED_AS = {
    "axe-playwright-python": "axe_playwright_python", "detect-secrets": "detect_secrets", "pyyaml": "yaml",
    "jupyter-client": "jupyter_client", "lazy-loader": "lazy_loader", "roc-validator": "rocrate_validator",
}  # fmt: skip
NOT_IMPORTED = {
    "jsonschema": "holds back what JupyterLab, papermill and nbconvert would import two seconds longer",
    "jupyterlab": "mountlab lab starts it",
    "jupyterlab-execute-time": "make lab: shows beside each cell how long it took",
    "furo": "make docs: the theme of the site",
    "myst-parser": "make docs: Sphinx reads Markdown by it",
    "uv": "make env, make lock",
    "mypy": "make check",
    "ruff": "make check",
    "hatchling": "make env: builds the project",
    "import-linter": "make check",
    "nbstripout": "for those who edit notebooks: strips their outputs",
    "pandas-stubs": "types for mypy",
    "types-pyyaml": "types for mypy",
    "types-tqdm": "types for mypy",
    "pytest-cov": "make coverage",
    "pytest-xdist": "pytest -n",
}
"""Direct dependencies that no source file imports, and what they are for."""
IMPORT = re.compile(r"^ *(?:from (\w+)[\w.]* import|import (\w+)[\w.]*(?: as \w+)?(?: *#.*)?$)", re.MULTILINE)
"""A line that imports: parsing all tests would take seconds. Ruff lets no line import two modules (E401)."""


def as_pairs(requirements: list[Requirement]) -> set[tuple[str, str]]:
    """(canonical name, constraint) of each."""
    return {(canonicalize_name(requirement.name), str(requirement.specifier)) for requirement in requirements}


# --- environment.yml --------------------------------------------------------------------------------------------------


def test_conda_has_the_same_list() -> None:
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (by_pip,) = (entry["pip"] for entry in entries if not isinstance(entry, str))
    listed = [Requirement(entry) for entry in entries if isinstance(entry, str)]
    conda = {(requirement.name, str(requirement.specifier)) for requirement in listed}
    wanted = as_pairs(ALL)
    expected = {(ON_CONDA_FORGE.get(name, name), text) for name, text in wanted if name not in NOT_ON_CONDA_FORGE}
    assert conda == expected | {("python", f"=={TESTED_PYTHON}.*"), ("pip", "")}
    assert by_pip[-1] == "--editable ."
    assert as_pairs(list(map(Requirement, by_pip[:-1]))) == {pair for pair in wanted if pair[0] in NOT_ON_CONDA_FORGE}


def test_each_name_was_looked_up_at_conda_forge() -> None:
    names = sorted(name for name, _ in as_pairs(ALL))
    day, digest = FEEDSTOCKS_CHECKED
    found = sha256(" ".join(names).encode()).hexdigest()[:8]
    assert found == digest, f"names changed since {day}: look up the new ones, then put {found} here"


def test_conda_asks_one_channel() -> None:
    assert yaml.safe_load((ROOT / "environment.yml").read_text())["channels"] == ["conda-forge"]


# --- requirements.lock ------------------------------------------------------------------------------------------------


def locked() -> dict[str, list[str]]:
    """Name to the versions pinned for it (more than one where Python versions or systems differ)."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^ \n]+)", LOCK, re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def test_lock_is_of_these_dependencies() -> None:
    """The lock notes which packages pyproject.toml asked for: one added or dropped since then shows."""
    entries = re.split(r"^(?=[A-Za-z])", LOCK, flags=re.MULTILINE)
    direct = {canonicalize_name(entry.split("==")[0]) for entry in entries if "mountlab (pyproject.toml" in entry}
    assert direct == {name for name, _ in as_pairs(ALL)}, "run: make lock"


@every_row("requirement", ALL, ids=lambda requirement: requirement.name)
def test_lock_keeps_the_constraints(requirement: Requirement) -> None:
    versions = locked()[canonicalize_name(requirement.name)]
    assert all(requirement.specifier.contains(version) for version in versions), "run: make lock"


def test_lock_has_exact_versions_and_hashes_only() -> None:
    for entry in re.split(r"^(?=[A-Za-z0-9-])", LOCK, flags=re.MULTILINE)[1:]:
        lines = [line.strip(" \\") for line in entry.splitlines() if not line.lstrip().startswith("#")]
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", lines[0]), lines[0]
        assert lines[1:], f"{lines[0]} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines[1:]), lines[0]


def test_lock_names_no_address_and_no_path() -> None:
    assert LOCK.splitlines()[1].strip() == "#    make lock"
    assert not [line for line in LOCK.splitlines() if "://" in line or re.search(r"(^|\s)[/~.]/?\w+/", line)]


def test_project_is_built_by_what_is_locked() -> None:
    """Else `make env` would fetch what no lock pins."""
    assert set(map(Requirement, PYPROJECT["build-system"]["requires"])) <= set(BUILD)


# --- what is used -----------------------------------------------------------------------------------------------------


@cache
def imported(*folders: str) -> frozenset[str]:
    """Top-level third-party modules imported by the Python files and notebooks below some folders."""
    if len(folders) > 1:
        return frozenset().union(*map(imported, folders))
    names = {one or other for source in sources(ROOT / folders[0]) for one, other in IMPORT.findall(source)}
    own = (
        {path.stem for path in (ROOT / "tests").rglob("*.py")}
        | {path.name for path in (ROOT / "tests").iterdir()}
        | {"mountlab", "mountlab_dev"}
    )
    return frozenset(names - set(sys.stdlib_module_names) - own)


def sources(folder: Path) -> Iterator[str]:
    yield from (path.read_text() for path in folder.rglob("*.py"))
    for notebook in folder.rglob("*.ipynb"):
        cells = json.loads(notebook.read_text())["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def modules(requirements: list[Requirement]) -> set[str]:
    names = {canonicalize_name(requirement.name) for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in names - set(NOT_IMPORTED)}


@pytest.mark.slow
def test_every_import_is_a_direct_dependency_and_every_dependency_is_used() -> None:
    assert imported("lib/mountlab", "notebooks") - modules(RUN) == set()
    assert imported("lib/mountlab_dev") - modules(ALL) == set()
    assert imported("tests") - modules(ALL) == set()
    assert modules(RUN) - imported("lib/mountlab", "lib/mountlab_dev", "notebooks") == set()
    assert modules(TEST) - imported("tests") == set()
    assert set(NOT_IMPORTED) - {name for name, _ in as_pairs(ALL)} == set()


@every_row("extra", EXTRAS)
def test_each_extra_brings_the_modules_that_commands_look_for(extra: str) -> None:
    """In `mountlab.core.extras` are those without which a command cannot work: JupyterLab is started, not imported."""
    assert set(EXTRAS[extra]) - {"jupyterlab"} == modules(NAMED[extra])
    assert ("jupyterlab" in EXTRAS[extra]) == ("jupyterlab" in {requirement.name for requirement in NAMED[extra]})


def test_the_extra_all_brings_every_other() -> None:
    assert EVERY_EXTRA.name == "mountlab"
    assert EVERY_EXTRA.extras == set(EXTRAS)
    assert set(NAMED) - {"test", "docs"} == set(EXTRAS)


def test_no_expression_repeats_a_group_for_good() -> None:
    """Python before 3.11.5, which Debian 12 has, fails to match them (gh-106052); of one character they are right."""
    repeated = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "lib").rglob("*.py"))
        for line in path.read_text().split("\n")
        if repeated.search(line)
    ]
    assert found == []
