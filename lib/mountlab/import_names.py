"""What the name of a file says by a pattern with names in braces: every way in which it fits, and which is meant.

`{filesystem}-{workload}.log` fits `do-5bucks-randwrite.log` in two ways. Of all ways those with the most known names
win: file systems and workloads that the import names, levels that are values of the tool's option. Of these, `*` stands
for as much as it can. A name that fits in several ways even then is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mountlab.errors import ParameterError

TOKEN = re.compile(r"\{([a-z][a-z0-9_]*)\}|\*\*/|\*|\?")
_FREE: Mapping[str, str] = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
_MOST_WAYS = 2000
_SHOWN = 4


class Way(NamedTuple):
    """One way in which a pattern fits a name."""

    says: tuple[tuple[str, str], ...]
    """Name in braces to text, in the order of the pattern."""
    free: int
    """Characters that `*`, `?` and `**/` stand for."""


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern: a name in braces, a wildcard, or plain text."""

    name: str = ""
    free: str = ""
    text: str = ""


def ways(pattern: str, name: str) -> list[Way]:
    """Return every way in which a pattern fits the name of a file. A name in braces is one character or more, none of
    them '/', and the same wherever it stands."""
    parts = list(_parts(pattern))
    if not re.fullmatch("".join(map(_loose, parts)), name):
        return []
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for number, way in enumerate(_fits(parts, name, ())):
        found[way.says] = max(way.free, found.get(way.says, 0))
        if number > _MOST_WAYS:
            break
    return [Way(says, free) for says, free in found.items()]


def _parts(pattern: str) -> Iterator[_Part]:
    place = 0
    for match in TOKEN.finditer(pattern):
        if match.start() > place:
            yield _Part(text=pattern[place : match.start()])
        yield _Part(name=match[1]) if match[1] else _Part(free=match[0])
        place = match.end()
    if place < len(pattern):
        yield _Part(text=pattern[place:])


def _loose(part: _Part) -> str:
    """A regular expression for a part alone."""
    return "[^/]+" if part.name else _FREE[part.free] if part.free else re.escape(part.text)


def _fits(parts: Sequence[_Part], rest: str, says: tuple[tuple[str, str], ...]) -> Iterator[Way]:
    """The ways in which parts fit the rest of a name, after what was read before it."""
    if not parts:
        if not rest:
            yield Way(says, 0)
        return
    first, others = parts[0], parts[1:]
    known = dict(says).get(first.name)
    if first.text or known is not None:
        text = first.text or str(known)
        if rest.startswith(text):
            yield from _fits(others, rest[len(text) :], says)
        return
    pattern = re.compile(_loose(first), re.DOTALL)
    for end in range(len(rest) + 1):
        if pattern.fullmatch(rest, 0, end):
            more = ((first.name, rest[:end]),) if first.name else ()
            for way in _fits(others, rest[end:], (*says, *more)):
                yield Way(way.says, way.free + (0 if first.name else end))


def meant(
    found: Sequence[Way], known: Callable[[Mapping[str, str]], int], *, pattern: str, where: str
) -> dict[str, str]:
    """Return what a name says: of the ways those of which the most is known, and of these the one in which wildcards
    stand for the most. Raises ParameterError where several are left."""
    scores = [(known(dict(way.says)), way.free) for way in found]
    best = [way for way, score in zip(found, scores, strict=True) if score == max(scores)]
    if len(best) > 1:
        shown = "; ".join(", ".join(f"{key}={value}" for key, value in way.says) for way in best[:_SHOWN])
        more = f" and {len(best) - _SHOWN} more" if len(best) > _SHOWN else ""
        raise ParameterError(
            "the name of a log fits its pattern in several ways", where=where, got=f"{shown}{more}",
            allowed=f"one way to read it by {pattern}",
            next_step="in an import file, name the file systems (filesystems: {NAME: {}}) or the workloads; or write a "
            "pattern with more fixed text",
        )  # fmt: skip
    return dict(best[0].says)
