"""Every kind of page in a real browser, offline: whole, safe, accessible, and what its script adds to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import html5lib
import numpy as np
import pytest
from chromium import NARROW, PHONE, WIDE, needs_chromium, opened, violations, window
from facts import known
from mountlab.core.places import SHIPPED
from mountlab.publish import bundle_view
from mountlab.publish.bundle import Bundle, PublishedRun
from mountlab.report import execute, html, index
from mountlab.report.html import Column, Rows
from mountlab.report.page import page as framed
from mountlab.results import store, tables, writer
from mountlab.results.entries import IndexEntry
from playwright.sync_api import Browser, BrowserContext, Locator, Page
from repetition import others_long
from synthetic_report import HOSTILE, executed_here, hostile_report
from synthetic_run import SyntheticRun, synthetic_run

pytestmark = [pytest.mark.browser, needs_chromium]

LONG = "a-workload-whose-name-takes-sixty-characters-and-has-no-space"
KINDS = ("report", "index", "two runs", "many runs", "bundle")
SHOWN = ("report", "index")
"""Of every element of a page one; the others are `long`."""
TOUR = SHIPPED / "tests" / "data" / "earlier_run"


# ── the pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def made_up(name: str, seed: int, **facts: str) -> SyntheticRun:
    """A run with hostile text wherever text can be, a long name, and noise of its own."""
    run = synthetic_run(hostile=f"{HOSTILE} {LONG}")
    rng = np.random.default_rng(seed)
    factors = np.exp(rng.normal(0.02 * seed, 0.03, len(run.measurements)))
    run.measurements = run.measurements.assign(value=run.measurements["value"] * factors)
    run.info = replace(run.info, run_id=name, facts=known(run.info.facts, **facts))
    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """One page of each kind, by kind."""
    return Pages(tmp_path_factory)


class Pages(dict[str, Path]):
    """Each page is made when a test asks for it."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.factory, self.directory = factory, factory.mktemp("pages")

    def __missing__(self, kind: str) -> Path:
        self[kind] = self.make(kind)
        return self[kind]

    def make(self, kind: str) -> Path:
        path = self.directory / f"{kind}.html"
        if kind == "report":
            return hostile_report(self.factory)
        if kind == "index":
            return an_index(self.directory / "results")
        if kind == "bundle":
            return a_bundle(path)
        names = {"two runs": ["one", "two"], "many runs": ["one", "two", "three"]}[kind]
        runs = {name: made_up(name, seed, kernel=f"6.{seed} {HOSTILE}") for seed, name in enumerate(names)}
        executed = executed_here(execute.COMPARISON, {"runs": names}, runs, self.directory)
        path.write_text(execute.export(executed, title=f"{kind} {HOSTILE}"))
        return path


def a_bundle(path: Path) -> Path:
    """The page of a published bundle of two runs and their comparison."""
    runs = tuple(
        PublishedRun(
            run_id=name,
            name=LONG,
            question=f"{LONG} {HOSTILE}",
            box=HOSTILE,
            created_at="2026-11-20T10:00:00+00:00",
            finished_at="2026-11-20T10:20:00+00:00",
            status="interrupted",
            sentences=(HOSTILE, LONG),
            caveats={"error": 1, "warning": 2, "note": 0},
            trials=54,
        )
        for name in ("one", "two")
    )
    bundle = Bundle(
        title=f"{LONG} {HOSTILE}",
        authors=(HOSTILE, "A. Uthor"),
        licence="CC-BY-4.0",
        runs=runs,
        comparisons={"comparisons/one-two": HOSTILE},
        replaced=({"kind": "host", "different": 2, "times": 40},),
        ordinary=("user",),
        versions=writer.versions(),
        mountlab_version="0.1.0",
    )
    path.write_text(bundle_view.index_page(bundle, ["runs/one/report.html", "runs/one/estimates.csv", "SHA256SUMS"]))
    return path


def an_index(results: Path) -> Path:
    """Of five runs, one of which is damaged and one stopped, and of one comparison."""
    whole = results / "20261120T101902-tour-local"
    shutil.copytree(TOUR, whole)
    tables.write_derived(store.load_run(whole))
    info = json.loads((whole / "run.json").read_text())
    for place, (box, question) in enumerate([("db1", HOSTILE), ("db1", LONG), ("vm", "Does data=writeback pay?")]):
        path = results / f"2026112{place + 1}T101902-other-{box}"
        path.mkdir()
        for name in ("comparisons.csv", "caveats.csv"):
            shutil.copy(whole / name, path / name)
        if box == "vm":  # one without a caveat
            (path / "caveats.csv").write_text((whole / "caveats.csv").read_text().splitlines()[0] + "\n")
        (path / "report.html").write_text("")
        asked = {**info["parameters"], "question": question, "name": f"sweep-{place}"}
        changed = {"box": {"name": box}, "parameters": asked, "created_at": f"2026-11-2{place + 1}T10:00:00+00:00"}
        (path / "run.json").write_text(json.dumps({**info, **changed}))
    (results / "damaged" / "raw").mkdir(parents=True)
    entry = {"kind": "comparison", "title": HOSTILE, "page": "report.html", "verdict": HOSTILE, "caveats": {"note": 1}}
    (results / "compared").mkdir()
    (results / "compared" / "report.html").write_text("")
    (results / "compared" / "entry.json").write_text(json.dumps(entry))
    return execute.write_index(results)


class Opened:
    """A page in a window that stays open, for tests that only look or leave it as it was; what it asked for and
    complained of when it was opened. All that is folded is open."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.requests, self.complaints = list[str](), list[str]()
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state("networkidle")
        self.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")


@pytest.fixture(scope="module")
def on_a_desk(browser: Browser, pages: Mapping[str, Path]) -> Iterator[Callable[[str], Opened]]:
    """The page of a kind in a wide light window."""
    with window(browser, viewport=WIDE, color_scheme="light") as context:
        yield cache(lambda kind: Opened(context, pages[kind]))


@pytest.fixture(scope="module")
def on_a_phone(browser: Browser, pages: Mapping[str, Path]) -> Iterator[Callable[[str], Opened]]:
    """The page of a kind in a narrow dark window."""
    with window(browser, viewport=NARROW, color_scheme="dark") as context:
        yield cache(lambda kind: Opened(context, pages[kind]))


@pytest.fixture
def report(on_a_desk: Callable[[str], Opened]) -> Page:
    """The report in a wide light window, on the screen."""
    page = on_a_desk("report").page
    page.emulate_media(media="screen", color_scheme="light")
    page.locator("label", has_text="Auto").click()
    return page


@pytest.fixture(scope="module")
def plain_index(browser: Browser, pages: Mapping[str, Path]) -> Iterator[Page]:
    """The index without a script."""
    with opened(browser, pages["index"], java_script_enabled=False, color_scheme="light") as page:
        yield page


@pytest.fixture
def listed(on_a_desk: Callable[[str], Opened]) -> Page:
    """The index in a wide light window."""
    return on_a_desk("index").page


each_kind = pytest.mark.parametrize("kind", others_long(KINDS, kept=SHOWN))


# ── whole and safe ───────────────────────────────────────────────────────────────────────────────────────────────────


@each_kind
def test_it_is_valid_html(kind: str, pages: Mapping[str, Path]) -> None:
    """No error of the parser that the HTML standard describes, and every id once."""
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(pages[kind].read_text())
    ids = [node.get("id") for node in document.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    levels = [int(node.tag[1]) for node in document.iter() if node.tag in ("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


@each_kind
def test_hostile_text_is_shown_and_does_nothing(
    kind: str, on_a_desk: Callable[[str], Opened], pages: Mapping[str, Path]
) -> None:
    opened = on_a_desk(kind)
    assert opened.page.title() != "taken"
    assert "<script>document.title='taken'</script>" in opened.page.locator("body").inner_text()
    assert "\u202e" not in opened.page.content()
    assert opened.page.locator("script").count() == opened.page.locator("style").count() == 1
    assert [url for url in opened.requests if not url.startswith("data:")] == [pages[kind].as_uri()]
    assert opened.complaints == []


def test_no_other_script_may_run(browser: Browser, pages: Mapping[str, Path]) -> None:
    """Were one to get in all the same: the page's policy stops it."""
    with opened(browser, pages["index"]) as page:
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'window.taken = 1'}))"
        )
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=\"window.taken = 2\">')")
        page.wait_for_timeout(100)
        assert page.evaluate("window.taken") is None


@pytest.mark.parametrize("kind", others_long(KINDS, kept=["report"]))
def test_axe_finds_nothing_on_a_desk(kind: str, on_a_desk: Callable[[str], Opened]) -> None:
    assert violations(on_a_desk(kind).page) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_on_a_phone_at_night(kind: str, on_a_phone: Callable[[str], Opened]) -> None:
    assert violations(on_a_phone(kind).page) == []


@pytest.mark.long
@each_kind
def test_nothing_but_tables_and_code_scrolls_sideways(kind: str, on_a_phone: Callable[[str], Opened]) -> None:
    page = on_a_phone(kind).page
    for viewport in (PHONE, NARROW):
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


@each_kind
def test_it_is_small(kind: str, on_a_desk: Callable[[str], Opened], pages: Mapping[str, Path]) -> None:
    """What takes long to open is large: a page of all parts stays far below that."""
    assert pages[kind].stat().st_size < 1_500_000
    assert on_a_desk(kind).page.evaluate("document.querySelectorAll('*').length") < 12_000


# ── colours ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 24, 28)"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.long
@pytest.mark.parametrize("page", ["listed", "plain_index"], ids=["script", "no script"])
def test_the_reader_chooses_the_colours(page: str, request: pytest.FixtureRequest) -> None:
    index: Page = request.getfixturevalue(page)
    assert index.evaluate(BACKGROUND) == LIGHT
    index.locator("label", has_text="Dark").click()
    assert index.evaluate(BACKGROUND) == DARK
    index.locator("label", has_text="Auto").click()
    assert index.evaluate(BACKGROUND) == LIGHT


@pytest.mark.long
def test_the_choice_is_kept_and_made_by_keyboard(browser: Browser, pages: Mapping[str, Path]) -> None:
    with opened(browser, pages["index"], color_scheme="dark") as page:
        page.locator("#theme-auto").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(BACKGROUND) == LIGHT
        page.reload()
        assert page.evaluate(BACKGROUND) == LIGHT
        assert page.locator("#theme-light").is_checked()


@pytest.mark.long
def test_paper_is_white(report: Page) -> None:
    report.emulate_media(color_scheme="dark")
    report.locator("label", has_text="Dark").click()
    assert report.evaluate(BACKGROUND) == DARK
    report.emulate_media(media="print")
    assert report.evaluate(BACKGROUND) == LIGHT
    assert report.evaluate("getComputedStyle(document.querySelector('svg text')).fill") == "rgb(0, 0, 0)"


# ── contents ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_contents_stand_beside_the_text_and_follow_it(report: Page) -> None:
    contents = report.get_by_role("navigation", name="Contents")
    assert contents.bounding_box()["x"] < report.locator("main").bounding_box()["x"]  # type: ignore[index]
    contents.get_by_role("link", name="Trials").click()
    current = contents.locator("[aria-current]")
    current.filter(has_text="Trials").wait_for()
    assert 0 <= report.locator("h2", has_text="Trials").bounding_box()["y"] < WIDE["height"]  # type: ignore[index]
    assert contents.get_by_role("link", name="Results").bounding_box()["y"] >= 0  # type: ignore[index]
    assert current.count() == 1


@pytest.mark.long
def test_contents_are_folded_on_a_phone_and_open_without_a_script(browser: Browser, pages: Mapping[str, Path]) -> None:
    with opened(browser, pages["report"], viewport=NARROW, java_script_enabled=False) as page:
        link = page.get_by_role("navigation").get_by_role("link", name="Caveats")
        assert not link.is_visible()
        page.get_by_text("Contents").click()
        link.click()
        assert page.locator("h2#Caveats").bounding_box()["y"] < 200  # type: ignore[index]


@pytest.mark.long
def test_contents_are_not_printed(report: Page) -> None:
    places = report.locator(".contents"), report.locator("header")
    assert all(place.is_visible() for place in places)
    report.emulate_media(media="print")
    assert not any(place.is_visible() for place in places)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ["9.5", "1\u202f000", "\u22123", "n/a", "<0.1", "∞", "10.25"]
SIZES = ["512 KiB", "4 KiB", "1 MiB", "not known", "3 B", "2 GiB", "1000 KiB"]
TIMES = ["2 min 5 s", "900 ms", "3 s", "", "1 h 1 min", "10 µs", "59 s"]
INTERVALS = ["[6.5, 7.3]", "[0.9, 1]", "[10, 12]", "", "[\u22121, 2]", "[6.4, 9]", "[7, 8]"]
SHARES = ["±\u00a03 %", "±\u00a012 %", "±\u00a00.5 %", "n/a", "±\u00a01.1 %", "±\u00a09 %", "±\u00a010 %"]
NAMES = ["bs=16", "bs=4", "bs=128", "none", "ext4", "Btrfs", "xfs"]
SORTED: dict[str, tuple[Sequence[str], list[int]]] = {
    "Number": (NUMBERS, [2, 4, 0, 6, 1, 5, 3]), "Size": (SIZES, [4, 1, 0, 6, 2, 5, 3]),
    "Time": (TIMES, [5, 1, 2, 6, 0, 4, 3]), "Interval": (INTERVALS, [4, 1, 5, 0, 6, 2, 3]),
    "Share": (SHARES, [2, 4, 0, 5, 6, 1, 3]), "Name": (NAMES, [1, 0, 2, 5, 4, 6, 3]),
}  # fmt: skip
"""A column of texts, and the places of its texts when sorted: what is missing comes last, either way."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kinds = {"Number": "number", "Interval": "interval"}
    head = [Column("Row"), *(Column(name, kinds.get(name, "")) for name in SORTED)]  # type: ignore[arg-type]
    rows = [[f"r{place}", *(texts[place] for texts, _ in SORTED.values())] for place in range(len(NUMBERS))]
    one = html.table(head, [Rows(rows[:3], "first"), Rows(rows[3:], "second")], caption="In groups")
    cells = [html.stacked("10", "[1, 2]"), html.stacked("9", "[3, 4]"), html.stacked("n/a", "")]
    means = html.table(
        [Column("Row"), Column("Mean", "number")],
        [Rows([[f"r{place}", cell] for place, cell in enumerate(cells)])],
        caption="Means",
    )
    path = tmp_path_factory.mktemp("table") / "table.html"
    path.write_text(framed(html.joined(html.table(head, [Rows(rows)], caption="All"), one, means), title="Tables"))
    return path


def rows_of(table: Locator) -> list[int]:
    return [int(text[1:]) for text in table.locator("tbody tr:not(.group) th").all_inner_texts()]


@pytest.fixture(scope="module")
def sorting(browser: Browser, table: Path) -> Iterator[Page]:
    """The tables, opened once: each test of a column leaves them as they were."""
    with opened(browser, table) as page:
        yield page


@pytest.mark.long
@pytest.mark.parametrize("column", SORTED)
def test_a_table_is_sorted_by_value(column: str, sorting: Page) -> None:
    first = sorting.locator("table").first
    head, button = first.locator("th", has_text=column).first, first.get_by_role("button", name=column)
    expected = SORTED[column][1]
    button.click()
    assert rows_of(first) == expected
    assert head.get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert rows_of(first) == [*reversed(expected[:-1]), expected[-1]]
    assert head.get_attribute("aria-sort") == "descending"
    button.press("Space")
    assert rows_of(first) == list(range(7)), "as it was"
    assert head.get_attribute("aria-sort") is None


@pytest.mark.long
def test_groups_stay_together(sorting: Page) -> None:
    second = sorting.locator("table").nth(1)
    second.get_by_role("button", name="Number").click()
    assert rows_of(second) == [2, 0, 1, 4, 6, 5, 3]
    assert second.locator("tr.group").all_inner_texts() == ["first", "second"]
    assert second.locator("tbody >> nth=1 >> tr >> nth=0").inner_text() == "second"


@pytest.mark.long
def test_a_star_and_a_small_line_do_not_count(sorting: Page) -> None:
    sorting.get_by_role("button", name="Mean").click()
    assert rows_of(sorting.locator("table").nth(2)) == [1, 0, 2]


@pytest.mark.long
def test_without_a_script_a_table_is_whole_and_has_no_dead_button(browser: Browser, table: Path) -> None:
    with opened(browser, table, java_script_enabled=False) as page:
        assert page.get_by_role("button").count() == 0
        assert rows_of(page.locator("table").first) == list(range(7))


@pytest.mark.long
def test_every_table_of_a_report_can_be_sorted(report: Page) -> None:
    before = report.locator("tbody tr").count()
    report.evaluate("document.querySelectorAll('thead button').forEach(button => button.click())")
    assert report.locator("tbody tr").count() == before
    assert report.locator("thead [aria-sort]").count() == report.locator("table:has(thead button)").count() > 10


# ── the index ────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(page: Page) -> list[str]:
    return [row.locator(".question").inner_text() for row in page.locator(".entries tbody tr:visible").all()]


@pytest.mark.long
def test_the_index_is_searched_as_one_types(listed: Page) -> None:
    assert listed.get_by_role("status").inner_text() == "6 in all"
    listed.get_by_role("searchbox").press_sequentially("PAY writeback")
    assert shown(listed) == ["Does data=writeback pay?"]
    assert listed.get_by_role("status").inner_text() == "1 of 6 shown"
    listed.get_by_role("button", name="Show all").click()
    assert len(shown(listed)) == 6
    assert listed.get_by_role("searchbox").evaluate("node => node === document.activeElement")


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("Box", "db1", 2),
        ("Sweep", "sweep-2", 1),
        ("Verdict", "faster", 4),
        ("Caveats", "Doubt", 3),
        ("Caveats", "no caveats", 1),
        ("Kind", "comparisons", 1),
    ],
)
def test_the_index_is_filtered(name: str, value: str, count: int, listed: Page) -> None:
    listed.get_by_label(name, exact=True).select_option(label=value)
    assert len(shown(listed)) == count
    listed.get_by_role("button", name="Show all").click()
    assert len(shown(listed)) == 6


@pytest.fixture(scope="module")
def long_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of 700 runs, number 0 the oldest."""
    entries = [
        IndexEntry(
            path=f"r{each}",
            title=f"run {each}",
            box=f"db{each % 2}",
            created_at=f"2026-01-01T{each // 60:02d}:{each % 60:02d}",
        )
        for each in range(700)
    ]
    path = tmp_path_factory.mktemp("long") / "index.html"
    path.write_text(framed(index.body(entries), title="long", kind="index"))
    return path


@pytest.mark.long
def test_a_long_list_shows_its_first_rows_and_finds_all(browser: Browser, long_index: Path) -> None:
    with opened(browser, long_index) as page:
        status, visible = page.get_by_role("status"), page.locator(".entries tbody tr:visible")
        assert (status.inner_text(), visible.count()) == ("700 in all, the first 300 shown", 300)
        assert visible.first.locator(".question").inner_text() == "run 699"
        page.get_by_role("button", name="Show 300 more").click()
        page.get_by_role("button", name="Show 100 more").click()
        assert (status.inner_text(), visible.count()) == ("700 in all", 700)
        page.get_by_role("searchbox").fill("699")
        assert (status.inner_text(), visible.count()) == ("1 of 700 shown", 1)
        page.get_by_role("button", name="Show all").click()
        page.get_by_role("button", name="Date, UTC").click()
        assert visible.first.locator(".question").inner_text() == "run 0", "sorted as a whole"
        assert visible.count() == 300


@pytest.mark.long
def test_without_a_script_a_long_list_is_whole(browser: Browser, long_index: Path) -> None:
    with opened(browser, long_index, java_script_enabled=False) as page:
        assert page.locator(".entries tbody tr:visible").count() == 700


@pytest.mark.long
def test_without_a_script_the_whole_list_is_there(plain_index: Page) -> None:
    assert len(shown(plain_index)) == 6
    assert not plain_index.get_by_role("searchbox").is_visible()


@pytest.mark.long
def test_links_lead_to_reports(listed: Page, pages: Mapping[str, Path]) -> None:
    targets = [link.evaluate("link => link.href") for link in listed.locator(".entries a").all()]
    assert len(targets) == 4
    assert all(Path(target.removeprefix("file://")).name == "report.html" for target in targets)
    assert all(target.startswith(pages["index"].parent.as_uri()) for target in targets)
