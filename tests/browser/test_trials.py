"""Trials, commands and downloads in a real browser: sorted, filtered, saved; by keyboard; without a script."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import PHONE, WIDE, needs_chromium, started, window
from mountlab.report import html, sections
from mountlab.report.page import page as framed
from playwright.sync_api import Browser, Page
from synthetic_report import HOSTILE
from synthetic_run import synthetic_run

pytestmark = [pytest.mark.browser, needs_chromium]

RUN = synthetic_run(hostile=HOSTILE)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with these three parts, beside the raw output of one trial."""
    directory = tmp_path_factory.mktemp("run")
    (directory / "raw" / "t0001").mkdir(parents=True)
    (directory / "raw" / "t0001" / "argv").write_text('["dd"]')
    parts = (sections.trials(RUN), sections.commands(RUN), sections.downloads(RUN))
    body = html.joined(html.heading("A run", level=1), *parts)
    path = directory / "report.html"
    path.write_text(html.with_links_beside(framed(body, title="A run")))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as chromium:
        yield chromium


@contextmanager
def opened(browser: Browser, report: Path, **options: Any) -> Iterator[Page]:
    """The page in a window of its own, offline; what is folded is open."""
    with window(browser, **{"viewport": WIDE, **options}) as context:
        page = context.new_page()
        page.goto(report.as_uri())
        for summary in page.locator("main > details > summary").all():
            summary.click()
        yield page


def shown(page: Page) -> list[str]:
    return page.locator(".narrowed tbody tr:visible th").all_inner_texts()


def column(page: Page, heading: str) -> list[str]:
    heads = page.locator(".narrowed thead th").all_inner_texts()
    place = [text.split("\n")[0].strip() for text in heads].index(heading) + 1
    return page.locator(f".narrowed tbody tr:visible > :nth-child({place})").all_inner_texts()


@pytest.mark.long
def test_trials_are_sorted_by_their_multiple_by_keyboard(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        head = page.locator(".narrowed th", has_text="× mean").first
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        values = [float(text) for text in column(page, "× mean") if text.strip()]
        assert values == sorted(values)
        assert len(values) > 20
        page.keyboard.press("Space")
        assert head.get_attribute("aria-sort") == "descending"


def test_trials_are_filtered_as_one_types_and_stay_so_when_sorted(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        field = page.get_by_role("searchbox", name="Filter the trials")
        field.press_sequentially("EXT4 dd-read warm-up")
        assert page.locator(".narrowed [role=status]").inner_text() == f"2 of {len(RUN.trials)} shown"
        assert set(column(page, "File system")) == {"ext4"}
        found = shown(page)
        page.locator(".narrowed thead").get_by_role("button", name="Trial").click()
        assert sorted(shown(page)) == sorted(found)
        field.fill("")
        assert len(shown(page)) == len(RUN.trials)
        assert page.locator(".narrowed [role=status]").inner_text() == ""


@pytest.mark.long
def test_the_field_comes_before_its_table_by_keyboard(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.get_by_role("searchbox", name="Filter the trials").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.narrowed .scroll')")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.narrowed thead button')")


@pytest.mark.long
def test_without_a_script_there_is_the_plain_table_and_no_dead_field(browser: Browser, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        assert len(shown(page)) == len(RUN.trials)
        assert page.get_by_role("searchbox").count() == page.get_by_role("button").count() == 0


@pytest.mark.long
def test_a_trial_leads_to_its_files(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.locator(".narrowed").get_by_role("link", name="argv").first.click()
        assert page.url == (report.parent / "raw" / "t0001" / "argv").as_uri()


@pytest.mark.long
@pytest.mark.parametrize("java_script_enabled", [True, False], ids=["script", "no script"])
def test_tables_are_saved_from_the_page_itself(java_script_enabled: bool, browser: Browser, report: Path) -> None:
    with opened(browser, report, java_script_enabled=java_script_enabled) as page:
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        for name in ("estimates", "comparisons", "trials", "measurements"):
            link = page.get_by_role("link", name=f"{name}.csv")
            with page.expect_download() as saving:
                link.press("Enter")
            saving.value.save_as(report.parent / saving.value.suggested_filename)
            assert saving.value.suggested_filename == f"{RUN.info['run_id']}-{name}.csv"
        assert page.url == report.as_uri()
        assert complaints == []
    with (report.parent / f"{RUN.info['run_id']}-trials.csv").open() as file:
        assert [row["trial_id"] for row in csv.DictReader(file)] == list(RUN.trials["trial_id"])


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"viewport": PHONE, "color_scheme": "dark"}], ids=["desk", "phone"])
def test_they_are_accessible_and_nothing_but_tables_scrolls_sideways(
    options: dict[str, Any], browser: Browser, report: Path
) -> None:
    with opened(browser, report, **options) as page:
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found] == []
