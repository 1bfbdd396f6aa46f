"""Secrets in the output of tools, by the forms that detect-secrets knows, and some that it does not know yet.

Only forms with a name of their own: a prefix, a header, a key such as `password`. How random a word looks proves
nothing in measurements, which are full of checksums. Nothing is verified, as that would send the secret to its issuer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class as plugins
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.keyword import CONFIG_DENYLIST_REGEX_TO_GROUP, KeywordDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector

PRIVATE_KEY, KEYWORD = PrivateKeyDetector.secret_type, "password or key by its name"
_LEFT_OUT = ("IPPublicDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector")
"""Addresses are replaced, not refused; the others take any word of a length behind 'key' for a secret."""
_OTHER_FORMS = {
    PRIVATE_KEY: (r"BEGIN ENCRYPTED PRIVATE KEY", r"PuTTY-User-Key-File-3", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    "password hash": (r"\$(?:1|5|6|7|y|gy|2[abxy])\$[./0-9A-Za-z$=,]{20,}",),
    "access token": (
        r"github_pat_\w{36,}", r"AIza[0-9A-Za-z_-]{35}(?![\w-])", r"hf_[A-Za-z0-9]{34,}", r"npm_[A-Za-z0-9]{36}(?!\w)",
        r"sk-(?:ant|proj)-[\w-]{32,}", r"dop_v1_[0-9a-f]{64}", r"hv[sb]\.[\w-]{24,}", r"xox[abeoprs]-[0-9A-Za-z-]{20,}",
        r"xapp-\d-[0-9A-Za-z-]{20,}",
        r"uthorization[\"']?\s*:\s*[\"']?(?:[Bb]earer|[Bb]asic|[Tt]oken)\s+[\w.~+/=-]{8,}",
    ),
}  # fmt: skip
"""Forms of later years than the library, headers of HTTP, and what crypt(3) keeps in /etc/shadow."""
_HINTS = {"ArtifactoryDetector": "A", "CloudantDetector": "cloudant", "DiscordBotTokenDetector": "."}
"""A piece of text without which a slow one finds nothing."""
_END_OF_KEY = re.compile(r"END [A-Z0-9 ]*PRIVATE KEY|Private-MAC:[^\n]*")
_LONGEST_KEY, _LONGEST_LINE, _OVERLAP = 8192, 2048, 256
_KEYWORDS = ("apikey", "_key", "authkey", "servicekey", "clientkey", "privatekey", "pass", "pwd", "secret", "contrase")
"""One of these is in whatever the library takes for the name of a secret."""
_NO_SECRET = re.compile(
    r"\W*|.{0,2}|[*x.•#-]+|<.*>|[$%].*|\{.*\}|\[.*\]|\(.*\)|(?:not|no|none|never|null|nil|true|false|yes|on|off|any|ask|"
    r"prompt|required|optional|disabled|enabled|unset|empty|redacted|hidden|unknown|default|authentication|password)\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""What stands at such a key and is no secret: a mask, a place for one, a setting, 'not kept'."""


@dataclass(frozen=True)
class Secret:
    """What looks like a secret, and where it begins in its text."""

    kind: str
    value: str
    start: int


def secrets_in(text: str) -> Iterator[Secret]:
    """Yield everything in a text that has the form of a secret."""
    for detector in _detectors():
        if _HINTS.get(type(detector).__name__, "") in text:
            for regex in detector.denylist:
                # Some look closer at what they found: at the parts of a JSON web token.
                matches = (match for match in regex.finditer(text) if any(detector.analyze_string(match[0])))
                yield from (_secret(detector.secret_type, match) for match in matches)
    for kind, forms in _OTHER_FORMS.items():
        yield from (_secret(kind, match) for form in forms for match in re.finditer(form, text))
    yield from _by_name(text)


def expressions() -> list[re.Pattern[str]]:
    """Return expressions one of which matches in each text that holds a secret."""
    of_library = [regex for detector in _detectors() for regex in detector.denylist]
    others = [re.compile(form) for forms in _OTHER_FORMS.values() for form in forms]
    return [*of_library, *others, re.compile("|".join(_KEYWORDS), re.IGNORECASE)]


@cache
def _detectors() -> tuple[RegexBasedDetector, ...]:
    kinds: list[type[Any]] = list(plugins().values())
    return tuple(kind() for kind in kinds if issubclass(kind, RegexBasedDetector) and kind.__name__ not in _LEFT_OUT)


def _secret(kind: str, match: re.Match[str]) -> Secret:
    """Return what was found; a private key to its end, as the first line of one is that of every other."""
    value = match[0].strip()
    if kind == PRIVATE_KEY:
        value = match.string[match.start() : match.start() + _LONGEST_KEY]
        end = _END_OF_KEY.search(value)
        value = value[: end.end()] if end else value
    return Secret(kind.lower(), value, match.start())


def _by_name(text: str) -> Iterator[Secret]:
    """Yield what stands at a key whose name says that it is secret: 'password: ...'."""
    if not _may_name(text):
        return
    start = 0
    for line in text.splitlines(keepends=True):
        for piece in filter(_may_name, _pieces(line)):
            yield from (Secret(KEYWORD, value, start) for value in _stated(piece))
        start += len(line)


def _may_name(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _KEYWORDS)


def _pieces(line: str) -> Iterator[str]:
    """Yield the lines that a line of JSON holds, a long one in pieces that overlap: the library tries each place of a
    line with each of its forms."""
    for part in line.rstrip().split("\\n"):
        yield from (part[start : start + _LONGEST_LINE] for start in range(0, len(part), _LONGEST_LINE - _OVERLAP))


def _stated(line: str) -> Iterator[str]:
    for value in KeywordDetector().analyze_string(line, CONFIG_DENYLIST_REGEX_TO_GROUP):
        stated = value.strip(" \t\r\"',;")
        if not _NO_SECRET.fullmatch(stated):
            yield stated
