"""JupyterLab, started once, in a real browser and by keyboard: the tour, the explorer, and on the local box the sweep
notebook, whose live view moves, whose Stop stops, and whose run resume completes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from chromium import needs_chromium
from labpage import ERRORS, POLL_MS, WINDOW, OpenNotebook, Server, copied, jupyterlab
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.core.model import Trial
from mountlab.core.places import SHIPPED
from mountlab.results import paths
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from playwright.sync_api import Browser, Page
from sweeps import DIR

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("lab") / "root"
    (root / "results").mkdir(parents=True)
    (root / "live.yml").write_text(yaml.safe_dump(SWEEP))
    copied("00_tour.ipynb", root)
    copied("10_run_sweep.ipynb", root, sweep_file=str(root / "live.yml"))
    copied("70_explore.ipynb", root, run=str(SHIPPED / "results" / "tour"))
    with jupyterlab(root, MOUNTLAB_RESULTS=str(root / "results")) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One for all notebooks: what JupyterLab itself consists of is loaded and compiled once."""
    with browser.new_page(viewport=WINDOW) as page:  # type: ignore[arg-type]
        yield page


# --- the tour and the explorer ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tour(server: Server, page: Page) -> OpenNotebook:
    opened = server.opened(page, "00_tour.ipynb")
    opened.run(opened.cells.count())
    opened.wait()
    return opened


@pytest.mark.long
def test_the_tour_runs_by_keyboard_without_an_error(tour: OpenNotebook) -> None:
    assert tour.errors() == []
    prompts = tour.notebook.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    *counted, appended = prompts  # Shift+Enter in the last cell makes a new one
    assert counted == [f"[{number}]:" for number in range(1, len(prompts))]
    assert appended == "[ ]:"
    assert "faster than ext4" in tour.output_of("mountlab.sections.answer(the_run)")


@pytest.mark.long
def test_its_kernel_and_settings_are_those_of_this_environment(tour: OpenNotebook) -> None:
    assert "Jupyter news" not in (tour.page.locator("body").text_content() or ""), "our settings are in effect"
    assert "Mountlab (.venv)" in (tour.panel.locator(".jp-KernelName").text_content() or "")


@pytest.mark.long
def test_its_plots_can_be_seen(tour: OpenNotebook) -> None:
    boxes = []
    for plot in tour.notebook.locator("figure svg").all():
        plot.scroll_into_view_if_needed()
        boxes.append(plot.bounding_box())
    assert len(boxes) >= 3
    assert all(box and box["width"] > 300 and box["height"] > 100 for box in boxes)


@pytest.mark.long
def test_its_values_show_themselves(tour: OpenNotebook) -> None:
    assert "Workloads" in tour.output_of("the_run.sweep")
    assert "tmpfs / ext4" in tour.output_of("the_run.comparisons")
    assert "n = 10" in tour.output_of("from scipy import stats")


@pytest.mark.long
def test_another_pick_draws_another_plot(server: Server, page: Page) -> None:
    opened = server.opened(page, "70_explore.ipynb")
    opened.run(opened.cells.count())
    opened.wait()
    assert opened.errors() == []
    picture = opened.notebook.locator(".widget-html-content figure")
    before = picture.inner_html()
    kind = opened.notebook.locator(".widget-dropdown select").first
    kind.select_option("Ratios to the baseline")
    opened.page.wait_for_function(
        "before => document.querySelector('.widget-html-content figure').innerHTML !== before", arg=before
    )
    assert "faster" in picture.inner_text() + str(picture.locator("svg").get_attribute("aria-label"))


# --- the sweep notebook -----------------------------------------------------------------------------------------------


def on_the_box(test: Any) -> Any:
    for mark in (pytest.mark.box, pytest.mark.requires_program("fio"), pytest.mark.requires_program("sshd")):
        test = mark(test)
    return test


BOX = "local"
SWEEP: dict[str, Any] = {
    "question": "Does the live view move?",
    "box": BOX,
    "filesystems": {"disk": DIR, "shm": {**DIR, "path": "/dev/shm"}},
    "workloads": {
        "fio-read": {
            "tool": "fio",
            "rw": "read",
            "bs": "64KiB",
            "size": "4MiB",
            "rate_iops": 500,
            "time_based": True,
            "runtime": "1s",
        }
    },
    "design": {"repeats": 4, "warmup": 1, "seed": 7, "drop_caches": False},
    "baseline": "disk",
}
TRIALS = 2 * 5
LAST_BEFORE_RUN = "else mountlab.run(sweep)"
SHOWS_TRIALS = "the_run = mountlab.load_result(run_path)"
UNSAVED = "#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current.jp-mod-dirty"
PROGRESS = re.compile(rf"(\d+) of {TRIALS} trials")


def seen(opened: OpenNotebook) -> str:
    return opened.page.locator(".mountlab-live").first.text_content() or ""


def wait_for_live(opened: OpenNotebook, pattern: str) -> None:
    """Until the newest view says so. A cell that failed is told at once, and not when the time is over."""
    opened.page.wait_for_function(
        """([pattern, errors]) => document.querySelector(errors) ||
            new RegExp(pattern).test([...document.querySelectorAll('.mountlab-live')].at(-1)?.textContent)""",
        arg=[pattern, ERRORS],
        polling=POLL_MS,
    )
    assert opened.errors() == []


@pytest.fixture(scope="module")
def notebook(server: Server, page: Page) -> OpenNotebook:
    """The sweep notebook, run up to where it measures."""
    opened = server.opened(page, "10_run_sweep.ipynb")
    sources = opened.cells.locator(".jp-InputArea").all_text_contents()
    opened.run(next(number for number, source in enumerate(sources, 1) if LAST_BEFORE_RUN in source))
    return opened


@pytest.fixture(scope="module")
def run_path(notebook: OpenNotebook, server: Server) -> Path:
    """The run, stopped by its button after two trials that counted."""
    wait_for_live(notebook, r"n = [2-9]")
    notebook.page.get_by_role("button", name="Stop").click()
    notebook.wait_for_text("Stopped: everything on the box is undone")
    notebook.wait()
    (file,) = server.root.glob("results/*/run.json")
    return file.parent


@on_the_box
def test_the_view_moves_while_it_measures(notebook: OpenNotebook) -> None:
    wait_for_live(notebook, rf"[1-9]\d* of {TRIALS} trials")
    first = PROGRESS.search(seen(notebook))
    wait_for_live(notebook, r"Read bandwidth, .B/s[^]*n = [1-9]")
    wait_for_live(notebook, r"Now: block \d, (disk|shm)/fio-read")
    wait_for_live(notebook, r"elapsed, about \d+ s left")
    wait_for_live(notebook, r"n = [2-9]")
    assert first is not None
    wait_for_live(notebook, rf"(?<!\d)(?!{first[1]} of)\d+ of {TRIALS} trials")
    later = PROGRESS.search(seen(notebook))
    assert later is not None
    assert int(first[1]) < int(later[1]) < TRIALS
    assert notebook.page.locator(".mountlab-live").count() == 1, "one view, which is drawn anew in its place"


@on_the_box
def test_stop_leaves_a_run_that_can_go_on_and_nothing_on_the_box(notebook: OpenNotebook, run_path: Path) -> None:
    info, journal = read_info(run_path), read_journal(run_path)
    assert info.status == "interrupted"
    assert 2 <= len(journal) < TRIALS
    assert notebook.errors() == [], "a person who stops a run is not shown a traceback"
    assert f'run_path = mountlab.resume("{run_path}")' in notebook.output_of(LAST_BEFORE_RUN)
    with open_box(paths.load_box(BOX)) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


@pytest.mark.long
@on_the_box
def test_cells_below_show_what_a_stopped_run_has(notebook: OpenNotebook, run_path: Path) -> None:
    notebook.select(SHOWS_TRIALS)  # the click on Stop took the focus
    notebook.run(1)
    notebook.wait()
    assert "fio-read" in notebook.output_of(SHOWS_TRIALS)
    assert notebook.errors() == []


@pytest.fixture(scope="module")
def resumed_from(notebook: OpenNotebook, run_path: Path) -> list[Trial]:
    """The journal of the stopped run, which is then resumed by a cell above those that show it."""
    before = read_journal(run_path)
    notebook.select(SHOWS_TRIALS)  # the click on Stop took the focus
    notebook.insert("run_path = mountlab.resume(run_path); the_run = mountlab.load_run(run_path)")
    wait_for_live(notebook, rf"({len(before)}|{len(before) + 1}) of {TRIALS} trials")
    notebook.wait()
    return before


@on_the_box
def test_resume_completes_it(notebook: OpenNotebook, run_path: Path, resumed_from: list[Trial]) -> None:
    journal = read_journal(run_path)
    assert notebook.errors() == []
    assert read_info(run_path).status == "complete"
    assert [trial.trial_id for trial in journal] == read_info(run_path).order
    assert journal[: len(resumed_from)] == resumed_from


@pytest.mark.long
@on_the_box
@pytest.mark.usefixtures("resumed_from")
def test_the_rest_runs_by_keyboard_and_leads_to_the_report(notebook: OpenNotebook, run_path: Path) -> None:
    notebook.run_rest()
    notebook.wait()
    assert notebook.errors() == []
    link = notebook.notebook.get_by_role("link", name="Open the report")
    assert link.get_attribute("href"), "JupyterLab has resolved it"
    assert (run_path / "report.html").exists()


@pytest.mark.long
@on_the_box
def test_what_is_saved_shows_no_widget(notebook: OpenNotebook, run_path: Path) -> None:
    notebook.page.keyboard.press("Control+s")
    saved = run_path.parents[1] / "notebooks" / "10_run_sweep.ipynb"
    notebook.page.wait_for_selector(UNSAVED, state="detached")
    text = saved.read_text()
    assert f"{len(read_journal(run_path))} of {TRIALS} trials" in text
    assert "application/vnd.jupyter.widget-view" not in text, "a still picture has taken its place"
