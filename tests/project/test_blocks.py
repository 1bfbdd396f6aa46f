"""Every code block of README and docs is run, parsed or compared by a test; one that cannot be says why, here."""

from __future__ import annotations

import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from built_pages import built_pages
from mountlab.core.places import SHIPPED
from mountlab.report.terminal import answer_text
from mountlab.results import store
from project import test_docs
from project.test_docs import COVERED_IN_DOCS, DOCS, SCRIPTS, WRITTEN
from project.test_readme import in_file_or_folder
from rows import every_row

ROOT = SHIPPED
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "console")


class Block(NamedTuple):
    """One code block of a page."""

    page: str
    """Below the repository."""
    language: str
    text: str
    indented: bool


def blocks_of(page: str, markdown: str) -> Iterator[Block]:
    for indent, language, text in FENCED.findall(markdown):
        yield Block(page, language, textwrap.dedent(text), bool(indent))


BLOCKS = [block for page in WRITTEN for block in blocks_of(str(page.relative_to(ROOT)), page.read_text())]


def of(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{block.page}: {block.text.splitlines()[0][:40]}")
        for block in BLOCKS
        if block.language in languages
    ]


# --- every block has a test -------------------------------------------------------------------------------------------

OUTPUTS = {
    "any page: $ make demo": ("tests/live/test_demo.py", '"demo", "--yes"'),
    "docs/tutorial.md: trials ": ("tests/live/test_tutorial.py", "in plan, "),
    "docs/troubleshooting.md: ": (
        "tests/project/test_pages.py",
        "def test_a_message_that_is_quoted_is_one_of_the_code",
    ),
}
"""Page and beginning of an output that is shown, to the test that sees it made, and a text in there."""
NOT_COMPARED = {
    "ARCHITECTURE.md: core": "a drawing; tests/project/test_architecture.py compares the rooms with the code",
    "docs/batches.md: db1 |": "progress of three boxes at one moment: no two runs show the same",
    "docs/batches.md: results/batch-<name>": "a drawing of a directory",
    "docs/tutorial.md: workload ": "measured once: its form is compared below, its figures are of that machine",
}
"""Page and beginning of an output that no test can see made, to the reason."""
PYTHON_OF_HOW_TO = ("extend.md", "custom-figures.md")
"""Pages below docs/how-to whose Python test_how_to.py runs, or finds in the files that extend.diff adds."""
PYTHON_RUN_HERE = ("docs/read-a-report.md",)
"""Pages whose Python only reads. What measures or changes a run must not: it would do so in this repository."""
BOUND = {"docs/batches.md": ("mountlab.batch.commands", "run_batch")}
"""Page to a function that would need another machine: its arguments are bound to its parameters instead."""
PYTHON_RUN_ELSEWHERE = {
    "docs/how-to/go-on.md": ("tests/runner/test_extend.py", "go-on.md"),
    "docs/why.md": ("tests/runner/test_explain.py", "why.md"),
    "docs/how-to/by-hand.md": ("tests/live/test_by_hand_live.py", "by-hand.md"),
}
"""Page to the test that runs its Python on a run of its own, and a text in there."""
TOML_OF = {"docs/how-to/extend.md": "docs/example-plugin/pyproject.toml"}
"""Page to the file of which it shows a part."""
SQL_PAGES = ("docs/how-to/years-of-results.md",)
"""tests/results/test_catalog.py asks their queries."""


def is_covered(block: Block) -> bool:
    name = Path(block.page).name
    match block.language:
        case "sh" | "yaml":
            return True  # by the tests below, each of which takes every page
        case "python":
            return name in PYTHON_OF_HOW_TO or block.page in {*PYTHON_RUN_HERE, *BOUND, *PYTHON_RUN_ELSEWHERE}
        case "toml":
            return block.page in TOML_OF
        case "sql":
            return block.page in SQL_PAGES and not block.indented
        case "text" | "console":
            return bool(_shown(block))
    return False


def _shown(block: Block) -> list[str]:
    begins = (f"{block.page}: {block.text}", f"any page: {block.text}")
    return [key for key in {**OUTPUTS, **NOT_COMPARED} if any(each.startswith(key) for each in begins)]


@every_row("block", BLOCKS, ids=[f"{block.page}-{number}" for number, block in enumerate(BLOCKS)])
def test_every_block_has_a_language_and_a_test(block: Block) -> None:
    assert is_covered(block), "no test takes such a block: see the tables of this file"


@every_row(
    "block",
    [
        Block("docs/new.md", "", "make lab\n", False),
        Block("docs/new.md", "toml", "a = 1\n", False),
        Block("docs/new.md", "text", "an output of nothing\n", False),
        Block("docs/new.md", "sql", "SELECT 1\n", False),
        Block("docs/new.md", "diff", "+a\n", False),
        Block("docs/new.md", "python", "import mountlab\n", False),
    ],
)
def test_a_block_without_a_test_is_noticed(block: Block) -> None:
    assert not is_covered(block)


def test_the_tables_name_blocks_and_tests_that_exist() -> None:
    for key in {**OUTPUTS, **NOT_COMPARED}:
        assert any(key in _shown(block) for block in BLOCKS), f"no such block: {key}"
    for key, (place, words) in {**OUTPUTS, **PYTHON_RUN_ELSEWHERE}.items():
        assert in_file_or_folder(place, words), f"{place} does not see {key}"


def test_no_built_page_has_a_block() -> None:
    assert not [page for page, text in built_pages().items() if list(blocks_of(page, text))]


# --- commands ---------------------------------------------------------------------------------------------------------

NOT_RUN = {
    r"useradd .+": "makes a user of the machine",
    r"scp \S+ root@mybox: && ssh root@mybox sh install\.sh": "another machine: test_helper.py installs it here",
    r"ssh -N -L \S+ you@server": "another machine",
}
"""Commands that no test may run, to the reason."""


def commands_of(block: Block) -> list[str]:
    """What is typed in a block of the shell: lines of `sh`, lines after `$ ` of `console`; a backslash joins lines."""
    if any(block.page.endswith(page) and block.text.startswith(begins) for page, begins in SCRIPTS.items()):
        return []
    lines = re.sub(r"\s*\\\n(>)?\s*", " ", block.text).splitlines()
    typed = [line[2:] for line in lines if line.startswith("$ ")] if block.language == "console" else lines
    return [re.sub(r"\s+#.*", "", line).strip() for line in typed if line.strip() and not line.startswith("#")]


@every_row("block", of(*SHELL))
def test_every_command_is_run_by_a_test_or_says_why_not(block: Block) -> None:
    known = [pattern for pattern, *_ in COVERED_IN_DOCS] + list(NOT_RUN)
    assert not [each for each in commands_of(block) if not any(re.fullmatch(pattern, each) for pattern in known)]


def test_the_tests_of_commands_run_them() -> None:
    typed = [each for block in BLOCKS if block.language in SHELL for each in commands_of(block)]
    for pattern, place, words in COVERED_IN_DOCS:
        if any(re.fullmatch(pattern, each) for each in typed):
            assert in_file_or_folder(place, words), f"{place} does not run {pattern}"
    assert not [pattern for pattern in NOT_RUN if not any(re.fullmatch(pattern, each) for each in typed)]


# --- YAML and Python --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [each for each in of("yaml") if each.values[0].indented])
def test_yaml_inside_a_list_is_a_parameter_file_too(block: Block) -> None:
    """What is not indented, test_docs.py takes."""
    assert isinstance(yaml.safe_load(block.text), dict)
    test_docs.test_every_parameter_file_in_the_docs_is_accepted(block.text)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*PYTHON_RUN_HERE, *BOUND])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks one after the other, beside the recorded run."""
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    if page in BOUND:
        _bind(*BOUND[page], monkeypatch)
    namespace: dict[str, Any] = {}
    for block in BLOCKS:
        if (block.page, block.language) == (page, "python"):
            exec(compile(block.text, page, "exec"), namespace)
    assert len(namespace) > 1


def _bind(module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mountlab.batch import store as batches

    real = inspect.signature(getattr(__import__(module, fromlist=[name]), name))

    def bound(*args: Any, **named: Any) -> tuple[Any, Any]:
        real.bind(*args, **named)
        return ROOT, None

    monkeypatch.setattr(f"{module}.{name}", bound)
    monkeypatch.setattr(batches, "load_batch", lambda path: path)


@pytest.mark.slow
def test_the_check_of_a_figure_gives_the_figure_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test_the_python_of_a_page_runs("docs/read-a-report.md", tmp_path, monkeypatch)
    page = (DOCS / "read-a-report.md").read_text()
    (shown,) = re.findall(r"Take `ext4`, `dd-write`: ([\d.]+) GB/s", page)
    said = capsys.readouterr().out.split()
    assert float(said[0]) == pytest.approx(float(shown), abs=0.005)
    assert said[1:] == ["GB/s", "from", "10", "trials"]


@pytest.mark.parametrize("block", of("toml"))
def test_toml_that_is_shown_is_in_its_file(block: Block) -> None:
    whole = tomllib.loads((ROOT / TOML_OF[block.page]).read_text())
    shown = tomllib.loads(block.text)["project"]["entry-points"]
    assert {group: whole["project"]["entry-points"][group] for group in shown} == shown


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_table_of_the_tutorial_has_the_form_of_the_terminal() -> None:
    run = store.load_run(ROOT / "results" / "tour")
    printed = answer_text(run.sweep, run.comparisons, run.caveats).splitlines()
    begins = "docs/tutorial.md: workload "
    (shown,) = (block.text.splitlines() for block in BLOCKS if f"{block.page}: {block.text}".startswith(begins))
    (head,) = (line for line in printed if line.startswith("workload "))
    assert shown[0].split() == head.split()
    (last,) = (line for line in printed if line.startswith("(Intervals"))
    assert re.sub(r"\d+", "N", shown[-1]) == re.sub(r"\d+", "N", last)
