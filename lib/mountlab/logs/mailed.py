"""Mails as they are stored: quoted-printable, whose lines break anywhere, and base64. And texts with every second line
empty, as pages are copied."""

from __future__ import annotations

import binascii
import quopri
import re
from collections.abc import Callable
from typing import NamedTuple

_ESCAPE = re.compile(r"=(?:[0-9A-F]{2}|[ \t]*$)", re.MULTILINE)
_OF_BLANKS = re.compile(r"=(?:20[ \t]*$|09[ \t]*$|[89A-F][0-9A-F]|[ \t]*$)", re.MULTILINE)
"""What a text without an equals sign has: blanks at ends of lines, letters of other languages, soft ends."""
_SIGN = re.compile(r"=(?:3D|20\n|C2=|E2=|\n)")
_QUOTES = re.compile(r"\s{0,3}>(?:[ \t]?>)* ?(?!=)")
_BASE64 = re.compile(
    r"^Content-Transfer-Encoding:[ \t]*base64[ \t]*\n(?:[^\n]+\n){0,40}\n"
    r"(?P<data>(?:[A-Za-z0-9+/]{4,998}={0,2}\n)*[A-Za-z0-9+/]{4,998}={0,2}\n?)",
    re.IGNORECASE | re.MULTILINE,
)


_FEW = 8
"""Of so few lines every second one may well be empty."""


class Letter(NamedTuple):
    """A text as it was written."""

    text: str
    numbers: list[int]
    """The line, from 1, of the stored text in which each of its lines begins; [] where the two are the same."""


def same(text: str) -> Letter:
    """Return a text whose lines are those of the stored one."""
    return Letter(text, [])


def apart(text: str, lines_of: Callable[[str], list[str]]) -> Letter:
    """Return a text with the lines apart that a page or a mailer joined in one."""
    lines = [(line, number) for number, whole in enumerate(text.split("\n"), start=1) for line in lines_of(whole)]
    return Letter("\n".join(line for line, _ in lines), [number for _, number in lines])


def unmailed(text: str) -> Letter:
    """Return what a mail says that is stored as quoted-printable or base64, and a text without the empty lines that all
    its lines have below; any other text as it is."""
    if "base64" in text and (match := _BASE64.search(text)):
        return _decode_base64(text, match)
    if _SIGN.search(text) and _is_quoted_printable(text):
        return _decode_quoted_printable(text.split("\n"))
    if "\n\n" in text and 2 * text.count("\n\n") >= text.count("\n") - 2:
        return _drop_empty_lines(text)
    return same(text)


def _is_quoted_printable(text: str) -> bool:
    """Return whether most equals signs of a text are escaped; one without any has nothing but what such a text has."""
    signs, escaped = text.count("="), text.count("=3D")
    if escaped:
        return escaped >= signs - len(_ESCAPE.findall(text))
    return len(_OF_BLANKS.findall(text)) == signs


def _decode_quoted_printable(lines: list[str]) -> Letter:
    decoded_lines: list[str] = []
    numbers: list[int] = []
    first = 0
    while first < len(lines):
        last = first
        while last + 1 < len(lines) and _is_continued(lines[last]):
            last += 1
        # Who quotes a mail as it is stored has the marks on each of its lines.
        quotes = match[0] if (match := _QUOTES.match(lines[first])) else ""
        broken = [lines[first], *(line.removeprefix(quotes) for line in lines[first + 1 : last + 1])]
        whole = "".join([*(line.rstrip(" \t")[:-1] for line in broken[:-1]), broken[-1]])
        decoded_lines.append(_decode(quopri.decodestring(whole.encode())).rstrip("\n").replace("\n", " "))
        numbers.append(first + 1)
        first = last + 1
    return Letter("\n".join(decoded_lines), numbers)


def _is_continued(line: str) -> bool:
    """Return whether the next line is of this one. (Some mailers write the end of a line, too, and then break it.)"""
    end = line.rstrip(" \t")
    return end.endswith("=") and not end.endswith("=0A=")


def _drop_empty_lines(text: str) -> Letter:
    lines = text.split("\n")
    for first in (0, 1):
        if len(lines) > _FEW and not any(lines[1 - first :: 2]):
            return Letter("\n".join([*lines[first::2], ""]), [*range(first + 1, len(lines) + 1, 2), len(lines)])
    return same(text)


def _decode_base64(text: str, match: re.Match[str]) -> Letter:
    try:
        lines = _decode(binascii.a2b_base64(match["data"])).split("\n")
    except binascii.Error:
        return same(text)
    before, after = text[: match.start("data")].split("\n")[:-1], text[match.end("data") :].split("\n")
    first, height = len(before) + 1, match["data"].count("\n")
    size, place = sum(len(line) + 1 for line in lines), 0
    numbers = [*range(1, first)]
    for line in lines:
        numbers.append(first + place * height // size)
        place += len(line) + 1
    return Letter("\n".join([*before, *lines, *after]), [*numbers, *range(first + height, first + height + len(after))])


def _decode(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    return text.replace("\r", "")
