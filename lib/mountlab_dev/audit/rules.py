"""What is looked for, in text that is given: pins without a checksum, advisories for a pin, secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PIN = re.compile(r"(?m)^([A-Za-z0-9][A-Za-z0-9_.-]*)==([^\s;\\]+)((?:.*\\\n)*.*)")
_SECRETS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{20}"),
    "a key of a cloud": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b"),
    "a token": re.compile(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[A-Za-z0-9_-]{20,}|pypi-AgE[A-Za-z0-9_-]{40,}"
        r"|xox[abprs]-[A-Za-z0-9-]{20,}|sk_live_[A-Za-z0-9]{20,})"
    ),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"{}<>]+:[^\s/:@'\"{}<>]{3,}@[A-Za-z0-9]"),
    "a password": re.compile(
        r"(?i)\b(?:password|passwd|passphrase|secret|api_?key|access_?token)\b\s*[:=]\s*[\"'][^\"'\s{}$<>]{6,}[\"']"
    ),
}
PLANTED = "planted"
"""A line with this word holds a made-up secret: tests plant them."""


@dataclass(frozen=True)
class Pin:
    """One library of requirements.lock."""

    name: str
    version: str
    has_checksum: bool


@dataclass(frozen=True)
class Advisory:
    """What is known of one version of a library."""

    pin: Pin
    id: str
    summary: str = ""

    def __str__(self) -> str:
        return f"{self.pin.name} {self.pin.version}: {self.id} {self.summary}".rstrip()


def pins(lock: str) -> list[Pin]:
    """Return every library of a lock file with checksums, each version once."""
    found = [Pin(_normal(name), version, "--hash=sha256:" in rest) for name, version, rest in _PIN.findall(lock)]
    return list(dict.fromkeys(found))


def advisories(known: Iterable[Mapping[str, Any]], pinned: Iterable[Pin]) -> Iterator[Advisory]:
    """Yield what records of an OSV database report on the pins, by the versions that they list."""
    by_name: dict[str, list[Pin]] = {}
    for pin in pinned:
        by_name.setdefault(pin.name, []).append(pin)
    for record in known:
        if "withdrawn" in record:
            continue
        for affected in record.get("affected", ()):
            package = affected.get("package", {})
            of = by_name.get(_normal(str(package.get("name", ""))), []) if package.get("ecosystem") == "PyPI" else []
            for pin in of:
                if pin.version in affected.get("versions", ()):
                    yield Advisory(pin, str(record.get("id")), str(record.get("summary", "")))


def secrets(text: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each secret in a text."""
    lines = text.splitlines()
    for kind, pattern in _SECRETS.items():
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start())
            if PLANTED not in (lines[number] if number < len(lines) else ""):
                yield number + 1, kind


def _normal(name: str) -> str:
    """As PyPI compares names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
