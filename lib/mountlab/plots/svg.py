"""A figure's SVG document as one element of a page: its colours and fonts, its own ids, its alternative text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from html import escape

from matplotlib.artist import Artist

INK = "#010203"
"""Stands for the text colour of the page."""
PAGE_INK = "currentColor"


def for_page(document: str, *, alt: str) -> str:
    """Return the <svg> element of a document, with page colours, page fonts, unique ids, and its alternative text."""
    body = _with_titles(_WITHOUT.sub("", document[document.index("<svg") :]).strip())
    prefix = f"p{hashlib.sha256((alt + body).encode()).hexdigest()[:8]}-"
    body = _TAG.sub(lambda tag: _mend_tag(tag[0], prefix), body)
    head = f'<svg role="img" aria-label="{escape(alt)}" style="{_SVG_STYLE}"'
    return CONTROL.sub("\ufffd", head + body.removeprefix("<svg"))


_WITHOUT = re.compile(r"<!--.*?-->\s*|<style.*?</style>\s*", re.DOTALL)
"""Inside a page the style element of one figure would apply to all of the page; what it says is in _SVG_STYLE."""
_SVG_STYLE = "max-width: min(100%, 33rem); height: auto; stroke-linejoin: round; stroke-linecap: butt"
_TAG = re.compile(r"<[^!>]+>")
"""A tag, and never text: Matplotlib escapes the < and > of texts and attributes."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What no font draws, and no document may hold."""


MOST_TITLES = 400
"""Of one call of `say`: more would make the page slow to open."""
_SAYING = re.compile(r'<g id="say\n([^"]*)">')


def say(artist: Artist, texts: Sequence[str]) -> None:
    """Have the marks of an artist say a text each when they are pointed at; a single text is that of the artist."""
    if 0 < len(texts) <= MOST_TITLES:
        artist.set_gid("\n".join(["say", *(" ".join(text.split()) for text in texts)]))


def _with_titles(body: str) -> str:
    """Return the SVG with a <title> in each mark whose group has its texts as its id, where Matplotlib puts it."""
    head, *groups = _SAYING.split(body)
    for texts, rest in zip(groups[::2], groups[1::2], strict=True):
        titles = [f"<title>{text}</title>" for text in texts.split("\n")]
        inside, end, others = rest.partition("</g>")
        marks = inside.split("<use ")
        if len(titles) == 1:
            marks[0] = titles[0] + marks[0]
        elif len(marks) == len(titles) + 1:  # else some lie outside of the picture
            marks[1:] = [
                mark.replace("/>", f">{title}</use>", 1) for mark, title in zip(marks[1:], titles, strict=True)
            ]
        head += f"<g>{'<use '.join(marks)}{end}{others}"
    return head


def _mend_tag(tag: str, prefix: str) -> str:
    tag = re.sub(r'^<g id="[^"]*"', "<g", tag)  # groups are referred to by nothing
    tag = re.sub(r'\bid="', f'id="{prefix}', tag)
    tag = tag.replace("url(#", f"url(#{prefix}").replace('xlink:href="#', f'href="#{prefix}')
    tag = tag.replace(INK, PAGE_INK)
    return re.sub(r"font-family: [^;\"]+", "font-family: inherit", tag)
