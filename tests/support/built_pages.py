"""The pages of the documentation that are built from code and data, made once in a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from mountlab_dev import site
from mountlab_dev.site.build import build
from shared import shared


@cache
def built_pages() -> dict[str, str]:
    """Path in the repository to Markdown."""
    return {f"docs/{name}": text for name, text in site.pages().items()}


def site_of_this_code(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site's pages, with one notebook executed, made once in a session."""

    def make(directory: Path) -> None:
        assert build(directory, ["00_tour"]) == 0, "Sphinx's warnings are above"

    return shared(factory, "site", make) / "html"
