"""From a run directory to one page: executed, exported, and complete in itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mountlab.core.errors import MountlabError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.report import execute
from mountlab.results import store
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pages import Page
from synthetic_report import executed_here, hostile_report, notebook_with

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
"""Names that look like addresses, and that nobody asks for."""


# --- a whole report ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_report(tmp_path_factory)


@pytest.fixture(scope="module")
def page(made: Path) -> Page:
    return Page(made.read_text())


@pytest.mark.slow
def test_the_report_is_where_it_is_looked_for_small_and_of_this_environment(made: Path) -> None:
    assert made.name == "report.html"
    assert sorted(path.name for path in (made.parent / "notebooks").iterdir()) == ["20_report.ipynb"]
    assert not list(made.parent.glob(".*"))
    assert made.stat().st_size < 1_000_000
    assert "jp-OutputArea" not in made.read_text(), "it has looks of its own"
    # It ran although the kernelspec that Jupyter finds first names an interpreter that does not exist.
    notebook = nbformat.read(made.parent / "notebooks" / "20_report.ipynb", as_version=4)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert notebook.metadata.language_info.version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.slow
def test_nothing_is_loaded_from_anywhere(made: Path, page: Page) -> None:
    assert page.active() == {"script"}
    assert page.tags["script"] == 1, "our own"
    assert page.values("src") == []
    targets = page.values("href") + page.values("xlink:href")
    others = {target for target in targets if not target.startswith(("#", "raw/", "data:text/csv;charset=utf-8,"))}
    assert others == {"data:,"}
    text = made.read_text()
    assert set(re.findall(r"https?://[^\s\"'<>]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"@import|url\((?!#)", text)
    (rules,) = [text for text in page.values("content", "meta") if "-src" in text]
    assert rules.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{sha256_of(script_in(text))}'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def script_in(text: str) -> str:
    return text[text.index("<script>") + len("<script>") : text.index("</script>")]


def sha256_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.slow
def test_hostile_text_stays_text(made: Path, page: Page) -> None:
    assert page.active() == {"script"}
    assert page.tags["script"] == 1, "our own"
    assert made.read_text().count("&lt;script&gt;document.title=") > 10


@pytest.mark.long
def test_hostile_text_in_every_field_of_a_run_stays_text(tmp_path: Path) -> None:
    """Of the recorded run: every text of its facts, versions, prose, figures of others and trials. (What would be the
    name of a directory is refused: test_hostile_runs.)"""
    path = tmp_path / "run"
    shutil.copytree(SHIPPED / "tests" / "data" / "earlier_run", path)
    info = json.loads((path / "run.json").read_text())
    fields = ("facts", "versions", "published", "git_commit", "mountlab_version")
    asked = {**info["parameters"], "question": EVIL, "expectation": EVIL}
    changed = {key: hostile(info[key]) for key in fields} | {"parameters": asked, "left_out": {EVIL: EVIL}}
    (path / "run.json").write_text(json.dumps({**info, **changed, "status": EVIL}))
    lines = [json.loads(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    for line in lines[-3:]:
        line |= {"status": "failed", "reason": EVIL}
    (path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for file in path.glob("raw/*/evidence.txt"):
        file.write_text(file.read_text().replace("noatime", f"noatime{EVIL.replace(' ', '')}"))
    executed = executed_here(execute.NOTEBOOK, {"run": "it"}, {"it": store.load_run(path)}, tmp_path)
    text = execute.export(executed, title=EVIL)
    page = Page(text)
    assert page.active() == {"script"}
    assert page.tags["script"] == page.tags["style"] == text.partition("</head>")[0].count("<title>") == 1
    assert page.crossed == page.open == []
    assert page.words.count("<script>alert(1)</script>") > 40
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069]", text)


EVIL = '</title></style></script><script>alert(1)</script><svg onload=alert(1)>" onclick=alert(1) \u202e=HYPERLINK("x")'


def hostile(value: Any) -> Any:
    """The value with markup after every string in it, keys too."""
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return f"{value}{EVIL}" if isinstance(value, str) else value


@pytest.mark.slow
def test_the_page_is_well_formed_and_its_headings_are_in_order(page: Page) -> None:
    assert page.crossed == []
    assert page.open == []
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {target[1:] for target in page.values("href") if target.startswith("#")} <= set(ids)
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert page.headings[0][1].startswith("How much faster than the disk is a RAM disk")


@pytest.mark.slow
def test_every_part_is_there(page: Page) -> None:
    assert [f"{'#' * level} {text}" for level, text in page.headings if level in (2, 3)] == [
        "## Caveats",
        "## Options in effect",
        "### Left out",
        "## Results",
        "### Results by metric",
        "### Latencies",
        "## Trials",
        "### Trials in run order",
        "### Distribution of trials",
        "### Time series inside trials",
        "### All trials",
        "### Downloads",
        "## Comparison with published figures",
        "## Analysis of variance",
        "## Appendix: reproduction",
        "### Parameters",
        "### Commands",
        "### Why each cell stopped",
        "### The box",
        "### Versions and seed",
        "### Bytes of the tool, bytes of the device",
        "### Memory used as filled",
        "### As bars",
        "### Not in this report",
    ]


@pytest.mark.slow
def test_it_can_be_read_without_seeing_it(page: Page, made: Path) -> None:
    head = made.read_text().partition("</head>")[0]
    assert ("html", "lang", "en") in page.attributes
    assert page.tags["main"] == head.count("<title>") == 1
    assert page.values("role", "svg") == ["img"] * page.tags["svg"]
    assert all(len(text) > 40 for text in page.values("aria-label", "svg"))
    assert page.tags["table"] == page.tags["caption"]
    assert set(page.values("scope", "th")) == {"col", "row", "rowgroup"}
    assert len(page.values("scope", "th")) == page.tags["th"]


# --- what can go wrong ------------------------------------------------------------------------------------------------


def test_no_run_no_report(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such run"):
        execute.write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run_directory(made: Path, tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text((made.parent / "run.json").read_text())
    (tmp_path / "report.html").write_text("the report of yesterday")
    return tmp_path


@pytest.mark.slow
def test_a_cell_that_fails_leaves_no_half_report(run_directory: Path) -> None:
    notebook = notebook_with(run_directory, "the_run = [][7]")
    with pytest.raises(MountlabError) as caught:
        execute.write_report(run_directory, notebook=notebook)
    text = str(caught.value)
    assert "the report could not be made: a cell of its notebook failed" in text
    assert "the_run = [][7]" in text
    assert "IndexError: list index out of range" in text
    assert "20_report.failed.ipynb, which holds the traceback" in text
    assert (run_directory / "report.html").read_text() == "the report of yesterday"
    assert [path.name for path in (run_directory / "notebooks").iterdir()] == ["20_report.failed.ipynb"]


@pytest.mark.slow
def test_a_kernel_that_dies_leaves_no_half_report(run_directory: Path) -> None:
    notebook = notebook_with(run_directory, "import os; os._exit(3)")
    with pytest.raises(MountlabError, match="the notebook did not come to its end"):
        execute.write_report(run_directory, notebook=notebook)
    assert (run_directory / "report.html").read_text() == "the report of yesterday"
    assert list((run_directory / "notebooks").iterdir()) == []


# --- the template -----------------------------------------------------------------------------------------------------


def exported(tmp_path: Path, *cells: nbformat.NotebookNode) -> str:
    path = tmp_path / "n.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return execute.export(path, title="a < b")


@pytest.mark.slow
def test_code_is_there_and_hidden_until_asked_for(tmp_path: Path) -> None:
    text = exported(tmp_path, new_code_cell("1 < 2"))
    assert '<pre class="source" tabindex="0"><code>1 &lt; 2</code></pre>' in text
    assert ".source { display: none; }" in text
    assert '<input type="checkbox" id="show-code"><label for="show-code">Show code</label>' in text


def test_outputs_of_all_kinds(tmp_path: Path) -> None:
    html = new_output("execute_result", {"text/html": "<p>kept</p>", "text/plain": "not shown"})
    plain = new_output("execute_result", {"text/plain": "a < b"})
    said, warned = new_output("stream", name="stdout", text="x < y"), new_output("stream", name="stderr", text="warned")
    text = exported(tmp_path, new_code_cell("f()", outputs=[html, plain, said, warned]))
    assert "<p>kept</p>" in text
    assert '<pre tabindex="0">a &lt; b</pre>' in text
    assert '<pre tabindex="0">x &lt; y</pre>' in text
    assert "not shown" not in text
    assert "warned" not in text, "warnings stay in the notebook"


def test_cells_for_the_notebook_only_are_left_out(tmp_path: Path) -> None:
    mine = new_markdown_cell("## Shown")
    other = new_markdown_cell("# Not shown", metadata={"tags": ["notebook-only"]})
    text = exported(tmp_path, mine, other)
    assert '<h2 id="Shown">Shown</h2>' in text
    assert "Not shown" not in text


def test_html_in_markdown_and_in_the_title_is_text(tmp_path: Path) -> None:
    assert "<title>a &lt; b</title>" in exported(tmp_path)
    assert "<script>alert" not in exported(tmp_path, new_markdown_cell("<script>alert(1)</script>"))


def test_headings_have_ids_of_their_own_and_make_the_contents(tmp_path: Path) -> None:
    headings = ["# Why?", "## The answer", "## The answer", '## a "b" < c', "## report"]
    page = Page(exported(tmp_path, *map(new_markdown_cell, headings)))
    ids = ["Why", "The-answer", "The-answer-2", "a-b-c", "report-2"]
    assert page.values("id", "h1") + page.values("id", "h2") == ids
    assert page.values("href", "a") == ["#report", *(f"#{each}" for each in ids)]
    assert page.tags["nav"] == 1
    short = Page(exported(tmp_path, new_markdown_cell("# Why?"), new_markdown_cell("## Because")))
    assert short.tags["nav"] == 0


def test_writing_is_never_turned_around(tmp_path: Path) -> None:
    said = new_output("stream", name="stdout", text="a\u202eb")
    assert "a[U+202E]b" in exported(tmp_path, new_code_cell("f('\u2066')", outputs=[said]))
    assert not re.search(
        r"[\u202a-\u202e\u2066-\u2069]", exported(tmp_path, new_code_cell("f('\u2066')", outputs=[said]))
    )
