"""Values of mount options, compared by what they mean: the kernel writes the same thing in another way."""

from __future__ import annotations

import re
from collections.abc import Callable

from mountlab.filesystems.without_effect import EXT

Compare = Callable[[str, str], bool]


# --- memory policies (tmpfs) ------------------------------------------------------------------------------------------

_POLICY = re.compile(r"(?P<mode>[a-z][a-z ()]*)(?:=(?P<flag>[a-z]+))?(?::(?P<nodes>.*))?\Z")
_OVER_ALL_NODES = ("interleave", "weighted interleave")
"""Modes that take every node with memory where no node is named."""


def same_policy(requested: str, shown: str) -> bool:
    """Return whether two memory policies are one (mm/mempolicy.c: mpol_parse_str): modes, flags and sets of nodes."""
    ours, theirs = _POLICY.match(requested.strip("\"'")), _POLICY.match(shown)
    if not ours or not theirs:
        return requested == shown
    if ours["mode"] == "prefer" and ours["nodes"] is None:
        return theirs["mode"] in ("local", "prefer") and theirs["nodes"] is None
    if (ours["mode"], ours["flag"]) != (theirs["mode"], theirs["flag"]):
        return False
    if ours["nodes"] is None:
        return ours["mode"] in _OVER_ALL_NODES or theirs["nodes"] is None
    return same_nodes(ours["nodes"], theirs["nodes"] or "")


def same_nodes(requested: str, shown: str) -> bool:
    """Return whether two lists of nodes name the same ones."""
    ours = nodes(requested)
    return ours is not None and ours == nodes(shown)


_REGION = re.compile(r"(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?\Z")
_MOST_NODES = 1 << 16
"""More than any kernel knows (MAX_NUMNODES is at most 1024)."""


def nodes(text: str) -> frozenset[int] | None:
    """Return the nodes of a list such as 0-3,5 or 0-7:1/2 (of every two the first); None where it cannot be read."""
    numbers: set[int] = set()
    for region in filter(None, text.split(",")):
        match = _REGION.match(region)
        if not match or int(match[2] or match[1]) >= _MOST_NODES:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        used, group = int(match[3] or 1), int(match[4] or 1)
        if not group:
            return None
        numbers |= {node for node in range(first, last + 1) if (node - first) % group < used}
    return frozenset(numbers)


# --- others -----------------------------------------------------------------------------------------------------------


def same_compression(requested: str, shown: str) -> bool:
    """Return whether two values of btrfs's compress= are one. Level 0 is the default level of zlib and zstd, 3."""
    return _level(requested) == _level(shown)


def _level(value: str) -> tuple[str, str]:
    kind, _, level = (value or "zlib").partition(":")
    return kind, level if level not in ("", "0") else "" if kind == "lzo" else "3"


def with_default(default: str) -> Compare:
    """Return a comparison for an option whose 0 means the default."""

    def same(requested: str, shown: str) -> bool:
        return requested.isdecimal() and shown.isdecimal() and int(shown) == (int(requested) or int(default))

    return same


def among(requested: str, shown: str) -> bool:
    """Return whether a value is one of several that are shown between colons."""
    return requested in shown.split(":")


COMPARE: dict[tuple[str, str], Compare] = {
    ("f2fs", "compress_extension"): among,
    ("f2fs", "nocompress_extension"): among,
    ("tmpfs", "mpol"): same_policy,
    ("btrfs", "compress"): same_compression,
    ("btrfs", "compress-force"): same_compression,
    ("btrfs", "commit"): with_default("30"),
    **{(kind, "commit"): with_default("5") for kind in EXT},
}
"""File system and option to how its values are compared, where text, numbers and sizes do not tell."""

SHOWN_BY_ABSENCE: dict[tuple[str, str], tuple[str, ...]] = {
    ("tmpfs", "huge"): ("never",),
    ("tmpfs", "mpol"): ("default",),
    ("btrfs", "compress"): ("no", "none"),
    ("btrfs", "compress-force"): ("no", "none"),
    ("btrfs", "commit"): ("0", "30"),
    ("f2fs", "checkpoint"): ("enable",),
}
"""Values that the kernel shows by showing nothing: it writes every other value."""

NEGATIONS: dict[str, dict[str, str]] = {
    "xfs": {"nolargeio": "largeio", "nogrpid": "grpid", "sysvgroups": "grpid", "nodiscard": "discard"},
    "btrfs": {
        "datacow": "nodatacow", "datasum": "nodatasum", "barrier": "nobarrier", "nossd_spread": "ssd_spread",
        "noautodefrag": "autodefrag", "treelog": "notreelog", "noflushoncommit": "flushoncommit", "acl": "noacl",
        "noenospc_debug": "enospc_debug",
    },
    "f2fs": {"barrier": "nobarrier", "noflush_merge": "flush_merge"},
    **{kind: {"nogrpid": "grpid", "sysvgroups": "grpid"} for kind in EXT},
}  # fmt: skip
"""Options that turn another one off, which the kernel always shows where it is on: its absence is the proof."""

RIVALS = {("btrfs", "compress"): "compress-force", ("btrfs", "compress-force"): "compress"}
"""Another option that sets the same thing in another way: where it shows, this one was changed."""
