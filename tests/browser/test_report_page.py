"""The report in a real browser, with no network: what a reader sees on a desk, on a phone, at night, on paper."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import NARROW, PHONE, WIDE, needs_chromium, opened
from every_plot import shapes
from installed_programs import program
from matplotlib.image import imread
from mountlab.report import html
from mountlab.report.page import page as framed
from playwright.sync_api import Browser, Locator, Page
from synthetic_report import hostile_report, recorded_report
from waiting import LIMIT_S

AA = 4.5
"""WCAG 2, level AA: the least contrast of text."""

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]

CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const drawn = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
                            return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const known = new Map(), rgb = colour => known.get(colour) || known.set(colour, drawn(colour)).get(colour);
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = node => { for (; node; node = node.parentElement) {
                             const c = rgb(getComputedStyle(node).backgroundColor); if (c[3] > 0) return c; }
                           return [255, 255, 255, 255]; };
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.getAttribute('aria-hidden') === 'true' || !node.getClientRects().length) continue;
    const style = getComputedStyle(node), svg = node.namespaceURI.endsWith('svg');
    const a = light(rgb(svg ? style.fill : style.color)), b = light(behind(node));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push({text: node.textContent.trim().slice(0, 40), contrast});
  }
  return found;
}"""
"""For everything that has text of its own: the contrast of its colour with the background behind it."""

SCROLLING = """() => [...document.querySelectorAll('main *')]
  .filter(n => n.scrollWidth > n.clientWidth + 1 && getComputedStyle(n).overflowX === 'auto')
  .map(n => `${n.tagName} ${n.className}`)"""
"""What is wider than its place and can be scrolled."""


TEXTS = """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect(), place = svg.closest('figure').getBoundingClientRect();
  return [...svg.querySelectorAll('text')].map(text => {
    const own = text.getBoundingClientRect();
    const px = parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a;
    const out = Math.max(box.left - own.left, own.right - box.right, box.top - own.top, own.bottom - box.bottom,
                         place.left - own.left, own.right - place.right);
    return {text: text.textContent, out, px};
  });
})"""
"""Every text of every drawing: how far it reaches beyond its drawing or its place, and how high its type is."""


LOWEST = """() => [...document.querySelectorAll('figure')].map(figure => {
  const texts = [...figure.querySelectorAll('svg text')];
  const bottom = node => node.getBoundingClientRect().bottom;
  const lowest = texts.reduce((a, b) => (bottom(b) >= bottom(a) ? b : a));
  const start = text => text.trim().split(/\\s+/).slice(0, 4).join(' ');
  return [start(figure.querySelector('figcaption').textContent), start(lowest.textContent)];
})"""
"""Of every figure how its title begins, and how the text at its bottom begins."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_report(tmp_path_factory)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_report(tmp_path_factory)


@pytest.fixture(scope="module")
def on_a_desk(browser: Browser, report: Path) -> Iterator[Page]:
    """Opened once, since it takes a second of two processors."""
    with opened(browser, report, color_scheme="light") as page:
        yield page


@pytest.fixture
def desk(on_a_desk: Page) -> Page:
    """The report in a wide light window, at its beginning, all that is folded open. Its code is not shown."""
    on_a_desk.set_viewport_size(WIDE)  # type: ignore[arg-type]
    on_a_desk.emulate_media(color_scheme="light")
    on_a_desk.locator("#show-code").uncheck()
    on_a_desk.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    on_a_desk.evaluate("scrollTo(0, 0)")
    return on_a_desk


@pytest.fixture(scope="module")
def recorded_page(browser: Browser, recorded: Path) -> Iterator[Page]:
    """Opened once. All that is folded stays so, and each test says how large the window is."""
    with opened(browser, recorded, color_scheme="light") as page:
        yield page


@pytest.fixture
def phone(desk: Page) -> Page:
    """The same in a narrow window."""
    desk.set_viewport_size(NARROW)  # type: ignore[arg-type]
    return desk


# --- on a desk --------------------------------------------------------------------------------------------------------


def test_the_plots_are_there(desk: Page) -> None:
    boxes = [plot.bounding_box() for plot in desk.locator("figure svg").all()]
    assert len(boxes) > 10
    assert [box for box in boxes if not box or box["width"] < 300 or box["height"] < 50] == []
    assert desk.get_by_role("img", name="Ratios to ext4 with").is_visible()


def test_the_first_screen_has_question_answer_and_plot(desk: Page) -> None:
    assert desk.title().startswith("How much faster?")
    for selector in ("h1", ".answer", ".alert", "figure svg"):
        box = desk.locator(selector).first.bounding_box()
        assert box
        assert box["y"] < WIDE["height"], selector


@pytest.mark.long
def test_answer_and_plot_stand_side_by_side_on_a_desk(desk: Page) -> None:
    told, plot = (
        desk.locator(f".columns >> nth=0 >> {part} >> nth=0").bounding_box() for part in (".answer", "figure")
    )
    assert told
    assert plot
    assert told["x"] + told["width"] <= plot["x"]


@pytest.mark.long
def test_the_whole_plot_of_the_recorded_run_is_on_the_first_screen(recorded_page: Page) -> None:
    recorded_page.set_viewport_size({"width": 1280, "height": 800})
    recorded_page.evaluate("scrollTo(0, 0)")
    plot = recorded_page.locator("figure svg").first.bounding_box()
    assert plot
    assert plot["y"] + plot["height"] <= 800


# --- windows ----------------------------------------------------------------------------------------------------------


def test_nothing_but_tables_and_code_scrolls_sideways(desk: Page) -> None:
    desk.locator("#show-code").check()
    for viewport in (WIDE, {"width": 768, "height": 1024}, NARROW, PHONE):
        desk.set_viewport_size(viewport)  # type: ignore[arg-type]
        assert desk.evaluate("document.documentElement.scrollWidth <= innerWidth"), viewport
        assert set(desk.evaluate(SCROLLING)) <= {"DIV scroll", "PRE ", "PRE source"}, viewport


@pytest.mark.long
def test_text_in_plots_can_be_read_on_a_phone(phone: Page) -> None:
    heights = phone.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(n => n.getBoundingClientRect().height)"
    )
    assert min(heights) > 8


@pytest.mark.long
def test_wide_tables_can_be_scrolled_by_keyboard(phone: Page) -> None:
    wide = phone.locator(".scroll").nth(1)
    wide.focus()
    for _ in range(50):  # a busy machine scrolls late, and drops a key that comes before the first frame
        phone.keyboard.press("ArrowRight")
        phone.wait_for_timeout(100)
        if wide.evaluate("table => table.scrollLeft") > 0:
            return
    pytest.fail("the table did not scroll")


# --- by keyboard, and without scripts ---------------------------------------------------------------------------------


@pytest.mark.long
def test_code_is_shown_by_keyboard_without_scripts(browser: Browser, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        code = page.locator("pre.source").first
        assert not code.is_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert code.is_visible()
        page.keyboard.press("Space")
        assert not code.is_visible()


@pytest.mark.long
def test_the_first_keys_show_where_they_are_and_lead_past_the_header(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.keyboard.press("Tab")
        assert page.locator(".skip:focus").bounding_box()["x"] >= 0  # type: ignore[index]
        page.keyboard.press("Tab")
        style = "getComputedStyle(document.activeElement)"
        assert page.evaluate("document.activeElement.id") == "show-code"
        assert page.evaluate(f"{style}.outlineStyle") == "solid"
        assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "report"


@pytest.mark.long
def test_the_line_of_trust_leads_to_the_caveats(desk: Page) -> None:
    desk.get_by_role("main").get_by_role("link", name="Trust").click()
    assert desk.locator("h2#Caveats").bounding_box()["y"] < 200  # type: ignore[index]


# --- light and dark ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_all_text_has_contrast_and_dark_is_dark(desk: Page) -> None:
    desk.locator("#show-code").check()
    for scheme in ("light", "dark"):
        desk.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = desk.evaluate(CONTRASTS)
        assert len(found) > 300
        assert [each for each in found if each["contrast"] < AA] == [], scheme
    assert desk.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    fills = desk.evaluate("[...new Set([...document.querySelectorAll('svg text')].map(n => getComputedStyle(n).fill))]")
    assert fills == [desk.evaluate("getComputedStyle(document.body).color")]


# --- on paper ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sheets(on_a_desk: Page, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The text of each printed page."""
    program("pdftotext")
    pdf = tmp_path_factory.mktemp("print") / "report.pdf"
    on_a_desk.locator("#show-code").check()
    on_a_desk.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    on_a_desk.pdf(path=pdf, prefer_css_page_size=True)
    return pages_of(pdf)


def pages_of(pdf: Path) -> list[str]:
    """The text of each page."""
    done = subprocess.run(
        ["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    return done.stdout.split("\f")[:-1]


@pytest.mark.long
def test_print_has_the_text_and_no_code(sheets: list[str]) -> None:
    assert "How much faster than the disk is a RAM disk" in " ".join(sheets[0].split())
    whole = "\n".join(sheets)
    assert "mountlab run params/sweeps/ramdisk.yml" in whole
    assert "Show code" not in whole
    assert "sections.question" not in whole


@pytest.mark.long
def test_the_header_of_a_long_table_is_on_every_sheet(sheets: list[str]) -> None:
    with_trials = [sheet for sheet in sheets if len(re.findall(r"^ *t0\d\d\d ", sheet, re.MULTILINE)) > 5]
    assert len(with_trials) > 1
    assert all(re.search(r"^ *Trial +Block", sheet, re.MULTILINE) for sheet in with_trials)


@pytest.mark.long
def test_no_plot_is_cut_by_the_end_of_a_page(sheets: list[str], desk: Page) -> None:
    """The title of each figure and its lowest text, the name of an axis, are on one page."""
    ends = desk.evaluate(LOWEST)
    assert len(ends) > 10
    pages = [" ".join(sheet.split()) for sheet in sheets]
    assert [title for title, axis in ends if not any(title in page and axis in page for page in pages)] == []


MOST_SHEETS, FEWEST_LINES = 12, 12
"""Of the recorded run on A4; and the lines of text or of a plot below which a sheet is nearly empty."""
MOST_OF_COMMANDS, MOST_IN_SHORT = 3, 4
"""Sheets of the sweep and of the commands; and of the short version."""


@pytest.mark.long
def test_a_report_is_a_dozen_sheets_with_what_is_folded_left_folded(recorded_page: Page, tmp_path: Path) -> None:
    recorded_page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    folded = recorded_page.add_style_tag(content=".printed { display: none }")
    assert len(printed(recorded_page, tmp_path)) <= MOST_SHEETS
    folded.evaluate("style => style.remove()")
    pages = printed(recorded_page, tmp_path)
    assert len(pages) <= MOST_SHEETS + MOST_OF_COMMANDS
    lines = [len([line for line in text.splitlines() if line.strip()]) for text in pages]
    assert [n for n, count in enumerate(lines[:-1], 1) if count < FEWEST_LINES] == []
    assert not re.search(r"^ *t0\d\d\d ", "\n".join(pages), re.MULTILINE), "the list of all trials is folded"
    whole = " ".join(" ".join(pages).split())
    assert "--rw=randread --size=268435456" in whole, "the command of each cell is printed"
    assert re.search(r"file_size: 4KiB.*sync: fsync", whole), "and the sweep"


@pytest.mark.long
def test_a_report_in_short_ends_before_the_trials(recorded_page: Page, tmp_path: Path) -> None:
    recorded_page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    choice = recorded_page.get_by_label("Print in short")
    choice.check()
    pages = printed(recorded_page, tmp_path)
    assert recorded_page.locator("#Trials").is_visible(), "on the screen all of it stays"
    choice.uncheck()
    assert len(pages) <= MOST_IN_SHORT
    whole = " ".join(" ".join(pages).split())
    assert all(part in whole for part in ("How much faster than ext4", "Caveats", "Results by metric"))
    assert not any(part in whole for part in ("Trials in run order", "Appendix", "--rw=randread"))


def printed(page: Page, directory: Path) -> list[str]:
    page.pdf(path=directory / "report.pdf", prefer_css_page_size=True)
    return pages_of(directory / "report.pdf")


# --- tables on a phone ------------------------------------------------------------------------------------------------

HIDDEN_HEIGHT = """() => [...document.querySelectorAll('.scroll')].flatMap(box => {
  const edge = box.getBoundingClientRect().right;
  return [...box.querySelectorAll('tbody tr')].map(row => {
    const lines = cell => { const range = document.createRange();
                            range.selectNodeContents(cell.querySelector('details:not([open]) > summary') || cell);
                            return range.getBoundingClientRect().height; };
    const cells = [...row.cells], seen = cells.filter(cell => cell.getBoundingClientRect().left < edge);
    return Math.max(...cells.map(lines)) - Math.max(...seen.map(lines));
  });
})"""
"""For every row of a table that scrolls: by how much a column that cannot be seen makes it taller."""


@pytest.mark.long
def test_no_row_is_tall_for_a_column_that_cannot_be_seen(recorded_page: Page) -> None:
    recorded_page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    taller = recorded_page.evaluate(HIDDEN_HEIGHT)
    assert len(taller) > 20
    assert max(taller) < 45, "two lines more than what is seen"


@pytest.mark.long
def test_a_table_that_scrolls_shows_a_shadow_where_there_is_more(recorded_page: Page) -> None:
    """By pixels: darker within the right edge while there is more to the right, and not after it was scrolled there."""
    recorded_page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    wide = recorded_page.locator(".scroll").filter(has=recorded_page.locator("td.number")).nth(1)
    wide.scroll_into_view_if_needed()
    assert wide.evaluate("box => box.scrollWidth - box.clientWidth") > 20
    before = edge_of(wide)
    wide.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    after = edge_of(wide)
    assert before < 0.97 < after


def edge_of(box: Locator) -> float:
    """How light the right edge of a box is, from 0 to 1."""
    picture = imread(io.BytesIO(box.screenshot()), format="png")
    return float(picture[:, -6:, :3].mean())


# --- texts of plots ---------------------------------------------------------------------------------------------------

LEAST_PX = 9.0


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plots of many panels, with long names."""
    return drawn("long", tmp_path_factory)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plots of two numbers; those without such an axis are among the long."""
    return drawn("swept", tmp_path_factory, only=re.compile(r"response|heat|trials|ratios"))


def drawn(shape: str, factory: pytest.TempPathFactory, *, only: re.Pattern[str] = re.compile("")) -> Path:
    """A page of the plots of a shape whose names have this in them."""
    path = factory.mktemp("texts") / "plots.html"
    plots = [html.plot(draw()) for name, draw in shapes()[shape]().items() if only.search(name)]
    path.write_text(framed(html.columns(*plots), title="Plots"))
    return path


@pytest.mark.long
@pytest.mark.parametrize("page", ["recorded", "long", "swept"])
def test_no_text_of_a_plot_is_cut_or_too_small(page: str, browser: Browser, request: pytest.FixtureRequest) -> None:
    with opened(browser, request.getfixturevalue(page)) as window:
        window.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        for width in (390, 1280, 1920):
            window.set_viewport_size({"width": width, "height": 900})
            texts = window.evaluate(TEXTS)
            assert len(texts) > 100, width
            assert [each for each in texts if each["out"] > 1] == [], width
            assert [each for each in texts if each["px"] < LEAST_PX] == [], width
