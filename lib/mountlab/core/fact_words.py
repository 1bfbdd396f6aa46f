"""A fact about a box as people read it."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.units import format_bytes, format_seconds


def fact_text(key: str, value: object) -> str:
    """A fact as people read it: bytes with a unit, lists with commas, what is not known as 'not known'."""
    if value is None or value == "":
        return "not known"
    if value in ({}, [], ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_bytes") and isinstance(value, int | float):
        return format_bytes(float(value))
    if key.endswith("_s") and isinstance(value, int | float):
        return format_seconds(float(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {fact_text(str(name), part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(fact_text(key, part) for part in value)
    return str(value)
