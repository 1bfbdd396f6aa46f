"""Compressed files, unpacked no further than they may be."""

from __future__ import annotations

import zlib

from mountlab.core.errors import ParseError


def unpacked(data: bytes, name: str, most: int) -> bytes:
    """Return the content of a gzip file. Raises ParseError where it is not whole, or more than `most` bytes."""
    unpack = zlib.decompressobj(wbits=31)
    try:
        content = unpack.decompress(data, most)
    except zlib.error as error:
        raise ParseError("a compressed file cannot be read", where=name, got=str(error)) from error
    if not unpack.eof:
        raise ParseError("a file is cut off, or too large", where=name, allowed=f"{most} bytes unpacked")
    return content
