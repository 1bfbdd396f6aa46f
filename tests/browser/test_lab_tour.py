"""The tour and the explorer in a real JupyterLab, from top to bottom by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import needs_chromium
from chromium import started as chromium
from labpage import OpenNotebook, Server, copied, jupyterlab
from mountlab.core import disk
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("lab") / "root"
    root.mkdir()
    copied("00_tour.ipynb", root)
    copied("70_explore.ipynb", root, run_path=str(disk.ROOT / "results" / "tour"))
    with jupyterlab(root) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def tour(server: Server, browser: Browser) -> Iterator[OpenNotebook]:
    with server.opened(browser, server.root / "notebooks" / "00_tour.ipynb") as opened:
        opened.run(opened.cells.count())
        opened.wait()
        yield opened


def test_the_tour_runs_by_keyboard_without_an_error(tour: OpenNotebook) -> None:
    assert tour.errors() == []
    prompts = tour.notebook.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    *counted, appended = prompts  # Shift+Enter in the last cell makes a new one
    assert counted == [f"[{number}]:" for number in range(1, len(prompts))]
    assert appended == "[ ]:"
    assert "as fast as ext4" in tour.output_of("mountlab.sections.answer(run)")


def test_its_kernel_and_settings_are_those_of_this_environment(tour: OpenNotebook) -> None:
    assert "Jupyter news" not in (tour.page.locator("body").text_content() or ""), "our settings are in effect"
    assert "Mountlab (.venv)" in (tour.page.locator(".jp-KernelName").text_content() or "")


def test_its_plots_can_be_seen(tour: OpenNotebook) -> None:
    boxes = []
    for plot in tour.notebook.locator("figure svg").all():
        plot.scroll_into_view_if_needed()
        boxes.append(plot.bounding_box())
    assert len(boxes) >= 3
    assert all(box and box["width"] > 300 and box["height"] > 100 for box in boxes)


def test_its_values_show_themselves(tour: OpenNotebook) -> None:
    assert "Workloads" in tour.output_of("run.sweep")
    assert "tmpfs / ext4" in tour.output_of("run.comparisons")
    assert "n = 5" in tour.output_of("from scipy import stats")


def test_another_pick_draws_another_plot(server: Server, browser: Browser) -> None:
    with server.opened(browser, server.root / "notebooks" / "70_explore.ipynb") as opened:
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
