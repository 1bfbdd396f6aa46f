"""The levels of a factor as places on an axis: sizes and wide ranges by their logarithm, words one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.core.errors import ParameterError
from mountlab.core.units import parse_bytes, parse_seconds

_WIDE = 6.0
"""Numbers whose largest is more than this many times the smallest stand by their logarithm."""
LevelKind = Literal["size", "number", "word"]


@dataclass(frozen=True)
class Levels:
    """Levels as people write them, in order, and where each stands."""

    names: tuple[str, ...]
    places: tuple[float, ...]
    kind: LevelKind
    log: bool

    def place(self, name: str) -> float:
        """Return where a level stands."""
        return self.places[self.names.index(name)]

    @property
    def step(self) -> float:
        """The least distance of two neighbours; 1 for a single level."""
        return min((b - a for a, b in zip(self.places, self.places[1:], strict=False)), default=1.0)


def levels_of(names: Iterable[str]) -> Levels:
    """Sizes ('4KiB') and numbers ('8', '100ms') in rising order, anything else in the order in which it comes."""
    unique = list(dict.fromkeys(names))
    readers: tuple[tuple[LevelKind, Callable[[str], float]], ...] = (
        ("number", float), ("size", parse_bytes), ("number", parse_seconds),
    )  # fmt: skip
    for kind, read in readers:
        values = _all_read(unique, read)
        if values is not None:
            return _numeric(unique, values, kind)
    return Levels(tuple(unique), tuple(float(place) for place in range(len(unique))), "word", log=False)


def kind_of(names: Sequence[str]) -> LevelKind:
    """Return what the levels of a factor are; a single one is as good as a word, since nothing runs from it to
    another."""
    found = levels_of(names)
    return found.kind if len(found.names) > 1 else "word"


def _numeric(names: Sequence[str], values: Sequence[float], kind: LevelKind) -> Levels:
    order = sorted(range(len(names)), key=lambda place: values[place])
    log = values[order[0]] > 0 and (kind == "size" or values[order[-1]] / values[order[0]] > _WIDE)
    places = tuple(math.log2(values[place]) if log else values[place] for place in order)
    return Levels(tuple(names[place] for place in order), places, kind, log)


def _all_read(names: Sequence[str], read: Callable[[str], float]) -> list[float] | None:
    """Finite and all different, or None."""
    try:
        values = [float(read(name)) for name in names]
    except (ValueError, ParameterError):
        return None
    return values if all(map(math.isfinite, values)) and len(set(values)) == len(values) else None
