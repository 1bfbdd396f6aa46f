"""Where an ordinary word stands as a name: behind 'box=', before '@', in the column SERIAL of a table, and so on."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from html import unescape
from urllib.parse import unquote

from mountlab.fio.clients import JOB_FILES
from mountlab.publish.identities.patterns import BEFORE, Pattern

_IS = r"[\"']?[ \t]*[:=][ \t]*[\"']?"
_IS_OR_BLANK = r"[\"']?[ \t]*[:= ][ \t]*[\"']?"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? "
_OPTIONS = r"(?:-\S+ )*"
_LONGEST_BEFORE, _LONGEST_AFTER = 160, 60
_ANY = ""

_HOST = (
    (rf"\b(?:[Hh]ost ?[Nn]ame|[Nn]ode ?[Nn]ame|HOST(?:NAME)?|server|(?:client|mount)?addr){_IS}", _ANY),
    (r"[\w.-]@", _ANY), (rf"\b[Hh]ost{_IS_OR_BLANK}", _ANY), (rf"\bssh {_OPTIONS}", _ANY),
    (r"\bLinux ", r" \d"), (r"\bLinux \d\S* \(", r"\)"),
    (_CLOCK, r" [\w.\[\]()/@-]+:"), (r"//", r"[/:]"), (r"\\\\", r"\\"), (r"(?:^|[\s\"'=,])", r":/(?!/)"),
)  # fmt: skip
"""Around the name of a host, and of a box: that often is the host's own, or its alias for ssh."""
_AROUND: dict[str, tuple[tuple[str, str], ...]] = {
    "host": _HOST,
    "user": (
        (r"/(?:home|Users|run/media|var/mail|crontabs)/", _ANY), (r"mountlab-", r"/|(?!-)"), (r"(?:^|[^\w-])", r"@"),
        (rf"\b[Uu]ser{_IS_OR_BLANK}", _ANY), (r"\([ \t]*", r"\)"), (r"[A-Za-z0-9]\\", _ANY),
        (r"(?:^|[\s\"'=:])~", r"/"),
        (rf"\b(?:(?:SUDO_|REMOTE_)?USER|LOGNAME|[Uu]ser ?[Nn]ame|USERNAME|[Oo]wner|[Ll]ogin){_IS}", _ANY),
        (rf"\b(?:sudo|runuser) {_OPTIONS}-u ", _ANY), (r"\bsu (?:- )?", _ANY), (rf"\bchown {_OPTIONS}", _ANY),
    ),
    "box": (
        (rf"\b(?:BOX|[Bb]ox(?:es)?){_IS_OR_BLANK}", _ANY), (r"--box[ =]", _ANY), (r"params/boxes/", r"\.yml"),
        (r"\b[Cc]lients?[\"']?[:= ][ \t]*[\"'\[]*", _ANY), (r"(?:^|/)client-", r"-"), (r"mountlab\.box\([\"']", _ANY),
        (r"(?<!raw)/[a-z]\d{4,}(?:\.c)?/", r"(?![\w.-])"), (r"/[a-z]\d{4,}/", rf"-(?:{'|'.join(JOB_FILES)})\.fio"),
        *_HOST,
    ),
    "serial": (
        (rf"(?i:\b(?:ID_)?serial(?:[_ ]?(?:number|no|short))?|\bs/?n){_IS_OR_BLANK}", _ANY),
        (r"(?:/by-id/|\b(?:ata|nvme|scsi|usb|mmc|virtio)-)[\w.+=-]*[_-]", _ANY),
    ),
    "device": (
        (r"/dev/(?:mapper|disk/by-(?!path/)[a-z]+)/", _ANY), (r"/dev/mapper/[\w.+=]*-", _ANY),
        (r"/dev/", r"/(?!by-|dm-)"),
        (rf"\b(?:PART)?LABEL{_IS}", _ANY), (rf"\b(?:part)?[Ll]abel{_IS}", _ANY), (r"\b[Vv]olume name:[ \t]+", _ANY),
        (rf"\b(?:VG|LV|[Vv]olume [Gg]roup|[Ll]ogical [Vv]olume|[Pp]ool)(?:[ _][Nn]ame)?{_IS_OR_BLANK}", _ANY),
        (r" - zfs ", _ANY), (r"\bz(?:pool|fs) \w+ ", _ANY),
    ),
    "domain": ((rf"\b[Dd]omain{_IS}", _ANY), (r"[\w.-]@", _ANY)),
}  # fmt: skip
"""Kind to what may stand before and after a name of it."""
KINDS = frozenset(_AROUND)
_COLUMNS = {
    "HOST": "host", "HOSTNAME": "host", "NODE": "host", "NODENAME": "host", "SERVER": "host", "USER": "user",
    "OWNER": "user", "LOGNAME": "user", "BOX": "box", "SERIAL": "serial", "LABEL": "device", "PARTLABEL": "device",
    "VG": "device", "LV": "device", "POOL": "device",
}  # fmt: skip
"""Head of a column, as lsblk, ps and lvs print it, to the kind of its names."""
_HEAD = re.compile(r"^[ \t]*[A-Z%#][A-Z0-9%#:/_+-]*(?:[ \t]+[A-Z%#][A-Z0-9%#:/_+-]*)+[ \t]*$", re.MULTILINE)


def as_name(kind: str, word: str) -> Pattern:
    """Return the form of a word that stands as a name of this kind, in any case of its letters."""
    regex = rf"{BEFORE}(?P<value>(?i:{re.escape(word)}))(?![A-Za-z0-9])"
    return Pattern(kind, regex, _stands_as(kind))


@cache
def _stands_as(kind: str) -> Callable[[re.Match[str]], bool]:
    around = [(re.compile(f"(?:{before})\\Z"), re.compile(after)) for before, after in _AROUND[kind]]

    def stands(match: re.Match[str]) -> bool:
        text, start, end = match.string, match.start("value"), match.end("value")
        line = text.rfind("\n", 0, start) + 1
        before = _plain(text[max(line, start - _LONGEST_BEFORE) : start])
        after = _plain(text[end : end + _LONGEST_AFTER])
        if any(right.match(after) and left.search(before) for left, right in around):
            return True
        return any(
            column == kind and top < start < bottom and start - line < right and end - line > left
            for column, top, bottom, left, right in _columns(text)
        )

    return stands


def _plain(text: str) -> str:
    """Return a text without the escapes of URLs, HTML and JSON."""
    return unescape(unquote(text)).replace("\\/", "/").replace('\\"', '"')


@lru_cache(maxsize=4)
def _columns(text: str) -> list[tuple[str, int, int, int, int]]:
    """Return each column of names in the tables of a text: its kind, where the table's lines begin and end, and from
    where to where the column is in each of them. A table ends with an empty line."""
    columns = []
    for head in _HEAD.finditer(text):
        bottom = text.find("\n\n", head.end())
        words = list(re.finditer(r"\S+", head[0]))
        rights = [*(word.start() for word in words[1:]), len(head[0]) + _LONGEST_AFTER]
        for word, right in zip(words, rights, strict=True):
            if kind := _COLUMNS.get(word[0]):
                columns.append((kind, head.end(), bottom if bottom >= 0 else len(text), word.start(), right))
    return columns
