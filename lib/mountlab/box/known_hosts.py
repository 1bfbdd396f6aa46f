"""Which host keys the user trusts, as ssh's known_hosts files say it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT): names with
wildcards and with '!', hashed names, several keys of one kind, `@revoked` and `@cert-authority`.

Paramiko's own reader knows neither markers nor wildcards, and keeps one key of a kind: a key that was revoked would be
accepted where another line has it still.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Marker = Literal["", "@revoked", "@cert-authority"]
SSH_PORT = 22
_MARKERS: dict[str, Marker] = {"@revoked": "@revoked", "@cert-authority": "@cert-authority"}
_NEWER_NAMES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Kind of a key to the names of its signature algorithms, where they differ."""


@dataclass(frozen=True)
class Listed:
    """One line of a known_hosts file."""

    names: str
    kind: str
    key: str
    """In base64, as the file has it."""
    marker: Marker
    place: str
    """The file, and the number of the line."""

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.key)

    def is_for(self, server: str) -> bool:
        """Return whether one of its names is the server's, and none with a '!' is."""
        patterns = self.names.split(",")
        matching = [pattern for pattern in patterns if _matches(server.lower(), pattern.removeprefix("!"))]
        return bool(matching) and not any(pattern.startswith("!") for pattern in matching)


@dataclass(frozen=True)
class KnownKeys:
    """The entries of the files for one server, by its names: HostKeyAlias alone, or `[host]:port` and then `host`."""

    server: str
    lines: tuple[Listed, ...]
    without_port: tuple[Listed, ...] = ()
    """Lines of the bare name where the port is another than 22: ssh takes a key from there, and nothing else."""
    revoked: frozenset[str] = frozenset()
    """Keys of the user's RevokedHostKeys."""

    def is_revoked(self, key: str) -> bool:
        everywhere = (*self.lines, *self.without_port)
        return key in self.revoked or any(each.key == key for each in everywhere if each.marker == "@revoked")

    def is_trusted(self, kind: str, key: str) -> bool:
        """Return whether the server may show this key."""
        everywhere = (*self.lines, *self.without_port)
        named = any((each.kind, each.key) == (kind, key) for each in everywhere if not each.marker)
        return named and not self.is_revoked(key)

    def of_kind(self, kind: str) -> tuple[Listed, ...]:
        """Return the keys of a kind that the server should have shown."""
        return tuple(each for each in self.lines if each.kind == kind and not each.marker)

    @property
    def authorities(self) -> tuple[Listed, ...]:
        """Lines that would trust a certificate, where there is one for the server."""
        return tuple(each for each in self.lines if each.marker == "@cert-authority")

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Signature algorithms to request, so that a server with several keys shows a known one."""
        everywhere = (*self.lines, *self.without_port)
        kinds = dict.fromkeys(each.kind for each in everywhere if not each.marker)
        return tuple(name for kind in kinds for name in _NEWER_NAMES.get(kind, (kind,)))


def read_known_hosts(text: str, where: str) -> list[Listed]:
    """Return the lines of a file that name a key; others are passed over, as ssh does."""
    numbered = ((number, line.split()) for number, line in enumerate(text.splitlines(), start=1))
    return [line for number, words in numbered if (line := _line(words, f"{where}, line {number}"))]


def _line(words: list[str], place: str) -> Listed | None:
    marker: Marker = _MARKERS.get(words[0], "") if words else ""
    rest = words[1:] if marker else words
    if len(rest) < 3 or rest[0].startswith(("#", "@")) or not _is_key(rest[2]):
        return None
    names, kind, key = rest[:3]
    return Listed(names, kind, key, marker, place)


def read_revoked(text: str) -> frozenset[str]:
    """Return the keys of a file of public keys, one a line, with options before or a comment behind."""
    hits = (re.search(r"(?:ssh|ecdsa|sk)-\S+\s+(\S+)", line) for line in text.splitlines() if not line.startswith("#"))
    return frozenset(match[1] for match in hits if match)


def keys_for(lines: Iterable[Listed], host: str, port: int, alias: str = "", revoked: Iterable[str] = ()) -> KnownKeys:
    """Return the lines that hold for a server."""
    entries, server = list(lines), server_name(host, port, alias)
    bare = host if server != host and not alias else ""
    return KnownKeys(
        server,
        tuple(line for line in entries if line.is_for(server)),
        tuple(line for line in entries if bare and line.is_for(bare)),
        frozenset(revoked),
    )


def server_name(host: str, port: int, alias: str = "") -> str:
    """Return the name of a server in known_hosts: its alias, `host`, or `[host]:port`."""
    return alias or (host if port == SSH_PORT else f"[{host}]:{port}")


def fingerprint(key: str) -> str:
    """Return the fingerprint of a key in base64, as `ssh-keygen -l` shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(base64.b64decode(key)).digest()).decode().rstrip("=")


def summary(lines: Sequence[Listed]) -> str:
    """Return kinds, fingerprints and where they stand."""
    return "; ".join(f"{each.kind} {each.fingerprint} ({each.place})" for each in lines)


def _is_key(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def _matches(server: str, pattern: str) -> bool:
    if pattern.startswith("|1|"):
        return _is_hash_of(server, pattern)
    # Only * and ? are wild for ssh: a bracket belongs to the name of a server with a port.
    return fnmatch.fnmatchcase(server, re.sub(r"\[", "[[]", pattern.lower()))


def _is_hash_of(server: str, hashed: str) -> bool:
    _, _, salt, digest, *_ = (*hashed.split("|"), "", "")
    try:
        actual = hmac.new(base64.b64decode(salt), server.encode(), hashlib.sha1).digest()
        return hmac.compare_digest(actual, base64.b64decode(digest))
    except (binascii.Error, ValueError):
        return False
