"""How much room a text takes, and texts that fit into the room that there is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from mountlab.plots.style import TEXT_PT
from mountlab.plots.svg import CONTROL

LONGEST_LABEL = 34
_BLANKS = re.compile(r"[^\S\u00a0\u202f]+")
"""But for those at which no line is broken."""
_SHARED = re.compile("…(?: …)+")
_SIGN = re.compile(r"[-_/=:,.]")
LINE = 1.25
"""The distance of two lines, in heights of the type."""


@lru_cache(maxsize=8192)
def width_pt(text: str, size: float = TEXT_PT, weight: str = "normal") -> float:
    """Return how wide a line of text is, in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, False)
    return float(width)


def one_line(text: str) -> str:
    """Return a label on one line, of characters that can be drawn."""
    return CONTROL.sub("\ufffd", _BLANKS.sub(" ", text).strip())


def short(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a label on one line and of a length that leaves room for the data; tables carry the whole name."""
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def fitted(text: str, room_pt: float, *, size: float = TEXT_PT, weight: str = "normal") -> str:
    """Return a label on one line; one that is wider than its room without a part of its middle: names differ at their
    ends."""
    line = one_line(text)
    if width_pt(line, size, weight) <= room_pt:
        return line
    for kept in range(len(line) - 1, 0, -1):
        tail = kept // 3  # two of three letters from the beginning, the others from the end
        cut = f"{line[: kept - tail].rstrip()}…{line[len(line) - tail :].lstrip()}"
        if width_pt(cut, size, weight) <= room_pt:
            return cut
    return "…"


def distinct(texts: Sequence[str], fits: Callable[[str], bool]) -> list[str]:
    """Return the labels; where one does not fit, all without the options that they share: cut they would be alike."""
    words = [one_line(text).split(" ") for text in texts]
    if len(texts) < 2 or all(fits(" ".join(parts)) for parts in words):
        return list(texts)
    shared = {word for word in set.intersection(*map(set, words)) if "=" in word}
    return [_SHARED.sub("…", " ".join("…" if word in shared else word for word in parts)) for parts in words]


def wrapped(text: str, room_pt: float, *, lines: int = 3, size: float = TEXT_PT, weight: str = "normal") -> str:
    """Return a label on as many lines as it needs, but for `lines` at most: the last one is cut then."""
    lines_so_far: list[str] = []
    for word in _parts(one_line(text), room_pt, size, weight):
        if lines_so_far and width_pt(f"{lines_so_far[-1]} {word}", size, weight) <= room_pt:
            lines_so_far[-1] += f" {word}"
        else:
            lines_so_far.append(word)
    if len(lines_so_far) > lines:
        lines_so_far[lines - 1 :] = [fitted(" ".join(lines_so_far[lines - 1 :]), room_pt, size=size, weight=weight)]
    return "\n".join(lines_so_far)


def _parts(line: str, room_pt: float, size: float, weight: str) -> Iterator[str]:
    """Yield the words of a line; one that is wider than the room in pieces, after a sign where there is one."""
    for word in line.split(" "):
        while width_pt(word, size, weight) > room_pt and len(word) > 1:
            longest = next((n for n in range(len(word) - 1, 1, -1) if width_pt(word[:n], size, weight) <= room_pt), 1)
            end = max((sign.end() for sign in _SIGN.finditer(word[:longest])), default=longest)
            yield word[:end]
            word = word[end:]
        yield word
