"""The outline of an executed notebook: parts without data leave the page together with their heading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from itertools import takewhile
from typing import Any

from mountlab.report.html import NOTHING, on_page

_HEADING = re.compile(r"###?\s+(.+)")
_TAG, _CODE_TAG = re.compile(r"<[^>]+>"), re.compile(r"</?code>")
_TOP = 2
Cell = Mapping[str, Any]


def without_empty_parts(notebook: Any, resources: Any, *, reasons_at_end: bool = True) -> tuple[Any, Any]:
    """Return the notebook without the parts (from one heading of level 2 or 3 to the next) whose cells all have no
    data; with `reasons_at_end` each that says why is a line at the end. A preprocessor of nbconvert's; `resources`
    stay as they are.
    """
    parts = _parts(notebook.cells)
    reasons = {at: _nothing_in(part) for at, part in enumerate(parts)}
    reasons |= {at: "" for at, part in enumerate(parts[:-1]) if _is_bare(part) and _level(parts[at + 1]) > _TOP}
    empty = {at: text for at, text in reasons.items() if text is not None and not _holds_others(at, parts, reasons)}
    removed = [f"- {_title(parts[at])}: {text}" for at, text in empty.items() if text]
    cells = [cell for at, part in enumerate(parts) if at not in empty for cell in part]
    if removed and reasons_at_end:
        source = "\n".join(["### Not in this report", "", *removed])
        cells.append(type(notebook.cells[0])(cell_type="markdown", id="left-out-parts", metadata={}, source=source))
    return type(notebook)({**notebook, "cells": cells}), resources


def _parts(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells before the first heading, and then those of each heading; hidden ones go with what is before
    them."""
    parts: list[list[Cell]] = [[]]
    for cell in cells:
        if cell["cell_type"] == "markdown" and not _is_hidden(cell) and _HEADING.match(cell["source"]):
            parts.append([])
        parts[-1].append(cell)
    return [part for part in parts if part]


def _is_hidden(cell: Cell) -> bool:
    return "notebook-only" in cell["metadata"].get("tags", [])


def _holds_others(at: int, parts: Sequence[Sequence[Cell]], reasons: Mapping[int, str | None]) -> bool:
    """Return whether a part of level 2 has one of level 3 in it that shows something: then its heading stays."""
    if _level(parts[at]) > _TOP:
        return False
    within = takewhile(lambda place: _level(parts[place]) > _TOP, range(at + 1, len(parts)))
    return any(reasons[place] is None for place in within)


def _is_bare(part: Sequence[Cell]) -> bool:
    """Return whether a part is a heading of level 2 alone."""
    return len(part) == 1 and _level(part) == _TOP and "\n" not in part[0]["source"].strip()


def _level(part: Sequence[Cell]) -> int:
    return len(part[0]["source"]) - len(part[0]["source"].lstrip("#"))


def _title(part: Sequence[Cell]) -> str:
    match = _HEADING.match(part[0]["source"])
    return match[1].strip() if match else ""


def _nothing_in(part: Sequence[Cell]) -> str | None:
    """Return what a part says instead of showing something; None where it shows something, or has no heading."""
    code = [cell for cell in part if cell["cell_type"] == "code" and not _is_hidden(cell)]
    outputs = [output for cell in code for output in cell["outputs"]]
    # What has no HTML (a warning, plain text) shows something.
    htmls = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    htmls = [on_page(text).strip() for text in htmls]
    empty = [text for text in htmls if text.startswith(NOTHING)]
    if not _title(part) or not htmls or len(empty) < len(htmls):
        return None
    return " ".join(unescape(_TAG.sub("", _CODE_TAG.sub("`", text))).strip() for text in empty)
