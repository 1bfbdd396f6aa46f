"""Which of many texts can hold what some expressions look for: asked of all texts at once, before each is searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

_T = TypeVar("_T")
_LOOKAROUND = re.compile(r"\(\?<?[=!](?:[^()\\]|\\.)*\)")
_BEFORE = re.compile(r"\A\(\?<!\[([^]^][^]]*)\]\)")
_AFTER = re.compile(r"\(\?!\[([^]^][^]]*)\]\)\Z")
_NAME = re.compile(r"\(\?P<\w+>")
_MANY = re.compile(r"\{(\d+),\d{4,}\}")
"""RE2 counts to a thousand."""
_UNUSUAL = r"[^\x00-\x0a\x0c-\x1b\x20-\x7f]"
"""Characters that may be letters, digits or blanks for Python's expressions, and never are for those of RE2."""
_BATCH = 4_000_000
"""Characters of the texts that are looked at together."""


class Sieve:
    """RE2, which pyarrow brings, reads a text for all expressions at once, a hundred times as fast as `re` does. It has
    no lookaround: without it an expression matches all that it did, and more. A text with an unusual character may
    hold anything, and so may every text where RE2 does not take an expression."""

    def __init__(self, expressions: Iterable[re.Pattern[str]]) -> None:
        self._regex = "|".join((_UNUSUAL, *map(_loosened, expressions)))

    def sift(self, items: Iterable[_T], text: Callable[[_T], bytes]) -> Iterator[tuple[_T, bool]]:
        """Yield the items, and whether the text of each may hold anything."""
        batch, size = list[tuple[_T, bytes]](), 0
        for item in items:
            batch.append((item, text(item)))
            size += len(batch[-1][1])
            if size > _BATCH:
                yield from self._sifted(batch)
                batch, size = [], 0
        yield from self._sifted(batch)

    def _sifted(self, batch: list[tuple[_T, bytes]]) -> Iterator[tuple[_T, bool]]:
        texts = pa.array([text for _, text in batch], pa.large_binary())
        marks = pc.match_substring_regex(texts, pattern=self._regex).to_pylist()
        yield from ((item, mark) for (item, _), mark in zip(batch, marks, strict=True))


def _loosened(expression: re.Pattern[str]) -> str:
    """Return an expression for RE2 that matches in each text in which this one does; where it has none, "", which
    matches in all."""
    regex = _AFTER.sub(r"(?:[^\1]|$)", _BEFORE.sub(r"(?:^|[^\1])", expression.pattern))
    regex = _MANY.sub(r"{\1,}", _NAME.sub("(?:", _LOOKAROUND.sub("", regex)))
    is_verbose = expression.flags & re.VERBOSE and re.search(r"[\s#]", regex)
    if expression.flags & ~(re.IGNORECASE | re.UNICODE | re.VERBOSE) or is_verbose or "{," in regex:
        return ""
    regex = f"(?{'mi' if expression.flags & re.IGNORECASE else 'm'}:{regex})"  # Python's $ is also before the last '\n'
    try:
        pc.match_substring_regex(pa.array([b""]), pattern=regex)
    except pa.ArrowInvalid:
        return ""
    return regex
