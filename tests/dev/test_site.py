"""The site that `make docs` builds: every page is in it and in its navigation, and what leads nowhere is an error."""

from __future__ import annotations

import inspect
import re
import subprocess
import zlib
from collections.abc import Collection
from pathlib import Path

import mountlab
import pytest
from built_pages import built_pages, site_of_this_code
from mountlab.core.places import SHIPPED
from mountlab.results import paths
from mountlab_dev.__main__ import main
from mountlab_dev.site import build
from mountlab_dev.site.notebooks import NEEDS, PARAMETERS, executed, markdown
from mountlab_dev.site.stage import sections, written
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rows import every_row

pytestmark = [pytest.mark.xdist_group("site")]

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


# --- the site ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_page_is_in_the_site_and_in_its_navigation(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a warning: else it would not have been built."""
    html = site_of_this_code(tmp_path_factory)
    made = {path.relative_to(html).as_posix() for path in html.rglob("*.html") if "_static" not in path.parts}
    notebooks = {f"notebooks/{path.stem}.html" for path in paths.NOTEBOOKS.glob("*.ipynb")}
    pages = {f"{name.removesuffix('.md')}.html" for name in [*written(), *built_pages()]} - {"README.html"}
    assert made == pages | notebooks | {"index.html", "search.html", "genindex.html"}
    home = (html / "index.html").read_text()
    tree = home.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert pages | notebooks <= set(re.findall(r'href="([^"#]+)"', tree))


@pytest.mark.slow
def test_other_sites_can_link_to_every_public_function_and_class(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    inventory = (site_of_this_code(tmp_path_factory) / "objects.inv").read_bytes().split(b"\n", 4)[4]
    listed = dict(re.findall(r"^mountlab\.(\w+) py:(\w+) ", zlib.decompress(inventory).decode(), re.MULTILINE))
    public = {name: inspect.unwrap(getattr(mountlab, name)) for name in mountlab.__all__}
    assert listed == {
        name: "class" if inspect.isclass(what) else "function"
        for name, what in public.items()
        if not inspect.ismodule(what)
    }


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
