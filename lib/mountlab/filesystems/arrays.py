"""The state of the arrays of md while a tool runs, by /proc/mdstat."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ARRAY = re.compile(r"^(md\S*) : (.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_DOING = re.compile(r"\b(resync|recovery|reshape|check|repair)\s*=\s*(\S+)")
_DEVICES = re.compile(r"\[(\d+)/(\d+)\] \[([U_]+)\]")


def unclean_arrays(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str] | None:
    """Return array to what it is doing, or lacks, in one of two counter snapshots; None where neither has arrays."""
    texts = [text for snapshot in (before, after) if (text := snapshot.get("/proc/mdstat"))]
    return {name: state for text in texts for name, state in _unclean(text).items()} if texts else None


def _unclean(text: str) -> dict[str, str]:
    """Return array to 'resync at 12.6%', 'recovery, 1 of 2 devices' and the like, of those that are not clean."""
    states = {}
    for name, body in _ARRAY.findall(text):
        words = []
        if doing := _DOING.search(body):
            at = doing[2]
            words.append(f"{doing[1]} {at.lower()}" if at.isalpha() else f"{doing[1]} at {at}")
        if (devices := _DEVICES.search(body)) and "_" in devices[3]:
            words.append(f"{devices[3].count('U')} of {devices[1]} devices")
        if words:
            states[name] = ", ".join(words)
    return states
