"""The state of arrays of md (/proc/mdstat), of pools of ZFS and of volumes of LVM (`state_commands`) around a trial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ARRAY = re.compile(r"^(md\S*) : (.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_DOING = re.compile(r"\b(resync|recovery|reshape|check|repair)\s*=\s*(\S+)")
_POOL = re.compile(r"^ *pool: (\S+)\n *state: (\S+)((?:\n.+)*)", re.MULTILINE)
_SCAN = re.compile(r"^ *scan: (scrub|resilver)\b.* in progress", re.MULTILINE)
_VOLUME = re.compile(r"^lvm (\S+)\n\d+ \d+ raid \S+ (\d+) ([AaD-]+) \S+ (\S+)", re.MULTILINE)
"""Name, number of parts, their health (A: alive, a: not in step, else dead or absent) and what it does, of dm-raid."""
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


def unclean_below(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str] | None:
    """Return 'the pool NAME' or 'the volume NAME' to its state in one of two counter snapshots, of those that were not
    clean; None where neither shows one."""
    texts = [snapshot.get("state", "") for snapshot in (before, after)]
    states = [state for text in texts for state in (*_pools(text), *_volumes(text))]
    return {name: state for name, state in states if state} if states else None


def _pools(text: str) -> Iterator[tuple[str, str]]:
    """Yield pool to 'DEGRADED', 'ONLINE, scrub' and the like; '' where it is clean."""
    for name, state, rest in _POOL.findall(text):
        scan = _SCAN.search(rest)
        doing = f", {scan[1]}" if scan else ""
        yield f"the pool {name}", f"{state}{doing}" if scan or state != "ONLINE" else ""


def _volumes(text: str) -> Iterator[tuple[str, str]]:
    """Yield volume to 'recover, 1 of 2 devices' and the like; '' where it is clean (kernel: dm-raid.rst)."""
    for name, count, health, action in _VOLUME.findall(text):
        alive = health.count("A") + health.count("a")
        words = [
            *([action] if action not in ("idle", "frozen") else ["not in step"] if "a" in health else []),
            *([f"{alive} of {count} devices"] if alive < int(count) else []),
        ]
        yield f"the volume {name}", ", ".join(words)
