"""Text that is not ours, for people: nothing in it can steer a terminal, turn text round, or hide.

`visible` is the one function for that. Every command prints through it, since its standard streams are `Guarded`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

_UNSEEN = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What a terminal obeys, what turns text around or hides in it, and what is no character: control characters, controls
for the direction of writing, characters without a width, halves of surrogate pairs, tags. Joiners, which some scripts
are written with, are none; nor are a tab, a new line, and a carriage return before that."""


def visible(text: str) -> str:
    """Return text in which nothing hides: 'a[U+202E]b' for what would show as 'a' and, from right to left, what
    follows."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def one_line(text: str) -> str:
    """Return the same on one line, for a name or a fact: with a new line in it, it could pass for a line of ours."""
    return visible(text.replace("\r\n", "\n")).replace("\n", "[U+000A]")


def capital(text: str) -> str:
    """Return text with its first letter in upper case: a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}"


def lines_of(texts: Iterable[str]) -> str:
    """Return texts below each other, each of them on one line."""
    return "\n".join(map(one_line, texts))


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: each column as wide as its widest text, with no blanks at the end of a line."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet takes for a formula, in full-width letters too."""


def plain_cell(value: Any) -> Any:
    """Return a value for a CSV file that people open: text is visible, and no formula, as an apostrophe stands before
    it."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)


class Guarded:
    """A stream for people: what is written to it is made visible. All else is as on the stream below."""

    def __init__(self, below: TextIO) -> None:
        self.below = below
        """For what we draw ourselves, such as a progress bar: its writer makes each text visible."""

    def write(self, text: str) -> int:
        """Write a text, and return its length as it was given."""
        self.below.write(visible(text))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write several texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


def drawn_on(stream: Any) -> Any:
    """Return the stream on which a progress bar draws: it moves the cursor, which a guarded stream does not allow."""
    return stream.below if isinstance(stream, Guarded) else stream
