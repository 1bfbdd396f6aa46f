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
        try:
            values = {name: float(read(name)) for name in unique}
        except (ValueError, ParameterError):
            continue
        if all(map(math.isfinite, values.values())) and len(set(values.values())) == len(unique):
            order = sorted(unique, key=lambda name: values[name])
            low, high = values[order[0]], values[order[-1]]
            log = low > 0 and (kind == "size" or high / low > _WIDE)
            places = tuple(math.log2(values[name]) if log else values[name] for name in order)
            return Levels(tuple(order), places, kind, log)
    return Levels(tuple(unique), tuple(float(place) for place in range(len(unique))), "word", log=False)


def kind_of(names: Sequence[str]) -> LevelKind:
    """Return what the levels of a factor are; a single one is as good as a word, since nothing runs from it to
    another."""
    levels = levels_of(names)
    return levels.kind if len(levels.names) > 1 else "word"
