"""The site that `make docs` builds: what leads nowhere is an error; tests/browser/test_site.py has its pages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest
from mountlab.core.places import SHIPPED
from mountlab.results import paths
from mountlab_dev.__main__ import main
from mountlab_dev.site import build
from mountlab_dev.site.notebooks import NEEDS, PARAMETERS, executed, markdown
from mountlab_dev.site.stage import sections
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rows import every_row

INDEX = "# Pages\n\n## Learn\n\n- [1](one.md)\n- [2](two.md), [1](one.md) again\n\n## Look up\n\n[Home](../README.md)\n"
SMALL = {
    "README.md": "# Home\n\n[All](docs/README.md), [a part](docs/one.md#a-part)\n",
    "docs/README.md": INDEX,
    "docs/one.md": "# One\n\n## A part\n\n[Home](../README.md), [folder](how-to), `x`\n",
    "docs/two.md": "# Two\n\n[A sweep](../params/sweeps/tour.yml)\n",
}


# --- staging ----------------------------------------------------------------------------------------------------------


def test_the_navigation_is_the_list_of_pages_each_in_its_first_place() -> None:
    assert sections(INDEX) == {"Learn": ["docs/one.md", "docs/two.md"], "Look up": []}


def test_a_notebook_becomes_text_code_and_what_it_shows() -> None:
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# Question"),
            new_markdown_cell("Why."),
            new_code_cell(
                "show()",
                outputs=[
                    new_output("stream", name="stdout", text="said\n"),
                    new_output("display_data", data={"text/html": "<b>bold</b>", "text/plain": "bold"}),
                    new_output("execute_result", data={"text/plain": "3"}),
                ],
            ),
        ]
    )
    assert markdown(notebook, "A note.") == (
        "# Question\n\nA note.\n\nWhy.\n\n``````python\nshow()\n``````\n\n``````text\nsaid\n``````\n\n"
        '``````{raw} html\n<div class="jp-OutputArea"><b>bold</b></div>\n``````\n\n``````text\n3\n``````\n'
    )


def test_every_notebook_is_executed_or_says_what_it_needs() -> None:
    assert sorted([*PARAMETERS, *NEEDS]) == sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.long
def test_a_notebook_is_executed_once_and_beside_copies_of_the_runs(tmp_path: Path) -> None:
    status = ["git", "-C", str(SHIPPED), "status", "--porcelain", "results", "notebooks"]
    before = subprocess.run(status, capture_output=True, check=True).stdout
    notebook = paths.NOTEBOOKS / "00_tour.ipynb"
    made = executed(notebook, tmp_path)
    assert "as fast as ext4" in made.read_text()
    assert str(tmp_path) not in made.read_text()
    time = made.stat().st_mtime_ns
    assert executed(notebook, tmp_path) == made
    assert made.stat().st_mtime_ns == time
    assert subprocess.run(status, capture_output=True, check=True).stdout == before


# --- a small site -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_links_lead_to_pages_and_files_and_a_folder_is_words(tmp_path: Path) -> None:
    assert build.render(SMALL, tmp_path) == 0
    html = tmp_path / "html"
    assert 'href="docs/one.html#a-part"' in (html / "index.html").read_text()
    one = (html / "docs" / "one.html").read_text()
    assert 'href="../index.html"' in one
    assert ", folder, <code" in one
    (download,) = re.findall(r'href="(\S*tour\.yml)"', (html / "docs" / "two.html").read_text())
    assert (html / "docs" / download).read_text() == (paths.PARAMS / "sweeps" / "tour.yml").read_text()


@pytest.mark.slow
@every_row(
    ("changed", "said"),
    [
        ({"docs/lost.md": "# Lost\n"}, "lost.md: WARNING: document isn't included in any toctree"),
        (
            {"docs/two.md": "# Two\n\n[Part](one.md#gone)\n"},
            "two.md:3: WARNING: local id not found",
        ),
    ],
)
def test_a_page_in_no_list_and_a_link_to_nowhere_are_errors(
    changed: dict[str, str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert build.render({**SMALL, **changed}, tmp_path / said[:8]) == 1
    assert said in capfd.readouterr().err


# --- the verb ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_verb_says_where_the_site_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Collection[str]] = []

    def built(*, execute: Collection[str]) -> int:
        asked.append(execute)
        return len(asked) - 1

    monkeypatch.setattr(build, "build", built)
    assert main(["docs"]) == 0
    assert capsys.readouterr().out == "written: docs/_build/html/index.html\n"
    assert main(["docs", "--unexecuted"]) == 1
    assert capsys.readouterr().out == ""
    assert asked == [PARAMETERS, ()]
