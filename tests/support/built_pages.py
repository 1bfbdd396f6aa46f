"""The pages of the documentation that are built from code and data, made once in a process."""

from __future__ import annotations

from functools import cache

from mountlab_dev import site


@cache
def built_pages() -> dict[str, str]:
    """Path in the repository to Markdown."""
    return {f"docs/{name}": text for name, text in site.pages().items()}
