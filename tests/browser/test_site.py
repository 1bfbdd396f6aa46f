"""The documentation as a site, in a real browser, from files: its search, its looks, and that it asks no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_pages import site_of_this_code
from chromium import WIDE, needs_chromium, violations, wait_for_first_frame, window
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.browser, needs_chromium, pytest.mark.xdist_group("site")]

KINDS = ("index", "docs/how-to/own-box", "docs/reference/caveats", "notebooks/00_tour", "search")
"""A page of each kind."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_of_this_code(tmp_path_factory)


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
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.long),
        pytest.param(390, "light", marks=pytest.mark.long),
    ],
)
def test_pages_are_accessible_fit_the_window_and_ask_no_network(
    width: int, scheme: str, site: Path, browser: Browser
) -> None:
    with window(browser, viewport={"width": width, "height": 844}, color_scheme=scheme) as context:
        asked: list[str] = []
        said: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        context.on("console", lambda message: said.append(message.text))
        for kind in KINDS:
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
