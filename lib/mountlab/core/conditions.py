"""Conditions: the factors that say in which state a file system is, and what runs beside the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mountlab.core.numbers import listed

CONDITIONS: Mapping[str, str] = {"state": "fresh", "beside": "none"}
"""Factor of a cell that is a condition, to the level that the others are compared with."""


def reference_level(condition: str, levels: Sequence[str]) -> str:
    """Return the level that the others are compared with: `fresh`, or `none`; the first where there is no such."""
    usual = CONDITIONS[condition]
    return usual if usual in levels else levels[0]


def condition_words(condition: str, level: str) -> str:
    """'in state aged', 'beside backup and web', 'alone'."""
    if condition == "state":
        return f"in state {level}"
    return "alone" if level == CONDITIONS[condition] else f"beside {listed(level.split('+'))}"
