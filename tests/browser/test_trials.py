"""Trials, commands and downloads in a real browser: sorted, filtered, saved; by keyboard; without a script."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from chromium import PHONE, WIDE, needs_chromium, opened, violations
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
def on_a_desk(browser: Browser, report: Path) -> Iterator[Page]:
    """Opened once: what it takes is mostly that."""
    with unfolded(browser, report, color_scheme="light") as page:
        yield page


@pytest.fixture
def desk(on_a_desk: Page) -> Page:
    """The page in a wide light window, with all trials."""
    on_a_desk.set_viewport_size(WIDE)  # type: ignore[arg-type]
    on_a_desk.emulate_media(color_scheme="light")
    on_a_desk.get_by_role("searchbox", name="Filter the trials").fill("")
    return on_a_desk


@pytest.fixture(scope="module")
def plain(browser: Browser, report: Path) -> Iterator[Page]:
    """Opened once, without a script."""
    with unfolded(browser, report, java_script_enabled=False) as page:
        yield page


@contextmanager
def unfolded(browser: Browser, report: Path, **options: Any) -> Iterator[Page]:
    """The page in a window of its own; what is folded is open."""
    with opened(browser, report, **options) as page:
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
def test_trials_are_sorted_by_their_multiple_by_keyboard(desk: Page) -> None:
    head = desk.locator(".narrowed th", has_text="× mean").first
    head.get_by_role("button").focus()
    desk.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    values = [float(text) for text in column(desk, "× mean") if text.strip()]
    assert values == sorted(values)
    assert len(values) > 20
    desk.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"


def test_trials_are_filtered_as_one_types_and_stay_so_when_sorted(desk: Page) -> None:
    field = desk.get_by_role("searchbox", name="Filter the trials")
    field.press_sequentially("EXT4 dd-read warm-up")
    assert desk.locator(".narrowed [role=status]").inner_text() == f"2 of {len(RUN.trials)} shown"
    assert set(column(desk, "File system")) == {"ext4"}
    found = shown(desk)
    desk.locator(".narrowed thead").get_by_role("button", name="Trial").click()
    assert sorted(shown(desk)) == sorted(found)
    field.fill("")
    assert len(shown(desk)) == len(RUN.trials)
    assert desk.locator(".narrowed [role=status]").inner_text() == ""


@pytest.mark.long
def test_the_field_comes_before_its_table_by_keyboard(desk: Page) -> None:
    desk.get_by_role("searchbox", name="Filter the trials").focus()
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.matches('.narrowed .scroll')")
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.matches('.narrowed thead button')")


@pytest.mark.long
def test_without_a_script_there_is_the_plain_table_and_no_dead_field(plain: Page) -> None:
    assert len(shown(plain)) == len(RUN.trials)
    assert plain.get_by_role("searchbox").count() == plain.get_by_role("button").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("page", ["desk", "plain"], ids=["script", "no script"])
def test_tables_are_saved_from_the_page_itself(page: str, report: Path, request: pytest.FixtureRequest) -> None:
    opened: Page = request.getfixturevalue(page)
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    for name in ("estimates", "comparisons", "trials", "measurements"):
        link = opened.get_by_role("link", name=f"{name}.csv")
        with opened.expect_download() as saving:
            link.press("Enter")
        saving.value.save_as(report.parent / saving.value.suggested_filename)
        assert saving.value.suggested_filename == f"{RUN.info.run_id}-{name}.csv"
    assert opened.url == report.as_uri()
    assert complaints == []
    with (report.parent / f"{RUN.info.run_id}-trials.csv").open() as file:
        assert [row["trial_id"] for row in csv.DictReader(file)] == list(RUN.trials["trial_id"])


@pytest.mark.long
@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["desk", "phone"])
def test_they_are_accessible_and_nothing_but_tables_scrolls_sideways(
    viewport: dict[str, int], scheme: Literal["light", "dark"], desk: Page
) -> None:
    desk.set_viewport_size(viewport)  # type: ignore[arg-type]
    desk.emulate_media(color_scheme=scheme)
    desk.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert desk.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(desk) == []


@pytest.mark.long
def test_a_trial_leads_to_its_files(plain: Page, report: Path) -> None:
    plain.locator(".narrowed").get_by_role("link", name="argv").first.click()
    assert plain.url == (report.parent / "raw" / "t0001" / "argv").as_uri()
