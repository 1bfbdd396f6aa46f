"""Addresses, ids and names that have a form of their own, and text that only looks like them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address
from typing import TypeVar

from mountlab.filesystems.guard import BOUND, OURS
from mountlab.publish.identities.names import ORDINARY

_A = TypeVar("_A", IPv4Address, IPv6Address)
BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\0[0-7]{2}))"
r"""Where a name may begin: not inside a word; after '\n' of JSON, '%2F' of a URL and '\040' of a path."""
NO_UUID = "00000000-0000-0000-0000-"
"""How the UUIDs begin that stand in the place of others."""


@dataclass(frozen=True)
class Pattern:
    """One form. `value` names the group that is replaced, `accept` says whether a match is what it looks like."""

    kind: str
    regex: str
    accept: Callable[[re.Match[str]], bool] = lambda _: True
    hint: str | tuple[str, ...] = ""
    """A piece of text without which nothing can match, or several, where one has to be there: looked for first, as that
    is fast."""
    tells: bool = False
    """Whether what it finds may stand elsewhere in no such form."""
    at_least: str = ""
    """An expression that every match has in it, for a sieve, to which this one says nothing without its lookahead."""

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Yield every match that is one."""
        if self.may_match(text):
            yield from filter(self.accept, self.compiled.finditer(text))

    def may_match(self, text: str) -> bool:
        """Return quickly whether anything in a text can match at all."""
        return self.hint in text if isinstance(self.hint, str) else any(hint in text for hint in self.hint)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.regex)

    @property
    def for_sieve(self) -> re.Pattern[str]:
        """Return what a sieve is to look for."""
        return re.compile(self.at_least) if self.at_least else self.compiled


def is_address(text: str) -> bool:
    """Return whether a whole text is an IPv4 or IPv6 address."""
    return _address(IPv4Address, text) is not None or _address(IPv6Address, text) is not None


def _address(kind: Callable[[str], _A], text: str) -> _A | None:
    try:
        return kind(text)
    except AddressValueError:
        return None


# --- what only looks like one -----------------------------------------------------------------------------------------

_SURELY = "versions?|ver|v|release|rel|rev|revision|firmware|fw"
_SURELY_VERSION_BEFORE, _VERSION_BEFORE = (
    re.compile(rf"\b(?:{words})\.?[\"']?\s*[:= (\"']*\Z", re.IGNORECASE)
    for words in (_SURELY, rf"{_SURELY}|build|patch|level|api|lib\w*")
)
_REVISION_BEFORE = re.compile(rf"\b(?:{_SURELY}|build|commit|git|id|image)\.?[\"']?\s*[:= (\"']*\Z", re.IGNORECASE)
_ALWAYS_ADDRESSES = tuple(map(IPv4Network, ("192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16")))
_TEN = IPv4Network("10.0.0.0/8")
"""Addresses of no public network; versions begin with 10 too, and not with the others."""


def _is_host_address(match: re.Match[str]) -> bool:
    """Return an IPv4 address of a host: no loopback, no mask, no version such as 'fio-3.33.1.2', '1.2.3.4-rc1',
    'v1.2.3.4'."""
    address, text = _address(IPv4Address, match["value"]), match.string
    if address is None or address.is_loopback or int(address) >> 24 in (0, 255):
        return False
    before, after = text[max(0, match.start("value") - 24) : match.start("value")], text[match.end("value") :][:2]
    if any(address in network for network in _ALWAYS_ADDRESSES):
        return True
    if (_SURELY_VERSION_BEFORE if address in _TEN else _VERSION_BEFORE).search(before):
        return False
    attached = before[-1:] in ("-", "_", "+", "~") or re.match(r"[-_+~][A-Za-z]", after) is not None
    return address.is_private or not attached


def _is_host_address_6(match: re.Match[str]) -> bool:
    """Return an IPv6 address that has more than a time or a C++ name: three groups, or one of three digits and more."""
    text = match["value"] if match["value"].endswith("::") else match["value"].rstrip(".:")
    address = _address(IPv6Address, text)
    if address is None or address.is_loopback or address.is_unspecified:
        return False
    groups = [group for group in match["value"].split(":") if group]
    if "::" not in match["value"]:
        return any(len(group) > 2 or group.lower().strip("abcdef") != group.lower() for group in groups)
    return len(groups) > 2 or any(len(group) > 2 for group in groups)


def _is_hardware(match: re.Match[str]) -> bool:
    """Return a hardware address or key in pairs of hexadecimal digits. With hyphens it needs a letter, else it is a
    date."""
    digits = re.sub(r"[:-]", "", match["value"].lower())
    return len(set(digits)) > 1 and (":" in match["value"] or not digits.isdecimal())


def _is_foreign_uuid(match: re.Match[str]) -> bool:
    """Return a UUID that is neither Mountlab's own mark, by which its guard recognises a file system, nor a
    placeholder."""
    return not match["value"].lower().startswith((OURS, BOUND, NO_UUID, "ffffffff-ffff-ffff-ffff-"))


def _is_name_of_device(match: re.Match[str]) -> bool:
    ours = re.match(r"virtio-mountlab-|pmem-6d6f756e-746c-6162-|device-\d+(?!\w)", match["value"])
    return ours is None and _is_foreign_uuid(match)


_UNITS = (".service", ".socket", ".slice", ".timer", ".mount", ".target", ".scope", ".device", ".swap", ".path")


def _is_login(match: re.Match[str]) -> bool:
    host = match["host"]
    return not host.endswith(_UNITS) and any(map(str.isalpha, host)) and not re.match(r"v?\d", host)


def _has_digit(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match["value"])) and not re.match(r"serial-\d+\Z|0x0+\Z", match["value"])


def _is_dotted_hardware(match: re.Match[str]) -> bool:
    """'001a.2b3c.4d5e': letters and digits, else it may be a number."""
    return any(map(str.isdigit, match["value"])) and any(map(str.isalpha, match["value"]))


def _is_bare_hardware(match: re.Match[str]) -> bool:
    """Return twelve digits that are the address of one interface: with letters and digits, no multicast bit (which
    addresses in a process of Linux, 7f..., have), and no revision of a program."""
    value, before = match["value"], match.string[max(0, match.start("value") - 24) : match.start("value")]
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and len(set(value)) > 2
    return mixed and int(value[1], 16) % 2 == 0 and not _REVISION_BEFORE.search(before)


def _has_serial(match: re.Match[str]) -> bool:
    """Return a name of udev's that ends with a serial number: 'ata-WDC_WD40EFRX_WD-WCC4N1234567', and not
    'nvme-core_2'."""
    last = re.sub(r"-part\d+\Z", "", match["value"]).rpartition("_")[2]
    return len(last) >= 6 and any(map(str.isdigit, last))


def _is_label(match: re.Match[str]) -> bool:
    return not match["value"].startswith("mountlab") and match["value"].lower() not in ("none", "root", "boot", "efi")


def _is_mapped(match: re.Match[str]) -> bool:
    return match["value"] != "control" and not match["value"].startswith("mountlab")


_NO_MACHINES_WORDS = """
    info warn warning error err debug notice crit critical fatal trace emerg alert utc gmt cet cest est edt pst pdt am
    pm mint version server workstation enterprise release gnu
"""
_NO_MACHINES = ORDINARY | frozenset(_NO_MACHINES_WORDS.split())


def _is_machine(match: re.Match[str]) -> bool:
    """Return a word where a log or `uname` names the machine, and not a level, a zone or a part of a system's name."""
    return match["value"].lower() not in _NO_MACHINES and not match["value"].isdecimal()


def _is_named(match: re.Match[str]) -> bool:
    return not match["value"].isdecimal()


def _in_groups(match: re.Match[str]) -> bool:
    """Return whether a match is in the list of groups that `id` prints."""
    before = match.string[max(0, match.start() - 2000) : match.start()]
    return re.search(r"\b(?:e?gid|groups)=(?:\d+\([^)\n]*\),)*\Z", before) is not None


_PAIR = "[0-9A-Fa-f]{2}"
_HEX = "[0-9A-Fa-f]"
_NAME = r"[^\W\d][\w.-]*"
_IS = r"[\"']?\s*[:=]\s*[\"']?"
_LISTED = r"[-dlcbps](?:[r-][w-][xsStT-]){3}[.+@]?\s+\d+\s+"
"""What begins a line of `ls -l`, up to the user."""
_ROOT = r"==> root <==\n\d+ \d+ \d+ "
"""The line of evidence.sh that tells whose the mount root is, up to the user."""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_HOST = r"(?P<value>[A-Za-z0-9][\w.-]*)"
_LOGIN = r"(?<![\w.@/-])[a-z_][\w.-]{1,31}"

PATTERNS = (
    Pattern("key", r"(?:ssh-\w+|ecdsa-sha2-\S+) (?P<value>AAAA[A-Za-z0-9+/]{20,}=*)", hint=" AAAA"),
    Pattern("key", r"\bSHA256:(?P<value>[A-Za-z0-9+/]{43})", hint="SHA256:"),
    Pattern("device", r"/dev/disk/by-(?!path/)[a-z]+/(?P<value>[^\s\"'`,;)\]}<>|]+)",
            _is_name_of_device, hint="/dev/disk/by-"),
    Pattern("device", r"/dev/mapper/(?P<value>(?:[\w.+@=#-]|\\\\?(?:x[0-9a-f]{2}|0[0-7]{2}))*\w)",
            _is_mapped, hint="/dev/mapper/", tells=True),
    Pattern("device", r"(?<![\w-])(?P<value>(?:ata|nvme|scsi|usb|mmc)-[A-Za-z0-9][\w.+=-]*_[\w.+=-]*\w)", _has_serial,
            hint=("ata-", "nvme-", "scsi-", "usb-", "mmc-")),
    Pattern("uuid", rf"(?<!\w)(?P<value>{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}})(?!\w)",
            _is_foreign_uuid, hint="-"),
    Pattern("wwn", rf"(?<![\w.])(?P<value>(?:wwn-0x|naa\.|eui\.){_HEX}{{16,32}}|(?:t10|iqn|nqn)\.[\w.:+-]{{6,}}"
            rf"|0x5{_HEX}{{15}})(?!\w)",
            hint=("wwn-0x", "naa.", "eui.", "t10.", "iqn.", "nqn.", "0x5")),
    Pattern("wwn", rf"WWN Device Id:\s*(?P<value>{_HEX} {_HEX}{{6}} {_HEX}{{9}})(?!\w)", hint="WWN Device Id:"),
    Pattern("wwn", rf"(?<![\w-])(?P<value>scsi-[1-8]{_HEX}{{16,32}})(?![0-9A-Za-z])", hint="scsi-"),
    Pattern("mac", r"(?<![A-Za-z0-9])(?:en|wl|ww)x(?P<value>[0-9a-f]{12})(?![0-9A-Za-z])", hint="x"),
    Pattern("mac", r"(?<![\w.+/-])(?P<value>[0-9a-f]{12}|[0-9A-F]{12})(?![\w+/-]|\.\w)", _is_bare_hardware),
    Pattern("mac", rf"(?<![\w.])(?P<value>{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}})(?![\w.]\w|\w)",
            _is_dotted_hardware, hint="."),
    Pattern("address", rf"(?<![\w.])(?P<value>(?:{_HEX}\.){{8,32}}ip6\.arpa|(?:\d{{1,3}}\.){{2,4}}in-addr\.arpa)(?!\w)",
            hint=".arpa"),
    Pattern("mac", rf"(?<![\w:-])(?P<value>{_PAIR}(?::{_PAIR}){{5,}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])",
            _is_hardware),
    Pattern("address",
            rf"(?<![\w:.])(?P<value>(?={_HEX}{{0,4}}:{_HEX}{{0,4}}:)[0-9A-Fa-f:.]{{2,45}})(?:%\w+)?(?![\w:])",
            _is_host_address_6, hint=":", at_least=rf"{_HEX}{{0,4}}:{_HEX}{{0,4}}:"),
    Pattern("address", r"(?<![\w.])(?P<value>\d{1,3}(?:\.\d{1,3}){3})(?!\.?\d)(?![A-Za-z])",
            _is_host_address, hint="."),
    Pattern("address", r"(?<!\w)(?P<value>ip-\d{1,3}(?:-\d{1,3}){3})(?!\d)", hint="ip-"),
    Pattern("machine", rf"machine-id[\"']?[\s:=\"']+(?P<value>{_HEX}{{32}})(?!\w)", hint="machine-id"),
    Pattern("container", rf"(?:docker|containers?|overlay2?|pods?|snapshots|libpod)[/-](?P<value>{_HEX}{{64}})"),
    Pattern("serial",
            rf"(?i:\b(?:ID_)?serial(?:[_ ]?(?:number|no|short))?){_IS}(?P<value>[A-Za-z0-9][\w.+-]{{3,}})",
            _has_digit, tells=True),
    Pattern("device", r"\b(?:PART)?LABEL=[\"']?(?P<value>[^\s\"']+)", _is_label, hint="LABEL=", tells=True),
    Pattern("device", r"\bvolume name:[ \t]+(?P<value>[^\s<][^\n]*)", _is_label, hint="volume name:", tells=True),
    Pattern("device", r"\bLabel: '(?P<value>[^'\n]+)'", _is_label, hint="Label: '", tells=True),
    Pattern("device", r"\b(?:VG|LV) Name[ \t]+(?P<value>[\w.+-]+)", _is_label, hint=" Name", tells=True),
    Pattern("serial", rf"(?<![\w/])(?i:sn|s/n){_IS}(?P<value>[A-Za-z0-9][\w.+-]{{5,}})", _has_digit, tells=True),
    Pattern("user", r"/(?:home|Users)/(?P<value>(?:[^\W\d]|\\u[0-9a-f]{4})(?:[\w.-]|\\u[0-9a-f]{4})*)(?![\w.-])",
            hint=("/home/", "/Users/"), tells=True),
    Pattern("user",
            rf"(?:(?<![A-Za-z0-9_])|(?<=\\n))(?:(?:SUDO_|REMOTE_)?USER|LOGNAME|USERNAME)=[\"']?(?P<value>{_NAME})",
            hint=("USER=", "LOGNAME=", "USERNAME="), tells=True),
    Pattern("user", rf"\b[ef]?s?uid=\d+\((?P<value>{_NAME})\)", hint="uid=", tells=True),
    Pattern("user", r"(?<=[=,])\d+\((?P<value>[^()\n]+)\)", _in_groups, hint="gid=", tells=True),
    Pattern("user", rf"{_ROOT}(?P<value>\S+) ", hint="==> root <==", tells=True),
    Pattern("user", rf"{_ROOT}\S+ (?P<value>[^\n]+)", hint="==> root <==", tells=True),
    Pattern("user", rf"{_LISTED}(?P<value>\S+)\s", _is_named, tells=True),
    Pattern("user", rf"{_LISTED}\S+\s+(?P<value>\S+)\s", _is_named, tells=True),
    Pattern("host", rf"(?:{_MONTH}\s+\d\d? \d\d:\d\d:\d\d(?:\.\d+)?|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:+Z-]*) "
            rf"{_HOST} [\w./()@-]+(?:\[\d+\])?:",
            _is_machine, tells=True),
    Pattern("host", rf"(?<![A-Za-z] )(?<![\w/])Linux {_HOST} \d+\.\d+", _is_machine, hint="Linux ", tells=True),
    Pattern("host", rf"\bLinux \d+\.\S+ \({_HOST}\)", _is_machine, hint="Linux ", tells=True),
    Pattern("user", rf"(?P<value>{_LOGIN})@(?P<host>[A-Za-z0-9](?:[\w.-]*\w)?)", _is_login, hint="@", tells=True),
    Pattern("host", rf"{_LOGIN}@(?P<value>(?P<host>[A-Za-z0-9](?:[\w.-]*\w)?))", _is_login, hint="@", tells=True),
    Pattern("host", r"(?<![\w./-])(?P<value>(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+"
            r"(?:local|lan|internal|corp|intranet|intra|localdomain|home\.arpa))(?![\w-])",
            hint=(".local", ".lan", ".internal", ".corp", ".intra", ".home.arpa")),
)  # fmt: skip
"""Looked for in this order: a longer form before one that could be a part of it."""
