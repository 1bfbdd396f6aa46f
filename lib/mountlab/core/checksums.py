"""Checksums of files: of a directory as one digest, and as the manifest that `sha256sum -c` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from mountlab.core.errors import StoreError

MANIFEST = "SHA256SUMS"
"""The file of checksums beside the files that it names."""


def files_digest(sums: Mapping[str, str]) -> str:
    """Return one digest for a directory of files: of their names and of the SHA-256 of each."""
    return sha256("".join(f"{each}  {name}\n" for name, each in sorted(sums.items())).encode()).hexdigest()


def sums_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: sha256(data).hexdigest() for name, data in files.items()}


def safe_parts(name: str) -> list[str]:
    """Return the parts of the name of a file inside a bundle. Raises StoreError for one that would lead out of it, or
    that is no plain name on every system."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts) or re.search(r"[\x00-\x1f\x7f\\:]", name):
        raise StoreError(
            "a name that no file of a bundle may have",
            where="bundle",
            got=repr(name),
            allowed="a path below the bundle, without '..', ':', '\\' and control characters",
        )
    return parts


def manifest(sums: Mapping[str, str]) -> str:
    """Return names and SHA-256 sums as `sha256sum -c` reads them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def read_manifest(text: str) -> dict[str, str]:
    """Return name to SHA-256 sum. Raises StoreError for a bad line, a name that leads out, or a name given twice."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if match is None or match[2] in found:
            raise StoreError("not a line of checksums", where=f"{MANIFEST}, line {number}", got=repr(line[:120]))
        safe_parts(match[2])
        found[match[2]] = match[1]
    return found
