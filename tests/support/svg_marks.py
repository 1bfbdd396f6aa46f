"""Colours and texts as a reader of a page meets them: read from its inline SVG and from the keys above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HREF = ("href", "{http://www.w3.org/1999/xlink}href")
_COLOUR = re.compile(r"(?:fill|stroke): (#[0-9a-f]{6})")
_KEY = re.compile(r'<span class="key">\s*<[^>]*style="color:\s*([^";]+)"[^>]*>[^<]*</[^>]+>\s*([^<]*)<')
_PLACE = re.compile(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)")
_SAME_ROW_PT = 4.0


def drawings(page: str) -> list[ElementTree.Element]:
    """The <svg> elements of a page."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg\b.*?</svg>", page, re.DOTALL)]


def colours(drawing: ElementTree.Element) -> set[str]:
    """All colours of a drawing; text and axes have that of the page, which is none of them."""
    found: set[str] = set()
    for node in drawing.iter():
        found |= set(_COLOUR.findall(node.get("style", "")))
        found |= {node.get(name, "") for name in ("fill", "stroke") if node.get(name, "").startswith("#")}
    return found


def keys(page: str) -> set[tuple[str, str]]:
    """Name and colour of each key on a page."""
    return {(unescape(name).strip(), colour.lower()) for colour, name in _KEY.findall(page)}


def beside(drawing: ElementTree.Element, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each of the names that stands as a text in a drawing, and the colour of the marker that is nearest in its row."""
    wanted = set(names)
    markers = [(*_place(node), node.get("style", "")) for node in drawing.iter(f"{SVG}use")]
    for text in drawing.iter(f"{SVG}text"):
        x, y = _place(text)
        row = [(abs(at - x), style) for at, height, style in markers if abs(height - y + _SAME_ROW_PT) <= _SAME_ROW_PT]
        row = [each for each in row if _COLOUR.search(each[1])]
        if str(text.text) in wanted and row:
            yield str(text.text), _COLOUR.findall(min(row)[1])[0]


def _place(node: ElementTree.Element) -> tuple[float, float]:
    if moved := _PLACE.search(node.get("transform", "")):
        return float(moved[1]), float(moved[2])
    return float(node.get("x", "nan")), float(node.get("y", "nan"))
