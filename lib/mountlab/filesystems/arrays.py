"""The state of arrays of md (/proc/mdstat) and of pools of ZFS (kstat) around a trial."""

from __future__ import annotations

import re
from collections.abc import Mapping

POOL_STATE = "/proc/spl/kstat/zfs/{}/state"
"""Where the kernel shows the state of a pool: ONLINE, DEGRADED, FAULTED, SUSPENDED and so on. A resilver or scrub of a
whole pool is not in it."""
_POOL_STATE = re.compile(POOL_STATE.format("([^/]+)"))
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


def unclean_pools(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str] | None:
    """Return pool to a state other than ONLINE in one of two counter snapshots; None where neither shows a pool."""
    parts = [part for snapshot in (before, after) for part in snapshot.items()]
    states = [(match[1], text.strip()) for name, text in parts if (match := _POOL_STATE.fullmatch(name))]
    return {name: state for name, state in states if state != "ONLINE"} if states else None
