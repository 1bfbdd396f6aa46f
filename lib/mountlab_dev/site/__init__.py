"""The documentation as a site: pages that are kept as text, and pages that are built from code and data."""

from __future__ import annotations

from collections.abc import Callable

from mountlab_dev import evidence, reference

MAKERS: tuple[Callable[[], dict[str, str]], ...] = (reference.pages, evidence.pages)
"""Each returns built pages: path below docs/ to Markdown."""


def pages() -> dict[str, str]:
    """Return every built page: path below docs/ to Markdown. No two makers may build one page."""
    made: dict[str, str] = {}
    for make in MAKERS:
        new = make()
        assert not made.keys() & new.keys(), f"built twice: {sorted(made.keys() & new.keys())}"
        made |= new
    return made
