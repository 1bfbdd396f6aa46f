"""Seeds of the tools' own random generators: one for each block, derived from the seed of the run."""

from __future__ import annotations

from hashlib import blake2b


def derived(*parts: int | str) -> int:
    """Return a seed from the parts: an odd number below 2**32, the same on every machine and in every version.

    BLAKE2b (RFC 7693) with 32 bits, of the parts joined by '/'. Odd, since fio multiplies a seed by the number of the
    clone, modulo 2**32: with an odd seed no two clones draw the same sequence.
    """
    digest = blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") | 1
