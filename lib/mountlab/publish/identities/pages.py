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
    head, body, said = text.partition("<body>") if "<body>" in text else ("", "", text)
    parts, done = [head + body], 0
    for match in _TAG.finditer(said):
        tag = match[0] if match["silent"] else _tag_with(match[0], replace)
        parts += [replace(said[done : match.start()]), tag]
        done = match.end()
    return "".join([*parts, replace(said[done:])])


def _tag_with(tag: str, replace: Callable[[str], str]) -> str:
    def changed(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        ours = name in _OURS or value[1:2] == "#"
        return match[0] if ours else f"{name}={value[0]}{replace(value[1:-1])}{value[-1]}"

    return _ATTRIBUTE.sub(changed, tag)


def said_by_page(text: str) -> str:
    """Return what a page says, a line for each piece of it."""
    found: list[str] = []

    def kept(piece: str) -> str:
        found.append(piece)
        return piece

    page_with(text, kept)
    return "\n".join(found)


def said_by_notebook(text: str) -> str:
    """Return every text in a notebook, without the keys of its format."""
    return "\n".join(_texts(json.loads(text)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []
