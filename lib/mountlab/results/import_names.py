"""What the name of a file says by a pattern with names in braces: every way in which it fits, and which is meant.

`{filesystem}-{workload}.log` fits `do-5bucks-randwrite.log` in two ways. Of all ways those with the most known names
win: file systems and workloads that the import names, levels that are values of the tool's option. Of these, `*` stands
for as much as it can. A name that fits in several ways even then is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from mountlab.core.errors import ParameterError

TOKEN = re.compile(r"\{([a-z][a-z0-9_]*)\}|\*\*/|\*|\?")
_MOST_WAYS = 2000
_SHOWN = 4


class Way(NamedTuple):
    """One way in which a pattern fits a name."""

    says: tuple[tuple[str, str], ...]
    """Name in braces to text, in the order of the pattern."""
    free: int
    """Characters that `*`, `?` and `**/` stand for."""


_NOTHING = Way((), 0)


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern: a name in braces, a wildcard, or plain text."""

    name: str = ""
    free: str = ""
    text: str = ""


def ways(pattern: str, name: str) -> list[Way]:
    """Return every way in which a pattern fits the name of a file. A name in braces is one character or more, none of
    them '/', and the same wherever it stands."""
    parts = _parts(pattern)
    if not _may_fit(parts, name):
        return []
    freedom: dict[tuple[tuple[str, str], ...], int] = {}
    for number, way in enumerate(_fits(parts, _open(parts, name), name)):
        freedom[way.says] = max(way.free, freedom.get(way.says, 0))
        if number > _MOST_WAYS:
            break
    return [Way(says, free) for says, free in freedom.items()]


@cache
def _parts(pattern: str) -> tuple[_Part, ...]:
    found, place = [], 0
    for match in TOKEN.finditer(pattern):
        found += [_Part(text=pattern[place : match.start()])] if match.start() > place else []
        found.append(_Part(name=match[1]) if match[1] else _Part(free=match[0]))
        place = match.end()
    return (*found, *([_Part(text=pattern[place:])] if place < len(pattern) else []))


def _may_fit(parts: Sequence[_Part], name: str) -> bool:
    """Return whether the plain texts of a pattern stand in a name, one after the other: a quick look at files of
    others."""
    at = 0
    for part in parts:
        at = name.find(part.text, at)
        if at < 0:
            return False
        at += len(part.text)
    return not parts or name.endswith(parts[-1].text)


def _ends(part: _Part, name: str, start: int) -> Iterator[int]:
    """Yield the places at which a part may end that begins at `start`."""
    if part.text:
        yield from [start + len(part.text)] * name.startswith(part.text, start)
    elif part.free == "**/":
        yield start
        yield from (end + 1 for end in range(start, len(name)) if name[end] == "/")
    else:
        slash = name.find("/", start)
        last = len(name) if slash < 0 else slash
        yield from range(start + (part.free != "*"), min(last, start + 1 if part.free == "?" else last) + 1)


def _open(parts: Sequence[_Part], name: str) -> list[set[int]]:
    """For each part the places from which it and all after it can fit the rest of a name; last the end of the name."""
    places = [{len(name)}]
    for part in reversed(parts):
        places.append({at for at in range(len(name) + 1) if any(end in places[-1] for end in _ends(part, name, at))})
    return places[::-1]


def _fits(
    parts: Sequence[_Part], places: Sequence[Container[int]], name: str, start: int = 0, before: Way = _NOTHING
) -> Iterator[Way]:
    """Yield the ways in which parts fit the rest of a name, after what was read before it."""
    if start not in places[0]:
        return
    if not parts:
        yield before
        return
    text = dict(before.says).get(parts[0].name)
    for end in _ends(_Part(text=text) if text else parts[0], name, start):
        more = ((parts[0].name, name[start:end]),) if parts[0].name and not text else ()
        free = end - start if parts[0].free else 0
        yield from _fits(parts[1:], places[1:], name, end, Way((*before.says, *more), before.free + free))


def choose_way(
    candidates: Sequence[Way], count_known: Callable[[Mapping[str, str]], int], *, pattern: str, where: str
) -> dict[str, str]:
    """Return what a name states: of the ways those with the most known values, and of these the one in which wildcards
    stand for the most. Raises ParameterError where several are left."""
    scores = [(count_known(dict(way.says)), way.free) for way in candidates]
    best = [way for way, score in zip(candidates, scores, strict=True) if score == max(scores)]
    if len(best) > 1:
        readings = "; ".join(", ".join(f"{key}={value}" for key, value in way.says) for way in best[:_SHOWN])
        more = f" and {len(best) - _SHOWN} more" if len(best) > _SHOWN else ""
        raise ParameterError(
            "the name of a log fits its pattern in several ways",
            where=where,
            got=f"{readings}{more}",
            allowed=f"one way to read it by {pattern}",
            next_step="in an import file, name the file systems (filesystems: {NAME: {}}) or the workloads; or write a "
            "pattern with more fixed text",
        )
    return dict(best[0].says)
