"""Chromium for the tests that look at pages: with no network, and none of its own business in the background."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import playwright
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from waiting import LIMIT_S, wait_until

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
PHONE = {"width": 320, "height": 640}
needs_chromium = pytest.mark.requires_program("chromium|chromium-browser|google-chrome")


@contextmanager
def window(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """A window of its own, offline, that is patient."""
    with browser.new_context(offline=True, **options) as context:
        context.set_default_timeout(LIMIT_S * 1000)
        yield context


def wait_for_first_frame(page: Page) -> None:
    """Chromium drops keys that come before it, and a page has loaded earlier."""
    wait_until("a frame", lambda: page.evaluate("performance.getEntriesByType('paint').length"))


@contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[Page]:
    """A page in a window of its own, offline."""
    with window(browser, **{"viewport": WIDE, **options}) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        wait_for_first_frame(page)
        yield page


def violations(page: Page) -> list[tuple[str, str]]:
    """What axe finds: the rule, and the first element that breaks it."""
    # Else it would describe each element that is as it should be, for as long again; and ask for style sheets, which
    # only a rule wants that is off, and which pages from files cannot have: the browser complains at any time later.
    found = Axe().run(page, options={"resultTypes": ["violations"], "preload": False}).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:120]) for each in found]


@contextmanager
def started() -> Iterator[Browser]:
    """A browser; skips the test where Playwright's driver does not start here."""
    node = Path(playwright.__file__).parent / "driver" / "node"
    probe = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if probe.returncode != 0:
        pytest.skip(f"Playwright's driver does not start: {probe.stderr.strip()}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()
