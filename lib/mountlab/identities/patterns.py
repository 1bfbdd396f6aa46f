"""Addresses, ids and names that can be told by their form, and what only looks like them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from mountlab.filesystems.guard import OURS

NO_UUID = "00000000-0000-0000-0000-"
"""How the UUIDs begin that stand in the place of others."""


@dataclass(frozen=True)
class Pattern:
    """One form. `value` names the group that is replaced, `accept` says whether a match is what it looks like."""

    kind: str
    regex: re.Pattern[str]
    accept: Callable[[re.Match[str]], bool] = lambda _: True
    hint: str = ""
    """A piece of text without which nothing can match: looked for first, as that is fast."""
    tells: bool = False
    """Whether what it finds may stand elsewhere in no such form."""

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Every match that is one."""
        if self.hint in text:
            yield from (match for match in self.regex.finditer(text) if self.accept(match))


def is_address(text: str) -> bool:
    """Whether a whole text is an IPv4 or IPv6 address."""
    return _v4(text) is not None or _v6(text) is not None


def _v4(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except AddressValueError:
        return None


def _v6(text: str) -> IPv6Address | None:
    try:
        return IPv6Address(text)
    except AddressValueError:
        return None


# --- what only looks like one -----------------------------------------------------------------------------------------

_VERSION_BEFORE = re.compile(
    r"\b(?:versions?|ver|v|release|rel|rev|revision|firmware|fw|build|patch|level|api|lib\w*)\.?[\"']?\s*[:= (\"']*\Z",
    re.IGNORECASE,
)


def _is_host_address(match: re.Match[str]) -> bool:
    """An IPv4 address of a host: no loopback, no mask, no version such as 'fio-3.33.1.2', '1.2.3.4-rc1', 'v1.2.3.4'."""
    address, text = _v4(match["value"]), match.string
    if address is None or address.is_loopback or int(address) >> 24 in (0, 255):
        return False
    before, after = text[max(0, match.start("value") - 24) : match.start("value")], text[match.end("value") :][:2]
    if _VERSION_BEFORE.search(before):
        return False
    attached = before[-1:] in ("-", "_", "+", "~") or re.match(r"[-_+~][A-Za-z]", after) is not None
    return address.is_private or not attached


def _is_host_address_6(match: re.Match[str]) -> bool:
    """An IPv6 address that has more than a time or a C++ name: three groups, or one of three digits and more."""
    address = _v6(match["value"].rstrip(".:") if not match["value"].endswith("::") else match["value"])
    if address is None or address.is_loopback or address.is_unspecified:
        return False
    groups = [group for group in match["value"].split(":") if group]
    if "::" not in match["value"]:
        return any(len(group) > 2 or group.lower().strip("abcdef") != group.lower() for group in groups)
    return len(groups) > 2 or any(len(group) > 2 for group in groups)


def _is_hardware(match: re.Match[str]) -> bool:
    """A hardware address or key in pairs of hexadecimal digits. With hyphens it needs a letter, else it is a date."""
    digits = re.sub(r"[:-]", "", match["value"].lower())
    return len(set(digits)) > 1 and (":" in match["value"] or not digits.isdecimal())


def _is_foreign_uuid(match: re.Match[str]) -> bool:
    """Not Mountlab's own mark, by which its guard knows a file system again, and not one of the placeholders."""
    return not match["value"].lower().startswith((OURS, NO_UUID, "ffffffff-ffff-ffff-ffff-"))


def _is_name_of_device(match: re.Match[str]) -> bool:
    own = re.match(r"virtio-mountlab-|pmem-6d6f756e-746c-6162-|device-\d+(?!\w)", match["value"])
    return own is None and _is_foreign_uuid(match)


_UNITS = (".service", ".socket", ".slice", ".timer", ".mount", ".target", ".scope", ".device", ".swap", ".path")


def _is_login(match: re.Match[str]) -> bool:
    host = match["host"]
    return not host.endswith(_UNITS) and any(map(str.isalpha, host)) and not re.match(r"v?\d", host)


def _has_digit(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match["value"])) and not re.match(r"serial-\d+\Z|0x0+\Z", match["value"])


_PAIR = "[0-9A-Fa-f]{2}"
_HEX = "[0-9A-Fa-f]"
_LOGIN = r"(?<![\w.@/-])[a-z_][\w.-]{1,31}"

PATTERNS = (
    Pattern("key", re.compile(r"(?:ssh-\w+|ecdsa-sha2-\S+) (?P<value>AAAA[A-Za-z0-9+/]{20,}=*)"), hint=" AAAA"),
    Pattern("key", re.compile(r"\bSHA256:(?P<value>[A-Za-z0-9+/]{43})"), hint="SHA256:"),
    Pattern(
        "device", re.compile(r"/dev/disk/by-(?!path/)[a-z]+/(?P<value>[^\s\"'`,;)\]}<>|]+)"), _is_name_of_device,
        hint="/dev/disk/by-",
    ),
    Pattern(
        "uuid", re.compile(rf"(?<!\w)(?P<value>{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}})(?!\w)"), _is_foreign_uuid,
        hint="-",
    ),
    Pattern(
        "wwn",
        re.compile(
            rf"(?<![\w.])(?P<value>(?:wwn-0x|naa\.|eui\.){_HEX}{{16,32}}|(?:t10|iqn|nqn)\.[\w.:+-]{{6,}}"
            rf"|0x5{_HEX}{{15}})(?!\w)"
        ),
    ),
    Pattern(
        "mac", re.compile(rf"(?<![\w:-])(?P<value>{_PAIR}(?::{_PAIR}){{5,}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])"),
        _is_hardware,
    ),
    Pattern(
        "address",
        re.compile(rf"(?<![\w:.])(?P<value>(?={_HEX}{{0,4}}:{_HEX}{{0,4}}:)[0-9A-Fa-f:.]{{2,45}})(?:%\w+)?(?![\w:])"),
        _is_host_address_6, hint=":",
    ),
    Pattern(
        "address", re.compile(r"(?<![\w.])(?P<value>\d{1,3}(?:\.\d{1,3}){3})(?!\.?\d)(?![A-Za-z])"), _is_host_address,
        hint=".",
    ),
    Pattern("address", re.compile(r"(?<!\w)(?P<value>ip-\d{1,3}(?:-\d{1,3}){3})(?!\d)"), hint="ip-"),
    Pattern("machine", re.compile(rf"machine-id[\"']?[\s:=\"']+(?P<value>{_HEX}{{32}})(?!\w)"), hint="machine-id"),
    Pattern(
        "container",
        re.compile(rf"(?:docker|containers?|overlay2?|pods?|snapshots|libpod)[/-](?P<value>{_HEX}{{64}})"),
    ),
    Pattern(
        "serial",
        re.compile(
            r"(?i:\b(?:ID_)?serial(?:[_ ]?(?:number|no|short))?)[\"']?\s*[:=]\s*[\"']?(?P<value>[A-Za-z0-9][\w.+-]{3,})"
        ),
        _has_digit, tells=True,
    ),
    Pattern("user", re.compile(r"/(?:home|Users)/(?P<value>[A-Za-z_][\w.-]*)(?![\w.-])"), tells=True),
    Pattern(
        "user", re.compile(rf"(?P<value>{_LOGIN})@(?P<host>[A-Za-z0-9](?:[\w.-]*\w)?)"), _is_login, hint="@", tells=True
    ),
    Pattern(
        "host", re.compile(rf"{_LOGIN}@(?P<value>(?P<host>[A-Za-z0-9](?:[\w.-]*\w)?))"), _is_login, hint="@", tells=True
    ),
    Pattern(
        "host",
        re.compile(
            r"(?<![\w./-])(?P<value>(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+"
            r"(?:local|lan|internal|corp|intranet|intra|localdomain|home\.arpa))(?![\w-])"
        ),
    ),
)  # fmt: skip
"""Looked for in this order: a longer form before one that could be a part of it."""
