"""The symbols of a box's kernel, by which traces name functions: a megabyte, and the same for most mounts of a run.

They are kept with the first mount that has them. The others refer to it, with the digest of what it has.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from hashlib import sha256
from pathlib import Path

from mountlab.core.disk import read_plain
from mountlab.core.errors import ParseError
from mountlab.sweep.traced import SYMBOLS

REFERENCE = "kallsyms_of"


def with_reference(files: Mapping[str, bytes], mount: str, holders: MutableMapping[str, str]) -> dict[str, bytes]:
    """Return the files of a mount, with a reference in the place of symbols that another mount holds.

    `holders`: digest of symbols to the mount that holds them; a mount with others is added to it.
    """
    digest = sha256(files.get(SYMBOLS, b"")).hexdigest()
    holder = holders.setdefault(digest, mount) if SYMBOLS in files else mount
    if holder == mount:
        return dict(files)
    others = {name: data for name, data in files.items() if name != SYMBOLS}
    return {**others, REFERENCE: f"{holder} {digest}\n".encode()}


def symbols_of(raw: Path, mount: str) -> bytes:
    """Return the symbols of a mount, compressed. Raises FileNotFoundError where there are none, ParseError where
    those that it refers to are others by now: their mount was made again after a restart of the box."""
    symbols, reference = raw / mount / SYMBOLS, raw / mount / REFERENCE
    if symbols.exists() or not reference.exists():
        return read_plain(symbols)
    holder, _, digest = read_plain(reference).decode(errors="replace").strip().partition(" ")
    data = read_plain(raw / Path(holder).name / SYMBOLS)
    if sha256(data).hexdigest() != digest:
        raise ParseError("the symbols of this kernel were replaced", got=f"those of another kernel in raw/{holder}")
    return data
