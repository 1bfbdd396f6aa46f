"""One browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import started
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as chromium:
        yield chromium
