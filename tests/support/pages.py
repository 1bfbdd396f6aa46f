"""What the tests want to know of a page or a piece of one."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"br", "img", "input", "link", "meta"}


class Page(HTMLParser):
    """Tags, attributes as (tag, name, value), headings as (level, text), words; tags closed out of order or never."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.headings: list[tuple[int, str]] = []
        self.words = ""
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.feed(str(text))  # what is added to Html would be escaped

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.open += [tag] if tag not in VOID else []
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.crossed.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.open and re.fullmatch(r"h[1-6]", self.open[-1]):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def values(self, name: str, tag: str = "") -> list[str]:
        """Every value of an attribute, of one kind of tag or of all."""
        return [value for its_tag, key, value in self.attributes if key == name and tag in ("", its_tag)]

    def active(self) -> set[str]:
        """What could run code or load something: tags, and attributes that handle events."""
        loading = {"script", "iframe", "object", "embed", "img", "base", "video", "audio"} & set(self.tags)
        return loading | {name for _, name, _ in self.attributes if name.startswith("on")}


COMPARED = (
    "question", "answer", "overview", "caveats", "which", "differences", "verdicts", "cell_by_cell", "not_compared",
)  # fmt: skip
"""The parts of the page of a comparison, in its order: names of `mountlab.sections`."""
