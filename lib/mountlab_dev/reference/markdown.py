"""Markdown that every forge shows alike: tables, headings, code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `make docs` from the code. Change it there. -->"


def page(title: str, *parts: str) -> str:
    """Return a page, its title first."""
    return "\n\n".join([MADE, f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell may hold anything but a line break, which becomes a blank."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(text: str) -> str:
    """Return one line, with bars that do not end the cell."""
    return one_line(text).replace("|", "\\|")


def one_line(text: str) -> str:
    """With every run of white space as one blank."""
    return " ".join(text.split())


def code(text: object) -> str:
    """As code; '' for nothing."""
    shown = str(text)
    if not shown:
        return ""
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def codes(names: Iterable[object]) -> str:
    """Return each as code, with commas between."""
    return ", ".join(map(code, names))


def paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    return one_line((docstring or "").strip().split("\n\n")[0])


def paragraphs_after_first(docstring: str | None) -> str:
    """Return the rest of a docstring in one line; '' where there is none."""
    return one_line((docstring or "").strip().partition("\n\n")[2])


def prose(docstring: str | None) -> str:
    """Return all paragraphs of a docstring, each in one line; an indented one is code."""
    parts = re.split(r"\n\s*\n", (docstring or "").strip("\n"))
    return "\n\n".join(one_line(part) for part in parts)
