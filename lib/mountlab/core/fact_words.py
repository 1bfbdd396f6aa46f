"""What the facts about a box are called, and how their values are read by people."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.box_facts import fact_of
from mountlab.core.units import format_bytes, format_seconds


def fact_name(key: str, part: str = "") -> str:
    """'mitigations', or of one of its values 'mitigations: spectre_v2'."""
    words = fact_of(key).words
    return f"{words}: {part_name(key, part)}" if part else words


def part_name(key: str, part: str) -> str:
    """Return what one value of a fact is called: in our words, or as the kernel and the user name it."""
    return fact_of(key).parts.get(part, part)


def heading(name: str) -> str:
    """Return a name at the beginning of a line."""
    return name[:1].upper() + name[1:]


# --- values -----------------------------------------------------------------------------------------------------------


def fact_text(key: str, value: object, part: str = "") -> str:
    """Return a fact, or one of its values, as people read it: bytes with a unit, lists with commas, what is not known
    as 'not known'."""
    if value is None or value == "":
        return "not known"
    if value in ({}, [], ()):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{part_name(key, str(name))}: {fact_text(key, own, str(name))}" for name, own in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(fact_text(key, own) for own in value)
    if key == "cpu_mitigations":
        return mitigation_text(str(value))
    return _single_text(part or key, value)


def _single_text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if key.endswith("_bytes"):
            return format_bytes(float(value))
        if key.endswith("_s"):
            return format_seconds(float(value))
        if key.endswith("_hz"):
            return f"{value / 1e9:.3g} GHz"
    return str(value)


_STATE = re.compile(r"(?:KVM: )?(?P<state>Mitigation|Vulnerable|Not affected)(?:: |, |\Z)(?P<how>.*)", re.DOTALL)
_STATES = {"Mitigation": "on", "Vulnerable": "off", "Not affected": "not affected"}


def mitigation_text(said: str) -> str:
    """Format the kernel's report on one weakness: 'on (Retpolines; STIBP: disabled)', 'off' or 'not affected'."""
    match = _STATE.match(said)
    if not match:
        return said
    state, how = _STATES[match["state"]], match["how"]
    return f"{state} ({how})" if how else state
