"""What a page of ours says, apart from the words that it is written in: only that is replaced and searched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_TAG = re.compile(
    r"""<(?P<silent>script|style)\b.*?</(?P=silent)>|<[/!?]?[A-Za-z-]+(?:[^<>"']|"[^"]*"|'[^']*')*>""",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""(?P<name>[^\s=/"'<>]+)=(?P<value>"[^"]*"|'[^']*')""")
_OURS_WORDS = "class id style d points transform type rel role scope for tabindex lang viewBox xmlns fill stroke"
_OURS = frozenset(_OURS_WORDS.split())
"""Attributes whose values are ours, and do not come from the run."""


def page_with(text: str, replace: Callable[[str], str]) -> str:
    """Return a page with `replace` done to what it says: text and values of attributes after its head, in which are our
    style and our script, which the page's policy names by its hash."""
    head, body, content = text.partition("<body>") if "<body>" in text else ("", "", text)

    def attribute(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        ours = name in _OURS or value[1:2] == "#"
        return match[0] if ours else f"{name}={value[0]}{replace(value[1:-1])}{value[-1]}"

    parts, done = [head + body], 0
    for match in _TAG.finditer(content):
        tag = match[0] if match["silent"] else _ATTRIBUTE.sub(attribute, match[0])
        parts += [replace(content[done : match.start()]), tag]
        done = match.end()
    return "".join([*parts, replace(content[done:])])


def texts_of_page(text: str) -> str:
    """Return what a page says, a line for each piece of it."""
    pieces: list[str] = []

    def keep(piece: str) -> str:
        pieces.append(piece)
        return piece

    page_with(text, keep)
    return "\n".join(pieces)


def texts_of_notebook(text: str) -> str:
    """Return every text in a notebook, without the keys of its format."""
    return "\n".join(_texts(json.loads(text)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) else []
