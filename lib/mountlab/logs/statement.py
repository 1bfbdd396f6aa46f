"""One option of a tool, as a log states it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict

from mountlab.core.model import Scalar


@dataclass(frozen=True, kw_only=True)
class Stated:
    """One option that a log states."""

    option: str
    """By its name in Mountlab."""
    value: Scalar
    """In base units, as `options.read_value` gives it. A text such as '4096, 8192' where several values hold."""
    text: str
    """In the words of the log."""
    line: int
    """In the part, from 1."""
    slack: float = 0.0
    """How far the value may be off: the log rounds it."""
    also: tuple[Scalar, ...] = ()
    """Further values that the log allows, where it states less than the option says."""
    vague: bool = False
    """Whether no single value can be held against it: '10%' of a size, or one that only some of several jobs give."""
    computed: bool = False
    """Whether it follows from figures: then it may differ a little from log to log."""

    def fits(self, value: Scalar) -> bool:
        """Return whether an option of this value is what the log states."""
        if value == self.value or value in self.also:
            return True
        if isinstance(value, str) or isinstance(self.value, str):
            return str(value).lower() == str(self.value).lower()
        return abs(float(value) - float(self.value)) <= self.slack

    def agrees(self, other: Stated) -> bool:
        """Return whether two logs can be of runs with one value of the option."""
        if isinstance(self.value, str) or isinstance(other.value, str):
            return self.fits(other.value) or other.fits(self.value)
        return abs(float(self.value) - float(other.value)) <= self.slack + other.slack or self.value in other.also


class Words(TypedDict):
    """Two fields of Stated."""

    text: str
    line: int


def words(text: str, match: re.Match[str]) -> Words:
    """Return the words and the line of a match, as Stated takes them."""
    return {"text": " ".join(match[0].split())[:100], "line": text.count("\n", 0, match.start()) + 1}
