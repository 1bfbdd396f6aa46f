"""The site that `make docs` builds: its pages, and in a real browser, from files, its search, its looks, and that it
asks no network."""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import mountlab
import pytest
from built_pages import built_pages
from chromium import WIDE, needs_chromium, violations, wait_for_first_frame, window
from mountlab.results import paths
from mountlab_dev.site.build import build
from mountlab_dev.site.stage import written
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.browser, needs_chromium]

EXECUTED = "45_compare_filesystems"
KINDS = ("index", "docs/how-to/own-box", "docs/reference/glossary", f"notebooks/{EXECUTED}", "search")
"""A page of each kind."""
LARGE = "docs/reference/caveats"
"""The page with the most elements: axe takes as long for it as for three others."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site's pages, with one notebook executed."""
    directory = tmp_path_factory.mktemp("site")
    assert build(directory, [EXECUTED]) == 0, "Sphinx's warnings are above"
    return directory / "html"


def test_every_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    """Without a warning: else it would not have been built."""
    made = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}
    notebooks = {f"notebooks/{path.stem}.html" for path in paths.NOTEBOOKS.glob("*.ipynb")}
    pages = {f"{name.removesuffix('.md')}.html" for name in [*written(), *built_pages()]} - {"README.html"}
    assert made == pages | notebooks | {"index.html", "search.html", "genindex.html"}
    home = (site / "index.html").read_text()
    tree = home.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert pages | notebooks <= set(re.findall(r'href="([^"#]+)"', tree))


def test_other_sites_can_link_to_every_public_function_and_class(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    listed = dict(re.findall(r"^mountlab\.(\w+) py:(\w+) ", zlib.decompress(inventory).decode(), re.MULTILINE))
    public = {name: inspect.unwrap(getattr(mountlab, name)) for name in mountlab.__all__}
    assert listed == {
        name: "class" if inspect.isclass(what) else "function"
        for name, what in public.items()
        if not inspect.ismodule(what)
    }


def test_the_search_finds_pages_without_a_server(site: Path, browser: Browser) -> None:
    with window(browser, viewport=WIDE) as context:
        page = context.new_page()
        page.goto((site / "index.html").as_uri())
        search = page.get_by_role("textbox", name="Search")
        search.fill("cold cache")
        search.press("Enter")
        found = page.locator("#search-results li a")
        expect(found.filter(has_text="Glossary")).to_be_visible()
        found.filter(has_text="Glossary").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Glossary")
        assert page.url.startswith((site / "docs/reference/glossary.html").as_uri())


@pytest.mark.parametrize(
    ("width", "scheme", "kinds"),
    [
        pytest.param(390, "dark", KINDS, id="390-dark"),
        pytest.param(390, "dark", [LARGE], marks=pytest.mark.long, id="390-dark-large"),
        pytest.param(390, "light", [*KINDS, LARGE], marks=pytest.mark.long, id="390-light"),
        pytest.param(1280, "dark", [*KINDS, LARGE], marks=pytest.mark.long, id="1280-dark"),
        pytest.param(1280, "light", [*KINDS, LARGE], marks=pytest.mark.long, id="1280-light"),
    ],
)
def test_pages_are_accessible_fit_the_window_and_ask_no_network(
    width: int, scheme: str, kinds: Sequence[str], site: Path, browser: Browser
) -> None:
    with window(browser, viewport={"width": width, "height": 844}, color_scheme=scheme) as context:
        asked: list[str] = []
        said: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        context.on("console", lambda message: said.append(message.text))
        for kind in kinds:
            page = context.new_page()
            page.goto((site / f"{kind}.html").as_uri() + ("?q=cold+cache" if kind == "search" else ""))
            wait_for_first_frame(page)
            if kind == "search":
                expect(page.locator("#search-results li").first).to_be_visible()
            assert said == [], kind
            assert violations(page) == [], kind
            assert page.evaluate("document.documentElement.scrollWidth") <= width, kind
            page.close()
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
