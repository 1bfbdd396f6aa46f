"""Conditions: the factors that say in which state a file system is, and what runs beside the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.core.numbers import listed
from mountlab.core.state import FRESH

STATE = "state"
"""The factor that says in which state a file system is, and its key in a sweep file."""
BESIDE = "beside"
"""The factor that says what runs beside a workload, and its key in a sweep file."""
ALONE = "none"
"""Its level without a neighbour: no neighbour has this name."""
TOGETHER = "+"
"""Between the names of neighbours that run together, in the level's label."""
CONDITIONS: Mapping[str, str] = {STATE: FRESH, BESIDE: ALONE}
"""Factor of a cell that is a condition, to the level that the others are compared with."""


@dataclass(frozen=True)
class NeighbourPlace:
    """Where a neighbour runs: on the file system under test, on another one of the sweep, or on a client."""

    kind: Literal["same", "filesystem", "client"] = "same"
    name: str = ""
    """Of the file system or the client."""

    @property
    def client(self) -> str:
        """The client; '' where that is the box of the sweep."""
        return self.name if self.kind == "client" else ""


SAME_PLACE = NeighbourPlace()
"""On the file system under test."""


def reference_level(condition: str, levels: Sequence[str]) -> str:
    """Return the level that the others are compared with: `fresh`, or `none`; the first where there is no such."""
    usual = CONDITIONS[condition]
    return usual if usual in levels else levels[0]


def condition_words(condition: str, level: str) -> str:
    """'in state aged', 'beside backup and web', 'alone'."""
    if condition == STATE:
        return f"in state {level}"
    return "alone" if level == ALONE else f"beside {listed(level.split(TOGETHER))}"
