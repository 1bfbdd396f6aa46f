"""The checksum chain of a journal: each line holds a SHA-256 hash of itself and of the hash in the line before it.

The first line is bound to the parts of run.json that never change. A line that is changed, added, removed or moved no
longer follows from the line before it. This protects against accidents and casual editing; a person who computes all
hashes again is not noticed.

    hash of a line = SHA-256(hash of the line before + newline + the line up to `, "chain": `)

The hash covers the bytes of a line, not its values: so it notices a key that is given twice, and does not depend on how
numbers are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

KEY = "chain"
"""Of a line, and of run.json: there it is the hash of the parts that never change."""
START = "journal_start"
"""Key of run.json: the hash that the first line follows, in a run whose parameters grow (work by hand). Elsewhere the
first line follows `KEY`."""
RAW = "raw"
"""Key of a line: the digest of the trial's raw output."""
ENDING = "journal"
"""Key of run.json: how many lines the journal had when a session ended, and the hash of the last one."""
ALTERED = "altered"
"""Key of run.json: what was found altered and was accepted by a person."""
EXTENSIONS = "extensions"
"""Key of run.json: the blocks that were added to a finished run, and how its journal stood then."""
EXPLAINED = "explained"
"""Key of run.json: the diagnostic blocks that a finished run got, and how its journal stood then."""
_CHANGING = frozenset({"status", "finished_at", "stopped", KEY, ENDING, ALTERED, EXTENSIONS, EXPLAINED})
"""Keys of run.json that Mountlab itself writes again."""
_LINK = re.compile(rb', "chain": "([0-9a-f]{64})"\}\Z')


@dataclass(frozen=True)
class Anchor:
    """What run.json says about the chain of its journal."""

    start: str = ""
    """The hash that the first line follows; '' in a run of a version without checksums."""
    trials: int = 0
    """How many lines the journal had when the last session ended; 0 where none has ended."""
    head: str = ""
    """The hash of the last of these lines."""
    is_complete: bool = False
    """Whether no line may come after them."""
    accepted: tuple[int, str] = (0, "")
    """Lines that a person accepted as they are, and their digest: the chain goes on from there."""


@dataclass(frozen=True)
class Followed:
    """A journal that was held against its chain."""

    head: str
    """The hash that the next line will follow."""
    broken: tuple[int, ...]
    """Numbers of the lines that do not follow from the line before, from 1."""
    missing: int
    """Lines that were there when the last session ended, and that are gone."""
    unprotected: int
    """Lines without a checksum, which an earlier version wrote."""


def fixed(record: Mapping[str, Any]) -> str:
    """Return the hash of the parts of run.json that never change."""
    kept = {key: value for key, value in json.loads(json.dumps(record)).items() if key not in _CHANGING}
    return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def bound(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return run.json with the hash of its own fixed parts, from which the chain starts."""
    return {**record, KEY: fixed(record)}


def with_start(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return run.json with a start of the chain that stays while the parameters grow: the hash of its first version."""
    return {**record, START: fixed(record)}


def anchor(record: Mapping[str, Any]) -> Anchor:
    """Return what a run.json says about the chain. Raises TypeError, ValueError or LookupError for values of other
    types."""
    ending, accepted = record.get(ENDING) or {}, (record.get(ALTERED) or [{}])[-1]
    return Anchor(
        str(record.get(START) or record.get(KEY, "")),
        int(ending.get("trials", 0)),
        str(ending.get("head", "")),
        record.get("status") == "complete",
        (int(accepted.get("trials", 0)), str(accepted.get("digest", ""))),
    )


def link(before: str, said: bytes) -> str:
    """Return the hash of a line. `said`: the line up to its hash."""
    return sha256(before.encode() + b"\n" + said).hexdigest()


def chained(row: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return a row as a line of the journal without its newline, and the hash that it ends with."""
    said = json.dumps(row).removesuffix("}").encode()
    found = link(before, said)
    return said + f', "{KEY}": "{found}"}}'.encode(), found


def follow(lines: Sequence[bytes], at: Anchor) -> Followed:
    """Hold the lines of a journal against its chain."""
    first, head = _accepted(lines, at)
    unprotected = 0 if first or at.start else _without_link(lines)
    heads = {first: head}
    if unprotected:
        first, head = unprotected, digest(lines[:unprotected])
        heads = {first: head}
    broken: list[int] = []
    for number, line in enumerate(lines[first:], start=first + 1):
        found = _LINK.search(line)
        if found is None or link(head, line[: found.start()]) != found[1].decode():
            broken.append(number)
        head = found[1].decode() if found else head
        heads[number] = head
    if not broken and at.trials in heads and at.head and heads[at.trials] != at.head:
        broken = [max(at.trials, 1)]
    if not broken and at.is_complete and at.head and len(lines) > at.trials:
        broken = [at.trials + 1]
    return Followed(head, tuple(broken), max(0, at.trials - len(lines)), unprotected)


def digest(lines: Sequence[bytes]) -> str:
    """Return the hash of whole lines, as a person accepts them and as lines without a checksum are bound."""
    return sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def _accepted(lines: Sequence[bytes], at: Anchor) -> tuple[int, str]:
    """Return how many lines need no look, and the hash from which the chain goes on."""
    count, expected = at.accepted
    if count and len(lines) >= count and digest(lines[:count]) == expected:
        return count, expected
    return 0, at.start


def _without_link(lines: Sequence[bytes]) -> int:
    return next((number for number, line in enumerate(lines) if _LINK.search(line)), len(lines))
