"""The outline of an executed notebook: parts that have nothing to show leave the page together with their heading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

from mountlab.report.html import JUPYTERLAB_STYLE, NOTHING

_HEADING = re.compile(r"##\s+(.+)")
_TAG = re.compile(r"<[^>]+>")
Cell = Mapping[str, Any]


def without_empty_parts(notebook: Any, resources: Any) -> tuple[Any, Any]:
    """The notebook without the parts (from one heading of level 2 to the next) whose cells all say that they have
    nothing to show; what they say is one list at the end. A preprocessor of nbconvert's; `resources` stay as they are.
    """
    kept, gone = [], []
    for part in _parts(notebook.cells):
        said = _nothing_in(part)
        gone += [f"- {_title(part)}: {said}"] if said else []
        kept += [] if said else part
    if gone:
        source = "\n".join(["## Nothing to show", "", *gone])
        kept.append(type(notebook.cells[0])(cell_type="markdown", id="left-out-parts", metadata={}, source=source))
    return type(notebook)({**notebook, "cells": kept}), resources


def _parts(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells before the first heading, and then those of each heading; hidden ones go with what is before them."""
    parts: list[list[Cell]] = [[]]
    for cell in cells:
        hidden = "notebook-only" in cell["metadata"].get("tags", [])
        if cell["cell_type"] == "markdown" and not hidden and _HEADING.match(cell["source"]):
            parts.append([])
        parts[-1].append(cell)
    return [part for part in parts if part]


def _title(part: Sequence[Cell]) -> str:
    match = _HEADING.match(part[0]["source"])
    return match[1].strip() if match else ""


def _nothing_in(part: Sequence[Cell]) -> str:
    """What a part says instead of showing something; '' where it shows something, or has no heading."""
    shown = [_shown(output) for cell in part if cell["cell_type"] == "code" for output in cell["outputs"]]
    empty = [text for text in shown if text.startswith(NOTHING)]
    if not _title(part) or not shown or len(empty) < len(shown):
        return ""
    return " ".join(unescape(_TAG.sub("", text)).strip() for text in empty)


def _shown(output: Mapping[str, Any]) -> str:
    """The HTML of an output; what has none (a warning, plain text) shows something."""
    found = output.get("data", {}).get("text/html", "")
    return "".join(found).replace(JUPYTERLAB_STYLE, "").strip()
